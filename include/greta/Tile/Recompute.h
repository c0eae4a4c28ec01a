//===- Recompute.h - blocks of indices in another layout --------*- C++ -*-===//
//
// In: a block of integers or pointers that follows from indices and scalars,
// with a layout. Out: the same in another layout, which the lanes compute
// again, since they know all that it takes, in place of moving it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_RECOMPUTE_H
#define GRETA_TILE_RECOMPUTE_H

#include "GretaTile/GretaTile.h"

namespace greta {

/// Whether a block follows from indices, constants and scalars by ops that have
/// the same layout for all of their blocks, up to extents of 1.
bool followsFromIndices(mlir::Value block);

/// Computes such blocks in other layouts, each op beside its original, and once
/// for each layout.
class Recomputer {
public:
  mlir::Value compute(mlir::OpBuilder &b, mlir::Value block,
                      tile::LayoutAttr layout);

private:
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> known;
};

} // namespace greta

#endif // GRETA_TILE_RECOMPUTE_H
