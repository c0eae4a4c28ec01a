//===- ScheduleLoops.cpp - greta-tile-schedule ----------------------------===//
//
// In: a block program whose dots have their instructions, before layouts. Out:
// a loop whose body is a GEMM's (LoopBody.h) and that nobody has configured has
// a `greta_tile.pipeline`: the schedule that takes the fewest cycles by
// TileModel among those that fit the blocks of the loop, which are the tile,
// and have the stages that the loop asks for (`greta_tile.stages`), if any
// fits. Loops that no schedule of the model fits are left to
// greta-tile-pipeline, but for those that have no registers for one, and those
// of few rows, whose instruction takes operands from registers: their operands
// go from memory to the lanes that multiply them.
//
//   scf.for %k iter_args(%c) { %a = load; %b = load; %d = dot %a, %b, %c }
//     →  the same with greta_tile.pipeline = #greta_tile.pipeline<stages = 2,
//        slice = 16>
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "TileModel.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/Facts.h"
#include "greta/Tile/LoopBody.h"
#include "greta/Tile/MatrixInstructions.h"
#include "greta/Tile/TransposedLoads.h"
#include <cmath>

namespace greta {
#define GEN_PASS_DEF_GRETATILESCHEDULEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// How an operand lies in memory, and what is loaded for it.
namespace {
struct Source {
  bool isAlongK = false; // neighbours in memory are neighbours along K
  int64_t align = 1;     // bytes that one access may move as it is stored
  int64_t bits = 0;      // that an element is computed from
  bool isLoad = false;   // nothing computes it
};
} // namespace

/// Elements of a load that one access may move along a dimension.
static int64_t widthAlong(Operation *load, unsigned dim, const Facts &facts) {
  if (auto scattered = dyn_cast<LoadScatteredOp>(load))
    return facts.vectorWidth(scattered.getPointers(), scattered.getMask(), dim);
  auto strided = cast<LoadOp>(load);
  return strided.getStrides()[dim] == 1 ? facts.vectorWidth(strided, dim) : 1;
}

static Source sourceOf(const LoadedOperand &operand, const LoopBody &body,
                       const Facts &facts, const TargetRow &row) {
  Source source;
  auto bytesOf = [](Operation *load) {
    return bytesInMemory(getElementTypeOrSelf(load->getResult(0)));
  };
  if (Operation *load = operand.source.getDefiningOp();
      isa_and_nonnull<LoadOp, LoadScatteredOp>(load)) {
    int64_t bytes = bytesOf(load);
    int64_t width = widthAlong(load, operand.kDim, facts);
    bool isAlongK = width > 1;
    if (!isAlongK && transposedWidth(row, /*isShared=*/true, bytes))
      width = widthAlong(load, operand.ownDim(), facts);
    return {isAlongK, width * bytes, 8 * bytes, true};
  }
  // The loads behind a computed value.
  llvm::SmallDenseSet<Operation *> seen;
  SmallVector<Value> values{operand.source};
  while (!values.empty()) {
    Operation *op = values.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (!llvm::is_contained(body.loads, op)) {
      llvm::append_range(values, op->getOperands());
      continue;
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (type.getNumElements() == operand.type.getNumElements())
      source.bits += 8 * bytesOf(op);
    if (type.getRank() != operand.type.getRank())
      continue;
    int64_t width = widthAlong(op, operand.kDim, facts);
    source.isAlongK |= width > 1;
    source.align = std::max(source.align, width * bytesOf(op));
  }
  return source;
}

/// The row's instruction that a dot has; null: none.
static const MatrixInstruction *instructionOf(DotOp dot, const TargetRow &row) {
  for (const MatrixInstruction &mi : row.matrix)
    if (matrixAttr(dot.getContext(), mi, row) == dot.getMatrixAttr())
      return &mi;
  return nullptr;
}

/// The model's view of a loop: its blocks are the tile of a GEMM with so
/// many tiles that the device is full.
static Problem problemOf(scf::ForOp loop, const LoopBody &body,
                         const Tile &tile, const Facts &facts,
                         const TargetRow &row) {
  Source sources[2];
  for (unsigned side : {0u, 1u}) {
    bool isFirst = true;
    for (DotOp dot : body.dots) {
      Source next = sourceOf(body.operandOf(dot, side), body, facts, row);
      Source &all = sources[side];
      if (std::exchange(isFirst, false)) {
        all = next;
        continue;
      }
      all.isAlongK &= next.isAlongK;
      all.isLoad &= next.isLoad;
      all.align = std::min(all.align, next.align);
      all.bits = std::max(all.bits, next.bits);
    }
  }
  constexpr int64_t guess = 2048;
  auto lower = getConstantIntValue(loop.getLowerBound()),
       upper = getConstantIntValue(loop.getUpperBound()),
       step = getConstantIntValue(loop.getStep());
  int64_t iterations =
      lower && upper && step
          ? std::max<int64_t>(1, llvm::divideCeil(*upper - *lower, *step))
          : llvm::divideCeil(guess, tile.k);
  int64_t across = std::ceil(std::sqrt(8.0 * row.computeUnits));
  Type element = body.operandOf(body.dots.front(), 0).type.getElementType();
  Problem problem{across * tile.m,
                  across * tile.n,
                  iterations * tile.k,
                  bytesInMemory(element),
                  sources[0].isAlongK,
                  sources[1].isAlongK,
                  std::max<int64_t>(1, body.operands.size() - 1),
                  /*parts=*/false,
                  /*splits=*/false,
                  /*batch=*/1,
                  /*head=*/1,
                  /*within=*/0,
                  sources[0].align,
                  sources[1].align,
                  /*isNorm=*/!body.sums.empty()};
  for (unsigned side : {0u, 1u})
    problem.loaded[side] = sources[side].bits;
  problem.dots = body.dots.size();
  // The chains' sums, and what is carried beside them.
  DotOp dot = body.dots.front();
  auto acc = cast<RankedTensorType>(dot.getResult().getType());
  problem.sums = body.chains.size();
  for (unsigned place : body.carried) {
    Value carried = loop.getRegionIterArgs()[place];
    auto type = dyn_cast<RankedTensorType>(carried.getType());
    problem.sums += type && type.getNumElements() == acc.getNumElements() &&
                    llvm::none_of(body.chains, [&](const DotChain &chain) {
                      return chain.init == carried;
                    });
  }
  problem.stored = sources[0].isLoad && sources[1].isLoad;
  return problem;
}

/// Whether a dot's operands may go from memory to shared memory as they are.
static bool isLoadedDirectly(const LoopBody &body) {
  return body.sums.empty() &&
         llvm::all_of(body.operands, [](const LoadedOperand &operand) {
           auto load = operand.source.getDefiningOp<LoadOp>();
           return load && !load.getOther() && !load.getDivisors();
         });
}

/// Whether lanes may exchange elements through shared memory: in reductions,
/// where blocks change their order, and where blocks have other shapes than the
/// sums, as a value that meets both has the layout of one and moves to the
/// other.
static bool movesBlocks(Operation *op, ArrayRef<int64_t> sums) {
  auto isOther = [&](Type type) {
    auto block = dyn_cast<RankedTensorType>(type);
    if (!block)
      return false;
    if (block.getRank() != int64_t(sums.size()))
      return true;
    return llvm::any_of(llvm::zip(block.getShape(), sums), [](auto dims) {
      auto [extent, sum] = dims;
      return extent != 1 && extent != sum;
    });
  };
  return op
      ->walk([&](Operation *inner) {
        return isa<ReduceOp, ScanOp, ContractOp, ReshapeOp, TransOp, JoinOp,
                   SplitOp, CatOp, GatherOp, HistogramOp, LocalStoreOp,
                   LocalLoadOp, DotOp>(inner) ||
                       llvm::any_of(inner->getOperandTypes(), isOther) ||
                       llvm::any_of(inner->getResultTypes(), isOther)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a loop's sums alone take all registers of a lane, so that blocks on
/// their way to shared memory push them out, and rows of its operands are whole
/// lines of the cache, so that each wave may as well load its own. A driver
/// spills operands that lanes hold twice.
static bool fillsRegisters(const Problem &problem, const Tile &tile,
                           const TargetRow &row) {
  const MatrixInstruction &mi = *tile.instruction;
  if (row.loadsElements(mi) && copiesInLanes(mi) > 1)
    return false;
  constexpr int64_t line = 128;
  int64_t sums =
      problem.sums * tile.m * tile.n / (tile.waves * int64_t(row.waveSize));
  return sums >= row.vgprs.perWave && problem.stored && problem.rowsOfA &&
         problem.rowsOfB && tile.k * problem.bytes >= line;
}

/// Operands go from memory to the lanes that multiply them.
static PipelineAttr withoutStages(DotOp dot) {
  return PipelineAttr::get(dot.getContext(), /*stages=*/0,
                           /*slice=*/dot.getA().getType().getShape().back(),
                           /*direct=*/0);
}

/// Gives dots that have no instruction the transposed one, which takes operands
/// from registers, if they are alike, all that they multiply is loaded by
/// strides, and the target has one for so few rows. Drivers load whole matrices
/// of operands that do not lie along K, but for masked ones. Returns whether it
/// did.
static bool multipliesFewRows(const LoopBody &body,
                              llvm::function_ref<const Facts &()> facts,
                              const TargetRow &row) {
  DotOp first = body.dots.front();
  bool areAlike = llvm::all_of(body.dots, [&](DotOp dot) {
    return !dot.getMatrixAttr() &&
           dot.getOperandTypes() == first.getOperandTypes();
  });
  // With operands that are loaded through pointers, multiply-adds are faster.
  bool areLoaded =
      areAlike &&
      llvm::all_of(body.operands, [&](const LoadedOperand &operand) {
        auto load = operand.source.getDefiningOp<LoadOp>();
        return load && (widthAlong(load, operand.kDim, facts()) > 1 ||
                        facts().isWithin(load));
      });
  if (!areLoaded)
    return false;
  unsigned waves = first->getParentOfType<FuncOp>().getNumWaves();
  auto *instruction = instructionFor(first, waves, row, /*inRegisters=*/true);
  if (!instruction || !instruction->isSwapped)
    return false;
  for (DotOp dot : body.dots)
    dot.setMatrixAttr(matrixAttr(dot.getContext(), *instruction, row));
  return true;
}

/// The rows' coefficients say how far their fits are from the simulator.
static constexpr double modelError = 0.05;

namespace {
struct Way {
  int64_t stages;
  bool isDirect; // loads go straight to shared memory
};
} // namespace

/// Returns the tile with those of the stages and slices that take the fewest
/// cycles. Among equals it takes the one in slices, of which one is multiplied
/// while the next is read, 16 bytes of a lane at a time: half a block, or less
/// where that leaves too few registers to what else the loop has. A single
/// stage, which is filled under the dots of its last slice, has four slices, or
/// a whole block where these are too short. Slices that a driver loads whole
/// are as short as they can be. Loads go through registers. With `spared` the
/// registers that the model spares are taken where nothing else fits.
static std::optional<Tile> fastest(Tile tile, ArrayRef<Way> ways,
                                   const Problem &problem, const Limits &limits,
                                   bool spared) {
  const TargetRow &row = limits.row;
  const MatrixInstruction &mi = *tile.instruction;
  Limits roomy(row, /*useMatrix=*/true, /*tuning=*/nullptr,
               /*spareRegisters=*/row.vgprs.perWave / 4);
  TileModel model(problem, limits), modelOfRoomy(problem, roomy);
  const int64_t inLane = problem.bytes << mi.aLayout.reg.size();
  const bool isLoadedWhole = mi.name == "coopmat" && !row.loadsElements(mi);
  auto preference = [&](const Tile &tile) {
    if (isLoadedWhole)
      return std::tuple(false, false, false, tile.slice, tile.direct);
    bool isRoomy = !modelOfRoomy.whyNot(tile);
    bool isWhole = tile.slice == tile.k;
    bool isNarrow = inLane * tile.slice / mi.k < 16;
    if (tile.stages == 1)
      return std::tuple(isNarrow, 4 * tile.slice > tile.k, !isWhole,
                        -tile.slice, tile.direct);
    return std::tuple(isWhole, isNarrow, !isRoomy,
                      isRoomy ? -tile.slice : tile.slice, tile.direct);
  };
  SmallVector<std::pair<Tile, double>> fitting;
  for (bool asked : {false, true}) {
    if (!fitting.empty() || (asked && !spared))
      break;
    for (tile.slice = mi.k; tile.slice <= tile.k; tile.slice *= 2)
      for (auto [stages, isDirect] : ways) {
        tile.stages = stages;
        tile.direct = isDirect;
        if (!model.whyNot(tile, asked))
          fitting.push_back({tile, model.cycles(tile)});
      }
  }
  if (fitting.empty())
    return std::nullopt;
  double least = llvm::min_element(fitting, llvm::less_second())->second;
  llvm::erase_if(fitting, [&](auto &entry) {
    return entry.second * (1 - modelError) > least;
  });
  return llvm::min_element(fitting,
                           [&](const auto &x, const auto &y) {
                             return preference(x.first) < preference(y.first);
                           })
      ->first;
}

/// Whether a tile's stages leave so few waves on a SIMD that they do not hide
/// each other's waits, and fewer stages have room for twice as many, or more
/// stages for as many.
static bool isBetterForFew(const TileModel &model, const Tile &tile,
                           const Tile &other) {
  constexpr double few = 2;
  double waves = model.wavesPerSimd(tile);
  return waves <= few && model.wavesPerSimd(other) >=
                             (other.stages < tile.stages ? 2 : 1) * waves;
}

/// The schedule of a loop by the model, of so many stages, 0: of any number;
/// null: none fits.
static PipelineAttr schedule(scf::ForOp loop, const LoopBody &body,
                             const Facts &facts, const TargetRow &row,
                             int64_t stages) {
  DotOp first = body.dots.front();
  const MatrixInstruction *mi = instructionOf(first, row);
  auto shapesOf = [](DotOp dot) {
    return std::pair(dot.getA().getType(), dot.getB().getType());
  };
  if (!mi || llvm::any_of(body.dots, [&](DotOp dot) {
        return dot.getMatrixAttr() != first.getMatrixAttr() ||
               shapesOf(dot) != shapesOf(first);
      }))
    return {};
  auto kernel = loop->getParentOfType<FuncOp>();
  const ArrayRef<int64_t> sums =
      cast<RankedTensorType>(first.getResult().getType()).getShape();
  // Waves take matrices of a batch first: the model sees one of them, and the
  // waves that it is spread over.
  const int64_t batch = sums.size() > 2 ? sums.front() : 1;
  const int64_t waves = kernel.getNumWaves();
  if (waves % batch || !llvm::isPowerOf2_64(batch))
    return {};
  const ArrayRef<int64_t> shape = sums.take_back(2);
  Tile tile{mi, shape[0], shape[1], body.operands.front().depth(),
            waves / batch};
  Problem problem = problemOf(loop, body, tile, facts, row);
  // Work behind the dots is hidden where matrix units run beside the vector
  // unit.
  if (!body.after.empty() && !row.tiles.slotsPerIssue)
    return fillsRegisters(problem, tile, row) ? withoutStages(first)
                                              : PipelineAttr();
  // Blocks that are computed beside the dots may move through shared memory.
  int64_t room = row.ldsBytes;
  auto moves = [&](Operation *op) { return movesBlocks(op, sums); };
  if (llvm::any_of(body.before, moves) || llvm::any_of(body.after, moves))
    room = room * 15 / 16;
  int64_t bytes = 0;
  for (const LoadedOperand &operand : body.operands)
    bytes += sharedBytes(operand.type, body.isLoadedWhole() ? 16 : 0);
  Limits limits(row, /*useMatrix=*/true);
  TileModel model(problem, limits);
  bool direct = batch == 1 && isLoadedDirectly(body) && model.directBytes();
  // Registers that the model spares are taken where nothing else fits, but for
  // sums of an iteration beside those that are carried.
  bool isScaled = problem.sums > int64_t(body.chains.size());
  const int64_t usual = row.tiles.stagesOfLoop;
  SmallVector<Way> ways;
  if (stages)
    ways = {{stages, true}, {stages, false}};
  else
    ways = {{usual, true}, {usual, false}, {usual + 1, true}};
  auto isTooLarge = [&](Way way) {
    return way.stages * bytes > room ||
           (way.isDirect && (!direct || way.stages > row.tiles.stagesOfDirect));
  };
  llvm::erase_if(ways, isTooLarge);
  std::optional<Tile> best = fastest(tile, ways, problem, limits, !isScaled);
  if (!best)
    return {};
  // More waves do not help a unit that is busy. The model does not know of what
  // else an iteration does.
  auto isBusy = [&] {
    return body.before.empty() && body.after.empty() &&
           model.leavesNothing(*best, modelError);
  };
  Way other{usual == 1 ? 2 : 1, false};
  if (!stages && !best->direct && body.dots.size() == 1 && !isTooLarge(other) &&
      (usual == 1 || !isBusy()))
    if (auto found = fastest(tile, other, problem, limits, false))
      if (isBetterForFew(model, *best, *found))
        best = found;
  return pipelineOf(loop.getContext(), problem, *best, limits);
}

namespace {
struct SchedulePass : greta::impl::GretaTileSchedulePassBase<SchedulePass> {
  using GretaTileSchedulePassBase::GretaTileSchedulePassBase;
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    const TargetRow *row = rowOfTarget(kernel, target);
    if (!row)
      return signalPassFailure();
    SmallVector<std::pair<scf::ForOp, PipelineAttr>> chosen;
    std::optional<Facts> facts;
    auto known = [&]() -> const Facts & {
      return facts ? *facts : facts.emplace(kernel);
    };
    kernel.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(pipelineName) ||
          loop.getBody()->getOps<DotOp>().empty())
        return;
      LoopBody body(loop, /*rest=*/true);
      int64_t stages = askedStages(loop, *row);
      if (matrix && body.isGemm && !stages &&
          multipliesFewRows(body, known, *row)) {
        chosen.push_back({loop, withoutStages(body.dots.front())});
        return;
      }
      // An inner loop with dots writes shared memory inside this one.
      bool hasInner = loop.getBody()
                          ->walk([](scf::ForOp inner) {
                            return inner.getBody()->getOps<DotOp>().empty()
                                       ? WalkResult::advance()
                                       : WalkResult::interrupt();
                          })
                          .wasInterrupted();
      if (!body.isGemm || hasInner)
        return;
      PipelineAttr attr = schedule(loop, body, known(), *row, stages);
      if (!attr && stages)
        attr = schedule(loop, body, known(), *row, /*stages=*/0);
      if (attr)
        chosen.push_back({loop, attr});
    });
    for (auto [loop, attr] : chosen)
      loop->setAttr(pipelineName, attr);
  }
};
} // namespace
