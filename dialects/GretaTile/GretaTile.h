//===- GretaTile.h - the greta_tile dialect ---------------------*- C++ -*-===//
//
// Declares the dialect, types, attributes and ops of the compiler's waist.
//
//===----------------------------------------------------------------------===//
#ifndef GRETATILE_GRETATILE_H
#define GRETATILE_GRETATILE_H

#include "greta/Interface/WeightFormats.h"
#include "greta/Layout/Layout.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/Sequence.h"

#include "GretaTile/GretaTileDialect.h.inc"
#include "GretaTile/GretaTileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "GretaTile/GretaTileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "GretaTile/GretaTileTypes.h.inc"
#include "GretaTile/LayoutInterface.h.inc"

namespace greta::tile {

/// The resource that `assume` writes, so that it stays and orders nothing else.
struct AssumptionResource
    : public mlir::SideEffects::Resource::Base<AssumptionResource> {
  llvm::StringRef getName() override { return "assumption"; }
};

/// The resource that `print` and `assert` write to.
struct LogResource : public mlir::SideEffects::Resource::Base<LogResource> {
  llvm::StringRef getName() override { return "log"; }
};

/// The promises of callers about an argument (FuncOp).
inline constexpr llvm::StringLiteral divisibilityName = "greta.divisibility";
/// A unit attribute of a pointer: its memory begins there and is less than 2^31
/// bytes.
inline constexpr llvm::StringLiteral pointerRangeName = "greta.pointer_range";
/// A unit attribute of a pointer: while the kernel runs nobody writes its
/// memory.
inline constexpr llvm::StringLiteral readonlyName = "greta.readonly";
/// A unit attribute of a pointer: no other argument reaches its memory, unless
/// the kernel writes through neither.
inline constexpr llvm::StringLiteral noaliasName = "greta.noalias";

} // namespace greta::tile

#define GET_OP_CLASSES
#include "GretaTile/GretaTileOps.h.inc"

namespace greta::tile {

/// The kernel's argument that a pointer was made of by offsets; null where it
/// is not plainly one.
mlir::BlockArgument argumentOf(mlir::Value pointer);

/// Whether a kernel's argument promises `pointerRangeName`; null does not.
bool hasPointerRange(mlir::BlockArgument argument);

} // namespace greta::tile

namespace greta::tile {

/// The layout of a block tensor, or null when it has none yet.
LayoutAttr getLayoutOf(mlir::Type type);

/// The same as a value of the layout algebra, and back.
Layout toLayout(LayoutAttr attr);
LayoutAttr toAttr(mlir::MLIRContext *context, const Layout &layout);

/// The scalars that kernels, and functions that launch them, take beside
/// tensors: i1, i8, i16, i32, i64, f16, bf16, f32 and f64.
bool isScalarArgument(mlir::Type type);
/// The type as which one is passed: i32 or i64 with its bits, zeros above them,
/// or itself, where it is i32, i64 or f32.
mlir::Type getPassedType(mlir::Type scalar);

/// On a kernel whose launches have a log as their last result: an array of what
/// prints and assertions leave there, as dictionaries, which the manifest has.
constexpr llvm::StringLiteral logName = "greta_tile.log";

/// Bytes of an element in memory, where one is the least.
inline int64_t bytesInMemory(mlir::Type element) {
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

/// On an argument of a kernel: an integer that is not negative.
constexpr llvm::StringLiteral nonNegativeName = "greta.nonnegative";
/// On an i32 argument of a kernel, an integer: the largest value for which its
/// lanes' 32-bit offsets hold. The runtime checks those that launches compute.
constexpr llvm::StringLiteral largestName = "greta.largest";

/// Whether a map from symbols to extents says what a type says of them.
bool keepsExtents(mlir::RankedTensorType type, mlir::AffineMap shape);

/// LayoutTransferOpInterface's answers for any op: an elementwise one has the
/// same layout everywhere; none where layouts end.
std::optional<Layout> resultLayout(mlir::OpOperand &operand,
                                   const Layout &layout, mlir::OpResult result);
std::optional<Layout> operandLayout(mlir::OpResult result, const Layout &layout,
                                    mlir::OpOperand &operand);
/// Whether all of the op's blocks that are operands are taken in one layout,
/// which its results do not decide.
bool takesOneLayout(mlir::Operation *op);
/// For each dimension of a result the operand's that it is, or -1; empty where
/// layouts end.
llvm::SmallVector<int64_t> operandDims(mlir::OpOperand &operand,
                                       mlir::OpResult result);

/// The layout of a block of `shape`, beside one with `layout`, each element of
/// which serves as many neighbours along a dimension as the extent is smaller:
/// all of them, where it is 1.
Layout sharedLayout(Layout layout, llvm::ArrayRef<int64_t> shape);

/// `type`, a scalar or a block, with another element type.
mlir::Type withElementType(mlir::Type type, mlir::Type element);
/// The type that a pointer or each of a block of them points to.
mlir::Type getPointee(mlir::Type pointers);

/// `type` with another layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  LayoutAttr layout);

} // namespace greta::tile

#endif
