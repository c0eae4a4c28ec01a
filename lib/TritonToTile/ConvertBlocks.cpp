//===- ConvertBlocks.cpp - ops of Triton IR that make and move blocks -----===//

#include "TritonToTile.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

//===----------------------------------------------------------------------===//
// Pieces that others build with
//===----------------------------------------------------------------------===//

Value OpConverter::spread(Value line, unsigned dim, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> thin(shape.size(), 1);
  thin[dim] = shape[dim];
  return broadcast(reshape(line, thin), shape);
}

//===----------------------------------------------------------------------===//
// Programs and blocks
//===----------------------------------------------------------------------===//

template <typename ToT, typename OpT>
LogicalResult OpConverter::convertAxis(OpT op) {
  size_t axis = StringRef("xyz").find(op.getAxis());
  if (op.getAxis().size() != 1 || axis == StringRef::npos)
    return op->emitOpError("names axis '")
           << op.getAxis() << "'; a grid has x, y and z";
  return replace(op, {ToT::create(b, int32_t(axis))});
}

LogicalResult OpConverter::convert(GetProgramIdOp op) {
  return convertAxis<tile::ProgramIdOp>(op);
}

LogicalResult OpConverter::convert(GetNumProgramsOp op) {
  return convertAxis<tile::NumProgramsOp>(op);
}

LogicalResult OpConverter::convert(MakeRangeOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t start = op.getStart();
  if (type.getRank() != 1 || type.getDimSize(0) != op.getEnd() - start)
    return op.emitOpError("counts from ")
           << start << " to " << op.getEnd() << " in " << type;
  Value range = tile::IotaOp::create(b, type, 0);
  if (start)
    range = add(range, numberOf(b, type, start));
  return replace(op, {range});
}

/// Reductions along all dimensions leave the one element.
LogicalResult OpConverter::convert(UnsplatOp op) {
  Value value = op.getValue();
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getNumElements() != 1)
    return op.emitOpError("takes the one element of ")
           << type << ", which has " << type.getNumElements();
  while (isa<RankedTensorType>(value.getType()))
    value =
        tile::ReduceOp::create(b, value, 0,
                               [](OpBuilder &, Location, ValueRange x,
                                  ValueRange) { return llvm::to_vector(x); })
            .getResult(0);
  return replace(op, {value});
}

/// Returns an integer as an i32 of the same value.
static Value toI32(Value value, ImplicitLocOpBuilder &b) {
  Type element = getElementTypeOrSelf(value.getType());
  Type type = tile::withElementType(value.getType(), b.getI32Type());
  unsigned width = element.getIntOrFloatBitWidth();
  if (width > 32)
    return arith::TruncIOp::create(b, type, value);
  return width == 32 ? value : arith::ExtSIOp::create(b, type, value);
}

LogicalResult OpConverter::convert(GatherOp op) {
  return replace(
      op, {tile::GatherOp::create(b, op.getType(), op.getValue(),
                                  toI32(op.getIndex(), b), op.getAxis())});
}

LogicalResult OpConverter::convert(HistogramOp op) {
  Type type = tile::withElementType(op.getType(), b.getI32Type());
  Value counts =
      tile::HistogramOp::create(b, type, toI32(op.getValue(), b), op.getMask());
  if (type == op.getType())
    return replace(op, {counts});
  unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
  if (width > 32)
    return replace(op, {arith::ExtUIOp::create(b, op.getType(), counts)});
  return replace(op, {arith::TruncIOp::create(b, op.getType(), counts)});
}
