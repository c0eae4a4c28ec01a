//===- LayoutTransfer.cpp - how layouts pass through the dialect's ops ----===//
//
// LayoutTransferOpInterface of the ops that have it, and the one answer for
// every op.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"

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
                                             unsigned) {
  return layout.collapse(getDim());
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

/// Elementwise: what arith and math do, and the dialect's ops of one type.
static bool hasOneLayout(Operation *op) {
  return isa<FlipOp>(op) || OpTrait::hasElementwiseMappableTraits(op);
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

#include "GretaTile/LayoutInterface.cpp.inc"
