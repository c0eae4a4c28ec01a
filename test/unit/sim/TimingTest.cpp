//===- TimingTest.cpp - the issue model on code with known cycles ---------===//
#include "SimTest.h"

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

/// A kernel whose loop of 100 iterations holds `body`.
std::string loop(const std::string &chip, const std::string &body,
                 unsigned vgprs = 64, unsigned lds = 1024) {
  std::string v = std::to_string(vgprs), l = std::to_string(lds);
  bool wave64 = isWave64(chip);
  return ".amdgcn_target \"amdgcn-amd-amdhsa--" + chip +
         "\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n"
         " s_mov_b32 s4, 0\n v_mov_b32 v1, 0\n v_mov_b32 v2, 0\n"
         "begin:\n" +
         body +
         "\n s_add_u32 s4, s4, 1\n s_cmp_lt_u32 s4, 100\n"
         " s_cbranch_scc1 begin\n s_endpgm\n"
         ".rodata\n.p2align 6\n.amdhsa_kernel k\n .amdhsa_next_free_vgpr " +
         v +
         "\n .amdhsa_next_free_sgpr 16\n .amdhsa_system_vgpr_workitem_id 0\n"
         " .amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
         " .amdhsa_kernarg_size 8\n .amdhsa_group_segment_fixed_size " +
         l + "\n" +
         (wave64 ? " .amdhsa_accum_offset " + v + "\n"
                 : std::string(" .amdhsa_wavefront_size32 1\n")) +
         ".end_amdhsa_kernel\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\n"
         "amdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n"
         "    .kernarg_segment_size: 8\n    .group_segment_fixed_size: " +
         l +
         "\n    .private_segment_fixed_size: 0\n"
         "    .kernarg_segment_align: 8\n    .wavefront_size: " +
         (wave64 ? "64" : "32") +
         "\n    .sgpr_count: 16\n    .vgpr_count: " + v +
         "\n    .max_flat_workgroup_size: 1024\n    .args:\n"
         "      - .offset: 0\n        .size: 8\n        .value_kind: "
         "global_buffer\n        .address_space: global\n...\n"
         ".end_amdgpu_metadata\n";
}

struct Outcome {
  CycleEstimate estimate;
  LaunchStats stats;
};
Outcome run(const std::string &chip, const std::string &body, Dim3 grid,
            Dim3 block, void (*change)(LaunchConfig &) = nullptr,
            unsigned vgprs = 64, unsigned lds = 1024) {
  Bench b(chip, loop(chip, body, vgprs, lds), "asm", "");
  Outcome r;
  b.config.estimate = &r.estimate;
  b.config.stats = &r.stats;
  if (change)
    change(b.config);
  EXPECT_EQ(b.arg(b.buffer<int>(4096)).launch(grid, block, CheckNone), "");
  return r;
}
CycleEstimate one(const std::string &chip, const std::string &body,
                  Dim3 block = {64, 1, 1}) {
  return run(chip, body, {1, 1, 1}, block).estimate;
}

std::string repeat(const char *line, unsigned n) {
  std::string s;
  while (n--)
    s += std::string(line) + "\n";
  return s;
}
const char mfma[] =
    " v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]";

// An accumulating MFMA issues every 8 passes of 4 cycles; the loop's three
// scalar instructions hide behind it, a taken branch too.
TEST(Timing, MatrixInstructionsFillTheirUnit) {
  CycleEstimate e = one("gfx942", repeat(mfma, 8));
  EXPECT_EQ(e.loopIterations, 100u);
  EXPECT_NEAR(e.loopCyclesPerIteration, 8 * 32, 3);
  EXPECT_EQ(e.loopMatrixPerIteration, 8 * 32);
  EXPECT_EQ(e.bound, "matrix units");
  // One of four SIMDs works.
  EXPECT_NEAR(e.loopMatrixShare, 0.25, 0.01);
}

// RDNA issues no hints, also where a loop begins with one.
TEST(Timing, LoopsThatBeginWithAHint) {
  CycleEstimate e = one("gfx1100",
                        " s_delay_alu instid0(VALU_DEP_1)\n" +
                            repeat(" v_add_f32 v3, v1, v2", 32),
                        {32, 1, 1});
  EXPECT_EQ(e.loopIterations, 100u);
  EXPECT_NEAR(e.loopCyclesPerIteration, 32 + 3 + 8, 4);
}

// The scheduler leaves loops with two ways back to the beginning.
TEST(Timing, LoopsWithTwoLatches) {
  CycleEstimate e = one("gfx942", repeat(mfma, 4) + " s_bitcmp1_b32 s4, 0\n"
                                                    " s_cbranch_scc0 odd\n"
                                                    " s_add_u32 s4, s4, 1\n"
                                                    " s_branch begin\nodd:\n");
  EXPECT_EQ(e.loopIterations, 101u); // 100 is looked at once more
  EXPECT_NEAR(e.loopCyclesPerIteration, 4 * 32, 8);
  EXPECT_EQ(e.loopMatrixPerIteration, 4 * 32);
}

// Waves may run copies of the loop that are theirs alone: all of them count.
TEST(Timing, WavesWithLoopsOfTheirOwn) {
  std::string body = repeat(mfma, 8),
              end = "\n s_add_u32 s4, s4, 1\n s_cmp_lt_u32 s4, 100\n";
  // Waves 2 and 3 take the second copy, on SIMDs of their own.
  CycleEstimate e =
      one("gfx942",
          " v_readfirstlane_b32 s6, v0\n s_cmp_gt_u32 s6, 127\n"
          " s_cbranch_scc1 second\nfirst:\n" +
              body + end + " s_cbranch_scc1 first\n s_endpgm\nsecond:\n" +
              body + end + " s_cbranch_scc1 second\n s_endpgm\n",
          {256, 1, 1});
  EXPECT_NEAR(e.loopMatrixShare, 1, 0.02);
  EXPECT_EQ(e.loopIterations, 4 * 100u);
  EXPECT_NEAR(e.loopCyclesPerIteration, 8 * 32, 3);
  EXPECT_EQ(e.loopMatrixPerIteration, 8 * 32);
}

// Waves that only move data are not in the main loop.
TEST(Timing, ProducersHaveNoMainLoop) {
  CycleEstimate e =
      one("gfx942",
          " v_readfirstlane_b32 s6, v0\n s_cmp_gt_u32 s6, 255\n"
          " s_cbranch_scc0 matrix\nmove:\n s_add_u32 s4, s4, 1\n"
          " s_cmp_lt_u32 s4, 5000\n s_cbranch_scc1 move\n s_endpgm\nmatrix:\n" +
              repeat(mfma, 8) +
              " s_add_u32 s4, s4, 1\n s_cmp_lt_u32 s4, 100\n"
              " s_cbranch_scc1 matrix\n s_endpgm\n",
          {512, 1, 1});
  EXPECT_EQ(e.loopIterations, 4 * 100u);
  EXPECT_NEAR(e.loopMatrixShare, 1, 0.02);
}

TEST(Timing, WavesShareAUnit) {
  CycleEstimate four = one("gfx942", repeat(mfma, 8), {256, 1, 1}),
                eight = one("gfx942", repeat(mfma, 8), {512, 1, 1});
  EXPECT_NEAR(four.loopMatrixShare, 1, 0.02);
  EXPECT_NEAR(eight.loopMatrixShare, 1, 0.02);
  EXPECT_EQ(eight.wavesPerSimd, 2);
  EXPECT_NEAR(double(eight.cycles), 2. * double(four.cycles), 100);
}

// A wave of gfx9 issues every 4 cycles; a SIMD issues a vector and a scalar
// instruction of different waves together, but not two vector ones.
TEST(Timing, IssueSlots) {
  std::string vector = repeat(" v_add_f32 v3, v1, v2", 32),
              scalar = repeat(" s_add_u32 s5, s5, 1", 32);
  // Waves 4 to 7 take the second path.
  auto body = [](const std::string &first, const std::string &second) {
    return " v_readfirstlane_b32 s6, v0\n s_cmp_gt_u32 s6, 255\n"
           " s_cbranch_scc1 second\n" +
           first + " s_branch join\nsecond:\n" + second + "join:\n";
  };
  double single = double(one("gfx942", body(vector, scalar)).cycles);
  EXPECT_NEAR(single, 100 * (39 * 4 + 24), 100 * 8);
  Dim3 pair = {512, 1, 1};
  double mixed = double(one("gfx942", body(vector, scalar), pair).cycles),
         same = double(one("gfx942", body(vector, vector), pair).cycles);
  EXPECT_LT(mixed, 1.1 * single);
  EXPECT_GT(same, 100 * 2 * 32 * 4.);
}

TEST(Timing, NopsAndTranscendentals) {
  double plain = one("gfx942", " v_add_f32 v3, v1, v2").loopCyclesPerIteration;
  EXPECT_NEAR(
      one("gfx942", " s_nop 7\n v_add_f32 v3, v1, v2").loopCyclesPerIteration -
          plain,
      8 * 4, 0.5);
  double exp =
      one("gfx942", repeat(" v_exp_f32 v3, v1", 16)).loopCyclesPerIteration;
  EXPECT_NEAR(exp, 16 * 16 + 12, 8);
}

TEST(Timing, BankConflicts) {
  // 64 lanes at 16-byte steps and at 128-byte steps: 2 words per bank and 16.
  const char *body = " v_lshlrev_b32 v3, %, v0\n ds_read_b32 v8, v3\n"
                     " ds_read_b32 v9, v3\n s_waitcnt lgkmcnt(0)";
  auto at = [&](const char *shift) {
    std::string s = body;
    s.replace(s.find('%'), 1, shift);
    return run("gfx942", s, {1, 1, 1}, {64, 1, 1}, nullptr, 64, 8192);
  };
  Outcome straight = at("2"), spread = at("7");
  EXPECT_EQ(straight.stats.ldsConflictCycles, 0u);
  // Two reads of two groups of 32 lanes each, all in one bank.
  EXPECT_EQ(spread.stats.ldsConflictCycles, 100u * 2 * 2 * 15);
  EXPECT_NEAR(spread.estimate.loopCyclesPerIteration -
                  straight.estimate.loopCyclesPerIteration,
              2 * 2 * 15, 8);
  EXPECT_GT(spread.estimate.waitLds, 0.5);
  EXPECT_EQ(straight.estimate.bound, "waiting for LDS");
}

TEST(Timing, MemoryLatencyIsTheTables) {
  const char *body =
      " s_load_dwordx2 s[2:3], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n"
      " global_load_dword v3, v1, s[2:3]\n s_waitcnt vmcnt(0)";
  auto with = [&](void (*change)(LaunchConfig &)) {
    return run("gfx942", body, {1, 1, 1}, {64, 1, 1}, change).estimate;
  };
  double far = with([](LaunchConfig &c) {
                 c.estimateOptions.cacheLatency = 1128;
               }).loopCyclesPerIteration,
         near = with([](LaunchConfig &c) {
                  c.estimateOptions.cacheLatency = 128;
                }).loopCyclesPerIteration;
  // All but the first iteration find the line in the cache.
  EXPECT_NEAR(far - near, 1000 * 0.99, 10);
  EXPECT_EQ(with(nullptr).bound, "waiting for global memory");
}

// LDS at half and twice its width; all latencies halved and doubled; fewer
// compute units.
TEST(Timing, Scales) {
  std::string lds = repeat(" ds_read_b128 v[8:11], v1 offset:16", 16) +
                    " s_waitcnt lgkmcnt(0)",
              memory = " s_load_dwordx2 s[2:3], s[0:1], 0x0\n"
                       " s_waitcnt lgkmcnt(0)\n";
  auto at = [](const std::string &body, void (*change)(LaunchConfig &)) {
    return run("gfx942", body, {1, 1, 1}, {256, 1, 1}, change)
        .estimate.loopCyclesPerIteration;
  };
  auto none = [](LaunchConfig &) {};
  double plain = at(lds, none),
         narrow =
             at(lds, [](LaunchConfig &c) { c.estimateOptions.ldsRate = .5; }),
         wide = at(lds, [](LaunchConfig &c) { c.estimateOptions.ldsRate = 2; });
  // Four waves read 16 times for 8 cycles.
  EXPECT_NEAR(narrow - plain, 512, 20);
  EXPECT_NEAR(plain - wide, 256, 20);
  double near =
             at(memory,
                [](LaunchConfig &c) { c.estimateOptions.latencyScale = .5; }),
         far = at(memory,
                  [](LaunchConfig &c) { c.estimateOptions.latencyScale = 2; });
  EXPECT_NEAR(far - near, 1.5 * 128, 10); // the table's scalar latency
  auto cycles = [](void (*change)(LaunchConfig &)) {
    return run("gfx942", " v_add_f32 v3, v1, v2", {4096, 1, 1}, {256, 1, 1},
               change)
        .estimate;
  };
  CycleEstimate whole = cycles([](LaunchConfig &) {}),
                part = cycles([](LaunchConfig &c) {
                  c.estimateOptions.computeUnits = 76;
                });
  // 4096 over 304 units of 8 workgroups are 2 rounds, over 76 of them 7.
  EXPECT_EQ(whole.launchCycles, 2 * whole.cycles);
  EXPECT_EQ(part.launchCycles, 7 * part.cycles);
}

TEST(Timing, BarriersWaitForTheSlowest) {
  // Wave 0 sleeps 640 cycles before each barrier.
  const char *body = " v_readfirstlane_b32 s5, v0\n s_cmp_lg_u32 s5, 0\n"
                     " s_cbranch_scc1 skip\n s_sleep 10\nskip:\n s_barrier";
  CycleEstimate e = one("gfx942", body, {256, 1, 1});
  EXPECT_GT(e.loopCyclesPerIteration, 640);
  EXPECT_LT(e.loopCyclesPerIteration, 760);
  EXPECT_GT(e.waitBarrier, 0.5);
  EXPECT_EQ(e.bound, "waiting at barriers");
}

// The wave with the higher priority does not wait for the vector unit.
TEST(Timing, Priorities) {
  auto body = [](const char *priority) {
    return " v_readfirstlane_b32 s5, v0\n s_cmp_lg_u32 s5, 0\n"
           " s_cbranch_scc1 others\n" +
           std::string(" s_setprio ") + priority + "\nothers:\n" +
           repeat(" v_add_f32 v3, v1, v2", 40) + " s_barrier";
  };
  // Five waves: the first and the fifth share a SIMD. In turn both are done
  // after 80 slots, as the barrier then is; when the first goes first, it is
  // done after 40 and waits for 40, which is a tenth of five waves' 80.
  CycleEstimate turn = one("gfx942", body("0"), {320, 1, 1}),
                first = one("gfx942", body("3"), {320, 1, 1});
  EXPECT_NEAR(first.waitBarrier - turn.waitBarrier, 0.1, 0.03);
  EXPECT_NEAR(double(turn.cycles), double(first.cycles),
              0.1 * double(turn.cycles));
}

TEST(Timing, WmmaRates) {
  std::string wmma11 = repeat(
      " v_wmma_f32_16x16x16_f16 v[16:23], v[32:39], v[40:47], v[16:23]", 8);
  EXPECT_NEAR(one("gfx1100", wmma11, {32, 1, 1}).loopCyclesPerIteration, 8 * 32,
              4);
  std::string wmma12 = repeat(
      " v_wmma_f32_16x16x16_f16 v[16:23], v[32:35], v[40:43], v[16:23]", 8);
  EXPECT_NEAR(one("gfx1201", wmma12, {32, 1, 1}).loopCyclesPerIteration, 8 * 16,
              8);
}

// A dependent RDNA VALU instruction waits 5 cycles, an independent one none.
TEST(Timing, RdnaDependentVector) {
  double apart = one("gfx1100", repeat(" v_add_f32 v3, v1, v2", 32), {32, 1, 1})
                     .loopCyclesPerIteration,
         chain = one("gfx1100", repeat(" v_add_f32 v3, v3, v2", 32), {32, 1, 1})
                     .loopCyclesPerIteration;
  EXPECT_NEAR(chain - apart, 32 * 4, 6);
}

TEST(Timing, Occupancy) {
  auto at = [](unsigned vgprs, unsigned lds) {
    return run(
        "gfx942", " v_add_f32 v3, v1, v2", {4096, 1, 1}, {256, 1, 1},
        [](LaunchConfig &c) { c.estimateOnly = true; }, vgprs, lds);
  };
  Outcome few = at(256, 1024), many = at(64, 1024), shared = at(64, 32768);
  EXPECT_EQ(few.estimate.workgroups, 2u); // 512 registers, 4 waves on 4 SIMDs
  EXPECT_EQ(few.estimate.occupancyLimit, "VGPRs");
  EXPECT_EQ(many.estimate.workgroups, 8u);
  EXPECT_EQ(shared.estimate.workgroups, 2u);
  EXPECT_EQ(shared.estimate.occupancyLimit, "LDS");
  // Only the replayed ones ran, and the ends of the grid; the launch is 4096
  // over 304 units, in rounds.
  EXPECT_EQ(many.stats.workgroups, 10u);
  EXPECT_EQ(many.estimate.launchCycles, 2 * many.estimate.cycles);
}

TEST(Timing, SameInEveryRun) {
  std::string body =
      repeat(mfma, 3) + " ds_read_b128 v[8:11], v1\n s_barrier\n";
  auto with = [&](void (*change)(LaunchConfig &)) {
    return run("gfx942", body, {76, 1, 1}, {512, 1, 1}, change).estimate;
  };
  CycleEstimate a = with([](LaunchConfig &c) { c.threads = 1; }),
                b = with([](LaunchConfig &c) { c.threads = 2; }),
                c = with([](LaunchConfig &c) { c.estimateOnly = true; });
  EXPECT_EQ(a.cycles, b.cycles);
  EXPECT_EQ(a.cycles, c.cycles);
  EXPECT_EQ(a.loopCyclesPerIteration, b.loopCyclesPerIteration);
  EXPECT_EQ(a.launchCycles, c.launchCycles);
}

// Megabytes that a grid reads in the model: `index` says which 16 bytes a work
// item reads in iteration i of 64. All operands lie in one allocation, as in
// Vulkan.
double footprint(const std::string &index, unsigned groups = 608) {
  Bench b("gfx942", R"(
typedef float f4 __attribute__((ext_vector_type(4)));
kernel void k(global f4 *p, global f4 *o) {
  uint g = __builtin_amdgcn_workgroup_id_x();
  uint t = __builtin_amdgcn_workitem_id_x();
  f4 s = 0;
  for (uint i = 0; i < 64; ++i)
    s += p[)" + index + R"(];
  if (s.x == 1)
    o[g] = s;
})");
  CycleEstimate e;
  b.config.estimate = &e;
  b.config.estimateOnly = true;
  float *p = b.buffer<float>(16 << 20), *o = b.buffer<float>(4096);
  EXPECT_EQ(b.arg(p).arg(o).launch({groups, 1, 1}, {64, 1, 1}, CheckNone), "");
  EXPECT_EQ(e.workgroups, groups / 304);
  return double(e.memoryCycles) / 2100 * 5300 / 1e3; // MHz, GB/s
}

TEST(Timing, ResidentWorkgroupsAreEstimatedTogether) {
  Bench b("gfx942", "kernel void k(global int *o) { o[0] = 1; }");
  CycleEstimate e;
  b.config.estimate = &e;
  b.config.resident = true;
  b.config.estimateOnly = true;
  std::string report =
      b.arg(b.buffer<int>(1)).launch({4, 1, 1}, {64, 1, 1}, CheckNone);
  EXPECT_NE(report.find("an estimate of some workgroups alone, which wait for "
                        "the others"),
            std::string::npos)
      << report;
  b.config.estimateOnly = false;
  EXPECT_EQ(b.launch({4, 1, 1}, {64, 1, 1}, CheckNone), "");
  EXPECT_GT(e.launchCycles, 0u);
}

// A workgroup reads 64 KB of its own, or half of that and 32 KB that all read.
TEST(Timing, SharedOperandsCountOnce) {
  EXPECT_NEAR(footprint("(g * 64 + i) * 64 + t"), 608 * .065536, .1);
  EXPECT_NEAR(footprint("i % 2 ? i / 2 * 64 + t : (32 + g * 32 + i / 2) * 64 + "
                        "t"),
              609 * .032768, .1);
}

// Workgroups of a quarter of the grid share 64 KB, which the sample sees once.
TEST(Timing, SharedOperandsAreNoMoreThanLieBetween) {
  EXPECT_NEAR(footprint("(g / 152 * 64 + i) * 64 + t"), 4 * .065536, .01);
  EXPECT_NEAR(footprint("(g / 76 * 64 + i) * 64 + t", 304), 4 * .065536, .01);
}

// Eight chiplets take turns in the grid, and each has an eighth of the operand:
// an even sample meets the first one alone.
TEST(Timing, SamplesSeeWhatAllChipletsRead) {
  EXPECT_NEAR(footprint("((g % 8 * 76 + g / 8) * 64 + i) * 64 + t"),
              608 * .065536, .1);
}

// Cycles of a launch whose workgroup x does `parts` parts of work.
double unequal(Dim3 grid, bool only, const std::string &parts) {
  Bench b("gfx942", R"(
kernel void k(global float *o) {
  uint x = __builtin_amdgcn_workgroup_id_x();
  float s = __builtin_amdgcn_workitem_id_x();
  for (uint i = 0; i < 256 * ()" +
                        parts +
                        R"(); ++i)
    s = s * s + 1;
  o[__builtin_amdgcn_workitem_id_x()] = s;
})");
  CycleEstimate e;
  b.config.estimate = &e;
  b.config.estimateOnly = only;
  float *o = b.buffer<float>(64);
  EXPECT_EQ(b.arg(o).launch(grid, {64, 1, 1}, CheckNone), "");
  return double(e.launchCycles);
}

// A whole run knows the mean of all workgroups. The sample of a grid in two
// dimensions is spread over both; in four of five parts nobody waits for the
// longest.
TEST(Timing, UnequalWorkgroups) {
  double few = unequal({64, 1, 1}, false, "x < 16 ? 16 : 4");
  EXPECT_NEAR(few / unequal({64, 1, 1}, false, "o[0] == 1 ? x : 7"), 1, .03);
  double many = unequal({4, 304, 1}, true, "x + 1");
  EXPECT_NEAR(many / unequal({4, 304, 1}, true, "o[0] == 1 ? x : 2"), 1.15,
              .15);
}

TEST(Timing, OneWaveAlone) {
  CycleEstimate e =
      run("gfx942", repeat(mfma, 8) + " s_barrier", {4, 1, 1}, {512, 1, 1},
          [](LaunchConfig &c) { c.estimateOptions.oneWave = true; })
          .estimate;
  EXPECT_EQ(e.simds, 1u);
  EXPECT_NEAR(e.loopMatrixShare, 1, 0.1);
}

} // namespace
