//===- SetTarget.cpp - the pass greta-tile-set-target ---------------------===//
//
// In: a block program, which names its waves and no target. Out: the same with
// the lanes of the target's waves and, on the dots that have one, the target's
// matrix instruction. Kernels that have a wave_size stay as they are.
//
//===----------------------------------------------------------------------===//

#include "Layouts/DotLayouts.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/BlockSize.h"
#include "greta/Tile/MatrixInstructions.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILESETTARGETPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Each of a program's waves has so many lanes on targets whose lanes cannot
/// exchange values. Targets with narrower waves get more of them for large
/// blocks.
static constexpr unsigned portableLanes = 32;

/// A lane of a narrow wave has at most so many elements of a kernel's largest
/// block, as long as the workgroup has no more than lanesOfLargeBlocks. A
/// lane's program is straight code, whose compile time in llvmpipe grows faster
/// than its length (docs/experiments/conformance.md). Small blocks run fastest
/// in few lanes.
static constexpr int64_t elementsOfNarrowLane = 64;

/// Large blocks give a workgroup at most so many lanes, as Triton's default of
/// four warps has on CDNA. Programs have to cut blocks that are too large for
/// these.
static constexpr unsigned lanesOfLargeBlocks = 256;

/// Returns the number of a kernel's waves on a target. It is that of the
/// program, but larger if waves are narrow, or if a lane would hold more of a
/// block than compiles (CodeLimits).
static unsigned wavesOn(const TargetRow &row, FuncOp kernel) {
  unsigned named = kernel.getWaves();
  unsigned most = named * std::max(1u, portableLanes / row.waveSize);
  int64_t elements = 0, registers = 0;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto block = dyn_cast<RankedTensorType>(type)) {
        elements = std::max(elements, block.getNumElements());
        registers = std::max(registers, registersOf(block.getElementType(),
                                                    block.getNumElements()));
      }
  });
  unsigned waves = row.waveSize == 1 ? most : named;
  // Just below the limit several such blocks still compile for minutes.
  bool isTooLarge = registers > row.most.registers * most * row.waveSize;
  while (
      2 * waves * row.waveSize <= lanesOfLargeBlocks &&
      (isTooLarge || (2 * waves <= most &&
                      elements > elementsOfNarrowLane * waves * row.waveSize)))
    waves *= 2;
  return waves;
}

/// Returns the instruction for a dot, among those whose tiles make up its
/// block: the one that keeps most waves busy, then the fastest, then the
/// largest. Null: there is none.
static const MatrixInstruction *chooseInstruction(DotOp dot, unsigned waves,
                                                  const TargetRow &row) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto b = cast<RankedTensorType>(dot.getB().getType());
  auto acc = cast<RankedTensorType>(dot.getResult().getType());
  ArrayRef<int64_t> shape = acc.getShape();
  int64_t m = shape[shape.size() - 2], n = shape.back(),
          k = a.getShape().back();
  int64_t batch = acc.getNumElements() / (m * n);
  const MatrixInstruction *best = nullptr;
  std::tuple<uint64_t, uint64_t, uint64_t> bestWorth;
  PipelineAttr pipeline = pipelineOf(dot);
  // Only the transposed instruction has 8 rows.
  bool inRegisters = m < 16 && pipeline && !pipeline.getStages();
  for (const MatrixInstruction *mi :
       instructionsFor(a.getElementType(), b.getElementType(), row.matrix, row,
                       inRegisters)) {
    bool isSum =
        acc.getElementType().isF32() ? mi->acc == "f32" : mi->acc == "i32";
    // Operands come out of registers, so it must be known who has what.
    if (!isSum || !mi->accLayout.isKnown() || m % mi->m || n % mi->n ||
        k % mi->k)
      continue;
    // In a chain a wave has rows of its own.
    uint64_t tiles = batch * (m / mi->m) * (isChained(dot) ? 1 : n / mi->n);
    uint64_t work = uint64_t(mi->m) * mi->n * mi->k;
    uint64_t rate = mi->cycles ? work / mi->cycles : 0;
    std::tuple<uint64_t, uint64_t, uint64_t> worth = {
        std::min<uint64_t>(waves, tiles), rate, work};
    if (worth > bestWorth) {
      best = mi;
      bestWorth = worth;
    }
  }
  return best;
}

namespace {
struct SetTargetPass : greta::impl::GretaTileSetTargetPassBase<SetTargetPass> {
  using GretaTileSetTargetPassBase::GretaTileSetTargetPassBase;
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    const TargetRow *found = rowOfTarget(kernel, target);
    if (!found)
      return signalPassFailure();
    const TargetRow &row = *found;
    if (row.isHost()) {
      kernel.emitOpError("has no form for the target 'host'; compile it for a "
                         "GPU, or for vulkan, which runs on the CPU too");
      return signalPassFailure();
    }
    if (kernel.getWaveSize())
      return;
    // The number of waves says how work is split, never what is computed: there
    // are as many as the target has at most, and where lanes stand for waves it
    // may be any.
    unsigned waves = std::min<unsigned>(wavesOn(row, kernel),
                                        row.maxWorkgroupSize / row.waveSize);
    kernel.setWaves(waves);
    kernel.setWaveSize(row.waveSize);
    if (matrix)
      kernel.walk([&](DotOp dot) {
        if (dot.getMatrixAttr())
          return;
        if (auto *instruction = chooseInstruction(dot, waves, row))
          dot.setMatrixAttr(matrixAttr(&getContext(), *instruction, row));
      });
  }
};
} // namespace
