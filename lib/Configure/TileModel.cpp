//===- TileModel.cpp - which tiles fit ------------------------------------===//
//
// In: a problem, a tile, a target row. Out: the shared memory and registers
// that the tile needs, and the reason if it cannot be taken. TileTime.cpp has
// its time.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Tile/TransposedLoads.h"

using namespace mlir;
using namespace greta;

std::pair<int64_t, int64_t> TileModel::waveTile(const Tile &tile) const {
  int64_t part[2] = {tile.m, tile.n};
  for (auto [dim, moved] : waveBits(tile.instruction->m, tile.instruction->n,
                                    tile.m, tile.n, tile.wavesOfSlice()))
    if (moved)
      part[dim] /= 2;
  return {part[0], part[1]};
}

int64_t TileModel::acrossWaves(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  int64_t across = mi.n;
  for (auto [dim, moved] :
       waveBits(mi.m, mi.n, tile.m, tile.n, tile.wavesOfSlice()))
    across *= dim == 1 ? 2 : 1;
  return across;
}

int64_t TileModel::ldsBytes(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  int64_t bytes =
      tile.stages * (tile.m + problem.count * tile.n) * tile.k * problem.bytes;
  if (tile.split > 1)
    bytes += meetingBytes;
  // Slices' sums meet there.
  if (!tile.stages && tile.slice < tile.k)
    bytes += tile.k / tile.slice * problem.count * tile.m * tile.n * 4;
  // Heads that are no multiples of tiles are taken apart there.
  if (within(tile) % acrossWaves(tile))
    bytes += tile.m * tile.n * problem.bytesOut;
  if (mi.name != "coopmat")
    return bytes;
  // A norm's rows pass through an array of their own, which on AMD lies where
  // the blocks were.
  if (problem.isNorm)
    bytes += tile.m * 4;
  bool opaque = tile.opaque || !mi.accLayout.isKnown();
  if (row.loadsElements(mi) && !opaque)
    return bytes;
  // Rows for matrices that drivers load are padded by 16 bytes; results of
  // unknown layout pass through shared memory, a wave's matrix at a time.
  int64_t rows = (problem.rowsOfA ? tile.m : tile.k) +
                 problem.count * (problem.rowsOfB ? tile.n : tile.k);
  return bytes + tile.stages * rows * 16 +
         (opaque ? tile.waves * mi.m * mi.n * 4 : 0);
}

bool TileModel::isReadAsStored(bool rowsAlongK) const {
  return rowsAlongK || transposedWidth(row, /*isShared=*/true, problem.bytes);
}

int64_t greta::copiesInLanes(const MatrixInstruction &mi) {
  if (!mi.aLayout.isKnown())
    return 1;
  return (int64_t(1) << (mi.aLayout.reg.size() + mi.aLayout.lane.size())) /
         (mi.m * mi.k * mi.blocks);
}

/// 32-bit registers of a lane: accumulators, the operands that are read ahead,
/// the blocks on their way from memory, and what addresses take.
int64_t TileModel::registers(const Tile &tile, bool asked) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  int64_t lanes = limits.wave;
  // Without shared memory: a slice of both operands, and addresses.
  if (!tile.stages)
    return problem.count * m * n / lanes +
           tile.slice * (m + problem.count * n) * problem.bytes / (4 * lanes) +
           row.tiles.stream.registers;
  auto fragment = [&](int64_t extent, unsigned tileExtent,
                      const FragmentLayout &layout) {
    int64_t elements = mi.accLayout.isKnown() ? int64_t(1) << layout.reg.size()
                                              : tileExtent * mi.k / lanes;
    int64_t registers = elements * problem.bytes / 4;
    // Only the part of a whole block that the next dots need is read ahead, 16
    // bytes a lane.
    int64_t depth =
        tile.slice < tile.k
            ? tile.slice / mi.k
            : std::min<int64_t>(tile.slice / mi.k,
                                std::max<int64_t>(1, 4 / registers));
    return extent / tileExtent * depth * registers;
  };
  int64_t left = fragment(m, mi.m, mi.aLayout);
  int64_t right = problem.count * fragment(n, mi.n, mi.bLayout);
  // One slice is read while another is multiplied; of whole blocks the longer
  // side waits for one tile after another of the shorter one.
  int64_t operands = tile.stages > 1 && tile.slice < tile.k
                         ? 2 * (left + right)
                         : std::max(left, right) + 16;
  int64_t threads = tile.waves * lanes;
  // Blocks that are transposed on their way are there more than once. A
  // configuration that is asked for gets the least.
  auto block = [&](int64_t extent, int64_t loaded, bool alongK, int64_t align,
                   int64_t gathered) -> int64_t {
    // A computed operand takes registers, too, before it is stored; an operand
    // that is only loaded has registers of its own.
    int64_t each = std::max(8 * problem.bytes, loaded);
    if (align < 4)
      each = std::max<int64_t>(each, 32);
    each = std::max(each, gathered);
    int64_t bits = extent * tile.k * each;
    int64_t copies = asked || isReadAsStored(alongK) ? 1 : row.tiles.transposed;
    return llvm::divideCeil(bits, 128 * threads) * 4 * copies;
  };
  int64_t sums = problem.numSums() * m * n / lanes;
  // Behind the loop, rope's tables: two numbers for every pair of columns, or,
  // where neighbours may be in two lanes, for every column.
  int64_t tables = 2 * sums * within(tile) / tile.n;
  // Elements of patches that have a tap each are loaded from a place each,
  // which is computed in registers of its own; within an image it has 32 bits.
  int64_t gatheredA = problem.channels % tile.k ? 128 : 0;
  int64_t gatheredB = problem.patchesInB ? 96 : 0;
  // Direct loads to shared memory take none.
  if (!tile.direct)
    operands +=
        block(tile.m, problem.loaded[0], problem.rowsOfA, problem.alignOfA,
              gatheredA) +
        problem.count * block(tile.n, problem.loaded[1], problem.rowsOfB,
                              problem.alignOfB, gatheredB);
  constexpr int64_t others = 24; // addresses and counters
  return sums + others + std::max(tables, operands);
}

/// The narrowest tile of an instruction on AMD's chips.
static constexpr int64_t evenColumns = 16;

int64_t TileModel::directBytes() const {
  int64_t most = 0;
  if (problem.stored && isReadAsStored(problem.rowsOfA) &&
      isReadAsStored(problem.rowsOfB))
    for (int64_t bytes : row.directToLdsBytes)
      if (llvm::isPowerOf2_64(bytes) &&
          bytes <= std::min(problem.alignOfA, problem.alignOfB))
        most = std::max(most, bytes);
  return most;
}

/// Why blocks of the tile cannot be loaded straight to shared memory: a wave's
/// lanes fill neighbouring places, so the swizzle is in where they load from.
std::optional<std::string> TileModel::whyNotDirect(const Tile &tile) const {
  if (tile.stages < 2)
    return "its 'direct' loads need two or three stages";
  int64_t bytes = directBytes();
  if (!bytes)
    return "its 'direct' loads need a target that has them, and operands as "
           "they are in memory, with aligned rows along K";
  int64_t iteration = tile.waves * limits.wave * bytes / problem.bytes;
  for (auto [extent, rowsAlongK, distance] :
       {std::tuple(tile.m, problem.rowsOfA, problem.rowOfA),
        {tile.n, problem.rowsOfB, problem.rowOfB}}) {
    auto [rows, length] =
        rowsAlongK ? std::pair(extent, tile.k) : std::pair(tile.k, extent);
    if (!llvm::isPowerOf2_64(length) || iteration % length ||
        rows * length % iteration)
      return "its 'direct' loads, " + std::to_string(iteration) +
             " numbers at a time, are not whole blocks of whole rows";
    // As greta-tile-distribute has it.
    constexpr int64_t most = int64_t(1) << 30;
    if (((rows - 1) * distance + length) * problem.bytes > most)
      return "its 'direct' loads reach 2^30 bytes from the first row";
  }
  return std::nullopt;
}

std::optional<std::string> TileModel::whyNot(const Tile &tile,
                                             bool asked) const {
  const MatrixInstruction &mi = *tile.instruction;
  if (tile.m % mi.m || tile.n % mi.n || tile.k % mi.k || tile.slice % mi.k ||
      tile.slice <= 0 || tile.k % tile.slice)
    return "its tile is not made of the instruction's " + std::to_string(mi.m) +
           "x" + std::to_string(mi.n) + "x" + std::to_string(mi.k);
  if (problem.sharesRows && !llvm::isPowerOf2_64(tile.n))
    return std::to_string(tile.n) +
           " columns lie across rows of scales; take a power of two";
  for (auto [dim, moved] :
       waveBits(mi.m, mi.n, tile.m, tile.n, tile.wavesOfSlice()))
    if (!moved)
      return std::to_string(tile.waves) +
             " waves do not divide its tile evenly";
  // If no tile would, heads are taken apart in shared memory.
  bool isUneven = within(tile) % acrossWaves(tile) != 0;
  bool isPart = problem.hasPairs && !tile.stages && tile.n < problem.head &&
                problem.head % tile.n == 0;
  if ((tile.n % problem.head && !isPart) ||
      (isUneven && within(tile) % evenColumns == 0))
    return "its tile does not take heads of " + std::to_string(problem.head) +
           " columns apart evenly";
  if (tile.split > 1 && !problem.splits)
    return "its 'split' needs K in the type, an A that is not computed, and no "
           "batch, heads or 'greta.batch_invariant'";
  // Lanes with unequal shares of packed weights have narrow loads, and spill.
  int64_t weights = row.tiles.weightsOfLane;
  if (!asked && problem.unit &&
      tile.n * tile.k % (weights * tile.waves * limits.wave))
    return "it has no multiple of " + std::to_string(weights) +
           " weights for each lane";
  if (!tile.stages) {
    if (tile.opaque || !mi.accLayout.isKnown() || !problem.parts ||
        !problem.rowsOfA || !problem.rowsOfB)
      return "without stages it needs rows along K, a stored A, with heads a "
             "stored B, no batch, and an instruction whose layouts are known";
    int64_t parts = tile.k / tile.slice;
    if (problem.k % tile.k || tile.waves % parts || !llvm::isPowerOf2_64(parts))
      return "without stages its blocks must divide K, and its waves be shared "
             "out to slices";
  }
  if (tile.stages && mi.isSwapped)
    return "its instruction takes operands from registers, without stages";
  if (tile.direct)
    if (auto why = whyNotDirect(tile))
      return why;
  if (problem.unit && (!llvm::isPowerOf2_64(tile.k) || tile.k < problem.unit))
    return "its depth of " + std::to_string(tile.k) +
           " is, with packed weights, no power of two of " +
           std::to_string(problem.unit) + " or more";
  if (auto why = limits.whyNot(tile.waves * limits.wave, ldsBytes(tile)))
    return why;
  if (row.vgprs.perWave) {
    int64_t perSimd = llvm::divideCeil(tile.waves, simds());
    int64_t most = row.vgprs.perWave;
    if (row.vgprs.perSimd)
      most = std::min<int64_t>(most, row.vgprs.perSimd / perSimd);
    if (!asked)
      most -= row.tiles.spareVgprs + limits.spareRegisters;
    int64_t needed = registers(tile, asked);
    if (needed > most)
      return "it needs about " + std::to_string(needed) +
             " registers a lane, the target has " + std::to_string(most);
  }
  return std::nullopt;
}

double TileModel::ldsTraffic(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  double perColumn = double(tile.k) * problem.bytes;
  double stored = (tile.m + problem.count * tile.n) * perColumn;
  double reads = tile.waves * (m + problem.count * n) * perColumn;
  bool isLoadedWhole = mi.name == "coopmat" && !row.loadsElements(mi);
  if (!mi.aLayout.isKnown() || isLoadedWhole)
    return stored + reads;
  // A lane that has less than 16 bytes at a time reads more often; one that
  // shares its operand with another reads it twice.
  int64_t inLane = int64_t(1) << mi.aLayout.reg.size();
  int64_t width =
      std::min<int64_t>(16, inLane * problem.bytes * (tile.slice / mi.k));
  return stored + reads * 16.0 / width * copiesInLanes(mi);
}
