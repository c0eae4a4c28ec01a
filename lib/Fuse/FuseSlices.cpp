//===- FuseSlices.cpp - greta-fuse: parts of tensors ----------------------===//
//
// tensor.extract_slice and linalg.transpose are views: a kernel that reads one
// gets the whole buffer and reads from an offset, in rows as far apart as those
// of the whole.
//
//   %g = extract_slice %x[0, 0] [M, D] [1, 1]     strides 2D, 1; offset 0
//   %u = extract_slice %x[0, D] [M, D] [1, 1]     strides 2D, 1; offset D
//
// Slices of what is computed become computations of slices where the slices'
// users can then be in one kernel with them: columns of a GEMM are the
// GEMM with these columns of B. So swiglu of the two halves of a GEMM is
// a pair of GEMMs of one A, and queries and keys are roped where they are
// computed. Slices that overlap are left alone, so that nothing is computed
// twice.
//
// A slice on which views have no regular distances is copied.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace greta;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

AffineMap Place::view() const {
  SmallVector<AffineExpr> results(layout.strides.begin(), layout.strides.end());
  results.push_back(layout.offset);
  return AffineMap::get(0, symbols, results, layout.offset.getContext());
}

bool greta::isStrided(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isView(op) &&
         (isa<tensor::ExtractSliceOp, linalg::TransposeOp>(op) ||
          isStrided(op->getOperand(0)));
}

/// Returns the stride of dimensions that are merged into one; none: there is no
/// such stride. Extents of 1 do not count.
static std::optional<AffineExpr> mergedStride(ArrayRef<int64_t> group,
                                              ArrayRef<AffineExpr> extents,
                                              ArrayRef<AffineExpr> strides) {
  AffineExpr one = getAffineConstantExpr(1, extents.front().getContext());
  AffineExpr innermost, outer; // what the next dimension's stride must be
  for (int64_t dim : llvm::reverse(group)) {
    if (extents[dim] == one)
      continue;
    if (innermost && strides[dim] != outer)
      return std::nullopt;
    if (!innermost)
      innermost = strides[dim];
    outer = strides[dim] * extents[dim];
  }
  return innermost ? innermost : one;
}

std::optional<Place> greta::placeOf(Value value, const Shapes &shapes) {
  ArrayRef<AffineExpr> extents = shapes.at(value).getResults();
  MLIRContext *context = value.getContext();
  Operation *op = value.getDefiningOp();
  if (!op || !isView(op))
    return Place{value, TensorLayout::contiguous(extents, context),
                 shapes.at(value).getNumSymbols()};
  std::optional<Place> place = placeOf(op->getOperand(0), shapes);
  if (!place)
    return std::nullopt;
  ArrayRef<AffineExpr> from = shapes.at(op->getOperand(0)).getResults();
  SmallVector<AffineExpr, 4> strides;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    for (auto [offset, stride] :
         llvm::zip(slice.getStaticOffsets(), place->layout.strides))
      place->layout.offset = place->layout.offset + stride * offset;
    return place;
  }
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    for (int64_t from : transpose.getPermutation())
      strides.push_back(place->layout.strides[from]);
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    strides.resize(extents.size());
    for (auto [dim, group] :
         llvm::enumerate(expand.getReassociationIndices())) {
      AffineExpr stride = place->layout.strides[dim];
      for (int64_t part : llvm::reverse(group)) {
        strides[part] = stride;
        stride = stride * extents[part];
      }
    }
    // A tensor<1xT> as one of more dimensions, all of extent 1.
    for (AffineExpr &stride : strides)
      if (!stride)
        stride = getAffineConstantExpr(1, context);
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      std::optional<AffineExpr> stride =
          mergedStride(group, from, place->layout.strides);
      if (!stride)
        return std::nullopt;
      strides.push_back(*stride);
    }
    AffineExpr one = getAffineConstantExpr(1, context);
    if (!strides.empty() && strides.back() != one)
      return std::nullopt;
  } else {
    return place;
  }
  place->layout.strides = std::move(strides);
  return place;
}

LogicalResult greta::checkSlice(tensor::ExtractSliceOp slice,
                                const Shapes &shapes) {
  if (!llvm::all_of(slice.getStaticStrides(), [](int64_t n) { return n == 1; }))
    return slice.emitOpError(
        "has strides other than 1; make the step a dimension with "
        "tensor.expand_shape and take a slice of that");
  if (llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic))
    return slice.emitOpError("begins where a kernel cannot know; give it a "
                             "constant offset, or pass the slice as an "
                             "argument");
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  AffineMap from = shapes.at(slice.getSource());
  AffineMap to = shapes.at(slice.getResult());
  unsigned next = 0;
  for (auto [dim, size] : llvm::enumerate(slice.getSourceType().getShape())) {
    bool isWhole = !dropped.test(dim) && slice.getStaticOffsets()[dim] == 0 &&
                   from.getResult(dim) == to.getResult(next);
    next += !dropped.test(dim);
    if (ShapedType::isDynamic(size) && !isWhole)
      return slice.emitOpError("takes a part of dimension ")
             << dim
             << ", whose extent is dynamic; take all of it, or give its "
                "extent in the type";
    if (!ShapedType::isDynamic(size) &&
        ShapedType::isDynamic(slice.getStaticSizes()[dim]))
      return slice.emitOpError("takes a dynamic part of dimension ")
             << dim << "; give the size in the type";
  }
  return success();
}

/// Rows are read as neighbours but by ops that are alone.
LogicalResult greta::checkTranspose(linalg::TransposeOp transpose) {
  ArrayRef<int64_t> order = transpose.getPermutation();
  if (order.empty() || order.back() == int64_t(order.size()) - 1)
    return success();
  return transpose.emitOpError("moves the last dimension, whose elements "
                               "kernels read as neighbours; leave it where it "
                               "is, or say 'transpose_a' or 'transpose_b' of "
                               "a GEMM");
}

//===----------------------------------------------------------------------===//
// Slices of what is computed
//===----------------------------------------------------------------------===//

namespace {
/// Offset and size per dimension; a size of kDynamic is the whole dimension.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  static Box of(tensor::ExtractSliceOp slice) {
    return {SmallVector<int64_t>(slice.getStaticOffsets()),
            SmallVector<int64_t>(slice.getType().getShape())};
  }
  static Box whole(Value value) {
    ArrayRef<int64_t> sizes = typeOf(value).getShape();
    return {SmallVector<int64_t>(sizes.size(), 0), SmallVector<int64_t>(sizes)};
  }
  void set(int64_t dim, const Box &other, int64_t from) {
    offsets[dim] = other.offsets[from];
    sizes[dim] = other.sizes[from];
  }
  bool isWhole(unsigned dim, RankedTensorType of) const {
    return sizes[dim] == of.getDimSize(dim);
  }
  bool meets(const Box &other) const {
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      if (!ShapedType::isDynamic(sizes[dim]) &&
          (offsets[dim] + sizes[dim] <= other.offsets[dim] ||
           other.offsets[dim] + other.sizes[dim] <= offsets[dim]))
        return false;
    return true;
  }
};

class SliceMover {
public:
  SliceMover(func::FuncOp function, Shapes &shapes)
      : function(function), shapes(shapes) {}
  void run();

private:
  AffineMap shapeOf(Value value, const Box &box);
  Value sliceOf(OpBuilder &builder, Value value, const Box &box);
  void erase(tensor::ExtractSliceOp slice);
  void dropDimensions(tensor::ExtractSliceOp slice);
  void moveBelowView(tensor::ExtractSliceOp slice);
  bool isWorthMoving(Operation *op);
  Value computeSlice(OpBuilder &builder, Operation *op, const Box &box);
  void moveAbove(Operation *op);
  void copyUnder(Operation *op);

  template <typename Op> SmallVector<Op> all() {
    return llvm::to_vector(function.getBody().front().getOps<Op>());
  }

  func::FuncOp function;
  Shapes &shapes;
  llvm::SmallPtrSet<Operation *, 8> made; // slices, no two the same
};
} // namespace

/// Returns the extents of the part of `value` in `box`.
AffineMap SliceMover::shapeOf(Value value, const Box &box) {
  AffineMap whole = shapes.at(value);
  SmallVector<AffineExpr> extents(whole.getResults());
  for (auto [extent, size] : llvm::zip(extents, box.sizes))
    if (!ShapedType::isDynamic(size))
      extent = getAffineConstantExpr(size, value.getContext());
  return AffineMap::get(0, whole.getNumSymbols(), extents, value.getContext());
}

/// Returns the part of `value` in `box`. Equal parts are one op.
Value SliceMover::sliceOf(OpBuilder &builder, Value value, const Box &box) {
  RankedTensorType type = typeOf(value);
  if (type.getShape() == ArrayRef(box.sizes))
    return value;
  if (auto inner = value.getDefiningOp<tensor::ExtractSliceOp>();
      inner && inner.getDroppedDims().none()) {
    Box sum = box;
    for (auto [offset, more] : llvm::zip(sum.offsets, inner.getStaticOffsets()))
      offset += more;
    return sliceOf(builder, inner.getSource(), sum);
  }
  for (Operation *user : value.getUsers())
    if (made.contains(user)) {
      auto known = cast<tensor::ExtractSliceOp>(user);
      if (known.getStaticOffsets() == ArrayRef(box.offsets) &&
          known.getType().getShape() == ArrayRef(box.sizes))
        return known;
    }
  RankedTensorType result = type.clone(box.sizes);
  AffineMap shape = shapeOf(value, box);
  Location loc = value.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  auto slice = tensor::ExtractSliceOp::create(
      builder, loc, result, value,
      getAsIndexOpFoldResult(builder.getContext(), box.offsets),
      sizesOf(builder, loc, function, result, shape),
      SmallVector<OpFoldResult>(box.sizes.size(), builder.getIndexAttr(1)));
  made.insert(slice);
  return shapes.note(slice, shape);
}

void SliceMover::erase(tensor::ExtractSliceOp slice) {
  made.erase(slice);
  slice.erase();
}

/// Gives a slice the rank of its source; a view behind it drops dimensions.
void SliceMover::dropDimensions(tensor::ExtractSliceOp slice) {
  OpBuilder builder(slice);
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  Box box{SmallVector<int64_t>(slice.getStaticOffsets()),
          SmallVector<int64_t>(slice.getStaticSizes())};
  Value part = sliceOf(builder, slice.getSource(), box);
  if (dropped.any()) {
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices open;
    for (unsigned dim = 0; dim < dropped.size(); ++dim) {
      open.push_back(dim);
      if (dropped.test(dim))
        continue;
      groups.push_back(std::exchange(open, {}));
    }
    if (!groups.empty())
      llvm::append_range(groups.back(), open);
    part =
        shapes.note(tensor::CollapseShapeOp::create(
                        builder, slice.getLoc(), slice.getType(), part, groups),
                    shapes.at(slice.getResult()));
  }
  slice.getResult().replaceAllUsesWith(part);
  erase(slice);
}

/// Moves a slice of an expanded value in front of the expansion, if it takes
/// whole leading parts of expanded dimensions.
void SliceMover::moveBelowView(tensor::ExtractSliceOp slice) {
  auto expand = slice.getSource().getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand)
    return;
  Box box = Box::of(slice), inner;
  RankedTensorType type = expand.getResultType();
  for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
    int64_t each = 1;
    for (int64_t part : ArrayRef(group).drop_front()) {
      if (!box.isWhole(part, type))
        return;
      each *= type.getDimSize(part);
    }
    bool isWhole = box.isWhole(group.front(), type);
    if (!isWhole && llvm::any_of(group, [&](int64_t part) {
          return type.isDynamicDim(part);
        }))
      return;
    inner.offsets.push_back(isWhole ? 0 : box.offsets[group.front()] * each);
    inner.sizes.push_back(isWhole ? expand.getSrcType().getDimSize(dim)
                                  : box.sizes[group.front()] * each);
  }
  OpBuilder builder(slice);
  Value part = sliceOf(builder, expand.getSrc(), inner);
  Value view = tensor::ExpandShapeOp::create(
      builder, slice.getLoc(), slice.getType(), part,
      expand.getReassociationIndices(),
      sizesOf(builder, slice.getLoc(), function, slice.getType(),
              shapes.at(slice.getResult())));
  slice.getResult().replaceAllUsesWith(
      shapes.note(view, shapes.at(slice.getResult())));
  erase(slice);
  if (expand->use_empty())
    expand.erase();
}

/// Whether some user of the value, or of a view of it, can be in its kernel.
static bool hasUserToFuse(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isView(user))
      return hasUserToFuse(user->getResult(0));
    return isElementwise(user) || isa<SwigluOp, RopeOp, func::ReturnOp>(user);
  });
}

/// Whether only parts of a result that do not overlap are used.
bool SliceMover::isWorthMoving(Operation *op) {
  Value result = op->getResult(0);
  RankedTensorType type = typeOf(result);
  SmallVector<Box> boxes;
  bool fuses = false;
  for (Operation *user : result.getUsers()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      return false;
    boxes.push_back(Box::of(slice));
    fuses |= hasUserToFuse(slice.getResult());
    for (const Box &other : ArrayRef(boxes).drop_back())
      if (other.meets(boxes.back()))
        return false;
    // Weights are packed along K, and rows may share scales.
    if (auto dequant = dyn_cast<DequantOp>(op);
        dequant &&
        (!boxes.back().isWhole(1, type) || dequant.getRow().scaleRows > 1 ||
         dequant.getRow().isInterleaved))
      return false;
    // Rows of a grouped GEMM are in groups, and packed weights of all groups
    // in one matrix.
    if (auto matmul = dyn_cast<MatmulOp>(op);
        matmul && matmul.getOffsets() &&
        (!boxes.back().isWhole(0, type) ||
         matmul.getB().getType().getRank() == 2))
      return false;
  }
  if (boxes.size() < 2)
    return !boxes.empty();
  // Rows of a GEMM can as well be computed together.
  if (auto matmul = dyn_cast<MatmulOp>(op))
    for (unsigned dim = 0; dim + 1 < type.getRank(); ++dim)
      for (const Box &box : boxes)
        fuses &= box.isWhole(dim, type);
  return fuses || isa<DequantOp>(op);
}

/// Computes the part of `op`'s result in `box` from slices of its operands.
Value SliceMover::computeSlice(OpBuilder &builder, Operation *op,
                               const Box &box) {
  Value result = op->getResult(0);
  RankedTensorType type = typeOf(result).clone(box.sizes);
  AffineMap shape = shapeOf(result, box);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return shapes.note(
        arith::ConstantOp::create(
            builder, op->getLoc(),
            cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type)),
        shape);
  auto parts = llvm::map_to_vector(op->getOperands(), Box::whole);
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    Box &a = parts[0], &b = parts[1];
    int64_t batch = matmul.getBatchRank();
    for (int64_t dim = 0, ofB = matmul.getRankWithoutA(); dim < batch; ++dim) {
      if (dim >= ofB)
        a.set(dim - ofB, box, dim);
      if (matmul.hasBatchedB())
        b.set(dim, box, dim);
    }
    a.set(matmul.dimM(), box, batch);
    b.set(matmul.dimN(), box, batch + 1);
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      parts[0].set(i, box, dim);
  } else if (isa<DequantOp>(op)) {
    for (Box &part : parts)
      part.set(0, box, 0);
  } else {
    llvm::fill(parts, box);
  }
  Operation *clone = builder.clone(*op);
  for (auto [operand, part] : llvm::zip(clone->getOpOperands(), parts))
    operand.set(sliceOf(builder, operand.get(), part));
  clone->getResult(0).setType(type);
  return shapes.note(clone->getResult(0), shape);
}

void SliceMover::moveAbove(Operation *op) {
  bool moves = isa<MatmulOp, DequantOp>(op) || isElementwise(op);
  if (!isTransparent(op) && !(moves && isWorthMoving(op)))
    return;
  SmallVector<tensor::ExtractSliceOp> slices;
  for (Operation *user : op->getResult(0).getUsers())
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user))
      slices.push_back(slice);
  OpBuilder builder(op);
  for (tensor::ExtractSliceOp slice : llvm::reverse(slices)) {
    slice.getResult().replaceAllUsesWith(
        computeSlice(builder, op, Box::of(slice)));
    erase(slice);
  }
  if (op->use_empty())
    op->erase();
}

/// Copies the source of a view whose elements have no regular distances.
void SliceMover::copyUnder(Operation *op) {
  Value source = op->getOperand(0);
  if (!isStrided(source) || placeOf(op->getResult(0), shapes))
    return;
  OpBuilder builder(op);
  op->setOperand(0, shapes.copy(builder, op->getLoc(), source));
}

void SliceMover::run() {
  for (auto slice : all<tensor::ExtractSliceOp>())
    dropDimensions(slice);
  auto slices = all<tensor::ExtractSliceOp>();
  for (tensor::ExtractSliceOp slice : llvm::reverse(slices))
    moveBelowView(slice);
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    if (op.getNumResults() == 1 &&
        isa<RankedTensorType>(op.getResult(0).getType()))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (!isView(op))
      moveAbove(op);
  for (auto collapse : all<tensor::CollapseShapeOp>())
    copyUnder(collapse);
}

void greta::normalizeSlices(func::FuncOp function, Shapes &shapes) {
  if (llvm::none_of(function.getBody().front(),
                    llvm::IsaPred<tensor::ExtractSliceOp, linalg::TransposeOp>))
    return;
  // Sizes of what is computed would be users of it.
  for (auto dim :
       llvm::to_vector(function.getBody().front().getOps<tensor::DimOp>())) {
    if (isa<BlockArgument>(dim.getSource()) || !dim.getConstantIndex())
      continue;
    OpBuilder builder(dim);
    AffineMap shape = shapes.at(dim.getSource());
    int64_t at = *dim.getConstantIndex();
    auto type = RankedTensorType::get({ShapedType::kDynamic},
                                      typeOf(dim.getSource()).getElementType());
    OpFoldResult size =
        sizesOf(builder, dim.getLoc(), function, type, shape.getSubMap(at))
            .front();
    dim.getResult().replaceAllUsesWith(cast<Value>(size));
    dim.erase();
  }
  SliceMover(function, shapes).run();
}
