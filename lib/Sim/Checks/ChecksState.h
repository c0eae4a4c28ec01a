//===- ChecksState.h - shadow state of a checked workgroup ------*- C++ -*-===//
#ifndef GRETA_SIM_CHECKSSTATE_H
#define GRETA_SIM_CHECKSSTATE_H

#include "Checks/Checks.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <optional>

namespace greta::sim {

enum Counter : uint8_t { CountLoad, CountLds, CountSmem, Counters };

/// Keeps the latest accesses to a word, to find races. Clocks count a wave's
/// barriers.
struct Shadow {
  uint32_t writeClock = 0; ///< 0: never written
  uint32_t readClock = 0;  ///< barrier interval of `readers`
  uint32_t readers = 0;    ///< bit set of waves
  uint8_t writer = 0;
  uint8_t writeBytes = 0, readBytes = 0; ///< bit sets of the four bytes
  bool atomic = false;                   ///< the write was atomic
};

/// Keeps the facts about an instruction that hazard rules need.
struct HazardOp {
  bool known = false;
  bool matrix = false, xdl = false, f64 = false;
  bool valu = false, trans = false, dot = false, dpp = false, partial = false;
  bool swap = false, readlane = false, writelane = false, divFmas = false,
       fma64 = false;
  bool writesExec = false, memory = false, vmem = false, usesM0 = false,
       toLds = false;
  uint8_t passes = 0, accumulator = 0, nop = 1;
  uint8_t longStore = 0;         ///< operand with a wide store's data, plus 1
  uint16_t first = 0, words = 0; ///< a matrix instruction's destination
};

/// Counts wait states behind the latest accesses of a vector register; 0: none.
struct RowHazard {
  uint64_t valu = 0, matrix = 0, dot = 0, readAsC = 0, stored = 0;
  const HazardOp *by = nullptr; ///< the matrix instruction that wrote it
  const OpInfo *dotOp = nullptr;
  uint8_t readPasses = 0;
  bool trans = false, partial = false;
};

/// Describes a load that a vector register waits for.
struct PendingLoad {
  uint64_t lanes = 0; ///< lanes that it writes; 0: there is no load
  uint32_t sequence = 0;
  uint32_t lds = 0; ///< number of a flat load in the LDS counter
  Counter counter = CountLoad;
};

/// Code that a wave runs because some of its lanes are on. The others wait at
/// its end.
struct Guarded {
  uint32_t begin = 0, end = 0;
  uint64_t off = 0;
};

struct WaveState {
  std::array<uint64_t, row::Temp> defined;     ///< defined lanes of each row
  std::array<uint32_t, slot::Count> undefined; ///< undefined bits of scalars
  std::array<uint32_t, Counters> issued, done;
  /// Each register's latest load, and earlier ones of other lanes.
  std::array<PendingLoad, row::Temp> pending;
  llvm::SmallVector<std::pair<unsigned, PendingLoad>, 0> earlier;
  /// The sequence number of the load that each scalar waits for; 0: none.
  std::array<uint32_t, slot::Count> scalarPending;
  std::array<uint32_t, Counters> lastFlat;
  bool anyPending = false;
  uint64_t missedBarrier = 0; ///< lanes that missed the latest barrier
  llvm::DenseMap<uint32_t, Guarded> guards; ///< by the address of the branch
  uint32_t barrierAddress = 0;
  std::vector<uint32_t> clock; ///< vector clock over the waves
  /// Loads that the wave knew to be back at a barrier, by its own clock.
  std::vector<uint32_t> backAtBarrier;
  // Hazards. Wait states are counted from 1.
  std::vector<RowHazard> rows;
  std::array<uint64_t, slot::VCC + 2> sgprWrite; ///< by VALU
  uint64_t state = 1, lastValu = 0, execWrite = 0, m0Write = 0, f64Matrix = 0;
  uint64_t matrixUntil = 0; ///< from here no matrix result is in flight
  uint64_t quietFrom = 0;   ///< from here no result is in flight
  const HazardOp *lastMatrix = nullptr; ///< WMMA with no VALU since
  std::string origin; ///< origin of the latest undefined LDS read
};

struct Checker::State {
  Workgroup &group;
  unsigned checks;
  std::vector<WaveState> waves;
  std::vector<HazardOp> hazardOps; ///< by instruction index
  std::vector<Shadow> ldsShadow;
  std::vector<uint8_t> ldsDefined; ///< by byte
  llvm::DenseMap<uint64_t, std::array<Shadow, 64>>
      globalShadow;                   ///< pages of 256 bytes
  std::vector<uint32_t> barrierClock; ///< joined clocks of arrived waves
  std::vector<uint32_t> passedClock;  ///< clock of the latest completed barrier
  // undefinedWord has the undefined lanes of each word of the current read.
  uint64_t undefinedWord[4] = {};
  uint8_t wordsSeen[MaxLanes] = {};
  uint32_t undefinedScalar = 0; ///< undefined words of a scalar load
  bool sawMemory = false;
  /// The wave (plus one) and the number of a direct-to-LDS load of a word.
  struct Delivery {
    uint8_t wave = 0;
    uint32_t sequence = 0;
  };
  std::vector<Delivery> deliveries; ///< by word; empty before the first
  // The current lane exchange writes these lanes, some with defined values.
  uint64_t crossWritten = 0, crossDefined = 0;
  std::vector<uint8_t> crossKinds; ///< a Cross by instruction index

  ProgramChecker *programs;
  /// The undefined bits of the scalar instruction's results; it is empty if all
  /// sources are defined.
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

/// Returns the lanes of a source that are defined.
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

/// Returns the lanes of the result's first word, or of all of it, that come
/// from defined sources. 64-bit arithmetic's low word needs only low words.
uint64_t resultLanes(const WaveState &s, const Wave &w, const Inst &i,
                     bool low);

/// Returns how many passes (of 4 cycles) an MFMA occupies its unit.
unsigned matrixPasses(const Chip &chip, const Inst &i);
/// Returns how many cycles a matrix instruction occupies its SIMD's unit.
unsigned matrixCycles(const Chip &chip, const Inst &i);

} // namespace greta::sim

#endif
