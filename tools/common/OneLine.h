// OneLine.h: messages of all tools are one line each. In: a message, which may
// name a file or repeat an argument. Out: the message without the characters
// that end a line, or that a terminal takes for more than letters.
#ifndef GRETA_TOOLS_ONE_LINE_H
#define GRETA_TOOLS_ONE_LINE_H

#include <string>

inline std::string onOneLine(std::string Text) {
  for (char &Char : Text)
    if (static_cast<unsigned char>(Char) < ' ' || Char == 0x7f)
      Char = '?';
  return Text;
}

#endif
