//===- Compile.cpp - a candidate from its source, in a context of its own -===//

#include "Compile.h"
#include "OneLine.h"
#include "greta/Configure/RowRanges.h"
#include "greta/Package/Compile.h"
#include "greta/Package/Frontend.h"
#include "greta/Package/Package.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace mlir;
using namespace greta;
using namespace greta::tune;

static constexpr int64_t defaultSize = 2048;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  return registry;
}

static void addSource(llvm::SourceMgr &sources, const Source &source) {
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(source.text, onOneLine(source.path)),
      llvm::SMLoc());
}

namespace {
/// Numbers for what the package has over symbols.
class Sizes {
public:
  Sizes(MLIRContext *context, const FunctionSpec &spec,
        ArrayRef<int64_t> given) {
    for (unsigned i = 0; i < spec.symbols.size(); ++i)
      symbols.push_back(getAffineConstantExpr(
          i < given.size() ? given[i] : defaultSize, context));
  }

  /// Makes `rows` what it is asked to be, or the most below: by its first
  /// symbol, with 1 for the others.
  void set(AffineExpr rows, int64_t asked) {
    AffineExpr one = getAffineConstantExpr(1, rows.getContext());
    std::optional<unsigned> first;
    rows.walk([&](AffineExpr part) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(part)) {
        symbols[symbol.getPosition()] = one;
        first = first.value_or(symbol.getPosition());
      }
    });
    if (int64_t unit = (*this)(rows); first && unit > 0)
      symbols[*first] = getAffineConstantExpr(
          std::max<int64_t>(1, asked / unit), rows.getContext());
  }

  int64_t operator()(AffineExpr expr) const {
    AffineExpr value = expr.replaceDimsAndSymbols({}, symbols);
    auto constant = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(value, /*numDims=*/0, /*numSymbols=*/0));
    return constant ? constant.getValue() : 0;
  }

  uint64_t bytes(const TensorSpec &tensor) const {
    uint64_t bits = tensor.elementType.getIntOrFloatBitWidth();
    for (AffineExpr extent : tensor.shape)
      bits *= (*this)(extent);
    return llvm::divideCeil(bits, 8);
  }

private:
  SmallVector<AffineExpr> symbols;
};
} // namespace

static DynamicRows dynamicRows(ModuleOp module, const TargetRow &row) {
  return DynamicRows::of(*module.getOps<func::FuncOp>().begin(), row);
}

/// Random numbers, small enough for gates' products in f16; zeros where they
/// are positions.
static std::string inputFor(const TensorSpec &tensor, const Sizes &sizes,
                            unsigned seed) {
  std::string text;
  for (AffineExpr extent : tensor.shape)
    text += std::to_string(sizes(extent)) + "x";
  text += getDtypeName(tensor.elementType).str();
  if (tensor.elementType.isInteger(32) && tensor.shape.size() < 2)
    return text + ":zeros";
  text += ":random:" + std::to_string(seed);
  return isa<FloatType>(tensor.elementType) ? text + ":0.125" : text;
}

static std::vector<Launch> launchesOf(const FunctionSpec &spec,
                                      const CompiledVariant &variant,
                                      const Sizes &sizes) {
  std::vector<Launch> launches;
  for (const CompiledKernel &kernel : variant.kernels) {
    Launch &launch = launches.emplace_back();
    launch.entry = kernel.entry;
    launch.object = kernel.object;
    launch.block = kernel.block;
    for (auto [axis, extent] : llvm::enumerate(kernel.grid))
      launch.grid[axis] = sizes(extent);
    for (const KernelArg &arg : kernel.args) {
      if (arg.kind == KernelArg::Scalar) {
        launch.arguments.push_back({false, 0, sizes(arg.value)});
        continue;
      }
      const TensorSpec &tensor =
          arg.kind == KernelArg::Arg      ? spec.args[arg.index]
          : arg.kind == KernelArg::Result ? spec.results[arg.index]
                                          : variant.temps[arg.index];
      // Parts of a GEMM that meet at a tile: every workgroup is estimated as
      // the last one, which adds them up.
      int64_t word = 0;
      if (auto split = tensor.isZeroed
                           ? kernel.config.getAs<IntegerAttr>("split")
                           : IntegerAttr())
        word = split.getInt() - 1;
      launch.arguments.push_back({true, sizes.bytes(tensor), word});
    }
  }
  return launches;
}

Compiled greta::tune::compile(const Source &source, StringRef function,
                              ArrayRef<const TargetRow *> rows,
                              const TuningDatabase *tuning,
                              ArrayRef<int64_t> sizes, int64_t expected) {
  MLIRContext context(makeRegistry(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  Compiled result;
  // An error, or a remark that the configuration was not taken. Warnings are
  // of spills, which the time will show.
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Warning &&
        result.problem.empty())
      result.problem = diagnostic.str();
    return success();
  });
  llvm::SourceMgr sources;
  addSource(sources, source);
  TimingScope timing;
  FailureOr<std::vector<SourceFunction>> functions =
      readSource(sources, &context, timing);
  if (failed(functions))
    return result;
  for (SourceFunction &one : *functions) {
    if (one.spec.name != function)
      continue;
    CompileOptions options;
    options.tuning = tuning;
    // The GEMM is the one of the database's key.
    options.hasRanges = false;
    CompiledFunction compiled;
    compiled.spec = one.spec;
    Sizes values(&context, one.spec, sizes);
    for (const TargetRow *row : rows) {
      OwningOpRef<ModuleOp> module = one.module->clone();
      if (expected) {
        DynamicRows dynamic = dynamicRows(*module, *row);
        dynamic.expect(expected);
        values.set(dynamic.extent, expected);
      }
      if (failed(compileVariants(std::move(module), *row, options,
                                 compiled.variants)) &&
          result.problem.empty())
        result.problem = "it does not compile";
      if (!result.problem.empty())
        return result;
    }
    for (const CompiledVariant &variant : compiled.variants)
      result.variants.push_back({variant.id, variant.row});
    result.launches = launchesOf(one.spec, compiled.variants.front(), values);
    for (auto [i, arg] : llvm::enumerate(one.spec.args))
      result.inputs.push_back(inputFor(arg, values, i + 1));
    llvm::Expected<std::string> bytes =
        archivePackage(describePackage(compiled));
    if (!bytes)
      result.problem = llvm::toString(bytes.takeError());
    else
      result.package = std::move(*bytes);
  }
  return result;
}

/// Adds the GEMMs of a function that are not there yet, for a dynamic M of up
/// to `rows`, 0: any.
static LogicalResult addGemms(ModuleOp function, const TargetRow &row,
                              unsigned candidates, int64_t rows,
                              std::vector<TunableGemm> &all) {
  OwningOpRef<ModuleOp> module = function.clone();
  if (rows)
    dynamicRows(*module, row).expect(rows);
  PassManager passes(module->getContext());
  buildFusionPipeline(passes, row.name, /*matrix=*/true);
  if (failed(passes.run(*module)))
    return failure();
  FailureOr<std::vector<TunableGemm>> gemms =
      findTunable(*module, row, candidates);
  if (failed(gemms))
    return failure();
  for (TunableGemm &gemm : *gemms) {
    gemm.rows = rows;
    if (llvm::none_of(all, [&](auto &other) { return other.key == gemm.key; }))
      all.push_back(std::move(gemm));
  }
  return success();
}

FailureOr<std::vector<FunctionGemms>>
greta::tune::findGemms(const Source &source, ArrayRef<const TargetRow *> rows,
                       unsigned candidates) {
  MLIRContext context(makeRegistry(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  addSource(sources, source);
  SourceMgrDiagnosticHandler handler(sources, &context);
  TimingScope timing;
  FailureOr<std::vector<SourceFunction>> functions =
      readSource(sources, &context, timing);
  if (failed(functions))
    return failure();
  std::vector<FunctionGemms> found;
  for (SourceFunction &function : *functions) {
    FunctionGemms &result = found.emplace_back();
    result.name = function.spec.name;
    for (const TargetRow *row : rows) {
      std::vector<TunableGemm> &gemms = result.gemms.emplace_back();
      FailureOr<SmallVector<RowRange>> ranges = chooseRowRanges(
          *function.module, *row, /*matrix=*/true, /*tuning=*/nullptr);
      if (failed(ranges) ||
          failed(addGemms(*function.module, *row, candidates, 0, gemms)))
        return failure();
      for (const RowRange &range : *ranges)
        if (failed(addGemms(*function.module, *row, candidates, range.expected,
                            gemms)))
          return failure();
    }
  }
  return found;
}
