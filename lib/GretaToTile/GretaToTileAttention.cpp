//===- GretaToTileAttention.cpp - attention as a block program ------------===//
//
// In: greta.attention or paged_attention with a tile of queries and one of
// keys. Out: a workgroup takes a tile of queries of one head, or of all heads
// that read the same keys, and passes over the keys once:
//
//   m, l, acc = -inf, 0, 0                    a row's maximum, sum, result
//   for each tile of keys
//     x     = scale * q k^T, capped; + mask; -inf where a row does not see it
//     m'    = max x - 7 log 2 where exp(that - m) is more than 2^8, else m
//     p     = exp(x - m'), a = exp(m - m')
//     l     = a l + sum p
//     acc   = a acc + p v
//   result = acc / l; zero where l is
//
// So a weight p is at most 2^15, and after the first tiles hardly any maximum
// moves: where none of a wave's does, it rescales nothing. The largest is 2^7
// or more, so that f16 has more of the small ones as normal numbers (gfx90a's
// matrix unit takes others for zero).
//
// Rows and keys are numbered by the op's definition: row i stands at key
// i + n - S, n the sequence's valid keys. Tiles that no row sees are not
// visited; the loop is in up to three parts, of which the middle one, whose
// tiles every row sees whole, compares no index:
//
//   window's edge | all see all | diagonal, or the end
//
// If queries lie in shared memory it is one loop, as they would be stored
// for each, with a branch around the comparisons; of few queries and paged keys
// it is one, too.
//
// A scale of keys multiplies x, one of values p, in acc's unit (below).
//
// A logit is kept in units of log 2, whose power is one instruction, but with a
// mask: what is close to the largest float must not overflow.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"
#include "GretaTile/LoopAttributes.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;

AttentionEmitter::AttentionEmitter(const EmitterContext &context)
    : AttentionProgram(context), tileRows(config.rows[2]),
      rows(config.rows[1] * tileRows), keys(config.depth),
      together(config.unroll), waves(b.getInsertionBlock()
                                         ->getParent()
                                         ->getParentOfType<tile::FuncOp>()
                                         .getWaves()) {
  auto takeAll = [&](auto op) {
    take(op);
    sinks = op.getSinks();
    kScale = op.getKScale();
    vScale = op.getVScale();
  };
  if (auto op = dyn_cast<AttentionOp>(space.alone)) {
    takeAll(op);
    keyHeads = op.getK().getType().getDimSize(1);
  } else {
    auto paged = cast<PagedAttentionOp>(space.alone);
    takeAll(paged);
    k = paged.getKCache();
    v = paged.getVCache();
    table = paged.getTable();
    begins = paged.getBegins();
    if (begins) {
      unsigned number = cast<BlockArgument>(lengths).getArgNumber();
      auto shape = cast<AffineMapAttr>(kernel.getShapes()[number]);
      sequences = shape.getValue().getResult(0);
    }
    causal = true;
    keyHeads = paged.getKCache().getType().getDimSize(2);
    keyGroup = groupOfScales(k, kScale);
    valueGroup = groupOfScales(v, vScale);
  }
  shared = queryType.getDimSize(1) / keyHeads;
}

AffineExpr AttentionEmitter::workgroups() { return tiles() * parts(); }

/// Finds this workgroup's head and tile. Tiles of a head follow each other, so
/// that its keys are in the cache. In causal attention the tile with the most
/// keys comes first.
void AttentionEmitter::locate(Value index) {
  if (begins && isChecked())
    checkAscending(
        index, small(sequences), small(queries()),
        [&](Value number, int64_t more) {
          return beginOf(more ? add(number, i32(more)) : number);
        },
        "paged_attention: 'begins' do not ascend from 0, or are beyond the "
        "rows");
  tileNumber = index;
  if (config.split > 1) {
    Value count = small(parts());
    part = rem(index, count);
    tileNumber = div(index, count);
  }
  Value ofHead = small(tilesOfHead());
  Value tile = rem(tileNumber, ofHead);
  Value rest = div(tileNumber, ofHead), group = rest;
  if (begins) {
    tile = tileOfSlot(tile);
  } else {
    rowCount = small(queries());
    if (causal)
      tile = sub(sub(ofHead, i32(1)), tile);
    Value groups = i32(headGroups());
    sequence = div(rest, groups);
    group = rem(rest, groups);
  }
  bool takesAll = headsOfTile() > 1;
  Value by = i32(shared);
  keyHead = takesAll ? group : div(group, by);
  queryHead = takesAll ? mul(group, by) : group;
  row = mul(tile, i32(tileRows));
  assumeBelow(row, rowCount);

  Tensor keyTensor = input(k), valueTensor = input(v);
  queryRows = rowsOf(queryTensor());
  // A cache without pages has no keys.
  Value zero = table ? i32(0) : Value();
  valid = table ? select(equal(small(keyTensor.shape[0]), zero), zero,
                         small(input(table).shape[1] * keyTensor.shape[1]))
                : small(keyTensor.shape[2]);
  keyRows = ofKeyHead(keyTensor);
  valueRows = ofKeyHead(valueTensor);
  if (kScale && !keyGroup)
    keyScales = scalesOfHead(kScale);
  if (vScale && !valueGroup)
    valueScales = scalesOfHead(vScale);
  if (mask)
    maskRows = headOf(input(mask), queryHead);
  valid = validKeys(
      valid, table
                 ? "paged_attention: 'lengths' is negative, or beyond the table"
                 : "attention: 'lengths' is negative, or beyond the keys");
  shift = sub(valid, rowCount);
}

AttentionProgram::Tensor AttentionProgram::from(Tensor tensor,
                                                ArrayRef<Index> indices) {
  SmallVector<Move> moves;
  for (auto [dim, index] : indices)
    if (tensor.shape[dim] != fixed(1))
      moves.push_back({index, tensor.strides[dim]});
  tensor.pointer = moved(tensor.pointer, moves);
  return tensor;
}

Value AttentionProgram::validKeys(Value all, StringRef problem) {
  if (!lengths)
    return all;
  Value length = gather(b.getI32Type(),
                        advance(input(lengths).pointer, sequence), isSequence);
  check([&] { return compare(Predicate::ule, length, all); }, problem);
  return least(all, most(i32(0), length));
}

AttentionProgram::Range AttentionProgram::range(Value first, Value last,
                                                std::optional<int64_t> before,
                                                std::optional<int64_t> behind,
                                                Value limit, int64_t step) {
  Value zero = i32(0), extent = i32(step);
  auto whole = [&](Value x) { // tiles below x, as places
    return mul(div(most(x, zero), extent), extent);
  };
  auto after = [&](Value x, int64_t distance) {
    return distance ? add(x, i32(distance)) : x;
  };
  Value end = limit, wholeEnd = limit;
  if (behind) {
    end = least(end, after(last, *behind + 1));
    wholeEnd = least(wholeEnd, after(first, *behind + 1));
  }
  end = most(end, zero);
  if (!before)
    return {zero, zero, whole(wholeEnd), end};
  Value begin = whole(after(first, -*before));
  // Tiles from the first that begins where the last one's do.
  Value wholeBegin = most(whole(after(last, step - 1 - *before)), begin);
  return {begin, wholeBegin, most(whole(wholeEnd), wholeBegin), end};
}

AttentionEmitter::Range AttentionEmitter::keysOfRows() {
  Value first = add(row, shift); // where the first row stands
  Value last = add(first, i32(tileRows - 1));
  return range(first, last, keysBefore(), keysBehind(), valid, span());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Value AttentionProgram::maskPartial(Value block, Value at, const Range &range,
                                    bool atBegin, bool atEnd,
                                    llvm::function_ref<Value()> masked) {
  Value isPartial;
  if (atBegin)
    isPartial = below(at, range.wholeBegin);
  if (atEnd) {
    Value isLast = compare(Predicate::sge, at, range.wholeEnd);
    isPartial = isPartial ? either(isPartial, isLast) : isLast;
  }
  if (!isPartial)
    return block;
  auto branch = scf::IfOp::create(
      b, isPartial,
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, masked()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, block); });
  return branch.getResult(0);
}

AttentionProgram::Tensor AttentionProgram::headsFirst(Tensor tensor) const {
  if (isTokensFirst) {
    std::swap(tensor.shape[1], tensor.shape[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  }
  return tensor;
}

AttentionProgram::Tensor
AttentionProgram::outputOfHeads(unsigned number, ArrayRef<AffineExpr> shape) {
  SmallVector<AffineExpr> inMemory(shape);
  if (isTokensFirst)
    std::swap(inMemory[1], inMemory[2]);
  return headsFirst(output(number, inMemory));
}

AttentionProgram::RowsPlace AttentionProgram::placeOf(const Tensor &tensor,
                                                      int64_t rows, Value at,
                                                      Value bound) {
  RowsPlace place{{rows}, {{at, tensor.strides[2], bound}}};
  if (tensor.shape.size() == 4) {
    place.shape.push_back(size());
    place.dims.push_back(columns(tensor.strides[3]));
  }
  return place;
}

/// Returns the place of this workgroup's rows, head by head.
AttentionProgram::RowsPlace
AttentionEmitter::placeOfRows(const Tensor &tensor) {
  RowsPlace place = placeOf(tensor, tileRows, row, rowCount);
  if (headsOfTile() > 1) {
    Value bound = headsOfTile() == shared ? Value() : i32(shared);
    place.dims.insert(place.dims.begin(),
                      Dim{Value(), tensor.strides[1], bound});
    place.shape.insert(place.shape.begin(), headsOfTile());
  }
  return place;
}

/// Loads this workgroup's queries, [rows, D], in the order of heads.
Value AttentionEmitter::loadQueries() {
  return reshape(load(queryRows, placeOfRows(queryRows)), {rows, size()});
}

Value AttentionEmitter::addMask(Value x, Value key) {
  const Tensor &tensor = maskRows;
  Dim along{row, tensor.strides[2], rowCount};
  Dim column{key, tensor.strides[3], valid};
  bool isRow = tensor.shape[2] == fixed(1); // for all queries
  if (isRow)
    along = {Value(), tensor.strides[2], Value()};
  Value loaded;
  if (headsOfTile() == 1) {
    loaded = load(block({isRow ? 1 : rows, span()}, tensor.element),
                  tensor.pointer, {along, column});
    loaded = broadcast(loaded, {rows, span()});
  } else {
    bool isShared = tensor.shape[1] == fixed(1);
    SmallVector<int64_t> shape = {isShared ? 1 : headsOfTile(),
                                  isRow ? 1 : tileRows, span()};
    Value bound = isShared || headsOfTile() == shared ? Value() : i32(shared);
    loaded = load(block(shape, tensor.element), tensor.pointer,
                  {{Value(), tensor.strides[1], bound}, along, column});
    shape = {headsOfTile(), tileRows, span()};
    loaded = reshape(broadcast(loaded, shape), {rows, span()});
  }
  return fadd(x, apart(extend(loaded), 1));
}

Value AttentionProgram::seen(Value keys, llvm::function_ref<Value()> rows,
                             Value firstKey, Value firstQuery) {
  ArrayRef<int64_t> shape = shapeOf(keys);
  auto isValid = [&] {
    return below(keys, splat(sub(valid, firstKey), shape));
  };
  if (!causal && !window)
    return isValid();
  // The first row's distance from the first key.
  Value row0 = sub(add(firstQuery, shift), firstKey);
  // Both edges of a window in one comparison: beyond the far one a difference
  // is negative, which is large without a sign.
  int64_t width = window.value_or(0);
  if (window && !causal) {
    row0 = add(row0, i32(width - 1));
    width = 2 * width - 1;
  }
  Value at = rows();
  at = add(at, splat(row0, shape));
  if (!window)
    return compare(Predicate::sle, keys, at);
  Value result =
      compare(Predicate::ult, sub(at, keys), splat(i32(width), shape));
  // A causal row's last key is a valid one.
  return causal ? result : both(result, isValid());
}

/// Returns a block of i1: whether a row sees a key of the tile.
Value AttentionEmitter::seen(Value key) {
  SmallVector<int64_t> shape = {rows, span()};
  auto numbers = [&] {
    return headsOfTile() == 1
               ? iota(shape, 0)
               : reshape(iota({headsOfTile(), tileRows, span()}, 1), shape);
  };
  return apart(AttentionProgram::seen(iota(shape, 1), numbers, key, row), 1);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// Returns the exponential of a logit's distance to its maximum. A result below
/// 2^-126 may be zero.
Value AttentionEmitter::exponential(Value x) {
  if (mask)
    x = fmul(x, like(x, log2e));
  return math::Exp2Op::create(b, x, Flags::afn);
}

Value AttentionProgram::finite(Value max) {
  Value isNone = compare(FPredicate::OEQ, max, like(max, -HUGE_VAL));
  return select(isNone, like(max, 0), max);
}

/// The largest weight of a row is 2^headroom, or up to 2^slack times that,
/// because a maximum may lag behind. Both together are well below the largest
/// f16.
constexpr double headroom = 7, slack = 8;

AttentionEmitter::State AttentionEmitter::start() {
  double unit = mask ? 1 : log2e;
  SmallVector<int64_t> shape = ofIteration({rows});
  Value none = constant(shape, -HUGE_VAL), zero = constant(shape, 0);
  State state{none, zero, constant(ofIteration({rows, size()}), 0),
              firstUnit()};
  if (!sinks)
    return state;
  // The sink is the first logit, and its weight goes nowhere.
  Tensor tensor = input(sinks);
  Value pointer = moved(tensor.pointer, {{queryHead, tensor.strides[0]}});
  Value logit;
  if (headsOfTile() == 1) {
    logit = splat(loadScalar(pointer, i32(0)), {rows});
  } else {
    Value perHead = load(block({headsOfTile()}, tensor.element), pointer,
                         {{Value(), tensor.strides[0], i32(shared)}});
    logit = reshape(perRow(perHead, tileRows), {rows});
  }
  Value max = fmul(repeated(logit), constant(shape, unit));
  max = fsub(max, constant(shape, headroom * unit / log2e));
  Value isSome = compare(FPredicate::UNE, max, none);
  // The first of those that share the keys has it.
  auto onlyWhere = [&](Value isFirst) { isSome = both(isSome, isFirst); };
  if (together > 1)
    onlyWhere(equal(iota(shape, 0), splat(i32(0), shape)));
  if (part)
    onlyWhere(splat(equal(part, i32(0)), shape));
  state.max = select(isSome, max, none);
  state.sum = select(isSome, constant(shape, std::exp2(headroom)), zero);
  return state;
}

AttentionEmitter::State AttentionEmitter::visitTile(Value key, bool isMasked,
                                                    State state) {
  SmallVector<int64_t> shape = ofIteration({rows, keys}),
                       perRows = ofIteration({rows});
  assumeBelow(key, valid);
  if (table)
    keysOfIteration = pagesOf(key, isMasked, /*repeatsLast=*/isOneLoop());
  // In shared memory, where they do not fit in registers.
  if (config.loop)
    query = loadQueries();
  Value keyBlock = apart(loadKeys(key, isMasked), 1);
  Value valueBlock = apart(loadValues(key, isMasked), 0);
  Value x = tile::DotOp::create(b, block(shape, b.getF32Type()), query,
                                keyBlock, constant(shape, 0), nullptr);
  if (kScale && !keyGroup)
    x = fmul(x, columnScales(key, isMasked));
  auto times = [&](Value value, double factor) -> Value {
    return fmul(value, constant(shape, factor));
  };
  // Logits are x times a factor, which comes in with the maximum: their order
  // is x's where it is positive.
  double factor = scale;
  if (softcap) {
    x = math::TanhOp::create(b, times(x, scale / *softcap));
    factor = *softcap;
  }
  if (!mask)
    factor *= log2e;
  // Before a branch around comparisons, too: LLVM 22 may leave out the wait
  // states between a matrix instruction and what reads its result behind one.
  if (mask || factor <= 0 || config.loop) {
    x = times(x, factor);
    factor = 1;
  }
  if (mask)
    x = addMask(x, key);
  auto masked = [&] {
    return select(seen(key), x, constant(shape, -HUGE_VAL));
  };
  if (config.loop)
    x = maskPartial(x, key, keysOfTile, /*atBegin=*/window.has_value(),
                    /*atEnd=*/true, masked);
  else if (isMasked)
    x = masked();

  State next;
  unsigned last = shape.size() - 1;
  Value top = maxOf(x, last);
  if (factor != 1) {
    top = fmul(top, constant(perRows, factor));
    x = fmul(x, constant(shape, factor), contract);
  }
  auto powers = [&](double count) {
    return constant(perRows, mask ? count / log2e : count);
  };
  top = fsub(top, powers(headroom));
  Value bound = fadd(state.max, powers(slack));
  Value grows = compare(FPredicate::OGT, top, bound);
  next.max = select(grows, top, state.max);
  // A row that has seen nothing yet has no maximum to take off.
  Value from = isMasked || mask ? finite(next.max) : next.max;
  Value fall = exponential(fsub(state.max, from));
  Value ofAcc = fall, relative;
  if (state.unit) {
    std::tie(next.unit, relative, ofAcc) =
        scalesOfIteration(state.unit, fall, key, isMasked);
    grows = compare(FPredicate::UNE, ofAcc, constant(perRows, 1));
  }
  // First, so that the exponentials stand beside the second product.
  Value scaled =
      tile::RescaleOp::create(b, state.acc.getType(), state.acc,
                              perRow(ofAcc, size()), perRow(grows, size()));
  Value weights = exponential(fsub(x, perRow(from, keys), contract));
  next.sum =
      fadd(fmul(state.sum, fall, contract), sumOf(weights, last), contract);
  if (relative)
    weights = fmul(weights, relative);
  weights = narrow(weights, queryType.getElementType(), Flags::afn);
  next.acc = tile::DotOp::create(b, scaled.getType(), weights, valueBlock,
                                 scaled, nullptr);
  return next;
}

AttentionEmitter::State AttentionEmitter::visit(Value from, Value to,
                                                bool isMasked, State state) {
  scf::ForOp loop;
  state = carry<State>(
      from, to, span(), state,
      [&](Value key, State state) { return visitTile(key, isMasked, state); },
      &loop);
  // Waves with keys of their own load them where they multiply them.
  if (together > 1)
    loop->setAttr(tile::pipelineName,
                  tile::PipelineAttr::get(b.getContext(), /*stages=*/0,
                                          /*slice=*/size(), /*direct=*/0));
  return state;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Stores [rows, D], or [rows], to the rows of this workgroup's heads.
void AttentionEmitter::storeRows(Value v, const Tensor &tensor) {
  Value pointer = rowsOf(tensor).pointer;
  RowsPlace place = placeOfRows(tensor);
  store(reshape(v, place.shape), pointer, place.dims);
}

void AttentionEmitter::finish(State state) {
  Value isNone = compare(FPredicate::OEQ, state.sum, constant({rows}, 0));
  OperandRange yielded = region.front().getTerminator()->getOperands();
  const Mapping identity = identityMapping(space.rank());
  Blocks blocks;
  auto result = [&] {
    Value factor = select(isNone, constant({rows}, 0),
                          fdiv(constant({rows}, 1), state.sum));
    Value result = fmul(state.acc, perRow(factor, size()));
    return narrow(result, queryType.getElementType());
  };
  OpResult first = space.alone->getResult(0);
  for (auto [i, value] : llvm::enumerate(yielded)) {
    if (value == first || value.getDefiningOp() != space.alone) {
      if (blocks.empty())
        blocks[{first.getAsOpaquePointer(), identity}] = result();
      storeRows(valueOf(value, identity, blocks),
                outputOfHeads(i, space.shape));
      continue;
    }
    auto toLogits = [&](Value powers) {
      return fmul(powers, constant({rows}, 1 / log2e));
    };
    // The maximum is a logit where there is a mask, whose least number would
    // not fit as a power of two.
    Value sum = math::Log2Op::create(b, state.sum);
    Value lse =
        mask ? fadd(state.max, toLogits(sum)) : toLogits(fadd(state.max, sum));
    storeRows(select(isNone, constant({rows}, -HUGE_VAL), lse),
              output(i, ArrayRef(space.shape).drop_back()));
  }
}

/// Emits the work of a workgroup for its keys.
void AttentionEmitter::emitRows() {
  const Range &range = keysOfTile;
  checkTable(range);
  if (!config.loop)
    query = repeated(loadQueries());
  State state = start();
  if (isOneLoop()) {
    state = visit(range.begin, range.end, /*isMasked=*/true, state);
  } else {
    if (window)
      state = visit(range.begin, least(range.wholeBegin, range.end),
                    /*isMasked=*/true, state);
    state = visit(range.wholeBegin, range.wholeEnd, /*isMasked=*/false, state);
    state = visit(range.wholeEnd, range.end, /*isMasked=*/true, state);
  }
  if (vScale && !valueGroup)
    state.acc = scaledResult(state);
  if (together > 1)
    state = combine(state);
  if (part)
    join(state);
  else
    finish(state);
}

void AttentionEmitter::emit(Value index) {
  locate(index);
  keysOfTile = keysOfRows();
  if (!part)
    return emitRows();
  takePart(keysOfTile);
  goOnIf(below(part, usedParts));
  emitRows();
}

std::unique_ptr<Emitter>
greta::makeAttentionEmitter(const EmitterContext &context) {
  return std::make_unique<AttentionEmitter>(context);
}
