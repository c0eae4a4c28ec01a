//===- BlockLayout.h - a layout for a block of its own ----------*- C++ -*-===//
//
// The layout of a block that neither an instruction nor another block decides:
// what the ops around it would like, and the layout that follows.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H
#define GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H

#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Facts.h"
#include "llvm/ADT/SmallBitVector.h"

namespace greta {

/// The layout that the accesses, reductions and dots of a block's elements ask
/// for.
struct LayoutWishes {
  explicit LayoutWishes(ArrayRef<int64_t> shape)
      : shape(shape), inRegisters(shape.size()), reduced(shape.size()) {}

  SmallVector<int64_t, 4> shape;
  llvm::SmallBitVector inRegisters; // dimensions that a lane would rather hold
  llvm::SmallBitVector reduced;
  bool contracted = false;  // by a contract: waves go on where lanes end
  int64_t fastest = -1;     // dimension of neighbours in memory
  int64_t run = 1;          // how many of them an access may take
  int64_t accessed = 0;     // elements of the largest block that is accessed
  int64_t depth = -1;       // K, where matrix instructions take it
  int64_t deepRun = 1;      // how many of K's neighbours make 16 bytes
  bool transposes = false;  // transposed loads bring neighbours along K
  int64_t leastRun = 1;     // how many of `fastest`'s neighbours a lane needs
  tile::ReshapeOp reshaped; // what an accumulator is taken apart by
};

inline bool isBlock(Value value) {
  return mlir::isa<RankedTensorType>(value.getType());
}

inline ArrayRef<int64_t> shapeOf(Value block) {
  return mlir::cast<RankedTensorType>(block.getType()).getShape();
}

/// The values that a loop or a branch carries in one place with `value`, and a
/// dot's accumulator with its result.
SmallVector<Value> carriedTogether(Value value);

/// The wishes about blocks of `shape` that have the dimensions of `values`,
/// from all ops that elementwise work connects them with. `row` is the target
/// that has transposed loads; null: nobody knows of any.
LayoutWishes collectWishes(ArrayRef<Value> values, ArrayRef<int64_t> shape,
                           const tile::Facts &facts, const TargetRow *row);

/// Neighbours in memory in the registers of a lane, up to 16 bytes of the
/// narrowest type; dimensions that are split off or added up in a lane wholly
/// in registers; then lanes along the contiguous dimension and the others; then
/// waves, along dimensions that no reduction crosses first; what is left
/// repeats. An error at `op` where a dimension cannot be in registers.
FailureOr<Layout> blockLayout(const LayoutWishes &wishes, tile::FuncOp kernel,
                              Operation *op);

} // namespace greta

#endif // GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H
