//===- GretaToTileUpdate.cpp - new rows of a KV cache ---------------------===//
//
// In: greta.kv_update or paged_kv_update. Out: a block program in which every
// workgroup takes some of the new rows, all heads' counted through, and stores
// each where its position or slot says; rows beyond the cache nowhere. The
// cache is written in place.
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

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
  /// The offsets of every row, in a block of i64: its place, and its
  /// destination.
  struct Places {
    Value from, to, inside;
  };
  Places places(const Tensor &rows, const Tensor &cache, Value row);
  Value numbers(Value table, Value index, Value mask);
  Value offset(ArrayRef<std::pair<Value, AffineExpr>> terms);

  Operation *update;
};
} // namespace

/// The positions or slots of rows.
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
    return {offset({{token, rows.strides[0]}, {head, rows.strides[1]}}),
            offset({{slot, cache.strides[1]}, {head, cache.strides[2]}}),
            inside};
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
  Value first = mul(index, i32(b, count));
  Value row = add(splat(first, {count}), iota({count}, 0));
  auto [from, to, inside] = places(rows, cache, row);
  Value column = iota({count, width}, 1);
  Value mask = perRow(inside, width);
  if (rows.shape.back() != fixed(width))
    mask = both(mask, compare(Predicate::slt, column,
                              splat(small(rows.shape.back()), {count, width})));
  auto elements = [&](const Tensor &tensor, Value offsets) -> Value {
    Value lines = advance(tensor.pointer, perRow(offsets, width));
    return advance(lines, column);
  };
  Value moved =
      gather(block({count, width}, rows.element), elements(rows, from), mask);
  tile::StoreScatteredOp::create(b, moved, elements(cache, to), mask);
}

std::unique_ptr<Emitter>
greta::makeUpdateEmitter(const EmitterContext &context) {
  return std::make_unique<UpdateEmitter>(context);
}
