//===- Launches.h - functions that launch kernels ---------------*- C++ -*-===//
//
// The ops that such a function may hold, and whose memory its tensors have: of
// fused ops, too.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_INTERFACE_LAUNCHES_H
#define GRETA_INTERFACE_LAUNCHES_H

#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace greta {

inline bool launchesKernels(mlir::func::FuncOp func) {
  return !func.getOps<tile::LaunchOp>().empty();
}

/// An attribute of a function whose arguments are memory and not values, so
/// that they may overlap.
inline constexpr llvm::StringLiteral inPlaceName = "greta.in_place";
/// An attribute of a function's argument that holds addresses which kernels
/// follow.
inline constexpr llvm::StringLiteral addressesName = "greta.addresses";

/// Returns the alignment of a tensor's beginning in bytes: that of the
/// runtime's buffers, unless the function's argument has a `greta.divisibility`
/// of its own.
int64_t alignmentOf(mlir::Value tensor);

/// Whether an update of a KV cache may write this result to the memory of the
/// operand.
bool updatesInPlace(mlir::OpResult made);

/// Whether the op is a sum over ranks, which is pure but takes memory that a
/// launch has filled.
bool sumsOverRanks(mlir::Operation *op);

/// Returns the value whose memory a tensor has. It follows views, updates in
/// place, sums over ranks of tensors without other uses, and launches from a
/// result to the operand that it is tied to.
mlir::Value memoryOf(mlir::Value tensor);

/// The argument whose memory a function's result has, by tied launches and
/// updates in place.
std::optional<unsigned> tiedArgument(mlir::Value result);

/// Fails where a function with launches does anything else, where two results
/// are one, and where something uses a tensor after it was written to in place.
llvm::LogicalResult checkLaunches(mlir::func::FuncOp func);

/// A module of the function and the kernels that it launches, each once.
mlir::OwningOpRef<mlir::ModuleOp> withKernels(mlir::func::FuncOp func,
                                              mlir::SymbolTable &symbols);

} // namespace greta

#endif
