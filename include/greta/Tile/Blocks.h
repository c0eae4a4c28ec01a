//===- Blocks.h - short names for ops on blocks -----------------*- C++ -*-===//
//
// In: a builder with a location. Out: ops that make blocks and give them other
// shapes, beside those of Arithmetic.h. A block that has the shape already
// stays as it is.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_BLOCKS_H
#define GRETA_TILE_BLOCKS_H

#include "GretaTile/GretaTile.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace greta {

/// A class that emits ops on blocks at `b` has these names by inheriting them.
struct Blocks : Arithmetic {
  static RankedTensorType block(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }
  static ArrayRef<int64_t> shapeOf(Value block) {
    return mlir::cast<RankedTensorType>(block.getType()).getShape();
  }
  Value splat(Value scalar, ArrayRef<int64_t> shape) {
    return tile::SplatOp::create(b, block(shape, scalar.getType()), scalar);
  }
  Value iota(ArrayRef<int64_t> shape, unsigned dim) {
    return tile::IotaOp::create(b, block(shape, b.getI32Type()), dim);
  }
  Value reshape(Value v, ArrayRef<int64_t> shape) {
    return shapeOf(v) == shape
               ? v
               : tile::ReshapeOp::create(b, withShape(v, shape), v);
  }
  Value broadcast(Value v, ArrayRef<int64_t> shape) {
    return shapeOf(v) == shape
               ? v
               : tile::BroadcastOp::create(b, withShape(v, shape), v);
  }
  /// Repeats a block along a dimension of its own.
  Value repeat(Value v, unsigned dim, int64_t count) {
    llvm::SmallVector<int64_t> shape(shapeOf(v));
    shape.insert(shape.begin() + dim, 1);
    v = reshape(v, shape);
    shape[dim] = count;
    return broadcast(v, shape);
  }
  Value transpose(Value v, ArrayRef<int64_t> order) {
    auto shape = mlir::applyPermutation(shapeOf(v), order);
    return tile::TransOp::create(b, withShape(v, shape), v, order);
  }

private:
  static RankedTensorType withShape(Value v, ArrayRef<int64_t> shape) {
    return block(shape, mlir::getElementTypeOrSelf(v));
  }
};

} // namespace greta

#endif // GRETA_TILE_BLOCKS_H
