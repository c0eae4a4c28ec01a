// Bounds.h: between which numbers a JSON schema has a number, in decimals as
// they are written.
#ifndef GRETA_LLM_BOUNDS_H
#define GRETA_LLM_BOUNDS_H

#include "model/Json.h"

#include <cstdint>
#include <string>
#include <utility>

namespace greta::llm {

constexpr int64_t beyondNumbers = 1'000'000'000'000'000; // bounds are smaller

// A bound, or the distance of one from zero.
struct NumberBound {
  double value = 0;
  int64_t whole = 0;
  std::string digits;  // of the fraction, the last one no zero
  bool isOpen = false; // the bound itself is outside
};

// Throws unless `key` is such a number.
NumberBound boundOf(const OrderedJson &schema, const char *key);
// The least and the largest number of a schema; open bounds beyond all where it
// has none. Throws where no number is between them.
std::pair<NumberBound, NumberBound> boundsOf(const OrderedJson &schema);

} // namespace greta::llm
#endif
