// Mapping.cpp: see Mapping.h.
#include "Mapping.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace greta::llm {

Mapping::Mapping(const std::string &path) : path_(path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
}

Mapping::~Mapping() { munmap(const_cast<uint8_t *>(data_), size_); }

std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    fail(path + ": cannot open: " + strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace greta::llm
