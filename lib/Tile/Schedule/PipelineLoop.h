//===- PipelineLoop.h - a loop whose loads run ahead ------------*- C++ -*-===//
//
// In: a loop over block tensors with layouts, what its body is made of, and how
// it is to be pipelined. Out: the same with its operands in locals and its
// loads ahead of the iterations that use them. PipelineLoop.cpp has the
// schedules, PipelineParts.cpp what they are put together from.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
#define GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H

#include "greta/Target/Target.h"
#include "greta/Tile/LoopBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta {

/// The place of an operand between load and dots.
struct Placed {
  /// As it is stored: what a lane has of K are neighbours, unless transposed
  /// loads read it.
  mlir::RankedTensorType stored;
  mlir::Value local;
};

/// Maps each operand to its fragment; null if this slice does not read the
/// operand.
using Parts = llvm::SmallVector<mlir::Value>;

class LoopPipeliner {
public:
  LoopPipeliner(mlir::scf::ForOp loop, const LoopBody &body,
                tile::PipelineAttr attr, const TargetRow &row)
      : loop(loop), body(body), attr(attr), row(row), b(loop.getLoc(), loop) {}
  mlir::LogicalResult run();

private:
  mlir::LogicalResult check();
  mlir::LogicalResult placeOperands();
  mlir::FailureOr<tile::PlacementAttr>
  placementOf(const LoadedOperand &operand, mlir::RankedTensorType &stored);
  mlir::IRMapping emitAddresses(mlir::Value k);
  bool selectsLater(mlir::Operation *load);
  void emitSelects(mlir::Value k, mlir::IRMapping &mapping);
  llvm::SmallVector<mlir::Value> emitLoads(mlir::Value k);
  /// `sums` are those of the blocks before, and become this one's.
  llvm::SmallVector<mlir::Value>
  emitPrepared(mlir::Value k, mlir::ValueRange loaded,
               llvm::SmallVectorImpl<mlir::Value> &sums);
  mlir::Value asStored(const Placed &place, mlir::Value block);
  void emitStores(mlir::ValueRange prepared, mlir::Value stage);
  /// Operands that are the same in every iteration, as they are stored.
  void emitFixed();
  /// Loads straight to shared memory.
  void emitDirect(mlir::Value k, mlir::Value stage);
  /// The stage `distance` after another.
  mlir::Value advanced(mlir::Value stage, int64_t distance);
  /// The part [at, at + extent) along K of the dots' operands.
  Parts emitReads(llvm::ArrayRef<tile::DotOp> dots, mlir::Value stage,
                  mlir::Value at, int64_t extent);
  /// A GEMM's dots add to their chains' sums, one alone to the only one.
  llvm::SmallVector<mlir::Value> emitDots(llvm::ArrayRef<tile::DotOp> dots,
                                          const Parts &parts,
                                          mlir::ValueRange accumulators);
  /// A GEMM whose next block is stored between its slices.
  bool isStagedGemm() const { return body.isGemm && attr.getStages() > 1; }
  /// Whether each of its slices is read before the dots of the one before.
  bool readsAhead() const {
    return isStagedGemm() && attr.getSlice() < body.operands.front().depth();
  }
  /// If operands that could stay in registers are in locals, reads stand just
  /// before the dots that need them, or LLVM has all of them first.
  bool isShortOfRegisters() const {
    return !body.fixed.empty() && !body.isLoadedWhole();
  }
  /// The first one has the next iteration's loads and stores to hide.
  void endStretch(bool isFirst = false) {
    if (isShortOfRegisters() || (isFirst && !body.isLoadedWhole()) ||
        isStagedGemm())
      tile::ScheduleOp::create(b);
  }
  /// Dots whose operands are all in locals, slice by slice; `fill` comes before
  /// the first dot.
  llvm::SmallVector<mlir::Value> emitSlices(
      llvm::ArrayRef<tile::DotOp> dots, mlir::Value stage, int64_t slice,
      mlir::ValueRange accumulators, llvm::function_ref<void()> fill = [] {});
  /// What an iteration computes before a GEMM's dots and, with their sums,
  /// behind them, from what is carried to what it carries.
  mlir::IRMapping beginIteration(mlir::Value k, mlir::ValueRange carried);
  llvm::SmallVector<mlir::Value> chainInits(mlir::IRMapping &iteration);
  llvm::SmallVector<mlir::Value> endIteration(mlir::IRMapping &iteration,
                                              mlir::ValueRange sums);
  /// The body's own iteration; `fill` comes before the first product.
  llvm::SmallVector<mlir::Value> emitCompute(mlir::Value k, mlir::Value stage,
                                             mlir::ValueRange carried,
                                             llvm::function_ref<void()> fill);
  mlir::Value emitDot(tile::DotOp dot, mlir::Value stage,
                      mlir::IRMapping &mapping,
                      llvm::function_ref<bool()> fill);
  /// The counter of the iteration so many after another.
  mlir::Value iterationAfter(mlir::Value k, int64_t iterations);
  /// There, or where the last one begins: beyond the end the last block comes
  /// again and is not used.
  mlir::Value clampedAfter(mlir::Value k, int64_t iterations);
  void chooseClamp();
  /// The values that pass from iteration to iteration: `sums` are those up to
  /// this one's K tile and up to each that is prepared ahead.
  struct Flow {
    llvm::SmallVector<mlir::Value> carried, sums, loaded;
    Parts parts;
  };
  Flow emitStep(mlir::Value k, mlir::Value stage, Flow flow);
  llvm::SmallVector<mlir::Value> emitLoop();
  void guard();
  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 32);
  }
  /// A number of the type that iterations are counted in.
  mlir::Value number(int64_t value) {
    return mlir::arith::ConstantIntOp::create(
        b, loop.getInductionVar().getType(), value);
  }
  /// From the first iteration to the end, where that is known.
  std::optional<int64_t> length();

  mlir::scf::ForOp loop;
  const LoopBody &body;
  tile::PipelineAttr attr;
  const TargetRow &row;
  mlir::ImplicitLocOpBuilder b;
  llvm::SmallVector<Placed> placed; // of each operand
  mlir::Value last;                 // where the last iteration begins
  /// Whether a counter that is some iterations ahead is still a signed number,
  /// an unsigned one, or neither for all that is known.
  enum class Clamp { Signed, Unsigned, Any } clamp = Clamp::Any;
};

} // namespace greta

#endif // GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
