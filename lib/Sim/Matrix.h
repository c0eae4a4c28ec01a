//===- Matrix.h - operands and products of matrix instructions --*- C++ -*-===//
//
// Both kinds of matrix instruction (MFMA, WMMA) unpack A and B into arrays
// [k][row] and [k][column] of f32, i32 or f64, and then compute one accumulator
// register at a time: its lanes are `rows` consecutive groups of N columns.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_MATRIX_H
#define GRETA_SIM_MATRIX_H

#include "Float.h"
#include "Wave.h"

namespace greta::sim {

enum class Format : uint8_t {
  F32,
  XF32,
  F16,
  BF16,
  F64,
  I8,
  U8,
  I4,
  U4,
  FP8,
  BF8,
  FP6,
  BF6,
  FP4
};

constexpr unsigned bitsOf(Format f) {
  switch (f) {
  case Format::F64:
    return 64;
  case Format::F32:
  case Format::XF32:
    return 32;
  case Format::F16:
  case Format::BF16:
    return 16;
  case Format::FP6:
  case Format::BF6:
    return 6;
  case Format::I4:
  case Format::U4:
  case Format::FP4:
    return 4;
  default:
    return 8;
  }
}

/// Lane l's elements of one operand, as float, int32_t or double: element e of
/// lane l goes to out[e * 64 + l].
void unpack(const Wave &w, const Operand &o, Format format, unsigned count,
            float *out);
void unpack(const Wave &w, const Operand &o, Format format, unsigned count,
            int32_t *out);

template <class T> struct Vector {
  typedef T type __attribute__((vector_size(32), aligned(4)));
};

template <class V> inline V multiplyAdd(V a, V b, V c) {
  if constexpr (std::is_same_v<V, typename Vector<float>::type>)
    return __builtin_elementwise_fma(a, b, c);
  else
    return a * b + c;
}

/// One accumulator register: lane h * N + n is row[h], column n.
/// A is [k][strideA], B is [k][N].
template <class T, unsigned N, unsigned Rows>
inline void accumulate(T *acc, const T *a, unsigned strideA, const T *b,
                       unsigned strideB, unsigned k, const unsigned *row) {
  using V = typename Vector<T>::type;
  constexpr unsigned per = 32 / sizeof(T), vectors = N / per;
  V sum[Rows][vectors];
  for (unsigned h = 0; h < Rows; ++h)
    for (unsigned n = 0; n < vectors; ++n)
      std::memcpy(&sum[h][n], acc + h * N + n * per, 32);
  for (unsigned e = 0; e < k; ++e) {
    V column[vectors];
    for (unsigned n = 0; n < vectors; ++n)
      std::memcpy(&column[n], b + e * strideB + n * per, 32);
    for (unsigned h = 0; h < Rows; ++h) {
      T x = a[e * strideA + row[h]];
      V broadcast = V{} + x;
      for (unsigned n = 0; n < vectors; ++n)
        sum[h][n] = multiplyAdd<V>(broadcast, column[n], sum[h][n]);
    }
  }
  for (unsigned h = 0; h < Rows; ++h)
    for (unsigned n = 0; n < vectors; ++n)
      std::memcpy(acc + h * N + n * per, &sum[h][n], 32);
}

/// Accumulator source rows of 64 words: register r of C, or a constant.
inline void loadAcc(const Wave &w, const Operand &c, unsigned r,
                    uint32_t *out) {
  if (c.isVgpr()) {
    std::memcpy(out, w.v[c.index + r], 4 * MaxLanes);
    return;
  }
  uint32_t x = w.scalar(c);
  for (unsigned l = 0; l < MaxLanes; ++l)
    out[l] = x;
}

} // namespace greta::sim

#endif
