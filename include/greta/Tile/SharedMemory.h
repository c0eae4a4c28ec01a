//===- SharedMemory.h - what a kernel takes of it ---------------*- C++ -*-===//
#ifndef GRETA_TILE_SHAREDMEMORY_H
#define GRETA_TILE_SHAREDMEMORY_H

#include "GretaTile/GretaTile.h"
#include "greta/Target/Target.h"

namespace greta::tile {

/// The bytes of shared memory that a lane's program needs where arrays that are
/// not in use together share them, for barriers if need be.
int64_t leastSharedBytes(FuncOp kernel, const TargetRow &row);

} // namespace greta::tile

#endif
