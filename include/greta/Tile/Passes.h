//===- Passes.h - passes on block programs ----------------------*- C++ -*-===//
//
// Declares the passes of lib/Tile; Passes.td describes them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_PASSES_H
#define GRETA_TILE_PASSES_H

#include "GretaTile/GretaTile.h"
#include "mlir/Pass/Pass.h"

namespace greta {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "greta/Tile/Passes.h.inc"
} // namespace greta

#endif
