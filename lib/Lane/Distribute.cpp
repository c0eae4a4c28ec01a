//===- Distribute.cpp - greta-tile-distribute: driver and register ops ----===//
//
// Turns every kernel from block tensors into one lane's program. In: every
// block tensor has a layout (greta-tile-assign-layouts). Out: only scalars and
// small vectors; a tensor became as many SSA values as a lane has registers.
//
//   %s = arith.addf %a, %b : tensor<1x64xf32, #l>        #l: 2 registers
//     →  %s0 = arith.addf %a0, %b0 : f32
//        %s1 = arith.addf %a1, %b1 : f32
//
// How values are held is in DistributeValues.cpp, memory accesses are in
// DistributeMemory.cpp and DistributeAtomics.cpp, their addresses in
// DistributeStrided.cpp and DistributePointers.cpp, reductions and conversions
// in DistributeExchange.cpp, what of it passes through shared memory in
// DistributeShared.cpp, scans in DistributeScan.cpp, other movement in
// DistributeMove.cpp, products in DistributeDot.cpp.
// Accesses to shared memory stand as if lanes ran in step: greta-tile-barriers
// puts them in order.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/SharedMemory.h"
#include "greta/Tile/Workgroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEDISTRIBUTEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

static bool isBlock(Type type) { return isa<RankedTensorType>(type); }
static bool isBlock(Value value) { return isBlock(value.getType()); }

Distributor::Distributor(FuncOp kernel, const TargetRow &row, int64_t mostBytes,
                         ImplicitLocOpBuilder &b)
    : Arithmetic{b}, kernel(kernel), row(row), mostBytes(mostBytes),
      facts(kernel), order(kernel, facts), waits(order.findWaits()),
      prologue(kernel.getLoc(), kernel.getContext()) {}

FailureOr<FuncOp> Distributor::run() {
  if (failed(checkLayouts()))
    return failure();
  b.setInsertionPoint(kernel);
  result = FuncOp::create(b, kernel.getSymName(), kernel.getFunctionType(),
                          kernel.getNumWaves(), kernel.getNumLanes());
  result->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  result.setArgAttrsAttr(kernel.getArgAttrsAttr());
  kernel.getBody().walk([&](DotOp dot) {
    if (MatrixAttr matrix = dot.getMatrixAttr(); matrix && matrix.getOpaque())
      opaque = matrix;
  });
  Block &from = kernel.getBody().front();
  Block &to = result.getBody().front();
  for (auto [old, arg] : llvm::zip(from.getArguments(), to.getArguments()))
    values[old] = {arg};
  // Shared values go before this marker, the body after it.
  b.setInsertionPointToStart(&to);
  Operation *marker = ReturnOp::create(b);
  prologue.setInsertionPoint(marker);
  b.setInsertionPointToEnd(&to);
  LogicalResult status = distributeBlock(from);
  marker->erase();
  markUnordered();
  if (failed(status)) {
    result.erase();
    return failure();
  }
  // Accesses take pointers and offsets apart and leave them unused.
  result.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
  return result;
}

void Distributor::markUnordered() {
  if (waits.empty() || hasOp<BarrierOp, AtomicRmwOp, AtomicCasOp>(kernel))
    return;
  for (BlockArgument argument : kernel.getArguments())
    if (isa<PtrType>(argument.getType()) && order.isUnordered(argument))
      result.setArgAttr(argument.getArgNumber(), readonlyName,
                        UnitAttr::get(kernel.getContext()));
}

//===----------------------------------------------------------------------===//
// Values that depend on the thread only
//===----------------------------------------------------------------------===//

Value Distributor::constant(int32_t value) {
  Value &slot = constants[value];
  if (!slot)
    slot = before.i32(value);
  return slot;
}

Value Distributor::laneId() {
  if (!lane)
    lane = LaneIdOp::create(prologue);
  return lane;
}

Value Distributor::waveId() {
  if (!wave)
    wave = WaveIdOp::create(prologue);
  return wave;
}

Value Distributor::maskedId(bool ofWave, uint32_t mask) {
  return before.both(ofWave ? waveId() : laneId(), constant(mask));
}

Value Distributor::isZero(bool ofWave, uint32_t mask) {
  return before.equal(maskedId(ofWave, mask), constant(0));
}

Value Distributor::isFirst(uint32_t lanes, uint32_t waves) {
  if (lanes && waves)
    return both(isZero(false, lanes), isZero(true, waves));
  if (lanes || waves)
    return isZero(waves != 0, lanes | waves);
  return {};
}

Value Distributor::isFirstOfWorkgroup() {
  return isFirst(kernel.getNumLanes() - 1, kernel.getNumWaves() - 1);
}

Value Distributor::ownsCopies(const Layout &layout) {
  return isFirst(layout.freeLaneBits(), layout.freeWaveBits());
}

void Distributor::storeWhere(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  emitIf(b, condition, body);
}

LaneValues Distributor::valuesWhere(Value condition, Builder build,
                                    Builder other) {
  if (!condition)
    return build();
  auto branch = scf::IfOp::create(
      b, condition,
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, build()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, other()); });
  return LaneValues(branch.getResults());
}

Value Distributor::offsetBy(Value value, int32_t offset) {
  return offset ? add(value, constant(offset)) : value;
}

Value Distributor::fromBits(ArrayRef<std::pair<ThreadBit, int32_t>> bits) {
  std::vector<std::array<int32_t, 3>> key;
  for (auto [bit, weight] : bits)
    key.push_back({bit.isWave, static_cast<int32_t>(bit.bit), weight});
  Value &sum = idSums[key];
  if (sum)
    return sum;
  int32_t covered = 0;
  for (size_t i = 0; i < bits.size();) {
    // A run of bits whose contributions double is one field of the id.
    auto [first, weight] = bits[i];
    size_t n = 1;
    while (llvm::isPowerOf2_32(weight) && i + n < bits.size() &&
           bits[i + n].first.isWave == first.isWave &&
           bits[i + n].first.bit == first.bit + n &&
           bits[i + n].second == weight << n)
      ++n;
    i += n;
    Value field = maskedId(first.isWave, ((1u << n) - 1) << first.bit);
    int32_t scale = 1 << first.bit;
    if (weight % scale == 0) {
      if (weight != scale)
        field = before.mul(field, constant(weight / scale));
    } else {
      field = before.shr(field, constant(first.bit));
      if (weight != 1)
        field = before.mul(field, constant(weight));
    }
    int32_t moved = weight * ((1 << n) - 1);
    if (!sum)
      sum = field;
    else if (covered & moved)
      sum = before.flip(sum, field);
    else
      sum = before.add(sum, field);
    covered |= moved;
  }
  if (!sum)
    sum = constant(0);
  return sum;
}

LogicalResult Distributor::checkLayout(Operation *op, LayoutAttr attr) {
  Layout layout = toLayout(attr);
  if (int64_t(layout.numWaves()) != kernel.getNumWaves() ||
      int64_t(layout.numLanes()) != kernel.getNumLanes())
    return op->emitOpError("has a layout of ")
           << layout.numWaves() << " waves of " << layout.numLanes()
           << " lanes in a kernel of " << kernel.getNumWaves() << " waves of "
           << kernel.getNumLanes();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    if (!layout.registersAdd(dim))
      return op->emitOpError("has a layout whose registers and lanes share "
                             "bits of dimension ")
             << dim;
  return success();
}

LogicalResult Distributor::checkLayouts() {
  auto check = [&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes()) {
      if (!isBlock(type))
        continue;
      LayoutAttr attr = getLayoutOf(type);
      if (!attr)
        return op->emitOpError("has a block tensor without a layout, ")
               << type << "; run greta-tile-assign-layouts first";
      if (failed(checkLayout(op, attr)))
        return failure();
    }
    return success();
  };
  return failure(kernel.walk(check).wasInterrupted());
}

FailureOr<const DistributedLayout *> Distributor::distributed(Operation *op,
                                                              LayoutAttr attr) {
  if (failed(checkLayout(op, attr)))
    return failure();
  return &distributed(attr);
}

const DistributedLayout &Distributor::distributed(LayoutAttr attr) {
  std::unique_ptr<DistributedLayout> &slot = layouts[attr];
  if (slot)
    return *slot;
  auto entry = std::make_unique<DistributedLayout>();
  entry->layout = toLayout(attr);
  const Layout &layout = entry->layout;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    entry->threadIndex.push_back(
        fromBits(layout, [&](const ThreadBit &bit) { return bit.basis[dim]; }));
  for (unsigned r = 0; r < layout.numRegisters(); ++r)
    entry->registerIndex.push_back(layout.registerIndex(r));
  slot = std::move(entry);
  return *slot;
}

Value Distributor::sharedAlloc(int64_t size, Type element) {
  return SharedAllocOp::create(prologue, SharedType::get(size, element));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Distributor::distributeBlock(Block &block) {
  for (Operation &op : block)
    if (failed(distributeOp(&op)))
      return failure();
  return success();
}

LogicalResult Distributor::distributeOp(Operation *op) {
  b.setLoc(op->getLoc());
  // The access meets an earlier one of other lanes (AccessOrder.h).
  if (waits.contains(op))
    BarrierOp::create(b, /*global=*/true);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](LoadOp o) { return distributeLoad(o); })
      .Case([&](StoreOp o) { return distributeStore(o); })
      .Case([&](LoadScatteredOp o) { return distributeLoadScattered(o); })
      .Case([&](StoreScatteredOp o) { return distributeStoreScattered(o); })
      .Case([&](AtomicRmwOp o) { return distributeAtomicRmw(o); })
      .Case([&](AtomicCasOp o) { return distributeAtomicCas(o); })
      .Case([&](IotaOp o) { return distributeIota(o); })
      .Case([&](BroadcastOp o) { return distributeBroadcast(o); })
      .Case([&](ReshapeOp o) { return distributeReshape(o); })
      .Case([&](TransOp o) { return distributeTrans(o); })
      .Case([&](JoinOp o) { return distributeJoin(o); })
      .Case([&](SplitOp o) { return distributeSplit(o); })
      .Case([&](GatherOp o) { return distributeGather(o); })
      .Case([&](HistogramOp o) { return distributeHistogram(o); })
      .Case([&](ReduceOp o) { return distributeReduce(o); })
      .Case([&](RescaleOp o) { return distributeRescale(o); })
      .Case([&](ScanOp o) { return distributeScan(o); })
      .Case([&](DotOp o) { return distributeDot(o); })
      .Case([&](ContractOp o) { return distributeContract(o); })
      .Case([&](DequantOp o) { return distributeDequant(o); })
      .Case([&](ConvertLayoutOp o) { return distributeConvertLayout(o); })
      .Case([&](LocalAllocOp o) { return distributeLocalAlloc(o); })
      .Case([&](LocalStoreOp o) { return distributeLocalStore(o); })
      .Case([&](LocalLoadOp o) { return distributeLocalLoad(o); })
      .Case([&](SplatOp o) -> LogicalResult {
        const DistributedLayout &layout = layoutOf(o.getResult());
        values[o.getResult()] =
            LaneValues(layout.registerIndex.size(), scalar(o.getValue()));
        return success();
      })
      .Case([](AssumeOp) { return success(); })
      .Case<scf::ForOp>([&](Operation *o) { return distributeFor(o); })
      .Case<scf::WhileOp>([&](Operation *o) { return distributeWhile(o); })
      .Case<scf::IfOp>([&](Operation *o) { return distributeIf(o); })
      .Case<scf::YieldOp>([&](scf::YieldOp o) {
        LaneValues flat;
        auto types = carriedTypes.find(o->getParentOp());
        for (auto [i, operand] : llvm::enumerate(o.getOperands())) {
          if (types == carriedTypes.end())
            llvm::append_range(flat, lanes(operand));
          else
            llvm::append_range(flat, vectors(operand, types->second[i]));
        }
        scf::YieldOp::create(b, flat);
        return success();
      })
      .Case([&](BarrierOp o) -> LogicalResult {
        // A program's own barrier orders global memory, too.
        BarrierOp::create(b, /*global=*/true);
        return success();
      })
      .Default([&](Operation *o) -> LogicalResult {
        bool blocks = llvm::any_of(o->getOperandTypes(),
                                   [](Type t) { return isBlock(t); }) ||
                      llvm::any_of(o->getResultTypes(),
                                   [](Type t) { return isBlock(t); });
        if (blocks)
          return o->hasTrait<OpTrait::ConstantLike>()
                     ? distributeConstant(o)
                     : distributeElementwise(o);
        if (o->getNumRegions())
          return o->emitOpError("cannot stand in a kernel");
        IRMapping mapping;
        for (Value operand : o->getOperands())
          mapping.map(operand, scalar(operand));
        Operation *copy = b.clone(*o, mapping);
        for (auto [old, now] : llvm::zip(o->getResults(), copy->getResults()))
          values[old] = {now};
        return success();
      });
}

LogicalResult Distributor::distributeFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  LaneValues inits;
  SmallVector<unsigned> counts;
  SmallVector<Type> &types = carriedTypes[op];
  for (auto [init, arg] :
       llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs())) {
    types.push_back(carriedType(init, arg));
    LaneValues list = vectors(init, types.back());
    counts.push_back(list.size());
    llvm::append_range(inits, list);
  }
  auto copy = scf::ForOp::create(b, scalar(loop.getLowerBound()),
                                 scalar(loop.getUpperBound()),
                                 scalar(loop.getStep()), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  values[loop.getInductionVar()] = {copy.getInductionVar()};
  setCarried(loop.getRegionIterArgs(), types, counts, copy.getRegionIterArgs());
  setCarried(loop.getResults(), types, counts, copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  if (inits.empty())
    copy.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(copy.getBody());
  return distributeBlock(*loop.getBody());
}

LogicalResult Distributor::distributeWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  Region regions[2];
  // Adds a block whose arguments are the registers of `from`.
  auto enter = [&](Region &region, ValueRange from, ValueRange arguments,
                   SmallVector<Type> &types, SmallVector<unsigned> &counts) {
    LaneValues all;
    Block &block = region.emplaceBlock();
    for (auto [value, argument] : llvm::zip(from, arguments)) {
      types.push_back(carriedType(value, argument));
      LaneValues parts = vectors(value, types.back());
      SmallVector<Value> given;
      for (Value part : parts)
        given.push_back(block.addArgument(part.getType(), argument.getLoc()));
      setCarried(argument, types.back(), given);
      counts.push_back(parts.size());
      llvm::append_range(all, parts);
    }
    return all;
  };
  SmallVector<Type> iteration, passed;
  SmallVector<unsigned> iterationCounts, counts;
  LaneValues inits =
      enter(regions[0], loop.getInits(), loop.getBeforeArguments(), iteration,
            iterationCounts);
  carriedTypes[op] = iteration;
  LaneValues results;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&regions[0].front());
    for (Operation &inner : loop.getBeforeBody()->without_terminator())
      if (failed(distributeOp(&inner)))
        return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    results = enter(regions[1], condition.getArgs(), loop.getAfterArguments(),
                    passed, counts);
    b.setLoc(condition.getLoc());
    scf::ConditionOp::create(b, scalar(condition.getCondition()), results);
    b.setInsertionPointToEnd(&regions[1].front());
    if (failed(distributeBlock(*loop.getAfterBody())))
      return failure();
  }
  auto copy = scf::WhileOp::create(b, loop.getLoc(),
                                   ValueRange(results).getTypes(), inits);
  for (auto [from, to] : llvm::zip(regions, copy->getRegions()))
    to.takeBody(from);
  setCarried(loop.getResults(), passed, counts, copy.getResults());
  return success();
}

LogicalResult Distributor::distributeIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  SmallVector<Type> &pieceTypes = carriedTypes[op];
  for (OpResult res : branch->getResults()) {
    unsigned count = 1;
    Type type = res.getType();
    if (isBlock(res)) {
      const DistributedLayout &layout = layoutOf(res);
      count = layout.registerIndex.size();
      type = getElementTypeOrSelf(type);
      // As what comes from outside is held.
      for (Region &region : branch->getRegions()) {
        Operation *yield = region.front().getTerminator();
        auto known = pieceValues.find(yield->getOperand(res.getResultNumber()));
        if (known == pieceValues.end() ||
            !isa<VectorType>(known->second.front().getType()))
          continue;
        type = known->second.front().getType();
        count = known->second.size();
      }
    }
    pieceTypes.push_back(type);
    types.append(count, type);
    counts.push_back(count);
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(b, types, scalar(branch.getCondition()),
                                /*addThenBlock=*/true, hasElse);
  setCarried(branch.getResults(), pieceTypes, counts, copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(branch->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    // Some builders leave an implicit yield; ours is copied from the source.
    to.front().clear();
    b.setInsertionPointToEnd(&to.front());
    if (failed(distributeBlock(from.front())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct DistributePass
    : greta::impl::GretaTileDistributePassBase<DistributePass> {
  using GretaTileDistributePassBase::GretaTileDistributePassBase;
  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    for (FuncOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<FuncOp>()))
      if (failed(kernel.checkTarget()) || failed(distribute(kernel, *row)))
        return signalPassFailure();
  }

  /// A block that changes its layout passes through shared memory whole, or, if
  /// a workgroup has not so much, in ever smaller parts.
  static LogicalResult distribute(FuncOp kernel, const TargetRow &row) {
    constexpr int64_t leastBytes = 2048;
    int64_t mostBytes = std::numeric_limits<int64_t>::max();
    if (failed(checkBlockSizes(kernel, row)))
      return failure();
    while (true) {
      ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
      Distributor distributor(kernel, row, mostBytes, b);
      FailureOr<FuncOp> lane = distributor.run();
      if (failed(lane) || failed(checkLaneSize(kernel, *lane, row)))
        return failure();
      int64_t excess = leastSharedBytes(*lane, row) - row.ldsBytes;
      int64_t largest = std::min(distributor.largestMove, mostBytes);
      if (row.isHost() || excess <= 0 || largest <= leastBytes) {
        kernel.erase();
        return success();
      }
      mostBytes = std::max(largest - excess, largest / 2);
      lane->erase();
    }
  }
};
} // namespace
