//===- Stats.h - counting memory traffic ------------------------*- C++ -*-===//
#ifndef GRETA_SIM_STATS_H
#define GRETA_SIM_STATS_H

#include "Wave.h"

namespace greta::sim {

/// Counts bytes and bank conflicts of one LDS access; addresses are per lane.
void countLds(Wave &w, const Inst &i, const uint32_t *address, unsigned bytes,
              uint32_t offset);
/// Counts bytes and 128-byte lines of one global access.
void countGlobal(Wave &w, const uint64_t *address, unsigned bytes, bool store);
/// Counts instruction classes; notes the instruction for the issue model.
void countInstruction(Wave &w, const Inst &i);

} // namespace greta::sim

#endif
