//===- DistributeMove.cpp - ops that give elements another place ----------===//
//
// If the algebra has the operand's layout under the op, registers only get
// other names, and a conversion to the result's layout is left, which is none
// if greta-tile-assign-layouts had its way. Gather and histogram, which depend
// on values, pass through shared memory.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Returns some registers in a new order.
static LaneValues pick(ArrayRef<Value> from, ArrayRef<unsigned> registers) {
  LaneValues out;
  for (unsigned reg : registers)
    out.push_back(from[reg]);
  return out;
}

LogicalResult Distributor::setConverted(Operation *op, Value result,
                                        ArrayRef<Value> from,
                                        const Layout &layout) {
  const DistributedLayout &dst = layoutOf(result);
  auto out = converted(op, from, layout, dst);
  if (failed(out))
    return failure();
  values[result] = std::move(*out);
  return success();
}

LogicalResult Distributor::distributeConvertLayout(ConvertLayoutOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  return setConverted(op, op.getResult(), lanes(op.getValue()), src.layout);
}

LogicalResult Distributor::distributeBroadcast(BroadcastOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  const DistributedLayout &dst = layoutOf(op.getResult());
  LaneValues from(lanes(op.getValue()));
  auto map = relabel(src.layout, dst.layout);
  if (!map) {
    // First as the result has it, but for the copies.
    Layout one = sharedLayout(dst.layout, op.getValue().getType().getShape());
    auto target = distributed(op, toAttr(op.getContext(), one));
    if (failed(target))
      return failure();
    auto moved = converted(op, from, src.layout, **target);
    if (failed(moved))
      return failure();
    from = std::move(*moved);
    map = relabel(one, dst.layout);
  }
  values[op.getResult()] = pick(from, *map);
  return success();
}

LogicalResult Distributor::distributeReshape(ReshapeOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  const DistributedLayout &dst = layoutOf(op.getResult());
  SmallVector<unsigned> registers;
  std::optional<Layout> layout =
      src.layout.reshape(op.getResult().getType().getShape(), &registers);
  if (layout)
    return setConverted(op, op.getResult(),
                        pick(lanes(op.getValue()), registers), *layout);
  values[op.getResult()] =
      moveNumbers(lanes(op.getValue()), [&](ArrayRef<Value> from) {
        return reshapeThroughShared(from, src, dst);
      });
  return success();
}

LogicalResult Distributor::distributeTrans(TransOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  SmallVector<unsigned> registers, order(op.getOrder());
  Layout layout = src.layout.permuteDims(order, &registers);
  return setConverted(op, op.getResult(), pick(lanes(op.getValue()), registers),
                      layout);
}

LogicalResult Distributor::distributeJoin(JoinOp op) {
  auto src = commonLayout(op, op.getOperands());
  if (failed(src))
    return failure();
  LaneValues a(lanes(op.getA())), c(lanes(op.getB())), pairs;
  for (auto [first, second] : llvm::zip(a, c))
    pairs.append({first, second});
  return setConverted(op, op.getResult(), pairs, (*src)->layout.join());
}

LogicalResult Distributor::distributeSplit(SplitOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  auto dst = commonLayout(op, op.getResults());
  if (failed(dst))
    return failure();
  auto pairs = distributed(op, toAttr(op.getContext(), (*dst)->layout.join()));
  if (failed(pairs))
    return failure();
  auto from = converted(op, lanes(op.getValue()), src.layout, **pairs);
  if (failed(from))
    return failure();
  for (auto [reg, value] : llvm::enumerate(*from))
    values[op.getResult(reg % 2)].push_back(value);
  return success();
}

LogicalResult Distributor::distributeGather(GatherOp op) {
  const DistributedLayout &src = layoutOf(op.getValue());
  auto dst = commonLayout(op, {op.getIndex(), op.getResult()});
  if (failed(dst))
    return failure();
  SharedOrder order = rowMajor(src.layout, 1);
  Value array = storeShared(lanes(op.getValue()), src, order);
  // The other dimensions are the thread's own.
  unsigned axis = op.getAxis();
  Value last = constant(src.layout.shape()[axis] - 1);
  Value stride = constant(order.strides[axis]);
  order.strides[axis] = 0;
  Value own = sharedThreadOffset((*dst)->threadIndex, order);
  LaneValues out;
  for (auto [value, index] :
       llvm::zip(lanes(op.getIndex()), (*dst)->registerIndex)) {
    Value at = add(own, mul(minU(value, last), stride));
    out.push_back(
        SharedLoadOp::create(b, array, offsetBy(at, order.offset(index))));
  }
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeHistogram(HistogramOp op) {
  SmallVector<Value> operands(op.getOperands());
  auto src = commonLayout(op, operands);
  const DistributedLayout &dst = layoutOf(op.getResult());
  if (failed(src))
    return failure();
  const Layout &from = (*src)->layout;
  int64_t bins = dst.layout.numElements();
  SharedOrder order = rowMajor(dst.layout, 1);
  LaneValues zeros(dst.registerIndex.size(), constant(0));
  Value array = storeShared(zeros, dst, order);
  LaneValues numbers(lanes(op.getValue())), masks;
  if (op.getMask())
    llvm::append_range(masks, lanes(op.getMask()));
  Value last = constant(bins - 1);
  storeWhere(ownsCopies(from), [&] {
    for (auto [reg, number] : llvm::enumerate(numbers)) {
      if (from.firstCopy(reg) != reg)
        continue;
      Value at = minU(number, last);
      Value counts = equal(at, number);
      if (!masks.empty())
        counts = both(counts, masks[reg]);
      // Nothing is added elsewhere: LLVM makes a load of an addition of zero.
      storeWhere(counts,
                 [&] { SharedAddOp::create(b, constant(1), array, at); });
    }
  });
  Value at = sharedThreadOffset(dst.threadIndex, order);
  for (const Index &index : dst.registerIndex)
    values[op.getResult()].push_back(
        SharedLoadOp::create(b, array, offsetBy(at, order.offset(index))));
  return success();
}
