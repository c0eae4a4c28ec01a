//===- DistributeExchange.cpp - reductions and layout conversions ---------===//
//
// Values that cross lanes and waves. A reduction combines a lane's registers in
// a tree, then lanes by XOR shuffles, then waves through shared memory. AMD's
// waves vote whether anything is rescaled. A layout conversion is renamed
// registers, shuffles or a trip through shared memory (DistributeShared.cpp),
// as the layout library plans it.
//
// With waves of one lane (a target without subgroup operations) every thread is
// a wave and the same code goes through shared memory for all of them.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

Distributor::Elements Distributor::combine(Region &combiner, ArrayRef<Value> x,
                                           ArrayRef<Value> y) {
  Block &block = combiner.front();
  IRMapping mapping;
  for (auto [arg, value] :
       llvm::zip(block.getArguments(), llvm::concat<const Value>(x, y)))
    mapping.map(arg, value);
  for (Operation &inner : block.without_terminator())
    b.clone(inner, mapping)->setLoc(b.getLoc());
  return llvm::to_vector(
      llvm::map_range(block.getTerminator()->getOperands(),
                      [&](Value v) { return mapping.lookupOrDefault(v); }));
}

FailureOr<const DistributedLayout *>
Distributor::commonLayout(Operation *op, ValueRange blocks) {
  const DistributedLayout &first = layoutOf(blocks.front());
  for (Value block : blocks)
    if (&layoutOf(block) != &first)
      return op->emitOpError("combines blocks of several layouts; "
                             "convert_layout first");
  return &first;
}

/// Combines the elements of a level of a tree to those of the next. AMD has one
/// instruction for the extremum of three. On targets that add pairs in one
/// instruction, neighbours stay side by side.
SmallVector<Distributor::Elements>
Distributor::combineSome(Region &combiner, ArrayRef<Elements> level) {
  Operation &first = combiner.front().front();
  bool isExtremum = isa<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp,
                        arith::MinimumFOp, arith::MaxSIOp, arith::MinSIOp,
                        arith::MaxUIOp, arith::MinUIOp>(first);
  bool isPaired = isa<arith::AddFOp>(first) && level.size() % 4 == 0 &&
                  row.hasFeature("packed_f32");
  size_t together = isExtremum && row.isHip() ? 3 : 2;
  size_t apart = isPaired ? 2 : 1;
  SmallVector<SmallVector<Value>> next;
  for (; !level.empty();
       level = level.drop_front(std::min(level.size(), together * apart)))
    for (size_t i = 0; i < std::min(apart, level.size()); ++i) {
      SmallVector<Value> sum = level[i];
      for (size_t j = 1; j < together && i + j * apart < level.size(); ++j)
        sum = combine(combiner, sum, level[i + j * apart]);
      next.push_back(sum);
    }
  return next;
}

LogicalResult Distributor::distributeReduce(ReduceOp op) {
  auto src = commonLayout(op, op.getValues());
  if (failed(src))
    return failure();
  std::string error;
  FailureOr<Reduction> plan = reduce((*src)->layout, op.getAxis(), error);
  if (failed(plan))
    return op.emitOpError("cannot reduce this layout: ") << error;
  SmallVector<Elements> partials;
  for (const auto &registers : plan->registers) {
    SmallVector<Elements> level;
    for (unsigned reg : registers) {
      Elements &elements = level.emplace_back();
      for (Value value : op.getValues())
        elements.push_back(lanes(value)[reg]);
    }
    while (level.size() > 1)
      level = combineSome(op.getCombiner(), level);
    Elements value = level.front();
    for (unsigned bit = 0; bit < 32; ++bit)
      if (plan->lanes >> bit & 1)
        value = combine(op.getCombiner(), value, shuffled(value, 1u << bit));
    partials.push_back(value);
  }
  // Shared memory moves all registers' partial results at once.
  if (plan->waves)
    reduceWaves(op, partials, plan->result, plan->waves);
  for (OpResult result : op.getResults()) {
    LaneValues &out = values[result];
    for (const Elements &elements : partials)
      out.push_back(elements[result.getResultNumber()]);
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    SmallVector<unsigned> registers;
    Layout dropped = *plan->result.reshape(
        cast<RankedTensorType>(result.getType()).getShape(), &registers);
    LaneValues inOrder;
    for (unsigned reg : registers)
      inOrder.push_back(out[reg]);
    if (failed(setConverted(op, result, inOrder, dropped)))
      return failure();
  }
  return success();
}

LogicalResult Distributor::distributeRescale(RescaleOp op) {
  LaneValues list(lanes(op.getValue())), factors(lanes(op.getFactor()));
  auto multiply = [&] {
    LaneValues products;
    for (auto [value, factor] : llvm::zip(list, factors))
      products.push_back(fmul(value, factor));
    return products;
  };
  // Matrices that drivers load are put together anew behind a branch.
  bool isLoadedWhole = llvm::any_of(op->getUsers(), [](Operation *user) {
    auto dot = dyn_cast<DotOp>(user);
    return dot && dot.getMatrixAttr() && dot.getMatrixAttr().isLoadedWhole();
  });
  if (!row.tiles.attention.skipsRescale || isLoadedWhole) {
    values[op.getResult()] = multiply();
    return success();
  }
  ArrayRef<Value> conditions = lanes(op.getWhere());
  Value isMoved;
  for (Value condition :
       llvm::SetVector<Value>(conditions.begin(), conditions.end()))
    isMoved = isMoved ? either(isMoved, condition) : condition;
  // Vulkan's drivers branch around what no lane does by themselves.
  if (row.isHip())
    isMoved = AnyOp::create(b, isMoved);
  values[op.getResult()] = valuesWhere(isMoved, multiply, [&] { return list; });
  return success();
}

SmallVector<Value> Distributor::shuffled(ArrayRef<Value> elements,
                                         uint32_t mask) {
  SmallVector<Value> others;
  for (Value element : elements)
    others.push_back(ShuffleXorOp::create(b, element, mask));
  return others;
}

/// Combines the values of waves that differ in the bits of `waves`. Every wave
/// stores its value, then lanes read the values of the other waves. Lanes that
/// hold copies share this work: each reads one wave's value, and they combine
/// by shuffles. Other lanes read up to sixteen values each, in rounds of at
/// most four bits.
void Distributor::reduceWaves(ReduceOp op,
                              MutableArrayRef<SmallVector<Value>> partials,
                              const Layout &layout, uint32_t waves) {
  uint32_t freeLanes = layout.freeLaneBits();
  // Slots: one per lane that holds something of its own, and wave.
  SmallVector<std::pair<ThreadBit, int32_t>> slotBits;
  int32_t slots = 1;
  auto addSlots = [&](bool ofWave, unsigned bit) {
    slotBits.push_back({ThreadBit{ofWave, bit, {}}, slots});
    slots *= 2;
  };
  SmallVector<unsigned> readers; // lane bits that tell copies apart
  for (auto [bit, basis] : llvm::enumerate(layout.lane())) {
    if (!(freeLanes >> bit & 1))
      addSlots(false, bit);
    else if (llvm::all_of(basis, [](int32_t c) { return c == 0; }))
      readers.push_back(bit);
  }
  for (unsigned bit = 0; bit < layout.wave().size(); ++bit)
    addSlots(true, bit);
  auto weightOf = [&](unsigned waveBit) {
    return llvm::find_if(slotBits,
                         [&](const auto &entry) {
                           return entry.first.isWave &&
                                  entry.first.bit == waveBit;
                         })
        ->second;
  };
  Value slot = fromBits(slotBits);
  Value writes = freeLanes ? isZero(false, freeLanes) : Value();
  unsigned perRound = std::max<unsigned>(4, readers.size());
  // Rounds of equal size: 64 waves meet in 8 + 8 reads, not in 16 + 4.
  unsigned rounds = llvm::divideCeil(llvm::popcount(waves), perRound);
  while (waves) {
    unsigned bitsNow = llvm::divideCeil(llvm::popcount(waves), rounds--);
    SmallVector<unsigned> round;
    uint32_t roundMask = 0;
    while (round.size() < bitsNow) {
      unsigned bit = llvm::countr_zero(waves);
      round.push_back(bit);
      roundMask |= 1u << bit;
      waves &= waves - 1;
    }
    SmallVector<Value> arrays; // of each block
    for (Value element : partials.front())
      arrays.push_back(sharedAlloc(slots * partials.size(), element.getType()));
    storeWhere(writes, [&] {
      for (auto [reg, elements] : llvm::enumerate(partials))
        for (auto [array, element] : llvm::zip(arrays, elements))
          SharedStoreOp::create(b, element, array, offsetBy(slot, reg * slots));
    });
    // The slot with this round's wave bits cleared; a reading lane puts its own
    // bits there.
    bool shared = readers.size() >= round.size();
    SmallVector<std::pair<ThreadBit, int32_t>> firstBits;
    for (auto &entry : slotBits)
      if (!entry.first.isWave || !(roundMask >> entry.first.bit & 1))
        firstBits.push_back(entry);
    if (shared)
      for (auto [k, bit] : llvm::enumerate(round))
        firstBits.push_back({ThreadBit{false, readers[k], {}}, weightOf(bit)});
    Value first = fromBits(firstBits);
    for (auto [reg, elements] : llvm::enumerate(partials)) {
      SmallVector<Value> sum;
      for (unsigned i = 0; i < (shared ? 1u : 1u << round.size()); ++i) {
        int32_t offset = reg * slots;
        for (auto [k, bit] : llvm::enumerate(round))
          if (i >> k & 1)
            offset += weightOf(bit);
        SmallVector<Value> part;
        Value at = offsetBy(first, offset);
        for (Value array : arrays)
          part.push_back(SharedLoadOp::create(b, array, at));
        sum = i ? combine(op.getCombiner(), sum, part) : part;
      }
      if (shared)
        for (unsigned k = 0; k < round.size(); ++k)
          sum = combine(op.getCombiner(), sum, shuffled(sum, 1u << readers[k]));
      elements = sum;
    }
  }
}

//===----------------------------------------------------------------------===//
// Layout conversions
//===----------------------------------------------------------------------===//

FailureOr<LaneValues> Distributor::converted(Operation *op,
                                             ArrayRef<Value> from,
                                             const Layout &layout,
                                             const DistributedLayout &dst) {
  std::string error;
  FailureOr<Conversion> plan = convert(layout, dst.layout, error);
  if (failed(plan))
    return op->emitOpError("cannot convert between these layouts: ") << error;
  const DistributedLayout *src = nullptr;
  bool isInWave = plan->kind != Conversion::Kind::Shared &&
                  plan->numShuffles() <= 2 * from.size();
  if (!isInWave) {
    auto found = distributed(op, toAttr(op->getContext(), layout));
    if (failed(found))
      return failure();
    src = *found;
  }
  return moveNumbers(from, [&](ArrayRef<Value> from) -> LaneValues {
    return isInWave ? convertInWave(*plan, from)
                    : convertThroughShared(from, *src, dst);
  });
}

LaneValues
Distributor::moveNumbers(ArrayRef<Value> from,
                         llvm::function_ref<LaneValues(ArrayRef<Value>)> move) {
  Type type = from.front().getType();
  if (!isa<PtrType>(type))
    return move(from);
  LaneValues addresses;
  for (Value pointer : from)
    addresses.push_back(PtrToIntOp::create(b, pointer));
  LaneValues moved = move(addresses);
  for (Value &address : moved)
    address = IntToPtrOp::create(b, type, address);
  return moved;
}

LaneValues Distributor::convertInWave(const Conversion &plan,
                                      ArrayRef<Value> from) {
  if (plan.kind == Conversion::Kind::Identity)
    return LaneValues(from);
  // Bit i of a move's position, as an i1 of this thread.
  SmallVector<Value> selectors;
  for (const Conversion::Selector &selector : plan.selectors) {
    Value bits =
        flip(math::CtPopOp::create(b, maskedId(false, selector.laneMask)),
             math::CtPopOp::create(b, maskedId(true, selector.waveMask)));
    Value odd = both(bits, constant(1));
    selectors.push_back(differ(odd, constant(0)));
  }
  Value sourceLane;
  uint32_t exchanged = plan.exchangedLane();
  if (plan.kind == Conversion::Kind::Shuffle && !plan.isXorShuffle() &&
      !exchanged) {
    sourceLane = constant(0);
    auto add = [&](bool ofWave, ArrayRef<uint32_t> columns) {
      for (auto [bit, column] : llvm::enumerate(columns)) {
        if (!column)
          continue;
        Value set = differ(maskedId(ofWave, 1u << bit), constant(0));
        Value part = select(set, constant(column), constant(0));
        sourceLane = flip(sourceLane, part);
      }
    };
    add(false, plan.laneFromLane);
    add(true, plan.laneFromWave);
  }
  std::map<std::pair<unsigned, uint32_t>, Value> shuffles;
  auto fromLane = [&](unsigned reg, uint32_t mask) {
    if (!mask)
      return from[reg];
    Value &value = shuffles[{reg, mask}];
    if (!value)
      value = ShuffleXorOp::create(b, from[reg], mask);
    return value;
  };
  LaneValues out;
  for (const Conversion::Move &move : plan.moves) {
    // All candidates travel, then the thread picks: a shuffle must deliver the
    // register that its reader wants, not the one its owner would.
    SmallVector<Value> candidates;
    for (unsigned reg : move.registers) {
      Value value = from[reg];
      if (sourceLane)
        value = ShuffleOp::create(b, value,
                                  move.laneXor
                                      ? flip(sourceLane, constant(move.laneXor))
                                      : sourceLane);
      else if (exchanged)
        value = select(isZero(false, exchanged), fromLane(reg, move.laneXor),
                       fromLane(reg, move.laneXor ^ exchanged));
      else if (plan.kind == Conversion::Kind::Shuffle)
        value = fromLane(reg, move.laneXor);
      candidates.push_back(value);
    }
    for (Value selector : selectors) {
      for (size_t i = 0; i < candidates.size() / 2; ++i)
        candidates[i] =
            select(selector, candidates[2 * i + 1], candidates[2 * i]);
      candidates.resize(candidates.size() / 2);
    }
    out.push_back(candidates.front());
  }
  return out;
}
