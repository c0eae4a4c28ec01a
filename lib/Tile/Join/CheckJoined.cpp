//===- CheckJoined.cpp - greta-tile-check-joined --------------------------===//
//
// In: kernels at the lane level and their launches. Out: nothing, or an error
// at the op that breaks a resident launch. It shares no code with the pass that
// joins launches, and takes nothing from it but the kernel.
//
// That all waits end: workgroups are all there (the launch is resident), and
// each comes to every barrier, as nothing in the entry block branches. That a
// reader is behind its writer: phases between two barriers touch nothing of
// each other's, and those with a barrier between them are ordered by it. That
// each tile is done, and once: tiles of workgroup w are w, w + n, w + 2 n, ..
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "greta/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILECHECKJOINEDPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

class Checker {
public:
  Checker(FuncOp kernel, LaunchOp launch)
      : kernel(kernel), launch(launch), workgroups(launch.getResidents()) {}
  LogicalResult run();

private:
  LogicalResult checkTrial();
  LogicalResult checkBarrier(GridBarrierOp barrier);
  LogicalResult checkPhase(Operation *op, const Touched &touched);

  FuncOp kernel;
  LaunchOp launch;
  int64_t workgroups, arrived = 0;
  bool isOver = false;
  BlockArgument counter;
  SmallVector<std::pair<Operation *, Touched>> phases; // since the last barrier
};

} // namespace

/// A launch that only tries whether workgroups run at a time is another launch
/// than this one: it differs in the last argument, which nobody looks at yet.
LogicalResult Checker::checkTrial() {
  ArrayRef<AffineExpr> scalars = launch.getScalars().getResults();
  if (scalars.empty() ||
      scalars.back() != getAffineConstantExpr(0, launch.getContext()))
    return launch.emitOpError("is resident, and its last scalar is not zero, "
                              "which says that it is no trial");
  BlockArgument last = kernel.getBody().getArguments().back();
  if (!last.getType().isInteger(32) || !last.use_empty())
    return kernel.emitOpError("uses its last argument, which says whether the "
                              "launch is a trial, or has another type than i32 "
                              "for it");
  return success();
}

LogicalResult Checker::checkBarrier(GridBarrierOp barrier) {
  auto argument = dyn_cast<BlockArgument>(barrier.getCounter());
  if (!argument || (counter && argument != counter))
    return barrier.emitOpError(
        "counts in another word than the barriers before it");
  if (!isZeroed(launch, argument.getArgNumber()))
    return barrier.emitOpError("counts in argument ")
           << argument.getArgNumber()
           << ", in which the launch does not promise zeros";
  counter = argument;
  if (isOver)
    return barrier.emitOpError("stands behind the last barrier, whose counter "
                               "may be zero again");
  arrived += workgroups;
  if (barrier.getUntil() != arrived)
    return barrier.emitOpError("waits until ")
           << barrier.getUntil() << " have arrived; with " << workgroups
           << " workgroups it is over at " << arrived;
  isOver = barrier.getLast();
  phases.clear();
  return success();
}

LogicalResult Checker::checkPhase(Operation *op, const Touched &touched) {
  if (isOver)
    return op->emitOpError("touches memory behind the last barrier");
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return op->emitOpError("touches memory outside a phase, which is a loop "
                           "over tiles");
  auto first = loop.getLowerBound().getDefiningOp<ProgramIdOp>();
  if (!first || first.getAxis() != 0 ||
      !isConstantIntValue(loop.getStep(), workgroups) ||
      !getConstantIntValue(loop.getUpperBound()))
    return op->emitOpError("is no loop from program_id 0 by ")
           << workgroups
           << ", the launch's workgroups, to a constant: tiles are left out or "
              "done twice";
  if (!loop->use_empty())
    return op->emitOpError("hands what it read to what is behind it, which may "
                           "be behind a later writer");
  for (auto &[other, its] : phases) {
    llvm::SmallBitVector both = touched.writes;
    both &= its.writes;
    llvm::SmallBitVector readLater = touched.reads, writtenLater = its.reads;
    readLater &= its.writes;
    writtenLater &= touched.writes;
    both |= readLater;
    both |= writtenLater;
    if (int number = both.find_first(); number >= 0) {
      InFlightDiagnostic error =
          op->emitOpError("touches argument ")
          << number
          << ", as a phase before it does, one of them writes, and "
             "no barrier over the grid is between them";
      error.attachNote(other->getLoc()) << "the phase before";
      return error;
    }
  }
  phases.push_back({op, touched});
  return success();
}

LogicalResult Checker::run() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("has branches around barriers over the grid");
  Origins origins(kernel);
  if (failed(checkMemory(kernel, launch, origins)) || failed(checkTrial()))
    return failure();
  Touched inAll(kernel, kernel.getNumArguments(), origins);
  for (Operation &op : kernel.getBody().front()) {
    if (auto barrier = dyn_cast<GridBarrierOp>(op)) {
      if (failed(checkBarrier(barrier)))
        return failure();
      continue;
    }
    Touched touched(&op, kernel.getNumArguments(), origins);
    // Who reads what nobody writes waits for nobody.
    if (isa<PtrLoadOp>(op) && !touched.reads.anyCommon(inAll.writes))
      continue;
    if (touched.any() && failed(checkPhase(&op, touched)))
      return failure();
  }
  if (arrived && !isOver)
    return kernel.emitOpError("ends without a last barrier over the grid, so "
                              "that the next launch does not find zero");
  if (counter)
    for (Operation *user : counter.getUsers())
      if (!isa<GridBarrierOp>(user))
        return user->emitOpError("takes argument ")
               << counter.getArgNumber()
               << ", the counter of barriers over the grid";
  return success();
}

namespace {
struct CheckJoinedPass
    : greta::impl::GretaTileCheckJoinedPassBase<CheckJoinedPass> {
  using GretaTileCheckJoinedPassBase::GretaTileCheckJoinedPassBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    WalkResult walk = getOperation().walk([&](LaunchOp launch) -> WalkResult {
      if (!launch.getResident())
        return WalkResult::advance();
      auto kernel = symbols.lookup<FuncOp>(launch.getKernel());
      return Checker(kernel, launch).run();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](LaunchOp launch) {
      auto kernel = symbols.lookup<FuncOp>(launch.getKernel());
      if (launch.getResident() ||
          kernel.getBody().getOps<GridBarrierOp>().empty())
        return;
      launch.emitOpError("runs @")
          << launch.getKernel()
          << ", whose workgroups meet, and is not resident";
      signalPassFailure();
    });
  }
};
} // namespace
