//===- GretaToTileCache.cpp - results that are new rows of a cache --------===//
//
// The new rows of a paged KV cache are a GEMM's columns, or rope's of them, in
// the GEMM's kernel or in one of its own, and a kernel that only moves them
// would read and write all of them once more. So the kernel that computes them
// stores each where its slot says:
//
//   %k = greta.kernel ..                  launch @f_1(.., %cache, %slots)
//   %u = greta.kernel { paged_kv_update   ->     tied to %cache
//          %cache, %k, %slots }
//
// This file finds such results, and stores them.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileCache.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace greta;

/// Returns the kernel's result that `value` is a view of, if the views are its
/// only uses; null: it has others.
static OpResult resultBehindViews(Value value) {
  while (value.hasOneUse()) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return {};
    if (isa<KernelOp>(result.getOwner()))
      return result;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(result.getOwner()))
      return {};
    value = result.getOwner()->getOperand(0);
  }
  return {};
}

/// Whether a space's first dimension counts the cache's new rows, `tokens`: a
/// GEMM's without a batch, or that of norms and rope of heads, whose tables
/// have a row for each token.
static bool hasRowsOfTokens(const Space &space, AffineExpr tokens) {
  if (space.shape.front() != tokens)
    return false;
  if (MatmulOp matmul = space.matmul)
    return !matmul.getBatchRank();
  return !space.alone && space.pairs != Space::Pairs::None &&
         space.groups.size() == 2 && space.groups.front().size() == 1;
}

static PagedKvUpdateOp updateOf(KernelOp kernel) {
  if (kernel.getSpaces().size() != 1 || kernel.getNumResults() != 1)
    return {};
  Value yielded =
      kernel.getSpaces().front().front().getTerminator()->getOperand(0);
  return yielded.getDefiningOp<PagedKvUpdateOp>();
}

SmallVector<CacheUpdate> greta::findCacheUpdates(func::FuncOp function) {
  DominanceInfo dominance(function);
  SmallVector<CacheUpdate> updates;
  function.walk([&](KernelOp kernel) {
    PagedKvUpdateOp update = updateOf(kernel);
    // A quantising one stores other numbers than it gets.
    if (!update || update.getScales() || kernel.getViewsAttr())
      return;
    auto outside = [&](Value argument) -> Value {
      auto inside = dyn_cast<BlockArgument>(argument);
      return inside ? kernel.getInputs()[inside.getArgNumber()] : Value();
    };
    Value cache = outside(update.getCache()),
          slots = outside(update.getSlots());
    Value rows = outside(update.getNewRows());
    if (!cache || !slots || !rows)
      return;
    OpResult result = resultBehindViews(rows);
    if (!result || !dominance.properlyDominates(cache, result.getOwner()) ||
        !dominance.properlyDominates(slots, result.getOwner()))
      return;
    auto producer = cast<KernelOp>(result.getOwner());
    FailureOr<SmallVector<Space>> spaces = analyzeSpaces(producer);
    if (failed(spaces))
      return;
    auto shapeOf = [&](unsigned input) {
      return cast<AffineMapAttr>(kernel.getShapes()[input]).getValue();
    };
    AffineExpr tokens =
        shapeOf(cast<BlockArgument>(update.getNewRows()).getArgNumber())
            .getResult(0);
    unsigned first = 0; // result of the space
    for (auto [space, region] : llvm::zip(*spaces, producer.getSpaces())) {
      unsigned next = first + region.front().getTerminator()->getNumOperands();
      if (first <= result.getResultNumber() &&
          result.getResultNumber() < next && !hasRowsOfTokens(space, tokens))
        return;
      first = next;
    }
    AffineMap shape = shapeOf(0);
    updates.push_back({kernel, result, rows, cache, slots,
                       shape.getResult(0) * shape.getResult(1)});
  });
  return updates;
}

/// Stores a block of the space's dimensions, each row at its slot.
void SpaceEmitter::storeRows(unsigned output, Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  TensorLayout layout =
      TensorLayout::contiguous(space.shape, kernel.getContext());
  Access a = access(layout, identity);
  /// Indices along a dimension, of which others have extent 1.
  auto indices = [&](unsigned dim) -> Value {
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape[dim] = type.getDimSize(dim);
    return add(iota(shape, dim), splat(a.offsets[dim], shape));
  };
  auto splatLike = [&](Value scalar, Value like) {
    return splat(scalar, shapeOf(like));
  };
  auto whole = [&](Value part) { return broadcast(part, type.getShape()); };
  auto below = [&](Value index, Value bound) {
    return compare(Predicate::ult, index, splatLike(bound, index));
  };
  const CacheRows &cache = pointers.caches[output];
  Value row = indices(0);
  auto bounded = llvm::zip(a.bounded, a.bounds);
  Value isRow = splatLike(arith::ConstantIntOp::create(b, 1, 1), row);
  Value mask; // of the other dimensions
  for (auto [dim, bound] : bounded) {
    Value inside = below(indices(dim), bound);
    if (dim == 0)
      isRow = inside;
    else
      mask = mask ? both(mask, whole(inside)) : whole(inside);
  }
  Value slot = gather(row.getType(), advance(cache.slots, row), isRow);
  Value isInside = below(slot, scalars.get(b, cache.rows));
  check([&] { return implied(isRow, orLeftOut(isInside, slot)); },
        "paged_kv_update: an entry of 'slots' is beyond the cache");
  Value isSlot = both(isRow, isInside);
  // Rows are as long in the cache as here, and nothing is between them.
  int64_t stride = 1;
  for (AffineExpr extent : ArrayRef(space.shape).drop_front())
    stride *= cast<AffineConstantExpr>(extent).getValue();
  Value far = mul(large(slot), splatLike(i64(stride), row));
  Value target = whole(advance(pointers.outputs[output], far));
  for (int64_t dim = 1; dim < type.getRank(); ++dim) {
    if (type.getDimSize(dim) == 1 && !a.strides[dim])
      continue;
    Value index = indices(dim);
    Value offset = mul(index, splatLike(i32(a.strides[dim]), index));
    target = advance(target, whole(offset));
  }
  Value isStored = whole(isSlot);
  if (mask)
    isStored = both(isStored, mask);
  tile::StoreScatteredOp::create(b, stored, target, isStored);
}
