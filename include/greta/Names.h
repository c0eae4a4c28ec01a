//===- Names.h - what greta calls by MLIR's and LLVM's names ----*- C++ -*-===//
//
// Headers of passes name these types without a namespace, as MLIR's own do
// (mlir/Support/LLVM.h).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_NAMES_H
#define GRETA_NAMES_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir {
class IRMapping;
namespace arith {}
namespace scf {}
} // namespace mlir

namespace greta {
using llvm::ArrayRef, llvm::function_ref, llvm::SmallVector;
using mlir::AffineExpr, mlir::AffineMap, mlir::Attribute, mlir::Block,
    mlir::BlockArgument, mlir::DenseMap, mlir::FailureOr,
    mlir::ImplicitLocOpBuilder, mlir::IRMapping, mlir::LogicalResult,
    mlir::MLIRContext, mlir::Operation, mlir::RankedTensorType, mlir::Region,
    mlir::StringRef, mlir::Type, mlir::Value, mlir::ValueRange,
    mlir::VectorType;
namespace arith = mlir::arith;
namespace scf = mlir::scf;
} // namespace greta

#endif // GRETA_NAMES_H
