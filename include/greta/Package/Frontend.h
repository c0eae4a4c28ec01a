//===- Frontend.h - from a source file to functions to compile --*- C++ -*-===//
#ifndef GRETA_PACKAGE_FRONTEND_H
#define GRETA_PACKAGE_FRONTEND_H

#include "greta/Package/Variant.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/SourceMgr.h"
#include <vector>

namespace greta {

/// A public function in a module of its own, ready for the code generators.
struct SourceFunction {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  FunctionSpec spec;
};

/// Parses and checks the source, inlines private functions, names arguments as
/// the source does, and finds the shapes of everything. Failures are reported
/// at the source's line.
mlir::FailureOr<std::vector<SourceFunction>>
readSource(llvm::SourceMgr &sources, mlir::MLIRContext *context,
           mlir::TimingScope &timing);

} // namespace greta

#endif
