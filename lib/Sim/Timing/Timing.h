//===- Timing.h - the issue model -------------------------------*- C++ -*-===//
//
// Two halves. While workgroups execute, a Recorder notes each wave's stream of
// instructions and what their memory accesses cost. Then estimateCycles
// replays the streams of the workgroups that share a compute unit: every SIMD
// offers each of its waves, in turn, one issue per slot and unit, registers and
// counters hold a wave back, LDS and vector memory are queues of the compute
// unit. docs/internals/simulator.md has the model and its sources.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_TIMING_H
#define GRETA_SIM_TIMING_H

#include "Wave.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/DenseSet.h"
#include <vector>

namespace greta::sim {

/// One executed instruction.
struct TraceEntry {
  uint32_t inst = 0;  ///< index in the program
  uint16_t lds = 0;   ///< cycles of the LDS, bank conflicts included
  uint16_t lines = 0; ///< 128-byte lines of global memory
  uint16_t fresh = 0; ///< lines that the workgroup touches first
};
using WaveTrace = std::vector<TraceEntry>;

/// The instructions that one workgroup executed.
struct GroupTrace {
  std::vector<WaveTrace> waves;
  llvm::DenseSet<uint64_t> lines; ///< number of a touched line: address / 128
  uint64_t executed = 0;          ///< all instructions, also those not kept
  bool truncated = false;
};

/// The longest stream of one wave that is kept. Later instructions are assumed
/// to go on at the same pace.
constexpr size_t MaxTrace = size_t(1) << 19;

/// Holds one chip's issue model; TimingTable.cpp and
/// docs/internals/simulator.md have the sources.
struct TimingRow {
  const char *name;
  uint16_t clockMHz, memoryGBs;
  uint16_t vgprs, vgprGranule; ///< per SIMD and lane, for the default wave size
  uint8_t maxWaves;            ///< per SIMD
  uint8_t slot;                ///< cycles between two instructions of one wave
  uint8_t aluLatency;          ///< until a dependent VALU instruction
  uint8_t transCycles;
  uint16_t f64Cycles;  ///< cycles of one VALU instruction
  uint16_t ldsLatency; ///< cycles, without the data's own
  uint16_t scalarLatency, cacheLatency, memoryLatency;
  uint8_t addressesPerCycle; ///< lanes of a vector memory instruction
  uint8_t cacheBytesPerCycle, fillBytesPerCycle;
  uint8_t barrier, branch; ///< cycles after the last arrival; of a taken branch
};
const TimingRow &timingRow(const Chip &chip);

/// Says how workgroups of a kernel share a compute unit.
struct Residency {
  unsigned waves = 1;      ///< of a workgroup
  unsigned simds = 4;      ///< of the unit
  unsigned units = 1;      ///< of the chip
  unsigned workgroups = 1; ///< that fit on a unit
  const char *limit = "";
};
Residency residency(const Chip &chip, uint32_t rsrc1, bool wave32,
                    unsigned waves, uint32_t ldsBytes, unsigned sgprs);

struct ReplayOptions {
  bool wave32 = false;
  EstimateOptions estimate;
};
/// Fills in everything that one compute unit's replay tells.
void estimateCycles(const Chip &chip, const Program &program,
                    llvm::ArrayRef<GroupTrace> groups, const Residency &where,
                    const ReplayOptions &options, CycleEstimate &out);

} // namespace greta::sim

#endif
