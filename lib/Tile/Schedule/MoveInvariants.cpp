//===- MoveInvariants.cpp - greta-tile-move-invariants --------------------===//
//
// In: a block program. Out: what loops compute anew in each iteration, with the
// same result, stands in front of them. The places of elements alone stay where
// they are used: they cost an addition to a lane's number at most, and a
// register for the whole loop if drivers find them in front of it.
//
//   scf.for { %i = iota 0; %f = sitofp %i; %x = iota 1; use %f, %x + %k }
//     →  %i = iota 0; %f = sitofp %i; scf.for { %x = iota 1; use %f, %x + %k }
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Passes.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEMOVEINVARIANTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

static bool mayMove(Operation *op) {
  return isMemoryEffectFree(op) && isSpeculatable(op);
}

/// Whether an op that takes a block of places moves out of the loop with it.
static bool takesAlong(IotaOp iota, LoopLikeOpInterface loop) {
  return llvm::any_of(iota->getUsers(), [&](Operation *user) {
    return mayMove(user) && llvm::all_of(user->getOperands(), [&](Value value) {
             return loop.isDefinedOutsideOfLoop(value) ||
                    value.getDefiningOp<IotaOp>();
           });
  });
}

namespace {
struct MoveInvariantsPass
    : greta::impl::GretaTileMoveInvariantsPassBase<MoveInvariantsPass> {
  void runOnOperation() override {
    getOperation().walk([](LoopLikeOpInterface loop) {
      moveLoopInvariantCode(
          loop.getLoopRegions(),
          [&](Value value, Region *) {
            return loop.isDefinedOutsideOfLoop(value);
          },
          [&](Operation *op, Region *) {
            auto iota = dyn_cast<IotaOp>(op);
            return mayMove(op) && (!iota || takesAlong(iota, loop));
          },
          [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
    });
  }
};
} // namespace
