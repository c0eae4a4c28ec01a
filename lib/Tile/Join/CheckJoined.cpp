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

#include "greta/Interface/Launches.h"
#include "greta/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILECHECKJOINEDPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// The arguments that each pointer may be made of, through loops and branches.
class Origins {
public:
  explicit Origins(FuncOp kernel);
  llvm::SmallBitVector of(Value pointer) const {
    auto known = origins.find(pointer);
    // An address out of memory may be any.
    return known == origins.end() ? llvm::SmallBitVector(arguments, true)
                                  : known->second;
  }

private:
  void follow(BlockArgument argument);

  unsigned arguments;
  llvm::DenseMap<Value, llvm::SmallBitVector> origins;
};

/// The arguments that an op reaches memory through.
struct Touched {
  Touched(Operation *root, unsigned arguments, const Origins &origins);
  bool any() const { return reads.any() || writes.any(); }

  llvm::SmallBitVector reads, writes;
};

class Checker {
public:
  Checker(FuncOp kernel, LaunchOp launch)
      : kernel(kernel), launch(launch), workgroups(launch.getResidents()) {}
  LogicalResult run();

private:
  LogicalResult checkMemory();
  LogicalResult checkTrial();
  bool isZeroed(unsigned number);
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

Origins::Origins(FuncOp kernel) : arguments(kernel.getNumArguments()) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<PtrType>(argument.getType()))
      follow(argument);
}

/// Whatever takes a pointer may hand it on to all pointers that it makes, those
/// of its regions and, where it ends a region, of the op around it.
void Origins::follow(BlockArgument argument) {
  SmallVector<Value> left{argument};
  auto reach = [&](ValueRange values) {
    for (Value value : values)
      if (isa<PtrType>(value.getType()))
        left.push_back(value);
  };
  while (!left.empty()) {
    Value value = left.pop_back_val();
    auto [known, isNew] = origins.try_emplace(value, arguments);
    if (known->second.test(argument.getArgNumber()))
      continue;
    known->second.set(argument.getArgNumber());
    for (Operation *user : value.getUsers()) {
      bool ends = user->hasTrait<OpTrait::IsTerminator>();
      for (Operation *op : {user, ends ? user->getParentOp() : nullptr}) {
        if (!op || isa<FuncOp>(op))
          continue;
        reach(op->getResults());
        for (Region &region : op->getRegions())
          for (Block &block : region)
            reach(block.getArguments());
      }
    }
  }
}

Touched::Touched(Operation *root, unsigned arguments, const Origins &origins)
    : reads(arguments), writes(arguments) {
  root->walk([&](Operation *op) {
    if (isa<PtrLoadOp, PtrLoadSharedOp, PtrAtomicRmwOp, PtrAtomicCasOp>(op))
      reads |= origins.of(op->getOperand(0));
    if (auto store = dyn_cast<PtrStoreOp>(op))
      writes |= origins.of(store.getBase());
    if (isa<PtrAtomicRmwOp, PtrAtomicCasOp>(op))
      writes |= origins.of(op->getOperand(0));
  });
}

/// Arguments are told apart by their numbers, so that they have to be memory of
/// their own.
LogicalResult Checker::checkMemory() {
  llvm::SmallDenseMap<Value, unsigned> known;
  for (auto [number, operand] : llvm::enumerate(launch.getOperands())) {
    auto [first, isNew] = known.try_emplace(memoryOf(operand), number);
    if (!isNew && isa<RankedTensorType>(operand.getType()))
      return launch.emitOpError("is resident and passes one tensor as operand ")
             << first->second << " and as operand " << number;
  }
  return success();
}

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

/// Whether an argument is memory that holds zeros before every launch.
bool Checker::isZeroed(unsigned number) {
  unsigned next = launch.getNumOperands();
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    if (!launch.getTiedOperand(i) && next++ == number)
      return launch.isZeroed(i);
  return false;
}

LogicalResult Checker::checkBarrier(GridBarrierOp barrier) {
  auto argument = dyn_cast<BlockArgument>(barrier.getCounter());
  if (!argument || (counter && argument != counter))
    return barrier.emitOpError(
        "counts in another word than the barriers before it");
  if (!isZeroed(argument.getArgNumber()))
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
  APInt step, end;
  if (!first || first.getAxis() != 0 ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) ||
      step.getSExtValue() != workgroups ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)))
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
  if (failed(checkMemory()) || failed(checkTrial()))
    return failure();
  Origins origins(kernel);
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
    llvm::SmallDenseSet<Operation *> resident;
    WalkResult walk = getOperation().walk([&](LaunchOp launch) {
      if (!launch.getResident())
        return WalkResult::advance();
      auto kernel = symbols.lookup<FuncOp>(launch.getKernel());
      resident.insert(kernel);
      return Checker(kernel, launch).run().failed() ? WalkResult::interrupt()
                                                    : WalkResult::advance();
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
