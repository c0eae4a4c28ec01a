//===- LoadAhead.h - loads in front of the phase that needs them ----------===//
//
// Source: lib/Tile/Join/LoadAhead.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GRETA_TILE_JOIN_LOADAHEAD_H
#define GRETA_TILE_JOIN_LOADAHEAD_H

namespace greta {
namespace tile {
class FuncOp;
} // namespace tile

/// Loads one tile ahead what the phases of a joined kernel read of memory that
/// nobody writes: the first tile's part in front of the barrier before the
/// phase, and each other tile's at the beginning of the tile before it.
void loadAhead(tile::FuncOp kernel);
} // namespace greta

#endif
