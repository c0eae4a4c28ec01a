//===- Expand.h - what the parts of greta-expand share ----------*- C++ -*-===//
//
// In: arithmetic that not every target has instructions for, and arrays in
// shared memory. Out: the same in what the target has. Targets differ by facts
// of their rows alone.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_EXPAND_H
#define GRETA_LIB_LANE_EXPAND_H

#include "greta/Target/Target.h"
#include "mlir/IR/Operation.h"

namespace greta {

/// Conversions from and to floats of 8 bits (ExpandFloat8.cpp).
void expandFloat8(mlir::Operation *root, Fp8Kind native);

/// Functions of the math dialect in a kernel, and arithmetic on narrow floats
/// (ExpandMath.cpp). Fails with a diagnostic at what has no expansion.
llvm::LogicalResult expandMath(mlir::Operation *kernel, const TargetRow &row);

/// Numbers of 4 bits and dots of vectors in a kernel (ExpandPacked.cpp).
void expandPacked(mlir::Operation *kernel, const TargetRow &row);

/// Arrays in shared memory become those of the target's bytes or words, and
/// what is accessed a place in them (ExpandShared.cpp).
void expandShared(mlir::Operation *kernel, const TargetRow &row);

} // namespace greta

#endif
