//===- Fp8.h - tables of the 8, 6 and 4-bit float formats -------*- C++ -*-===//
#ifndef GRETA_SIM_FP8_H
#define GRETA_SIM_FP8_H

#include "Inst.h"

namespace greta::sim {

/// The f32 value of every code: 256 of fp8 (e4m3) or bf8 (e5m2), 64 of e2m3 or
/// e3m2, 16 of e2m1.
const float *fp8Values(bool bf8, bool fnuz);
const float *fp6Values(bool e3m2);
const float *fp4Values();

/// The conversion instructions of these formats.
OpTable fp8Ops();

} // namespace greta::sim

#endif
