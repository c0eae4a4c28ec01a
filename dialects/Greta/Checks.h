//===- Checks.h - what the verifiers of several ops check -------*- C++ -*-===//
//
// Each emits one diagnostic at the op that names the operand, the limit and the
// remedy, and fails.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_DIALECTS_GRETA_CHECKS_H
#define GRETA_DIALECTS_GRETA_CHECKS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace greta {

llvm::LogicalResult checkFloat(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value,
                               llvm::StringRef allowed = "f32, f16 or bf16");

llvm::LogicalResult checkRank(mlir::Operation *op, llvm::StringRef name,
                              mlir::Value value, int64_t rank,
                              llvm::StringRef shape);

/// One dimension of `value` must have the extent `size`; a dynamic one may.
llvm::LogicalResult checkDim(mlir::Operation *op, llvm::StringRef name,
                             mlir::Value value, int64_t dim, int64_t size,
                             const llvm::Twine &what);

/// `x` is [.., D] of floats with a static D of at least 1.
llvm::LogicalResult checkRows(mlir::Operation *op, llvm::StringRef name,
                              mlir::Value value);

/// `w` is [D] of floats, D the row length of `rows`.
llvm::LogicalResult checkRowVector(mlir::Operation *op, llvm::StringRef name,
                                   mlir::Value value, mlir::Value rows);

llvm::LogicalResult checkSameType(mlir::Operation *op, llvm::StringRef name,
                                  mlir::Type type, llvm::StringRef otherName,
                                  mlir::Type other);

/// Tensors of this level have no encoding.
llvm::LogicalResult checkPlain(mlir::Operation *op);

} // namespace greta

#endif // GRETA_DIALECTS_GRETA_CHECKS_H
