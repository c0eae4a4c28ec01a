//===- Passes.h - passes on the greta dialect ------------------*- C++ -*-===//
//
// Declares the passes of lib/Transforms; Passes.td describes them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TRANSFORMS_PASSES_H
#define GRETA_TRANSFORMS_PASSES_H

#include "GretaTile/GretaTile.h"
#include "mlir/Pass/Pass.h"

namespace greta {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "greta/Transforms/Passes.h.inc"

struct TuningDatabase;

/// greta-configure with a tuning database in memory, which outlives the pass.
std::unique_ptr<mlir::Pass>
createGretaConfigurePass(const GretaConfigurePassOptions &options,
                         const TuningDatabase *tuning);
} // namespace greta

#endif
