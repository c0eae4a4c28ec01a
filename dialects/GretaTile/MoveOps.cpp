//===- MoveOps.cpp - verifiers of ops that give elements another place ----===//

#include "GretaTile/GretaTile.h"

using namespace mlir;
using namespace greta::tile;

/// op(ptr_add(p, x)) → ptr_add(op(p), op(x)), and op(splat(p)) → splat(p), of
/// what an argument that reaches little began. Others' rows are pointers of 64
/// bits that are computed before a loop.
template <typename OpT>
static LogicalResult pushIntoPointers(OpT op, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(op.getType());
  Operation *source = op.getValue().getDefiningOp();
  if (!isa<PtrType>(type.getElementType()) ||
      !isa_and_nonnull<PtrAddOp, SplatOp>(source))
    return failure();
  Value pointer = op.getValue();
  while (isa_and_nonnull<PtrAddOp, SplatOp, BroadcastOp, ReshapeOp>(
      pointer.getDefiningOp()))
    pointer = pointer.getDefiningOp()->getOperand(0);
  if (!hasPointerRange(argumentOf(pointer)))
    return failure();
  if (auto splat = dyn_cast<SplatOp>(source)) {
    rewriter.replaceOpWithNewOp<SplatOp>(op, type, splat.getValue());
    return success();
  }
  auto move = [&](Value operand) -> Value {
    auto from = dyn_cast<RankedTensorType>(operand.getType());
    return from ? OpT::create(rewriter, op.getLoc(),
                              type.clone(from.getElementType()), operand)
                      .getResult()
                : operand;
  };
  auto add = cast<PtrAddOp>(source);
  Value base = move(add.getBase());
  rewriter.replaceOpWithNewOp<PtrAddOp>(op, base, move(add.getOffset()));
  return success();
}

LogicalResult BroadcastOp::canonicalize(BroadcastOp op,
                                        PatternRewriter &rewriter) {
  return pushIntoPointers(op, rewriter);
}

LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  return pushIntoPointers(op, rewriter);
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType() ||
      from.getRank() != to.getRank())
    return emitOpError("changes rank or element type");
  for (auto [f, t] : llvm::zip(from.getShape(), to.getShape()))
    if (f != t && f != 1)
      return emitOpError("repeats an extent of ")
             << f << " to " << t << "; only 1 repeats";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType() ||
      from.getNumElements() != to.getNumElements())
    return emitOpError("makes ")
           << to << " of " << from
           << "; the shapes have as many elements, of one type";
  return success();
}

LogicalResult TransOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> sorted(getOrder());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, from.getRank())))
    return emitOpError("has the order ")
           << getOrder() << "; it names each dimension of " << from << " once";
  SmallVector<int64_t> shape;
  for (int64_t dim : getOrder())
    shape.push_back(from.getDimSize(dim));
  if (from.getElementType() != to.getElementType() ||
      ArrayRef(shape) != to.getShape())
    return emitOpError("makes ")
           << to << " of " << from << "; dimension i is the operand's order[i]";
  return success();
}

/// Whether `pair` is two blocks of type `one` with a new last dimension.
static bool isPairOf(RankedTensorType pair, RankedTensorType one) {
  return pair.getElementType() == one.getElementType() && one.getRank() > 0 &&
         pair.getRank() == one.getRank() + 1 &&
         pair.getShape().drop_back() == one.getShape() &&
         pair.getShape().back() == 2;
}

LogicalResult JoinOp::verify() {
  auto one = cast<RankedTensorType>(getA().getType());
  auto pair = cast<RankedTensorType>(getResult().getType());
  if (!isPairOf(pair, one))
    return emitOpError("makes ")
           << pair << " of two " << one
           << "; it has their dimensions and a last one of extent 2";
  return success();
}

LogicalResult SplitOp::verify() {
  auto pair = cast<RankedTensorType>(getValue().getType());
  auto one = cast<RankedTensorType>(getFirst().getType());
  if (!isPairOf(pair, one))
    return emitOpError("makes two ")
           << one << " of " << pair
           << "; they have its dimensions, at least one, but for the last, "
              "whose extent is 2";
  return success();
}

LogicalResult CatOp::verify() {
  auto one = cast<RankedTensorType>(getA().getType());
  auto both = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> shape(one.getShape());
  if (getAxis() < shape.size())
    shape[getAxis()] *= 2;
  if (getAxis() >= shape.size() ||
      one.getElementType() != both.getElementType() ||
      ArrayRef(shape) != both.getShape())
    return emitOpError("makes ") << both << " of two " << one << " along axis "
                                 << getAxis() << "; its extent doubles";
  return success();
}

Value CatOp::expand(OpBuilder &builder) {
  auto one = cast<RankedTensorType>(getA().getType());
  SmallVector<int64_t> joined(one.getShape()), shape(joined), order;
  joined.push_back(2);
  shape.insert(shape.begin() + getAxis(), 2);
  for (int64_t dim = 0, rank = one.getRank(); dim < rank; ++dim) {
    if (dim == getAxis())
      order.push_back(rank);
    order.push_back(dim);
  }
  Type element = one.getElementType();
  Value pairs =
      JoinOp::create(builder, getLoc(), RankedTensorType::get(joined, element),
                     getA(), getB());
  Value inFront = TransOp::create(
      builder, getLoc(), RankedTensorType::get(shape, element), pairs, order);
  return ReshapeOp::create(builder, getLoc(), getType(), inFront);
}

LogicalResult GatherOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  auto index = cast<RankedTensorType>(getIndex().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (getAxis() >= value.getRank())
    return emitOpError("names axis ") << getAxis() << " of " << value;
  bool fits = index.getRank() == value.getRank();
  for (int64_t dim = 0; fits && dim < value.getRank(); ++dim)
    fits = dim == getAxis() || index.getDimSize(dim) == value.getDimSize(dim);
  if (!fits)
    return emitOpError("takes indices ")
           << index << " of " << value << "; their shapes differ along axis "
           << getAxis() << " at most";
  if (result.getShape() != index.getShape() ||
      result.getElementType() != value.getElementType())
    return emitOpError("makes ") << result << "; it has the shape of its "
                                 << "indices and the elements of its source";
  return success();
}

LogicalResult HistogramOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (result.getRank() != 1)
    return emitOpError("counts into ") << result << "; it has one dimension";
  if (getMask() && cast<RankedTensorType>(getMask().getType()).getShape() !=
                       value.getShape())
    return emitOpError("has a mask ") << getMask().getType() << " for " << value
                                      << "; the shapes are equal";
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError(
        "changes the shape or element type; only the layout may");
  return success();
}
