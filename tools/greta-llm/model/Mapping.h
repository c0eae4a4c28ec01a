// Mapping.h: a file's bytes, mapped into memory for reading, with reads that
// end at the end of the file; and the one way in which greta-llm reports a
// problem.
#ifndef GRETA_LLM_MAPPING_H
#define GRETA_LLM_MAPPING_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace greta::llm {

// Reports the user's mistake: one line on stderr and exit status 1. Control
// characters, which names in files may have, become question marks.
[[noreturn]] void fail(std::string message);

// A regular file: opening a pipe or a device might wait for ever. If the file
// is cut while it is mapped, reading what is gone ends the process with one
// line on stderr.
class Mapping {
public:
  explicit Mapping(const std::string &path);
  ~Mapping();
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  const std::string &path() const { return path_; }
  const uint8_t *data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(data_), size_};
  }

private:
  std::string path_;
  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
};

// A whole text file, which must exist.
std::string readText(const std::string &path);

} // namespace greta::llm
#endif
