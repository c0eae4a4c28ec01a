//===- Footprint.h - how much memory a whole grid touches -----------------===//
#ifndef GRETA_LIB_SIM_FOOTPRINT_H
#define GRETA_LIB_SIM_FOOTPRINT_H

#include "Memory.h"
#include "Timing/Timing.h"

namespace greta::sim {
/// Distinct bytes that `groups` workgroups touch, from those that `sample`,
/// evenly out of the grid with its first and its last, do.
uint64_t footprint(llvm::ArrayRef<GroupTrace> sample, uint64_t groups,
                   const MemoryMap &memory);
} // namespace greta::sim
#endif
