//===- Gpu.h - the code generator of GPU targets ----------------*- C++ -*-===//
//
// What compileVariants calls for hip and vulkan rows.
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

/// The same for a hip row with its matrix instructions; where kernels spill,
/// with smaller tiles.
llvm::LogicalResult compileForHip(mlir::OwningOpRef<mlir::ModuleOp> module,
                                  const TargetRow &row,
                                  const CompileOptions &options,
                                  CompiledVariant &variant);

} // namespace greta

#endif
