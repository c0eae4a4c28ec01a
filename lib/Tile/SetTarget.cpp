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
        // Without stages a loop's operands come in registers.
        PipelineAttr pipeline = pipelineOf(dot);
        bool inRegisters = pipeline && !pipeline.getStages();
        if (auto *instruction = instructionFor(dot, waves, row, inRegisters))
          dot.setMatrixAttr(matrixAttr(&getContext(), *instruction, row));
      });
  }
};
} // namespace
