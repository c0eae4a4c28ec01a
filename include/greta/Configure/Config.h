//===- Config.h - the tile configuration of a kernel ------------*- C++ -*-===//
//
// The attribute `config` of greta.kernel as C++: greta-configure writes it,
// greta-to-tile reads it. Its entries are described at the pass.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONFIGURE_CONFIG_H
#define GRETA_CONFIGURE_CONFIG_H

#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"

namespace greta {

struct SpaceConfig {
  llvm::SmallVector<int64_t> rows; // per group of row dimensions
  int64_t columns = 1;
  bool flat = false;
  bool loop = false;  // along columns; of attention's loops, its own rows lie
                      // in shared memory
  int64_t depth = 0;  // of a GEMM; of attention, keys at a time
  int64_t run = 0;    // of it, in a lane; 0: not the skinny schedule
  int64_t unroll = 1; // blocks along the depth per turn of its loop;
                      // of attention, for each of which are waves
  tile::MatrixAttr matrix;     // its instruction; null: SIMT FMAs
  tile::PipelineAttr pipeline; // of its loop over K; null: none
  int64_t group = 1;    // rows of blocks that neighbouring workgroups share
  int64_t chiplets = 1; // that workgroups are dealt to in turn
  int64_t split = 1;    // ranges of a GEMM's K, each with its own workgroups;
                        // of attention's keys, workgroups wanted in all
};

struct KernelConfig {
  int64_t blockSize = 0;
  int64_t waveSize = 0;
  int64_t waves = 0;     // of a block program, in place of both
  int64_t gridLimit = 0; // 0: none
  llvm::SmallVector<SpaceConfig> spaces;
};

mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context,
                                 const KernelConfig &config);

/// The configuration of a kernel; one that is missing or does not fit its
/// regions gets a diagnostic.
mlir::FailureOr<KernelConfig> getConfig(KernelOp kernel);

} // namespace greta

#endif
