//===- Compile.h - from a function to the code of a target ------*- C++ -*-===//
//
// The seam between the driver and the code generators. A generator gets a
// module with one public function of greta, arith and math ops whose attributes
// greta.symbols and greta.shapes are set (greta-annotate-shapes), and owns it.
// It reports failures as diagnostics at the op that caused them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PACKAGE_COMPILE_H
#define GRETA_PACKAGE_COMPILE_H

#include "greta/Interface/Options.h"
#include "greta/Interface/Variant.h"
#include "greta/Package/Frontend.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace greta {

/// Everything the generators need registered before a module is parsed.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// The passes from greta ops, or from block programs where `launches` says that
/// functions launch them, to one lane's program for a hip or vulkan row.
/// `matrix`: whether the row's matrix instructions are used.
void buildGpuPipeline(mlir::OpPassManager &passes, const TargetRow &row,
                      bool matrix, bool launches,
                      const CompileOptions &options);

/// Appends the variants of `row` for the one public function of `module`.
llvm::LogicalResult
compileVariants(mlir::OwningOpRef<mlir::ModuleOp> module, const TargetRow &row,
                const CompileOptions &options,
                llvm::SmallVectorImpl<CompiledVariant> &variants);

/// Compiles everything for every target, functions in the order of the source.
/// Calls `begins` with the name of a function and of a target before it
/// compiles the one for the other.
llvm::FailureOr<llvm::SmallVector<CompiledFunction, 1>> compileFunctions(
    std::vector<SourceFunction> &functions,
    llvm::ArrayRef<const TargetRow *> rows, const CompileOptions &options,
    llvm::function_ref<void(llvm::StringRef, llvm::StringRef)> begins =
        nullptr);

} // namespace greta

#endif
