//===- CheckTails.cpp - greta-tile-check-tails ----------------------------===//
//
// In: kernels at the lane level and their launches. Out: nothing, or an error
// at the op that breaks a launch with a tail, which its last workgroup to
// arrive does. It shares no code with the pass that makes tails, and takes
// nothing from it but the kernel.
//
// That the tail is done, and once: each workgroup adds one to a word that holds
// zero before, so that one of them finds all others there, and it alone goes
// on. That it sees what they wrote: all that they touch is in front of a
// release and a barrier, behind which the first lane releases and counts, and
// the tail is behind that lane's acquire, a barrier and an acquire. As that
// orders what they read, too, nobody reads what the tail writes. That it
// computes the same whoever comes last: nothing in it depends on which
// workgroup that is, or on what it read before. That the next launch finds
// zero: the tail leaves it there. Nobody waits, but for barriers within the
// workgroup, which all of its lanes come to, as all look at one number.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILECHECKTAILSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// The ops that touch memory, or order what does.
enum class Step { Releases, Meets, Branches, Adds, Acquires, Tells, Looks };

class TailChecker {
public:
  TailChecker(FuncOp kernel, LaunchOp launch)
      : kernel(kernel), launch(launch) {}
  LogicalResult run();

private:
  LogicalResult checkSteps();
  LogicalResult checkCount();
  LogicalResult checkTold();
  LogicalResult checkReset();
  LogicalResult checkValues();
  LogicalResult checkValue(Value value, Operation *user);

  FuncOp kernel;
  LaunchOp launch;
  scf::IfOp counts, tail;
  PtrAtomicRmwOp count;
  SharedStoreOp tells;
  SharedLoadOp looks;
};

} // namespace

static bool isOfDevice(MemoryScope scope) {
  return scope != MemoryScope::Workgroup;
}

/// Whether an update of the kind `kind` puts or adds a number.
static bool updates(Operation *op, AtomicKind kind, int64_t number) {
  auto rmw = dyn_cast<PtrAtomicRmwOp>(op);
  return rmw && rmw.getKind() == kind && isOfDevice(rmw.getScope()) &&
         isConstantIntValue(rmw.getOffset(), 0) &&
         isConstantIntValue(rmw.getValue(), number);
}

static bool does(Operation *op, Step step) {
  auto isFence = [&](MemoryOrder order) {
    auto fence = dyn_cast<FenceOp>(op);
    return fence && fence.getOrder() == order && isOfDevice(fence.getScope());
  };
  switch (step) {
  case Step::Releases:
    return isFence(MemoryOrder::Release);
  case Step::Acquires:
    return isFence(MemoryOrder::Acquire);
  case Step::Meets: {
    auto barrier = dyn_cast<BarrierOp>(op);
    return barrier && barrier.getGlobal();
  }
  case Step::Branches: {
    auto branch = dyn_cast<scf::IfOp>(op);
    return branch && !branch.elseBlock();
  }
  case Step::Adds:
    return updates(op, AtomicKind::Add, 1);
  case Step::Tells:
    return isa<SharedStoreOp>(op);
  case Step::Looks:
    return isa<SharedLoadOp>(op);
  }
  return false;
}

static StringRef textOf(Step step) {
  switch (step) {
  case Step::Releases:
    return "a release to the device";
  case Step::Acquires:
    return "an acquire from the device";
  case Step::Meets:
    return "a barrier that orders global memory";
  case Step::Branches:
    return "a branch without else";
  case Step::Adds:
    return "an addition of one to the device's count";
  case Step::Tells:
    return "a store to shared memory of what was counted before";
  case Step::Looks:
    return "a load from shared memory of what was counted before";
  }
  return "";
}

/// The ops of a block that touch memory, or order what does. Arrays are none.
static SmallVector<Operation *> effectsOf(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op) && !isa<SharedAllocOp>(op))
      ops.push_back(&op);
  return ops;
}

/// Fails unless the ops are these steps; with fewer steps than ops, unless the
/// last ones are.
static LogicalResult match(Operation *around, ArrayRef<Operation *> ops,
                           ArrayRef<Step> steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    Step step = steps[steps.size() - 1 - i];
    if (i == ops.size())
      return around->emitOpError("has no ")
             << textOf(step).split(' ').second << " for a tail";
    Operation *op = ops[ops.size() - 1 - i];
    if (!does(op, step))
      return op->emitOpError("stands where a launch with a tail has ")
             << textOf(step);
  }
  return success();
}

/// Whether this is so in the workgroup's first lane alone.
static bool isFirstLane(Value condition) {
  auto compared = condition.getDefiningOp<arith::CmpIOp>();
  if (!compared || compared.getPredicate() != arith::CmpIPredicate::eq ||
      !isConstantIntValue(compared.getRhs(), 0))
    return false;
  auto ids = compared.getLhs().getDefiningOp<arith::OrIOp>();
  if (!ids)
    return false;
  auto are = [&](Value lane, Value wave) {
    return lane.getDefiningOp<LaneIdOp>() && wave.getDefiningOp<WaveIdOp>();
  };
  return are(ids.getLhs(), ids.getRhs()) || are(ids.getRhs(), ids.getLhs());
}

/// Everything that is not part of the count or the tail is in front of both.
LogicalResult TailChecker::checkSteps() {
  SmallVector<Operation *> ops = effectsOf(kernel.getBody().front());
  if (failed(match(kernel, ops,
                   {Step::Releases, Step::Meets, Step::Branches, Step::Meets,
                    Step::Looks, Step::Branches})))
    return failure();
  tail = cast<scf::IfOp>(ops.back());
  looks = cast<SharedLoadOp>(ops[ops.size() - 2]);
  counts = cast<scf::IfOp>(ops[ops.size() - 4]);
  if (!isFirstLane(counts.getCondition()))
    return counts.emitOpError("counts a workgroup that has a tail in other "
                              "lanes than the first");
  SmallVector<Operation *> inCount = effectsOf(*counts.thenBlock());
  if (failed(match(counts, inCount,
                   {Step::Releases, Step::Adds, Step::Tells, Step::Acquires})))
    return failure();
  if (inCount.size() > 4)
    return inCount.front()->emitOpError(
        "stands in front of the release with which a workgroup is counted");
  count = cast<PtrAtomicRmwOp>(inCount[1]);
  tells = cast<SharedStoreOp>(inCount[2]);
  SmallVector<Operation *> inTail = effectsOf(*tail.thenBlock());
  if (inTail.empty() || !does(inTail.front(), Step::Acquires))
    return tail.emitOpError("is a tail and does not begin with ")
           << textOf(Step::Acquires);
  return success();
}

/// The last of so many workgroups finds all but itself.
LogicalResult TailChecker::checkCount() {
  int64_t workgroups = 1;
  for (AffineExpr axis : launch.getGrid().getResults()) {
    auto constant = dyn_cast<AffineConstantExpr>(axis);
    if (!constant)
      return launch.emitOpError("has a tail, and its grid is not constant");
    workgroups *= constant.getValue();
  }
  if (workgroups < 1)
    return launch.emitOpError("has a tail, and no workgroup that does it");
  auto compared = tail.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compared || compared.getPredicate() != arith::CmpIPredicate::eq ||
      compared.getLhs() != looks.getResult() ||
      !isConstantIntValue(compared.getRhs(), workgroups - 1))
    return tail.emitOpError("is a tail, and its condition is not that ")
           << workgroups - 1 << " of the launch's " << workgroups
           << " workgroups were counted before";
  auto counter = dyn_cast<BlockArgument>(count.getBase());
  if (!counter || !isa<FuncOp>(counter.getOwner()->getParentOp()))
    return count.emitOpError("counts in a word that is no argument");
  if (!isZeroed(launch, counter.getArgNumber()))
    return count.emitOpError("counts in argument ")
           << counter.getArgNumber()
           << ", in which the launch does not promise zeros";
  return success();
}

/// All lanes look at what the first one was told.
LogicalResult TailChecker::checkTold() {
  if (tells.getValue() != count.getResult())
    return tells.emitOpError("is not the number that was counted before");
  Value array = looks.getArray();
  if (!array.getDefiningOp<SharedAllocOp>() || tells.getArray() != array ||
      !isConstantIntValue(tells.getIndex(), 0) ||
      !isConstantIntValue(looks.getIndex(), 0))
    return looks.emitOpError("looks at another place than the first lane's "
                             "number");
  for (Operation *user : array.getUsers())
    if (user != tells && user != looks)
      return user->emitOpError("uses the array that says how many workgroups "
                               "were counted before");
  return success();
}

/// Only the count and one exchange in the tail touch the word.
LogicalResult TailChecker::checkReset() {
  auto counter = cast<BlockArgument>(count.getBase());
  bool isReset = false;
  for (Operation *user : counter.getUsers()) {
    if (user == count)
      continue;
    auto first = dyn_cast<scf::IfOp>(user->getParentOp());
    if (isReset || !updates(user, AtomicKind::Xchg, 0) || !first ||
        user->getBlock() != first.thenBlock() ||
        !isFirstLane(first.getCondition()) ||
        first->getBlock() != tail.thenBlock())
      return user->emitOpError("takes argument ")
             << counter.getArgNumber()
             << ", in which workgroups are counted, and is not the first "
                "lane's one exchange with zero in the tail";
    isReset = true;
  }
  return isReset
             ? success()
             : tail.emitOpError("is a tail, and leaves no zero in argument ")
                   << counter.getArgNumber() << " for the next launch";
}

/// A value of before the tail must be the same in all workgroups, and must not
/// be from memory, which others may have written since.
LogicalResult TailChecker::checkValue(Value value, Operation *user) {
  llvm::SetVector<Value> made;
  made.insert(value);
  for (size_t i = 0; i < made.size(); ++i) {
    Operation *from = made[i].getDefiningOp();
    if (!from)
      continue; // an argument
    if (isa<ProgramIdOp>(from))
      return user->emitOpError("depends in a tail on which workgroup this is");
    if (isa<SharedAllocOp>(from)) {
      for (Operation *other : from->getUsers())
        if (!tail->isProperAncestor(other))
          return user->emitOpError("uses in a tail an array that is used "
                                   "before it, too");
      continue;
    }
    if (!isPure(from) || from->getNumRegions())
      return user->emitOpError("takes in a tail what was read before it");
    made.insert_range(from->getOperands());
  }
  return success();
}

LogicalResult TailChecker::checkValues() {
  WalkResult walk = tail.thenBlock()->walk([&](Operation *op) -> WalkResult {
    if (isa<ProgramIdOp>(op))
      return op->emitOpError("depends in a tail on which workgroup this is");
    for (Value operand : op->getOperands())
      if (!tail.getThenRegion().isAncestor(operand.getParentRegion()) &&
          failed(checkValue(operand, op)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult TailChecker::run() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("has branches around the count of a tail");
  if (failed(checkMemory(kernel, launch, Origins(kernel))) ||
      failed(checkSteps()) || failed(checkCount()) || failed(checkTold()) ||
      failed(checkReset()))
    return failure();
  return checkValues();
}

namespace {
struct CheckTailsPass
    : greta::impl::GretaTileCheckTailsPassBase<CheckTailsPass> {
  using GretaTileCheckTailsPassBase::GretaTileCheckTailsPassBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<LaunchOp> launches;
    llvm::SmallDenseSet<Operation *> withTails;
    getOperation().walk([&](LaunchOp launch) {
      launches.push_back(launch);
      DictionaryAttr config = launch.getConfigAttr();
      if (config && config.contains("tail"))
        withTails.insert(symbols.lookup<FuncOp>(launch.getKernel()));
    });
    for (LaunchOp launch : launches) {
      auto kernel = symbols.lookup<FuncOp>(launch.getKernel());
      if (withTails.contains(kernel) &&
          failed(TailChecker(kernel, launch).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
