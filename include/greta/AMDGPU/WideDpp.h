//===- WideDpp.h - lane exchange that LLVM folds too far --------*- C++ -*-===//
//
// A pass of LLVM's code generation, for RDNA 4.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_WIDEDPP_H
#define GRETA_AMDGPU_WIDEDPP_H

namespace greta {

/// Returns the ID of a pass that keeps DPP moves from being folded into
/// instructions with results of 64 bits. It belongs behind "si-fold-operands",
/// which LLVM runs twice, and in front of GCNDPPCombine.
const void *getWideDppPass();

} // namespace greta

#endif // GRETA_AMDGPU_WIDEDPP_H
