//===- GretaDecompose.cpp - what the greta ops mean -----------------------===//
//
// Every op's definition in linalg, arith, math and tensor ops: the reference,
// the `host` target, and the escape for what a target cannot fuse. All compute
// in f32 and round once. The sum over a row adds up in f64, so that the
// reference is right to f32 at any row length. Sums carry `reassoc`: their
// order is not part of the definition, so a target may split them over lanes.
//
// A row op on x[.., D] becomes linalg.generic ops over x's dimensions: the ones
// that reduce a row yield [..], the last one reads those as row values:
//
//   rms_norm:  s[..]    = sum over d of x[.., d]^2
//              r[..]    = rsqrt(s / D + eps)
//              y[.., d] = x[.., d] * r[..] * w[d]
//
//===----------------------------------------------------------------------===//

#include "Generic.h"
#include "Greta/Greta.h"
#include "GroupedDecompose.h"
#include "PackedWeights.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace greta;

using Body = GenericBody;

static Value toF32(ImplicitLocOpBuilder &b, Value value) {
  if (value.getType().isF32())
    return value;
  if (value.getType().isF64())
    return arith::TruncFOp::create(b, b.getF32Type(), value);
  return arith::ExtFOp::create(b, b.getF32Type(), value);
}

static Value fromF32(ImplicitLocOpBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::TruncFOp::create(b, type, value);
}

static Value constant(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value greta::generic(ImplicitLocOpBuilder &b, ValueRange inputs, Value init,
                     ArrayRef<AffineMap> maps,
                     ArrayRef<utils::IteratorType> iterators, Body body) {
  auto type = cast<RankedTensorType>(init.getType());
  bool reduces = llvm::is_contained(iterators, utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      b, type, inputs, init, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        ImplicitLocOpBuilder inner(loc, builder);
        SmallVector<Value> elements;
        for (Value arg : args.take_front(inputs.size()))
          elements.push_back(isa<FloatType>(arg.getType()) ? toF32(inner, arg)
                                                           : arg);
        if (reduces)
          elements.push_back(args.back());
        Value result = body(Arithmetic{inner}, elements);
        if (isa<FloatType>(type.getElementType()))
          result = fromF32(inner, result, type.getElementType());
        linalg::YieldOp::create(inner, result);
      });
  return op.getResult(0);
}

namespace {
/// Builds generics over the index space of `x`, [.., D].
class RowBuilder {
public:
  RowBuilder(OpBuilder &builder, Location loc, Value x)
      : b(loc, builder), type(cast<RankedTensorType>(x.getType())),
        rank(type.getRank()), sizes(tensor::getMixedSizes(b, loc, x)) {}

  /// [..] from a reduction over D; `body` combines its inputs' elements with
  /// the accumulator, which starts at `start` and gives the type.
  Value reduce(ValueRange inputs, TypedAttr start, Body body) {
    ArrayRef<OpFoldResult> leading = ArrayRef(sizes).drop_back();
    Value empty = tensor::EmptyOp::create(b, leading, start.getType());
    Value init = linalg::FillOp::create(
                     b, arith::ConstantOp::create(b, start).getResult(), empty)
                     .getResult(0);
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.back() = utils::IteratorType::reduction;
    SmallVector<AffineMap> maps = mapsOf(inputs);
    maps.push_back(rowMap());
    return generic(b, inputs, init, maps, iterators, body);
  }

  /// [.., D] of `element` from every element, row value or column value.
  Value map(ValueRange inputs, Type element, Body body) {
    Value empty = tensor::EmptyOp::create(b, sizes, element);
    SmallVector<AffineMap> maps = mapsOf(inputs);
    maps.push_back(b.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    return generic(b, inputs, empty, maps, iterators, body);
  }

  /// [..] of f32 from row values.
  Value mapRow(ValueRange inputs, Body body) {
    ArrayRef<OpFoldResult> leading = ArrayRef(sizes).drop_back();
    Value empty = tensor::EmptyOp::create(b, leading, b.getF32Type());
    SmallVector<AffineMap> maps(inputs.size() + 1,
                                b.getMultiDimIdentityMap(rank - 1));
    SmallVector<utils::IteratorType> iterators(rank - 1,
                                               utils::IteratorType::parallel);
    return generic(b, inputs, empty, maps, iterators, body);
  }

  /// Marks a value of [..] as a row value; others of rank 1 are columns'.
  Value row(Value value) {
    rows.push_back(value);
    return value;
  }

  /// [..] of f64: the sum over D of `element`, which gets the inputs' elements.
  Value sum(ValueRange inputs, Body element) {
    return reduce(
        inputs, b.getF64FloatAttr(0.0), [&](Arithmetic a, ValueRange v) {
          Value wide = arith::ExtFOp::create(a.b, a.b.getF64Type(),
                                             element(a, v.drop_back()));
          return a.fadd(v.back(), wide, arith::FastMathFlags::reassoc);
        });
  }

  float rowLength() const { return type.getShape().back(); }
  Type elementType() const { return type.getElementType(); }

  ImplicitLocOpBuilder b;

private:
  AffineMap rowMap() {
    SmallVector<AffineExpr> dims;
    for (int64_t dim = 0; dim + 1 < rank; ++dim)
      dims.push_back(b.getAffineDimExpr(dim));
    return AffineMap::get(rank, 0, dims, b.getContext());
  }

  SmallVector<AffineMap> mapsOf(ValueRange inputs) {
    SmallVector<AffineMap> maps;
    for (Value input : inputs) {
      if (llvm::is_contained(rows, input))
        maps.push_back(rowMap());
      else if (cast<RankedTensorType>(input.getType()).getRank() == rank)
        maps.push_back(b.getMultiDimIdentityMap(rank));
      else
        maps.push_back(AffineMap::get(rank, 0, b.getAffineDimExpr(rank - 1)));
    }
    return maps;
  }

  RankedTensorType type;
  int64_t rank;
  SmallVector<OpFoldResult> sizes;
  SmallVector<Value> rows;
};
} // namespace

/// rsqrt(sum / D + eps)
static Value inverseDeviation(RowBuilder &rows, Value sum, APFloat eps) {
  return rows.row(rows.mapRow(sum, [&](Arithmetic a, ValueRange v) -> Value {
    Value mean = a.fdiv(v[0], constant(a.b, rows.rowLength()));
    Value shifted = a.fadd(mean, constant(a.b, eps.convertToFloat()));
    return math::RsqrtOp::create(a.b, shifted);
  }));
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  RowBuilder rows(builder, getLoc(), getX());
  Value squares = rows.sum(
      getX(), [&](Arithmetic a, ValueRange v) { return a.fmul(v[0], v[0]); });
  Value scale = inverseDeviation(rows, squares, getEps());
  return {rows.map({getX(), scale, getW()}, rows.elementType(),
                   [&](Arithmetic a, ValueRange v) {
                     Value y = a.fmul(v[0], v[1]);
                     return a.fmul(y, v[2]);
                   })};
}

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  RowBuilder rows(builder, getLoc(), getX());
  auto element = [](Arithmetic, ValueRange v) { return v[0]; };
  Value sum = rows.sum(getX(), element);
  Value mean = rows.row(rows.mapRow(sum, [&](Arithmetic a, ValueRange v) {
    return a.fdiv(v[0], constant(a.b, rows.rowLength()));
  }));
  Value squares = rows.sum({getX(), mean}, [&](Arithmetic a, ValueRange v) {
    Value centred = a.fsub(v[0], v[1]);
    return a.fmul(centred, centred);
  });
  Value scale = inverseDeviation(rows, squares, getEps());
  return {rows.map({getX(), mean, scale, getW(), getB()}, rows.elementType(),
                   [&](Arithmetic a, ValueRange v) {
                     Value y = a.fsub(v[0], v[1]);
                     y = a.fmul(y, v[2]);
                     y = a.fmul(y, v[3]);
                     return a.fadd(y, v[4]);
                   })};
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  RowBuilder rows(builder, getLoc(), getX());
  Value max = rows.row(rows.reduce(
      getX(), rows.b.getF32FloatAttr(-std::numeric_limits<float>::infinity()),
      [&](Arithmetic a, ValueRange v) -> Value {
        return arith::MaximumFOp::create(a.b, v[1], v[0]);
      }));
  Value exps = rows.map({getX(), max}, rows.b.getF32Type(),
                        [&](Arithmetic a, ValueRange v) -> Value {
                          Value shifted = a.fsub(v[0], v[1]);
                          return math::ExpOp::create(a.b, shifted);
                        });
  Value sum =
      rows.row(rows.sum(exps, [](Arithmetic, ValueRange v) { return v[0]; }));
  return {
      rows.map({exps, sum}, rows.elementType(),
               [&](Arithmetic a, ValueRange v) { return a.fdiv(v[0], v[1]); })};
}

SmallVector<Value> QuantizeRowsOp::decompose(OpBuilder &builder) {
  RowBuilder rows(builder, getLoc(), getX());
  Type element = getResult().getType().getElementType();
  float largest = largestOf(element);
  Value peak =
      rows.row(rows.reduce(getX(), rows.b.getF32FloatAttr(0),
                           [&](Arithmetic a, ValueRange v) -> Value {
                             return arith::MaximumFOp::create(
                                 a.b, v[1], math::AbsFOp::create(a.b, v[0]));
                           }));
  Value scale = rows.mapRow(peak, [&](Arithmetic a, ValueRange v) {
    return a.fmul(v[0], constant(a.b, 1 / largest));
  });
  Value factor = rows.row(rows.mapRow(peak, [&](Arithmetic a, ValueRange v) {
    Value zero = constant(a.b, 0);
    Value divided = a.fdiv(constant(a.b, largest), v[0]);
    Value isZero = a.compare(arith::CmpFPredicate::OEQ, v[0], zero);
    return a.select(isZero, zero, divided);
  }));
  Value y = rows.map({getX(), factor}, element,
                     [&](Arithmetic a, ValueRange v) -> Value {
                       Value scaled = a.fmul(v[0], v[1]);
                       if (isa<FloatType>(element))
                         return scaled;
                       Value rounded = math::RoundEvenOp::create(a.b, scaled);
                       return arith::FPToSIOp::create(a.b, element, rounded);
                     });
  SmallVector<ReassociationIndices> groups{{0, 1}};
  Value column = tensor::ExpandShapeOp::create(rows.b, getScale().getType(),
                                               scale, groups);
  return {y, column};
}

/// The sum over one rank.
SmallVector<Value> AllReduceOp::decompose(OpBuilder &) { return {getX()}; }

SmallVector<Value> SwigluOp::decompose(OpBuilder &builder) {
  RowBuilder rows(builder, getLoc(), getGate());
  return {rows.map({getGate(), getUp()}, rows.elementType(),
                   [&](Arithmetic a, ValueRange v) {
                     Value e = math::ExpOp::create(
                         a.b, arith::NegFOp::create(a.b, v[0]));
                     Value d = a.fadd(constant(a.b, 1.0f), e);
                     Value silu = a.fdiv(v[0], d);
                     return a.fmul(silu, v[1]);
                   })};
}

/// Pairs are slices of x: the two halves of a head, or its even and its odd
/// elements. Two generics over [T, H, D/2], one for either slice of the result.
SmallVector<Value> RopeOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = getType();
  int64_t half = type.getDimSize(2) / 2;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, getLoc(), getX());
  SmallVector<OpFoldResult> halfSizes = {sizes[0], sizes[1],
                                         b.getIndexAttr(half)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  SmallVector<OpFoldResult> first(3, b.getIndexAttr(0)), second = first;
  second[2] = b.getIndexAttr(pairsAreNeighbours() ? 1 : half);
  if (pairsAreNeighbours())
    strides[2] = b.getIndexAttr(2);
  Value xa =
      tensor::ExtractSliceOp::create(b, getX(), first, halfSizes, strides);
  Value xb =
      tensor::ExtractSliceOp::create(b, getX(), second, halfSizes, strides);

  AffineMap identity = b.getMultiDimIdentityMap(3);
  AffineMap table = AffineMap::get(
      3, 0, {b.getAffineDimExpr(0), b.getAffineDimExpr(2)}, b.getContext());
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  auto rotate = [&](Value straight, Value crossed, bool subtract) {
    Value empty = tensor::EmptyOp::create(b, halfSizes, type.getElementType());
    return generic(b, {straight, crossed, getCos(), getSin()}, empty,
                   {identity, identity, table, table, identity}, iterators,
                   [&](Arithmetic a, ValueRange v) {
                     Value c = a.fmul(v[0], v[2]);
                     Value s = a.fmul(v[1], v[3]);
                     if (subtract)
                       return a.fsub(c, s);
                     return a.fadd(c, s);
                   });
  };
  Value ya = rotate(xa, xb, /*subtract=*/true);
  Value yb = rotate(xb, xa, /*subtract=*/false);
  Value result = tensor::EmptyOp::create(b, sizes, type.getElementType());
  result =
      tensor::InsertSliceOp::create(b, ya, result, first, halfSizes, strides);
  return {
      tensor::InsertSliceOp::create(b, yb, result, second, halfSizes, strides)};
}

SmallVector<Value> MatmulOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (getOffsets()) {
    Value matrices = getB();
    ArrayRef<int64_t> shape = getB().getType().getShape();
    if (shape.size() == 2) {
      auto type = RankedTensorType::get(
          {getNumGroups(), shape[0] / getNumGroups(), shape[1]},
          getB().getType().getElementType());
      SmallVector<ReassociationIndices> parts{{0, 1}, {2}};
      matrices = tensor::ExpandShapeOp::create(b, type, matrices, parts);
    }
    return {decomposeGrouped(b, getLoc(), getA(), matrices, getOffsets(),
                             getTransposeB(), getType())};
  }
  bool isInteger = getA().getType().getElementType().isInteger(8);
  Type sumType = isInteger ? Type(b.getI32Type()) : Type(b.getF32Type());
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, shapes)))
    return {};
  Value empty = tensor::EmptyOp::create(b, shapes[0], sumType);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sumType));
  Value init = linalg::FillOp::create(b, zero, empty).getResult(0);

  // Loops over the batch, m, n and k.
  unsigned batch = getBatchRank(), loops = batch + 3;
  AffineExpr m = b.getAffineDimExpr(batch), n = b.getAffineDimExpr(batch + 1),
             k = b.getAffineDimExpr(batch + 2);
  auto map = [&](AffineExpr x, AffineExpr y, unsigned first = 0) {
    SmallVector<AffineExpr> results;
    for (unsigned dim = first; dim < batch; ++dim)
      results.push_back(b.getAffineDimExpr(dim));
    results.append({x, y});
    return AffineMap::get(loops, 0, results, b.getContext());
  };
  unsigned ofA = getRankWithoutA(), ofB = hasBatchedB() ? 0 : batch;
  AffineMap maps[] = {getTransposeA() ? map(k, m, ofA) : map(m, k, ofA),
                      getTransposeB() ? map(n, k, ofB) : map(k, n, ofB),
                      map(m, n)};
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value sums = generic(b, {getA(), getB()}, init, maps, iterators,
                       [&](Arithmetic a, ValueRange v) {
                         if (isInteger) {
                           Value x = arith::ExtSIOp::create(a.b, sumType, v[0]);
                           Value y = arith::ExtSIOp::create(a.b, sumType, v[1]);
                           return a.add(v[2], a.mul(x, y));
                         }
                         auto flags = arith::FastMathFlags::reassoc |
                                      arith::FastMathFlags::contract;
                         Value product = a.fmul(v[0], v[1], flags);
                         return a.fadd(v[2], product, flags);
                       });
  Type resultElement = getType().getElementType();
  if (resultElement == sumType)
    return {sums};
  Value rounded = tensor::EmptyOp::create(b, shapes[0], resultElement);
  AffineMap identity = b.getMultiDimIdentityMap(loops - 1);
  return {generic(b, sums, rounded, {identity, identity},
                  ArrayRef(iterators).drop_back(),
                  [](Arithmetic, ValueRange v) { return v[0]; })};
}

/// One generic over [N, K] that reads every word once per weight.
SmallVector<Value> DequantOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, shapes)))
    return {};
  const WeightFormat &format = getRow();
  int64_t group = getGroup();
  AffineExpr n = b.getAffineDimExpr(0), k = b.getAffineDimExpr(1);
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  // The operand's number, which weights `perElement` of `rows` rows share; -1:
  // none.
  auto take = [&](Value operand, int64_t perElement, int64_t rows = 1) -> int {
    if (!operand)
      return -1;
    operands.push_back(operand);
    AffineExpr row = n.floorDiv(rows), column = k.floorDiv(perElement);
    if (format.isInterleaved) {
      int64_t inRun = format.elementsOfRun(perElement),
              columns = cast<RankedTensorType>(operand.getType()).getDimSize(1);
      AffineExpr place =
          column.floorDiv(inRun) * (2 * inRun) + n % 2 * inRun + column % inRun;
      row = n.floorDiv(2) * 2 + place.floorDiv(columns);
      column = place % columns;
    }
    maps.push_back(AffineMap::get(2, 0, {row, column}, b.getContext()));
    return operands.size() - 1;
  };
  take(getQ(), format.perWord());
  int high = take(getHigh(), format.perHigh());
  int scales = take(getScales(), group, format.scaleRows);
  int zeros = take(getZeros(), hasMinima() ? group : 8 * group);
  maps.push_back(b.getMultiDimIdentityMap(2));
  Value empty =
      tensor::EmptyOp::create(b, shapes[0], getType().getElementType());
  utils::IteratorType iterators[] = {utils::IteratorType::parallel,
                                     utils::IteratorType::parallel};
  return {generic(
      b, operands, empty, maps, iterators,
      [&](Arithmetic a, ValueRange v) -> Value {
        PackedWeights weights(a.b, format);
        Value at = arith::IndexCastOp::create(a.b, a.b.getI32Type(),
                                              linalg::IndexOp::create(a.b, 1));
        auto shifted = [&](Value word, Value shift) -> Value {
          return a.shr(word, shift);
        };
        Value number = weights.number(
            shifted(v[0], weights.shiftInWord(at)),
            high < 0 ? Value() : shifted(v[high], weights.shiftInHigh(at)));
        Value zero;
        if (zeros < 0 && format.fixedZero())
          zero = arith::ConstantIntOp::create(a.b, format.fixedZero(), 32);
        if (zeros >= 0 && !hasMinima()) {
          Value inGroups = a.shr(
              at, arith::ConstantIntOp::create(a.b, llvm::Log2_64(group), 32));
          zero = weights.number(
              shifted(v[zeros], weights.shiftInWord(inGroups)), Value());
        }
        Value scaled =
            a.fmul(weights.decode(number, zero), weights.scale(v[scales]));
        return hasMinima() ? a.fadd(scaled, v[zeros]) : scaled;
      })};
}
