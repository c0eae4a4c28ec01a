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

#include "greta/Package/Variant.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/Timing.h"

namespace mlir {
class DialectRegistry;
class OpPassManager;
namespace func {
class FuncOp;
}
} // namespace mlir

namespace greta {

struct TuningDatabase;

/// What CompiledKernel::object holds.
enum class Artifact {
  Object,   ///< hsaco, SPIR-V binary, shared object
  Assembly, ///< the target's assembly, or SPIR-V as MLIR's spirv dialect
  LLVMIR,   ///< after optimisation; hip and host only
  Nothing,  ///< no more than what is ours: LLVM gets its IR, unused
};

struct CompileOptions {
  Artifact artifact = Artifact::Object;
  /// Generators nest a scope per step.
  mlir::TimingScope *timing = nullptr;
  /// What was measured of products; null: nothing.
  const TuningDatabase *tuning = nullptr;

  mlir::TimingScope nest(llvm::StringRef step) const {
    return timing ? timing->nest(step) : mlir::TimingScope();
  }
};

/// Everything the generators need registered before a module is parsed.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Appends the variants of `row` for the one public function of `module`.
llvm::LogicalResult
compileVariants(mlir::OwningOpRef<mlir::ModuleOp> module, const TargetRow &row,
                const CompileOptions &options,
                llvm::SmallVectorImpl<CompiledVariant> &variants);

/// greta ops on tensors to the LLVM dialect for a CPU: every function becomes
/// one of bare pointers, arguments then results, and one integer per symbol.
/// Needs greta-annotate-shapes. greta-opt has it as --greta-to-host.
void buildHostPipeline(mlir::OpPassManager &pm);

/// The generator of the `host` target: the ops' definitions on the CPU.
llvm::LogicalResult compileForHost(mlir::OwningOpRef<mlir::ModuleOp> module,
                                   const TargetRow &row,
                                   const CompileOptions &options,
                                   CompiledVariant &variant);

/// The function's interface from its type, its arguments' greta.name and the
/// attributes of greta-annotate-shapes.
FunctionSpec getFunctionSpec(mlir::func::FuncOp func);

/// The manifest's name of an element type; empty when it has none. Those that
/// no fused op has only where `all` are asked for.
llvm::StringRef getDtypeName(mlir::Type type, bool all = true);

} // namespace greta

#endif
