//===- ChecksState.h - shadow state of a checked workgroup ------*- C++ -*-===//
#ifndef GRETA_SIM_CHECKSSTATE_H
#define GRETA_SIM_CHECKSSTATE_H

#include "Checks/Checks.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <optional>

namespace greta::sim {

enum Counter : uint8_t { CountLoad, CountLds, CountSmem, Counters };

/// The latest accesses to a word, for race detection. Clocks count a wave's
/// barriers.
struct Shadow {
  uint32_t writeClock = 0; ///< 0: never written
  uint32_t readClock = 0; ///< of the readers below: the latest barrier interval
  uint32_t readers = 0;   ///< waves
  uint8_t writer = 0;
  uint8_t writeBytes = 0, readBytes = 0; ///< which of the four
  bool atomic = false;                   ///< the write was atomic
};

/// The facts about an instruction that hazard rules need, found once.
struct HazardOp {
  bool known = false;
  bool matrix = false, xdl = false, f64 = false;
  bool valu = false, trans = false, dot = false, dpp = false, partial = false;
  bool swap = false, readlane = false, writelane = false, divFmas = false,
       fma64 = false;
  bool writesExec = false, memory = false, vmem = false, usesM0 = false,
       toLds = false;
  uint8_t passes = 0, accumulator = 0, nop = 1;
  uint8_t longStore = 0;         ///< operand of a wide store's data, plus one
  uint16_t first = 0, words = 0; ///< matrix: destination
};

/// Wait states behind the latest accesses of a vector register; 0: none.
struct RowHazard {
  uint64_t valu = 0, matrix = 0, dot = 0, readAsC = 0, stored = 0;
  const HazardOp *by = nullptr; ///< the matrix instruction
  const OpInfo *dotOp = nullptr;
  uint8_t readPasses = 0;
  bool trans = false, partial = false;
};

/// A load that a vector register waits for.
struct PendingLoad {
  uint64_t lanes = 0; ///< that it writes; none: there is no such load
  uint32_t sequence = 0;
  uint32_t lds = 0; ///< of a flat load, its number in the LDS counter
  Counter counter = CountLoad;
};

/// Code that a wave runs because some of its lanes are on, while others wait at
/// its end.
struct Guarded {
  uint32_t begin = 0, end = 0;
  uint64_t off = 0;
};

struct WaveState {
  std::array<uint64_t, row::Temp> defined;     ///< lanes of each row
  std::array<uint32_t, slot::Count> undefined; ///< bits of scalars
  std::array<uint32_t, Counters> issued, done;
  /// The latest load of each register, and earlier ones of other lanes.
  std::array<PendingLoad, row::Temp> pending;
  llvm::SmallVector<std::pair<unsigned, PendingLoad>, 0> earlier;
  /// Sequence number of the load each scalar register waits for; 0: none.
  std::array<uint32_t, slot::Count> scalarPending;
  std::array<uint32_t, Counters> lastFlat;
  bool anyPending = false;
  uint64_t missedBarrier = 0; ///< lanes that the latest barrier was not for
  llvm::DenseMap<uint32_t, Guarded> guards; ///< by the branch's address
  uint32_t barrierAddress = 0;
  std::vector<uint32_t> clock; ///< vector clock over the waves
  /// Loads known to be back when the wave came to a barrier, by its own clock.
  std::vector<uint32_t> backAtBarrier;
  // Hazards. Wait states are counted from 1.
  std::vector<RowHazard> rows;
  std::array<uint64_t, slot::VCC + 2> sgprWrite; ///< by VALU
  uint64_t state = 1, lastValu = 0, execWrite = 0, m0Write = 0, f64Matrix = 0;
  uint64_t matrixUntil = 0; ///< no matrix result matters from here on
  uint64_t quietFrom = 0;   ///< nothing that was written does
  const HazardOp *lastMatrix = nullptr; ///< WMMA without a VALU behind it
  std::string origin;                   ///< of the latest undefined LDS read
};

struct Checker::State {
  Workgroup &group;
  unsigned checks;
  std::vector<WaveState> waves;
  std::vector<HazardOp> hazardOps; ///< by index in the program
  std::vector<Shadow> ldsShadow;
  std::vector<uint8_t> ldsDefined; ///< per byte
  llvm::DenseMap<uint64_t, std::array<Shadow, 64>>
      globalShadow;                   ///< 256-byte pages
  std::vector<uint32_t> barrierClock; ///< of those who have arrived
  std::vector<uint32_t> passedClock;  ///< of the latest completed barrier
  // The read under way: undefined lanes by word.
  uint64_t undefinedWord[4] = {};
  uint8_t wordsSeen[MaxLanes] = {};
  uint32_t undefinedScalar = 0; ///< words of a scalar load
  bool sawMemory = false;
  /// LDS words direct-to-LDS loads write: wave plus one, number of the load.
  struct Delivery {
    uint8_t wave = 0;
    uint32_t sequence = 0;
  };
  std::vector<Delivery> deliveries; ///< by word; empty: there were none
  // The lane exchange under way: lanes it writes, and with defined values.
  uint64_t crossWritten = 0, crossDefined = 0;
  std::vector<uint8_t> crossKinds; ///< Cross, by index in the program

  ProgramChecker *programs;
  /// Undefined bits of what the scalar instruction under way writes; none: all
  /// its sources are defined.
  struct ScalarResult {
    uint32_t undefined[2] = {};
    uint64_t exec = 0;
    bool scc = false;
  };
  std::optional<ScalarResult> scalarResult;

  State(Workgroup &g, unsigned c, ProgramChecker *p)
      : group(g), checks(c), programs(p) {}

  void access(Wave &w, const Inst &i, unsigned lane, uint64_t address,
              Shadow &s, uint8_t bytes, Access kind, bool lds);
  void hazardBefore(Wave &w, WaveState &s, const Inst &i);
  bool readTooSoon(Wave &w, WaveState &s, const Inst &i, const HazardOp &h);
  void overwrittenTooSoon(Wave &w, WaveState &s, const Inst &i,
                          const HazardOp &h);
  void hazardAfter(Wave &w, WaveState &s, const Inst &i);
  void matrixHazards(Wave &w, WaveState &s, const Inst &i, const HazardOp &h);
  void wmmaHazards(Wave &w, WaveState &s, const Inst &i, const HazardOp &h);
  const HazardOp &hazardOp(const Wave &w, const Inst &i);
  void waitsBefore(Wave &w, WaveState &s, const Inst &i);
  void waitsAfter(Wave &w, WaveState &s, const Inst &i);
  const PendingLoad *pendingLoad(WaveState &s, unsigned row, uint64_t lanes);
  void uninitBefore(Wave &w, WaveState &s, const Inst &i);
  void uninitAfter(Wave &w, WaveState &s, const Inst &i);
  void scalarBefore(Wave &w, WaveState &s, const Inst &i);
  void scalarAfter(Wave &w, WaveState &s, const Inst &i);
  void decides(Wave &w, const WaveState &s, const Inst &i, const char *what);
  void missed(Wave &w, WaveState &s, const Inst &i);
  void guard(const Wave &w, WaveState &s, const Inst &i);
  void crossBefore(Wave &w, WaveState &s, const Inst &i);
  bool crossAfter(Wave &w, WaveState &s, const Inst &i);
  void delivered(Wave &w, const Inst &i, unsigned lane, uint32_t address,
                 unsigned bytes, Access kind);
  void markRead(Wave &w, const Inst &i, unsigned lane, const uint8_t *defined,
                unsigned bytes, uint64_t address, bool isLds);
  void alignment(Wave &w, const Inst &i, unsigned lane, uint64_t address,
                 unsigned bytes, bool lds);
};

/// Lanes of a source that hold something.
inline uint64_t definedLanes(const WaveState &s, const Operand &o) {
  uint64_t m = ~uint64_t(0);
  if (o.kind == Operand::Vgpr) {
    if (o.index >= row::Temp)
      return m;
    for (unsigned k = 0; k < o.words && o.index + k < row::Temp; ++k)
      m &= s.defined[o.index + k];
  } else if (o.kind == Operand::Sgpr) {
    for (unsigned k = 0; k < o.words; ++k)
      if (s.undefined[o.index + k])
        return 0;
  }
  return m;
}

/// Lanes of the result's first word, or of all of it, that come from defined
/// sources. The low word of 64-bit arithmetic needs only low words.
uint64_t resultLanes(const WaveState &s, const Wave &w, const Inst &i,
                     bool low);

/// Passes (of 4 cycles) an MFMA occupies its unit.
unsigned matrixPasses(const Chip &chip, const Inst &i);
/// Cycles any matrix instruction occupies its SIMD's unit.
unsigned matrixCycles(const Chip &chip, const Inst &i);

} // namespace greta::sim

#endif
