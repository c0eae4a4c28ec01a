//===- Replay.h - a compute unit that replays waves -------------*- C++ -*-===//
//
// The state of a replay (Timing.cpp), which Report.cpp reads at its end.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_REPLAY_H
#define GRETA_SIM_REPLAY_H

#include "Code/Program.h"
#include "Timing/Timing.h"
#include "Timing/TimingOps.h"
#include "greta/Sim/Simulator.h"
#include <algorithm>

namespace greta::sim {

enum Reason : uint8_t {
  OnGlobal,
  OnLds,
  OnScalar,
  OnBarrier,
  OnDependency,
  OnUnit,
  Reasons
};

constexpr uint64_t Never = ~uint64_t(0);
struct Pending {
  uint64_t done;
  Reason reason;
};

/// Holds the first and the last instruction; at first there is none.
struct Loop {
  uint32_t begin = 1, end = 0;
  explicit operator bool() const { return begin <= end; }
};

struct Runner {
  const WaveTrace *trace = nullptr;
  Loop loop; ///< a wave may have its own copy of the loop
  size_t at = 0;
  unsigned group = 0, simd = 0;
  uint64_t next = 0;  ///< earliest time by its own cadence
  uint64_t ready = 0; ///< earliest time by operands and counters
  Reason reason = OnDependency;
  int priority = 0;
  bool done = false, blocked = false, inLoop = false;
  uint64_t target = 0; ///< barrier generation that it waits for
  uint64_t entered = 0, ended = 0;
  std::vector<Pending> lists[Lists];
  std::vector<uint64_t> registers, accumulators;
};

struct GroupState {
  unsigned live = 0, arrived = 0;
  uint64_t generation = 0, released = 0;
};

struct Simd {
  uint64_t free[Ports] = {};
  unsigned turn = 0;
  std::vector<unsigned> waves;
  uint64_t valuBusy = 0, matrixBusy = 0, saluBusy = 0;
};

class Replay {
public:
  Replay(const Chip &c, const Program &p, const ReplayOptions &o)
      : chip(c), program(p), options(o), row(timingRow(c)), ops(p.size()) {
    auto use = [](uint16_t &to, unsigned x) {
      if (x)
        to = uint16_t(std::min(x, 65535u));
    };
    use(row.ldsLatency, o.estimate.ldsLatency);
    use(row.scalarLatency, o.estimate.scalarLatency);
    use(row.cacheLatency, o.estimate.cacheLatency);
    use(row.memoryLatency, o.estimate.memoryLatency);
    for (uint16_t *latency : {&row.ldsLatency, &row.scalarLatency,
                              &row.cacheLatency, &row.memoryLatency})
      use(*latency, std::max(1u, unsigned(*latency * o.estimate.latencyScale)));
  }
  void run(llvm::ArrayRef<GroupTrace> groups, const Residency &where,
           CycleEstimate &out);

private:
  const Op &op(uint32_t index);
  Loop findLoop(const WaveTrace &trace, bool matrix);
  void prepare(Runner &w);
  bool portFree(const Simd &s, const Op &o, uint64_t t) const;
  uint64_t whenFree(const Simd &s, const Op &o) const;
  void place(llvm::ArrayRef<GroupTrace> groups, const Residency &where,
             CycleEstimate &out);
  void replay();
  void report(CycleEstimate &out) const;
  void reportLoop(CycleEstimate &out) const;
  void issue(Runner &w, Simd &s, uint64_t t);
  uint64_t occupy(Runner &w, Simd &s, const TraceEntry &e, const Op &o,
                  uint64_t t);
  uint64_t memory(Runner &w, const Op &o, const TraceEntry &e, uint64_t t);
  void arrive(Runner &w, uint64_t t);
  void release(unsigned group, uint64_t t);
  void leaveLoop(Runner &w, uint64_t t);
  void finish(Runner &w, uint64_t t);
  void note(const TimelineEntry &entry);
  uint64_t align(uint64_t t) const {
    return (t + row.slot - 1) / row.slot * row.slot;
  }

  const Chip &chip;
  const Program &program;
  const ReplayOptions &options;
  TimingRow row;
  std::vector<Op> ops;
  std::vector<Runner> waves;
  std::vector<GroupState> states;
  std::vector<Simd> simds;
  uint64_t ldsFree[2] = {}, vmemFree[2] = {}, fillFree[2] = {};
  uint64_t ldsBusy = 0, vmemBusy = 0, fillBusy = 0;
  uint64_t stalls[Reasons] = {};
  uint64_t loopBegin = 1, loopEnd = 0; ///< of instructions; none yet
  unsigned inside = 0;
  uint64_t since = 0, loopCycles = 0, loopMatrix = 0, loopIterations = 0,
           loopWaveTime = 0;
};

} // namespace greta::sim

#endif
