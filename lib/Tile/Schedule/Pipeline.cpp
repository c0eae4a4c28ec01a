//===- Pipeline.cpp - greta-tile-pipeline ---------------------------------===//
//
// Software pipelining of loops that load operands of dots, on block tensors
// with layouts: decides which, and how where the loop does not say
// (PipelineAttr); PipelineLoop.h does it. A loop of no stages keeps what it
// loads in the lanes that multiply it, and stays as it is. Values that
// addresses are computed from are then loaded one iteration further ahead
// (PrefetchIndices.h).
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "PipelineLoop.h"
#include "PrefetchIndices.h"
#include "greta/Interface/Targets.h"
#include "greta/Layout/Conversion.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEPIPELINEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Returns the bytes of shared memory that the largest conversion of a computed
/// value needs.
static int64_t bytesOfConversions(const LoopBody &body) {
  int64_t most = 0;
  for (Operation *op : body.compute)
    op->walk([&](ConvertLayoutOp convert) {
      std::string error;
      auto layoutOf = [](Value value) {
        return toLayout(getLayoutOf(value.getType()));
      };
      FailureOr<Conversion> plan = greta::convert(
          layoutOf(convert.getValue()), layoutOf(convert.getResult()), error);
      if (failed(plan) || plan->kind == Conversion::Kind::Shared)
        most = std::max(most, sharedBytes(convert.getValue().getType(), 16));
    });
  return most;
}

/// Returns the registers of 32 bits that a block takes in a lane.
static int64_t registersOf(RankedTensorType type) {
  return toLayout(getLayoutOf(type)).numRegisters() *
         bytesInMemory(type.getElementType()) / 4;
}

/// Returns the pipeline of a loop that nobody has configured; null: it has
/// none. It has the stages that the source asks for, else those that the
/// target's row says, as far as they fit.
static PipelineAttr choosePipeline(const LoopBody &body, const TargetRow &row,
                                   int64_t asked, MLIRContext *context) {
  // Multiply-adds take longer than what they wait for.
  if (body.operands.empty() ||
      llvm::any_of(body.dots, [](DotOp dot) { return !dot.getMatrixAttr(); }))
    return {};
  bool isLoadedWhole = body.isLoadedWhole();
  int64_t bytes = 0, fixed = 0, tile = 1;
  for (const LoadedOperand &operand : body.operands) {
    (operand.isFixed ? fixed : bytes) +=
        sharedBytes(operand.type, isLoadedWhole ? 16 : 0);
    tile = std::max(tile, operand.tileDepth());
  }
  // Reductions of what is computed need some, too.
  int64_t room = row.ldsBytes;
  if (!body.isGemm)
    room = room * 15 / 16 - bytesOfConversions(body);
  room -= fixed;
  int64_t wanted = asked ? asked : row.tiles.stagesOfLoop;
  int64_t stages =
      std::max<int64_t>(1, bytes ? std::min(wanted, room / bytes) : wanted);
  if (stages * bytes > room)
    return {};
  // One half is read while the other is multiplied, as registers allow.
  int64_t registers = 0, inTile = 0, sums = 0;
  for (const LoadedOperand &operand : body.operands) {
    registers += registersOf(operand.type);
    inTile += registersOf(operand.type) * operand.tileDepth() / operand.depth();
  }
  for (DotOp dot : body.dots)
    sums += registersOf(cast<RankedTensorType>(dot.getAcc().getType()));
  registers += sums;
  // A batch's sums, and its next block, may leave none.
  int64_t inFlight =
      bytes / 4 / body.dots.front()->getParentOfType<FuncOp>().getBlockSize();
  if (body.operands.front().type.getRank() > 2 && !isLoadedWhole &&
      sums + inTile + inFlight > row.vgprs.perWave * 7 / 8)
    return {};
  int64_t depth = body.operands.front().depth();
  bool inHalves = body.isGemm && stages > 1 && depth / 2 % tile == 0 &&
                  registers <= row.vgprs.perWave * 3 / 4;
  return PipelineAttr::get(context, stages,
                           isLoadedWhole ? tile
                           : inHalves    ? depth / 2
                                         : depth,
                           /*direct=*/0);
}

namespace {
struct PipelinePass : greta::impl::GretaTilePipelinePassBase<PipelinePass> {
  using GretaTilePipelinePassBase::GretaTilePipelinePassBase;
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    const TargetRow *row = rowOfTarget(kernel, target);
    if (!row)
      return signalPassFailure();
    if (failed(kernel.checkTarget()))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops; // inner ones first
    kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      auto attr = loop->getAttrOfType<PipelineAttr>(pipelineName);
      // Operands are loaded where the dot takes them.
      if (attr && !attr.getStages()) {
        loop->removeAttr(pipelineName);
        loop->setAttr(rolledName, UnitAttr::get(&getContext()));
        continue;
      }
      LoopBody body(loop, /*rest=*/bool(attr));
      if (!attr && !row->isHost())
        attr =
            choosePipeline(body, *row, askedStages(loop, *row), &getContext());
      ImplicitLocOpBuilder b(loop.getLoc(), loop);
      if (attr && failed(LoopPipeliner(loop, body, attr, *row, b).run()))
        return signalPassFailure();
    }
    if (!row->isHost())
      kernel.walk([](scf::ForOp loop) { prefetchIndices(loop); });
  }
};
} // namespace
