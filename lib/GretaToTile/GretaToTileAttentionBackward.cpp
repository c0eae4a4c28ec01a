//===- GretaToTileAttentionBackward.cpp - gradients as block programs -----===//
//
// In: greta.attention_backward, in a kernel for the gradient of the queries or
// in one for those of keys and values, with a tile of what is computed and one
// of what the loop goes over. Out: the two programs, which are one with the
// roles exchanged. With x and y of a tile's own rows, and u and w of the
// others'
//
//                        x    y    u    w
//   gradient of queries  q    do   k    v
//   of keys and values   k    v    q    do
//
//   dx, dy = 0
//   for each tile of others that its rows meet
//     p   = exp(scale * x u^T, capped, + mask, - lse), 0 where they do not meet
//     ds  = p * (y w^T - delta), times the slope of the cap
//     dx += ds u
//     dy += p w                                  of keys and values alone
//   store scale * dx, and dy
//
// where lse and delta, the sum of do * o, are of the row that is a query's. So
// a dot's A is always what another left in registers, or stays there, and no
// two workgroups add to one place. Keys and values go over all query heads that
// read them. The loop is in up to three parts, as attention's:
//
//   diagonal, or window's edge | all meet all | window's edge, or the end
//
// If own rows lie in shared memory it is one loop, over all heads, too.
//
// A row of queries beyond the end is zero, with its lse and delta, so that it
// adds nothing; a key beyond the end has a gradient of its own, which is not
// stored, or stored as zero.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;

namespace {
class AttentionBackwardEmitter : public AttentionProgram {
public:
  explicit AttentionBackwardEmitter(const EmitterContext &context)
      : AttentionProgram(context), op(cast<AttentionBackwardOp>(space.alone)),
        ofKeys(isOfKeys(op)), queryDim(ofKeys ? 1 : 0), own(config.rows[2]),
        others(config.depth) {
    take(op);
    shared = queryType.getDimSize(1) /
             op.getK().getType().getDimSize(isTokensFirst ? 2 : 1);
  }
  AffineExpr workgroups() override {
    return space.shape[0] * space.shape[1] * space.shape[2].ceilDiv(own);
  }
  void emit(Value index) override;

private:
  /// Two tensors with rows of one head, and the number of these rows.
  struct Rows {
    Tensor first, second;
    Value count;
  };
  /// Blocks of both tensors, or sums for both.
  struct Tile {
    Value first, second;
    std::array<Value *, 2> fields() { return {&first, &second}; }
  };
  void locate(Value index);
  Rows rowsOf(Value first, Value second, Value head) {
    Tensor ofFirst = headsFirst(input(first));
    return {headOf(ofFirst, head), headOf(headsFirst(input(second)), head),
            small(ofFirst.shape[2])};
  }
  void locateQueries(Value head);
  Value load(const Tensor &tensor, int64_t extent, Value at, Value bound) {
    return AttentionProgram::load(tensor, placeOf(tensor, extent, at, bound));
  }
  Tile load(const Rows &rows, int64_t extent, Value at, bool isBounded);
  Value sumsOfOwn();
  Value toUnits(Value lse);
  Value alongRows(Value numbers);
  Value loadMask(Value at);
  Value ofMet(Value weights, Value at);
  using Masking = llvm::function_ref<Value(Value weights)>;
  Tile visitTile(Value at, bool isBounded, Masking masked, Tile sums);
  Tile visit(Value from, Value to, bool isBounded, bool isMasked, Tile sums);
  Tile visitHead(const Range &range, Tile sums);
  Tile visitTogether(const Range &range, Tile sums);
  Tile visitHeads(Tile sums);
  Value ofValid(Value sums);
  void finish(Tile sums);

  Type element() const { return queryType.getElementType(); }
  /// The factor of weights and slopes. With it more of the small ones are
  /// normal numbers in f16; gfx90a's matrix unit takes others for zero. Slopes
  /// up to 4094 do not overflow.
  double headroom() const { return element().isF16() ? 16 : 1; }
  Value times(Value x, double factor) {
    return fmul(x, like(x, factor), contract);
  }
  AttentionBackwardOp op;
  bool ofKeys;
  unsigned queryDim;   // of a block of logits
  int64_t own, others; // rows of a tile

  // This workgroup: its first row, and the sequence's queries.
  Value first, queries;
  Rows ownRows, otherRows;
  Tensor sumsOfRows, deltaOfRows, maskOfHead; // of a query head
  Tile tile;                                  // of its own rows
  Value lse, delta;                           // of them, if they are queries
};
} // namespace

/// Finds this workgroup's head and tile. In causal attention the tiles with the
/// most work come first: the last queries, the first keys.
void AttentionBackwardEmitter::locate(Value index) {
  Value ofHead = small(space.shape[2].ceilDiv(own));
  Value number = rem(index, ofHead);
  Value rest = div(index, ofHead);
  if (causal && !ofKeys)
    number = sub(sub(ofHead, i32(1)), number);
  Value heads = small(space.shape[1]), by = i32(shared);
  sequence = div(rest, heads);
  Value head = rem(rest, heads);
  queryHead = ofKeys ? mul(head, by) : head;
  keyHead = ofKeys ? head : div(head, by);
  first = mul(number, i32(own));
  assumeBelow(first, small(space.shape[2]));
  Rows keys = rowsOf(k, v, keyHead);
  keys.count = valid = validKeys(
      keys.count,
      "attention_backward: 'lengths' is negative, or beyond the keys");
  queries = small(headsFirst(input(q)).shape[2]);
  shift = sub(valid, queries);
  (ofKeys ? ownRows : otherRows) = keys;
}

void AttentionBackwardEmitter::locateQueries(Value head) {
  (ofKeys ? otherRows : ownRows) = rowsOf(q, op.getDO(), head);
  sumsOfRows = headOf(input(op.getLse()), head);
  Tensor delta = input(op.getO());
  deltaOfRows =
      headOf(delta.shape.size() == 4 ? headsFirst(delta) : delta, head);
  if (mask)
    maskOfHead = headOf(input(mask), head);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

AttentionBackwardEmitter::Tile AttentionBackwardEmitter::load(const Rows &rows,
                                                              int64_t extent,
                                                              Value at,
                                                              bool isBounded) {
  Value bound = isBounded ? rows.count : Value();
  return {load(rows.first, extent, at, bound),
          load(rows.second, extent, at, bound)};
}

/// Returns delta of own queries, loaded or computed from the result. It takes
/// blocks of its own, since those of the dots have the dots' layouts.
Value AttentionBackwardEmitter::sumsOfOwn() {
  Value loaded = load(deltaOfRows, own, first, ownRows.count);
  if (deltaOfRows.shape.size() == 3)
    return loaded;
  Value factor = load(ownRows.second, own, first, ownRows.count);
  return sumOf(fmul(extend(loaded), extend(factor), contract), 1);
}

/// Converts a row's log-sum-exp to the number that is subtracted from its
/// logits. Without a mask it is in units of log 2; with one, logits close to
/// the largest float would overflow in these. It is less by the logarithm of
/// `headroom`, which makes weights larger.
Value AttentionBackwardEmitter::toUnits(Value lse) {
  lse = finite(lse);
  Value units = mask ? lse : times(lse, log2e);
  if (headroom() == 1)
    return units;
  double more = std::log2(headroom()) / (mask ? log2e : 1);
  return fsub(units, like(units, more), contract);
}

/// Repeats a number of each query along the keys.
Value AttentionBackwardEmitter::alongRows(Value numbers) {
  return ofKeys ? perColumn(numbers, own) : perRow(numbers, others);
}

/// Loads the values of the mask, which are added to logits.
Value AttentionBackwardEmitter::loadMask(Value at) {
  SmallVector<int64_t> shape = {own, others};
  Dim dims[] = {{first, maskOfHead.strides[queryDim + 2], ownRows.count},
                {at, maskOfHead.strides[3 - queryDim], otherRows.count}};
  if (maskOfHead.shape[2] == fixed(1)) { // one row for all queries
    shape[queryDim] = 1;
    dims[queryDim] = {Value(), maskOfHead.strides[2], Value()};
  }
  Value loaded = BlockProgram::load(block(shape, maskOfHead.element),
                                    maskOfHead.pointer, dims);
  return extend(broadcast(loaded, {own, others}));
}

//===----------------------------------------------------------------------===//
// The loops
//===----------------------------------------------------------------------===//

/// Returns the weights, with 0 for keys that a query does not see.
Value AttentionBackwardEmitter::ofMet(Value weights, Value at) {
  SmallVector<int64_t> shape = {own, others};
  Value meets = seen(
      iota(shape, 1 - queryDim), [&] { return iota(shape, queryDim); },
      ofKeys ? first : at, ofKeys ? at : first);
  return select(meets, weights, constant(shape, 0));
}

AttentionBackwardEmitter::Tile
AttentionBackwardEmitter::visitTile(Value at, bool isBounded, Masking masked,
                                    Tile sums) {
  assumeBelow(at, otherRows.count);
  // In shared memory, where they do not fit in registers.
  if (config.loop)
    tile = load(ownRows, own, first, /*isBounded=*/true);
  Tile other = load(otherRows, others, at, isBounded);
  // Loaded before the products, which hide how long that takes.
  Value added = mask ? loadMask(at) : Value();
  Value rowLse = lse, rowDelta = delta;
  if (ofKeys) {
    Value bound = isBounded ? otherRows.count : Value();
    rowLse = toUnits(load(sumsOfRows, others, at, bound));
    rowDelta = load(deltaOfRows, others, at, bound);
  }
  SmallVector<int64_t> shape = {own, others};
  auto multiply = [&](Value x, Value rows) -> Value {
    return tile::DotOp::create(b, block(shape, b.getF32Type()), x,
                               transpose(rows, {1, 0}), constant(shape, 0),
                               nullptr);
  };
  auto minus = [&](Value x, Value numbers) -> Value {
    return fsub(x, alongRows(numbers), contract);
  };
  Value x = multiply(tile.first, other.first), slope;
  double factor = scale;
  if (softcap) {
    x = math::TanhOp::create(b, times(x, scale / *softcap));
    slope = fsub(constant(shape, 1), fmul(x, x, contract), contract);
    factor = *softcap;
  }
  if (mask)
    x = times(minus(fadd(times(x, factor), added), rowLse), log2e);
  else
    x = minus(times(x, factor * log2e), rowLse);
  Value weights = masked(math::Exp2Op::create(b, x, Flags::afn));
  auto sum = [&](Value factors, Value rows, Value acc) -> Value {
    return tile::DotOp::create(b, acc.getType(),
                               narrow(factors, element(), Flags::afn), rows,
                               acc, nullptr);
  };
  Value slopes;
  if (sums.first) {
    slopes =
        fmul(weights, minus(multiply(tile.second, other.second), rowDelta));
    if (slope)
      slopes = fmul(slopes, slope);
  }
  if (sums.second)
    sums.second = sum(weights, other.second, sums.second);
  if (sums.first)
    sums.first = sum(slopes, other.first, sums.first);
  return sums;
}

AttentionBackwardEmitter::Tile
AttentionBackwardEmitter::visit(Value from, Value to, bool isBounded,
                                bool isMasked, Tile sums) {
  return carry<Tile>(from, to, others, sums, [&](Value at, Tile sums) {
    auto masked = [&](Value weights) {
      return isMasked ? ofMet(weights, at) : weights;
    };
    return visitTile(at, isBounded, masked, sums);
  });
}

AttentionBackwardEmitter::Tile
AttentionBackwardEmitter::visitHead(const Range &range, Tile sums) {
  // Keys beyond the end are no rows of others, and as own ones are not stored.
  bool isEndMasked = !ofKeys || keysBefore();
  if (ofKeys ? keysBehind() : keysBefore())
    sums = visit(range.begin, least(range.wholeBegin, range.end),
                 /*isBounded=*/true, /*isMasked=*/true, sums);
  sums = visit(range.wholeBegin, range.wholeEnd, /*isBounded=*/false,
               /*isMasked=*/false, sums);
  return visit(range.wholeEnd, range.end, /*isBounded=*/true, isEndMasked,
               sums);
}

/// Emits one loop over all tiles of all heads. Own rows are stored to shared
/// memory before it. A branch of the workgroup masks tiles that are seen in
/// part.
AttentionBackwardEmitter::Tile
AttentionBackwardEmitter::visitTogether(const Range &range, Tile sums) {
  int64_t heads = ofKeys ? shared : 1;
  Value step = i32(others), count = i32(heads);
  Value begin = div(range.begin, step);
  Value end = div(add(range.end, i32(others - 1)), step);
  return carry<Tile>(mul(begin, count), mul(end, count), 1, sums,
                     [&](Value iteration, Tile sums) {
                       if (ofKeys)
                         locateQueries(add(queryHead, rem(iteration, count)));
                       Value at = mul(div(iteration, count), step);
                       auto masked = [&](Value weights) {
                         return maskPartial(
                             weights, at, range,
                             (ofKeys ? keysBehind() : keysBefore()).has_value(),
                             !ofKeys || keysBefore(),
                             [&] { return ofMet(weights, at); });
                       };
                       return visitTile(at, /*isBounded=*/true, masked, sums);
                     });
}

AttentionBackwardEmitter::Tile AttentionBackwardEmitter::visitHeads(Tile sums) {
  if (!config.loop)
    tile = load(ownRows, own, first, /*isBounded=*/true);
  Value stands = ofKeys ? sub(first, shift) : add(first, shift);
  Value last = add(stands, i32(own - 1));
  if (!ofKeys) {
    Range keys = range(stands, last, keysBefore(), keysBehind(), valid, others);
    return config.loop ? visitTogether(keys, sums) : visitHead(keys, sums);
  }
  // No row sees keys beyond the valid ones.
  Value count = queries;
  if (lengths)
    count = select(below(first, valid), count, i32(0));
  Range rows = range(stands, last, keysBehind(), keysBefore(), count, others);
  if (config.loop)
    return visitTogether(rows, sums);
  if (shared == 1) {
    locateQueries(queryHead);
    return visitHead(rows, sums);
  }
  return carry<Tile>(i32(0), i32(shared), 1, sums, [&](Value head, Tile sums) {
    locateQueries(add(queryHead, head));
    return visitHead(rows, sums);
  });
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Replaces the sums of keys that are not valid by zero.
Value AttentionBackwardEmitter::ofValid(Value sums) {
  if (!ofKeys || !lengths)
    return sums;
  ArrayRef<int64_t> shape = shapeOf(sums);
  Value isValid = below(iota(shape, 0), splat(sub(valid, first), shape));
  return select(isValid, sums, constant(shape, 0));
}

/// Stores the results that the op has.
void AttentionBackwardEmitter::finish(Tile sums) {
  Value ofRows[] = {sums.first, sums.first, sums.second, delta};
  OperandRange yielded = region.front().getTerminator()->getOperands();
  for (auto [i, value] : llvm::enumerate(yielded)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    Value result = ofRows[number];
    if (!result)
      continue;
    bool hasColumns = number < 3;
    if (double factor = (number < 2 ? scale : 1) / headroom();
        hasColumns && factor != 1)
      result = times(result, factor);
    if (hasColumns)
      result = narrow(ofValid(result), element());
    Tensor tensor = hasColumns ? outputOfHeads(i, space.shape)
                               : output(i, ArrayRef(space.shape).drop_back());
    RowsPlace place = placeOf(tensor, own, first, small(space.shape[2]));
    store(result, headOf(tensor, ofKeys ? keyHead : queryHead).pointer,
          place.dims);
  }
}

void AttentionBackwardEmitter::emit(Value index) {
  locate(index);
  if (!ofKeys) {
    locateQueries(queryHead);
    lse = toUnits(load(sumsOfRows, own, first, ownRows.count));
    delta = sumsOfOwn();
  }
  Value zero = constant({own, size()}, 0);
  if (ofKeys && config.loop) {
    // Registers that have no room for own rows have none for both sums.
    finish(visitHeads({zero, Value()}));
    finish(visitHeads({Value(), zero}));
  } else if (ofKeys) {
    finish(visitHeads({zero, zero}));
  } else {
    finish(op.getDq().use_empty() ? Tile() : visitHeads({zero, Value()}));
  }
}

std::unique_ptr<Emitter>
greta::makeAttentionBackwardEmitter(const EmitterContext &context) {
  return std::make_unique<AttentionBackwardEmitter>(context);
}
