//===- Workgroup.h - running the waves of one workgroup ---------*- C++ -*-===//
#ifndef GRETA_SIM_WORKGROUP_H
#define GRETA_SIM_WORKGROUP_H

#include "Wave.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class raw_ostream;
}

namespace greta::sim {

/// Notes that the wave has reached the barrier (it may go on until it waits).
void signalBarrier(Wave &w, const Inst &i);
/// Blocks the wave until every wave that has not ended has signalled.
void waitBarrier(Wave &w, const Inst &i);

/// Chooses the checks and recorders that run beside the instructions.
struct RunOptions {
  bool checked = false;
  uint64_t turn = 100000; ///< instructions before the next wave's turn
  uint64_t trace = 0;
  llvm::raw_ostream *traceStream = nullptr;
};

/// Gives every wave a turn; returns false if all have ended, or one failed.
bool runTurns(Workgroup &g, RunOptions &options);
/// Runs all waves to their end, round-robin; returns false after a fault.
bool runWorkgroup(Workgroup &g, RunOptions &options);

} // namespace greta::sim

#endif
