//===- Configure.cpp - the pass greta-configure ---------------------------===//
//
// Chooses how the workgroups of a kernel cover its spaces. What is chosen is
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

#include "greta/Target/Target.h"
#include "greta/Transforms/Config.h"
#include "greta/Transforms/Passes.h"
#include "greta/Transforms/Space.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace greta {
#define GEN_PASS_DEF_GRETACONFIGUREPASS
#include "greta/Transforms/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

/// Indices along a dimension of a space are i32.
static constexpr int64_t maxExtent = INT32_MAX;

/// Vulkan guarantees no more workgroups along one axis.
static constexpr int64_t vulkanGridLimit = 65535;

namespace {
/// What the choice needs of a target.
struct Limits {
  explicit Limits(const TargetRow &row);
  int64_t wave;
  int64_t maxBlock;
  int64_t shareBlock;  // of a workgroup that several rows share
  int64_t maxElements; // per lane
  int64_t ldsBytes;
  ArrayRef<MatrixInstruction> matrix; // that the code generators can emit
  bool wide; // a GPU: lanes are many and registers wait to be filled
};

struct Choice {
  int64_t block = 0;
  SpaceConfig space;
};
} // namespace

Limits::Limits(const TargetRow &row) : wave(row.waveSize) {
  // A row without a register file is no GPU, or any: small blocks.
  wide = row.vgprs.perWave > 0;
  maxBlock = std::min<int64_t>(row.maxWorkgroupSize, wide ? 1024 : 64);
  shareBlock = std::min<int64_t>(maxBlock, wide ? 256 : 64);
  maxElements = wide ? 40 : 16;
  ldsBytes = row.ldsBytes;
  if (row.isHip())
    matrix = row.matrix;
}

static std::optional<int64_t> constantOf(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

static int64_t powerPart(int64_t value) { return value & -value; }

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

static tile::LayoutAttr toAttr(MLIRContext *context,
                               const FragmentLayout &fragment) {
  SmallVector<int32_t> flat[2];
  ArrayRef<FragmentBasis> sources[2] = {fragment.reg, fragment.lane};
  for (auto [to, from] : llvm::zip(flat, sources))
    for (FragmentBasis basis : from)
      to.append({basis.row, basis.column});
  return tile::LayoutAttr::get(context, flat[0], flat[1], {}, {1, 1});
}

/// The first instruction of the target for these operands; null: none.
static const MatrixInstruction *chooseInstruction(MatmulOp matmul,
                                                  const Limits &limits) {
  Type element = matmul.getA().getType().getElementType();
  StringRef dtype = element.isF16()    ? "f16"
                    : element.isBF16() ? "bf16"
                    : element.isF32()  ? "f32"
                                       : "";
  for (const MatrixInstruction &instruction : limits.matrix)
    if (instruction.a == dtype && instruction.b == dtype &&
        instruction.acc == "f32" && instruction.blocks == 1 &&
        instruction.aLayout.isKnown() && instruction.bLayout.isKnown() &&
        instruction.accLayout.isKnown())
      return &instruction;
  return nullptr;
}

static FailureOr<Choice> chooseProduct(const Space &space, const Limits &limits,
                                       MLIRContext *context) {
  MatmulOp matmul = space.matmul;
  std::optional<int64_t> m = constantOf(space.shape[0]);
  std::optional<int64_t> n = constantOf(space.shape[1]);
  RankedTensorType a = matmul.getA().getType();
  int64_t k = a.getDimSize(matmul.getTransposeA() ? 0 : 1);
  const MatrixInstruction *instruction = chooseInstruction(matmul, limits);
  // With a matrix instruction 64x64 a wave at most, by multiply-adds sixteen
  // accumulators per lane.
  int64_t largest = instruction ? 128 : limits.wide ? 64 : 32;
  auto extent = [&](std::optional<int64_t> size, int64_t smallest) -> int64_t {
    int64_t wanted = size ? llvm::PowerOf2Ceil(*size) : 64;
    return std::clamp<int64_t>(wanted, smallest, largest);
  };
  Choice choice;
  choice.space.rows = {extent(m, instruction ? instruction->m : 16)};
  choice.space.columns = extent(n, instruction ? instruction->n : 16);
  int64_t smallest = instruction ? instruction->k : 1;
  int64_t deepest = std::max<int64_t>(smallest, instruction ? 32 : 16);
  choice.space.depth = deepest;
  if (!ShapedType::isDynamic(k))
    choice.space.depth = std::clamp<int64_t>(
        llvm::PowerOf2Ceil(std::max<int64_t>(k, 1)), smallest, deepest);
  int64_t size = choice.space.rows[0] * choice.space.columns;
  if (instruction) {
    choice.space.matrix = tile::MatrixAttr::get(
        context, StringAttr::get(context, instruction->name),
        toAttr(context, instruction->aLayout),
        toAttr(context, instruction->bLayout),
        toAttr(context, instruction->accLayout));
    choice.block =
        limits.wave *
        std::min<int64_t>(4, size / (instruction->m * instruction->n));
  } else {
    choice.block =
        std::clamp<int64_t>(size / 16, limits.wave, limits.shareBlock);
  }
  int64_t bytes = a.getElementTypeBitWidth() / 8 * choice.space.depth *
                  (choice.space.rows[0] + choice.space.columns);
  if (bytes > limits.ldsBytes)
    return matmul.emitOpError("needs ")
           << bytes << " bytes of shared memory for its smallest block, the "
           << "target has " << limits.ldsBytes << "; take another target";
  return choice;
}

static FailureOr<Choice> choose(const Space &space, const Limits &limits,
                                int64_t fixedBlock, MLIRContext *context) {
  if (space.matmul)
    return chooseProduct(space, limits, context);
  if (space.isFlat)
    return chooseFlat(space, limits, fixedBlock, context);
  return chooseRows(space, limits, fixedBlock, context);
}

static LogicalResult configure(KernelOp kernel, const TargetRow &row) {
  FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
  if (failed(spaces))
    return failure();
  MLIRContext *context = kernel.getContext();
  Limits limits(row);
  KernelConfig config;
  config.waveSize = limits.wave;
  config.gridLimit = row.isVulkan() ? vulkanGridLimit : 0;
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
    FailureOr<Choice> choice = choose(space, limits, 0, context);
    if (failed(choice))
      return failure();
    config.blockSize = std::max(config.blockSize, choice->block);
  }
  // All spaces of a kernel share the largest workgroup that one asked for.
  for (const Space &space : *spaces)
    config.spaces.push_back(
        choose(space, limits, config.blockSize, context)->space);
  kernel.setConfigAttr(toAttribute(context, config));
  return success();
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

DictionaryAttr greta::toAttribute(MLIRContext *context,
                                  const KernelConfig &config) {
  Builder builder(context);
  SmallVector<Attribute> spaces;
  for (const SpaceConfig &space : config.spaces) {
    NamedAttrList entries;
    if (!space.flat)
      entries.set("rows", builder.getI64ArrayAttr(space.rows));
    entries.set("columns", builder.getI64IntegerAttr(space.columns));
    if (space.flat)
      entries.set("flat", builder.getUnitAttr());
    if (space.loop)
      entries.set("loop", builder.getUnitAttr());
    if (space.depth)
      entries.set("depth", builder.getI64IntegerAttr(space.depth));
    if (space.matrix)
      entries.set("matrix", space.matrix);
    spaces.push_back(entries.getDictionary(context));
  }
  NamedAttrList entries;
  entries.set("block_size", builder.getI64IntegerAttr(config.blockSize));
  entries.set("wave_size", builder.getI64IntegerAttr(config.waveSize));
  if (config.gridLimit)
    entries.set("grid_limit", builder.getI64IntegerAttr(config.gridLimit));
  entries.set("spaces", builder.getArrayAttr(spaces));
  return entries.getDictionary(context);
}

/// A positive integer; 0 when it is missing or something else.
static int64_t integerIn(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary.getAs<IntegerAttr>(name);
  return value && value.getValue().isSignedIntN(32)
             ? std::max<int64_t>(0, value.getInt())
             : 0;
}

FailureOr<KernelConfig> greta::getConfig(KernelOp kernel) {
  DictionaryAttr attribute = kernel.getConfigAttr();
  if (!attribute)
    return kernel.emitOpError("has no 'config'; run greta-configure first");
  KernelConfig config;
  config.blockSize = integerIn(attribute, "block_size");
  config.waveSize = integerIn(attribute, "wave_size");
  config.gridLimit = integerIn(attribute, "grid_limit");
  auto spaces = attribute.getAs<ArrayAttr>("spaces");
  if (!config.blockSize || !config.waveSize || !spaces ||
      spaces.size() != kernel.getSpaces().size())
    return kernel.emitOpError("has a 'config' without positive 'block_size' "
                              "and 'wave_size' and one entry in 'spaces' per "
                              "region");
  FailureOr<SmallVector<Space>> infos = analyzeSpaces(kernel);
  if (failed(infos))
    return failure();
  for (auto [entry, info] : llvm::zip(spaces, *infos)) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    SpaceConfig space;
    if (dictionary) {
      space.columns = integerIn(dictionary, "columns");
      space.depth = integerIn(dictionary, "depth");
      space.flat = dictionary.contains("flat");
      space.loop = dictionary.contains("loop");
      space.matrix = dictionary.getAs<tile::MatrixAttr>("matrix");
      if (auto rows = dictionary.getAs<ArrayAttr>("rows"))
        for (Attribute extent : rows)
          if (auto integer = dyn_cast<IntegerAttr>(extent))
            space.rows.push_back(integer.getInt());
    }
    bool rowsFit =
        space.flat
            ? info.isFlat && space.rows.empty()
            : space.rows.size() == info.groups.size() &&
                  llvm::all_of(space.rows, [](int64_t n) { return n > 0; });
    if (!space.columns || !rowsFit || (info.matmul && !space.depth))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " needs 'columns', and 'rows' for "
             << info.groups.size()
             << " groups of row dimensions, and for a product 'depth'";
    // A row that is reduced belongs to one workgroup.
    std::optional<int64_t> columns =
        constantOf(info.columns(kernel.getContext()));
    if (info.hasReduction && !space.loop &&
        (!columns || *columns > space.columns))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " reduces rows longer than its "
             << space.columns << " 'columns'; set 'loop'";
    config.spaces.push_back(std::move(space));
  }
  return config;
}

namespace {
struct ConfigurePass : greta::impl::GretaConfigurePassBase<ConfigurePass> {
  using GretaConfigurePassBase::GretaConfigurePassBase;
  void runOnOperation() override {
    llvm::Expected<const TargetRow *> row = lookupTarget(target);
    if (!row) {
      getOperation().emitError(llvm::toString(row.takeError()));
      return signalPassFailure();
    }
    if ((*row)->isHost()) {
      getOperation().emitError("the target 'host' has no kernels to configure; "
                               "it takes greta-decompose");
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](KernelOp kernel) {
      return kernel.getConfigAttr() || succeeded(configure(kernel, **row))
                 ? WalkResult::advance()
                 : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
