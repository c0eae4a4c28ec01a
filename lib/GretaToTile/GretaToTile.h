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
#include "greta/Tile/Blocks.h"
#include "greta/Tile/Elementwise.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <map>
#include <memory>
#include <set>

namespace greta {

/// The i32 arguments of a kernel, which are expressions over the function's
/// symbols.
class ScalarArguments {
public:
  explicit ScalarArguments(tile::FuncOp kernel) : kernel(kernel) {}
  /// Returns a constant, or the argument that carries `expr`.
  Value get(ImplicitLocOpBuilder &b, AffineExpr expr);
  ArrayRef<AffineExpr> expressions() const { return exprs; }

private:
  tile::FuncOp kernel;
  SmallVector<AffineExpr> exprs;
  SmallVector<Value> arguments;
};

/// Returns the numbers of a launch's arguments that begin at the first row of a
/// part, if a sum over ranks next to the launch is made in parts and the
/// kernel's rows are independent (GretaToTileParts.cpp). Null: the kernel is
/// launched as a whole. `buffers` are the launch's operands.
mlir::DenseI64ArrayAttr rowArguments(KernelOp kernel,
                                     llvm::ArrayRef<mlir::Value> buffers);

/// Returns the number of elements between neighbours along a dimension of the
/// space, in a tensor that `mapping` indexes.
AffineExpr strideOf(int64_t spaceDim, const TensorLayout &layout,
                    const Mapping &mapping);

/// The destination of a result's rows if it updates a cache in place. Row t
/// goes to row slots[t] of the cache, which has `rows` rows; a row whose slot
/// is not in the cache is dropped.
struct CacheRows {
  Value slots; // null: the result is stored as it is
  AffineExpr rows;
};

/// The flags of arithmetic inside one op of the dialect. It may contract,
/// because an op's definition rounds once, at the end.
constexpr auto contract = arith::FastMathFlags::contract;

constexpr double log2e = 1.4426950408889634;

/// A region of a kernel, and everything that its program is emitted from.
struct EmitterContext : Blocks {
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

/// Emits the program of one workgroup for a region of a kernel. Its members are
/// short names for the ops that all emitters need (BlockProgram.cpp).
class Emitter : protected EmitterContext {
public:
  explicit Emitter(const EmitterContext &context) : EmitterContext(context) {}
  virtual ~Emitter() = default;

  /// The number of the region's workgroups, over the function's symbols.
  virtual AffineExpr workgroups() = 0;

  /// Emits the program of workgroup `index` of the region.
  virtual void emit(Value index) = 0;

  /// The number of elements of each scratch buffer. It is known once the
  /// program is emitted.
  virtual SmallVector<AffineExpr> scratchExtents() { return {}; }

protected:
  AffineExpr fixed(int64_t value) {
    return mlir::getAffineConstantExpr(value, kernel.getContext());
  }
  /// These return an i64: a constant, an i32 (or a block of i32) extended, or
  /// an expression computed with 64 bits.
  Value i64(int64_t value);
  Value large(Value i32);
  Value large(AffineExpr expr);

  // Blocks.
  /// A block of equal numbers; with a shape in place of a type, of f32.
  Value constant(RankedTensorType type, double value);
  Value constant(ArrayRef<int64_t> shape, double value) {
    return constant(block(shape, b.getF32Type()), value);
  }
  Value constant(RankedTensorType type, mlir::TypedAttr value);
  /// Returns a block of f32 of equal numbers, with the shape of another.
  Value like(Value block, double value) {
    return constant(shapeOf(block), value);
  }
  /// These convert a block to f32, and to `element`, if it has another type.
  Value extend(Value block);
  Value narrow(Value block, Type element, Flags flags = Flags::none);
  /// Emits elementwise work on blocks of one shape; `blockOf` has those of its
  /// operands.
  Value elementwise(Operation *op, ArrayRef<int64_t> shape,
                    function_ref<Value(Value)> blockOf);
  /// Combines a block along a dimension, which the result lacks.
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
    SmallVector<int64_t> runs, runStrides; // empty: there are none
  };
  /// Adds a dimension to an access, with an offset (null: 0) and a stride.
  void addDim(Access &access, Value offset, AffineExpr stride);
  static void setBound(Access &access, int64_t dim, Value bound) {
    access.bounded.push_back(dim);
    access.bounds.push_back(bound);
  }
  Access wholeBlock(ArrayRef<int64_t> shape);
  tile::LoadOp load(RankedTensorType type, Value pointer, const Access &access,
                    Value other = {});
  void store(Value block, Value pointer, const Access &access);

  // Checks of what callers promise.
  /// Whether the function is checked (checkedName).
  bool isChecked();
  /// In a checked function: the launch fails unless `condition`, a scalar or a
  /// block, holds.
  void check(function_ref<Value()> condition, StringRef message);
  /// In a checked function, by the workgroup whose `index` is 0: the launch
  /// fails unless the numbers `at(i, 0)` to `at(i, 1)`, for i below `count`,
  /// ascend from 0 to at most `most`.
  void checkAscending(Value index, Value count, Value most,
                      function_ref<Value(Value, int64_t)> at,
                      StringRef message);
  /// Returns `x` for elements where `asked` holds, else true.
  Value implied(Value asked, Value x);
  /// Returns true where a slot is inside, or negative, which drops the row.
  Value orLeftOut(Value isInside, Value slot);

  // Control flow.
  /// Begins a branch that is taken if `condition` holds, and leaves the builder
  /// in it.
  void goOnIf(Value condition);
  /// Counts this workgroup, which has stored its partial sums of a tile, at
  /// `counter`. Then begins a branch for the last of the `expected` workgroups,
  /// which sees the sums of the others, and leaves the builder in it.
  void goOnAsLast(Value counter, Value expected);
  /// Emits a loop. `iteration` is given the counter and the carried values, and
  /// returns the values that are carried on.
  scf::ForOp
  loopOver(Value from, Value to, int64_t step, ValueRange carried,
           function_ref<SmallVector<Value>(Value, ValueRange)> iteration);
};

/// The element types of the scratch buffers of a space whose work is split. The
/// last buffer has counters, which are zero between launches.
SmallVector<Type> scratchTypes(const Space &space, const SpaceSchedule &config);
SmallVector<Type> attentionScratch(MLIRContext *context);

/// Emitters of ops that have a kernel to themselves.
std::unique_ptr<Emitter> makeAttentionEmitter(const EmitterContext &context);
std::unique_ptr<Emitter>
makeAttentionBackwardEmitter(const EmitterContext &context);
std::unique_ptr<Emitter> makeUpdateEmitter(const EmitterContext &context);

/// The emitter of all other kernels. Block tensors have the dimensions that
/// Space describes; a value that lacks a dimension has extent 1 there.
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
    AffineExpr size;      // of the whole space along the dimension
    bool masked;          // some block reaches beyond the size
    Value offset;         // where this workgroup's block begins; null: 0
    int64_t unit = 0;     // Depth and Run: elements along K of one step
    int64_t step = 0;     // in a skinny GEMM: columns of B of one step
    bool moved = false;   // the last block ends where the space does
    bool grouped = false; // blocks of rows end where a group ends
    Value bound = {};     // the end of this workgroup's group; null: the size
    bool isAlone = false; // there is only one block in any launch

    AffineExpr blocks() const {
      return isAlone ? mlir::getAffineConstantExpr(1, size.getContext())
                     : size.ceilDiv(extent);
    }
  };
  /// An op and the number of one of its reductions.
  using Reduction = std::pair<Operation *, unsigned>;
  /// A value, or an op and the number of one of its parts, in a mapping.
  using Key = std::tuple<const void *, unsigned, std::vector<int64_t>>;
  /// The values that were computed in one region of code, so that they dominate
  /// their uses.
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
  /// Returns a number of elements as an i64, which is computed with 32 bits.
  Value elements(AffineExpr count);
  /// Returns `bound`, and states that the block at `offset` begins below it,
  /// since the grid and the loops end there.
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
  /// Returns a pointer to the first element that the region sees.
  Value pointerOf(BlockArgument argument);
  bool variesInLoop(const Mapping &mapping) const;

  // Order of the work (GretaToTileSpace.cpp).
  unsigned stageOf(Value value);
  /// Emits a loop over pieces of a row, whose body is emitted once.
  scf::ForOp
  loopOverColumns(ValueRange carried,
                  function_ref<SmallVector<Value>(ValueRange)> iteration);
  void emitStage(unsigned stage);
  void emitOutputs();
  /// Combines blocks along the columns, which stay as a dimension of extent 1.
  SmallVector<Value> reduceAll(const Reduction &reduction,
                               SmallVector<Value> blocks);
  Value value(Value v, const Mapping &mapping);
  Value memoize(const void *key, unsigned part, const Mapping &mapping,
                function_ref<Value()> compute);

  // Values (GretaToTileOps.cpp).
  Value compute(Value v, const Mapping &mapping);
  Value computeRowOp(Operation *op);
  Value computeRope(RopeOp op);

  // GEMMs in tiles (GretaToTileGemm.cpp).
  Value computeMatmul(MatmulOp op);
  std::pair<Value, Value> inParts(Value block);
  SmallVector<Value> computeLoop();
  /// The range of K that this workgroup adds up.
  struct DepthRange {
    Value begin, length; // null begin: 0
  };
  int64_t partsOfDepth() const;
  DepthRange depthRange(AffineExpr depth, int64_t block);
  /// The number of columns of the GEMM's result in a block, and whether these
  /// are a part of a head.
  int64_t blockColumns() const;
  bool isPartOfHead() const {
    return space.heads && blockColumns() < space.headSize();
  }
  /// The mapping of A (number 0) or B (1): the batch, then rows or columns and
  /// K in the operand's order.
  Mapping matrixMapping(MatmulOp op, unsigned number,
                        ArrayRef<int64_t> columns);
  /// A GEMM's operand as a space of its own. `exchange` puts it in the place of
  /// the GEMM's space while the operand is loaded or computed.
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
  /// Emits an iteration of computeLoop: adds the products of the blocks at `k`
  /// to the sums that `gemm` carries.
  SmallVector<Value> addBlocks(scf::ForOp gemm, Value k, Operand &operandA,
                               Operand &operandB);
  /// Adds up a block's parts along K behind the loop, and scales the sums if A
  /// is a norm.
  SmallVector<Value> finishSums(SmallVector<Value> results);
  /// Returns the norm whose result is the GEMM's A; null: A is no norm.
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
  void locatePositions(Patches &patches);
  Value pointerToImages(const Patches &patches);
  /// Whether indices along an image's rows (0) or columns (1) are in the image.
  Value isInImage(const Patches &patches, Value at, unsigned dim);
  struct Taps;
  /// Splits `k`, along K. `number` gives constants of its type.
  Taps tapsOf(const Patches &patches, Value k,
              function_ref<Value(int64_t)> number);
  /// Returns the elements from index 0 to `index` along an images' dimension.
  Value elementsTo(const Patches &patches, Value index, unsigned dim);
  /// Converts a number to the type in which elements of the images are counted.
  Value counted(const Patches &patches, Value v);
  Value plus(const Patches &patches, Value x, Value y);

  // Grouped GEMMs (GretaToTileGroups.cpp).
  bool isGrouped() const {
    return space.matmul && MatmulOp(space.matmul).getOffsets();
  }
  /// The most blocks that there may be along a dimension.
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
  /// The mappings of A and B, the type of sums, and the dimensions that a
  /// contract adds up.
  struct SkinnyLoop {
    Mapping a, w;
    RankedTensorType type;
    SmallVector<int64_t> summed = {};
  };
  SmallVector<Value> computeSkinny();
  /// Adds the products of `count` blocks along K to the sums `from`. All blocks
  /// are loaded before the first is multiplied. If they are `masked`, the last
  /// one is not full.
  SmallVector<Value> addSkinnyBlocks(const SkinnyLoop &skinny, ValueRange from,
                                     Value first, int64_t count, bool masked);
  Value computeDequant(DequantOp op, const Mapping &mapping);
  /// Words, zeros and scales of a block, and, if the format has them, words of
  /// upper bits and minima. With minima, zeros are the middle of all weights.
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
  /// Returns a block of i1 with `rank` dimensions: whether an index along a
  /// dimension is below the space's end.
  Value isWithin(unsigned number, unsigned rank);
  Value maskDepth(Value block);
  /// Returns the blocks that a reduction combines, with neutral elements beyond
  /// the row's end. If these are not known, a block of i1 follows that says
  /// whether an element is there, unless it would always be true.
  SmallVector<Value> reductionInputs(const Reduction &reduction);
  /// Returns such blocks whose elements are neutral, or are not there.
  SmallVector<Value> nothingCombined(const Reduction &reduction);
  SmallVector<Value> combine(const Reduction &reduction, ValueRange x,
                             ValueRange y);
  SmallVector<mlir::TypedAttr> neutralElements(const Reduction &reduction);
  /// Adds floats or integers.
  Value addNumbers(Value x, Value y);
  /// Adds a block up along a dimension, which stays with extent 1.
  Value sumAlong(Value block, unsigned dim);
  std::pair<Value, std::optional<double>> normInput(Operation *op,
                                                    unsigned index);
  /// Returns a number for each row that `compute` makes of one of the op's
  /// reductions. `part` tells it from other such numbers of the op.
  Value rowValue(Operation *op, unsigned part, unsigned reduction,
                 function_ref<Value(Value)> compute);
  Value meanOf(Operation *op);
  Value scaleOf(Operation *op, unsigned reduction, llvm::APFloat eps);
  Value scaleOf(Operation *op, Value sum, llvm::APFloat eps);
  Value exponentials(SoftmaxOp op);
  /// Returns `v` in f32, broadcast to the whole block.
  Value wide(Value v, const Mapping &mapping);
  Value widen(Value block) { return extend(block); }
  Value maskColumns(Value block, mlir::TypedAttr other);
  std::optional<double> beyondRow(Value v);
  DenseMap<Value, std::optional<double>> beyondRows;
  bool wantsNegativeInfinity(Value argument);

  const int64_t units;             // so many workgroups run at a time
  DenseMap<unsigned, Value> views; // pointers of arguments that are views
  Mapping identity;
  SmallVector<Dim> dims;
  /// The batch dimensions of a GEMM. A workgroup has one index of each, by
  /// which it moves the tensors' pointers, so that blocks lack these
  /// dimensions.
  SmallVector<Dim> batch;
  unsigned columnDim = 0;
  int pairDim = -1;
  unsigned depthDim = 0;           // K, in a skinny GEMM or an operand
  bool inOperand = false;          // the space is that of an Operand
  Value inGroup;                   // whether this workgroup's rows have a group
  Value part, tileNumber;          // this workgroup's range of K, and its tile
  SmallVector<AffineExpr> extents; // of scratch buffers
  scf::ForOp loop; // the loop over columns whose body is being emitted
  Scope outer, inner;
  std::map<Reduction, SmallVector<Value>> reductions;
  DenseMap<Value, unsigned> stages;
  DenseMap<Operation *, Value> sums; // of the GEMMs
};

} // namespace greta

#endif
