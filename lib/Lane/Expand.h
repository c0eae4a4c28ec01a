//===- Expand.h - what the parts of greta-expand share ----------*- C++ -*-===//
//
// In: arithmetic that not every target has instructions for, and arrays in
// shared memory. Out: the same in what the target has. Targets differ by facts
// of their rows alone.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_EXPAND_H
#define GRETA_LIB_LANE_EXPAND_H

#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace greta {

/// Conversions from and to floats of 8 bits, and on Vulkan from f64 to those of
/// 16 (ExpandFloat8.cpp).
void expandFloat8(Operation *root, const TargetRow &row);

/// Functions of the math dialect in a kernel, and arithmetic on narrow floats
/// (ExpandMath.cpp). Fails with a diagnostic at what has no expansion.
LogicalResult expandMath(Operation *kernel, const TargetRow &row);

/// Replaces a function of f64 by f64 arithmetic (ExpandWideMath.cpp). Returns
/// null where there is no formula.
Value expandWideMath(Operation *op);

/// Replaces a remainder of f32 or f64 by the exact one (ExpandRemainder.cpp).
void expandRemainder(Operation *op);

/// The exponent of a power that is a small constant whole number.
std::optional<int64_t> wholeExponent(Value value);

/// x^n by squaring.
template <typename RealT> RealT powInteger(RealT x, int64_t n) {
  std::optional<RealT> result;
  RealT power = x;
  for (uint64_t left = std::abs(n); left; left /= 2) {
    if (left % 2)
      result = result ? *result * power : power;
    if (left > 1)
      power = power * power;
  }
  if (!result)
    return x.literal(1);
  return n < 0 ? x.literal(1) / *result : *result;
}

/// Numbers of 4 bits and dots of vectors in a kernel (ExpandPacked.cpp).
void expandPacked(Operation *kernel, const TargetRow &row);

/// Conversions to f16 of elements of vectors of bytes in a kernel
/// (ExpandBytes.cpp).
void expandBytes(Operation *root, const TargetRow &row);

/// Arrays in shared memory become those of the target's bytes or words, and
/// what is accessed a place in them (ExpandShared.cpp).
void expandShared(Operation *kernel, const TargetRow &row);

} // namespace greta

#endif
