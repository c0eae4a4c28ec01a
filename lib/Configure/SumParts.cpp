//===- SumParts.cpp - the parts of sums over ranks ------------------------===//
//
// In: a function with sums over ranks, the targets of its package. Out: the
// rows of a part of each sum.
//
//   whole   G G G G S S S S      G: a GEMM, S: the sum of what it makes
//   parts   G G G G              each S behind its G and the S before it
//             S S S S
//
// The GEMM's time is the tile model's for the rows of a part, so that one which
// leaves compute units idle costs what it costs. A sum over two ranks sends
// each byte once through the link in either direction, and takes `latency` with
// any size.
//
//===----------------------------------------------------------------------===//

#include "greta/Configure/SumParts.h"
#include "Configure.h"
#include "greta/Fuse/Symbols.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace greta;

/// Microseconds that a sum takes with any size. NCCL needs 10 for 16 KB on two
/// H200 (docs/benchmarks/collectives.csv); RCCL's are assumed, not measured.
static constexpr double latency = 15;

/// The share of the time that parts must bring: launches and waits that the
/// model does not know.
static constexpr double worthwhile = 0.03;

/// The fewest and the most rows of a part.
static constexpr int64_t fewest = 128, most = 1024;

namespace {
/// A sum, and the GEMM whose kernel makes what it sums up.
struct SumOfGemm {
  std::function<double(int64_t)> microseconds; // of the GEMM; null: no GEMM
  double bytesOfRow = 0;
  double sum(int64_t rows, const TargetRow &row) const {
    return latency + rows * bytesOfRow / (row.linkGBs * 1e3);
  }
  /// With parts of `part` rows, one begun by a device while the next is
  /// computed.
  double inParts(int64_t rows, int64_t part, const TargetRow &row) const {
    double computed = 0, summed = 0;
    for (int64_t begin = 0; begin < rows; begin += part) {
      int64_t count = std::min(part, rows - begin);
      computed += microseconds(count);
      summed = std::max(computed, summed) + sum(count, row);
    }
    return summed;
  }
};
} // namespace

/// The sum in a function that greta-fuse left, over rows of one symbol.
static SumOfGemm sumOfGemm(AllReduceOp sum, const Limits &limits) {
  SumOfGemm found;
  auto type = sum.getType();
  if (!type.getRank() || !isa<AffineSymbolExpr>(sum.getShape()->getResult(0)) ||
      ShapedType::isDynamicShape(type.getShape().drop_front()))
    return found;
  found.bytesOfRow = ShapedType::getNumElements(type.getShape().drop_front()) *
                     (type.getElementType().getIntOrFloatBitWidth() / 8.0);
  auto kernel = sum.getX().getDefiningOp<KernelOp>();
  if (!kernel)
    return found;
  FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
  if (failed(spaces) || spaces->size() != 1 || !spaces->front().matmul)
    return found;
  FailureOr<Choice> choice =
      choose(spaces->front(), limits, kernel.getContext());
  if (succeeded(choice) && choice->cycles)
    found.microseconds = [cycles = choice->cycles, clock = limits.row.clockMHz](
                             int64_t rows) { return cycles(rows) / clock; };
  return found;
}

std::optional<SmallVector<SumTime>>
greta::timeSums(ModuleOp module, const TargetRow &row, int64_t rows,
                const TuningDatabase *tuning) {
  if (!row.linkGBs)
    return std::nullopt;
  // Candidates hold attributes of this dialect, which no pass may have loaded.
  module.getContext()->loadDialect<tile::GretaTileDialect>();
  OwningOpRef<ModuleOp> copy = module.clone();
  // Errors are reported when the function is compiled.
  ScopedDiagnosticHandler handler(module->getContext(),
                                  [](Diagnostic &) { return success(); });
  PassManager passes(module->getContext());
  buildFusionPipeline(passes, row.name, /*matrix=*/true);
  if (failed(passes.run(*copy)))
    return std::nullopt;
  Limits limits(row, /*useMatrix=*/true, tuning);
  SmallVector<SumTime> times;
  auto function = *copy->getOps<func::FuncOp>().begin();
  for (auto op : function.getOps<AllReduceOp>()) {
    SumTime &time = times.emplace_back();
    SumOfGemm sum = sumOfGemm(op, limits);
    if (!sum.microseconds)
      continue;
    time.gemm = sum.microseconds(rows);
    time.sum = sum.sum(rows, row);
    time.whole = time.parts = time.gemm + time.sum;
    auto consider = [&](int64_t part) {
      double took = sum.inParts(rows, part, row);
      if (took >= time.parts && !op.getPartRows())
        return;
      time.parts = took;
      time.rows = part;
    };
    if (std::optional<int64_t> asked = op.getPartRows()) {
      if (*asked)
        consider(*asked);
      continue;
    }
    for (int64_t part = fewest; part <= most; part *= 2)
      consider(part);
    if (time.parts > (1 - worthwhile) * time.whole)
      time.rows = 0;
  }
  return times;
}

void greta::choosePartRows(ModuleOp module, ArrayRef<const TargetRow *> targets,
                           std::optional<int64_t> asked,
                           const TuningDatabase *tuning) {
  SmallVector<AllReduceOp> sums;
  module.walk([&](AllReduceOp sum) { sums.push_back(sum); });
  if (llvm::all_of(
          sums, [](AllReduceOp sum) { return sum.getPartRows().has_value(); }))
    return;
  SmallVector<int64_t> rows(sums.size(), 0);
  if (asked)
    rows.assign(sums.size(), *asked);
  for (const TargetRow *row : asked ? ArrayRef<const TargetRow *>() : targets) {
    auto times = timeSums(module, *row, rowsOfPrompt, tuning);
    // Fusion keeps sums, and their order.
    if (!times || times->size() != sums.size())
      return;
    for (auto [own, time] : llvm::zip(rows, *times))
      own = row == targets.front() || (own && time.rows)
                ? std::max(own, time.rows)
                : 0;
  }
  for (auto [sum, own] : llvm::zip(sums, rows))
    if (own && !sum.getPartRows() && sum.getType().getRank())
      sum.setPartRows(own);
}
