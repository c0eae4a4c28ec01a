//===- Float.h - number formats and the float environment -------*- C++ -*-===//
//
// Conversions of the small formats, output modifiers, and the switch of the
// host's rounding and denormal control to what the wave's MODE asks for.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_FLOAT_H
#define GRETA_SIM_FLOAT_H

#include "Wave.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace greta::sim {

struct Half;
struct BHalf;

/// Returns the host's control word for MODE's 2-bit round and denormal fields.
uint32_t hostControl(unsigned round, unsigned denorm);
uint32_t currentControl();
void setControl(uint32_t c);

/// Uses the f64/f16 control word while one instruction of those types runs.
struct FpScope {
  uint32_t back = 0;
  bool active = false;
  FpScope(const Wave &w, bool wide) {
    if (LLVM_UNLIKELY(wide && w.csr32 != w.csr64)) {
      active = true;
      back = w.csr32;
      setControl(w.csr64);
    }
  }
  ~FpScope() {
    if (LLVM_UNLIKELY(active))
      setControl(back);
  }
};

inline float halfToFloat(uint16_t h) {
  return float(llvm::bit_cast<_Float16>(h));
}
inline uint16_t floatToHalf(float f) {
  return llvm::bit_cast<uint16_t>(_Float16(f));
}
/// Rounds only once: to float by round-to-odd, then to half.
inline uint16_t doubleToHalf(double d) {
  float f = float(d);
  double back = double(f);
  uint32_t b = llvm::bit_cast<uint32_t>(f);
  if (back != d && !(b & 1) && d == d && std::fabs(f) < 3e38f)
    // The neighbour one unit towards d is odd.
    b += ((back < d) == !(b >> 31)) ? 1 : -1;
  return floatToHalf(llvm::bit_cast<float>(b));
}
inline float bf16ToFloat(uint16_t h) {
  return llvm::bit_cast<float>(uint32_t(h) << 16);
}
inline uint16_t floatToBf16(float f) {
  uint32_t b = llvm::bit_cast<uint32_t>(f);
  uint32_t r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return uint16_t((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : r);
}

inline float applyOmod(float x, unsigned omod) {
  return omod == 1 ? x * 2.f : omod == 2 ? x * 4.f : omod == 3 ? x * .5f : x;
}
inline float applyOutput(float x, unsigned omod, bool clamp, bool dx10) {
  x = applyOmod(x, omod);
  if (clamp)
    x = x != x ? (dx10 ? 0.f : x) : x < 0.f ? 0.f : x > 1.f ? 1.f : x + 0.f;
  if (clamp && x == 0.f)
    x = 0.f;
  return x;
}
inline double applyOutput(double x, unsigned omod, bool clamp, bool dx10) {
  x = omod == 1 ? x * 2 : omod == 2 ? x * 4 : omod == 3 ? x * .5 : x;
  if (clamp)
    x = x != x ? (dx10 ? 0. : x) : x <= 0. ? 0. : x > 1. ? 1. : x;
  return x;
}
template <class H>
inline auto applyOutput(H x, unsigned omod, bool clamp, bool dx10)
    -> decltype(H{x.bits}) {
  if constexpr (std::is_same_v<H, Half>)
    return H{floatToHalf(applyOutput(halfToFloat(x.bits), omod, clamp, dx10))};
  else
    return H{floatToBf16(applyOutput(bf16ToFloat(x.bits), omod, clamp, dx10))};
}

} // namespace greta::sim

#endif
