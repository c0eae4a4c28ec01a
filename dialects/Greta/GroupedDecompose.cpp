//===- GroupedDecompose.cpp - what grouped products mean ------------------===//
//
// The definition of greta.grouped_matmul in linalg, arith, scf and tensor ops:
// the reference and the `host` target. A loop over the groups multiplies the
// rows of each by its matrix, in place:
//
//   begin = 0
//   for e in 0 .. E-1:
//     end  = max(begin, min(offsets[e + 1], T))
//     y[begin .. end-1] = a[begin .. end-1] b[e]
//     begin = end
//
// Rows that no group has stay zero.
//
//===----------------------------------------------------------------------===//

#include "GroupedDecompose.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;

/// The product of the matrices a[M, K] and b, added to `sums`.
static Value multiply(ImplicitLocOpBuilder &b, Value a, Value matrix,
                      bool transposed, Value sums) {
  AffineExpr m = b.getAffineDimExpr(0), n = b.getAffineDimExpr(1),
             k = b.getAffineDimExpr(2);
  auto map = [&](AffineExpr x, AffineExpr y) {
    return AffineMap::get(3, 0, {x, y}, b.getContext());
  };
  AffineMap maps[] = {map(m, k), transposed ? map(n, k) : map(k, n), map(m, n)};
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  auto body = [](OpBuilder &builder, Location loc, ValueRange v) {
    ImplicitLocOpBuilder inner(loc, builder);
    Type type = v[2].getType();
    auto wide = [&](Value x) -> Value {
      if (x.getType() == type)
        return x;
      return type.isInteger() ? Value(arith::ExtSIOp::create(inner, type, x))
                              : Value(arith::ExtFOp::create(inner, type, x));
    };
    Value x = wide(v[0]), y = wide(v[1]), sum;
    auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
    if (type.isInteger())
      sum = arith::AddIOp::create(inner, v[2],
                                  arith::MulIOp::create(inner, x, y));
    else
      sum = arith::AddFOp::create(
          inner, v[2], arith::MulFOp::create(inner, x, y, flags), flags);
    linalg::YieldOp::create(inner, sum);
  };
  return linalg::GenericOp::create(b, sums.getType(), ValueRange{a, matrix},
                                   sums, maps, iterators, body)
      .getResult(0);
}

Value greta::decomposeGrouped(OpBuilder &builder, Location loc, Value a,
                              Value matrices, Value offsets, bool transposed,
                              RankedTensorType type) {
  ImplicitLocOpBuilder b(loc, builder);
  auto typeOf = [](Value v) { return cast<RankedTensorType>(v.getType()); };
  int64_t groups = typeOf(offsets).getDimSize(0) - 1;
  Type sumType = typeOf(a).getElementType().isInteger(8) ? Type(b.getI32Type())
                                                         : b.getF32Type();
  OpFoldResult rows = tensor::getMixedSize(b, loc, a, 0);
  OpFoldResult columns = b.getIndexAttr(type.getDimSize(1));
  OpFoldResult one = b.getIndexAttr(1), none = b.getIndexAttr(0);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value count = getValueOrCreateConstantIndexOp(b, loc, rows);
  Value empty = tensor::EmptyOp::create(
      b, ArrayRef<OpFoldResult>{rows, columns}, sumType);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sumType));
  Value init = linalg::FillOp::create(b, zero, empty).getResult(0);
  auto loop = scf::ForOp::create(b, index(0), index(groups), index(1),
                                 ValueRange{init, index(0)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value group = loop.getInductionVar(), sums = loop.getRegionIterArg(0);
    Value begin = loop.getRegionIterArg(1);
    Value next = arith::AddIOp::create(b, group, index(1));
    Value end = arith::IndexCastOp::create(
        b, b.getIndexType(), tensor::ExtractOp::create(b, offsets, next));
    end = arith::MinSIOp::create(b, end, count);
    end = arith::MaxSIOp::create(b, end, begin);
    OpFoldResult height =
        Value(arith::SubIOp::create(b, end, begin).getResult());
    auto rowsOf = [&](Value v) {
      OpFoldResult width = b.getIndexAttr(typeOf(v).getDimSize(1));
      return tensor::ExtractSliceOp::create(b, v,
                                            ArrayRef<OpFoldResult>{begin, none},
                                            {height, width}, {one, one});
    };
    SmallVector<OpFoldResult> from{group, none, none}, sizes{one},
        strides(3, one);
    for (int64_t size : typeOf(matrices).getShape().drop_front())
      sizes.push_back(b.getIndexAttr(size));
    auto matrixType =
        RankedTensorType::get(typeOf(matrices).getShape().drop_front(),
                              typeOf(matrices).getElementType());
    Value matrix = tensor::ExtractSliceOp::create(b, matrixType, matrices, from,
                                                  sizes, strides);
    Value product = multiply(b, rowsOf(a), matrix, transposed, rowsOf(sums));
    Value joined = tensor::InsertSliceOp::create(
        b, product, sums, ArrayRef<OpFoldResult>{begin, none},
        {height, columns}, {one, one});
    scf::YieldOp::create(b, ValueRange{joined, end});
  }
  Value sums = loop.getResult(0);
  if (type.getElementType() == sumType)
    return sums;
  Value rounded = tensor::EmptyOp::create(
      b, ArrayRef<OpFoldResult>{rows, columns}, type.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto round = [&](OpBuilder &inner, Location loc, ValueRange v) {
    linalg::YieldOp::create(
        inner, loc,
        arith::TruncFOp::create(inner, loc, type.getElementType(), v[0])
            .getResult());
  };
  return linalg::GenericOp::create(b, rounded.getType(), sums, rounded,
                                   {identity, identity}, iterators, round)
      .getResult(0);
}

SmallVector<Value> GroupedMatmulOp::decompose(OpBuilder &builder) {
  return {decomposeGrouped(builder, getLoc(), getA(), getB(), getOffsets(),
                           getTransposeB(), getType())};
}
