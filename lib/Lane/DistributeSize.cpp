//===- DistributeSize.cpp - programs too large for a lane -----------------===//
//
// In: a kernel whose blocks have layouts, or the lane's program that was made
// of it. Out: an error at the op that asks most, where that is more than the
// target's row allows (CodeLimits). Up to there spills are allowed.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "greta/Tile/BlockSize.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// 32-bit registers of a block that a lane holds; 0 for a block without layout,
/// which is another error.
static int64_t registersOfLane(RankedTensorType block) {
  LayoutAttr layout = getLayoutOf(block);
  return layout ? registersOf(block.getElementType(),
                              toLayout(layout).numRegisters())
                : 0;
}

static LogicalResult outOfResources(Operation *op, StringRef what,
                                    int64_t required, int64_t limit,
                                    FuncOp kernel, const TargetRow &row) {
  int64_t times = llvm::PowerOf2Ceil(llvm::divideCeil(required, limit));
  InFlightDiagnostic error =
      op->emitOpError("is out of resources: ")
      << what << ", Required: " << required << ", limit of " << row.name << ": "
      << limit << "; blocks of 1/" << times << " of the elements would fit";
  int64_t waves = kernel.getNumWaves() * times;
  if (waves * kernel.getNumLanes() <= row.maxWorkgroupSize)
    error << ", or num_warps = " << waves;
  return error;
}

LogicalResult greta::tile::checkBlockSizes(FuncOp kernel,
                                           const TargetRow &row) {
  Operation *worst = nullptr;
  int64_t most = row.most.registers;
  kernel.walk([&](Operation *op) {
    // These ops' results take registers only where others use them.
    if (isa<SplatOp, ConvertLayoutOp>(op) ||
        op->hasTrait<OpTrait::ConstantLike>())
      return;
    for (Type type : op->getResultTypes())
      if (auto block = dyn_cast<RankedTensorType>(type))
        if (int64_t registers = registersOfLane(block); registers > most) {
          worst = op;
          most = registers;
        }
  });
  return worst ? outOfResources(worst, "registers a lane for one block", most,
                                row.most.registers, kernel, row)
               : success();
}

LogicalResult greta::tile::checkLaneSize(FuncOp kernel, FuncOp lane,
                                         const TargetRow &row) {
  // Instructions are where the op is that they were made of.
  llvm::MapVector<Location, int64_t> counts;
  int64_t all = 0;
  lane.walk([&](Operation *op) {
    ++counts[op->getLoc()];
    ++all;
  });
  if (all <= row.most.instructions)
    return success();
  auto worst = llvm::max_element(
      counts, [](const auto &x, const auto &y) { return x.second < y.second; });
  Operation *op = kernel;
  kernel.walk([&](Operation *from) {
    if (from->getLoc() == worst->first)
      op = from;
  });
  std::string what =
      llvm::formatv("instructions a lane, {0} of them here", worst->second);
  return outOfResources(op, what, all, row.most.instructions, kernel, row);
}
