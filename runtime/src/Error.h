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

// A text from a file, for a message: short, on one line, nothing that a
// terminal takes for more than letters.
inline std::string printable(const std::string &Text) {
  std::string Short = Text.substr(0, 64);
  for (char &C : Short)
    if (C < ' ' || C > '~')
      C = '?';
  return Short;
}

template <typename... Parts>
[[noreturn]] void fail(greta_status Code, const Parts &...Piece) {
  throw Error(Code, concat(Piece...));
}

} // namespace greta::rt
#endif
