//===- FuseRewrite.cpp - greta-fuse, step 1: ops made of others -----------===//
//
// greta.grouped_matmul becomes a greta.matmul with offsets. Reductions of rows,
// those that a source has as linalg.reduce and those that an op is made of,
// become greta.reduce_rows, and the rest of such an op elementwise work:
//
//   linalg.reduce    r = reduce_rows f, of the inputs
//                    y = f(r, inits), unless the inits change nothing
//   quantize_rows    r = reduce_rows maximum |x|
//                    y = x * (L / r), scale = r / L
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Tile/Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;

/// Grouped GEMMs become GEMMs with offsets. Packed weights are then of rank 2,
/// group below group, as greta.dequant has them; no two groups share a scale.
void greta::makeGemms(Block &block, Shapes &shapes) {
  for (auto op : llvm::make_early_inc_range(block.getOps<GroupedMatmulOp>())) {
    OpBuilder builder(op);
    Value b = op.getB();
    if (auto view = b.getDefiningOp<tensor::ExpandShapeOp>();
        view && op.getTransposeB() && view.getSrcType().getRank() == 2 &&
        view.getReassociationIndices().front().size() == 2)
      if (auto dequant = view.getSrc().getDefiningOp<DequantOp>();
          dequant &&
          view.getType().getDimSize(1) % dequant.getRow().scaleRows == 0 &&
          view.getType().getDimSize(1) % dequant.getRow().rowsTogether() == 0)
        b = view.getSrc();
    auto gemm = MatmulOp::create(builder, op.getLoc(), op.getType(), op.getA(),
                                 b, op.getOffsets(), /*transpose_a=*/false,
                                 op.getTransposeB(), /*precision=*/nullptr);
    gemm->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    shapes[gemm.getResult()] = shapes.at(op.getResult());
    op.replaceAllUsesWith(gemm.getResult());
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// linalg.reduce
//===----------------------------------------------------------------------===//

/// Copies the constants that the combination takes from around it; it takes
/// nothing else.
static LogicalResult checkCombination(linalg::ReduceOp reduce) {
  Block &body = *reduce.getBody();
  for (Operation &op : llvm::make_early_inc_range(body)) {
    bool isCombining = isPartOfCombination(&op);
    if (!isCombining && !isa<linalg::YieldOp>(op))
      return op.emitOpError("combines elements of a linalg.reduce; it may be "
                            "arith and math on f32, i32 and i1 that is "
                            "defined for any operands");
    for (OpOperand &operand : op.getOpOperands()) {
      if (operand.get().getParentBlock() == &body)
        continue;
      Operation *source = operand.get().getDefiningOp();
      if (!source || !source->hasTrait<OpTrait::ConstantLike>() ||
          !isPartOfCombination(source))
        return reduce.emitOpError(
            "combines elements with a value from outside of its region; there "
            "it takes constants alone: make the value another input");
      OpBuilder builder(&op);
      operand.set(builder.clone(*source)->getResult(0));
    }
  }
  return success();
}

LogicalResult greta::checkReduction(linalg::ReduceOp reduce) {
  for (Value input : reduce.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (reduce.getDimensions() != ArrayRef<int64_t>{type.getRank() - 1})
      return reduce.emitOpError("reduces dimensions [")
             << reduce.getDimensions() << "] of " << type
             << "; kernels reduce the last one: transpose before, or reduce "
                "one after the other";
    if (!isCombined(type.getElementType()))
      return reduce.emitOpError("combines elements of ")
             << type.getElementType()
             << "; they are f32, i32 or i1: convert before";
  }
  return checkCombination(reduce);
}

/// Whether all inits are what combining with changes nothing.
static bool areNeutral(ValueRange inits, ReduceRowsOp rows) {
  SmallVector<TypedAttr> neutral = rows.neutralElements();
  auto isNeutral = [](auto pair) {
    auto [init, wanted] = pair;
    auto fill = init.template getDefiningOp<linalg::FillOp>();
    TypedAttr value;
    if (!fill || !matchPattern(fill.getInputs()[0], m_Constant(&value)))
      return false;
    auto x = dyn_cast<FloatAttr>(value), y = dyn_cast<FloatAttr>(wanted);
    return x && y ? x.getValue().compare(y.getValue()) == APFloat::cmpEqual
                  : value == wanted;
  };
  return !neutral.empty() && llvm::all_of(llvm::zip(inits, neutral), isNeutral);
}

/// The numbers of rows of `values`, by a combination that is still empty.
static ReduceRowsOp makeRows(OpBuilder &builder, Location loc,
                             ValueRange values, Shapes &shapes) {
  SmallVector<Type> types;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    types.push_back(RankedTensorType::get(type.getShape().drop_back(),
                                          type.getElementType()));
  }
  auto rows = ReduceRowsOp::create(builder, loc, types, values);
  AffineMap whole = shapes.at(values[0]);
  auto shape =
      AffineMap::get(0, whole.getNumSymbols(), whole.getResults().drop_back(),
                     whole.getContext());
  for (Value result : rows.getResults())
    shapes.note(result, shape);
  return rows;
}

/// The region of greta.reduce_rows has first what was combined before, that of
/// linalg.reduce last.
static void takeCombination(linalg::ReduceOp reduce, ReduceRowsOp rows) {
  rows.getCombiner().takeBody(reduce.getCombiner());
  Block &block = rows.getCombiner().front();
  unsigned numValues = rows.getNumResults();
  for (unsigned i = 0; i < numValues; ++i) {
    BlockArgument input = block.getArgument(i);
    input.replaceAllUsesWith(
        block.addArgument(input.getType(), input.getLoc()));
  }
  block.eraseArguments(0, numValues);
  Operation *yield = block.getTerminator();
  OpBuilder builder(yield);
  YieldOp::create(builder, yield->getLoc(), yield->getOperands());
  yield->erase();
}

static void makeReduced(linalg::ReduceOp reduce, Shapes &shapes) {
  OpBuilder builder(reduce);
  ReduceRowsOp rows =
      makeRows(builder, reduce.getLoc(), reduce.getInputs(), shapes);
  takeCombination(reduce, rows);
  SmallVector<Value> made(rows.getResults());
  if (!areNeutral(reduce.getInits(), rows)) {
    Operation *last = rows;
    made = rows.combine(builder, reduce.getInits(), made);
    while ((last = last->getNextNode()) != reduce)
      shapes.note(last->getResult(0), shapes.at(rows.getResult(0)));
  }
  reduce->replaceAllUsesWith(made);
  reduce->erase();
}

//===----------------------------------------------------------------------===//
// greta.quantize_rows
//===----------------------------------------------------------------------===//

namespace {
/// Writes elementwise work, with the shapes of what it makes.
struct ElementwiseBuilder {
  ImplicitLocOpBuilder b;
  Shapes &shapes;

  template <typename Op> Value of(ValueRange operands) {
    return shapes.note(Op::create(b, operands), shapes.at(operands[0]));
  }
  Value constant(Value like, double value) {
    return shapes.note(numberOf(b, like.getType(), value), shapes.at(like));
  }
  Value converted(Value v, Type element, bool toInteger = false) {
    RankedTensorType type = cast<RankedTensorType>(v.getType()).clone(element);
    if (v.getType() == type)
      return v;
    Value made = toInteger         ? Value(arith::FPToSIOp::create(b, type, v))
                 : element.isF32() ? Value(arith::ExtFOp::create(b, type, v))
                                   : Value(arith::TruncFOp::create(b, type, v));
    return shapes.note(made, shapes.at(v));
  }
};
} // namespace

/// The maximum of each row of `value`, or a NaN that the row holds.
static Value maximumOfRows(ElementwiseBuilder &e, Value value) {
  ReduceRowsOp rows = makeRows(e.b, e.b.getLoc(), value, e.shapes);
  OpBuilder::InsertionGuard guard(e.b);
  Type element = getElementTypeOrSelf(value);
  Block *block = e.b.createBlock(&rows.getCombiner(), {}, {element, element},
                                 {e.b.getLoc(), e.b.getLoc()});
  Value greater = arith::MaximumFOp::create(e.b, block->getArgument(0),
                                            block->getArgument(1));
  YieldOp::create(e.b, greater);
  return rows.getResult(0);
}

/// The definition of greta.quantize_rows: a reduction, and work on rows and on
/// elements.
static void makeQuantized(QuantizeRowsOp op, Shapes &shapes) {
  ElementwiseBuilder e{ImplicitLocOpBuilder(op.getLoc(), op), shapes};
  RankedTensorType type = op.getResult().getType();
  Type element = type.getElementType();
  double largest = largestOf(element);
  Value x = e.converted(op.getX(), e.b.getF32Type());
  Value peak = maximumOfRows(e, e.of<math::AbsFOp>(x));
  Value scale =
      e.of<arith::MulFOp>({peak, e.constant(peak, float(1 / float(largest)))});
  Value zero = e.constant(peak, 0);
  Value isZero = e.shapes.note(
      arith::CmpFOp::create(e.b, arith::CmpFPredicate::OEQ, peak, zero),
      shapes.at(peak));
  Value divided = e.of<arith::DivFOp>({e.constant(peak, largest), peak});
  Value factor = e.shapes.note(
      arith::SelectOp::create(e.b, isZero, e.constant(peak, 0), divided),
      shapes.at(peak));
  Value all = e.shapes.note(
      BroadcastOp::create(e.b, x.getType(), factor, ArrayRef<int64_t>{0}),
      shapes.at(x));
  Value y = e.of<arith::MulFOp>({x, all});
  if (element.isInteger())
    y = e.converted(e.of<math::RoundEvenOp>(y), element, /*toInteger=*/true);
  else
    y = e.converted(y, element);
  op.getResult().replaceAllUsesWith(y);
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  Value column = e.shapes.note(tensor::ExpandShapeOp::create(
                                   e.b, op.getScale().getType(), scale, groups),
                               shapes.at(op.getScale()));
  op.getScale().replaceAllUsesWith(column);
  op.erase();
}

/// Reductions of rows become greta.reduce_rows.
void greta::makeReductions(Block &block, Shapes &shapes) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto quantize = dyn_cast<QuantizeRowsOp>(op)) {
      makeQuantized(quantize, shapes);
    } else if (auto reduce = dyn_cast<linalg::ReduceOp>(op)) {
      makeReduced(reduce, shapes);
    }
  }
}
