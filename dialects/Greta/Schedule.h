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

/// The schedule of one space. An integer is not less than it is here.
struct SpaceSchedule {
  int64_t chiplets = 1; // that workgroups are dealt to in turn
  int64_t columns = 1;
  int64_t depth = 0; // of a GEMM; of attention, keys at a time
  bool flat = false;
  int64_t group = 1; // rows of blocks that neighbouring workgroups share
  bool loop = false; // along columns; of attention's loops, its own rows lie
                     // in shared memory
  tile::MatrixAttr matrix;         // its instruction; null: SIMT FMAs
  tile::PipelineAttr pipeline;     // of its loop over K; null: none
  llvm::SmallVector<int64_t> rows; // per group of row dimensions
  int64_t run = 0;    // along the depth, in a lane; 0: not the skinny schedule
  int64_t split = 1;  // ranges of a GEMM's K, each with its own workgroups;
                      // of attention's keys, workgroups wanted in all
  int64_t unroll = 1; // blocks along the depth per iteration of its loop;
                      // of attention, for each of which are waves

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
  int64_t gridLimit = 0; // 0: none
  llvm::SmallVector<SpaceSchedule> spaces;
  int64_t waveSize = 0;
  int64_t waves = 0; // of a block program, in place of both sizes

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
