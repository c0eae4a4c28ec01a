//===- ExpandIntegers.h - integers to bf16, rounded once --------*- C++ -*-===//
//
// A part of greta-expand that the host needs before its own expansions.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LANE_EXPANDINTEGERS_H
#define GRETA_LANE_EXPANDINTEGERS_H

namespace mlir {
class Operation;
}

namespace greta {

/// Conversions of integers of more than 24 bits to bf16 become those to f32,
/// and a rounding that is the only one.
void expandIntegers(mlir::Operation *root);

} // namespace greta

#endif // GRETA_LANE_EXPANDINTEGERS_H
