//===- Barriers.cpp - greta-tile-barriers ---------------------------------===//
//
// In: one lane's program whose accesses to shared memory stand as if lanes ran
// in step. Out: the same with the fewest barriers that put them in order.
//
// If direct loads are waited for, there are two ways to the fewest: a
// barrier of their own in front of the first use, or that an earlier barrier
// waits for more of them. Both are tried; the first leaves more in flight.
//
//===----------------------------------------------------------------------===//

#include "SharedOrder.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEBARRIERSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Whether the iteration itself does not use the loaded elements.
static bool isForNextIteration(PtrLoadOp load) {
  SetVector<Operation *> users;
  getForwardSlice(load.getOperation(), &users);
  return llvm::all_of(users, [&](Operation *user) {
    return isa<scf::YieldOp>(user) || user->getBlock() != load->getBlock() ||
           isPure(user);
  });
}

/// Returns the op in front of which a barrier before `op` stands. Drivers
/// should have the next iteration's loads behind the barrier, where they run
/// under the matrix instructions: NVIDIA's waits at a barrier for loads in
/// front of it. LLVM needs more registers for such loads, so on AMD this is
/// done only in front of a loop inside a loop.
static Operation *placeOf(Operation *op, const TargetRow &row) {
  Operation *place = op;
  if (isa<scf::ForOp>(op->getParentOp()) &&
      (isa<scf::ForOp>(op) || row.isVulkan()))
    for (Operation *at = op->getPrevNode();
         at && (isa<PtrLoadOp>(at) || (isPure(at) && !isa<MmaOp>(at)));
         at = at->getPrevNode())
      if (auto load = dyn_cast<PtrLoadOp>(at); load && isForNextIteration(load))
        place = at;
  return place;
}

namespace {
struct BarriersPass : greta::impl::GretaTileBarriersPassBase<BarriersPass> {
  using GretaTileBarriersPassBase::GretaTileBarriersPassBase;
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    const TargetRow *row = rowOfTarget(kernel, target);
    if (!row)
      return signalPassFailure();
    SharedOrder order(kernel, DirectWait::Own);
    if (hasOp<PtrLoadSharedOp>(kernel)) {
      SharedOrder other(kernel, DirectWait::Earlier);
      if (other.cost() < order.cost())
        order = std::move(other);
    }
    for (auto [op, inFlight] : order.missing) {
      OpBuilder builder(placeOf(op, *row));
      auto barrier = BarrierOp::create(builder, op->getLoc());
      if (inFlight != SharedOrder::none)
        barrier.setInFlight(inFlight);
    }
    for (auto [op, inFlight] : order.existing)
      cast<BarrierOp>(op).setInFlight(inFlight);
  }
};
} // namespace
