//===- DsLane.cpp - LDS instructions that move data across lanes ----------===//
#include "Checks/Checks.h"
#include "Timing/Stats.h"
#include "Wave.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;

/// Pulls: lane l takes the value of lane addr/4.
void bpermute(Wave &w, const Inst &i) {
  alignas(32) u32 t[2][MaxLanes], out[MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]), *d = w.rows(i.src[1], 1, t[1]);
  for (unsigned l = 0; l < MaxLanes; ++l) {
    unsigned s = ((a[l] + u32(i.imm)) >> 2) & (w.lanes - 1u);
    // RDNA permutes within 32 lanes.
    if (!w.chip->isGfx9() && !w.wave32)
      s = (s & 31) | (l & 32);
    out[l] = w.exec >> s & 1 || i.param ? d[s] : 0;
  }
  uint32_t *to = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) { to[l] = out[l]; });
}
/// Pushes: lane l gives its value to lane addr/4.
void permute(Wave &w, const Inst &i) {
  alignas(32) u32 t[2][MaxLanes], out[MaxLanes] = {};
  const u32 *a = w.rows(i.src[0], 1, t[0]), *d = w.rows(i.src[1], 1, t[1]);
  forLanes(w, [&](unsigned l) {
    unsigned s = ((a[l] + u32(i.imm)) >> 2) & (w.lanes - 1u);
    if (!w.chip->isGfx9() && !w.wave32)
      s = (s & 31) | (l & 32);
    out[s] = d[l];
  });
  uint32_t *to = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) { to[l] = out[l]; });
}
void swizzle(Wave &w, const Inst &i) {
  alignas(32) u32 t[MaxLanes], out[MaxLanes];
  const u32 *d = w.rows(i.src[0], 1, t);
  u32 o = u32(i.imm) & 0xffff;
  for (unsigned l = 0; l < MaxLanes; ++l) {
    unsigned s;
    if (o >= 0xe000) { // FFT: swizzle by reversed bits
      unsigned in = l & 31, mask = o & 31, r = 0;
      for (unsigned b = 0; b < 5; ++b)
        r |= (in >> b & 1) << (4 - b);
      s = (l & ~31u) | r >> llvm::popcount(mask) | (in & mask);
    } else if (o >= 0xc000) { // rotate
      unsigned n = o >> 5 & 31, mask = o & 31, in = l & 31;
      unsigned r = (o >> 10 & 1) ? in - n : in + n;
      s = (l & ~31u) | ((in & mask) | (r & ~mask & 31));
    } else if (o & 0x8000) {
      s = (l & ~3u) | (o >> (2 * (l & 3)) & 3);
    } else {
      unsigned in = l & 31;
      s = (l & ~31u) | (((in & (o & 31)) | (o >> 5 & 31)) ^ (o >> 10 & 31));
    }
    out[l] = w.exec >> s & 1 ? d[s] : 0;
  }
  uint32_t *to = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) { to[l] = out[l]; });
}

/// Does gfx950's transposed reads. 16 lanes hand each other elements, so that
/// each ends up with a column (as AMD's rocRoller checks on the device in its
/// test TransposeLoads). param: element bits.
void readTranspose(Wave &w, const Inst &i) {
  alignas(32) u32 t[MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t);
  unsigned bits = i.param & 0xff, bytes = bits == 6 ? 12 : 8;
  if (!w.execFull)
    return w.fault(i, "a transposed read needs all lanes active");
  if (w.stats)
    countLds(w, i, a, bytes, u32(i.imm));
  uint8_t raw[MaxLanes][16] = {};
  for (unsigned l = 0; l < w.lanes; ++l) {
    uint64_t x = u32(a[l] + u32(i.imm));
    const uint8_t *p = w.lds(i, x, bytes, int(l));
    if (!p)
      return;
    std::memcpy(raw[l], p, bytes);
    if (w.checker)
      w.checker->lds(w, i, l, u32(x), bytes, Access::Read);
  }
  auto element = [&](unsigned lane, unsigned k) {
    u32 v = 0;
    for (unsigned b = 0; b < bits; ++b) {
      unsigned at = k * bits + b;
      v |= u32(raw[lane][at / 8] >> (at % 8) & 1) << b;
    }
    return v;
  };
  unsigned count = bytes * 8 / bits; // elements a lane
  for (unsigned l = 0; l < w.lanes; ++l) {
    u32 out[4] = {};
    unsigned group = l & ~15u, column = l & 15;
    for (unsigned k = 0; k < count; ++k) {
      // The 16 lanes' data is a matrix of `count` rows and 16 columns.
      // Consecutive groups of 16 / count lanes hold one row each.
      unsigned flat = k * 16 + column;
      u32 v = element(group + flat / count, flat % count);
      unsigned at = k * bits;
      out[at / 32] |= v << (at % 32);
      if (at % 32 + bits > 32)
        out[at / 32 + 1] |= v >> (32 - at % 32);
    }
    for (unsigned k = 0; k < bytes / 4; ++k)
      w.v[i.dst[0].index + k][l] = out[k];
  }
}

const OpInfo table[] = {
    {"ds_bpermute_b32", bpermute, "i=ii", 0, CrossLane, Unit::Lds},
    {"ds_bpermute_fi_b32", bpermute, "i=ii", 1, CrossLane, Unit::Lds},
    {"ds_permute_b32", permute, "i=ii", 0, CrossLane, Unit::Lds},
    {"ds_swizzle_b32", swizzle, "i=i", 0, CrossLane, Unit::Lds},
    {"ds_read_b64_tr_b16", readTranspose, "r=i", 16, 0, Unit::Lds},
    {"ds_read_b64_tr_b8", readTranspose, "r=i", 8, 0, Unit::Lds},
    {"ds_read_b64_tr_b4", readTranspose, "r=i", 4, 0, Unit::Lds},
    {"ds_read_b96_tr_b6", readTranspose, "r=i", 6, 0, Unit::Lds},
};

} // namespace

OpTable greta::sim::dsLaneOps() { return table; }
