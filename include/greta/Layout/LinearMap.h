//===- LinearMap.h - linear maps over GF(2) ---------------------*- C++ -*-===//
//
// Bit matrices and their elimination: what every question about layouts comes
// down to. A vector is the bits of a 64-bit word, addition is XOR.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LAYOUT_LINEARMAP_H
#define GRETA_LAYOUT_LINEARMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace greta {

/// A growing list of vectors in echelon form. Vectors are numbered in the order
/// in which they were added; a vector in the span of earlier ones is numbered
/// but never used to represent others. So what is added first is preferred, and
/// a target uses later vectors only when the earlier ones do not span it.
class BitSpan {
public:
  /// Adds the next vector; false when it was in the span already.
  bool add(uint64_t vector);
  /// The set of added vectors, as a mask, whose sum is `target`.
  std::optional<uint64_t> solve(uint64_t target) const;
  bool contains(uint64_t target) const { return solve(target).has_value(); }
  unsigned rank() const { return rows.size(); }

private:
  struct Row {
    uint64_t vector; ///< its highest bit is in no other row's top position
    uint64_t made;   ///< which added vectors sum up to it
  };
  llvm::SmallVector<Row, 16> rows; ///< by descending highest bit
  unsigned added = 0;
};

/// A linear map given by the images of the unit vectors.
class LinearMap {
public:
  LinearMap() = default;
  explicit LinearMap(llvm::ArrayRef<uint64_t> images) : images(images) {}
  static LinearMap identity(unsigned bits);

  unsigned numInputBits() const { return images.size(); }
  uint64_t image(unsigned bit) const { return images[bit]; }
  uint64_t operator()(uint64_t input) const;
  /// this(inner(x)).
  LinearMap compose(const LinearMap &inner) const;
  /// A map R with this(R(y)) = y for every y of `outputBits` bits, which uses
  /// low input bits first; none when this map does not reach all of them.
  std::optional<LinearMap> rightInverse(unsigned outputBits) const;
  bool operator==(const LinearMap &other) const {
    return images == other.images;
  }

private:
  llvm::SmallVector<uint64_t, 16> images;
};

} // namespace greta

#endif // GRETA_LAYOUT_LINEARMAP_H
