//===- DistributeOrder.cpp - accesses in the program's order --------------===//
//
// In: an access to global memory that meets an earlier one of other lanes
// (AccessOrder.h). Out: a barrier in front of it.
//
//   %x = greta_tile.load_scattered %p          every wave loads
//     →  greta_tile.barrier global
//   greta_tile.store_scattered %y, %p          the first wave stores
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

void Distributor::waitFor(Operation *access) {
  BarrierOp::create(b, /*global=*/true);
}

/// Marks accesses that need no order, so that they stay private in Vulkan's
/// memory model. If the only barriers are those of waitFor, these are the
/// accesses through arguments for which no barrier was needed.
void Distributor::markUnordered() {
  bool hasOwnFences = kernel.getBody()
                          .walk([](Operation *op) {
                            return isa<BarrierOp, AtomicRmwOp, AtomicCasOp>(op)
                                       ? WalkResult::interrupt()
                                       : WalkResult::advance();
                          })
                          .wasInterrupted();
  if (waits.empty() || hasOwnFences)
    return;
  for (BlockArgument argument : kernel.getArguments())
    if (isa<PtrType>(argument.getType()) && order.isUnordered(argument))
      result.setArgAttr(argument.getArgNumber(), readonlyName,
                        UnitAttr::get(kernel.getContext()));
}
