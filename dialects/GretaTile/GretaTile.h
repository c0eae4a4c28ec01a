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

/// Returns the kernel's argument that a pointer was made of by offsets; null:
/// it is not plain that it was.
mlir::BlockArgument argumentOf(mlir::Value pointer);

/// Whether a kernel's argument promises `pointerRangeName`; null does not.
bool hasPointerRange(mlir::BlockArgument argument);

/// Whether a loop of a kernel writes shared memory, as GEMMs of many rows pass
/// blocks on to all waves; at the lane level.
bool sharesInLoops(mlir::Operation *kernel);

} // namespace greta::tile

namespace greta::tile {

/// The layout of a block tensor, or null when it has none yet.
LayoutAttr getLayoutOf(mlir::Type type);

/// These convert a layout attribute to a value of the layout algebra, and back.
Layout toLayout(LayoutAttr attr);
LayoutAttr toAttr(mlir::MLIRContext *context, const Layout &layout);

/// The scalars that kernels, and functions that launch them, take beside
/// tensors: i1, i8, i16, i32, i64, f16, bf16, f32 and f64.
bool isScalarArgument(mlir::Type type);
/// Returns the type in which a scalar is passed: itself for i32, i64 and f32,
/// else an i32 or i64 with its bits and zeros above them.
mlir::Type getPassedType(mlir::Type scalar);

/// An attribute of a kernel whose launches have a log as their last result. It
/// is an array of dictionaries, which the manifest has, that describe the
/// records of prints and assertions.
constexpr llvm::StringLiteral logName = "greta_tile.log";

/// Returns the bytes of an element in memory, at least one.
inline int64_t bytesInMemory(mlir::Type element) {
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

/// On an argument of a kernel: an integer that is not negative.
constexpr llvm::StringLiteral nonNegativeName = "greta.nonnegative";
/// An integer attribute of a kernel's i32 argument: the largest value for which
/// lanes' offsets fit into 32 bits. The runtime checks values that launches
/// compute.
constexpr llvm::StringLiteral largestName = "greta.largest";

/// Whether a map from symbols to extents agrees with the extents of a type.
bool keepsExtents(mlir::RankedTensorType type, mlir::AffineMap shape);

/// These answer for any op as LayoutTransferOpInterface does. An elementwise op
/// has the same layout for all blocks; none: the op's layouts are independent.
std::optional<Layout> resultLayout(mlir::OpOperand &operand,
                                   const Layout &layout, mlir::OpResult result);
std::optional<Layout> operandLayout(mlir::OpResult result, const Layout &layout,
                                    mlir::OpOperand &operand);
/// Whether an op takes all operands that are blocks in one layout, which does
/// not depend on its results.
bool takesOneLayout(mlir::Operation *op);
/// Returns, for each dimension of a result, the equal dimension of an operand,
/// or -1. Empty: the op's layouts are independent.
llvm::SmallVector<int64_t> operandDims(mlir::OpOperand &operand,
                                       mlir::OpResult result);

/// Returns the layout of a smaller block of `shape` for use with a block that
/// has `layout`. An element of the smaller block serves several neighbours
/// along each dimension whose extent is smaller; all of them if the extent
/// is 1.
Layout sharedLayout(Layout layout, llvm::ArrayRef<int64_t> shape);

/// Whether an op that `isWanted`, or one of some kinds, is in `root`.
template <typename PredicateT>
bool hasOpThat(mlir::Operation *root, PredicateT isWanted) {
  auto visit = [&](mlir::Operation *op) {
    return isWanted(op) ? mlir::WalkResult::interrupt()
                        : mlir::WalkResult::advance();
  };
  return root->walk(visit).wasInterrupted();
}
template <typename... OpTs> bool hasOp(mlir::Operation *root) {
  return hasOpThat(root, llvm::IsaPred<OpTs...>);
}

/// Fails with a diagnostic at a launch, whose kernel a module's own code is to
/// replace.
llvm::LogicalResult checkNoLaunch(mlir::Operation *module);

/// `type`, a scalar, a vector or a block, with another element type.
mlir::Type withElementType(mlir::Type type, mlir::Type element);
/// The type that a pointer or each of a block of them points to.
mlir::Type getPointee(mlir::Type pointers);

/// `type` with another layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  LayoutAttr layout);

} // namespace greta::tile

#endif
