//===- RowRanges.cpp - kernels for ranges of a dynamic M ------------------===//
//
// In: a function with GEMMs or attention of a dynamic M, a target row. Out: the
// ranges of M for which the model has kernels that are faster than those for
// any M.
//
// The function is fused and its GEMMs are configured as if M were 1, 2, 4, ..,
// and as without knowledge of M. Each set of choices has a time at each M of
// that list. From the largest M down the set that serves the longest run of the
// list takes it. The set for any M comes first, as it needs no range. The
// others serve the M that they are chosen for and smaller ones. At powers of
// eight a set must be as fast as what is chosen for them, so that M = 1, 8, 64
// and 512 run as if they were in the type; elsewhere it may be slower by
// `ofAny` or `between`, so that a GEMM has few ranges where memory is what it
// waits for. Nothing is worth a range that brings less than `launch`.
//
//===----------------------------------------------------------------------===//

#include "greta/Configure/RowRanges.h"
#include "Configure.h"
#include "TileModel.h"
#include "greta/Configure/Tuning.h"
#include "greta/Fuse/Symbols.h"
#include "greta/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>

using namespace mlir;
using namespace greta;

/// How much slower kernels may be than what is chosen for an M, as a share of
/// the time: those for any M and those of a range between powers of eight, and
/// all at powers of eight, where the model does not tell them apart.
static constexpr double ofAny = 0.03, between = 0.1, exact = 0.001;

/// Microseconds that no range is worth: a launch takes as long.
static constexpr double launch = 1;

/// M is looked at up to this power of two: what is chosen for any M is chosen
/// for the next.
static constexpr int64_t mostRows = 1024;

/// All rows of a grouped GEMM, T.
static AffineExpr rowsOf(GroupedMatmulOp matmul, ShapeAnalysis &shapes) {
  AffineMap a = shapes.shapeOf(matmul.getA());
  return a ? a.getResult(0) : AffineExpr();
}

static AffineExpr rowsOf(MatmulOp matmul, ShapeAnalysis &shapes) {
  AffineMap a = shapes.shapeOf(matmul.getA());
  if (!a)
    return AffineExpr();
  AffineExpr rows = a.getResult(matmul.dimM());
  if (!matmul.hasBatchedB())
    for (AffineExpr count : a.getResults().take_front(matmul.getBatchRank()))
      rows = count * rows;
  return rows;
}

/// Queries of a head. If there are as many keys, as in a prompt, few of them
/// are no work.
static AffineExpr queriesOf(Operation *attention, ShapeAnalysis &shapes) {
  AffineMap queries = shapes.shapeOf(attention->getOperand(0));
  AffineMap keys = shapes.shapeOf(attention->getOperand(1));
  if (!queries || !keys)
    return AffineExpr();
  unsigned dim = hasBegins(attention) ? 0 : hasTokensFirst(attention) ? 1 : 2;
  AffineExpr count = queries.getResult(dim);
  bool isPrompt = isa<AttentionOp>(attention) && keys.getResult(2) == count;
  return isPrompt ? AffineExpr() : count;
}

DynamicRows DynamicRows::of(func::FuncOp function, const TargetRow &row) {
  ShapeAnalysis shapes(function);
  DynamicRows found;
  if (failed(shapes.run()))
    return found;
  function.walk([&](Operation *op) {
    AffineExpr own;
    if (auto matmul = dyn_cast<MatmulOp>(op))
      own = rowsOf(matmul, shapes);
    else if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
      own = rowsOf(grouped, shapes);
    else if (isa<AttentionOp, PagedAttentionOp>(op))
      own = queriesOf(op, shapes);
    if (!own || constantOf(own))
      return;
    FailureOr<DictionaryAttr> asked = configFor(op, row);
    if (failed(asked) || *asked)
      return;
    if (!found.extent)
      found.extent = own;
    if (own == found.extent)
      found.ops.push_back(op);
  });
  return found;
}

void DynamicRows::expect(int64_t rows) const {
  for (Operation *op : ops) {
    // Tiles of keys, and those along K of products in three, decide the order.
    auto matmul = dyn_cast<MatmulOp>(op);
    bool addsByTile = isAlone(op) || (matmul && matmul.getPrecision());
    if (!addsByTile || !isBatchInvariant(op))
      op->setAttr(rowsName, Builder(op).getI64IntegerAttr(rows));
  }
}

/// The ranges that `greta.ranges` asks for; none: nothing.
static FailureOr<std::optional<SmallVector<RowRange>>>
askedRanges(const DynamicRows &dynamic) {
  Attribute asked;
  for (Operation *op : dynamic.ops) {
    if (op->hasAttr(batchInvariantName) && !isBatchInvariant(op))
      return op->emitOpError("has a '")
             << batchInvariantName << "' with a value; it takes none";
    if (!asked)
      asked = op->getAttr(rangesName);
  }
  if (!asked)
    return std::optional<SmallVector<RowRange>>();
  SmallVector<RowRange> ranges;
  auto list = dyn_cast<ArrayAttr>(asked);
  for (Attribute each : list ? list.getValue() : ArrayRef<Attribute>()) {
    int64_t least = ranges.empty() ? 1 : ranges.back().most + 1;
    auto end = dyn_cast<IntegerAttr>(each);
    if (!end || end.getInt() < least) {
      list = nullptr;
      break;
    }
    ranges.push_back({least, end.getInt(), end.getInt()});
  }
  if (!list)
    return dynamic.ops.front()->emitOpError("has a '")
           << rangesName
           << "' that is no ascending list of numbers of rows, [1, 8, 64] say";
  return std::optional(std::move(ranges));
}

namespace {
/// The choice for a GEMM, and what was measured of it.
struct Chosen {
  Choice choice;
  const TuningEntry *measured;
};

/// The choices for all GEMMs with the M in question.
using Choices = std::vector<Chosen>;

/// Attention has no model: one query, few, and all others have kernels of their
/// own.
int kindOfQueries(int64_t count) {
  return count <= 1 ? 0 : count <= mostFewQueries ? 1 : 2;
}

class Planner {
public:
  Planner(ModuleOp module, const TargetRow &row, bool matrix,
          const TuningDatabase *tuning)
      : module(module), limits(row, matrix, tuning), matrix(matrix) {}

  /// The choices for an M; without one for any. None where one fails.
  std::optional<Choices> chooseFor(std::optional<int64_t> rows);
  /// Microseconds of all.
  double time(const Choices &choices, int64_t rows) const {
    double cycles = 0;
    for (const Chosen &one : choices)
      cycles += one.choice.cycles(rows);
    return cycles / limits.row.clockMHz;
  }

private:
  LogicalResult add(KernelOp kernel, Choices &choices);

  ModuleOp module;
  Limits limits;
  bool matrix;
};
} // namespace

LogicalResult Planner::add(KernelOp kernel, Choices &choices) {
  FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
  if (failed(spaces))
    return failure();
  // GEMMs side by side are one with all columns, which the first stands for.
  const Space &space = spaces->front();
  if (!space.matmul)
    return success();
  Limits own = limits;
  if (spaces->size() > 1)
    for (const Space &one : *spaces)
      own.columns += std::max<int64_t>(
          1, MatmulOp(one.matmul).getType().getShape().back());
  FailureOr<Choice> choice = choose(space, own, kernel.getContext());
  if (failed(choice))
    return failure();
  const TuningEntry *measured = measuredFor(space, own);
  // On another device it is no better known than by the model.
  if (measured && !measured->isEstimate() && !measured->isMeasuredFor(own.row))
    measured = nullptr;
  choices.push_back({std::move(*choice), measured});
  return success();
}

std::optional<Choices> Planner::chooseFor(std::optional<int64_t> rows) {
  OwningOpRef<ModuleOp> copy = module.clone();
  auto function = *copy->getOps<func::FuncOp>().begin();
  // Errors are reported when the function is compiled.
  ScopedDiagnosticHandler handler(module->getContext(),
                                  [](Diagnostic &) { return success(); });
  DynamicRows dynamic = DynamicRows::of(function, limits.row);
  if (rows)
    dynamic.expect(*rows);
  PassManager passes(module->getContext());
  buildFusionPipeline(passes, limits.row.name, matrix);
  if (failed(passes.run(*copy)))
    return std::nullopt;
  Choices choices;
  WalkResult result = copy->walk(
      [&](KernelOp kernel) { return WalkResult(add(kernel, choices)); });
  if (result.wasInterrupted())
    return std::nullopt;
  return choices;
}

FailureOr<SmallVector<RowRange>>
greta::chooseRowRanges(ModuleOp module, const TargetRow &row, bool matrix,
                       const TuningDatabase *tuning) {
  // Candidates hold attributes of this dialect, which no pass may have loaded.
  module.getContext()->loadDialect<tile::GretaTileDialect>();
  DynamicRows dynamic =
      DynamicRows::of(*module.getOps<func::FuncOp>().begin(), row);
  FailureOr<std::optional<SmallVector<RowRange>>> asked = askedRanges(dynamic);
  if (failed(asked))
    return failure();
  if (*asked)
    return std::move(**asked);
  // The model knows nothing of CPUs' drivers.
  if (!dynamic.extent || !row.vgprs.perWave)
    return SmallVector<RowRange>();
  Planner planner(module, row, matrix, tuning);
  // The sets of choices: for any M, then for each of the list.
  std::vector<Choices> sets;
  SmallVector<int64_t> list;
  for (int64_t rows = 0; rows <= mostRows;
       rows = std::max<int64_t>(1, 2 * rows)) {
    std::optional<Choices> choices =
        planner.chooseFor(rows ? std::optional<int64_t>(rows) : std::nullopt);
    if (!choices)
      return SmallVector<RowRange>();
    sets.push_back(std::move(*choices));
    if (rows)
      list.push_back(rows);
  }
  bool hasAttention = llvm::any_of(
      dynamic.ops, [](Operation *op) { return isAlone(op) && !hasBegins(op); });
  auto serves = [&](size_t set, size_t at) {
    if (hasAttention && kindOfQueries(set ? list[set - 1] : INT64_MAX) !=
                            kindOfQueries(list[at]))
      return false;
    // Fewer rows than a set is for only leave its tiles empty.
    if (set && list[set - 1] < list[at])
      return false;
    // The model does not judge what was measured.
    for (auto [own, other] : llvm::zip_longest(sets[at + 1], sets[set]))
      if (own && own->measured && (!other || other->measured != own->measured))
        return false;
    double best = planner.time(sets[at + 1], list[at]);
    double time = planner.time(sets[set], list[at]);
    bool isPowerOfEight = llvm::Log2_64(list[at]) % 3 == 0;
    double slower = isPowerOfEight ? exact : set ? between : ofAny;
    return time <= best * (1 + slower) || (!set && time <= best + launch);
  };
  SmallVector<RowRange> ranges;
  for (size_t end = list.size(); end > 0;) {
    size_t best = 0, bestBegin = end;
    for (size_t set = 0; set < sets.size(); ++set) {
      size_t begin = end;
      while (begin > 0 && serves(set, begin - 1))
        --begin;
      if (begin < bestBegin) {
        best = set;
        bestBegin = begin;
      }
    }
    if (best)
      ranges.push_back({bestBegin ? list[bestBegin - 1] + 1 : 1, list[end - 1],
                        list[best - 1]});
    end = bestBegin;
  }
  return llvm::to_vector(llvm::reverse(ranges));
}
