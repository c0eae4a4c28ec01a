// OtherNames.cpp: the names that a JSON schema's object may have beside those
// that it lists. In: these. Out: an expression of the texts that are none of
// them, without escapes, which could spell one.
#include "grammar/Grammar.h"

#include <algorithm>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

CharacterRanges plainCharacters() {
  return {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}};
}

Expression otherNames(GrammarBuilder &b,
                      const std::vector<std::string> &names) {
  std::vector<std::u32string> texts;
  for (const std::string &name : names) {
    std::u32string text;
    for (size_t at = 0; at < name.size();) {
      auto lead = static_cast<unsigned char>(name[at++]);
      size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
      uint32_t code = more ? lead & (0x3fu >> more) : lead;
      for (; more && at < name.size(); --more)
        code = code << 6 | (static_cast<unsigned char>(name[at++]) & 0x3f);
      text += static_cast<char32_t>(code);
    }
    // Only an escape spells it.
    auto isPlain = [](char32_t code) {
      return code >= 0x20 && code != '"' && code != '\\';
    };
    if (!std::all_of(text.begin(), text.end(), isPlain))
      continue;
    if (text.size() > 64)
      throw std::runtime_error(
          "'additionalProperties' beside a property of more than 64 characters "
          "is not supported");
    texts.push_back(std::move(text));
  }
  std::sort(texts.begin(), texts.end());
  int32_t rest = b.newRule();
  b.define(rest, b.repeat(b.characters(plainCharacters()), 0, -1));
  if (texts.empty())
    return b.call(rest);
  struct Maker {
    GrammarBuilder &b;
    const std::vector<std::u32string> &texts;
    int32_t rest;
    // texts[first, last) have the first `size` characters in common.
    Expression from(size_t first, size_t last, size_t size) {
      std::vector<Expression> ways;
      if (texts[first].size() == size)
        ++first;
      else
        ways.push_back(b.empty());
      CharacterRanges others = plainCharacters();
      while (first < last) {
        char32_t next = texts[first][size];
        size_t end = first;
        while (end < last && texts[end][size] == next)
          ++end;
        ways.push_back(b.sequence(
            {b.characters({{next, next}}), from(first, end, size + 1)}));
        CharacterRanges left;
        for (auto [low, high] : others) {
          if (low <= next && next <= high) {
            if (low < next)
              left.push_back({low, next - 1});
            if (next < high)
              left.push_back({next + 1, high});
          } else {
            left.push_back({low, high});
          }
        }
        others = std::move(left);
        first = end;
      }
      ways.push_back(b.sequence({b.characters(others), b.call(rest)}));
      return b.choice(std::move(ways));
    }
  };
  return Maker{b, texts, rest}.from(0, texts.size(), 0);
}

} // namespace greta::llm
