//===- Footprint.h - how much memory a whole grid touches -----------------===//
#ifndef GRETA_LIB_SIM_FOOTPRINT_H
#define GRETA_LIB_SIM_FOOTPRINT_H

#include "Memory.h"
#include "Timing/Timing.h"

namespace greta::sim {
/// Returns the distinct bytes that `groups` workgroups touch. `sample` is
/// evenly spread over the grid and has its first and its last workgroup.
uint64_t footprint(llvm::ArrayRef<GroupTrace> sample, uint64_t groups,
                   const MemoryMap &memory);
} // namespace greta::sim
#endif
