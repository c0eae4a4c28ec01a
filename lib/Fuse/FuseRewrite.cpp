//===- FuseRewrite.cpp - greta-fuse, step 1: ops that are made of others
//---===//
//
// greta.grouped_matmul becomes a greta.matmul with offsets. Reductions of rows,
// those that a source has as linalg.reduce and those that an op is made of,
// become greta.reduce_rows, and the rest of such an op elementwise work:
//
//   quantize_rows    r = reduce_rows "max" |x|
//                    y = x * (L / r), scale = r / L
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

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
          view.getType().getDimSize(1) % dequant.getRow().scaleRows == 0)
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

/// Whether combining with `value` changes nothing.
static bool isNeutral(TypedAttr value, Operation *combine) {
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combine);
  if (!neutral)
    return false;
  auto x = dyn_cast<FloatAttr>(value), y = dyn_cast<FloatAttr>(*neutral);
  return x && y ? x.getValue().compare(y.getValue()) == APFloat::cmpEqual
                : value == *neutral;
}

const char *greta::reductionKind(Operation *op) {
  auto reduce = dyn_cast<linalg::ReduceOp>(op);
  if (!reduce || reduce.getInputs().size() != 1)
    return nullptr;
  auto type = cast<RankedTensorType>(reduce.getInputs()[0].getType());
  Block &body = *reduce.getBody();
  Type element = type.getElementType();
  if ((!element.isF32() && !element.isSignlessInteger(32)) ||
      reduce.getDimensions() != ArrayRef<int64_t>{type.getRank() - 1} ||
      !llvm::hasSingleElement(body.without_terminator()))
    return nullptr;
  Operation &combine = body.front();
  auto init = reduce.getInits()[0].getDefiningOp<linalg::FillOp>();
  TypedAttr from;
  if (body.getTerminator()->getOperand(0) != combine.getResult(0) ||
      llvm::any_of(combine.getOperands(),
                   [](Value v) { return !isa<BlockArgument>(v); }) ||
      combine.getOperand(0) == combine.getOperand(1) || !init ||
      !matchPattern(init.getInputs()[0], m_Constant(&from)) ||
      !isNeutral(from, &combine))
    return nullptr;
  return llvm::TypeSwitch<Operation *, const char *>(&combine)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return "add"; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return "mul"; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>([](auto) { return "max"; })
      .Case<arith::MinimumFOp, arith::MinSIOp>([](auto) { return "min"; })
      .Default(nullptr);
}

namespace {
/// Writes elementwise work, with the shapes of what it makes.
struct ElementwiseBuilder {
  ImplicitLocOpBuilder b;
  Shapes &shapes;

  template <typename Op> Value of(ValueRange operands) {
    return shapes.note(Op::create(b, operands), shapes.at(operands[0]));
  }
  Value constant(Value like, double value) {
    auto type = cast<RankedTensorType>(like.getType());
    auto attr = DenseElementsAttr::get(
        type, b.getFloatAttr(type.getElementType(), value));
    return shapes.note(arith::ConstantOp::create(b, attr), shapes.at(like));
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

/// A number for each row of `value`.
static Value reduceRows(ElementwiseBuilder &e, StringRef kind, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineMap shape = e.shapes.at(value);
  Value made = ReduceRowsOp::create(
      e.b,
      RankedTensorType::get(type.getShape().drop_back(), type.getElementType()),
      kind, value);
  return e.shapes.note(made, shape.getMajorSubMap(type.getRank() - 1));
}

/// The definition of greta.quantize_rows: a reduction, and work on rows and on
/// elements.
static void makeQuantized(QuantizeRowsOp op, Shapes &shapes) {
  ElementwiseBuilder e{ImplicitLocOpBuilder(op.getLoc(), op), shapes};
  RankedTensorType type = op.getResult().getType();
  Type element = type.getElementType();
  double largest = largestOf(element);
  Value x = e.converted(op.getX(), e.b.getF32Type());
  Value peak = reduceRows(e, "max", e.of<math::AbsFOp>(x));
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
    } else if (const char *kind = reductionKind(&op)) {
      ElementwiseBuilder e{ImplicitLocOpBuilder(op.getLoc(), &op), shapes};
      Value made = reduceRows(e, kind, op.getOperand(0));
      op.getResult(0).replaceAllUsesWith(made);
      op.erase();
    }
  }
}
