// Mapping.h: a file's bytes, mapped into memory for reading, with reads that
// end at the end of the file; and the one way in which greta-llm reports a
// problem.
#ifndef GRETA_LLM_MAPPING_H
#define GRETA_LLM_MAPPING_H

#include <cstdint>
#include <stdexcept>
#include <string>

namespace greta::llm {

// What the user gave is wrong: one line on stderr and exit status 1.
[[noreturn]] inline void fail(const std::string &message) {
  throw std::runtime_error(message);
}

class Mapping {
public:
  explicit Mapping(const std::string &path);
  ~Mapping();
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  const std::string &path() const { return path_; }
  const uint8_t *data() const { return data_; }
  size_t size() const { return size_; }

private:
  std::string path_;
  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
};

// A whole text file, which must exist.
std::string readText(const std::string &path);

} // namespace greta::llm
#endif
