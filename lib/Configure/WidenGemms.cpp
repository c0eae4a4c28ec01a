//===- WidenGemms.cpp - the pass greta-widen-gemms ------------------------===//
//
// GEMMs of 8-bit floats without an instruction become GEMMs of f16.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace greta {
#define GEN_PASS_DEF_GRETAWIDENGEMMSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

static void widen(MatmulOp matmul) {
  OpBuilder builder(matmul);
  Type f16 = builder.getF16Type(), f32 = builder.getF32Type();
  for (OpOperand &operand : matmul->getOpOperands().take_front(2)) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    operand.set(arith::ExtFOp::create(builder, matmul.getLoc(), type.clone(f16),
                                      operand.get()));
  }
  RankedTensorType type = matmul.getType();
  if (!type.getElementType().isBF16())
    return;
  // f16 goes to f16 or f32.
  Value gemm = matmul.getResult();
  gemm.setType(type.clone(f32));
  builder.setInsertionPointAfter(matmul);
  auto rounded = arith::TruncFOp::create(builder, matmul.getLoc(), type, gemm);
  gemm.replaceAllUsesExcept(rounded, rounded);
}

namespace {
struct WidenGemmsPass : greta::impl::GretaWidenGemmsPassBase<WidenGemmsPass> {
  using GretaWidenGemmsPassBase::GretaWidenGemmsPassBase;
  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    Limits limits(*row, matrix);
    SmallVector<MatmulOp> gemms;
    getOperation().walk([&](MatmulOp matmul) {
      if (isFloat8(matmul.getA().getType().getElementType()) &&
          !isSkinny(matmul) && instructionsFor(matmul, limits).empty())
        gemms.push_back(matmul);
    });
    llvm::for_each(gemms, widen);
  }
};
} // namespace

void greta::buildFusionPipeline(OpPassManager &passes, StringRef target,
                                bool matrix) {
  passes.addNestedPass<func::FuncOp>(
      createGretaWidenGemmsPass({target.str(), matrix}));
  // Only tiles whose operands go straight to registers may be parts of heads.
  GretaFusePassOptions fuse;
  if (llvm::Expected<const TargetRow *> row = lookupTarget(target))
    fuse.partsOfHeads = matrix && (*row)->tiles.stream.line != 0;
  else
    llvm::consumeError(row.takeError()); // the next pass says so
  passes.addNestedPass<func::FuncOp>(createGretaFusePass(fuse));
}
