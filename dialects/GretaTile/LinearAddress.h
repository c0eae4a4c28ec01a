//===- LinearAddress.h - blocks of pointers as sums -------------*- C++ -*-===//
//
// In: a block of pointers. Out: the scalar pointer that it comes from, and
// what is added to it, taken apart into what is the same for all elements, what
// is an index times a factor, and the rest. So an access knows what belongs to
// the uniform part of an address. Masks are taken apart into bounds of indices
// in the same way.
//
//===----------------------------------------------------------------------===//
#ifndef GRETATILE_LINEARADDRESS_H
#define GRETATILE_LINEARADDRESS_H

#include "GretaTile/GretaTile.h"

namespace greta::tile {

/// A product of a constant, of uniform integers, and of at most one of these:
/// the element's index along a dimension, or a block of integers.
struct LinearTerm {
  int64_t constant = 1;
  llvm::SmallVector<mlir::Value, 2> factors; // scalars
  int64_t dim = -1;
  mlir::Value block;
  mlir::Value scalar;  // all of a uniform term, where one value is
  bool isWide = false; // a product of 64 bits, which may pass 2^31

  bool isUniform() const { return dim < 0 && !block; }
};

/// base + the sum of the terms, in elements.
struct LinearAddress {
  mlir::Value base; // a pointer, or a block of them where nobody knows better
  llvm::SmallVector<LinearTerm, 4> terms;

  bool hasUniformBase() const { return mlir::isa<PtrType>(base.getType()); }
};

/// Returns a pointer, or a block of pointers, as a sum. Offsets of i32 may be
/// taken apart because their sums and products do not overflow (ptr_add).
LinearAddress getLinearAddress(mlir::Value pointers);

/// Returns a block of integers as a sum that is equal modulo two to the power
/// of their bits: what was made from fewer bits is not taken apart.
llvm::SmallVector<LinearTerm, 4> getLinearTerms(mlir::Value integers);

/// Whether a pointer is an argument that promises to reach less than 2^31
/// bytes, moved by some steps. Then `pointer` becomes the argument, and the
/// steps are added to `steps`.
bool reachesLittle(mlir::Value &pointer,
                   llvm::SmallVectorImpl<mlir::Value> &steps);

/// Returns a scalar of a program as one term.
LinearTerm getScalarTerm(mlir::Value scalar);

/// A bound of an index along a dimension by a mask: offset + index is below a
/// bound, or is not negative, or, as an unsigned number, is below the bound.
/// Offset, index and bound may have fewer bits than the comparison, which
/// compares their values.
struct MaskBound {
  enum class Kind { Below, Nonnegative, Unsigned };
  unsigned dim;
  llvm::SmallVector<LinearTerm, 2> offset, bound; // uniform; both may be empty
  Kind kind = Kind::Below;

  /// Either where it is one value (null: zero); none: a sum, or a constant that
  /// no scalar is.
  std::optional<mlir::Value> scalarOffset() const;
  std::optional<mlir::Value> scalarBound() const;
};

/// A mask that consists of bounds of indices, and of conditions that are the
/// same for all elements.
struct MaskBounds {
  llvm::SmallVector<MaskBound, 2> bounds;
  llvm::SmallVector<mlir::Value, 1> conditions; // scalars

  /// Whether the mask consists of upper bounds that are scalars.
  bool areUpper() const;
};
std::optional<MaskBounds> getMaskBounds(mlir::Value mask);

} // namespace greta::tile

#endif
