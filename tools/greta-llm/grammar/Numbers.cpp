// Numbers.cpp: numbers between bounds of a JSON schema, by their digits. In:
// the schema. Out: an expression of the texts that JSON has for them, without
// exponents.
#include "grammar/Bounds.h"
#include "grammar/Grammar.h"

namespace greta::llm {
namespace {

using Expression = GrammarBuilder::Expression;

constexpr size_t mostDigits = 24; // of a fraction

// Fractions between those of two bounds, where these are given.
class Fractions {
public:
  explicit Fractions(GrammarBuilder &builder) : b(builder) {}

  Expression between(const NumberBound *low, const NumberBound *high) {
    Expression some = b.sequence({b.literal("."), rest(0, low, high)});
    return mayEnd(0, low, high) ? b.optional(some) : some;
  }

private:
  static char digitOf(const NumberBound &bound, size_t at) {
    return at < bound.digits.size() ? bound.digits[at] : '0';
  }
  static bool mayEnd(size_t at, const NumberBound *low,
                     const NumberBound *high) {
    bool isBelow = low && at < low->digits.size(), isLow = low && !isBelow,
         isHigh = high && at >= high->digits.size();
    return !isBelow && !(isLow && low->isOpen) && !(isHigh && high->isOpen);
  }
  Expression digits(char from, char to, size_t at) {
    return b.repeat(one(from, to), at == 0,
                    static_cast<int64_t>(mostDigits - at));
  }
  Expression one(char from, char to) {
    return b.characters(
        {{static_cast<uint32_t>(from), static_cast<uint32_t>(to)}});
  }

  /// Digits behind `at` others, which are the bounds'. At least one has to be
  /// behind the point.
  Expression rest(size_t at, const NumberBound *low, const NumberBound *high) {
    if (!low && !high)
      return digits('0', '9', at);
    if ((!low || at >= low->digits.size()) &&
        (!high || at >= high->digits.size())) {
      // Only zeros would follow in the bounds.
      if (high)
        return high->isOpen || (low && low->isOpen) ? b.choice({})
                                                    : digits('0', '0', at);
      return low->isOpen
                 ? b.sequence({b.repeat(one('0', '0'), 0,
                                        static_cast<int64_t>(mostDigits - at)),
                               one('1', '9'), digits('0', '9', at + 1)})
                 : digits('0', '9', at);
    }
    std::vector<Expression> ways;
    if (at && mayEnd(at, low, high))
      ways.push_back(b.empty());
    char from = low ? digitOf(*low, at) : '0',
         to = high ? digitOf(*high, at) : '9';
    auto add = [&](char first, char last, const NumberBound *itsLow,
                   const NumberBound *itsHigh) {
      if (first <= last)
        ways.push_back(
            b.sequence({one(first, last), rest(at + 1, itsLow, itsHigh)}));
    };
    if (low && high && from == to) {
      add(from, to, low, high);
      return b.choice(std::move(ways));
    }
    if (low && from <= to) {
      add(from, from, low, nullptr);
      ++from;
    }
    if (high && from <= to) {
      add(to, to, nullptr, high);
      --to;
    }
    add(from, to, nullptr, nullptr);
    return b.choice(std::move(ways));
  }

  GrammarBuilder &b;
};

/// Numbers that are not negative.
Expression positives(GrammarBuilder &b, const NumberBound &low,
                     const NumberBound &high) {
  Fractions fractions(b);
  auto whole = [&](int64_t value) { return b.literal(std::to_string(value)); };
  if (low.whole == high.whole)
    return b.sequence({whole(low.whole), fractions.between(&low, &high)});
  return b.choice(
      {b.sequence({whole(low.whole), fractions.between(&low, nullptr)}),
       b.sequence({whole(high.whole), fractions.between(nullptr, &high)}),
       b.sequence({integersBetween(b, low.whole + 1, high.whole - 1),
                   fractions.between(nullptr, nullptr)})});
}

} // namespace

Expression addBoundNumber(GrammarBuilder &b, const OrderedJson &schema) {
  auto [low, high] = boundsOf(schema);
  NumberBound zero;
  std::vector<Expression> ways;
  if (low.value < 0) {
    // From zero on it is the other way around.
    NumberBound least = high.value < 0 ? high : zero;
    least.isOpen = high.value <= 0 && high.isOpen;
    ways.push_back(b.sequence({b.literal("-"), positives(b, least, low)}));
  }
  if (high.value >= 0)
    ways.push_back(positives(b, low.value < 0 ? zero : low, high));
  return b.choice(std::move(ways));
}

} // namespace greta::llm
