//===- SaluFloat.cpp - scalar float instructions (gfx11.5, gfx12) ---------===//
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;

/// Reads a scalar operand through a one-lane row, for a lane function.
template <class T> T scalarValue(const Wave &w, const Operand &o) {
  uint32_t x = w.scalar(o);
  if (o.hi)
    x >>= 16;
  constexpr uint32_t sign = is16<T>() ? 0x8000u : 0x80000000u;
  if (isFloatType<T>()) {
    if (o.abs)
      x &= ~sign;
    if (o.neg)
      x ^= sign;
  }
  return LaneType<T>::load(&x, 0);
}
template <auto F, class R, class... A, size_t... Is>
void run(Wave &w, const Inst &i, R (*)(A...), std::index_sequence<Is...>) {
  FpScope scope(w, anyHalf<R, A...>());
  uint32_t out = 0;
  R result = F(scalarValue<A>(w, i.src[Is])...);
  if constexpr (isFloatType<R>())
    if (i.omod || i.has(Clamp))
      result = outputModified(w, i, result);
  LaneType<R>::store(&out, 0, result);
  w.setScalar(i.dst[0], out);
  if (i.has(WritesExec))
    w.refreshExec();
}
template <auto F> void salu(Wave &w, const Inst &i) {
  run<F>(w, i, F, typename Traits<decltype(F)>::Seq{});
}
template <auto F> constexpr OpInfo op(const char *name, uint32_t flags = 0) {
  return {name, salu<F>, Traits<decltype(F)>::types, 0, flags, Unit::Salu};
}
template <auto F, class A> void cmpRun(Wave &w, const Inst &i, bool (*)(A, A)) {
  FpScope scope(w, anyHalf<A>());
  w.setScc(F(scalarValue<A>(w, i.src[0]), scalarValue<A>(w, i.src[1])));
}
template <auto F> void cmp(Wave &w, const Inst &i) { cmpRun<F>(w, i, F); }

float value(float x) { return x; }
float value(Half x) { return halfToFloat(x.bits); }
template <class T> T make(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return {floatToHalf(x)};
}
template <class T> T add(T a, T b) { return make<T>(value(a) + value(b)); }
template <class T> T sub(T a, T b) { return make<T>(value(a) - value(b)); }
template <class T> T mul(T a, T b) { return make<T>(value(a) * value(b)); }
/// Returns the other operand if one is NaN; -0 < +0.
float least(float a, float b) {
  if (a != a || b != b)
    return a != a ? b : a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T minNum(T a, T b) {
  return make<T>(least(value(a), value(b)));
}
template <class T> T maxNum(T a, T b) {
  return make<T>(-least(-value(a), -value(b)));
}
/// Returns a NaN operand as it is.
template <class T> T minimum(T a, T b) {
  float x = value(a), y = value(b);
  return x != x || y != y ? make<T>(NAN) : minNum(a, b);
}
template <class T> T maximum(T a, T b) {
  float x = value(a), y = value(b);
  return x != x || y != y ? make<T>(NAN) : maxNum(a, b);
}
float fma32(float a, float b, float c) { return std::fma(a, b, c); }
Half fma16(Half a, Half b, Half c) {
  return {doubleToHalf(
      std::fma(double(value(a)), double(value(b)), double(value(c))))};
}
float i2f(int32_t x) { return float(x); }
float u2f(u32 x) { return float(x); }
int32_t f2i(float x) {
  return x != x               ? 0
         : x >= 2147483648.f  ? INT32_MAX
         : x <= -2147483648.f ? INT32_MIN
                              : int32_t(x);
}
u32 f2u(float x) {
  return !(x > 0) ? 0 : x >= 4294967296.f ? UINT32_MAX : u32(x);
}
Half f2h(float x) { return {floatToHalf(x)}; }
float h2f(Half x) { return value(x); }
float hi2f(u32 x) { return halfToFloat(uint16_t(x >> 16)); }
template <class T> T ceil_(T x) { return make<T>(std::ceil(value(x))); }
template <class T> T floor_(T x) { return make<T>(std::floor(value(x))); }
template <class T> T trunc_(T x) { return make<T>(std::trunc(value(x))); }
template <class T> T rndne(T x) { return make<T>(std::nearbyint(value(x))); }
// The scalar transcendental unit (gfx12) has no f32 denormals.
float flush(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x;
}
template <class T> T exp2_(T x) {
  return make<T>(flush(std::exp2(flush(value(x)))));
}
template <class T> T log2_(T x) { return make<T>(std::log2(flush(value(x)))); }
template <class T> T rcp(T x) { return make<T>(flush(1.f / flush(value(x)))); }
template <class T> T rsq(T x) {
  return make<T>(float(1. / std::sqrt(double(flush(value(x))))));
}
template <class T> T sqrt_(T x) { return make<T>(std::sqrt(flush(value(x)))); }
u32 packRtz(float a, float b) {
  uint32_t back = currentControl();
  setControl(hostControl(3, 3));
  // Volatile keeps the conversions between the calls: the compiler does not
  // know that they depend on the control word.
  volatile float x = a, y = b;
  volatile u32 r = floatToHalf(x) | u32(floatToHalf(y)) << 16;
  setControl(back);
  return r;
}

template <class T, int Kind> bool test(T a, T b) {
  float x = value(a), y = value(b);
  switch (Kind) {
  case 0:
    return x < y;
  case 1:
    return x == y;
  case 2:
    return x <= y;
  case 3:
    return x > y;
  case 4:
    return x < y || x > y;
  case 5:
    return x >= y;
  case 6:
    return x == x && y == y;
  case 7:
    return x != x || y != y;
  case 8:
    return !(x >= y);
  case 9:
    return !(x < y || x > y);
  case 10:
    return !(x > y);
  case 11:
    return !(x <= y);
  case 12:
    return x != y;
  default:
    return !(x < y);
  }
}

#define TWO(name, f) op<f<float>>(name "_f32"), op<f<Half>>(name "_f16")
#define CMP(name, kind)                                                        \
  {"s_cmp_" name "_f32", cmp<test<float, kind>>, "=ff", 0, 0, Unit::Salu}, {   \
    "s_cmp_" name "_f16", cmp<test<Half, kind>>, "=hh", 0, 0, Unit::Salu       \
  }

const OpInfo table[] = {
    TWO("s_add", add),
    TWO("s_sub", sub),
    TWO("s_mul", mul),
    TWO("s_min", minNum),
    TWO("s_max", maxNum),
    TWO("s_min_num", minNum),
    TWO("s_max_num", maxNum),
    TWO("s_minimum", minimum),
    TWO("s_maximum", maximum),
    op<fma32>("s_fmac_f32", Tied),
    op<fma16>("s_fmac_f16", Tied),
    op<fma32>("s_fmaak_f32"),
    op<fma32>("s_fmamk_f32"),
    op<i2f>("s_cvt_f32_i32"),
    op<u2f>("s_cvt_f32_u32"),
    op<f2i>("s_cvt_i32_f32"),
    op<f2u>("s_cvt_u32_f32"),
    op<f2h>("s_cvt_f16_f32"),
    op<h2f>("s_cvt_f32_f16"),
    op<hi2f>("s_cvt_hi_f32_f16"),
    op<packRtz>("s_cvt_pk_rtz_f16_f32"),
    TWO("s_ceil", ceil_),
    TWO("s_floor", floor_),
    TWO("s_trunc", trunc_),
    TWO("s_rndne", rndne),
    TWO("v_s_exp", exp2_),
    TWO("v_s_log", log2_),
    TWO("v_s_rcp", rcp),
    TWO("v_s_rsq", rsq),
    TWO("v_s_sqrt", sqrt_),
    CMP("lt", 0),
    CMP("eq", 1),
    CMP("le", 2),
    CMP("gt", 3),
    CMP("lg", 4),
    CMP("ge", 5),
    CMP("o", 6),
    CMP("u", 7),
    CMP("nge", 8),
    CMP("nlg", 9),
    CMP("ngt", 10),
    CMP("nle", 11),
    CMP("neq", 12),
    CMP("nlt", 13),
};

} // namespace

OpTable greta::sim::saluFloatOps() { return table; }
