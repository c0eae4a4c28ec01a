// Pattern.cpp: a JSON schema's `pattern`, a regular expression of JavaScript,
// as an expression of the texts in which it finds something. In: the
// expression's text. Out: these texts as JSON has them between quotation marks,
// where only what has to be escaped is. An error names what is not regular, or
// would need a look at what is beside.
#include "grammar/Grammar.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>

namespace greta::llm {
namespace {

using Expression = GrammarBuilder::Expression;

constexpr uint32_t lastCharacter = 0x10ffff;
constexpr int deepestGroup = 40;

[[noreturn]] void refusePattern(const std::string &what) {
  throw std::runtime_error("'pattern': " + what);
}

[[noreturn]] void badPattern() {
  refusePattern("it is no regular expression of JavaScript");
}

/// In order, and none beside or in another.
CharacterRanges sorted(CharacterRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CharacterRanges merged;
  for (auto [low, high] : ranges)
    if (!merged.empty() && low <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, high);
    else
      merged.push_back({low, high});
  return merged;
}

CharacterRanges allBut(const CharacterRanges &ranges) {
  CharacterRanges others;
  uint32_t next = 0;
  for (auto [low, high] : sorted(ranges)) {
    if (next < low)
      others.push_back({next, low - 1});
    next = high + 1;
  }
  if (next <= lastCharacter)
    others.push_back({next, lastCharacter});
  return others;
}

class Pattern {
public:
  // `any`: any character, as JSON has it.
  Pattern(GrammarBuilder &builder, const std::string &text, Expression any)
      : b(builder), anything(b.repeat(any, 0, -1)) {
    for (size_t i = 0; i < text.size();) {
      auto lead = static_cast<unsigned char>(text[i++]);
      size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
      uint32_t code = more ? lead & (0x3fu >> more) : lead;
      for (; more && i < text.size(); --more)
        code = code << 6u | (static_cast<unsigned char>(text[i++]) & 0x3fu);
      codes.push_back(code);
    }
  }

  Expression whole();

private:
  bool isAt(uint32_t code) const {
    return at < codes.size() && codes[at] == code;
  }
  bool take(uint32_t code) {
    bool is = isAt(code);
    at += is;
    return is;
  }
  bool take(const char *ascii);
  uint32_t next() {
    if (at == codes.size())
      badPattern();
    return codes[at++];
  }
  Expression sequence(int depth);
  Expression atom(int depth);
  Expression group(int depth);
  Expression repeated(Expression one);
  bool takeBounds(int64_t &least, int64_t &most);
  int64_t number();
  CharacterRanges listed();
  CharacterRanges escaped(bool isListed, bool &isClass);
  uint32_t hexadecimal(int digits);
  Expression characters(CharacterRanges ranges);

  GrammarBuilder &b;
  const Expression anything;
  std::vector<uint32_t> codes;
  size_t at = 0;
  std::map<CharacterRanges, int32_t> rules; // of characters
};

bool Pattern::take(const char *ascii) {
  size_t end = at;
  for (; *ascii; ++ascii, ++end)
    if (end == codes.size() || codes[end] != static_cast<uint32_t>(*ascii))
      return false;
  at = end;
  return true;
}

/// Something is found anywhere, but for what stands at the beginning or the end
/// of a way.
Expression Pattern::whole() {
  std::vector<Expression> ways;
  do {
    bool begins = take('^');
    Expression way = sequence(0);
    bool ends = take('$');
    ways.push_back(b.sequence(
        {begins ? b.empty() : anything, way, ends ? b.empty() : anything}));
  } while (take('|'));
  if (isAt(')'))
    badPattern();
  if (at < codes.size())
    refusePattern("'$' is supported at the end alone");
  return b.choice(std::move(ways));
}

/// Up to what ends it, which is '|', ')', '$' or the end.
Expression Pattern::sequence(int depth) {
  std::vector<Expression> parts;
  while (at < codes.size() && !isAt('|') && !isAt(')') && !isAt('$'))
    parts.push_back(repeated(atom(depth)));
  return b.sequence(std::move(parts));
}

Expression Pattern::atom(int depth) {
  switch (uint32_t code = next()) {
  case '(':
    return group(depth + 1);
  case '[':
    return characters(listed());
  case '.':
    return characters(allBut({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
  case '\\': {
    bool isClass = false;
    return characters(escaped(false, isClass));
  }
  case '^':
    refusePattern("'^' is supported at the beginning alone");
  case '*':
  case '+':
  case '?':
    badPattern();
  case '{': {
    --at;
    int64_t least = 0, most = 0;
    if (takeBounds(least, most))
      badPattern();
    ++at;
    return characters({{code, code}});
  }
  default:
    return characters({{code, code}});
  }
}

Expression Pattern::group(int depth) {
  if (depth > deepestGroup)
    refusePattern("its groups are nested too deep");
  if (take("?=") || take("?!") || take("?<=") || take("?<!"))
    refusePattern("a look at what is beside, such as (?=..), is not supported");
  if (take("?<")) {
    size_t begin = at;
    while (next() != '>') {
    }
    if (at == begin + 1)
      badPattern();
  } else if (isAt('?') && !take("?:")) {
    refusePattern(
        "of groups with (?..) there are (?:..) and (?<name>..) alone");
  }
  std::vector<Expression> ways;
  do
    ways.push_back(sequence(depth));
  while (take('|'));
  if (isAt('$'))
    refusePattern("'$' is supported at the end alone");
  if (!take(')'))
    badPattern();
  return b.choice(std::move(ways));
}

/// A number of repetitions is bounded by the grammar's.
int64_t Pattern::number() {
  int64_t value = 0;
  for (; at < codes.size() && codes[at] >= '0' && codes[at] <= '9'; ++at)
    value = std::min<int64_t>(value * 10 + (codes[at] - '0'), 1'000'000);
  return value;
}

/// {n}, {n,} or {n,m}; anything else is a text.
bool Pattern::takeBounds(int64_t &least, int64_t &most) {
  auto isDigit = [&] {
    return at < codes.size() && codes[at] >= '0' && codes[at] <= '9';
  };
  size_t begin = at;
  if (take('{') && isDigit()) {
    least = most = number();
    if (take(','))
      most = isDigit() ? number() : -1;
    if (take('}'))
      return true;
  }
  at = begin;
  return false;
}

/// How often it looks for something changes nothing about what it finds.
Expression Pattern::repeated(Expression one) {
  int64_t least = 0, most = -1;
  if (take('+'))
    least = 1;
  else if (take('?'))
    most = 1;
  else if (!take('*') && !takeBounds(least, most))
    return one;
  take('?');
  if (most >= 0 && least > most)
    badPattern();
  if (isAt('*') || isAt('+') || isAt('?'))
    badPattern();
  return b.repeat(one, least, most);
}

/// Reads a list of characters, whose '[' has been read.
CharacterRanges Pattern::listed() {
  CharacterRanges ranges;
  bool isOthers = take('^');
  auto one = [&](bool &isClass) {
    uint32_t code = next();
    return code == '\\' ? escaped(true, isClass)
                        : CharacterRanges{{code, code}};
  };
  while (!take(']')) {
    bool isClass = false, isEndClass = false;
    CharacterRanges first = one(isClass), last;
    bool isRange = isAt('-') && at + 1 < codes.size() && codes[at + 1] != ']';
    if (isRange) {
      ++at;
      last = one(isEndClass);
      // Beside a class it is no range.
      if (isClass || isEndClass)
        ranges.insert(ranges.end(), {{'-', '-'}});
      else if (first[0].first > last[0].first)
        badPattern();
      else
        first[0].second = last[0].first;
      ranges.insert(ranges.end(), last.begin(), last.end());
    }
    ranges.insert(ranges.end(), first.begin(), first.end());
  }
  return isOthers ? allBut(ranges) : sorted(std::move(ranges));
}

uint32_t Pattern::hexadecimal(int digits) {
  uint32_t value = 0;
  for (; digits; --digits) {
    uint32_t code = next();
    if (!(code < 128 && isxdigit(static_cast<int>(code))))
      badPattern();
    value = value * 16 + (code <= '9' ? code - '0' : (code | 0x20u) - 'a' + 10);
  }
  return value;
}

/// Reads an escape, whose backslash has been read, in a list of characters or
/// outside of one. Sets `isClass` if the escape stands for several characters.
CharacterRanges Pattern::escaped(bool isListed, bool &isClass) {
  static const CharacterRanges digits = {{'0', '9'}},
                               words = {{'0', '9'},
                                        {'A', 'Z'},
                                        {'_', '_'},
                                        {'a', 'z'}},
                               spaces = {{'\t', '\r'},     {' ', ' '},
                                         {0xa0, 0xa0},     {0x1680, 0x1680},
                                         {0x2000, 0x200a}, {0x2028, 0x2029},
                                         {0x202f, 0x202f}, {0x205f, 0x205f},
                                         {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  auto single = [](uint32_t code) { return CharacterRanges{{code, code}}; };
  uint32_t code = next();
  isClass = code < 128 && strchr("dDwWsS", static_cast<int>(code)) && code;
  switch (code) {
  case 'd':
    return digits;
  case 'D':
    return allBut(digits);
  case 'w':
    return words;
  case 'W':
    return allBut(words);
  case 's':
    return spaces;
  case 'S':
    return allBut(spaces);
  case 'n':
    return single('\n');
  case 'r':
    return single('\r');
  case 't':
    return single('\t');
  case 'f':
    return single('\f');
  case 'v':
    return single('\v');
  case 'c': {
    uint32_t letter = next();
    if (!(letter < 128 && isalpha(static_cast<int>(letter))))
      badPattern();
    return single(letter % 32);
  }
  case 'x':
    return single(hexadecimal(2));
  case 'u': {
    bool isLong = take('{');
    uint32_t value = hexadecimal(isLong ? 1 : 4);
    while (isLong && !take('}'))
      if ((value = value * 16 + hexadecimal(1)) > lastCharacter)
        badPattern();
    if (value >= 0xd800 && value < 0xe000)
      refusePattern("halves of characters are not supported");
    return single(value);
  }
  case 'p':
  case 'P':
    refusePattern("\\p{..} is not supported");
  case 'k':
    refusePattern("a reference to a group, \\k<..>, is not supported");
  case 'b':
  case 'B':
    if (isListed && code == 'b')
      return single('\b');
    refusePattern("a look at what is beside, \\b or \\B, is not supported");
  default:
    break;
  }
  if (code >= '1' && code <= '9')
    refusePattern("a reference to a group, \\1, is not supported");
  if (code == '0' &&
      !(at < codes.size() && codes[at] >= '0' && codes[at] <= '9'))
    return single(0);
  if (code < 128 && isalnum(static_cast<int>(code)))
    badPattern();
  return single(code);
}

/// One of some characters, as JSON has it. A rule keeps repetitions small.
Expression Pattern::characters(CharacterRanges ranges) {
  bool isLetter = ranges.size() == 1 && ranges[0].first == ranges[0].second &&
                  ranges[0].first < 128 &&
                  isalnum(static_cast<int>(ranges[0].first));
  if (isLetter)
    return b.characters(ranges);
  auto [it, isNew] = rules.try_emplace(sorted(std::move(ranges)), -1);
  if (!isNew)
    return b.call(it->second);
  CharacterRanges plain;
  std::vector<std::string> texts;
  for (auto [low, high] : it->first) {
    for (auto [from, to] : plainCharacters())
      if (std::max(low, from) <= std::min(high, to))
        plain.push_back({std::max(low, from), std::min(high, to)});
    for (uint32_t code = low; code <= high && code <= '\\'; ++code)
      if (code < ' ' || code == '"' || code == '\\') {
        const char *names = "\b\f\n\r\t\"\\", *letters = "bfnrt\"\\";
        const char *found =
            code ? strchr(names, static_cast<int>(code)) : nullptr;
        char text[8];
        if (found)
          snprintf(text, sizeof(text), "\\%c", letters[found - names]);
        else
          snprintf(text, sizeof(text), "\\u%04x", code);
        texts.push_back(text);
      }
  }
  Expression one = b.choice({b.characters(plain), b.oneOf(std::move(texts))});
  it->second = b.newRule();
  b.define(it->second, one);
  return b.call(it->second);
}

} // namespace

Expression addPattern(GrammarBuilder &builder, const std::string &pattern,
                      Expression any) {
  return Pattern(builder, pattern, any).whole();
}

} // namespace greta::llm
