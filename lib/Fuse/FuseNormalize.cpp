//===- FuseNormalize.cpp - greta-fuse, step 1 -----------------------------===//
//
// An op that fusion does not understand is reported here, once, so that later
// steps cannot fail. linalg.broadcast, linalg.fill and tensor.splat become
// greta.broadcast, which names no tensor to write to. A result that is an
// argument, a constant, or another result's buffer becomes a copy.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Fuse/Space.h"
#include "greta/Interface/Launches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <numeric>

using namespace mlir;
using namespace greta;

bool greta::isTransparent(Operation *op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return !broadcast.isCopy();
  return isa<arith::ConstantOp>(op);
}

bool greta::isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
             tensor::ExtractSliceOp, linalg::TransposeOp>(op);
}

bool greta::isCompute(Operation *op) {
  return isRowOp(op) || isElementwise(op) || isAlone(op) ||
         isa<GroupedMatmulOp, QuantizeRowsOp, Conv2dOp, AllReduceOp>(op);
}

/// Sizes of tensors: computed on the host side of a launch.
static bool isIndexArithmetic(Operation *op) {
  return op->getNumResults() == 1 && op->getResult(0).getType().isIndex() &&
         isa_and_nonnull<arith::ArithDialect, tensor::TensorDialect>(
             op->getDialect());
}

static LogicalResult checkElementType(Operation *op, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return success();
  Type element = type.getElementType();
  if (isa<Float32Type, Float16Type, BFloat16Type>(element) ||
      isFloat8(element) || element.isSignlessInteger(1) ||
      element.isSignlessInteger(8) || element.isSignlessInteger(32))
    return success();
  return op->emitOpError("has element type ")
         << element
         << ", which no GPU kernel takes; use f32, f16, bf16, i8, i32 or an "
            "8-bit float, or compile for the target 'host'";
}

static LogicalResult checkOp(Operation *op) {
  for (Value value : op->getResults())
    if (failed(checkElementType(op, value)))
      return failure();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = dyn_cast<ElementsAttr>(constant.getValue());
    if (!elements || elements.isSplat())
      return success();
    return op->emitOpError("holds different elements; a kernel's constants are "
                           "splats: pass the data as an argument");
  }
  // This pass makes its own later, each in a GEMM's kernel.
  if (isa<PatchesOp>(op))
    return op->emitOpError("has no kernel of its own; write greta.conv2d, or "
                           "compile for the target 'host'");
  if (isCompute(op) || isView(op) || isIndexArithmetic(op) ||
      isa<func::ReturnOp, tensor::EmptyOp, tensor::SplatOp, linalg::FillOp,
          linalg::BroadcastOp, BroadcastOp>(op))
    return success();
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return checkReduction(reduce);
  return op->emitOpError(
      "has no kernel; write it with greta ops, elementwise arith and math, "
      "linalg.reduce, broadcast and transpose, and tensor.expand_shape, "
      "collapse_shape or extract_slice, or compile for the target 'host'");
}

/// A tensor<T> with a scalar constant's value.
static Value scalarTensor(OpBuilder &builder, Location loc, Value scalar) {
  TypedAttr value;
  matchPattern(scalar, m_Constant(&value));
  auto type = RankedTensorType::get({}, scalar.getType());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, value));
}

static void replaceBroadcasts(func::FuncOp function, Shapes &shapes) {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (!isa<linalg::BroadcastOp, linalg::FillOp, tensor::SplatOp>(op))
      continue;
    OpBuilder builder(&op);
    Value result = op.getResult(0), source;
    SmallVector<int64_t> dims;
    if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op)) {
      source = broadcast.getInput();
      dims = identityMapping(broadcast.getInit().getType().getRank());
      llvm::erase_if(dims, [&](int64_t dim) {
        return llvm::is_contained(broadcast.getDimensions(), dim);
      });
    } else {
      source = scalarTensor(builder, op.getLoc(), op.getOperand(0));
      shapes[source] = AffineMap::get(0, shapes.at(result).getNumSymbols(), {},
                                      op.getContext());
    }
    Value replacement = BroadcastOp::create(builder, op.getLoc(),
                                            result.getType(), source, dims);
    shapes[replacement] = shapes.at(result);
    result.replaceAllUsesWith(replacement);
    op.erase();
  }
}

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static void copyResults(func::FuncOp function, Shapes &shapes) {
  Operation *terminator = function.getBody().front().getTerminator();
  llvm::SmallPtrSet<Value, 4> roots;
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value root = operand.get();
    while (root.getDefiningOp() && isView(root.getDefiningOp()))
      root = root.getDefiningOp()->getOperand(0);
    bool ownBuffer = root.getDefiningOp() && !isStrided(operand.get()) &&
                     !isTransparent(root.getDefiningOp()) &&
                     roots.insert(root).second;
    if (ownBuffer)
      continue;
    operand.set(shapes.copy(builder, terminator->getLoc(), operand.get()));
  }
}

/// A transparent value gets a buffer where only buffers will do: under a view
/// and as operand of a GEMM, a convolution or a sum over ranks, which takes no
/// slice of one either.
static void copyIntoBuffers(func::FuncOp function, Shapes &shapes) {
  for (Operation &op : function.getBody().front()) {
    unsigned numBuffers =
        isAlone(&op) || isa<MatmulOp, PatchesOp, AllReduceOp>(op)
            ? op.getNumOperands()
        : isView(&op) ? 1
                      : 0;
    for (OpOperand &operand : op.getOpOperands().take_front(numBuffers)) {
      Value source = operand.get();
      bool isSlice = isa<AllReduceOp>(op) && isStrided(source);
      if (!isSlice &&
          (!source.getDefiningOp() || !isTransparent(source.getDefiningOp())))
        continue;
      OpBuilder builder(&op);
      operand.set(shapes.copy(builder, op.getLoc(), source));
    }
  }
}

/// Every user of a transparent op has its own, so that clusters can be told
/// apart by their users alone.
static void splitTransparent(func::FuncOp function, Shapes &shapes) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    if (isTransparent(&op) && isa<RankedTensorType>(op.getResult(0).getType()))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    OpBuilder builder(op);
    Value value = op->getResult(0);
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      if (value.hasOneUse())
        break;
      Value clone = builder.clone(*op)->getResult(0);
      shapes[clone] = shapes.at(value);
      use.set(clone);
    }
  }
}

/// A row's elements for every head, or what repeats along the columns as well.
static Value splitBroadcast(OpBuilder &builder, BroadcastOp op,
                            RankedTensorType type, Shapes &shapes) {
  Value row = op.getValue();
  if (!llvm::is_contained(op.getDims(), 1))
    return BroadcastOp::create(builder, op.getLoc(), type, row, op.getDims());
  ArrayRef<int64_t> heads = type.getShape().drop_front();
  auto viewed = RankedTensorType::get(heads, type.getElementType());
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  Value view =
      tensor::ExpandShapeOp::create(builder, op.getLoc(), viewed, row, groups);
  SmallVector<AffineExpr> extents;
  for (int64_t extent : heads)
    extents.push_back(builder.getAffineConstantExpr(extent));
  shapes[view] = AffineMap::get(0, shapes.at(row).getNumSymbols(), extents,
                                builder.getContext());
  return BroadcastOp::create(builder, op.getLoc(), type, view,
                             ArrayRef<int64_t>{1, 2});
}

/// Whether every target has blocks that are whole heads and whole tiles of its
/// instructions.
static bool makesTiles(RopeOp rope) {
  return std::lcm<int64_t>(rope.getX().getType().getDimSize(2), 16) <= 256;
}

bool greta::takesPackedWeights(MatmulOp matmul) {
  // As with any number of rows.
  if (isBatchInvariant(matmul))
    return false;
  constexpr int64_t least = 5, most = 64;
  int64_t rows = matmul.getA().getType().getDimSize(matmul.dimM());
  if (ShapedType::isDynamic(rows))
    rows = expectedRows(matmul);
  return matmul.getB().getDefiningOp<DequantOp>() && rows >= least &&
         rows <= most;
}

/// Whether `value`, which is viewed as heads of `size`, is a GEMM, or
/// elementwise work on one, that nobody else looks at. A GEMM that takes packed
/// weights straight to registers would have too few tiles of whole heads.
static bool isGemmAlone(Value value, int64_t size, bool partsOfHeads) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse())
    return false;
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    if ((takesPackedWeights(matmul) && !partsOfHeads) || matmul.getOffsets())
      return false;
    // Columns that share scales are no heads, and two that lie together are in
    // one half of a head.
    auto dequant = matmul.getB().getDefiningOp<DequantOp>();
    if (dequant && (dequant.getRow().scaleRows > 1 ||
                    size / 2 % dequant.getRow().rowsTogether()))
      return false;
    // Skinny GEMMs compute B themselves, where the columns are no heads.
    Operation *b = matmul.getB().getDefiningOp();
    return !isSkinny(matmul) || !b || !isElementwise(b);
  }
  return isElementwise(op) && llvm::any_of(op->getOperands(), [&](Value from) {
           return isGemmAlone(from, size, partsOfHeads);
         });
}

/// The view of a GEMM as heads becomes part of its kernel: elementwise work
/// in between is done on heads, its other operands are viewed.
static void moveHeads(func::FuncOp function, Shapes &shapes,
                      bool partsOfHeads) {
  SmallVector<tensor::ExpandShapeOp> views;
  function.walk([&](RopeOp rope) {
    auto view = rope.getX().getDefiningOp<tensor::ExpandShapeOp>();
    if (view && view->hasOneUse() && view.getSrcType().getRank() == 2 &&
        view.getResultType().getShape().drop_front().size() == 2 &&
        !ShapedType::isDynamicShape(
            view.getResultType().getShape().drop_front()) &&
        makesTiles(rope) &&
        isGemmAlone(view.getSrc(), view.getResultType().getShape().back(),
                    partsOfHeads))
      views.push_back(view);
  });
  for (tensor::ExpandShapeOp view : views) {
    OpBuilder builder(view);
    Location loc = view.getLoc();
    auto typeOf = [&](Value value) {
      return view.getResultType().clone(getElementTypeOrSelf(value.getType()));
    };
    AffineMap whole = shapes.at(view.getResult());
    int64_t size = view.getResultType().getShape().back();
    std::function<Value(Value)> split = [&](Value value) -> Value {
      Operation *op = value.getDefiningOp();
      bool isAlone = isGemmAlone(value, size, partsOfHeads);
      if (isAlone && isa<MatmulOp>(op))
        return shapes.note(HeadsOp::create(builder, loc, typeOf(value), value),
                           whole);
      if (isAlone) {
        IRMapping operands;
        for (Value operand : op->getOperands())
          operands.map(operand, split(operand));
        Operation *clone = builder.clone(*op, operands);
        clone->getResult(0).setType(typeOf(value));
        return shapes.note(clone->getResult(0), whole);
      }
      auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
      if (constant)
        return shapes.note(arith::ConstantOp::create(
                               builder, loc,
                               cast<SplatElementsAttr>(constant.getValue())
                                   .resizeSplat(typeOf(value))),
                           whole);
      auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
      if (broadcast && !broadcast.isCopy())
        return shapes.note(
            splitBroadcast(builder, broadcast, typeOf(value), shapes), whole);
      return shapes.note(
          tensor::ExpandShapeOp::create(builder, loc, typeOf(value), value,
                                        view.getReassociationIndices(),
                                        view.getMixedOutputShape()),
          whole);
    };
    view.getResult().replaceAllUsesWith(split(view.getSrc()));
    view.erase();
  }
}

/// The operands and results of attention, or of its gradients, that have their
/// tokens first where the op has.
static std::pair<SmallVector<OpOperand *>, ResultRange>
orderedBy(Operation &op) {
  bool isBackward = isa<AttentionBackwardOp>(op);
  SmallVector<OpOperand *> operands;
  for (OpOperand &operand : op.getOpOperands().take_front(isBackward ? 6 : 1))
    if (cast<RankedTensorType>(operand.get().getType()).getRank() == 4)
      operands.push_back(&operand);
  return {operands, op.getResults().take_front(isBackward ? 3 : 1)};
}

/// Sizes that are asked of a value are computed of the arguments'.
static void replaceSizes(func::FuncOp function, Value value, AffineMap shape) {
  auto type = cast<RankedTensorType>(value.getType());
  for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
    auto size = dyn_cast<tensor::DimOp>(user);
    std::optional<int64_t> dim = size ? size.getConstantIndex() : std::nullopt;
    if (!dim)
      continue;
    OpBuilder builder(size);
    OpFoldResult found =
        sizesOf(builder, size.getLoc(), function, type, shape)[*dim];
    size.replaceAllUsesWith(
        getValueOrCreateConstantIndexOp(builder, size.getLoc(), found));
    size.erase();
  }
}

/// A result that is only used transposed to [B, S, H, D] is computed so.
static void storeTokensFirst(func::FuncOp function, Shapes &shapes) {
  constexpr int64_t order[] = {0, 2, 1, 3};
  auto isTranspose = [&](Operation *user) {
    auto transpose = dyn_cast<linalg::TransposeOp>(user);
    return transpose && transpose.getPermutation() == ArrayRef(order);
  };
  auto swapType = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    std::swap(shape[1], shape[2]);
    return type.clone(shape);
  };
  auto swapShape = [&](Value value) {
    AffineMap map = shapes.at(value);
    SmallVector<AffineExpr> extents(map.getResults());
    std::swap(extents[1], extents[2]);
    return AffineMap::get(0, map.getNumSymbols(), extents, map.getContext());
  };
  SmallVector<Operation *> attentions; // whose users are erased
  for (Operation &op : function.getBody().front())
    if (isa<AttentionOp, AttentionBackwardOp, PagedAttentionOp>(op) &&
        !hasTokensFirst(&op))
      attentions.push_back(&op);
  for (Operation *attention : attentions) {
    Operation &op = *attention;
    auto [operands, results] = orderedBy(op);
    for (Value result : results)
      replaceSizes(function, result, shapes.at(result));
    bool isUsed =
        llvm::any_of(results, [](Value result) { return !result.use_empty(); });
    if (!isUsed || !llvm::all_of(results, [&](Value result) {
          return llvm::all_of(result.getUsers(), isTranspose);
        }))
      continue;
    OpBuilder builder(&op);
    for (OpOperand *operand : operands) {
      Value value = operand->get();
      RankedTensorType type = swapType(value);
      AffineMap shape = swapShape(value);
      Value empty = tensor::EmptyOp::create(
          builder, op.getLoc(),
          sizesOf(builder, op.getLoc(), function, type, shape),
          type.getElementType());
      Value turned =
          linalg::TransposeOp::create(builder, op.getLoc(), value, empty, order)
              ->getResult(0);
      shapes[empty] = shapes[turned] = shape;
      operand->set(turned);
    }
    op.setAttr("tokens_first", builder.getUnitAttr());
    for (Value result : results) {
      shapes[result] = swapShape(result);
      result.setType(swapType(result));
      for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
        user->getResult(0).replaceAllUsesWith(result);
        user->erase();
      }
    }
  }
}

/// An update writes to its cache; where that must not change, to a copy.
static void copyUpdatedCaches(Block &block, Shapes &shapes) {
  for (Operation &op : block)
    for (OpResult made : op.getResults()) {
      OpOperand *operand = getUpdated(made);
      if (!operand || updatesInPlace(made))
        continue;
      OpBuilder builder(&op);
      operand->set(shapes.copy(builder, op.getLoc(), operand->get()));
    }
}

/// Gradients of attention in two kernels: that of the queries with delta, and
/// from delta those of keys and values.
static void splitGradients(Block &block, Shapes &shapes) {
  for (auto op : block.getOps<AttentionBackwardOp>()) {
    bool hasDelta = op.getO().getType().getRank() == 3;
    bool hasRows = !op.getDq().use_empty() ||
                   (op.getDelta() && !op.getDelta().use_empty());
    if (!isOfKeys(op) || (hasDelta && !hasRows))
      continue;
    OpBuilder builder(op);
    SmallVector<Type> types(op->getResultTypes());
    types.resize(4, op.getLse().getType());
    auto rows = AttentionBackwardOp::create(
        builder, op.getLoc(), types, op->getOperands(), op.getProperties(),
        llvm::to_vector(op->getDiscardableAttrs()));
    for (auto [made, result] : llvm::zip(rows->getResults(), op->getResults()))
      shapes[made] = shapes.at(result);
    shapes[rows.getDelta()] = shapes.at(op.getLse());
    op.getDq().replaceAllUsesWith(rows.getDq());
    if (op.getDelta())
      op.getDelta().replaceAllUsesWith(rows.getDelta());
    if (!hasDelta)
      op.getOMutable().assign(rows.getDelta());
  }
}

LogicalResult greta::normalizeForFusion(func::FuncOp function, Shapes &shapes,
                                        bool partsOfHeads) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has control flow; kernels are made of "
                                "functions of one block");
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments())
    if (failed(checkElementType(function, argument)))
      return failure();
  eraseDead(block);
  for (Operation &op : block) {
    if (failed(checkOp(&op)))
      return failure();
    for (Value value : op.getResults())
      if (isa<RankedTensorType>(value.getType()) && !shapes.at(value))
        return op.emitOpError("has an extent that follows from no argument; "
                              "derive it from a tensor.dim of an argument");
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      if (failed(checkSlice(slice, shapes)))
        return failure();
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
      if (failed(checkTranspose(transpose)))
        return failure();
  }
  splitGradients(block, shapes);
  copyUpdatedCaches(block, shapes);
  storeTokensFirst(function, shapes);
  makeGemms(block, shapes);
  makeReductions(block, shapes);
  replaceBroadcasts(function, shapes);
  makeConvolutions(function, shapes);
  normalizeSlices(function, shapes);
  moveHeads(function, shapes, partsOfHeads);
  eraseDead(block);
  for (auto empty : block.getOps<tensor::EmptyOp>()) {
    if (llvm::all_of(empty->getUsers(), llvm::IsaPred<linalg::TransposeOp>))
      continue;
    return empty.emitOpError("has no contents, yet they are read; fill it");
  }
  copyResults(function, shapes);
  copyIntoBuffers(function, shapes);
  splitTransparent(function, shapes);
  return success();
}
