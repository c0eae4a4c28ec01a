//===- Hip.cpp - a function for a hip row, without spills -----------------===//
//
// In: a module with one function. Out: its variant. Nobody foresees LLVM's
// register allocation of a tile wholly: if a kernel spills vector registers,
// the choice is made again with as many registers to spare, until none spills,
// else the tile that spills least is taken. A choice whose programs have been
// compiled is not compiled again: LLVM takes longest where much spills. The
// manifest names the tiles that were passed over. Kernels that still spill, and
// block programs, which chose their blocks themselves, get the order of
// instructions among LLVM's whose main loop is fastest.
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"
#include "greta/Interface/Launches.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace greta;

/// Choices that are compiled in place of one that spills.
static constexpr unsigned mostReplacements = 6;
/// LLVM's orders of instructions (`amdgpu-sched-strategy`) that are tried where
/// its usual one spills.
static constexpr StringLiteral schedulings[] = {"max-memory-clause", "max-ilp",
                                                "iterative-minreg"};

namespace {

/// Code objects of a choice of tiles, and what their compilation said.
struct Emission {
  StringRef scheduling;
  CompiledVariant variant;
  std::vector<Diagnostic> said;
  LogicalResult result = failure();

  Emission(ModuleOp module, const TargetRow &row, const CompileOptions &options)
      : scheduling(options.scheduling) {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &what) {
      said.push_back(std::move(what));
    });
    result = emitForGpu(module, row, options, variant);
  }

  /// The bytes of scratch memory of a lane, of all kernels.
  int64_t scratch() const {
    return sum([](const KernelStats &stats) { return stats.scratchBytes; });
  }
  int64_t spills() const {
    return sum([](const KernelStats &stats) { return stats.vgprSpills; });
  }

  /// By more than the estimate's error, from the main loops' shares of matrix
  /// instructions, of which the code has as many in any order; without such
  /// loops by scratch memory.
  bool isFasterThan(const Emission &other) const {
    constexpr double error = 0.05;
    double own = loopTime(), others = other.loopTime();
    return own && others ? own < (1 - error) * others
                         : scratch() < other.scratch();
  }

private:
  double loopTime() const {
    double time = 0;
    for (const CompiledKernel &kernel : variant.kernels)
      if (kernel.stats && kernel.stats->loop)
        time += 1 / kernel.stats->loop->matrixShare;
    return time;
  }
  int64_t sum(llvm::function_ref<int64_t(const KernelStats &)> part) const {
    int64_t all = 0;
    for (const CompiledKernel &kernel : variant.kernels)
      all += kernel.stats ? part(*kernel.stats) : 0;
    return all;
  }
};

/// A choice of tiles, lowered, and its code objects.
struct Attempt {
  OwningOpRef<ModuleOp> module;
  std::vector<Diagnostic> said;
  LogicalResult result = failure();
  std::optional<Emission> code;

  Attempt(ModuleOp function, const TargetRow &row,
          const CompileOptions &options)
      : module(function.clone()) {
    ScopedDiagnosticHandler handler(
        module->getContext(),
        [&](Diagnostic &what) { said.push_back(std::move(what)); });
    result = lowerForGpu(*module, row, /*matrix=*/true, options);
  }

  void emit(const TargetRow &row, const CompileOptions &options) {
    if (failed(result))
      return;
    code.emplace(*module, row, options);
    result = code->result;
  }

  /// Takes another order of instructions if spills cost less in it.
  void reorder(const TargetRow &row, CompileOptions options) {
    for (StringRef scheduling : schedulings) {
      if (failed(result) || !code->scratch())
        return;
      options.scheduling = scheduling;
      Emission next(*module, row, options);
      if (succeeded(next.result) && next.isFasterThan(*code))
        code = std::move(next);
    }
  }

  int64_t scratch() const { return code ? code->scratch() : 0; }

  bool hasSamePrograms(const Attempt &other) const {
    return OperationEquivalence::isEquivalentTo(
        *module, *other.module, OperationEquivalence::IgnoreLocations);
  }
};

} // namespace

/// Notes in the kernels of `better` what those of `worse` spilled.
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
  if (options.artifact == Artifact::Nothing)
    return compileForGpu(std::move(module), row, /*matrix=*/true, options,
                         variant);
  // Block programs chose their blocks themselves.
  auto func = *module->getOps<func::FuncOp>().begin();
  const unsigned replacements = launchesKernels(func) ? 0 : mostReplacements;
  // The object tells what spills, also where its text is asked for.
  CompileOptions how = options, chosen = options;
  how.artifact = Artifact::Object;
  std::vector<std::unique_ptr<Attempt>> attempts;
  auto attempt = [&]() -> Attempt & {
    return *attempts.emplace_back(std::make_unique<Attempt>(*module, row, how));
  };
  Attempt *best = &attempt();
  best->emit(row, how);
  for (unsigned i = 0; i < replacements && best->scratch(); ++i) {
    how.spareRegisters = how.spareRegisters
                             ? how.spareRegisters * 3 / 2
                             : std::clamp<int64_t>(best->code->spills(), 8, 24);
    Attempt &last = attempt();
    if (llvm::any_of(llvm::drop_end(attempts), [&](const auto &before) {
          return succeeded(last.result) && last.hasSamePrograms(*before);
        })) {
      attempts.pop_back();
      continue;
    }
    last.emit(row, how);
    if (failed(last.result))
      break;
    // Without matrix instructions all would fit.
    if (last.scratch() >= best->scratch() ||
        last.code->variant.id != best->code->variant.id)
      continue;
    passOver(best->code->variant, last.code->variant);
    chosen.spareRegisters = how.spareRegisters;
    best = &last;
  }
  best->reorder(row, how);
  if (options.artifact != Artifact::Object && succeeded(best->result)) {
    how = chosen;
    how.scheduling = best->code->scheduling;
    best = &attempt();
    best->emit(row, how);
  }
  auto tell = [&](std::vector<Diagnostic> &said) {
    for (Diagnostic &what : said)
      context->getDiagEngine().emit(std::move(what));
  };
  tell(best->said);
  if (best->code) {
    tell(best->code->said);
    variant = std::move(best->code->variant);
  }
  return best->result;
}
