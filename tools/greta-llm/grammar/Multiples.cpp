// Multiples.cpp: the multiples of a number, `multipleOf` of a JSON schema, by
// their digits; whole numbers are those of 1. In: the schema, with bounds if it
// has some, or the bounds. Out: an expression of the texts that JSON has for
// them, without exponents, of up to 15 digits.
//
// Multiples of a / 10^k have k digits behind the point, whose last zeros may be
// left out. So digits are those of a multiple of a, and a rule is for so many
// digits that are left and the remainder of those before, such as for a = 4:
//
//   two left, remainder 0 or 2  →  [02468] one left, remainder 0
//                                | [13579] one left, remainder 1
//   one left, remainder 0       →  [048]
//   one left, remainder 1       →  [26]
//
// With n digits left, remainders that differ by a / gcd(a, 10^n) are the same.
#include "grammar/Bounds.h"
#include "grammar/Grammar.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace greta::llm {
namespace {

using Expression = GrammarBuilder::Expression;

constexpr size_t mostMultipleDigits = 15;
constexpr size_t mostRemainders = 1500; // rules for remainders
constexpr int64_t largestFactor = 1'000'000'000;

int64_t powerOfTen(size_t digits) {
  int64_t power = 1;
  while (digits--)
    power *= 10;
  return power;
}

/// The distance of a bound from zero in steps of 10^-places, rounded up or
/// down; beyondNumbers if it is that or more. `isExact`: it was not rounded.
int64_t stepsOf(const NumberBound &bound, size_t places, bool up,
                bool &isExact) {
  isExact = bound.digits.size() <= places;
  if (bound.whole > (beyondNumbers - 1) / powerOfTen(places))
    return beyondNumbers;
  std::string digits = bound.digits.substr(0, places);
  digits.resize(places, '0');
  int64_t behind = places ? std::stoll(digits) : 0;
  return std::min(bound.whole * powerOfTen(places) + behind + (up && !isExact),
                  beyondNumbers);
}

class Multiples {
public:
  Multiples(GrammarBuilder &builder, int64_t factor, size_t places)
      : b(builder), a(factor), k(places) {}

  /// Multiples from `least` to `most`.
  Expression between(int64_t least, int64_t most) {
    std::vector<Expression> ways;
    if (least < 0)
      add(std::max<int64_t>(1, -most), -least, "-", ways);
    if (most >= 0)
      add(std::max<int64_t>(0, least), most, "", ways);
    return b.choice(std::move(ways));
  }

private:
  /// From `from` to `to`, which are not negative.
  void add(int64_t from, int64_t to, const char *sign,
           std::vector<Expression> &ways) {
    for (size_t size = k + 1; size <= mostMultipleDigits; ++size) {
      int64_t least = size == k + 1 ? 0 : powerOfTen(size - 1);
      least = std::max(from, least);
      int64_t most = std::min(to, powerOfTen(size) - 1);
      if (least > most)
        continue;
      low = std::to_string(least);
      low.insert(0, size - low.size(), '0');
      high = std::to_string(most);
      high.insert(0, size - high.size(), '0');
      ways.push_back(b.sequence({b.literal(sign), bound(0, 0, /*isLow=*/true,
                                                        /*isHigh=*/true)}));
    }
  }
  int64_t modulus(size_t left) const {
    return a / std::gcd(a, powerOfTen(left));
  }
  /// Whether so many digits can make a multiple of it.
  bool canEnd(size_t left, int64_t remainder) const {
    int64_t power = powerOfTen(left);
    return power >= a || (a - remainder * power % a) % a < power;
  }
  /// Whether the text may end here, as if zeros followed.
  bool mayEnd(size_t left, int64_t remainder) const {
    return left <= k && remainder % modulus(left) == 0;
  }
  Expression digits(const CharacterRanges &ranges) {
    return b.characters(ranges);
  }
  /// The text goes on with one of `ways`, and may end here if `isEnd`.
  Expression ended(size_t left, bool isEnd, std::vector<Expression> ways) {
    Expression more = b.choice(std::move(ways));
    if (left == k)
      more = b.sequence({b.literal("."), more});
    return isEnd ? b.optional(more) : more;
  }

  /// So many digits, whatever they are, behind some with a remainder.
  Expression free(size_t left, int64_t remainder) {
    if (a == 1 && k == 0) {
      auto n = static_cast<int64_t>(left);
      return b.repeat(digits({{'0', '9'}}), n, n);
    }
    remainder %= modulus(left);
    auto [it, isNew] = rules.try_emplace({left, remainder}, -1);
    if (!isNew)
      return b.call(it->second);
    if (rules.size() > mostRemainders)
      throw std::runtime_error("'multipleOf' of a JSON schema has too many "
                               "remainders: they make more than 1500 rules");
    int32_t rule = it->second = b.newRule();
    std::map<int64_t, CharacterRanges> next; // by remainders
    for (uint32_t digit = 0; left && digit < 10; ++digit)
      if (int64_t one = (remainder * 10 + digit) % modulus(left - 1);
          canEnd(left - 1, one))
        next[one].push_back({'0' + digit, '0' + digit});
    std::vector<Expression> ways;
    for (const auto &[one, ranges] : next)
      ways.push_back(b.sequence({digits(ranges), free(left - 1, one)}));
    b.define(rule, left ? ended(left, mayEnd(left, remainder), std::move(ways))
                        : b.empty());
    return b.call(rule);
  }

  /// Digits from number `at` on, behind those of the bounds.
  Expression bound(size_t at, int64_t remainder, bool isLow, bool isHigh) {
    // Zeros bound nothing from below, and nines nothing from above.
    isLow = isLow && low.find_first_not_of('0', at) != low.npos;
    isHigh = isHigh && high.find_first_not_of('9', at) != high.npos;
    size_t left = low.size() - at;
    if (!isLow && !isHigh)
      return free(left, remainder);
    auto from = static_cast<uint32_t>(isLow ? low[at] : '0'),
         to = static_cast<uint32_t>(isHigh ? high[at] : '9');
    // By the remainder and the bounds behind them.
    std::map<std::tuple<int64_t, bool, bool>, CharacterRanges> next;
    for (uint32_t digit = from; digit <= to; ++digit) {
      int64_t one = (remainder * 10 + (digit - '0')) % a;
      if (canEnd(left - 1, one))
        next[{one, isLow && digit == from, isHigh && digit == to}].push_back(
            {digit, digit});
    }
    std::vector<Expression> ways;
    for (const auto &[how, ranges] : next) {
      auto [one, staysLow, staysHigh] = how;
      ways.push_back(b.sequence(
          {digits(ranges), bound(at + 1, one, staysLow, staysHigh)}));
    }
    return ended(left, !isLow && mayEnd(left, remainder), std::move(ways));
  }

  GrammarBuilder &b;
  const int64_t a;
  const size_t k;
  std::string low, high; // digits of the bounds
  std::map<std::pair<size_t, int64_t>, int32_t> rules;
};

} // namespace

Expression addMultiple(GrammarBuilder &b, const OrderedJson &schema,
                       bool isWhole) {
  NumberBound factor = boundOf(schema, "multipleOf");
  size_t places = factor.digits.size();
  bool isExact = false;
  int64_t a = places > 9 ? 0 : stepsOf(factor, places, false, isExact);
  if (!(factor.value > 0) || a < 1 || a > largestFactor)
    throw std::runtime_error("'multipleOf' has to be a number above 0 with at "
                             "most 9 digits, the largest 1e9");
  if (isWhole) {
    a /= std::gcd(a, powerOfTen(places));
    places = 0;
  }
  auto [low, high] = boundsOf(schema);
  // The nearest numbers within the bounds, in steps.
  auto nearest = [&](const NumberBound &bound, bool isLow) {
    int64_t sign = bound.value < 0 ? -1 : 1;
    int64_t steps = sign * stepsOf(bound, places, isLow == (sign > 0), isExact);
    return bound.isOpen && isExact ? steps + (isLow ? 1 : -1) : steps;
  };
  int64_t least = std::max(nearest(low, true), -beyondNumbers + 1),
          most = std::min(nearest(high, false), beyondNumbers - 1);
  return Multiples(b, a, places).between(least, most);
}

Expression integersBetween(GrammarBuilder &b, int64_t least, int64_t most) {
  return Multiples(b, 1, 0).between(least, most);
}

} // namespace greta::llm
