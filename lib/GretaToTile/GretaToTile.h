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
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <map>
#include <memory>
#include <set>

namespace greta {

/// The i32 arguments of a kernel: expressions over the function's symbols.
class ScalarArguments {
public:
  explicit ScalarArguments(tile::FuncOp kernel) : kernel(kernel) {}
  /// A constant, or the argument that carries `expr`.
  mlir::Value get(mlir::ImplicitLocOpBuilder &b, mlir::AffineExpr expr);
  llvm::ArrayRef<mlir::AffineExpr> expressions() const { return exprs; }

private:
  tile::FuncOp kernel;
  llvm::SmallVector<mlir::AffineExpr> exprs;
  llvm::SmallVector<mlir::Value> arguments;
};

/// The arguments of a kernel's launch that begin at a part's first row, where a
/// sum over ranks next to it is made in parts and its rows are independent
/// (GretaToTileParts.cpp); null: it is launched whole. `buffers`: the launch's
/// operands.
mlir::DenseI64ArrayAttr rowArguments(KernelOp kernel,
                                     llvm::ArrayRef<mlir::Value> buffers);

/// Elements between neighbours along a dimension of the space in a tensor that
/// `mapping` indexes.
mlir::AffineExpr strideOf(int64_t spaceDim, const TensorLayout &layout,
                          const Mapping &mapping);

/// An i32 constant.
mlir::Value i32(mlir::ImplicitLocOpBuilder &b, int64_t value);

/// The destination of the rows of a result that updates a cache in place: row t
/// to row slots[t] of `rows`, others nowhere.
struct CacheRows {
  mlir::Value slots; // null: the result is stored as it is
  mlir::AffineExpr rows;
};

/// Arithmetic inside one op of the dialect may contract: its definition rounds
/// once, at the end.
constexpr auto contract = mlir::arith::FastMathFlags::contract;

constexpr double log2e = 1.4426950408889634;

/// A region of a kernel, and where its program is emitted.
struct EmitterContext {
  struct Pointers {
    mlir::ValueRange inputs;          // one per argument of the region
    mlir::ValueRange outputs;         // one per yielded value
    mlir::ValueRange scratch;         // of scratchTypes
    llvm::ArrayRef<CacheRows> caches; // per yielded value
  };

  mlir::ImplicitLocOpBuilder &b;
  KernelOp kernel;
  mlir::Region &region;
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
  virtual mlir::AffineExpr workgroups() = 0;

  /// The program of workgroup `index` of the region.
  virtual void emit(mlir::Value index) = 0;

  /// How many elements there are of each scratch buffer, once the program is
  /// emitted.
  virtual llvm::SmallVector<mlir::AffineExpr> scratchExtents() { return {}; }

protected:
  using Flags = mlir::arith::FastMathFlags;
  using Predicate = mlir::arith::CmpIPredicate;
  using FPredicate = mlir::arith::CmpFPredicate;

  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulIOp::create(b, x, y);
  }
  /// The operands are natural numbers.
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivUIOp::create(b, x, y);
  }
  mlir::Value rem(mlir::Value x, mlir::Value y) {
    return mlir::arith::RemUIOp::create(b, x, y);
  }
  mlir::Value minU(mlir::Value x, mlir::Value y) {
    return mlir::arith::MinUIOp::create(b, x, y);
  }
  mlir::Value least(mlir::Value x, mlir::Value y) {
    return mlir::arith::MinSIOp::create(b, x, y);
  }
  mlir::Value most(mlir::Value x, mlir::Value y) {
    return mlir::arith::MaxSIOp::create(b, x, y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, x, y);
  }
  mlir::Value fadd(mlir::Value x, mlir::Value y, Flags flags = Flags::none) {
    return mlir::arith::AddFOp::create(b, x, y, flags);
  }
  mlir::Value fsub(mlir::Value x, mlir::Value y, Flags flags = Flags::none) {
    return mlir::arith::SubFOp::create(b, x, y, flags);
  }
  mlir::Value fmul(mlir::Value x, mlir::Value y, Flags flags = Flags::none) {
    return mlir::arith::MulFOp::create(b, x, y, flags);
  }
  mlir::Value fdiv(mlir::Value x, mlir::Value y, Flags flags = Flags::none) {
    return mlir::arith::DivFOp::create(b, x, y, flags);
  }
  mlir::Value compare(Predicate how, mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, how, x, y);
  }
  mlir::Value compare(FPredicate how, mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, how, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, condition, x, y);
  }

  mlir::AffineExpr fixed(int64_t value) {
    return mlir::getAffineConstantExpr(value, kernel.getContext());
  }
  /// An i64: a constant, an i32 (or a block), or an expression computed with 64
  /// bits.
  mlir::Value i64(int64_t value);
  mlir::Value large(mlir::Value i32);
  mlir::Value large(mlir::AffineExpr expr);

  // Blocks.
  mlir::RankedTensorType block(llvm::ArrayRef<int64_t> shape,
                               mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value block) {
    return mlir::cast<mlir::RankedTensorType>(block.getType()).getShape();
  }
  /// The same number everywhere; of f32 where a shape is given.
  mlir::Value constant(mlir::RankedTensorType type, double value);
  mlir::Value constant(llvm::ArrayRef<int64_t> shape, double value) {
    return constant(block(shape, b.getF32Type()), value);
  }
  mlir::Value splat(mlir::Value scalar, llvm::ArrayRef<int64_t> shape);
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, unsigned dim);
  mlir::Value reshape(mlir::Value block, llvm::ArrayRef<int64_t> shape);
  mlir::Value broadcast(mlir::Value block, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value block, llvm::ArrayRef<int64_t> order);
  /// In f32, and in `element`; itself where it is.
  mlir::Value extend(mlir::Value block);
  mlir::Value narrow(mlir::Value block, mlir::Type element,
                     Flags flags = Flags::none);
  /// Combined along a dimension, which goes away.
  mlir::Value
  reduce(mlir::Value block, unsigned dim,
         llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

  // Memory.
  mlir::Value advance(mlir::Value pointer, mlir::Value elements) {
    return tile::PtrAddOp::create(b, pointer, elements);
  }
  mlir::Value gather(mlir::Type type, mlir::Value pointers, mlir::Value mask) {
    return tile::LoadScatteredOp::create(b, type, pointers, mask,
                                         mlir::Value());
  }
  /// The operands that greta_tile.load and store share.
  struct Access {
    llvm::SmallVector<mlir::Value> offsets, dynamicStrides, bounds;
    llvm::SmallVector<int64_t> strides, bounded, clamped;
  };
  /// A dimension more of one, at an offset (null: 0) with a stride.
  void addDim(Access &access, mlir::Value offset, mlir::AffineExpr stride);
  static void setBound(Access &access, int64_t dim, mlir::Value bound) {
    access.bounded.push_back(dim);
    access.bounds.push_back(bound);
  }
  Access wholeBlock(llvm::ArrayRef<int64_t> shape);
  tile::LoadOp load(mlir::RankedTensorType type, mlir::Value pointer,
                    const Access &access, mlir::Value other = {});
  void store(mlir::Value block, mlir::Value pointer, const Access &access);

  // The conditions that callers are asked for.
  /// Whether the function is (checkedName).
  bool isChecked();
  /// There: the launch fails unless `condition`, a scalar or a block, holds.
  void check(llvm::function_ref<mlir::Value()> condition,
             llvm::StringRef message);
  /// `x` for every element, or true if nobody asks.
  mlir::Value implied(mlir::Value asked, mlir::Value x);
  /// Every slot is inside, or negative, which goes nowhere.
  mlir::Value orLeftOut(mlir::Value isInside, mlir::Value slot);

  // Control flow.
  /// Leaves the builder where only those go on for whom `condition` holds.
  void goOnIf(mlir::Value condition);
  /// When all workgroups that share a tile have stored their partial sums:
  /// counts this one at `counter`, and leaves the builder where only the last
  /// of `expected` goes on, which sees what the others have stored.
  void goOnAsLast(mlir::Value counter, mlir::Value expected);
  /// A loop whose iterations make of its counter and what it carries what it
  /// carries on.
  mlir::scf::ForOp
  loopOver(mlir::Value from, mlir::Value to, int64_t step,
           mlir::ValueRange carried,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value,
                                                             mlir::ValueRange)>
               iteration);
};

/// The elements of the scratch memory of a space whose work is split, a buffer
/// each; the last has counters, which are zero between launches.
llvm::SmallVector<mlir::Type> scratchTypes(const Space &space,
                                           const SpaceSchedule &config);
llvm::SmallVector<mlir::Type> attentionScratch(mlir::MLIRContext *context);

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

  llvm::SmallVector<mlir::AffineExpr> scratchExtents() override {
    return extents;
  }
  mlir::AffineExpr workgroups() override;
  void emit(mlir::Value index) override;

private:
  struct Dim {
    enum Kind { Group, Pair, Column, Depth, Run } kind;
    int64_t group;
    int64_t extent;
    mlir::AffineExpr size;  // of the whole space along it
    bool masked;            // some block is not full
    mlir::Value offset;     // of this workgroup's block; null: 0
    int64_t unit = 0;       // Depth and Run: elements along K of one step
    int64_t step = 0;       // in a skinny GEMM: columns of B of one step
    bool moved = false;     // the last block ends where the space does
    bool grouped = false;   // rows in groups: blocks end where a group does
    mlir::Value bound = {}; // of this workgroup's group; null: the size
    bool isAlone = false;   // no launch has a second block

    mlir::AffineExpr blocks() const {
      return isAlone ? mlir::getAffineConstantExpr(1, size.getContext())
                     : size.ceilDiv(extent);
    }
  };
  enum class Masked { Zero, NegativeInfinity, Unknown };
  /// A value (or an op and which of its parts) in a mapping.
  using Key = std::tuple<const void *, unsigned, std::vector<int64_t>>;
  /// The computed values: per region of code, so that they dominate.
  using Scope = std::map<Key, mlir::Value>;

  // Layout of the space (GretaToTileSpace.cpp).
  bool isSplit(const Dim &dim) const;
  bool hasColumns(const Mapping &mapping) const;
  bool isMapped(const Dim &dim, const Mapping &mapping) const;
  using Emitter::shapeOf;
  llvm::SmallVector<int64_t> shapeOf(const Mapping &mapping) const;
  mlir::RankedTensorType blockType(const Mapping &mapping, mlir::Type element);
  void locate(mlir::Value index);
  void locateViews();
  /// As an i64, of what is computed with 32 bits.
  mlir::Value elements(mlir::AffineExpr count);
  /// `bound`, having said that the block at `offset` begins within it: the grid
  /// and the loops end there.
  mlir::Value reached(mlir::Value offset, mlir::Value bound);
  Access access(const TensorLayout &layout, const Mapping &mapping);
  mlir::Value inBatch(mlir::Value pointer, const TensorLayout &layout,
                      const Mapping &mapping);
  using Emitter::load, Emitter::store;
  mlir::Value load(mlir::BlockArgument argument, const Mapping &mapping);
  void store(unsigned output, mlir::Value value);
  void storeRows(unsigned output, mlir::Value block);
  mlir::AffineMap shapeOfArgument(unsigned index);
  TensorLayout layoutOf(mlir::BlockArgument argument);
  /// The first element of what the region sees.
  mlir::Value pointerOf(mlir::BlockArgument argument);
  bool variesInLoop(const Mapping &mapping) const;

  // Order of the work (GretaToTileSpace.cpp).
  unsigned stageOf(mlir::Value value);
  /// Its body is emitted for the columns from an offset on.
  mlir::scf::ForOp loopOverColumns(
      mlir::ValueRange carried,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>
          iteration);
  void emitStage(unsigned stage);
  void emitOutputs();
  mlir::Value reduceAll(mlir::Operation *op, unsigned index, mlir::Value block);
  mlir::Value value(mlir::Value v, const Mapping &mapping);
  mlir::Value memoize(const void *key, unsigned part, const Mapping &mapping,
                      llvm::function_ref<mlir::Value()> compute);

  // Values (GretaToTileOps.cpp).
  mlir::Value compute(mlir::Value v, const Mapping &mapping);
  mlir::Value computeElementwise(mlir::Operation *op, const Mapping &mapping);
  mlir::Value computeRowOp(mlir::Operation *op);
  mlir::Value computeRope(RopeOp op);

  // GEMMs in tiles (GretaToTileGemm.cpp).
  mlir::Value computeMatmul(MatmulOp op);
  std::pair<mlir::Value, mlir::Value> inParts(mlir::Value block);
  llvm::SmallVector<mlir::Value> computeLoop();
  /// This workgroup's blocks along K of a GEMM.
  struct DepthRange {
    mlir::Value begin, length; // null begin: 0
  };
  int64_t partsOfDepth() const;
  DepthRange depthRange(mlir::AffineExpr depth, int64_t block);
  /// The indices of the GEMM's result in a block.
  int64_t blockColumns() const { return dims[1].extent * space.headSize(); }
  /// The indices of A (number 0) or B: the batch, then rows or columns and the
  /// depth in their order.
  Mapping matrixMapping(MatmulOp op, unsigned number,
                        llvm::ArrayRef<int64_t> columns);
  /// The blocks of a GEMM's operand, which take the space's place while it is
  /// loaded or computed.
  struct Operand {
    llvm::SmallVector<Dim> dims;
    Mapping identity;
    unsigned columnDim = 1, depthDim = 0;
    int pairDim = -1;
    Scope outer, inner;
  };
  Operand operandOf(MatmulOp op, unsigned number, mlir::AffineExpr depth);
  void exchange(Operand &operand);
  mlir::Value emitOperand(mlir::Value v);
  /// An iteration of computeLoop: the sums that `gemm` carries and the products
  /// of the blocks at `k`.
  llvm::SmallVector<mlir::Value> addBlocks(mlir::scf::ForOp gemm, mlir::Value k,
                                           Operand &operandA,
                                           Operand &operandB);
  /// Behind the loop: joins the sums of a block's parts along K, and scales
  /// them as A's norm says.
  llvm::SmallVector<mlir::Value>
  finishSums(llvm::SmallVector<mlir::Value> results);
  /// The norm that a GEMM's A is; null: it is none.
  RmsNormOp normOfA() {
    return MatmulOp(space.matmul).getA().getDefiningOp<RmsNormOp>();
  }
  mlir::Value weighted(RmsNormOp norm, const Mapping &mapping);
  mlir::Value addSquares(RmsNormOp norm, const Mapping &mapping,
                         mlir::Value sums, llvm::ArrayRef<int64_t> dims);
  mlir::Value computeDequantBlock(DequantOp op);

  // Convolutions (GretaToTileConvolution.cpp).
  mlir::Value computePatches(PatchesOp op);
  struct Patches;
  Patches sizesOf(PatchesOp op);
  void locateRows(Patches &patches);
  /// Elements from index 0 to `index` along a dimension of the images.
  mlir::Value elementsTo(const Patches &patches, mlir::Value index,
                         unsigned dim);
  /// A number of elements in the type that all images are counted in.
  mlir::Value counted(const Patches &patches, mlir::Value v);
  mlir::Value plus(const Patches &patches, mlir::Value x, mlir::Value y);

  // Grouped GEMMs (GretaToTileGroups.cpp).
  bool isGrouped() const {
    return space.matmul && MatmulOp(space.matmul).getOffsets();
  }
  /// How many blocks there may be along a dimension.
  mlir::AffineExpr blocksOf(const Dim &dim) const;
  mlir::Value boundOf(const Dim &dim) {
    return dim.bound ? dim.bound : scalars.get(b, dim.size);
  }
  mlir::Value offsetOf(mlir::Value group, int64_t number = 0);
  mlir::Value groupOf(mlir::Value slot);
  void checkOffsets(mlir::Value slot, mlir::Value rows);
  void enterGroup();
  llvm::SmallVector<mlir::Value>
  computeInGroup(llvm::function_ref<llvm::SmallVector<mlir::Value>()> compute);

  // Split-K (GretaToTileSplitK.cpp).
  void joinParts();
  int64_t slicesOfTile();
  mlir::Value goOnWithSlices(mlir::Value counter, int64_t most,
                             mlir::Value slices);
  mlir::Value addParts(mlir::Value parts, mlir::RankedTensorType type,
                       int64_t apart);

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
    mlir::RankedTensorType type;
    llvm::SmallVector<int64_t> summed = {};
  };
  llvm::SmallVector<mlir::Value> computeSkinny();
  /// Adds the products of `count` blocks along K to the sums `from`, all of
  /// them loaded before the first is multiplied; the last one of masked blocks
  /// is not full.
  llvm::SmallVector<mlir::Value> addSkinnyBlocks(const SkinnyLoop &skinny,
                                                 mlir::ValueRange from,
                                                 mlir::Value first,
                                                 int64_t count, bool masked);
  mlir::Value computeDequant(DequantOp op, const Mapping &mapping);
  /// Words, zeros and scales of a block, words of its upper bits or null, and
  /// minima or null; beside minima, zeros are the middle of all weights.
  struct PackedBlocks {
    mlir::Value words, zeros, scales, high, minima;
  };
  PackedBlocks loadDequant(DequantOp op, bool inGemm, bool inParts);
  mlir::Value addPackedProducts(mlir::Value left, const WeightFormat &format,
                                const PackedBlocks &blocks, mlir::Value sum,
                                llvm::ArrayRef<int64_t> summed);
  struct Packed;
  mlir::Value loadPacked(mlir::Value v, const Packed &packed);
  mlir::Value indexAlong(const Packed &packed, int64_t unit);
  mlir::Value shifted(mlir::Value word, mlir::Value shift);
  /// Values by their mappings.
  using Seen = std::set<std::pair<const void *, Mapping>>;
  void loadLeaves(mlir::Value v, const Mapping &mapping, Seen &seen);
  /// Says which indices along a dimension are below the space's end, as a block
  /// of `rank` dimensions.
  mlir::Value isWithin(unsigned number, unsigned rank);
  mlir::Value maskDepth(mlir::Value block);
  /// The block that reduction `index` of `op` combines, masked.
  mlir::Value reductionInput(mlir::Operation *op, unsigned index);
  /// Maxima of rows that hold no NaN, or whose NaN comes back (Max); others
  /// keep it.
  enum class Combine { Add, Max, Multiply, Greatest, Least };
  Combine reductionKind(mlir::Operation *op, unsigned index);
  mlir::Value combine(Combine kind, mlir::Value x, mlir::Value y);
  mlir::Value neutral(Combine kind, mlir::RankedTensorType type);
  /// Combines along a dimension, which stays with extent 1.
  using Emitter::reduce;
  mlir::Value reduce(Combine kind, mlir::Value block, unsigned dim);
  /// A row value of `op` that follows from one of its reductions, over all
  /// columns; `part` tells it from others of the op.
  mlir::Value rowValue(mlir::Operation *op, unsigned part, unsigned reduction,
                       llvm::function_ref<mlir::Value(mlir::Value)> compute);
  mlir::Value meanOf(mlir::Operation *op);
  mlir::Value scaleOf(mlir::Operation *op, unsigned reduction,
                      llvm::APFloat eps);
  mlir::Value scaleOf(mlir::Operation *op, mlir::Value sum, llvm::APFloat eps);
  mlir::Value exponentials(SoftmaxOp op);
  /// `v` in f32, repeated to the whole block.
  mlir::Value wide(mlir::Value v, const Mapping &mapping);
  mlir::Value widen(mlir::Value block);
  mlir::Value maskColumns(mlir::Value block, mlir::Value other);
  Masked maskedValue(mlir::Value v);
  llvm::DenseMap<mlir::Value, Masked> maskedValues;
  bool wantsNegativeInfinity(mlir::Value argument);

  const int64_t units; // workgroups that run at a time, at least
  llvm::DenseMap<unsigned, mlir::Value> views; // pointers of arguments that are
  Mapping identity;
  llvm::SmallVector<Dim> dims;
  /// The batch of a GEMM: a workgroup has one index of each, which moves
  /// the tensors' pointers, so that blocks do not have these dimensions.
  llvm::SmallVector<Dim> batch;
  unsigned columnDim = 0;
  int pairDim = -1;
  unsigned depthDim = 0;        // of a skinny GEMM, or an operand
  bool inOperand = false;       // blocks are those of an Operand
  mlir::Value inGroup;          // whether this workgroup's rows have a group
  mlir::Value part, tileNumber; // this workgroup's range of K, and its tile
  llvm::SmallVector<mlir::AffineExpr> extents; // of scratch memory
  mlir::scf::ForOp loop; // over columns, while its body is being emitted
  Scope outer, inner;
  std::map<std::pair<mlir::Operation *, unsigned>, mlir::Value> reductions;
  llvm::DenseMap<mlir::Value, unsigned> stages;
  llvm::DenseMap<mlir::Operation *, mlir::Value> sums; // of the GEMMs
};

} // namespace greta

#endif
