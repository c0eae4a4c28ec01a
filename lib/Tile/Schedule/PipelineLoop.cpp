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
//         runs under this turn's computation
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
// Turns beyond the end load the last one's blocks again, so that the body has
// no branch; where there may be no turn, a branch stands around the whole.
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Layout/SharedMemory.h"
#include "greta/Tile/Facts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Where an operand lies between load and dots.
struct Placed {
  /// As it is stored: what a lane has of K are neighbours.
  RankedTensorType stored;
  Value local;
};

/// Of every operand, null: is not read.
using Parts = SmallVector<Value>;

class LoopPipeliner {
public:
  LoopPipeliner(scf::ForOp loop, const LoopBody &body, PipelineAttr attr)
      : loop(loop), body(body), attr(attr), b(loop.getLoc(), loop) {}
  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult placeOperands();
  SmallVector<Value> emitLoads(Value k);
  /// `sums` are those of the blocks before, and become this one's.
  SmallVector<Value> emitPrepared(Value k, ValueRange loaded,
                                  SmallVectorImpl<Value> &sums);
  void emitStores(ValueRange prepared, Value stage);
  /// Loads straight to shared memory.
  void emitDirect(Value k, Value stage);
  /// The stage `distance` after another.
  Value advanced(Value stage, int64_t distance);
  /// The part [at, at + extent) along K of the dots' operands.
  Parts emitReads(ArrayRef<DotOp> dots, Value stage, Value at, int64_t extent);
  SmallVector<Value> emitDots(ArrayRef<DotOp> dots, const Parts &parts,
                              ValueRange accumulators);
  /// Dots whose operands are all in locals, slice by slice.
  SmallVector<Value> emitSlices(ArrayRef<DotOp> dots, Value stage,
                                int64_t slice, ValueRange accumulators);
  /// The body's own turn; `fill` comes before the first product.
  SmallVector<Value> emitCompute(Value k, Value stage, ValueRange carried,
                                 llvm::function_ref<void()> fill);
  Value emitDot(DotOp dot, Value stage, IRMapping &mapping,
                llvm::function_ref<void()> fill);
  /// The turn so many after another, or the last.
  Value turnAfter(Value k, int64_t turns);
  Value clamped(Value k);
  SmallVector<Value> emitSingle();
  /// What passes from block to block with several stages.
  struct Flow {
    SmallVector<Value> carried, loaded;
    Parts parts;
    /// Of what was prepared: of each block ahead, and without those.
    SmallVector<Value> ahead, prepared;
  };
  Flow emitStep(Value k, Value stage, Flow flow);
  SmallVector<Value> emitStaged();
  void guard();
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  /// A number of the type that turns are counted in.
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, loop.getInductionVar().getType(),
                                        value);
  }
  /// From the first turn to the end, where that is known.
  std::optional<int64_t> length();

  scf::ForOp loop;
  const LoopBody &body;
  PipelineAttr attr;
  ImplicitLocOpBuilder b;
  SmallVector<Placed> placed; // of each operand
  Value last;                 // where the last turn begins
};

} // namespace

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

/// Chooses where the operands lie and allocates them.
LogicalResult LoopPipeliner::placeOperands() {
  auto kernel = loop->getParentOfType<FuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  for (const LoadedOperand &operand : body.operands) {
    Placed &place = placed.emplace_back();
    auto type = cast<RankedTensorType>(operand.source.getType());
    Layout from = toLayout(getLayoutOf(type));
    if (!body.isCooperative())
      from = from.registersAlong(operand.kDim);
    place.stored = type.cloneWithEncoding(toAttr(b.getContext(), from));
    Layout to = toLayout(getLayoutOf(operand.type));
    int64_t bytes = bytesInMemory(type.getElementType());
    PlacementAttr placement;
    if (body.isCooperative()) {
      // Rows that fragments are loaded from cannot be swizzled; 16 bytes
      // between them keep the banks apart.
      int64_t dim = from.contiguity(0) > from.contiguity(1) ? 0 : 1;
      placement = PlacementAttr::get(
          b.getContext(), dim, type.getDimSize(dim) + 16 / bytes, 1, 1, 1);
    } else {
      // The tile was chosen for blocks without padding.
      std::string error;
      int64_t elements = type.getNumElements();
      auto filling = [&](const SharedPlacement &placement) {
        return placement.rowDim == operand.kDim
                   ? fillingLayout(placement, attr.getDirect() / bytes,
                                   kernel.getNumLanes(), kernel.getNumWaves())
                   : std::nullopt;
      };
      FailureOr<SharedPlacement> chosen = chooseSharedPlacement(
          from, to, bytes, elements * bytes, error, /*banks=*/32,
          [&](const SharedPlacement &placement) {
            return !attr.getDirect() || filling(placement);
          });
      if (failed(chosen))
        return loop.emitOpError("has no place for an operand: ") << error;
      if (attr.getDirect()) {
        Layout layout = *filling(*chosen);
        place.stored = type.cloneWithEncoding(toAttr(b.getContext(), layout));
      }
      placement = PlacementAttr::get(b.getContext(), chosen->rowDim,
                                     chosen->rowStride, chosen->vector,
                                     chosen->rowsPerPhase, chosen->phases);
    }
    place.local = LocalAllocOp::create(
        b, LocalType::get(
               b.getContext(), attr.getStages(),
               RankedTensorType::get(type.getShape(), type.getElementType()),
               placement));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

std::optional<int64_t> LoopPipeliner::length() {
  auto lower = getConstantIntValue(loop.getLowerBound());
  auto upper = getConstantIntValue(loop.getUpperBound());
  if (!lower || !upper)
    return std::nullopt;
  return std::max<int64_t>(*upper - *lower, 0);
}

/// min(k, last): beyond the end the last block comes again and is not used.
Value LoopPipeliner::clamped(Value k) {
  return arith::MinSIOp::create(b, k, last);
}

Value LoopPipeliner::turnAfter(Value k, int64_t turns) {
  Value distance = loop.getStep();
  if (auto step = getConstantIntValue(distance))
    distance = turns == 1 ? distance : number(turns * *step);
  else if (turns != 1)
    distance = arith::MulIOp::create(b, distance, number(turns));
  return b.createOrFold<arith::AddIOp>(k, distance);
}

//===----------------------------------------------------------------------===//
// Its parts at another place
//===----------------------------------------------------------------------===//

SmallVector<Value> LoopPipeliner::emitLoads(Value k) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (Operation *op : body.addresses)
    b.clone(*op, mapping);
  SmallVector<Value> results;
  for (Operation *op : body.loads)
    results.push_back(b.clone(*op, mapping)->getResult(0));
  return results;
}

/// What the operands are computed as from what was loaded.
SmallVector<Value> LoopPipeliner::emitPrepared(Value k, ValueRange loaded,
                                               SmallVectorImpl<Value> &sums) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (auto [entry, sum] : llvm::zip(body.sums, sums))
    mapping.map(loop.getRegionIterArg(entry.first), sum);
  for (auto [load, value] : llvm::zip(body.loads, loaded))
    mapping.map(load->getResult(0), value);
  for (Operation *op : body.prepare)
    b.clone(*op, mapping);
  for (auto [entry, sum] : llvm::zip(body.sums, sums))
    sum = mapping.lookup(entry.second->getResult(0));
  SmallVector<Value> prepared;
  for (auto [operand, place] : llvm::zip(body.operands, placed)) {
    Value block = mapping.lookupOrDefault(operand.source);
    if (block.getType() != place.stored)
      block = ConvertLayoutOp::create(b, place.stored, block);
    prepared.push_back(block);
  }
  return prepared;
}

void LoopPipeliner::emitStores(ValueRange prepared, Value stage) {
  for (auto [place, value] : llvm::zip(placed, prepared))
    LocalStoreOp::create(b, value, place.local, stage);
}

void LoopPipeliner::emitDirect(Value k, Value stage) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (Operation *op : body.addresses)
    b.clone(*op, mapping);
  for (auto [operand, place] : llvm::zip(body.operands, placed)) {
    Operation *load = b.clone(*operand.source.getDefiningOp(), mapping);
    load->getResult(0).setType(place.stored);
    LocalStoreOp::create(b, load->getResult(0), place.local, stage,
                         /*direct=*/true);
  }
}

Value LoopPipeliner::advanced(Value stage, int64_t distance) {
  int64_t stages = attr.getStages();
  if (std::optional<int64_t> known = getConstantIntValue(stage))
    return i32((*known + distance) % stages);
  if (stages == 2)
    return arith::SubIOp::create(b, i32(1), stage);
  // Adds, or takes off, whatever the sum is.
  Value more = arith::AddIOp::create(b, stage, i32(distance));
  Value less = arith::AddIOp::create(b, stage, i32(distance - stages));
  Value fits =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, more, i32(stages));
  return arith::SelectOp::create(b, fits, more, less);
}

Parts LoopPipeliner::emitReads(ArrayRef<DotOp> dots, Value stage, Value at,
                               int64_t extent) {
  Parts parts(body.operands.size());
  for (DotOp dot : dots)
    for (unsigned side : {0u, 1u}) {
      if (!body.isLoaded(dot, side))
        continue;
      const LoadedOperand &operand = body.operandOf(dot, side);
      unsigned number = &operand - body.operands.begin();
      if (parts[number])
        continue;
      Layout layout = toLayout(getLayoutOf(operand.type));
      Basis rep(layout.rep());
      rep[operand.kDim] = extent / operand.tileDepth();
      SmallVector<int64_t> shape(operand.type.getShape());
      shape[operand.kDim] = extent;
      auto type = RankedTensorType::get(
          shape, operand.type.getElementType(),
          toAttr(b.getContext(),
                 Layout(layout.reg(), layout.lane(), layout.wave(), rep)));
      SmallVector<Value> offsets(2, i32(0));
      offsets[operand.kDim] = at;
      parts[number] =
          LocalLoadOp::create(b, type, placed[number].local, stage, offsets);
    }
  return parts;
}

SmallVector<Value> LoopPipeliner::emitDots(ArrayRef<DotOp> dots,
                                           const Parts &parts,
                                           ValueRange accumulators) {
  SmallVector<Value> sums;
  auto partOf = [&](DotOp dot, unsigned side) {
    return parts[&body.operandOf(dot, side) - body.operands.begin()];
  };
  for (auto [dot, acc] : llvm::zip(SmallVector<DotOp>(dots), accumulators))
    sums.push_back(DotOp::create(b, acc.getType(), partOf(dot, 0),
                                 partOf(dot, 1), acc, dot.getMatrixAttr()));
  return sums;
}

SmallVector<Value> LoopPipeliner::emitSlices(ArrayRef<DotOp> dots, Value stage,
                                             int64_t slice,
                                             ValueRange accumulators) {
  int64_t depth = body.operandOf(dots.front(), 0).depth();
  SmallVector<Value> sums(accumulators);
  if (body.isCooperative()) {
    auto slices = scf::ForOp::create(b, i32(0), i32(depth), i32(slice), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(slices.getBody());
    Parts parts = emitReads(dots, stage, slices.getInductionVar(), slice);
    scf::YieldOp::create(b, emitDots(dots, parts, slices.getRegionIterArgs()));
    return slices.getResults();
  }
  // Where a slice lies in a swizzled local must be a constant.
  for (int64_t at = 0; at < depth; at += slice)
    sums = emitDots(dots, emitReads(dots, stage, i32(at), slice), sums);
  return sums;
}

Value LoopPipeliner::emitDot(DotOp dot, Value stage, IRMapping &mapping,
                             llvm::function_ref<void()> fill) {
  Value acc = mapping.lookupOrDefault(dot.getAcc());
  if (body.isLoaded(dot, 0) && body.isLoaded(dot, 1)) {
    fill();
    const LoadedOperand &operand = body.operandOf(dot, 0);
    return emitSlices(dot, stage,
                      body.isCooperative() ? operand.tileDepth()
                                           : operand.depth(),
                      acc)
        .front();
  }
  // What is in registers has no slices.
  unsigned side = body.isLoaded(dot, 0) ? 0 : 1;
  const LoadedOperand &operand = body.operandOf(dot, side);
  Parts parts = emitReads(dot, stage, i32(0), operand.depth());
  fill();
  Value operands[2];
  operands[side] = parts[&operand - body.operands.begin()];
  operands[1 - side] = mapping.lookupOrDefault(dot->getOperand(1 - side));
  return DotOp::create(b, acc.getType(), operands[0], operands[1], acc,
                       dot.getMatrixAttr());
}

SmallVector<Value> LoopPipeliner::emitCompute(Value k, Value stage,
                                              ValueRange carried,
                                              llvm::function_ref<void()> fill) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (auto [place, value] : llvm::zip(body.carried, carried))
    mapping.map(loop.getRegionIterArg(place), value);
  bool isFilled = false;
  for (Operation *op : body.compute) {
    auto dot = dyn_cast<DotOp>(op);
    if (!dot || !llvm::is_contained(body.dots, dot)) {
      b.clone(*op, mapping);
      continue;
    }
    mapping.map(dot.getResult(), emitDot(dot, stage, mapping, [&] {
                  if (!std::exchange(isFilled, true))
                    fill();
                }));
  }
  SmallVector<Value> results;
  for (unsigned place : body.carried)
    results.push_back(mapping.lookupOrDefault(loop.getYieldedValues()[place]));
  return results;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

static SmallVector<Value> concat(ValueRange a, ValueRange b) {
  SmallVector<Value> all(a);
  llvm::append_range(all, b);
  return all;
}

SmallVector<Value> LoopPipeliner::emitSingle() {
  Value zero = i32(0);
  SmallVector<Value> inits;
  for (unsigned place : body.carried)
    inits.push_back(loop.getInitArgs()[place]);
  for (auto [place, contract] : body.sums)
    inits.push_back(loop.getInitArgs()[place]);
  unsigned count = body.carried.size(), numSums = body.sums.size();
  SmallVector<Value> first = emitLoads(loop.getLowerBound());
  auto outer = scf::ForOp::create(b, loop.getLowerBound(), loop.getUpperBound(),
                                  loop.getStep(), concat(inits, first));
  outer->setAttr(rolledName, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(outer.getBody());
  Value k = outer.getInductionVar();
  ValueRange carried = outer.getRegionIterArgs();
  SmallVector<Value> ofLoaded(carried.slice(count, numSums));
  SmallVector<Value> prepared =
      emitPrepared(k, carried.drop_front(count + numSums), ofLoaded);
  emitStores(prepared, zero);
  SmallVector<Value> next = emitLoads(clamped(turnAfter(k, 1)));
  carried = carried.take_front(count);
  SmallVector<Value> results =
      body.isGemm ? emitSlices(body.dots, zero, attr.getSlice(), carried)
                  : emitCompute(k, zero, carried, [] {});
  scf::YieldOp::create(b, concat(concat(results, ofLoaded), next));
  return SmallVector<Value>(outer.getResults().take_front(count + numSums));
}

LoopPipeliner::Flow LoopPipeliner::emitStep(Value k, Value stage, Flow flow) {
  int64_t slice = attr.getSlice(), stages = attr.getStages();
  bool direct = attr.getDirect();
  Value next = advanced(stage, 1);
  auto after = [&](int64_t turns) { return clamped(turnAfter(k, turns)); };
  Value ahead = direct ? Value() : after(stages - 1), further = after(stages);
  // Without direct loads the block in registers goes to the stage that the last
  // barrier has freed.
  auto fill = [&] {
    if (direct)
      return;
    unsigned numSums = body.sums.size();
    SmallVector<Value> sums(ArrayRef(flow.ahead).take_back(numSums));
    SmallVector<Value> prepared = emitPrepared(ahead, flow.loaded, sums);
    flow.prepared.assign(flow.ahead.begin(), flow.ahead.begin() + numSums);
    flow.ahead.erase(flow.ahead.begin(), flow.ahead.begin() + numSums);
    llvm::append_range(flow.ahead, sums);
    emitStores(prepared, advanced(stage, stages - 1));
    flow.loaded = emitLoads(further);
  };
  if (!body.isGemm) {
    flow.carried = emitCompute(k, stage, flow.carried, fill);
    return flow;
  }
  int64_t depth = body.operands.front().depth();
  for (int64_t at = 0; at + slice < depth; at += slice) {
    Parts following = emitReads(body.dots, stage, i32(at + slice), slice);
    flow.carried = emitDots(body.dots, flow.parts, flow.carried);
    if (at == 0)
      fill();
    auto schedule = ScheduleOp::create(b);
    if (at == 0 && attr.getHidden())
      schedule.setCompute(attr.getHidden());
    flow.parts = following;
  }
  if (slice == depth) {
    // Tile by tile along K, so that few operands are in registers at a time.
    int64_t tile = body.operands.front().tileDepth();
    for (int64_t at = 0; at < depth; at += tile) {
      flow.parts = emitReads(body.dots, stage, i32(at), tile);
      if (at == 0)
        fill();
      flow.carried = emitDots(body.dots, flow.parts, flow.carried);
      ScheduleOp::create(b);
    }
  }
  Parts following;
  if (slice < depth)
    following = emitReads(body.dots, next, i32(0), slice);
  if (direct)
    emitDirect(further, stage);
  if (slice == depth)
    return flow;
  flow.carried = emitDots(body.dots, flow.parts, flow.carried);
  ScheduleOp::create(b);
  flow.parts = following;
  return flow;
}

SmallVector<Value> LoopPipeliner::emitStaged() {
  // Slices are read before their turn.
  bool ahead = body.isGemm && attr.getSlice() < body.operands.front().depth();
  bool direct = attr.getDirect();
  int64_t stages = attr.getStages();
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
  for (int64_t block = 0; block < stages; ++block) {
    Value k = block ? clamped(turnAfter(first, block)) : first;
    if (direct) {
      emitDirect(k, i32(block));
    } else if (block + 1 < stages) {
      emitStores(emitPrepared(k, emitLoads(k), sums), i32(block));
      llvm::append_range(inits, sums);
    } else {
      llvm::append_range(inits, emitLoads(k));
    }
  }
  if (ahead)
    llvm::append_range(inits,
                       emitReads(body.dots, zero, zero, attr.getSlice()));
  // As many blocks a turn as there are stages where their number is known to be
  // a multiple: the stages are constants then.
  auto known = length(), step = getConstantIntValue(loop.getStep());
  bool whole =
      body.isGemm && known && *known && step && *known % (stages * *step) == 0;
  if (!whole)
    inits.push_back(zero);

  unsigned inFlight = direct ? 0 : body.loads.size();
  auto outer = scf::ForOp::create(
      b, first, loop.getUpperBound(),
      whole ? turnAfter(number(0), stages) : loop.getStep(), inits);
  outer->setAttr(rolledName, b.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(outer.getBody());
    Value k = outer.getInductionVar();
    ValueRange carried = outer.getRegionIterArgs();
    Flow flow;
    flow.carried = carried.take_front(count);
    flow.ahead = carried.slice(count + numSums, (stages - 1) * numSums);
    unsigned next = count + stages * numSums;
    flow.loaded = carried.slice(next, inFlight);
    if (ahead)
      flow.parts = carried.slice(next + inFlight, body.operands.size());
    Value stage = whole ? zero : carried.back();
    flow = emitStep(k, stage, flow);
    for (int64_t block = 1; whole && block < stages; ++block)
      flow = emitStep(turnAfter(k, block), i32(block), flow);
    SmallVector<Value> results = concat(concat(flow.carried, flow.prepared),
                                        concat(flow.ahead, flow.loaded));
    if (ahead)
      llvm::append_range(results, flow.parts);
    if (!whole)
      results.push_back(advanced(stage, 1));
    scf::YieldOp::create(b, results);
  }
  return SmallVector<Value>(outer.getResults().take_front(count + numSums));
}

/// Before a loop without turns nothing may be loaded.
void LoopPipeliner::guard() {
  Value some = arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
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
  if (!length().value_or(0) &&
      !Facts(loop->getParentOfType<FuncOp>())
           .isBelow(loop.getLowerBound(), loop.getUpperBound(), loop))
    guard();
  // lower + (upper - lower - 1) / step * step.
  auto lower = getConstantIntValue(loop.getLowerBound());
  Value end = loop.getUpperBound();
  if (!lower || *lower)
    end = arith::SubIOp::create(b, end, loop.getLowerBound());
  Value turns = arith::DivSIOp::create(
      b, arith::SubIOp::create(b, end, number(1)), loop.getStep());
  last = arith::MulIOp::create(b, turns, loop.getStep());
  if (!lower || *lower)
    last = arith::AddIOp::create(b, last, loop.getLowerBound());
  SmallVector<Value> made = attr.getStages() == 1 ? emitSingle() : emitStaged();
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

LogicalResult greta::pipelineLoop(scf::ForOp loop, const LoopBody &body,
                                  PipelineAttr attr) {
  return LoopPipeliner(loop, body, attr).run();
}
