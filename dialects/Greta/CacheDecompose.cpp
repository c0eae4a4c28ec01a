//===- CacheDecompose.cpp - what a KV cache's updates mean ----------------===//
//
// In: an update of a KV cache, plain or in pages. Out: its definition in scf,
// arith and tensor ops, row by row, so that bufferisation does it in place: the
// reference and the `host` target.
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

SmallVector<Value> PagedKvUpdateOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value page = tensor::DimOp::create(b, getCache(), 1);
  Value slots =
      arith::MulIOp::create(b, tensor::DimOp::create(b, getCache(), 0), page);
  Value tokens = tensor::DimOp::create(b, getNewRows(), 0);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> row =
      tensor::getMixedSizes(b, b.getLoc(), getNewRows());
  row[0] = one;
  return {loopOver(
      b, tokens, getCache(),
      [&](ImplicitLocOpBuilder &b, Value token, Value cache) {
        Value slot = indexAt(b, getSlots(), token);
        OpFoldResult number = arith::DivUIOp::create(b, slot, page).getResult();
        OpFoldResult place = arith::RemUIOp::create(b, slot, page).getResult();
        return replaceRows(
            b, isBelow(b, slot, slots), cache,
            [&](ImplicitLocOpBuilder &b) -> Value {
              return tensor::ExtractSliceOp::create(
                  b, getNewRows(), ArrayRef<OpFoldResult>{token, zero, zero},
                  row, ArrayRef<OpFoldResult>{one, one, one});
            },
            {number, place, zero, zero}, {one, one, row[1], row[2]});
      })};
}
