//===- FuseAlone.cpp - ops that have a kernel to themselves ---------------===//
//
// Attention and the updates of the KV cache: what is known of them, whether a
// region has nothing beside one but its epilogue, and its space.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Fuse/Space.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace greta;

bool greta::isAlone(Operation *op) {
  return isa<AttentionOp, AttentionBackwardOp, PagedAttentionOp, KvUpdateOp,
             PagedKvUpdateOp>(op);
}

bool greta::takesEpilogue(Operation *op) { return isa<AttentionOp>(op); }

bool greta::isOfKeys(Operation *op) {
  auto backward = dyn_cast<AttentionBackwardOp>(op);
  return backward &&
         !(backward.getDk().use_empty() && backward.getDv().use_empty());
}

bool greta::hasTokensFirst(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attention.getTokensFirst();
  if (auto backward = dyn_cast<AttentionBackwardOp>(op))
    return backward.getTokensFirst();
  auto paged = dyn_cast<PagedAttentionOp>(op);
  return paged && (paged.getTokensFirst() || hasBegins(op));
}

bool greta::hasBegins(Operation *op) {
  auto paged = dyn_cast<PagedAttentionOp>(op);
  return paged && paged.getBegins();
}

RankedTensorType greta::queryTypeOf(Operation *attention) {
  auto type = cast<RankedTensorType>(attention->getOperand(0).getType());
  SmallVector<int64_t> shape(type.getShape());
  if (hasBegins(attention))
    shape.insert(shape.begin(), 1);
  if (hasTokensFirst(attention))
    std::swap(shape[1], shape[2]);
  return type.clone(shape);
}

bool greta::differByKey(Operation *attention, Value scales) {
  if (!scales)
    return false;
  auto type = cast<RankedTensorType>(scales.getType());
  if (type.getRank() == 4) // multiply numbers, not keys
    return false;
  if (isa<PagedAttentionOp>(attention))
    return type.getDimSize(0) != 1 || type.getDimSize(1) != 1;
  return type.getDimSize(2) != 1;
}

/// Whether all else in the region of an op that is alone is its epilogue:
/// elementwise work on its first result, in its shape. Other results are only
/// stored.
static bool isEpilogue(KernelOp kernel, Region &region, Operation *alone) {
  auto isArgument = llvm::IsaPred<BlockArgument>;
  auto isStored = [](OpResult result) {
    return result.getResultNumber() == 0 ||
           llvm::all_of(result.getUsers(), llvm::IsaPred<YieldOp>);
  };
  if (!llvm::all_of(alone->getOperands(), isArgument) ||
      !llvm::all_of(alone->getResults(), isStored))
    return false;
  for (Operation &op : region.front().without_terminator()) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    bool isSplat = constant && isa<SplatElementsAttr>(constant.getValue());
    if (&op != alone &&
        (!takesEpilogue(alone) ||
         !(isSplat || isElementwise(&op) || isa<BroadcastOp>(op))))
      return false;
  }
  unsigned next = kernel.getInputs().size();
  auto shapeOf = [&](unsigned i) {
    return cast<AffineMapAttr>(kernel.getShapes()[i]).getValue();
  };
  AffineMap shape =
      shapeOf(cast<BlockArgument>(alone->getOperand(0)).getArgNumber());
  SmallVector<Value> made;
  for (Value value : region.front().getTerminator()->getOperands()) {
    AffineMap own = shapeOf(next++);
    if (value.getDefiningOp() == alone &&
        (!takesEpilogue(alone) || cast<OpResult>(value).getResultNumber() > 0))
      continue;
    if (!takesEpilogue(alone) || own != shape)
      return false;
    made.push_back(value);
  }
  return succeeded(walkDemands(
      made, shape.getNumResults(), [](Value) { return true; },
      [](Value, const Mapping &) {}));
}

/// The space of an op that is alone: an update's rows are one group, the
/// dimensions of queries or keys are apart.
FailureOr<Space> greta::spaceOfAlone(KernelOp kernel, Region &region,
                                     Operation *op) {
  if (kernel.getSpaces().size() > 1 || !isEpilogue(kernel, region, op))
    return op->emitOpError("is not alone in its kernel; put the rest into "
                           "another");
  Space space;
  space.alone = op;
  bool isUpdate = static_cast<bool>(getUpdatedCache(op));
  auto rows =
      cast<BlockArgument>(op->getOperand(isUpdate || isOfKeys(op) ? 1 : 0));
  auto shape = cast<AffineMapAttr>(kernel.getShapes()[rows.getArgNumber()]);
  if (hasBegins(op))
    space.shape.push_back(getAffineConstantExpr(1, op->getContext()));
  llvm::append_range(space.shape, shape.getValue().getResults());
  if (hasTokensFirst(op))
    std::swap(space.shape[1], space.shape[2]);
  for (int64_t dim = 0; dim + 1 < space.rank(); ++dim) {
    if (dim == 0 || !isUpdate)
      space.groups.emplace_back();
    space.groups.back().push_back(dim);
  }
  return space;
}
