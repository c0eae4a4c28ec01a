//===- Barriers.cpp - greta-tile-barriers ---------------------------------===//
//
// In: one lane's program whose accesses to shared memory stand as if lanes ran
// in step. Out: the same with the fewest barriers that put them in order.
//
// Where direct loads are waited for, there are two ways to the fewest: a
// barrier of their own in front of the first use, or that an earlier barrier
// waits for more of them. Both are tried; the first leaves more in flight.
//
//===----------------------------------------------------------------------===//

#include "SharedOrder.h"
#include "greta/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEBARRIERSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta::tile;

/// Where a barrier before `op` is put. In front of a loop in a loop it stands
/// before the loads from global memory there, which are for the next turn and
/// run under the inner loop: so the H200's GEMMs are measured.
static Operation *placeOf(Operation *op) {
  Operation *place = op;
  if (isa<scf::ForOp>(op) && isa<scf::ForOp>(op->getParentOp()))
    for (Operation *at = op->getPrevNode();
         at && (isa<PtrLoadOp>(at) || (isPure(at) && !isa<MmaOp>(at)));
         at = at->getPrevNode())
      if (isa<PtrLoadOp>(at))
        place = at;
  return place;
}

namespace {
struct BarriersPass : greta::impl::GretaTileBarriersPassBase<BarriersPass> {
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    SharedOrder order(kernel, DirectWait::Own);
    if (kernel.walk([](PtrLoadSharedOp) { return WalkResult::interrupt(); })
            .wasInterrupted()) {
      SharedOrder other(kernel, DirectWait::Earlier);
      if (other.cost() < order.cost())
        order = std::move(other);
    }
    for (auto [op, inFlight] : order.missing) {
      OpBuilder builder(placeOf(op));
      auto barrier = BarrierOp::create(builder, op->getLoc());
      if (inFlight != SharedOrder::none)
        barrier.setInFlight(inFlight);
    }
    for (auto [op, inFlight] : order.existing)
      cast<BarrierOp>(op).setInFlight(inFlight);
  }
};
} // namespace
