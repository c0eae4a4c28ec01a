//===- TransposedLoads.h - the target table's, on layouts -------*- C++ -*-===//
//
// The places that lanes load from when a transposed load hands on to others.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_TRANSPOSEDLOADS_H
#define GRETA_TILE_TRANSPOSEDLOADS_H

#include "greta/Layout/Layout.h"
#include "greta/Target/Target.h"

namespace greta {

/// The neighbours that a lane loads in the target's transposed load of elements
/// of that size; 0: it has none.
unsigned transposedWidth(const TargetRow &row, bool isShared,
                         unsigned elementBytes);

/// The layout in which lanes load neighbours along `dim`, so that a transposed
/// load of the target leaves them in `layout`; none where the target has no
/// such load for elements of that size, or it does not make that layout. The
/// registers of one load follow each other in both.
std::optional<Layout> beforeTransposedLoad(const TargetRow &row, bool isShared,
                                           unsigned elementBytes,
                                           const Layout &layout, unsigned dim);

} // namespace greta

#endif
