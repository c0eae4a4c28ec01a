//===- PipelineLoop.cpp - a loop whose loads run ahead --------------------===//
//
// A body (LoopBody.h) falls into three parts:
//
//   load     the operands' blocks, and the scalars that their addresses need
//   prepare  elementwise work on what was loaded: casts, dequantisation;
//            contracts into carried sums of it
//   compute  dots, and whatever else the body does
//
// Prepared blocks are written to locals in shared memory, from where the dots
// read them. How far the parts run ahead of each other depends on the stages
// that the locals have:
//
//   one   a barrier on both sides of the store; the load of the next block
//         runs under this iteration's computation. A GEMM of one dot stores the
//         next block under the products of the last slice, once all of this one
//         is in registers, where the target's row says so
//   two   the next block is stored while this one is multiplied, so that one
//         barrier is enough; it stands before the products of the block's last
//         slice, and, where the body is a GEMM's, each slice's operands are
//         read under the products of the slice before
//   three the same, one block further ahead
//
// With two and more, blocks of a GEMM that nothing prepares may go straight to
// shared memory: each is loaded into the stage of the block that the barrier
// has ended, as many blocks ahead as there are stages. The barrier waits for
// the next block's loads and leaves the later ones in flight.
//
// Operands that are the same in every iteration are loaded and stored before
// the loop. Iterations beyond the end load the last one's blocks again, so that
// the body has no branch; where there may be no iteration, a branch stands
// around the whole.
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Layout/SharedMemory.h"
#include "greta/Tile/TransposedLoads.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

LogicalResult LoopPipeliner::check() {
  auto fail = [&](const Twine &why) {
    return loop.emitOpError("has greta_tile.pipeline but ") << why;
  };
  int64_t slice = attr.getSlice();
  if (body.operands.empty())
    return fail("loads nothing ahead: it has no dot that takes what it loads, "
                "or it writes memory");
  if (body.isGemm)
    for (const LoadedOperand &operand : body.operands)
      if (slice % operand.tileDepth() || operand.depth() % slice)
        return fail("its slices are not whole tiles of its operands");
  if (attr.getDirect() &&
      (!body.isGemm || !body.sums.empty() ||
       llvm::any_of(body.operands, [&](auto &operand) {
         auto load = operand.source.template getDefiningOp<LoadOp>();
         return !load || load.getOther() || load.getDivisors();
       })))
    return fail("loads directly what is not an operand as it is stored");
  return success();
}

/// Chooses the placement of an operand in shared memory, and its layout when it
/// is stored.
FailureOr<PlacementAttr>
LoopPipeliner::placementOf(const LoadedOperand &operand,
                           RankedTensorType &stored) {
  auto kernel = loop->getParentOfType<FuncOp>();
  auto type = cast<RankedTensorType>(operand.source.getType());
  Layout from = toLayout(getLayoutOf(type));
  int64_t bytes = bytesInMemory(type.getElementType());
  auto storeIn = [&](const Layout &layout) {
    stored = type.cloneWithEncoding(toAttr(b.getContext(), layout));
  };
  if (body.isLoadedWhole()) {
    // Rows that fragments are loaded from cannot be swizzled; 16 bytes
    // between them keep the banks apart.
    storeIn(from);
    unsigned dim = type.getRank() - 1;
    if (from.contiguity(dim - 1) > from.contiguity(dim))
      --dim;
    return PlacementAttr::get(b.getContext(), dim,
                              type.getDimSize(dim) + 16 / bytes, 1, 1, 1);
  }
  Layout to = toLayout(getLayoutOf(operand.type));
  // Operands that do not come in runs along K are stored as they come where
  // lanes can read them so; lanes store as widely then.
  unsigned rowDim = operand.kDim, across = operand.ownDim();
  auto transposed =
      beforeTransposedLoad(row, /*isShared=*/true, bytes, to, across);
  bool isTransposed =
      transposed && from.contiguity(rowDim) == 1 &&
      (attr.getDirect() || from.registersAlong(across).contiguity(across) >=
                               transposed->contiguity(across));
  if (isTransposed) {
    rowDim = across;
    to = *transposed;
  }
  from = from.registersAlong(rowDim);
  storeIn(from);
  auto filling = [&](const SharedPlacement &placement) {
    return placement.rowDim == rowDim
               ? fillingLayout(placement, attr.getDirect() / bytes,
                               kernel.getNumLanes(), kernel.getNumWaves())
               : std::nullopt;
  };
  // The tile was chosen for blocks without padding.
  std::string error;
  FailureOr<SharedPlacement> chosen = chooseSharedPlacement(
      from, to, bytes, type.getNumElements() * bytes, error, row.ldsBanks,
      /*together=*/isTransposed ? 4 : 1, [&](const SharedPlacement &placement) {
        return (!isTransposed ||
                (placement.rowDim == rowDim &&
                 placement.accessWidth(to) >= to.contiguity(rowDim))) &&
               (!attr.getDirect() || filling(placement));
      });
  if (failed(chosen))
    return loop.emitOpError("has no place for an operand: ") << error;
  if (attr.getDirect())
    storeIn(*filling(*chosen));
  return PlacementAttr::get(b.getContext(), chosen->rowDim, chosen->rowStride,
                            chosen->vector, chosen->rowsPerPhase,
                            chosen->phases);
}

/// Chooses the placements of all operands and allocates them.
LogicalResult LoopPipeliner::placeOperands() {
  auto kernel = loop->getParentOfType<FuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  for (const LoadedOperand &operand : body.operands) {
    Placed &place = placed.emplace_back();
    auto placement = placementOf(operand, place.stored);
    if (failed(placement))
      return failure();
    auto type = cast<RankedTensorType>(operand.source.getType());
    place.local = LocalAllocOp::create(
        b, LocalType::get(
               b.getContext(), operand.isFixed ? 1 : attr.getStages(),
               RankedTensorType::get(type.getShape(), type.getElementType()),
               *placement));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

std::optional<int64_t> LoopPipeliner::length() {
  auto lower = getConstantIntValue(loop.getLowerBound());
  auto upper = getConstantIntValue(loop.getUpperBound());
  if (!lower || !upper)
    return std::nullopt;
  return std::max<int64_t>(*upper - *lower, 0);
}

/// Chooses how counters ahead of an iteration are clamped. Nothing may be added
/// to counters near the largest number of their type.
void LoopPipeliner::chooseClamp(const Facts &facts) {
  auto lower = facts.rangeOf(loop.getLowerBound()),
       upper = facts.rangeOf(loop.getUpperBound()),
       step = facts.rangeOf(loop.getStep());
  if (!lower || !upper || !step)
    return;
  int64_t most =
      llvm::maxIntN(loop.getInductionVar().getType().getIntOrFloatBitWidth());
  int64_t ahead, end;
  if (llvm::MulOverflow<int64_t>(step->second, tilesAhead(), ahead) ||
      ahead > most)
    return;
  if (!llvm::AddOverflow<int64_t>(upper->second, ahead, end) && end <= most)
    clamp = Clamp::Signed;
  else if (lower->first >= 0)
    clamp = Clamp::Unsigned;
}

Value LoopPipeliner::clampedAfter(Value k, int64_t iterations) {
  if (!iterations)
    return k;
  if (clamp == Clamp::Signed)
    return least(iterationAfter(k, iterations), last);
  if (clamp == Clamp::Unsigned)
    return minU(iterationAfter(k, iterations), last);
  for (; iterations; --iterations) {
    Value left = sub(last, k);
    k = add(k, minU(left, loop.getStep()));
  }
  return k;
}

Value LoopPipeliner::iterationAfter(Value k, int64_t iterations) {
  Value distance = loop.getStep();
  if (auto step = getConstantIntValue(distance))
    distance = iterations == 1 ? distance : number(iterations * *step);
  else if (iterations != 1)
    distance = mul(distance, number(iterations));
  return b.createOrFold<arith::AddIOp>(k, distance);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

LoopPipeliner::Flow LoopPipeliner::emitStep(Value k, Value stage, Flow flow) {
  int64_t slice = attr.getSlice(), stages = attr.getStages();
  bool direct = attr.getDirect(), isFilled = direct;
  Value next = advanced(stage, 1);
  Value ahead = direct ? Value() : clampedAfter(k, tilesAhead() - 1);
  // A single stage computes this behind its stores: drivers were measured so.
  Value further = tilesAhead() > 1 ? clampedAfter(k, tilesAhead()) : Value();
  // Without direct loads the block in registers goes to the stage that the last
  // barrier has freed.
  auto fill = [&] {
    if (std::exchange(isFilled, true))
      return;
    SmallVector<Value> sums(ArrayRef(flow.sums).take_back(body.sums.size()));
    SmallVector<Value> prepared = emitPrepared(ahead, flow.loaded, sums);
    flow.sums.erase(flow.sums.begin(), flow.sums.begin() + sums.size());
    llvm::append_range(flow.sums, sums);
    emitStores(prepared, advanced(stage, stages - 1));
    flow.loaded = emitLoads(further ? further : clampedAfter(k, tilesAhead()));
  };
  // Before anything reads the only stage.
  if (tilesAhead() == 1)
    fill();
  if (!body.isGemm) {
    flow.carried = emitCompute(k, stage, flow.carried, fill);
    return flow;
  }
  int64_t depth = body.operands.front().depth();
  IRMapping iteration = beginIteration(k, flow.carried);
  SmallVector<Value> sums = chainInits(iteration);
  if (!readsAhead()) {
    // With several stages tile by tile along K, so that few operands are in
    // registers at a time.
    int64_t tile = body.operands.front().tileDepth();
    sums = emitSlices(body.dots, stage, stages == 1 ? slice : tile, sums, fill);
    if (direct)
      emitDirect(further, stage);
  }
  for (int64_t at = 0; readsAhead() && at < depth; at += slice) {
    bool isLast = at + slice == depth;
    Parts following = emitReads(body.dots, isLast ? next : stage,
                                i32(isLast ? 0 : at + slice), slice);
    if (isLast && direct)
      emitDirect(further, stage);
    sums = emitDots(body.dots, flow.parts, sums);
    fill();
    ScheduleOp::create(b);
    flow.parts = following;
  }
  flow.carried = endIteration(iteration, sums);
  return flow;
}

SmallVector<Value> LoopPipeliner::emitLoop(const Facts &facts) {
  int64_t stages = attr.getStages();
  bool direct = attr.getDirect();
  Value zero = i32(0);
  // Beyond the end the last block is prepared again: the sums of what is loaded
  // are kept of as many blocks as are prepared ahead.
  unsigned count = body.carried.size(), numSums = body.sums.size();
  SmallVector<Value> inits, sums;
  for (unsigned place : body.carried)
    inits.push_back(loop.getInitArgs()[place]);
  for (auto [place, contract] : body.sums)
    sums.push_back(loop.getInitArgs()[place]);
  llvm::append_range(inits, sums);
  Value first = loop.getLowerBound();
  for (int64_t block = 0; block < tilesAhead(); ++block) {
    Value k = clampedAfter(first, block);
    if (direct) {
      emitDirect(k, i32(block));
    } else if (block + 1 < tilesAhead()) {
      emitStores(emitPrepared(k, emitLoads(k), sums), i32(block));
      llvm::append_range(inits, sums);
    } else {
      llvm::append_range(inits, emitLoads(k));
    }
  }
  if (readsAhead())
    llvm::append_range(inits,
                       emitReads(body.dots, zero, zero, attr.getSlice()));
  auto finished = [&](ValueRange results) {
    return SmallVector<Value>(results.take_front(count + numSums));
  };
  auto known = length(), step = getConstantIntValue(loop.getStep());
  bool isWhole = stages == 1 || (body.isGemm && known && *known && step &&
                                 *known % (stages * *step) == 0);
  Value upper = loop.getUpperBound();
  // An iteration has as many blocks as there are stages, where it can, so that
  // the stages are constants.
  if (isWhole && stages > 1)
    return finished(
        emitRounds(first, upper, number(stages * *step), stages, inits));
  if (isWhole || !emitsRounds(facts))
    return finished(emitRounds(first, upper, loop.getStep(), 1, inits));
  // The last block of a round is no further than `last`. The blocks that are
  // left follow one by one. Nothing is added to `last`, which may be near the
  // largest number of its type.
  int64_t within = (stages - 1) * *step;
  Value end = add(sub(last, number(within)), number(1));
  ValueRange whole =
      emitRounds(first, end, number(stages * *step), stages, inits);
  Value blocks = add(div(last, loop.getStep()), number(1));
  Value left = rem(blocks, number(stages));
  rest = sub(last, mul(sub(left, number(1)), loop.getStep()));
  return finished(emitRounds(number(0), left, number(1), 1, whole));
}

/// Whether lanes load whole vectors of 16 bytes.
static bool isWide(Operation *load, const Facts &facts) {
  auto block = dyn_cast<RankedTensorType>(load->getResult(0).getType());
  if (!block)
    return false;
  int64_t wanted = 16 / bytesInMemory(block.getElementType());
  auto widthAlong = [&](unsigned dim) {
    if (auto strided = dyn_cast<LoadOp>(load))
      return facts.vectorWidth(strided, dim);
    auto scattered = cast<LoadScatteredOp>(load);
    return facts.vectorWidth(scattered.getPointers(), scattered.getMask(), dim);
  };
  return llvm::any_of(llvm::seq<unsigned>(block.getRank()),
                      [&](unsigned dim) { return widthAlong(dim) >= wanted; });
}

bool LoopPipeliner::emitsRounds(const Facts &facts) {
  auto step = getConstantIntValue(loop.getStep());
  if (body.isLoadedWhole() || row.tiles.slotsPerIssue || !body.isGemm ||
      clamp == Clamp::Any || !step ||
      getConstantIntValue(loop.getLowerBound()) != 0 ||
      length().value_or(INT64_MAX) <= attr.getStages() * *step)
    return false;
  // Narrow loads have so many addresses and masks that two blocks of them
  // spill.
  return llvm::all_of(body.loads,
                      [&](Operation *load) { return isWide(load, facts); });
}

ValueRange LoopPipeliner::emitRounds(Value first, Value end, Value step,
                                     int64_t blocks, ValueRange inits) {
  int64_t stages = attr.getStages();
  SmallVector<Value> given(inits);
  bool isOneByOne = blocks < stages;
  Value zero = i32(0);
  if (isOneByOne)
    given.push_back(zero);
  auto outer = scf::ForOp::create(b, first, end, step, given);
  outer->setAttr(rolledName, b.getUnitAttr());
  // A loop that carries nothing comes with its terminator.
  if (given.empty())
    outer.getBody()->getTerminator()->erase();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(outer.getBody());
  Value k = outer.getInductionVar();
  if (rest)
    k = add(rest, mul(k, loop.getStep()));
  ValueRange carried = outer.getRegionIterArgs();
  Flow flow;
  auto take = [&](unsigned number) {
    SmallVector<Value> taken(carried.take_front(number));
    carried = carried.drop_front(number);
    return taken;
  };
  flow.carried = take(body.carried.size());
  flow.sums = take(stages * body.sums.size());
  flow.loaded = take(attr.getDirect() ? 0 : body.loads.size());
  flow.parts = take(readsAhead() ? body.operands.size() : 0);
  Value stage = isOneByOne ? carried.back() : zero;
  flow = emitStep(k, stage, flow);
  for (int64_t block = 1; block < blocks; ++block)
    flow = emitStep(iterationAfter(k, block), i32(block), flow);
  SmallVector<Value> results;
  for (ValueRange values : {flow.carried, flow.sums, flow.loaded, flow.parts})
    llvm::append_range(results, values);
  if (isOneByOne)
    results.push_back(advanced(stage, 1));
  scf::YieldOp::create(b, results);
  return outer.getResults();
}

/// Puts everything into a branch that is taken if the loop has iterations,
/// since nothing may be loaded before a loop without any.
void LoopPipeliner::guard() {
  Value some = below(loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loop.getResultTypes(), some,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  loop->replaceAllUsesWith(branch.getResults());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loop.getInitArgs());
  b.setInsertionPointToEnd(branch.thenBlock());
  auto yield = scf::YieldOp::create(b, loop.getResults());
  loop->moveBefore(yield);
  b.setInsertionPoint(loop);
}

LogicalResult LoopPipeliner::run() {
  if (failed(check()) || failed(placeOperands()))
    return failure();
  Facts facts(loop->getParentOfType<FuncOp>());
  chooseSelects(facts);
  if (!length().value_or(0) &&
      !facts.isBelow(loop.getLowerBound(), loop.getUpperBound(), loop))
    guard();
  // lower + (upper - lower - 1) / step * step.
  auto lower = getConstantIntValue(loop.getLowerBound());
  Value end = loop.getUpperBound();
  if (!lower || *lower)
    end = sub(end, loop.getLowerBound());
  // From a negative number the distance may be none of the type.
  chooseClamp(facts);
  Value distance = sub(end, number(1));
  Value iterations =
      clamp == Clamp::Any
          ? div(distance, loop.getStep())
          : arith::DivSIOp::create(b, distance, loop.getStep()).getResult();
  last = mul(iterations, loop.getStep());
  if (!lower || *lower)
    last = add(last, loop.getLowerBound());
  emitFixed();
  SmallVector<Value> made = emitLoop(facts);
  SmallVector<Value> results(loop.getNumResults());
  for (auto [place, value] : llvm::zip(body.carried, made))
    results[place] = value;
  for (auto [entry, value] :
       llvm::zip(body.sums, ArrayRef(made).drop_front(body.carried.size())))
    results[entry.first] = value;
  loop->replaceAllUsesWith(results);
  loop.erase();
  return success();
}
