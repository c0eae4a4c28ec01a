//===- IsaFloatRows.cpp - vector float instructions -----------------------===//
#include "IsaRows.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace greta::sim::test;
using u16 = uint16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;

#define R32(e)                                                                 \
  [](const Sources &s) -> u64 {                                                \
    [[maybe_unused]] float x = F(s.v[0]), y = F(s.v[1]), z = F(s.v[2]);        \
    return bits(float(e));                                                     \
  }
#define R64(e)                                                                 \
  [](const Sources &s) -> u64 {                                                \
    [[maybe_unused]] double x = D(s.v[0]), y = D(s.v[1]), z = D(s.v[2]);       \
    return bits(double(e));                                                    \
  }
// Halves are computed in double and rounded once.
#define R16(e)                                                                 \
  [](const Sources &s) -> u64 {                                                \
    [[maybe_unused]] double x = H(s.v[0]), y = H(s.v[1]), z = H(s.v[2]);       \
    return halfBits(e);                                                        \
  }
#define R(e) [](const Sources &s) -> u64 { return u64(e); }

template <class T> static T middle(T a, T b, T c) {
  if (a != a || b != b || c != c)
    return least(least(a, b), c);
  T v[] = {a, b, c};
  std::sort(v, v + 3, [](T a, T b) {
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  });
  return v[1];
}
template <class T> static T fraction(T x, T largest) {
  T r = x - std::floor(x);
  return r != r ? r : std::min(r, largest);
}
template <class T, class X> static T convert(X x) {
  if (x != x)
    return 0;
  double d = std::trunc(double(x));
  return T(std::clamp(d, double(std::numeric_limits<T>::min()),
                      double(std::numeric_limits<T>::max())));
}
template <class T> static i32 exponentOf(T x) {
  int e = 0;
  if (std::isfinite(x) && x != 0)
    (void)std::frexp(x, &e);
  return e;
}
template <class T> static T mantissaOf(T x) {
  int e;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
static float mad(float x, float y, float z, bool isZero = false) {
  volatile float product = isZero ? 0 : noDenormal(x) * noDenormal(y);
  return noDenormal(noDenormal(product) + noDenormal(z));
}
/// The table of the ISA manuals: sixteenths.
static float offset(u32 x) {
  static const float table[] = {
      0,    .0625f,  .125f,  .1875f,  .25f,  .3125f,  .375f,  .4375f,
      -.5f, -.4375f, -.375f, -.3125f, -.25f, -.1875f, -.125f, -.0625f};
  return table[x & 15];
}
/// Byte `at` of a word replaced by a number.
static u32 byte(float x, u32 at, u32 word) {
  u32 v = x != x ? 0 : u32(std::clamp(std::nearbyint(x), 0.f, 255.f)),
      shift = at % 4 * 8;
  return (word & ~(255u << shift)) | v << shift;
}
/// One rounding to bf16, to nearest even: of the bits above the lower half.
static u64 bf16(float x) {
  u32 b = u32(bits(x));
  if (x != x)
    return 0x7fc0;
  return b / 65536 +
         (b % 65536 > 0x8000 || (b % 65536 == 0x8000 && b / 65536 % 2));
}
static u64 norm(double x, double low, double scale) {
  x = x != x ? 0 : std::clamp(x, low, 1.);
  return u16(i32(std::nearbyint(float(x) * float(scale))));
}

constexpr unsigned Tied = IsaRow::Tied, Near = IsaRow::Approximate;

static const IsaRow rows[] = {
    {"v_add_f32", "f=ff", R32(x + y)},
    {"v_sub_f32", "f=ff", R32(x - y)},
    {"v_subrev_f32", "f=ff", R32(y - x)},
    {"v_mul_f32", "f=ff", R32(x * y)},
    {"v_fma_f32", "f=fff", R32(std::fma(x, y, z))},
    {"v_fmac_f32", "f=fff", R32(std::fma(x, y, z)), Tied},
    // The old multiply-add rounds twice and knows no denormals.
    {"v_mad_f32", "f=fff", R32(mad(x, y, z))},
    {"v_mac_f32", "f=fff", R32(mad(x, y, z)), Tied},
    {"v_mad_legacy_f32", "f=fff",
     R32(mad(x, y, z, noDenormal(x) == 0 || noDenormal(y) == 0))},
    {"v_mul_legacy_f32|v_mul_dx9_zero_f32", "f=ff",
     R32(x == 0 || y == 0 ? 0.f : x * y)},
    {"v_fma_legacy_f32|v_fma_dx9_zero_f32", "f=fff",
     R32(x == 0 || y == 0 ? z : std::fma(x, y, z))},
    {"v_fmac_legacy_f32|v_fmac_dx9_zero_f32", "f=fff",
     R32(x == 0 || y == 0 ? z : std::fma(x, y, z)), Tied},
    {"v_min_f32|v_min_num_f32", "f=ff", R32(least(x, y))},
    {"v_max_f32|v_max_num_f32", "f=ff", R32(most(x, y))},
    {"v_minimum_f32", "f=ff", R32(lower(x, y))},
    {"v_maximum_f32", "f=ff", R32(upper(x, y))},
    {"v_min3_f32|v_min3_num_f32", "f=fff", R32(least(least(x, y), z))},
    {"v_max3_f32|v_max3_num_f32", "f=fff", R32(most(most(x, y), z))},
    {"v_minimum3_f32", "f=fff", R32(lower(lower(x, y), z))},
    {"v_maximum3_f32", "f=fff", R32(upper(upper(x, y), z))},
    {"v_med3_f32|v_med3_num_f32", "f=fff", R32(middle(x, y, z))},
    {"v_minmax_f32|v_minmax_num_f32", "f=fff", R32(most(least(x, y), z))},
    {"v_maxmin_f32|v_maxmin_num_f32", "f=fff", R32(least(most(x, y), z))},
    {"v_minimummaximum_f32", "f=fff", R32(upper(lower(x, y), z))},
    {"v_maximumminimum_f32", "f=fff", R32(lower(upper(x, y), z))},
    {"v_ceil_f32", "f=f", R32(std::ceil(x))},
    {"v_floor_f32", "f=f", R32(std::floor(x))},
    {"v_trunc_f32", "f=f", R32(std::trunc(x))},
    {"v_rndne_f32", "f=f", R32(std::nearbyint(x))},
    {"v_fract_f32", "f=f", R32(fraction(x, 0x1.fffffep-1f))},
    {"v_ldexp_f32", "f=fu",
     R(bits(std::ldexp(F(s.v[0]), std::clamp(s.i(1), -999, 999))))},
    {"v_frexp_exp_i32_f32", "u=f", R(u32(exponentOf(F(s.v[0]))))},
    {"v_frexp_mant_f32", "f=f", R32(mantissaOf(x))},
    {"v_rcp_f32|v_rcp_iflag_f32", "f=f", R32(noDenormal(1 / noDenormal(x))),
     Near},
    {"v_rsq_f32", "f=f", R32(1 / std::sqrt(double(noDenormal(x)))), Near},
    {"v_sqrt_f32", "f=f", R32(std::sqrt(noDenormal(x))), Near},
    {"v_exp_f32|v_exp_legacy_f32", "f=f",
     R32(noDenormal(float(std::exp2(double(noDenormal(x)))))), Near},
    {"v_log_f32|v_log_legacy_f32", "f=f", R32(std::log2(double(noDenormal(x)))),
     Near},
    {"v_cvt_i32_f32", "u=f", R(u32(convert<i32>(F(s.v[0]))))},
    {"v_cvt_u32_f32", "u=f", R(convert<u32>(F(s.v[0])))},
    {"v_cvt_flr_i32_f32|v_cvt_floor_i32_f32", "u=f",
     R(u32(convert<i32>(std::floor(F(s.v[0])))))},
    {"v_cvt_rpi_i32_f32|v_cvt_nearest_i32_f32", "u=f",
     R(u32(convert<i32>(std::floor(F(s.v[0]) + .5f))))},
    {"v_cvt_pk_i16_f32", "u=ff",
     R(u16(convert<int16_t>(F(s.v[0]))) | u32(u16(convert<int16_t>(F(s.v[1]))))
                                              << 16)},
    {"v_cvt_pk_u16_f32", "u=ff",
     R(convert<u16>(F(s.v[0])) | u32(convert<u16>(F(s.v[1]))) << 16)},
    {"v_cvt_off_f32_i4", "f=u", R(bits(offset(s.u(0))))},
    {"v_cvt_pk_u8_f32", "u=fuu", R(byte(F(s.v[0]), s.u(1), s.u(2)))},
    {"v_cvt_pkaccum_u8_f32", "u=fuu", R(byte(F(s.v[0]), s.u(1), s.u(2))), Tied},
    {"v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32", "p=ff",
     R(truncatedHalf(F(s.v[0])) | truncatedHalf(F(s.v[1])) << 16)},
    {"v_cvt_pk_f16_f32", "p=ff",
     R(halfBits(F(s.v[0])) | halfBits(F(s.v[1])) << 16)},
    {"v_cvt_pk_bf16_f32", "y=ff", R(bf16(F(s.v[0])) | bf16(F(s.v[1])) << 16)},
    {"v_cvt_f32_bf16", "f=s", R(s.v[0] << 16)},
    {"v_cvt_f16_f32", "h=f", R(halfBits(F(s.v[0])))},
    {"v_cvt_f64_f32", "d=f", R(bits(double(F(s.v[0]))))},
    {"v_cvt_f32_f16", "f=h", R(bits(float(H(s.v[0]))))},
    {"v_cvt_f32_f64", "f=d", R(bits(float(D(s.v[0]))))},
    {"v_cvt_i32_f64", "u=d", R(u32(convert<i32>(D(s.v[0]))))},
    {"v_cvt_u32_f64", "u=d", R(convert<u32>(D(s.v[0])))},
    {"v_cvt_i16_f16", "s=h", R(u16(convert<int16_t>(H(s.v[0]))))},
    {"v_cvt_u16_f16", "s=h", R(convert<u16>(H(s.v[0])))},
    {"v_cvt_norm_i16_f16", "s=h", R(norm(H(s.v[0]), -1, 32767))},
    {"v_cvt_norm_u16_f16", "s=h", R(norm(H(s.v[0]), 0, 65535))},
    {"v_cvt_pknorm_i16_f32|v_cvt_pk_norm_i16_f32", "u=ff",
     R(norm(F(s.v[0]), -1, 32767) | norm(F(s.v[1]), -1, 32767) << 16)},
    {"v_cvt_pknorm_u16_f32|v_cvt_pk_norm_u16_f32", "u=ff",
     R(norm(F(s.v[0]), 0, 65535) | norm(F(s.v[1]), 0, 65535) << 16)},
    {"v_cvt_pknorm_i16_f16|v_cvt_pk_norm_i16_f16", "u=hh",
     R(norm(H(s.v[0]), -1, 32767) | norm(H(s.v[1]), -1, 32767) << 16)},
    {"v_cvt_pknorm_u16_f16|v_cvt_pk_norm_u16_f16", "u=hh",
     R(norm(H(s.v[0]), 0, 65535) | norm(H(s.v[1]), 0, 65535) << 16)},
    {"v_add_f64", "d=dd", R64(x + y)},
    {"v_mul_f64", "d=dd", R64(x * y)},
    {"v_fma_f64", "d=ddd", R64(std::fma(x, y, z))},
    {"v_fmac_f64", "d=ddd", R64(std::fma(x, y, z)), Tied},
    {"v_min_f64|v_min_num_f64", "d=dd", R64(least(x, y))},
    {"v_max_f64|v_max_num_f64", "d=dd", R64(most(x, y))},
    {"v_minimum_f64", "d=dd", R64(lower(x, y))},
    {"v_maximum_f64", "d=dd", R64(upper(x, y))},
    {"v_ceil_f64", "d=d", R64(std::ceil(x))},
    {"v_floor_f64", "d=d", R64(std::floor(x))},
    {"v_trunc_f64", "d=d", R64(std::trunc(x))},
    {"v_rndne_f64", "d=d", R64(std::nearbyint(x))},
    {"v_fract_f64", "d=d", R64(fraction(x, 0x1.fffffffffffffp-1))},
    {"v_ldexp_f64", "d=du",
     R(bits(std::ldexp(D(s.v[0]), std::clamp(s.i(1), -4999, 4999))))},
    {"v_frexp_exp_i32_f64", "u=d", R(u32(exponentOf(D(s.v[0]))))},
    {"v_frexp_mant_f64", "d=d", R64(mantissaOf(x))},
    {"v_rcp_f64", "d=d", R64(1 / x), Near},
    {"v_rsq_f64", "d=d", R64(1 / std::sqrt(x)), Near},
    {"v_sqrt_f64", "d=d", R64(std::sqrt(x)), Near},
    {"v_add_f16", "h=hh", R16(x + y)},
    {"v_sub_f16", "h=hh", R16(x - y)},
    {"v_subrev_f16", "h=hh", R16(y - x)},
    {"v_mul_f16", "h=hh", R16(x * y)},
    {"v_fma_f16|v_fma_legacy_f16", "h=hhh", R16(x * y + z)},
    {"v_fmac_f16", "h=hhh", R16(x * y + z), Tied},
    {"v_mad_f16|v_mad_legacy_f16", "h=hhh", R16(H(halfBits(x * y)) + z)},
    {"v_mac_f16", "h=hhh", R16(H(halfBits(x * y)) + z), Tied},
    {"v_min_f16|v_min_num_f16", "h=hh", R16(least(x, y))},
    {"v_max_f16|v_max_num_f16", "h=hh", R16(most(x, y))},
    {"v_minimum_f16", "h=hh", R16(lower(x, y))},
    {"v_maximum_f16", "h=hh", R16(upper(x, y))},
    {"v_min3_f16|v_min3_num_f16", "h=hhh", R16(least(least(x, y), z))},
    {"v_max3_f16|v_max3_num_f16", "h=hhh", R16(most(most(x, y), z))},
    {"v_minimum3_f16", "h=hhh", R16(lower(lower(x, y), z))},
    {"v_maximum3_f16", "h=hhh", R16(upper(upper(x, y), z))},
    {"v_med3_f16|v_med3_num_f16", "h=hhh", R16(middle(x, y, z))},
    {"v_minmax_f16|v_minmax_num_f16", "h=hhh", R16(most(least(x, y), z))},
    {"v_maxmin_f16|v_maxmin_num_f16", "h=hhh", R16(least(most(x, y), z))},
    {"v_minimummaximum_f16", "h=hhh", R16(upper(lower(x, y), z))},
    {"v_maximumminimum_f16", "h=hhh", R16(lower(upper(x, y), z))},
    {"v_ceil_f16", "h=h", R16(std::ceil(x))},
    {"v_floor_f16", "h=h", R16(std::floor(x))},
    {"v_trunc_f16", "h=h", R16(std::trunc(x))},
    {"v_rndne_f16", "h=h", R16(std::nearbyint(x))},
    {"v_fract_f16", "h=h", R16(fraction(x, 0x1.ffcp-1))},
    {"v_ldexp_f16", "h=hs", R(halfBits(std::ldexp(H(s.v[0]), s.t(1))))},
    {"v_frexp_exp_i16_f16", "s=h", R(u16(exponentOf(H(s.v[0]))))},
    {"v_frexp_mant_f16", "h=h", R16(mantissaOf(x))},
    {"v_rcp_f16", "h=h", R16(1 / x), Near},
    {"v_rsq_f16", "h=h", R16(1 / std::sqrt(x)), Near},
    {"v_sqrt_f16", "h=h", R16(std::sqrt(x)), Near},
    {"v_exp_f16", "h=h", R16(std::exp2(x)), Near},
    {"v_log_f16", "h=h", R16(std::log2(x)), Near},
};

llvm::ArrayRef<IsaRow> greta::sim::test::floatRows() { return rows; }
