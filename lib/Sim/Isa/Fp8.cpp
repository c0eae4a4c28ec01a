//===- Fp8.cpp - the 8, 6 and 4-bit float formats and their conversions ---===//
//
// Instructions differ in four things, which a table row states: the small
// format, the wide one (f32, f16, bf16), how many elements a lane converts, and
// whether a scale takes part (gfx950's scalef32: the exponent of an f32
// operand; narrowing divides by 2^e, widening multiplies). The places of
// elements:
//   one element   narrow: byte op_sel[3:2] (gfx12: byte_sel) of the destination
//                 widen: byte op_sel[1:0] (gfx12: byte_sel) of the source
//   two fp8       the half that op_sel names; two fp4: a byte as above
//   32 of 6 bits  192 bits in six registers; 2xpk16 takes its elements in turn
//                 from two sources
// The rest of a destination register stays. The stochastic forms use the same
// random bits for every element of a lane; AMD does not document which.
//
//===----------------------------------------------------------------------===//
#include "Isa/Fp8.h"
#include "Isa/Valu.h"
#include <array>

using namespace greta::sim;

namespace {

struct Layout {
  unsigned exponentBits, mantissaBits;
  int bias;
};
constexpr Layout e2m3{2, 3, 1}, e3m2{3, 2, 3}, e2m1{2, 1, 1}, half{5, 10, 15};
Layout fp8Layout(bool bf8, bool fnuz) {
  return bf8 ? Layout{5, 2, fnuz ? 16 : 15} : Layout{4, 3, fnuz ? 8 : 7};
}

/// Returns the value of a code taken as a finite one.
float valueOf(uint32_t code, Layout f) {
  uint32_t m = code & ((1u << f.mantissaBits) - 1),
           e = code >> f.mantissaBits & ((1u << f.exponentBits) - 1);
  float x = e ? std::ldexp(float(m | 1u << f.mantissaBits),
                           int(e) - f.bias - int(f.mantissaBits))
              : std::ldexp(float(m), 1 - f.bias - int(f.mantissaBits));
  return code >> (f.exponentBits + f.mantissaBits) & 1 ? -x : x;
}

/// Rounds |f| (finite) to a code of a format without upper bound. Codes past
/// the format's last mean overflow.
uint32_t roundMagnitude(float f, Layout to, SmallRounding rounding) {
  uint32_t b = llvm::bit_cast<uint32_t>(f) & 0x7fffffff;
  int e = int(b >> 23);
  uint64_t m = b & 0x7fffff;
  if (e)
    m |= 0x800000;
  else
    e = 1;
  // The result counts units of its exponent's last place; carries move up.
  int exponent = std::max(e - 127, 1 - to.bias);
  int drop = 23 - int(to.mantissaBits) + exponent - (e - 127);
  uint64_t q = 0;
  if (drop <= 40) {
    uint64_t rest = m & ((uint64_t(1) << drop) - 1);
    q = m >> drop;
    if (rounding.stochastic) {
      uint64_t r = drop >= 32 ? uint64_t(rounding.random) << (drop - 32)
                              : rounding.random >> (32 - drop);
      q += rest + r >= uint64_t(1) << drop;
    } else {
      uint64_t middle = uint64_t(1) << (drop - 1);
      q += rest > middle || (rest == middle && (q & 1));
    }
  }
  if (exponent > 1 - to.bias)
    q += uint64_t(exponent + to.bias - 1) << to.mantissaBits;
  return uint32_t(q);
}

uint8_t toFinite(float f, Layout to, SmallRounding rounding) {
  unsigned bits = to.exponentBits + to.mantissaBits;
  uint32_t largest = (1u << bits) - 1;
  uint32_t code = std::isfinite(f)
                      ? std::min(roundMagnitude(f, to, rounding), largest)
                      : largest;
  return uint8_t(code | uint32_t(std::signbit(f)) << bits);
}

} // namespace

const float *greta::sim::fp8Values(bool bf8, bool fnuz) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 4> t;
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned c = 0; c < 256; ++c) {
        bool bf8 = k & 1, fnuz = k & 2;
        float x = valueOf(c, fp8Layout(bf8, fnuz));
        if (fnuz ? c == 0x80 : bf8 ? (c & 0x7f) > 0x7c : (c & 0x7f) == 0x7f)
          x = llvm::bit_cast<float>(0x7fc00000u);
        else if (!fnuz && bf8 && (c & 0x7f) == 0x7c)
          x = c & 0x80 ? -INFINITY : INFINITY;
        t[k][c] = x;
      }
    return t;
  }();
  return tables[bf8 + 2 * fnuz].data();
}

const float *greta::sim::fp6Values(bool isE3m2) {
  static const auto tables = [] {
    std::array<std::array<float, 64>, 2> t;
    for (unsigned c = 0; c < 64; ++c) {
      t[0][c] = valueOf(c, e2m3);
      t[1][c] = valueOf(c, e3m2);
    }
    return t;
  }();
  return tables[isE3m2].data();
}

const float *greta::sim::fp4Values() {
  static const auto table = [] {
    std::array<float, 16> t;
    for (unsigned c = 0; c < 16; ++c)
      t[c] = valueOf(c, e2m1);
    return t;
  }();
  return table.data();
}

uint8_t greta::sim::floatToFp8(float f, bool bf8, bool fnuz, bool saturate,
                               SmallRounding rounding) {
  uint8_t sign = uint8_t(std::signbit(f)) << 7;
  uint8_t largest = fnuz ? 0x7f : bf8 ? 0x7b : 0x7e;
  uint8_t nan = fnuz ? 0x80 : sign | 0x7f;
  uint8_t overflow = fnuz ? 0x80 : bf8 ? sign | 0x7c : sign | 0x7f;
  if (f != f)
    return nan;
  uint32_t code =
      std::isinf(f) ? 0xff : roundMagnitude(f, fp8Layout(bf8, fnuz), rounding);
  if (code > largest)
    return saturate ? sign | largest : overflow;
  return !code && fnuz ? 0 : uint8_t(sign | code);
}
uint8_t greta::sim::floatToFp6(float f, bool isE3m2, SmallRounding rounding) {
  return toFinite(f, isE3m2 ? e3m2 : e2m3, rounding);
}
uint8_t greta::sim::floatToFp4(float f, SmallRounding rounding) {
  return toFinite(f, e2m1, rounding);
}

namespace {

using u32 = uint32_t;

enum Small : u32 { FP8, BF8, FP6, BF6, FP4 };
enum Wide : u32 { F32 = 0, F16 = 1 << 3, BF16 = 2 << 3 };
enum : u32 {
  SmallMask = 7,
  WideMask = 3 << 3,
  One = 0,
  Two = 1 << 5,
  All = 2 << 5, ///< 32
  CountMask = 3 << 5,
  Scaled = 1 << 7,
  Stochastic = 1 << 8,
  TwoSources = 1 << 9 ///< the elements come in turn from src0 and src1
};

unsigned bitsOf(u32 small) { return small == FP4 ? 4 : small >= FP6 ? 6 : 8; }
unsigned countOf(u32 param) {
  u32 c = param & CountMask;
  return c == One ? 1 : c == Two ? 2 : 32;
}

float readWide(u32 wide, const u32 *rows, unsigned e, unsigned lane) {
  if (wide == F32)
    return llvm::bit_cast<float>(rows[e * MaxLanes + lane]);
  uint16_t h = uint16_t(rows[e / 2 * MaxLanes + lane] >> (e % 2 * 16));
  return wide == F16 ? halfToFloat(h) : bf16ToFloat(h);
}

/// Returns f * 2^n in one rounding; NaN for the scale 255.
float scaled(float f, u32 scale, bool divide) {
  int e = int(scale >> 23 & 0xff);
  if (e == 255)
    return llvm::bit_cast<float>(0x7fc00000u);
  return float(std::ldexp(double(f), divide ? 127 - e : e - 127));
}

uint8_t narrowOne(float f, u32 small, const Wave &w, SmallRounding r) {
  switch (small) {
  case FP4:
    return floatToFp4(f, r);
  case FP6:
  case BF6:
    return floatToFp6(f, small == BF6, r);
  default:
    return floatToFp8(f, small == BF8, w.chip->fp8Fnuz, w.mode >> 23 & 1, r);
  }
}

/// Writes `bits` bits of x to bit `at` of a lane's registers.
void insert(u32 *rows, unsigned lane, unsigned at, unsigned bits, u32 x) {
  u32 &low = rows[at / 32 * MaxLanes + lane];
  unsigned shift = at % 32;
  uint64_t mask = ((uint64_t(1) << bits) - 1) << shift, value = uint64_t(x)
                                                                << shift;
  low = u32((low & ~mask) | value);
  if (shift + bits > 32) {
    u32 &high = rows[(at / 32 + 1) * MaxLanes + lane];
    high = u32((high & ~(mask >> 32)) | value >> 32);
  }
}

void narrow(Wave &w, const Inst &i) {
  u32 small = i.param & SmallMask, wide = i.param & WideMask;
  unsigned bits = bitsOf(small), n = countOf(i.param), source = 0;
  bool two = i.param & TwoSources;
  alignas(32) u32 t[4][2 * MaxLanes];
  const u32 *data[2];
  for (unsigned k = 0; k < (two ? 2u : 1u); ++k, ++source)
    data[k] = wide == F32 && n < 32 ? i.src[source].words > 1
                                          ? w.rows(i.src[source], 2, t[k])
                                          : fetch<float>(w, i.src[source], t[k])
                                    : w.rows(i.src[source], 1, t[k]);
  const u32 *random = nullptr, *scale = nullptr;
  if (i.param & Stochastic)
    random = w.rows(i.src[source++], 1, t[2]);
  if (i.param & Scaled)
    scale = w.rows(i.src[source], 1, t[3]);
  unsigned at = 0;
  if (n * bits == 16)
    at = i.has(HiDst) ? 16 : 0;
  else if (n * bits == 8)
    at = 8 * (w.chip->isGfx12() ? i.abid & 3u : i.opSel >> 2 & 3u);
  u32 *d = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) {
    SmallRounding r{random != nullptr, random ? random[l] : 0};
    // The destination may be one of the sources.
    uint8_t codes[32];
    for (unsigned e = 0; e < n; ++e) {
      float x = two ? readWide(wide, data[e % 2], e / 2, l)
                    : readWide(wide, data[0], e, l);
      codes[e] = narrowOne(scale ? scaled(x, scale[l], true) : x, small, w, r);
    }
    for (unsigned e = 0; e < n; ++e)
      insert(d, l, at + e * bits, bits, codes[e]);
  });
}

void widen(Wave &w, const Inst &i) {
  u32 small = i.param & SmallMask, wide = i.param & WideMask;
  unsigned bits = bitsOf(small), n = countOf(i.param);
  alignas(32) u32 t[2][MaxLanes];
  const u32 *from = w.rows(i.src[0], 1, t[0]);
  const u32 *scale = i.param & Scaled ? w.rows(i.src[1], 1, t[1]) : nullptr;
  const float *values = small == FP4 ? fp4Values()
                        : small >= FP6
                            ? fp6Values(small == BF6)
                            : fp8Values(small == BF8, w.chip->fp8Fnuz);
  unsigned at = 0;
  if (n * bits == 16)
    at = (i.opSel & 1) || i.src[0].hi ? 16 : 0;
  else if (n * bits == 8)
    at = 8 * (w.chip->isGfx12() ? i.abid & 3u : i.opSel & 3u);
  u32 *d = w.v[i.dst[0].index];
  unsigned words = (n * bits + 31) / 32;
  forLanes(w, [&](unsigned l) {
    u32 in[7] = {};
    for (unsigned k = 0; k < words; ++k)
      in[k] = from[k * MaxLanes + l];
    u32 factor = scale ? scale[l] : 127u << 23;
    for (unsigned e = 0; e < n; ++e) {
      unsigned bit = at + e * bits;
      uint64_t pair = uint64_t(in[bit / 32 + 1]) << 32 | in[bit / 32];
      float x = values[pair >> bit % 32 & ((1u << bits) - 1)];
      x = scaled(x, factor, false);
      if (wide == F32)
        d[e * MaxLanes + l] = llvm::bit_cast<u32>(x);
      else
        insert(d, l, n == 1 && i.has(HiDst) ? 16 : e * 16, 16,
               wide == F16 ? floatToHalf(x) : floatToBf16(x));
    }
  });
}

/// Rounds f32 to f16 or bf16 (param 1) stochastically, into one half.
void stochasticHalf(Wave &w, const Inst &i) {
  alignas(32) u32 t[2][MaxLanes];
  const u32 *a = fetch<float>(w, i.src[0], t[0]),
            *random = w.rows(i.src[1], 1, t[1]);
  u32 *d = w.v[i.dst[0].index];
  Layout to = i.param ? Layout{8, 7, 127} : half;
  u32 infinity = i.param ? 0x7f80 : 0x7c00;
  forLanes(w, [&](unsigned l) {
    float x = llvm::bit_cast<float>(a[l]);
    u32 h;
    if (x != x)
      h = i.param ? floatToBf16(x) : floatToHalf(x);
    else
      h = std::min(std::isinf(x) ? infinity
                                 : roundMagnitude(x, to, {true, random[l]}),
                   infinity) |
          u32(std::signbit(x)) << 15;
    insert(d, l, i.has(HiDst) ? 16 : 0, 16, h);
  });
}

/// Steps the shift register that seeds the stochastic conversions.
u32 prng(u32 a) { return a << 1 ^ (a >> 31 ? 197 : 0); }

#define NARROW(name, types, param)                                             \
  {"v_cvt_" name, narrow, types, param, 0, Unit::Valu}
#define WIDEN(name, types, param)                                              \
  {"v_cvt_" name, widen, types, param, 0, Unit::Valu}
// Defines an instruction for fp8 and bf8, or for fp6 and bf6.
#define NARROW2(before, name, after, types, param)                             \
  NARROW(before "fp" name after, types,                                        \
         (param) | (name[0] == '8' ? FP8 : FP6)),                              \
      NARROW(before "bf" name after, types,                                    \
             (param) | (name[0] == '8' ? BF8 : BF6))
#define WIDEN2(before, name, types, param)                                     \
  WIDEN(before "fp" name, types, (param) | (name[0] == '8' ? FP8 : FP6)),      \
      WIDEN(before "bf" name, types, (param) | (name[0] == '8' ? BF8 : BF6))
#define S "scalef32_"

const OpInfo table[] = {
    NARROW2("pk_", "8", "_f32", "i=ff", F32 | Two | TwoSources),
    NARROW2("sr_", "8", "_f32", "i=fi", F32 | One | Stochastic),
    WIDEN2("f32_", "8", "f=i", F32 | One),
    WIDEN2("pk_f32_", "8", "q=i", F32 | Two),
    // gfx950
    NARROW2(S "pk_", "8", "_f32", "i=ffi", F32 | Two | TwoSources | Scaled),
    NARROW2(S "pk_", "8", "_f16", "i=ri", F16 | Two | Scaled),
    NARROW2(S "pk_", "8", "_bf16", "i=ri", BF16 | Two | Scaled),
    NARROW2(S "sr_", "8", "_f32", "i=fii", F32 | One | Stochastic | Scaled),
    NARROW2(S "sr_", "8", "_f16", "i=rii", F16 | One | Stochastic | Scaled),
    NARROW2(S "sr_", "8", "_bf16", "i=rii", BF16 | One | Stochastic | Scaled),
    NARROW(S "pk_fp4_f32", "i=ffi", FP4 | F32 | Two | TwoSources | Scaled),
    NARROW(S "pk_fp4_f16", "i=ri", FP4 | F16 | Two | Scaled),
    NARROW(S "pk_fp4_bf16", "i=ri", FP4 | BF16 | Two | Scaled),
    NARROW(S "sr_pk_fp4_f32", "i=rii", FP4 | F32 | Two | Stochastic | Scaled),
    NARROW(S "sr_pk_fp4_f16", "i=rii", FP4 | F16 | Two | Stochastic | Scaled),
    NARROW(S "sr_pk_fp4_bf16", "i=rii", FP4 | BF16 | Two | Stochastic | Scaled),
    NARROW2(S "2xpk16_", "6", "_f32", "r=rri", F32 | All | TwoSources | Scaled),
    NARROW2(S "pk32_", "6", "_f16", "r=ri", F16 | All | Scaled),
    NARROW2(S "pk32_", "6", "_bf16", "r=ri", BF16 | All | Scaled),
    NARROW2(S "sr_pk32_", "6", "_f32", "r=rii",
            F32 | All | Stochastic | Scaled),
    NARROW2(S "sr_pk32_", "6", "_f16", "r=rii",
            F16 | All | Stochastic | Scaled),
    NARROW2(S "sr_pk32_", "6", "_bf16", "r=rii",
            BF16 | All | Stochastic | Scaled),
    WIDEN2(S "f32_", "8", "f=ii", F32 | One | Scaled),
    WIDEN2(S "f16_", "8", "i=ii", F16 | One | Scaled),
    WIDEN2(S "pk_f32_", "8", "q=ii", F32 | Two | Scaled),
    WIDEN2(S "pk_f16_", "8", "i=ii", F16 | Two | Scaled),
    WIDEN2(S "pk_bf16_", "8", "i=ii", BF16 | Two | Scaled),
    WIDEN(S "pk_f32_fp4", "q=ii", FP4 | F32 | Two | Scaled),
    WIDEN(S "pk_f16_fp4", "i=ii", FP4 | F16 | Two | Scaled),
    WIDEN(S "pk_bf16_fp4", "i=ii", FP4 | BF16 | Two | Scaled),
    WIDEN2(S "pk32_f32_", "6", "r=ri", F32 | All | Scaled),
    WIDEN2(S "pk32_f16_", "6", "r=ri", F16 | All | Scaled),
    WIDEN2(S "pk32_bf16_", "6", "r=ri", BF16 | All | Scaled),
    {"v_cvt_sr_f16_f32", stochasticHalf, "i=fi", 0, 0, Unit::Valu},
    {"v_cvt_sr_bf16_f32", stochasticHalf, "i=fi", 1, 0, Unit::Valu},
    valuOp<prng>("v_prng_b32"),
};

} // namespace

OpTable greta::sim::fp8Ops() { return table; }
