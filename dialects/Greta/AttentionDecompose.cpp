//===- AttentionDecompose.cpp - what attention means ----------------------===//
//
// The definitions of attention in linalg, arith, math and tensor ops: the
// reference and the `host` target. All of a row's products are there at once,
// in f64, and the result is rounded:
//
//   x[b, h, i, j] = the product of query and key, capped, masked; -inf where
//                   row i does not see key j
//   m[b, h, i]    = max over j        e = exp(x - m), zero where m is -inf
//   l[b, h, i]    = sum over j of e, and of the sink
//   y[b, h, i, d] = sum over j of e * v[b, h, j, d] / l, zero where l is zero
//
// Its gradients have a row's weights p = exp(x - lse), with what its caller has
// of the sums:
//
//   dx[b, h, i, j] = p * (sum over d of do * v - delta), times the cap's slope
//   dq = scale * dx k,  dk = scale * dx^T q,  dv = p^T do, the latter two over
//   all query heads of a key head
//
// A cache in pages is gathered into [B, Hkv, T, D] first. Sequences with
// numbers of rows of their own are taken one by one, as the groups of a grouped
// product are (GroupedDecompose.cpp); rows of none stay zero.
//
//===----------------------------------------------------------------------===//

#include "Generic.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace greta;

static Value real(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
}

static Value minusInfinity(ImplicitLocOpBuilder &b) {
  return real(b, -std::numeric_limits<double>::infinity());
}

static Value indexConstant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

static Value toIndex(ImplicitLocOpBuilder &b, Value i32) {
  return arith::IndexCastOp::create(b, b.getIndexType(), i32);
}

namespace {
struct Input {
  Value tensor;
  AffineMap map;
};
} // namespace

/// A tensor of `sizes`, element by element over the loops of `map`; loops that
/// are not in it are reduced, from `start` on. `body` gets the inputs'
/// elements, floats and i8 as f64, then the reduced value.
static Value compute(ImplicitLocOpBuilder &b, ArrayRef<OpFoldResult> sizes,
                     AffineMap map, Type element, ArrayRef<Input> inputs,
                     Value start, GenericBody body) {
  Value init = tensor::EmptyOp::create(b, sizes, element);
  if (start)
    init = linalg::FillOp::create(b, start, init).getResult(0);
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(input.map);
  }
  maps.push_back(map);
  SmallVector<utils::IteratorType> iterators(map.getNumDims(),
                                             utils::IteratorType::reduction);
  for (AffineExpr dim : map.getResults())
    iterators[cast<AffineDimExpr>(dim).getPosition()] =
        utils::IteratorType::parallel;
  return linalg::GenericOp::create(
             b, init.getType(), tensors, init, maps, iterators,
             [&](OpBuilder &builder, Location loc, ValueRange args) {
               ImplicitLocOpBuilder inner(loc, builder);
               Type f64 = inner.getF64Type();
               // CPUs convert what is narrower than f32 by f32.
               SmallVector<Value> elements;
               for (Value arg : args.drop_back()) {
                 if (arg.getType().isInteger(8))
                   arg = arith::SIToFPOp::create(inner, f64, arg);
                 for (Type type : {Type(inner.getF32Type()), f64})
                   if (isa<FloatType>(arg.getType()) &&
                       arg.getType().getIntOrFloatBitWidth() <
                           type.getIntOrFloatBitWidth())
                     arg = arith::ExtFOp::create(inner, type, arg);
                 elements.push_back(arg);
               }
               if (start)
                 elements.push_back(args.back());
               Value value = body(Arithmetic{inner}, elements);
               if (value.getType() == f64 &&
                   element.getIntOrFloatBitWidth() < 32)
                 value =
                     arith::TruncFOp::create(inner, inner.getF32Type(), value);
               if (value.getType() != element)
                 value = arith::TruncFOp::create(inner, element, value);
               linalg::YieldOp::create(inner, value);
             })
      .getResult(0);
}

static AffineMap mapOf(ImplicitLocOpBuilder &b, unsigned loops,
                       ArrayRef<AffineExpr> results) {
  return AffineMap::get(loops, 0, results, b.getContext());
}

/// The scale at `indices`: an extent of 1 is for all of them.
static AffineMap scaleMap(ImplicitLocOpBuilder &b, Value scales,
                          ArrayRef<AffineExpr> indices) {
  SmallVector<AffineExpr> results(indices);
  auto type = cast<RankedTensorType>(scales.getType());
  for (auto [index, extent] : llvm::zip(results, type.getShape()))
    if (extent == 1)
      index = b.getAffineConstantExpr(0);
  return mapOf(b, 5, results);
}

static Value product(Arithmetic a, ValueRange factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = a.fmul(result, factor);
  return result;
}

namespace {
/// One attention; what an op does not have is null.
struct Attention {
  Value q, k, v, lengths, mask, sinks, kScale, vScale;
  double scale;
  bool causal;
  std::optional<int64_t> window;
  std::optional<double> softcap;

  /// The result, and the logarithm of the sums.
  std::pair<Value, Value> build(ImplicitLocOpBuilder &b);
  /// The gradients of queries, keys and values, and delta, which may replace
  /// the result.
  SmallVector<Value> gradients(ImplicitLocOpBuilder &b, Value result, Value lse,
                               Value gradient);

private:
  Value logits(ImplicitLocOpBuilder &b, Value products);
  /// i1: row i of sequence n, of `rows`, sees key j of `keys`.
  Value sees(Arithmetic a, Value n, Value i, Value j, Value rows);
};
} // namespace

Value Attention::sees(Arithmetic a, Value n, Value i, Value j, Value rows) {
  using Predicate = arith::CmpIPredicate;
  Value seen = a.below(j, n), at = a.sub(a.add(i, n), rows);
  if (causal)
    seen = a.both(seen, a.compare(Predicate::sle, j, at));
  if (!window)
    return seen;
  Value width = indexConstant(a.b, *window);
  seen = a.both(seen, a.compare(Predicate::sgt, j, a.sub(at, width)));
  return causal ? seen : a.both(seen, a.below(j, a.add(at, width)));
}

static int64_t headsOf(Value x) {
  return cast<RankedTensorType>(x.getType()).getDimSize(1);
}

/// [B, Hq, S, T] of x [B, Hq, S, D] and y [B, Hkv, T, D], which may have
/// scales.
static Value multiplyRows(ImplicitLocOpBuilder &b, Value x, Value y,
                          Value scales = Value()) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), x);
  sizes[3] = tensor::getMixedSize(b, b.getLoc(), y, 2);
  AffineExpr n, h, i, j, d;
  bindDims(b.getContext(), n, h, i, j, d);
  AffineExpr shared = h.floorDiv(headsOf(x) / headsOf(y));
  SmallVector<Input> factors{{x, mapOf(b, 5, {n, h, i, d})},
                             {y, mapOf(b, 5, {n, shared, j, d})}};
  if (scales)
    factors.push_back({scales, scaleMap(b, scales, {n, shared, j})});
  return compute(b, sizes, mapOf(b, 5, {n, h, i, j}), b.getF64Type(), factors,
                 real(b, 0), [](Arithmetic a, ValueRange v) {
                   return a.fadd(v.back(), product(a, v.drop_back()),
                                 arith::FastMathFlags::reassoc);
                 });
}

static Value isZero(Arithmetic a, Value x) {
  return a.compare(arith::CmpFPredicate::OEQ, x, real(a.b, 0));
}

static Value isNone(Arithmetic a, Value x) {
  return a.compare(arith::CmpFPredicate::OEQ, x, minusInfinity(a.b));
}

/// The product of all but the last, and that: what no row sees, whose weight is
/// zero and comes first, may hold anything.
static Value addSeen(Arithmetic a, ValueRange v) {
  Value term =
      a.select(isZero(a, v[0]), real(a.b, 0), product(a, v.drop_back()));
  return a.fadd(v.back(), term, arith::FastMathFlags::reassoc);
}

Value Attention::logits(ImplicitLocOpBuilder &b, Value products) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), products);
  AffineExpr n, h, i, j;
  bindDims(b.getContext(), n, h, i, j);
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<Input> inputs{{products, identity}};
  if (mask) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(mask.getType()).getShape();
    AffineExpr zero = b.getAffineConstantExpr(0);
    inputs.push_back(
        {mask, mapOf(b, 4,
                     {shape[0] == 1 ? zero : n, shape[1] == 1 ? zero : h,
                      shape[2] == 1 ? zero : i, j})});
  }
  if (lengths)
    inputs.push_back({lengths, mapOf(b, 4, {n})});
  Value rows = tensor::DimOp::create(b, q, 2);
  Value keys = tensor::DimOp::create(b, k, 2);
  return compute(b, sizes, identity, b.getF64Type(), inputs, Value(),
                 [&](Arithmetic a, ValueRange v) {
                   Value x = a.fmul(v[0], real(a.b, scale));
                   if (softcap) {
                     x = a.fdiv(x, real(a.b, *softcap));
                     x = math::TanhOp::create(a.b, x);
                     x = a.fmul(x, real(a.b, *softcap));
                   }
                   if (mask)
                     x = a.fadd(x, v[1]);
                   Value valid = keys;
                   if (lengths)
                     valid = a.least(keys, toIndex(a.b, v.back()));
                   Value seen = sees(a, valid, linalg::IndexOp::create(a.b, 2),
                                     linalg::IndexOp::create(a.b, 3), rows);
                   return a.select(seen, x, minusInfinity(a.b));
                 });
}

std::pair<Value, Value> Attention::build(ImplicitLocOpBuilder &b) {
  Type f64 = b.getF64Type();
  Value x = logits(b, multiplyRows(b, q, k, kScale));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), q);
  ArrayRef<OpFoldResult> perRow = ArrayRef(sizes).drop_back();
  SmallVector<OpFoldResult> perKey = tensor::getMixedSizes(b, b.getLoc(), x);
  AffineExpr n, h, i, j, d;
  bindDims(b.getContext(), n, h, i, j, d);
  AffineMap row = mapOf(b, 4, {n, h, i}), all = b.getMultiDimIdentityMap(4);
  AffineMap rows = b.getMultiDimIdentityMap(3);

  Value max = compute(b, perRow, row, f64, {{x, all}}, minusInfinity(b),
                      [](Arithmetic a, ValueRange v) -> Value {
                        return arith::MaximumFOp::create(a.b, v[1], v[0]);
                      });
  if (sinks)
    max =
        compute(b, perRow, rows, f64, {{max, rows}, {sinks, mapOf(b, 3, {h})}},
                Value(), [](Arithmetic a, ValueRange v) -> Value {
                  return arith::MaximumFOp::create(a.b, v[0], v[1]);
                });
  auto weight = [](Arithmetic a, Value x, Value max) {
    Value none = isNone(a, max), e = math::ExpOp::create(a.b, a.fsub(x, max));
    return a.select(none, real(a.b, 0), e);
  };
  Value weights = compute(
      b, perKey, all, f64, {{x, all}, {max, row}}, Value(),
      [&](Arithmetic a, ValueRange v) { return weight(a, v[0], v[1]); });
  Value sum =
      compute(b, perRow, row, f64, {{weights, all}}, real(b, 0),
              [](Arithmetic a, ValueRange v) {
                return a.fadd(v[1], v[0], arith::FastMathFlags::reassoc);
              });
  if (sinks)
    sum = compute(b, perRow, rows, f64,
                  {{sum, rows}, {max, rows}, {sinks, mapOf(b, 3, {h})}},
                  Value(), [&](Arithmetic a, ValueRange v) {
                    return a.fadd(v[0], weight(a, v[2], v[1]));
                  });
  AffineExpr shared = h.floorDiv(headsOf(q) / headsOf(v));
  // Loops: sequence, head, row, column, key.
  AffineExpr column = j, key = d;
  SmallVector<Input> factors{{weights, mapOf(b, 5, {n, h, i, key})},
                             {v, mapOf(b, 5, {n, shared, key, column})}};
  if (vScale)
    factors.push_back({vScale, scaleMap(b, vScale, {n, shared, key})});
  Value values = compute(b, sizes, mapOf(b, 5, {n, h, i, column}), f64, factors,
                         real(b, 0), addSeen);
  Type element = cast<RankedTensorType>(q.getType()).getElementType();
  Value result = compute(b, sizes, all, element, {{values, all}, {sum, row}},
                         Value(), [](Arithmetic a, ValueRange v) {
                           Value none = isZero(a, v[1]), y = a.fdiv(v[0], v[1]);
                           return a.select(none, real(a.b, 0), y);
                         });
  Value lse =
      compute(b, perRow, rows, b.getF32Type(), {{max, rows}, {sum, rows}},
              Value(), [](Arithmetic a, ValueRange v) {
                return a.fadd(v[0], math::LogOp::create(a.b, v[1]));
              });
  return {result, lse};
}

/// [B, Hkv, Hq / Hkv, ..] of [B, Hq, ..].
static Value groupHeads(ImplicitLocOpBuilder &b, Value x, int64_t groups) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + 1, groups);
  shape[2] /= groups;
  SmallVector<ReassociationIndices> parts{{0}, {1, 2}};
  for (int64_t dim = 3; dim < int64_t(shape.size()); ++dim)
    parts.push_back({dim});
  return tensor::ExpandShapeOp::create(b, type.clone(shape), x, parts);
}

SmallVector<Value> Attention::gradients(ImplicitLocOpBuilder &b, Value result,
                                        Value lse, Value gradient) {
  Type f64 = b.getF64Type();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), q);
  ArrayRef<OpFoldResult> perRow = ArrayRef(sizes).drop_back();
  AffineMap all = b.getMultiDimIdentityMap(4);
  AffineExpr n, h, i, j, d, g;
  bindDims(b.getContext(), n, h, i, j, d, g);
  AffineMap row = mapOf(b, 4, {n, h, i});

  Value delta = result;
  if (cast<RankedTensorType>(result.getType()).getRank() == 4) {
    Value sums = compute(b, perRow, row, f64, {{gradient, all}, {result, all}},
                         real(b, 0), addSeen);
    delta = compute(b, perRow, b.getMultiDimIdentityMap(3), b.getF32Type(),
                    {{sums, b.getMultiDimIdentityMap(3)}}, Value(),
                    [](Arithmetic, ValueRange v) { return v[0]; });
  }
  Value products = multiplyRows(b, q, k), x = logits(b, products);
  SmallVector<OpFoldResult> perKey = tensor::getMixedSizes(b, b.getLoc(), x);
  Value weights =
      compute(b, perKey, all, f64, {{x, all}, {lse, row}}, Value(),
              [](Arithmetic a, ValueRange v) {
                Value none = a.either(isNone(a, v[0]), isNone(a, v[1]));
                Value e = math::ExpOp::create(a.b, a.fsub(v[0], v[1]));
                return a.select(none, real(a.b, 0), e);
              });
  Value slopes =
      compute(b, perKey, all, f64,
              {{weights, all},
               {multiplyRows(b, gradient, v), all},
               {delta, row},
               {products, all}},
              Value(), [&](Arithmetic a, ValueRange v) {
                Value dx = a.fmul(v[0], a.fsub(v[1], v[2]));
                if (softcap) {
                  Value capped = math::TanhOp::create(
                      a.b, a.fmul(v[3], real(a.b, scale / *softcap)));
                  Value square = a.fmul(capped, capped);
                  dx = a.fmul(dx, a.fsub(real(a.b, 1), square));
                }
                return a.select(isZero(a, v[0]), real(a.b, 0), dx);
              });

  // The sums, rounded.
  auto finish = [&](Value sums, Value like, double factor) {
    return compute(b, tensor::getMixedSizes(b, b.getLoc(), sums), all,
                   cast<RankedTensorType>(like.getType()).getElementType(),
                   {{sums, all}}, Value(), [&](Arithmetic a, ValueRange v) {
                     return a.fmul(v[0], real(a.b, factor));
                   });
  };
  // Loops: sequence, head, row, column, key.
  AffineExpr column = j, key = d, shared = h.floorDiv(headsOf(q) / headsOf(k));
  Value ofQueries = compute(b, sizes, mapOf(b, 5, {n, h, i, column}), f64,
                            {{slopes, mapOf(b, 5, {n, h, i, key})},
                             {k, mapOf(b, 5, {n, shared, key, column})}},
                            real(b, 0), addSeen);
  // Loops: sequence, key head, key, column, query head of it, row.
  auto overRows = [&](Value ofKeys, Value rows) {
    AffineExpr keyInHead = i, query = d, rowOfIt = g;
    int64_t groups = headsOf(k);
    return compute(b, tensor::getMixedSizes(b, b.getLoc(), k),
                   mapOf(b, 6, {n, h, keyInHead, column}), f64,
                   {{groupHeads(b, ofKeys, groups),
                     mapOf(b, 6, {n, h, query, rowOfIt, keyInHead})},
                    {groupHeads(b, rows, groups),
                     mapOf(b, 6, {n, h, query, rowOfIt, column})}},
                   real(b, 0), addSeen);
  };
  return {finish(ofQueries, q, scale), finish(overRows(slopes, q), k, scale),
          finish(overRows(weights, gradient), v, 1), delta};
}

static std::optional<double> toDouble(std::optional<APFloat> value) {
  return value ? std::optional<double>(value->convertToFloat()) : std::nullopt;
}

static double scaleOf(std::optional<APFloat> scale, Value q) {
  double size = cast<RankedTensorType>(q.getType()).getDimSize(3);
  return toDouble(scale).value_or(1 / std::sqrt(size));
}

/// [B, S, H, D] as [B, H, S, D], or the other way round.
static Value swapHeads(ImplicitLocOpBuilder &b, Value x) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), x);
  std::swap(sizes[1], sizes[2]);
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  Value init = tensor::EmptyOp::create(b, sizes, element);
  return linalg::TransposeOp::create(b, x, init, ArrayRef<int64_t>{0, 2, 1, 3})
      ->getResult(0);
}

SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto swapped = [&](Value x) {
    return getTokensFirst() ? swapHeads(b, x) : x;
  };
  Attention attention{swapped(getQ()), getK(),      getV(),
                      getLengths(),    getMask(),   getSinks(),
                      getKScale(),     getVScale(), scaleOf(getScale(), getQ()),
                      getCausal(),     getWindow(), toDouble(getSoftcap())};
  auto [result, lse] = attention.build(b);
  SmallVector<Value> results{swapped(result)};
  if (getLse())
    results.push_back(lse);
  return results;
}

SmallVector<Value> AttentionBackwardOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto swapped = [&](Value x) {
    bool hasHeads = cast<RankedTensorType>(x.getType()).getRank() == 4;
    return getTokensFirst() && hasHeads ? swapHeads(b, x) : x;
  };
  Attention attention{
      swapped(getQ()), swapped(getK()), swapped(getV()),
      getLengths(),    getMask(),       Value(),
      Value(),         Value(),         scaleOf(getScale(), getQ()),
      getCausal(),     getWindow(),     toDouble(getSoftcap())};
  SmallVector<Value> results =
      attention.gradients(b, swapped(getO()), getLse(), swapped(getDO()));
  results.resize(getNumResults());
  for (Value &result : results)
    result = swapped(result);
  return results;
}

/// [B, Hkv, maxpages * page, D] of a cache, or [B, Hkv or 1, maxpages * page]
/// of its scales; zero beyond a sequence's length.
static Value gatherPages(ImplicitLocOpBuilder &b, Value gathered, Value cache,
                         Value table, Value lengths) {
  auto type = cast<RankedTensorType>(gathered.getType());
  Value pages = tensor::DimOp::create(b, cache, 0);
  Value page = tensor::DimOp::create(b, cache, 1);
  Value keys =
      arith::MulIOp::create(b, tensor::DimOp::create(b, table, 1), page);
  SmallVector<OpFoldResult> sizes{
      tensor::getMixedSize(b, b.getLoc(), table, 0),
      tensor::getMixedSize(b, b.getLoc(), gathered, 2),
      getAsOpFoldResult(keys)};
  if (type.getRank() == 4)
    sizes.push_back(b.getIndexAttr(type.getDimSize(3)));
  unsigned rank = type.getRank();
  return compute(
      b, sizes, b.getMultiDimIdentityMap(rank), type.getElementType(),
      {{lengths, mapOf(b, rank, {b.getAffineDimExpr(0)})}}, Value(),
      [&](Arithmetic a, ValueRange v) {
        ImplicitLocOpBuilder &b = a.b;
        Value n = linalg::IndexOp::create(b, 0);
        Value j = linalg::IndexOp::create(b, 2);
        Value valid = a.below(j, toIndex(b, v[0])), number = a.div(j, page);
        Value entry = toIndex(
            b, tensor::ExtractOp::create(b, table, ValueRange{n, number}));
        // Entries behind the last page that is needed may be anything.
        valid =
            a.both(valid, a.compare(Arithmetic::Predicate::ult, entry, pages));
        entry = a.select(valid, entry, indexConstant(b, 0));
        Value place = a.rem(j, page);
        SmallVector<Value> indices{entry, place, linalg::IndexOp::create(b, 1)};
        if (rank == 4)
          indices.push_back(linalg::IndexOp::create(b, 3));
        for (auto [index, extent] : llvm::zip(indices, type.getShape()))
          if (extent == 1)
            index = indexConstant(b, 0);
        Value element = tensor::ExtractOp::create(b, gathered, indices);
        return a.select(valid, element, a.zeroOf(element.getType()));
      });
}

/// Numbers of 8 bits times the scales of their groups, rounded once.
static Value scaledByGroup(ImplicitLocOpBuilder &b, Value rows, Value scales,
                           int64_t group, Type element) {
  AffineExpr n, h, j, d;
  bindDims(b.getContext(), n, h, j, d);
  AffineMap all = b.getMultiDimIdentityMap(4);
  return compute(
      b, tensor::getMixedSizes(b, b.getLoc(), rows), all, element,
      {{rows, all}, {scales, mapOf(b, 4, {n, h, j, d.floorDiv(group)})}},
      Value(), product);
}

/// The result for queries [B, Hq, S, D].
static Value attendPages(ImplicitLocOpBuilder &b, PagedAttentionOp op, Value q,
                         Value table, Value lengths) {
  auto gather = [&](Value pages) {
    return pages ? gatherPages(b, pages, op.getKCache(), table, lengths)
                 : Value();
  };
  Value k = gather(op.getKCache()), v = gather(op.getVCache());
  Value kScale = gather(op.getKScale()), vScale = gather(op.getVScale());
  for (auto [rows, scales] : {std::pair(&k, &kScale), std::pair(&v, &vScale)})
    if (int64_t group = groupOfScales(*rows, *scales)) {
      *rows = scaledByGroup(b, *rows, *scales, group,
                            op.getQ().getType().getElementType());
      *scales = Value();
    }
  Attention attention{q,
                      k,
                      v,
                      lengths,
                      Value(),
                      op.getSinks(),
                      kScale,
                      vScale,
                      scaleOf(op.getScale(), q),
                      /*causal=*/true,
                      op.getWindow(),
                      toDouble(op.getSoftcap())};
  return attention.build(b).first;
}

/// The result where `begins` say which rows of [T, Hq, D] each sequence has.
static Value attendSequences(ImplicitLocOpBuilder &b, PagedAttentionOp op) {
  Value q = op.getQ(), table = op.getTable(), lengths = op.getLengths();
  auto type = cast<RankedTensorType>(q.getType());
  OpFoldResult one = b.getIndexAttr(1), none = b.getIndexAttr(0);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), q);
  OpFoldResult heads = sizes[1], size = sizes[2];
  Value count = getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[0]);
  Value first = indexConstant(b, 0), step = indexConstant(b, 1);
  Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
  Value zero =
      arith::ConstantOp::create(b, b.getZeroAttr(type.getElementType()));
  Value init = linalg::FillOp::create(b, zero, empty).getResult(0);
  Value sequences = tensor::DimOp::create(b, lengths, 0);
  auto loop =
      scf::ForOp::create(b, first, sequences, step, ValueRange{init, first});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value sequence = loop.getInductionVar(), begin = loop.getRegionIterArg(1);
  Value end =
      toIndex(b, tensor::ExtractOp::create(
                     b, op.getBegins(),
                     ValueRange{arith::AddIOp::create(b, sequence, step)}));
  end = arith::MinSIOp::create(b, end, count);
  end = arith::MaxSIOp::create(b, end, begin);
  OpFoldResult rows = Value(arith::SubIOp::create(b, end, begin).getResult());
  SmallVector<OpFoldResult> at{begin, none, none}, extents{rows, heads, size},
      strides(3, one);
  // The rows of a sequence become [1, S, Hq, D].
  SmallVector<ReassociationIndices> parts{{0, 1}, {2}, {3}};
  Value own = tensor::ExtractSliceOp::create(b, q, at, extents, strides);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = ShapedType::kDynamic;
  shape.insert(shape.begin(), 1);
  own = tensor::ExpandShapeOp::create(
      b, type.clone(shape), own, parts,
      ArrayRef<OpFoldResult>{one, rows, heads, size});
  Value line = tensor::ExtractSliceOp::create(
      b, table, ArrayRef<OpFoldResult>{sequence, none},
      {one, tensor::getMixedSize(b, b.getLoc(), table, 1)}, {one, one});
  Value length = tensor::ExtractSliceOp::create(
      b, lengths, ArrayRef<OpFoldResult>{sequence}, {one}, {one});
  Value result =
      swapHeads(b, attendPages(b, op, swapHeads(b, own), line, length));
  result = tensor::CollapseShapeOp::create(b, result, parts);
  Value joined = tensor::InsertSliceOp::create(
      b, result, loop.getRegionIterArg(0), at, extents, strides);
  scf::YieldOp::create(b, ValueRange{joined, end});
  return loop.getResult(0);
}

SmallVector<Value> PagedAttentionOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (getBegins())
    return {attendSequences(b, *this)};
  if (!getTokensFirst())
    return {attendPages(b, *this, getQ(), getTable(), getLengths())};
  return {swapHeads(b, attendPages(b, *this, swapHeads(b, getQ()), getTable(),
                                   getLengths()))};
}
