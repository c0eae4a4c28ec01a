//===- Schedule.h - the value of #greta.schedule ----------------*- C++ -*-===//
//
// The schedule of a kernel as greta-configure makes it and greta-to-tile reads
// it. The attribute's description (GretaKernel.td) says what each entry means.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SCHEDULE_H
#define GRETA_SCHEDULE_H

#include "GretaTile/GretaTile.h"

namespace greta {

/// The schedule of one space. The initial value of an integer is the least that
/// the verifier takes.
struct SpaceSchedule {
  /// Workgroups are dealt to so many chiplets in turn.
  int64_t chiplets = 1;
  int64_t columns = 1;
  /// The K tile of a GEMM. Attention: keys, or other rows, of an iteration.
  int64_t depth = 0;
  bool flat = false;
  /// Neighbouring workgroups share so many rows of tiles (GROUP_M).
  int64_t group = 1;
  /// A loop goes over pieces of a row. Attention: its own rows lie in shared
  /// memory.
  bool loop = false;
  /// The matrix instruction; null: SIMT FMAs.
  tile::MatrixAttr matrix;
  /// The pipeline of a GEMM's loop over K; null: none.
  tile::PipelineAttr pipeline;
  /// The rows of a workgroup in each group of row dimensions.
  llvm::SmallVector<int64_t> rows;
  /// A lane of a skinny GEMM has so many neighbours along K. 0: the GEMM is not
  /// skinny.
  int64_t run = 0;
  /// Ranges of a GEMM's K, each with workgroups of its own. Attention: the
  /// workgroups that are wanted in all.
  int64_t split = 1;
  /// Blocks along K in an iteration of a skinny GEMM. Attention: the waves that
  /// have keys of their own.
  int64_t unroll = 1;

  /// Calls `visit` with the name of each entry, in their order, and its member.
  template <typename Visitor> static void forEachEntry(Visitor &&visit) {
    visit("chiplets", &SpaceSchedule::chiplets);
    visit("columns", &SpaceSchedule::columns);
    visit("depth", &SpaceSchedule::depth);
    visit("flat", &SpaceSchedule::flat);
    visit("group", &SpaceSchedule::group);
    visit("loop", &SpaceSchedule::loop);
    visit("matrix", &SpaceSchedule::matrix);
    visit("pipeline", &SpaceSchedule::pipeline);
    visit("rows", &SpaceSchedule::rows);
    visit("run", &SpaceSchedule::run);
    visit("split", &SpaceSchedule::split);
    visit("unroll", &SpaceSchedule::unroll);
  }
};

/// The schedule of a kernel.
struct Schedule {
  int64_t blockSize = 0;
  int64_t gridLimit = 0; // the most workgroups along an axis; 0: no limit
  llvm::SmallVector<SpaceSchedule> spaces;
  int64_t waveSize = 0;
  int64_t waves = 0; // a block program's, which has this in place of sizes

  int64_t numWaves() const { return waves ? waves : blockSize / waveSize; }
  template <typename Visitor> static void forEachEntry(Visitor &&visit) {
    visit("block_size", &Schedule::blockSize);
    visit("grid_limit", &Schedule::gridLimit);
    visit("spaces", &Schedule::spaces);
    visit("wave_size", &Schedule::waveSize);
    visit("waves", &Schedule::waves);
  }
};

bool operator==(const SpaceSchedule &a, const SpaceSchedule &b);
bool operator==(const Schedule &a, const Schedule &b);
llvm::hash_code hash_value(const SpaceSchedule &schedule);
llvm::hash_code hash_value(const Schedule &schedule);

} // namespace greta

#endif
