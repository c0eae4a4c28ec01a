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

#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/LoopBody.h"
#include "mlir/IR/IRMapping.h"

namespace greta {

/// The place of an operand between load and dots.
struct Placed {
  /// As it is stored: what a lane has of K are neighbours, unless transposed
  /// loads read it.
  RankedTensorType stored;
  Value local;
};

/// Maps each operand to its fragment; null if this slice does not read the
/// operand.
using Parts = SmallVector<Value>;

class LoopPipeliner : Arithmetic {
public:
  LoopPipeliner(scf::ForOp loop, const LoopBody &body, tile::PipelineAttr attr,
                const TargetRow &row, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, loop(loop), body(body), attr(attr), row(row) {}
  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult placeOperands();
  FailureOr<tile::PlacementAttr> placementOf(const LoadedOperand &operand,
                                             RankedTensorType &stored);
  IRMapping emitAddresses(Value k);
  bool selectsLater(Operation *load);
  void emitSelects(Value k, IRMapping &mapping);
  SmallVector<Value> emitLoads(Value k);
  /// `sums` are those of the blocks before, and become this one's.
  SmallVector<Value> emitPrepared(Value k, ValueRange loaded,
                                  llvm::SmallVectorImpl<Value> &sums);
  Value asStored(const Placed &place, Value block);
  void emitStores(ValueRange prepared, Value stage);
  /// Operands that are the same in every iteration, as they are stored.
  void emitFixed();
  /// Loads straight to shared memory.
  void emitDirect(Value k, Value stage);
  /// The stage `distance` after another.
  Value advanced(Value stage, int64_t distance);
  /// The part [at, at + extent) along K of the dots' operands.
  Parts emitReads(ArrayRef<tile::DotOp> dots, Value stage, Value at,
                  int64_t extent);
  /// A GEMM's dots add to their chains' sums, one alone to the only one.
  SmallVector<Value> emitDots(ArrayRef<tile::DotOp> dots, const Parts &parts,
                              ValueRange accumulators);
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
  SmallVector<Value> emitSlices(
      ArrayRef<tile::DotOp> dots, Value stage, int64_t slice,
      ValueRange accumulators, function_ref<void()> fill = [] {});
  /// Makes what an iteration computes before a GEMM's dots and, with their
  /// sums, behind them, from what is carried to what it carries.
  IRMapping beginIteration(Value k, ValueRange carried);
  SmallVector<Value> chainInits(IRMapping &iteration);
  SmallVector<Value> endIteration(IRMapping &iteration, ValueRange sums);
  /// The body's own iteration; `fill` comes before the first product.
  SmallVector<Value> emitCompute(Value k, Value stage, ValueRange carried,
                                 function_ref<void()> fill);
  Value emitDot(tile::DotOp dot, Value stage, IRMapping &mapping,
                function_ref<bool()> fill);
  /// The counter of the iteration so many after another.
  Value iterationAfter(Value k, int64_t iterations);
  /// There, or where the last one begins: beyond the end the last block comes
  /// again and is not used.
  Value clampedAfter(Value k, int64_t iterations);
  void chooseClamp();
  /// The values that pass from iteration to iteration: `sums` are those up to
  /// this one's K tile and up to each that is prepared ahead.
  struct Flow {
    SmallVector<Value> carried, sums, loaded;
    Parts parts;
  };
  Flow emitStep(Value k, Value stage, Flow flow);
  SmallVector<Value> emitLoop();
  void guard();
  /// A number of the type that iterations are counted in.
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, loop.getInductionVar().getType(),
                                        value);
  }
  /// From the first iteration to the end, where that is known.
  std::optional<int64_t> length();

  scf::ForOp loop;
  const LoopBody &body;
  tile::PipelineAttr attr;
  const TargetRow &row;
  SmallVector<Placed> placed; // of each operand
  Value last;                 // where the last iteration begins
  /// Whether a counter that is some iterations ahead is still a signed number,
  /// an unsigned one, or neither for all that is known.
  enum class Clamp { Signed, Unsigned, Any } clamp = Clamp::Any;
};

} // namespace greta

#endif // GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
