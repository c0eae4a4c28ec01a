//===- GretaToTileUpdate.cpp - new rows of a KV cache ---------------------===//
//
// In: greta.kv_update or paged_kv_update. Out: a block program in which every
// workgroup takes some of the new rows, all heads' counted through, and stores
// each where its position or slot says; rows beyond the cache nowhere. The
// cache is written in place.
//
// Rows that are quantised have a scale for each group of neighbours, which lies
// in a cache of its own: a row is [groups, g] then, and no lane needs what
// another row has.
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;

namespace {
class UpdateEmitter : public BlockProgram {
public:
  explicit UpdateEmitter(const EmitterContext &context)
      : BlockProgram(context), update(space.alone) {}

  AffineExpr workgroups() override {
    return space.rows(0, kernel.getContext()).ceilDiv(config.rows[0]);
  }
  void emit(Value index) override;

private:
  /// The offsets of each row in the new rows and in the cache, as blocks of
  /// i64.
  struct Places {
    Value from, to, inside;
    Value toScales = {};
  };
  Places places(const Tensor &rows, const Tensor &cache, Value row);
  Value perGroup(Value block, int64_t group);
  std::pair<Value, Value> quantised(Value rows, int64_t group);
  Value numbers(Value table, Value index, Value mask);
  Value offset(ArrayRef<std::pair<Value, AffineExpr>> terms);

  Operation *update;
  std::optional<Tensor> scales; // where rows are quantised
};
} // namespace

/// Repeats a number of each group for the group's columns.
Value UpdateEmitter::perGroup(Value v, int64_t group) {
  return reshape(perRow(v, group), {shapeOf(v)[0], shapeOf(v)[1] * group});
}

/// Quantises rows of f32 to numbers of 8 bits, and returns these with the
/// scales of their groups.
std::pair<Value, Value> UpdateEmitter::quantised(Value rows, int64_t group) {
  constexpr double largest = 127;
  int64_t count = shapeOf(rows)[0], groups = shapeOf(rows)[1] / group;
  Value peak = reduce(
      reshape(math::AbsFOp::create(b, rows), {count, groups, group}), 2,
      [&](Value x, Value y) { return arith::MaximumFOp::create(b, x, y); });
  Value stored =
      narrow(fmul(peak, like(peak, float(1 / largest))), b.getF16Type());
  // Numbers are divided by the stored scale, so one is wrong by half of it at
  // most.
  Value scale = extend(stored);
  Value isZero = compare(FPredicate::OEQ, scale, like(scale, 0));
  Value factor = select(isZero, like(scale, 0), fdiv(like(scale, 1), scale));
  Value y = math::RoundEvenOp::create(b, fmul(rows, perGroup(factor, group)));
  y = arith::MaximumFOp::create(b, y, like(y, -largest));
  y = arith::MinimumFOp::create(b, y, like(y, largest));
  auto type = block(shapeOf(y), b.getI8Type());
  return {arith::FPToSIOp::create(b, type, y), stored};
}

/// Loads the positions or slots of rows.
Value UpdateEmitter::numbers(Value table, Value index, Value mask) {
  return gather(index.getType(), advance(input(table).pointer, index), mask);
}

Value UpdateEmitter::offset(ArrayRef<std::pair<Value, AffineExpr>> terms) {
  SmallVector<int64_t> shape = {config.rows[0]};
  Value sum;
  for (auto [index, stride] : terms) {
    Value term = mul(large(index), splat(large(stride), shape));
    sum = sum ? add(sum, term) : term;
  }
  return sum;
}

UpdateEmitter::Places UpdateEmitter::places(const Tensor &rows,
                                            const Tensor &cache, Value row) {
  SmallVector<int64_t> shape = {config.rows[0]};
  auto below = [&](Value x, AffineExpr bound) {
    return compare(Predicate::ult, x, splat(small(bound), shape));
  };
  auto split = [&](Value x, AffineExpr count) {
    Value by = splat(small(count), shape);
    return std::pair(div(x, by), rem(x, by));
  };
  Value mine = below(row, space.rows(0, kernel.getContext()));
  if (isa<PagedKvUpdateOp>(update)) {
    auto [token, head] = split(row, rows.shape[1]);
    Value slot = numbers(update->getOperand(2), token, mine);
    Value isSlot = below(slot, cache.shape[0] * cache.shape[1]);
    check([&] { return implied(mine, orLeftOut(isSlot, slot)); },
          "paged_kv_update: an entry of 'slots' is beyond the cache");
    Value inside = both(mine, isSlot);
    // Pages follow each other.
    Places places{offset({{token, rows.strides[0]}, {head, rows.strides[1]}}),
                  offset({{slot, cache.strides[1]}, {head, cache.strides[2]}}),
                  inside};
    if (scales)
      places.toScales =
          offset({{slot, scales->strides[1]}, {head, scales->strides[2]}});
    return places;
  }
  auto [line, place] = split(row, rows.shape[2]);
  auto [sequence, head] = split(line, rows.shape[1]);
  Value at = add(numbers(update->getOperand(2), sequence, mine), place);
  Value isRow = below(at, cache.shape[2]);
  check([&] { return implied(mine, isRow); },
        "kv_update: 'pos' has rows beyond the cache");
  return {offset({{sequence, rows.strides[0]},
                  {head, rows.strides[1]},
                  {place, rows.strides[2]}}),
          offset({{sequence, cache.strides[0]},
                  {head, cache.strides[1]},
                  {at, cache.strides[2]}}),
          both(mine, isRow)};
}

void UpdateEmitter::emit(Value index) {
  int64_t count = config.rows[0], width = config.columns;
  Tensor rows = input(update->getOperand(1)),
         cache = input(update->getOperand(0));
  int64_t group = 0;
  if (auto paged = dyn_cast<PagedKvUpdateOp>(update);
      paged && paged.getScales()) {
    scales = input(paged.getScales());
    group = groupOfScales(paged.getCache(), paged.getScales());
  }
  Value first = mul(index, i32(count));
  Value row = add(splat(first, {count}), iota({count}, 0));
  Places at = places(rows, cache, row);
  /// Pointers to a tensor's elements of so many columns, and which there are.
  auto elements = [&](const Tensor &tensor, Value offsets, int64_t columns) {
    Value column = iota({count, columns}, 1);
    Value mask = perRow(at.inside, columns);
    if (tensor.shape.back() != fixed(columns))
      mask = both(mask, below(column, splat(small(tensor.shape.back()),
                                            {count, columns})));
    Value lines = advance(tensor.pointer, perRow(offsets, columns));
    return std::pair(advance(lines, column), mask);
  };
  auto storeAt = [&](Value v, const Tensor &tensor, Value offsets) {
    auto [pointers, mask] = elements(tensor, offsets, shapeOf(v)[1]);
    tile::StoreScatteredOp::create(b, v, pointers, mask);
  };
  auto [pointers, mask] = elements(rows, at.from, width);
  Value moved = gather(block({count, width}, rows.element), pointers, mask);
  if (!scales)
    return storeAt(moved, cache, at.to);
  auto [y, stored] = quantised(extend(moved), group);
  storeAt(y, cache, at.to);
  storeAt(stored, *scales, at.toScales);
}

std::unique_ptr<Emitter>
greta::makeUpdateEmitter(const EmitterContext &context) {
  return std::make_unique<UpdateEmitter>(context);
}
