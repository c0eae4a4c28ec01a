//===- Float.cpp - the host's float environment ---------------------------===//
#include "Isa/Float.h"
#include <cfenv>

using namespace greta::sim;

#if defined(__x86_64__)
// MXCSR masks all exceptions; it has rounding in bits 13-14, FTZ 15, DAZ 6.
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
// Other hosts switch only the rounding mode and always keep denormals.
uint32_t greta::sim::hostControl(unsigned round, unsigned) {
  static const int rounds[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                               FE_TOWARDZERO};
  return uint32_t(rounds[round & 3]);
}
uint32_t greta::sim::currentControl() { return uint32_t(std::fegetround()); }
void greta::sim::setControl(uint32_t c) { std::fesetround(int(c)); }
#endif
