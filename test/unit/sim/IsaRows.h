//===- IsaRows.h - what vector instructions compute -------------*- C++ -*-===//
//
// One row per instruction: its names on the chips, the types of result and
// sources, and a function on their bits. Types: u 32-bit, l 64-bit, s 16-bit,
// f h d floats of 32, 16 and 64 bits, p
// and y pairs of f16 and bf16.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_ISAROWS_H
#define GRETA_TEST_SIM_ISAROWS_H

#include "llvm/ADT/ArrayRef.h"
#include <cmath>
#include <cstdint>
#include <cstring>

namespace greta::sim::test {

template <class To, class From> To as(From x) {
  To r;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&r, &x, sizeof(r));
  return r;
}
inline float F(uint64_t x) { return as<float>(uint32_t(x)); }
inline double D(uint64_t x) { return as<double>(x); }
inline double H(uint64_t x) { return as<_Float16>(uint16_t(x)); }
inline uint64_t bits(float x) { return as<uint32_t>(x); }
inline uint64_t bits(double x) { return as<uint64_t>(x); }
/// One rounding from double.
inline uint64_t halfBits(double x) { return as<uint16_t>(_Float16(x)); }

/// minNum and maxNum, with -0 below +0.
template <class T> T least(T a, T b) {
  if (a != a || b != b)
    return a != a ? b : a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T most(T a, T b) { return -least(-a, -b); }
/// minimum and maximum of IEEE 754-2019: a NaN stays.
template <class T> T lower(T a, T b) {
  return a != a || b != b ? a + b : least(a, b);
}
template <class T> T upper(T a, T b) {
  return a != a || b != b ? a + b : most(a, b);
}
inline float noDenormal(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x;
}
/// One rounding to f16, towards zero.
inline uint64_t truncatedHalf(float x) {
  uint64_t h = halfBits(x);
  return std::fabs(H(h)) > std::fabs(double(x)) ? h - 1 : h;
}

struct Sources {
  uint64_t v[4];
  uint64_t old = 0; ///< of the destination
  uint32_t u(unsigned k) const { return uint32_t(v[k]); }
  int32_t i(unsigned k) const { return int32_t(v[k]); }
  uint16_t s(unsigned k) const { return uint16_t(v[k]); }
  int16_t t(unsigned k) const { return int16_t(v[k]); }
};

struct IsaRow {
  const char *names; ///< separated by |; every chip's that has it is tested
  const char *types; ///< result = sources
  uint64_t (*apply)(const Sources &);
  enum : unsigned {
    Plain = 0,
    Tied = 1,       ///< the last source is the destination
    Approximate = 2 ///< within two units in the last place
  };
  unsigned flags = Plain;
};

llvm::ArrayRef<IsaRow> integerRows();
llvm::ArrayRef<IsaRow> floatRows();

} // namespace greta::sim::test

#endif
