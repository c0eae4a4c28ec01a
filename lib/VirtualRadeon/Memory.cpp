//===- Memory.cpp - buffers and their addresses ---------------------------===//
#include "Memory.h"
#include "Radeon.h"
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace greta::radeon;

// Far from where Linux puts programs, their heaps and their libraries, and from
// what sanitizers reserve; below 2^47, which the process has. Each connection
// gets 256 GiB.
static constexpr uint64_t FirstWindow = 0x300000000000;
static constexpr uint64_t WindowBytes = uint64_t(1) << 38;
static constexpr unsigned WindowCount = 64;

static std::shared_ptr<Buffer> bufferOf(Machine &machine, int file,
                                        uint64_t bytes) {
  struct stat status;
  if (file < 0 || fstat(file, &status)) {
    if (file >= 0)
      close(file);
    return nullptr;
  }
  auto buffer = std::make_shared<Buffer>();
  buffer->machine = &machine;
  buffer->file = file;
  buffer->bytes = bytes;
  buffer->inode = status.st_ino;
  return buffer;
}

std::shared_ptr<Buffer> greta::radeon::makeBuffer(Machine &machine,
                                                  uint64_t bytes) {
  int file = memfd_create("virtual-radeon", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, off_t(bytes))) {
    close(file);
    return nullptr;
  }
  return bufferOf(machine, file, bytes);
}

std::shared_ptr<Buffer> greta::radeon::openBuffer(Machine &machine, int file) {
  struct stat status;
  // Memory files are regular ones that nothing links to.
  if (fstat(file, &status) || !S_ISREG(status.st_mode) || !status.st_size)
    return nullptr;
  return bufferOf(machine, fcntl(file, F_DUPFD_CLOEXEC, 0),
                  uint64_t(status.st_size));
}

namespace {
enum class Sharing { None, Whole, Part };
} // namespace

/// Whether the pages of a range are shared ones, as one mapping has them.
static Sharing sharingOf(uint64_t address, uint64_t bytes) {
  std::ifstream maps("/proc/self/maps");
  Sharing found = Sharing::None;
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char flags[5] = {};
    if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end,
               flags) != 3 ||
        end <= address || begin >= address + bytes || flags[3] != 's')
      continue;
    found = begin <= address && end >= address + bytes ? Sharing::Whole
                                                       : Sharing::Part;
  }
  return found;
}

/// The same shared pages once more, at `to` or anywhere; null if that fails.
static void *mapAgain(void *pages, uint64_t bytes, void *to = nullptr) {
  void *at =
      mremap(pages, 0, bytes, MREMAP_MAYMOVE | (to ? MREMAP_FIXED : 0), to);
  return at == MAP_FAILED ? nullptr : at;
}

std::shared_ptr<Buffer>
greta::radeon::adoptMemory(Machine &machine, uint64_t address, uint64_t bytes) {
  // Two threads may bring the same memory.
  static std::mutex adopting;
  std::lock_guard<std::mutex> locked(adopting);
  void *program = reinterpret_cast<void *>(address);
  switch (sharingOf(address, bytes)) {
  case Sharing::Whole: {
    // Other processes have these pages, or another buffer has.
    auto buffer = std::make_shared<Buffer>();
    buffer->machine = &machine;
    buffer->bytes = bytes;
    buffer->pages = mapAgain(program, bytes);
    return buffer->pages ? buffer : nullptr;
  }
  case Sharing::Part:
    say("memory of the program that is shared in part cannot be a buffer");
    return nullptr;
  case Sharing::None:
    break;
  }
  auto buffer = makeBuffer(machine, bytes);
  if (!buffer)
    return nullptr;
  uint64_t written = 0;
  while (written < bytes) {
    ssize_t now = pwrite(buffer->file, static_cast<char *>(program) + written,
                         bytes - written, off_t(written));
    if (now <= 0)
      return nullptr;
    written += uint64_t(now);
  }
  // Private pages cannot be mapped twice: the program gets shared ones with the
  // same contents at the same place.
  if (mmap(program, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           buffer->file, 0) == MAP_FAILED)
    return nullptr;
  return buffer;
}

Buffer::~Buffer() {
  if (isCounted)
    (domains & 4 ? machine->usedVram : machine->usedGtt) -= bytes;
  if (file >= 0)
    close(file);
  if (pages)
    munmap(pages, bytes);
}

/// At an address where nothing is.
static bool mapBuffer(const Buffer &buffer, void *at, uint64_t bytes,
                      uint64_t offset) {
  void *there = mmap(at, bytes, PROT_READ | PROT_WRITE,
                     buffer.pages ? MAP_PRIVATE | MAP_ANONYMOUS |
                                        MAP_NORESERVE | MAP_FIXED_NOREPLACE
                                  : MAP_SHARED | MAP_FIXED_NOREPLACE,
                     buffer.file, buffer.pages ? 0 : off_t(offset));
  if (there != at || !buffer.pages)
    return there == at;
  if (mapAgain(static_cast<char *>(buffer.pages) + offset, bytes, at))
    return true;
  munmap(at, bytes);
  return false;
}

static std::mutex windowLock;
static bool usedWindows[WindowCount];

AddressSpace::AddressSpace(sim::Device &device) : device(device) {
  std::lock_guard<std::mutex> locked(windowLock);
  while (window < WindowCount && usedWindows[window])
    ++window;
  if (window == WindowCount) // map() refuses
    return;
  usedWindows[window] = true;
  base = FirstWindow + window * WindowBytes;
}

AddressSpace::~AddressSpace() {
  if (!base)
    return;
  unmap(base, WindowBytes);
  std::lock_guard<std::mutex> locked(windowLock);
  usedWindows[window] = false;
}

uint64_t AddressSpace::end() const { return base ? base + WindowBytes : 0; }

int AddressSpace::place(uint64_t address, Mapping mapping) {
  if (mapping.buffer) {
    void *at = reinterpret_cast<void *>(address);
    if (!mapBuffer(*mapping.buffer, at, mapping.bytes, mapping.offset))
      return ENOMEM;
    if (llvm::Error e = device.registerHost(at, mapping.bytes)) {
      llvm::consumeError(std::move(e));
      munmap(at, mapping.bytes);
      return EINVAL;
    }
  }
  mappings[address] = std::move(mapping);
  return 0;
}

void AddressSpace::drop(uint64_t address, const Mapping &mapping) {
  if (!mapping.buffer)
    return;
  void *at = reinterpret_cast<void *>(address);
  // Waits for a running kernel, which holds the simulator's lock.
  llvm::consumeError(device.unregisterHost(at));
  munmap(at, mapping.bytes);
}

int AddressSpace::map(uint64_t address, uint64_t bytes,
                      std::shared_ptr<Buffer> buffer, uint64_t offset,
                      bool isReplacing) {
  if (!bytes || (address | bytes | offset) % PageBytes || address < begin() ||
      bytes > WindowBytes || address > end() - bytes)
    return EINVAL;
  if (buffer && (offset > buffer->bytes || bytes > buffer->bytes - offset))
    return EINVAL;
  if (isReplacing)
    unmap(address, bytes);
  auto above = mappings.lower_bound(address);
  if (above != mappings.end() && above->first < address + bytes)
    return EINVAL;
  if (above != mappings.begin() &&
      std::prev(above)->first + std::prev(above)->second.bytes > address)
    return EINVAL;
  return place(address, {bytes, offset, std::move(buffer)});
}

int AddressSpace::unmap(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  bool found = false;
  while (true) {
    auto at = mappings.lower_bound(address);
    if (at != mappings.begin() &&
        std::prev(at)->first + std::prev(at)->second.bytes > address)
      --at;
    if (at == mappings.end() || at->first >= end)
      return found ? 0 : ENOENT;
    found = true;
    uint64_t from = at->first;
    Mapping mapping = std::move(at->second);
    mappings.erase(at);
    drop(from, mapping);
    // The parts on either side of the hole stay.
    if (from < address)
      place(from, {address - from, mapping.offset, mapping.buffer});
    if (from + mapping.bytes > end)
      place(end, {from + mapping.bytes - end, mapping.offset + (end - from),
                  mapping.buffer});
  }
}
