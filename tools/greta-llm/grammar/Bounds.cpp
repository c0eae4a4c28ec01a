// Bounds.cpp: see Bounds.h.
#include "grammar/Bounds.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace greta::llm {

constexpr size_t mostBehindPoint = 20; // of a bound

NumberBound boundOf(const OrderedJson &schema, const char *key) {
  const OrderedJson &given = schema[key];
  if (!given.is_number() ||
      !(std::abs(given.get<double>()) < static_cast<double>(beyondNumbers)))
    throw std::runtime_error(std::string("'") + key +
                             "' has to be a number below 1e15");
  NumberBound bound;
  bound.value = given.get<double>();
  std::string text = given.dump();
  if (text[0] == '-')
    text.erase(0, 1);
  // The decimals as they are written: those of the double may be beside them.
  if (size_t e = text.find('e'); e != text.npos) {
    size_t behind = static_cast<size_t>(-std::stoi(text.substr(e + 1)));
    text.erase(e);
    text.erase(std::remove(text.begin(), text.end(), '.'), text.end());
    if (text.size() + behind > mostBehindPoint + 1)
      throw std::runtime_error(std::string("'") + key +
                               "' has more than 20 digits behind the point");
    text = "0." + std::string(behind - 1, '0') + text;
  }
  size_t point = std::min(text.find('.'), text.size());
  bound.whole = std::stoll(text.substr(0, point));
  if (point < text.size())
    bound.digits = text.substr(point + 1);
  bound.digits.erase(bound.digits.find_last_not_of('0') + 1);
  return bound;
}

std::pair<NumberBound, NumberBound> boundsOf(const OrderedJson &schema) {
  constexpr auto all = static_cast<double>(beyondNumbers);
  NumberBound low{-all, beyondNumbers, "", true},
      high{all, beyondNumbers, "", true};
  for (const char *key :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (!schema.contains(key))
      continue;
    NumberBound bound = boundOf(schema, key);
    bound.isOpen = key[0] == 'e';
    bool isLow = std::string(key).find("inimum") != std::string::npos;
    NumberBound &old = isLow ? low : high;
    if (isLow ? bound.value >= old.value : bound.value <= old.value)
      old = bound;
  }
  if (low.value > high.value)
    throw std::runtime_error("no number fits the bounds of a JSON schema");
  return {low, high};
}

} // namespace greta::llm
