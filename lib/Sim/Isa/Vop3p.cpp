//===- Vop3p.cpp - packed math, dot products, mixed precision -------------===//
//
// Packed operations work on two halves; op_sel and op_sel_hi choose which half
// of each source feeds the low and the high result, neg_lo and neg_hi negate
// it.
//
//===----------------------------------------------------------------------===//
#include "Isa/Fp8.h"
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u16 = uint16_t;
using i16 = int16_t;

float f(u16 x) { return halfToFloat(x); }

/// Reads the half of `x` that result half `high` takes from source k.
struct Halves {
  bool high[3][2], neg[3][2];
  Halves(const Inst &i) {
    for (unsigned k = 0; k < 3; ++k) {
      high[k][0] = i.opSel >> k & 1;
      high[k][1] = i.opSelHi >> k & 1;
      neg[k][0] = i.negLo >> k & 1;
      neg[k][1] = i.negHi >> k & 1;
    }
  }
};

template <auto F, bool Float, size_t N, size_t... Is>
void packed(Wave &w, const Inst &i, std::index_sequence<Is...>) {
  alignas(32) u32 t[N][MaxLanes], part[2][N][MaxLanes], out[MaxLanes];
  Halves hs(i);
  for (unsigned k = 0; k < N; ++k) {
    const u32 *p = w.rows(i.src[k], 1, t[k]);
    for (unsigned half = 0; half < 2; ++half) {
      u32 shift = hs.high[k][half] ? 16 : 0;
      u32 flip = Float && hs.neg[k][half] ? 0x8000 : 0;
      for (unsigned l = 0; l < MaxLanes; ++l)
        part[half][k][l] = ((p[l] >> shift) & 0xffff) ^ flip;
      if (Float && LLVM_UNLIKELY(!(w.mode & Denormals16In)))
        flushHalves(part[half][k]);
    }
  }
  bool clamp = i.has(Clamp), flush = !(w.mode & Denormals16Out);
  FpScope scope(w, Float);
  GRETA_LANES
  for (unsigned l = 0; l < MaxLanes; ++l) {
    u32 lo = F(u16(part[0][Is][l])..., clamp);
    u32 hi = F(u16(part[1][Is][l])..., clamp);
    if (Float && flush) {
      lo &= lo & 0x7c00 ? ~0u : 0x8000;
      hi &= hi & 0x7c00 ? ~0u : 0x8000;
    }
    out[l] = (lo & 0xffff) | hi << 16;
  }
  writeRows(w, w.v[i.dst[0].index], out, 1);
}
template <auto F, bool Float, size_t N> void pk(Wave &w, const Inst &i) {
  packed<F, Float, N>(w, i, std::make_index_sequence<N>{});
}

u16 half(float x, bool clamp) {
  return floatToHalf(clamp ? (x > 0 ? (x < 1.f ? x : 1.f) : 0.f) : x);
}
u16 addH(u16 a, u16 b, bool c) { return half(f(a) + f(b), c); }
u16 mulH(u16 a, u16 b, bool c) { return half(f(a) * f(b), c); }
u16 fmaH(u16 a, u16 b, u16 c, bool clamp) {
  u16 r = doubleToHalf(double(f(a)) * double(f(b)) + double(f(c)));
  return clamp ? half(f(r), true) : r;
}
int order(u16 x) { return x & 0x8000 ? -int(x & 0x7fff) - 1 : x & 0x7fff; }
bool nan(u16 x) { return (x & 0x7fff) > 0x7c00; }
u16 minH(u16 a, u16 b, bool) {
  u16 r = order(a) < order(b) ? a : b;
  return nan(a) ? b : nan(b) ? a : r;
}
u16 maxH(u16 a, u16 b, bool) {
  u16 r = order(a) > order(b) ? a : b;
  return nan(a) ? b : nan(b) ? a : r;
}
u16 minimumH(u16 a, u16 b, bool c) {
  return nan(a) ? a | 0x200 : nan(b) ? b | 0x200 : minH(a, b, c);
}
u16 maximumH(u16 a, u16 b, bool c) {
  return nan(a) ? a | 0x200 : nan(b) ? b | 0x200 : maxH(a, b, c);
}
u16 minimum3H(u16 a, u16 b, u16 d, bool c) {
  return minimumH(minimumH(a, b, c), d, c);
}
u16 maximum3H(u16 a, u16 b, u16 d, bool c) {
  return maximumH(maximumH(a, b, c), d, c);
}
u16 satU(i32 x, bool c) {
  return u16(c ? (x < 0 ? 0 : x > 65535 ? 65535 : x) : x);
}
u16 satI(i32 x, bool c) {
  return u16(c ? (x < -32768 ? -32768 : x > 32767 ? 32767 : x) : x);
}
u16 addU(u16 a, u16 b, bool c) { return satU(i32(a) + b, c); }
u16 subU(u16 a, u16 b, bool c) { return satU(i32(a) - b, c); }
u16 addI(u16 a, u16 b, bool c) { return satI(i32(i16(a)) + i16(b), c); }
u16 subI(u16 a, u16 b, bool c) { return satI(i32(i16(a)) - i16(b), c); }
u16 mulLo(u16 a, u16 b, bool) { return u16(u32(a) * b); }
u16 madU(u16 a, u16 b, u16 d, bool c) {
  uint64_t r = uint64_t(a) * b + d;
  return u16(c && r > 65535 ? 65535 : r);
}
u16 madI(u16 a, u16 b, u16 d, bool c) {
  return satI(i32(i16(a)) * i16(b) + i16(d), c);
}
u16 minU(u16 a, u16 b, bool) { return a < b ? a : b; }
u16 maxU(u16 a, u16 b, bool) { return a > b ? a : b; }
u16 minI(u16 a, u16 b, bool) { return u16(i16(a) < i16(b) ? a : b); }
u16 maxI(u16 a, u16 b, bool) { return u16(i16(a) > i16(b) ? a : b); }
u16 shl(u16 a, u16 b, bool) { return u16(u32(b) << (a & 15)); }
u16 shr(u16 a, u16 b, bool) { return u16(b >> (a & 15)); }
u16 ashr(u16 a, u16 b, bool) { return u16(i16(b) >> (a & 15)); }

/// Handles packed f32: sources are register pairs, op_sel picks one of each.
template <auto F, size_t N> void pkF32(Wave &w, const Inst &i) {
  alignas(32) u32 t[3][2 * MaxLanes], part[3][2][MaxLanes], out[2 * MaxLanes];
  Halves hs(i);
  for (unsigned k = 0; k < N; ++k) {
    Operand o = i.src[k];
    const u32 *p = w.rows(o, 2, t[k]);
    bool constant = o.kind == Operand::Const;
    for (unsigned half = 0; half < 2; ++half) {
      // An inline constant serves both halves.
      const u32 *q = p + (hs.high[k][half] && !constant ? MaxLanes : 0);
      u32 flip = hs.neg[k][half] ? 0x80000000u : 0;
      for (unsigned l = 0; l < MaxLanes; ++l)
        part[k][half][l] = q[l] ^ flip;
    }
  }
  for (unsigned half = 0; half < 2; ++half) {
    GRETA_LANES
    for (unsigned l = 0; l < MaxLanes; ++l) {
      float a = llvm::bit_cast<float>(part[0][half][l]),
            b = llvm::bit_cast<float>(part[1][half][l]),
            c = N > 2 ? llvm::bit_cast<float>(part[2][half][l]) : 0.f;
      out[half * MaxLanes + l] = llvm::bit_cast<u32>(F(a, b, c));
    }
  }
  if (i.has(Clamp))
    for (u32 &x : out)
      x = llvm::bit_cast<u32>(
          applyOutput(llvm::bit_cast<float>(x), 0, true, w.dx10Clamp));
  writeRows(w, w.v[i.dst[0].index], out, 2);
}
float fmaF(float a, float b, float c) {
  return __builtin_elementwise_fma(a, b, c);
}
float addF(float a, float b, float) { return a + b; }
float mulF(float a, float b, float) { return a * b; }
void pkMov(Wave &w, const Inst &i) {
  alignas(32) u32 t[2][2 * MaxLanes], out[2 * MaxLanes];
  for (unsigned k = 0; k < 2; ++k) {
    const u32 *p = w.rows(i.src[k], 2, t[k]);
    // Source 0 gives the low result, source 1 the high one.
    std::memcpy(out + k * MaxLanes, p + (i.opSel >> k & 1 ? MaxLanes : 0),
                MaxLanes * sizeof(u32));
  }
  writeRows(w, w.v[i.dst[0].index], out, 2);
}

/// Handles fma_mix: op_sel_hi says f16, op_sel which half, neg_lo negates,
/// neg_hi is abs.
template <int To> void mix(Wave &w, const Inst &i) {
  alignas(32) u32 t[3][MaxLanes];
  alignas(32) float x[3][MaxLanes];
  alignas(32) u32 out[MaxLanes];
  for (unsigned k = 0; k < 3; ++k) {
    const Operand &o = i.src[k];
    const u32 *p = w.rows(o, 1, t[k]);
    bool small = i.opSelHi >> k & 1, high = i.opSel >> k & 1;
    bool neg = o.neg || (i.negLo >> k & 1), abs = o.abs || (i.negHi >> k & 1);
    for (unsigned l = 0; l < MaxLanes; ++l) {
      u16 h = u16(p[l] >> (high ? 16 : 0));
      float v = small ? f(h) : llvm::bit_cast<float>(p[l]);
      v = abs ? std::fabs(v) : v;
      x[k][l] = neg ? -v : v;
    }
  }
  u32 *d = w.v[i.dst[0].index];
  for (unsigned l = 0; l < MaxLanes; ++l) {
    float r = std::fma(x[0][l], x[1][l], x[2][l]);
    if (i.has(Clamp))
      r = applyOutput(r, 0, true, w.dx10Clamp);
    u32 h = floatToHalf(r);
    out[l] = To == 0   ? llvm::bit_cast<u32>(r)
             : To == 1 ? (d[l] & 0xffff0000) | h
                       : (d[l] & 0xffff) | h << 16;
  }
  writeRows(w, d, out, 1);
}

template <auto F> void dot(Wave &w, const Inst &i) {
  alignas(32) u32 t[3][MaxLanes], out[MaxLanes];
  const u32 *p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = w.rows(i.src[k], 1, t[k]);
  for (unsigned l = 0; l < MaxLanes; ++l)
    out[l] = F(w, i, p[0][l], p[1][l], p[2][l]);
  writeRows(w, w.v[i.dst[0].index], out, 1);
}
float part(const Inst &i, u32 x, unsigned k, unsigned half, bool bf) {
  // By default (op_sel = 0, op_sel_hi = 1) the first product takes low halves
  // and the second high ones.
  bool high = (half ? i.opSelHi : i.opSel) >> k & 1;
  bool neg = (half ? i.negHi : i.negLo) >> k & 1;
  u16 h = u16(x >> (high ? 16 : 0));
  float v = bf ? bf16ToFloat(h) : f(h);
  return neg ? -v : v;
}
/// Flushes f32 denormals to zero.
float flush(float x) {
  u32 b = llvm::bit_cast<u32>(x);
  return llvm::bit_cast<float>((b & 0x7f800000) ? b : b & 0x80000000);
}
template <bool Bf> u32 dot2(const Wave &w, const Inst &i, u32 a, u32 b, u32 c) {
  float acc = llvm::bit_cast<float>(c);
  if (i.negLo >> 2 & 1)
    acc = -acc;
  // The f16 form flushes the f32 operand and its result whatever the mode
  // (LLVM's SIISelLowering, performFMACombine). gfx90a also flushes the f16
  // operands (PyTorch, "Numerical accuracy", MI200).
  bool inputs = !Bf && w.chip->family == Family::GFX90A;
  auto value = [&](unsigned k, u32 x, unsigned half) {
    float v = part(i, x, k, half, Bf);
    return inputs && std::fabs(v) < 0x1p-14f ? std::copysign(0.f, v) : v;
  };
  acc = Bf ? acc : flush(acc);
  float r = std::fma(value(0, a, 0), value(1, b, 0),
                     std::fma(value(0, a, 1), value(1, b, 1), acc));
  r = Bf ? r : flush(r);
  return llvm::bit_cast<u32>(applyOutput(r, 0, i.has(Clamp), w.dx10Clamp));
}
/// Takes f16 or bf16 inputs, accumulator and result. Modifiers are scalar;
/// op_sel picks the halves of src2 and of the destination.
template <bool Bf> void dot2Half(Wave &w, const Inst &i) {
  alignas(32) u32 t[3][MaxLanes], out[MaxLanes];
  const u32 *p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = w.rows(i.src[k], 1, t[k]);
  auto value = [&](unsigned k, u32 x, bool high) {
    u16 h = u16(high ? x >> 16 : x);
    h = u16(i.src[k].abs ? h & 0x7fff : h) ^ (i.src[k].neg ? 0x8000 : 0);
    return Bf ? bf16ToFloat(h) : f(h);
  };
  FpScope scope(w, true);
  bool highC = (i.opSel & 4) || i.src[2].hi;
  for (unsigned l = 0; l < MaxLanes; ++l) {
    float r = value(2, p[2][l], highC);
    for (bool high : {true, false})
      r = std::fma(value(0, p[0][l], high), value(1, p[1][l], high), r);
    out[l] = Bf ? floatToBf16(r) : floatToHalf(r);
  }
  writeHalves(w, i, w.v[i.dst[0].index], out);
}
/// Does integer dots. neg_lo tells the sign in iu forms, else the name does.
template <unsigned Bits, int Kind>
u32 dotInt(const Wave &, const Inst &i, u32 a, u32 b, u32 c) {
  bool signedA = Kind == 1 || (Kind == 2 && (i.negLo & 1));
  bool signedB = Kind == 1 || (Kind == 2 && (i.negLo & 2));
  auto get = [](u32 x, unsigned k, bool sign) {
    u32 v = x >> (Bits * k) & ((1u << Bits) - 1);
    return sign && (v >> (Bits - 1)) ? int64_t(v) - (1 << Bits) : int64_t(v);
  };
  bool signedC = Kind != 0;
  int64_t r = signedC ? int64_t(i32(c)) : int64_t(c);
  for (unsigned k = 0; k < 32 / Bits; ++k)
    r += get(a, k, signedA) * get(b, k, signedB);
  if (i.has(Clamp))
    r = signedC ? (r < INT32_MIN   ? INT32_MIN
                   : r > INT32_MAX ? INT32_MAX
                                   : r)
                : (r > UINT32_MAX ? int64_t(UINT32_MAX) : r);
  return u32(r);
}
template <bool Bf8A, bool Bf8B>
u32 dotFp8(const Wave &w, const Inst &, u32 a, u32 b, u32 c) {
  float acc = llvm::bit_cast<float>(c);
  for (unsigned k = 0; k < 32; k += 8)
    acc = std::fma(fp8ToFloat(uint8_t(a >> k), Bf8A, w.chip->fp8Fnuz),
                   fp8ToFloat(uint8_t(b >> k), Bf8B, w.chip->fp8Fnuz), acc);
  return llvm::bit_cast<u32>(acc);
}

#define PK2(name, fn, fl) {name, pk<fn, fl, 2>, "p=pp", 0, Pk16, Unit::Valu}
#define PK3(name, fn, fl) {name, pk<fn, fl, 3>, "p=ppp", 0, Pk16, Unit::Valu}
#define DOT(name, fn) {name, dot<fn>, "i=ppi", 0, Pk16, Unit::Valu}
#define DOTC(name, fn) {name, dot<fn>, "i=ppi", 0, Pk16 | Tied, Unit::Valu}

const OpInfo table[] = {
    PK2("v_pk_add_f16", addH, true),
    PK2("v_pk_mul_f16", mulH, true),
    PK3("v_pk_fma_f16", fmaH, true),
    {"v_pk_fmac_f16", pk<fmaH, true, 3>, "p=ppp", 0, Pk16 | Tied, Unit::Valu},
    PK2("v_pk_min_f16", minH, true),
    PK2("v_pk_max_f16", maxH, true),
    PK2("v_pk_min_num_f16", minH, true),
    PK2("v_pk_max_num_f16", maxH, true),
    PK2("v_pk_minimum_f16", minimumH, true),
    PK2("v_pk_maximum_f16", maximumH, true),
    PK3("v_pk_minimum3_f16", minimum3H, true),
    PK3("v_pk_maximum3_f16", maximum3H, true),
    PK2("v_pk_add_u16", addU, false),
    PK2("v_pk_sub_u16", subU, false),
    PK2("v_pk_add_i16", addI, false),
    PK2("v_pk_sub_i16", subI, false),
    PK2("v_pk_mul_lo_u16", mulLo, false),
    PK3("v_pk_mad_u16", madU, false),
    PK3("v_pk_mad_i16", madI, false),
    PK2("v_pk_min_u16", minU, false),
    PK2("v_pk_max_u16", maxU, false),
    PK2("v_pk_min_i16", minI, false),
    PK2("v_pk_max_i16", maxI, false),
    PK2("v_pk_lshlrev_b16", shl, false),
    PK2("v_pk_lshrrev_b16", shr, false),
    PK2("v_pk_ashrrev_i16", ashr, false),
    {"v_pk_fma_f32", pkF32<fmaF, 3>, "q=qqq", 0, Pk16, Unit::Valu},
    {"v_pk_add_f32", pkF32<addF, 2>, "q=qq", 0, Pk16, Unit::Valu},
    {"v_pk_mul_f32", pkF32<mulF, 2>, "q=qq", 0, Pk16, Unit::Valu},
    {"v_pk_mov_b32", pkMov, "q=qq", 0, Pk16, Unit::Valu},
    {"v_fma_mix_f32", mix<0>, "f=fff", 0, Pk16 | NoSelHi, Unit::Valu},
    {"v_fma_mixlo_f16", mix<1>, "f=fff", 0, Pk16 | NoSelHi, Unit::Valu},
    {"v_fma_mixhi_f16", mix<2>, "f=fff", 0, Pk16 | NoSelHi, Unit::Valu},
    DOT("v_dot2_f32_f16", dot2<false>),
    DOTC("v_dot2c_f32_f16", dot2<false>),
    DOTC("v_dot2acc_f32_f16", dot2<false>),
    DOT("v_dot2_f32_bf16", dot2<true>),
    DOTC("v_dot2c_f32_bf16", dot2<true>),
    DOTC("v_dot2acc_f32_bf16", dot2<true>),
    {"v_dot2_f16_f16", dot2Half<false>, "i=ppi", 0, Pk16, Unit::Valu},
    {"v_dot2_bf16_bf16", dot2Half<true>, "i=yyy", 0, Pk16, Unit::Valu},
    DOT("v_dot2_i32_i16", (dotInt<16, 1>)),
    DOT("v_dot2_u32_u16", (dotInt<16, 0>)),
    DOTC("v_dot2c_i32_i16", (dotInt<16, 1>)),
    DOT("v_dot4_i32_i8", (dotInt<8, 1>)),
    DOT("v_dot4_u32_u8", (dotInt<8, 0>)),
    DOT("v_dot4_i32_iu8", (dotInt<8, 2>)),
    DOTC("v_dot4c_i32_i8", (dotInt<8, 1>)),
    DOT("v_dot8_i32_i4", (dotInt<4, 1>)),
    DOT("v_dot8_u32_u4", (dotInt<4, 0>)),
    DOT("v_dot8_i32_iu4", (dotInt<4, 2>)),
    DOTC("v_dot8c_i32_i4", (dotInt<4, 1>)),
    DOT("v_dot4_f32_fp8_fp8", (dotFp8<false, false>)),
    DOT("v_dot4_f32_fp8_bf8", (dotFp8<false, true>)),
    DOT("v_dot4_f32_bf8_fp8", (dotFp8<true, false>)),
    DOT("v_dot4_f32_bf8_bf8", (dotFp8<true, true>)),
};

} // namespace

OpTable greta::sim::vop3pOps() { return table; }
