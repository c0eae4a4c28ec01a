//===- Fp8.h - the 8, 6 and 4-bit float formats -----------------*- C++ -*-===//
//
// fp8 is e4m3, bf8 e5m2. FNUZ (gfx942): bias 8 and 16, one NaN (0x80), neither
// infinities nor a negative zero. OCP (gfx950, gfx11, gfx12): bias 7 and 15,
// e4m3 with NaN 0x7f and 0xff only, e5m2 like IEEE. fp6 is e2m3 (bias 1), bf6
// e3m2 (bias 3), fp4 e2m1 (bias 1); these have neither NaN nor infinity.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_FP8_H
#define GRETA_SIM_FP8_H

#include "Isa/Inst.h"

namespace greta::sim {

/// Returns the values of all codes: 256 of fp8, bf8, 64 of fp6, bf6, 16 of fp4.
const float *fp8Values(bool bf8, bool fnuz);
const float *fp6Values(bool e3m2);
const float *fp4Values();

inline float fp8ToFloat(uint8_t x, bool bf8, bool fnuz) {
  return fp8Values(bf8, fnuz)[x];
}

/// Says how a conversion rounds: to nearest even, or stochastically, where the
/// upper bits of the 32 random ones are added below the last kept bit.
struct SmallRounding {
  bool stochastic = false;
  uint32_t random = 0;
};
/// Too large values and infinities become the largest value when `saturate`
/// (MODE.FP16_OVFL), else infinity or, without one, NaN.
uint8_t floatToFp8(float f, bool bf8, bool fnuz, bool saturate,
                   SmallRounding rounding = {});
/// These always saturate; NaN becomes the largest value.
uint8_t floatToFp6(float f, bool e3m2, SmallRounding rounding = {});
uint8_t floatToFp4(float f, SmallRounding rounding = {});

/// Lists the conversions of these formats and the stochastic ones.
OpTable fp8Ops();

} // namespace greta::sim

#endif
