//===- ConfigureSimt.cpp - GEMMs without matrix instructions --------------===//
//
// Sixteen accumulators a lane; where that leaves compute units idle, the
// GEMM is split along K.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include <cmath>

using namespace mlir;
using namespace greta;

/// Accumulators of a lane that may be asked for, and without registers to fill.
static constexpr int64_t mostSums = 64, mostSumsOfCpu = 32;

static int64_t ldsBytes(const Problem &problem, const SpaceSchedule &config) {
  return problem.bytes * config.depth *
             (config.rows.back() + problem.count * config.columns) +
         (config.split > 1 ? meetingBytes : 0);
}

std::optional<std::string> greta::whyNotSimt(const Problem &problem,
                                             const Limits &limits,
                                             const Choice &choice) {
  const SpaceSchedule &config = choice.space;
  int64_t rows = config.rows.back();
  if (!llvm::isPowerOf2_64(rows) || !llvm::isPowerOf2_64(config.depth) ||
      (problem.head == 1 && !llvm::isPowerOf2_64(config.columns)))
    return "its tile is not made of powers of two";
  if (config.columns % problem.head)
    return "its tile does not take heads of " + std::to_string(problem.head) +
           " columns whole";
  if (choice.block > limits.maxBlock)
    return "its waves are more than a workgroup takes";
  int64_t sums = rows * config.columns / choice.block;
  if (sums < 1 ||
      problem.count * sums > (limits.wide ? mostSums : mostSumsOfCpu))
    return "it has " + std::to_string(sums) +
           " sums a lane, which are from 1 to " +
           std::to_string((limits.wide ? mostSums : mostSumsOfCpu) /
                          problem.count);
  int64_t lds = ldsBytes(problem, config);
  if (lds > limits.ldsBytes)
    return "it needs " + std::to_string(lds) +
           " bytes of shared memory, the target has " +
           std::to_string(limits.ldsBytes);
  if (choice.space.split > 1 && !problem.splits)
    return "its 'split' needs K in the type, an A that is not computed, and no "
           "batch or heads";
  return std::nullopt;
}

FailureOr<Choice> greta::chooseSimt(const Space &space, const Problem &problem,
                                    const Limits &limits) {
  MatmulOp matmul = space.matmul;
  int64_t largest = limits.wide ? 64 : 32;
  auto extent = [&](int64_t size) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(size), 16, largest);
  };
  Choice choice;
  int64_t rows = extent(problem.m), columns = extent(problem.n);
  if (problem.head > 1) {
    columns = problem.head;
    while (rows > 4 && rows * columns > largest * largest)
      rows /= 2;
  }
  choice.space.rows.assign(space.groups.size(), 1);
  choice.space.rows.back() = rows;
  choice.space.columns = columns;
  choice.space.depth = std::clamp<int64_t>(llvm::PowerOf2Ceil(problem.k), 1,
                                           std::max<int64_t>(problem.unit, 16));
  choice.block =
      limits.waves
          ? limits.waves * limits.wave
          : std::clamp<int64_t>(llvm::bit_floor<uint64_t>(rows * columns) / 16,
                                limits.wave, limits.shareBlock);
  int64_t bytes = ldsBytes(problem, choice.space);
  if (bytes > limits.ldsBytes)
    return matmul.emitOpError("needs ")
           << bytes << " bytes of shared memory for its smallest block, the "
           << "target has " << limits.ldsBytes << "; take another target";
  // A lane does one a cycle, and the turn's barriers and loads come beside.
  int64_t m = choice.space.rows.back(), n = choice.space.columns;
  int64_t steps = llvm::divideCeil(problem.k, choice.space.depth);
  double perCycle =
      double(limits.row.simdsPerUnit) * limits.wave / limits.row.waveCycles;
  double step = problem.count * m * n * choice.space.depth / perCycle +
                limits.row.tiles.loop.turn;
  double acrossN = llvm::divideCeil(problem.n, n);
  double sums = double(problem.count) * rows * columns;
  auto cyclesOf = [&row = limits.row, m, acrossN, steps, step,
                   sums](int64_t given, int64_t split) {
    double tiles = double(llvm::divideCeil(given, m)) * acrossN;
    return std::ceil(tiles * split / row.computeUnits) *
               llvm::divideCeil(steps, split) * step +
           splitCycles(row, split, sums);
  };
  double best = HUGE_VAL;
  int64_t most = mostParts(m, n, problem, limits), chosen = 1;
  for (int64_t split = 1; split <= most; split *= 2) {
    double cycles = cyclesOf(problem.m, split);
    if (cycles < best) {
      best = cycles;
      chosen = split;
    }
  }
  choice.space.split = partsOf(steps, chosen);
  choice.cycles = [cyclesOf, chosen](int64_t given) {
    return cyclesOf(given, chosen);
  };
  return choice;
}
