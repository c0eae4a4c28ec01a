//===- Gpu.h - the code generator of GPU targets ----------------*- C++ -*-===//
//
// compileVariants calls this for hip and vulkan rows.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_PACKAGE_GPU_H
#define GRETA_LIB_PACKAGE_GPU_H

#include "greta/Package/Compile.h"

namespace greta {

/// The function for one hip or vulkan row, without the row's matrix
/// instructions where `matrix` is false.
llvm::LogicalResult compileForGpu(mlir::OwningOpRef<mlir::ModuleOp> module,
                                  const TargetRow &row, bool matrix,
                                  const CompileOptions &options,
                                  CompiledVariant &variant);

/// compileForGpu for a hip row with its matrix instructions; where kernels
/// spill, with smaller tiles.
llvm::LogicalResult compileForHip(mlir::OwningOpRef<mlir::ModuleOp> module,
                                  const TargetRow &row,
                                  const CompileOptions &options,
                                  CompiledVariant &variant);

/// Compiles a module as the variant of `addRanges` was.
using CompileOne = llvm::function_ref<llvm::LogicalResult(
    mlir::OwningOpRef<mlir::ModuleOp>, CompiledVariant &)>;

/// Adds the kernels for ranges of a dynamic M to the variant of the module's
/// function for a row.
llvm::LogicalResult addRanges(mlir::ModuleOp module, const TargetRow &row,
                              bool matrix, const CompileOptions &options,
                              CompileOne compile, CompiledVariant &variant);

/// Gives a variant without matrix instructions those ranges of the one with
/// them that do without, too.
void takeRanges(const CompiledVariant &from, CompiledVariant &variant);

} // namespace greta

#endif
