//===- Triton.h - Triton IR as text -----------------------------*- C++ -*-===//
//
// Declares the dialects, types and ops that Triton's frontend prints.
//
//===----------------------------------------------------------------------===//
#ifndef TRITON_TRITON_H
#define TRITON_TRITON_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Triton/TritonDialect.h.inc"
#include "Triton/TritonGPUDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Triton/TritonAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "Triton/TritonTypes.h.inc"

namespace greta::triton {

/// The type that a pointer or the pointers of a block point to, in the same
/// shape; null for anything else.
mlir::Type getPointee(mlir::Type pointers);

/// An i1, or a block of i1 in the shape of `like`.
mlir::Type getMaskType(mlir::Type like);

} // namespace greta::triton

#define GET_OP_CLASSES
#include "Triton/TritonOps.h.inc"
#define GET_OP_CLASSES
#include "Triton/TritonGPUOps.h.inc"

#endif
