//===- LayoutTransfer.cpp - how layouts pass through the dialect's ops ----===//
//
// LayoutTransferOpInterface of the ops that have it, and the one answer for
// every op.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

Layout greta::tile::sharedLayout(Layout layout, ArrayRef<int64_t> shape) {
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    int64_t whole = layout.shape()[dim];
    if (extent == 1 && whole != 1)
      layout = layout.collapse(dim);
    else if (extent != whole)
      layout = layout.coarsen(dim, whole / extent);
  }
  return layout;
}

std::optional<Layout> BroadcastOp::resultLayout(unsigned, const Layout &,
                                                unsigned) {
  return std::nullopt;
}
std::optional<Layout> BroadcastOp::operandLayout(unsigned, const Layout &layout,
                                                 unsigned) {
  return sharedLayout(layout, shapeOf(getValue()));
}

std::optional<Layout> DequantOp::resultLayout(unsigned, const Layout &,
                                              unsigned) {
  return std::nullopt;
}
std::optional<Layout> DequantOp::operandLayout(unsigned, const Layout &layout,
                                               unsigned operand) {
  return sharedLayout(layout, shapeOf(getOperand(operand)));
}

std::optional<Layout> ReduceOp::resultLayout(unsigned, const Layout &layout,
                                             unsigned result) {
  return layout.collapse(getAxis()).reshape(shapeOf(getResult(result)));
}
std::optional<Layout> ReduceOp::operandLayout(unsigned, const Layout &,
                                              unsigned) {
  return std::nullopt;
}

std::optional<Layout> ReshapeOp::resultLayout(unsigned, const Layout &layout,
                                              unsigned) {
  return layout.reshape(shapeOf(getResult()));
}
std::optional<Layout> ReshapeOp::operandLayout(unsigned, const Layout &layout,
                                               unsigned) {
  return layout.reshape(shapeOf(getValue()));
}

/// Dimensions that have the same place in memory: as many elements before them,
/// and as many in them.
SmallVector<int64_t> ReshapeOp::operandDims(unsigned, unsigned) {
  ArrayRef<int64_t> from = shapeOf(getValue()), to = shapeOf(getResult());
  SmallVector<int64_t> dims(to.size(), -1);
  int64_t before = 1, fromBefore = 1;
  unsigned at = 0;
  for (auto [dim, extent] : llvm::enumerate(to)) {
    while (at < from.size() && fromBefore < before)
      fromBefore *= from[at++];
    while (at < from.size() && fromBefore == before && from[at] == 1)
      ++at;
    if (at < from.size() && fromBefore == before && from[at] == extent)
      dims[dim] = at;
    before *= extent;
  }
  return dims;
}

SmallVector<int64_t> ReduceOp::operandDims(unsigned, unsigned) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, e = shapeOf(getValues().front()).size(); dim < e; ++dim)
    if (dim != getAxis())
      dims.push_back(dim);
  return dims;
}
bool ReduceOp::takesOneLayout() { return true; }

// Layouts end at a store, whose operands have one.
std::optional<Layout> StoreScatteredOp::resultLayout(unsigned, const Layout &,
                                                     unsigned) {
  return std::nullopt;
}
std::optional<Layout> StoreScatteredOp::operandLayout(unsigned, const Layout &,
                                                      unsigned) {
  return std::nullopt;
}
bool StoreScatteredOp::takesOneLayout() { return true; }

/// Elementwise: what arith and math do, pointers, accesses through each of
/// them, and the dialect's ops of one type.
static bool hasOneLayout(Operation *op) {
  return isa<FlipOp, PtrAddOp, PtrToIntOp, IntToPtrOp, PtrCastOp,
             LoadScatteredOp, AtomicRmwOp, AtomicCasOp>(op) ||
         OpTrait::hasElementwiseMappableTraits(op);
}

std::optional<Layout> greta::tile::resultLayout(OpOperand &operand,
                                                const Layout &layout,
                                                OpResult result) {
  Operation *op = operand.getOwner();
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.resultLayout(operand.getOperandNumber(), layout,
                                 result.getResultNumber());
  if (hasOneLayout(op))
    return layout;
  return std::nullopt;
}

std::optional<Layout> greta::tile::operandLayout(OpResult result,
                                                 const Layout &layout,
                                                 OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.operandLayout(result.getResultNumber(), layout,
                                  operand.getOperandNumber());
  if (hasOneLayout(op))
    return layout;
  return std::nullopt;
}

bool greta::tile::takesOneLayout(Operation *op) {
  auto transfer = dyn_cast<LayoutTransferOpInterface>(op);
  return transfer && transfer.takesOneLayout();
}

SmallVector<int64_t> greta::tile::operandDims(OpOperand &operand,
                                              OpResult result) {
  Operation *op = operand.getOwner();
  if (auto transfer = dyn_cast<LayoutTransferOpInterface>(op))
    return transfer.operandDims(operand.getOperandNumber(),
                                result.getResultNumber());
  if (hasOneLayout(op))
    return llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(result).size()));
  return {};
}

#include "GretaTile/LayoutInterface.cpp.inc"
