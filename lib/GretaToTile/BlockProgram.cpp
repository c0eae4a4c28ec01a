//===- BlockProgram.cpp - kernels that are block programs -----------------===//

#include "BlockProgram.h"

using namespace mlir;
using namespace greta;

BlockProgram::Tensor BlockProgram::input(Value argument) {
  unsigned number = cast<BlockArgument>(argument).getArgNumber();
  TensorLayout layout = TensorLayout::of(kernel, number);
  auto shape = cast<AffineMapAttr>(kernel.getShapes()[number]).getValue();
  Value pointer = pointers.inputs[number];
  if (layout.offset != fixed(0))
    pointer = tile::PtrAddOp::create(b, pointer, large(layout.offset));
  return {pointer, layout.strides, llvm::to_vector<4>(shape.getResults()),
          getElementTypeOrSelf(argument.getType())};
}

BlockProgram::Tensor BlockProgram::output(unsigned number,
                                          ArrayRef<AffineExpr> shape) {
  Value pointer = pointers.outputs[number];
  return {pointer, TensorLayout::contiguous(shape, kernel.getContext()).strides,
          llvm::to_vector<4>(shape),
          cast<tile::PtrType>(pointer.getType()).getElementType()};
}

Value BlockProgram::large(Value i32) {
  return arith::ExtSIOp::create(b, b.getI64Type(), i32);
}

Value BlockProgram::large(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIntOp::create(b, constant.getValue(), 64);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Mul)
    return mul(large(binary.getLHS()), large(binary.getRHS()));
  if (binary && expr.getKind() == AffineExprKind::Add)
    return add(large(binary.getLHS()), large(binary.getRHS()));
  return large(small(expr));
}

Value BlockProgram::moved(Value pointer, ArrayRef<Move> moves) {
  for (auto [index, stride] : moves)
    pointer =
        tile::PtrAddOp::create(b, pointer, mul(large(index), large(stride)));
  return pointer;
}

Value BlockProgram::loadScalar(Value pointer, Value index) {
  Type element = cast<tile::PtrType>(pointer.getType()).getElementType();
  return tile::LoadScatteredOp::create(
      b, element, tile::PtrAddOp::create(b, pointer, index), Value(), Value());
}

Value BlockProgram::splat(Value scalar, ArrayRef<int64_t> shape) {
  return tile::SplatOp::create(b, block(shape, scalar.getType()), scalar);
}

Value BlockProgram::iota(ArrayRef<int64_t> shape, unsigned dim) {
  return tile::IotaOp::create(b, block(shape, b.getI32Type()), dim);
}

Value BlockProgram::constant(ArrayRef<int64_t> shape, double value) {
  auto attr = b.getF32FloatAttr(value);
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(block(shape, b.getF32Type()), attr));
}

Value BlockProgram::reshape(Value v, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(v.getType());
  if (type.getShape() == shape)
    return v;
  return tile::ReshapeOp::create(b, block(shape, type.getElementType()), v);
}

Value BlockProgram::broadcast(Value v, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(v.getType());
  if (type.getShape() == shape)
    return v;
  return tile::BroadcastOp::create(b, block(shape, type.getElementType()), v);
}

Value BlockProgram::transpose(Value v, ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(v.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  return tile::TransOp::create(b, block(shape, type.getElementType()), v,
                               order);
}

Value BlockProgram::perRow(Value v, int64_t columns) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(v.getType()).getShape());
  shape.push_back(1);
  v = reshape(v, shape);
  shape.back() = columns;
  return broadcast(v, shape);
}

Value BlockProgram::perColumn(Value v, int64_t rows) {
  int64_t count = cast<RankedTensorType>(v.getType()).getDimSize(0);
  return broadcast(reshape(v, {1, count}), {rows, count});
}

/// What greta_tile.load and store share.
struct BlockProgram::Access {
  SmallVector<Value> offsets, dynamicStrides, bounds;
  SmallVector<int64_t> strides, bounded;
};

BlockProgram::Access BlockProgram::access(ArrayRef<Dim> dims) {
  Access result;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    result.offsets.push_back(dim.offset ? dim.offset : i32(b, 0));
    if (auto constant = dyn_cast<AffineConstantExpr>(dim.stride)) {
      result.strides.push_back(constant.getValue());
    } else {
      result.strides.push_back(ShapedType::kDynamic);
      result.dynamicStrides.push_back(small(dim.stride));
    }
    if (dim.bound) {
      result.bounded.push_back(i);
      result.bounds.push_back(dim.bound);
    }
  }
  return result;
}

Value BlockProgram::load(RankedTensorType type, Value pointer,
                         ArrayRef<Dim> dims) {
  Access a = access(dims);
  return tile::LoadOp::create(b, type, pointer, a.offsets, a.dynamicStrides,
                              a.bounds, Value(), a.strides, a.bounded);
}

void BlockProgram::store(Value v, Value pointer, ArrayRef<Dim> dims) {
  Access a = access(dims);
  tile::StoreOp::create(b, v, pointer, a.offsets, a.dynamicStrides, a.bounds,
                        a.strides, a.bounded);
}
