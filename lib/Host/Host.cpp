//===- Host.cpp - the host target: a function's definition on the CPU -----===//
//
// greta → linalg (greta-decompose) → buffers → loops → LLVM → shared object.
// One kernel covers the function; it is the reference the others are checked
// against, and runs where no GPU is.
//
//===----------------------------------------------------------------------===//

#include "greta/Host/Host.h"
#include "Greta/Greta.h"
#include "HostEmit.h"
#include "greta/Interface/Launches.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace greta;

LogicalResult greta::compileForHost(OwningOpRef<ModuleOp> module,
                                    const TargetRow &row,
                                    const CompileOptions &options,
                                    CompiledVariant &variant) {
  auto func = *module->getOps<func::FuncOp>().begin();
  if (launchesKernels(func))
    return func.emitError("function '")
           << func.getSymName()
           << "' launches block programs, which have no form for the host; "
              "take vulkan in its place, which runs on the CPU, too";
  if (!func.getOps<AllReduceOp>().empty())
    return func.emitError("function '")
           << func.getSymName()
           << "' sums over ranks, which the host target does not have; take "
              "vulkan in its place, which runs on the CPU, too";
  FunctionSpec spec = getFunctionSpec(func);
  if (host::architecture().empty())
    return func.emitError("the host target knows x86-64 and aarch64, not this "
                          "machine; leave 'host' out of the targets");
  // No name of the user's may meet one of libm's.
  constexpr StringLiteral body = "greta.body";
  func.setSymName(body);
  {
    TimingScope scope = options.nest("to LLVM");
    PassManager pm(module->getContext());
    pm.enableTiming(scope);
    buildHostPipeline(pm);
    if (failed(pm.run(*module)))
      return failure();
  }

  CompiledKernel kernel;
  kernel.entry = "greta_" + spec.name;
  unsigned pointers = spec.args.size() + spec.results.size();
  FailureOr<std::string> object = host::emit(
      *module, body, kernel.entry, pointers, spec.symbols.size(), options);
  if (failed(object))
    return failure();
  kernel.object = std::move(*object);
  for (unsigned i = 0; i < spec.args.size(); ++i)
    kernel.args.push_back({KernelArg::Arg, i, {}});
  for (unsigned i = 0; i < spec.results.size(); ++i)
    kernel.args.push_back({KernelArg::Result, i, {}});
  variant.id = "host";
  variant.row = &row;
  variant.requires_.arch = host::architecture().str();
  variant.kernels.push_back(std::move(kernel));
  return success();
}
