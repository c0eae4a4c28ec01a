//===- Float.cpp - small formats and the host's float environment ---------===//
#include "Float.h"
#include <cfenv>

using namespace greta::sim;

#if defined(__x86_64__)
// MXCSR: all exceptions masked; rounding in bits 13-14, FTZ bit 15, DAZ bit 6.
uint32_t greta::sim::hostControl(unsigned round, unsigned denorm) {
  static const uint32_t rounds[] = {0, 2, 1, 3}; // nearest, +inf, -inf, zero
  uint32_t c = 0x1f80 | rounds[round & 3] << 13;
  if (!(denorm & 1))
    c |= 1u << 6;
  if (!(denorm & 2))
    c |= 1u << 15;
  return c;
}
uint32_t greta::sim::currentControl() { return _mm_getcsr(); }
void greta::sim::setControl(uint32_t c) { _mm_setcsr(c); }
#else
// Elsewhere only the rounding mode is switched: denormals are always kept.
uint32_t greta::sim::hostControl(unsigned round, unsigned) {
  static const int rounds[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                               FE_TOWARDZERO};
  return uint32_t(rounds[round & 3]);
}
uint32_t greta::sim::currentControl() { return uint32_t(std::fegetround()); }
void greta::sim::setControl(uint32_t c) { std::fesetround(int(c)); }
#endif

float greta::sim::fp8ToFloat(uint8_t x, bool bf8, bool fnuz) {
  unsigned mantissaBits = bf8 ? 2 : 3, exponentBits = bf8 ? 5 : 4;
  int bias = (1 << (exponentBits - 1)) - (fnuz ? 0 : 1);
  unsigned m = x & ((1u << mantissaBits) - 1);
  unsigned e = x >> mantissaBits & ((1u << exponentBits) - 1);
  bool sign = x & 0x80;
  float nan = llvm::bit_cast<float>(0x7fc00000u);
  if (fnuz) {
    if (x == 0x80)
      return nan;
  } else if (bf8) {
    if (e == 31)
      return m ? nan : sign ? -INFINITY : INFINITY;
  } else if ((x & 0x7f) == 0x7f) {
    return nan;
  }
  float r = e ? std::ldexp(float(m | 1u << mantissaBits),
                           int(e) - bias - int(mantissaBits))
              : std::ldexp(float(m), 1 - bias - int(mantissaBits));
  return sign ? -r : r;
}

uint8_t greta::sim::floatToFp8(float f, bool bf8, bool fnuz, bool saturate,
                               bool stochastic, uint32_t random) {
  unsigned mantissaBits = bf8 ? 2 : 3, exponentBits = bf8 ? 5 : 4;
  int bias = (1 << (exponentBits - 1)) - (fnuz ? 0 : 1);
  uint32_t b = llvm::bit_cast<uint32_t>(f);
  uint8_t sign = uint8_t(b >> 31) << 7;
  uint8_t largest = fnuz ? 0x7f : bf8 ? 0x7b : 0x7e;
  uint8_t nan = fnuz ? 0x80 : uint8_t(sign | 0x7f);
  uint8_t overflow = fnuz  ? 0x80
                     : bf8 ? uint8_t(sign | 0x7c)
                           : uint8_t(sign | 0x7f);
  b &= 0x7fffffff;
  if (b > 0x7f800000)
    return nan;
  if (b == 0x7f800000)
    return saturate ? uint8_t(sign | largest) : overflow;
  // Value = m * 2^(e-23), 24-bit m; round it to a multiple of the result's ulp.
  int e = int(b >> 23);
  uint64_t m = b & 0x7fffff;
  if (e)
    m |= 0x800000;
  else
    e = 1;
  int exponent = e - 127;
  int target = exponent < 1 - bias ? 1 - bias : exponent;
  int drop = 23 - int(mantissaBits) + (target - exponent);
  uint64_t q;
  if (drop > 40) {
    q = 0;
  } else {
    uint64_t rest = m & ((uint64_t(1) << drop) - 1);
    q = m >> drop;
    if (stochastic) {
      uint64_t r = drop >= 32 ? uint64_t(random) << (drop - 32)
                              : uint64_t(random) >> (32 - drop);
      q += rest + r >= (uint64_t(1) << drop);
    } else {
      uint64_t half = uint64_t(1) << (drop - 1);
      q += rest > half || (rest == half && (q & 1));
    }
  }
  // q counts ulps at exponent `target`; carries move into the exponent field.
  uint64_t code = q + (uint64_t(target + bias - 1) << mantissaBits);
  if (target == 1 - bias)
    code = q;
  if (code > largest)
    return saturate ? uint8_t(sign | largest) : overflow;
  if (!code && fnuz)
    return 0;
  return uint8_t(sign | code);
}

float greta::sim::fp6ToFloat(unsigned x, bool e3m2) {
  unsigned mantissaBits = e3m2 ? 2 : 3, exponentBits = e3m2 ? 3 : 2;
  int bias = e3m2 ? 3 : 1;
  unsigned m = x & ((1u << mantissaBits) - 1);
  unsigned e = x >> mantissaBits & ((1u << exponentBits) - 1);
  float r = e ? std::ldexp(float(m | 1u << mantissaBits),
                           int(e) - bias - int(mantissaBits))
              : std::ldexp(float(m), 1 - bias - int(mantissaBits));
  return x & 0x20 ? -r : r;
}

float greta::sim::fp4ToFloat(unsigned x) {
  static const float values[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  return x & 8 ? -values[x & 7] : values[x & 7];
}
