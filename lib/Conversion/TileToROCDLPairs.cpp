//===- TileToROCDLPairs.cpp - two elements in a register ------------------===//
//
// The lane level works on scalars; gfx9 and later multiply and add two of f16
// in a register at a time. Before the conversion
//
//   %v = vector.from_elements (arith.mulf %x[0], %w[0]), (.. %x[1], %w[1]), ..
//     →  %v = arith.mulf %x, %w : vector<8xf16>
//
// where each operand is all of one vector in its order, or one scalar. Squares
// of neighbours that are added up one after another become the instruction for
// two:
//
//   math.fma %x1, %x1, (math.fma %x0, %x0, %s)    x0, x1: %x[0], %x[1] as f32
//     →  llvm.amdgcn.fdot2 %x[0..1], %x[0..1], %s
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

/// The position that `value` has in a vector; -1: it is no element of one.
static int64_t positionIn(Value &vector, Value value) {
  auto extract = value.getDefiningOp<vector::ExtractOp>();
  if (!extract || extract.hasDynamicPosition() ||
      extract.getStaticPosition().size() != 1 ||
      (vector && extract.getSource() != vector))
    return -1;
  vector = extract.getSource();
  return extract.getStaticPosition().front();
}

/// `elements` as one vector, if they are that or computed alike from such.
static Value asVector(ArrayRef<Value> elements, OpBuilder &builder) {
  auto type = VectorType::get(elements.size(), elements.front().getType());
  Location loc = elements.front().getLoc();
  if (llvm::all_equal(elements))
    return vector::BroadcastOp::create(builder, loc, type, elements.front());
  Value whole;
  bool isWhole = true;
  for (auto [i, element] : llvm::enumerate(elements))
    isWhole &= positionIn(whole, element) == static_cast<int64_t>(i);
  if (isWhole && whole.getType() == type)
    return whole;
  Operation *first = elements.front().getDefiningOp();
  if (!first || !isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(first) ||
      !llvm::all_of(elements, [&](Value element) {
        Operation *op = element.getDefiningOp();
        return op && op->getName() == first->getName() &&
               op->getAttrs() == first->getAttrs() && element.hasOneUse();
      }))
    return {};
  SmallVector<Value, 2> operands;
  for (unsigned number : {0u, 1u}) {
    Value operand =
        asVector(llvm::map_to_vector(
                     elements,
                     [&](Value element) {
                       return element.getDefiningOp()->getOperand(number);
                     }),
                 builder);
    if (!operand)
      return {};
    operands.push_back(operand);
  }
  OperationState state(loc, first->getName(), operands, type,
                       first->getAttrs());
  return builder.create(state)->getResult(0);
}

/// The f16 of which `fma` adds the square; null: it does not.
static Value squared(math::FmaOp fma) {
  if (!fma || fma.getA() != fma.getB())
    return {};
  auto wide = fma.getA().getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn().getType().isF16() ? wide.getIn() : Value();
}

void greta::rocdl::pairElements(Operation *kernel) {
  SmallVector<vector::FromElementsOp> made;
  SmallVector<math::FmaOp> sums;
  kernel->walk([&](Operation *op) {
    if (auto from = dyn_cast<vector::FromElementsOp>(op);
        from && from.getType().getElementType().isF16() &&
        from.getType().getNumElements() % 2 == 0)
      made.push_back(from);
    else if (auto fma = dyn_cast<math::FmaOp>(op); fma && squared(fma))
      sums.push_back(fma);
  });
  for (vector::FromElementsOp from : made) {
    OpBuilder builder(from);
    if (Value whole =
            asVector(SmallVector<Value>(from.getElements()), builder)) {
      from.replaceAllUsesWith(whole);
      from.erase();
    }
  }
  for (math::FmaOp second : sums) {
    auto first = second.getC().getDefiningOp<math::FmaOp>();
    Value vector, low = squared(first), high = squared(second);
    if (!low || !first->hasOneUse())
      continue;
    int64_t at = positionIn(vector, low);
    if (at < 0 || at % 2 || positionIn(vector, high) != at + 1)
      continue;
    ImplicitLocOpBuilder b(second.getLoc(), second);
    Value pair = vector::ShuffleOp::create(b, vector, vector,
                                           ArrayRef<int64_t>{at, at + 1});
    Value no = arith::ConstantIntOp::create(b, 0, 1);
    auto sum = LLVM::CallIntrinsicOp::create(
        b, b.getF32Type(), b.getStringAttr("llvm.amdgcn.fdot2"),
        ValueRange{pair, pair, first.getC(), no});
    second.replaceAllUsesWith(sum->getResult(0));
  }
}
