//===- ValuLane.cpp - instructions that look across lanes -----------------===//
#include "Checks/Checks.h"
#include "Isa/Valu.h"

using namespace greta::sim;

void greta::sim::writeHalves(Wave &w, const Inst &i, uint32_t *dst,
                             uint32_t *src) {
  // gfx9 zeroes the other half of a plain 16-bit result; op_sel and RDNA keep
  // it.
  uint32_t keep, shift = 0;
  if (i.has(HiDst)) {
    keep = 0xffff;
    shift = 16;
  } else {
    keep = w.chip->isGfx9() && !i.opSel ? 0 : 0xffff0000;
  }
  for (unsigned l = 0; l < MaxLanes; ++l)
    src[l] = (dst[l] & keep) | src[l] << shift;
  writeRows(w, dst, src, 1);
}

namespace {

unsigned firstLane(const Wave &w) {
  return w.exec ? unsigned(llvm::countr_zero(w.exec)) : 0;
}
void readfirstlane(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[MaxLanes];
  w.setScalar(i.dst[0], w.rows(i.src[0], 1, t)[firstLane(w)]);
  if (i.has(WritesExec))
    w.refreshExec();
}
void readlane(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[MaxLanes];
  unsigned l = w.scalar(i.src[1]) & (w.lanes - 1u);
  w.setScalar(i.dst[0], w.rows(i.src[0], 1, t)[l]);
  if (i.has(WritesExec))
    w.refreshExec();
}
void writelane(Wave &w, const Inst &i) {
  w.v[i.dst[0].index][w.scalar(i.src[1]) & (w.lanes - 1u)] = w.scalar(i.src[0]);
}
template <unsigned Half> void mbcnt(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[2][MaxLanes], out[MaxLanes];
  const uint32_t *a = w.rows(i.src[0], 1, t[0]), *b = w.rows(i.src[1], 1, t[1]);
  for (unsigned l = 0; l < MaxLanes; ++l) {
    uint32_t below = Half ? (l > 32 ? (1u << (l - 32)) - 1 : 0)
                          : (l >= 32 ? ~0u : (1u << l) - 1);
    out[l] = uint32_t(llvm::popcount(a[l] & below)) + b[l];
  }
  writeRows(w, w.v[i.dst[0].index], out, 1);
}
void swap(Wave &w, const Inst &i) {
  uint32_t *a = w.v[i.dst[0].index], *b = w.v[i.src[0].index];
  forLanes(w, [&](unsigned l) { std::swap(a[l], b[l]); });
}
void swap16(Wave &w, const Inst &i) {
  uint32_t *a = w.v[i.dst[0].index], *b = w.v[i.src[0].index];
  unsigned sa = i.has(HiDst) ? 16 : 0, sb = i.src[0].hi ? 16 : 0;
  forLanes(w, [&](unsigned l) {
    uint32_t x = a[l] >> sa & 0xffff, y = b[l] >> sb & 0xffff;
    a[l] = (a[l] & ~(0xffffu << sa)) | y << sa;
    b[l] = (b[l] & ~(0xffffu << sb)) | x << sb;
  });
}
/// Swaps halves between the registers: rows 0|1 of one with 1|0 of the other.
template <unsigned Row> void permlaneSwap(Wave &w, const Inst &i) {
  uint32_t *a = w.v[i.dst[0].index], *b = w.v[i.src[0].index];
  for (unsigned l = 0; l < w.lanes; ++l) {
    if (!(l & Row) && (w.exec >> l & 1) && (w.exec >> (l + Row) & 1))
      std::swap(a[l + Row], b[l]);
  }
}
/// Selects lanes by 4 bits each of two scalars; X reads the other row of 32.
template <bool X, bool Var> void permlane16(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[2][MaxLanes], out[MaxLanes];
  const uint32_t *a = w.rows(i.src[0], 1, t[0]);
  const uint32_t *var = Var ? w.rows(i.src[1], 1, t[1]) : nullptr;
  uint64_t select =
      Var ? 0 : uint64_t(w.scalar(i.src[2])) << 32 | w.scalar(i.src[1]);
  bool fetchInactive = i.opSel & 1, bound = i.opSel & 2;
  uint32_t *d = w.v[i.dst[0].index];
  for (unsigned l = 0; l < MaxLanes; ++l) {
    unsigned in = Var ? var[l] & 15 : unsigned(select >> (4 * (l & 15)) & 15);
    unsigned s = ((l & ~15u) ^ (X ? 16u : 0)) | in;
    bool live = (w.exec >> s & 1) || fetchInactive;
    out[l] = live ? a[s] : bound ? 0 : d[l];
  }
  writeRows(w, d, out, 1);
}
void permlane64(Wave &w, const Inst &i) {
  alignas(32) uint32_t out[MaxLanes], t[MaxLanes];
  const uint32_t *a = w.rows(i.src[0], 1, t);
  for (unsigned l = 0; l < MaxLanes; ++l)
    out[l] = w.wave32 ? a[l] : a[l ^ 32];
  writeRows(w, w.v[i.dst[0].index], out, 1);
}
/// Moves M0-relative registers.
template <bool Src, bool Dst> void movrel(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[MaxLanes];
  unsigned from = i.src[0].index + (Src ? w.s[slot::M0] : 0);
  unsigned to = i.dst[0].index + (Dst ? w.s[slot::M0] : 0);
  if (from >= row::Temp || to >= row::Temp)
    return w.fault(i, "M0 points outside the vector registers");
  const uint32_t *a = i.src[0].isVgpr() ? w.v[from] : w.rows(i.src[0], 1, t);
  std::memcpy(t, a, sizeof(t));
  writeRows(w, w.v[to], t, 1);
  if (Dst && w.checker)
    w.checker->defineVector(w, to);
}
/// Moves with an offset each: source by M0[9:0], destination by M0[25:16].
template <bool Swap> void movrelsd2(Wave &w, const Inst &i) {
  unsigned from = i.src[0].index + (w.s[slot::M0] & 0x3ff),
           to = i.dst[0].index + (w.s[slot::M0] >> 16 & 0x3ff);
  if (!i.src[0].isVgpr() || from >= row::Agpr || to >= row::Agpr)
    return w.fault(i, "M0 points outside the vector registers");
  uint32_t *a = w.v[from], *d = w.v[to];
  forLanes(w, [&](unsigned l) {
    uint32_t x = d[l];
    d[l] = a[l];
    if (Swap)
      a[l] = x;
  });
  if (w.checker) {
    w.checker->defineVector(w, to);
    w.checker->defineVector(w, from);
  }
}

#define ROW(name, fn, types) {name, fn, types, 0, CrossLane, Unit::Valu}
const OpInfo table[] = {
    ROW("v_readfirstlane_b32", readfirstlane, "i=i"),
    ROW("v_readlane_b32", readlane, "i=ii"),
    ROW("v_writelane_b32", writelane, "i=ii"),
    {"v_mbcnt_lo_u32_b32", mbcnt<0>, "i=ii", 0, 0, Unit::Valu},
    {"v_mbcnt_hi_u32_b32", mbcnt<1>, "i=ii", 0, 0, Unit::Valu},
    ROW("v_swap_b32", swap, "i=i"),
    ROW("v_swap_b16", swap16, "s=s"),
    ROW("v_permlane16_swap_b32", permlaneSwap<16>, "i=i"),
    ROW("v_permlane32_swap_b32", permlaneSwap<32>, "i=i"),
    ROW("v_permlane16_b32", (permlane16<false, false>), "i=iii"),
    ROW("v_permlanex16_b32", (permlane16<true, false>), "i=iii"),
    ROW("v_permlane16_var_b32", (permlane16<false, true>), "i=ii"),
    ROW("v_permlanex16_var_b32", (permlane16<true, true>), "i=ii"),
    ROW("v_permlane64_b32", permlane64, "i=i"),
    ROW("v_movrels_b32", (movrel<true, false>), "i=i"),
    ROW("v_movreld_b32", (movrel<false, true>), "i=i"),
    ROW("v_movrelsd_b32", (movrel<true, true>), "i=i"),
    ROW("v_movrelsd_2_b32", movrelsd2<false>, "i=i"),
    ROW("v_swaprel_b32", movrelsd2<true>, "i=i"),
};

} // namespace

OpTable greta::sim::valuLaneOps() { return table; }
