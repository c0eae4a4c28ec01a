//===- Expand.cpp - the pass greta-expand ---------------------------------===//
//
// Ops that a target has no instruction for become those that it has; each kind
// of them in a file of its own (Expand.h).
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "GretaTile/GretaTile.h"
#include "greta/Interface/Targets.h"
#include "greta/Lane/ExpandIntegers.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace greta {
#define GEN_PASS_DEF_GRETAEXPANDPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;

namespace {
struct ExpandPass : greta::impl::GretaExpandPassBase<ExpandPass> {
  using GretaExpandPassBase::GretaExpandPassBase;
  void runOnOperation() override {
    const greta::TargetRow *row = greta::rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    greta::expandIntegers(getOperation());
    greta::expandBytes(getOperation(), *row);
    greta::expandFloat8(getOperation(), *row);
    if (!isa<greta::tile::FuncOp>(getOperation()))
      return;
    if (failed(greta::expandMath(getOperation(), *row)))
      return signalPassFailure();
    greta::expandPacked(getOperation(), *row);
    greta::expandShared(getOperation(), *row);
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace
