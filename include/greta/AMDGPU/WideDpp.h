//===- WideDpp.h - lane exchange that LLVM folds too far --------*- C++ -*-===//
//
// A pass of LLVM's code generation, for RDNA 4.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_WIDEDPP_H
#define GRETA_AMDGPU_WIDEDPP_H

namespace greta {

/// The ID of a pass for before GCNDPPCombine, behind "si-fold-operands", which
/// LLVM runs twice: keeps DPP moves that instructions with results of 64 bits
/// read from being folded into them.
const void *getWideDppPass();

} // namespace greta

#endif // GRETA_AMDGPU_WIDEDPP_H
