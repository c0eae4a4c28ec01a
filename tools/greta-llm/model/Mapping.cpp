// Mapping.cpp: see Mapping.h.
#include "model/Mapping.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

namespace greta::llm {

/// How many bytes of UTF-8 the character has that begins there; 0 for what is
/// no character, or one that a terminal takes for a command.
static size_t sizeOfCharacter(const std::string &text, size_t at) {
  utf8proc_int32_t code = 0;
  utf8proc_ssize_t size = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + at,
      static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  bool isControl = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return size < 1 || isControl ? 0 : static_cast<size_t>(size);
}

void fail(std::string message) {
  constexpr size_t most = 4000; // a file's value that is wrong may be longer
  size_t at = 0;
  while (at < message.size() && at < most) {
    size_t size = sizeOfCharacter(message, at);
    if (!size)
      message[at] = '?';
    at += std::max<size_t>(size, 1);
  }
  if (at < message.size())
    message.replace(at, message.npos, "..");
  throw std::runtime_error(message);
}

//===----------------------------------------------------------------------===//
// Files that are cut while they are mapped
//===----------------------------------------------------------------------===//

namespace {
// The mappings that a signal handler finds; more than these are not watched.
struct Range {
  std::atomic<const uint8_t *> begin{nullptr}, end{nullptr};
};
Range ranges[1024];

void onBusError(int, siginfo_t *info, void *) {
  auto *at = static_cast<const uint8_t *>(info->si_addr);
  for (const Range &range : ranges)
    if (at >= range.begin.load() && at < range.end.load()) {
      constexpr char message[] =
          "greta-llm: error: a model file was cut while it was read\n";
      ssize_t ignored = write(STDERR_FILENO, message, sizeof(message) - 1);
      (void)ignored;
      _exit(1);
    }
  // Not ours: the instruction faults again.
  signal(SIGBUS, SIG_DFL);
}

void watch(const uint8_t *begin, size_t size) {
  static const bool isInstalled = [] {
    struct sigaction action = {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)isInstalled;
  for (Range &range : ranges) {
    const uint8_t *free = nullptr;
    if (range.begin.compare_exchange_strong(free, begin)) {
      range.end = begin + size;
      return;
    }
  }
}

void forget(const uint8_t *begin) {
  for (Range &range : ranges)
    if (range.begin == begin) {
      range.end = nullptr;
      range.begin = nullptr;
      return;
    }
}
} // namespace

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

Mapping::Mapping(const std::string &path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat about = {};
  if (file < 0 || fstat(file, &about) != 0) {
    int why = errno;
    if (file >= 0)
      close(file);
    fail(path + ": cannot open: " + strerror(why));
  }
  size_ = static_cast<size_t>(about.st_size);
  void *memory = !S_ISREG(about.st_mode) || size_ == 0
                     ? MAP_FAILED
                     : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    fail(path + ": is empty or no file that can be mapped");
  data_ = static_cast<const uint8_t *>(memory);
  watch(data_, size_);
}

Mapping::~Mapping() {
  forget(data_);
  munmap(const_cast<uint8_t *>(data_), size_);
}

std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    fail(path + ": cannot open: " + strerror(errno));
  // A folder opens, too, and is not read.
  in.peek();
  if (in.bad())
    fail(path + ": cannot read: " + strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace greta::llm
