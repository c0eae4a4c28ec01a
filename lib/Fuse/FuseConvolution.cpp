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
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;

/// The dimensions of an image's positions are one, its channels another.
static const SmallVector<ReassociationIndices, 2> &positionsOfImage() {
  static const SmallVector<ReassociationIndices, 2> groups = {{0, 1, 2}, {3}};
  return groups;
}

/// The type of a view follows from the image's type, not from what is known of
/// its extents.
static int64_t rowsOf(RankedTensorType image) {
  ArrayRef<int64_t> positions = image.getShape().take_front(3);
  return ShapedType::isDynamicShape(positions)
             ? ShapedType::kDynamic
             : ShapedType::getNumElements(positions);
}

namespace {
class ConvolutionRewriter {
public:
  ConvolutionRewriter(func::FuncOp function, Shapes &shapes)
      : function(function), shapes(shapes),
        b(function.getLoc(), function.getContext()) {}
  LogicalResult run();

private:
  LogicalResult rewrite(Conv2dOp op);
  llvm::SmallDenseSet<Operation *> workOnImages();
  void moveToRows(Operation *op);
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
  Value asRows(Value value);
  Value patchesOf(Conv2dOp op, AffineExpr rows);
  Value gemmOf(Conv2dOp op, AffineExpr rows);

  func::FuncOp function;
  Shapes &shapes;
  ImplicitLocOpBuilder b;
  unsigned symbols = 0;
  /// Values of images whose rows are computed.
  llvm::SmallDenseSet<Value> images;
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

/// The elements under the taps at each position; with groups, those of each
/// group.
Value ConvolutionRewriter::patchesOf(Conv2dOp op, AffineExpr rows) {
  Value x = op.getX();
  int64_t taps = op.kernelExtent(0) * op.kernelExtent(1);
  bool isWhole = taps == 1 && op.getGroups() == 1;
  for (unsigned dim : {0u, 1u})
    isWhole &= op.strideOf(dim) == 1 && op.paddingBefore(dim) == 0 &&
               op.paddingBehind(dim) == 0;
  if (isWhole)
    return collapsed(x, positionsOfImage());
  int64_t depth = taps * op.getW().getType().getDimSize(3);
  SmallVector<int64_t> shape = {rowsOf(op.getType()), depth};
  SmallVector<AffineExpr> extents = {rows, number(depth)};
  if (op.getGroups() > 1) {
    shape.insert(shape.begin(), op.getGroups());
    extents.insert(extents.begin(), number(op.getGroups()));
  }
  return noted(PatchesOp::create(
                   b, typeOf(x).clone(shape), x,
                   b.getI64ArrayAttr({op.kernelExtent(0), op.kernelExtent(1)}),
                   op.getStrides(), op.getPadding(), op.getDilations()),
               extents);
}

/// [B * Ho * Wo, KO], with groups [groups, B * Ho * Wo, KO / groups].
Value ConvolutionRewriter::gemmOf(Conv2dOp op, AffineExpr rows) {
  int64_t groups = op.getGroups();
  Value patches = patchesOf(op, rows), w = op.getW();
  RankedTensorType ofW = typeOf(w);
  int64_t outputs = ofW.getDimSize(0) / groups;
  if (groups > 1) {
    SmallVector<int64_t> shape = {groups, outputs};
    llvm::append_range(shape, ofW.getShape().drop_front());
    SmallVector<AffineExpr> extents =
        llvm::map_to_vector(shape, [&](int64_t size) { return number(size); });
    w = expanded(w, ofW.clone(shape), extents, {{0, 1}, {2}, {3}, {4}});
    w = collapsed(w, {{0}, {1}, {2, 3, 4}});
  } else {
    w = collapsed(w, {{0}, {1, 2, 3}});
  }
  SmallVector<int64_t> shape(typeOf(patches).getShape());
  shape.back() = outputs;
  SmallVector<AffineExpr> extents(extentsOf(patches));
  extents.back() = number(outputs);
  // The bias is added to the sums.
  Type element = op.getBias() ? op.getSumType() : op.getType().getElementType();
  auto gemm = MatmulOp::create(b, RankedTensorType::get(shape, element),
                               patches, w, /*offsets=*/Value(),
                               /*transpose_a=*/false, /*transpose_b=*/true,
                               /*precision=*/nullptr);
  gemm->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  Value sums = noted(gemm, extents);
  if (!op.getBias())
    return sums;
  Value bias = op.getBias();
  SmallVector<int64_t> along{int64_t(shape.size()) - 1};
  if (groups > 1) {
    along.insert(along.begin(), 0);
    bias = expanded(bias, typeOf(bias).clone({groups, outputs}),
                    {number(groups), number(outputs)}, {{0, 1}});
  }
  bias = noted(
      BroadcastOp::create(b, typeOf(sums).clone(typeOf(bias).getElementType()),
                          bias, along),
      extents);
  if (typeOf(bias) != typeOf(sums))
    bias = noted(arith::ExtFOp::create(b, typeOf(sums), bias), extents);
  sums = isa<FloatType>(element)
             ? noted(arith::AddFOp::create(b, sums, bias), extents)
             : noted(arith::AddIOp::create(b, sums, bias), extents);
  Type rounded = op.getType().getElementType();
  if (rounded == element)
    return sums;
  return noted(arith::TruncFOp::create(b, typeOf(sums).clone(rounded), sums),
               extents);
}

LogicalResult ConvolutionRewriter::rewrite(Conv2dOp op) {
  if (op.hasChannelsFirst())
    return op.emitOpError("has no kernel for the layout \"nchw\"; take "
                          "\"nhwc\", or compile for the target 'host'");
  b.setInsertionPoint(op);
  b.setLoc(op.getLoc());
  Value result = op.getResult();
  symbols = shapes.at(result).getNumSymbols();
  SmallVector<AffineExpr> extents(extentsOf(result));
  AffineExpr rows = number(1) * extents[0] * extents[1] * extents[2];
  Value made = gemmOf(op, rows);
  if (int64_t groups = op.getGroups(); groups > 1) {
    // The copy has the positions first.
    RankedTensorType type = typeOf(made);
    SmallVector<int64_t> shape = {type.getDimSize(1), groups,
                                  type.getDimSize(2)};
    SmallVector<AffineExpr> turned = {rows, number(groups), number(shape[2])};
    RankedTensorType turnedType = type.clone(shape);
    AffineMap map = AffineMap::get(0, symbols, turned, b.getContext());
    Value empty =
        noted(tensor::EmptyOp::create(
                  b, sizesOf(b, b.getLoc(), function, turnedType, map),
                  type.getElementType()),
              turned);
    constexpr int64_t order[] = {1, 0, 2};
    made =
        noted(linalg::TransposeOp::create(b, made, empty, order)->getResult(0),
              turned);
    made = noted(BroadcastOp::create(b, turnedType, made, identityMapping(3)),
                 turned);
    made = collapsed(made, {{0}, {1, 2}});
  }
  made = expanded(made, op.getType(), extents, positionsOfImage());
  images.insert(made);
  result.replaceAllUsesWith(made);
  op.erase();
  return success();
}

/// An operand of work on images, as rows.
Value ConvolutionRewriter::asRows(Value value) {
  Operation *op = value.getDefiningOp();
  if (images.contains(value))
    return op->getOperand(0);
  Type element = typeOf(value).getElementType();
  ArrayRef<AffineExpr> image = extentsOf(value);
  SmallVector<AffineExpr> extents = {number(1) * image[0] * image[1] * image[2],
                                     image[3]};
  auto type = RankedTensorType::get(
      {rowsOf(typeOf(value)), typeOf(value).getDimSize(3)}, element);
  auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
  if (broadcast && broadcast.getDims().empty())
    return noted(
        BroadcastOp::create(b, type, broadcast.getValue(), ArrayRef<int64_t>{}),
        extents);
  if (broadcast && broadcast.getDims() == ArrayRef<int64_t>{3})
    return noted(BroadcastOp::create(b, type, broadcast.getValue(),
                                     ArrayRef<int64_t>{1}),
                 extents);
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
      constant && type.hasStaticShape())
    return noted(
        arith::ConstantOp::create(
            b, cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type)),
        extents);
  return collapsed(value, positionsOfImage());
}

void ConvolutionRewriter::moveToRows(Operation *op) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  Value result = op->getResult(0);
  symbols = shapes.at(result).getNumSymbols();
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, asRows(operand));
  Operation *clone = b.clone(*op, operands);
  Value rows = clone->getOperand(0);
  clone->getResult(0).setType(
      typeOf(rows).clone(typeOf(result).getElementType()));
  Value made = noted(clone->getResult(0), extentsOf(rows));
  SmallVector<AffineExpr> extents(extentsOf(result));
  made = expanded(made, typeOf(result), extents, positionsOfImage());
  images.insert(made);
  result.replaceAllUsesWith(made);
  op->erase();
}

/// Returns the elementwise work on results of convolutions, and what is
/// computed for it alone: a residual that is converted, say.
llvm::SmallDenseSet<Operation *> ConvolutionRewriter::workOnImages() {
  llvm::SmallDenseSet<Operation *> work;
  Block &block = function.getBody().front();
  auto isMovable = [](Operation &op) {
    return isElementwise(&op) && !isTransparent(&op);
  };
  for (Operation &op : block)
    if (isMovable(op) && llvm::any_of(op.getOperands(), [&](Value v) {
          Operation *from = v.getDefiningOp();
          return isa_and_nonnull<Conv2dOp>(from) || work.contains(from);
        }))
      work.insert(&op);
  for (Operation &op : llvm::reverse(block))
    if (isMovable(op) && !op.use_empty() &&
        llvm::all_of(op.getUsers(),
                     [&](Operation *user) { return work.contains(user); }))
      work.insert(&op);
  return work;
}

LogicalResult ConvolutionRewriter::run() {
  llvm::SmallDenseSet<Operation *> work = workOnImages();
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto conv = dyn_cast<Conv2dOp>(op)) {
      if (failed(rewrite(conv)))
        return failure();
    } else if (work.contains(&op)) {
      moveToRows(&op);
    }
  }
  return success();
}

LogicalResult greta::makeConvolutions(func::FuncOp function, Shapes &shapes) {
  return ConvolutionRewriter(function, shapes).run();
}
