//===- Distribute.h - block tensors to one lane's registers -----*- C++ -*-===//
//
// The state that the parts of greta-tile-distribute share: which lane values
// stand for a block tensor, and the thread's place in each layout.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_CONVERSION_DISTRIBUTE_H
#define GRETA_LIB_CONVERSION_DISTRIBUTE_H

#include "GretaTile/GretaTile.h"
#include "greta/Layout/Conversion.h"
#include "greta/Layout/SharedMemory.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <map>

namespace greta::tile {

/// One lane's part of a value, in the order of its registers: scalars, or
/// *pieces*, vectors of as many neighbouring registers each, or fragments. For
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

/// Where the elements of a local lie.
SharedPlacement placementOf(LocalType type);

/// Rewrites one kernel; the old body is read, a new function is built.
class Distributor {
public:
  explicit Distributor(FuncOp kernel);
  mlir::LogicalResult run();

private:
  mlir::LogicalResult distributeBlock(mlir::Block &block);
  mlir::LogicalResult distributeOp(mlir::Operation *op);
  mlir::LogicalResult distributeFor(mlir::Operation *op);
  mlir::LogicalResult distributeIf(mlir::Operation *op);
  mlir::LogicalResult distributeElementwise(mlir::Operation *op);
  mlir::LogicalResult distributeConstant(mlir::Operation *op);
  mlir::LogicalResult distributeIota(IotaOp op);
  mlir::LogicalResult distributeBroadcast(BroadcastOp op);
  mlir::LogicalResult distributeFlip(FlipOp op);
  mlir::LogicalResult distributeReshape(ReshapeOp op);
  // DistributeContract.cpp
  mlir::LogicalResult distributeContract(ContractOp op);
  mlir::LogicalResult distributeContractPacked(ContractPackedOp op);
  mlir::LogicalResult distributeDequant(DequantOp op);
  // DistributeDot.cpp
  mlir::LogicalResult distributeDot(DotOp op);
  mlir::LogicalResult distributeMatrixDot(DotOp op, const DistributedLayout &a,
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
  // DistributeExchange.cpp
  mlir::LogicalResult distributeReduce(ReduceOp op);
  mlir::LogicalResult distributeConvertLayout(ConvertLayoutOp op);
  /// `partials`: of each register the elements of all blocks.
  void
  reduceWaves(ReduceOp op,
              llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> partials,
              const Layout &layout, uint32_t waves,
              mlir::ImplicitLocOpBuilder &b);
  /// What the lane has whose id differs by the bits of a mask.
  llvm::SmallVector<mlir::Value> shuffled(mlir::ImplicitLocOpBuilder &b,
                                          llvm::ArrayRef<mlir::Value> elements,
                                          uint32_t mask);
  LaneValues convertInWave(const Conversion &plan,
                           llvm::ArrayRef<mlir::Value> from,
                           mlir::ImplicitLocOpBuilder &b);
  LaneValues convertThroughShared(mlir::Operation *op,
                                  llvm::ArrayRef<mlir::Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst,
                                  mlir::ImplicitLocOpBuilder &b);

  LaneValues reshapeThroughShared(mlir::Operation *op,
                                  llvm::ArrayRef<mlir::Value> from,
                                  const DistributedLayout &src,
                                  const DistributedLayout &dst,
                                  mlir::ImplicitLocOpBuilder &b);
  /// Where an array in shared memory has the elements of a block: `width`
  /// neighbours along `fastest` are one entry; entries between neighbours along
  /// the other dimensions.
  struct SharedOrder {
    unsigned fastest, width;
    llvm::SmallVector<int64_t> strides;
  };
  LaneValues
  moveThroughShared(mlir::Operation *op, llvm::ArrayRef<mlir::Value> from,
                    int64_t size, const DistributedLayout &src,
                    const SharedOrder &srcOrder, const DistributedLayout &dst,
                    const SharedOrder &dstOrder, mlir::ImplicitLocOpBuilder &b);

  /// Emits that a value has no layout and fails.
  mlir::FailureOr<const DistributedLayout *> layoutOf(mlir::Operation *op,
                                                      mlir::Value value);
  /// The registers as scalars.
  llvm::ArrayRef<mlir::Value> lanes(mlir::Value value);
  /// The registers as pieces of one type: a scalar, a vector, or a fragment.
  LaneValues pieces(mlir::Value value, mlir::Type pieceType);
  void setPieces(mlir::Value value, LaneValues list) {
    pieceValues[value] = std::move(list);
  }
  LaneValues throughShared(mlir::Value piece);
  /// What a loop carries for a value: the accumulator's pieces where a matrix
  /// instruction continues them, else as it comes.
  mlir::Type carriedType(mlir::Value init, mlir::Value argument);
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
  FuncOp result;
  mlir::OpBuilder builder;
  /// Where values that everything may use are built: thread ids, indices.
  mlir::OpBuilder prologue;
  llvm::DenseMap<mlir::Value, LaneValues> values;      // scalars
  llvm::DenseMap<mlir::Value, LaneValues> pieceValues; // vectors, fragments
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Type>> carriedTypes;
  /// Of every local: its array, and the elements of one stage.
  struct LocalArray {
    mlir::Value array;
    int64_t stageSize, width;
  };
  llvm::DenseMap<mlir::Value, LocalArray> locals;
  mlir::Value stageOf(LocalType type, const LocalArray &local,
                      mlir::Value stage, mlir::ImplicitLocOpBuilder &b);
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<DistributedLayout>> layouts;
  llvm::DenseMap<int32_t, mlir::Value> constants;
  /// What fromBits has built, by (wave?, bit, weight): two layouts that agree
  /// on a dimension have the same value there.
  std::map<std::vector<std::array<int32_t, 3>>, mlir::Value> idSums;
  mlir::Value lane, wave;
  /// The kernel's instruction if nobody knows who has which element, and the
  /// arrays through which elements of its accumulators are read.
  MatrixAttr opaque;
  llvm::DenseMap<mlir::Type, mlir::Value> scratch;
};

} // namespace greta::tile

#endif
