//===- Host.h - the steps of the host target --------------------*- C++ -*-===//
#ifndef GRETA_LIB_PACKAGE_HOST_H
#define GRETA_LIB_PACKAGE_HOST_H

#include "greta/Package/Compile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace greta::host {

/// linalg on tensors: swaps loops so that the innermost one runs along
/// contiguous memory in every matrix product.
void interchangeContractions(mlir::func::FuncOp func);

/// Replaces the tensors of the signature by one bare pointer each, arguments
/// then results, and one index per symbol. What was returned is written to the
/// results' memory.
void passTensorsByPointer(mlir::func::FuncOp func, const FunctionSpec &spec);

/// After bufferization: frees every buffer and makes copies loops.
void finishBuffers(mlir::func::FuncOp func);

/// linalg on buffers: tiles matrix products for the caches.
void tileContractions(mlir::func::FuncOp func);

/// The passes around these steps.
void addTensorPasses(mlir::OpPassManager &pm);
void addBufferizePasses(mlir::OpPassManager &pm);
void addLLVMPasses(mlir::OpPassManager &pm);

/// Optimises the LLVM dialect module and makes what `options` asks for of it;
/// `entry` becomes `void entry(void **pointers, const int64_t *symbols)`, which
/// calls `function` with `pointers` pointers and `symbols` integers.
mlir::FailureOr<std::string>
emit(mlir::ModuleOp module, llvm::StringRef function, llvm::StringRef entry,
     unsigned pointers, unsigned symbols, const CompileOptions &options);

/// What the code runs on: "x86-64-v3" or "aarch64"; empty: no such host.
llvm::StringRef architecture();

} // namespace greta::host

#endif
