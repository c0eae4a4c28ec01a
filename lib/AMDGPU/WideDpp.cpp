//===- WideDpp.cpp - lane exchange that LLVM folds too far ----------------===//
//
// In: a kernel's machine code before LLVM's GCNDPPCombine folds DPP moves into
// the instructions that read them. Out: the same with a copy between such a
// move and an instruction whose result has 64 bits.
//
// On gfx12 LLVM 22 makes v_mad_co_u64_u32, v_lshlrev_b64 or v_cvt_f64_u32 with
// DPP of them, encodings that its assembler and its disassembler refuse: only
// chips with DPP for 64-bit operations have them (FeatureDPALU_DPP; LLVM mended
// it later, pull requests 217894 and 222216). A move that anything reads but
// what it can be folded into stays a move, so a copy is enough.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/WideDpp.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace {

struct WideDppPass : MachineFunctionPass {
  static char ID;
  WideDppPass() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override {
    return "DPP moves that 64-bit instructions read";
  }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    MachineRegisterInfo &registers = function.getRegInfo();
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    const TargetRegisterInfo &target =
        *function.getSubtarget().getRegisterInfo();
    bool changed = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &move : make_early_inc_range(block)) {
        if (info.getName(move.getOpcode()) != "V_MOV_B32_dpp")
          continue;
        Register moved = move.getOperand(0).getReg();
        if (!isReadByWide(moved, registers, target))
          continue;
        Register copy =
            registers.createVirtualRegister(registers.getRegClass(moved));
        registers.replaceRegWith(moved, copy);
        move.getOperand(0).setReg(moved);
        BuildMI(block, std::next(move.getIterator()), move.getDebugLoc(),
                info.get(TargetOpcode::COPY), copy)
            .addReg(moved);
        changed = true;
      }
    return changed;
  }

private:
  /// Also as a part of a register that REG_SEQUENCE makes, as LLVM looks for
  /// it.
  static bool isReadByWide(Register value, const MachineRegisterInfo &registers,
                           const TargetRegisterInfo &target) {
    for (const MachineInstr &user : registers.use_nodbg_instructions(value)) {
      if (user.isCopy() || user.isPHI() || !user.getNumExplicitDefs())
        continue;
      Register made = user.getOperand(0).getReg();
      if (user.isRegSequence() ? isReadByWide(made, registers, target)
                               : made.isVirtual() && target.getRegSizeInBits(
                                                         made, registers) > 32)
        return true;
    }
    return false;
  }
};

} // namespace

char WideDppPass::ID = 0;

const void *greta::getWideDppPass() {
  // LLVM looks here for the constructor of a pass that it is to insert.
  static const bool isRegistered = [] {
    PassRegistry::getPassRegistry()->registerPass(
        *new PassInfo("DPP moves that 64-bit instructions read",
                      "greta-wide-dpp", &WideDppPass::ID,
                      callDefaultCtor<WideDppPass>, /*isCFGOnly=*/false,
                      /*is_analysis=*/false),
        /*ShouldFree=*/true);
    return true;
  }();
  (void)isRegistered;
  return &WideDppPass::ID;
}
