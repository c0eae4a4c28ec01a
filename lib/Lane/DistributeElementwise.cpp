//===- DistributeElementwise.cpp - constants, indices, arithmetic ---------===//
//
// In: ops whose elements do not meet. Out: the same on each register's scalar,
// once where registers are known to hold the same.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <map>

using namespace mlir;
using namespace greta;
using namespace greta::tile;

LogicalResult Distributor::distributeConstant(Operation *op) {
  auto constant = cast<arith::ConstantOp>(op);
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return op->emitOpError("is not a splat; pass other constants as arguments");
  unsigned count = layoutOf(op->getResult(0)).registerIndex.size();
  Value value = arith::ConstantOp::create(
      static_cast<OpBuilder &>(prologue), op->getLoc(),
      cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  values[op->getResult(0)] = LaneValues(count, value);
  return success();
}

/// Returns the number of equal neighbours of a block of integers along each
/// dimension, as powers of two; none: no neighbours are known to be equal, or
/// the value is no such block.
std::optional<Index> Distributor::constantGroup(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isInteger())
    return std::nullopt;
  Index group;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t same = facts.of(value)[dim].constancy;
    group.push_back(same & -same);
  }
  return llvm::any_of(group, [](int64_t extent) { return extent > 1; })
             ? std::optional(group)
             : std::nullopt;
}

LogicalResult Distributor::distributeElementwise(Operation *op) {
  bool isPointers = isa<PtrAddOp, PtrToIntOp, IntToPtrOp, PtrCastOp>(op);
  if (op->getNumRegions() || !op->getNumResults() ||
      (!isPointers &&
       !isa<arith::ArithDialect, math::MathDialect>(op->getDialect())))
    return op->emitOpError(
        "has no meaning on block tensors; kernels take arith, "
        "math and greta_tile ops");
  auto layout = commonLayout(op, op->getResults());
  if (failed(layout))
    return failure();
  unsigned count = (*layout)->registerIndex.size();
  SmallVector<LaneValues, 1> out(op->getNumResults());
  SmallVector<Type, 1> elements;
  for (Type type : op->getResultTypes())
    elements.push_back(getElementTypeOrSelf(type));
  SmallVector<LaneValues, 3> sources;
  for (Value operand : op->getOperands())
    sources.push_back(isa<RankedTensorType>(operand.getType())
                          ? LaneValues(lanes(operand))
                          : LaneValues(count, scalar(operand)));
  // A value that facts have as the same in all of a group's elements, such as a
  // mask whose bound is a multiple, is computed once.
  std::map<Index, unsigned> groups;
  std::optional<Index> group = constantGroup(op->getResult(0));
  for (unsigned r = 0; r < count; ++r) {
    if (group) {
      Index place = (*layout)->registerIndex[r];
      for (auto [index, extent] : llvm::zip(place, *group))
        index &= -extent;
      auto [first, isNew] = groups.insert({place, r});
      if (!isNew) {
        for (LaneValues &list : out)
          list.push_back(list[first->second]);
        continue;
      }
    }
    SmallVector<Value, 3> operands;
    for (const LaneValues &source : sources)
      operands.push_back(source[r]);
    SmallVector<Value> made;
    auto condition = isa<arith::SelectOp>(op)
                         ? operands[0].getDefiningOp<arith::ConstantIntOp>()
                         : nullptr;
    if (r && llvm::all_of(sources, [&](const LaneValues &source) {
          return source[r] == source[r - 1];
        })) {
      // Registers that hold the same (splats) need computing once.
      for (const LaneValues &list : out)
        made.push_back(list.back());
    } else if (condition) {
      // A sign that constants decide: signs along a dimension that registers
      // hold.
      made.push_back(operands[condition.value() ? 1 : 2]);
    } else {
      OperationState state(op->getLoc(), op->getName(), operands, elements,
                           op->getAttrs());
      llvm::append_range(made, b.create(state)->getResults());
    }
    for (auto [list, value] : llvm::zip(out, made))
      list.push_back(value);
  }
  for (auto [result, list] : llvm::zip(op->getResults(), out))
    values[result] = std::move(list);
  return success();
}

LogicalResult Distributor::distributeIota(IotaOp op) {
  const DistributedLayout &layout = layoutOf(op.getResult());
  LaneValues out;
  for (const Index &index : layout.registerIndex)
    out.push_back(b.createOrFold<arith::AddIOp>(layout.threadIndex[op.getDim()],
                                                constant(index[op.getDim()])));
  values[op.getResult()] = std::move(out);
  return success();
}
