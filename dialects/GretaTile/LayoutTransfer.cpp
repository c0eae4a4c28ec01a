//===- LayoutTransfer.cpp - how layouts pass through the dialect's ops ----===//
//
// LayoutTransferOpInterface of the ops that have it, and the one answer for
// every op.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Layout/Conversion.h"
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
    if (extent == 1 && whole != 1) {
      layout = layout.collapse(dim);
    } else if (extent != whole) {
      // Repetitions that share an element become bits of the tile.
      Index tile(layout.tile());
      if (tile[dim] % (whole / extent))
        tile[dim] = whole & -whole;
      layout = layout.withTile(tile).coarsen(dim, whole / extent);
    }
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

static SmallVector<unsigned> inverse(ArrayRef<int64_t> order) {
  SmallVector<unsigned> places(order.size());
  for (auto [place, dim] : llvm::enumerate(order))
    places[dim] = place;
  return places;
}

std::optional<Layout> TransOp::resultLayout(unsigned, const Layout &layout,
                                            unsigned) {
  return layout.permuteDims(SmallVector<unsigned>(getOrder()));
}
std::optional<Layout> TransOp::operandLayout(unsigned, const Layout &layout,
                                             unsigned) {
  return layout.permuteDims(inverse(getOrder()));
}
SmallVector<int64_t> TransOp::operandDims(unsigned, unsigned) {
  return SmallVector<int64_t>(getOrder());
}

/// One of the two blocks that a layout with a last dimension of extent 2 has;
/// where that is a bit of the lane or the wave, both have all of it.
static Layout oneOf(const Layout &pair) {
  Index shape = pair.shape();
  return *pair.collapse(shape.size() - 1).reshape(ArrayRef(shape).drop_back());
}

std::optional<Layout> JoinOp::resultLayout(unsigned, const Layout &layout,
                                           unsigned) {
  return layout.join();
}
std::optional<Layout> JoinOp::operandLayout(unsigned, const Layout &layout,
                                            unsigned) {
  return oneOf(layout);
}
SmallVector<int64_t> JoinOp::operandDims(unsigned, unsigned) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(getA()).size()));
  dims.push_back(-1);
  return dims;
}
bool JoinOp::takesOneLayout() { return true; }

/// Only of what lies in registers is there a part for each lane.
std::optional<Layout> SplitOp::resultLayout(unsigned, const Layout &layout,
                                            unsigned) {
  Layout one = oneOf(layout);
  if (!relabel(layout, one.join()))
    return std::nullopt;
  return one;
}
std::optional<Layout> SplitOp::operandLayout(unsigned, const Layout &layout,
                                             unsigned) {
  return layout.join();
}
SmallVector<int64_t> SplitOp::operandDims(unsigned, unsigned) {
  return llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(getFirst()).size()));
}

/// The source is taken from shared memory, whatever its layout.
std::optional<Layout> GatherOp::resultLayout(unsigned operand,
                                             const Layout &layout, unsigned) {
  return operand == 1 ? std::optional(layout) : std::nullopt;
}
std::optional<Layout> GatherOp::operandLayout(unsigned, const Layout &layout,
                                              unsigned operand) {
  return operand == 1 ? std::optional(layout) : std::nullopt;
}
SmallVector<int64_t> GatherOp::operandDims(unsigned operand, unsigned) {
  if (operand != 1)
    return {};
  return llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(getIndex()).size()));
}

SmallVector<int64_t> ReduceOp::operandDims(unsigned, unsigned) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, e = shapeOf(getValues().front()).size(); dim < e; ++dim)
    if (dim != getAxis())
      dims.push_back(dim);
  return dims;
}
bool ReduceOp::takesOneLayout() { return true; }

// Counts lie where they like; what is counted and its mask have one layout.
std::optional<Layout> HistogramOp::resultLayout(unsigned, const Layout &,
                                                unsigned) {
  return std::nullopt;
}
std::optional<Layout> HistogramOp::operandLayout(unsigned, const Layout &,
                                                 unsigned) {
  return std::nullopt;
}
SmallVector<int64_t> HistogramOp::operandDims(unsigned, unsigned) {
  return {-1};
}
bool HistogramOp::takesOneLayout() { return true; }

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
  return isa<ScanOp, PtrAddOp, PtrToIntOp, IntToPtrOp, PtrCastOp,
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
