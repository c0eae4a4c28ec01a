//===- GretaToTile.h - one space of a kernel as block code ------*- C++ -*-===//
//
// Shared by GretaToTile*.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_GRETATOTILE_GRETATOTILE_H
#define GRETA_LIB_GRETATOTILE_GRETATOTILE_H

#include "GretaTile/GretaTile.h"
#include "greta/Configure/CheckSchedule.h"
#include "greta/Fuse/Space.h"
#include "greta/Names.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <map>
#include <memory>
#include <set>

namespace greta {

/// The i32 arguments of a kernel: expressions over the function's symbols.
class ScalarArguments {
public:
  explicit ScalarArguments(tile::FuncOp kernel) : kernel(kernel) {}
  /// A constant, or the argument that carries `expr`.
  Value get(ImplicitLocOpBuilder &b, AffineExpr expr);
  ArrayRef<AffineExpr> expressions() const { return exprs; }

private:
  tile::FuncOp kernel;
  SmallVector<AffineExpr> exprs;
  SmallVector<Value> arguments;
};

/// The arguments of a kernel's launch that begin at a part's first row, where a
/// sum over ranks next to it is made in parts and its rows are independent
/// (GretaToTileParts.cpp); null: it is launched whole. `buffers`: the launch's
/// operands.
mlir::DenseI64ArrayAttr rowArguments(KernelOp kernel,
                                     llvm::ArrayRef<mlir::Value> buffers);

/// Elements between neighbours along a dimension of the space in a tensor that
/// `mapping` indexes.
AffineExpr strideOf(int64_t spaceDim, const TensorLayout &layout,
                    const Mapping &mapping);

/// The destination of the rows of a result that updates a cache in place: row t
/// to row slots[t] of `rows`, others nowhere.
struct CacheRows {
  Value slots; // null: the result is stored as it is
  AffineExpr rows;
};

/// Arithmetic inside one op of the dialect may contract: its definition rounds
/// once, at the end.
constexpr auto contract = arith::FastMathFlags::contract;

constexpr double log2e = 1.4426950408889634;

/// A region of a kernel, and where its program is emitted.
struct EmitterContext : Arithmetic {
  struct Pointers {
    ValueRange inputs;          // one per argument of the region
    ValueRange outputs;         // one per yielded value
    ValueRange scratch;         // of scratchTypes
    ArrayRef<CacheRows> caches; // per yielded value
  };

  KernelOp kernel;
  Region &region;
  const Space &space;
  const SpaceSchedule &config;
  ScalarArguments &scalars;
  Pointers pointers;
};

/// Emits what one workgroup does for a region of a kernel. Here too: short
/// names for what all of them emit (BlockProgram.cpp).
class Emitter : protected EmitterContext {
public:
  explicit Emitter(const EmitterContext &context) : EmitterContext(context) {}
  virtual ~Emitter() = default;

  /// Workgroups of the region over the function's symbols.
  virtual AffineExpr workgroups() = 0;

  /// The program of workgroup `index` of the region.
  virtual void emit(Value index) = 0;

  /// How many elements there are of each scratch buffer, once the program is
  /// emitted.
  virtual SmallVector<AffineExpr> scratchExtents() { return {}; }

protected:
  AffineExpr fixed(int64_t value) {
    return mlir::getAffineConstantExpr(value, kernel.getContext());
  }
  /// An i64: a constant, an i32 (or a block), or an expression computed with 64
  /// bits.
  Value i64(int64_t value);
  Value large(Value i32);
  Value large(AffineExpr expr);

  // Blocks.
  RankedTensorType block(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }
  static ArrayRef<int64_t> shapeOf(Value block) {
    return mlir::cast<RankedTensorType>(block.getType()).getShape();
  }
  /// The same number everywhere; of f32 where a shape is given.
  Value constant(RankedTensorType type, double value);
  Value constant(ArrayRef<int64_t> shape, double value) {
    return constant(block(shape, b.getF32Type()), value);
  }
  Value constant(RankedTensorType type, mlir::TypedAttr value);
  Value splat(Value scalar, ArrayRef<int64_t> shape);
  Value iota(ArrayRef<int64_t> shape, unsigned dim);
  Value reshape(Value block, ArrayRef<int64_t> shape);
  Value broadcast(Value block, ArrayRef<int64_t> shape);
  Value transpose(Value block, ArrayRef<int64_t> order);
  /// In f32, and in `element`; itself where it is.
  Value extend(Value block);
  Value narrow(Value block, Type element, Flags flags = Flags::none);
  /// Combined along a dimension, which goes away.
  Value reduce(Value block, unsigned dim,
               function_ref<Value(Value, Value)> combine);

  // Memory.
  Value advance(Value pointer, Value elements) {
    return tile::PtrAddOp::create(b, pointer, elements);
  }
  Value gather(Type type, Value pointers, Value mask) {
    return tile::LoadScatteredOp::create(b, type, pointers, mask, Value());
  }
  /// The operands that greta_tile.load and store share.
  struct Access {
    SmallVector<Value> offsets, dynamicStrides, bounds;
    SmallVector<int64_t> strides, bounded, clamped;
  };
  /// A dimension more of one, at an offset (null: 0) with a stride.
  void addDim(Access &access, Value offset, AffineExpr stride);
  static void setBound(Access &access, int64_t dim, Value bound) {
    access.bounded.push_back(dim);
    access.bounds.push_back(bound);
  }
  Access wholeBlock(ArrayRef<int64_t> shape);
  tile::LoadOp load(RankedTensorType type, Value pointer, const Access &access,
                    Value other = {});
  void store(Value block, Value pointer, const Access &access);

  // The conditions that callers are asked for.
  /// Whether the function is (checkedName).
  bool isChecked();
  /// There: the launch fails unless `condition`, a scalar or a block, holds.
  void check(function_ref<Value()> condition, StringRef message);
  /// For such functions; once, where `index` is 0: the launch fails unless the
  /// numbers `at(i, 0)` to `at(i, 1)`, for i below `count`, ascend from 0 to
  /// `most` at most.
  void checkAscending(Value index, Value count, Value most,
                      function_ref<Value(Value, int64_t)> at,
                      StringRef message);
  /// `x` for every element, or true if nobody asks.
  Value implied(Value asked, Value x);
  /// Every slot is inside, or negative, which goes nowhere.
  Value orLeftOut(Value isInside, Value slot);

  // Control flow.
  /// Leaves the builder where only those go on for whom `condition` holds.
  void goOnIf(Value condition);
  /// When all workgroups that share a tile have stored their partial sums:
  /// counts this one at `counter`, and leaves the builder where only the last
  /// of `expected` goes on, which sees what the others have stored.
  void goOnAsLast(Value counter, Value expected);
  /// A loop whose iterations make of its counter and what it carries what it
  /// carries on.
  scf::ForOp
  loopOver(Value from, Value to, int64_t step, ValueRange carried,
           function_ref<SmallVector<Value>(Value, ValueRange)> iteration);
};

/// The elements of the scratch memory of a space whose work is split, a buffer
/// each; the last has counters, which are zero between launches.
SmallVector<Type> scratchTypes(const Space &space, const SpaceSchedule &config);
SmallVector<Type> attentionScratch(MLIRContext *context);

/// Emitters of ops that have a kernel to themselves.
std::unique_ptr<Emitter> makeAttentionEmitter(const EmitterContext &context);
std::unique_ptr<Emitter>
makeAttentionBackwardEmitter(const EmitterContext &context);
std::unique_ptr<Emitter> makeUpdateEmitter(const EmitterContext &context);

/// The emitter of everything else. Block tensors have the dimensions
/// that Space describes; a value that lacks a dimension has extent 1 there.
class SpaceEmitter : public Emitter {
public:
  SpaceEmitter(const EmitterContext &context, int64_t units);

  SmallVector<AffineExpr> scratchExtents() override { return extents; }
  AffineExpr workgroups() override;
  void emit(Value index) override;

private:
  struct Dim {
    enum Kind { Group, Pair, Column, Depth, Run } kind;
    int64_t group;
    int64_t extent;
    AffineExpr size;      // of the whole space along it
    bool masked;          // some block is not full
    Value offset;         // of this workgroup's block; null: 0
    int64_t unit = 0;     // Depth and Run: elements along K of one step
    int64_t step = 0;     // in a skinny GEMM: columns of B of one step
    bool moved = false;   // the last block ends where the space does
    bool grouped = false; // rows in groups: blocks end where a group does
    Value bound = {};     // of this workgroup's group; null: the size
    bool isAlone = false; // no launch has a second block

    AffineExpr blocks() const {
      return isAlone ? mlir::getAffineConstantExpr(1, size.getContext())
                     : size.ceilDiv(extent);
    }
  };
  /// An op and which of its reductions.
  using Reduction = std::pair<Operation *, unsigned>;
  /// A value (or an op and which of its parts) in a mapping.
  using Key = std::tuple<const void *, unsigned, std::vector<int64_t>>;
  /// The computed values: per region of code, so that they dominate.
  using Scope = std::map<Key, Value>;

  // Layout of the space (GretaToTileSpace.cpp).
  bool isSplit(const Dim &dim) const;
  bool hasColumns(const Mapping &mapping) const;
  bool isMapped(const Dim &dim, const Mapping &mapping) const;
  using Emitter::shapeOf;
  SmallVector<int64_t> shapeOf(const Mapping &mapping) const;
  RankedTensorType blockType(const Mapping &mapping, Type element);
  void locate(Value index);
  void locateViews();
  /// As an i64, of what is computed with 32 bits.
  Value elements(AffineExpr count);
  /// `bound`, having said that the block at `offset` begins within it: the grid
  /// and the loops end there.
  Value reached(Value offset, Value bound);
  Access access(const TensorLayout &layout, const Mapping &mapping);
  Value inBatch(Value pointer, const TensorLayout &layout,
                const Mapping &mapping);
  using Emitter::load, Emitter::store;
  Value load(BlockArgument argument, const Mapping &mapping);
  void store(unsigned output, Value value);
  void storeRows(unsigned output, Value block);
  AffineMap shapeOfArgument(unsigned index);
  TensorLayout layoutOf(BlockArgument argument);
  /// The first element of what the region sees.
  Value pointerOf(BlockArgument argument);
  bool variesInLoop(const Mapping &mapping) const;

  // Order of the work (GretaToTileSpace.cpp).
  unsigned stageOf(Value value);
  /// Its body is emitted for the columns from an offset on.
  scf::ForOp
  loopOverColumns(ValueRange carried,
                  function_ref<SmallVector<Value>(ValueRange)> iteration);
  void emitStage(unsigned stage);
  void emitOutputs();
  /// Combines along the columns, which stay with extent 1.
  SmallVector<Value> reduceAll(const Reduction &reduction,
                               SmallVector<Value> blocks);
  Value value(Value v, const Mapping &mapping);
  Value memoize(const void *key, unsigned part, const Mapping &mapping,
                function_ref<Value()> compute);

  // Values (GretaToTileOps.cpp).
  Value compute(Value v, const Mapping &mapping);
  Value computeElementwise(Operation *op, const Mapping &mapping);
  Value computeRowOp(Operation *op);
  Value computeRope(RopeOp op);

  // GEMMs in tiles (GretaToTileGemm.cpp).
  Value computeMatmul(MatmulOp op);
  std::pair<Value, Value> inParts(Value block);
  SmallVector<Value> computeLoop();
  /// This workgroup's blocks along K of a GEMM.
  struct DepthRange {
    Value begin, length; // null begin: 0
  };
  int64_t partsOfDepth() const;
  DepthRange depthRange(AffineExpr depth, int64_t block);
  /// The indices of the GEMM's result in a block.
  int64_t blockColumns() const { return dims[1].extent * space.headSize(); }
  /// The indices of A (number 0) or B: the batch, then rows or columns and the
  /// depth in their order.
  Mapping matrixMapping(MatmulOp op, unsigned number,
                        ArrayRef<int64_t> columns);
  /// The blocks of a GEMM's operand, which take the space's place while it is
  /// loaded or computed.
  struct Operand {
    SmallVector<Dim> dims;
    Mapping identity;
    unsigned columnDim = 1, depthDim = 0;
    int pairDim = -1;
    Scope outer, inner;
  };
  Operand operandOf(MatmulOp op, unsigned number, AffineExpr depth);
  void exchange(Operand &operand);
  Value emitOperand(Value v);
  /// An iteration of computeLoop: the sums that `gemm` carries and the products
  /// of the blocks at `k`.
  SmallVector<Value> addBlocks(scf::ForOp gemm, Value k, Operand &operandA,
                               Operand &operandB);
  /// Behind the loop: joins the sums of a block's parts along K, and scales
  /// them as A's norm says.
  SmallVector<Value> finishSums(SmallVector<Value> results);
  /// The norm that a GEMM's A is; null: it is none.
  RmsNormOp normOfA() {
    return MatmulOp(space.matmul).getA().getDefiningOp<RmsNormOp>();
  }
  Value weighted(RmsNormOp norm, const Mapping &mapping);
  Value addSquares(RmsNormOp norm, const Mapping &mapping, Value sums,
                   ArrayRef<int64_t> dims);
  Value computeDequantBlock(DequantOp op);

  // Convolutions (GretaToTileConvolution.cpp).
  Value computePatches(PatchesOp op);
  struct Patches;
  Patches sizesOf(PatchesOp op);
  void locateRows(Patches &patches);
  /// Whether indices along rows (0) or columns (1) are those of an image.
  Value isInImage(const Patches &patches, Value at, unsigned dim);
  /// Elements from index 0 to `index` along a dimension of the images.
  Value elementsTo(const Patches &patches, Value index, unsigned dim);
  /// A number of elements in the type that all images are counted in.
  Value counted(const Patches &patches, Value v);
  Value plus(const Patches &patches, Value x, Value y);

  // Grouped GEMMs (GretaToTileGroups.cpp).
  bool isGrouped() const {
    return space.matmul && MatmulOp(space.matmul).getOffsets();
  }
  /// How many blocks there may be along a dimension.
  AffineExpr blocksOf(const Dim &dim) const;
  Value boundOf(const Dim &dim) {
    return dim.bound ? dim.bound : scalars.get(b, dim.size);
  }
  Value offsetOf(Value group, int64_t number = 0);
  Value groupOf(Value slot);
  void enterGroup();
  SmallVector<Value> computeInGroup(function_ref<SmallVector<Value>()> compute);

  // Split-K (GretaToTileSplitK.cpp).
  void joinParts();
  int64_t slicesOfTile();
  Value goOnWithSlices(Value counter, int64_t most, Value slices);
  Value addParts(Value parts, RankedTensorType type, int64_t apart);

  // Skinny GEMMs (GretaToTileSkinny.cpp).
  void addDepth();
  int64_t depthId() const { return space.rank() + 1; }
  bool hasDepth(const Mapping &mapping) const {
    return llvm::is_contained(mapping, depthId());
  }
  /// How blocks of A and B lie, the type of sums, and their dimensions that a
  /// product adds up.
  struct SkinnyLoop {
    Mapping a, w;
    RankedTensorType type;
    SmallVector<int64_t> summed = {};
  };
  SmallVector<Value> computeSkinny();
  /// Adds the products of `count` blocks along K to the sums `from`, all of
  /// them loaded before the first is multiplied; the last one of masked blocks
  /// is not full.
  SmallVector<Value> addSkinnyBlocks(const SkinnyLoop &skinny, ValueRange from,
                                     Value first, int64_t count, bool masked);
  Value computeDequant(DequantOp op, const Mapping &mapping);
  /// Words, zeros and scales of a block, words of its upper bits or null, and
  /// minima or null; beside minima, zeros are the middle of all weights.
  struct PackedBlocks {
    Value words, zeros, scales, high, minima;
  };
  PackedBlocks loadDequant(DequantOp op, bool inGemm, bool inParts);
  Value addPackedProducts(Value left, const WeightFormat &format,
                          const PackedBlocks &blocks, Value sum,
                          ArrayRef<int64_t> summed);
  struct Packed;
  Value loadPacked(Value v, const Packed &packed);
  Value indexAlong(const Packed &packed, int64_t unit);
  Value shifted(Value word, Value shift);
  /// Values by their mappings.
  using Seen = std::set<std::pair<const void *, Mapping>>;
  void loadLeaves(Value v, const Mapping &mapping, Seen &seen);
  /// Says which indices along a dimension are below the space's end, as a block
  /// of `rank` dimensions.
  Value isWithin(unsigned number, unsigned rank);
  Value maskDepth(Value block);
  /// The blocks that a reduction combines, with its neutral elements beyond the
  /// row's end. If it has none that are known, there is a block of i1 behind
  /// them, unless it would always be true: whether an element is there.
  SmallVector<Value> reductionInputs(const Reduction &reduction);
  /// Such blocks that leave what they are combined with as it is.
  SmallVector<Value> nothingCombined(const Reduction &reduction);
  SmallVector<Value> combine(const Reduction &reduction, ValueRange x,
                             ValueRange y);
  SmallVector<mlir::TypedAttr> neutralElements(const Reduction &reduction);
  /// The sum of floats, or of integers.
  Value addNumbers(Value x, Value y);
  /// The sum along a dimension, which stays with extent 1.
  Value sumAlong(Value block, unsigned dim);
  std::pair<Value, std::optional<double>> normInput(Operation *op,
                                                    unsigned index);
  /// A row value of `op` that follows from one of its reductions, over all
  /// columns; `part` tells it from others of the op.
  Value rowValue(Operation *op, unsigned part, unsigned reduction,
                 function_ref<Value(Value)> compute);
  Value meanOf(Operation *op);
  Value scaleOf(Operation *op, unsigned reduction, llvm::APFloat eps);
  Value scaleOf(Operation *op, Value sum, llvm::APFloat eps);
  Value exponentials(SoftmaxOp op);
  /// `v` in f32, repeated to the whole block.
  Value wide(Value v, const Mapping &mapping);
  Value widen(Value block);
  Value maskColumns(Value block, mlir::TypedAttr other);
  std::optional<double> beyondRow(Value v);
  DenseMap<Value, std::optional<double>> beyondRows;
  bool wantsNegativeInfinity(Value argument);

  const int64_t units;             // workgroups that run at a time, at least
  DenseMap<unsigned, Value> views; // pointers of arguments that are
  Mapping identity;
  SmallVector<Dim> dims;
  /// The batch of a GEMM: a workgroup has one index of each, which moves
  /// the tensors' pointers, so that blocks do not have these dimensions.
  SmallVector<Dim> batch;
  unsigned columnDim = 0;
  int pairDim = -1;
  unsigned depthDim = 0;           // of a skinny GEMM, or an operand
  bool inOperand = false;          // blocks are those of an Operand
  Value inGroup;                   // whether this workgroup's rows have a group
  Value part, tileNumber;          // this workgroup's range of K, and its tile
  SmallVector<AffineExpr> extents; // of scratch memory
  scf::ForOp loop; // over columns, while its body is being emitted
  Scope outer, inner;
  std::map<Reduction, SmallVector<Value>> reductions;
  DenseMap<Value, unsigned> stages;
  DenseMap<Operation *, Value> sums; // of the GEMMs
};

} // namespace greta

#endif
