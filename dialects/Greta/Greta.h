//===- Greta.h - the greta dialect: fused operators on tensors --*- C++ -*-===//
//
// Declares the dialect, its ops and the interface through which every op gives
// its definition in linalg, arith and math.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_GRETA_H
#define GRETA_GRETA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Greta/GretaDialect.h.inc"
#include "Greta/GretaInterfaces.h.inc"
#define GET_OP_CLASSES
#include "Greta/GretaOps.h.inc"
#define GET_OP_CLASSES
#include "Greta/GretaKernel.h.inc"

#endif
