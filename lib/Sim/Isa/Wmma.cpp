//===- Wmma.cpp - matrix instructions of gfx11 and gfx12 ------------------===//
//
// All are 16x16xK. Layouts (AMD RDNA3 and RDNA4 ISA, matrix instruction
// calculator); "group" is lane/16:
//
//   gfx11  A(i, k), B(k, j): lanes i, i+16, ... hold all of k, element k
//          D(i, j): wave32 lane j + 16*(i%2), register i/2
//                   wave64 lane j + 16*(i%4), register i/4
//          16-bit D: one half of the register, op_sel[2] says which; the other
//          half stays
//   gfx12  A, B: the groups share k. Any numbering that A and B share gives the
//          same result; here KL = K/groups and k = KL*group + e. 4-bit K=16 in
//          wave64 uses two groups only
//          D(i, j): wave32 lane j + 16*(i/8), register i%8
//                   wave64 lane j + 16*(i/8) + 32*(i/4%2), register i%4
//          16-bit D: two registers of the list above packed into one
//
// neg_lo[k] negates the even elements of A or B (f16, bf16), neg_hi[k] the odd
// ones; for integers neg_lo[k] means signed. neg_lo[2] negates C, neg_hi[2]
// takes its absolute value first. clamp saturates i32.
//
// SWMMAC (gfx12): A is 4:2 sparse as in Mfma.cpp; index_key selects the bits of
// the index register when one lane needs fewer than 32. iu4 K=32 in wave64
// keeps A and its indices in the first two groups, and B there has
// k = 16*(group%2) + 8*(group/2) + e.
//
//===----------------------------------------------------------------------===//
#include "Isa/Matrix.h"

using namespace greta::sim;
using namespace greta::sim::matrix;

namespace {

enum class Acc : uint8_t { F32, I32, F16, BF16 };

struct Shape {
  uint8_t k;
  Elem a, b;
  Acc acc = Acc::F32;
  bool sparse = false;
};

const Shape &shapeOf(const Inst &i);

bool isHalf(Acc a) { return a == Acc::F16 || a == Acc::BF16; }

/// Returns row i of D or C in units of one f32 register: register * 64 + lane.
uint16_t rowOffset(const Wave &w, unsigned i) {
  unsigned reg, lane;
  if (w.chip->isGfx12()) {
    reg = w.wave32 ? i % 8 : i % 4;
    lane = 16 * (i / 8) + (w.wave32 ? 0 : 32 * (i / 4 % 2));
  } else {
    unsigned groups = w.wave32 ? 2 : 4;
    reg = i / groups;
    lane = 16 * (i % groups);
  }
  return uint16_t(reg * MaxLanes + lane);
}

/// Converts the half-precision accumulator to f32 rows and back.
struct HalfRows {
  bool bf16, packed;
  unsigned half; ///< which half when not packed
  HalfRows(const Wave &w, const Inst &i, Acc acc)
      : bf16(acc == Acc::BF16), packed(w.chip->isGfx12()),
        half(i.opSel >> 2 & 1) {}
  unsigned registerOf(unsigned r) const { return packed ? r / 2 : r; }
  unsigned shiftOf(unsigned r) const { return 16 * (packed ? r % 2 : half); }

  void widen(const Wave &w, const Operand &c, unsigned regs, Row *out) const {
    for (unsigned r = 0; r < regs; ++r)
      for (unsigned l = 0; l < w.lanes; ++l) {
        uint16_t h =
            c.isVgpr() ? uint16_t(w.v[c.index + registerOf(r)][l] >> shiftOf(r))
                       : uint16_t(c.value);
        out[r][l] =
            llvm::bit_cast<uint32_t>(bf16 ? bf16ToFloat(h) : halfToFloat(h));
      }
  }
  void narrow(Wave &w, const Operand &d, unsigned regs, const Row *in) const {
    for (unsigned r = 0; r < regs; ++r)
      for (unsigned l = 0; l < w.lanes; ++l) {
        float f = llvm::bit_cast<float>(in[r][l]);
        uint32_t h = bf16 ? floatToBf16(f) : floatToHalf(f);
        uint32_t &to = w.v[d.index + registerOf(r)][l];
        to = (to & ~(0xffffu << shiftOf(r))) | h << shiftOf(r);
      }
  }
};

void modifyC(const Inst &i, Row *rows, unsigned regs) {
  for (unsigned r = 0; r < regs; ++r)
    for (uint32_t &x : rows[r]) {
      if (i.negHi & 4)
        x &= 0x7fffffff;
      if (i.negLo & 4)
        x ^= 0x80000000;
    }
}

struct Operands {
  alignas(32) Plane a[16], b[32];
};

/// Widens both operands; a lane has `itemsA` and `itemsB` elements.
void decodeBoth(const Wave &w, const Inst &i, const Shape &s, unsigned itemsA,
                unsigned itemsB, Operands &o) {
  auto one = [&](Elem e, unsigned k, unsigned items, Plane *out) {
    DecodeOptions d;
    bool low = i.negLo >> k & 1;
    if (e == Elem::I8 || e == Elem::I4) {
      if (!low)
        e = e == Elem::I8 ? Elem::U8 : Elem::U4;
    } else if (bitsOf(e) == 16) {
      d.negEven = low;
      d.negOdd = i.negHi >> k & 1;
    }
    decode(e, &w.v[i.src[k].index], items, d, out);
  };
  one(s.a, 0, itemsA, o.a);
  one(s.b, 1, itemsB, o.b);
}

/// Runs `multiply(c, cOff, d, dOff)` on accumulator rows in f32 or i32 form.
template <class Fn>
void withAccumulator(Wave &w, const Inst &i, const Operand &c, Acc acc,
                     Fn multiply) {
  unsigned regs = w.wave32 ? 8 : 4;
  uint16_t off[16];
  for (unsigned r = 0; r < 16; ++r)
    off[r] = rowOffset(w, r);
  const Operand &d = i.dst[0];
  bool modified = acc != Acc::I32 && ((i.negLo | i.negHi) & 4);
  alignas(32) Row rows[8];
  if (isHalf(acc)) {
    HalfRows h(w, i, acc);
    h.widen(w, c, regs, rows);
    if (modified)
      modifyC(i, rows, regs);
    multiply(rows[0], off, rows[0], off);
    h.narrow(w, d, regs, rows);
    return;
  }
  Accumulator in(w, c, d, regs, rows);
  const uint32_t *base = in.base;
  bool constant = in.constant;
  if (modified) {
    for (unsigned r = 0; r < regs; ++r)
      for (unsigned l = 0; l < MaxLanes; ++l)
        rows[r][l] = base[constant ? 0 : r * MaxLanes + l];
    modifyC(i, rows, regs);
    base = rows[0];
    constant = false;
  }
  multiply(base, constant ? zeroOffsets : off, w.v[d.index], off);
}

void run(const Product &p, Acc acc, bool saturate) {
  if (acc == Acc::I32)
    multiplyI32(p, saturate);
  else
    multiplyF32(p);
}

/// Checks gfx11's rule that every group of 16 lanes holds the same A and B.
bool replicated(const Wave &w, const Operand &o) {
  for (unsigned r = 0; r < o.words; ++r)
    for (unsigned l = 16; l < w.lanes; ++l)
      if (w.v[o.index + r][l] != w.v[o.index + r][l % 16])
        return false;
  return true;
}

void wmma(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  bool gfx12 = w.chip->isGfx12();
  if (!gfx12 && w.checker)
    for (unsigned k = 0; k < 2; ++k)
      if (!replicated(w, i.src[k]))
        return w.fault(i,
                       llvm::Twine("lanes 16 and up do not repeat lanes 0 to "
                                   "15 of the ") +
                           (k ? "B" : "A") + " operand");
  unsigned groups = w.lanes / 16;
  // Registers hold at least eight 4-bit elements.
  if (bitsOf(s.a) == 4 && s.k == 16)
    groups = 2;
  if (!gfx12)
    groups = 1;
  unsigned items = s.k / groups;
  Operands o;
  decodeBoth(w, i, s, items, items, o);
  uint16_t off[32];
  for (unsigned k = 0; k < s.k; ++k)
    off[k] = uint16_t(k % items * MaxLanes + 16 * (k / items));
  MatrixScope scope(w, false);
  withAccumulator(w, i, i.src[2], s.acc,
                  [&](const uint32_t *c, const uint16_t *cOff, uint32_t *d,
                      const uint16_t *dOff) {
                    Product p{16,  16,   s.k,  o.a[0], o.b[0], off,
                              off, cOff, dOff, c,      d};
                    run(p, s.acc, i.has(Clamp));
                  });
}

void swmmac(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  unsigned groups = w.lanes / 16, items = s.k / groups;
  // A of iu4 K=32 fills whole registers of only two groups.
  bool narrowA = bitsOf(s.a) == 4 && s.k == 32 && groups == 4;
  unsigned groupsA = narrowA ? 2 : groups, kept = s.k / groupsA / 2;
  Operands o;
  decodeBoth(w, i, s, kept, items, o);
  unsigned bits = 2 * kept, set = i.abid % (32 / bits);
  const uint32_t *index = w.v[i.src[2].index];
  MatrixScope scope(w, false);
  withAccumulator(w, i, i.dst[0], s.acc,
                  [&](const uint32_t *c, const uint16_t *cOff, uint32_t *d,
                      const uint16_t *dOff) {
                    for (unsigned r = 0; r < 16; ++r) {
                      uint16_t aOff[32], bOff[32];
                      unsigned n = 0;
                      for (unsigned g = 0; g < groupsA; ++g)
                        for (unsigned e = 0; e < kept; ++e, ++n) {
                          unsigned lane = r + 16 * g;
                          unsigned k =
                              e / 2 * 4 +
                              (index[lane] >> (set * bits + 2 * e) & 3);
                          unsigned gb = narrowA ? g + 2 * (k / items) : g;
                          aOff[n] = uint16_t(e * MaxLanes + lane);
                          bOff[n] = uint16_t(k % items * MaxLanes + 16 * gb);
                        }
                      Product p{1,    16,       n,        o.a[0], o.b[0], aOff,
                                bOff, cOff + r, dOff + r, c,      d};
                      run(p, s.acc, i.has(Clamp));
                    }
                  });
}

struct Entry {
  const char *name;
  Shape shape;
};
constexpr Elem H = Elem::F16, Y = Elem::BF16, F8 = Elem::FP8, B8 = Elem::BF8,
               I8 = Elem::I8, I4 = Elem::I4;

const Entry entries[] = {
    {"v_wmma_f32_16x16x16_f16", {16, H, H, Acc::F32}},
    {"v_wmma_f32_16x16x16_bf16", {16, Y, Y, Acc::F32}},
    {"v_wmma_f16_16x16x16_f16", {16, H, H, Acc::F16}},
    {"v_wmma_bf16_16x16x16_bf16", {16, Y, Y, Acc::BF16}},
    {"v_wmma_i32_16x16x16_iu8", {16, I8, I8, Acc::I32}},
    {"v_wmma_i32_16x16x16_iu4", {16, I4, I4, Acc::I32}},
    {"v_wmma_i32_16x16x32_iu4", {32, I4, I4, Acc::I32}},
    {"v_wmma_f32_16x16x16_fp8_fp8", {16, F8, F8, Acc::F32}},
    {"v_wmma_f32_16x16x16_fp8_bf8", {16, F8, B8, Acc::F32}},
    {"v_wmma_f32_16x16x16_bf8_fp8", {16, B8, F8, Acc::F32}},
    {"v_wmma_f32_16x16x16_bf8_bf8", {16, B8, B8, Acc::F32}},
    {"v_swmmac_f32_16x16x32_f16", {32, H, H, Acc::F32, true}},
    {"v_swmmac_f32_16x16x32_bf16", {32, Y, Y, Acc::F32, true}},
    {"v_swmmac_f16_16x16x32_f16", {32, H, H, Acc::F16, true}},
    {"v_swmmac_bf16_16x16x32_bf16", {32, Y, Y, Acc::BF16, true}},
    {"v_swmmac_i32_16x16x32_iu8", {32, I8, I8, Acc::I32, true}},
    {"v_swmmac_i32_16x16x32_iu4", {32, I4, I4, Acc::I32, true}},
    {"v_swmmac_i32_16x16x64_iu4", {64, I4, I4, Acc::I32, true}},
    {"v_swmmac_f32_16x16x32_fp8_fp8", {32, F8, F8, Acc::F32, true}},
    {"v_swmmac_f32_16x16x32_fp8_bf8", {32, F8, B8, Acc::F32, true}},
    {"v_swmmac_f32_16x16x32_bf8_fp8", {32, B8, F8, Acc::F32, true}},
    {"v_swmmac_f32_16x16x32_bf8_bf8", {32, B8, B8, Acc::F32, true}},
};

const Shape &shapeOf(const Inst &i) { return entries[i.param].shape; }

const char *typesOf(const Shape &s) {
  // The first pair is dense; the second is sparse, with a tied accumulator.
  static const char *const t[4][2] = {{"f=rrf", "f=rrif"},
                                      {"i=rri", "i=rrii"},
                                      {"h=rrh", "h=rrih"},
                                      {"y=rry", "y=rriy"}};
  return t[unsigned(s.acc)][s.sparse];
}

} // namespace

OpTable greta::sim::wmmaOps() {
  static const std::vector<OpInfo> table = [] {
    std::vector<OpInfo> t;
    for (const Entry &e : entries)
      // op_sel and neg apply to the whole operand: Pk16 keeps the binder from
      // reading them as halves of scalar sources.
      t.push_back({e.name, e.shape.sparse ? swmmac : wmma, typesOf(e.shape),
                   unsigned(t.size()),
                   CrossLane | Pk16 | (e.shape.sparse ? Tied : 0u),
                   Unit::Matrix});
    return t;
  }();
  return table;
}
