//===- Frontend.h - from a source file to functions to compile --*- C++ -*-===//
#ifndef GRETA_PACKAGE_FRONTEND_H
#define GRETA_PACKAGE_FRONTEND_H

#include "greta/Interface/Variant.h"
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
  mlir::DictionaryAttr metadata; // of the whole source; null: none
};

/// An attribute of one public function: a dictionary of strings, which becomes
/// the package's `metadata`.
constexpr llvm::StringLiteral metadataName = "greta.metadata";

/// An attribute of a public function: a device with fewer compute units does
/// not take its variants for GPUs, as of programs whose workgroups wait for
/// each other.
constexpr llvm::StringLiteral computeUnitsName = "greta.least_compute_units";

/// The choices that a source of Triton IR leaves open.
struct TritonOptions {
  bool isExpected = false; // anything else is an error
  std::string grid;        // as triton-to-tile's; empty: from arguments
  unsigned numWarps = 0;   // 0: what the text says, else 4
  unsigned numStages = 0;  // of loops that do not say it; 0: nobody asks
};

/// Refuses a source with characters that a terminal may take for more than
/// letters, because errors show the source's lines.
mlir::LogicalResult checkText(llvm::StringRef name, llvm::StringRef text,
                              mlir::MLIRContext *context);

/// Parses and checks the source, inlines private functions, names arguments as
/// the source does, and finds the shapes of everything; Triton IR becomes block
/// programs. Failures are reported at the source's line.
mlir::FailureOr<std::vector<SourceFunction>>
readSource(llvm::SourceMgr &sources, mlir::MLIRContext *context,
           mlir::TimingScope &timing, const TritonOptions &options = {});

} // namespace greta

#endif
