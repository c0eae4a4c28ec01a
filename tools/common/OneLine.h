// OneLine.h: messages of all tools are one line each. In: a message, which may
// name a file or repeat an argument. Out: the message without the characters
// that end a line, or that a terminal takes for more than letters.
#ifndef GRETA_TOOLS_ONE_LINE_H
#define GRETA_TOOLS_ONE_LINE_H

#include <string>

inline std::string onOneLine(const std::string &Text) {
  std::string Line;
  for (size_t I = 0; I < Text.size(); ++I) {
    auto Byte = [&](size_t At) {
      return At < Text.size() ? static_cast<unsigned char>(Text[At]) : 0;
    };
    // The controls from U+0080 to U+009F are 0xc2 and another byte in UTF-8.
    bool IsOfTwo = Byte(I) == 0xc2 && Byte(I + 1) >= 0x80 && Byte(I + 1) < 0xa0;
    bool IsControl = Byte(I) < ' ' || Byte(I) == 0x7f || IsOfTwo;
    Line += IsControl ? '?' : Text[I];
    I += IsOfTwo;
  }
  return Line;
}

#endif
