//===- FuseSymbols.cpp - which dynamic dimensions are equal ---------------===//
//
// Union-find over extents (a dimension of a tensor, an index value). Ops unify
// what they require to be equal; collapse_shape, expand_shape and index
// arithmetic define one extent by others. A class is then a constant, a symbol
// (the first argument's dimension in it), or an expression.
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
#include "greta/Fuse/Space.h"
#include "greta/Fuse/Symbols.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace greta {
#define GEN_PASS_DEF_GRETAANNOTATESHAPESPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

unsigned ShapeAnalysis::fresh() {
  unsigned id = extents.size();
  extents.push_back({id, std::nullopt, std::nullopt, std::nullopt, {}});
  return id;
}

unsigned ShapeAnalysis::constant(int64_t size) {
  unsigned id = fresh();
  extents[id].size = size;
  return id;
}

unsigned ShapeAnalysis::leader(unsigned id) {
  while (extents[id].parent != id)
    id = extents[id].parent = extents[extents[id].parent].parent;
  return id;
}

unsigned ShapeAnalysis::extent(Value tensor, int64_t dim) {
  auto [it, inserted] = ids.try_emplace({tensor, dim}, 0);
  if (!inserted)
    return it->second;
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  unsigned id = ShapedType::isDynamic(size) ? fresh() : constant(size);
  return ids[{tensor, dim}] = id;
}

/// The extent that an index value stands for.
unsigned ShapeAnalysis::index(Value value) {
  auto [it, inserted] = ids.try_emplace({value, -1}, 0);
  if (!inserted)
    return it->second;
  unsigned id = fresh();
  ids[{value, -1}] = id;
  APInt size;
  if (matchPattern(value, m_ConstantInt(&size)))
    extents[id].size = size.getSExtValue();
  else if (auto dim = value.getDefiningOp<tensor::DimOp>()) {
    std::optional<int64_t> position = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (position && type && *position < type.getRank())
      return ids[{value, -1}] = extent(dim.getSource(), *position);
  } else if (Operation *op = value.getDefiningOp();
             op && op->getNumOperands() == 2) {
    std::optional<AffineExprKind> kind;
    if (isa<arith::AddIOp>(op))
      kind = AffineExprKind::Add;
    else if (isa<arith::MulIOp>(op))
      kind = AffineExprKind::Mul;
    else if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op))
      kind = AffineExprKind::FloorDiv; // extents are not negative
    else if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp>(op))
      kind = AffineExprKind::CeilDiv;
    if (kind) {
      unsigned left = index(op->getOperand(0));
      unsigned right = index(op->getOperand(1));
      extents[id].derived = {*kind, left, right};
    }
  }
  return id;
}

LogicalResult ShapeAnalysis::unify(Operation *op, unsigned a, unsigned b) {
  a = leader(a);
  b = leader(b);
  if (a == b)
    return success();
  Extent &kept = extents[a], &gone = extents[b];
  if (kept.size && gone.size && *kept.size != *gone.size)
    return op->emitOpError("has extents of ")
           << *kept.size << " and " << *gone.size
           << " where both must be the same; make the types agree";
  if (!kept.size)
    kept.size = gone.size;
  if (!kept.derived)
    kept.derived = gone.derived;
  if (!kept.stated)
    kept.stated = gone.stated;
  gone.parent = a;
  return success();
}

LogicalResult ShapeAnalysis::unifyShapes(Operation *op, Value a, Value b) {
  auto type = dyn_cast<RankedTensorType>(a.getType());
  auto other = dyn_cast<RankedTensorType>(b.getType());
  if (!type || !other || type.getRank() != other.getRank())
    return success();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (failed(unify(op, extent(a, dim), extent(b, dim))))
      return failure();
  return success();
}

/// `whole` has one dimension for each group of dimensions of `parts`, of which
/// it is the product.
LogicalResult
ShapeAnalysis::visitReshape(Operation *op, Value whole, Value parts,
                            ArrayRef<ReassociationIndices> groups) {
  for (auto [dim, group] : llvm::enumerate(groups)) {
    unsigned product = extent(parts, group.front());
    for (int64_t part : ArrayRef(group).drop_front()) {
      unsigned next = fresh(), factor = extent(parts, part);
      extents[next].derived = {AffineExprKind::Mul, product, factor};
      product = next;
    }
    if (failed(unify(op, extent(whole, dim), product)))
      return failure();
  }
  return success();
}

LogicalResult ShapeAnalysis::visitGretaOp(Operation *op) {
  auto same = [&](Value a, int64_t dim, Value b, int64_t otherDim) {
    return unify(op, extent(a, dim), extent(b, otherDim));
  };
  if (auto rope = dyn_cast<RopeOp>(op)) {
    if (failed(same(rope.getX(), 0, rope.getCos(), 0)) ||
        failed(same(rope.getX(), 0, rope.getSin(), 0)))
      return failure();
  } else if (auto matmul = dyn_cast<MatmulOp>(op)) {
    int64_t batch = matmul.getBatchRank();
    for (int64_t dim = 0; dim < batch; ++dim)
      if (failed(same(matmul.getA(), dim, matmul.getResult(), dim)) ||
          (matmul.hasBatchedB() &&
           failed(same(matmul.getA(), dim, matmul.getB(), dim))))
        return failure();
    if (failed(same(matmul.getA(), matmul.dimKOfA(), matmul.getB(),
                    matmul.dimKOfB())) ||
        failed(same(matmul.getA(), matmul.dimM(), matmul.getResult(), batch)))
      return failure();
    return same(matmul.getB(), matmul.dimN(), matmul.getResult(), batch + 1);
  } else if (isa<DequantOp>(op)) {
    for (Value operand : op->getOperands())
      if (failed(same(operand, 0, op->getResult(0), 0)))
        return failure();
    return success();
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      if (failed(same(broadcast.getValue(), i, broadcast.getResult(), dim)))
        return failure();
    return success();
  } else if (isAlone(op)) {
    return visitAttention(op);
  }
  // What remains are the row ops: the result has the first operand's type, and
  // so has every operand of its rank.
  if (!isa<RmsNormOp, LayerNormOp, SoftmaxOp, RopeOp, SwigluOp>(op))
    return success();
  for (Value operand : op->getOperands())
    if (operand.getType() == op->getResult(0).getType() &&
        failed(unifyShapes(op, operand, op->getResult(0))))
      return failure();
  return success();
}

/// The ops around the KV cache: the first operand has the result's shape.
LogicalResult ShapeAnalysis::visitAttention(Operation *op) {
  auto same = [&](Value a, int64_t dim, Value b, int64_t otherDim) {
    return unify(op, extent(a, dim), extent(b, otherDim));
  };
  Value first = op->getOperand(0);
  if (failed(unifyShapes(op, first, op->getResult(0))))
    return failure();
  auto sameScales = [&](Value scales, Value scaled) -> LogicalResult {
    for (int64_t dim = 0; scales && dim < 3; ++dim)
      if (cast<RankedTensorType>(scales.getType()).getDimSize(dim) != 1 &&
          failed(same(scales, dim, scaled, dim)))
        return failure();
    return success();
  };
  auto visit = [&](auto attention, int64_t heads,
                   int64_t headsOfK) -> LogicalResult {
    Value q = attention.getQ(), k = attention.getK();
    int64_t rows = 3 - heads;
    if (failed(same(q, 0, k, 0)) ||
        failed(unifyShapes(op, k, attention.getV())))
      return failure();
    if (Value lengths = attention.getLengths();
        lengths && failed(same(lengths, 0, q, 0)))
      return failure();
    if (Value mask = attention.getMask()) {
      if (failed(same(mask, 2, q, rows)) ||
          failed(same(mask, 3, k, 3 - headsOfK)))
        return failure();
      for (auto [dim, ofQ] : {std::pair<int64_t, int64_t>(0, 0), {1, heads}})
        if (attention.getMask().getType().getDimSize(dim) != 1 &&
            failed(same(mask, dim, q, ofQ)))
          return failure();
    }
    return success();
  };
  auto perRow = [&](Value numbers, int64_t heads) {
    for (auto [dim, ofQ] :
         llvm::enumerate(std::array{int64_t(0), heads, 3 - heads}))
      if (numbers && failed(same(numbers, dim, first, ofQ)))
        return failure();
    return success();
  };
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    int64_t heads = attention.getTokensFirst() ? 2 : 1;
    if (failed(visit(attention, heads, 1)) ||
        failed(sameScales(attention.getKScale(), attention.getK())) ||
        failed(sameScales(attention.getVScale(), attention.getK())))
      return failure();
    return perRow(attention.getLse(), heads);
  }
  if (auto backward = dyn_cast<AttentionBackwardOp>(op)) {
    int64_t heads = backward.getTokensFirst() ? 2 : 1;
    Value o = backward.getO();
    if (failed(o.getType() == first.getType() ? unifyShapes(op, o, first)
                                              : perRow(o, heads)) ||
        failed(unifyShapes(op, backward.getDO(), first)) ||
        failed(perRow(backward.getLse(), heads)) ||
        failed(perRow(backward.getDelta(), heads)) ||
        failed(visit(backward, heads, heads)) ||
        failed(unifyShapes(op, backward.getK(), backward.getDk())))
      return failure();
    return unifyShapes(op, backward.getV(), backward.getDv());
  }
  if (auto paged = dyn_cast<PagedAttentionOp>(op)) {
    if (failed(same(paged.getTable(), 0, paged.getQ(), 0)) ||
        failed(same(paged.getLengths(), 0, paged.getQ(), 0)) ||
        failed(sameScales(paged.getKScale(), paged.getKCache())) ||
        failed(sameScales(paged.getVScale(), paged.getVCache())))
      return failure();
    return unifyShapes(op, paged.getKCache(), paged.getVCache());
  }
  if (auto update = dyn_cast<KvUpdateOp>(op)) {
    for (int64_t dim : {0, 1, 3})
      if (failed(same(update.getNewRows(), dim, first, dim)))
        return failure();
    return same(update.getPos(), 0, first, 0);
  }
  auto update = cast<PagedKvUpdateOp>(op);
  for (int64_t dim : {1, 2})
    if (failed(same(update.getNewRows(), dim, first, dim + 1)))
      return failure();
  return same(update.getSlots(), 0, update.getNewRows(), 0);
}

/// The extents that a map over the symbols gives a tensor.
void ShapeAnalysis::state(Value tensor, AffineMap shape) {
  statedSymbols = std::max(statedSymbols, shape.getNumSymbols());
  for (auto [dim, expr] : llvm::enumerate(shape.getResults()))
    extents[leader(extent(tensor, dim))].stated = expr;
}

void ShapeAnalysis::visitLaunch(tile::LaunchOp launch) {
  for (OpResult result : launch->getResults()) {
    Value tied = launch.getTiedOperand(result.getResultNumber());
    auto type = cast<RankedTensorType>(result.getType());
    if (!tied)
      state(result, launch.getShapeOf(result.getResultNumber()));
    for (int64_t dim = 0; tied && dim < type.getRank(); ++dim)
      ids[{result, dim}] = extent(tied, dim);
  }
  for (AffineMap map : {launch.getGrid(), launch.getScalars()})
    statedSymbols = std::max(statedSymbols, map.getNumSymbols());
}

/// What arguments' greta.shape says.
LogicalResult ShapeAnalysis::readShapes() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    Attribute attr = function.getArgAttr(number, "greta.shape");
    if (!attr)
      continue;
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto map = dyn_cast<AffineMapAttr>(attr);
    AffineMap shape = map ? map.getValue() : AffineMap();
    if (!type || !map || shape.getNumDims() ||
        shape.getNumResults() != type.getRank() ||
        !tile::keepsExtents(type, shape))
      return function.emitOpError("has argument ")
             << number << " of type " << argument.getType()
             << " with greta.shape = " << attr
             << "; it is a map from the function's symbols to the extents";
    state(argument, shape);
  }
  return success();
}

LogicalResult ShapeAnalysis::visit(Operation *op) {
  if (auto launch = dyn_cast<tile::LaunchOp>(op)) {
    visitLaunch(launch);
    return success();
  }
  if (isa_and_nonnull<GretaDialect>(op->getDialect()))
    return visitGretaOp(op);
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> position = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (position && type && (*position < 0 || *position >= type.getRank()))
      return op->emitOpError("asks for dimension ")
             << *position << " of a tensor of rank " << type.getRank()
             << "; dimensions count from 0";
    return success();
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    for (int64_t dim = 0; dim < empty.getType().getRank(); ++dim)
      if (empty.getType().isDynamicDim(dim) &&
          failed(
              unify(op, extent(empty, dim), index(empty.getDynamicSize(dim)))))
        return failure();
    return success();
  }
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    auto type = cast<RankedTensorType>(splat.getType());
    unsigned next = 0;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim) &&
          failed(unify(op, extent(splat, dim),
                       index(splat.getDynamicSizes()[next++]))))
        return failure();
    return success();
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return visitReshape(op, collapse.getResult(), collapse.getSrc(),
                        collapse.getReassociationIndices());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(expand.getMixedOutputShape()))
      if (auto value = dyn_cast<Value>(size);
          value &&
          failed(unify(op, extent(expand.getResult(), dim), index(value))))
        return failure();
    return visitReshape(op, expand.getSrc(), expand.getResult(),
                        expand.getReassociationIndices());
  }
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    Value made = op->getResult(0);
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      if (failed(
              unify(op, extent(made, dim), extent(transpose.getInput(), from))))
        return failure();
    return success();
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned next = 0;
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes())) {
      if (dropped.test(dim))
        continue;
      unsigned kept = extent(slice.getResult(), next++);
      if (auto value = dyn_cast<Value>(size);
          value && failed(unify(op, kept, index(value))))
        return failure();
    }
    return success();
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return unifyShapes(op, cast.getSource(), cast.getResult());
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op)) {
    int64_t next = 0;
    for (int64_t dim = 0; dim < broadcast.getInit().getType().getRank(); ++dim)
      if (!llvm::is_contained(broadcast.getDimensions(), dim) &&
          failed(unify(op, extent(broadcast.getInput(), next++),
                       extent(broadcast.getInit(), dim))))
        return failure();
  }
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op)) {
    for (OpResult result : op->getResults())
      if (failed(unifyShapes(op, result,
                             destination.getTiedOpOperand(result)->get())))
        return failure();
    return success();
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (failed(unifyShapes(op, operand, op->getResult(0))))
        return failure();
  return success();
}

LogicalResult ShapeAnalysis::run() {
  if (failed(readShapes()))
    return failure();
  WalkResult result = function.walk([&](Operation *op) {
    return succeeded(visit(op)) ? WalkResult::advance()
                                : WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (isa<IntegerType>(argument.getType()))
      definitions.push_back({argument.getArgNumber(), std::nullopt});
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      // An extent that follows from earlier arguments needs no symbol; one that
      // is said to be the next symbol defines it.
      AffineExpr known = expression(extent(argument, dim));
      if (known && known != getAffineSymbolExpr(definitions.size(),
                                                function.getContext()))
        continue;
      extents[leader(extent(argument, dim))].symbol = definitions.size();
      definitions.push_back({argument.getArgNumber(), dim});
    }
  }
  if (statedSymbols > definitions.size())
    return function.emitOpError("has a shape, a grid or a scalar over ")
           << statedSymbols << " symbols; its arguments define "
           << definitions.size()
           << ", one for each integer and each dynamic dimension that no "
              "greta.shape gives by earlier ones";
  return success();
}

AffineExpr ShapeAnalysis::expression(unsigned id) {
  id = leader(id);
  MLIRContext *context = function.getContext();
  if (extents[id].size)
    return getAffineConstantExpr(*extents[id].size, context);
  if (extents[id].symbol)
    return getAffineSymbolExpr(*extents[id].symbol, context);
  if (extents[id].stated)
    return extents[id].stated;
  if (!extents[id].derived || extents[id].visiting)
    return AffineExpr();
  auto [kind, left, right] = *extents[id].derived;
  extents[id].visiting = true;
  AffineExpr a = expression(left), b = expression(right);
  extents[id].visiting = false;
  return a && b ? getAffineBinaryOpExpr(kind, a, b) : AffineExpr();
}

AffineMap ShapeAnalysis::shapeOf(Value tensor) {
  SmallVector<AffineExpr> shape;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    shape.push_back(expression(extent(tensor, dim)));
    if (!shape.back())
      return AffineMap();
  }
  return AffineMap::get(0, definitions.size(), shape, function.getContext());
}

ArrayAttr ShapeAnalysis::symbols() {
  Builder builder(function.getContext());
  SmallVector<Attribute> pairs;
  for (auto [argument, dim] : definitions)
    pairs.push_back(dim ? builder.getI64ArrayAttr({argument, *dim})
                        : builder.getI64ArrayAttr(argument));
  return builder.getArrayAttr(pairs);
}

StringRef greta::operatorName(AffineExpr expr) {
  // In the order of AffineExprKind.
  static constexpr StringLiteral names[] = {"+", "*", "mod", "floordiv",
                                            "ceildiv"};
  return names[int(expr.getKind())];
}

static Attribute extentAttribute(AffineExpr expr) {
  Builder builder(expr.getContext());
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.getI64IntegerAttr(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return builder.getStringAttr("d" + Twine(symbol.getPosition()));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  return builder.getArrayAttr({builder.getStringAttr(operatorName(expr)),
                               extentAttribute(binary.getLHS()),
                               extentAttribute(binary.getRHS())});
}

ArrayAttr greta::shapeAttribute(AffineMap shape) {
  SmallVector<Attribute> entries;
  for (AffineExpr extent : shape.getResults())
    entries.push_back(extentAttribute(extent));
  return ArrayAttr::get(shape.getContext(), entries);
}

LogicalResult greta::attachSymbols(func::FuncOp function,
                                   ShapeAnalysis &analysis) {
  SmallVector<Attribute> shapes;
  bool launches = !function.getOps<tile::LaunchOp>().empty();
  for (BlockArgument argument : function.getArguments()) {
    if (launches && tile::isScalarArgument(argument.getType())) {
      shapes.push_back(ArrayAttr::get(function.getContext(), {}));
      continue;
    }
    if (!isa<RankedTensorType>(argument.getType()))
      return function.emitOpError("has argument ")
             << argument.getArgNumber() << " of type " << argument.getType()
             << "; arguments are ranked tensors: pass a scalar as tensor<f32>";
    shapes.push_back(shapeAttribute(analysis.shapeOf(argument)));
  }
  for (OpOperand &result :
       function.getBody().front().getTerminator()->getOpOperands()) {
    if (!isa<RankedTensorType>(result.get().getType()))
      return function.emitOpError("returns a ")
             << result.get().getType() << "; results are ranked tensors";
    AffineMap shape = analysis.shapeOf(result.get());
    if (!shape)
      return function.emitOpError("has result ")
             << result.getOperandNumber()
             << " with an extent that follows from no argument; derive it from "
                "a tensor.dim of an argument";
    shapes.push_back(shapeAttribute(shape));
  }
  function->setAttr("greta.symbols", analysis.symbols());
  function->setAttr("greta.shapes",
                    ArrayAttr::get(function.getContext(), shapes));
  return success();
}

namespace {
struct AnnotateShapesPass
    : greta::impl::GretaAnnotateShapesPassBase<AnnotateShapesPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    ShapeAnalysis analysis(getOperation());
    if (failed(analysis.run()) ||
        failed(attachSymbols(getOperation(), analysis)))
      signalPassFailure();
  }
};
} // namespace
