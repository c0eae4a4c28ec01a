//===- Generic.h - element by element, in f32 -------------------*- C++ -*-===//
#ifndef GRETA_DIALECTS_GRETA_GENERIC_H
#define GRETA_DIALECTS_GRETA_GENERIC_H

#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

namespace greta {

using GenericBody = llvm::function_ref<Value(Arithmetic, ValueRange)>;

/// A linalg.generic with one result. `body` gets the inputs' elements, floats
/// as f32, and with a reduction the accumulator last.
mlir::Value generic(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange inputs,
                    mlir::Value init, llvm::ArrayRef<mlir::AffineMap> maps,
                    llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                    GenericBody body);

} // namespace greta

#endif
