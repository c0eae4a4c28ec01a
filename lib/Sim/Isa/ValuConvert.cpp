//===- ValuConvert.cpp - conversions between number formats ---------------===//
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u16 = uint16_t;
using i16 = int16_t;

float f(Half x) { return halfToFloat(x.bits); }
Half h(float x) { return {floatToHalf(x)}; }

template <class T, class F> T saturate(F x) {
  constexpr F low = F(std::numeric_limits<T>::min());
  constexpr F high = F(std::numeric_limits<T>::max());
  if (x != x)
    return 0;
  if (x >= high)
    return std::numeric_limits<T>::max();
  return x <= low ? std::numeric_limits<T>::min() : T(x);
}
i32 f32ToI32(float x) { return saturate<i32>(double(x)); }
u32 f32ToU32(float x) { return saturate<u32>(double(x)); }
i32 f64ToI32(double x) { return saturate<i32>(x); }
u32 f64ToU32(double x) { return saturate<u32>(x); }
i16 f16ToI16(Half x) { return saturate<i16>(f(x)); }
u16 f16ToU16(Half x) { return saturate<u16>(f(x)); }
float i32ToF32(i32 x) { return float(x); }
float u32ToF32(u32 x) { return float(x); }
double i32ToF64(i32 x) { return double(x); }
double u32ToF64(u32 x) { return double(x); }
Half i16ToF16(i16 x) { return h(float(x)); }
Half u16ToF16(u16 x) { return h(float(x)); }
float f64ToF32(double x) { return float(x); }
double f32ToF64(float x) { return double(x); }
Half f32ToF16(float x) { return h(x); }
float f16ToF32(Half x) { return f(x); }
float bf16ToF32(BHalf x) { return bf16ToFloat(x.bits); }
i32 rpi(float x) { return f32ToI32(std::floor(x + .5f)); }
i32 flr(float x) { return f32ToI32(std::floor(x)); }
template <unsigned N> float ubyte(u32 x) { return float(x >> (8 * N) & 0xff); }
i32 i16ToI32(i16 x) { return x; }
u32 u16ToU32(u16 x) { return x; }
float offF32I4(u32 x) { return float(i32((x & 15) ^ 8) - 8) / 16.f; }
u32 cvtPkU8(float x, u32 b, u32 c) {
  u32 shift = 8 * (b & 3);
  u32 v = saturate<u32>(double(std::nearbyint(x)));
  return (c & ~(0xffu << shift)) | (v > 255 ? 255 : v) << shift;
}

// Packs two results into a word.
u32 two(u16 a, u16 b) { return a | u32(b) << 16; }
u32 pkBf16(float a, float b) { return two(floatToBf16(a), floatToBf16(b)); }
u32 pkF16(float a, float b) { return two(floatToHalf(a), floatToHalf(b)); }
/// Scales to fractions of the largest integer; NaN gives zero.
template <bool Signed> u16 normOf(float v) {
  float limit = Signed ? 32767.f : 65535.f;
  v = v != v ? 0.f : std::fmax(Signed ? -1.f : 0.f, std::fmin(1.f, v));
  return u16(i32(std::nearbyint(v * limit)));
}
template <bool Signed> u16 normOfHalf(Half x) { return normOf<Signed>(f(x)); }
template <bool Signed> u32 pkNorm(float a, float b) {
  return two(normOf<Signed>(a), normOf<Signed>(b));
}
template <bool Signed> u32 pkNormF16(Half a, Half b) {
  return pkNorm<Signed>(f(a), f(b));
}
u32 pkU16U32(u32 a, u32 b) {
  return two(u16(a > 65535 ? 65535 : a), u16(b > 65535 ? 65535 : b));
}
u32 pkI16I32(i32 a, i32 b) {
  auto n = [](i32 x) {
    return u16(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
  };
  return two(n(a), n(b));
}
u32 pkI16F32(float a, float b) {
  return two(u16(saturate<i16>(a)), u16(saturate<i16>(b)));
}
u32 pkU16F32(float a, float b) {
  return two(saturate<u16>(a), saturate<u16>(b));
}

void pkRtz(Wave &w, const Inst &i) {
  // These round to zero whatever the mode says.
  setControl(hostControl(3, 3));
  valu<pkF16>(w, i);
  setControl(w.csr32);
}

#define RAW(name, fn, types, param) {name, fn, types, param, 0, Unit::Valu}

const OpInfo table[] = {
    valuOp<f32ToI32>("v_cvt_i32_f32"),
    valuOp<f32ToU32>("v_cvt_u32_f32"),
    valuOp<f64ToI32>("v_cvt_i32_f64"),
    valuOp<f64ToU32>("v_cvt_u32_f64"),
    valuOp<f16ToI16>("v_cvt_i16_f16"),
    valuOp<f16ToU16>("v_cvt_u16_f16"),
    valuOp<i32ToF32>("v_cvt_f32_i32"),
    valuOp<u32ToF32>("v_cvt_f32_u32"),
    valuOp<i32ToF64>("v_cvt_f64_i32"),
    valuOp<u32ToF64>("v_cvt_f64_u32"),
    valuOp<i16ToF16>("v_cvt_f16_i16"),
    valuOp<u16ToF16>("v_cvt_f16_u16"),
    valuOp<f64ToF32>("v_cvt_f32_f64"),
    valuOp<f32ToF64>("v_cvt_f64_f32"),
    valuOp<f32ToF16>("v_cvt_f16_f32"),
    valuOp<f16ToF32>("v_cvt_f32_f16"),
    valuOp<bf16ToF32>("v_cvt_f32_bf16"),
    valuOp<rpi>("v_cvt_rpi_i32_f32"),
    valuOp<rpi>("v_cvt_nearest_i32_f32"),
    valuOp<flr>("v_cvt_flr_i32_f32"),
    valuOp<flr>("v_cvt_floor_i32_f32"),
    valuOp<ubyte<0>>("v_cvt_f32_ubyte0"),
    valuOp<ubyte<1>>("v_cvt_f32_ubyte1"),
    valuOp<ubyte<2>>("v_cvt_f32_ubyte2"),
    valuOp<ubyte<3>>("v_cvt_f32_ubyte3"),
    valuOp<offF32I4>("v_cvt_off_f32_i4"),
    valuOp<i16ToI32>("v_cvt_i32_i16"),
    valuOp<u16ToU32>("v_cvt_u32_u16"),
    valuOp<cvtPkU8>("v_cvt_pk_u8_f32"),
    valuOp<cvtPkU8>("v_cvt_pkaccum_u8_f32", Tied),
    valuOp<pkBf16>("v_cvt_pk_bf16_f32"),
    valuOp<pkF16>("v_cvt_pk_f16_f32"),
    valuOp<pkNorm<true>>("v_cvt_pknorm_i16_f32"),
    valuOp<pkNorm<false>>("v_cvt_pknorm_u16_f32"),
    valuOp<pkNorm<true>>("v_cvt_pk_norm_i16_f32"),
    valuOp<pkNorm<false>>("v_cvt_pk_norm_u16_f32"),
    valuOp<normOfHalf<true>>("v_cvt_norm_i16_f16"),
    valuOp<normOfHalf<false>>("v_cvt_norm_u16_f16"),
    valuOp<pkNormF16<true>>("v_cvt_pknorm_i16_f16"),
    valuOp<pkNormF16<false>>("v_cvt_pknorm_u16_f16"),
    valuOp<pkNormF16<true>>("v_cvt_pk_norm_i16_f16"),
    valuOp<pkNormF16<false>>("v_cvt_pk_norm_u16_f16"),
    valuOp<pkU16U32>("v_cvt_pk_u16_u32"),
    valuOp<pkI16I32>("v_cvt_pk_i16_i32"),
    valuOp<pkI16F32>("v_cvt_pk_i16_f32"),
    valuOp<pkU16F32>("v_cvt_pk_u16_f32"),
    RAW("v_cvt_pkrtz_f16_f32", pkRtz, "i=ff", 0),
    RAW("v_cvt_pk_rtz_f16_f32", pkRtz, "i=ff", 0),
};

} // namespace

OpTable greta::sim::valuConvertOps() { return table; }
