//===- Host.h - the host target: the ops' definitions on the CPU -*- C++
//-*-===//
#ifndef GRETA_HOST_HOST_H
#define GRETA_HOST_HOST_H

#include "greta/Interface/Options.h"
#include "greta/Interface/Variant.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class OpPassManager;
}

namespace greta {

/// greta ops on tensors to the LLVM dialect for a CPU: every function becomes
/// one of bare pointers, arguments then results, and one integer per symbol.
/// Needs greta-annotate-shapes. greta-opt has it as --greta-to-host.
void buildHostPipeline(mlir::OpPassManager &pm);

/// The generator of the `host` target: the ops' definitions on the CPU.
llvm::LogicalResult compileForHost(mlir::OwningOpRef<mlir::ModuleOp> module,
                                   const TargetRow &row,
                                   const CompileOptions &options,
                                   CompiledVariant &variant);

} // namespace greta

#endif
