//===- DistributeScan.cpp - prefixes along an axis ------------------------===//
//
// A scan doubles what it has scanned: once runs of 2^p neighbours are done, the
// last element of each lower run is combined into all elements of the run above
// it. Who holds bit p of the index, a register, the lane or the wave, says how
// that last element travels: not at all, by a shuffle, or through shared
// memory.
//
//   bit held by a register   x1 = combine(last of x0, x1)
//   bits held by threads     only the runs' totals travel; what stands before a
//                            thread is combined into its registers at last
//   repetitions              one after the other
//
// A reverse scan is the same with all bits of the index complemented. With
// waves of one lane every exchange is one through shared memory.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;
using BitHolder = Layout::BitHolder;

void ThreadSet::add(const BitHolder &holder, bool isSet) {
  uint32_t bit = 1u << holder.bit;
  bool ofWave = holder.group == BitHolder::Wave;
  (ofWave ? waves : lanes) |= bit;
  if (isSet)
    (ofWave ? waveValue : laneValue) |= bit;
}

Value Distributor::isIn(const ThreadSet &threads) {
  auto matches = [&](bool ofWave, uint32_t mask, uint32_t value) -> Value {
    return before.equal(maskedId(ofWave, mask), constant(value));
  };
  if (!threads.waves)
    return matches(false, threads.lanes, threads.laneValue);
  Value wave = matches(true, threads.waves, threads.waveValue);
  if (!threads.lanes)
    return wave;
  return before.both(wave, matches(false, threads.lanes, threads.laneValue));
}

Distributor::Elements Distributor::selectAll(Value condition, ArrayRef<Value> x,
                                             ArrayRef<Value> y) {
  SmallVector<Value> out;
  for (auto [yes, no] : llvm::zip(x, y))
    out.push_back(select(condition, yes, no));
  return out;
}

/// Returns the values of the thread in a set that agrees with this thread in
/// all bits that the set leaves open.
SmallVector<Distributor::Elements> Distributor::fetch(ArrayRef<Elements> list,
                                                      const ThreadSet &from,
                                                      Exchange &exchange) {
  SmallVector<Elements> out(list);
  if (!from.lanes && !from.waves)
    return out;
  if (!from.waves) {
    Value lane =
        before.either(maskedId(false, ~from.lanes), constant(from.laneValue));
    for (Elements &elements : out)
      for (Value &element : elements)
        element = ShuffleOp::create(b, element, lane);
    return out;
  }
  // A slot for each thread of the set, which those read that differ from it in
  // the set's bits alone.
  SmallVector<std::pair<ThreadBit, int32_t>> slotBits;
  int32_t slots = 1;
  auto addSlots = [&](bool ofWave, int32_t count, uint32_t fixed) {
    for (unsigned bit = 0; 1 << bit < count; ++bit)
      if (!(fixed >> bit & 1)) {
        slotBits.push_back({ThreadBit{ofWave, bit, {}}, slots});
        slots *= 2;
      }
  };
  addSlots(false, kernel.getNumLanes(), from.lanes);
  addSlots(true, kernel.getNumWaves(), from.waves);
  Value slot = fromBits(slotBits);
  // One of two sets of arrays is written while the other may still be read.
  int64_t size = slots * list.size();
  LaneValues &arrays = exchange.arrays[exchange.next]; // of each block
  exchange.next = 1 - exchange.next;
  if (arrays.empty())
    for (Value element : list.front())
      arrays.push_back(sharedAlloc(size, element.getType()));
  for (Value array : arrays) {
    auto type = cast<SharedType>(array.getType());
    if (type.getSize() < size)
      array.setType(SharedType::get(size, type.getElementType()));
  }
  storeWhere(isIn(from), [&] {
    for (auto [i, elements] : llvm::enumerate(list))
      for (auto [array, element] : llvm::zip(arrays, elements))
        SharedStoreOp::create(b, element, array, offsetBy(slot, i * slots));
  });
  for (auto [i, elements] : llvm::enumerate(out))
    for (auto [array, element] : llvm::zip(arrays, elements))
      element = SharedLoadOp::create(b, array, offsetBy(slot, i * slots));
  return out;
}

/// Scans along bits that threads hold, from the lowest on. `below` is the set
/// of threads, and `last` the register bits, that hold the last element below
/// these bits.
void Distributor::scanThreads(ScanOp op, ArrayRef<BitHolder> bits,
                              const ThreadSet &below, uint32_t registersBelow,
                              uint32_t last, MutableArrayRef<Elements> x,
                              Exchange &exchange) {
  bool reverse = op.getReverse();
  Region &combiner = op.getCombiner();
  SmallVector<unsigned> totals(x.size()); // of each register its run's total
  SmallVector<Elements> sums;
  for (unsigned reg = 0; reg < x.size(); ++reg)
    if ((reg & registersBelow) == last) {
      totals[reg] = sums.size();
      sums.push_back(x[reg]);
    }
  // The value before this thread's run, if it is not the first.
  SmallVector<Elements> before;
  ThreadSet first, source = below;
  for (const BitHolder &bit : bits) {
    SmallVector<Elements> upTo(sums);
    if (!before.empty())
      for (auto [all, sum, earlier] : llvm::zip(upTo, sums, before))
        all = selectAll(isIn(first), sum, combine(combiner, earlier, sum));
    ThreadSet lower = source, upper;
    lower.add(bit, reverse);
    upper.add(bit, !reverse);
    SmallVector<Elements> got = fetch(upTo, lower, exchange);
    if (before.empty()) {
      before = got;
    } else {
      for (auto [earlier, new_] : llvm::zip(before, got))
        earlier = selectAll(
            isIn(upper),
            selectAll(isIn(first), new_, combine(combiner, new_, earlier)),
            earlier);
    }
    first.add(bit, reverse);
    source.add(bit, !reverse);
  }
  for (unsigned reg = 0; reg < x.size(); ++reg) {
    unsigned run = totals[(reg & ~registersBelow) | last];
    x[reg] =
        selectAll(isIn(first), x[reg], combine(combiner, before[run], x[reg]));
  }
}

LogicalResult Distributor::distributeScan(ScanOp op) {
  auto found = commonLayout(op, op.getValues());
  if (failed(found))
    return failure();
  const Layout &layout = (*found)->layout;
  unsigned axis = op.getAxis();
  std::string error;
  auto holders = layout.bitHolders(axis, error);
  if (failed(holders))
    return op.emitOpError("cannot scan this layout: ") << error;
  bool reverse = op.getReverse();
  Region &combiner = op.getCombiner();
  SmallVector<Elements> x(layout.numRegisters());
  for (Value value : op.getValues())
    for (auto [elements, lane] : llvm::zip(x, lanes(value)))
      elements.push_back(lane);

  // Bits of the register and threads below the bit at hand, and those of the
  // last element that they tell apart.
  uint32_t registersBelow = 0, last = 0;
  ThreadSet below;
  Exchange exchange;
  // Combines the last element of a run into each register of the next.
  auto advance = [&](auto isNext, auto lastBefore) {
    llvm::MapVector<unsigned, Elements> ends;
    for (unsigned reg = 0; reg < x.size(); ++reg)
      if (isNext(reg))
        ends[lastBefore(reg)] = x[lastBefore(reg)];
    auto moved =
        fetch(llvm::to_vector(llvm::make_second_range(ends)), below, exchange);
    for (auto [end, arrived] : llvm::zip(ends, moved))
      end.second = arrived;
    for (unsigned reg = 0; reg < x.size(); ++reg)
      if (isNext(reg))
        x[reg] = combine(combiner, ends[lastBefore(reg)], x[reg]);
  };
  for (ArrayRef<BitHolder> bits = *holders; !bits.empty();) {
    if (bits.front().group != BitHolder::Register) {
      auto threads = bits.take_while([](const BitHolder &bit) {
        return bit.group != BitHolder::Register;
      });
      scanThreads(op, threads, below, registersBelow, last, x, exchange);
      for (const BitHolder &bit : threads)
        below.add(bit, !reverse);
      bits = bits.drop_front(threads.size());
      continue;
    }
    uint32_t bit = 1u << bits.front().bit;
    advance(
        [&](unsigned reg) { return bool(reg & bit) != reverse; },
        [&](unsigned reg) { return ((reg ^ bit) & ~registersBelow) | last; });
    registersBelow |= bit;
    last |= reverse ? 0 : bit;
    bits = bits.drop_front();
  }
  // Repetitions are numbered row-major.
  int64_t repetitions = layout.rep()[axis], step = layout.tileRegisters();
  for (int64_t dim = axis + 1; dim < layout.rank(); ++dim)
    step *= layout.rep()[dim];
  for (int64_t i = 1; i < repetitions; ++i) {
    int64_t now = reverse ? repetitions - 1 - i : i;
    advance([&](unsigned reg) { return reg / step % repetitions == now; },
            [&](unsigned reg) {
              unsigned before = reverse ? reg + step : reg - step;
              return (before & ~registersBelow) | last;
            });
  }
  for (OpResult result : op.getResults()) {
    LaneValues &out = values[result];
    for (const Elements &elements : x)
      out.push_back(elements[result.getResultNumber()]);
  }
  return success();
}
