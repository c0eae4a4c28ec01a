//===- BlockProgram.h - kernels that are block programs ---------*- C++ -*-===//
//
// Shared by the ops that have a kernel to themselves (GretaToTileAttention.cpp,
// GretaToTileUpdate.cpp): their tensors.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_GRETATOTILE_BLOCKPROGRAM_H
#define GRETA_LIB_GRETATOTILE_BLOCKPROGRAM_H

#include "GretaToTile.h"

namespace greta {

class BlockProgram : public Emitter {
protected:
  using Emitter::Emitter;

  /// The place of a tensor's elements.
  struct Tensor {
    mlir::Value pointer; // to the first
    llvm::SmallVector<mlir::AffineExpr, 4> strides, shape;
    mlir::Type element;
  };
  Tensor input(mlir::Value argument);
  /// The value that the region yields at a place; its shape is given.
  Tensor output(unsigned number, llvm::ArrayRef<mlir::AffineExpr> shape);

  /// An expression as an i32.
  mlir::Value small(mlir::AffineExpr expr) { return scalars.get(b, expr); }
  /// `pointer` moved by some i32 indices, each times a stride.
  using Move = std::pair<mlir::Value, mlir::AffineExpr>;
  mlir::Value moved(mlir::Value pointer, llvm::ArrayRef<Move> moves);
  /// One element.
  mlir::Value loadScalar(mlir::Value pointer, mlir::Value index);

  /// A block repeated along a dimension more, its last or the first of two.
  mlir::Value perRow(mlir::Value block, int64_t columns);
  mlir::Value perColumn(mlir::Value block, int64_t rows);
  void assumeBelow(mlir::Value offset, mlir::Value bound) {
    tile::AssumeOp::create(
        b, compare(mlir::arith::CmpIPredicate::slt, offset, bound));
  }

  /// A block at offsets in a tensor whose first element is at `pointer`, with
  /// an offset, a stride and a bound (null: none) for each dimension.
  struct Dim {
    mlir::Value offset;
    mlir::AffineExpr stride;
    mlir::Value bound;
  };
  using Emitter::load, Emitter::store;
  mlir::Value load(mlir::RankedTensorType type, mlir::Value pointer,
                   llvm::ArrayRef<Dim> dims) {
    return load(type, pointer, access(dims));
  }
  void store(mlir::Value block, mlir::Value pointer, llvm::ArrayRef<Dim> dims) {
    store(block, pointer, access(dims));
  }

private:
  Access access(llvm::ArrayRef<Dim> dims);
};

} // namespace greta

#endif
