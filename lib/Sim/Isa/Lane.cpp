//===- Lane.cpp - DPP, SDWA and VOPD around plain instructions ------------===//
//
// A wrapper computes the permuted or selected sources into temporary rows and
// then runs the plain instruction, whose operands the binder pointed there.
//
//===----------------------------------------------------------------------===//
#include "Isa/Lane.h"
#include "Wave.h"
#include "llvm/ADT/StringSwitch.h"

using namespace greta::sim;
using llvm::StringRef;

namespace {
enum DppKind : uint8_t {
  QuadPerm,
  RowShl,
  RowShr,
  RowRor,
  WaveShl,
  WaveRol,
  WaveShr,
  WaveRor,
  RowMirror,
  RowHalfMirror,
  RowBcast15,
  RowBcast31,
  RowShare,
  RowXmask,
  RowNewBcast
};
} // namespace

bool greta::sim::parseDpp(StringRef key, StringRef value, int64_t n, Inst &i) {
  auto list = [](StringRef t, unsigned bits) {
    t.consume_front("[");
    t.consume_back("]");
    uint32_t r = 0;
    for (unsigned k = 0; !t.empty(); ++k) {
      auto [head, tail] = t.split(',');
      unsigned x = 0;
      (void)head.trim().getAsInteger(10, x);
      r |= x << (bits * k);
      t = tail;
    }
    return r;
  };
  if (key == "quad_perm") {
    i.lane[0] = QuadPerm;
    i.lane[1] = uint8_t(list(value, 2));
  } else if (key == "dpp8") {
    // A ninth bit tells dpp8 with all-zero selectors from no dpp8.
    i.dpp8 = list(value, 3) | 1u << 31;
  } else {
    int kind = llvm::StringSwitch<int>(key)
                   .Case("row_shl", RowShl)
                   .Case("row_shr", RowShr)
                   .Case("row_ror", RowRor)
                   .Case("wave_shl", WaveShl)
                   .Case("wave_rol", WaveRol)
                   .Case("wave_shr", WaveShr)
                   .Case("wave_ror", WaveRor)
                   .Case("row_mirror", RowMirror)
                   .Case("row_half_mirror", RowHalfMirror)
                   .Case("row_bcast", n == 31 ? RowBcast31 : RowBcast15)
                   .Case("row_share", RowShare)
                   .Case("row_newbcast", RowNewBcast)
                   .Case("row_xmask", RowXmask)
                   .Default(-1);
    if (kind < 0)
      return false;
    i.lane[0] = uint8_t(kind);
    i.lane[1] = uint8_t(n);
  }
  i.flags |= Dpp;
  return true;
}

/// Returns the lane that lane l reads, or -1 outside the row or wave.
static int sourceLane(unsigned kind, int n, int l, int lanes) {
  int row = l & ~15, in = l & 15;
  switch (kind) {
  case QuadPerm:
    return (l & ~3) | (n >> (2 * (l & 3)) & 3);
  case RowShl:
    return in + n < 16 ? l + n : -1;
  case RowShr:
    return in - n >= 0 ? l - n : -1;
  case RowRor:
    return row | ((in - n) & 15);
  case WaveShl:
    return l + 1 < lanes ? l + 1 : -1;
  case WaveRol:
    return (l + 1) % lanes;
  case WaveShr:
    return l - 1;
  case WaveRor:
    return (l + lanes - 1) % lanes;
  case RowMirror:
    return row | (15 - in);
  case RowHalfMirror:
    return (l & ~7) | (7 - (l & 7));
  case RowBcast15:
    return row ? row - 1 : -1;
  case RowBcast31:
    return l >= 32 ? 31 : -1;
  case RowShare:
  case RowNewBcast:
    return row | n;
  case RowXmask:
    return row | (in ^ n);
  }
  return -1;
}

static void permute(Wave &w, const Inst &i, bool eight) {
  const Operand &o = i.src[0];
  unsigned words = o.words < 2 ? 1 : 2;
  alignas(32) uint32_t splat[2 * MaxLanes];
  const uint32_t *src = w.rows(o, words, splat);
  // The plain instruction may itself write the source: read all lanes first.
  uint32_t (*to)[MaxLanes] = &w.v[row::Temp];
  uint64_t write = w.exec;
  // Broadcasts write only rows that receive something; RDNA does not mask them.
  for (unsigned l = 0; l < w.lanes; ++l) {
    int s = eight ? int((l & ~7u) | (i.dpp8 >> (3 * (l & 7)) & 7))
                  : sourceLane(i.lane[0], i.lane[1], int(l), w.lanes);
    bool valid = s >= 0;
    bool inactive = valid && !(w.exec >> s & 1) && !i.has(FetchInactive);
    if (valid && inactive && !eight)
      valid = false;
    for (unsigned k = 0; k < words; ++k)
      to[k][l] = s >= 0 && !inactive ? src[k * MaxLanes + unsigned(s)] : 0;
    if (eight)
      continue;
    bool masked =
        !(i.lane[2] >> (l / 16) & 1) || !(i.lane[3] >> (l / 4 % 4) & 1);
    if (masked || (!valid && !i.has(BoundCtrl)))
      write &= ~(uint64_t(1) << l);
  }
  uint64_t exec = w.exec;
  bool narrowed = write != exec;
  if (narrowed)
    w.setExec(write);
  i.inner->fn(w, *i.inner);
  if (narrowed && !i.has(WritesExec))
    w.setExec(exec);
}

void greta::sim::runDpp(Wave &w, const Inst &i) { permute(w, i, false); }
void greta::sim::runDpp8(Wave &w, const Inst &i) { permute(w, i, true); }

static uint32_t select(uint32_t x, unsigned sel, bool sext) {
  unsigned bits = sel < 4 ? 8 : 16, shift = sel < 4 ? 8 * sel : 16 * (sel - 4);
  uint32_t r = x >> shift & ((1u << bits) - 1);
  return sext && (r >> (bits - 1) & 1) ? r | ~((1u << bits) - 1) : r;
}

void greta::sim::runSdwa(Wave &w, const Inst &i) {
  alignas(32) uint32_t splat[2 * MaxLanes];
  for (unsigned k = 0; k < 2 && k < i.numSrc; ++k) {
    unsigned sel = i.lane[2 + k] & 7;
    if (sel == 6)
      continue;
    const uint32_t *src = w.rows(i.src[k], 1, splat);
    uint32_t *to = w.v[row::Temp + 2 * k];
    for (unsigned l = 0; l < w.lanes; ++l)
      to[l] = select(src[l], sel, i.lane[2 + k] & 0x80);
  }
  i.inner->fn(w, *i.inner);
  unsigned sel = i.lane[0] & 7;
  if (!i.dst[0].isVgpr() || sel == 6)
    return;
  const uint32_t *from = w.v[row::Temp + 4];
  uint32_t *to = w.v[i.dst[0].index];
  unsigned bits = sel < 4 ? 8 : 16, shift = sel < 4 ? 8 * sel : 16 * (sel - 4);
  uint32_t mask = ((1u << bits) - 1) << shift;
  forLanes(w, [&](unsigned l) {
    uint32_t x = from[l] << shift & mask;
    if (i.lane[1] == 2)
      x |= to[l] & ~mask;
    else if (i.lane[1] == 1 && (from[l] >> (bits - 1) & 1))
      x |= ~(mask | ((1u << shift) - 1));
    to[l] = x;
  });
}

void greta::sim::runVopd(Wave &w, const Inst &i) {
  const Inst &x = *i.inner, &y = *x.inner;
  x.fn(w, x);
  y.fn(w, y);
  const uint32_t *from = w.v[x.dst[0].index];
  uint32_t *to = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) { to[l] = from[l]; });
}

uint8_t greta::sim::parseFormat(StringRef t, int64_t n) {
  return llvm::StringSwitch<uint8_t>(t)
      .Case("MATRIX_FMT_FP8", 0)
      .Case("MATRIX_FMT_BF8", 1)
      .Case("MATRIX_FMT_FP6", 2)
      .Case("MATRIX_FMT_BF6", 3)
      .Case("MATRIX_FMT_FP4", 4)
      .Default(uint8_t(n));
}
