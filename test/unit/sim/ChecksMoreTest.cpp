//===- ChecksMoreTest.cpp - planted bugs and their clean twins ------------===//
#include "Assembly.h"

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

const char *const every[] = {"gfx90a",  "gfx942",  "gfx950",
                             "gfx1030", "gfx1100", "gfx1201"};
#define FENCE "__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, \"workgroup\");"
#define BARRIER FENCE " __builtin_amdgcn_s_barrier(); " FENCE

//===- barriers -----------------------------------------------------------===//

// Wave 0 fills its part of the LDS and ends; wave 1 passes the barrier and
// reads it: ended waves do not count.
TEST(ChecksMore, EndedWavesDoNotCount) {
  EXPECT_EQ(runAssembly("gfx942", R"(
 v_lshlrev_b32 v1, 2, v0
 ds_write_b32 v1, v0
 v_readfirstlane_b32 s4, v0
 s_waitcnt lgkmcnt(0)
 s_cmp_eq_u32 s4, 0
 s_cbranch_scc1 end
 s_barrier
 v_subrev_u32 v1, 0x100, v1
 ds_read_b32 v2, v1
 s_barrier
end:)",
                        CheckAll, {128, 1, 1}),
            "");
}

std::string placed(const char *text, const char *first, const char *second) {
  std::string s = text;
  for (const char *part : {first, second})
    s.replace(s.find('%'), 1, part);
  return s;
}

// A branch that lanes decide leads past the barrier, or back to it.
TEST(ChecksMore, LanesThatMissABarrier) {
  const char skipped[] = R"(
 v_lshlrev_b32 v1, 2, v0
 v_cmp_gt_u32 vcc, 32, v0
 s_and_saveexec_b64 s[4:5], vcc
 s_cbranch_execz behind
 %behind:
 s_mov_b64 exec, s[4:5]
 %ds_write_b32 v1, v0)";
  std::string e = runAssembly("gfx942", placed(skipped, "s_barrier\n", ""));
  EXPECT_TRUE(contains(e, "divergent barrier") && contains(e, "lane 32") &&
              contains(e, "kernel 'k'") && contains(e, "ds_write_b32"))
      << e;
  EXPECT_EQ(runAssembly("gfx942", placed(skipped, "", "s_barrier\n ")), "");
  // Half of the lanes leave a loop after the first of two turns.
  const char loop[] = R"(
 v_lshlrev_b32 v1, 2, v0
 v_lshrrev_b32 v2, 5, v0
 s_mov_b64 s[4:5], exec
again:
 %v_subrev_u32 v2, 1, v2
 v_cmp_eq_u32 vcc, 0, v2
 s_and_b64 exec, exec, vcc
 s_cbranch_execnz again
 s_mov_b64 exec, s[4:5]
 %ds_write_b32 v1, v0)";
  e = runAssembly("gfx942", placed(loop, "s_barrier\n ", ""));
  EXPECT_TRUE(contains(e, "divergent barrier") && contains(e, "lane 0")) << e;
  EXPECT_EQ(runAssembly("gfx942", placed(loop, "", "s_barrier\n ")), "");
  // Lanes that are off for good have ended.
  EXPECT_EQ(runAssembly("gfx942", R"(
 v_lshlrev_b32 v1, 2, v0
 v_cmp_gt_u32 vcc, 32, v0
 s_and_b64 exec, exec, vcc
 s_cbranch_execz end
 s_barrier
 ds_write_b32 v1, v0
end:)"),
            "");
}

// A barrier counts waves: lanes may be off at it if the wave comes there with
// any, none or all of them on, as in code of RADV's compiler.
TEST(ChecksMore, BarriersIgnoreExec) {
  EXPECT_EQ(runAssembly("gfx1100", R"(
 v_lshlrev_b32 v1, 2, v0
 v_cmp_gt_u32 vcc_lo, 16, v0
 s_and_saveexec_b32 s4, vcc_lo
 ds_store_b32 v1, v0
 s_waitcnt lgkmcnt(0)
 s_barrier
 s_mov_b32 exec_lo, s4
 v_xor_b32 v1, 0x80, v1
 ds_store_b32 v1, v0 offset:256)",
                        CheckAll, {64, 1, 1}),
            "");
  EXPECT_EQ(runAssembly("gfx1100", R"(
 v_lshlrev_b32 v1, 2, v0
 v_cmp_gt_u32 vcc_lo, 16, v0
 s_and_saveexec_b32 s4, vcc_lo
 s_cbranch_execz behind
 ds_store_b32 v1, v0
behind:
 s_waitcnt lgkmcnt(0)
 s_barrier
 s_mov_b32 exec_lo, s4
 ds_store_b32 v1, v0 offset:256)",
                        CheckAll, {64, 1, 1}),
            "");
}

// The same bugs as LLVM compiles them, and twins whose lanes agree.
TEST(ChecksMore, CompiledDivergentBarriers) {
  for (const char *chip : every)
    for (const char *body :
         {"if (o[i] < %) {" BARRIER "}",
          "for (int n = o[i] < %; n >= 0; --n) {" BARRIER "}"})
      for (const char *bound : {"20", "32"}) {
        std::string text = body;
        text.replace(text.find('%'), 1, bound);
        Bench b(chip, "kernel void k(global int *o) { uint i = "
                      "__builtin_amdgcn_workitem_id_x();" +
                          text + " o[i] = i; }");
        int *o = b.buffer<int>(32);
        for (int k = 0; k < 32; ++k)
          o[k] = k;
        std::string e = b.arg(o).launch({1, 1, 1}, {32, 1, 1});
        if (bound == std::string("32"))
          EXPECT_EQ(e, "") << chip << text;
        else
          EXPECT_TRUE(contains(e, "divergent barrier")) << chip << text << e;
      }
}

//===- races --------------------------------------------------------------===//

// One wave reads plainly what the others change atomically, before or after.
TEST(ChecksMore, AtomicAgainstPlainReader) {
  for (const char *chip : every)
    for (bool local : {true, false})
      for (const char *place : {"before", "after", "ordered"}) {
        std::string word = local ? "sum" : "*o",
                    read = " if (i == %) o[1] = " + word + ";",
                    add = std::string("__hip_atomic_fetch_add(") +
                          (local ? "&sum" : "o") + ", 1, __ATOMIC_RELAXED, 3);",
                    body;
        if (place == std::string("before"))
          body = read + add;
        else if (place == std::string("after"))
          body = add + read;
        else
          body = add + BARRIER + read;
        body.replace(body.find('%'), 1,
                     place == std::string("before") ? "0" : "255");
        Bench b(chip, "kernel void k(global int *o) { local "
                      "int sum; uint i = __builtin_amdgcn_workitem_id_x();"
                      "if (i == 0) sum = 0; " BARRIER +
                          body + "}");
        int *o = b.buffer<int>(2);
        std::string e = b.arg(o).launch({1, 1, 1}, {256, 1, 1});
        if (place == std::string("ordered"))
          EXPECT_EQ(e, "") << chip << local;
        else
          EXPECT_TRUE(contains(e, local ? "LDS race" : "global memory race") &&
                      contains(e, "atomic") && contains(e, "read") &&
                      contains(e, "wave ") && contains(e, "address 0x"))
              << chip << " " << place << ": " << e;
      }
}

// Atomic loads carry their cache policy.
TEST(ChecksMore, AtomicLoadsDoNotRace) {
  for (const char *chip : every) {
    Bench b(chip, R"(
kernel void k(global int *o) {
  uint i = __builtin_amdgcn_workitem_id_x();
  int seen = __hip_atomic_load(o, __ATOMIC_RELAXED, 4);
  __hip_atomic_fetch_add(o, 1, __ATOMIC_RELAXED, 4);
  o[64 + i] = seen;
})");
    int *o = b.buffer<int>(320);
    EXPECT_EQ(b.arg(o).launch({1, 1, 1}, {256, 1, 1}), "") << chip;
  }
}

// Wave 1 runs ahead to its end before wave 0 has left the first barrier.
TEST(ChecksMore, ABarrierOrdersNothingBehindIt) {
  const char *body = R"(
 v_lshlrev_b32 v1, 2, v0
 v_mov_b32 v2, 0
 v_readfirstlane_b32 s4, v0
 s_barrier
 s_cmp_eq_u32 s4, 0
 s_cbranch_scc1 first
 ds_write_b32 v2, v1
 s_waitcnt lgkmcnt(0)
 %s_endpgm
first:
 %ds_read_b32 v3, v2)";
  std::string e =
      runAssembly("gfx942", placed(body, "", ""), CheckRaces, {128, 1, 1});
  EXPECT_TRUE(contains(e, "LDS race")) << e;
  EXPECT_EQ(runAssembly("gfx942", placed(body, "s_barrier\n ", "s_barrier\n "),
                        CheckRaces, {128, 1, 1}),
            "");
}

//===- waits --------------------------------------------------------------===//

std::string flat(const char *counts) {
  return std::string(R"(
 s_load_dwordx2 s[2:3], s[0:1], 0x0
 v_mov_b32 v4, 0
 s_waitcnt lgkmcnt(0)
 ds_write_b32 v4, v4
 v_mov_b32 v2, s2
 v_mov_b32 v3, s3
 s_waitcnt lgkmcnt(0)
 ds_read_b32 v5, v4
 flat_load_dword v1, v[2:3]
 )") + counts;
}

TEST(ChecksMore, FlatLoadsNeedBothCounters) {
  const char *both = "s_waitcnt vmcnt(0) lgkmcnt(0)\n v_mov_b32 v6, v1";
  EXPECT_EQ(runAssembly("gfx942", flat(both)), "");
  std::string e =
      runAssembly("gfx942", flat("s_waitcnt vmcnt(0)\n v_mov_b32 v6, v1"));
  EXPECT_TRUE(contains(e, "v1 is read before") && contains(e, "LDS load")) << e;
  e = runAssembly("gfx942", flat("s_waitcnt lgkmcnt(0)\n v_mov_b32 v6, v1"));
  EXPECT_TRUE(contains(e, "v1 is read before") &&
              contains(e, "vector memory load"))
      << e;
  // The flat load may overtake the LDS read, so that a count tells nothing.
  e = runAssembly("gfx942", flat("s_waitcnt lgkmcnt(1)\n v_mov_b32 v6, v5"));
  EXPECT_TRUE(contains(e, "v5 is read before")) << e;
}

// No more loads can be under way than the counter counts: the first of 64 is
// back when the last is issued.
TEST(ChecksMore, FullCountersStall) {
  for (int loads : {63, 64}) {
    std::string text = "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\n"
                       "s_waitcnt lgkmcnt(0)\n";
    for (int k = 0; k < loads; ++k)
      text += "global_load_dword v" + std::to_string(10 + k) + ", v1, s[2:3]\n";
    std::string e = runAssembly("gfx942", text + "v_mov_b32 v2, v10",
                                CheckWaits, {64, 1, 1}, "80");
    if (loads == 63)
      EXPECT_TRUE(contains(e, "v10 is read before")) << e;
    else
      EXPECT_EQ(e, "");
  }
}

// A load writes the lanes that were on, and only theirs are to be waited for.
TEST(ChecksMore, LoadsHaveLanes) {
  auto run = [](const std::string &body) {
    return runAssembly("gfx1030", R"(
 s_load_dwordx2 s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v2, 2, v0
 s_waitcnt lgkmcnt(0)
 s_mov_b32 exec_lo, 0xffff
 global_load_dword v1, v2, s[2:3]
 s_not_b32 exec_lo, exec_lo
 )" + body,
                       CheckAll, {32, 1, 1});
  };
  const char *const clean[] = {
      "v_mov_b32 v1, 0", "v_add_nc_u32 v3, v1, v2",
      "v_readfirstlane_b32 s4, v1", "v_readlane_b32 s4, v1, 16",
      "v_writelane_b32 v1, s4, 31",
      "v_mov_b32_dpp v3, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
      // Both loads are waited for, in their order.
      "global_load_dword v1, v2, s[2:3]\n s_waitcnt vmcnt(1)\n"
      " s_not_b32 exec_lo, exec_lo\n v_mov_b32 v3, v1",
      "global_load_dword v1, v2, s[2:3]\n s_waitcnt vmcnt(0)\n"
      " s_mov_b32 exec_lo, -1\n v_mov_b32 v3, v1"};
  for (const char *body : clean)
    EXPECT_EQ(run(body), "") << body;
  std::pair<const char *, const char *> planted[] = {
      {"s_mov_b32 exec_lo, 0x18000\n v_mov_b32 v1, 0", "v1 is written before"},
      {"s_not_b32 exec_lo, exec_lo\n v_mov_b32 v3, v1", "v1 is read before"},
      {"v_readlane_b32 s4, v1, 15", "v1 is read before"},
      {"v_writelane_b32 v1, s4, 0", "v1 is written before"},
      {"v_mov_b32_dpp v3, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf "
       "fi:1",
       "v1 is read before"},
      {"s_mov_b32 exec_lo, 1\n v_readfirstlane_b32 s4, v1",
       "v1 is read before"},
      {"global_load_dword v1, v2, s[2:3]\n s_waitcnt vmcnt(1)\n"
       " v_mov_b32 v3, v1",
       "v1 is read before"},
      {"global_load_dword v1, v2, s[2:3]\n s_not_b32 exec_lo, exec_lo\n"
       " v_mov_b32 v3, v1",
       "v1 is read before"}};
  for (auto [body, report] : planted) {
    std::string e = run(body);
    EXPECT_TRUE(contains(e, report) && contains(e, "vector memory load"))
        << body << e;
  }
}

std::string delivery(const char *wait, const char *barrier) {
  // Wave w loads into its 256 bytes and reads those of the other.
  return std::string(R"(
 s_load_dwordx2 s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v1, 2, v0
 v_xor_b32 v2, 0x100, v1
 v_readfirstlane_b32 s4, v1
 s_mov_b32 m0, s4
 s_waitcnt lgkmcnt(0)
 global_load_lds_dword v1, s[2:3]
 )") + wait +
         barrier +
         R"(
 ds_read_b32 v3, v2
 s_waitcnt lgkmcnt(0)
 v_mov_b32 v4, v3)";
}

TEST(ChecksMore, DirectToLdsLoadsAreDelivered) {
  for (const char *chip : {"gfx942", "gfx950"}) {
    const char *wait = "s_waitcnt vmcnt(0)\n ", *barrier = "s_barrier\n";
    EXPECT_EQ(runAssembly(chip, delivery(wait, barrier), CheckAll, {128, 1, 1}),
              "");
    std::string e =
        runAssembly(chip, delivery("", barrier), CheckAll, {128, 1, 1});
    EXPECT_TRUE(contains(e, "covers the direct-to-LDS load that fills it") &&
                contains(e, "LDS address ") && contains(e, "lane "))
        << e;
    e = runAssembly(chip, delivery(wait, ""), CheckAll, {128, 1, 1});
    EXPECT_TRUE(contains(e, "LDS race")) << e;
    // A wave that waits behind the barrier does so too late for the others.
    e = runAssembly(chip, delivery(barrier, wait), CheckAll, {128, 1, 1});
    EXPECT_TRUE(contains(e, "covers the direct-to-LDS load that fills it"))
        << e;
  }
}

TEST(ChecksMore, DirectToLdsLoadsMayStayInFlight) {
  // A second load, to the 512 bytes behind, is not waited for.
  std::string later = "s_add_u32 m0, s4, 512\n s_nop 0\n "
                      "global_load_lds_dword v1, s[2:3]\n ";
  for (const char *chip : {"gfx942", "gfx950"}) {
    auto run = [&](const char *wait) {
      return runAssembly(chip, delivery((later + wait).c_str(), "s_barrier\n"),
                         CheckAll, {128, 1, 1});
    };
    EXPECT_EQ(run("s_waitcnt vmcnt(1)\n "), "");
    EXPECT_TRUE(contains(run("s_waitcnt vmcnt(2)\n "),
                         "covers the direct-to-LDS load that fills it"));
  }
}

//===- definedness --------------------------------------------------------===//

/// v1 is defined in lanes 0 to 31; then `body`, then s4, or v2 as an address.
std::string half(const std::string &body, bool scalar = false) {
  return "s_load_dwordx2 s[2:3], s[0:1], 0x0\n"
         "v_lshlrev_b32 v0, 2, v0\n"
         "s_mov_b32 exec_hi, 0\n"
         "v_mov_b32 v1, 4\n"
         "s_mov_b64 exec, -1\ns_nop 7\n" +
         body +
         (scalar ? "s_waitcnt lgkmcnt(0)\ns_load_dword s5, s[2:3], s4"
                 : "s_waitcnt lgkmcnt(0)\ns_nop 7\n"
                   "global_load_dword v3, v2, s[2:3]");
}

struct Taint {
  const char *name, *body;
  bool scalar;
  const char *report; ///< null: clean
};
const Taint taints[] = {
    {"copy", "v_mov_b32 v2, v1\n", false, "lane 32"},
    {"mergedByExec",
     "s_mov_b32 exec_lo, 0\nv_mov_b32 v1, 8\n"
     "s_mov_b64 exec, -1\nv_mov_b32 v2, v1\n",
     false, nullptr},
    {"readlane", "v_readlane_b32 s4, v1, 31\n", true, nullptr},
    {"readlaneUndefined", "v_readlane_b32 s4, v1, 32\n", true,
     "uninitialised s4"},
    {"readfirstlane", "v_readfirstlane_b32 s4, v1\n", true, nullptr},
    {"readfirstlaneUndefined",
     "s_mov_b32 exec_lo, 0\nv_readfirstlane_b32 s4, v1\n", true,
     "uninitialised s4"},
    {"writelane", "v_writelane_b32 v9, 4, 3\nv_readlane_b32 s4, v9, 3\n", true,
     nullptr},
    {"writelaneOther", "v_writelane_b32 v9, 4, 3\nv_readlane_b32 s4, v9, 4\n",
     true, "uninitialised s4"},
    {"writelaneUndefined",
     "v_readlane_b32 s6, v1, 40\nv_mov_b32 v2, v0\nv_writelane_b32 v2, s6, 7\n",
     false, "lane 7"},
    {"dppShift",
     "v_mov_b32_dpp v2, v1 wave_shr:1 row_mask:0xf bank_mask:0xf "
     "bound_ctrl:0\n",
     false, "lane 33"},
    {"dppMasked",
     "v_mov_b32 v2, v0\ns_nop 4\n"
     "v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0x3 bank_mask:0xf\n",
     false, nullptr},
    {"dppBroadcast",
     "v_mov_b32 v2, v1\ns_nop 4\n"
     "v_mov_b32_dpp v2, v1 row_bcast:31 row_mask:0xc bank_mask:0xf\n",
     false, nullptr},
    {"dppOtherSource",
     "v_add_u32_dpp v2, v0, v1 quad_perm:[1,0,3,2] row_mask:0xf "
     "bank_mask:0xf\n",
     false, "lane 32"},
    {"bpermute", "v_and_b32 v4, 0x7f, v0\nds_bpermute_b32 v2, v4, v1\n", false,
     nullptr},
    {"bpermuteUndefined", "ds_bpermute_b32 v2, v0, v1\n", false, "lane 32"},
    {"permute", "v_xor_b32 v4, 0x80, v0\nds_permute_b32 v2, v4, v1\n", false,
     "lane 0"},
    {"swizzle", "ds_swizzle_b32 v2, v1 offset:swizzle(SWAP,16)\n", false,
     "lane 32"},
    {"swap", "v_mov_b32 v2, v0\nv_swap_b32 v2, v1\n", false, "lane 32"},
    {"swapOther", "v_mov_b32 v2, v0\nv_swap_b32 v1, v2\nv_mov_b32 v2, v1\n",
     false, nullptr},
};

TEST(ChecksMore, DefinednessMovesAcrossLanes) {
  std::vector<AssemblyKernel> kernels;
  for (const Taint &t : taints)
    kernels.push_back({t.name, half(t.body, t.scalar)});
  auto reports = runAssembly("gfx942", kernels, CheckUninit, {64, 1, 1});
  for (size_t k = 0; k < reports.size(); ++k)
    if (taints[k].report)
      EXPECT_TRUE(contains(reports[k], "uninitialised") &&
                  contains(reports[k], taints[k].report))
          << taints[k].name << ": " << reports[k];
    else
      EXPECT_EQ(reports[k], "") << taints[k].name;
}

TEST(ChecksMore, DefinednessThroughPermlane) {
  // wave32: v1 is defined in lanes 0 to 15.
  auto with = [](const char *body) {
    return runAssembly("gfx1100",
                       "s_load_b64 s[2:3], s[0:1], 0x0\n"
                       "s_mov_b32 exec_lo, 0xffff\nv_mov_b32 v1, 4\n"
                       "s_mov_b32 exec_lo, -1\ns_mov_b32 s6, 0x76543210\n"
                       "s_mov_b32 s7, 0xfedcba98\n" +
                           std::string(body) +
                           "\ns_waitcnt lgkmcnt(0)\n"
                           "global_load_b32 v3, v2, s[2:3]",
                       CheckUninit, {32, 1, 1});
  };
  EXPECT_TRUE(contains(with("v_permlanex16_b32 v2, v1, s6, s7"), "lane 0,") ||
              contains(with("v_permlanex16_b32 v2, v1, s6, s7"), "lane 0"));
  EXPECT_TRUE(contains(with("v_permlane16_b32 v2, v1, s6, s7"), "lane 16"));
  EXPECT_EQ(with("v_permlanex16_b32 v2, v1, s6, s7\n"
                 "v_cndmask_b32 v2, v1, v2, vcc_lo\n"
                 "s_mov_b32 exec_lo, 0xffff\nv_mov_b32 v2, 0"),
            "");
}

//===- alignment ----------------------------------------------------------===//

TEST(ChecksMore, MisalignedScalarLoads) {
  const char *load = "s_load_dword s4, s[0:1], 0x%";
  for (const char *offset : {"2", "4"}) {
    std::string text = load;
    text.replace(text.find('%'), 1, offset);
    std::string e = runAssembly("gfx942", text);
    if (*offset == '2')
      EXPECT_TRUE(contains(e, "misaligned scalar load at 0x")) << e;
    else
      EXPECT_EQ(e, "");
  }
  EXPECT_TRUE(contains(runAssembly("gfx1201", "s_load_u16 s4, s[0:1], 0x3",
                                   CheckAll, {32, 1, 1}),
                       "misaligned scalar load"));
  EXPECT_EQ(runAssembly("gfx1201", "s_load_u16 s4, s[0:1], 0x2", CheckAll,
                        {32, 1, 1}),
            "");
}

TEST(ChecksMore, MisalignedDirectToLds) {
  for (const char *base : {"4", "6"}) {
    std::string e = runAssembly(
        "gfx942", "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\n"
                  "s_mov_b32 m0, " +
                      std::string(base) +
                      "\ns_waitcnt lgkmcnt(0)\n"
                      "global_load_lds_dword v1, s[2:3]\ns_waitcnt vmcnt(0)");
    if (*base == '6')
      EXPECT_TRUE(contains(e, "misaligned address 6")) << e;
    else
      EXPECT_EQ(e, "");
  }
}

// Legal in the unaligned mode the drivers set; `align` tells.
TEST(ChecksMore, UnalignedVectorAccesses) {
  struct Case {
    const char *text;
    unsigned natural;
  };
  for (const Case &c :
       {Case{"ds_read_b64 v[2:3], v1", 8}, Case{"ds_write_b64 v1, v[4:5]", 8},
        Case{"ds_read_b128 v[8:11], v1", 16},
        Case{"ds_read_b96 v[8:10], v1", 16},
        Case{"ds_read2_b32 v[2:3], v1 offset1:1", 4},
        Case{"global_load_dwordx4 v[8:11], v1, s[2:3]", 4},
        Case{"global_load_ushort v8, v1, s[2:3]", 2}}) {
    for (unsigned address : {c.natural, c.natural / 2}) {
      std::string text = "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, " +
                         std::to_string(address) +
                         "\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\n"
                         "s_waitcnt lgkmcnt(0)\n" +
                         c.text;
      EXPECT_EQ(runAssembly("gfx942", text, CheckAll), "") << c.text;
      std::string e = runAssembly("gfx942", text, CheckAlign);
      if (address == c.natural)
        EXPECT_EQ(e, "") << c.text;
      else
        EXPECT_TRUE(contains(e, "only the unaligned access mode allows it") &&
                    contains(e, "lane 0"))
            << c.text << ": " << e;
    }
  }
}

// A store with sc0 has a wider scope and returns nothing; a returning atomic's
// data register is not there before its wait.
TEST(ChecksMore, StoresWithScopeReturnNothing) {
  const std::string start =
      "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_mov_b32 s6, 1024\n"
      "s_mov_b32 s7, 0\nv_mov_b32 v1, 0\ns_waitcnt lgkmcnt(0)\n"
      "v_lshlrev_b32 v2, 2, v0\n";
  const char *use = "v_mov_b32 v3, v1";
  EXPECT_EQ(runAssembly("gfx942",
                        start +
                            "buffer_store_dword v1, v2, s[4:7], 0 offen sc0\n" +
                            use),
            "");
  std::string e = runAssembly(
      "gfx942",
      start + "buffer_atomic_add v1, v2, s[4:7], 0 offen sc0\n" + use);
  EXPECT_TRUE(contains(e, "v1 is read before an s_waitcnt")) << e;
}

// Scalar stores read their data; scalar atomics that return are waited for.
TEST(ChecksMore, ScalarAtomicsAreChecked) {
  const std::string start =
      "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n";
  auto run = [&](const char *text) {
    return runAssembly("gfx942", start + text);
  };
  EXPECT_TRUE(contains(run("s_store_dword s8, s[4:5], 0x0"),
                       "uninitialised s8 is stored"));
  EXPECT_TRUE(contains(run("s_mov_b32 s8, 1\ns_store_dword s8, s[4:5], 0x400"),
                       "write of 4 bytes"));
  EXPECT_TRUE(contains(run("s_mov_b32 s8, 1\ns_atomic_add s8, s[4:5], 0x2"),
                       "misaligned"));
  EXPECT_TRUE(contains(run("s_mov_b32 s8, 1\ns_atomic_add s8, s[4:5], 0x0 glc\n"
                           "s_add_u32 s9, s8, 1"),
                       "s8 is read before an s_waitcnt"));
  EXPECT_EQ(run("s_mov_b32 s8, 1\ns_atomic_add s8, s[4:5], 0x0 glc\n"
                "s_waitcnt lgkmcnt(0)\ns_add_u32 s9, s8, 1"),
            "");
}

// Vector instructions are left out while VSKIP is set, scalar ones are not.
TEST(ChecksMore, VectorSkip) {
  const std::string start = "v_mov_b32 v1, 1\ns_mov_b32 s4, 4\n"
                            "s_mov_b32 s5, 1\n",
                    vector = "v_mov_b32 v1, 2\nds_write_b32 v30, v31\n"
                             "s_add_u32 s5, s5, 1\n",
                    check = "s_setvskip s4, 0\nv_readfirstlane_b32 s6, v1\n"
                            "s_lshl_b32 s6, s6, 4\ns_or_b32 s6, s6, s5\n"
                            "s_cmp_eq_u32 s6, 0x12\ns_cbranch_scc1 end\n"
                            "s_trap 2\nend:";
  EXPECT_EQ(
      runAssembly("gfx942", start + "s_setvskip s4, 2\n" + vector + check), "");
  EXPECT_TRUE(contains(
      runAssembly("gfx942", start + "s_setvskip s4, 1\n" + vector + check),
      "uninitialised v30"));
}

} // namespace
