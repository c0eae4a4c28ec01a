//===- TileModel.cpp - which tiles fit, and their time --------------------===//
//
// A small model of the time of a GEMM, for tiles that fit:
//
//   rounds = workgroups / compute units, rounded up
//   step   = matrix cycles + a part of the shared memory's + barriers
//   time   = rounds * (steps along K * step + prologue and epilogue)
//            + what the parts of a split GEMM cost (SplitK.cpp)
//
// How much of the rest shows depends on the schedule.
//
// With one stage, fitted to measurements on the H200 (docs/benchmarks; cycles
// a step of 64: 128x128 2030, 128x160 2235, 128x192 2355, 160x160 2410): six
// tenths of the matrix instructions' time, three of shared memory's, 1180, and
// 4 % for each side of the GEMM that the block does not divide.
//
// With two stages, on chips whose row has LoopLimits, by what the loop asks of
// a compute unit (cyclesOfLoop). On RDNA, from the simulator's issue model at
// 4096x4096x4096 (docs/benchmarks/amd_loops.py): WMMA goes through the vector
// unit, where reads take slots of their own; what is not hidden of the shared
// memory's time, and what memory answers too late for a short step, is for two
// waves a SIMD: one shows four times as much, four a quarter. What the last
// round leaves empty counts for three quarters: units drift apart.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include <cmath>

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
  if (problem.within % acrossWaves(tile))
    bytes += tile.m * tile.n * problem.bytesOut;
  if (mi.name != "coopmat")
    return bytes;
  // Rows for cooperative matrices are padded by 16 bytes; results of unknown
  // layout pass through shared memory, a wave's matrix at a time.
  int64_t rows = (problem.rowsOfA ? tile.m : tile.k) +
                 problem.count * (problem.rowsOfB ? tile.n : tile.k);
  bool opaque = tile.opaque || !mi.accLayout.isKnown();
  // A norm's rows pass through an array of their own, which on AMD lies where
  // the blocks were.
  if (problem.isNorm)
    bytes += tile.m * 4;
  return bytes + tile.stages * rows * 16 +
         (opaque ? tile.waves * mi.m * mi.n * 4 : 0);
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
  // Without shared memory: a slice of both operands, and what addresses take
  // (H200, packed weights, 16x32 a wave in slices of 128, 152 by this: 16 us;
  // 16x64, 232: 22).
  if (!tile.stages)
    return problem.count * m * n / lanes +
           tile.slice * (m + problem.count * n) * problem.bytes / (4 * lanes) +
           40;
  auto fragment = [&](int64_t extent, unsigned tileExtent,
                      const FragmentLayout &layout) {
    int64_t elements = layout.isKnown() ? int64_t(1) << layout.reg.size()
                                        : tileExtent * mi.k / lanes;
    int64_t registers = elements * problem.bytes / 4;
    // Of a whole block only what the next GEMMs need is read ahead, 16
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
  // Blocks that are transposed on their way are there more than once, most
  // where lanes hold operands twice. What is asked for gets the least.
  auto block = [&](int64_t extent, int64_t loaded, bool alongK) -> int64_t {
    int64_t bytes = extent * tile.k * problem.bytes;
    // What is computed takes registers, too, before it is stored.
    int64_t bits = std::max(8 * bytes, extent * tile.k * loaded);
    int64_t copies = asked || alongK || row.isVulkan() ? 1
                     : copiesInLanes(mi) > 1           ? 3
                                                       : 2;
    return llvm::divideCeil(bits, 128 * threads) * 4 * copies;
  };
  int64_t sums = problem.count * m * n / lanes;
  // Behind the loop, rope's tables: two numbers for every pair of columns, or,
  // where neighbours may be in two lanes, for every column.
  int64_t tables = 2 * sums * problem.within / tile.n;
  // What goes straight to shared memory takes none.
  if (!tile.direct)
    operands +=
        block(tile.m, problem.loaded[0], problem.rowsOfA) +
        problem.count * block(tile.n, problem.loaded[1], problem.rowsOfB);
  constexpr int64_t others = 24; // addresses and counters
  return sums + others + std::max(tables, operands);
}

/// The narrowest tile of an instruction on AMD's chips.
static constexpr int64_t evenColumns = 16;

int64_t TileModel::directBytes() const {
  int64_t most = 0;
  if (problem.stored && problem.rowsOfA && problem.rowsOfB)
    for (int64_t bytes : row.directToLdsBytes)
      if (llvm::isPowerOf2_64(bytes) &&
          bytes <= std::min(problem.alignOfA, problem.alignOfB))
        most = std::max(most, bytes);
  return most;
}

/// Why blocks of the tile cannot be loaded straight to shared memory: a wave's
/// lanes fill neighbouring places, so the swizzle is in where they load from.
static std::optional<std::string> whyNotDirect(const Problem &problem,
                                               const Tile &tile, int64_t lanes,
                                               int64_t bytes) {
  if (tile.stages < 2)
    return "its 'direct' loads need two or three stages";
  if (!bytes)
    return "its 'direct' loads need a target that has them, and operands as "
           "they are in memory, with aligned rows along K";
  int64_t turn = tile.waves * lanes * bytes / problem.bytes;
  if (!llvm::isPowerOf2_64(tile.k) || turn % tile.k || tile.m * tile.k % turn ||
      tile.n * tile.k % turn)
    return "its 'direct' loads, " + std::to_string(turn) +
           " numbers at a time, are not whole blocks of whole rows";
  if (std::max(tile.m, tile.n) * problem.k * problem.bytes > INT32_MAX)
    return "its 'direct' loads reach 2^31 bytes from the first row";
  return std::nullopt;
}

std::optional<std::string> TileModel::whyNot(const Tile &tile,
                                             bool asked) const {
  const MatrixInstruction &mi = *tile.instruction;
  if (tile.m % mi.m || tile.n % mi.n || tile.k % mi.k || tile.slice % mi.k ||
      tile.slice <= 0 || tile.k % tile.slice)
    return "its tile is not made of the instruction's " + std::to_string(mi.m) +
           "x" + std::to_string(mi.n) + "x" + std::to_string(mi.k);
  for (auto [dim, moved] :
       waveBits(mi.m, mi.n, tile.m, tile.n, tile.wavesOfSlice()))
    if (!moved)
      return std::to_string(tile.waves) +
             " waves do not divide its tile evenly";
  // Where no tile would, heads are taken apart in shared memory.
  bool isUneven = problem.within % acrossWaves(tile) != 0;
  if (tile.n % problem.head || (isUneven && problem.within % evenColumns == 0))
    return "its tile does not take heads of " + std::to_string(problem.head) +
           " columns apart evenly";
  if (tile.split > 1 && !problem.splits)
    return "its 'split' needs K in the type, an A that is not computed, and no "
           "batch or heads";
  if (tile.waves * limits.wave > limits.maxBlock)
    return "its waves are more than a workgroup takes";
  // Packed weights are loaded by 16 bytes; without registers to fill, and where
  // lanes are many, by words. Lanes with unequal shares load narrow and spill
  // (gfx1100: 298 in 64x48x128).
  int64_t weights = limits.wide && limits.wave < 64 ? 32 : 8;
  if (!asked && problem.loaded[1] == 4 &&
      tile.n * tile.k % (weights * tile.waves * limits.wave))
    return "it has no multiple of " + std::to_string(weights) +
           " weights for each lane";
  if (!tile.stages) {
    if (tile.opaque || !mi.accLayout.isKnown() || !problem.splits ||
        !problem.rowsOfA || !problem.rowsOfB)
      return "without stages it needs rows along K, a stored A, no batch or "
             "heads, and an instruction whose layouts are known";
    int64_t parts = tile.k / tile.slice;
    if (problem.k % tile.k || tile.waves % parts || !llvm::isPowerOf2_64(parts))
      return "without stages its blocks must divide K, and its waves be shared "
             "out to slices";
  }
  if (tile.direct)
    if (auto why = whyNotDirect(problem, tile, limits.wave, directBytes()))
      return why;
  if (problem.group && (!llvm::isPowerOf2_64(tile.k) || tile.k < 8 ||
                        tile.k > 8 * problem.group))
    return "its depth of " + std::to_string(tile.k) +
           " is, with packed weights, no power of two from 8 to eight groups";
  int64_t lds = ldsBytes(tile);
  if (lds > limits.ldsBytes)
    return "it needs " + std::to_string(lds) +
           " bytes of shared memory, the target has " +
           std::to_string(limits.ldsBytes);
  if (row.vgprs.perWave) {
    int64_t perSimd =
        llvm::divideCeil(tile.waves, std::max(1u, row.simdsPerUnit));
    int64_t most = row.vgprs.perWave;
    if (row.vgprs.perSimd)
      most = std::min<int64_t>(most, row.vgprs.perSimd / perSimd);
    // Compilers need some room of their own: most a driver's, which does not
    // say what it spills. Of LLVM's the code is looked at, and the choice made
    // again where this was too little (lib/Package/Hip.cpp).
    int64_t room = row.isVulkan()          ? 48
                   : limits.wave == 64     ? 4
                   : copiesInLanes(mi) > 1 ? 32
                                           : 16;
    if (!asked)
      most -= room + limits.spareRegisters;
    int64_t needed = registers(tile, asked);
    if (needed > most)
      return "it needs about " + std::to_string(needed) +
             " registers a lane, the target has " + std::to_string(most);
  }
  return std::nullopt;
}

double TileModel::wavesPerSimd(const Tile &tile) const {
  double simds = std::max(1u, row.simdsPerUnit);
  double workgroups =
      std::max<int64_t>(1, row.ldsBytesPerUnit / ldsBytes(tile));
  double waves = workgroups * tile.waves / simds;
  if (row.vgprs.perSimd)
    waves = std::min<double>(waves, row.vgprs.perSimd / registers(tile));
  return std::max(waves, tile.waves / simds);
}

double TileModel::workgroups(const Tile &tile) const {
  return double(llvm::divideCeil(problem.m, tile.m)) *
         llvm::divideCeil(problem.n, tile.n) * tile.split * problem.batch;
}

double TileModel::steps(const Tile &tile) const {
  return llvm::divideCeil(llvm::divideCeil(problem.k, tile.k), tile.split);
}

/// Cycles of a matrix instruction; of a driver's, those of the H200's unit.
static double matrixCycles(const MatrixInstruction &mi) {
  return mi.cycles ? mi.cycles : mi.m * mi.n * mi.k / 128.0;
}

TileModel::LdsTraffic TileModel::ldsTraffic(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  double perColumn = double(tile.k) * problem.bytes;
  LdsTraffic lds;
  lds.stored = (tile.m + problem.count * tile.n) * perColumn;
  lds.reads = tile.waves * (m + problem.count * n) * perColumn;
  if (tile.stages == 1)
    return lds;
  // A lane that has less than 16 bytes at a time reads more often; one that
  // shares its operand with another reads it twice.
  int64_t inLane = int64_t(1) << mi.aLayout.reg.size();
  int64_t width =
      std::min<int64_t>(16, inLane * problem.bytes * (tile.slice / mi.k));
  lds.wide = width == 16;
  lds.reads *= 16.0 / width * inLane * limits.wave / (mi.m * mi.k);
  return lds;
}

/// Rows that end inside a block have an address each.
double TileModel::partialSides(const Tile &tile) const {
  double factor = 1;
  for (bool partial : {problem.m % tile.m != 0, problem.n % tile.n != 0})
    factor *= partial ? 1.04 : 1;
  return factor;
}

/// What limits a GEMM without shared memory, measured on the H200 (cycles
/// of 1.9 GHz a step of 128, 14336x4096, M = 16): memory; the first cache, 32
/// bytes a cycle for each unit, and 11 for the scales and for the zeros of 8
/// columns (packed weights, 8, 16 and 32 columns a wave: 166, 203 and 288); the
/// time from one step of a wave to the next, 1000 and six times what its own
/// loads take. A workgroup's beginning and end take 300.
double TileModel::cyclesInRegisters(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  double columns = double(problem.count) * n;
  double cached =
      (m * problem.bytes + columns * problem.loaded[1] / 8.0) * tile.slice / 32;
  if (problem.group)
    cached += 2 * 11 * columns / 8;
  double matrix = (m / mi.m) * (columns / mi.n) * (tile.slice / mi.k) *
                  matrixCycles(mi) / std::max(1u, row.simdsPerUnit);
  double perUnit = std::ceil(workgroups(tile) / row.computeUnits);
  double resident = double(row.vgprs.perSimd) * row.simdsPerUnit /
                    (registers(tile) * tile.waves);
  double steps = llvm::divideCeil(problem.k, tile.k);
  // Up to 512 of a row's bytes that a workgroup reads at a time cost 64 more.
  double inRow = std::min(512.0, tile.k * problem.loaded[1] / 8.0);
  double memory = double(problem.count) * problem.n * problem.k *
                  problem.loaded[1] / 8 * (1 + 64 / inRow) /
                  (1000.0 * row.bandwidthGBs) * row.clockMHz;
  double sums =
      tile.slice < tile.k ? double(tile.k / tile.slice) * columns * m / 16 : 0;
  double late = 1000 + 6 * cached;
  return std::max({memory,
                   perUnit * tile.waves * steps * std::max(cached, matrix),
                   std::max(1.0, perUnit / resident) * steps * late}) +
         late + perUnit * (sums + 300) + 1500;
}

/// By what the loop asks of a compute unit. The workgroups that a unit holds
/// take turns at its busiest part; one alone waits for memory, or is not faster
/// than its own chain of loads, barriers and matrix instructions. Constants are
/// those of the fit that LoopLimits come from (mean error 4 %; its choice is
/// within 5 % of the best tile at 43 of 50 shapes, within 20 % at all).
double TileModel::cyclesOfLoop(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  const LoopLimits &loop = row.loop;
  double count = problem.count;
  double simds = std::min<int64_t>(tile.waves, row.simdsPerUnit);
  // Each instruction is issued a cycle late.
  double matrix = count * (tile.m / mi.m) * (tile.n / mi.n) * (tile.k / mi.k) *
                  (mi.cycles + 1.0) / simds;
  LdsTraffic lds = ldsTraffic(tile);
  double shared = (lds.reads + lds.stored) / loop.ldsBytes;
  double loaded =
      tile.k / 8.0 *
      (double(tile.m) * problem.loaded[0] + count * tile.n * problem.loaded[1]);
  double cached = loaded / loop.cacheBytes;
  double busiest = std::max({matrix, shared, cached});
  double others = matrix + shared + cached - busiest;
  // A turn has barriers and first reads beside its busiest part; reads of whole
  // blocks do not run ahead of the matrix instructions. Those hide what direct
  // loads wait for.
  double beside = tile.direct ? std::max(0.0, 560 - 0.1 * matrix) : 257;
  bool ahead = tile.slice < tile.k && lds.wide;
  double chain = busiest + (ahead ? 0.83 * beside : beside + 0.11 * shared);
  // Lanes with unequal shares of a block load less than 16 bytes at a time.
  int64_t share = 16 / problem.bytes * tile.waves * limits.wave;
  if (tile.m * tile.k % share || tile.n * tile.k % share)
    chain *= 2;
  // A third stage has twice the time.
  double latency = tile.direct ? loop.directLatency / (tile.stages - 1.0)
                               : double(loop.latency);
  chain = std::max(chain, latency + 0.11 * matrix);
  double resident = std::max(
      1.0, std::floor(wavesPerSimd(tile) * row.simdsPerUnit / tile.waves));
  double total = 0;
  for (double left = std::ceil(workgroups(tile) / row.computeUnits); left > 0;
       left -= resident) {
    double together = std::min(left, resident);
    total += steps(tile) * std::max(chain + 0.28 * (together - 1) * busiest,
                                    together * (busiest + 0.11 * others)) +
             990 +
             splitCycles(row, tile.split, tile.m * tile.n * count * together);
  }
  total *= partialSides(tile);
  double bytes = problem.batch * (problem.k / 8.0 *
                                  (double(problem.m) * problem.loaded[0] +
                                   count * problem.n * problem.loaded[1]));
  return std::max(total, bytes / (1000.0 * row.bandwidthGBs) * row.clockMHz);
}

double TileModel::cycles(const Tile &tile) const {
  if (!tile.stages)
    return cyclesInRegisters(tile);
  if (row.loop.latency)
    return cyclesOfLoop(tile);
  const MatrixInstruction &mi = *tile.instruction;
  double tiles = workgroups(tile);
  // RDNA runs a workgroup on a pair of compute units: few have all of it.
  bool isPair =
      row.isHip() && limits.wave == 32 && 2 * tiles <= row.computeUnits;
  double simds = std::min<int64_t>(tile.waves, std::max(1u, row.simdsPerUnit) *
                                                   (isPair ? 2 : 1));
  double matrix = double(problem.count) * (tile.m / mi.m) * (tile.n / mi.n) *
                  (tile.k / mi.k) * matrixCycles(mi) / simds;
  // 128 bytes a cycle from shared memory; half of that from the caches.
  LdsTraffic lds = ldsTraffic(tile);
  double shared = (lds.reads + lds.stored) / 128;
  double memory = lds.stored / 64;
  double share = tiles / row.computeUnits, rounds = std::ceil(share), step;
  if (tile.stages == 1) {
    step = 0.6 * matrix + 0.3 * shared + 1180;
    // What skinny GEMMs read comes from memory, not from the second cache, and
    // its GEMMs are too few to hide that (H200, 16x64x128 by four waves: 2230).
    if (problem.m <= 128)
      step += std::max(0.0, 850 - matrix / 2);
  } else {
    bool ahead = tile.slice < tile.k && lds.wide;
    double exposed = (ahead ? 0.05 : 0.35) * shared + 30 +
                     std::max(0.0, shared - matrix / 2) * ahead +
                     std::max(0.0, 850 - matrix / 2);
    // Where matrix instructions are issued like any others, so are reads, of 64
    // bytes a cycle into the registers, and some sixty instructions a step (of
    // equal times by the issue model, gfx1100's 128x128x16 and 128x256x32, the
    // one with fewer).
    matrix += (8 * lds.reads / (16 * limits.wave) + 60 * tile.waves) / simds;
    double waves = wavesPerSimd(tile) / 2;
    step = std::max(matrix, shared) + exposed / (waves * waves);
    rounds = std::max(1.0, (rounds + share) / 2);
  }
  step = std::max(step * partialSides(tile), memory);
  double ends = 1500 + double(problem.count) * tile.m * tile.n / 64;
  return rounds * (steps(tile) * step + ends) +
         splitCycles(row, tile.split, double(tile.m) * tile.n * problem.count);
}
