//===- BlockProgram.h - kernels that are block programs ---------*- C++ -*-===//
//
// Shared by the ops that have a kernel to themselves (GretaToTileAttention.cpp,
// GretaToTileUpdate.cpp): their tensors.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_GRETATOTILE_BLOCKPROGRAM_H
#define GRETA_LIB_GRETATOTILE_BLOCKPROGRAM_H

#include "GretaToTile.h"
#include "greta/Names.h"

namespace greta {

class BlockProgram : public Emitter {
protected:
  using Emitter::Emitter;

  /// The place of a tensor's elements.
  struct Tensor {
    Value pointer; // to the first
    SmallVector<AffineExpr, 4> strides, shape;
    Type element;
  };
  Tensor input(Value argument);
  /// The value that the region yields at a place; its shape is given.
  Tensor output(unsigned number, ArrayRef<AffineExpr> shape);

  /// An expression as an i32.
  Value small(AffineExpr expr) { return scalars.get(b, expr); }
  /// `pointer` moved by some i32 indices, each times a stride.
  using Move = std::pair<Value, AffineExpr>;
  Value moved(Value pointer, ArrayRef<Move> moves);
  /// One element.
  Value loadScalar(Value pointer, Value index);

  /// A block repeated along a dimension more, its last or its first.
  Value perRow(Value block, int64_t columns) {
    return repeat(block, shapeOf(block).size(), columns);
  }
  Value perColumn(Value block, int64_t rows) { return repeat(block, 0, rows); }
  void assumeBelow(Value offset, Value bound) {
    tile::AssumeOp::create(b, below(offset, bound));
  }

  /// A block at offsets in a tensor whose first element is at `pointer`, with
  /// an offset, a stride and a bound (null: none) for each dimension.
  struct Dim {
    Value offset;
    AffineExpr stride;
    Value bound;
  };
  using Emitter::load, Emitter::store;
  Value load(RankedTensorType type, Value pointer, ArrayRef<Dim> dims) {
    return load(type, pointer, access(dims));
  }
  void store(Value block, Value pointer, ArrayRef<Dim> dims) {
    store(block, pointer, access(dims));
  }

private:
  Access access(ArrayRef<Dim> dims);
};

} // namespace greta

#endif
