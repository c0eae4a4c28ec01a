//===- LoopAttributes.h - what passes say of loops --------------*- C++ -*-===//
//
// Names of the discardable attributes on scf.for by which one pass tells
// another about a loop.
//
//===----------------------------------------------------------------------===//
#ifndef GRETATILE_LOOPATTRIBUTES_H
#define GRETATILE_LOOPATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace greta::tile {

/// A PipelineAttr on a product's loop over K: how greta-tile-pipeline is to
/// turn it into a pipelined one.
inline constexpr llvm::StringLiteral pipelineName = "greta_tile.pipeline";

/// Unit, on a loop that generators leave as it is: it is unrolled as far as it
/// should be.
inline constexpr llvm::StringLiteral rolledName = "greta_tile.rolled";

} // namespace greta::tile

#endif // GRETATILE_LOOPATTRIBUTES_H
