//===- DualOperands.cpp - operands of dual instructions -------------------===//
//
// In: a kernel's machine code in front of LLVM's GCNCreateVOPD, which makes one
// instruction of two neighbours. Out: the same, with factors and terms of the
// second one swapped where the two could be one instruction only then.
//
// The two read their first sources from different banks of registers, and
// their second sources, too. LLVM 22 does not know that both may read one and
// the same register, and products of many registers with one, by which
// attention scales its sums, have it second each time. In v0 * x and x * v1 it
// is the first source of one and the second of the other.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/DualOperands.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include <array>
#include <optional>

using namespace llvm;

namespace {

/// The numbers of the registers that an instruction writes and reads.
struct Operation {
  unsigned result;
  std::array<unsigned, 2> sources;
};

struct DualOperandsPass : MachineFunctionPass {
  static char ID;
  DualOperandsPass() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "GRETA dual operands"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    const TargetRegisterInfo &registers =
        *function.getSubtarget().getRegisterInfo();
    bool changed = false;
    for (MachineBasicBlock &block : function) {
      std::optional<Operation> first; // in front of the instruction
      for (MachineInstr &inst : block) {
        if (inst.isDebugInstr())
          continue;
        std::optional<Operation> second = read(inst, info, registers);
        if (!first || !second || !mayMeet(*first, *second)) {
          first = second;
          continue;
        }
        Operation swapped = *second;
        std::swap(swapped.sources[0], swapped.sources[1]);
        bool fits = haveBanks(*first, *second);
        if (!fits && haveBanks(*first, swapped))
          changed |= fits = info.commuteInstruction(inst) == &inst;
        // One instruction of two has no other neighbour.
        first = fits ? std::nullopt : second;
      }
    }
    return changed;
  }

private:
  /// None for what is no product or sum of two vector registers.
  static std::optional<Operation> read(const MachineInstr &inst,
                                       const TargetInstrInfo &info,
                                       const TargetRegisterInfo &registers) {
    StringRef name = info.getName(inst.getOpcode());
    if (name != "V_MUL_F32_e32" && name != "V_ADD_F32_e32")
      return std::nullopt;
    std::array<unsigned, 3> numbers;
    for (auto [operand, number] :
         llvm::zip(inst.explicit_operands(), numbers)) {
      if (!operand.isReg() ||
          !StringRef(registers.getName(operand.getReg())).starts_with("VGPR"))
        return std::nullopt;
      number = registers.getEncodingValue(operand.getReg()) & 0xff;
    }
    return Operation{numbers[0], {numbers[1], numbers[2]}};
  }

  /// Whether the results of two that do not depend on each other lie in an even
  /// and in an odd register.
  static bool mayMeet(const Operation &first, const Operation &second) {
    return (first.result ^ second.result) & 1 &&
           !llvm::is_contained(second.sources, first.result);
  }

  /// There are four banks.
  static bool haveBanks(const Operation &first, const Operation &second) {
    return (first.sources[0] ^ second.sources[0]) & 3 &&
           (first.sources[1] ^ second.sources[1]) & 3;
  }
};

} // namespace

char DualOperandsPass::ID = 0;

MachineFunctionPass *greta::createDualOperandsPass() {
  return new DualOperandsPass();
}
