//===- TileToROCDLPairs.cpp - two elements in a register ------------------===//
//
// The lane level works on scalars; gfx9 and later multiply and add two of f16
// in a register at a time, CDNA two of f32 in neighbouring ones. Before the
// conversion
//
//   %v = vector.from_elements (arith.mulf %x[0], %w[0]), (.. %x[1], %w[1]), ..
//     →  %v = arith.mulf %x, %w : vector<8xf16>
//
// where each operand is all of one vector in its order, or one scalar. In a
// block with matrix instructions neighbours of f32 that do the same become one
// op of a pair, wherever they come from. Products
// of f16 that are added up one after another in f32 become the instruction for
// two:
//
//   math.fma %x1, %y1, (math.fma %x0, %y0, %s)    all but %s: f16 as f32
//     →  greta_tile.vector_dot [%x0, %x1], [%y0, %y1], %s
//
// Everywhere for squares of neighbours in a register, as norms have them; for
// any two where the target has no matrix unit, as the other operand of a GEMM
// needs its two put together once for several sums.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
namespace tile = greta::tile;

/// Returns the position of `value` in a vector; -1: it is no element of one.
static int64_t positionIn(Value &vector, Value value) {
  auto extract = value.getDefiningOp<vector::ExtractOp>();
  if (!extract || extract.hasDynamicPosition() ||
      extract.getStaticPosition().size() != 1 ||
      (vector && extract.getSource() != vector))
    return -1;
  vector = extract.getSource();
  return extract.getStaticPosition().front();
}

/// Returns `elements` as one vector, if they are the elements of one, or are
/// computed alike from such elements. Elements of f32 fill registers of their
/// own, so any will do.
static Value asVector(ArrayRef<Value> elements, OpBuilder &builder,
                      bool isOperand = false) {
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
      })) {
    if (!isOperand || !type.getElementType().isF32())
      return {};
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }
  SmallVector<Value, 2> operands;
  for (unsigned number : {0u, 1u}) {
    Value operand =
        asVector(llvm::map_to_vector(
                     elements,
                     [&](Value element) {
                       return element.getDefiningOp()->getOperand(number);
                     }),
                 builder, /*isOperand=*/true);
    if (!operand)
      return {};
    operands.push_back(operand);
  }
  OperationState state(loc, first->getName(), operands, type,
                       first->getAttrs());
  return builder.create(state)->getResult(0);
}

/// Returns the two f16 whose product `fma` adds; null: it adds something else.
static std::pair<Value, Value> factorsOf(math::FmaOp fma) {
  auto narrow = [](Value value) -> Value {
    auto wide = value.getDefiningOp<arith::ExtFOp>();
    return wide && wide.getIn().getType().isF16() ? wide.getIn() : Value();
  };
  Value x = narrow(fma.getA()), y = narrow(fma.getB());
  return x && y ? std::pair(x, y) : std::pair<Value, Value>();
}

/// Replaces `second`, and the fma whose result it adds to, by one instruction.
static void addPairs(math::FmaOp second, bool anyTwo) {
  auto first = second.getC().getDefiningOp<math::FmaOp>();
  if (!first || !first->hasOneUse())
    return;
  auto [x0, y0] = factorsOf(first);
  auto [x1, y1] = factorsOf(second);
  if (!x0 || !x1)
    return;
  if (!anyTwo) {
    Value vector;
    int64_t at = positionIn(vector, x0);
    if (x0 != y0 || x1 != y1 || at < 0 || at % 2 ||
        positionIn(vector, x1) != at + 1)
      return;
  }
  ImplicitLocOpBuilder b(second.getLoc(), second);
  auto type = VectorType::get(2, b.getF16Type());
  auto together = [&](Value low, Value high) -> Value {
    return vector::FromElementsOp::create(b, type, ValueRange{low, high});
  };
  Value x = together(x0, x1), y = together(y0, y1);
  second.replaceAllUsesWith(
      tile::VectorDotOp::create(b, x, y, first.getC()).getResult());
}

/// Returns the operands of two equal ops as one vector.
static Value pairOf(Value first, Value second, ImplicitLocOpBuilder &b) {
  auto type = VectorType::get(2, first.getType());
  if (first == second)
    return vector::BroadcastOp::create(b, type, first);
  Value vector;
  if (positionIn(vector, first) == 0 && positionIn(vector, second) == 1 &&
      vector.getType() == type)
    return vector;
  return vector::FromElementsOp::create(b, type, ValueRange{first, second});
}

/// Whether two ops that follow each other are the same arithmetic of f32.
static bool areAlike(Operation *first, Operation *second) {
  return second &&
         isa<arith::MulFOp, arith::AddFOp, arith::SubFOp, math::FmaOp>(first) &&
         first->getResult(0).getType().isF32() &&
         first->getName() == second->getName() &&
         first->getAttrDictionary() == second->getAttrDictionary() &&
         !first->use_empty() && !second->use_empty() &&
         !llvm::is_contained(second->getOperands(), first->getResult(0));
}

/// Joins two neighbouring ops to one op on a pair. This is done in loops with
/// matrix instructions, whose time such ops take.
static void pairNeighbours(Block *block) {
  if (block->getOps<tile::MmaOp>().empty())
    return;
  for (Operation *op = &block->front(); op;) {
    Operation *first = op, *second = op->getNextNode();
    op = second;
    if (!areAlike(first, second))
      continue;
    op = second->getNextNode();
    ImplicitLocOpBuilder b(first->getLoc(), second);
    SmallVector<Value, 3> operands;
    for (auto [x, y] : llvm::zip(first->getOperands(), second->getOperands()))
      operands.push_back(pairOf(x, y, b));
    OperationState state(first->getLoc(), first->getName(), operands,
                         operands.front().getType(), first->getAttrs());
    Value pair = b.create(state)->getResult(0);
    Operation *members[] = {first, second};
    for (auto [i, member] : llvm::enumerate(members)) {
      member->getResult(0).replaceAllUsesWith(
          vector::ExtractOp::create(b, pair, i));
      member->erase();
    }
  }
}

void greta::rocdl::pairElements(Operation *kernel, const TargetRow &row) {
  SmallVector<vector::FromElementsOp> made;
  SmallVector<math::FmaOp> sums;
  bool hasPairsOfF32 = row.hasFeature("packed_f32");
  auto isPaired = [&](Type type) {
    return type.isF16() || (type.isF32() && hasPairsOfF32);
  };
  kernel->walk([&](Operation *op) {
    if (auto from = dyn_cast<vector::FromElementsOp>(op);
        from && isPaired(from.getType().getElementType()) &&
        from.getType().getNumElements() % 2 == 0)
      made.push_back(from);
    else if (auto fma = dyn_cast<math::FmaOp>(op))
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
  for (math::FmaOp second : sums)
    addPairs(second, row.matrix.empty());
  if (hasPairsOfF32)
    kernel->walk(pairNeighbours);
}
