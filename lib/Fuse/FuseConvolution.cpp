//===- FuseConvolution.cpp - greta-fuse, step 1: convolutions -------------===//
//
// greta.conv2d becomes the GEMM of its patches and its weights, of which a view
// has the convolution's shape:
//
//   p = patches x                       [B * Ho * Wo, R * S * C]
//   g = matmul p, w as [KO, R * S * C]  [B * Ho * Wo, KO]
//   y = expand g                        [B, Ho, Wo, KO]
//
// One tap that moves by one element sees `x` itself. Elementwise work on y is
// done on g, so that it becomes part of the kernel: its other operands are
// viewed as rows. With groups the GEMM has a batch of them, and a copy puts its
// results in order.
//
// With channels first, each image and each group has a GEMM, whose results are
// in order as they are:
//
//   p = patches x                                [B, G, C / G * R * S, Ho * Wo]
//   g = matmul w as [G, KO / G, C / G * R * S], p      [B, G, KO / G, Ho * Wo]
//   y = expand (collapse g)                                   [B, KO, Ho, Wo]
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;

/// The dimensions that are one in an image's rows: those of positions or, with
/// channels first, of an image's positions.
static ArrayRef<ReassociationIndices> positionsOfImage(bool channelsFirst) {
  static const SmallVector<ReassociationIndices, 2> last = {{0, 1, 2}, {3}};
  static const SmallVector<ReassociationIndices, 3> first = {{0}, {1}, {2, 3}};
  return channelsFirst ? ArrayRef(first) : ArrayRef(last);
}

/// With channels first, those of rows are in groups.
static ArrayRef<ReassociationIndices> channelsOfRows() {
  static const SmallVector<ReassociationIndices, 3> groups = {{0}, {1, 2}, {3}};
  return groups;
}

/// How many groups of channels the rows of a result are in; 0: they are a
/// matrix, with channels last.
static int64_t groupsOfRows(Conv2dOp op) {
  return op.hasChannelsFirst() ? op.getGroups() : 0;
}

/// The shape of a view follows from the image's type, not from what is known of
/// its extents.
static SmallVector<int64_t> rowShapeOf(RankedTensorType image, int64_t groups) {
  auto product = [](ArrayRef<int64_t> shape) {
    return ShapedType::isDynamicShape(shape)
               ? ShapedType::kDynamic
               : ShapedType::getNumElements(shape);
  };
  ArrayRef<int64_t> shape = image.getShape();
  if (groups == 0)
    return {product(shape.take_front(3)), shape[3]};
  return {shape[0], groups, shape[1] / groups, product(shape.drop_front(2))};
}

namespace {
class ConvolutionRewriter {
public:
  ConvolutionRewriter(func::FuncOp function, Shapes &shapes)
      : function(function), shapes(shapes),
        b(function.getLoc(), function.getContext()) {}
  void run();

private:
  void rewrite(Conv2dOp op);
  llvm::SmallDenseMap<Operation *, int64_t> workOnImages();
  void moveToRows(Operation *op, int64_t groups);
  Value noted(Value made, ArrayRef<AffineExpr> extents) {
    return shapes.note(made,
                       AffineMap::get(0, symbols, extents, b.getContext()));
  }
  ArrayRef<AffineExpr> extentsOf(Value value) {
    return shapes.at(value).getResults();
  }
  RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }
  AffineExpr number(int64_t value) { return b.getAffineConstantExpr(value); }
  Value collapsed(Value value, ArrayRef<ReassociationIndices> groups);
  Value expanded(Value value, RankedTensorType type,
                 ArrayRef<AffineExpr> extents,
                 ArrayRef<ReassociationIndices> groups);
  SmallVector<AffineExpr> rowExtentsOf(Value image, int64_t groups);
  Value inGroups(Value channels, int64_t groups);
  Value viewedAsRows(Value image, int64_t groups);
  Value viewedAsImage(Value rows, RankedTensorType type,
                      ArrayRef<AffineExpr> extents);
  Value asRows(Value value, int64_t groups);
  Value patchesOf(Conv2dOp op);
  Value weightsOf(Conv2dOp op);
  Value gemmOf(Conv2dOp op);
  Value withBias(Conv2dOp op, Value sums);
  Value groupsInOrder(Value sums);

  func::FuncOp function;
  Shapes &shapes;
  ImplicitLocOpBuilder b;
  unsigned symbols = 0;
  /// Images whose rows are computed, and these: a matrix or, with channels
  /// first, [B, groups, KO / groups, Ho * Wo].
  llvm::DenseMap<Value, Value> rowsOf;
};
} // namespace

Value ConvolutionRewriter::collapsed(Value value,
                                     ArrayRef<ReassociationIndices> groups) {
  SmallVector<AffineExpr> extents;
  for (const ReassociationIndices &group : groups) {
    AffineExpr product = number(1);
    for (int64_t dim : group)
      product = product * extentsOf(value)[dim];
    extents.push_back(product);
  }
  return noted(tensor::CollapseShapeOp::create(b, value, groups), extents);
}

Value ConvolutionRewriter::expanded(Value value, RankedTensorType type,
                                    ArrayRef<AffineExpr> extents,
                                    ArrayRef<ReassociationIndices> groups) {
  AffineMap shape = AffineMap::get(0, symbols, extents, b.getContext());
  return noted(tensor::ExpandShapeOp::create(
                   b, type, value, groups,
                   sizesOf(b, b.getLoc(), function, type, shape)),
               extents);
}

SmallVector<AffineExpr> ConvolutionRewriter::rowExtentsOf(Value image,
                                                          int64_t groups) {
  ArrayRef<AffineExpr> extents = extentsOf(image);
  if (groups == 0)
    return {number(1) * extents[0] * extents[1] * extents[2], extents[3]};
  return {extents[0], number(groups),
          number(typeOf(image).getDimSize(1) / groups),
          number(1) * extents[2] * extents[3]};
}

/// A number for each channel as [groups, channels of a group].
Value ConvolutionRewriter::inGroups(Value channels, int64_t groups) {
  int64_t each = typeOf(channels).getDimSize(0) / groups;
  return expanded(channels, typeOf(channels).clone({groups, each}),
                  {number(groups), number(each)}, {{0, 1}});
}

Value ConvolutionRewriter::viewedAsRows(Value image, int64_t groups) {
  Value rows = collapsed(image, positionsOfImage(groups > 0));
  if (groups == 0)
    return rows;
  return expanded(rows, typeOf(rows).clone(rowShapeOf(typeOf(image), groups)),
                  rowExtentsOf(image, groups), channelsOfRows());
}

Value ConvolutionRewriter::viewedAsImage(Value rows, RankedTensorType type,
                                         ArrayRef<AffineExpr> extents) {
  bool channelsFirst = typeOf(rows).getRank() == 4;
  if (channelsFirst)
    rows = collapsed(rows, channelsOfRows());
  return expanded(rows, type, extents, positionsOfImage(channelsFirst));
}

/// The elements under the taps at each position; with groups, those of each
/// group.
Value ConvolutionRewriter::patchesOf(Conv2dOp op) {
  Value x = op.getX();
  const int64_t groups = op.getGroups(), ofRows = groupsOfRows(op);
  int64_t taps = op.kernelExtent(0) * op.kernelExtent(1);
  bool isWhole = taps == 1 && (groups == 1 || ofRows);
  for (unsigned dim : {0u, 1u})
    isWhole &= op.strideOf(dim) == 1 && op.paddingBefore(dim) == 0 &&
               op.paddingBehind(dim) == 0;
  if (isWhole)
    return viewedAsRows(x, ofRows);
  // Rows of the result, with what taps see in place of channels.
  int64_t depth = taps * op.getW().getType().getDimSize(op.channelDim());
  SmallVector<int64_t> shape = rowShapeOf(op.getType(), ofRows);
  SmallVector<AffineExpr> extents = rowExtentsOf(op.getResult(), ofRows);
  const unsigned channels = ofRows ? 2 : 1;
  shape[channels] = depth;
  extents[channels] = number(depth);
  if (groups > 1 && !ofRows) {
    shape.insert(shape.begin(), groups);
    extents.insert(extents.begin(), number(groups));
  }
  return noted(PatchesOp::create(
                   b, typeOf(x).clone(shape), x,
                   b.getI64ArrayAttr({op.kernelExtent(0), op.kernelExtent(1)}),
                   op.getStrides(), op.getPadding(), op.getDilations(),
                   op.getLayoutAttr()),
               extents);
}

/// [KO, K], with groups, or channels first, [groups, KO / groups, K].
Value ConvolutionRewriter::weightsOf(Conv2dOp op) {
  Value w = op.getW();
  RankedTensorType type = typeOf(w);
  int64_t groups = op.getGroups();
  if (groups == 1 && !op.hasChannelsFirst())
    return collapsed(w, {{0}, {1, 2, 3}});
  SmallVector<int64_t> shape = {groups, type.getDimSize(0) / groups};
  llvm::append_range(shape, type.getShape().drop_front());
  SmallVector<AffineExpr> extents =
      llvm::map_to_vector(shape, [&](int64_t size) { return number(size); });
  w = expanded(w, type.clone(shape), extents, {{0, 1}, {2}, {3}, {4}});
  return collapsed(w, {{0}, {1}, {2, 3, 4}});
}

/// Adds the bias to the sums, and rounds them.
Value ConvolutionRewriter::withBias(Conv2dOp op, Value sums) {
  if (!op.getBias())
    return sums;
  Value bias = op.getBias();
  SmallVector<AffineExpr> extents(extentsOf(sums));
  SmallVector<int64_t> along = {1};
  if (extents.size() > 2) {
    along = op.hasChannelsFirst() ? SmallVector<int64_t>{1, 2}
                                  : SmallVector<int64_t>{0, 2};
    bias = inGroups(bias, op.getGroups());
  }
  bias = noted(
      BroadcastOp::create(b, typeOf(sums).clone(typeOf(bias).getElementType()),
                          bias, along),
      extents);
  if (typeOf(bias) != typeOf(sums))
    bias = noted(arith::ExtFOp::create(b, typeOf(sums), bias), extents);
  bool isFloat = isa<FloatType>(typeOf(sums).getElementType());
  sums = isFloat ? noted(arith::AddFOp::create(b, sums, bias), extents)
                 : noted(arith::AddIOp::create(b, sums, bias), extents);
  Type rounded = op.getType().getElementType();
  if (rounded == typeOf(sums).getElementType())
    return sums;
  return noted(arith::TruncFOp::create(b, typeOf(sums).clone(rounded), sums),
               extents);
}

/// [B * Ho * Wo, KO], with groups [groups, B * Ho * Wo, KO / groups], with
/// channels first [B, groups, KO / groups, Ho * Wo].
Value ConvolutionRewriter::gemmOf(Conv2dOp op) {
  const bool first = op.hasChannelsFirst();
  Value patches = patchesOf(op), w = weightsOf(op);
  SmallVector<int64_t> shape(typeOf(patches).getShape());
  SmallVector<AffineExpr> extents(extentsOf(patches));
  const unsigned outputs = first ? 2 : shape.size() - 1;
  shape[outputs] = op.getW().getType().getDimSize(0) / op.getGroups();
  extents[outputs] = number(shape[outputs]);
  // The bias is added to the sums.
  Type element = op.getBias() ? op.getSumType() : op.getType().getElementType();
  auto gemm = MatmulOp::create(
      b, RankedTensorType::get(shape, element), first ? w : patches,
      first ? patches : w, /*offsets=*/Value(),
      /*transpose_a=*/false, /*transpose_b=*/!first, /*precision=*/nullptr);
  gemm->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return withBias(op, noted(gemm, extents));
}

/// [groups, rows, columns] as [rows, groups * columns].
Value ConvolutionRewriter::groupsInOrder(Value sums) {
  RankedTensorType type = typeOf(sums);
  // The copy has the positions first.
  RankedTensorType turned =
      type.clone({type.getDimSize(1), type.getDimSize(0), type.getDimSize(2)});
  ArrayRef<AffineExpr> from = extentsOf(sums);
  SmallVector<AffineExpr> extents = {from[1], from[0], from[2]};
  AffineMap map = AffineMap::get(0, symbols, extents, b.getContext());
  Value empty = noted(
      tensor::EmptyOp::create(b, sizesOf(b, b.getLoc(), function, turned, map),
                              type.getElementType()),
      extents);
  constexpr int64_t order[] = {1, 0, 2};
  sums = noted(linalg::TransposeOp::create(b, sums, empty, order)->getResult(0),
               extents);
  sums =
      noted(BroadcastOp::create(b, turned, sums, identityMapping(3)), extents);
  return collapsed(sums, {{0}, {1, 2}});
}

void ConvolutionRewriter::rewrite(Conv2dOp op) {
  b.setInsertionPoint(op);
  b.setLoc(op.getLoc());
  Value result = op.getResult();
  symbols = shapes.at(result).getNumSymbols();
  SmallVector<AffineExpr> extents(extentsOf(result));
  Value rows = gemmOf(op);
  if (op.getGroups() > 1 && !op.hasChannelsFirst())
    rows = groupsInOrder(rows);
  Value made = viewedAsImage(rows, op.getType(), extents);
  rowsOf[made] = rows;
  result.replaceAllUsesWith(made);
  op.erase();
}

/// An operand of work on images, as rows.
Value ConvolutionRewriter::asRows(Value value, int64_t groups) {
  RankedTensorType type =
      typeOf(value).clone(rowShapeOf(typeOf(value), groups));
  // Rows of another layout, or in other groups, are viewed as an image first.
  if (Value rows = rowsOf.lookup(value); rows && typeOf(rows) == type)
    return rows;
  Operation *op = value.getDefiningOp();
  SmallVector<AffineExpr> extents = rowExtentsOf(value, groups);
  auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
  if (broadcast && broadcast.getDims().empty())
    return noted(
        BroadcastOp::create(b, type, broadcast.getValue(), ArrayRef<int64_t>{}),
        extents);
  const int64_t channelDim = groups ? 1 : 3;
  if (broadcast && broadcast.getDims() == ArrayRef<int64_t>{channelDim}) {
    Value channels = broadcast.getValue();
    if (groups)
      return noted(BroadcastOp::create(b, type, inGroups(channels, groups),
                                       ArrayRef<int64_t>{1, 2}),
                   extents);
    return noted(BroadcastOp::create(b, type, channels, ArrayRef<int64_t>{1}),
                 extents);
  }
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
      constant && type.hasStaticShape())
    return noted(
        arith::ConstantOp::create(
            b, cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type)),
        extents);
  return viewedAsRows(value, groups);
}

void ConvolutionRewriter::moveToRows(Operation *op, int64_t groups) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  Value result = op->getResult(0);
  symbols = shapes.at(result).getNumSymbols();
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, asRows(operand, groups));
  Operation *clone = b.clone(*op, operands);
  Value rows = clone->getOperand(0);
  clone->getResult(0).setType(
      typeOf(rows).clone(typeOf(result).getElementType()));
  rows = noted(clone->getResult(0), extentsOf(rows));
  SmallVector<AffineExpr> extents(extentsOf(result));
  Value made = viewedAsImage(rows, typeOf(result), extents);
  rowsOf[made] = rows;
  result.replaceAllUsesWith(made);
  op->erase();
}

/// Returns the elementwise work on results of convolutions, and what is
/// computed for it alone: a residual that is converted, say. Each has the
/// `groupsOfRows` of a convolution.
llvm::SmallDenseMap<Operation *, int64_t> ConvolutionRewriter::workOnImages() {
  llvm::SmallDenseMap<Operation *, int64_t> work;
  Block &block = function.getBody().front();
  auto isMovable = [](Operation &op) {
    return isElementwise(&op) && !isTransparent(&op);
  };
  auto follow = [&](Operation &op, Operation *other) {
    if (auto conv = dyn_cast_or_null<Conv2dOp>(other))
      work.try_emplace(&op, groupsOfRows(conv));
    else if (auto found = work.find(other); found != work.end())
      work.try_emplace(&op, int64_t(found->second));
  };
  for (Operation &op : block)
    if (isMovable(op))
      for (Value operand : op.getOperands())
        follow(op, operand.getDefiningOp());
  for (Operation &op : llvm::reverse(block))
    if (isMovable(op) && !op.use_empty() &&
        llvm::all_of(op.getUsers(),
                     [&](Operation *user) { return work.contains(user); }))
      follow(op, *op.getUsers().begin());
  return work;
}

void ConvolutionRewriter::run() {
  llvm::SmallDenseMap<Operation *, int64_t> work = workOnImages();
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto conv = dyn_cast<Conv2dOp>(op))
      rewrite(conv);
    else if (auto found = work.find(&op); found != work.end())
      moveToRows(&op, found->second);
  }
}

void greta::makeConvolutions(func::FuncOp function, Shapes &shapes) {
  ConvolutionRewriter(function, shapes).run();
}
