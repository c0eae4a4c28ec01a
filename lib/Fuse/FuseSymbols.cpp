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

/// The most operations of an extent's expression, which the package has written
/// out.
static constexpr unsigned mostOperations = 256;

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

void ShapeAnalysis::unify(unsigned a, unsigned b) {
  a = leader(a);
  b = leader(b);
  if (a == b || !isConsistent)
    return;
  Extent &kept = extents[a], &gone = extents[b];
  if (kept.size && gone.size && *kept.size != *gone.size) {
    visited->emitOpError("has extents of ")
        << *kept.size << " and " << *gone.size
        << " where both must be the same; make the types agree";
    isConsistent = false;
    return;
  }
  if (!kept.size)
    kept.size = gone.size;
  if (!kept.derived)
    kept.derived = gone.derived;
  if (!kept.stated)
    kept.stated = gone.stated;
  gone.parent = a;
}

void ShapeAnalysis::unifyShapes(Value a, Value b) {
  auto type = dyn_cast<RankedTensorType>(a.getType());
  auto other = dyn_cast<RankedTensorType>(b.getType());
  if (!type || !other || type.getRank() != other.getRank())
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    unify(a, dim, b, dim);
}

/// `whole` has one dimension for each group of dimensions of `parts`, of which
/// it is the product.
void ShapeAnalysis::visitReshape(Value whole, Value parts,
                                 ArrayRef<ReassociationIndices> groups) {
  for (auto [dim, group] : llvm::enumerate(groups)) {
    unsigned product = extent(parts, group.front());
    for (int64_t part : ArrayRef(group).drop_front()) {
      unsigned next = fresh(), factor = extent(parts, part);
      extents[next].derived = {AffineExprKind::Mul, product, factor};
      product = next;
    }
    unify(extent(whole, dim), product);
  }
}

void ShapeAnalysis::visitGretaOp(Operation *op) {
  if (auto rope = dyn_cast<RopeOp>(op)) {
    unify(rope.getX(), 0, rope.getCos(), 0);
    unify(rope.getX(), 0, rope.getSin(), 0);
  } else if (auto quantize = dyn_cast<QuantizeRowsOp>(op)) {
    unifyShapes(quantize.getX(), quantize.getResult());
    unify(quantize.getX(), 0, quantize.getScale(), 0);
  } else if (isa<GroupedMatmulOp>(op)) {
    unify(op->getOperand(0), 0, op->getResult(0), 0);
  } else if (auto matmul = dyn_cast<MatmulOp>(op)) {
    Value a = matmul.getA(), b = matmul.getB(), result = matmul.getResult();
    int64_t batch = matmul.getBatchRank(), ofB = matmul.getRankWithoutA();
    for (int64_t dim = 0; dim < batch; ++dim) {
      if (dim >= ofB)
        unify(a, dim - ofB, result, dim);
      if (matmul.hasBatchedB())
        unify(result, dim, b, dim);
    }
    unify(a, matmul.dimKOfA(), b, matmul.dimKOfB());
    unify(a, matmul.dimM(), result, batch);
    unify(b, matmul.dimN(), result, batch + 1);
  } else if (auto conv = dyn_cast<Conv2dOp>(op)) {
    unify(conv.getX(), 0, conv.getResult(), 0);
    for (unsigned dim : {0u, 1u}) {
      unsigned at = conv.dimOf(dim), size = extent(conv.getX(), at);
      for (auto [kind, number] :
           {std::pair(AffineExprKind::Add, conv.shiftOf(dim)),
            std::pair(AffineExprKind::FloorDiv, conv.strideOf(dim)),
            std::pair(AffineExprKind::Add, int64_t(1))}) {
        unsigned next = fresh(), operand = constant(number);
        extents[next].derived = {kind, size, operand};
        size = next;
      }
      unify(extent(conv.getResult(), at), size);
    }
  } else if (auto dequant = dyn_cast<DequantOp>(op)) {
    for (Value operand : op->getOperands())
      if (operand != dequant.getScales() || dequant.getRow().scaleRows == 1)
        unify(operand, 0, op->getResult(0), 0);
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      unify(broadcast.getValue(), i, broadcast.getResult(), dim);
  } else if (isAlone(op)) {
    visitAttention(op);
  }
  // The others are row ops: the result has the first operand's type, and
  // so has every operand of its rank.
  if (!isa<RmsNormOp, LayerNormOp, SoftmaxOp, RopeOp, SwigluOp, AllReduceOp>(
          op))
    return;
  for (Value operand : op->getOperands())
    if (operand.getType() == op->getResult(0).getType())
      unifyShapes(operand, op->getResult(0));
}

/// The ops around the KV cache: the first operand has the result's shape.
void ShapeAnalysis::visitAttention(Operation *op) {
  Value first = op->getOperand(0);
  unifyShapes(first, op->getResult(0));
  // But for dimensions that are 1, which stand for all.
  auto unifyOrOne = [&](Value a, int64_t dim, Value b, int64_t other) {
    if (cast<RankedTensorType>(a.getType()).getDimSize(dim) != 1)
      unify(a, dim, b, other);
  };
  auto visitScales = [&](Value scales, Value scaled) {
    for (int64_t dim = 0; scales && dim < 3; ++dim)
      unifyOrOne(scales, dim, scaled, dim);
  };
  auto visit = [&](auto attention, int64_t heads, int64_t headsOfK) {
    Value q = attention.getQ(), k = attention.getK();
    unify(q, 0, k, 0);
    unifyShapes(k, attention.getV());
    if (Value lengths = attention.getLengths())
      unify(lengths, 0, q, 0);
    if (Value mask = attention.getMask()) {
      unifyOrOne(mask, 2, q, 3 - heads);
      unify(mask, 3, k, 3 - headsOfK);
      unifyOrOne(mask, 0, q, 0);
      unifyOrOne(mask, 1, q, heads);
    }
  };
  auto perRow = [&](Value numbers, int64_t heads) {
    for (auto [dim, ofQ] :
         llvm::enumerate(std::array{int64_t(0), heads, 3 - heads}))
      if (numbers)
        unify(numbers, dim, first, ofQ);
  };
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    int64_t heads = attention.getTokensFirst() ? 2 : 1;
    visit(attention, heads, 1);
    visitScales(attention.getKScale(), attention.getK());
    visitScales(attention.getVScale(), attention.getK());
    perRow(attention.getLse(), heads);
  } else if (auto backward = dyn_cast<AttentionBackwardOp>(op)) {
    int64_t heads = backward.getTokensFirst() ? 2 : 1;
    Value o = backward.getO();
    if (o.getType() == first.getType())
      unifyShapes(o, first);
    else
      perRow(o, heads);
    unifyShapes(backward.getDO(), first);
    perRow(backward.getLse(), heads);
    perRow(backward.getDelta(), heads);
    visit(backward, heads, heads);
    unifyShapes(backward.getK(), backward.getDk());
    unifyShapes(backward.getV(), backward.getDv());
  } else if (auto paged = dyn_cast<PagedAttentionOp>(op)) {
    if (Value begins = paged.getBegins()) {
      unify(paged.getTable(), 0, paged.getLengths(), 0);
      // Whichever of them defines a symbol.
      auto isMoreThan = [&](Value tensor, Value other, int64_t difference) {
        unsigned next = fresh(), of = extent(other, 0);
        unsigned by = constant(difference);
        extents[next].derived = {AffineExprKind::Add, of, by};
        unify(extent(tensor, 0), next);
      };
      isMoreThan(begins, paged.getLengths(), 1);
      isMoreThan(paged.getLengths(), begins, -1);
    } else {
      unify(paged.getTable(), 0, paged.getQ(), 0);
      unify(paged.getLengths(), 0, paged.getQ(), 0);
    }
    visitScales(paged.getKScale(), paged.getKCache());
    visitScales(paged.getVScale(), paged.getVCache());
    unifyShapes(paged.getKCache(), paged.getVCache());
  } else if (auto update = dyn_cast<KvUpdateOp>(op)) {
    for (int64_t dim : {0, 1, 3})
      unify(update.getNewRows(), dim, first, dim);
    unify(update.getPos(), 0, first, 0);
  } else {
    auto paged = cast<PagedKvUpdateOp>(op);
    for (int64_t dim : {1, 2})
      unify(paged.getNewRows(), dim, first, dim + 1);
    unify(paged.getSlots(), 0, paged.getNewRows(), 0);
    if (paged.getScales()) {
      unify(paged.getScales(), 0, first, 0);
      unifyShapes(paged.getScales(), paged.getNewScales());
    }
  }
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

/// The shapes that arguments' greta.shape gives.
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

void ShapeAnalysis::visit(Operation *op) {
  visited = op;
  if (auto launch = dyn_cast<tile::LaunchOp>(op))
    return visitLaunch(launch);
  if (isa_and_nonnull<GretaDialect>(op->getDialect()))
    return visitGretaOp(op);
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> position = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (position && type && (*position < 0 || *position >= type.getRank())) {
      op->emitOpError("asks for dimension ")
          << *position << " of a tensor of rank " << type.getRank()
          << "; dimensions count from 0";
      isConsistent = false;
    }
  } else if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    for (int64_t dim = 0; dim < empty.getType().getRank(); ++dim)
      if (empty.getType().isDynamicDim(dim))
        unify(extent(empty, dim), index(empty.getDynamicSize(dim)));
  } else if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    auto type = cast<RankedTensorType>(splat.getType());
    unsigned next = 0;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        unify(extent(splat, dim), index(splat.getDynamicSizes()[next++]));
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    visitReshape(collapse.getResult(), collapse.getSrc(),
                 collapse.getReassociationIndices());
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(expand.getMixedOutputShape()))
      if (auto value = dyn_cast<Value>(size))
        unify(extent(expand.getResult(), dim), index(value));
    visitReshape(expand.getSrc(), expand.getResult(),
                 expand.getReassociationIndices());
  } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      unify(op->getResult(0), dim, transpose.getInput(), from);
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned next = 0;
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes())) {
      if (dropped.test(dim))
        continue;
      unsigned kept = extent(slice.getResult(), next++);
      if (auto value = dyn_cast<Value>(size))
        unify(kept, index(value));
    }
  } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    unifyShapes(cast.getSource(), cast.getResult());
  } else if (auto destination = dyn_cast<DestinationStyleOpInterface>(op)) {
    if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op)) {
      int64_t next = 0;
      for (int64_t dim = 0; dim < broadcast.getInit().getType().getRank();
           ++dim)
        if (!llvm::is_contained(broadcast.getDimensions(), dim))
          unify(broadcast.getInput(), next++, broadcast.getInit(), dim);
    }
    if (auto reduce = dyn_cast<linalg::ReduceOp>(op)) {
      ValueRange inputs = reduce.getInputs();
      for (auto [input, init] : llvm::zip(inputs, reduce.getInits())) {
        unifyShapes(inputs[0], input);
        int64_t next = 0, rank = reduce.getRank(&reduce->getOpOperand(0));
        for (int64_t dim = 0; dim < rank; ++dim)
          if (!llvm::is_contained(reduce.getDimensions(), dim))
            unify(input, dim, init, next++);
      }
    }
    for (OpResult result : op->getResults())
      unifyShapes(result, destination.getTiedOpOperand(result)->get());
  } else if (OpTrait::hasElementwiseMappableTraits(op)) {
    for (Value operand : op->getOperands())
      unifyShapes(operand, op->getResult(0));
  }
}

LogicalResult ShapeAnalysis::run() {
  if (failed(readShapes()))
    return failure();
  WalkResult result = function.walk([&](Operation *op) {
    visit(op);
    return isConsistent ? WalkResult::advance() : WalkResult::interrupt();
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

/// Takes the operations of an expression, written out, off `budget`; whether
/// it was enough.
static bool fits(AffineExpr expr, unsigned &budget) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  return !binary || (budget-- && fits(binary.getLHS(), budget) &&
                     fits(binary.getRHS(), budget));
}

AffineExpr ShapeAnalysis::expression(unsigned id) {
  // Symbols are still being defined, so what is known holds for this call.
  llvm::DenseMap<unsigned, AffineExpr> known;
  return expression(id, known);
}

AffineExpr
ShapeAnalysis::expression(unsigned id,
                          llvm::DenseMap<unsigned, AffineExpr> &known) {
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
  if (auto it = known.find(id); it != known.end())
    return it->second;
  auto [kind, left, right] = *extents[id].derived;
  extents[id].visiting = true;
  AffineExpr a = expression(left, known);
  AffineExpr b = a ? expression(right, known) : AffineExpr();
  extents[id].visiting = false;
  if (!a || !b)
    return AffineExpr();
  AffineExpr expr = getAffineBinaryOpExpr(kind, a, b);
  unsigned budget = mostOperations;
  if (!fits(expr, budget)) {
    isLarge = true;
    expr = AffineExpr();
  }
  return known[id] = expr;
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
    if (!shape && analysis.hasLargeExtent())
      return function.emitOpError("has result ")
             << result.getOperandNumber() << " with an extent of more than "
             << mostOperations
             << " operations; make it a dimension of an argument";
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
