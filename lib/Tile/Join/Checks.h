//===- Checks.h - what proofs of launches with several kernels share ------===//
//
// In: a kernel at the lane level that does the work of several. Out: which
// arguments an op reaches memory through, and an error where memory that a
// launch passes is not what such a kernel needs.
//
//===----------------------------------------------------------------------===//

#ifndef GRETA_TILE_JOIN_CHECKS_H
#define GRETA_TILE_JOIN_CHECKS_H

#include "GretaTile/GretaTile.h"
#include "llvm/ADT/SmallBitVector.h"

namespace greta {

/// The arguments that each pointer may be made of, through loops and branches.
class Origins {
public:
  explicit Origins(tile::FuncOp kernel);
  bool isKnown(mlir::Value pointer) const { return origins.contains(pointer); }
  llvm::SmallBitVector of(mlir::Value pointer) const {
    auto known = origins.find(pointer);
    // An address out of memory may be any.
    return known == origins.end() ? llvm::SmallBitVector(arguments, true)
                                  : known->second;
  }

private:
  void follow(mlir::BlockArgument argument);

  unsigned arguments;
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> origins;
};

/// The arguments that an op reaches memory through.
struct Touched {
  Touched(mlir::Operation *root, unsigned arguments, const Origins &origins);
  bool any() const { return reads.any() || writes.any(); }

  llvm::SmallBitVector reads, writes;
};

/// Fails where a launch passes one tensor as two operands, and where the kernel
/// promises only to read what it writes.
llvm::LogicalResult checkMemory(tile::FuncOp kernel, tile::LaunchOp launch,
                                const Origins &origins);

/// Whether an argument is memory that holds zeros before every launch.
bool isZeroed(tile::LaunchOp launch, unsigned number);

} // namespace greta

#endif
