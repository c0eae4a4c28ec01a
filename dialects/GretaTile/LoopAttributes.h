//===- LoopAttributes.h - what passes say of loops --------------*- C++ -*-===//
//
// Names of the discardable attributes by which one pass tells another about a
// loop, or what stands in one.
//
//===----------------------------------------------------------------------===//
#ifndef GRETATILE_LOOPATTRIBUTES_H
#define GRETATILE_LOOPATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace greta::tile {

/// A PipelineAttr on a GEMM's loop over K, which says how greta-tile-pipeline
/// pipelines it.
inline constexpr llvm::StringLiteral pipelineName = "greta_tile.pipeline";

/// An integer of 32 bits on a loop whose schedule the compiler chooses: the
/// number of stages that the source asks for, as `tl.range(..., num_stages)`
/// does. The loop has them if they fit; 0 asks for none. The verifier refuses
/// negative numbers.
inline constexpr llvm::StringLiteral stagesName = "greta_tile.stages";

/// A unit attribute of a loop that no later pass or backend unrolls, because it
/// is unrolled as far as it should be.
inline constexpr llvm::StringLiteral rolledName = "greta_tile.rolled";

/// A unit attribute of a masked load that runs ahead of its iteration. Elements
/// that are masked off may have any value, because the users select. Selecting
/// at the load would wait for it.
inline constexpr llvm::StringLiteral aheadName = "greta_tile.ahead";

/// A unit attribute of a load in front of a GEMM's loop, which loads the loop's
/// first blocks.
inline constexpr llvm::StringLiteral firstName = "greta_tile.first";

} // namespace greta::tile

#endif // GRETATILE_LOOPATTRIBUTES_H
