//===- GroupedDecompose.h - what grouped products mean ----------*- C++ -*-===//
#ifndef GRETA_DIALECTS_GRETA_GROUPEDDECOMPOSE_H
#define GRETA_DIALECTS_GRETA_GROUPEDDECOMPOSE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace greta {

/// The product, of `type`, of groups of the rows of `a`, each with one of
/// `matrices`, [E, K, N] or [E, N, K].
mlir::Value decomposeGrouped(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value a, mlir::Value matrices,
                             mlir::Value offsets, bool transposed,
                             mlir::RankedTensorType type);

} // namespace greta

#endif
