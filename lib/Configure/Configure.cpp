//===- Configure.cpp - the pass greta-configure ---------------------------===//
//
// Chooses how the workgroups of a kernel cover its spaces. Every choice is
// feasible by construction: lanes are limited by the workgroup, elements per
// lane by registers, and a row that does not fit is looped over.
//
// A row of C columns is taken by L lanes, each with E elements in runs of V
// (16 bytes where the row's length keeps them aligned). Candidates are L =
// powers of two; the cost of one is the share of padding, plus how far E is
// from what was measured best (docs/benchmarks/README.md, "Rates of the target
// table").
//
// Rows that need no more than a wave's lanes share a workgroup.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "TileModel.h"
#include "greta/Configure/Tuning.h"
#include "greta/Interface/Launches.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace greta {
#define GEN_PASS_DEF_GRETACONFIGUREPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

/// Indices along a dimension of a space are i32.
static constexpr int64_t maxExtent = INT32_MAX;

/// Vulkan guarantees so many workgroups along one axis.
static constexpr int64_t vulkanGridLimit = 65535;

Limits::Limits(const TargetRow &row, bool useMatrix,
               const TuningDatabase *tuning, int64_t spareRegisters)
    : wave(row.waveSize), row(row), tuning(tuning),
      spareRegisters(spareRegisters) {
  // A row without a register file stands for a CPU, or for any device, which
  // gets small blocks.
  wide = row.vgprs.perWave > 0;
  maxBlock = std::min<int64_t>(row.maxWorkgroupSize, wide ? 1024 : 64);
  shareBlock = std::min<int64_t>(maxBlock, wide ? 256 : 64);
  maxElements = wide ? 40 : 16;
  ldsBytes = row.ldsBytes;
  simds = row.computeUnits * row.simdsPerUnit;
  if (useMatrix)
    matrix = row.matrix;
}

std::optional<std::string> Limits::whyNot(int64_t lanes, int64_t bytes) const {
  if (lanes > maxBlock)
    return "its waves are more than a workgroup takes";
  if (bytes > ldsBytes)
    return "it needs " + std::to_string(bytes) +
           " bytes of shared memory, the target has " +
           std::to_string(ldsBytes);
  return std::nullopt;
}

/// Elements of one 16-byte access along rows of `columns`, which keep it
/// aligned.
static int64_t runLength(const Space &space, std::optional<int64_t> columns) {
  int64_t run = 128 / std::max(8u, space.narrowest);
  if (space.pairs == Space::Pairs::Neighbours)
    run = std::max<int64_t>(1, run / 2);
  return columns ? std::min(run, powerPart(std::max<int64_t>(*columns, 1))) : 1;
}

/// Spreads `rows` rows of a workgroup over the groups of row dimensions, the
/// last first, without running over the edge of a static one.
static SmallVector<int64_t> spreadRows(const Space &space, int64_t rows,
                                       MLIRContext *context) {
  SmallVector<int64_t> result(space.groups.size(), 1);
  for (unsigned group = space.groups.size(); group-- > 0;) {
    std::optional<int64_t> extent = constantOf(space.rows(group, context));
    int64_t take = rows;
    if (group > 0)
      take =
          extent ? std::min(rows, powerPart(std::max<int64_t>(*extent, 1))) : 1;
    else if (extent)
      take = std::min<int64_t>(
          rows, llvm::PowerOf2Ceil(std::max<int64_t>(*extent, 1)));
    result[group] = take;
    rows /= take;
  }
  return result;
}

/// The tile of elementwise work on whole tensors, which has long runs of
/// everything.
static Tile flatTile(const Space &space, const Limits &limits,
                     MLIRContext *context) {
  Tile tile;
  int64_t block = limits.blockOr(limits.shareBlock);
  tile.waves = block / limits.wave;
  tile.n = block * std::max<int64_t>(128 / std::max(8u, space.narrowest), 8);
  if (std::optional<int64_t> size = constantOf(space.size(context)))
    tile.n = std::min<int64_t>(tile.n,
                               llvm::PowerOf2Ceil(std::max<int64_t>(*size, 1)));
  // Rows that are multiples of blocks need no bounds.
  std::optional<int64_t> columns = constantOf(space.columns(context));
  tile.flat = !columns || *columns % tile.n;
  tile.m = 1;
  return tile;
}

/// Visits tiles for rows. Some lanes of a workgroup take a row as a whole, or
/// the whole workgroup takes it in pieces.
static void forEachRowTile(const Space &space, const Limits &limits,
                           MLIRContext *context, VisitTile visit) {
  // An index has 32 bits, so a longer tensor cannot be one row.
  if (space.isFlat && constantOf(space.size(context)).value_or(0) <= maxExtent)
    return visit(flatTile(space, limits, context), 0);
  std::optional<int64_t> columns = constantOf(space.columns(context));
  int64_t run = runLength(space, columns);
  int64_t slices = space.pairs == Space::Pairs::None ? 1 : 2;
  int64_t maxLanes = limits.blockOr(limits.maxBlock);
  int64_t maxElements = limits.maxElements;
  if (space.fullOperands > 4)
    maxElements = std::min<int64_t>(maxElements, 24);

  // A lane should have so many elements.
  bool isLong = columns && *columns * slices >= 4096;
  double aim = !limits.wide                  ? 8
               : !space.hasReduction         ? 8 * slices
               : isLong && !space.hasSoftmax ? 32
                                             : 16;
  Tile tile;
  // Rows without a reduction may be cut, so that each piece fills a workgroup.
  bool isCut = !space.hasReduction && columns &&
               *columns * slices > limits.shareBlock * aim;
  for (int64_t lanes = 1; columns && !isCut && lanes <= maxLanes; lanes *= 2) {
    tile.n = llvm::alignTo(*columns, lanes * run);
    int64_t elements = tile.n / lanes * slices;
    if (elements > maxElements)
      continue;
    // A row of several waves has the workgroup alone, so that fewer waves meet.
    bool isAlone = limits.wide && lanes > limits.wave;
    int64_t block =
        limits.blockOr(isAlone ? lanes : std::max(lanes, limits.shareBlock));
    tile.waves = block / limits.wave;
    tile.m = block / lanes;
    visit(tile, static_cast<double>(tile.n) / std::max<int64_t>(*columns, 1) +
                    0.15 * std::abs(std::log2(elements / aim)));
  }

  // Pieces take longer than any row that fits, as do bounds.
  constexpr double cut = 8, bounds = 1;
  int64_t block =
      limits.blockOr(space.hasReduction ? maxLanes : limits.shareBlock);
  int64_t elements = space.hasReduction ? maxElements / 2 : aim;
  int64_t most = std::max<int64_t>(1, elements / (run * slices));
  tile.waves = block / limits.wave;
  tile.m = 1;
  tile.loop = space.hasReduction;
  for (int64_t pieces = most; pieces > most / 2; --pieces) {
    tile.n = block * run * pieces;
    visit(tile, cut + (columns && *columns % tile.n ? bounds : 0));
  }
}

/// Sets the blocks of a schedule from the tile.
static void setBlocks(Choice &choice, const Space &space,
                      MLIRContext *context) {
  const Tile &tile = choice.tile;
  SpaceSchedule &blocks = choice.space;
  blocks.columns = tile.n;
  blocks.depth = tile.k;
  blocks.run = tile.run;
  blocks.unroll = tile.unroll;
  blocks.split = tile.split;
  blocks.loop = tile.loop;
  blocks.flat = tile.flat;
  if (space.matmul && space.heads) {
    // From columns of the GEMM to heads and columns of the space.
    int64_t inHead = *constantOf(space.columns(context));
    int64_t columns = tile.n / columnsOfPair(space);
    blocks.columns = std::min(columns, tile.run ? powerPart(inHead) : inHead);
    blocks.rows = {tile.m, columns / blocks.columns};
  } else if (space.matmul) {
    blocks.rows.assign(space.groups.size(), 1);
    blocks.rows.back() = tile.m;
  } else if (space.alone && getUpdatedCache(space.alone)) {
    blocks.rows = {tile.m};
  } else if (space.alone) {
    blocks.rows = {1, tile.heads, std::max<int64_t>(1, tile.m / tile.heads)};
  } else if (!tile.flat) {
    blocks.rows = spreadRows(space, tile.m, context);
  }
}

FailureOr<KernelKind> greta::kindOf(const Space &space, const Limits &limits,
                                    MLIRContext *context) {
  auto rows = [&, context](VisitTile visit) {
    forEachRowTile(space, limits, context, visit);
  };
  FailureOr<KernelKind> kind = space.matmul  ? gemmKind(space, limits)
                               : space.alone ? aloneKind(space, limits)
                                             : KernelKind{Rows, rows};
  if (!space.matmul)
    kind->takeBest();
  if (failed(kind) || failed(takeAsked(*kind, space, limits)))
    return failure();
  return kind;
}

FailureOr<Choice> greta::choose(const Space &space, const Limits &limits,
                                MLIRContext *context) {
  FailureOr<KernelKind> kind = kindOf(space, limits, context);
  if (failed(kind))
    return failure();
  // A choice without waves says that the tile of the others does not fit.
  if (limits.isLedByMatrix() && kind->whyNot(kind->tile))
    return Choice();
  Choice choice;
  choice.tile = kind->tile;
  if (space.matmul) {
    choice.cycles = [of = kind->cyclesOf, tile = kind->tile](int64_t rows) {
      return of(tile, rows);
    };
    setLoop(choice, kind->problem, limits, context);
  }
  setBlocks(choice, space, context);
  return choice;
}

/// The lanes of the GEMM whose result a kernel of one row reads, so that the
/// GEMM's last workgroup can go on with the row (greta-tile-tail); 0: there is
/// none, or its lanes have no registers for the row.
static int64_t lanesOfGemmBefore(KernelOp kernel, ArrayRef<Space> spaces,
                                 const Limits &limits) {
  const Space &space = spaces.front();
  MLIRContext *context = kernel.getContext();
  if (spaces.size() > 1 || space.matmul || space.alone || !space.hasReduction)
    return 0;
  for (unsigned group = 0; group < space.groups.size(); ++group)
    if (constantOf(space.rows(group, context)) != 1)
      return 0;
  for (Value operand : kernel.getOperands()) {
    auto before = memoryOf(operand).getDefiningOp<KernelOp>();
    ScheduleAttr schedule = before ? before.getScheduleAttr() : ScheduleAttr();
    if (!schedule || !tile::hasOp<MatmulOp>(before))
      continue;
    Limits same = limits;
    same.block = schedule.getValue().blockSize;
    // A row in pieces is read twice, which takes longer than a launch.
    bool fits = false;
    forEachRowTile(space, same, context,
                   [&](const Tile &tile, double) { fits |= !tile.loop; });
    return fits ? same.block : 0;
  }
  return 0;
}

/// Gives a kernel its schedule. If its spaces cannot be side by side, they
/// become kernels of their own, which are added to `rest`.
static LogicalResult configure(KernelOp kernel, const Limits &limits,
                               SmallVectorImpl<KernelOp> &rest) {
  FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
  if (failed(spaces))
    return failure();
  MLIRContext *context = kernel.getContext();
  Schedule schedule;
  schedule.waveSize = spaces->front().alone ? 0 : limits.wave;
  schedule.gridLimit = limits.row.isVulkan() ? vulkanGridLimit : 0;
  // Only GEMMs that multiply in three parts have the attribute.
  for (const Space &space : *spaces)
    for (MatmulOp gemm : space.gemms())
      if (!isInThree(gemm, limits))
        gemm.removePrecisionAttr();
  auto setSchedule = [&] {
    for (auto [space, chosen] : llvm::zip(*spaces, schedule.spaces))
      for (MatmulOp gemm : space.gemms())
        if (!chosen.matrix)
          gemm.removePrecisionAttr();
    kernel.setScheduleAttr(ScheduleAttr::get(context, schedule));
  };
  for (const Space &space : *spaces) {
    for (unsigned group = 0; group < space.groups.size(); ++group)
      if (constantOf(space.rows(group, context)).value_or(0) > maxExtent)
        return kernel.emitOpError("has ")
               << *constantOf(space.rows(group, context))
               << " rows; it may have up to " << maxExtent
               << ": split the tensor";
    if (constantOf(space.columns(context)).value_or(0) > maxExtent)
      return kernel.emitOpError("has rows of ")
             << *constantOf(space.columns(context))
             << " elements; they may have up to " << maxExtent
             << ": split the tensor";
    if (space.hasReduction && !constantOf(space.columns(context)))
      return kernel.emitOpError("reduces rows of a dynamic length; give the "
                                "last dimension in the type");
  }
  if (spaces->size() > 1 && spaces->front().matmul) {
    FailureOr<bool> areTogether = chooseTogether(*spaces, limits, schedule);
    if (failed(areTogether))
      return failure();
    if (*areTogether)
      setSchedule();
    else
      rest = separateSpaces(kernel);
    return success();
  }
  // All spaces of a kernel share the largest workgroup that one asks for.
  Limits shared = limits;
  shared.block = lanesOfGemmBefore(kernel, *spaces, limits);
  for (size_t pass = 0; pass < std::min<size_t>(spaces->size(), 2); ++pass) {
    schedule.spaces.clear();
    for (const Space &space : *spaces) {
      FailureOr<Choice> choice = choose(space, shared, context);
      if (failed(choice))
        return failure();
      auto &most = space.alone ? schedule.waves : schedule.blockSize;
      most =
          std::max(most, choice->tile.waves * (space.alone ? 1 : limits.wave));
      schedule.spaces.push_back(std::move(choice->space));
    }
    shared.block = schedule.blockSize;
  }
  setSchedule();
  return success();
}

namespace {
struct ConfigurePass : greta::impl::GretaConfigurePassBase<ConfigurePass> {
  using GretaConfigurePassBase::GretaConfigurePassBase;
  LogicalResult initialize(MLIRContext *context) override {
    if (file.empty())
      return success();
    llvm::Expected<TuningDatabase> loaded = TuningDatabase::load(file);
    if (!loaded)
      return emitError(UnknownLoc::get(context),
                       llvm::toString(loaded.takeError()));
    owned = std::make_shared<TuningDatabase>(std::move(*loaded));
    tuning = owned.get();
    return success();
  }
  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    if (row->isHost()) {
      getOperation().emitError("the target 'host' has no kernels to configure; "
                               "it takes greta-decompose");
      return signalPassFailure();
    }
    SmallVector<KernelOp> kernels;
    getOperation().walk([&](KernelOp kernel) {
      if (!kernel.getScheduleAttr())
        kernels.push_back(kernel);
    });
    // A kernel is configured behind those that it reads.
    std::reverse(kernels.begin(), kernels.end());
    Limits limits(*row, matrix, tuning, spareRegisters);
    while (!kernels.empty()) {
      SmallVector<KernelOp> rest;
      if (failed(configure(kernels.pop_back_val(), limits, rest)))
        return signalPassFailure();
      llvm::append_range(kernels, rest);
    }
  }

  const TuningDatabase *tuning = nullptr;
  std::shared_ptr<const TuningDatabase> owned;
};
} // namespace

std::unique_ptr<Pass>
greta::createGretaConfigurePass(const GretaConfigurePassOptions &options,
                                const TuningDatabase *tuning) {
  auto pass = std::make_unique<ConfigurePass>(options);
  pass->tuning = tuning;
  return pass;
}
