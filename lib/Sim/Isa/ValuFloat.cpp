//===- ValuFloat.cpp - vector f32 and f64 instructions --------------------===//
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;

template <class T> T add(T a, T b) { return a + b; }
template <class T> T sub(T a, T b) { return a - b; }
template <class T> T subrev(T a, T b) { return b - a; }
template <class T> T mul(T a, T b) { return a * b; }
template <class T> T fma_(T a, T b, T c) {
  return __builtin_elementwise_fma(a, b, c);
}
float mulLegacy(float a, float b) { return a == 0 || b == 0 ? 0.f : a * b; }
float fmaLegacy(float a, float b, float c) {
  return a == 0 || b == 0 ? c : __builtin_fmaf(a, b, c);
}
template <class T> T quiet(T x) { return x + x; }
/// Does IEEE minNum/maxNum: a NaN operand gives the other; -0 < +0.
template <class T> T min_(T a, T b) {
  T r = a < b ? a : b;
  r = a == b ? (std::signbit(a) ? a : b) : r;
  r = a != a ? b : r;
  return b != b ? a : r;
}
template <class T> T max_(T a, T b) {
  T r = a > b ? a : b;
  r = a == b ? (std::signbit(a) ? b : a) : r;
  r = a != a ? b : r;
  return b != b ? a : r;
}
/// Does IEEE-754-2019 minimum/maximum: NaN wins.
template <class T> T minimum(T a, T b) {
  return a != a ? quiet(a) : b != b ? quiet(b) : min_(a, b);
}
template <class T> T maximum(T a, T b) {
  return a != a ? quiet(a) : b != b ? quiet(b) : max_(a, b);
}
template <auto F, auto G> float three(float a, float b, float c) {
  return G(F(a, b), c);
}
float med3(float a, float b, float c) {
  if (a != a || b != b || c != c)
    return min_(min_(a, b), c);
  return max_(min_(a, b), min_(max_(a, b), c));
}
template <class T> T ceil_(T a) { return std::ceil(a); }
template <class T> T floor_(T a) { return std::floor(a); }
template <class T> T trunc_(T a) { return std::trunc(a); }
template <class T> T rndne(T a) { return std::nearbyint(a); }
float fract(float a) {
  float r = a - std::floor(a);
  return r < 0x1.fffffep-1f || r != r ? r : 0x1.fffffep-1f;
}
double fract64(double a) {
  double r = a - std::floor(a);
  return r < 0x1.fffffffffffffp-1 || r != r ? r : 0x1.fffffffffffffp-1;
}
/// The transcendental unit takes and gives no f32 denormals.
float flush(float x) {
  u32 b = llvm::bit_cast<u32>(x);
  return llvm::bit_cast<float>((b & 0x7f800000) ? b : b & 0x80000000);
}
/// Multiplies and adds as before fma: rounded between, without denormals.
float mad(float a, float b, float c) {
  volatile float p = flush(a) * flush(b);
  return flush(flush(p) + flush(c));
}
float madLegacy(float a, float b, float c) {
  bool zero = flush(a) == 0 || flush(b) == 0;
  return zero ? mad(0, 0, c) : mad(a, b, c);
}
float rcp(float a) { return flush(1.f / flush(a)); }
float rsq(float a) { return float(1. / std::sqrt(double(flush(a)))); }
float sqrt_(float a) { return std::sqrt(flush(a)); }
float exp2_(float a) { return flush(std::exp2(flush(a))); }
float log2_(float a) { return std::log2(flush(a)); }
float sin_(float a) { return float(std::sin(angle(a))); }
float cos_(float a) { return float(std::cos(angle(a))); }
double rcp64(double a) { return 1. / a; }
double rsq64(double a) { return 1. / std::sqrt(a); }
double sqrt64(double a) { return std::sqrt(a); }
template <class T> T ldexp_(T a, int32_t b) {
  return std::ldexp(a, b < -5000 ? -5000 : b > 5000 ? 5000 : b);
}
template <class T> int32_t frexpExp(T a) {
  int e = 0;
  if (!(a - a == 0) || a == 0)
    return 0;
  std::frexp(a, &e);
  return e;
}
template <class T> T frexpMant(T a) {
  int e;
  return a - a == 0 ? std::frexp(a, &e) : a;
}

/// Does the ISA manual's pseudo code of division.
template <class T> T divFixup(T p, T b, T a) {
  bool sign = std::signbit(b) != std::signbit(a);
  auto signedValue = [&](T x) { return sign ? -x : x; };
  if (a != a)
    return quiet(a);
  if (b != b)
    return quiet(b);
  if (b == 0 && a == 0)
    return std::numeric_limits<T>::quiet_NaN();
  if (std::isinf(a) && std::isinf(b))
    return std::numeric_limits<T>::quiet_NaN();
  if (b == 0 || std::isinf(a))
    return signedValue(std::numeric_limits<T>::infinity());
  if (std::isinf(b) || a == 0)
    return signedValue(T(0));
  int ea = std::ilogb(a), eb = std::ilogb(b);
  int limit = sizeof(T) == 8 ? 1075 : 150;
  if (ea - eb < -limit)
    return signedValue(T(0));
  // The quotient is too large for the type, whatever its mantissa.
  if (ea - eb > (sizeof(T) == 8 ? 1024 : 128))
    return signedValue(std::numeric_limits<T>::infinity());
  return sign ? -std::fabs(p) : std::fabs(p);
}

/// Returns the biased exponent without regard to the denormal mode.
int biased(float x) { return int(llvm::bit_cast<u32>(x) >> 23 & 255); }
int biased(double x) { return int(llvm::bit_cast<uint64_t>(x) >> 52 & 2047); }
template <class T> bool denormal(T x) { return biased(x) == 0 && x != 0; }

template <class T> void divScale(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[3][2 * MaxLanes];
  const uint32_t *p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = fetch<T>(w, i.src[k], t[k]);
  constexpr int shift = sizeof(T) == 8 ? 128 : 64;
  constexpr int top = sizeof(T) == 8 ? 768 : 96;
  constexpr int mantissa = sizeof(T) == 8 ? 52 : 23;
  uint64_t vcc = 0;
  uint32_t *d = w.v[i.dst[0].index];
  FpScope scope(w, sizeof(T) == 8);
  forLanes(w, [&](unsigned l) {
    T s0 = LaneType<T>::load(p[0], l), s1 = LaneType<T>::load(p[1], l),
      s2 = LaneType<T>::load(p[2], l); // s1: denominator, s2: numerator
    T r = s0;
    bool flag = false;
    if (s2 == 0 || s1 == 0) {
      r = std::numeric_limits<T>::quiet_NaN();
    } else if (biased(s2) - biased(s1) >= top) {
      flag = true;
      if (s0 == s1)
        r = std::ldexp(s0, shift);
    } else if (denormal(s1)) {
      r = std::ldexp(s0, shift);
    } else if (denormal(T(1) / s1) && denormal(T(s2 / s1))) {
      // The manuals scale up, which gives infinity and never a right quotient.
      flag = true;
      if (s0 == s1)
        r = std::ldexp(s0, -shift);
    } else if (denormal(T(1) / s1)) {
      r = std::ldexp(s0, -shift);
    } else if (denormal(T(s2 / s1))) {
      flag = true;
      if (s0 == s2)
        r = std::ldexp(s0, shift);
    } else if (biased(s2) <= mantissa) {
      r = std::ldexp(s0, shift);
    }
    vcc |= uint64_t(flag) << l;
    LaneType<T>::store(d, l, r);
  });
  w.setMask(i.dst[1], vcc);
}
template <class T> void divFmas(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[3][2 * MaxLanes];
  const uint32_t *p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = fetch<T>(w, i.src[k], t[k]);
  uint64_t vcc = w.wave32 ? w.s[slot::VCC] : w.s64(slot::VCC);
  uint32_t *d = w.v[i.dst[0].index];
  FpScope scope(w, sizeof(T) == 8);
  forLanes(w, [&](unsigned l) {
    T a = LaneType<T>::load(p[0], l), b = LaneType<T>::load(p[1], l),
      c = LaneType<T>::load(p[2], l);
    T r = std::fma(a, b, c);
    constexpr int scale = sizeof(T) == 8 ? 128 : 64;
    constexpr int bias = sizeof(T) == 8 ? 1023 : 127;
    if (vcc >> l & 1) // undo div_scale, which moved the quotient towards 1
      r = std::ldexp(r, biased(c) > bias ? scale : -scale);
    LaneType<T>::store(d, l, r);
  });
}
double trigPreop(double a, u32 b) {
  // 2/pi has 1201 bits here, as in the ISA manual; segment b & 31 has 53 bits.
  static const u32 digits[] = {
      0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041,
      0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C,
      0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
      0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
      0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D,
      0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08,
      0x56033046, 0xFC7B6BAB, 0xF0CFBC21};
  constexpr int Bits = 1201;
  int shift = int(b & 31) * 53;
  if (biased(a) > 1077)
    shift += biased(a) - 1077;
  double r = 0;
  for (int bit = shift; bit < shift + 53; ++bit)
    r = r * 2 + (bit < Bits ? digits[bit / 32] >> (31 - bit % 32) & 1 : 0);
  int scale = -53 - shift;
  if (biased(a) >= 1968)
    scale += 128;
  return std::ldexp(r, scale);
}

#define BOTH(name, f)                                                          \
  valuOp<f<float>>(name "_f32"), valuOp<f<double>>(name "_f64")
#define T32(name, f) valuOp<f>(name, 0, Unit::Trans)

const OpInfo table[] = {
    BOTH("v_add", add),
    BOTH("v_mul", mul),
    valuOp<sub<float>>("v_sub_f32"),
    valuOp<subrev<float>>("v_subrev_f32"),
    BOTH("v_fma", fma_),
    valuOp<fma_<float>>("v_fmac_f32", Tied),
    valuOp<fma_<double>>("v_fmac_f64", Tied),
    valuOp<fma_<float>>("v_fmaak_f32"),
    valuOp<fma_<float>>("v_fmamk_f32"),
    valuOp<mad>("v_mad_f32"),
    valuOp<mad>("v_mac_f32", Tied),
    valuOp<mad>("v_madak_f32"),
    valuOp<mad>("v_madmk_f32"),
    valuOp<madLegacy>("v_mad_legacy_f32"),
    valuOp<mulLegacy>("v_mul_legacy_f32"),
    valuOp<mulLegacy>("v_mul_dx9_zero_f32"),
    valuOp<fmaLegacy>("v_fma_legacy_f32"),
    valuOp<fmaLegacy>("v_fma_dx9_zero_f32"),
    valuOp<fmaLegacy>("v_fmac_legacy_f32", Tied),
    valuOp<fmaLegacy>("v_fmac_dx9_zero_f32", Tied),
    BOTH("v_min", min_),
    BOTH("v_max", max_),
    BOTH("v_min_num", min_),
    BOTH("v_max_num", max_),
    BOTH("v_minimum", minimum),
    BOTH("v_maximum", maximum),
    valuOp<three<min_<float>, min_<float>>>("v_min3_f32"),
    valuOp<three<max_<float>, max_<float>>>("v_max3_f32"),
    valuOp<three<min_<float>, min_<float>>>("v_min3_num_f32"),
    valuOp<three<max_<float>, max_<float>>>("v_max3_num_f32"),
    valuOp<three<min_<float>, max_<float>>>("v_minmax_f32"),
    valuOp<three<max_<float>, min_<float>>>("v_maxmin_f32"),
    valuOp<three<min_<float>, max_<float>>>("v_minmax_num_f32"),
    valuOp<three<max_<float>, min_<float>>>("v_maxmin_num_f32"),
    valuOp<three<minimum<float>, minimum<float>>>("v_minimum3_f32"),
    valuOp<three<maximum<float>, maximum<float>>>("v_maximum3_f32"),
    valuOp<three<minimum<float>, maximum<float>>>("v_minimummaximum_f32"),
    valuOp<three<maximum<float>, minimum<float>>>("v_maximumminimum_f32"),
    valuOp<med3>("v_med3_f32"),
    valuOp<med3>("v_med3_num_f32"),
    BOTH("v_ceil", ceil_),
    BOTH("v_floor", floor_),
    BOTH("v_trunc", trunc_),
    BOTH("v_rndne", rndne),
    valuOp<fract>("v_fract_f32"),
    valuOp<fract64>("v_fract_f64"),
    T32("v_rcp_f32", rcp),
    T32("v_rcp_iflag_f32", rcp),
    T32("v_rsq_f32", rsq),
    T32("v_sqrt_f32", sqrt_),
    T32("v_exp_f32", exp2_),
    T32("v_exp_legacy_f32", exp2_),
    T32("v_log_legacy_f32", log2_),
    T32("v_log_f32", log2_),
    T32("v_sin_f32", sin_),
    T32("v_cos_f32", cos_),
    T32("v_rcp_f64", rcp64),
    T32("v_rsq_f64", rsq64),
    T32("v_sqrt_f64", sqrt64),
    valuOp<ldexp_<float>>("v_ldexp_f32"),
    valuOp<ldexp_<double>>("v_ldexp_f64"),
    valuOp<frexpExp<float>>("v_frexp_exp_i32_f32"),
    valuOp<frexpExp<double>>("v_frexp_exp_i32_f64"),
    valuOp<frexpMant<float>>("v_frexp_mant_f32"),
    valuOp<frexpMant<double>>("v_frexp_mant_f64"),
    BOTH("v_div_fixup", divFixup),
    {"v_div_scale_f32", divScale<float>, "fm=fff", 0, 0, Unit::Valu},
    {"v_div_scale_f64", divScale<double>, "Dm=DDD", 0, 0, Unit::Valu},
    {"v_div_fmas_f32", divFmas<float>, "f=fff", 0, 0, Unit::Valu},
    {"v_div_fmas_f64", divFmas<double>, "D=DDD", 0, 0, Unit::Valu},
    valuOp<trigPreop>("v_trig_preop_f64"),
};

} // namespace

OpTable greta::sim::valuFloatOps() { return table; }
