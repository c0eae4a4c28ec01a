//===- Passes.h - the compiler's passes -------------------------*- C++ -*-===//
//
// Declares what Passes.td describes.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PASSES_H
#define GRETA_PASSES_H

#include "GretaTile/GretaTile.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
}

namespace greta {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "greta/Passes.h.inc"

struct TuningDatabase;

/// The passes in front of greta-configure, which make kernels of a function.
void buildFusionPipeline(mlir::OpPassManager &passes, llvm::StringRef target,
                         bool matrix);

/// greta-configure with a tuning database in memory, which outlives the pass.
std::unique_ptr<mlir::Pass>
createGretaConfigurePass(const GretaConfigurePassOptions &options,
                         const TuningDatabase *tuning);
} // namespace greta

#endif
