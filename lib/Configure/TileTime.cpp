//===- TileTime.cpp - the time that a GEMM takes with a tile --------------===//
//
// In: a problem, a tile that fits, a target row. Out: cycles of the whole GEMM.
//
// A loop is what an iteration of one workgroup asks of a compute unit: matrix
// instructions, shared memory, the second cache, each in cycles of the whole
// unit, and how long it takes where the workgroup is alone on the unit. The
// workgroups that a unit holds share its parts:
//
//   iteration  = max(alone + contention * (together - 1) * busiest,
//               together * (busiest + crowded * the other parts))
//   time  = sum over what a unit gets, `resident` workgroups at a time, of
//             iterations * iteration + ends
//
// or what memory takes for the operands; of the shorter, `crowded` shows.
// `alone` is
//
//   max(busiest + others + iteration, latency + behind * what the unit does)
//
// for operands that pass through shared memory: either the unit's busiest part
// keeps the next block waiting, or memory does. Every coefficient is the row's
// (LoopRates, StreamRates), with its source; docs/benchmarks/tile_times.py fits
// them.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include <cmath>

using namespace mlir;
using namespace greta;

namespace {
/// An iteration of so many workgroups of a unit by the terms that it may take:
/// the way of one through it, which the others lengthen, and the unit's work.
struct Together {
  double way, work;
  Together(const LoopRates &rates, const TileModel::Iteration &iteration,
           double alone, double groups)
      : way(alone + rates.contention * (groups - 1) * iteration.busiest()),
        work(groups * (rates.busiest * iteration.busiest() +
                       rates.crowded * iteration.others())) {}
};
} // namespace

/// The cycles that `groups` workgroups of a unit take for an iteration; `alone`
/// is that of one that has the unit to itself.
static double cyclesOfLoops(const LoopRates &rates,
                            const TileModel::Iteration &iteration, double alone,
                            double iterations, double groups, double resident,
                            llvm::function_ref<double(double)> ends) {
  double total = 0;
  for (double left = groups; left > 0; left -= resident) {
    double together = std::min(left, resident);
    Together next(rates, iteration, alone, together);
    total += iterations * std::max(next.way, next.work) + ends(together);
  }
  return total;
}

double greta::cyclesOfEmptySlots(int64_t groups, int64_t rows, int64_t tileRows,
                                 double across, int64_t waves,
                                 const Limits &limits) {
  constexpr double wavesPerSimd = 4;
  if (!groups || tileRows == 1)
    return 0;
  int64_t slots = rows / tileRows + groups + 1;
  int64_t used = std::max(std::min(groups, rows), rows / tileRows);
  return limits.row.tiles.loop.search * std::max<int64_t>(0, slots - used) *
         across * waves / (limits.simds * wavesPerSimd);
}

double TileModel::workgroups(const Tile &tile) const {
  double tiles = llvm::divideCeil(problem.m, tile.m);
  // The last tile of groups that differ is half empty. (Every tile unpacks
  // weights again, which the loop's time does not have.)
  if (problem.groups && !problem.group)
    tiles = std::max(1.0, double(problem.m) / tile.m + 0.5);
  return tiles * llvm::divideCeil(problem.n, tile.n) * tile.split *
         problem.batch;
}

double TileModel::perUnit(const Tile &tile) const {
  return std::ceil(workgroups(tile) * row.unitsPerWorkgroup / row.computeUnits);
}

double TileModel::resident(const Tile &tile) const {
  double waves = row.maxWavesPerSimd;
  if (row.vgprs.perSimd)
    waves = std::min<double>(waves, row.vgprs.perSimd / registers(tile));
  double byLds = row.ldsBytesPerUnit * row.unitsPerWorkgroup / ldsBytes(tile);
  return std::max(1.0,
                  std::min(byLds, std::floor(waves * simds() / tile.waves)));
}

double TileModel::memoryCycles(double bytesOfA, double bytesOfB) const {
  return problem.batch * (bytesOfA + problem.count * bytesOfB) /
         (1000.0 * row.bandwidthGBs) * row.clockMHz;
}

/// Cache lines that a wave's loads of a slice touch, 16 bytes a lane at a time:
/// the lanes along K lie so far apart as a lane has bytes of a row.
static double linesOfSlice(const MatrixInstruction &mi, double rows,
                           double bytesOfRow) {
  constexpr double lineBytes = 128, loadBytes = 16;
  int64_t lanes = 1;
  for (const FragmentBasis &basis : mi.aLayout.lane)
    lanes *= basis.column ? 2 : 1;
  return rows * std::ceil(bytesOfRow / (lanes * loadBytes)) *
         std::ceil(bytesOfRow / lineBytes);
}

/// Without shared memory: the first cache brings what waves multiply by lines,
/// and the scales and zeros of packed weights by words; a wave's next iteration
/// comes when its loads are back.
double TileModel::cyclesInRegisters(const Tile &tile) const {
  const StreamRates &rates = row.tiles.stream;
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  double columns = double(problem.count) * n;
  double cached =
      rates.line *
      (linesOfSlice(mi, m, tile.slice * problem.bytes) +
       linesOfSlice(mi, columns, tile.slice * problem.loaded[1] / 8.0));
  if (problem.group)
    cached += (1 + problem.hasZeros) * rates.perWord * columns / 8;
  Iteration iteration;
  iteration.cached = tile.waves * cached;
  iteration.matrix = tile.waves * (m / mi.m) * (columns / mi.n) *
                     (tile.slice / mi.k) * double(mi.cycles) / simds();
  double alone = rates.latency + rates.loads * cached;
  double iterations = llvm::divideCeil(problem.k, tile.k);
  double groups = perUnit(tile);
  // Workgroups begin as others end.
  double resident =
      double(row.vgprs.perSimd) * simds() / (registers(tile) * tile.waves);
  double loops =
      iterations * std::max(groups * iteration.busiest(),
                            std::max(1.0, groups / resident) * alone);
  double sums = tile.slice < tile.k
                    ? double(tile.k / tile.slice) * columns * m / rates.sums
                    : 0;
  // A row's bytes that a workgroup reads at a time.
  double inRow = std::min(512.0, tile.k * problem.loaded[1] / 8.0);
  double memory =
      memoryCycles(0, double(problem.n) * problem.k * problem.loaded[1] / 8 *
                          (1 + rates.rowBytes / inRow));
  return std::max(memory, loops) + alone + groups * (sums + rates.ends) +
         rates.start;
}

std::pair<TileModel::Iteration, double>
TileModel::iterationOf(const Tile &tile) const {
  const LoopRates &rates = row.tiles.loop;
  const MatrixInstruction &mi = *tile.instruction;
  const double count = problem.count;
  Iteration iteration;
  iteration.matrix = problem.numDots() * (tile.m / mi.m) * (tile.n / mi.n) *
                     (tile.k / mi.k) * (mi.cycles + rates.issue) / simds();
  iteration.shared = ldsTraffic(tile) / rates.ldsBytes;
  iteration.cached = tile.k / 8.0 / rates.cacheBytes *
                     (double(std::min(problem.m, tile.m)) * problem.loaded[0] +
                      count * std::min(problem.n, tile.n) * problem.loaded[1]);
  // Few waves have but some of the matrix units, and of the halves of a unit.
  double share = double(simds()) / std::min(tile.waves, simds());
  double halves = std::min<double>(share, row.unitsPerWorkgroup);
  Iteration own = {iteration.matrix * share, iteration.shared * halves,
                   iteration.cached * halves};
  double beside =
      std::max(0.0, (tile.direct ? rates.iterationDirect : rates.iteration) -
                        rates.hidden * own.matrix);
  double alone =
      rates.busiest * own.busiest() + rates.others * own.others() + beside;
  // Lanes with unequal shares of a block load less than 16 bytes at a time.
  int64_t lanes = 16 / problem.bytes * tile.waves * limits.wave;
  if (!tile.direct && (tile.m * tile.k % lanes || tile.n * tile.k % lanes))
    alone *= rates.narrow;
  // A third stage has twice the time.
  double latency =
      tile.direct ? rates.latencyDirect / (tile.stages - 1) : rates.latency;
  constexpr int64_t few = 128;
  if (problem.m <= few)
    latency += rates.latencyFew;
  alone =
      std::max(alone, latency + rates.behind * (own.busiest() + own.others()));
  return {iteration, alone};
}

bool TileModel::leavesNothing(const Tile &tile, double part) const {
  auto [iteration, alone] = iterationOf(tile);
  double groups = resident(tile);
  Together full(row.tiles.loop, iteration, alone, groups);
  if (groups * iteration.matrix >= (1 - part) * std::max(full.way, full.work))
    return true;
  return full.work >= full.way && iteration.busiest() > iteration.matrix;
}

double TileModel::cycles(const Tile &tile) const {
  if (!tile.stages)
    return cyclesInRegisters(tile);
  const LoopRates &rates = row.tiles.loop;
  const double count = problem.count;
  auto [iteration, alone] = iterationOf(tile);
  double iterations =
      llvm::divideCeil(llvm::divideCeil(problem.k, tile.k), tile.split);
  double total = cyclesOfLoops(
      rates, iteration, alone, iterations, perUnit(tile), resident(tile),
      [&](double together) {
        return rates.ends +
               splitCycles(row, tile.split, tile.m * tile.n * count * together);
      });
  for (bool isPartial :
       {!problem.groups && problem.m % tile.m != 0, problem.n % tile.n != 0})
    total *= isPartial ? rates.partial : 1;
  double memory = memoryCycles(problem.k / 8.0 * problem.m * problem.loaded[0],
                               problem.k / 8.0 * problem.n * problem.loaded[1]);
  return std::max(total, memory) + rates.crowded * std::min(total, memory);
}
