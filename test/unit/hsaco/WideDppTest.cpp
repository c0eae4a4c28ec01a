//===- WideDppTest.cpp - DPP moves before 64-bit instructions -------------===//
//
// Machine code with a DPP move through GCNDPPCombine, with and without our pass
// before it. Counted are the instructions with DPP whose result has 64 bits,
// which gfx12 does not have, and those with other results, which it has.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/WideDpp.h"
#include "MachineCode.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/PassRegistry.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace {
struct Folded {
  unsigned wide = 0, narrow = 0;
};

struct FoldedPass : MachineFunctionPass {
  static char ID;
  Folded &folded;
  explicit FoldedPass(Folded &folded)
      : MachineFunctionPass(ID), folded(folded) {}
  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetSubtargetInfo &target = function.getSubtarget();
    for (const MachineBasicBlock &block : function)
      for (const MachineInstr &inst : block) {
        StringRef name = target.getInstrInfo()->getName(inst.getOpcode());
        if (!name.ends_with("_dpp") || name == "V_MOV_B32_dpp")
          continue;
        unsigned bits = target.getRegisterInfo()->getRegSizeInBits(
            inst.getOperand(0).getReg(), function.getRegInfo());
        ++(bits > 32 ? folded.wide : folded.narrow);
      }
    return false;
  }
};
char FoldedPass::ID = 0;
} // namespace

/// How the move's readers end.
static Folded foldedOf(bool withPass, const std::string &readers) {
  Folded folded;
  runPasses("gfx1201",
            "tracksRegLiveness: true\nbody: |\n  bb.0:\n"
            "    liveins: $vgpr0, $vgpr1, $vgpr2_vgpr3\n"
            "    %0:vgpr_32 = COPY $vgpr0\n    %1:vgpr_32 = COPY $vgpr1\n"
            "    %2:vreg_64 = COPY $vgpr2_vgpr3\n"
            "    %3:vgpr_32 = IMPLICIT_DEF\n"
            "    %4:vgpr_32 = V_MOV_B32_dpp %3, %0, 353, 15, 15, -1, implicit "
            "$exec\n" +
                readers + "    S_ENDPGM 0\n",
            [&](legacy::PassManager &passes) {
              const PassInfo *combine =
                  PassRegistry::getPassRegistry()->getPassInfo(
                      StringRef("gcn-dpp-combine"));
              ASSERT_TRUE(combine) << "this LLVM has no gcn-dpp-combine";
              if (withPass)
                passes.add(Pass::createPass(greta::getWideDppPass()));
              passes.add(combine->createPass());
              passes.add(new FoldedPass(folded));
            });
  return folded;
}

static const char product[] =
    "    %5:vreg_64, %6:sreg_32_xm0_xexec = V_MAD_U64_U32_e64 %4, %1, %2, 0, "
    "implicit $exec\n";
static const char sum[] =
    "    %7:vgpr_32 = V_ADD_U32_e32 %4, %1, implicit $exec\n";

TEST(WideDpp, AreNotFolded) {
  EXPECT_EQ(foldedOf(false, product).wide, 1u); // what LLVM does
  EXPECT_EQ(foldedOf(true, product).wide, 0u);
  std::string part = "    %8:vreg_64 = REG_SEQUENCE %4, %subreg.sub0, %1, "
                     "%subreg.sub1\n"
                     "    %5:vreg_64, %6:sreg_32_xm0_xexec = V_MAD_U64_U32_e64 "
                     "%8.sub0, %1, %2, 0, implicit $exec\n";
  EXPECT_EQ(foldedOf(true, part).wide, 0u);
}

TEST(WideDpp, OthersAre) {
  EXPECT_EQ(foldedOf(false, sum).narrow, 1u);
  EXPECT_EQ(foldedOf(true, sum).narrow, 1u);
  // The compiler inserts the pass behind this one (lib/AMDGPU/Hsaco.cpp).
  EXPECT_TRUE(PassRegistry::getPassRegistry()->getPassInfo(
      StringRef("si-fold-operands")));
}
