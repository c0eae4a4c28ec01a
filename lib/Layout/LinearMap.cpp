//===- LinearMap.cpp - elimination over GF(2) -----------------------------===//
#include "greta/Layout/LinearMap.h"
#include "llvm/ADT/bit.h"

using namespace greta;

bool BitSpan::add(uint64_t vector) {
  uint64_t made = uint64_t(1) << added++;
  auto pos = rows.begin();
  // Rows are ordered by highest bit, so one sweep reduces the vector.
  for (; pos != rows.end() && vector; ++pos) {
    uint64_t top = llvm::bit_floor(pos->vector);
    if (llvm::bit_floor(vector) > top)
      break;
    if (vector & top) {
      vector ^= pos->vector;
      made ^= pos->made;
    }
  }
  if (!vector)
    return false;
  rows.insert(pos, {vector, made});
  return true;
}

std::optional<uint64_t> BitSpan::solve(uint64_t target) const {
  uint64_t made = 0;
  for (const Row &row : rows) {
    if (target & llvm::bit_floor(row.vector)) {
      target ^= row.vector;
      made ^= row.made;
    }
  }
  if (target)
    return std::nullopt;
  return made;
}

LinearMap LinearMap::identity(unsigned bits) {
  LinearMap map;
  for (unsigned bit = 0; bit != bits; ++bit)
    map.images.push_back(uint64_t(1) << bit);
  return map;
}

uint64_t LinearMap::operator()(uint64_t input) const {
  uint64_t output = 0;
  for (unsigned bit = 0, e = images.size(); bit != e; ++bit)
    if (input >> bit & 1)
      output ^= images[bit];
  return output;
}

LinearMap LinearMap::compose(const LinearMap &inner) const {
  LinearMap map;
  for (uint64_t image : inner.images)
    map.images.push_back((*this)(image));
  return map;
}

std::optional<LinearMap> LinearMap::rightInverse(unsigned outputBits) const {
  BitSpan span;
  for (uint64_t image : images)
    span.add(image);
  LinearMap inverse;
  for (unsigned bit = 0; bit != outputBits; ++bit) {
    std::optional<uint64_t> input = span.solve(uint64_t(1) << bit);
    if (!input)
      return std::nullopt;
    inverse.images.push_back(*input);
  }
  return inverse;
}
