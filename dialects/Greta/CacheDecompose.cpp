//===- CacheDecompose.cpp - what a KV cache's updates mean ----------------===//
//
// In: an update of a KV cache, plain or in pages. Out: its definition in scf,
// arith and tensor ops, row by row, so that bufferisation does it in place: the
// reference and the `host` target.
//
//===----------------------------------------------------------------------===//

#include "Generic.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;

/// The index at `place` of a tensor of i32.
static Value indexAt(ImplicitLocOpBuilder &b, Value tensor, Value place) {
  return arith::IndexCastOp::create(
      b, b.getIndexType(), tensor::ExtractOp::create(b, tensor, place));
}

/// Unsigned: what lies before the cache is far beyond it.
static Value isBelow(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
}

/// `next` of every number below `count`, each from what the one before left.
static Value
loopOver(ImplicitLocOpBuilder &b, Value count, Value start,
         llvm::function_ref<Value(ImplicitLocOpBuilder &, Value, Value)> next) {
  auto loop = scf::ForOp::create(b, arith::ConstantIndexOp::create(b, 0), count,
                                 arith::ConstantIndexOp::create(b, 1), start);
  ImplicitLocOpBuilder inner(b.getLoc(), loop.getBody(), loop.getBody()->end());
  scf::YieldOp::create(
      inner, next(inner, loop.getInductionVar(), loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

/// `cache` with `rows` of `sizes` at `offsets` where that is `inside`.
static Value replaceRows(ImplicitLocOpBuilder &b, Value inside, Value cache,
                         llvm::function_ref<Value(ImplicitLocOpBuilder &)> rows,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes) {
  auto branch =
      scf::IfOp::create(b, cache.getType(), inside, /*withElseRegion=*/true);
  auto at = [&](Block *block) {
    return ImplicitLocOpBuilder(b.getLoc(), block, block->end());
  };
  ImplicitLocOpBuilder then = at(branch.thenBlock());
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  Value updated = tensor::InsertSliceOp::create(then, rows(then), cache,
                                                offsets, sizes, strides);
  scf::YieldOp::create(then, updated);
  ImplicitLocOpBuilder otherwise = at(branch.elseBlock());
  scf::YieldOp::create(otherwise, cache);
  return branch.getResult(0);
}

SmallVector<Value> KvUpdateOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value sequences = tensor::DimOp::create(b, getNewRows(), 0);
  Value rows = tensor::DimOp::create(b, getNewRows(), 2);
  Value places = tensor::DimOp::create(b, getCache(), 2);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), getNewRows());
  sizes[0] = sizes[2] = one;
  auto updateRow = [&](ImplicitLocOpBuilder &b, Value n, Value i, Value cache) {
    Value at = arith::AddIOp::create(b, indexAt(b, getPos(), n), i);
    return replaceRows(
        b, isBelow(b, at, places), cache,
        [&](ImplicitLocOpBuilder &b) -> Value {
          return tensor::ExtractSliceOp::create(
              b, getNewRows(), ArrayRef<OpFoldResult>{n, zero, i, zero}, sizes,
              ArrayRef<OpFoldResult>{one, one, one, one});
        },
        {n, zero, at, zero}, sizes);
  };
  return {loopOver(b, sequences, getCache(),
                   [&](ImplicitLocOpBuilder &b, Value n, Value cache) {
                     return loopOver(
                         b, rows, cache,
                         [&](ImplicitLocOpBuilder &b, Value i, Value cache) {
                           return updateRow(b, n, i, cache);
                         });
                   })};
}

/// A tensor of `element` from the elements of others of its shape, or of its
/// first dimensions; along the last one of `x`, from `start` on, where that is
/// given.
static Value compute(ImplicitLocOpBuilder &b, Type element, Value x,
                     ValueRange others, Value start, GenericBody body) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), x);
  unsigned rank = sizes.size();
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  AffineMap all = b.getMultiDimIdentityMap(rank), result = all;
  if (start) {
    iterators.back() = utils::IteratorType::reduction;
    sizes.pop_back();
    result = all.getMajorSubMap(rank - 1);
  }
  Value init = tensor::EmptyOp::create(b, sizes, element);
  if (start)
    init = linalg::FillOp::create(b, start, init).getResult(0);
  SmallVector<Value> inputs{x};
  SmallVector<AffineMap> maps{all};
  for (Value other : others) {
    inputs.push_back(other);
    maps.push_back(
        all.getMajorSubMap(cast<RankedTensorType>(other.getType()).getRank()));
  }
  maps.push_back(result);
  return generic(b, inputs, init, maps, iterators, body);
}

/// Rows in numbers of 8 bits, and the scales of their groups.
static std::pair<Value, Value> quantise(ImplicitLocOpBuilder &b, Value rows,
                                        Value scales) {
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t groups = cast<RankedTensorType>(scales.getType()).getShape().back();
  Type f32 = b.getF32Type(), f16 = b.getF16Type();
  auto real = [&](ImplicitLocOpBuilder &b, double value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= groups;
  shape.insert(shape.end() - 1, groups);
  SmallVector<ReassociationIndices> parts{{0}, {1}, {2, 3}};
  Value x = tensor::ExpandShapeOp::create(b, type.clone(shape), rows, parts);
  constexpr double largest = 127;
  Value peaks = compute(b, f32, x, {}, real(b, 0),
                        [&](Arithmetic a, ValueRange v) -> Value {
                          Value size = math::AbsFOp::create(a.b, v[0]);
                          return arith::MaximumFOp::create(a.b, size, v[1]);
                        });
  Value stored =
      compute(b, f16, peaks, {}, Value(), [&](Arithmetic a, ValueRange v) {
        return a.fmul(v[0], real(a.b, float(1 / largest)));
      });
  Value y = compute(
      b, b.getI8Type(), x, stored, Value(),
      [&](Arithmetic a, ValueRange v) -> Value {
        Value scale = v[1], zero = real(a.b, 0);
        Value isZero = a.compare(arith::CmpFPredicate::OEQ, scale, zero);
        Value factor = a.select(isZero, zero, a.fdiv(real(a.b, 1), scale));
        Value y = math::RoundEvenOp::create(a.b, a.fmul(v[0], factor));
        y = arith::MaximumFOp::create(a.b, y, real(a.b, -largest));
        y = arith::MinimumFOp::create(a.b, y, real(a.b, largest));
        return arith::FPToSIOp::create(a.b, a.b.getI8Type(), y);
      });
  return {
      tensor::CollapseShapeOp::create(b, type.clone(b.getI8Type()), y, parts),
      stored};
}

SmallVector<Value> PagedKvUpdateOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value page = tensor::DimOp::create(b, getCache(), 1);
  Value slots =
      arith::MulIOp::create(b, tensor::DimOp::create(b, getCache(), 0), page);
  Value tokens = tensor::DimOp::create(b, getNewRows(), 0);
  auto update = [&](Value cache, Value rows) {
    OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
    SmallVector<OpFoldResult> row = tensor::getMixedSizes(b, b.getLoc(), rows);
    row[0] = one;
    return loopOver(
        b, tokens, cache,
        [&](ImplicitLocOpBuilder &b, Value token, Value cache) {
          Value slot = indexAt(b, getSlots(), token);
          OpFoldResult number =
              arith::DivUIOp::create(b, slot, page).getResult();
          OpFoldResult place =
              arith::RemUIOp::create(b, slot, page).getResult();
          return replaceRows(
              b, isBelow(b, slot, slots), cache,
              [&](ImplicitLocOpBuilder &b) -> Value {
                return tensor::ExtractSliceOp::create(
                    b, rows, ArrayRef<OpFoldResult>{token, zero, zero}, row,
                    ArrayRef<OpFoldResult>{one, one, one});
              },
              {number, place, zero, zero}, {one, one, row[1], row[2]});
        });
  };
  if (!getScales())
    return {update(getCache(), getNewRows())};
  auto [numbers, scales] = quantise(b, getNewRows(), getScales());
  return {update(getCache(), numbers), update(getScales(), scales)};
}
