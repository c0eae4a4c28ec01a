//===- Mfma.cpp - matrix instructions of gfx90a, gfx942 and gfx950 --------===//
//
// One row of the table per instruction: shape, blocks and element types. The
// lane layout follows from these (AMD CDNA3 ISA, "Dense matrix layout"; AMD's
// matrix instruction calculator gives the same):
//
//   G = 64 / (M * blocks) groups of lanes, each with KL = K / G elements of k
//   A(i, k) of block b: lane i + M*(b + blocks*g), element e,  k = KL*g + e
//   B(k, j) of block b: lane j + N*(b + blocks*g), element e
//   D(i, j) of block b, 4 rows to a register group:
//     BI = blocks in one register group = ceil(64 / (N*M/4)), MI = 64/BI/N
//     lane     j + N*((i/4) % MI + MI*(b % BI))
//     register i%4 + 4*(i/(4*MI) + M/(4*MI)*(b/BI))
//
//   32x32x8 f16: A lane = i + 32*(k/4), D row = 8*(r/4) + 4*(lane/32) + r%4
//
// Exceptions.
//   f64     register groups hold one row; 4x4x4 has D lane = j + 4*b + 16*i
//   f8f6f4  8-bit operands have k = 16*g + e%16 + 16*G*(e/16), as probed on
//           gfx950 by composable_kernel's scale mapping test; 6 and 4-bit ones
//           hold 32 consecutive k. The scale of (i, k) is in lane
//           i + M*(k/32), likewise probed
//
// Sparse (SMFMAC): A holds two of each four consecutive k; two index bits each
// tell which. Elements e = 4q..4q+3 of B in a lane belong to A's elements 2q,
// 2q+1 of the same lane group. A lane needs 8, 16 or 32 index bits; where there
// are more in the register, ABID chooses when CBSZ is 0.
//
//===----------------------------------------------------------------------===//
#include "Checks/ChecksState.h"
#include "Isa/Matrix.h"
#include <cmath>

using namespace greta::sim;
using namespace greta::sim::matrix;

namespace {

enum class Acc : uint8_t { F32, I32, F64 };

struct Shape {
  uint8_t m, k, blocks;
  Elem a, b;
  Acc acc = Acc::F32;
  bool sparse = false, mixed = false, scaled = false;
};

struct Layout {
  uint16_t k[2][128]; ///< of A and B: plane * 64 + lane of row or column 0
  uint16_t d[64];     ///< row * 64 + lane of column 0
};

/// Says which plane and lane group hold element k of a lane group's matrix row.
struct Place {
  unsigned plane, group;
};
Place placeOf(unsigned k, unsigned groups, unsigned perGroup, bool halves) {
  if (halves) {
    unsigned chunk = k / 16;
    return {chunk / groups * 16 + k % 16, chunk % groups};
  }
  return {k % perGroup, k / perGroup};
}

Layout makeLayout(const Shape &s, unsigned aBlock, unsigned block, Elem a,
                  Elem b) {
  Layout o;
  unsigned m = s.m, groups = 64 / (m * s.blocks), per = s.k / groups;
  for (unsigned k = 0; k < s.k; ++k) {
    Place pa = placeOf(k, groups, per, s.mixed && bitsOf(a) == 8);
    Place pb = placeOf(k, groups, per, s.mixed && bitsOf(b) == 8);
    o.k[0][k] = uint16_t(pa.plane * 64 + m * (aBlock + s.blocks * pa.group));
    o.k[1][k] = uint16_t(pb.plane * 64 + m * (block + s.blocks * pb.group));
  }
  unsigned bi = 256 / (m * m) ? 256 / (m * m) : 1, mi = 64 / bi / m,
           g = m / (4 * mi);
  for (unsigned i = 0; i < m; ++i) {
    unsigned reg = i % 4 + 4 * (i / (4 * mi) + g * (block / bi));
    o.d[i] = uint16_t(reg * 64 + m * (i / 4 % mi + mi * (block % bi)));
  }
  return o;
}

unsigned accumulatorWords(const Shape &s) { return s.m * s.m * s.blocks / 64; }

/// Permutes B's lanes as the swizzle in BLGP asks for.
void swizzleLanes(Plane *b, unsigned items, unsigned blgp) {
  for (unsigned e = 0; e < items; ++e) {
    Plane t;
    std::memcpy(t, b[e], sizeof(Plane));
    for (unsigned l = 0; l < 64; ++l) {
      unsigned from = blgp == 1   ? l % 32
                      : blgp == 2 ? 32 + l % 32
                      : blgp == 3 ? (l + 16) % 64
                                  : 16 * (blgp - 4) + l % 16;
      b[e][l] = t[from];
    }
  }
}

Elem mixedFormat(unsigned code) {
  static const Elem e[] = {Elem::FP8, Elem::BF8, Elem::FP6, Elem::BF6,
                           Elem::FP4};
  return e[code];
}

void run(Product &p, Acc acc) {
  if (acc == Acc::I32)
    multiplyI32(p, false);
  else
    multiplyF32(p);
}

const Shape &shapeOf(const Inst &i);
/// Returns a block's layout without broadcast, computed once per instruction.
const Layout &layoutOf(const Inst &i, unsigned block);

void mfma(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  Elem ea = s.a, eb = s.b;
  if (s.mixed) {
    if (i.cbsz > 4 || i.blgp > 4)
      return w.fault(i, "unknown matrix format");
    ea = mixedFormat(i.cbsz);
    eb = mixedFormat(i.blgp);
  }
  unsigned items = s.k * s.m * s.blocks / 64;
  alignas(32) Plane a[32], b[32];
  DecodeOptions o;
  o.fnuz = w.chip->fp8Fnuz;
  bool flush =
      w.chip->family == Family::GFX90A && (ea == Elem::F16 || ea == Elem::BF16);
  o.flushF16 = flush;
  decode(ea, &w.v[i.src[0].index], items, o, a);
  decode(eb, &w.v[i.src[1].index], items, o, b);
  if (!s.mixed && i.blgp)
    swizzleLanes(b, items, i.blgp & 7);
  MatrixScope scope(w, flush);
  alignas(32) Row copy[32];
  Accumulator c(w, i.src[2], i.dst[0], accumulatorWords(s), copy);
  unsigned spread = s.mixed ? 0 : i.cbsz & 7;
  for (unsigned block = 0; block < s.blocks; ++block) {
    Layout other;
    const Layout *l = &layoutOf(i, block);
    if (spread || s.mixed) {
      unsigned from = ((block >> spread << spread) + i.abid) % s.blocks;
      other = makeLayout(s, s.mixed ? 0 : from, block, ea, eb);
      l = &other;
    }
    Product p{s.m,
              s.m,
              s.k,
              a[0],
              b[0],
              l->k[0],
              l->k[1],
              c.constant ? zeroOffsets : l->d,
              l->d,
              c.base,
              w.v[i.dst[0].index]};
    run(p, s.acc);
  }
}

/// Returns 2^(e - 127) for an E8M0 scale, NaN for 255. A double has the range
/// of two scales.
double scaleOf(const uint32_t *row, unsigned lane, unsigned byte) {
  unsigned e = row[lane] >> (8 * byte) & 0xff;
  return e == 255 ? std::nan("") : std::ldexp(1.0, int(e) - 127);
}

/// Multiplies with a scale per 32 elements of k of A's rows and B's columns.
/// Each block of 32 is summed in f32; scaling and adding round once more.
void mfmaScaled(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  if (i.cbsz > 4 || i.blgp > 4)
    return w.fault(i, "unknown matrix format");
  Elem ea = mixedFormat(i.cbsz), eb = mixedFormat(i.blgp);
  alignas(32) Plane a[32], b[32];
  decode(ea, &w.v[i.src[0].index], 32, {}, a);
  decode(eb, &w.v[i.src[1].index], 32, {}, b);
  MatrixScope scope(w, false);
  alignas(32) Row copy[32], sum[16], splat[2];
  Accumulator c(w, i.src[2], i.dst[0], accumulatorWords(s), copy);
  const uint32_t *scaleA = w.rows(i.src[3], 1, splat[0]),
                 *scaleB = w.rows(i.src[4], 1, splat[1]);
  unsigned byteA = (i.opSel & 1) | (i.opSelHi & 1) << 1,
           byteB = (i.opSel >> 1 & 1) | (i.opSelHi >> 1 & 1) << 1;
  Layout l = makeLayout(s, 0, 0, ea, eb);
  uint32_t *d = w.v[i.dst[0].index];
  static const uint32_t zeros[MaxLanes] = {};
  uint32_t *sums = sum[0];
  for (unsigned part = 0; part < s.k / 32u; ++part) {
    Product p{s.m,
              s.m,
              32,
              a[0],
              b[0],
              l.k[0] + 32 * part,
              l.k[1] + 32 * part,
              zeroOffsets,
              l.d,
              zeros,
              sums};
    multiplyF32(p);
    for (unsigned r = 0; r < s.m; ++r)
      for (unsigned j = 0; j < s.m; ++j) {
        unsigned at = l.d[r] + j;
        double scale = scaleOf(scaleA, r + s.m * part, byteA) *
                       scaleOf(scaleB, j + s.m * part, byteB);
        uint32_t before = part ? d[at] : c.constant ? c.base[0] : c.base[at];
        double t = double(llvm::bit_cast<float>(sums[at])) * scale;
        d[at] = llvm::bit_cast<uint32_t>(
            float(double(llvm::bit_cast<float>(before)) + t));
      }
  }
}

void smfmac(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  unsigned items = s.k * s.m / 64, kept = items / 2, groups = 64 / s.m;
  alignas(32) Plane a[16], b[32];
  DecodeOptions o;
  o.fnuz = w.chip->fp8Fnuz;
  decode(s.a, &w.v[i.src[0].index], kept, o, a);
  decode(s.b, &w.v[i.src[1].index], items, o, b);
  MatrixScope scope(w, false);
  // A lane needs 2 * kept bits of indices, which ABID chooses if CBSZ is 0.
  unsigned bits = 2 * kept, sets = 32 / bits,
           set = i.cbsz & 3 ? 0 : i.abid % sets;
  const uint32_t *index = w.v[i.src[2].index];
  const Layout &l = layoutOf(i, 0);
  uint32_t *d = w.v[i.dst[0].index];
  for (unsigned r = 0; r < s.m; ++r) {
    uint16_t aOff[64], bOff[64];
    unsigned n = 0;
    for (unsigned g = 0; g < groups; ++g) {
      unsigned lane = r + s.m * g;
      for (unsigned e = 0; e < kept; ++e, ++n) {
        unsigned which = index[lane] >> (set * bits + 2 * e) & 3;
        aOff[n] = uint16_t(e * 64 + lane);
        bOff[n] = uint16_t((e / 2 * 4 + which) * 64 + s.m * g);
      }
    }
    Product p{1, s.m, n, a[0], b[0], aOff, bOff, l.d + r, l.d + r, d, d};
    run(p, s.acc);
  }
}

double readDouble(const uint32_t *row, unsigned lane) {
  return llvm::bit_cast<double>(uint64_t(row[MaxLanes + lane]) << 32 |
                                row[lane]);
}

void mfmaF64(Wave &w, const Inst &i) {
  const Shape &s = shapeOf(i);
  unsigned m = s.m;
  // BLGP holds the negation on gfx942 and later; gfx90a has neither.
  unsigned neg = w.chip->family == Family::GFX90A ? 0 : i.blgp;
  alignas(32) double a[64], b[64], c[4][64];
  for (unsigned l = 0; l < 64; ++l) {
    a[l] = readDouble(w.v[i.src[0].index], l) * (neg & 1 ? -1. : 1.);
    b[l] = readDouble(w.v[i.src[1].index], l) * (neg & 2 ? -1. : 1.);
  }
  unsigned regs = s.blocks == 1 ? 4 : 1;
  for (unsigned r = 0; r < regs; ++r)
    for (unsigned l = 0; l < 64; ++l) {
      c[r][l] = i.src[2].isVgpr() ? readDouble(w.v[i.src[2].index + 2 * r], l)
                                  : llvm::bit_cast<double>(i.src[2].value);
      if (neg & 4)
        c[r][l] = -c[r][l];
    }
  MatrixScope scope(w, false);
  for (unsigned r = 0; r < regs; ++r)
    for (unsigned l = 0; l < 64; ++l) {
      unsigned block = s.blocks == 1 ? 0 : l / 4 % 4;
      unsigned j = l % m, row = s.blocks == 1 ? l / 16 + 4 * r : l / 16;
      double acc = c[r][l];
      for (unsigned k = 0; k < 4; ++k) {
        unsigned base = m * (block + s.blocks * k);
        acc = std::fma(a[base + row], b[base + j], acc);
      }
      uint64_t bits = llvm::bit_cast<uint64_t>(acc);
      uint32_t *d = w.v[i.dst[0].index + 2 * r];
      d[l] = uint32_t(bits);
      d[MaxLanes + l] = uint32_t(bits >> 32);
    }
}

struct Entry {
  const char *name;
  Shape shape;
};
constexpr Elem E32 = Elem::F32, X32 = Elem::XF32, H = Elem::F16, Y = Elem::BF16,
               I8 = Elem::I8, F8 = Elem::FP8, B8 = Elem::BF8, E64 = Elem::F64;
constexpr Shape dense(unsigned m, unsigned k, unsigned blocks, Elem a, Elem b) {
  return {uint8_t(m),
          uint8_t(k),
          uint8_t(blocks),
          a,
          b,
          a == I8 ? Acc::I32 : a == E64 ? Acc::F64 : Acc::F32};
}
constexpr Shape dense(unsigned m, unsigned k, unsigned blocks, Elem e) {
  return dense(m, k, blocks, e, e);
}
constexpr Shape sparse(unsigned m, unsigned k, Elem a, Elem b) {
  Shape s = dense(m, k, 1, a, b);
  s.sparse = true;
  return s;
}
constexpr Shape sparse(unsigned m, unsigned k, Elem e) {
  return sparse(m, k, e, e);
}
constexpr Shape mixed(unsigned m, unsigned k, bool scaled) {
  Shape s = dense(m, k, 1, F8, F8);
  s.mixed = true;
  s.scaled = scaled;
  return s;
}

/// The instructions have two spellings: without underscores up to gfx90a (where
/// plain bf16 takes two elements of k a lane and bf16_1k four), with
/// underscores and the number of blocks from gfx942 on.
const Entry entries[] = {
    // gfx90a
    {"v_mfma_f32_32x32x1f32", dense(32, 1, 2, E32)},
    {"v_mfma_f32_16x16x1f32", dense(16, 1, 4, E32)},
    {"v_mfma_f32_4x4x1f32", dense(4, 1, 16, E32)},
    {"v_mfma_f32_32x32x2f32", dense(32, 2, 1, E32)},
    {"v_mfma_f32_16x16x4f32", dense(16, 4, 1, E32)},
    {"v_mfma_f32_32x32x4f16", dense(32, 4, 2, H)},
    {"v_mfma_f32_16x16x4f16", dense(16, 4, 4, H)},
    {"v_mfma_f32_4x4x4f16", dense(4, 4, 16, H)},
    {"v_mfma_f32_32x32x8f16", dense(32, 8, 1, H)},
    {"v_mfma_f32_16x16x16f16", dense(16, 16, 1, H)},
    {"v_mfma_f32_32x32x2bf16", dense(32, 2, 2, Y)},
    {"v_mfma_f32_16x16x2bf16", dense(16, 2, 4, Y)},
    {"v_mfma_f32_4x4x2bf16", dense(4, 2, 16, Y)},
    {"v_mfma_f32_32x32x4bf16", dense(32, 4, 1, Y)},
    {"v_mfma_f32_16x16x8bf16", dense(16, 8, 1, Y)},
    {"v_mfma_f32_32x32x4bf16_1k", dense(32, 4, 2, Y)},
    {"v_mfma_f32_16x16x4bf16_1k", dense(16, 4, 4, Y)},
    {"v_mfma_f32_4x4x4bf16_1k", dense(4, 4, 16, Y)},
    {"v_mfma_f32_32x32x8bf16_1k", dense(32, 8, 1, Y)},
    {"v_mfma_f32_16x16x16bf16_1k", dense(16, 16, 1, Y)},
    {"v_mfma_i32_32x32x4i8", dense(32, 4, 2, I8)},
    {"v_mfma_i32_16x16x4i8", dense(16, 4, 4, I8)},
    {"v_mfma_i32_4x4x4i8", dense(4, 4, 16, I8)},
    {"v_mfma_i32_32x32x8i8", dense(32, 8, 1, I8)},
    {"v_mfma_i32_16x16x16i8", dense(16, 16, 1, I8)},
    {"v_mfma_f64_16x16x4f64", dense(16, 4, 1, E64)},
    {"v_mfma_f64_4x4x4f64", dense(4, 4, 4, E64)},
    // gfx942
    {"v_mfma_f32_32x32x1_2b_f32", dense(32, 1, 2, E32)},
    {"v_mfma_f32_16x16x1_4b_f32", dense(16, 1, 4, E32)},
    {"v_mfma_f32_4x4x1_16b_f32", dense(4, 1, 16, E32)},
    {"v_mfma_f32_32x32x2_f32", dense(32, 2, 1, E32)},
    {"v_mfma_f32_16x16x4_f32", dense(16, 4, 1, E32)},
    {"v_mfma_f32_32x32x4_xf32", dense(32, 4, 1, X32)},
    {"v_mfma_f32_16x16x8_xf32", dense(16, 8, 1, X32)},
    {"v_mfma_f32_32x32x4_2b_f16", dense(32, 4, 2, H)},
    {"v_mfma_f32_16x16x4_4b_f16", dense(16, 4, 4, H)},
    {"v_mfma_f32_4x4x4_16b_f16", dense(4, 4, 16, H)},
    {"v_mfma_f32_32x32x8_f16", dense(32, 8, 1, H)},
    {"v_mfma_f32_16x16x16_f16", dense(16, 16, 1, H)},
    {"v_mfma_f32_32x32x4_2b_bf16", dense(32, 4, 2, Y)},
    {"v_mfma_f32_16x16x4_4b_bf16", dense(16, 4, 4, Y)},
    {"v_mfma_f32_4x4x4_16b_bf16", dense(4, 4, 16, Y)},
    {"v_mfma_f32_32x32x8_bf16", dense(32, 8, 1, Y)},
    {"v_mfma_f32_16x16x16_bf16", dense(16, 16, 1, Y)},
    {"v_mfma_i32_32x32x4_2b_i8", dense(32, 4, 2, I8)},
    {"v_mfma_i32_16x16x4_4b_i8", dense(16, 4, 4, I8)},
    {"v_mfma_i32_4x4x4_16b_i8", dense(4, 4, 16, I8)},
    {"v_mfma_i32_32x32x16_i8", dense(32, 16, 1, I8)},
    {"v_mfma_i32_16x16x32_i8", dense(16, 32, 1, I8)},
    {"v_mfma_f64_16x16x4_f64", dense(16, 4, 1, E64)},
    {"v_mfma_f64_4x4x4_4b_f64", dense(4, 4, 4, E64)},
    {"v_mfma_f32_16x16x32_fp8_fp8", dense(16, 32, 1, F8, F8)},
    {"v_mfma_f32_16x16x32_fp8_bf8", dense(16, 32, 1, F8, B8)},
    {"v_mfma_f32_16x16x32_bf8_fp8", dense(16, 32, 1, B8, F8)},
    {"v_mfma_f32_16x16x32_bf8_bf8", dense(16, 32, 1, B8, B8)},
    {"v_mfma_f32_32x32x16_fp8_fp8", dense(32, 16, 1, F8, F8)},
    {"v_mfma_f32_32x32x16_fp8_bf8", dense(32, 16, 1, F8, B8)},
    {"v_mfma_f32_32x32x16_bf8_fp8", dense(32, 16, 1, B8, F8)},
    {"v_mfma_f32_32x32x16_bf8_bf8", dense(32, 16, 1, B8, B8)},
    {"v_smfmac_f32_16x16x32_f16", sparse(16, 32, H)},
    {"v_smfmac_f32_32x32x16_f16", sparse(32, 16, H)},
    {"v_smfmac_f32_16x16x32_bf16", sparse(16, 32, Y)},
    {"v_smfmac_f32_32x32x16_bf16", sparse(32, 16, Y)},
    {"v_smfmac_i32_16x16x64_i8", sparse(16, 64, I8)},
    {"v_smfmac_i32_32x32x32_i8", sparse(32, 32, I8)},
    {"v_smfmac_f32_16x16x64_fp8_fp8", sparse(16, 64, F8, F8)},
    {"v_smfmac_f32_16x16x64_fp8_bf8", sparse(16, 64, F8, B8)},
    {"v_smfmac_f32_16x16x64_bf8_fp8", sparse(16, 64, B8, F8)},
    {"v_smfmac_f32_16x16x64_bf8_bf8", sparse(16, 64, B8, B8)},
    {"v_smfmac_f32_32x32x32_fp8_fp8", sparse(32, 32, F8, F8)},
    {"v_smfmac_f32_32x32x32_fp8_bf8", sparse(32, 32, F8, B8)},
    {"v_smfmac_f32_32x32x32_bf8_fp8", sparse(32, 32, B8, F8)},
    {"v_smfmac_f32_32x32x32_bf8_bf8", sparse(32, 32, B8, B8)},
    // gfx950
    {"v_mfma_f32_16x16x32_f16", dense(16, 32, 1, H)},
    {"v_mfma_f32_32x32x16_f16", dense(32, 16, 1, H)},
    {"v_mfma_f32_16x16x32_bf16", dense(16, 32, 1, Y)},
    {"v_mfma_f32_32x32x16_bf16", dense(32, 16, 1, Y)},
    {"v_mfma_i32_16x16x64_i8", dense(16, 64, 1, I8)},
    {"v_mfma_i32_32x32x32_i8", dense(32, 32, 1, I8)},
    {"v_mfma_f32_16x16x128_f8f6f4", mixed(16, 128, false)},
    {"v_mfma_f32_32x32x64_f8f6f4", mixed(32, 64, false)},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", mixed(16, 128, true)},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", mixed(32, 64, true)},
    {"v_smfmac_f32_16x16x64_f16", sparse(16, 64, H)},
    {"v_smfmac_f32_32x32x32_f16", sparse(32, 32, H)},
    {"v_smfmac_f32_16x16x64_bf16", sparse(16, 64, Y)},
    {"v_smfmac_f32_32x32x32_bf16", sparse(32, 32, Y)},
    {"v_smfmac_i32_16x16x128_i8", sparse(16, 128, I8)},
    {"v_smfmac_i32_32x32x64_i8", sparse(32, 64, I8)},
    {"v_smfmac_f32_16x16x128_fp8_fp8", sparse(16, 128, F8, F8)},
    {"v_smfmac_f32_16x16x128_fp8_bf8", sparse(16, 128, F8, B8)},
    {"v_smfmac_f32_16x16x128_bf8_fp8", sparse(16, 128, B8, F8)},
    {"v_smfmac_f32_16x16x128_bf8_bf8", sparse(16, 128, B8, B8)},
    {"v_smfmac_f32_32x32x64_fp8_fp8", sparse(32, 64, F8, F8)},
    {"v_smfmac_f32_32x32x64_fp8_bf8", sparse(32, 64, F8, B8)},
    {"v_smfmac_f32_32x32x64_bf8_fp8", sparse(32, 64, B8, F8)},
    {"v_smfmac_f32_32x32x64_bf8_bf8", sparse(32, 64, B8, B8)},
};

const Shape &shapeOf(const Inst &i) { return entries[i.param].shape; }

const Layout &layoutOf(const Inst &i, unsigned block) {
  static const std::vector<std::vector<Layout>> layouts = [] {
    std::vector<std::vector<Layout>> all;
    for (const Entry &e : entries) {
      const Shape &s = e.shape;
      std::vector<Layout> &mine = all.emplace_back();
      if (s.acc != Acc::F64)
        for (unsigned b = 0; b < s.blocks; ++b)
          mine.push_back(makeLayout(s, b, b, s.a, s.b));
    }
    return all;
  }();
  return layouts[i.param][block];
}

OpInfo opOf(const Entry &e, unsigned index) {
  const Shape &s = e.shape;
  bool integer = s.acc == Acc::I32;
  OpInfo o{e.name, mfma,      integer ? "i=rri" : "f=rrf",
           index,  CrossLane, Unit::Matrix};
  if (s.acc == Acc::F64) {
    o.fn = mfmaF64;
    o.types = "D=rrD";
  } else if (s.scaled) {
    o.fn = mfmaScaled;
    o.types = "f=rrfii";
  } else if (s.sparse) {
    o.fn = smfmac;
    o.types = integer ? "i=rrii" : "f=rrif"; // the accumulator is tied
    o.flags |= Tied;
  }
  return o;
}

} // namespace

OpTable greta::sim::mfmaOps() {
  static const std::vector<OpInfo> table = [] {
    std::vector<OpInfo> t;
    for (const Entry &e : entries)
      t.push_back(opOf(e, unsigned(t.size())));
    return t;
  }();
  return table;
}

unsigned greta::sim::matrixPasses(const Chip &chip, const Inst &i) {
  const Shape &s = shapeOf(i);
  bool mi200 = chip.family == Family::GFX90A,
       mi350 = chip.family == Family::GFX950;
  // Counts FLOP per cycle and SIMD, from the peak rates AMD publishes.
  unsigned rate;
  switch (s.a) {
  case Elem::F32:
    rate = 64;
    break;
  case Elem::F64:
    rate = mi350 ? 32 : 64;
    break;
  case Elem::XF32:
    rate = 256;
    break;
  case Elem::BF16:
    // gfx90a's first bf16 forms (without _1k) run at half rate.
    if (mi200 && !llvm::StringRef(i.op->name).ends_with("_1k")) {
      rate = 128;
      break;
    }
    [[fallthrough]];
  case Elem::F16:
    rate = mi200 ? 256 : mi350 ? 1024 : 512;
    break;
  default:
    rate = mi200 ? 256 : mi350 ? 2048 : 1024;
    // fp6 and fp4 on both sides run twice as fast as fp8.
    if (s.scaled && i.cbsz > 1 && i.blgp > 1)
      rate *= 2;
  }
  unsigned flop = 2u * s.m * s.m * s.k * s.blocks / (s.sparse ? 2 : 1);
  // Small shapes are no faster on faster chips (LLVM, SISchedule.td).
  unsigned least = s.m == 4 ? (s.a == Elem::F64 ? 4 : 2) : s.m == 16 ? 4 : 8;
  if (s.blocks > 1 && s.m > 4)
    least *= 2;
  return std::max(least, flop / rate / 4);
}

unsigned greta::sim::matrixCycles(const Chip &chip, const Inst &i) {
  if (chip.isGfx9())
    return 4 * matrixPasses(chip, i);
  // WMMA 16x16x16 f16 does 512 and 1024 FLOP per cycle and CU of two SIMDs on
  // RDNA3 and RDNA4. RDNA3 does 8-bit integers at the same rate and 4-bit ones
  // at twice it; RDNA4 doubles with each halving of the width. Sparse forms
  // multiply twice the K in the same time.
  llvm::StringRef name = i.op->name;
  unsigned k = name.contains("16x16x64")   ? 64
               : name.contains("16x16x32") ? 32
                                           : 16;
  if (name.contains("swmmac"))
    k /= 2;
  bool four = name.contains("iu4"), eight = name.contains("iu8") ||
                                            name.contains("fp8") ||
                                            name.contains("bf8");
  unsigned cycles = chip.isGfx12() ? (four    ? 4
                                      : eight ? 8
                                              : 16)
                    : four         ? 16
                                   : 32;
  return cycles * k / 16;
}
