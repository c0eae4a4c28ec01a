//===- LoadAhead.cpp - loads in front of the phase that needs them --------===//
//
// In: a joined kernel, whose phases are loops over tiles with barriers over the
// grid between them. Out: the same, but what a tile reads of memory that nobody
// writes is on its way before the tile begins:
//
//                               %first = load %weights[my first tile]
//   grid_barrier                grid_barrier
//   for %tile {            →    for %tile iter_args(%w = %first) {
//     %w = load %weights          %next = load %weights[my next tile]
//     work on %w                  work on %w
//   }                             yield %next
//                               }
//
// The last iteration loads its own tile once more, from a cache, because there
// is no next one. A joined kernel has few workgroups on a compute unit, so
// nothing else keeps loads in flight while a tile's sums are made and the grid
// meets.
//
//===----------------------------------------------------------------------===//

#include "LoadAhead.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// The registers of 32 bits of a lane that a phase's loads may hold. A lane has
/// about 255, of which the tile before needs its own.
static constexpr unsigned mostWords = 64;

static unsigned wordsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return llvm::divideCeil((vector ? vector.getNumElements() : 1) * bits, 32);
}

/// An address in an argument that nobody writes is read-only.
static bool isReadOnly(Value base, FuncOp kernel) {
  BlockArgument argument = argumentOf(base);
  return argument && kernel.getArgAttr(argument.getArgNumber(), readonlyName);
}

/// Adds an op of a loop's body to `sources`, behind the ops of the body that it
/// depends on. Returns false if one of these touches memory.
static bool addSources(Operation *op, scf::ForOp loop,
                       llvm::SetVector<Operation *> &sources) {
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (!source || source->getBlock() != loop.getBody() ||
        sources.contains(source))
      continue;
    if (source->getNumRegions() || !isMemoryEffectFree(source) ||
        !addSources(source, loop, sources))
      return false;
  }
  sources.insert(op);
  return true;
}

namespace {
class Phase {
public:
  Phase(FuncOp kernel, scf::ForOp loop);
  void loadAhead();

private:
  Operation *makeRoom();
  SmallVector<Value> loadsOf(Value tile, Value last);

  scf::ForOp loop;
  IRRewriter rewriter;
  SmallVector<PtrLoadOp> loads;
  llvm::SetVector<Operation *> sources; // of the loads, and these
};
} // namespace

Phase::Phase(FuncOp kernel, scf::ForOp loop)
    : loop(loop), rewriter(loop->getContext()) {
  unsigned words = 0;
  for (auto load : loop.getOps<PtrLoadOp>()) {
    unsigned more = wordsOf(load.getType());
    llvm::SetVector<Operation *> all = sources;
    if (words + more > mostWords || !isReadOnly(load.getBase(), kernel) ||
        !addSources(load, loop, all))
      continue;
    words += more;
    sources = std::move(all);
    loads.push_back(load);
  }
}

/// Returns the op in front of which the first loads go: the barrier before the
/// phase, or the loop if there is none. Ops that compute the loop's operands
/// move in front of the barrier.
Operation *Phase::makeRoom() {
  SmallVector<Operation *> given;
  Operation *op = loop->getPrevNode();
  for (; op && (isMemoryEffectFree(op) || isa<SharedAllocOp>(op));
       op = op->getPrevNode())
    given.push_back(op);
  if (!isa_and_nonnull<GridBarrierOp>(op))
    return loop;
  for (Operation *one : llvm::reverse(given))
    one->moveBefore(op);
  return op;
}

SmallVector<Value> Phase::loadsOf(Value tile, Value last) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(),
              arith::MinSIOp::create(rewriter, loop.getLoc(), tile, last));
  for (Operation *op : sources)
    rewriter.clone(*op, mapping);
  return llvm::map_to_vector(loads, [&](PtrLoadOp load) -> Value {
    return mapping.lookup(load.getResult());
  });
}

void Phase::loadAhead() {
  APInt tiles, residents;
  if (loads.empty() ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&tiles)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&residents)))
    return;
  rewriter.setInsertionPoint(makeRoom());
  Value last = arith::ConstantOp::create(
      rewriter, loop.getLoc(),
      rewriter.getI32IntegerAttr(tiles.getSExtValue() - 1));
  SmallVector<Value> first = loadsOf(loop.getLowerBound(), last);
  auto replaceLoads = [&](ValueRange loaded) {
    for (auto [load, value] : llvm::zip(loads, loaded))
      rewriter.replaceOp(load, value);
  };
  // Nobody has a second tile.
  if (tiles.sle(residents))
    return replaceLoads(first);
  auto loadNext = [&](OpBuilder &, Location loc,
                      ArrayRef<BlockArgument> loaded) {
    rewriter.setInsertionPointToStart(loop.getBody());
    Value tile = arith::AddIOp::create(rewriter, loc, loop.getInductionVar(),
                                       loop.getStep());
    SmallVector<Value> next = loadsOf(tile, last);
    replaceLoads(ValueRange(loaded));
    return next;
  };
  (void)loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false, loadNext);
}

void greta::loadAhead(FuncOp kernel) {
  for (auto loop : llvm::to_vector(kernel.getOps<scf::ForOp>()))
    Phase(kernel, loop).loadAhead();
}
