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

/// A product: of a constant, of uniform integers, and of at most one of the
/// element's index along a dimension and a block of integers.
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

/// The sum that a pointer or a block of them is. i32 offsets may be taken apart
/// because their sums and products do not overflow (ptr_add).
LinearAddress getLinearAddress(mlir::Value pointers);

/// A scalar of a program, as one term.
LinearTerm getScalarTerm(mlir::Value scalar);

/// offset + index along a dimension < bound. Either may have fewer bits than
/// the comparison, which is of their values.
struct MaskBound {
  unsigned dim;
  mlir::Value offset; // a scalar; null: 0
  mlir::Value bound;  // a scalar
};

/// The bounds that a mask is all of; none where it is something else.
std::optional<llvm::SmallVector<MaskBound, 2>> getMaskBounds(mlir::Value mask);

} // namespace greta::tile

#endif
