//===- Recompute.cpp - blocks of indices in another layout ----------------===//

#include "greta/Tile/Recompute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Whether a reshape adds or takes away extents of 1 alone.
static bool keepsDims(ReshapeOp op) {
  auto extents = [](Value value) {
    SmallVector<int64_t> shape(
        cast<RankedTensorType>(value.getType()).getShape());
    llvm::erase(shape, 1);
    return shape;
  };
  return extents(op.getValue()) == extents(op.getResult());
}

static bool followsFrom(Value block, llvm::SmallDenseMap<Value, bool> &known) {
  if (!isa<RankedTensorType>(block.getType()))
    return true;
  Operation *op = block.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() ||
      !isMemoryEffectFree(op))
    return false;
  if (isa<IotaOp, SplatOp, arith::ConstantOp>(op))
    return true;
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!(reshape && keepsDims(reshape)) && !isa<BroadcastOp, PtrAddOp>(op) &&
      !OpTrait::hasElementwiseMappableTraits(op))
    return false;
  auto [entry, isNew] = known.try_emplace(block, true);
  if (!isNew)
    return entry->second;
  bool follows = llvm::all_of(op->getOperands(), [&](Value operand) {
    return followsFrom(operand, known);
  });
  return known[block] = follows;
}

bool greta::followsFromIndices(Value block) {
  llvm::SmallDenseMap<Value, bool> known;
  return followsFrom(block, known);
}

Value Recomputer::compute(OpBuilder &b, Value block, LayoutAttr layout) {
  auto type = cast<RankedTensorType>(block.getType());
  if (getLayoutOf(type) == layout)
    return block;
  if (Value made = known.lookup({block, layout}))
    return made;
  Operation *op = block.getDefiningOp();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(op);
  Operation *copy = b.clone(*op);
  auto result = cast<OpResult>(copy->getResult(0));
  type = withLayout(type, layout);
  result.setType(type);
  // A constant's value carries its type.
  if (auto constant = dyn_cast<arith::ConstantOp>(copy))
    constant.setValueAttr(
        cast<DenseElementsAttr>(constant.getValue()).reshape(type));
  for (OpOperand &operand : copy->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    Layout wanted = *tile::operandLayout(result, toLayout(layout), operand);
    operand.set(compute(b, operand.get(), toAttr(b.getContext(), wanted)));
  }
  known[{block, layout}] = result;
  return result;
}
