//===- TileToROCDLPairs.cpp - two elements in a register ------------------===//
//
// The lane level works on scalars; CDNA multiplies and adds two of f32 in
// neighbouring registers at a time. In a block with matrix instructions
// neighbours of f32 that do the same become one op of a pair, wherever they
// come from. Pairs of f16 are left to LLVM: what has many waits for memory.
// Products of f16 that are added up one after another in f32 become the
// instruction for two:
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
  SmallVector<math::FmaOp> sums;
  kernel->walk([&](math::FmaOp fma) { sums.push_back(fma); });
  for (math::FmaOp second : sums)
    addPairs(second, row.matrix.empty());
  if (row.hasFeature("packed_f32"))
    kernel->walk(pairNeighbours);
}
