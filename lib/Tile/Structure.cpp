//===- Structure.cpp - the pass greta-tile-structure ----------------------===//
//
// In: kernels, and private functions that they call, with branches of cf. Out:
// each is one block, with scf in it, as inlining and all passes want it.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/Structure.h"
#include "greta/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILESTRUCTUREPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;

namespace {
struct StructurePass : greta::impl::GretaTileStructurePassBase<StructurePass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      auto helper = dyn_cast<func::FuncOp>(func.getOperation());
      if ((isa<greta::tile::FuncOp>(func) || (helper && helper.isPrivate())) &&
          failed(greta::tile::structureBranches(func.getFunctionBody())))
        return signalPassFailure();
    }
  }
};
} // namespace
