//===- Greta.h - the greta dialect: fused operators on tensors --*- C++ -*-===//
//
// Declares the dialect, its ops and the interface through which every op gives
// its definition in linalg, arith and math.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_GRETA_H
#define GRETA_GRETA_H

#include "Greta/Schedule.h"
#include "greta/Interface/WeightFormats.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace greta {
/// The operand types of an op with optional operands: those of the operands
/// that are given.
mlir::ParseResult parseGivenTypes(
    mlir::OpAsmParser &parser,
    std::optional<mlir::OpAsmParser::UnresolvedOperand> lengths,
    std::optional<mlir::OpAsmParser::UnresolvedOperand> mask,
    std::optional<mlir::OpAsmParser::UnresolvedOperand> sinks,
    std::optional<mlir::OpAsmParser::UnresolvedOperand> kScale,
    std::optional<mlir::OpAsmParser::UnresolvedOperand> vScale, mlir::Type &q,
    mlir::Type &k, mlir::Type &v, mlir::Type &lengthsType, mlir::Type &maskType,
    mlir::Type &sinksType, mlir::Type &kScaleType, mlir::Type &vScaleType);
void printGivenTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::Value lengths, mlir::Value mask, mlir::Value sinks,
                     mlir::Value kScale, mlir::Value vScale, mlir::Type q,
                     mlir::Type k, mlir::Type v, mlir::Type lengthsType,
                     mlir::Type maskType, mlir::Type sinksType,
                     mlir::Type kScaleType, mlir::Type vScaleType);
} // namespace greta

#include "Greta/GretaDialect.h.inc"
#include "Greta/GretaInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Greta/GretaAttrs.h.inc"
#define GET_OP_CLASSES
#include "Greta/GretaOps.h.inc"
#define GET_OP_CLASSES
#include "Greta/GretaKernel.h.inc"

namespace greta {
/// Returns the operand whose rows a result of a cache's update replaces: the
/// cache, or its scales; null for other ops.
inline mlir::OpOperand *getUpdated(mlir::OpResult result) {
  mlir::Operation *op = result.getOwner();
  if (!llvm::isa<KvUpdateOp, PagedKvUpdateOp>(op))
    return nullptr;
  return &op->getOpOperand(result.getResultNumber() == 0 ? 0 : 3);
}

/// The cache whose rows an update replaces; null for other ops.
inline mlir::Value getUpdatedCache(mlir::Operation *op) {
  return llvm::isa<KvUpdateOp, PagedKvUpdateOp>(op) ? op->getOperand(0)
                                                    : mlir::Value();
}

/// Returns the number of neighbours of a row that share an element of `scales`;
/// 0: scales are not for groups.
inline int64_t groupOfScales(mlir::Value rows, mlir::Value scales) {
  if (!scales)
    return 0;
  auto type = llvm::cast<mlir::RankedTensorType>(scales.getType());
  if (type.getRank() != 4)
    return 0;
  auto row = llvm::cast<mlir::RankedTensorType>(rows.getType()).getShape();
  return row.back() / type.getShape().back();
}

/// Whether reductions of rows combine elements of the type: f32, i32 and i1.
bool isCombined(mlir::Type type);

/// Whether an op may be part of what combines two elements: arith or math with
/// one result of such a type, without effects, and defined for any operands,
/// since elements beyond a row's end are combined, too.
bool isPartOfCombination(mlir::Operation *op);

/// A function with this unit attribute checks the places that tensors name,
/// such as slots and offsets. A launch that finds a wrong one fails
/// (greta_tile.assert).
constexpr llvm::StringLiteral checkedName = "greta.checked";

/// The largest number of an element that rows are quantised to.
inline float largestOf(mlir::Type element) {
  return llvm::isa<mlir::Float8E4M3FNType>(element)     ? 448
         : llvm::isa<mlir::Float8E4M3FNUZType>(element) ? 240
                                                        : 127;
}

/// A float of 8 bits: OCP's or the FNUZ kind, whose one NaN is where -0 would
/// be.
inline bool isFloat8(mlir::Type type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type,
                   mlir::Float8E4M3FNUZType, mlir::Float8E5M2FNUZType>(type);
}
} // namespace greta

#endif
