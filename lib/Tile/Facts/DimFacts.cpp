//===- DimFacts.cpp - what is known along each dimension ------------------===//

#include "greta/Tile/DimFacts.h"
#include "greta/Tile/Facts.h"
#include <algorithm>
#include <numeric>

using namespace greta;
using greta::tile::ValueFacts;
using llvm::raw_ostream;
using llvm::SmallVector;
using llvm::StringRef;

int64_t DimFacts::divisibilityOf(int64_t group) const {
  int64_t within = std::gcd(group, contiguity);
  return within == contiguity ? divisibility : std::gcd(divisibility, within);
}

int64_t DimFacts::aligned() const { return std::gcd(contiguity, divisibility); }

DimFacts DimFacts::counted(int64_t group) const {
  int64_t within = std::gcd(group, contiguity);
  return {within, constancy, divisibilityOf(within)};
}

/// Returns what is known of elements of either, or of sums of both, that count
/// in groups of `contiguity`.
static DimFacts inGroups(const DimFacts &a, const DimFacts &b,
                         int64_t contiguity) {
  return {contiguity, std::gcd(a.constancy, b.constancy),
          std::min(a.divisibilityOf(contiguity), b.divisibilityOf(contiguity))};
}

/// Returns how many elements of `a` count from a multiple of their number on
/// while `b` is one multiple of that number.
static int64_t groupOf(const DimFacts &a, const DimFacts &b) {
  return std::gcd(a.aligned(), std::gcd(b.constancy, b.divisibilityOf(1)));
}

DimFacts facts::join(const DimFacts &a, const DimFacts &b) {
  return inGroups(a, b, std::gcd(a.contiguity, b.contiguity));
}

DimFacts facts::combine(const DimFacts &a, const DimFacts &b,
                        int64_t divisibility) {
  return {1, std::gcd(a.constancy, b.constancy), divisibility};
}

DimFacts facts::add(const DimFacts &a, const DimFacts &b) {
  return inGroups(a, b,
                  std::max(std::gcd(a.contiguity, b.constancy),
                           std::gcd(a.constancy, b.contiguity)));
}

DimFacts facts::subtract(const DimFacts &a, const DimFacts &b) {
  return inGroups(a, b, std::gcd(a.contiguity, b.constancy));
}

DimFacts facts::multiply(const DimFacts &a, const DimFacts &b, bool byOne) {
  if (byOne)
    return a;
  int64_t x = a.divisibilityOf(1), y = b.divisibilityOf(1);
  return combine(a, b, x > DimFacts::most / y ? DimFacts::most : x * y);
}

DimFacts facts::divideSigned(const DimFacts &a, const DimFacts &b,
                             std::optional<int64_t> divisor) {
  int64_t all = a.divisibilityOf(1);
  // Exact where the divisor is a power of two and all are multiples of it.
  int64_t by = divisor ? DimFacts::divisorOf(*divisor) : DimFacts::most;
  bool isExact = divisor && *divisor == by && all >= by;
  return combine(a, b, isExact ? all / by : 1);
}

DimFacts facts::divide(const DimFacts &a, const DimFacts &b,
                       std::optional<int64_t> divisor) {
  // Multiples of a group's size lie on both sides of a group, never in it.
  DimFacts result = divideSigned(a, b, divisor);
  result.constancy = std::max(result.constancy, groupOf(a, b));
  return result;
}

DimFacts facts::remainderSigned(const DimFacts &a, const DimFacts &b) {
  return combine(a, b, std::min(a.divisibilityOf(1), b.divisibilityOf(1)));
}

DimFacts facts::remainder(const DimFacts &a, const DimFacts &b) {
  int64_t contiguity = groupOf(a, b);
  if (contiguity == 1)
    return remainderSigned(a, b);
  return {contiguity, std::gcd(a.constancy, b.constancy),
          std::min(a.divisibilityOf(contiguity), b.divisibilityOf(1))};
}

DimFacts facts::bitAnd(const DimFacts &a, const DimFacts &b,
                       std::optional<int64_t> mask) {
  int64_t x = a.divisibilityOf(1), y = b.divisibilityOf(1);
  DimFacts result = combine(a, b, std::max(x, y));
  // The mask clears the bits in which a group's elements differ, or keeps them.
  result.constancy = std::max(result.constancy,
                              std::gcd(a.aligned(), std::gcd(b.constancy, y)));
  int64_t kept = mask ? DimFacts::divisorOf(~*mask) : 1;
  int64_t contiguity = std::gcd(a.aligned(), kept);
  if (contiguity > 1) {
    result.contiguity = contiguity;
    result.divisibility = std::max(a.divisibilityOf(contiguity), y);
  }
  return result;
}

DimFacts facts::bitOr(const DimFacts &a, const DimFacts &b) {
  // Numbers without a bit in common are added.
  return inGroups(a, b, std::max(groupOf(a, b), groupOf(b, a)));
}

DimFacts facts::isBelow(const DimFacts &a, const DimFacts &b) {
  // A bound that is a multiple of a group's size has it on one side.
  DimFacts result = combine(a, b, 1);
  result.constancy = std::max(result.constancy, groupOf(a, b));
  return result;
}

DimFacts facts::select(const DimFacts &condition, const DimFacts &a,
                       const DimFacts &b) {
  DimFacts either = join(a, b).counted(condition.constancy);
  either.constancy = std::gcd(either.constancy, condition.constancy);
  return either;
}

DimFacts facts::truncate(const DimFacts &a, unsigned bits) {
  return a.counted(int64_t(1) << std::min(bits - 1, 61u));
}

DimFacts facts::extend(const DimFacts &a, bool wraps) {
  return wraps ? a.counted(a.aligned()) : a;
}

DimFacts facts::rescale(const DimFacts &a, int64_t from, int64_t to) {
  if (from == to)
    return a;
  DimFacts all = DimFacts::uniform(a.divisibilityOf(1), a.constancy);
  DimFacts bytes = multiply(all, DimFacts::uniform(from, a.constancy), false);
  return divideSigned(bytes, DimFacts::uniform(to, a.constancy), to);
}

int64_t ValueFacts::divisibility() const {
  int64_t all = 1;
  for (const DimFacts &dim : dims)
    all = std::max(all, dim.divisibilityOf(1));
  return all;
}

ValueFacts ValueFacts::join(const ValueFacts &a, const ValueFacts &b) {
  if (!a.isInitialized())
    return b;
  if (!b.isInitialized())
    return a;
  SmallVector<DimFacts, 4> dims;
  for (auto [x, y] : llvm::zip_equal(a.dims, b.dims))
    dims.push_back(facts::join(x, y));
  return ValueFacts(std::move(dims));
}

void ValueFacts::print(raw_ostream &os) const {
  auto list = [&](StringRef name, int64_t DimFacts::*member) {
    os << name << " [";
    llvm::interleaveComma(dims, os, [&](const DimFacts &dim) {
      if (dim.*member == DimFacts::most)
        os << "any";
      else
        os << dim.*member;
    });
    os << "]";
  };
  list("contiguity", &DimFacts::contiguity);
  list(", divisibility", &DimFacts::divisibility);
  list(", constancy", &DimFacts::constancy);
}
