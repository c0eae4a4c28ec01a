//===- Matrix.h - what the matrix instructions share ------------*- C++ -*-===//
//
// Every matrix instruction is done in three steps: its operands become planes
// of f32 (plane e holds element e of each of the 64 lanes), a table says where
// in the planes and in the accumulator registers each matrix element lies, and
// one kernel runs over rows of contiguous lanes.
//
// Arithmetic. AMD does not publish the order or the internal precision of its
// matrix units (measured models: Xie et al., "MMA-Sim", arXiv 2511.10909), so
// the last bits of a real device differ from these:
//   f32 accumulator   d = c, then one fma per k in ascending order, each
//                     rounded to nearest even
//   f16, bf16         the same in f32, rounded once at the end
//   i32               exact; wraps, or saturates with clamp. Sums of products
//                     of 8-bit integers up to k = 128 stay below 2^24, exact
//                     in f32, so the same kernel serves
//   f64               one fma per k in ascending order
//   xf32              the lower 13 bits of an operand are ignored
// MODE's rounding is ignored. Denormals are kept, except that f16 and bf16 MFMA
// of gfx90a flush inputs and outputs (PyTorch, "Numerical accuracy", MI200).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_MATRIX_H
#define GRETA_SIM_MATRIX_H

#include "Isa/Float.h"
#include "Wave.h"

namespace greta::sim::matrix {

enum class Elem : uint8_t {
  F64,
  F32,
  XF32, ///< f32 of which the matrix unit sees the upper 19 bits
  F16,
  BF16,
  FP8,
  BF8,
  FP6, ///< e2m3
  BF6, ///< e3m2
  FP4, ///< e2m1
  I8,
  U8,
  I4,
  U4
};
constexpr unsigned bitsOf(Elem e) {
  switch (e) {
  case Elem::F64:
    return 64;
  case Elem::F32:
  case Elem::XF32:
    return 32;
  case Elem::F16:
  case Elem::BF16:
    return 16;
  case Elem::FP6:
  case Elem::BF6:
    return 6;
  case Elem::FP4:
  case Elem::I4:
  case Elem::U4:
    return 4;
  default:
    return 8;
  }
}

using Plane = float[MaxLanes];
using Row = uint32_t[MaxLanes];

struct DecodeOptions {
  bool fnuz = false;     ///< 8-bit floats without negative zero
  bool flushF16 = false; ///< f16 denormals read as zero
  bool negEven = false, negOdd = false;
};
/// Widens `items` elements of each lane, packed from bit 0 of the first row up.
void decode(Elem e, const Row *rows, unsigned items, DecodeOptions o,
            Plane *out);

/// Computes d(i, j) = c(i, j) + sum over k of a(i, k) * b(k, j), where
///   a(i, k) = a[aOff[k] + i]    b(k, j) = b[bOff[k] + j]
///   c(i, j) = c[cOff[i] + j]    d(i, j) = d[dOff[i] + j]
/// Row i of c is read before row i of d is written. n is 4, 16 or 32 and `rows`
/// a multiple of 4 or 1.
struct Product {
  unsigned rows, n, depth;
  const float *a, *b;
  const uint16_t *aOff, *bOff, *cOff, *dOff;
  const uint32_t *c;
  uint32_t *d;
};
void multiplyF32(const Product &p);
void multiplyI32(const Product &p, bool saturate);

/// Rounds to nearest even and keeps denormals (or flushes), whatever MODE says.
struct MatrixScope {
  uint32_t back;
  bool active;
  MatrixScope(const Wave &w, bool flush) : back(w.csr32) {
    uint32_t want = hostControl(0, flush ? 0 : 3);
    active = want != back;
    if (LLVM_UNLIKELY(active))
      setControl(want);
  }
  ~MatrixScope() {
    if (LLVM_UNLIKELY(active))
      setControl(back);
  }
};

/// Holds the accumulator input: registers (copied when D overlaps them
/// elsewhere) or a constant, for which every offset is zero.
struct Accumulator {
  const uint32_t *base;
  bool constant;
  Accumulator(const Wave &w, const Operand &c, const Operand &d, unsigned words,
              Row *copy);
};

extern const uint16_t zeroOffsets[64];

} // namespace greta::sim::matrix

#endif
