//===- Ranges.cpp - kernels for ranges of a dynamic M ---------------------===//
//
// In: a module with one function, and its variant for a row of the target
// table, whose kernels compute any M. Out: the variant with the kernels of each
// range of M that is worth them (RowRanges.h). Kernels of neighbours that are
// the same, or those for any M, are there once. A range whose compilation fails
// is left to the kernels for any M.
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"
#include "greta/Configure/RowRanges.h"

using namespace mlir;
using namespace greta;

static bool isSame(const TensorSpec &a, const TensorSpec &b) {
  return a.elementType == b.elementType && a.shape == b.shape &&
         a.isZeroed == b.isZeroed;
}

static bool isSame(const KernelArg &a, const KernelArg &b) {
  return a.kind == b.kind && a.index == b.index && a.value == b.value &&
         a.isWide == b.isWide && a.largest == b.largest;
}

static bool isSame(const CompiledKernel &a, const CompiledKernel &b) {
  auto same = [](const KernelArg &x, const KernelArg &y) {
    return isSame(x, y);
  };
  return a.object == b.object && a.entry == b.entry && a.grid == b.grid &&
         a.block == b.block && llvm::equal(a.args, b.args, same) &&
         a.byRows == b.byRows;
}

static bool isSame(const RankSum &a, const RankSum &b) {
  return a.after == b.after && isSame(a.from, b.from) && isSame(a.to, b.to) &&
         a.partRows == b.partRows && a.extent == b.extent &&
         a.before == b.before && a.behind == b.behind;
}

/// Whether two lists of kernels do the same in a launch.
static bool isSame(const CompiledKernels &a, const CompiledKernels &b) {
  auto same = [](const auto &x, const auto &y) { return isSame(x, y); };
  return llvm::equal(a.temps, b.temps, same) &&
         llvm::equal(a.kernels, b.kernels, same) &&
         llvm::equal(a.sums, b.sums, same);
}

LogicalResult greta::addRanges(ModuleOp module, const TargetRow &row,
                               bool matrix, const CompileOptions &options,
                               CompileOne compile, CompiledVariant &variant) {
  if (options.artifact != Artifact::Object || !options.hasRanges)
    return success();
  TimingScope timing = options.nest("choose ranges of rows");
  FailureOr<SmallVector<RowRange>> ranges =
      chooseRowRanges(module, row, matrix, options.tuning);
  timing.stop();
  if (failed(ranges))
    return failure();
  // A range without kernels of its own ends the one before.
  CompiledRange *before = nullptr;
  for (const RowRange &one : *ranges) {
    OwningOpRef<ModuleOp> copy = module.clone();
    DynamicRows dynamic =
        DynamicRows::of(*copy->getOps<func::FuncOp>().begin(), row);
    AffineExpr extent = dynamic.extent;
    dynamic.expect(one.expected);
    CompiledVariant own;
    // The kernels for any M said what there is to say.
    ScopedDiagnosticHandler handler(module->getContext(),
                                    [](Diagnostic &) { return success(); });
    if (failed(compile(std::move(copy), own)) || isSame(own, variant)) {
      before = nullptr;
      continue;
    }
    if (before && before->most + 1 == one.least && isSame(own, *before)) {
      before->most = one.most;
      continue;
    }
    before = &variant.ranges.emplace_back();
    static_cast<CompiledKernels &>(*before) = std::move(own);
    before->extent = extent;
    before->least = one.least;
    before->most = one.most;
    before->requires_ = std::move(own.requires_);
  }
  return success();
}

void greta::takeRanges(const CompiledVariant &from, CompiledVariant &variant) {
  for (const CompiledRange &range : from.ranges)
    if (range.requires_.coopmat.empty())
      variant.ranges.push_back(range);
}
