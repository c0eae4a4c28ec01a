//===- MemoryOps.cpp - verifiers of memory accesses -----------------------===//

#include "GretaTile/GretaTile.h"

using namespace mlir;
using namespace greta::tile;

/// Load and store share these rules: one offset and stride per dimension,
/// dynamic strides and bounds as many as announced.
template <typename OpT>
static LogicalResult verifyAccess(OpT op, RankedTensorType block) {
  int64_t rank = block.getRank();
  if (op.getBase().getType().getElementType() != block.getElementType())
    return op.emitOpError("moves ")
           << block.getElementType() << " through " << op.getBase().getType();
  if (static_cast<int64_t>(op.getOffsets().size()) != rank ||
      static_cast<int64_t>(op.getStrides().size()) != rank)
    return op.emitOpError("has ")
           << op.getOffsets().size() << " offsets and "
           << op.getStrides().size() << " strides for a block of rank " << rank;
  size_t dynamic = llvm::count(op.getStrides(), ShapedType::kDynamic);
  if (dynamic != op.getDynamicStrides().size())
    return op.emitOpError("has ")
           << op.getDynamicStrides().size()
           << " dynamic strides, 'strides' names " << dynamic;
  if (op.getBounded().size() != op.getBounds().size())
    return op.emitOpError("has ")
           << op.getBounds().size() << " bounds, 'bounded' names "
           << op.getBounded().size();
  int64_t last = -1;
  for (int64_t dim : op.getBounded()) {
    if (dim <= last || dim >= rank)
      return op.emitOpError("has bounded dimension ")
             << dim << "; they are increasing and below the rank " << rank;
    last = dim;
  }
  if (op.getNonnegative())
    for (int64_t dim : op.getNonnegativeAttr().asArrayRef())
      if (!llvm::is_contained(op.getBounded(), dim))
        return op.emitOpError("has no index below zero along dimension ")
               << dim << ", which is not among the bounded ones";
  return success();
}

LogicalResult LoadOp::verify() {
  auto block = cast<RankedTensorType>(getResult().getType());
  if (getOther() && getOther().getType() != block.getElementType())
    return emitOpError("has 'other' of type ")
           << getOther().getType() << " for elements "
           << block.getElementType();
  if (getClamped())
    for (int64_t dim : getClampedAttr().asArrayRef())
      if (!llvm::is_contained(getBounded(), dim) || isBoundedBelow(dim))
        return emitOpError("clamps dimension ")
               << dim
               << ", which is not among the bounded ones, or is among those "
                  "bounded below";
  if (auto divisors = getDivisors())
    if (static_cast<int64_t>(divisors->size()) != block.getRank() ||
        !llvm::all_of(*divisors, [](int64_t d) {
          return d > 0 && llvm::isPowerOf2_64(d);
        }))
      return emitOpError("has divisors ")
             << *divisors << "; they are a power of two for each dimension of "
             << block;
  if (getRuns().has_value() != getRunStrides().has_value())
    return emitOpError("has 'runs' without 'run_strides', or these without "
                       "those");
  if (auto runs = getRuns()) {
    int64_t rank = block.getRank();
    if (static_cast<int64_t>(runs->size()) != rank ||
        static_cast<int64_t>(getRunStrides()->size()) != rank ||
        !llvm::all_of(*runs, [](int64_t run) {
          return run > 0 && llvm::isPowerOf2_64(run);
        }))
      return emitOpError("has runs ")
             << *runs << " and as many strides of them as "
             << getRunStrides()->size()
             << "; there is one for each dimension of " << block
             << ", and runs are powers of two";
    for (auto [run, stride] : llvm::zip(*runs, getStrides()))
      if (run > 1 && stride == ShapedType::kDynamic)
        return emitOpError("has runs along a dimension of a dynamic stride");
  }
  if (getNonnegative())
    for (int64_t dim : getNonnegativeAttr().asArrayRef())
      if (getDivisor(dim) > 1 || getRun(dim) > 1)
        return emitOpError("divides indices along dimension ")
               << dim << ", which may be negative";
  return verifyAccess(*this, block);
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getValue().getType()));
}

LogicalResult LocalStoreOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  RankedTensorType block = getLocal().getType().getBlock();
  if (value.getShape() != block.getShape() ||
      value.getElementType() != block.getElementType())
    return emitOpError("stores ") << value << " to a local of " << block;
  if (!getDirect())
    return success();
  auto load = getValue().getDefiningOp<LoadOp>();
  if (!load || !load->hasOneUse() || load->getBlock() != (*this)->getBlock() ||
      load.getOther() || load.getDivisors())
    return emitOpError("is 'direct' but its value is not of a load in its "
                       "block, without 'other' and 'divisors', that nothing "
                       "else uses");
  return success();
}

LogicalResult LocalLoadOp::verify() {
  auto part = cast<RankedTensorType>(getResult().getType());
  RankedTensorType block = getLocal().getType().getBlock();
  bool fits = part.getElementType() == block.getElementType() &&
              part.getRank() == block.getRank() &&
              static_cast<int64_t>(getOffsets().size()) == block.getRank();
  for (int64_t dim = 0; fits && dim < block.getRank(); ++dim)
    fits = block.getDimSize(dim) % part.getDimSize(dim) == 0;
  if (!fits)
    return emitOpError("loads ")
           << part << " at " << getOffsets().size() << " offsets from a local "
           << "of " << block << "; parts divide the block";
  return success();
}
