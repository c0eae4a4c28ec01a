//===- ConfigureSkinny.cpp - skinny GEMMs ---------------------------------===//
//
// Up to sixteen rows, a GEMM is limited by loading B once. Loads should be
// wide, many of them under way, and their data used for all rows.
//
// B as [N, K]: lanes lie along K, each with a run of 16 bytes, then waves where
// N alone would leave the device idle, then rows of B. B as [K, N]: lanes along
// N in segments of whole cache lines, the rest of the workgroup along K. If
// even that leaves the device idle for long, the GEMM is split along K.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include <cmath>

using namespace mlir;
using namespace greta;

/// Registers of a lane for what it has loaded and for its sums.
static constexpr int64_t loadedRegisters = 64, sumRegisters = 64;
/// Waves that a SIMD wants to hide latency behind.
static constexpr int64_t wavesPerSimd = 4;

int64_t greta::groupOfWeights(const Space &space) {
  int64_t group = 0;
  for (MatmulOp gemm : space.gemms())
    (void)isComputedOperand(
        gemm, 1, [](Value v) { return isa<BlockArgument>(v); },
        [&](Operation *op) {
          if (auto dequant = dyn_cast<DequantOp>(op))
            group = group ? std::min<int64_t>(group, dequant.getGroup())
                          : dequant.getGroup();
        });
  return group;
}

bool greta::fitsPacked(const Space &space, int64_t depth) {
  int64_t unit = unitOfWeights(space);
  return !unit || (llvm::isPowerOf2_64(depth) && depth >= unit);
}

bool greta::fitsSkinny(const Space &space, int64_t run, int64_t depth) {
  if (!space.matmul)
    return false;
  int64_t all = MatmulOp(space.matmul).getDepth();
  // Packed weights are taken by words.
  if (int64_t unit = unitOfWeights(space); unit && run % unit)
    return false;
  return !ShapedType::isDynamic(all) && llvm::isPowerOf2_64(run) &&
         all % run == 0 && llvm::isPowerOf2_64(depth) && depth % run == 0;
}

/// Rows of packed weights that lie together, and so side by side in a wave.
static int64_t rowsTogether(const Space &space) {
  int64_t rows = 1;
  for (auto dequant : space.matmul->getBlock()->getOps<DequantOp>())
    rows = std::max<int64_t>(rows, dequant.getRow().rowsTogether());
  return rows;
}

/// Bits of the narrowest element of B's shape that B is computed from.
static unsigned storedBits(Value value, size_t rank,
                           llvm::DenseMap<Value, unsigned> &known) {
  auto type = cast<RankedTensorType>(value.getType());
  if (isa<BlockArgument>(value))
    return type.getElementTypeBitWidth();
  if (auto dequant = value.getDefiningOp<DequantOp>())
    return dequant.getRow().allBits();
  if (unsigned bits = known.lookup(value))
    return bits;
  unsigned bits = 32;
  for (Value operand : value.getDefiningOp()->getOperands())
    if (cast<RankedTensorType>(operand.getType()).getRank() ==
        static_cast<int64_t>(rank))
      bits = std::min(bits, storedBits(operand, rank, known));
  return known[value] = bits;
}

/// The same of what is loaded for any of the GEMMs.
static int64_t storedBits(const Space &space) {
  unsigned bits = 32;
  llvm::DenseMap<Value, unsigned> known;
  for (MatmulOp gemm : space.gemms())
    bits = std::min(
        bits, storedBits(gemm.getB(), gemm.getB().getType().getRank(), known));
  return bits;
}

/// The group of the space's row dimensions that is M.
static unsigned groupOfRows(const Space &space) {
  return space.heads ? 0 : space.groups.size() - 1;
}

/// The GEMM's rows, those of a batch that shares B included, or the number that
/// is expected; of a grouped GEMM those of a tile.
static int64_t rowsOf(const Space &space) {
  MatmulOp matmul = space.matmul;
  if (int64_t rows = rowsOfGroup(matmul))
    return rows;
  return constantOf(space.rows(groupOfRows(space), matmul.getContext()))
      .value_or(expectedRows(matmul));
}

/// Registers of a lane for a block along the depth.
static int64_t registersOf(const Space &space, int64_t rows, int64_t columns,
                           int64_t run) {
  MatmulOp matmul = space.matmul;
  int64_t otherBits = matmul.getA().getType().getElementTypeBitWidth();
  int64_t count = space.gemms().size();
  return llvm::divideCeil(
      run * (count * columns * storedBits(space) + rows * otherBits), 32);
}

static std::optional<std::string>
whyNotSkinny(const Space &space, const Limits &limits, const Tile &tile) {
  MatmulOp matmul = space.matmul;
  int64_t rows = rowsOf(space);
  int64_t count = space.gemms().size();
  int64_t lanes = tile.waves * limits.wave;
  if (tile.m != rows)
    return "its tile does not have the GEMM's " + std::to_string(rows) +
           " rows";
  for (int64_t part : {tile.n, tile.k, tile.run, tile.unroll})
    if (!llvm::isPowerOf2_64(part))
      return "its tile, 'run' and 'unroll' are no powers of two";
  if (!fitsSkinny(space, tile.run, tile.k))
    return "its 'run' does not divide its depth and the GEMM's, or, with "
           "packed weights, is no whole words";
  if (tile.n < columnsOfPair(space))
    return "its tile has half a pair of columns";
  if (tile.k > int64_t(llvm::PowerOf2Ceil(matmul.getDepth())))
    return "its tile is deeper than the GEMM";
  if (auto why = limits.whyNot(lanes, /*bytes=*/0))
    return why;
  int64_t runs = tile.n * (tile.k / tile.run);
  if (runs < lanes)
    return "its tile has less than a 'run' for each lane";
  int64_t columns = runs / lanes;
  if (registersOf(space, rows, columns, tile.run) * tile.unroll >
          2 * loadedRegisters ||
      rows * columns * count > 2 * sumRegisters)
    return "it needs too many registers for what it loads at a time";
  if (tile.split > 1 && !canSplit(space))
    return "its 'split' needs an A that is not computed, and no batch or heads";
  if (tile.split > 1 && matmul.getDepth() % (tile.k * tile.split))
    return "its 'split' does not give each part whole blocks";
  return std::nullopt;
}

static int64_t ceilPower(int64_t n) {
  return llvm::PowerOf2Ceil(std::max<int64_t>(n, 1));
}

/// Counts the GEMMs of a batch, of which a dynamic one may have one, or the
/// tiles of `rows` rows of a grouped GEMM that are expected not to be empty.
static int64_t batchOf(const Space &space, int64_t rows) {
  MatmulOp matmul = space.matmul;
  if (int64_t groups = matmul.getNumGroups()) {
    int64_t all = expectedRows(matmul);
    return std::clamp<int64_t>(llvm::divideCeil(2 * all, rows), 1,
                               std::min(groups, all));
  }
  int64_t batch = 1;
  for (unsigned before = 0; before < groupOfRows(space); ++before)
    batch *= std::max<int64_t>(
        1, constantOf(space.rows(before, matmul.getContext())).value_or(1));
  return batch;
}

namespace {
/// The time of a skinny GEMM, which is that of loads or of issue, whichever is
/// longer. `batch` counts GEMMs, or groups that have rows.
struct SkinnyTime {
  const TargetRow *row;
  double rows;
  double loading; // cycles to load one GEMM's B
  double busy;    // one GEMM's waves, as a part of those that fill the device
  double issue;   // cycles to issue one GEMM's FMAs and loads of A

  double toLoad(const Tile &tile, double batch) const {
    return batch * loading / std::min(1.0, batch * busy * tile.split) +
           splitCycles(*row, tile.split, rows * tile.n);
  }
  double of(const Tile &tile, double batch) const {
    return std::max(toLoad(tile, batch), batch * issue);
  }
};

/// The part of B that a skinny GEMM's workgroup takes at a time: a lane's
/// extents along K and N, and the numbers of lanes and waves along each.
struct SkinnyTile {
  const Space &space;
  const Limits &limits;
  const SkinnyRates &rates;
  MatmulOp matmul;
  int64_t rows, depth, columns;
  int64_t together; // the columns of all GEMMs that share the launch
  int64_t count;    // GEMMs of one A
  int64_t batch;    // GEMMs, or tiles of groups that are expected to have rows
  int64_t pair;     // columns that a lane has together
  int64_t bits, otherBits; // of B's elements as they are stored, of A's
  int64_t unit;            // packed weights of a word; 0: none
  int64_t wide;            // elements of B that a lane loads at once
  int64_t waves;
  int64_t run = 1, lanesAlongDepth, wavesAlongDepth = 1;
  int64_t columnsPerLane, lanesAlongColumns, wavesAlongColumns;

  SkinnyTile(const Space &space, const Limits &limits)
      : space(space), limits(limits), rates(limits.row.tiles.skinny),
        matmul(space.matmul), rows(rowsOf(space)), depth(matmul.getDepth()),
        columns(matmul.getType().getShape().back()),
        together(std::max(columns, limits.columns)),
        count(space.gemms().size()), batch(batchOf(space, rows)),
        pair(columnsOfPair(space)), bits(storedBits(space)),
        otherBits(matmul.getA().getType().getElementTypeBitWidth()),
        unit(unitOfWeights(space)),
        // Upper bits in words of their own come beside.
        wide(128 / llvm::bit_floor<uint64_t>(bits)),
        waves(std::max<int64_t>(1, limits.shareBlock / limits.wave)) {
    bool alongDepth = matmul.getTransposeB();
    if (rows <= 4 && alongDepth)
      waves = std::min<int64_t>(waves, rates.mostWaves);
    if (limits.lead)
      waves = limits.lead->waves;
    if (alongDepth)
      placeAlongDepth();
    else
      placeAlongColumns();
    placeWaves();
  }

  Tile tile() const {
    Tile tile;
    tile.waves = wavesAlongDepth * wavesAlongColumns;
    tile.m = rows;
    tile.n = columnsPerLane * lanesAlongColumns * wavesAlongColumns;
    int64_t blockRuns = lanesAlongDepth * wavesAlongDepth;
    tile.run = run;
    tile.k = blockRuns * run;
    int64_t registers = registersOf(space, rows, columnsPerLane, run);
    // A power of two, which is likely to divide.
    bool isBeside =
        limits.columns && rows == 1 && MatmulOp(matmul).getTransposeB();
    int64_t most = isBeside ? rates.unrollBeside : 8;
    int64_t unroll = std::clamp<int64_t>(loadedRegisters / registers, 1, most);
    tile.unroll = std::min<int64_t>(llvm::bit_floor<uint64_t>(unroll),
                                    llvm::divideCeil(depth / run, blockRuns));
    return tile;
  }

  SkinnyTime time() const {
    SkinnyTime time{&limits.row, double(rows), 0, 0, 0};
    time.busy = double(wavesAcross()) * wavesAlongDepth /
                (double(limits.simds) * wavesPerSimd);
    time.loading = double(together) * depth * bits / 8 /
                   (1000.0 * limits.row.bandwidthGBs) * limits.row.clockMHz;
    // Issue cycles for one row: the FMAs plus the loads of A.
    double perWeight =
        (unit ? rates.perPacked : rates.perWeight) * limits.row.waveCycles;
    time.issue = perWeight * rows * count * together * depth /
                 (limits.wave * double(limits.simds));
    return time;
  }

  /// Parts of the depth fill a device that waves along it do not: they are
  /// compared by loading.
  void forEachSplit(VisitTile visit) const {
    constexpr int64_t most = 64;
    bool splits = limits.wide && !limits.columns && canSplit(space);
    Tile next = tile();
    do {
      visit(next, time().toLoad(next, batch));
      next.split *= 2;
    } while (splits && next.split <= most &&
             depth % (next.k * next.split) == 0);
  }

private:
  int64_t wavesAcross() const {
    return llvm::divideCeil(together, columnsPerLane * lanesAlongColumns);
  }
  /// Whether so many waves along the depth leave SIMDs with too few.
  bool leavesIdle(int64_t alongDepth) const {
    return batch * wavesAcross() * alongDepth < limits.simds * wavesPerSimd;
  }
  void placeAlongDepth() {
    run = std::min(wide, powerPart(depth));
    while (run > std::max<int64_t>(unit, 1) &&
           rows * run * otherBits > 32 * loadedRegisters)
      run /= 2;
    lanesAlongDepth =
        std::min(std::max<int64_t>(1, limits.wave / rowsTogether(space)),
                 ceilPower(depth / run));
    lanesAlongColumns = limits.wave / lanesAlongDepth;
    columnsPerLane = rows <= 4     ? rates.columns
                     : limits.wide ? sumRegisters / 16
                                   : 1;
    columnsPerLane = std::max<int64_t>(pair, columnsPerLane / count);
    while (columnsPerLane > pair && leavesIdle(waves))
      columnsPerLane /= 2;
  }

  void placeAlongColumns() {
    bool areHalves = space.pairs == Space::Pairs::Halves;
    int64_t inRow =
        space.heads ? space.headSize() / (areHalves ? 2 : 1) : columns;
    int64_t neighbours = std::max<int64_t>(std::min(wide, powerPart(inRow)),
                                           areHalves ? 1 : pair);
    columnsPerLane = areHalves ? 2 * neighbours : neighbours;
    // A cache line of 128 bytes.
    int64_t lanesOfLine =
        std::min(limits.wave, std::max<int64_t>(1, 1024 / (bits * neighbours)));
    lanesAlongDepth = limits.wave / lanesOfLine;
    lanesAlongColumns = limits.wave / lanesAlongDepth;
  }

  void placeWaves() {
    int64_t runs = depth / run;
    // Lanes that cannot add up by themselves: neighbours still load neighbours.
    if (limits.wave == 1)
      wavesAlongDepth = std::min<int64_t>({8, waves, ceilPower(runs)});
    while (wavesAlongDepth < waves && leavesIdle(wavesAlongDepth) &&
           lanesAlongDepth * wavesAlongDepth * 2 <= runs)
      wavesAlongDepth *= 2;
    wavesAlongColumns = waves / wavesAlongDepth;
    if (!limits.lead)
      wavesAlongColumns =
          std::min<int64_t>(wavesAlongColumns, ceilPower(wavesAcross()));
  }
};
} // namespace

std::optional<KernelKind> greta::skinnyKind(const Space &space,
                                            const Limits &limits) {
  MatmulOp matmul = space.matmul;
  if (!isSkinny(matmul))
    return std::nullopt;
  SkinnyTile skinny(space, limits);
  KernelKind kind{SkinnyGemm};
  kind.candidates = [skinny](VisitTile visit) { skinny.forEachSplit(visit); };
  kind.takeBest();
  // More rows than were expected load B again. Each row is likely to be of
  // another group.
  int64_t rows = skinny.rows, groups = matmul.getNumGroups();
  bool isDynamic = matmul.getType().isDynamicDim(matmul.getBatchRank());
  kind.cyclesOf = [=, time = skinny.time(), batch = skinny.batch,
                   together = skinny.together](const Tile &tile,
                                               int64_t given) {
    double once = time.of(tile, batch);
    if (!groups)
      return once * llvm::divideCeil(given, rows);
    if (!isDynamic)
      return once;
    double tiles = rows == 1 ? given : std::min(given, groups);
    double across = llvm::divideCeil(together, tile.n);
    return time.of(tile, tiles) +
           cyclesOfEmptySlots(groups, given, rows, across, tile.waves, limits);
  };
  kind.cycles = kind.cyclesOf(kind.tile, expectedRows(matmul));
  kind.whyNot = [&](const Tile &tile) {
    return whyNotSkinny(space, limits, tile);
  };
  // It has all of M.
  static constexpr int64_t Tile::*steps[] = {&Tile::n,     &Tile::k,
                                             &Tile::waves, &Tile::unroll,
                                             &Tile::run,   &Tile::split};
  kind.steps = steps;
  return kind;
}
