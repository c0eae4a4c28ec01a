//===- Waves.h - how waves share an accumulator -----------------*- C++ -*-===//
//
// The one rule by which the waves of a workgroup are laid on the accumulator of
// a dot: the choice of tiles and the layouts both follow it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LAYOUT_WAVES_H
#define GRETA_LAYOUT_WAVES_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <utility>

namespace greta {

/// The largest power of two that divides.
inline int64_t powerPart(int64_t value) { return value & -value; }

/// How the waves of a workgroup lie on an m x n accumulator whose instruction's
/// tile is tileM x tileN: per bit of the wave the dimension, M (0) or N (1),
/// and whether there still was a tile to step to. As square as the tiles allow.
llvm::SmallVector<std::pair<unsigned, bool>>
waveBits(int64_t tileM, int64_t tileN, int64_t m, int64_t n, int64_t waves);

} // namespace greta

#endif // GRETA_LAYOUT_WAVES_H
