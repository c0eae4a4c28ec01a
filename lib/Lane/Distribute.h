//===- Distribute.h - block tensors to one lane's registers -----*- C++ -*-===//
//
// The state that the parts of greta-tile-distribute share: the values of a lane
// that stand for each block tensor, and the thread's place in each layout.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_DISTRIBUTE_H
#define GRETA_LIB_LANE_DISTRIBUTE_H

#include "GretaTile/LinearAddress.h"
#include "greta/Layout/Conversion.h"
#include "greta/Layout/SharedMemory.h"
#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "greta/Tile/AccessOrder.h"
#include "greta/Tile/Arithmetic.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include <array>
#include <functional>
#include <map>

namespace greta::tile {

/// One lane's part of a block tensor, in the order of its registers: scalars,
/// vectors of equally many neighbouring registers, or fragments. Any other
/// value stands for itself.
using LaneValues = SmallVector<Value, 4>;

/// A layout, and the answers that code generation often needs from it.
struct DistributedLayout {
  Layout layout;
  /// index(register, 0, 0) of every register.
  SmallVector<Index> registerIndex;
  /// Index of the thread's register 0 per dimension, an i32 that dominates the
  /// kernel's body.
  SmallVector<Value, 4> threadIndex;
};

/// The registers of a lane for one operand of an instruction: a vector, or a
/// fragment. `use` says which operand.
Type getOperandType(MatrixAttr matrix, FragmentUse use, Type element);

/// The places of a local's elements.
SharedPlacement placementOf(LocalType type);

/// The type of `width` elements: a vector if there are several.
inline Type pieceOf(Type element, int64_t width) {
  return width > 1 ? Type(VectorType::get(width, element)) : element;
}

/// The threads whose lane and wave have given values in some bits.
struct ThreadSet {
  uint32_t lanes = 0, waves = 0;         // masks of the bits
  uint32_t laneValue = 0, waveValue = 0; // the values of these bits

  void add(const Layout::BitHolder &holder, bool isSet);
};

/// A lane whose element of a load is masked off does one of these.
enum class Masking {
  Branch,   // it branches around the load
  Replaced, // it loads another element, and selects
  Bounded,  // the target's load has the mask, and brings it zeros
};

struct LanePlace {
  Value base, offset; // i32, in elements
};

/// One lane's accesses of a block, or of one pointer.
struct LaneAccess {
  const DistributedLayout *layout = nullptr; // null: one pointer
  unsigned width = 1;                        // neighbours in one access
  Masking masking = Masking::Branch;
  bool wraps = false;      // parts of an offset may be negative
  bool isWide = false;     // offsets in the block need more than 32 bits
  bool transposed = false; // lanes exchange the elements that they load
  /// A uniform condition: the block begins within its bounds. Null: it always
  /// does.
  Value some;
  std::function<LanePlace(unsigned reg)> place;
  /// The condition, an i1, under which a register's element is accessed; null:
  /// it always is.
  std::function<Value(unsigned reg)> mask;
  /// For each access, the register of the first access to the same elements
  /// under the same mask. Empty: no two accesses are the same.
  SmallVector<unsigned> sharers;

  /// The first register of each access.
  SmallVector<unsigned> registers() const {
    unsigned end = layout ? layout->registerIndex.size() : 1;
    return llvm::map_to_vector(llvm::seq(0u, (end + width - 1) / width),
                               [&](unsigned i) { return i * width; });
  }
};

template <typename OpT> class StridedEmitter;
class PointerEmitter;

/// Rewrites one kernel: reads its body, and builds a new function.
class Distributor : Arithmetic {
  template <typename OpT> friend class StridedEmitter;
  friend class PointerEmitter;

public:
  /// A block that changes its layout through shared memory takes at most
  /// `mostBytes` of it at a time.
  Distributor(FuncOp kernel, const TargetRow &row, int64_t mostBytes,
              ImplicitLocOpBuilder &b);
  /// Builds the lane's program beside the kernel.
  FailureOr<FuncOp> run();
  /// The bytes that the largest such block would take as a whole.
  int64_t largestMove = 0;

private:
  LogicalResult distributeBlock(Block &block);
  LogicalResult distributeOp(Operation *op);
  LogicalResult distributeFor(Operation *op);
  LogicalResult distributeWhile(Operation *op);
  LogicalResult distributeIf(Operation *op);
  /// Emits a branch: `build` if the condition holds, else `other`. Without a
  /// condition only `build` is emitted.
  using Builder = function_ref<LaneValues()>;
  LaneValues valuesWhere(Value condition, Builder build, Builder other);
  // DistributeElementwise.cpp
  LogicalResult distributeElementwise(Operation *op);
  LogicalResult distributeConstant(Operation *op);
  LogicalResult distributeIota(IotaOp op);
  std::optional<Index> constantGroup(Value value);
  // DistributeMove.cpp
  LogicalResult distributeConvertLayout(ConvertLayoutOp op);
  LogicalResult distributeBroadcast(BroadcastOp op);
  LogicalResult distributeReshape(ReshapeOp op);
  LogicalResult distributeTrans(TransOp op);
  LogicalResult distributeJoin(JoinOp op);
  LogicalResult distributeSplit(SplitOp op);
  LogicalResult distributeGather(GatherOp op);
  LogicalResult distributeHistogram(HistogramOp op);
  // DistributeContract.cpp
  LogicalResult distributeContract(ContractOp op);
  LogicalResult distributeDequant(DequantOp op);
  Value highFrom(Value word, const WeightFormat &row,
                 const DistributedLayout &layout, unsigned dim, int64_t index);
  // DistributeDot.cpp
  /// widen converts a number to the accumulator's type; multiplyAdd adds a
  /// product to an accumulator.
  Value widen(Value value, Type type);
  Value multiplyAdd(Value x, Value y, Value sum);
  LogicalResult distributeDot(DotOp op);
  LogicalResult distributeMatrixDot(DotOp op, const DistributedLayout &left,
                                    const DistributedLayout &right,
                                    const DistributedLayout &c);
  struct SteppedOperand;
  SteppedOperand steppedOperand(Value block, const DistributedLayout &src,
                                const Layout &acc, unsigned own, unsigned kDim,
                                int64_t depth, int64_t step);
  LogicalResult distributeSteppedDot(DotOp op, const DistributedLayout &left,
                                     const DistributedLayout &right,
                                     const DistributedLayout &c);
  // DistributeLocal.cpp
  LogicalResult distributeLocalAlloc(LocalAllocOp op);
  LogicalResult distributeLocalStore(LocalStoreOp op);
  LogicalResult distributeLocalLoad(LocalLoadOp op);
  // DistributeMemory.cpp
  LogicalResult distributeLoad(LoadOp op);
  LogicalResult distributeDirect(LoadOp op, LocalStoreOp store);
  LogicalResult distributeStore(StoreOp op);
  LogicalResult distributeLoadScattered(LoadScatteredOp op);
  LogicalResult distributeStoreScattered(StoreScatteredOp op);
  /// Emits a lane's loads. A register that is masked off gets `other`, unless
  /// nobody reads it or the load itself brings the right value (`isWhole`).
  LaneValues loadRegisters(const LaneAccess &access, Type type, bool isWhole,
                           function_ref<Value(unsigned)> other);
  /// Emits a lane's stores. Neighbours under one mask share a branch.
  void storeRegisters(Value block, const LaneAccess &access);
  Value zeros(Type type);
  const DistributedLayout *beforeTransposition(LoadOp op);
  // DistributeStrided.cpp
  /// Returns a strided block's accesses. A block that reaches further than
  /// `mostReach` bytes is wide.
  template <typename OpT>
  LaneAccess strided(OpT op, const DistributedLayout &layout, Masking masking,
                     int64_t mostReach);
  // DistributePointers.cpp
  /// Returns accesses through one pointer, or through each register's pointer.
  /// With `isVector`, an access may take several neighbours.
  LaneAccess scattered(Operation *op, Value pointers, Value mask,
                       bool isVector);
  llvm::SmallBitVector safeDims(LoadScatteredOp op);
  /// Marks accesses that need no order, so that they stay private in Vulkan's
  /// memory model. If the only barriers are those in front of accesses, these
  /// are the accesses through arguments for which no barrier was needed.
  void markUnordered();
  // DistributeAtomics.cpp
  using AtomicBuilder = function_ref<Value(LanePlace, unsigned)>;
  LogicalResult distributeAtomicRmw(AtomicRmwOp op);
  LogicalResult distributeAtomicCas(AtomicCasOp op);
  LogicalResult distributeAtomic(Operation *op, Value pointers, Value mask,
                                 MemoryOrder order, MemoryScope scope,
                                 AtomicBuilder build);
  Value atomicOnce(Operation *op, const LaneAccess &access, bool isUsed,
                   AtomicBuilder build, function_ref<void()> meet);
  LaneValues atomicOfEach(Operation *op, const LaneAccess &access,
                          AtomicBuilder build);
  // DistributeScan.cpp
  LogicalResult distributeScan(ScanOp op);
  /// One element of each block that a scan or a reduction combines.
  using Elements = SmallVector<Value>;
  /// Two arrays by which waves exchange elements, used alternately.
  struct Exchange {
    LaneValues arrays[2];
    unsigned next = 0;
  };
  Elements selectAll(Value condition, ArrayRef<Value> x, ArrayRef<Value> y);
  void scanThreads(ScanOp op, ArrayRef<Layout::BitHolder> bits,
                   const ThreadSet &below, uint32_t registersBelow,
                   uint32_t last, llvm::MutableArrayRef<Elements> x,
                   Exchange &exchange);
  SmallVector<Elements> fetch(ArrayRef<Elements> list, const ThreadSet &from,
                              Exchange &exchange);
  // DistributeExchange.cpp
  /// Emits the op's combiner for one element of each block.
  Elements combine(Region &combiner, ArrayRef<Value> x, ArrayRef<Value> y);
  SmallVector<Elements> combineSome(Region &combiner, ArrayRef<Elements> level);
  LogicalResult distributeReduce(ReduceOp op);
  LogicalResult distributeRescale(RescaleOp op);
  /// Converts registers from the layout `src`, which no value needs to have, to
  /// a value's layout.
  FailureOr<LaneValues> converted(Operation *op, ArrayRef<Value> from,
                                  const Layout &src,
                                  const DistributedLayout &dst);
  /// Converts registers from `layout` to the result's layout, and sets them.
  LogicalResult setConverted(Operation *op, Value result, ArrayRef<Value> from,
                             const Layout &layout);
  /// `partials` has the elements of all blocks for each register.
  void reduceWaves(ReduceOp op,
                   llvm::MutableArrayRef<SmallVector<Value>> partials,
                   const Layout &layout, uint32_t waves);
  /// Returns the elements of the lane whose id differs by the bits of a mask.
  SmallVector<Value> shuffled(ArrayRef<Value> elements, uint32_t mask);
  /// Calls `move` on registers; pointers are moved as their addresses.
  LaneValues moveNumbers(ArrayRef<Value> from,
                         function_ref<LaneValues(ArrayRef<Value>)> move);
  LaneValues convertInWave(const Conversion &plan, ArrayRef<Value> from);
  // DistributeShared.cpp
  LaneValues convertThroughShared(ArrayRef<Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst);
  LaneValues reshapeThroughShared(ArrayRef<Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst);
  /// The places of a block's elements in an array of shared memory. An entry
  /// has `width` neighbours along `fastest`; `strides` counts entries. The
  /// array holds `part` of the block's `size` entries at a time.
  struct SharedOrder {
    unsigned fastest, width;
    SmallVector<int64_t> strides;
    bool isPadded = false;
    int64_t size = 0, part = 0;
    SmallVector<int64_t> parts(ArrayRef<int64_t> shape) const;
    /// The entries between the thread's first element and the one that lies
    /// `index` further.
    int64_t offset(const Index &index) const;
    int64_t lastPart(const DistributedLayout &layout) const;
  };
  static SharedOrder rowMajor(const Layout &layout, unsigned width);
  /// The number of entries that may be in shared memory at a time.
  int64_t entriesAtATime(Type element, const SharedOrder &order);
  /// The entry of the thread's first element.
  Value sharedThreadOffset(ArrayRef<Value> threadIndex,
                           const SharedOrder &order);
  /// That entry's place in its part, and the number of the part; null: the
  /// first part.
  struct SharedThread {
    Value entry, part;
    int64_t lastPart;
  };
  SharedThread sharedThread(const DistributedLayout &layout,
                            const SharedOrder &order);
  /// Whether the thread's part is number `part`, an i1.
  Value isPart(const SharedThread &thread, int64_t part);
  void storePart(ArrayRef<Value> from, Value array, int64_t part,
                 const DistributedLayout &src, const SharedOrder &order);
  /// Stores a whole block to an array, and returns it.
  Value storeShared(ArrayRef<Value> from, const DistributedLayout &src,
                    const SharedOrder &order);
  LaneValues moveThroughShared(ArrayRef<Value> from,
                               const DistributedLayout &src,
                               const SharedOrder &srcOrder,
                               const DistributedLayout &dst,
                               const SharedOrder &dstOrder);

  /// Returns the layout that all `blocks` have, or fails.
  FailureOr<const DistributedLayout *> commonLayout(Operation *op,
                                                    ValueRange blocks);
  /// Fails with a diagnostic at a block without a layout, or whose layout has
  /// other numbers of lanes or waves than the kernel.
  LogicalResult checkLayouts();
  LogicalResult checkLayout(Operation *op, LayoutAttr layout);
  const DistributedLayout &layoutOf(Value block) {
    return distributed(getLayoutOf(block.getType()));
  }
  const DistributedLayout &distributed(LayoutAttr layout);
  /// The thread's part of a layout that no value has.
  FailureOr<const DistributedLayout *> distributed(Operation *op,
                                                   LayoutAttr layout);
  /// Returns the registers as scalars.
  ArrayRef<Value> lanes(Value value);
  /// Returns the registers as values of one type: a scalar, a vector, or a
  /// fragment.
  LaneValues vectors(Value value, Type pieceType);
  void setVectors(Value value, LaneValues list) {
    bool isPieces = llvm::isa<VectorType, FragmentType>(list.front().getType());
    (isPieces ? pieceValues : values)[value] = std::move(list);
  }
  LaneValues throughShared(Value piece);
  /// The type of the values that a loop carries for a block: fragments if a
  /// matrix instruction adds to them, else the type of the initial value.
  Type carriedType(Value init, Value argument);
  void setCarried(Value value, Type type, ValueRange parts);
  /// Does so for several values, of which each has `counts` of `parts`.
  void setCarried(ValueRange values, ArrayRef<Type> types,
                  ArrayRef<unsigned> counts, ValueRange parts) {
    for (auto [value, type, count] : llvm::zip(values, types, counts)) {
      setCarried(value, type, parts.take_front(count));
      parts = parts.drop_front(count);
    }
  }
  Value scalar(Value value) { return values.at(value).front(); }

  Value constant(int32_t value);
  Value laneId();
  Value waveId();
  /// Returns the sum of the weights of the set bits; their XOR if weights share
  /// bits.
  Value fromBits(ArrayRef<std::pair<ThreadBit, int32_t>> bits);
  /// Does so for a layout's bits, each of which has a weight.
  template <typename WeightT>
  Value fromBits(const Layout &layout, WeightT weightOf) {
    SmallVector<std::pair<ThreadBit, int32_t>> bits;
    for (const ThreadBit &bit : layout.threadBits())
      if (int32_t weight = weightOf(bit))
        bits.push_back({bit, weight});
    return fromBits(bits);
  }
  /// Returns the lane's or the wave's id with only the bits of a mask.
  Value maskedId(bool wave, uint32_t mask);
  /// Whether the bits of a mask are zero in the lane's or the wave's id, an i1.
  Value isZero(bool ofWave, uint32_t mask);
  /// Whether the thread is the first of all that differ from it in these bits
  /// only, an i1; null if no bit is set.
  Value isFirst(uint32_t lanes, uint32_t waves);
  /// Whether the thread is the first of the workgroup.
  Value isFirstOfWorkgroup();
  /// Whether the thread is in a set, an i1. The set does not have all threads.
  Value isIn(const ThreadSet &threads);
  /// Whether this thread, of all that have a copy of its elements, is the one
  /// that writes them, an i1; null if there are no copies.
  Value ownsCopies(const Layout &layout);
  /// Emits `body` under a condition; null: it always runs.
  void storeWhere(Value condition, function_ref<void()> body);
  /// Returns value + offset, an i32.
  Value offsetBy(Value value, int32_t offset);
  /// Allocates an array in shared memory.
  Value sharedAlloc(int64_t size, Type element);

  FuncOp kernel;
  const TargetRow &row;
  int64_t mostBytes;
  Facts facts;
  AccessOrder order;
  llvm::DenseSet<Operation *> waits;
  FuncOp result;
  /// Thread ids and indices are emitted here, in front of everything.
  ImplicitLocOpBuilder prologue;
  Arithmetic before{prologue};
  DenseMap<Value, LaneValues> values;      // scalars
  DenseMap<Value, LaneValues> pieceValues; // vectors, fragments
  DenseMap<Operation *, SmallVector<Type>> carriedTypes;
  /// The array of a local, the entries of one stage, and the elements of an
  /// entry.
  struct LocalArray {
    Value array;
    int64_t stageSize, width;
  };
  DenseMap<Value, LocalArray> locals;
  std::optional<Layout> readTransposed(const SharedPlacement &placement,
                                       const Layout &wanted, int64_t width);
  Value stageOf(LocalType type, const LocalArray &local, Value stage);
  DenseMap<Attribute, std::unique_ptr<DistributedLayout>> layouts;
  DenseMap<int32_t, Value> constants;
  /// The values that fromBits has built, by (is it the wave's, bit, weight).
  /// Two layouts that agree on a dimension share its value.
  std::map<std::vector<std::array<int32_t, 3>>, Value> idSums;
  Value lane, wave;
  /// The kernel's instruction, if the layouts of its fragments are not known,
  /// and the arrays through which elements of its accumulators are read.
  MatrixAttr opaque;
  DenseMap<Type, Value> scratch;
};

/// Errors for blocks of which a lane would hold too many registers, and for a
/// lane's program that is too long (DistributeSize.cpp).
LogicalResult checkBlockSizes(FuncOp kernel, const TargetRow &row);
LogicalResult checkLaneSize(FuncOp kernel, FuncOp lane, const TargetRow &row);

} // namespace greta::tile

#endif
