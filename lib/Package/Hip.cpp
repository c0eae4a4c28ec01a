//===- Hip.cpp - a function for a hip row, without spills -----------------===//
//
// In: a module with one function. Out: its variant. Nobody foresees LLVM's
// register allocation of a tile wholly: if a kernel spills vector registers,
// the choice is made again with as many registers to spare, until none spills,
// else the tile that spills least is taken. A kernel that has been compiled is
// not compiled again: LLVM takes longest where much spills. The manifest names
// the tiles that were passed over. Kernels that still spill, and block
// programs, which chose their blocks themselves, are compiled in LLVM's other
// orders of instructions, too.
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"
#include "greta/Interface/Launches.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace greta;

/// So many other choices are compiled in place of one that spills.
static constexpr unsigned mostReplacements = 6;

namespace {

/// A compilation and its diagnostics.
struct Attempt {
  CompiledVariant variant;
  std::vector<Diagnostic> said;
  LogicalResult result = failure();

  Attempt(ModuleOp function, const TargetRow &row,
          const CompileOptions &options) {
    ScopedDiagnosticHandler handler(
        function->getContext(),
        [&](Diagnostic &what) { said.push_back(std::move(what)); });
    result =
        compileForGpu(function.clone(), row, /*matrix=*/true, options, variant);
  }

  /// The bytes of scratch memory of a lane, added up over all kernels.
  int64_t scratch() const {
    return sum([](const KernelStats &stats) { return stats.scratchBytes; });
  }
  int64_t spills() const {
    return sum([](const KernelStats &stats) { return stats.vgprSpills; });
  }

private:
  int64_t sum(llvm::function_ref<int64_t(const KernelStats &)> part) const {
    int64_t all = 0;
    for (const CompiledKernel &kernel : variant.kernels)
      all += kernel.stats ? part(*kernel.stats) : 0;
    return all;
  }
};

} // namespace

/// Notes in the kernels of `better` the configurations of `worse` and their
/// spills.
static void passOver(const CompiledVariant &worse, CompiledVariant &better) {
  for (auto [before, now] : llvm::zip(worse.kernels, better.kernels)) {
    now.passedOver = before.passedOver;
    if (before.stats && before.stats->scratchBytes &&
        before.config != now.config)
      now.passedOver.push_back({before.config, before.stats->vgprSpills});
  }
}

LogicalResult greta::compileForHip(OwningOpRef<ModuleOp> module,
                                   const TargetRow &row,
                                   const CompileOptions &options,
                                   CompiledVariant &variant) {
  MLIRContext *context = module->getContext();
  auto func = *module->getOps<func::FuncOp>().begin();
  CompileOptions how = options, chosen = options;
  // Block programs chose their blocks themselves.
  if (launchesKernels(func) || options.artifact == Artifact::Nothing) {
    how.reorders = true;
    return compileForGpu(std::move(module), row, /*matrix=*/true, how, variant);
  }
  // The object tells what spills, also where its text is asked for.
  how.artifact = Artifact::Object;
  auto attempt = [&] { return std::make_unique<Attempt>(*module, row, how); };
  std::unique_ptr<Attempt> best = attempt();
  for (unsigned i = 0; i < mostReplacements && best->scratch(); ++i) {
    how.spareRegisters = how.spareRegisters
                             ? how.spareRegisters * 3 / 2
                             : std::clamp<int64_t>(best->spills(), 8, 24);
    std::unique_ptr<Attempt> last = attempt();
    if (failed(last->result))
      break;
    // Without matrix instructions all would fit.
    if (last->scratch() >= best->scratch() ||
        last->variant.id != best->variant.id)
      continue;
    passOver(best->variant, last->variant);
    chosen.spareRegisters = how.spareRegisters;
    best = std::move(last);
  }
  chosen.reorders = best->scratch();
  if (succeeded(best->result) &&
      (options.artifact != Artifact::Object || chosen.reorders)) {
    how = chosen;
    std::unique_ptr<Attempt> last = attempt();
    passOver(best->variant, last->variant);
    best = std::move(last);
  }
  for (Diagnostic &what : best->said)
    context->getDiagEngine().emit(std::move(what));
  variant = std::move(best->variant);
  return best->result;
}
