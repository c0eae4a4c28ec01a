//===- IsaControlTest.cpp - branches, barriers, hardware registers --------===//
//
// These instructions change the wave itself: its program counter, state, MODE,
// status, scalar registers by index; and those that change nothing at all.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace greta::sim;
using namespace greta::sim::test;
using llvm::StringRef;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

class Control : public testing::TestWithParam<const char *> {
protected:
  bool gfx9 = GetParam()[3] == '9', gfx12 = GetParam()[4] == '2';
  /// Returns the lines that this chip has.
  std::vector<std::string> here(const std::vector<std::string> &lines) {
    return assembling(GetParam(), !gfx9, lines);
  }
};

/// Runs line k as the instruction loop does: the program counter is ahead.
u32 next(Bench &b, unsigned k) {
  b.wave.pc = k + 1;
  b.run(k);
  return b.wave.pc;
}

TEST_P(Control, Branches) {
  for (bool wave32 : {false, true}) {
    if (wave32 && gfx9)
      continue;
    Bench b(GetParam(), wave32,
            {"s_branch 2", "s_cbranch_scc0 2", "s_cbranch_scc1 2",
             "s_cbranch_vccz 2", "s_cbranch_vccnz 2", "s_cbranch_execz 2",
             "s_cbranch_execnz 0xfffc", "s_nop 0", "s_nop 0"});
    EXPECT_EQ(next(b, 0), 3u);
    for (bool scc : {false, true}) {
      b.wave.s[slot::Scc] = scc;
      EXPECT_EQ(next(b, 1), scc ? 2u : 4u);
      EXPECT_EQ(next(b, 2), scc ? 5u : 3u);
    }
    // A wave of 32 lanes does not look at the upper word.
    for (u64 mask : {u64(0), u64(1) << 40, u64(16)}) {
      bool any = wave32 ? u32(mask) : mask;
      b.wave.s[slot::VCC] = u32(mask);
      b.wave.s[slot::VCC + 1] = u32(mask >> 32);
      b.wave.setExec(mask);
      EXPECT_EQ(next(b, 3), any ? 4u : 6u) << mask;
      EXPECT_EQ(next(b, 4), any ? 7u : 5u) << mask;
      EXPECT_EQ(next(b, 5), any ? 6u : 8u) << mask;
      EXPECT_EQ(next(b, 6), any ? 3u : 7u) << mask;
    }
  }
}

TEST_P(Control, Calls) {
  constexpr u64 Base = 0x123456789000;
  Bench b(GetParam(), !gfx9,
          {"s_getpc_b64 s[8:9]", "s_setpc_b64 s[10:11]",
           "s_swappc_b64 s[12:13], s[10:11]", "s_call_b64 s[14:15], 1",
           "s_nop 0", "s_nop 0"});
  b.group.programBase = Base;
  auto pair = [&](unsigned r) {
    return u64(b.wave.s[r + 1]) << 32 | b.wave.s[r];
  };
  EXPECT_EQ(next(b, 0), 1u);
  EXPECT_EQ(pair(8), Base + 4);
  b.wave.s[10] = u32(Base + 16);
  b.wave.s[11] = u32(Base >> 32);
  EXPECT_EQ(next(b, 1), 4u);
  EXPECT_EQ(next(b, 2), 4u);
  EXPECT_EQ(pair(12), Base + 12);
  EXPECT_EQ(next(b, 3), 5u);
  EXPECT_EQ(pair(14), Base + 16);
  b.wave.s[10] += 2; // into an instruction
  EXPECT_NE(b.fault(1).find("branch out of the code object"),
            std::string::npos);
}

TEST_P(Control, EndsAndSleeps) {
  std::vector<std::string> lines =
      here({"s_endpgm", "s_endpgm_saved", "s_code_end", "s_sleep 1",
            "s_sleep_var s4"});
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    b.wave.state = RunState::Running;
    b.run(k);
    bool sleeps = StringRef(lines[k]).starts_with("s_sleep");
    EXPECT_EQ(b.wave.state, sleeps ? RunState::Yield : RunState::Done)
        << lines[k];
  }
  Bench trap(GetParam(), !gfx9, {"s_trap 2", "s_trap 3"});
  EXPECT_NE(trap.fault(0).find("s_trap 2 (the kernel aborted)"),
            std::string::npos);
  EXPECT_NE(trap.fault(1).find("s_trap 3;"), std::string::npos);
}

/// A workgroup of two waves, both played by the bench's.
TEST_P(Control, Barriers) {
  Bench b(GetParam(), !gfx9,
          gfx12 ? std::vector<std::string>{"s_barrier_signal -1",
                                           "s_barrier_wait -1",
                                           "s_barrier_signal_isfirst -1",
                                           "s_get_barrier_state s8, -1"}
                : std::vector<std::string>{"s_barrier"});
  b.group.waves.resize(2);
  for (Wave &w : b.group.waves)
    w.state = RunState::Running;
  for (unsigned round = 0; round < 2; ++round) {
    if (!gfx12) {
      b.run(0);
      EXPECT_EQ(b.wave.state, RunState::Barrier);
      b.wave.state = RunState::Running;
      b.run(0);
      EXPECT_EQ(b.wave.state, RunState::Running);
      EXPECT_EQ(b.group.generation, round + 1);
      continue;
    }
    b.run(round ? 2 : 0);
    if (round)
      EXPECT_TRUE(b.wave.scc());
    b.run(3);
    EXPECT_EQ(b.wave.s[8], 1u << 16 | 2u << 4 | 1);
    b.run(1);
    EXPECT_EQ(b.wave.state, RunState::Barrier);
    b.wave.state = RunState::Running;
    b.run(2);
    EXPECT_FALSE(b.wave.scc());
    b.run(1);
    EXPECT_EQ(b.wave.state, RunState::Running);
    EXPECT_EQ(b.group.generation, round + 1);
  }
}

TEST_P(Control, Mode) {
  std::vector<std::string> lines = {
      "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s4",
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 6",
      "s_getreg_b32 s8, hwreg(HW_REG_MODE)",
      "s_getreg_b32 s9, hwreg(HW_REG_MODE, 6, 3)"};
  if (!gfx9) {
    lines.push_back("s_round_mode 9");
    lines.push_back("s_denorm_mode 6");
  }
  if (gfx12)
    for (std::string &line : lines)
      if (size_t at = line.find("HW_REG_MODE"); at != std::string::npos)
        line.replace(at, 11, "HW_REG_WAVE_MODE");
  Bench b(GetParam(), !gfx9, lines);
  b.wave.mode = 0x1f5;
  b.wave.s[4] = 0xabcdef3a; // four bits of it: 10
  b.run(0);
  EXPECT_EQ(b.wave.mode, 0x1a5u);
  b.run(1); // two bits of 6
  EXPECT_EQ(b.wave.mode, 0x1a6u);
  b.run(2);
  EXPECT_EQ(b.wave.s[8], 0x1a6u);
  b.run(3);
  EXPECT_EQ(b.wave.s[9], 0x1a6u >> 6 & 7);
  if (gfx9)
    return;
  b.run(4);
  EXPECT_EQ(b.wave.mode, 0x1a9u);
  b.run(5);
  EXPECT_EQ(b.wave.mode, 0x169u);
}

/// EXECZ, VCCZ and SCC; gfx12 keeps SCC in a register of its own, which
/// kernels may only read.
TEST_P(Control, Status) {
  std::string status = gfx12 ? "HW_REG_WAVE_STATUS" : "HW_REG_STATUS",
              scc = gfx12 ? "HW_REG_WAVE_STATE_PRIV, 9" : "HW_REG_STATUS, 0";
  std::vector<std::string> lines = {
      "s_getreg_b32 s8, hwreg(" + status + ", 9, 2)",
      "s_getreg_b32 s8, hwreg(" + scc + ", 1)",
      "s_getreg_b32 s8, hwreg(" + status + ")",
      "s_getreg_b32 s8, hwreg(" + status + ", 0, 1)"};
  if (gfx12)
    lines.push_back(
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_STATE_PRIV, 9, 1), 1");
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned bits = 0; bits < 8; ++bits) {
    b.wave.setExec(bits & 1 ? 0 : 4);
    b.wave.s[slot::VCC] = bits & 2 ? 0 : 1;
    b.wave.s[slot::VCC + 1] = 0;
    b.wave.setScc(bits & 4);
    b.run(0);
    EXPECT_EQ(b.wave.s[8], bits & 3);
    b.run(1);
    EXPECT_EQ(b.wave.s[8], bits >> 2);
  }
  EXPECT_NE(b.fault(2).find("does not have these bits"), std::string::npos);
  EXPECT_EQ(b.fault(3).empty(), !gfx12);
  if (gfx12)
    EXPECT_NE(b.fault(4).find("only trap handlers"), std::string::npos);
}

/// Clocks only go forward.
TEST_P(Control, Clocks) {
  std::vector<std::string> lines =
      here({"s_memtime s[8:9]", "s_memrealtime s[8:9]",
            "s_sendmsg_rtn_b64 s[8:9], sendmsg(MSG_RTN_GET_REALTIME)",
            "s_sendmsg_rtn_b32 s8, sendmsg(MSG_RTN_GET_DOORBELL)"});
  ASSERT_GE(lines.size(), 2u);
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    u64 before = 0;
    for (unsigned round = 0; round < 3; ++round) {
      b.wave.s[8] = 0;
      b.wave.s[9] = 0xffffffff;
      b.run(k);
      bool isWide = !StringRef(lines[k]).contains("_b32");
      EXPECT_EQ(b.wave.s[9], isWide ? 0 : 0xffffffff) << lines[k];
      EXPECT_GT(b.wave.s[8], before) << lines[k];
      before = b.wave.s[8];
    }
  }
}

/// Scalar registers counted from the one named by M0.
TEST_P(Control, RelativeRegisters) {
  std::vector<std::string> lines = {
      "s_movrels_b32 s8, s20", "s_movrels_b64 s[8:9], s[20:21]",
      "s_movreld_b32 s30, s20", "s_movreld_b64 s[30:31], s[20:21]"};
  if (!gfx9)
    lines.push_back("s_movrelsd_2_b32 s30, s20");
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    for (unsigned r = 0; r < 100; ++r)
      b.wave.s[r] = 1000 + r;
    std::vector<u32> want(b.wave.s, b.wave.s + 100);
    b.wave.s[slot::M0] = k == 4 ? 6u << 16 | 10 : 6;
    b.run(k);
    switch (k) {
    case 1:
      want[9] = 1027;
      [[fallthrough]];
    case 0:
      want[8] = 1026;
      break;
    case 3:
      want[37] = 1021;
      [[fallthrough]];
    case 2:
      want[36] = 1020;
      break;
    case 4:
      want[36] = 1030;
    }
    EXPECT_EQ(std::vector<u32>(b.wave.s, b.wave.s + 100), want) << lines[k];
  }
  b.wave.s[slot::M0] = 90;
  EXPECT_NE(b.fault(0).find("M0 points outside"), std::string::npos);
}

/// Waits, hints and cache control: the checks and the issue model look at them,
/// registers stay as they are.
TEST_P(Control, NothingChanges) {
  std::vector<std::string> lines =
      here({"s_nop 3",
            "s_setprio 2",
            "s_sethalt 0",
            "s_inst_prefetch 1",
            "s_set_inst_prefetch_distance 1",
            "s_clause 1",
            "s_icache_inv",
            "s_gl1_inv",
            "s_dcache_inv_vol",
            "s_dcache_wb_vol",
            "s_incperflevel 1",
            "s_decperflevel 1",
            "s_dcache_wb",
            "s_dcache_inv",
            "s_wakeup",
            "s_ttracedata",
            "s_ttracedata_imm 1",
            "s_delay_alu instid0(VALU_DEP_1)",
            "s_wait_alu 0xfffe",
            "s_waitcnt_depctr 0xffe3",
            "s_sendmsg sendmsg(MSG_INTERRUPT)",
            "s_sendmsghalt sendmsg(MSG_INTERRUPT)",
            "s_version 1",
            "s_waitcnt vmcnt(1)",
            "s_waitcnt_vscnt null, 1",
            "s_waitcnt_vmcnt null, 1",
            "s_waitcnt_lgkmcnt null, 1",
            "s_waitcnt_expcnt null, 1",
            "s_wait_idle",
            "s_wait_event 1",
            "s_wait_loadcnt 1",
            "s_wait_storecnt 1",
            "s_wait_samplecnt 1",
            "s_wait_bvhcnt 1",
            "s_wait_dscnt 1",
            "s_wait_kmcnt 1",
            "s_wait_expcnt 1",
            "s_wait_loadcnt_dscnt 0x101",
            "s_wait_storecnt_dscnt 0x101",
            "v_nop",
            "v_pipeflush",
            "v_clrexcp",
            "buffer_wbl2",
            "buffer_inv sc1",
            "buffer_invl2",
            "buffer_wbinvl1",
            "buffer_wbinvl1_vol",
            "buffer_gl0_inv",
            "buffer_gl1_inv",
            "global_inv",
            "global_wb",
            "global_wbinv",
            "ds_nop",
            "s_prefetch_inst s[4:5], 0, s6, 3",
            "s_prefetch_inst_pc_rel 0, s6, 3",
            "s_prefetch_data s[4:5], 0, s6, 3",
            "s_prefetch_data_pc_rel 0, s6, 3",
            "s_buffer_prefetch_data s[4:7], 0, s8, 3"});
  ASSERT_GT(lines.size(), 15u);
  Bench b(GetParam(), !gfx9, lines);
  b.fill(1);
  for (unsigned r = 0; r < 100; ++r)
    b.wave.s[r] = 7919 * r;
  std::vector<u32> scalars(std::begin(b.wave.s), std::end(b.wave.s)),
      vectors = b.registers;
  for (unsigned k = 0; k < lines.size(); ++k) {
    EXPECT_EQ(next(b, k), k + 1) << lines[k];
    EXPECT_EQ(b.wave.state, RunState::Running) << lines[k];
    EXPECT_EQ(b.wave.mode, 0x1f0u) << lines[k];
    EXPECT_EQ(b.wave.exec, b.wave.fullMask) << lines[k];
    EXPECT_TRUE(std::equal(scalars.begin(), scalars.end(), b.wave.s))
        << lines[k];
    EXPECT_EQ(b.registers, vectors) << lines[k];
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Control, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
