//===- DistributeOrder.cpp - accesses of copies in the program's order ----===//
//
// In: a load_scattered or store_scattered of a scalar, or of a block with
// copies of its elements in several waves. Out: a barrier in front of it where
// an access of the other kind comes before.
//
//   %x = greta_tile.load_scattered %p          every wave loads
//     →  greta_tile.fence release workgroup
//        greta_tile.barrier
//   greta_tile.store_scattered %y, %p          the first wave stores
//
// A kernel that works in place would else give the other waves what it stores
// too early, or too late: nobody knows which pointers point to the same memory.
// Elements without copies are loaded and stored by the same lane, in the
// program's order.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Null of what is neither.
static Value pointersOf(Operation *access) {
  if (auto load = dyn_cast<LoadScatteredOp>(access))
    return load.getPointers();
  if (auto store = dyn_cast<StoreScatteredOp>(access))
    return store.getPointers();
  return {};
}

static Type elementOf(Value pointers) {
  return getElementTypeOrSelf(getPointee(pointers.getType()));
}

bool Distributor::hasCopiesInWaves(Operation *access) {
  Value pointers = pointersOf(access);
  if (!isa<RankedTensorType>(pointers.getType()))
    return true;
  return layoutOf(pointers).layout.freeWaveBits();
}

void Distributor::orderCopies(Operation *access) {
  if (kernel.getNumWaves() == 1 || !hasCopiesInWaves(access))
    return;
  auto mayMeet = [&](Operation *other) {
    Value pointers = pointersOf(other);
    return pointers && elementOf(pointers) == elementOf(pointersOf(access)) &&
           hasCopiesInWaves(other);
  };
  auto hasOther = [&](Operation *in) {
    return in
        ->walk([&](Operation *other) {
          return other->getName() != access->getName() && mayMeet(other)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  auto isBehindOther = [&] {
    for (Operation *inner = access; inner && !isa<FuncOp>(inner);
         inner = inner->getParentOp()) {
      for (Operation *at = inner->getPrevNode(); at; at = at->getPrevNode()) {
        // What is behind a barrier, or behind one of its kind, which is.
        if (isa<BarrierOp>(at) ||
            (at->getName() == access->getName() && mayMeet(at)))
          return false;
        if (hasOther(at))
          return true;
      }
      if (isa<scf::ForOp, scf::WhileOp>(inner->getParentOp()) &&
          hasOther(inner->getParentOp()))
        return true;
    }
    return false;
  };
  if (!isBehindOther())
    return;
  Location loc = access->getLoc();
  FenceOp::create(builder, loc, MemoryOrder::Release, MemoryScope::Workgroup);
  BarrierOp::create(builder, loc);
  if (isa<LoadScatteredOp>(access))
    FenceOp::create(builder, loc, MemoryOrder::Acquire, MemoryScope::Workgroup);
}
