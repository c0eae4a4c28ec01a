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

/// A PipelineAttr on a product's loop over K: how greta-tile-pipeline is to
/// turn it into a pipelined one.
inline constexpr llvm::StringLiteral pipelineName = "greta_tile.pipeline";

/// An integer of 32 bits, on a loop whose schedule is chosen: the stages of its
/// K tiles that somebody asks for, as `tl.range(..., num_stages)` does. They
/// hold where they fit.
inline constexpr llvm::StringLiteral stagesName = "greta_tile.stages";

/// Unit, on a loop that generators leave as it is: it is unrolled as far as it
/// should be.
inline constexpr llvm::StringLiteral rolledName = "greta_tile.rolled";

/// Unit, on a masked load that runs ahead of its iteration: what is masked off
/// may come as anything, because who takes it selects. To select at once would
/// be to wait for it.
inline constexpr llvm::StringLiteral aheadName = "greta_tile.ahead";

/// Unit, on a load of the first blocks of a GEMM's loop, which stands in front
/// of the loop.
inline constexpr llvm::StringLiteral firstName = "greta_tile.first";

} // namespace greta::tile

#endif // GRETATILE_LOOPATTRIBUTES_H
