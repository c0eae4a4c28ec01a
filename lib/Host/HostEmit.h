//===- HostEmit.h - the LLVM dialect to a shared object ---------*- C++ -*-===//
#ifndef GRETA_LIB_HOST_HOSTEMIT_H
#define GRETA_LIB_HOST_HOSTEMIT_H

#include "greta/Interface/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace greta::host {

/// Optimises the LLVM dialect module and makes what `options` asks for of it;
/// `entry` becomes `void entry(void **pointers, const int64_t *symbols)`, which
/// calls `function` with `pointers` pointers and `symbols` integers.
mlir::FailureOr<std::string>
emit(mlir::ModuleOp module, llvm::StringRef function, llvm::StringRef entry,
     unsigned pointers, unsigned symbols, const CompileOptions &options);

/// The machine that the code runs on: "x86-64-v3" or "aarch64"; empty: no such
/// host.
llvm::StringRef architecture();

} // namespace greta::host

#endif
