//===- Passes.td - the compiler's passes, in the order of the pipeline ----===//
#ifndef GRETA_PASSES_TD
#define GRETA_PASSES_TD

include "greta/Passes/ToTile.td"
include "greta/Passes/Tile.td"
include "greta/Passes/Lane.td"
include "greta/Passes/Emit.td"

#endif
