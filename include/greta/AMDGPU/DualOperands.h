//===- DualOperands.h - operands of dual instructions -----------*- C++ -*-===//
//
// A pass of LLVM's code generation, for chips with dual instructions (VOPD).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_DUALOPERANDS_H
#define GRETA_AMDGPU_DUALOPERANDS_H

namespace llvm {
class MachineFunctionPass;
}

namespace greta {

/// Creates a pass, for in front of GCNCreateVOPD, that swaps factors and terms
/// of neighbours that may be one instruction then.
llvm::MachineFunctionPass *createDualOperandsPass();

} // namespace greta

#endif // GRETA_AMDGPU_DUALOPERANDS_H
