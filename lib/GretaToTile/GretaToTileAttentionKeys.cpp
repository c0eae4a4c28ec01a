//===- GretaToTileAttentionKeys.cpp - keys, values and their scales -------===//
//
// An iteration of attention loads a tile of keys, transposed, and one of
// values, from tensors or through a table of pages. Narrower types become
// numbers of the queries' type, which are multiplied.
//
// Their scales are in f32, and there are far fewer logits than elements: a
// key's scale multiplies its column of logits, a value's its column of weights.
// A scale that is the same for all of a head's values multiplies the result.
// Otherwise a weight is rounded with its scale, which may be too small for f16;
// so it is relative to the largest scale so far, the unit, and sums from before
// a larger one comes fall by as much:
//
//   u'  = max(u, max |s|)
//   acc = a (u / u') acc + (p s / u') v          result = u acc / l
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// Returns the facts about an iteration's keys. Loads have no mask if all keys
/// are valid, or if the last valid key is loaded again in place of others, so
/// that the loop has no branch on Vulkan.
AttentionEmitter::Paged AttentionEmitter::pagesOf(Value key, bool isMasked,
                                                  bool repeatsLast) {
  Tensor pages = input(table);
  SmallVector<int64_t> shape = {span()};
  Paged paged;
  paged.at = add(splat(key, shape), iota(shape, 0));
  if (repeatsLast)
    paged.at = least(paged.at, splat(sub(valid, i32(1)), shape));
  else if (isMasked)
    paged.isValid = below(paged.at, splat(valid, shape));
  Value page = splat(small(input(k).shape[1]), shape);
  Value line = moved(pages.pointer, {{sequence, pages.strides[0]}});
  paged.entry = gather(paged.at.getType(), advance(line, div(paged.at, page)),
                       paged.isValid);
  return paged;
}

/// Returns the offsets of an iteration's keys in a cache, or in its scales. An
/// entry that names no page is clamped to one, since an unchecked read may not
/// leave the cache.
Value AttentionEmitter::offsetsIn(const Tensor &gathered, const Paged &paged) {
  const Tensor &cache = keyRows;
  SmallVector<int64_t> shape = {span()};
  auto offset = [&](Value index, unsigned dim) -> Value {
    auto wide = block(shape, b.getI64Type());
    AffineExpr stride =
        gathered.shape[dim] == fixed(1) ? fixed(0) : gathered.strides[dim];
    return mul(arith::ExtUIOp::create(b, wide, index),
               splat(large(stride), shape));
  };
  Value last = splat(sub(small(cache.shape[0]), i32(1)), shape);
  Value page = splat(small(cache.shape[1]), shape);
  return add(offset(minU(paged.entry, last), 0),
             offset(rem(paged.at, page), 1));
}

/// Checks the table in a checked function. This is done before the loops, which
/// stay as they are.
void AttentionEmitter::checkTable(const Range &range) {
  if (!table || !isChecked())
    return;
  loopOver(range.begin, range.end, span(), {}, [&](Value key, ValueRange) {
    Paged paged = pagesOf(key, /*isMasked=*/true, /*repeatsLast=*/false);
    Value inside = compare(Predicate::ult, paged.entry,
                           splat(small(input(k).shape[0]), {span()}));
    tile::AssertOp::create(
        b, implied(paged.isValid, inside),
        "paged_attention: an entry of 'table' names no page");
    return SmallVector<Value>();
  });
}

/// Loads a block of keys by `columns` elements of a row, or its transpose.
Value AttentionEmitter::loadPages(const Tensor &cache, int64_t columns,
                                  bool isTransposed) {
  SmallVector<int64_t> shape = {span(), columns};
  if (isTransposed)
    std::swap(shape[0], shape[1]);
  auto along = [&](Value perKey) {
    return isTransposed ? perColumn(perKey, columns) : perRow(perKey, columns);
  };
  Value lines =
      advance(cache.pointer, along(offsetsIn(cache, keysOfIteration)));
  Value column = iota(shape, isTransposed ? 0 : 1);
  Value mask =
      keysOfIteration.isValid ? along(keysOfIteration.isValid) : Value();
  if (cache.shape.back() != fixed(columns)) {
    Value isElement = below(column, splat(small(cache.shape.back()), shape));
    mask = mask ? both(mask, isElement) : isElement;
  }
  return gather(block(shape, cache.element), advance(lines, column), mask);
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// Converts a block to the type of queries, which holds all of its numbers.
Value AttentionEmitter::widened(Value v) {
  Type element = queryType.getElementType(), own = getElementTypeOrSelf(v);
  if (own == element)
    return v;
  auto wide = block(shapeOf(v), element);
  if (own.isInteger())
    return arith::SIToFPOp::create(b, wide, v);
  return arith::ExtFOp::create(b, wide, v);
}

/// Multiplies the numbers of a cache by the scales of their groups. The
/// products are rounded once.
Value AttentionEmitter::scaledByGroup(Value v, Value scales, int64_t group,
                                      bool isTransposed) {
  Type element = queryType.getElementType();
  Type wide = element.isF16() ? element : b.getF32Type();
  Value factor =
      loadPages(ofKeyHead(input(scales)), size() / group, isTransposed);
  factor = reshape(repeat(factor, isTransposed ? 1 : 2, group), shapeOf(v));
  Value number = arith::SIToFPOp::create(b, block(shapeOf(v), wide), v);
  if (!element.isF16())
    factor = extend(factor);
  return narrow(fmul(number, factor), element);
}

/// Loads rows of a cache with pages, in the type of queries.
Value AttentionEmitter::loadRows(const Tensor &cache, Value groupScales,
                                 int64_t group, bool isTransposed) {
  Value rows = loadPages(cache, size(), isTransposed);
  return group ? scaledByGroup(rows, groupScales, group, isTransposed)
               : widened(rows);
}

/// Loads the keys of an iteration as a block [D, keys].
Value AttentionEmitter::loadKeys(Value key, bool isMasked) {
  if (table)
    return loadRows(keyRows, kScale, keyGroup, /*isTransposed=*/true);
  RowsPlace place = placeOf(keyRows, span(), key, isMasked ? valid : Value());
  std::reverse(place.shape.begin(), place.shape.end());
  std::reverse(place.dims.begin(), place.dims.end());
  return widened(load(keyRows, place));
}

/// Loads the values of an iteration as a block [keys, D].
Value AttentionEmitter::loadValues(Value key, bool isMasked) {
  if (table)
    return loadRows(valueRows, vScale, valueGroup, /*isTransposed=*/false);
  return widened(load(
      valueRows, placeOf(valueRows, span(), key, isMasked ? valid : Value())));
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Moves a tensor of keys, or of pages, to this workgroup's head.
AttentionEmitter::Tensor AttentionEmitter::ofKeyHead(const Tensor &tensor) {
  return table ? from(tensor, {{2, keyHead}}) : headOf(tensor, keyHead);
}

/// Returns a pointer to the scales of this workgroup's keys, or the one scale
/// that all have.
Value AttentionEmitter::scalesOfHead(Value scales) {
  Value pointer = ofKeyHead(input(scales)).pointer;
  return differByKey(space.alone, scales) ? pointer
                                          : loadScalar(pointer, i32(0));
}

/// Loads the scales of an iteration's keys.
Value AttentionEmitter::loadScales(Value scales, Value pointer, Value key,
                                   bool isMasked) {
  Tensor tensor = input(scales);
  auto type = block({span()}, tensor.element);
  if (!table)
    return load(type, pointer,
                {{key, tensor.strides[2], isMasked ? valid : Value()}});
  return gather(type, advance(pointer, offsetsIn(tensor, keysOfIteration)),
                keysOfIteration.isValid);
}

/// Broadcasts the numbers of an iteration's tiles to blocks of `shape`.
Value AttentionEmitter::perTile(Value v, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> all = ofIteration(shape), ones(all.size(), 1);
  ones.front() = together;
  return broadcast(reshape(v, ones), all);
}

/// Returns the factors of the logits' columns.
Value AttentionEmitter::columnScales(Value key, bool isMasked) {
  if (!differByKey(space.alone, kScale))
    return splat(keyScales, ofIteration({rows, keys}));
  return apart(perColumn(loadScales(kScale, keyScales, key, isMasked), rows),
               1);
}

Value AttentionEmitter::firstUnit() {
  if (!differByKey(space.alone, vScale))
    return {};
  return constant({together}, 0x1p-126); // what can be divided by
}

/// Returns the next unit of the result, the factors of weights in it, and the
/// factor of the result so far.
std::tuple<Value, Value, Value>
AttentionEmitter::scalesOfIteration(Value unit, Value fall, Value key,
                                    bool isMasked) {
  Value scales =
      reshape(loadScales(vScale, valueScales, key, isMasked), {together, keys});
  Value largest = maxOf(math::AbsFOp::create(b, scales), 1);
  Value next = arith::MaxNumFOp::create(b, unit, largest, noNaN);
  Value relative = fdiv(scales, perRow(next, keys));
  SmallVector<int64_t> ofTile = ofIteration({1, keys});
  // Exactly 1 where the unit stays, which a quotient need not be.
  Value stays = compare(FPredicate::OEQ, unit, next);
  Value less = select(stays, constant({together}, 1), fdiv(unit, next));
  return {next, broadcast(reshape(relative, ofTile), ofIteration({rows, keys})),
          fmul(fall, perTile(less, {rows}))};
}

/// Returns the result of this workgroup's keys, or of each tile's, in the units
/// of values.
Value AttentionEmitter::scaledResult(const State &state) {
  SmallVector<int64_t> shape = {rows, size()};
  Value scale = state.unit ? perTile(state.unit, shape)
                           : splat(valueScales, ofIteration(shape));
  return fmul(state.acc, scale);
}
