//===- PipelineLoop.h - a loop whose loads run ahead ------------*- C++ -*-===//
//
// In: a loop over block tensors with layouts, its LoopBody and its
// greta_tile.pipeline. Out: the loop with its operands in locals, and its loads
// ahead of the iterations that use them. PipelineLoop.cpp has the schedule,
// PipelineParts.cpp the pieces of code that it consists of.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
#define GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H

#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Facts.h"
#include "greta/Tile/LoopBody.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace greta {

/// The place of an operand between load and dots.
struct Placed {
  /// The type as it is stored. The elements that a lane has along K are
  /// neighbours, unless transposed loads read them.
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
  void chooseSelects(const tile::Facts &facts);
  void emitSelects(Value k, IRMapping &mapping);
  SmallVector<Value> emitLoads(Value k);
  /// `sums` are the sums up to the block before; they become those up to this
  /// one.
  SmallVector<Value> emitPrepared(Value k, ValueRange loaded,
                                  llvm::SmallVectorImpl<Value> &sums);
  Value asStored(const Placed &place, Value block);
  void emitStores(ValueRange prepared, Value stage);
  /// Stores operands that are the same in every iteration.
  void emitFixed();
  /// Emits loads straight to shared memory.
  void emitDirect(Value k, Value stage);
  /// Returns the stage `distance` after another.
  Value advanced(Value stage, int64_t distance);
  /// Reads the part [at, at + extent) along K of the dots' operands.
  Parts emitReads(ArrayRef<tile::DotOp> dots, Value stage, Value at,
                  int64_t extent);
  /// Emits dots. A GEMM's dots add to the sums of their chains; a single dot
  /// adds to the only accumulator.
  SmallVector<Value> emitDots(ArrayRef<tile::DotOp> dots, const Parts &parts,
                              ValueRange accumulators);
  /// A GEMM whose next block is stored between its slices.
  bool isStagedGemm() const { return body.isGemm && attr.getStages() > 1; }
  /// Whether a GEMM's only stage is filled under the dots of its last slice,
  /// once all of it is in registers.
  bool isFilledLate() const {
    return body.isGemm && attr.getStages() == 1 && body.dots.size() == 1 &&
           body.sums.empty() && row.tiles.fillsLate;
  }
  /// K tiles that are loaded or stored ahead of the one that is multiplied.
  int64_t tilesAhead() const { return attr.getStages() + isFilledLate(); }
  /// Whether each slice of a GEMM is read before the dots of the slice before.
  bool readsAhead() const {
    return isStagedGemm() && attr.getSlice() < body.operands.front().depth();
  }
  /// Whether operands that could stay in registers are in locals. Reads then
  /// stand just before the dots that need them; LLVM would read all of them
  /// first.
  bool isShortOfRegisters() const {
    return !body.fixed.empty() && !body.isLoadedWhole();
  }
  /// Ends a stretch of dots between which LLVM may order instructions. The
  /// first one hides the next iteration's loads and stores.
  void endStretch(bool isFirst = false) {
    if (isShortOfRegisters() || (isFirst && !body.isLoadedWhole()) ||
        isStagedGemm() || isFilledLate())
      tile::ScheduleOp::create(b);
  }
  /// Emits dots whose operands are all in locals, slice by slice. `fill` is
  /// called before the first dot, or, if the stage is filled late, before those
  /// of the last slice.
  SmallVector<Value> emitSlices(
      ArrayRef<tile::DotOp> dots, Value stage, int64_t slice,
      ValueRange accumulators, function_ref<void()> fill = [] {});
  /// beginIteration emits the ops of `before`, with the carried values in
  /// place; endIteration those of `after`, with the dots' sums, and returns the
  /// values that the iteration carries on.
  IRMapping beginIteration(Value k, ValueRange carried);
  SmallVector<Value> chainInits(IRMapping &iteration);
  SmallVector<Value> endIteration(IRMapping &iteration, ValueRange sums);
  /// Emits an iteration in the body's own order. `fill` is called before the
  /// first dot.
  SmallVector<Value> emitCompute(Value k, Value stage, ValueRange carried,
                                 function_ref<void()> fill);
  Value emitDot(tile::DotOp dot, Value stage, IRMapping &mapping,
                function_ref<bool()> fill);
  /// Returns the counter so many iterations after `k`.
  Value iterationAfter(Value k, int64_t iterations);
  /// Returns the same, but no more than the last iteration's counter: beyond
  /// the end the last block is loaded again, and not used.
  Value clampedAfter(Value k, int64_t iterations);
  void chooseClamp(const tile::Facts &facts);
  /// The values that pass from iteration to iteration. `sums` are the sums up
  /// to this iteration's K tile, and up to each K tile that is prepared ahead.
  struct Flow {
    SmallVector<Value> carried, sums, loaded;
    Parts parts;
  };
  Flow emitStep(Value k, Value stage, Flow flow);
  SmallVector<Value> emitLoop(const tile::Facts &facts);
  /// Whether the loop has rounds of a block for each stage, and the blocks that
  /// are left behind them.
  bool emitsRounds(const tile::Facts &facts);
  /// Emits a loop whose iterations have some blocks, and returns its results.
  ValueRange emitRounds(Value first, Value end, Value step, int64_t blocks,
                        ValueRange inits);
  void guard();
  /// Returns a constant of the type of the loop's counter.
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, loop.getInductionVar().getType(),
                                        value);
  }
  /// Returns the distance from the first iteration to the end, if it is known.
  std::optional<int64_t> length();

  scf::ForOp loop;
  const LoopBody &body;
  tile::PipelineAttr attr;
  const TargetRow &row;
  SmallVector<Placed> placed; // of each operand
  /// A mask's bound: index + offset is below it. A null offset is zero.
  struct Bound {
    unsigned dim;
    Value offset, bound;
  };
  /// The masked loads whose selection comes later, when the block is stored,
  /// and the bounds that their masks consist of.
  llvm::MapVector<Operation *, SmallVector<Bound>> selected;
  Value last; // where the last iteration begins
  Value rest; // where the first block behind rounds begins
  /// Whether a counter that is some iterations ahead is still a signed number,
  /// an unsigned one, or neither for all that is known.
  enum class Clamp { Signed, Unsigned, Any } clamp = Clamp::Any;
};

} // namespace greta

#endif // GRETA_LIB_TILE_SCHEDULE_PIPELINELOOP_H
