//===- Wave.h - state of one wave and its workgroup -------------*- C++ -*-===//
#ifndef GRETA_SIM_WAVE_H
#define GRETA_SIM_WAVE_H

#include "Chip.h"
#include "Isa/Inst.h"
#include "Memory.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace greta::sim {

class Checker;
class Program;
class Source;
struct Workgroup;
struct LaunchStats;
struct GroupTrace;

/// Flat addresses of LDS and scratch are outside what a host process can map.
constexpr uint64_t SharedAperture = 0x0001000000000000ull;
constexpr uint64_t PrivateAperture = 0x0002000000000000ull;

/// s_setvskip sets this bit of MODE.
constexpr uint32_t ModeVskip = 1u << 28;

enum class RunState : uint8_t { Running, Barrier, Yield, Done, Fault };

struct Wave {
  uint32_t (*v)[MaxLanes] = nullptr; ///< row::Count rows
  uint32_t s[slot::Count] = {};
  uint64_t exec = 0;
  bool execFull = false;
  bool wave32 = false;
  uint8_t lanes = 64;
  RunState state = RunState::Done;
  uint32_t pc = 0; ///< index of the next instruction
  uint64_t budget = 0;
  uint32_t mode = 0;             ///< MODE register: round, denorm, clamp bits
  uint32_t csr32 = 0, csr64 = 0; ///< host control words for f32 and f64/f16
  bool dx10Clamp = true, ieee = true;
  uint8_t gprIndexing = 0; ///< s_set_gpr_idx_on: src0, src1, src2, dst
  unsigned id = 0;         ///< in the workgroup
  Workgroup *wg = nullptr;
  Checker *checker = nullptr;
  LaunchStats *stats = nullptr;
  GroupTrace *timeline = nullptr; ///< the issue model's recording
  const Region *lastRegion = nullptr;
  uint8_t *scratch = nullptr;     ///< [dword][lane]
  uint64_t barrierGeneration = 0; ///< number of the barrier signalled last
  bool signalled = false;         ///< it has signalled since the last wait
  uint64_t fullMask = ~0ull;
  const Chip *chip = nullptr;
  const Program *program = nullptr;
  alignas(
      32) uint32_t laneMask[MaxLanes] = {}; ///< EXEC as words, when not full

  void setExec(uint64_t e) {
    if (wave32)
      e &= 0xffffffffu;
    exec = e;
    s[slot::Exec] = uint32_t(e);
    s[slot::Exec + 1] = uint32_t(e >> 32);
    execFull = e == fullMask;
    if (!execFull)
      for (unsigned l = 0; l < MaxLanes; ++l)
        laneMask[l] = (e >> l & 1) ? ~0u : 0u;
  }
  /// Takes over EXEC after a scalar write that may have changed it.
  void refreshExec() {
    setExec(uint64_t(s[slot::Exec + 1]) << 32 | s[slot::Exec]);
  }
  bool scc() const { return s[slot::Scc]; }
  void setScc(bool b) { s[slot::Scc] = b; }
  uint64_t s64(unsigned i) const { return uint64_t(s[i + 1]) << 32 | s[i]; }
  uint32_t scalar(const Operand &o) const {
    return o.kind == Operand::Sgpr    ? s[o.index]
           : o.kind == Operand::Const ? uint32_t(o.value)
                                      : 0;
  }
  uint64_t scalar64(const Operand &o) const {
    if (o.kind == Operand::Sgpr)
      return o.words >= 2 ? s64(o.index) : s[o.index];
    return o.value;
  }
  /// Reads a lane mask operand: one word in wave32, two in wave64.
  uint64_t mask(const Operand &o) const {
    if (o.kind != Operand::Sgpr)
      return o.value;
    return wave32 ? s[o.index] : s64(o.index);
  }
  void setScalar(const Operand &o, uint32_t x) { s[o.index] = x; }
  void setScalar64(const Operand &o, uint64_t x) {
    s[o.index] = uint32_t(x);
    s[o.index + 1] = uint32_t(x >> 32);
  }
  void setMask(const Operand &o, uint64_t m) {
    s[o.index] = uint32_t(m);
    if (!wave32)
      s[o.index + 1] = uint32_t(m >> 32);
  }

  /// Returns rows of 64 words; a scalar source fills `words` rows of `tmp`.
  const uint32_t *rows(const Operand &o, unsigned words, uint32_t *tmp) const {
    if (o.kind == Operand::Vgpr)
      return v[o.index];
    if (o.kind == Operand::Const && words <= 2)
      return o.splat;
    for (unsigned k = 0; k < words; ++k) {
      uint32_t x = o.kind == Operand::Sgpr
                       ? s[o.index + k]
                       : uint32_t(k < 2 ? o.value >> (32 * k) : 0);
      for (unsigned l = 0; l < MaxLanes; ++l)
        tmp[k * MaxLanes + l] = x;
    }
    return tmp;
  }

  /// Ends the launch with an error that names kernel, instruction and lane.
  void fault(const Inst &i, const llvm::Twine &what, int lane = -1);
  /// Warns about an instruction, and goes on.
  void warn(const Inst &i, const llvm::Twine &what);
  /// Checks [address, address+bytes) against the allocations.
  uint8_t *global(const Inst &i, uint64_t address, unsigned bytes, int lane,
                  bool write) {
    const Region *r = lastRegion;
    if (LLVM_LIKELY(r && address - r->base < r->size &&
                    r->size - (address - r->base) >= bytes))
      return reinterpret_cast<uint8_t *>(address);
    return globalSlow(i, address, bytes, lane, write);
  }
  uint8_t *globalSlow(const Inst &i, uint64_t address, unsigned bytes, int lane,
                      bool write);
  uint8_t *lds(const Inst &i, uint64_t address, unsigned bytes, int lane);
  /// Returns the dword of a lane's scratch that holds byte `offset`.
  uint8_t *scratchWord(const Inst &i, uint64_t offset, int lane);
  void applyMode();
};

struct Workgroup {
  std::vector<Wave> waves;
  std::vector<uint8_t> lds;
  uint32_t ldsBytes = 0;
  uint32_t id[3] = {};
  unsigned arrived = 0;      ///< number of waves at the barrier
  uint64_t generation = 0;   ///< number of completed barriers
  uint32_t scratchBytes = 0; ///< per lane
  const MemoryMap *memory = nullptr;
  uint64_t programBase = 0;
  Source *source = nullptr; ///< null: the lines are not known
  std::string error;
  bool failed = false;
  std::map<uint32_t, std::string> warnings; ///< by the instruction's address
  uint64_t clock = 0;
};

template <class Fn> inline void forLanes(const Wave &w, Fn &&fn) {
  for (uint64_t m = w.exec; m; m &= m - 1)
    fn(unsigned(llvm::countr_zero(m)));
}

} // namespace greta::sim

#endif
