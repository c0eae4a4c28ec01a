//===- WaitStates.h - the waits that LLVM leaves out ------------*- C++ -*-===//
//
// A pass of LLVM's code generation, for chips whose hardware does not
// interlock.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_WAITSTATES_H
#define GRETA_AMDGPU_WAITSTATES_H

namespace llvm {
class MachineFunctionPass;
}

namespace greta {

/// Creates a pass, for behind PostRAHazardRecognizer, that adds the s_nop that
/// are missing if paths of different lengths lead to an instruction.
llvm::MachineFunctionPass *createWaitStatesPass();

} // namespace greta

#endif // GRETA_AMDGPU_WAITSTATES_H
