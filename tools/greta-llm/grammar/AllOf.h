// AllOf.h: what several JSON schemas say of one value, as one schema. In: a
// schema with `allOf`, and the one that its references lead into. Out: one that
// allows the values that all of them allow, or an exception that says what
// cannot be brought together.
#ifndef GRETA_LLM_ALL_OF_H
#define GRETA_LLM_ALL_OF_H

#include "model/Json.h"

#include <vector>

namespace greta::llm {

// Schemas with `allOf` in each other; what contains itself so has no end.
constexpr int deepestAllOf = 32;

class AllOf {
public:
  // `left`: values to copy, or to look through; a schema may ask for any
  // number.
  AllOf(const OrderedJson &root, int64_t &left) : root(root), left(left) {}

  // The parts of `allOf`, and what stands beside it. Members that several of
  // them have are an `allOf` of their own there.
  OrderedJson merged(const OrderedJson &schema);

private:
  void charge(int64_t values);
  void collect(const OrderedJson &schema, std::vector<OrderedJson> &parts,
               int depth);
  OrderedJson both(const OrderedJson &a, const OrderedJson &b);

  const OrderedJson &root;
  int64_t &left;
};

} // namespace greta::llm
#endif
