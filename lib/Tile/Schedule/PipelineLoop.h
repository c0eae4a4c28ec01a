//===- PipelineLoop.h - a loop whose loads run ahead ------------*- C++ -*-===//
//
// In: a loop over block tensors with layouts, what its body is made of, and how
// it is to be pipelined. Out: the same with its operands in locals and its
// loads ahead of the turns that use them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
#define GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H

#include "LoopBody.h"

namespace greta {

/// Replaces the loop. An error at it where it cannot be pipelined so.
mlir::LogicalResult pipelineLoop(mlir::scf::ForOp loop, const LoopBody &body,
                                 tile::PipelineAttr attr);

} // namespace greta

#endif // GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
