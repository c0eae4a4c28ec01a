//===- Mfma.cpp - matrix instructions of gfx9 -----------------------------===//
//
// D = A * B + C over `blocks` independent M x N x K products. Lane layouts
// (AMD's matrix instruction calculator):
//   A: row = lane % M, block = lane / M % blocks, k = group * perLane + element
//   B: column = lane % N, likewise
//   D: 32x32: row = 8 * (r / 4) + 4 * (lane / 32) + r % 4, column = lane % 32
//      16x16: row = 4 * (lane / 16) + r, column = lane % 16
//      4x4:   row = r, column = lane % 4, block = lane / 4
//      f64:   16x16: row = 4 * r + lane / 16;  4x4: row = lane / 16
// EXEC is ignored. cbsz and abid broadcast one block's A, blgp permutes B's
// lanes.
//
//===----------------------------------------------------------------------===//
#include "Matrix.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;

struct Shape {
  uint8_t m, n, k, blocks;
  Format a, b;
};

/// The lane that provides a block's A after cbsz/abid.
unsigned sourceBlock(const Inst &i, unsigned block) {
  unsigned group = (1u << i.cbsz) - 1;
  return i.cbsz ? (block & ~group) | (i.abid & group) : block;
}
template <class T> void permuteB(const Inst &i, T *b, unsigned elements) {
  if (!i.blgp)
    return;
  for (unsigned e = 0; e < elements; ++e, b += MaxLanes) {
    T old[MaxLanes];
    std::memcpy(old, b, sizeof(old));
    for (unsigned l = 0; l < MaxLanes; ++l) {
      unsigned s = l;
      if (i.blgp == 1)
        s = l & 31;
      else if (i.blgp == 2)
        s = (l & 31) | 32;
      else if (i.blgp == 3)
        s = (l + 16) & 63;
      else
        s = (l & 15) | unsigned(i.blgp - 4) * 16;
      b[l] = old[s];
    }
  }
}

/// Elements come as [element][lane]; a lane's elements are consecutive k of its
/// group, so element e of group g is k = g * perLane + e. Reordering the k of A
/// and B alike changes only the order of summation: k is kept in order here.
template <class T> struct Operands {
  alignas(32) T a[32 * MaxLanes];
  alignas(32) T b[32 * MaxLanes];
};

template <class T, unsigned N, unsigned Rows>
void registers(Wave &w, const Inst &i, const Shape &s, const T *a, const T *b,
               unsigned perLane) {
  // Single block: lane = group * N + column, so the elements of group g for k
  // start at [e][g * N].
  unsigned groups = MaxLanes / (s.m * s.blocks);
  unsigned regs = s.m * s.n * s.blocks / MaxLanes;
  unsigned perBlock = regs / s.blocks;
  for (unsigned r = 0; r < regs; ++r) {
    alignas(32) T acc[MaxLanes];
    loadAcc(w, i.src[2], r, reinterpret_cast<u32 *>(acc));
    unsigned block = r / perBlock, in = r % perBlock;
    unsigned row[Rows];
    for (unsigned h = 0; h < Rows; ++h)
      row[h] = N == 32 ? 8 * (in / 4) + 4 * h + in % 4 : 4 * h + in;
    for (unsigned g = 0; g < groups; ++g) {
      unsigned laneA = (g * s.blocks + sourceBlock(i, block)) * s.m;
      unsigned laneB = (g * s.blocks + block) * s.n;
      accumulate<T, N, Rows>(acc, a + laneA, MaxLanes, b + laneB, MaxLanes,
                             perLane, row);
    }
    std::memcpy(w.v[i.dst[0].index + r], acc, sizeof(acc));
  }
}

/// 4x4, 16 blocks: lane = block * 4 + column.
template <class T>
void small(Wave &w, const Inst &i, const T *a, const T *b, unsigned perLane) {
  for (unsigned r = 0; r < 4; ++r) {
    T acc[MaxLanes];
    loadAcc(w, i.src[2], r, reinterpret_cast<u32 *>(acc));
    for (unsigned l = 0; l < MaxLanes; ++l)
      for (unsigned e = 0; e < perLane; ++e) {
        T x = a[e * MaxLanes + sourceBlock(i, l / 4) * 4 + r],
          y = b[e * MaxLanes + l];
        if constexpr (std::is_same_v<T, float>)
          acc[l] = std::fma(x, y, acc[l]);
        else
          acc[l] = T(u32(acc[l]) + u32(x) * u32(y));
      }
    std::memcpy(w.v[i.dst[0].index + r], acc, sizeof(acc));
  }
}

template <class T> void run(Wave &w, const Inst &i, const Shape &s) {
  unsigned perLane = unsigned(s.m) * s.k * s.blocks / MaxLanes;
  Operands<T> o;
  unpack(w, i.src[0], s.a, perLane, o.a);
  unpack(w, i.src[1], s.b, perLane, o.b);
  permuteB(i, o.b, perLane);
  if (s.m == 32)
    registers<T, 32, 2>(w, i, s, o.a, o.b, perLane);
  else if (s.m == 16)
    registers<T, 16, 4>(w, i, s, o.a, o.b, perLane);
  else
    small<T>(w, i, o.a, o.b, perLane);
}

double f64(const u32 *p, unsigned l) {
  return llvm::bit_cast<double>(uint64_t(p[MaxLanes + l]) << 32 | p[l]);
}
/// blgp is the negation of A, B and C.
void runF64(Wave &w, const Inst &i, const Shape &s) {
  alignas(32) u32 ta[2 * MaxLanes], tb[2 * MaxLanes];
  const u32 *a = w.rows(i.src[0], 2, ta), *b = w.rows(i.src[1], 2, tb);
  unsigned regs = unsigned(s.m) * s.n * s.blocks / MaxLanes;
  double out[4][MaxLanes];
  FpScope scope(w, true);
  double signA = i.blgp & 1 ? -1 : 1, signB = i.blgp & 2 ? -1 : 1,
         signC = i.blgp & 4 ? -1 : 1;
  for (unsigned r = 0; r < regs; ++r) {
    alignas(32) u32 tc[2 * MaxLanes];
    Operand co = i.src[2];
    if (co.isVgpr())
      co.index = uint16_t(co.index + 2 * r);
    const u32 *c = w.rows(co, 2, tc);
    for (unsigned l = 0; l < MaxLanes; ++l) {
      unsigned column = l % s.n, block = l / s.n % s.blocks;
      unsigned row = s.m == 16 ? 4 * r + l / 16 : l / 16;
      double acc = signC * f64(c, l);
      for (unsigned k = 0; k < s.k; ++k)
        acc = std::fma(signA * f64(a, (k * s.blocks + block) * s.m + row),
                       signB * f64(b, (k * s.blocks + block) * s.n + column),
                       acc);
      out[r][l] = acc;
    }
  }
  for (unsigned r = 0; r < regs; ++r)
    for (unsigned l = 0; l < MaxLanes; ++l) {
      uint64_t x = llvm::bit_cast<uint64_t>(out[r][l]);
      w.v[i.dst[0].index + 2 * r][l] = u32(x);
      w.v[i.dst[0].index + 2 * r + 1][l] = u32(x >> 32);
    }
}

/// gfx950's f8f6f4: cbsz and blgp are the formats. 32 elements a lane; 8-bit
/// ones are two runs of 16 half of K apart (AMD's composable-kernel register
/// maps). Scales: one exponent byte for each row and 32 elements of K.
template <bool Scaled> void runMixed(Wave &w, const Inst &i, const Shape &s) {
  static const Format formats[] = {Format::FP8, Format::BF8, Format::FP6,
                                   Format::BF6, Format::FP4};
  if (i.cbsz > 4 || i.blgp > 4)
    return w.fault(i, "unknown matrix format");
  constexpr unsigned perLane = 32;
  alignas(32) float part[perLane * MaxLanes], a[128 * 32], b[128 * 32];
  for (unsigned which = 0; which < 2; ++which) {
    Format f = formats[which ? i.blgp : i.cbsz];
    unpack(w, i.src[which], f, perLane, part);
    float *out = which ? b : a;
    alignas(32) u32 t[MaxLanes];
    const u32 *scales = Scaled ? w.rows(i.src[3 + which], 1, t) : nullptr;
    unsigned byte = (i.opSel >> which & 1) | (i.opSelHi >> which & 1) << 1;
    for (unsigned e = 0; e < perLane; ++e)
      for (unsigned l = 0; l < MaxLanes; ++l) {
        unsigned g = l / s.m, row = l % s.m;
        unsigned k =
            bitsOf(f) == 8 ? 16 * g + e % 16 + e / 16 * (s.k / 2) : 32 * g + e;
        float x = part[e * MaxLanes + l];
        if (Scaled) {
          u32 exponent = scales[k / 32 * s.m + row] >> (8 * byte) & 0xff;
          x = exponent == 255 ? NAN : std::ldexp(x, int(exponent) - 127);
        }
        out[k * s.m + row] = x;
      }
  }
  unsigned regs = unsigned(s.m) * s.n / MaxLanes;
  for (unsigned r = 0; r < regs; ++r) {
    alignas(32) float acc[MaxLanes];
    loadAcc(w, i.src[2], r, reinterpret_cast<u32 *>(acc));
    unsigned row[4];
    for (unsigned h = 0; h < 4; ++h)
      row[h] = s.m == 32 ? 8 * (r / 4) + 4 * h + r % 4 : 4 * h + r;
    if (s.m == 32)
      accumulate<float, 32, 2>(acc, a, 32, b, 32, s.k, row);
    else
      accumulate<float, 16, 4>(acc, a, 16, b, 16, s.k, row);
    std::memcpy(w.v[i.dst[0].index + r], acc, sizeof(acc));
  }
}

enum : u32 {
  F32_32x1,
  F32_16x1,
  F32_4x1,
  F32_32x2,
  F32_16x4,
  F16_32x4,
  F16_16x4,
  F16_4x4,
  F16_32x8,
  F16_16x16,
  F16_16x32,
  F16_32x16,
  BF_32x2,
  BF_16x2,
  BF_4x2,
  BF_32x4s,
  BF_16x8,
  BF_32x4,
  BF_16x4,
  BF_4x4,
  BF_32x8,
  BF_16x16,
  BF_16x32,
  BF_32x16,
  I8_32x4,
  I8_16x4,
  I8_4x4,
  I8_32x8,
  I8_16x16,
  I8_32x16,
  I8_16x32,
  I8_32x32,
  I8_16x64,
  XF_16x8,
  XF_32x4,
  D_16x4,
  D_4x4,
  FP_16x32_ff,
  FP_16x32_fb,
  FP_16x32_bf,
  FP_16x32_bb,
  FP_32x16_ff,
  FP_32x16_fb,
  FP_32x16_bf,
  FP_32x16_bb,
  MX_16x128,
  MX_32x64
};
constexpr Format F32 = Format::F32, F16 = Format::F16, BF = Format::BF16,
                 I8 = Format::I8, FP8 = Format::FP8, BF8 = Format::BF8;
const Shape shapes[] = {
    {32, 32, 1, 2, F32, F32},
    {16, 16, 1, 4, F32, F32},
    {4, 4, 1, 16, F32, F32},
    {32, 32, 2, 1, F32, F32},
    {16, 16, 4, 1, F32, F32},
    {32, 32, 4, 2, F16, F16},
    {16, 16, 4, 4, F16, F16},
    {4, 4, 4, 16, F16, F16},
    {32, 32, 8, 1, F16, F16},
    {16, 16, 16, 1, F16, F16},
    {16, 16, 32, 1, F16, F16},
    {32, 32, 16, 1, F16, F16},
    {32, 32, 2, 2, BF, BF},
    {16, 16, 2, 4, BF, BF},
    {4, 4, 2, 16, BF, BF},
    {32, 32, 4, 1, BF, BF},
    {16, 16, 8, 1, BF, BF},
    {32, 32, 4, 2, BF, BF},
    {16, 16, 4, 4, BF, BF},
    {4, 4, 4, 16, BF, BF},
    {32, 32, 8, 1, BF, BF},
    {16, 16, 16, 1, BF, BF},
    {16, 16, 32, 1, BF, BF},
    {32, 32, 16, 1, BF, BF},
    {32, 32, 4, 2, I8, I8},
    {16, 16, 4, 4, I8, I8},
    {4, 4, 4, 16, I8, I8},
    {32, 32, 8, 1, I8, I8},
    {16, 16, 16, 1, I8, I8},
    {32, 32, 16, 1, I8, I8},
    {16, 16, 32, 1, I8, I8},
    {32, 32, 32, 1, I8, I8},
    {16, 16, 64, 1, I8, I8},
    {16, 16, 8, 1, Format::XF32, Format::XF32},
    {32, 32, 4, 1, Format::XF32, Format::XF32},
    {16, 16, 4, 1, Format::F64, Format::F64},
    {4, 4, 4, 4, Format::F64, Format::F64},
    {16, 16, 32, 1, FP8, FP8},
    {16, 16, 32, 1, FP8, BF8},
    {16, 16, 32, 1, BF8, FP8},
    {16, 16, 32, 1, BF8, BF8},
    {32, 32, 16, 1, FP8, FP8},
    {32, 32, 16, 1, FP8, BF8},
    {32, 32, 16, 1, BF8, FP8},
    {32, 32, 16, 1, BF8, BF8},
    {16, 16, 128, 1, FP8, FP8},
    {32, 32, 64, 1, FP8, FP8},
};

template <class T> void mfma(Wave &w, const Inst &i) {
  run<T>(w, i, shapes[i.param]);
}
void mfma64(Wave &w, const Inst &i) { runF64(w, i, shapes[i.param]); }
template <bool Scaled> void mixed(Wave &w, const Inst &i) {
  runMixed<Scaled>(w, i, shapes[i.param]);
}

#define M(name, T, types, shape)                                               \
  {"v_mfma_" name, mfma<T>, types, shape, CrossLane | Pk16, Unit::Matrix}
#define F(name, shape) M("f32_" name, float, "r=rrf", shape)
#define I(name, shape) M("i32_" name, int32_t, "r=rri", shape)

const OpInfo table[] = {
    F("32x32x1f32", F32_32x1),
    F("32x32x1_2b_f32", F32_32x1),
    F("16x16x1f32", F32_16x1),
    F("16x16x1_4b_f32", F32_16x1),
    F("4x4x1f32", F32_4x1),
    F("4x4x1_16b_f32", F32_4x1),
    F("32x32x2f32", F32_32x2),
    F("32x32x2_f32", F32_32x2),
    F("16x16x4f32", F32_16x4),
    F("16x16x4_f32", F32_16x4),
    F("32x32x4f16", F16_32x4),
    F("32x32x4_2b_f16", F16_32x4),
    F("16x16x4f16", F16_16x4),
    F("16x16x4_4b_f16", F16_16x4),
    F("4x4x4f16", F16_4x4),
    F("4x4x4_16b_f16", F16_4x4),
    F("32x32x8f16", F16_32x8),
    F("32x32x8_f16", F16_32x8),
    F("16x16x16f16", F16_16x16),
    F("16x16x16_f16", F16_16x16),
    F("16x16x32_f16", F16_16x32),
    F("32x32x16_f16", F16_32x16),
    F("32x32x2bf16", BF_32x2),
    F("16x16x2bf16", BF_16x2),
    F("4x4x2bf16", BF_4x2),
    F("32x32x4bf16", BF_32x4s),
    F("16x16x8bf16", BF_16x8),
    F("32x32x4bf16_1k", BF_32x4),
    F("32x32x4_2b_bf16", BF_32x4),
    F("16x16x4bf16_1k", BF_16x4),
    F("16x16x4_4b_bf16", BF_16x4),
    F("4x4x4bf16_1k", BF_4x4),
    F("4x4x4_16b_bf16", BF_4x4),
    F("32x32x8bf16_1k", BF_32x8),
    F("32x32x8_bf16", BF_32x8),
    F("16x16x16bf16_1k", BF_16x16),
    F("16x16x16_bf16", BF_16x16),
    F("16x16x32_bf16", BF_16x32),
    F("32x32x16_bf16", BF_32x16),
    I("32x32x4i8", I8_32x4),
    I("32x32x4_2b_i8", I8_32x4),
    I("16x16x4i8", I8_16x4),
    I("16x16x4_4b_i8", I8_16x4),
    I("4x4x4i8", I8_4x4),
    I("4x4x4_16b_i8", I8_4x4),
    I("32x32x8i8", I8_32x8),
    I("16x16x16i8", I8_16x16),
    I("32x32x16_i8", I8_32x16),
    I("16x16x32_i8", I8_16x32),
    I("32x32x32_i8", I8_32x32),
    I("16x16x64_i8", I8_16x64),
    F("16x16x8_xf32", XF_16x8),
    F("32x32x4_xf32", XF_32x4),
    F("16x16x32_fp8_fp8", FP_16x32_ff),
    F("16x16x32_fp8_bf8", FP_16x32_fb),
    F("16x16x32_bf8_fp8", FP_16x32_bf),
    F("16x16x32_bf8_bf8", FP_16x32_bb),
    F("32x32x16_fp8_fp8", FP_32x16_ff),
    F("32x32x16_fp8_bf8", FP_32x16_fb),
    F("32x32x16_bf8_fp8", FP_32x16_bf),
    F("32x32x16_bf8_bf8", FP_32x16_bb),
    {"v_mfma_f64_16x16x4f64", mfma64, "r=rrD", D_16x4, CrossLane | Pk16,
     Unit::Matrix},
    {"v_mfma_f64_16x16x4_f64", mfma64, "r=rrD", D_16x4, CrossLane | Pk16,
     Unit::Matrix},
    {"v_mfma_f64_4x4x4f64", mfma64, "r=rrD", D_4x4, CrossLane | Pk16,
     Unit::Matrix},
    {"v_mfma_f64_4x4x4_4b_f64", mfma64, "r=rrD", D_4x4, CrossLane | Pk16,
     Unit::Matrix},
    {"v_mfma_f32_16x16x128_f8f6f4", mixed<false>, "r=rrf", MX_16x128,
     CrossLane | Pk16, Unit::Matrix},
    {"v_mfma_f32_32x32x64_f8f6f4", mixed<false>, "r=rrf", MX_32x64,
     CrossLane | Pk16, Unit::Matrix},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", mixed<true>, "r=rrfii", MX_16x128,
     CrossLane | Pk16, Unit::Matrix},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", mixed<true>, "r=rrfii", MX_32x64,
     CrossLane | Pk16, Unit::Matrix},
};

} // namespace

OpTable greta::sim::mfmaOps() { return table; }
