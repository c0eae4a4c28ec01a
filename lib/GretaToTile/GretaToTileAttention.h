//===- GretaToTileAttention.h - attention as a block program ----*- C++ -*-===//
//
// These files share it:
//   GretaToTileAttention.cpp          the loop over the keys
//   GretaToTileAttentionKeys.cpp      loads of keys, values and their scales
//   GretaToTileAttentionRows.cpp      sequences with different numbers of rows
//   GretaToTileAttentionEpilogue.cpp  elementwise work behind the result
//   GretaToTileAttentionSplit.cpp     waves and workgroups that share the keys
//   GretaToTileAttentionBackward.cpp  gradients
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_GRETATOTILE_GRETATOTILEATTENTION_H
#define GRETA_LIB_GRETATOTILE_GRETATOTILEATTENTION_H

#include "BlockProgram.h"
#include "greta/Names.h"
#include <cmath>

namespace greta {

/// The flags of maxima of logits. If a logit is NaN its row's weights are NaN
/// whatever the maximum is.
constexpr auto noNaN = arith::FastMathFlags::nnan;

/// The facts that attention and its gradients have in common.
class AttentionProgram : public BlockProgram {
protected:
  using BlockProgram::BlockProgram;

  /// Takes the operands and attributes that all such ops have.
  template <typename Op> void take(Op op) {
    auto number = [](std::optional<llvm::APFloat> value) {
      return value ? std::optional<double>(value->convertToFloat())
                   : std::nullopt;
    };
    q = op.getQ();
    isTokensFirst = hasTokensFirst(op);
    lengths = op.getLengths();
    // Twice a window is an i32, too.
    if (op.getWindow())
      window = std::min<int64_t>(*op.getWindow(), 1 << 30);
    softcap = number(op.getSoftcap());
    queryType = queryTypeOf(op);
    if constexpr (!std::is_same_v<Op, PagedAttentionOp>) {
      k = op.getK();
      v = op.getV();
      mask = op.getMask();
      causal = op.getCausal();
    }
    scale = number(op.getScale()).value_or(1 / std::sqrt(elements()));
  }

  /// A row sees the keys from so many before its own place to so many behind
  /// it; none: there is no limit.
  std::optional<int64_t> keysBefore() const {
    return window ? std::optional(*window - 1) : std::nullopt;
  }
  std::optional<int64_t> keysBehind() const {
    return causal ? std::optional<int64_t>(0) : keysBefore();
  }
  /// The keys that a tile of queries sees, or the queries that see a tile of
  /// keys: from `begin` to `end`. Every row of the tile sees all from
  /// `wholeBegin` to `wholeEnd`. All but `end` are multiples of a tile.
  struct Range {
    Value begin, wholeBegin, wholeEnd, end;
  };
  /// Returns the range for rows from `first` to `last`. Each sees the others
  /// from `before` before its place to `behind` behind it, below `limit`.
  Range range(Value first, Value last, std::optional<int64_t> before,
              std::optional<int64_t> behind, Value limit, int64_t step);
  /// For one loop over a whole range: emits a branch of the workgroup that
  /// masks the block (`masked`) in tiles outside of the part that every row
  /// sees, at the begin or the end.
  Value maskPartial(Value block, Value at, const Range &range, bool atBegin,
                    bool atEnd, function_ref<Value()> masked);
  /// Exchanges the heads and the tokens of a tensor if the op has its tokens
  /// first: [B, S, H, D] to [B, H, S, D].
  Tensor headsFirst(Tensor tensor) const;
  /// The tensor that the region yields as value `number`, heads first.
  Tensor outputOfHeads(unsigned number, ArrayRef<AffineExpr> shape);
  /// Returns the number of valid keys of this workgroup's sequence, at most
  /// `all`.
  Value validKeys(Value all, StringRef problem);
  /// `from` moves a tensor's pointer to an index of some dimensions, headOf to
  /// this workgroup's sequence and a head.
  using Index = std::pair<unsigned, Value>;
  Tensor from(Tensor tensor, ArrayRef<Index> indices);
  Tensor headOf(const Tensor &tensor, Value head) {
    return from(tensor, {{0, sequence}, {1, head}});
  }
  /// The place of some rows of a head: [rows, D], or [rows] if a tensor has one
  /// number for each.
  struct RowsPlace {
    SmallVector<int64_t> shape;
    SmallVector<Dim> dims;
  };
  RowsPlace placeOf(const Tensor &tensor, int64_t rows, Value at, Value bound);
  using BlockProgram::load;
  Value load(const Tensor &tensor, const RowsPlace &place) {
    return load(block(place.shape, tensor.element), tensor.pointer, place.dims);
  }
  /// Returns a block of i1: whether a query sees a key. `keys` and `rows` are
  /// the numbers of keys and queries, relative to `firstKey` and `firstQuery`.
  Value seen(Value keys, function_ref<Value()> rows, Value firstKey,
             Value firstQuery);
  /// Emits a loop that carries a state. Fields of the state that are null are
  /// not carried.
  template <typename State>
  State carry(Value from, Value to, int64_t step, State state,
              function_ref<State(Value, State)> iteration,
              scf::ForOp *made = nullptr) {
    auto valuesOf = [](State state) {
      SmallVector<Value> values;
      for (Value *field : state.fields())
        if (*field)
          values.push_back(*field);
      return values;
    };
    auto stateOf = [&](ValueRange values) {
      State next = state;
      for (Value *field : next.fields())
        if (*field) {
          *field = values.front();
          values = values.drop_front();
        }
      return next;
    };
    auto loop = loopOver(from, to, step, valuesOf(state),
                         [&](Value at, ValueRange args) {
                           return valuesOf(iteration(at, stateOf(args)));
                         });
    if (made)
      *made = loop;
    return stateOf(loop.getResults());
  }
  Value maxOf(Value block, unsigned dim) {
    return reduce(block, dim, [&](Value x, Value y) {
      return arith::MaxNumFOp::create(b, x, y, noNaN);
    });
  }
  Value sumOf(Value block, unsigned dim) {
    return reduce(block, dim, [&](Value x, Value y) { return fadd(x, y); });
  }
  /// Returns the maximum, or a finite number for rows that have seen no key
  /// yet, whose maximum is -inf.
  Value finite(Value max);

  /// A head has `elements` columns. A block has `size` columns, whole tiles of
  /// an instruction, with zeros behind the head.
  int64_t elements() const { return queryType.getDimSize(3); }
  int64_t size() const { return config.columns; }
  Dim columns(AffineExpr stride) {
    return {Value(), stride, size() == elements() ? Value() : i32(elements())};
  }

  // The op's operands and attributes; null or none if it lacks them.
  Value q, k, v, lengths, mask;
  RankedTensorType queryType;
  double scale;
  bool causal, isTokensFirst;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  int64_t shared; // query heads that read a key head

  // This workgroup's sequence and heads, the number of valid keys, and the
  // place of the first query among the keys.
  Value sequence, queryHead, keyHead, valid, shift;
  Value isSequence; // whether the slot has a sequence; null: it has
};

class AttentionEmitter : public AttentionProgram {
public:
  explicit AttentionEmitter(const EmitterContext &context);
  AffineExpr workgroups() override;
  void emit(Value index) override;
  SmallVector<AffineExpr> scratchExtents() override;

private:
  /// A row's maximum, sum and result: blocks [rows], [rows] and [rows, D], or
  /// several of each, one after another along a first dimension. If values have
  /// scales of their own, also the unit of the result so far.
  struct State {
    Value max, sum, acc;
    Value unit = {};
    std::array<Value *, 4> fields() { return {&max, &sum, &acc, &unit}; }
  };

  void locate(Value index);
  // Sequences with different numbers of rows (GretaToTileAttentionRows.cpp).
  AffineExpr slots() const;
  Value beginOf(Value sequence);
  Value sequenceOf(Value slot);
  Value tileOfSlot(Value slot);
  Tensor queryTensor();
  /// Returns the queries, or results, of this workgroup's head and sequence.
  Tensor rowsOf(const Tensor &tensor);
  /// The keys that this workgroup's rows see.
  Range keysOfRows();
  void emitRows();
  State start();
  State visit(Value from, Value to, bool isMasked, State state);
  State visitTile(Value key, bool isMasked, State state);
  Value loadQueries();
  Value addMask(Value x, Value key);
  Value seen(Value key);
  RowsPlace placeOfRows(const Tensor &tensor);
  void finish(State state);
  void storeRows(Value block, const Tensor &tensor);

  // Elementwise work on the result (GretaToTileAttentionEpilogue.cpp).
  /// The blocks of values by what indexes them; the first is the op's result.
  using Blocks = std::map<std::pair<const void *, Mapping>, Value>;
  Value valueOf(Value v, const Mapping &mapping, Blocks &blocks);
  Value loadOperand(BlockArgument argument, const Mapping &mapping);
  SmallVector<int64_t> shapeOfBlock(const Mapping &mapping) const;
  /// Returns the dimension of [B, H, S, D] that is a result's `dim` in memory.
  int64_t inHeads(int64_t dim) const {
    return isTokensFirst && (dim == 1 || dim == 2) ? 3 - dim : dim;
  }

  // Keys, values and their scales (GretaToTileAttentionKeys.cpp).
  /// Facts about each key of an iteration: its number, whether it is valid
  /// (null: all are), and its entry in the table of pages.
  struct Paged {
    Value at, isValid, entry;
  };
  Paged pagesOf(Value key, bool isMasked, bool repeatsLast);
  Value offsetsIn(const Tensor &gathered, const Paged &paged);
  Value loadPages(const Tensor &cache, int64_t columns, bool isTransposed);
  Value scaledByGroup(Value block, Value scales, int64_t group,
                      bool isTransposed);
  Value loadRows(const Tensor &cache, Value scales, int64_t group,
                 bool isTransposed);
  void checkTable(const Range &range);
  Value widened(Value block);
  Value loadKeys(Value key, bool isMasked);
  Value loadValues(Value key, bool isMasked);
  Tensor ofKeyHead(const Tensor &tensor);
  Value scalesOfHead(Value scales);
  Value loadScales(Value scales, Value pointer, Value key, bool isMasked);
  Value perTile(Value block, ArrayRef<int64_t> shape);
  Value columnScales(Value key, bool isMasked);
  Value firstUnit();
  std::tuple<Value, Value, Value> scalesOfIteration(Value unit, Value fall,
                                                    Value key, bool isMasked);
  Value scaledResult(const State &state);

  // Waves and workgroups that share the keys (GretaToTileAttentionSplit.cpp).
  AffineExpr tiles() const;
  AffineExpr parts() const;
  Value apart(Value block, unsigned dim);
  Value repeated(Value block);
  State combine(State several);
  State combine(State state, State several);
  void takePart(Range &whole);
  void join(State state);
  struct PartPointers {
    Value acc, stats;
  };
  int64_t storedRows() const;
  PartPointers scratchOf(Value number);
  void storePart(State state);
  State loadPart(Value number);

  Value exponential(Value x);
  /// The shape of a block in the loop, which has all tiles of keys of an
  /// iteration.
  SmallVector<int64_t> ofIteration(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> all;
    if (together > 1)
      all.push_back(together);
    llvm::append_range(all, shape);
    return all;
  }

  AffineExpr queries() const { return space.shape[2]; }
  /// The number of a head's tiles in the grid; with `begins`, of its slots.
  AffineExpr tilesOfHead() const {
    return begins ? slots() : queries().ceilDiv(config.rows[2]);
  }
  /// The number of heads, of those that read the same keys, that a workgroup
  /// computes.
  int64_t headsOfTile() const { return config.rows[1]; }
  /// The number of groups of heads, each of which one workgroup computes.
  int64_t headGroups() const {
    return headsOfTile() > 1 ? keyHeads : queryType.getDimSize(1);
  }
  /// Whether one loop goes over all keys and masks every tile. Two loops would
  /// each begin by waiting for memory, which costs more than masks if rows are
  /// few.
  bool isOneLoop() const { return config.loop || (table && together > 1); }
  /// The number of keys of an iteration.
  int64_t span() const { return keys * together; }

  Value begins, sinks, table, kScale, vScale; // null: the op has none
  // So many neighbours in a row share a scale; 0: a scale is not for a group.
  int64_t keyGroup = 0, valueGroup = 0;
  AffineExpr sequences; // the number of sequences, with `begins`
  int64_t keyHeads;
  int64_t tileRows, rows; // a tile's rows of each head, and of all heads
  int64_t keys, together; // keys of a tile, and tiles of an iteration
  int64_t waves;

  // This workgroup's first row, the number of rows of its sequence, and the
  // number of rows of all sequences before it (null: there are none).
  Value row, rowCount, rowsBefore;
  Range keysOfTile;
  Value query;
  Tensor queryRows, keyRows, valueRows, maskRows;
  Value keyScales, valueScales; // pointers, or one scale for all keys
  Paged keysOfIteration;        // the iteration's keys, if there is a table
  // This workgroup's tile, its part of the keys, and the number of parts that
  // are not empty.
  Value tileNumber, part, usedParts;
};

} // namespace greta

#endif
