//===- BlockLayout.h - a layout for a block of its own ----------*- C++ -*-===//
//
// The layout of a block that neither an instruction nor another block decides.
// It follows from wishes of the ops around the block.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H
#define GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H

#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Facts.h"
#include "llvm/ADT/SmallBitVector.h"

namespace greta {

/// The wishes of accesses, reductions and dots for a block's layout.
struct LayoutWishes {
  explicit LayoutWishes(ArrayRef<int64_t> shape)
      : shape(shape), inRegisters(shape.size()), reduced(shape.size()) {}

  SmallVector<int64_t, 4> shape;
  llvm::SmallBitVector inRegisters; // dimensions for a lane's registers
  llvm::SmallBitVector reduced;     // dimensions that reductions go along
  bool contracted = false; // by a contract: waves continue where lanes end
  int64_t fastest = -1;    // the dimension of neighbours in memory
  int64_t run = 1;         // the most neighbours that one access may take
  int64_t accessed = 0;    // elements of the largest block that is accessed
  int64_t depth = -1;      // a matrix instruction's K; -1: there is none
  int64_t deepRun = 1;     // neighbours along K that have 16 bytes
  bool transposes = false; // transposed loads bring neighbours along K
  int64_t leastRun = 1;    // neighbours along `fastest` that a lane needs
  int64_t together = -1;   // a dimension of which two lie together in memory
};

inline bool isBlock(Value value) {
  return mlir::isa<RankedTensorType>(value.getType());
}

inline ArrayRef<int64_t> shapeOf(Value block) {
  return mlir::cast<RankedTensorType>(block.getType()).getShape();
}

/// Returns the values that must have the layout of `value`: a loop or a branch
/// carries them in one place, or one is a dot's accumulator, the other its
/// result.
SmallVector<Value> carriedTogether(Value value);

/// Collects the wishes for blocks of `shape` with the dimensions of `values`.
/// They come from all ops that elementwise ops connect the values with. `row`
/// is the target that has transposed loads; null: there are none.
LayoutWishes collectWishes(ArrayRef<Value> values, ArrayRef<int64_t> shape,
                           const tile::Facts &facts, const TargetRow *row);

/// Makes a layout in this order. A lane's registers take neighbours in memory,
/// up to 16 bytes of the narrowest type, and all of each dimension that is
/// split off or added up in a lane. Lanes go along the contiguous dimension,
/// then along others. Waves go along dimensions that no reduction crosses, then
/// along others. The rest of the block repeats in registers. If a dimension
/// cannot be in registers, `op` gets an error.
FailureOr<Layout> blockLayout(const LayoutWishes &wishes, tile::FuncOp kernel,
                              Operation *op);

} // namespace greta

#endif // GRETA_LIB_TILE_LAYOUTS_BLOCKLAYOUT_H
