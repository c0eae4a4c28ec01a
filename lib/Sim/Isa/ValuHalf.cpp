//===- ValuHalf.cpp - vector f16 and bf16 instructions --------------------===//
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

float f(Half x) { return halfToFloat(x.bits); }
Half h(float x) { return {floatToHalf(x)}; }

// f32 has more than twice f16's precision, so one f32 operation that is rounded
// again is the correctly rounded f16 operation.
Half add(Half a, Half b) { return h(f(a) + f(b)); }
Half sub(Half a, Half b) { return h(f(a) - f(b)); }
Half subrev(Half a, Half b) { return h(f(b) - f(a)); }
Half mul(Half a, Half b) { return h(f(a) * f(b)); }
Half fma_(Half a, Half b, Half c) {
  // The product is exact in double and the sum needs one rounding.
  return {doubleToHalf(double(f(a)) * double(f(b)) + double(f(c)))};
}
/// Rounds the product, too.
Half mad(Half a, Half b, Half c) { return add(mul(a, b), c); }
Half quiet(Half x) { return {uint16_t(x.bits | 0x200)}; }
bool nan(Half x) { return (x.bits & 0x7fff) > 0x7c00; }
/// Orders f16 values as integers; -0 < +0.
int32_t order(Half x) {
  int32_t m = x.bits & 0x7fff;
  return x.bits & 0x8000 ? -m - 1 : m;
}
Half min_(Half a, Half b) {
  Half r = order(a) < order(b) ? a : b;
  r = nan(a) ? b : r;
  return nan(b) ? a : r;
}
Half max_(Half a, Half b) {
  Half r = order(a) > order(b) ? a : b;
  r = nan(a) ? b : r;
  return nan(b) ? a : r;
}
Half minimum(Half a, Half b) {
  return nan(a) ? quiet(a) : nan(b) ? quiet(b) : min_(a, b);
}
Half maximum(Half a, Half b) {
  return nan(a) ? quiet(a) : nan(b) ? quiet(b) : max_(a, b);
}
template <auto F, auto G> Half three(Half a, Half b, Half c) {
  return G(F(a, b), c);
}
Half med3(Half a, Half b, Half c) {
  if (nan(a) || nan(b) || nan(c))
    return min_(min_(a, b), c);
  return max_(min_(a, b), min_(max_(a, b), c));
}
Half ceil_(Half a) { return h(std::ceil(f(a))); }
Half floor_(Half a) { return h(std::floor(f(a))); }
Half trunc_(Half a) { return h(std::trunc(f(a))); }
Half rndne(Half a) { return h(std::nearbyint(f(a))); }
Half fract(Half a) {
  float r = f(a) - std::floor(f(a));
  return h(r < 0x1.ffcp-1f || r != r ? r : 0x1.ffcp-1f);
}
Half rcp(Half a) { return h(1.f / f(a)); }
Half rsq(Half a) { return h(float(1. / std::sqrt(double(f(a))))); }
Half sqrt_(Half a) { return h(std::sqrt(f(a))); }
Half exp2_(Half a) { return h(std::exp2(f(a))); }
Half log2_(Half a) { return h(std::log2(f(a))); }
Half sin_(Half a) { return h(float(std::sin(angle(f(a))))); }
Half cos_(Half a) { return h(float(std::cos(angle(f(a))))); }
Half ldexp_(Half a, int16_t b) {
  return {doubleToHalf(std::ldexp(double(f(a)), b))};
}
int16_t frexpExp(Half a) {
  int e = 0;
  float x = f(a);
  if (x - x == 0 && x != 0)
    std::frexp(x, &e);
  return int16_t(e);
}
Half frexpMant(Half a) {
  int e;
  float x = f(a);
  return x - x == 0 ? h(std::frexp(x, &e)) : a;
}
Half divFixup(Half p, Half b, Half a) {
  float num = f(a), den = f(b);
  bool sign = std::signbit(num) != std::signbit(den);
  auto make = [&](float x) { return h(sign ? -x : x); };
  if (num != num)
    return quiet(a);
  if (den != den)
    return quiet(b);
  if ((num == 0 && den == 0) || (std::isinf(num) && std::isinf(den)))
    return {0xfe00};
  if (den == 0 || std::isinf(num))
    return make(INFINITY);
  if (num == 0 || std::isinf(den))
    return make(0.f);
  return make(std::fabs(f(p)));
}

#define TRANS(name, fn) valuOp<fn>(name, 0, Unit::Trans)

const OpInfo table[] = {
    valuOp<add>("v_add_f16"),
    valuOp<sub>("v_sub_f16"),
    valuOp<subrev>("v_subrev_f16"),
    valuOp<mul>("v_mul_f16"),
    valuOp<fma_>("v_fma_f16"),
    valuOp<fma_>("v_fmac_f16", Tied),
    valuOp<fma_>("v_fmaak_f16"),
    valuOp<fma_>("v_fmamk_f16"),
    valuOp<fma_>("v_fma_legacy_f16"),
    valuOp<mad>("v_mad_f16"),
    valuOp<mad>("v_mad_legacy_f16"),
    valuOp<mad>("v_mac_f16", Tied),
    valuOp<mad>("v_madak_f16"),
    valuOp<mad>("v_madmk_f16"),
    valuOp<min_>("v_min_f16"),
    valuOp<max_>("v_max_f16"),
    valuOp<min_>("v_min_num_f16"),
    valuOp<max_>("v_max_num_f16"),
    valuOp<minimum>("v_minimum_f16"),
    valuOp<maximum>("v_maximum_f16"),
    valuOp<three<min_, min_>>("v_min3_f16"),
    valuOp<three<max_, max_>>("v_max3_f16"),
    valuOp<three<min_, min_>>("v_min3_num_f16"),
    valuOp<three<max_, max_>>("v_max3_num_f16"),
    valuOp<three<min_, max_>>("v_minmax_f16"),
    valuOp<three<max_, min_>>("v_maxmin_f16"),
    valuOp<three<min_, max_>>("v_minmax_num_f16"),
    valuOp<three<max_, min_>>("v_maxmin_num_f16"),
    valuOp<three<minimum, minimum>>("v_minimum3_f16"),
    valuOp<three<maximum, maximum>>("v_maximum3_f16"),
    valuOp<med3>("v_med3_f16"),
    valuOp<med3>("v_med3_num_f16"),
    valuOp<ceil_>("v_ceil_f16"),
    valuOp<floor_>("v_floor_f16"),
    valuOp<trunc_>("v_trunc_f16"),
    valuOp<rndne>("v_rndne_f16"),
    valuOp<fract>("v_fract_f16"),
    TRANS("v_rcp_f16", rcp),
    TRANS("v_rsq_f16", rsq),
    TRANS("v_sqrt_f16", sqrt_),
    TRANS("v_exp_f16", exp2_),
    TRANS("v_log_f16", log2_),
    TRANS("v_sin_f16", sin_),
    TRANS("v_cos_f16", cos_),
    valuOp<ldexp_>("v_ldexp_f16"),
    valuOp<frexpExp>("v_frexp_exp_i16_f16"),
    valuOp<frexpMant>("v_frexp_mant_f16"),
    valuOp<divFixup>("v_div_fixup_f16"),
    valuOp<divFixup>("v_div_fixup_legacy_f16"),
    valuOp<three<minimum, maximum>>("v_minimummaximum_f16"),
    valuOp<three<maximum, minimum>>("v_maximumminimum_f16"),
};

} // namespace

OpTable greta::sim::valuHalfOps() { return table; }
