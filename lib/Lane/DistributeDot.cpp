//===- DistributeDot.cpp - products of one lane ---------------------------===//
//
// A dot is a chain of multiply-adds, or one greta_tile.mma per tile of its
// accumulator and step along K.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

Type greta::tile::getOperandType(MatrixAttr matrix, FragmentUse use,
                                 Type element) {
  LayoutAttr attr = use == FragmentUse::A   ? matrix.getA()
                    : use == FragmentUse::B ? matrix.getB()
                                            : matrix.getAcc();
  Layout layout = toLayout(attr);
  if (matrix.isCooperative()) {
    int64_t rows = layout.tile()[0], columns = layout.tile()[1];
    if (matrix.getSwapped()) {
      std::swap(rows, columns);
      use = use == FragmentUse::A   ? FragmentUse::B
            : use == FragmentUse::B ? FragmentUse::A
                                    : use;
    }
    return FragmentType::get(element.getContext(), rows, columns, element, use);
  }
  return VectorType::get(layout.tileRegisters(), element);
}

Value greta::tile::widen(OpBuilder &builder, Location loc, Value value,
                         Type type) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::ExtSIOp::create(builder, loc, type, value);
}

Value greta::tile::multiplyAdd(OpBuilder &builder, Location loc, Value x,
                               Value y, Value sum) {
  if (isa<FloatType>(sum.getType()))
    return math::FmaOp::create(builder, loc, x, y, sum);
  Value product = arith::MulIOp::create(builder, loc, x, y);
  return arith::AddIOp::create(builder, loc, product, sum);
}

LogicalResult Distributor::distributeDot(DotOp op) {
  auto a = layoutOf(op, op.getA());
  auto b = layoutOf(op, op.getB());
  auto c = layoutOf(op, op.getResult());
  if (failed(a) || failed(b) || failed(c))
    return failure();
  if (op.getMatrixAttr())
    return distributeMatrixDot(op, **a, **b, **c);
  // Rows of A are where rows of the accumulator are, columns of B likewise,
  // and matrices of a batch in both.
  unsigned columnDim = (*c)->layout.rank() - 1, rowDim = columnDim - 1;
  auto follows = [&](const DistributedLayout &operand, unsigned dim) {
    return operand.threadIndex[dim] == (*c)->threadIndex[dim];
  };
  if (!follows(**a, rowDim) || !follows(**b, columnDim) ||
      (rowDim && (!follows(**a, 0) || !follows(**b, 0))))
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getResult().getType());
  int64_t depth =
      cast<RankedTensorType>(op.getA().getType()).getDimSize(columnDim);
  auto gather = [&](Value operand, const DistributedLayout &layout) {
    std::map<Index, Value> at;
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex))
      at[index] = lanes(operand)[reg];
    return at;
  };
  auto as = gather(op.getA(), **a), bs = gather(op.getB(), **b);
  // Widened where it is used first: all of it before the sums would fill the
  // registers (gfx1030: 110 spilled for 20 sums a lane of bf16).
  auto widened = [&](auto &side, Index at, unsigned kDim, int64_t k) -> Value {
    at[kDim] = k;
    auto it = side.find(at);
    if (it == side.end())
      return {};
    return it->second = widen(builder, loc, it->second, type);
  };
  LaneValues out(lanes(op.getAcc()));
  for (int64_t k = 0; k < depth; ++k)
    for (auto [reg, index] : llvm::enumerate((*c)->registerIndex)) {
      Value x = widened(as, index, columnDim, k);
      Value y = widened(bs, index, rowDim, k);
      if (!x || !y)
        return op.emitOpError("has operands whose K is not in registers");
      out[reg] = multiplyAdd(builder, loc, x, y, out[reg]);
    }
  values[op.getResult()] = std::move(out);
  return success();
}

/// Tile by tile. An operand's tile may hold several of the instruction's along
/// K, one after another in its registers; both operands number K alike.
LogicalResult Distributor::distributeMatrixDot(DotOp op,
                                               const DistributedLayout &a,
                                               const DistributedLayout &b,
                                               const DistributedLayout &c) {
  MatrixAttr matrix = op.getMatrixAttr();
  auto operand = [&](Value value, FragmentUse use) {
    return vectors(
        value,
        getOperandType(matrix, use, getElementTypeOrSelf(value.getType())));
  };
  LaneValues as = operand(op.getA(), FragmentUse::A);
  LaneValues bs = operand(op.getB(), FragmentUse::B);
  LaneValues out = operand(op.getAcc(), FragmentUse::Acc);
  // Repetitions: of the batch, and [rows, depth] by [depth, columns].
  ArrayRef<int32_t> repC = c.layout.rep();
  unsigned rank = repC.size(), batch = rank == 3 ? repC[0] : 1;
  unsigned rows = repC[rank - 2], columns = repC[rank - 1];
  unsigned depth = a.layout.rep()[rank - 1];
  unsigned inTile = as.size() / (batch * rows * depth);
  Basis repA(repC), repB(repC);
  repA[rank - 1] = repB[rank - 2] = depth;
  if (a.layout.rep() != ArrayRef(repA) || b.layout.rep() != ArrayRef(repB) ||
      as.size() != batch * rows * depth * inTile ||
      bs.size() != batch * columns * depth * inTile ||
      out.size() != batch * rows * columns)
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned part = 0; part < inTile; ++part)
      for (unsigned row = 0; row < batch * rows; ++row)
        for (unsigned j = 0; j < columns; ++j) {
          Value &sum = out[row * columns + j];
          Value left = as[(row * depth + k) * inTile + part];
          unsigned rowOfB = row / rows * depth + k;
          Value right = bs[(rowOfB * columns + j) * inTile + part];
          if (matrix.getSwapped())
            std::swap(left, right);
          sum = MmaOp::create(builder, op.getLoc(), sum.getType(),
                              matrix.getIntrinsic(), left, right, sum);
        }
  setVectors(op.getResult(), std::move(out));
  return success();
}
