//===- GretaToTileAttentionRows.cpp - rows of each sequence ---------------===//
//
// Sequences that have numbers of rows of their own: `begins`, on the device. A
// tile begins where its sequence does, or some tiles further, so that a row is
// added up as with its sequence alone. The grid of a head has slots for the
// worst case, as that of a grouped GEMM has (GretaToTileGroups.cpp); those of
// sequence b begin at
//
//   r(b) = begins[b] / m + b
//
// where m are the rows of a tile: from r(b) to r(b + 1) are as many slots as
// the sequence has tiles, or one more, which does nothing. Sequence B has the
// rows that no other has: it has no keys, so they are zero.
//
// Neither begins nor what follows from them is trusted: a sequence's first row
// is no less than 0 and its end no more than T, and a workgroup goes on only
// where its tile is natural and begins below that end. How many sequences there
// are is known at the launch, so the search has as many rounds, up to 2^20
// sequences: of more there is no slot whose rows an i32 counts.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"

using namespace mlir;
using namespace greta;

AffineExpr AttentionEmitter::slots() const {
  return queries().floorDiv(config.rows[2]) + sequences + 1;
}

Value AttentionEmitter::beginOf(Value number) {
  return loadScalar(input(begins).pointer, number);
}

/// Finds the last sequence whose slots do not begin behind `slot`. Each round
/// of the search reads sixteen sequences, in loads that do not depend on each
/// other, and narrows the range to a sixteenth. Probes behind sequence B find B
/// again. The condition r(b) <= slot is begins[b] < (slot + 1 - b) m.
Value AttentionEmitter::sequenceOf(Value slot) {
  constexpr int64_t probes = 16;
  Value last = small(sequences), rounds = i32(1), step = i32(1);
  int64_t round = 1;
  for (int64_t reach = probes; reach <= 1 << 16; reach *= probes) {
    Value isWithin = compare(Predicate::sle, i32(reach), last);
    step = select(isWithin, i32(reach), step);
    rounds = select(isWithin, i32(++round), rounds);
  }
  Value next = add(slot, i32(1)), m = i32(tileRows);
  auto loop = loopOver(
      i32(0), rounds, 1, {i32(0), step}, [&](Value, ValueRange carried) {
        Value first = carried[0], step = carried[1], found = first;
        SmallVector<std::pair<Value, Value>> probed; // sequences, their begins
        for (Value number = first; int64_t(probed.size()) + 1 < probes;) {
          number = add(number, step);
          probed.push_back({number, beginOf(least(number, last))});
        }
        Value limit = mul(sub(next, first), m), fall = mul(step, m);
        for (auto [number, begin] : probed) {
          limit = sub(limit, fall);
          found = select(below(begin, limit), number, found);
        }
        return SmallVector<Value>{found, shr(step, i32(4))};
      });
  return least(loop.getResult(0), last);
}

/// Finds this workgroup's sequence, and returns the number of its tile; the
/// last tile of a sequence comes first. Leaves the builder in a branch for
/// workgroups that have rows.
Value AttentionEmitter::tileOfSlot(Value slot) {
  Value zero = i32(0), one = i32(1), m = i32(tileRows);
  Value last = small(sequences), rows = small(queries());
  Value number = sequenceOf(slot);
  isSequence = below(number, last);
  sequence = number;
  Value begin = beginOf(number), end = beginOf(least(add(number, one), last));
  rowsBefore = select(equal(number, zero), zero, most(begin, zero));
  end = select(isSequence, least(end, rows), rows);
  rowCount = sub(end, rowsBefore);
  Value before = add(div(rowsBefore, m), number);
  Value count = div(add(rowCount, i32(tileRows - 1)), m);
  Value tile = sub(sub(count, one), sub(slot, before));
  Value hasRows = compare(Predicate::sge, rowCount, one);
  Value isNatural = compare(Predicate::sge, tile, zero);
  goOnIf(both(both(hasRows, isNatural), below(tile, count)));
  return tile;
}

AttentionEmitter::Tensor AttentionEmitter::queryTensor() {
  Tensor tensor = input(q);
  if (begins) { // [T, H, D]
    tensor.shape.insert(tensor.shape.begin(), fixed(1));
    tensor.strides.insert(tensor.strides.begin(), fixed(0));
  }
  return headsFirst(tensor);
}

AttentionEmitter::Tensor AttentionEmitter::rowsOf(const Tensor &tensor) {
  return begins ? from(tensor, {{1, queryHead}, {2, rowsBefore}})
                : headOf(tensor, queryHead);
}
