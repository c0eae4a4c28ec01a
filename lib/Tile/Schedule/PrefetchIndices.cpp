//===- PrefetchIndices.cpp - what addresses follow from, ahead ------------===//

#include "PrefetchIndices.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Facts.h"
#include "greta/Tile/LoopBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

using Slice = llvm::SetVector<Operation *>;

/// Adds the ops that compute a value to `slice`, in their order. Returns
/// whether they start from the iteration's number and values from outside,
/// without loads.
static bool collect(Value value, scf::ForOp loop, Slice &slice) {
  if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || !isMemoryEffectFree(op) ||
      op->getNumRegions())
    return false;
  if (slice.contains(op))
    return true;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) {
        return collect(operand, loop, slice);
      }))
    return false;
  slice.insert(op);
  return true;
}

/// Whether a value is an index: another load's address in the body depends on
/// it.
static bool isIndex(Value value, scf::ForOp loop) {
  llvm::SetVector<Operation *> users(value.getUsers().begin(),
                                     value.getUsers().end());
  for (unsigned i = 0; i != users.size(); ++i) {
    Operation *user = users[i];
    if (user->getBlock() != loop.getBody())
      continue;
    if (isa<LoadScatteredOp, LoadOp>(user))
      return true;
    if (isMemoryEffectFree(user) && !isa<DotOp>(user))
      users.insert(user->getUsers().begin(), user->getUsers().end());
  }
  return false;
}

void greta::prefetchIndices(scf::ForOp loop) {
  if (writesMemory(loop, Except::Locals))
    return;
  SmallVector<LoadScatteredOp> loads;
  SmallVector<Slice> slices;
  for (auto load : loop.getBody()->getOps<LoadScatteredOp>()) {
    Slice slice;
    if (llvm::all_of(
            load->getOperands(),
            [&](Value operand) { return collect(operand, loop, slice); }) &&
        isIndex(load.getResult(), loop)) {
      loads.push_back(load);
      slices.push_back(std::move(slice));
    }
  }
  if (loads.empty())
    return;

  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Arithmetic a{b};
  Value number = loop.getInductionVar();
  auto clone = [&](unsigned i, Value iteration) {
    IRMapping mapping;
    mapping.map(number, iteration);
    for (Operation *op : slices[i])
      b.clone(*op, mapping);
    return cast<LoadScatteredOp>(b.clone(*loads[i], mapping));
  };
  SmallVector<Value> first, next;
  Value hasIterations = a.below(loop.getLowerBound(), loop.getUpperBound());
  // The next counter may be no number of the type if counters may be negative.
  auto lowest =
      Facts(loop->getParentOfType<FuncOp>()).rangeOf(loop.getLowerBound());
  bool isNatural = lowest && lowest->first >= 0;
  for (unsigned i = 0; i != loads.size(); ++i) {
    LoadScatteredOp load = clone(i, loop.getLowerBound());
    // Before a loop without iterations nothing may be loaded.
    b.setInsertionPoint(load);
    Value mask = hasIterations;
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (type)
      mask = SplatOp::create(b, type.clone(b.getI1Type()), mask);
    if (load.getMask())
      mask = a.both(load.getMask(), mask);
    load.getMaskMutable().assign(mask);
    b.setInsertionPoint(loop);
    first.push_back(load.getResult());
  }
  for (unsigned i = 0; i != loads.size(); ++i) {
    // Beyond the end they come again.
    b.setInsertionPoint(loads[i]);
    Value after = a.add(number, loop.getStep());
    Value isIteration =
        isNatural
            ? a.compare(Arithmetic::Predicate::ult, after, loop.getUpperBound())
            : a.compare(Arithmetic::Predicate::ult, loop.getStep(),
                        a.sub(loop.getUpperBound(), number));
    after = a.select(isIteration, after, number);
    next.push_back(clone(i, after).getResult());
  }
  IRRewriter rewriter(b);
  auto replaced = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return next; }));
  auto carried = replaced.getRegionIterArgs().take_back(loads.size());
  for (auto [load, argument] : llvm::zip(loads, carried)) {
    load.getResult().replaceAllUsesWith(argument);
    load.erase();
  }
}
