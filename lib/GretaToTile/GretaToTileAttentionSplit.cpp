//===- GretaToTileAttentionSplit.cpp - keys that several go over ----------===//
//
// Few queries are limited by loading keys and values, which takes the whole
// device. A workgroup's iteration may have several tiles of keys (`unroll`),
// for each of which there are waves that keep maxima, sums and results of their
// own; and a tile of queries may have several workgroups, each with a part of
// the keys (`split`). Two results of the same rows meet so:
//
//   m = max(m0, m1), l = 2^(m0-m) l0 + 2^(m1-m) l1, acc alike
//
// The waves' results meet behind the loop, the workgroups' in scratch memory:
// the last workgroup to come adds them up, in their order whoever it is. How
// many parts there are follows from how many tiles of queries share the device,
// and how many of them have keys from the number of keys that a workgroup
// finds:
//
//   if part < parts in use
//     go over the part's keys
//     if there is one part   store the result
//     else store m, l, acc;  the last one: combine parts, store the result
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"

using namespace mlir;
using namespace greta;

AffineExpr AttentionEmitter::tiles() const {
  return space.shape[0] * headGroups() * tilesOfHead();
}

/// Returns `count`, or 1 if that is 0.
static AffineExpr atLeastOne(AffineExpr count) {
  return count +
         getAffineConstantExpr(1, count.getContext()).floorDiv(count + 1);
}

AffineExpr AttentionEmitter::parts() const {
  auto split = getAffineConstantExpr(config.split, queryType.getContext());
  if (config.split == 1) // as one at least is, but no division at every launch
    return split;
  return atLeastOne(split.floorDiv(atLeastOne(tiles())));
}

/// Divides the keys of an iteration, along `dim` of a block, into tiles.
Value AttentionEmitter::apart(Value v, unsigned dim) {
  if (together == 1)
    return v;
  SmallVector<int64_t> shape(shapeOf(v));
  shape[dim] = keys;
  shape.insert(shape.begin() + dim, together);
  v = reshape(v, shape);
  if (dim == 0)
    return v;
  SmallVector<int64_t> order = {dim};
  for (int64_t other = 0; other < int64_t(shape.size()); ++other)
    if (other != dim)
      order.push_back(other);
  return transpose(v, order);
}

/// Repeats a block for each of an iteration's tiles.
Value AttentionEmitter::repeated(Value v) {
  return together == 1 ? v : repeat(v, 0, together);
}

AttentionEmitter::State AttentionEmitter::combine(State several) {
  int64_t count = shapeOf(several.max)[0];
  State all;
  all.max = maxOf(several.max, 0);
  Value from = perColumn(finite(all.max), count);
  Value weight = exponential(fsub(several.max, from));
  all.sum = sumOf(fmul(several.sum, weight), 0);
  // Each lane adds up elements of its own: a reduction would leave every wave
  // with all of them.
  Value sum = tile::ContractOp::create(
      b, block({1, rows, size()}, b.getF32Type()), several.acc,
      reshape(weight, {count, rows, 1}), constant({1, rows, size()}, 0),
      /*dims=*/b.getDenseI64ArrayAttr({0}));
  all.acc = reshape(sum, {rows, size()});
  return all;
}

AttentionEmitter::State AttentionEmitter::combine(State x, State y) {
  State result;
  result.max = arith::MaxNumFOp::create(b, x.max, y.max, noNaN);
  Value from = finite(result.max);
  Value ofX = exponential(fsub(x.max, from));
  Value ofY = exponential(fsub(y.max, from));
  auto sum = [&](Value x, Value ofX, Value y, Value ofY) -> Value {
    return fadd(fmul(x, ofX, contract), fmul(y, ofY, contract), contract);
  };
  result.sum = sum(x.sum, ofX, y.sum, ofY);
  result.acc = sum(x.acc, perRow(ofX, size()), y.acc, perRow(ofY, size()));
  return result;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

SmallVector<Type> greta::attentionScratch(MLIRContext *context) {
  Builder b(context);
  // Results; maxima and sums; counters.
  return {b.getF32Type(), b.getF32Type(), b.getI32Type()};
}

/// Returns the number of a tile's rows that a head's queries can fill. No
/// others are stored.
int64_t AttentionEmitter::storedRows() const {
  auto count = dyn_cast<AffineConstantExpr>(queries());
  return count ? std::min<int64_t>(config.rows[2],
                                   llvm::PowerOf2Ceil(count.getValue()))
               : config.rows[2];
}

SmallVector<AffineExpr> AttentionEmitter::scratchExtents() {
  if (config.split == 1)
    return {};
  AffineExpr stored = workgroups() * (headsOfTile() * storedRows());
  return {stored * size(), stored * 2, tiles()};
}

/// Restricts a range to this workgroup's part of the keys.
void AttentionEmitter::takePart(Range &range) {
  auto whole = [&](Value x, Value by) { // x / by, rounded up
    return div(add(x, sub(by, i32(1))), by);
  };
  Value one = i32(1), step = i32(span());
  Value count = most(sub(range.end, range.begin), i32(0));
  Value iterations = whole(count, step);
  Value iterationsOfPart = most(whole(iterations, small(parts())), one);
  usedParts = most(whole(iterations, iterationsOfPart), one);
  Value extent = mul(iterationsOfPart, step);
  Value begin = add(range.begin, mul(part, extent));
  Value end = add(begin, extent);
  auto within = [&](Value x) { return least(most(x, begin), end); };
  range = {begin, within(range.wholeBegin), within(range.wholeEnd),
           least(range.end, end)};
}

/// Returns the scratch memory of a part: one pointer to results, one to maxima
/// and sums.
AttentionEmitter::PartPointers AttentionEmitter::scratchOf(Value number) {
  Value index = add(mul(tileNumber, small(parts())), number);
  int64_t stored = headsOfTile() * storedRows();
  return {moved(pointers.scratch[0], {{index, fixed(stored * size())}}),
          moved(pointers.scratch[1], {{index, fixed(stored * 2)}})};
}

void AttentionEmitter::storePart(State state) {
  auto [acc, stats] = scratchOf(part);
  int64_t stored = storedRows();
  Value sums = advance(stats, i32(headsOfTile() * stored));
  auto storeBlock = [&](Value v, Value pointer, int64_t columns) {
    Value bound = stored < tileRows ? i32(stored) : Value();
    SmallVector<Dim> dims = {{Value(), fixed(stored * columns), Value()},
                             {Value(), fixed(columns), bound}};
    SmallVector<int64_t> shape = {headsOfTile(), tileRows};
    if (columns > 1) {
      dims.push_back({Value(), fixed(1), Value()});
      shape.push_back(columns);
    }
    store(reshape(v, shape), pointer, dims);
  };
  storeBlock(state.acc, acc, size());
  storeBlock(state.max, stats, 1);
  storeBlock(state.sum, sums, 1);
}

/// Loads the state of a part. A part without keys has seen nothing.
AttentionEmitter::State AttentionEmitter::loadPart(Value number) {
  Value isPart = below(number, usedParts);
  number = least(number, sub(usedParts, i32(1)));
  auto [acc, stats] = scratchOf(number);
  Value sums = advance(stats, i32(rows));
  Dim column{Value(), fixed(1), Value()};
  auto type = [&](ArrayRef<int64_t> shape) {
    return block(shape, b.getF32Type());
  };
  State state{load(type({rows}), stats, column),
              load(type({rows}), sums, column),
              load(type({rows, size()}), acc,
                   {{Value(), fixed(size()), Value()}, column})};
  state.max =
      select(splat(isPart, {rows}), state.max, constant({rows}, -HUGE_VAL));
  return state;
}

void AttentionEmitter::join(State state) {
  Value isAlone = equal(usedParts, i32(1));
  auto branch = scf::IfOp::create(b, isAlone, /*withElseRegion=*/true);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  finish(state);
  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  storePart(state);
  goOnAsLast(advance(pointers.scratch[2], tileNumber), usedParts);
  // The epilogue has the rows that were stored.
  tileRows = storedRows();
  rows = headsOfTile() * tileRows;
  // As many as registers hold are loaded at a time.
  constexpr int64_t elements = 2048; // of a wave
  int64_t count =
      std::clamp<int64_t>(elements * waves / (rows * size()), 1, 16);
  State none{constant({rows}, -HUGE_VAL), constant({rows}, 0),
             constant({rows, size()}, 0)};
  finish(
      carry<State>(i32(0), usedParts, count, none, [&](Value first, State sum) {
        SmallVector<State> loaded;
        for (int64_t i = 0; i < count; ++i)
          loaded.push_back(loadPart(add(first, i32(i))));
        for (const State &state : loaded)
          sum = combine(sum, state);
        return sum;
      }));
}
