//===- Passes.h - passes on the greta and greta_tile dialects ---*- C++ -*-===//
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
} // namespace greta

#endif
