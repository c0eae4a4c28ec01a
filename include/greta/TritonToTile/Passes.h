//===- Passes.h - from Triton IR to block programs --------------*- C++ -*-===//
//
// Declares the pass of lib/TritonToTile; Passes.td describes it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TRITONTOTILE_PASSES_H
#define GRETA_TRITONTOTILE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace greta {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "greta/TritonToTile/Passes.h.inc"
} // namespace greta

#endif
