//===- SplitK.cpp - GEMMs in parts along K --------------------------------===//
//
// A GEMM with few tiles and a long K leaves compute units idle. With `split`
// in its configuration, each range of K has workgroups of its own, and the one
// that is last at a tile adds the parts up (GretaToTileSplitK.cpp). This file
// says whether that is possible, and how long it takes.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"

using namespace mlir;
using namespace greta;

double greta::splitCycles(const TargetRow &row, int64_t split,
                          double elements) {
  if (split == 1)
    return 0;
  const LoopRates &rates = row.tiles.loop;
  return rates.meeting + (split + 1) * elements * 4 / rates.partBytes;
}

bool greta::hasParts(const Space &space) {
  MatmulOp matmul = space.matmul;
  return !isBatchInvariant(matmul) &&
         !ShapedType::isDynamic(matmul.getDepth()) && !matmul.getBatchRank() &&
         isa<BlockArgument>(matmul.getA()) &&
         (!space.heads || isa<BlockArgument>(matmul.getB()) ||
          takesPackedWeights(matmul));
}

bool greta::canSplit(const Space &space) {
  MatmulOp matmul = space.matmul;
  // Buffers of the parts come in addition here.
  auto kernel = matmul->getParentOfType<KernelOp>();
  size_t buffers = kernel->getNumOperands() + kernel->getNumResults() +
                   space.gemms().size() + 1;
  return hasParts(space) && !space.heads && !matmul.getOffsets() &&
         buffers <= maxBuffers;
}

bool greta::fitsSplit(const Space &space, const SpaceSchedule &config) {
  // The number of keys is not known.
  if (space.alone)
    return !getUpdatedCache(space.alone);
  if (!space.matmul || !canSplit(space))
    return false;
  int64_t k = MatmulOp(space.matmul).getDepth();
  // Skinny GEMMs: parts are whole blocks, which need no masks.
  if (config.run)
    return k % (config.depth * config.split) == 0;
  return partsOf(llvm::divideCeil(k, config.depth), config.split) ==
         config.split;
}
