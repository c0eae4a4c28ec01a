//===- ChecksTest.cpp - planted bugs are caught, correct kernels pass -----===//
#include "Assembly.h"

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

#define FENCE "__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, \"workgroup\");"
#define BARRIER FENCE " __builtin_amdgcn_s_barrier(); " FENCE

/// Reverses 256 floats through LDS.
std::string reverse(const char *barrier) {
  return std::string(R"(
kernel void reverse(global float *o, global const float *x, int n) {
  local float t[256];
  uint i = __builtin_amdgcn_workitem_id_x();
  t[i] = x[i];
  )") + barrier +
         R"(
  o[i] = t[255 - i];
})";
}

class Checks : public testing::TestWithParam<const char *> {
protected:
  std::string runReverse(const std::string &source, unsigned checks = CheckAll,
                         int size = 256) {
    Bench b(GetParam(), source);
    std::vector<float> x(256);
    for (int k = 0; k < 256; ++k)
      x[k] = float(k);
    float *in = b.buffer<float>(size, x.data()), *out = b.buffer<float>(256);
    std::string e =
        b.arg(out).arg(in).arg(256).launch({1, 1, 1}, {256, 1, 1}, checks);
    if (e.empty() && size == 256)
      for (int k = 0; k < 256; ++k)
        EXPECT_EQ(out[k], float(255 - k));
    return e;
  }
};
TEST_P(Checks, CorrectKernelPasses) {
  EXPECT_EQ(runReverse(reverse(BARRIER)), "");
}

TEST_P(Checks, MissingBarrierIsARace) {
  std::string e = runReverse(reverse(FENCE), CheckRaces);
  EXPECT_TRUE(contains(e, "LDS race")) << e;
  EXPECT_TRUE(contains(e, "kernel 'reverse'") && contains(e, "lane ") &&
              contains(e, "address 0x"))
      << e;
}

TEST_P(Checks, OutOfBoundsRow) {
  std::string e = runReverse(reverse(BARRIER), CheckNone, 192);
  EXPECT_TRUE(contains(e, "out of bounds")) << e;
  EXPECT_TRUE(contains(e, "768 bytes")) << e;
  EXPECT_TRUE(
      contains(e, isWave64(GetParam()) ? "wave 3, lane 0" : "wave 6, lane 0"))
      << e;
}

TEST_P(Checks, UninitialisedLdsReachesMemory) {
  Bench b(GetParam(), R"(
kernel void k(global float *o) {
  local float t[32];
  uint i = __builtin_amdgcn_workitem_id_x();
  if (i < 20) t[i] = 1;
  )" BARRIER R"(
  o[i] = t[i] + 1;
})");
  float *o = b.buffer<float>(32);
  std::string e = b.arg(o).launch({1, 1, 1}, {32, 1, 1}, CheckUninit);
  EXPECT_TRUE(contains(e, "uninitialised") && contains(e, "never written"))
      << e;
  EXPECT_TRUE(contains(e, "LDS address 80") && contains(e, "lane 20")) << e;
}

TEST_P(Checks, UnusedGarbageIsNoError) {
  Bench b(GetParam(), R"(
kernel void k(global float *o) {
  local float t[256];
  uint i = __builtin_amdgcn_workitem_id_x();
  if (i < 100) t[i] = 1;
  )" BARRIER R"(
  float x = t[i];
  o[i] = i < 100 ? x : 0;
})");
  float *o = b.buffer<float>(256);
  EXPECT_EQ(b.arg(o).launch({1, 1, 1}, {256, 1, 1}), "");
  EXPECT_EQ(o[99], 1.f);
  EXPECT_EQ(o[100], 0.f);
}

TEST_P(Checks, GlobalRaceBetweenWaves) {
  Bench b(GetParam(), R"(
kernel void k(global int *o) {
  uint i = __builtin_amdgcn_workitem_id_x();
  o[i] = i;
  o[256 + i] = o[255 - i];
})");
  int *o = b.buffer<int>(512);
  std::string e = b.arg(o).launch({1, 1, 1}, {256, 1, 1}, CheckRaces);
  EXPECT_TRUE(contains(e, "global memory race")) << e;
}

// The scopes are __HIP_MEMORY_SCOPE_WORKGROUP and _AGENT.
TEST_P(Checks, AtomicsDoNotRace) {
  Bench b(GetParam(), R"(
kernel void k(global int *o) {
  local int sum;
  uint i = __builtin_amdgcn_workitem_id_x();
  if (i == 0) sum = 0;
  )" BARRIER R"(
  __hip_atomic_fetch_add(&sum, (int)i, __ATOMIC_RELAXED, 3);
  __hip_atomic_fetch_add(o, 1, __ATOMIC_RELAXED, 4);
  )" BARRIER R"(
  if (i == 255) o[1] = sum;
})");
  int *o = b.buffer<int>(2);
  EXPECT_EQ(b.arg(o).launch({1, 1, 1}, {256, 1, 1}), "");
  EXPECT_EQ(o[0], 256);
  EXPECT_EQ(o[1], 255 * 128);
}

TEST_P(Checks, EndlessLoopEnds) {
  Bench b(GetParam(), R"(
kernel void k(volatile global int *o) { while (o[0] == 0) ; })");
  b.config.instructionBudget = 1000000;
  int *o = b.buffer<int>(1);
  std::string e = b.arg(o).launch({1, 1, 1}, {64, 1, 1});
  EXPECT_TRUE(contains(e, "instruction budget")) << e;
}

TEST_P(Checks, WorkgroupTooLargeIsRefused) {
  EXPECT_TRUE(contains(
      Bench(GetParam(), reverse(BARRIER)).launch({1, 1, 1}, {2048, 1, 1}),
      "workgroup of 2048"));
}

INSTANTIATE_TEST_SUITE_P(Chips, Checks,
                         testing::Values("gfx90a", "gfx942", "gfx950",
                                         "gfx1030", "gfx1100", "gfx1201"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

// Assembly, for what a compiler does not get wrong.
TEST(ChecksAssembly, MissingWaitAfterScalarLoad) {
  std::string e = runAssembly(
      "gfx942", "s_load_dwordx2 s[2:3], s[0:1], 0x0\n v_mov_b32 v1, s2");
  EXPECT_TRUE(contains(
      e, "s2 is read before an s_waitcnt covers its scalar memory load"))
      << e;
}

// gfx12 counts an invalidation of the caches with the loads.
TEST(ChecksAssembly, WaitsBehindAnInvalidation) {
  auto run = [](const std::string &count, const std::string &use) {
    return runAssembly("gfx1201", " s_load_b64 s[2:3], s[0:1], 0x0\n"
                                  " v_lshlrev_b32 v0, 2, v0\n"
                                  " s_wait_kmcnt 0x0\n"
                                  " global_load_b32 v1, v0, s[2:3]\n"
                                  " global_load_b32 v2, v0, s[2:3] offset:256\n"
                                  " global_inv scope:SCOPE_SE\n"
                                  " s_wait_loadcnt " +
                                      count + "\n v_mov_b32 v3, " + use);
  };
  EXPECT_EQ(run("0x2", "v1"), "");
  EXPECT_EQ(run("0x1", "v2"), "");
  EXPECT_TRUE(contains(run("0x2", "v2"), "v2 is read before an s_waitcnt"));
}

TEST(ChecksAssembly, MissingWaitAfterGlobalLoad) {
  const char *body = R"(
 s_load_dwordx2 s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v0, 2, v0
 s_waitcnt lgkmcnt(0)
 global_load_dword v1, v0, s[2:3]
 global_load_dword v2, v0, s[2:3] offset:256
 s_waitcnt vmcnt(%)
 v_add_u32 v3, v2, v1
 global_store_dword v0, v3, s[2:3])";
  for (const char *count : {"0", "1"}) {
    std::string text = body;
    text.replace(text.find('%'), 1, count);
    std::string e = runAssembly("gfx942", text);
    if (*count == '0')
      EXPECT_EQ(e, "");
    else
      EXPECT_TRUE(contains(
          e, "v2 is read before an s_waitcnt covers its vector memory load"))
          << e;
  }
}

TEST(ChecksAssembly, MissingWaitOnGfx12) {
  std::string e = runAssembly("gfx1201", R"(
 s_load_b64 s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v0, 2, v0
 s_wait_kmcnt 0x0
 global_load_b32 v1, v0, s[2:3]
 s_wait_dscnt 0x0
 v_add_nc_u32 v3, v1, v1)",
                              CheckAll, {32, 1, 1});
  EXPECT_TRUE(contains(
      e, "v1 is read before an s_waitcnt covers its vector memory load"))
      << e;
}

TEST(ChecksAssembly, UninitialisedAddress) {
  std::string e = runAssembly("gfx90a", R"(
 s_load_dwordx2 s[2:3], s[0:1], 0x0
 s_waitcnt lgkmcnt(0)
 global_load_dword v1, v7, s[2:3])");
  EXPECT_TRUE(contains(e, "uninitialised v7 is used as an address")) << e;
}

// Like all data, the second of a store to two addresses may be undefined.
TEST(ChecksAssembly, UninitialisedDataForLds) {
  for (const auto &[chip, name] :
       {std::pair("gfx942", "ds_write2_b32"),
        std::pair("gfx1100", "ds_store_2addr_b32")}) {
    std::string store = "v_lshlrev_b32 v1, 2, v0\n" + std::string(name);
    EXPECT_EQ(runAssembly(chip, store + " v1, v7, v8 offset1:64"), "");
    std::string e = runAssembly(chip, store + " v9, v7, v8 offset1:64");
    EXPECT_TRUE(contains(e, "uninitialised v9 is used as an address")) << e;
  }
}

TEST(ChecksAssembly, MatrixResultReadTooSoon) {
  const char *body = R"(
 v_mov_b32 v2, 1.0
 v_mov_b32 v3, 1.0
 s_nop 1
 v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[2:3], 0
 s_nop %
 v_add_f32 v8, v4, v5)";
  // 4 passes + 3 wait states.
  for (const char *nops : {"6", "5"}) {
    std::string text = body;
    text.replace(text.find('%'), 1, nops);
    std::string e = runAssembly("gfx942", text);
    if (*nops == '6')
      EXPECT_EQ(e, "");
    else
      EXPECT_TRUE(contains(e, "v4 is read before the matrix instruction")) << e;
  }
}

TEST(ChecksAssembly, ValuResultReadByMatrixTooSoon) {
  std::string e = runAssembly("gfx942", R"(
 v_mov_b32 v2, 1.0
 v_mov_b32 v3, 1.0
 v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[2:3], 0)");
  EXPECT_TRUE(contains(e, "right after a VALU wrote it")) << e;
}

TEST(ChecksAssembly, MisalignedAtomic) {
  std::string e = runAssembly(
      "gfx942", "v_mov_b32 v1, 2\n v_mov_b32 v2, 0\n ds_add_u32 v1, v2");
  EXPECT_TRUE(contains(e, "misaligned LDS atomic at address 2")) << e;
}

TEST(ChecksAssembly, LdsOutOfBounds) {
  std::string e = runAssembly(
      "gfx942", "v_mov_b32 v1, 0x400\n v_mov_b32 v2, 0\n ds_write_b32 v1, v2");
  EXPECT_TRUE(contains(e, "outside the workgroup's 1024 bytes")) << e;
}

TEST(ChecksAssembly, WildBranch) {
  std::string e =
      runAssembly("gfx942", "s_mov_b64 s[2:3], 0x1234\n s_setpc_b64 s[2:3]");
  EXPECT_TRUE(contains(e, "branch out of the code object")) << e;
}

TEST(ChecksAssembly, UnknownInstructionIsNamed) {
  std::string e = runAssembly("gfx942", "s_dcache_discard s[0:1], 0x0");
  EXPECT_TRUE(contains(e, "does not know this instruction") &&
              contains(e, "s_dcache_discard"))
      << e;
}

// Text that LLVM prints behind the operands is never dropped.
TEST(ChecksAssembly, UnknownModifierIsNamed) {
  auto run = [](const std::string &text) {
    return runAssembly("gfx1100", text, CheckAll, {32, 1, 1});
  };
  const char *const lines[][2] = {
      {"ds_add_u32 v1, v2 gds", "the modifier 'gds' of this instruction"},
      {"buffer_load_b32 v[2:3], off, s[4:7], 0 tfe", "the modifier 'tfe'"}};
  for (auto [line, what] : lines) {
    std::string e = run(line);
    EXPECT_TRUE(contains(e, "the simulator does not know ") &&
                contains(e, what) && contains(e, line))
        << e;
    // If it is not reached it does no harm: data may look like it.
    EXPECT_EQ(run(std::string("s_branch end\n") + line + "\nend:"), "");
  }
}

} // namespace
