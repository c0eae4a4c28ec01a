//===- PrefetchIndices.h - what addresses follow from, ahead ----*- C++ -*-===//
//
// In: a loop whose loads' addresses follow from loaded numbers, like the
// entries of a table of pages. Out: those numbers are carried from the
// iteration before, so that no load waits for another of its iteration.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_SCHEDULE_PREFETCHINDICES_H
#define GRETA_LIB_TILE_SCHEDULE_PREFETCHINDICES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace greta {
void prefetchIndices(mlir::scf::ForOp loop);
} // namespace greta

#endif // GRETA_LIB_TILE_SCHEDULE_PREFETCHINDICES_H
