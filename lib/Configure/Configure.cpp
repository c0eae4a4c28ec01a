//===- Configure.cpp - the pass greta-configure ---------------------------===//
//
// Chooses how the workgroups of a kernel cover its spaces. Every choice is
// feasible by construction: lanes are limited by the workgroup, elements per
// lane by registers, and a row that does not fit is looped over.
//
// A row of C columns is taken by L lanes, each with E elements in runs of V
// (16 bytes where the row's length keeps them aligned). Candidates are L =
// powers of two; the cost of one is the share of padding, plus how far E is
// from what was measured best:
//
//   H200, 8192 columns of f16      rms_norm  256 lanes x 32   0.95 of copy
//                                  softmax   512 lanes x 16   0.97
//
// Rows that need no more than a wave's lanes share a workgroup.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "TileModel.h"
#include "greta/Configure/Tuning.h"
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

/// Vulkan guarantees no more workgroups along one axis.
static constexpr int64_t vulkanGridLimit = 65535;

Limits::Limits(const TargetRow &row, bool useMatrix,
               const TuningDatabase *tuning, int64_t spareRegisters)
    : wave(row.waveSize), row(row), tuning(tuning),
      spareRegisters(spareRegisters) {
  // A row without a register file is no GPU, or any: small blocks.
  wide = row.vgprs.perWave > 0;
  maxBlock = std::min<int64_t>(row.maxWorkgroupSize, wide ? 1024 : 64);
  shareBlock = std::min<int64_t>(maxBlock, wide ? 256 : 64);
  maxElements = wide ? 40 : 16;
  ldsBytes = row.ldsBytes;
  simds = row.computeUnits * row.simdsPerUnit;
  if (useMatrix)
    matrix = row.matrix;
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

static Choice chooseRows(const Space &space, const Limits &limits,
                         int64_t fixedBlock, MLIRContext *context) {
  std::optional<int64_t> columns = constantOf(space.columns(context));
  int64_t run = runLength(space, columns);
  int64_t slices = space.pairs == Space::Pairs::None ? 1 : 2;
  int64_t maxLanes = fixedBlock ? fixedBlock : limits.maxBlock;
  int64_t maxElements = limits.maxElements;
  if (space.fullOperands > 4)
    maxElements = std::min<int64_t>(maxElements, 24);

  // Elements per lane to aim at.
  bool isLong = columns && *columns * slices >= 4096;
  bool hasSoftmax = space.hasSoftmax;
  double aim = !limits.wide            ? 8
               : !space.hasReduction   ? 8 * slices
               : isLong && !hasSoftmax ? 32
                                       : 16;
  Choice choice;
  int64_t bestLanes = 0;
  double bestCost = HUGE_VAL;
  // Rows that no reduction holds together are cut where they fill a workgroup.
  bool isCut = !space.hasReduction && columns &&
               *columns * slices > limits.shareBlock * aim;
  for (int64_t lanes = 1; columns && !isCut && lanes <= maxLanes; lanes *= 2) {
    int64_t unit = lanes * run;
    int64_t extent = llvm::alignTo(*columns, unit);
    int64_t elements = extent / lanes * slices;
    if (elements > maxElements)
      continue;
    double cost = static_cast<double>(extent) / std::max<int64_t>(*columns, 1) +
                  0.15 * std::abs(std::log2(elements / aim));
    if (cost < bestCost) {
      bestCost = cost;
      bestLanes = lanes;
      choice.space.columns = extent;
    }
  }
  if (bestLanes) {
    // More lanes than a wave: the row alone, so that fewer waves meet.
    int64_t block = limits.wide && bestLanes > limits.wave
                        ? bestLanes
                        : std::max(bestLanes, limits.shareBlock);
    choice.block = fixedBlock ? fixedBlock : block;
    choice.space.rows = spreadRows(space, choice.block / bestLanes, context);
    return choice;
  }

  // Rows in pieces: the whole workgroup on one row.
  choice.block = fixedBlock           ? fixedBlock
                 : space.hasReduction ? maxLanes
                                      : limits.shareBlock;
  int64_t unit = choice.block * run;
  int64_t elements = space.hasReduction ? maxElements / 2 : aim;
  int64_t most = std::max<int64_t>(1, elements / (run * slices));
  int64_t pieces = most;
  for (int64_t n = most; columns && n > most / 2; --n)
    if (*columns % (unit * n) == 0) {
      pieces = n;
      break;
    }
  choice.space.columns = unit * pieces;
  choice.space.rows.assign(space.groups.size(), 1);
  choice.space.loop = space.hasReduction;
  return choice;
}

/// Pure elementwise work on whole tensors: long runs of everything.
static Choice chooseFlat(const Space &space, const Limits &limits,
                         int64_t fixedBlock, MLIRContext *context) {
  Choice choice;
  choice.block = fixedBlock ? fixedBlock : limits.shareBlock;
  int64_t run = 128 / std::max(8u, space.narrowest);
  int64_t elements = std::max<int64_t>(run, 8);
  choice.space.columns = choice.block * elements;
  std::optional<int64_t> size = constantOf(space.size(context));
  if (size)
    choice.space.columns = std::min<int64_t>(
        choice.space.columns, llvm::PowerOf2Ceil(std::max<int64_t>(*size, 1)));
  // Rows that blocks cut evenly need no bounds.
  std::optional<int64_t> columns = constantOf(space.columns(context));
  choice.space.flat = !columns || *columns % choice.space.columns;
  // As one row it would be too long for an index.
  if (size && *size > maxExtent)
    return chooseRows(space, limits, fixedBlock, context);
  if (!choice.space.flat)
    choice.space.rows.assign(space.groups.size(), 1);
  return choice;
}

FailureOr<Choice> greta::choose(const Space &space, const Limits &limits,
                                int64_t fixedBlock, MLIRContext *context) {
  if (space.matmul)
    return chooseGemm(space, limits, context);
  if (space.isFlat)
    return chooseFlat(space, limits, fixedBlock, context);
  return chooseRows(space, limits, fixedBlock, context);
}

/// Spaces that cannot be side by side leave several kernels: `rest`.
static LogicalResult configure(KernelOp kernel, const Limits &limits,
                               SmallVectorImpl<KernelOp> &rest) {
  FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
  if (failed(spaces))
    return failure();
  MLIRContext *context = kernel.getContext();
  std::vector<Choice> choices;
  Schedule schedule;
  schedule.waveSize = limits.wave;
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
  if (spaces->front().alone) {
    FailureOr<Choice> alone = chooseAlone(spaces->front(), limits);
    if (failed(alone))
      return failure();
    schedule.waves = alone->tile.waves;
    schedule.waveSize = 0;
    schedule.spaces.push_back(std::move(alone->space));
    setSchedule();
    return success();
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
  for (const Space &space : *spaces) {
    FailureOr<Choice> choice = choose(space, limits, 0, context);
    if (failed(choice))
      return failure();
    schedule.blockSize = std::max(schedule.blockSize, choice->block);
    choices.push_back(std::move(*choice));
  }
  // All spaces of a kernel share the largest workgroup that one asked for.
  for (auto [space, choice] : llvm::zip(*spaces, choices))
    schedule.spaces.push_back(
        choice.block == schedule.blockSize
            ? std::move(choice.space)
            : choose(space, limits, schedule.blockSize, context)->space);
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
