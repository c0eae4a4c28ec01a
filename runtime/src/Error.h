// Error.h: how the runtime fails inside: one exception type with a status and
// one sentence, turned into a status code at the C API (Api.h). Nothing else is
// thrown on purpose.
#ifndef GRETA_RUNTIME_ERROR_H
#define GRETA_RUNTIME_ERROR_H

#include "greta_runtime.h"

#include <exception>
#include <sstream>
#include <string>

namespace greta::rt {

class Error : public std::exception {
public:
  Error(greta_status Code, std::string Text)
      : Code(Code), Text(std::move(Text)) {}
  const char *what() const noexcept override { return Text.c_str(); }
  greta_status code() const { return Code; }

private:
  greta_status Code;
  std::string Text;
};

template <typename... Parts> std::string concat(const Parts &...Piece) {
  std::ostringstream OS;
  (OS << ... << Piece);
  return OS.str();
}

inline std::string hex(const uint8_t *Bytes, size_t Size) {
  std::string S;
  for (size_t I = 0; I < Size; ++I) {
    S += "0123456789abcdef"[Bytes[I] >> 4];
    S += "0123456789abcdef"[Bytes[I] & 15];
  }
  return S;
}

// Makes a text from a file fit for a message: short, on one line, with nothing
// that a terminal takes for more than letters.
inline std::string printable(const std::string &Text, size_t Most = 64) {
  std::string Short = Text.substr(0, Most);
  for (char &C : Short)
    if (C < ' ' || C > '~')
      C = '?';
  return Short;
}

template <typename... Parts>
[[noreturn]] void fail(greta_status Code, const Parts &...Piece) {
  throw Error(Code, concat(Piece...));
}

[[noreturn]] inline void failLost(const std::string &What) {
  fail(GRETA_ERROR_DEVICE_LOST, What,
       ": the device was lost (a kernel crashed or ran too long); destroy all "
       "that was made from it and open it again");
}

} // namespace greta::rt
#endif
