//===- Pipeline.cpp - greta-tile-pipeline ---------------------------------===//
//
// Software pipelining of loops over K, on block tensors with layouts. What the
// loop's body does with one block falls into three parts:
//
//   load     greta_tile.load and the scalars that their addresses need
//   prepare  elementwise work on what was loaded: casts, dequantisation;
//            contracts into carried sums of it
//   multiply dots into carried accumulators
//
// Prepared blocks are written to locals in shared memory, from where the dots
// read them. How far the parts run ahead of each other depends on the stages
// that the locals have:
//
//   none  what is loaded and prepared is in the lanes that multiply it, and the
//         loop stays as it is
//   one   a barrier on both sides of the store; the load of the next block
//         runs under this one's products
//   two   the next block is stored while this one is multiplied, so that one
//         barrier is enough; it stands before the products of the block's last
//         slice, and each slice's operands are read under the products of the
//         slice before
//   three the same, one block further ahead
//
// With two and more, blocks that nothing prepares may go straight to shared
// memory: each is loaded into the stage of the block that the barrier has
// ended, as many blocks ahead as there are stages. The barrier waits for the
// next block's loads and leaves the later ones in flight.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Layout/SharedMemory.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include <algorithm>

namespace greta {
#define GEN_PASS_DEF_GRETATILEPIPELINEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// One operand of the dots: what the body prepares, the layout in which the
/// dots take it, and where it lies in between.
struct Operand {
  Value source;
  RankedTensorType type; // with the dots' layout
  /// As it is stored: what a lane has of K are neighbours.
  RankedTensorType stored;
  unsigned kDim;
  Value local;
};

class LoopPipeliner {
public:
  LoopPipeliner(scf::ForOp loop, PipelineAttr attr)
      : loop(loop), attr(attr), b(loop.getLoc(), loop) {}
  LogicalResult run();

private:
  LogicalResult analyze();
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
  /// The part [at, at + extent) along K of an operand, or of all.
  Value emitRead(const Operand &operand, Value stage, Value at, int64_t extent);
  SmallVector<Value> emitReads(Value stage, Value at, int64_t extent);
  SmallVector<Value> emitDots(ValueRange operands, ValueRange accumulators);
  Value clamped(Value k);
  bool isCooperative() {
    MatrixAttr matrix = dots.front().getMatrixAttr();
    return matrix && matrix.isCooperative();
  }
  SmallVector<Value> emitSingle();
  /// What passes from block to block with several stages.
  struct Flow {
    SmallVector<Value> sums, loaded, parts;
    /// Of what was prepared: of each block ahead, and without those.
    SmallVector<Value> ahead, prepared;
  };
  Flow emitStep(Value k, Value stage, Flow flow);
  SmallVector<Value> emitStaged();
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }

  scf::ForOp loop;
  PipelineAttr attr;
  ImplicitLocOpBuilder b;
  SmallVector<DotOp> dots;           // dot i continues accumulator i
  SmallVector<ContractOp> contracts; // continue the ones behind
  SmallVector<std::array<unsigned, 2>> dotOperands;
  SmallVector<Operand> operands;
  SmallVector<LoadOp> loads;
  SmallVector<Operation *> prepare; // in order, scalars included
  int64_t depth = 0;
  Value last; // where the last block begins
};

} // namespace

//===----------------------------------------------------------------------===//
// What the body does
//===----------------------------------------------------------------------===//

static bool isBlock(Value value) {
  return isa<RankedTensorType>(value.getType());
}

LogicalResult LoopPipeliner::analyze() {
  auto fail = [&](Operation *op, const Twine &why) {
    return op->emitOpError("stands in a loop with greta_tile.pipeline but ")
           << why;
  };
  Block *body = loop.getBody();
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  llvm::SmallPtrSet<Operation *, 8> converts;
  llvm::MapVector<std::pair<Value, Attribute>, unsigned> known;
  for (auto [arg, yielded] :
       llvm::zip(loop.getRegionIterArgs(), yield.getOperands())) {
    auto contract = yielded.getDefiningOp<ContractOp>();
    if (contract && contract.getAcc() == arg && arg.hasOneUse() &&
        contract->hasOneUse()) {
      contracts.push_back(contract);
      continue;
    }
    auto dot = yielded.getDefiningOp<DotOp>();
    if (!dot || dot.getAcc() != arg || !arg.hasOneUse() || !dot->hasOneUse() ||
        !contracts.empty())
      return fail(loop, "carries something that is no accumulator of one dot, "
                        "nor, behind those, a sum of what is loaded");
    dots.push_back(dot);
    std::array<unsigned, 2> indices;
    for (unsigned side : {0u, 1u}) {
      Value value = dot->getOperand(side);
      auto type = cast<RankedTensorType>(value.getType());
      if (auto convert = value.getDefiningOp<ConvertLayoutOp>();
          convert && convert->getBlock() == body) {
        converts.insert(convert);
        value = convert.getValue();
      }
      auto [entry, isNew] = known.insert(
          {{value, type.getEncoding()}, unsigned(operands.size())});
      if (isNew)
        operands.push_back(
            {value, type, RankedTensorType(), 1 - side, Value()});
      indices[side] = entry->second;
      int64_t extent = type.getDimSize(1 - side);
      if (depth && extent != depth)
        return fail(dot, "its blocks differ along K");
      depth = extent;
    }
    dotOperands.push_back(indices);
  }
  for (Operation &op : body->without_terminator()) {
    if (auto load = dyn_cast<LoadOp>(op))
      loads.push_back(load);
    else if (isa<DotOp>(op) ? !llvm::is_contained(dots, cast<DotOp>(op))
                            : !(isMemoryEffectFree(&op) || isa<AssumeOp>(op)) ||
                                  op.getNumRegions())
      return fail(&op, "does more than load, compute and multiply");
    else if (!isa<DotOp>(op) && !converts.contains(&op))
      prepare.push_back(&op);
  }
  for (const Operand &operand : operands)
    if (attr.getSlice() %
            toLayout(getLayoutOf(operand.type)).tile()[operand.kDim] ||
        depth % attr.getSlice())
      return fail(loop, "its slices are not whole tiles of its operands");
  for (const Operand &operand : operands) {
    auto load = operand.source.getDefiningOp<LoadOp>();
    bool isLoaded = load && load->getBlock() == body;
    if (attr.getDirect() && (!isLoaded || !contracts.empty() ||
                             load.getOther() || load.getDivisors()))
      return fail(loop,
                  "loads directly what is not an operand as it is stored");
  }
  auto step = getConstantIntValue(loop.getStep());
  auto start = getConstantIntValue(loop.getLowerBound());
  if (dots.empty() || !step || *step != depth || !start || *start != 0)
    return fail(loop, "does not go from 0 in steps of its blocks");
  return success();
}

/// Chooses where the operands lie and allocates them.
LogicalResult LoopPipeliner::placeOperands() {
  auto kernel = loop->getParentOfType<FuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop->getBlock());
  for (Operand &operand : operands) {
    auto type = cast<RankedTensorType>(operand.source.getType());
    Layout from = toLayout(getLayoutOf(type));
    if (!isCooperative())
      from = from.registersAlong(operand.kDim);
    operand.stored = type.cloneWithEncoding(toAttr(b.getContext(), from));
    Layout to = toLayout(getLayoutOf(operand.type));
    int64_t bytes = bytesInMemory(type.getElementType());
    PlacementAttr placement;
    if (isCooperative()) {
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
        operand.stored = type.cloneWithEncoding(toAttr(b.getContext(), layout));
      }
      placement = PlacementAttr::get(b.getContext(), chosen->rowDim,
                                     chosen->rowStride, chosen->vector,
                                     chosen->rowsPerPhase, chosen->phases);
    }
    operand.local = LocalAllocOp::create(
        b, LocalType::get(
               b.getContext(), attr.getStages(),
               RankedTensorType::get(type.getShape(), type.getElementType()),
               placement));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Its parts at another place
//===----------------------------------------------------------------------===//

/// min(k, last): beyond the end the last block comes again and is not used.
Value LoopPipeliner::clamped(Value k) {
  return arith::MinSIOp::create(b, k, last);
}

SmallVector<Value> LoopPipeliner::emitLoads(Value k) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (Operation *op : prepare)
    if (llvm::none_of(op->getResults(), isBlock) &&
        llvm::none_of(op->getOperands(), isBlock))
      b.clone(*op, mapping);
  SmallVector<Value> results;
  for (LoadOp load : loads)
    results.push_back(b.clone(*load, mapping)->getResult(0));
  return results;
}

/// What the operands are computed as from what was loaded.
SmallVector<Value> LoopPipeliner::emitPrepared(Value k, ValueRange loaded,
                                               SmallVectorImpl<Value> &sums) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (auto [contract, sum] : llvm::zip(contracts, sums))
    mapping.map(contract.getAcc(), sum);
  for (auto [load, value] : llvm::zip(loads, loaded))
    mapping.map(load.getResult(), value);
  for (Operation *op : prepare)
    b.clone(*op, mapping);
  for (auto [contract, sum] : llvm::zip(contracts, sums))
    sum = mapping.lookup(contract.getResult());
  SmallVector<Value> prepared;
  for (Operand &operand : operands) {
    Value block = mapping.lookupOrDefault(operand.source);
    if (block.getType() != operand.stored)
      block = ConvertLayoutOp::create(b, operand.stored, block);
    prepared.push_back(block);
  }
  return prepared;
}

void LoopPipeliner::emitStores(ValueRange prepared, Value stage) {
  for (auto [operand, value] : llvm::zip(operands, prepared))
    LocalStoreOp::create(b, value, operand.local, stage);
}

void LoopPipeliner::emitDirect(Value k, Value stage) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (Operation *op : prepare)
    b.clone(*op, mapping);
  for (const Operand &operand : operands) {
    Operation *load = b.clone(*operand.source.getDefiningOp(), mapping);
    load->getResult(0).setType(operand.stored);
    LocalStoreOp::create(b, load->getResult(0), operand.local, stage,
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

Value LoopPipeliner::emitRead(const Operand &operand, Value stage, Value at,
                              int64_t extent) {
  Layout layout = toLayout(getLayoutOf(operand.type));
  Basis rep(layout.rep());
  rep[operand.kDim] = extent / layout.tile()[operand.kDim];
  SmallVector<int64_t> shape(operand.type.getShape());
  shape[operand.kDim] = extent;
  auto type = RankedTensorType::get(
      shape, operand.type.getElementType(),
      toAttr(b.getContext(),
             Layout(layout.reg(), layout.lane(), layout.wave(), rep)));
  SmallVector<Value> offsets(2, i32(0));
  offsets[operand.kDim] = at;
  return LocalLoadOp::create(b, type, operand.local, stage, offsets);
}

SmallVector<Value> LoopPipeliner::emitReads(Value stage, Value at,
                                            int64_t extent) {
  SmallVector<Value> parts;
  for (const Operand &operand : operands)
    parts.push_back(emitRead(operand, stage, at, extent));
  return parts;
}

SmallVector<Value> LoopPipeliner::emitDots(ValueRange parts,
                                           ValueRange accumulators) {
  SmallVector<Value> sums;
  for (auto [dot, indices, acc] : llvm::zip(dots, dotOperands, accumulators))
    sums.push_back(DotOp::create(b, acc.getType(), parts[indices[0]],
                                 parts[indices[1]], acc, dot.getMatrixAttr()));
  return sums;
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
  SmallVector<Value> first = emitLoads(zero);
  unsigned count = dots.size(), numSums = contracts.size();
  auto outer =
      scf::ForOp::create(b, loop.getLowerBound(), loop.getUpperBound(),
                         loop.getStep(), concat(loop.getInitArgs(), first));
  outer->setAttr(rolledName, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(outer.getBody());
  Value k = outer.getInductionVar();
  ValueRange carried = outer.getRegionIterArgs();
  SmallVector<Value> ofLoaded(carried.slice(count, numSums));
  SmallVector<Value> prepared =
      emitPrepared(k, carried.drop_front(count + numSums), ofLoaded);
  emitStores(prepared, zero);
  SmallVector<Value> next =
      emitLoads(clamped(arith::AddIOp::create(b, k, loop.getStep())));
  SmallVector<Value> sums(carried.take_front(count));
  if (isCooperative()) {
    auto slices =
        scf::ForOp::create(b, zero, i32(depth), i32(attr.getSlice()), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(slices.getBody());
    SmallVector<Value> parts =
        emitReads(zero, slices.getInductionVar(), attr.getSlice());
    scf::YieldOp::create(b, emitDots(parts, slices.getRegionIterArgs()));
    sums = slices.getResults();
  } else {
    // Where a slice lies in a swizzled local must be a constant.
    for (int64_t at = 0; at < depth; at += attr.getSlice())
      sums = emitDots(emitReads(zero, i32(at), attr.getSlice()), sums);
  }
  scf::YieldOp::create(b, concat(concat(sums, ofLoaded), next));
  return SmallVector<Value>(outer.getResults().take_front(count + numSums));
}

LoopPipeliner::Flow LoopPipeliner::emitStep(Value k, Value stage, Flow flow) {
  int64_t slice = attr.getSlice(), stages = attr.getStages();
  bool direct = attr.getDirect();
  Value next = advanced(stage, 1);
  auto after = [&](int64_t blocks) {
    return clamped(arith::AddIOp::create(b, k, i32(blocks * depth)));
  };
  Value ahead = direct ? Value() : after(stages - 1), further = after(stages);
  // Without direct loads the block in registers goes to the stage that the last
  // barrier has freed.
  auto fill = [&] {
    if (direct)
      return;
    unsigned numSums = contracts.size();
    SmallVector<Value> sums(ArrayRef(flow.ahead).take_back(numSums));
    SmallVector<Value> prepared = emitPrepared(ahead, flow.loaded, sums);
    flow.prepared.assign(flow.ahead.begin(), flow.ahead.begin() + numSums);
    flow.ahead.erase(flow.ahead.begin(), flow.ahead.begin() + numSums);
    llvm::append_range(flow.ahead, sums);
    emitStores(prepared, advanced(stage, stages - 1));
    flow.loaded = emitLoads(further);
  };
  for (int64_t at = 0; at + slice < depth; at += slice) {
    SmallVector<Value> following = emitReads(stage, i32(at + slice), slice);
    flow.sums = emitDots(flow.parts, flow.sums);
    if (at == 0)
      fill();
    auto schedule = ScheduleOp::create(b);
    if (at == 0 && attr.getHidden())
      schedule.setCompute(attr.getHidden());
    flow.parts = following;
  }
  if (slice == depth) {
    // Tile by tile along K, so that few operands are in registers at a time.
    int64_t tile = toLayout(getLayoutOf(operands.front().type))
                       .tile()[operands.front().kDim];
    for (int64_t at = 0; at < depth; at += tile) {
      flow.parts = emitReads(stage, i32(at), tile);
      if (at == 0)
        fill();
      flow.sums = emitDots(flow.parts, flow.sums);
      ScheduleOp::create(b);
    }
  }
  SmallVector<Value> following;
  if (slice < depth)
    following = emitReads(next, i32(0), slice);
  if (direct)
    emitDirect(further, stage);
  if (slice == depth)
    return flow;
  flow.sums = emitDots(flow.parts, flow.sums);
  ScheduleOp::create(b);
  flow.parts = following;
  return flow;
}

SmallVector<Value> LoopPipeliner::emitStaged() {
  bool ahead = attr.getSlice() < depth; // slices are read before their turn
  bool direct = attr.getDirect();
  int64_t stages = attr.getStages();
  Value zero = i32(0);
  // Beyond the end the last block is prepared again: the sums of what is loaded
  // are kept of as many blocks as are prepared ahead.
  unsigned count = dots.size(), numSums = contracts.size();
  SmallVector<Value> inits(loop.getInitArgs());
  SmallVector<Value> sums(loop.getInitArgs().drop_front(count));
  for (int64_t block = 0; block < stages; ++block) {
    Value k = block ? clamped(i32(block * depth)) : zero;
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
    llvm::append_range(inits, emitReads(zero, zero, attr.getSlice()));
  // As many blocks a turn as there are stages where their number is known to be
  // a multiple: the stages are constants then.
  auto upper = getConstantIntValue(loop.getUpperBound());
  bool whole = upper && *upper > 0 && *upper % (stages * depth) == 0;
  if (!whole)
    inits.push_back(zero);

  unsigned inFlight = direct ? 0 : loads.size();
  auto outer =
      scf::ForOp::create(b, loop.getLowerBound(), loop.getUpperBound(),
                         whole ? i32(stages * depth) : loop.getStep(), inits);
  outer->setAttr(rolledName, b.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(outer.getBody());
    Value k = outer.getInductionVar();
    ValueRange carried = outer.getRegionIterArgs();
    Flow flow;
    flow.sums = carried.take_front(count);
    flow.ahead = carried.slice(count + numSums, (stages - 1) * numSums);
    unsigned next = count + stages * numSums;
    flow.loaded = carried.slice(next, inFlight);
    if (ahead)
      flow.parts = carried.slice(next + inFlight, operands.size());
    Value stage = whole ? zero : carried.back();
    flow = emitStep(k, stage, flow);
    for (int64_t block = 1; whole && block < stages; ++block)
      flow = emitStep(arith::AddIOp::create(b, k, i32(block * depth)),
                      i32(block), flow);
    SmallVector<Value> results = concat(concat(flow.sums, flow.prepared),
                                        concat(flow.ahead, flow.loaded));
    if (ahead)
      llvm::append_range(results, flow.parts);
    if (!whole)
      results.push_back(advanced(stage, 1));
    scf::YieldOp::create(b, results);
  }
  return SmallVector<Value>(outer.getResults().take_front(count + numSums));
}

LogicalResult LoopPipeliner::run() {
  if (failed(analyze()) || failed(placeOperands()))
    return failure();
  // (K - 1) / depth * depth; 0 where K is 0.
  Value blocks = arith::DivSIOp::create(
      b, arith::SubIOp::create(b, loop.getUpperBound(), i32(1)), i32(depth));
  last = arith::MulIOp::create(b, blocks, i32(depth));
  SmallVector<Value> results =
      attr.getStages() == 1 ? emitSingle() : emitStaged();
  loop->replaceAllUsesWith(results);
  loop.erase();
  return success();
}

namespace {
struct PipelinePass : greta::impl::GretaTilePipelinePassBase<PipelinePass> {
  void runOnOperation() override {
    if (failed(getOperation().checkTarget()))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttrOfType<PipelineAttr>(pipelineName))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      auto attr = loop->getAttrOfType<PipelineAttr>(pipelineName);
      // Operands are loaded where the dot takes them.
      if (!attr.getStages()) {
        loop->removeAttr(pipelineName);
        loop->setAttr(rolledName, UnitAttr::get(&getContext()));
        continue;
      }
      if (failed(LoopPipeliner(loop, attr).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
