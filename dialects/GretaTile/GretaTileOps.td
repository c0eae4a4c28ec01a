//===- GretaTileOps.td - ops of the waist ---------------------------------===//
#ifndef GRETATILE_OPS_TD
#define GRETATILE_OPS_TD

include "GretaTile/KernelOps.td"
include "GretaTile/BlockOps.td"
include "GretaTile/CombineOps.td"
include "GretaTile/MoveOps.td"
include "GretaTile/MemoryOps.td"
include "GretaTile/PointerOps.td"
include "GretaTile/DebugOps.td"
include "GretaTile/LaneOps.td"

#endif
