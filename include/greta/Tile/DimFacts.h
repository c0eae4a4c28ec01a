//===- DimFacts.h - what is known of a row of integers ----------*- C++ -*-===//
//
// The arithmetic of the facts analysis: what is known of integers along one
// dimension of a block, and what follows for sums, products and quotients of
// them. A scalar is a row of one. Plain C++: it knows nothing of ops.
//
//   0 1 2 3 8 9 10 11    contiguity 4, constancy 1, divisibility 4
//   6 6 6 6 2 2 2 2      contiguity 1, constancy 4, divisibility 2
//   5 6 7 8              contiguity 4, constancy 1, divisibility 1
//
// All of it holds modulo the integers' width, where they may wrap: a group of
// neighbours that begins at a multiple of its size, a power of two, does not.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_DIMFACTS_H
#define GRETA_TILE_DIMFACTS_H

#include <cstdint>
#include <optional>

namespace greta {

/// Groups of elements begin at multiples of their size, which divides the row.
struct DimFacts {
  /// The divisor of zero, more than any width needs.
  static constexpr int64_t most = int64_t(1) << 62;

  int64_t contiguity = 1;   // in groups of so many, each is one more
  int64_t constancy = 1;    // in groups of so many, all are the same
  int64_t divisibility = 1; // of each contiguous group's first, a power of two

  /// The largest power of two, up to `most`, that divides a number.
  static int64_t divisorOf(int64_t value) {
    int64_t lowest = value & -value;
    return value == 0 || lowest < 0 ? most : lowest;
  }
  /// `extent` copies of one number.
  static DimFacts uniform(int64_t divisibility, int64_t extent) {
    return {1, extent, divisibility};
  }
  /// first, first + 1, ..
  static DimFacts counting(int64_t first, int64_t extent) {
    return {extent, 1, divisorOf(first)};
  }

  /// The divisor of the first of every group of so many elements.
  int64_t divisibilityOf(int64_t group) const;
  /// The largest groups of neighbours that begin at a multiple of their size.
  int64_t aligned() const;
  /// The same where only groups of so many are known to count.
  DimFacts counted(int64_t group) const;

  bool operator==(const DimFacts &other) const {
    return contiguity == other.contiguity && constancy == other.constancy &&
           divisibility == other.divisibility;
  }
};

namespace facts {

/// The facts that hold for both of two values.
DimFacts join(const DimFacts &a, const DimFacts &b);

DimFacts add(const DimFacts &a, const DimFacts &b);
DimFacts subtract(const DimFacts &a, const DimFacts &b);
DimFacts multiply(const DimFacts &a, const DimFacts &b, bool byOne);
/// Rounding down: of natural numbers, or exact.
DimFacts divide(const DimFacts &a, const DimFacts &b,
                std::optional<int64_t> divisor);
/// The same where numbers may be negative, so that rounding is towards zero.
DimFacts divideSigned(const DimFacts &a, const DimFacts &b,
                      std::optional<int64_t> divisor);
DimFacts remainder(const DimFacts &a, const DimFacts &b);
DimFacts remainderSigned(const DimFacts &a, const DimFacts &b);
/// `mask` is b where it is one number.
DimFacts bitAnd(const DimFacts &a, const DimFacts &b,
                std::optional<int64_t> mask);
/// or and exclusive or.
DimFacts bitOr(const DimFacts &a, const DimFacts &b);
/// a < b or a >= b, signed or unsigned: booleans, of which only constancy
/// matters.
DimFacts isBelow(const DimFacts &a, const DimFacts &b);
/// An operation of which nothing else is known.
DimFacts combine(const DimFacts &a, const DimFacts &b, int64_t divisibility);
/// a or b, as a row of booleans says.
DimFacts select(const DimFacts &condition, const DimFacts &a,
                const DimFacts &b);
/// To fewer bits.
DimFacts truncate(const DimFacts &a, unsigned bits);
/// In units of `to` instead of `from`, both powers of two, of which all are
/// whole multiples.
DimFacts rescale(const DimFacts &a, int64_t from, int64_t to);
/// To more bits; `wraps`: neighbours may be the largest number and the least.
DimFacts extend(const DimFacts &a, bool wraps);

} // namespace facts
} // namespace greta

#endif
