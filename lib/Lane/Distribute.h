//===- Distribute.h - block tensors to one lane's registers -----*- C++ -*-===//
//
// The state that the parts of greta-tile-distribute share: which lane values
// stand for a block tensor, and the thread's place in each layout.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_DISTRIBUTE_H
#define GRETA_LIB_LANE_DISTRIBUTE_H

#include "GretaTile/LinearAddress.h"
#include "greta/Layout/Conversion.h"
#include "greta/Layout/SharedMemory.h"
#include "greta/Target/Target.h"
#include "greta/Tile/AccessOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include <array>
#include <functional>
#include <map>

namespace greta::tile {

/// One lane's part of a value, in the order of its registers: scalars, or
/// *vectors*, vectors of as many neighbouring registers each, or fragments. For
/// anything but a block tensor the value itself.
using LaneValues = llvm::SmallVector<mlir::Value, 4>;

/// A layout with what code generation asks of it again and again.
struct DistributedLayout {
  Layout layout;
  /// index(register, 0, 0) of every register.
  llvm::SmallVector<Index> registerIndex;
  /// Index of the thread's register 0 per dimension, an i32 that dominates the
  /// kernel's body.
  llvm::SmallVector<mlir::Value, 4> threadIndex;
};

/// The registers of a lane for one operand of an instruction: a vector, or a
/// fragment. `use` says which operand.
mlir::Type getOperandType(MatrixAttr matrix, FragmentUse use,
                          mlir::Type element);

/// A number in the accumulator's type, and a product added to an accumulator.
mlir::Value widen(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value value, mlir::Type type);
mlir::Value multiplyAdd(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value x, mlir::Value y, mlir::Value sum);

/// The places of a local's elements.
SharedPlacement placementOf(LocalType type);

/// `width` elements in one piece: a vector, where there are several.
inline mlir::Type pieceOf(mlir::Type element, int64_t width) {
  return width > 1 ? mlir::Type(mlir::VectorType::get(width, element))
                   : element;
}

/// x + y, or `OpT` of both, where null is nothing.
template <typename OpT = mlir::arith::AddIOp>
mlir::Value accumulate(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       mlir::Value y) {
  return x && y ? OpT::create(b, x, y).getResult() : x ? x : y;
}

/// The op's combiner on one element of each block.
llvm::SmallVector<mlir::Value> combine(mlir::ImplicitLocOpBuilder &b,
                                       mlir::Region &combiner,
                                       llvm::ArrayRef<mlir::Value> x,
                                       llvm::ArrayRef<mlir::Value> y);

/// The threads that have some bits of the lane and the wave as given.
struct ThreadSet {
  uint32_t lanes = 0, waves = 0;         // which bits
  uint32_t laneValue = 0, waveValue = 0; // and what they are

  void add(const Layout::BitHolder &holder, bool isSet);
};

/// A lane whose element of a load is masked off does one of these.
enum class Masking {
  Branch,   // it branches around the load
  Replaced, // it loads another element, and selects
  Bounded,  // the target's load has the mask, and brings it zeros
};

struct LanePlace {
  mlir::Value base, offset; // i32, in elements
};

/// One lane's accesses of a block, or of one pointer.
struct LaneAccess {
  const DistributedLayout *layout = nullptr; // null: one pointer
  unsigned width = 1;                        // neighbours in one access
  Masking masking = Masking::Branch;
  bool wraps = false;      // parts of an offset may be negative
  bool isWide = false;     // 32 bits do not span the block
  bool transposed = false; // lanes hand each other what they load
  /// Uniform: a block that is loaded begins within; null: it does.
  mlir::Value some;
  std::function<LanePlace(mlir::ImplicitLocOpBuilder &, unsigned reg)> place;
  /// i1; null: the register's element is always accessed.
  std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, unsigned reg)> mask;
  /// For each access the register of the first one that has the same elements
  /// and mask; empty: each is alone.
  llvm::SmallVector<unsigned> sharers;

  /// The first register of each access.
  llvm::SmallVector<unsigned> registers() const {
    unsigned end = layout ? layout->registerIndex.size() : 1;
    return llvm::map_to_vector(llvm::seq(0u, (end + width - 1) / width),
                               [&](unsigned i) { return i * width; });
  }
};

template <typename OpT> class StridedEmitter;
class PointerEmitter;

/// Rewrites one kernel; the old body is read, a new function is built.
class Distributor {
  template <typename OpT> friend class StridedEmitter;
  friend class PointerEmitter;

public:
  /// A block that changes its layout through shared memory takes at most so
  /// many bytes of it at a time.
  Distributor(FuncOp kernel, const TargetRow &row, int64_t mostBytes);
  /// The lane's program, beside the kernel.
  mlir::FailureOr<FuncOp> run();
  /// The bytes that the largest of these would take as a whole.
  int64_t largestMove = 0;

private:
  mlir::LogicalResult distributeBlock(mlir::Block &block);
  mlir::LogicalResult distributeOp(mlir::Operation *op);
  mlir::LogicalResult distributeFor(mlir::Operation *op);
  mlir::LogicalResult distributeWhile(mlir::Operation *op);
  mlir::LogicalResult distributeIf(mlir::Operation *op);
  // DistributeElementwise.cpp
  mlir::LogicalResult distributeElementwise(mlir::Operation *op);
  mlir::LogicalResult distributeConstant(mlir::Operation *op);
  mlir::LogicalResult distributeIota(IotaOp op);
  std::optional<Index> constantGroup(mlir::Value value);
  // DistributeMove.cpp
  mlir::LogicalResult distributeConvertLayout(ConvertLayoutOp op);
  mlir::LogicalResult distributeBroadcast(BroadcastOp op);
  mlir::LogicalResult distributeReshape(ReshapeOp op);
  mlir::LogicalResult distributeTrans(TransOp op);
  mlir::LogicalResult distributeJoin(JoinOp op);
  mlir::LogicalResult distributeSplit(SplitOp op);
  mlir::LogicalResult distributeGather(GatherOp op);
  mlir::LogicalResult distributeHistogram(HistogramOp op);
  // DistributeContract.cpp
  mlir::LogicalResult distributeContract(ContractOp op);
  mlir::LogicalResult distributeDequant(DequantOp op);
  mlir::Value highFrom(mlir::ImplicitLocOpBuilder &b, mlir::Value word,
                       const WeightFormat &row, const DistributedLayout &layout,
                       unsigned dim, int64_t index);
  // DistributeDot.cpp
  mlir::LogicalResult distributeDot(DotOp op);
  mlir::LogicalResult distributeMatrixDot(DotOp op, const DistributedLayout &a,
                                          const DistributedLayout &b,
                                          const DistributedLayout &c);
  struct SteppedOperand;
  SteppedOperand steppedOperand(mlir::Value block, const DistributedLayout &src,
                                const Layout &acc, unsigned own, unsigned kDim,
                                int64_t depth, int64_t step);
  mlir::LogicalResult distributeSteppedDot(DotOp op, const DistributedLayout &a,
                                           const DistributedLayout &b,
                                           const DistributedLayout &c);
  // DistributeLocal.cpp
  mlir::LogicalResult distributeLocalAlloc(LocalAllocOp op);
  mlir::LogicalResult distributeLocalStore(LocalStoreOp op);
  mlir::LogicalResult distributeLocalLoad(LocalLoadOp op);
  // DistributeMemory.cpp
  mlir::LogicalResult distributeLoad(LoadOp op);
  mlir::LogicalResult distributeDirect(LoadOp op, LocalStoreOp store);
  mlir::LogicalResult distributeStore(StoreOp op);
  mlir::LogicalResult distributeLoadScattered(LoadScatteredOp op);
  mlir::LogicalResult distributeStoreScattered(StoreScatteredOp op);
  /// Emits a lane's loads. A register that is masked off gets `other`, unless
  /// nobody reads it or the load itself brings the right value (`isWhole`).
  LaneValues loadRegisters(
      const LaneAccess &access, mlir::Type type, bool isWhole,
      llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, unsigned)>
          other,
      mlir::ImplicitLocOpBuilder &b);
  /// Neighbours under one mask, of which each has one or none has, share a
  /// branch.
  void storeRegisters(mlir::Value block, const LaneAccess &access,
                      mlir::ImplicitLocOpBuilder &b);
  mlir::Value zeros(mlir::Type type);
  const DistributedLayout *beforeTransposition(LoadOp op);
  // DistributeStrided.cpp
  /// A strided block's accesses; it is wide if it reaches further than so many
  /// bytes.
  template <typename OpT>
  LaneAccess strided(OpT op, const DistributedLayout &layout, Masking masking,
                     int64_t mostReach, mlir::ImplicitLocOpBuilder &b);
  // DistributePointers.cpp
  /// Accesses through a pointer, or through each register's; several at a time
  /// where they may be vectors.
  LaneAccess scattered(mlir::Operation *op, mlir::Value pointers,
                       mlir::Value mask, bool isVector,
                       mlir::ImplicitLocOpBuilder &b);
  llvm::SmallBitVector safeDims(LoadScatteredOp op);
  // DistributeOrder.cpp
  void waitFor(mlir::Operation *access);
  void markUnordered();
  // DistributeAtomics.cpp
  using AtomicBuilder = llvm::function_ref<mlir::Value(
      mlir::ImplicitLocOpBuilder &b, LanePlace at, unsigned reg)>;
  mlir::LogicalResult distributeAtomicRmw(AtomicRmwOp op);
  mlir::LogicalResult distributeAtomicCas(AtomicCasOp op);
  mlir::LogicalResult distributeAtomic(mlir::Operation *op,
                                       mlir::Value pointers, mlir::Value mask,
                                       MemoryOrder order, MemoryScope scope,
                                       AtomicBuilder build);
  mlir::Value atomicOnce(mlir::Operation *op, const LaneAccess &access,
                         bool isUsed, AtomicBuilder build,
                         llvm::function_ref<void()> meet,
                         mlir::ImplicitLocOpBuilder &b);
  LaneValues atomicOfEach(mlir::Operation *op, const LaneAccess &access,
                          AtomicBuilder build, mlir::ImplicitLocOpBuilder &b);
  // DistributeScan.cpp
  mlir::LogicalResult distributeScan(ScanOp op);
  /// The values of one element of each block, per register.
  using Elements = llvm::SmallVector<mlir::Value>;
  /// Arrays by which waves exchange elements, in turns.
  struct Exchange {
    LaneValues arrays[2];
    unsigned next = 0;
  };
  void scanThreads(ScanOp op, llvm::ArrayRef<Layout::BitHolder> bits,
                   const ThreadSet &below, uint32_t registersBelow,
                   uint32_t last, llvm::MutableArrayRef<Elements> x,
                   Exchange &exchange, mlir::ImplicitLocOpBuilder &b);
  llvm::SmallVector<Elements> fetch(llvm::ArrayRef<Elements> list,
                                    const ThreadSet &from, Exchange &exchange,
                                    mlir::ImplicitLocOpBuilder &b);
  // DistributeExchange.cpp
  mlir::LogicalResult distributeReduce(ReduceOp op);
  mlir::LogicalResult distributeRescale(RescaleOp op);
  /// Registers laid out like `src`, where they may not be what any value has,
  /// as the layout of a value asks for them.
  mlir::FailureOr<LaneValues> converted(mlir::Operation *op,
                                        llvm::ArrayRef<mlir::Value> from,
                                        const Layout &src,
                                        const DistributedLayout &dst);
  /// The result's registers from some laid out like `layout`.
  mlir::LogicalResult setConverted(mlir::Operation *op, mlir::Value result,
                                   llvm::ArrayRef<mlir::Value> from,
                                   const Layout &layout);
  /// `partials`: of each register the elements of all blocks.
  void
  reduceWaves(ReduceOp op,
              llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> partials,
              const Layout &layout, uint32_t waves,
              mlir::ImplicitLocOpBuilder &b);
  /// The value of the lane whose id differs by the bits of a mask.
  llvm::SmallVector<mlir::Value> shuffled(mlir::ImplicitLocOpBuilder &b,
                                          llvm::ArrayRef<mlir::Value> elements,
                                          uint32_t mask);
  /// The registers behind `move`; pointers travel as their addresses.
  LaneValues
  moveNumbers(llvm::ArrayRef<mlir::Value> from, mlir::ImplicitLocOpBuilder &b,
              llvm::function_ref<LaneValues(llvm::ArrayRef<mlir::Value>)> move);
  LaneValues convertInWave(const Conversion &plan,
                           llvm::ArrayRef<mlir::Value> from,
                           mlir::ImplicitLocOpBuilder &b);
  // DistributeShared.cpp
  LaneValues convertThroughShared(llvm::ArrayRef<mlir::Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst,
                                  mlir::ImplicitLocOpBuilder &b);
  LaneValues reshapeThroughShared(llvm::ArrayRef<mlir::Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst,
                                  mlir::ImplicitLocOpBuilder &b);
  /// The places of a block's elements in an array of shared memory: `width`
  /// neighbours along `fastest` are one entry; entries from one to the next
  /// along each dimension. The array holds `part` of `size` entries at a time.
  struct SharedOrder {
    unsigned fastest, width;
    llvm::SmallVector<int64_t> strides;
    bool isPadded = false;
    int64_t size = 0, part = 0;
    llvm::SmallVector<int64_t> parts(llvm::ArrayRef<int64_t> shape) const;
    /// Entries from the thread's first element to the one at `index` from it.
    int64_t offset(const Index &index) const;
    int64_t lastPart(const DistributedLayout &layout) const;
  };
  static SharedOrder rowMajor(const Layout &layout, unsigned width);
  /// How many entries may be in shared memory at a time.
  int64_t entriesAtATime(mlir::Type element, const SharedOrder &order);
  /// The entry of the thread's first element.
  mlir::Value sharedThreadOffset(llvm::ArrayRef<mlir::Value> threadIndex,
                                 const SharedOrder &order,
                                 mlir::ImplicitLocOpBuilder &b);
  /// That entry as one in a part, and which part; null: the first.
  struct SharedThread {
    mlir::Value entry, part;
    int64_t lastPart;
  };
  SharedThread sharedThread(const DistributedLayout &layout,
                            const SharedOrder &order,
                            mlir::ImplicitLocOpBuilder &b);
  /// i1: the thread's part is that one.
  mlir::Value isPart(const SharedThread &thread, int64_t part,
                     mlir::ImplicitLocOpBuilder &b);
  void storePart(llvm::ArrayRef<mlir::Value> from, mlir::Value array,
                 int64_t part, const DistributedLayout &src,
                 const SharedOrder &order, mlir::ImplicitLocOpBuilder &b);
  /// An array that has a whole block's elements.
  mlir::Value storeShared(llvm::ArrayRef<mlir::Value> from,
                          const DistributedLayout &src,
                          const SharedOrder &order,
                          mlir::ImplicitLocOpBuilder &b);
  LaneValues moveThroughShared(llvm::ArrayRef<mlir::Value> from,
                               const DistributedLayout &src,
                               const SharedOrder &srcOrder,
                               const DistributedLayout &dst,
                               const SharedOrder &dstOrder,
                               mlir::ImplicitLocOpBuilder &b);

  /// The layout that all of some blocks have.
  mlir::FailureOr<const DistributedLayout *>
  commonLayout(mlir::Operation *op, mlir::ValueRange blocks);
  /// Fails with a diagnostic where a block has no layout, or one that is not
  /// this kernel's.
  mlir::LogicalResult checkLayouts();
  mlir::LogicalResult checkLayout(mlir::Operation *op, LayoutAttr layout);
  const DistributedLayout &layoutOf(mlir::Value block) {
    return distributed(getLayoutOf(block.getType()));
  }
  mlir::FailureOr<const DistributedLayout *> layoutOf(mlir::Operation *,
                                                      mlir::Value block) {
    return &layoutOf(block);
  }
  const DistributedLayout &distributed(LayoutAttr layout);
  /// The thread's part of a layout that no value has.
  mlir::FailureOr<const DistributedLayout *> distributed(mlir::Operation *op,
                                                         LayoutAttr layout);
  /// The registers as scalars.
  llvm::ArrayRef<mlir::Value> lanes(mlir::Value value);
  /// The registers as pieces of one type: a scalar, a vector, or a fragment.
  LaneValues vectors(mlir::Value value, mlir::Type pieceType);
  void setVectors(mlir::Value value, LaneValues list) {
    bool isPieces =
        llvm::isa<mlir::VectorType, FragmentType>(list.front().getType());
    (isPieces ? pieceValues : values)[value] = std::move(list);
  }
  LaneValues throughShared(mlir::Value piece);
  /// The values that a loop carries for a block: the accumulator's pieces if a
  /// matrix instruction continues them, else as it comes.
  mlir::Type carriedType(mlir::Value init, mlir::Value argument);
  void setCarried(mlir::Value value, mlir::Type type, mlir::ValueRange parts);
  mlir::Value scalar(mlir::Value value) { return values.at(value).front(); }

  mlir::Value constant(int32_t value);
  mlir::Value laneId();
  mlir::Value waveId();
  /// The sum (or XOR, should bits meet) over the set bits of what each adds.
  mlir::Value fromBits(llvm::ArrayRef<std::pair<ThreadBit, int32_t>> bits);
  /// lane or wave id with only the bits of a mask.
  mlir::Value maskedId(bool wave, uint32_t mask);
  /// i1: the bits of the mask in the lane or wave id are zero.
  mlir::Value isZero(bool ofWave, uint32_t mask);
  /// i1: the thread is the first of those that differ in these bits of the lane
  /// and the wave; null where no bit is set.
  mlir::Value isFirst(uint32_t lanes, uint32_t waves,
                      mlir::ImplicitLocOpBuilder &b);
  /// The same of the whole workgroup.
  mlir::Value isFirstOfWorkgroup(mlir::ImplicitLocOpBuilder &b);
  /// i1: the thread is one of the set, which is not that of all threads.
  mlir::Value isIn(const ThreadSet &threads);
  /// i1: of an element's copies this thread has the one to write; null when
  /// there are no copies.
  mlir::Value ownsCopies(const Layout &layout, mlir::ImplicitLocOpBuilder &b);
  /// Runs `body` under the condition; unconditionally where it is null.
  void storeWhere(mlir::Value condition, mlir::ImplicitLocOpBuilder &b,
                  llvm::function_ref<void(mlir::ImplicitLocOpBuilder &)> body);
  /// value + offset, in i32.
  mlir::Value offsetBy(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                       int32_t offset);
  /// An array in shared memory.
  mlir::Value sharedAlloc(int64_t size, mlir::Type element);

  FuncOp kernel;
  const TargetRow &row;
  int64_t mostBytes;
  Facts facts;
  AccessOrder order;
  llvm::DenseSet<mlir::Operation *> waits;
  FuncOp result;
  mlir::OpBuilder builder;
  /// The place of values that everything may use: thread ids, indices.
  mlir::OpBuilder prologue;
  llvm::DenseMap<mlir::Value, LaneValues> values;      // scalars
  llvm::DenseMap<mlir::Value, LaneValues> pieceValues; // vectors, fragments
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Type>> carriedTypes;
  /// The array of every local, and the elements of one stage.
  struct LocalArray {
    mlir::Value array;
    int64_t stageSize, width;
  };
  llvm::DenseMap<mlir::Value, LocalArray> locals;
  std::optional<Layout> readTransposed(const SharedPlacement &placement,
                                       const Layout &wanted, int64_t width);
  mlir::Value stageOf(LocalType type, const LocalArray &local,
                      mlir::Value stage, mlir::ImplicitLocOpBuilder &b);
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<DistributedLayout>> layouts;
  llvm::DenseMap<int32_t, mlir::Value> constants;
  /// The values that fromBits has built, by (wave?, bit, weight): two layouts
  /// that agree on a dimension have the same value there.
  std::map<std::vector<std::array<int32_t, 3>>, mlir::Value> idSums;
  mlir::Value lane, wave;
  /// The kernel's instruction if nobody knows who has which element, and the
  /// arrays through which elements of its accumulators are read.
  MatrixAttr opaque;
  llvm::DenseMap<mlir::Type, mlir::Value> scratch;
};

/// Errors for blocks of which a lane would hold too many registers, and for a
/// lane's program that is too long (DistributeSize.cpp).
llvm::LogicalResult checkBlockSizes(FuncOp kernel, const TargetRow &row);
llvm::LogicalResult checkLaneSize(FuncOp kernel, FuncOp lane,
                                  const TargetRow &row);

} // namespace greta::tile

#endif
