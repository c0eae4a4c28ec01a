//===- ConfigureSimt.cpp - GEMMs without matrix instructions --------------===//
//
// A lane has sixteen accumulators. If that leaves compute units idle, the GEMM
// is split along K.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include <cmath>

using namespace mlir;
using namespace greta;

/// Accumulators of a lane that may be asked for, and without registers to fill.
static constexpr int64_t mostSums = 64, mostSumsOfCpu = 32;

static int64_t ldsBytes(const Problem &problem, const Tile &tile) {
  return problem.bytes * tile.k * (tile.m + problem.count * tile.n) +
         (tile.split > 1 ? meetingBytes : 0);
}

static std::optional<std::string>
whyNotSimt(const Problem &problem, const Limits &limits, const Tile &tile) {
  if (!llvm::isPowerOf2_64(tile.m) || !llvm::isPowerOf2_64(tile.k) ||
      (problem.head == 1 && !llvm::isPowerOf2_64(tile.n)))
    return "its tile is not made of powers of two";
  if (tile.n % problem.head)
    return "its tile does not take heads of " + std::to_string(problem.head) +
           " columns whole";
  int64_t lanes = tile.waves * limits.wave;
  int64_t sums = tile.m * tile.n / lanes;
  if (sums < 1 ||
      problem.count * sums > (limits.wide ? mostSums : mostSumsOfCpu))
    return "it has " + std::to_string(sums) +
           " sums a lane, which are from 1 to " +
           std::to_string((limits.wide ? mostSums : mostSumsOfCpu) /
                          problem.count);
  if (auto why = limits.whyNot(lanes, ldsBytes(problem, tile)))
    return why;
  if (tile.split > 1 && !problem.splits)
    return "its 'split' needs K in the type, an A that is not computed, and no "
           "batch, heads or 'greta.batch_invariant'";
  return std::nullopt;
}

FailureOr<KernelKind> greta::simtKind(const Space &space,
                                      const Problem &problem,
                                      const Limits &limits) {
  MatmulOp matmul = space.matmul;
  int64_t largest = limits.wide ? 64 : 32;
  auto extent = [&](int64_t size) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(size), 16, largest);
  };
  int64_t rows = extent(problem.m), columns = extent(problem.n);
  if (problem.head > 1) {
    columns = problem.head;
    while (rows > 4 && rows * columns > largest * largest)
      rows /= 2;
  }
  KernelKind kind{SimtGemm};
  Tile &tile = kind.tile;
  tile.m = rows;
  tile.n = columns;
  tile.k = std::clamp<int64_t>(llvm::PowerOf2Ceil(problem.k), 1,
                               std::max<int64_t>(problem.unit, 16));
  tile.waves =
      limits.lead
          ? limits.lead->waves
          : std::clamp<int64_t>(llvm::bit_floor<uint64_t>(rows * columns) / 16,
                                limits.wave, limits.shareBlock) /
                limits.wave;
  int64_t bytes = ldsBytes(problem, tile);
  if (bytes > limits.ldsBytes)
    return matmul.emitOpError("needs ")
           << bytes << " bytes of shared memory for its smallest block, the "
           << "target has " << limits.ldsBytes << "; take another target";
  // A lane does one a cycle, and the iteration's barriers and loads come
  // beside.
  double perCycle =
      double(limits.row.simdsPerUnit) * limits.wave / limits.row.waveCycles;
  kind.cyclesOf = [&row = limits.row, problem, perCycle](const Tile &tile,
                                                         int64_t given) {
    double sums = double(problem.count) * tile.m * tile.n;
    double step = sums * tile.k / perCycle + row.tiles.loop.iteration;
    double tiles = double(llvm::divideCeil(given, tile.m)) *
                   llvm::divideCeil(problem.n, tile.n);
    return std::ceil(tiles * tile.split / row.computeUnits) *
               llvm::divideCeil(llvm::divideCeil(problem.k, tile.k),
                                tile.split) *
               step +
           splitCycles(row, tile.split, sums);
  };
  kind.candidates = [=, &limits, next = tile,
                     of = kind.cyclesOf](VisitTile visit) mutable {
    int64_t most = mostParts(next.m, next.n, problem, limits);
    for (next.split = 1; next.split <= most; next.split *= 2)
      visit(next, of(next, problem.m));
  };
  kind.takeBest();
  kind.whyNot = [=, &limits](const Tile &tile) {
    return whyNotSimt(problem, limits, tile);
  };
  static constexpr int64_t Tile::*parts[] = {&Tile::n, &Tile::k, &Tile::waves,
                                             &Tile::m, &Tile::split};
  kind.steps = parts;
  return kind;
}
