//===- GprIndex.cpp - gfx9's VGPR indexing mode ---------------------------===//
//
// Between s_set_gpr_idx_on and s_set_gpr_idx_off the vector registers of VALU
// instructions are relative: M0[7:0] is added to the sources and destinations
// that the mode names. LLVM reads and writes vectors by a variable index so,
// with nothing but VALU instructions in between; the binder wraps those, and
// branches inside are errors.
//
//===----------------------------------------------------------------------===//
#include "Checks/Checks.h"
#include "Code/Program.h"
#include "Isa/Lane.h"
#include "Wave.h"

using namespace greta::sim;
using llvm::StringRef;

/// Parses "SRC0,DST" to bits 0 to 3.
int64_t greta::sim::parseGprIndex(StringRef text) {
  static const char *const names[] = {"SRC0", "SRC1", "SRC2", "DST"};
  int64_t bits = 0;
  while (!text.empty()) {
    auto [head, tail] = text.split(',');
    for (unsigned k = 0; k < 4; ++k)
      if (head.trim() == names[k])
        bits |= 1 << k;
    text = tail;
  }
  return bits;
}

/// Moves a register operand; returns false when it leaves the register file.
static bool move(Operand &o, unsigned by) {
  if (!o.isVgpr())
    return true;
  unsigned file = o.index < row::Agpr ? 0 : row::Agpr;
  unsigned to = o.index - file + by;
  o.index = uint16_t(file + to);
  return to + o.words <= 256;
}

void greta::sim::runIndexed(Wave &w, const Inst &i) {
  if (!w.gprIndexing)
    return i.inner->fn(w, *i.inner);
  Inst moved = *i.inner;
  if (moved.inner)
    return w.fault(i, "VGPR indexing of DPP and SDWA is not supported");
  unsigned by = w.s[slot::M0] & 0xff;
  bool good = true;
  for (unsigned k = 0; k < 3; ++k)
    if (w.gprIndexing >> k & 1)
      good &= move(moved.src[k], by);
  if (w.gprIndexing & 8)
    good &= move(moved.dst[0], by);
  if (!good)
    return w.fault(i, "M0 points outside the vector registers");
  moved.fn(w, moved);
  if (w.checker && moved.dst[0].isVgpr())
    for (unsigned k = 0; k < moved.dst[0].words; ++k)
      w.checker->defineVector(w, moved.dst[0].index + k);
}

namespace {

void branchInside(Wave &w, const Inst &i) {
  w.fault(i, "a branch between s_set_gpr_idx_on and s_set_gpr_idx_off");
}

void setIndex(Wave &w, const Inst &i) {
  w.s[slot::M0] = (w.s[slot::M0] & ~0xffu) | (w.scalar(i.src[0]) & 0xff);
}
void setMode(Wave &w, const Inst &i) {
  w.gprIndexing = uint8_t(i.imm & 15);
  w.s[slot::M0] = (w.s[slot::M0] & ~0xf000u) | uint32_t(i.imm & 15) << 12;
}
void on(Wave &w, const Inst &i) {
  setIndex(w, i);
  setMode(w, i);
}
void off(Wave &w, const Inst &) { w.gprIndexing = 0; }

const OpInfo table[] = {
    {"s_set_gpr_idx_on", on, "=ik", 0, Optional, Unit::Other},
    {"s_set_gpr_idx_idx", setIndex, "=i", 0, 0, Unit::Other},
    {"s_set_gpr_idx_mode", setMode, "=k", 0, Optional, Unit::Other},
    {"s_set_gpr_idx_off", off, "=", 0, 0, Unit::Other},
};

} // namespace

void Binder::wrapIndexed(Inst &i) {
  if (i.fn == on) {
    indexing = true;
  } else if (i.fn == off) {
    indexing = false;
  } else if (indexing && i.unit == Unit::Valu) {
    i.inner = &keep(i);
    i.fn = runIndexed;
    // The registers are not known here, so the checks see none.
    i.numSrc = 0;
    for (Operand &o : i.dst)
      o = Operand();
    for (Operand &o : i.src)
      o = Operand();
  } else if (StringRef(i.op->name).starts_with("s_endpgm")) {
    indexing = false;
  } else if (indexing && (i.unit == Unit::Branch ||
                          StringRef(i.op->name).contains("pc_b64") ||
                          StringRef(i.op->name).starts_with("s_call"))) {
    i.fn = branchInside;
    i.unit = Unit::Other;
    indexing = false;
  }
}

OpTable greta::sim::gprIndexOps() { return table; }
