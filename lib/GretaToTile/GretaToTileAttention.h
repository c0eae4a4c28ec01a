//===- GretaToTileAttention.h - attention as a block program ----*- C++ -*-===//
//
// Shared by GretaToTileAttention.cpp, which goes over the keys,
// GretaToTileAttentionKeys.cpp, which loads them,
// GretaToTileAttentionRows.cpp, where sequences have numbers of rows of their
// own,
// GretaToTileAttentionSplit.cpp, where several go over them and their results
// meet, and GretaToTileAttentionBackward.cpp, which has the gradients.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_GRETATOTILE_GRETATOTILEATTENTION_H
#define GRETA_LIB_GRETATOTILE_GRETATOTILEATTENTION_H

#include "BlockProgram.h"
#include "greta/Names.h"
#include <cmath>

namespace greta {

/// A maximum may be any number where a logit is NaN: the row's weights have the
/// NaN in any case.
constexpr auto noNaN = arith::FastMathFlags::nnan;

/// The facts that attention and its gradients have in common.
class AttentionProgram : public BlockProgram {
protected:
  using BlockProgram::BlockProgram;

  /// The operands and numbers that all of them have.
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

  /// How far before and behind where a row stands the keys go that it sees;
  /// none: without end.
  std::optional<int64_t> keysBefore() const {
    return window ? std::optional(*window - 1) : std::nullopt;
  }
  std::optional<int64_t> keysBehind() const {
    return causal ? std::optional<int64_t>(0) : keysBefore();
  }
  /// The range of the other kind that a tile meets, in whole tiles but for the
  /// end: all of it, and the part that each row meets whole.
  struct Range {
    Value begin, wholeBegin, wholeEnd, end;
  };
  /// The range for rows from `first` to `last`, below `limit`, each of which
  /// meets others from so far before it to so far behind it.
  Range range(Value first, Value last, std::optional<int64_t> before,
              std::optional<int64_t> behind, Value limit, int64_t step);
  /// In one loop over a range: the block, or what is `masked` of it in tiles
  /// that are not met whole, at the begin or the end, in a branch of the
  /// workgroup.
  Value maskPartial(Value block, Value at, const Range &range, bool atBegin,
                    bool atEnd, function_ref<Value()> masked);
  /// [B, H, S, D] of a tensor that the op has with its tokens first, or back.
  Tensor headsFirst(Tensor tensor) const;
  /// The value that the region yields at a place, for one of such tensors.
  Tensor outputOfHeads(unsigned number, ArrayRef<AffineExpr> shape);
  /// The valid keys of this workgroup's sequence, of all that there are.
  Value validKeys(Value all, StringRef problem);
  /// A tensor from where an index of some dimensions begins, or this
  /// workgroup's sequence and a head.
  using Index = std::pair<unsigned, Value>;
  Tensor from(Tensor tensor, ArrayRef<Index> indices);
  Tensor headOf(const Tensor &tensor, Value head) {
    return from(tensor, {{0, sequence}, {1, head}});
  }
  /// The place of some rows of a head, [rows, D], or of a number of each.
  struct RowsPlace {
    SmallVector<int64_t> shape;
    SmallVector<Dim> dims;
  };
  RowsPlace placeOf(const Tensor &tensor, int64_t rows, Value at, Value bound);
  using BlockProgram::load;
  Value load(const Tensor &tensor, const RowsPlace &place) {
    return load(block(place.shape, tensor.element), tensor.pointer, place.dims);
  }
  /// i1: which keys each row of queries sees. `keys` and `rows` are their
  /// numbers in blocks that begin with a key and a query.
  Value seen(Value keys, function_ref<Value()> rows, Value firstKey,
             Value firstQuery);
  /// A loop that carries a state, of which some fields may be null.
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
  /// The number that a row's logits are subtracted from: a row that has seen
  /// nothing yet has no maximum.
  Value finite(Value max);

  /// The columns of a head, and a block's rows: whole tiles of an instruction,
  /// zero behind the head.
  int64_t elements() const { return queryType.getDimSize(3); }
  int64_t size() const { return config.columns; }
  Dim columns(AffineExpr stride) {
    return {Value(), stride, size() == elements() ? Value() : i32(elements())};
  }

  // The op: what it does not have is null.
  Value q, k, v, lengths, mask;
  RankedTensorType queryType;
  double scale;
  bool causal, isTokensFirst;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  int64_t shared; // query heads that read a key head

  // This workgroup: its sequence and heads, the valid keys, and the key that
  // the first query stands at.
  Value sequence, queryHead, keyHead, valid, shift;
  Value isSequence; // null: it is one
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
  // Numbers of rows of their own (GretaToTileAttentionRows.cpp).
  AffineExpr slots() const;
  Value beginOf(Value sequence);
  Value sequenceOf(Value slot);
  Value tileOfSlot(Value slot);
  Tensor queryTensor();
  /// The queries, or their results, of this workgroup's head and sequence.
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
  std::tuple<Value, Value, Value> scalesOfTurn(Value unit, Value fall,
                                               Value key, bool isMasked);
  Value scaledResult(const State &state);

  // Keys that several go over (GretaToTileAttentionSplit.cpp).
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
  /// The shape of a block in the loop: of every tile of keys of an iteration.
  SmallVector<int64_t> ofTurn(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> all;
    if (together > 1)
      all.push_back(together);
    llvm::append_range(all, shape);
    return all;
  }

  AffineExpr queries() const { return space.shape[2]; }
  /// Tiles of a head, or what stands for them in the grid.
  AffineExpr tilesOfHead() const {
    return begins ? slots() : queries().ceilDiv(config.rows[2]);
  }
  /// Heads that a workgroup takes, of those that read the same keys.
  int64_t headsOfTile() const { return config.rows[1]; }
  /// The place of a query, without the heads that read the same keys in this
  /// workgroup.
  int64_t headGroups() const {
    return headsOfTile() > 1 ? keyHeads : queryType.getDimSize(1);
  }
  /// Whether what no row sees is masked in every tile. Each loop would begin by
  /// waiting for memory, and for a few rows' logits that costs more.
  bool isOneLoop() const { return config.loop || (table && together > 1); }
  /// Keys of an iteration.
  int64_t span() const { return keys * together; }

  Value begins, sinks, table, kScale, vScale; // null: the op has none
  // How many neighbours of a row share a scale; 0: a scale is not of groups.
  int64_t keyGroup = 0, valueGroup = 0;
  AffineExpr sequences; // where they have numbers of rows of their own
  int64_t keyHeads;
  int64_t tileRows, rows; // of a tile: of each head, and all
  int64_t keys, together; // of a tile; tiles of an iteration
  int64_t waves;

  // This workgroup: its first row, of how many, before which there are the rows
  // of other sequences (null: none); and its heads' tensors.
  Value row, rowCount, rowsBefore;
  Range keysOfTile;
  Value query;
  Tensor queryRows, keyRows, valueRows, maskRows;
  Value keyScales, valueScales; // pointers, or what all keys have
  Paged keysOfTurn;             // through the table
  // Its tile and its part of the keys; of how many that are not empty.
  Value tileNumber, part, usedParts;
};

} // namespace greta

#endif
