//===- ChecksHazards.cpp - wait states the hardware does not insert -------===//
//
// gfx90a to gfx950 leave part of their dependencies to the compiler, which puts
// s_nop or other instructions between; an instruction is one wait state, s_nop
// N is N + 1. The rules below are those of LLVM 22's GCNHazardRecognizer, in
// wait states between writer and reader. P: passes of the matrix instruction;
// XDL: all of them but f32 (S) and f64 (D), on gfx90a S too.
//
//   matrix result is read as               XDL     S     D 4x4  D 16x16
//     A, B, sparse index, scale; by VALU   P+3 a   P+2   6      11 b
//     C, the same registers                2 c     2 c   4 by D 4x4, else 0
//     C, other overlap                     P+1 d   P e   4 e    9 b, e
//     data or address of memory            P+3 a   P+2   9      18
//   or overwritten by VALU or memory       P+3 a   P+2   6      11
//   a: one more on gfx950 unless P is 2    b: on gfx950 19 and 17
//   c: when P is 2, but 0 on gfx90a        e: 0 when XDL reads
//   d: gfx950 one more unless P is 2 and S or D reads; gfx90a P, by D P+1
//   register that XDL reads as C is overwritten by VALU or memory: P-1
//
//   VALU writes VGPR, matrix reads it: 2; DPP or v_permlane*_swap: 2
//   VALU writes EXEC (v_cmpx): matrix 4, DPP 5, memory (not LDS) 5
//   VALU writes SGPR: memory (not LDS) 5, lane select 4; VCC, v_div_fmas: 4
//   dot result: any other VALU or memory reads or overwrites it 3, its own kind
//     reads it as A or B 3
//   f64 matrix, v_fma_f64: 2
//   16-byte or 12-byte store, VALU overwrites the data: 1 (gfx940 on: 2)
//   SALU writes M0: LDS DMA, s_sendmsg 1
//   gfx940 on: VALU writes SGPR, VALU reads it 2; VALU writes VGPR, v_readlane
//     reads it 1; VALU writes EXEC, v_readlane, v_writelane 4; transcendental's
//     result in other VALU 1; SDWA's part of a register in VALU 1
//
// Three of these are warnings, because AMD's own assembly in ROCm/aiter (hsa/,
// at e404860) breaks them everywhere and computes what it should: either the
// hardware interlocks or it needs less than LLVM allows for.
//   SALU writes M0, LDS DMA uses it: all 1,110 loads of gfx942's bf16 GEMM
//   VALU writes SGPR, VALU reads it: masks of attention, top-k softmax
//   result of 4 passes (XDL) read by VALU after 2 wait states: fp8 GEMM with
//     block scales
//
// gfx10.3 interlocks all (LLVM: no-data-dep-hazard, and none of the bugs of
// gfx10.1), gfx11 and gfx12 all but one: a WMMA or SWMMAC that reads the result
// of the WMMA before it as A, B or sparse index needs a VALU instruction
// (v_nop) between.
//
//===----------------------------------------------------------------------===//
#include "Checks/ChecksState.h"
#include "Code/Program.h"
#include "Isa/Lane.h"
#include "greta/Sim/Simulator.h"

using namespace greta::sim;
using llvm::StringRef;
using llvm::Twine;

static bool isMemory(Unit u) {
  return u == Unit::Global || u == Unit::Flat || u == Unit::Scratch ||
         u == Unit::Buffer;
}

static HazardOp describe(const Chip &chip, const Inst &i) {
  HazardOp h;
  h.known = true;
  StringRef name = i.op ? i.op->name : "";
  h.matrix = i.unit == Unit::Matrix;
  h.valu = i.unit == Unit::Valu || i.unit == Unit::Trans;
  h.vmem = isMemory(i.unit);
  h.memory = h.vmem || i.unit == Unit::Lds;
  h.trans = i.unit == Unit::Trans;
  h.nop = name == "s_nop" ? uint8_t(i.imm + 1) : 1;
  if (h.matrix) {
    bool sparse = name.contains("smfmac") || name.contains("swmmac");
    h.accumulator = uint8_t(sparse ? i.numSrc - 1 : 2);
    if (chip.isGfx9()) {
      h.passes = uint8_t(matrixPasses(chip, i));
      h.f64 = name.contains("f64");
      h.xdl = !h.f64 && (chip.family == Family::GFX90A ||
                         !name.ends_with("f32") || name.contains("xf32"));
    }
    h.first = i.dst[0].index;
    h.words = i.dst[0].words;
  }
  if (h.valu) {
    h.dot = name.starts_with("v_dot");
    h.swap = name.contains("permlane") && name.contains("swap");
    h.dpp = i.has(Dpp) || h.swap;
    h.readlane =
        name.starts_with("v_readlane") || name.starts_with("v_readfirstlane");
    h.writelane = name.starts_with("v_writelane");
    h.divFmas = name.starts_with("v_div_fmas");
    h.fma64 = name == "v_fma_f64" || name == "v_fmac_f64";
    h.writesExec = name.starts_with("v_cmpx") || i.has(WritesExec);
    h.partial = i.fn == runSdwa && (i.lane[0] & 7) != 6;
  }
  if (h.vmem && name.contains("store")) {
    unsigned data = i.unit == Unit::Buffer ? 0 : 1;
    bool offset = i.unit == Unit::Buffer && i.src[3].kind == Operand::Sgpr;
    if (i.src[data].words > 2 && !offset)
      h.longStore = uint8_t(data + 1);
  }
  h.toLds = h.vmem && (i.has(ToLds) || name.contains("_lds_"));
  h.usesM0 =
      h.toLds || name.starts_with("s_sendmsg") || name.contains("addtid");
  return h;
}

const HazardOp &Checker::State::hazardOp(const Wave &w, const Inst &i) {
  size_t index = size_t(&i - w.program->code());
  if (index >= hazardOps.size())
    hazardOps.resize(w.program->size());
  HazardOp &h = hazardOps[index];
  if (!h.known)
    h = describe(*w.chip, i);
  return h;
}

/// Returns the wait states between the matrix instruction `by` and its reader.
static unsigned afterMatrix(Family f, const HazardOp &by, bool memory,
                            bool overwrites) {
  if (by.f64) {
    bool big = by.passes > 4;
    if (overwrites)
      return big ? 11 : 6;
    if (memory)
      return big ? 18 : 9;
    return big ? (f == Family::GFX950 ? 19 : 11) : 6;
  }
  if (!by.xdl)
    return by.passes + 2u;
  return by.passes + 3u + (f == Family::GFX950 && by.passes != 2);
}
static unsigned beforeC(Family f, const HazardOp &by, const HazardOp &reader,
                        bool same) {
  bool old = f == Family::GFX90A, newest = f == Family::GFX950;
  if (by.f64) {
    if (same)
      return by.passes == 4 && reader.f64 && reader.passes == 4 ? 4 : 0;
    if (old ? !reader.f64 : reader.xdl)
      return 0;
    return by.passes == 4 ? 4 : newest ? 17 : 9;
  }
  if (same)
    return by.passes == 2 && !old ? 2 : 0;
  if (old)
    return by.passes + (reader.f64 ? 1u : 0);
  if (!by.xdl)
    return reader.xdl ? 0 : by.passes;
  return by.passes + 1u + (newest && (by.passes != 2 || reader.xdl));
}

namespace {
/// Reports at most one instruction that comes too soon.
struct Reporter {
  Wave &w;
  const Inst &i;
  uint64_t now;
  /// `since` is the wait state behind the writer; 0: nothing was written.
  bool operator()(uint64_t since, unsigned need, unsigned r, bool scalar,
                  const char *what) {
    bool early = isEarly(since, need);
    if (early)
      w.fault(i, text(since, need, r, scalar, what));
    return early;
  }
  /// Warns of a rule that AMD's own assembly breaks; the launch goes on.
  bool warn(uint64_t since, unsigned need, unsigned r, bool scalar,
            const char *what) {
    bool early = isEarly(since, need);
    if (early && !w.wg->warnings.count(i.address))
      w.warn(i, text(since, need, r, scalar, what) +
                    " by LLVM's rule, which AMD's own kernels (ROCm/aiter) "
                    "break without harm");
    return early;
  }

private:
  bool isEarly(uint64_t since, unsigned need) const {
    return since && since + need > now && w.state != RunState::Fault;
  }
  std::string text(uint64_t since, unsigned need, unsigned r, bool scalar,
                   const char *what) const {
    uint64_t more = since + need - now;
    std::string name = scalar          ? r == slot::Exec ? "EXEC"
                                         : r == slot::M0 ? "m0"
                                         : r >= slot::VCC && r < slot::VCC + 2
                                             ? "vcc"
                                             : "s" + std::to_string(r)
                       : r < row::Agpr ? "v" + std::to_string(r)
                                       : "a" + std::to_string(r - row::Agpr);
    return (Twine(name) + " " + what + ": " + Twine(more) + " more wait state" +
            (more == 1 ? "" : "s") + " (s_nop or other instructions) " +
            (more == 1 ? "is" : "are") + " needed")
        .str();
  }
};
} // namespace

void Checker::State::matrixHazards(Wave &w, WaveState &s, const Inst &i,
                                   const HazardOp &h) {
  Family f = w.chip->family;
  Reporter soon{w, i, s.state};
  soon(s.execWrite, 4, slot::Exec, true,
       "is used by a matrix instruction right after a VALU wrote it");
  bool valuNear = s.lastValu + 2 > s.state,
       matrixNear = s.matrixUntil > s.state;
  if (!valuNear && !matrixNear)
    return;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    const Operand &o = i.src[k];
    if (o.kind != Operand::Vgpr)
      continue;
    for (unsigned n = 0; n < o.words && o.index + n < row::Temp; ++n) {
      unsigned r = o.index + n;
      const RowHazard &x = s.rows[r];
      if (valuNear &&
          soon(x.valu, 2, r, false,
               "is read by a matrix instruction right after a VALU wrote it"))
        return;
      if (!matrixNear || !x.by)
        continue;
      bool same = x.by->first == o.index && x.by->words == o.words;
      unsigned need = k == h.accumulator ? beforeC(f, *x.by, h, same)
                                         : afterMatrix(f, *x.by, false, false);
      if (soon(x.matrix, need, r, false,
               "is read before the matrix instruction that writes it is done"))
        return;
      if (same && k == h.accumulator)
        break; // one writer stands for all
    }
  }
}

void Checker::State::hazardBefore(Wave &w, WaveState &s, const Inst &i) {
  const HazardOp &h = hazardOp(w, i);
  if (!w.chip->isGfx9()) {
    if (h.matrix)
      wmmaHazards(w, s, i, h);
    return;
  }
  if (h.matrix)
    return matrixHazards(w, s, i, h);
  Reporter soon{w, i, s.state};
  bool gfx940 = w.chip->family != Family::GFX90A;
  if (h.toLds)
    soon.warn(s.m0Write, 1, slot::M0, true,
              "is used right after a SALU wrote it");
  else if (h.usesM0)
    soon(s.m0Write, 1, slot::M0, true, "is used right after a SALU wrote it");
  if (!h.valu && !h.memory)
    return;
  if (h.vmem)
    soon(s.execWrite, 5, slot::Exec, true,
         "is used by a memory instruction right after a VALU wrote it");
  if (h.dpp)
    soon(s.execWrite, 5, slot::Exec, true,
         "is used by DPP right after a VALU wrote it");
  if ((h.readlane || h.writelane) && gfx940)
    soon(s.execWrite, 4, slot::Exec, true,
         "is used by a lane access right after a VALU wrote it");
  if (h.divFmas)
    for (unsigned r : {unsigned(slot::VCC), slot::VCC + 1u})
      soon(s.sgprWrite[r], 4, r, true,
           "is used by v_div_fmas right after a VALU wrote it");
  if (h.fma64)
    if (soon(s.f64Matrix, 2, i.dst[0].index, false,
             "is computed in double precision right after a matrix instruction "
             "in double precision"))
      return;
  // No recent write can be read too soon.
  if (s.quietFrom > s.state && !readTooSoon(w, s, i, h))
    overwrittenTooSoon(w, s, i, h);
}

/// Returns whether an instruction reads a register too soon after its writer.
bool Checker::State::readTooSoon(Wave &w, WaveState &s, const Inst &i,
                                 const HazardOp &h) {
  Reporter soon{w, i, s.state};
  bool gfx940 = w.chip->family != Family::GFX90A;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    const Operand &o = i.src[k];
    if (o.kind == Operand::Sgpr && o.index < slot::VCC + 2) {
      const char *what = "is read right after a VALU wrote it";
      bool select = (h.readlane || h.writelane) && k == 1;
      for (unsigned n = 0; n < o.words; ++n) {
        unsigned r = o.index + n;
        if ((h.vmem || select) &&
            soon(s.sgprWrite[r], h.vmem ? 5 : 4, r, true, what))
          return true;
        if (h.valu && !select && gfx940)
          soon.warn(s.sgprWrite[r], 2, r, true, what);
      }
      continue;
    }
    if (o.kind != Operand::Vgpr)
      continue;
    for (unsigned n = 0; n < o.words && o.index + n < row::Temp; ++n) {
      unsigned r = o.index + n;
      const RowHazard &x = s.rows[r];
      if (x.by) {
        const char *what =
            "is read before the matrix instruction that writes it is done";
        unsigned need = afterMatrix(w.chip->family, *x.by, h.memory, false);
        if (h.valu && x.by->xdl && x.by->passes == 4 && x.matrix + 2 <= s.state)
          soon.warn(x.matrix, need, r, false, what);
        else if (soon(x.matrix, need, r, false, what))
          return true;
      }
      if (x.dot && !(x.dotOp == i.op && k == 2) &&
          soon(x.dot, 3, r, false, "is read before the dot product is done"))
        return true;
      if (h.dpp && k == 0 &&
          soon(x.valu, 2, r, false,
               "is read across lanes right after a VALU wrote it"))
        return true;
      if (!gfx940 || !h.valu)
        continue;
      if (h.readlane &&
          soon(x.valu, 1, r, false,
               "is read by a lane access right after a VALU wrote it"))
        return true;
      if (x.trans && !h.trans &&
          soon(x.valu, 1, r, false,
               "is read right after a transcendental instruction wrote it"))
        return true;
      if (x.partial && soon(x.valu, 1, r, false,
                            "is read right after a part of it was written"))
        return true;
    }
  }
  return false;
}

/// Reports a register that an instruction overwrites too soon.
void Checker::State::overwrittenTooSoon(Wave &w, WaveState &s, const Inst &i,
                                        const HazardOp &h) {
  Reporter soon{w, i, s.state};
  bool gfx940 = w.chip->family != Family::GFX90A;
  for (const Operand &d : i.dst) {
    if (d.kind != Operand::Vgpr)
      continue;
    for (unsigned n = 0; n < d.words && d.index + n < row::Temp; ++n) {
      unsigned r = d.index + n;
      const RowHazard &x = s.rows[r];
      if (x.by &&
          soon(x.matrix, afterMatrix(w.chip->family, *x.by, h.memory, true), r,
               false,
               "is overwritten before the matrix instruction that "
               "writes it is done"))
        return;
      if (soon(x.readAsC, x.readPasses - 1u, r, false,
               "is overwritten before the matrix instruction that accumulates "
               "on it has read it"))
        return;
      if (x.dot && x.dotOp != i.op &&
          soon(x.dot, 3, r, false,
               "is overwritten before the dot product is done"))
        return;
      if (h.swap && soon(x.valu, 2, r, false,
                         "is swapped across lanes right after a VALU wrote it"))
        return;
      if (h.valu && soon(x.stored, gfx940 ? 2 : 1, r, false,
                         "is overwritten before the store has read it"))
        return;
    }
  }
}

/// Returns whether a branch was taken from before the one that ends its block.
/// LLVM counts on that path, too; a taken branch takes longer than both.
static bool skipsBranch(const Wave &w, const Inst &i) {
  size_t next = size_t(&i - w.program->code()) + 1;
  if (i.unit != Unit::Branch || w.pc == next || next >= w.program->size())
    return false;
  const Inst &last = w.program->code()[next];
  return last.op && StringRef(last.op->name) == "s_branch";
}

void Checker::State::hazardAfter(Wave &w, WaveState &s, const Inst &i) {
  const HazardOp &h = hazardOp(w, i);
  if (!w.chip->isGfx9()) {
    if (h.matrix || h.valu)
      s.lastMatrix = h.matrix ? &h : nullptr;
    return;
  }
  s.state += h.nop + skipsBranch(w, i);
  if (i.unit == Unit::Salu && i.dst[0].kind == Operand::Sgpr &&
      i.dst[0].index == slot::M0)
    s.m0Write = s.state;
  if (h.longStore) {
    const Operand &o = i.src[h.longStore - 1];
    for (unsigned n = 0; n < o.words && o.index + n < row::Temp; ++n)
      s.rows[o.index + n].stored = s.state;
    s.quietFrom = std::max(s.quietFrom, s.state + 2);
  }
  for (const Operand &d : i.dst) {
    if (d.kind == Operand::Vgpr) {
      for (unsigned n = 0; n < d.words && d.index + n < row::Temp; ++n) {
        RowHazard &x = s.rows[d.index + n];
        x.matrix = h.matrix ? s.state : 0;
        x.by = h.matrix ? &h : nullptr;
        x.valu = h.valu ? s.state : 0;
        x.trans = h.trans;
        x.partial = h.partial;
        x.dot = h.dot ? s.state : 0;
        x.dotOp = i.op;
      }
    } else if (d.kind == Operand::Sgpr && d.index < slot::VCC + 2 && i.op) {
      for (unsigned n = 0; n < d.words && d.index + n < slot::VCC + 2; ++n)
        s.sgprWrite[d.index + n] = h.valu ? s.state : 0;
    }
  }
  if (h.valu) {
    s.lastValu = s.state;
    s.quietFrom = std::max(s.quietFrom, s.state + 5);
    if (h.writesExec)
      s.execWrite = s.state;
  } else if (i.has(WritesExec)) {
    s.execWrite = 0;
  }
  if (!h.matrix)
    return;
  uint64_t until = s.state + 20;
  s.matrixUntil = until;
  s.quietFrom = std::max(s.quietFrom, until);
  if (h.f64)
    s.f64Matrix = s.state;
  if (!h.xdl || h.accumulator >= i.numSrc)
    return;
  const Operand &c = i.src[h.accumulator];
  if (c.kind == Operand::Vgpr)
    for (unsigned n = 0; n < c.words && c.index + n < row::Temp; ++n) {
      s.rows[c.index + n].readAsC = s.state;
      s.rows[c.index + n].readPasses = h.passes;
    }
}

void Checker::State::wmmaHazards(Wave &w, WaveState &s, const Inst &i,
                                 const HazardOp &h) {
  const HazardOp *before = s.lastMatrix;
  if (!before)
    return;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    const Operand &o = i.src[k];
    if (k == h.accumulator || o.kind != Operand::Vgpr)
      continue;
    unsigned from = std::max<unsigned>(o.index, before->first),
             to = std::min<unsigned>(o.index + o.words,
                                     before->first + before->words);
    if (from < to)
      return w.fault(i, Twine("v") + Twine(from) +
                            " is read by a matrix instruction right after the "
                            "one that writes it: a v_nop or another vector "
                            "instruction is needed between");
  }
}
