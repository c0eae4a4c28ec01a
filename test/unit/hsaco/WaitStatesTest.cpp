//===- WaitStatesTest.cpp - waits behind an MFMA across branches ----------===//
//
// Machine code of LLVM's through its hazard recognizer, then through ours.
// Counted are the wait states that each puts in front of a block's first
// instruction.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/WaitStates.h"
#include "MachineCode.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace {
/// Wait states of the s_nop at a block's beginning.
struct CountPass : MachineFunctionPass {
  static char ID;
  unsigned number;
  unsigned &waits;
  CountPass(unsigned number, unsigned &waits)
      : MachineFunctionPass(ID), number(number), waits(waits) {}
  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    waits = 0;
    for (const MachineInstr &inst : *function.getBlockNumbered(number)) {
      if (info.getName(inst.getOpcode()) != "S_NOP")
        break;
      waits += inst.getOperand(0).getImm() + 1;
    }
    return false;
  }
};
char CountPass::ID = 0;

struct Waits {
  unsigned byLlvm = 0, all = 0;
};
} // namespace

/// Waits before block `number` of a function with these blocks.
static Waits waitsOf(StringRef chip, unsigned number, const std::string &body) {
  Waits waits;
  runPasses(chip, "body: |\n" + body, [&](legacy::PassManager &passes) {
    passes.add(Pass::createPass(&PostRAHazardRecognizerID));
    passes.add(new CountPass(number, waits.byLlvm));
    passes.add(greta::createWaitStatesPass());
    passes.add(new CountPass(number, waits.all));
  });
  return waits;
}

static const char mfma[] =
    "    $vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_16X16X16F16_vgprcd_e64 "
    "$vgpr4_vgpr5, $vgpr6_vgpr7, 0, 0, 0, 0, implicit $mode, implicit $exec\n";
static const char use[] =
    "    $vgpr8 = V_MOV_B32_e32 $vgpr0, implicit $exec\n    S_ENDPGM 0\n";

static std::string others(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "    $vgpr9 = V_MOV_B32_e32 1, implicit $exec\n";
  return text;
}

/// A branch whose arms have so many instructions.
static std::string diamond(unsigned first, unsigned second) {
  return "  bb.0:\n    successors: %bb.1, %bb.2\n" + std::string(mfma) +
         "    S_CBRANCH_SCC1 %bb.2, implicit undef $scc\n"
         "  bb.1:\n    successors: %bb.3\n" +
         others(first) +
         "    S_BRANCH %bb.3\n  bb.2:\n    successors: %bb.3\n" +
         others(second) + "  bb.3:\n" + use;
}

// 4 passes: a VALU reads the result 7 wait states behind it, on gfx950 8, and
// on gfx90a, with 8 passes, 11. The branch is one of them, as is the one at the
// end of the first arm.
TEST(WaitStates, TheShorterArmComesLast) {
  Waits waits = waitsOf("gfx942", 3, diamond(4, 1));
  EXPECT_EQ(waits.byLlvm, 1u);
  EXPECT_EQ(waits.all, 5u);
  EXPECT_EQ(waitsOf("gfx942", 3, diamond(0, 0)).all, 6u);
  EXPECT_EQ(waitsOf("gfx950", 3, diamond(4, 1)).all, 6u);
  EXPECT_EQ(waitsOf("gfx90a", 3, diamond(4, 1)).all, 9u);
}

TEST(WaitStates, NothingIsAddedToWhatIsRight) {
  for (auto [first, second] : {std::pair(1, 20), {5, 6}, {20, 20}, {20, 1}}) {
    Waits waits = waitsOf("gfx942", 3, diamond(first, second));
    EXPECT_EQ(waits.all, waits.byLlvm) << first << ", " << second;
    EXPECT_EQ(waits.all,
              unsigned(std::max(0, 6 - std::min(first + 1, second))));
  }
}

// The use stands in a loop's body, which LLVM enters from its end first.
TEST(WaitStates, ALoopLeadsToItself) {
  std::string head = "  bb.0:\n    successors: %bb.2\n";
  std::string body = "  bb.1:\n    successors: %bb.2\n" + others(2) +
                     "    S_BRANCH %bb.2\n"
                     "  bb.2:\n    successors: %bb.1, %bb.3\n"
                     "    $vgpr8 = V_MOV_B32_e32 $vgpr0, implicit $exec\n" +
                     others(2) +
                     "    S_CBRANCH_SCC1 %bb.1, implicit undef $scc\n"
                     "  bb.3:\n    S_ENDPGM 0\n";
  EXPECT_EQ(
      waitsOf("gfx942", 2, head + mfma + "    S_BRANCH %bb.2\n" + body).all,
      6u);
  // The product of the iteration before is 7 wait states away by the loop.
  EXPECT_EQ(waitsOf("gfx942", 2, head + "    S_BRANCH %bb.2\n" + body).all, 0u);
}

// A block of one instruction that two ways share, and a third that is shorter.
TEST(WaitStates, WaysMeetMoreThanOnce) {
  std::string body = "  bb.0:\n    successors: %bb.1, %bb.2\n" +
                     std::string(mfma) +
                     "    S_CBRANCH_SCC1 %bb.2, implicit undef $scc\n"
                     "  bb.1:\n    successors: %bb.3\n" +
                     others(4) +
                     "    S_BRANCH %bb.3\n"
                     "  bb.2:\n    successors: %bb.3, %bb.4\n"
                     "    S_CBRANCH_SCC1 %bb.4, implicit undef $scc\n"
                     "  bb.3:\n    successors: %bb.4\n" +
                     others(3) + "  bb.4:\n" + use;
  EXPECT_EQ(waitsOf("gfx942", 4, body).all, 5u);
}

// LLVM enters bb.3 by bb.4, 16 wait states behind the product, and not by bb.2
// any more. Only then does it add waits to bb.4, behind which bb.3 is no more
// within reach by that way.
TEST(WaitStates, AWayThatIsLongerAfterwards) {
  std::string body = "  bb.0:\n    successors: %bb.3\n    S_BRANCH %bb.3\n"
                     "  bb.1:\n    successors: %bb.3\n" +
                     others(11) +
                     "    S_BRANCH %bb.3\n"
                     "  bb.2:\n    successors: %bb.3\n" +
                     others(1) +
                     "  bb.3:\n    successors: %bb.2, %bb.4\n"
                     "    $vgpr8 = V_MOV_B32_e32 $vgpr0, implicit $exec\n" +
                     others(24) + mfma +
                     "    S_CBRANCH_SCC1 %bb.2, implicit undef $scc\n"
                     "  bb.4:\n    successors: %bb.1\n"
                     "    $vgpr8 = V_MOV_B32_e32 $vgpr0, implicit $exec\n" +
                     others(1) + "    S_BRANCH %bb.1\n";
  Waits waits = waitsOf("gfx90a", 3, body);
  EXPECT_EQ(waits.byLlvm, 0u);
  EXPECT_EQ(waits.all, 9u);
}
