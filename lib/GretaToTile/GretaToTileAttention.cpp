//===- GretaToTileAttention.cpp - attention as a block program ------------===//
//
// In: greta.attention or paged_attention with a tile of queries and one of
// keys. Out: a workgroup takes a tile of queries of one head, or of all heads
// that read the same keys, and passes over the keys once:
//
//   m, l, acc = -inf, 0, 0                    a row's maximum, sum, result
//   for each tile of keys
//     x     = scale * q k^T, capped; + mask; -inf where a row does not see it
//     m'    = max(m, max x)
//     p     = exp(x - m'), a = exp(m - m')
//     l     = a l + sum p
//     acc   = a acc + p v
//   result = acc / l; zero where l is
//
// Rows and keys are numbered by the op's definition: row i stands at key
// i + n - S, n the sequence's valid keys. Tiles that no row sees are not
// visited; the loop is in up to three parts, of which the middle one, whose
// tiles every row sees whole, compares no index:
//
//   window's edge | all see all | diagonal, or the end
//
// A logit is kept in units of log 2, whose power is one instruction, but with a
// mask: what is close to the largest float must not overflow.
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace greta;

using Predicate = arith::CmpIPredicate;

static constexpr double log2e = 1.4426950408889634;

/// What is inside of an op of the dialect may contract.
static constexpr auto contract = arith::FastMathFlags::contract;

namespace {
class AttentionEmitter : public BlockProgram {
public:
  AttentionEmitter(ImplicitLocOpBuilder &b, KernelOp kernel, Region &region,
                   const Space &space, const SpaceConfig &config,
                   ScalarArguments &scalars, Pointers pointers);
  AffineExpr workgroups() override;
  void emit(Value index) override;

private:
  /// What the loop carries.
  struct State {
    Value max, sum, acc;
  };
  /// The keys that a workgroup visits: all, and those that every row sees.
  struct Range {
    Value begin, wholeBegin, wholeEnd, end;
  };

  void locate(Value index);
  Range range();
  State start();
  State visit(Value from, Value to, bool isMasked, State state);
  State visitTile(Value key, bool isMasked, State state);
  Tensor headsFirst(Tensor tensor) const;
  Value loadQueries();
  Value loadKeys(Value key, bool isMasked);
  Value loadValues(Value key, bool isMasked);
  Value addMask(Value x, Value key);
  Value seen(Value key);
  struct Gathered {
    Value offsets, inside;
  };
  Gathered pagesOf(Value key);
  Value loadPages(const Tensor &cache, Value key, bool isTransposed);
  void finish(State state);
  void storeRows(Value block, const Tensor &tensor, bool hasColumns);

  Value f32(double value) { return constant({rows}, value); }
  Value reduce(Value x, bool isMax);
  Value exponential(Value x);

  AffineExpr queries() const { return space.shape[2]; }
  /// Heads that a workgroup takes, of those that read the same keys.
  int64_t headsOfTile() const { return config.rows[1]; }
  int64_t size() const { return queryType.getDimSize(3); }
  /// Of a query, without what reads the same keys in this workgroup.
  int64_t headGroups() const {
    return headsOfTile() > 1 ? keyHeads : queryType.getDimSize(1);
  }

  const Space &space;
  // The op: what it does not have is null.
  Value q, k, v, lengths, mask, sinks, table;
  RankedTensorType queryType;
  double scale;
  bool causal;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  int64_t keyHeads, shared; // query heads that read a key head
  int64_t rows, keys;       // of a tile

  // This workgroup: its sequence, heads, first row, and where keys end.
  Value sequence, queryHead, keyHead, row, valid, shift;
  Value query, queryPointer, keyPointer, valuePointer, maskPointer;
};
} // namespace

AttentionEmitter::AttentionEmitter(ImplicitLocOpBuilder &b, KernelOp kernel,
                                   Region &region, const Space &space,
                                   const SpaceConfig &config,
                                   ScalarArguments &scalars, Pointers pointers)
    : BlockProgram(b, kernel, region, config, scalars, pointers), space(space),
      rows(config.rows[1] * config.rows[2]), keys(config.depth) {
  auto number = [](std::optional<APFloat> value) {
    return value ? std::optional<double>(value->convertToFloat())
                 : std::nullopt;
  };
  auto take = [&](auto op) {
    q = op.getQ();
    lengths = op.getLengths();
    window = op.getWindow();
    softcap = number(op.getSoftcap());
    queryType = queryTypeOf(op);
    scale = number(op.getScale()).value_or(1 / std::sqrt(size()));
  };
  if (auto op = dyn_cast<AttentionOp>(space.alone)) {
    take(op);
    k = op.getK();
    v = op.getV();
    mask = op.getMask();
    sinks = op.getSinks();
    causal = op.getCausal();
    keyHeads = op.getK().getType().getDimSize(1);
  } else {
    auto paged = cast<PagedAttentionOp>(space.alone);
    take(paged);
    k = paged.getKCache();
    v = paged.getVCache();
    table = paged.getTable();
    causal = true;
    keyHeads = paged.getKCache().getType().getDimSize(2);
  }
  shared = queryType.getDimSize(1) / keyHeads;
}

AffineExpr AttentionEmitter::workgroups() {
  return space.shape[0] * headGroups() * queries().ceilDiv(config.rows[2]);
}

/// Tiles of a head follow each other, so that its keys are in the cache; of a
/// causal one those with the most keys come first.
void AttentionEmitter::locate(Value index) {
  Value tiles = small(queries().ceilDiv(config.rows[2]));
  Value tile = arith::RemUIOp::create(b, index, tiles);
  Value rest = arith::DivUIOp::create(b, index, tiles);
  if (causal)
    tile = sub(sub(tiles, i32(b, 1)), tile);
  Value groups = i32(b, headGroups());
  sequence = arith::DivUIOp::create(b, rest, groups);
  Value group = arith::RemUIOp::create(b, rest, groups);
  bool takesAll = headsOfTile() > 1;
  Value by = i32(b, shared);
  keyHead = takesAll ? group : arith::DivUIOp::create(b, group, by).getResult();
  queryHead = takesAll ? mul(group, by) : group;
  row = mul(tile, i32(b, config.rows[2]));
  assumeBelow(row, small(queries()));

  Tensor queryTensor = headsFirst(input(q)), keyTensor = input(k),
         valueTensor = input(v);
  queryPointer =
      moved(queryTensor.pointer, {{sequence, queryTensor.strides[0]},
                                  {queryHead, queryTensor.strides[1]}});
  Value zero = i32(b, 0);
  if (table) {
    valid = small(input(table).shape[1] * keyTensor.shape[1]);
    keyPointer = moved(keyTensor.pointer, {{keyHead, keyTensor.strides[2]}});
    valuePointer =
        moved(valueTensor.pointer, {{keyHead, valueTensor.strides[2]}});
  } else {
    valid = small(keyTensor.shape[2]);
    keyPointer = moved(keyTensor.pointer, {{sequence, keyTensor.strides[0]},
                                           {keyHead, keyTensor.strides[1]}});
    valuePointer =
        moved(valueTensor.pointer, {{sequence, valueTensor.strides[0]},
                                    {keyHead, valueTensor.strides[1]}});
  }
  if (mask) {
    Tensor tensor = input(mask);
    SmallVector<Move> moves;
    if (tensor.shape[0] != fixed(1))
      moves.push_back({sequence, tensor.strides[0]});
    if (tensor.shape[1] != fixed(1))
      moves.push_back({queryHead, tensor.strides[1]});
    maskPointer = moved(tensor.pointer, moves);
  }
  if (lengths)
    valid =
        least(valid, most(zero, loadScalar(input(lengths).pointer, sequence)));
  shift = sub(valid, small(queries()));
}

AttentionEmitter::Range AttentionEmitter::range() {
  Value zero = i32(b, 0), step = i32(b, keys);
  auto whole = [&](Value x) { // tiles below x, as keys
    return mul(arith::DivUIOp::create(b, most(x, zero), step), step);
  };
  Value first = add(row, shift); // where the first row stands
  Value last = add(first, i32(b, config.rows[2] - 1));
  Value end = valid, wholeEnd = valid;
  if (causal) {
    end = least(end, add(last, i32(b, 1)));
    wholeEnd = least(wholeEnd, add(first, i32(b, 1)));
  }
  if (!window) {
    end = most(end, zero);
    return {zero, zero, whole(wholeEnd), end};
  }
  Value width = i32(b, *window);
  if (!causal) {
    end = least(end, add(last, width));
    wholeEnd = least(wholeEnd, add(first, width));
  }
  Value begin = whole(add(sub(first, width), i32(b, 1)));
  // Tiles from the first that the last row sees whole.
  Value wholeBegin = whole(add(sub(last, width), i32(b, 1 + keys - 1)));
  wholeBegin = most(wholeBegin, begin);
  return {begin, wholeBegin, most(whole(wholeEnd), wholeBegin),
          most(end, zero)};
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Queries, or the result, by [B, Hq, S, D].
AttentionEmitter::Tensor AttentionEmitter::headsFirst(Tensor tensor) const {
  if (hasTokensFirst(space.alone)) {
    std::swap(tensor.shape[1], tensor.shape[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  }
  return tensor;
}

/// [rows, D], in the order of heads.
Value AttentionEmitter::loadQueries() {
  Tensor tensor = headsFirst(input(q));
  Dim along{row, tensor.strides[2], small(queries())};
  Dim column{Value(), tensor.strides[3], Value()};
  if (headsOfTile() == 1)
    return load(block({rows, size()}, tensor.element), queryPointer,
                {along, column});
  Value bound = headsOfTile() == shared ? Value() : i32(b, shared);
  Value loaded =
      load(block({headsOfTile(), config.rows[2], size()}, tensor.element),
           queryPointer, {{Value(), tensor.strides[1], bound}, along, column});
  return reshape(loaded, {rows, size()});
}

/// Offsets in a cache of the rows of a tile of keys, which are valid.
AttentionEmitter::Gathered AttentionEmitter::pagesOf(Value key) {
  Tensor cache = input(k), pages = input(table);
  SmallVector<int64_t> shape = {keys};
  Value at = add(splat(key, shape), iota(shape, 0));
  Value isValid = compare(Predicate::slt, at, splat(valid, shape));
  Value page = splat(small(cache.shape[1]), shape);
  Value line = moved(pages.pointer, {{sequence, pages.strides[0]}});
  Value entry = tile::LoadScatteredOp::create(
      b, at.getType(),
      tile::PtrAddOp::create(b, line, arith::DivUIOp::create(b, at, page)),
      isValid, Value());
  auto offset = [&](Value index, AffineExpr stride) -> Value {
    auto wide = block(shape, b.getI64Type());
    return mul(arith::ExtSIOp::create(b, wide, index),
               splat(large(stride), shape));
  };
  Value inside =
      compare(Predicate::ult, entry, splat(small(cache.shape[0]), shape));
  return {add(offset(entry, cache.strides[0]),
              offset(arith::RemUIOp::create(b, at, page), cache.strides[1])),
          arith::AndIOp::create(b, isValid, inside)};
}

/// [keys, D], or the other way round.
Value AttentionEmitter::loadPages(const Tensor &cache, Value key,
                                  bool isTransposed) {
  auto [offsets, inside] = pagesOf(key);
  SmallVector<int64_t> shape = {keys, size()};
  if (isTransposed)
    std::swap(shape[0], shape[1]);
  auto along = [&](Value perKey) {
    return isTransposed ? perColumn(perKey, size()) : perRow(perKey, size());
  };
  Value lines = tile::PtrAddOp::create(b, cache.pointer, along(offsets));
  Value elements =
      tile::PtrAddOp::create(b, lines, iota(shape, isTransposed ? 0 : 1));
  return tile::LoadScatteredOp::create(b, block(shape, cache.element), elements,
                                       along(inside), Value());
}

/// [D, keys].
Value AttentionEmitter::loadKeys(Value key, bool isMasked) {
  Tensor tensor = input(k);
  tensor.pointer = keyPointer;
  if (table)
    return loadPages(tensor, key, /*isTransposed=*/true);
  return load(block({size(), keys}, tensor.element), keyPointer,
              {{Value(), tensor.strides[3], Value()},
               {key, tensor.strides[2], isMasked ? valid : Value()}});
}

/// [keys, D].
Value AttentionEmitter::loadValues(Value key, bool isMasked) {
  Tensor tensor = input(v);
  tensor.pointer = valuePointer;
  if (table)
    return loadPages(tensor, key, /*isTransposed=*/false);
  return load(block({keys, size()}, tensor.element), valuePointer,
              {{key, tensor.strides[2], isMasked ? valid : Value()},
               {Value(), tensor.strides[3], Value()}});
}

Value AttentionEmitter::addMask(Value x, Value key) {
  Tensor tensor = input(mask);
  Dim along{row, tensor.strides[2], small(queries())};
  Dim column{key, tensor.strides[3], valid};
  Value loaded;
  if (headsOfTile() == 1) {
    loaded =
        load(block({rows, keys}, tensor.element), maskPointer, {along, column});
  } else {
    bool isShared = tensor.shape[1] == fixed(1);
    SmallVector<int64_t> shape = {isShared ? 1 : headsOfTile(), config.rows[2],
                                  keys};
    Value bound =
        isShared || headsOfTile() == shared ? Value() : i32(b, shared);
    loaded = load(block(shape, tensor.element), maskPointer,
                  {{Value(), tensor.strides[1], bound}, along, column});
    shape[0] = headsOfTile();
    loaded = reshape(broadcast(loaded, shape), {rows, keys});
  }
  if (!tensor.element.isF32())
    loaded =
        arith::ExtFOp::create(b, block({rows, keys}, b.getF32Type()), loaded);
  return arith::AddFOp::create(b, x, loaded);
}

/// i1: which keys of a tile each row sees.
Value AttentionEmitter::seen(Value key) {
  SmallVector<int64_t> shape = {rows, keys};
  Value column = iota(shape, 1);
  auto below = [&](Value bound) { // a scalar
    return compare(Predicate::slt, column, splat(sub(bound, key), shape));
  };
  if (!causal && !window)
    return below(valid);
  // Where each row stands, from this tile's first key on.
  Value number =
      headsOfTile() == 1
          ? iota(shape, 0)
          : reshape(iota({headsOfTile(), config.rows[2], keys}, 1), shape);
  Value at = add(number, splat(sub(add(row, shift), key), shape));
  // A row's last key is a valid one.
  Value result = causal ? compare(Predicate::sle, column, at) : below(valid);
  auto require = [&](Predicate how, int64_t distance) {
    Value bound = add(at, splat(i32(b, distance), shape));
    result = arith::AndIOp::create(b, result, compare(how, column, bound));
  };
  if (window)
    require(Predicate::sgt, -*window);
  if (window && !causal)
    require(Predicate::slt, *window);
  return result;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

Value AttentionEmitter::reduce(Value x, bool isMax) {
  return tile::ReduceOp::create(
             b, x, 1,
             [&](OpBuilder &builder, Location loc, ValueRange l, ValueRange r) {
               Value both =
                   isMax ? arith::MaximumFOp::create(builder, loc, l[0], r[0])
                               .getResult()
                         : arith::AddFOp::create(builder, loc, l[0], r[0])
                               .getResult();
               return SmallVector<Value>{both};
             })
      ->getResult(0);
}

/// Of a logit's distance to its maximum.
Value AttentionEmitter::exponential(Value x) {
  if (mask) {
    auto type = cast<RankedTensorType>(x.getType());
    x = arith::MulFOp::create(b, x, constant(type.getShape(), log2e));
  }
  return math::Exp2Op::create(b, x);
}

AttentionEmitter::State AttentionEmitter::start() {
  double unit = mask ? 1 : log2e;
  State state{f32(-HUGE_VAL), f32(0), constant({rows, size()}, 0)};
  if (!sinks)
    return state;
  // The sink is the first logit, and its weight goes nowhere.
  Tensor tensor = input(sinks);
  Value pointer = moved(tensor.pointer, {{queryHead, tensor.strides[0]}});
  Value logit;
  if (headsOfTile() == 1) {
    logit = splat(loadScalar(pointer, i32(b, 0)), {rows});
  } else {
    Value perHead = load(block({headsOfTile()}, tensor.element), pointer,
                         {{Value(), tensor.strides[0], i32(b, shared)}});
    logit = reshape(perRow(perHead, config.rows[2]), {rows});
  }
  state.max = arith::MulFOp::create(b, logit, f32(unit));
  Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, logit,
                                       f32(-HUGE_VAL));
  state.sum = select(isNone, f32(0), f32(1));
  return state;
}

AttentionEmitter::State AttentionEmitter::visitTile(Value key, bool isMasked,
                                                    State state) {
  SmallVector<int64_t> shape = {rows, keys};
  assumeBelow(key, valid);
  Value keyBlock = loadKeys(key, isMasked);
  Value valueBlock = loadValues(key, isMasked);
  Value x = tile::DotOp::create(b, block(shape, b.getF32Type()), query,
                                keyBlock, constant(shape, 0), nullptr);
  auto times = [&](Value value, double factor) -> Value {
    return arith::MulFOp::create(b, value, constant(shape, factor));
  };
  // Logits are x times a factor, which comes in with the maximum: their order
  // is x's where it is positive.
  double factor = scale;
  if (softcap) {
    x = math::TanhOp::create(b, times(x, scale / *softcap));
    factor = *softcap;
  }
  if (mask || factor <= 0) {
    x = times(x, factor);
    factor = 1;
  }
  if (mask)
    x = addMask(x, key);
  else
    factor *= log2e;
  if (isMasked)
    x = select(seen(key), x, constant(shape, -HUGE_VAL));

  State next;
  Value top = reduce(x, /*isMax=*/true);
  if (!mask) {
    top = arith::MulFOp::create(b, top, f32(factor));
    x = arith::MulFOp::create(b, x, constant(shape, factor), contract);
  }
  next.max = arith::MaximumFOp::create(b, state.max, top);
  // A row that has seen nothing yet has no maximum to take off.
  Value from = next.max;
  if (isMasked || mask) {
    Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, next.max,
                                         f32(-HUGE_VAL));
    from = select(isNone, f32(0), next.max);
  }
  Value weights =
      exponential(arith::SubFOp::create(b, x, perRow(from, keys), contract));
  Value fall = exponential(arith::SubFOp::create(b, state.max, from));
  next.sum = arith::AddFOp::create(
      b, arith::MulFOp::create(b, state.sum, fall, contract),
      reduce(weights, /*isMax=*/false), contract);
  Value scaled = arith::MulFOp::create(b, state.acc, perRow(fall, size()));
  Type element = queryType.getElementType();
  if (!element.isF32())
    weights = arith::TruncFOp::create(b, block(shape, element), weights);
  next.acc = tile::DotOp::create(b, scaled.getType(), weights, valueBlock,
                                 scaled, nullptr);
  return next;
}

AttentionEmitter::State AttentionEmitter::visit(Value from, Value to,
                                                bool isMasked, State state) {
  auto loop = scf::ForOp::create(b, from, to, i32(b, keys),
                                 ValueRange{state.max, state.sum, state.acc});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  ValueRange args = loop.getRegionIterArgs();
  State next =
      visitTile(loop.getInductionVar(), isMasked, {args[0], args[1], args[2]});
  scf::YieldOp::create(b, ValueRange{next.max, next.sum, next.acc});
  return {loop.getResult(0), loop.getResult(1), loop.getResult(2)};
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// [rows, D], or [rows], to the rows of this workgroup's heads.
void AttentionEmitter::storeRows(Value v, const Tensor &tensor,
                                 bool hasColumns) {
  Value pointer = moved(tensor.pointer, {{sequence, tensor.strides[0]},
                                         {queryHead, tensor.strides[1]}});
  SmallVector<Dim> dims = {{row, tensor.strides[2], small(queries())}};
  SmallVector<int64_t> shape = {config.rows[2]};
  if (headsOfTile() > 1) {
    Value bound = headsOfTile() == shared ? Value() : i32(b, shared);
    dims.insert(dims.begin(), Dim{Value(), tensor.strides[1], bound});
    shape.insert(shape.begin(), headsOfTile());
  }
  if (hasColumns) {
    dims.push_back({Value(), tensor.strides[3], Value()});
    shape.push_back(size());
  }
  store(reshape(v, shape), pointer, dims);
}

void AttentionEmitter::finish(State state) {
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, state.sum, f32(0));
  OperandRange yielded = region.front().getTerminator()->getOperands();
  for (auto [i, value] : llvm::enumerate(yielded)) {
    if (cast<OpResult>(value).getResultNumber() == 0) {
      Value factor =
          select(isNone, f32(0), arith::DivFOp::create(b, f32(1), state.sum));
      Value result =
          arith::MulFOp::create(b, state.acc, perRow(factor, size()));
      Type element = queryType.getElementType();
      if (!element.isF32())
        result =
            arith::TruncFOp::create(b, block({rows, size()}, element), result);
      SmallVector<AffineExpr> shape = space.shape;
      if (hasTokensFirst(space.alone))
        std::swap(shape[1], shape[2]);
      storeRows(result, headsFirst(output(i, shape)), /*hasColumns=*/true);
      continue;
    }
    Value sum = math::Log2Op::create(b, state.sum), max = state.max;
    if (mask)
      max = arith::MulFOp::create(b, max, f32(log2e));
    Value lse = arith::MulFOp::create(b, arith::AddFOp::create(b, max, sum),
                                      f32(1 / log2e));
    storeRows(select(isNone, f32(-HUGE_VAL), lse),
              output(i, ArrayRef(space.shape).drop_back()),
              /*hasColumns=*/false);
  }
}

void AttentionEmitter::emit(Value index) {
  locate(index);
  query = loadQueries();
  Range keysOfTile = range();
  State state = start();
  if (window)
    state =
        visit(keysOfTile.begin, least(keysOfTile.wholeBegin, keysOfTile.end),
              /*isMasked=*/true, state);
  state = visit(keysOfTile.wholeBegin, keysOfTile.wholeEnd, /*isMasked=*/false,
                state);
  state = visit(keysOfTile.wholeEnd, keysOfTile.end, /*isMasked=*/true, state);
  finish(state);
}

std::unique_ptr<Emitter>
greta::makeAttentionEmitter(ImplicitLocOpBuilder &b, KernelOp kernel,
                            Region &region, const Space &space,
                            const SpaceConfig &config, ScalarArguments &scalars,
                            Emitter::Pointers pointers) {
  return std::make_unique<AttentionEmitter>(b, kernel, region, space, config,
                                            scalars, pointers);
}
