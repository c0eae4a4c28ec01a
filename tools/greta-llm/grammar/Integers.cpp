// Integers.cpp: whole numbers between bounds, by their digits. In: the least
// and the most. Out: an expression of those texts that JSON has for them.
#include "grammar/Grammar.h"

#include <algorithm>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

/// Numbers of as many digits as two have, between these two; the first `at`
/// digits are the same and written.
static Expression between(GrammarBuilder &b, const std::string &least,
                          const std::string &most) {
  auto digit = [&](char from, char to) {
    return b.characters(
        {{static_cast<uint32_t>(from), static_cast<uint32_t>(to)}});
  };
  auto any = [&](size_t count) {
    auto n = static_cast<int64_t>(count);
    return b.repeat(digit('0', '9'), n, n);
  };
  size_t size = least.size();
  if (size == 0)
    return b.empty();
  // Else there would be two ways for each digit.
  if (least == std::string(size, '0') && most == std::string(size, '9'))
    return any(size);
  if (least[0] == most[0])
    return b.sequence({b.literal(least.substr(0, 1)),
                       between(b, least.substr(1), most.substr(1))});
  std::vector<Expression> ways = {
      b.sequence({b.literal(least.substr(0, 1)),
                  between(b, least.substr(1), std::string(size - 1, '9'))}),
      b.sequence({b.literal(most.substr(0, 1)),
                  between(b, std::string(size - 1, '0'), most.substr(1))})};
  if (least[0] + 1 < most[0])
    ways.push_back(b.sequence(
        {digit(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1)),
         any(size - 1)}));
  return b.choice(std::move(ways));
}

Expression integersBetween(GrammarBuilder &b, int64_t least, int64_t most) {
  std::vector<Expression> ways;
  // Numbers from `from` to `to`, which are not negative, by their digits.
  auto add = [&](int64_t from, int64_t to, const char *sign) {
    for (int64_t begin = from; begin <= to;) {
      std::string first = std::to_string(begin);
      int64_t end = 9;
      for (size_t i = 1; i < first.size(); ++i)
        end = end * 10 + 9;
      end = std::min(end, to);
      ways.push_back(b.sequence(
          {b.literal(sign), between(b, first, std::to_string(end))}));
      begin = end + 1;
    }
  };
  if (least < 0)
    add(std::max<int64_t>(1, -most), -least, "-");
  if (most >= 0)
    add(std::max<int64_t>(0, least), most, "");
  return b.choice(std::move(ways));
}

} // namespace greta::llm
