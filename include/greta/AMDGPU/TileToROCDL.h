//===- TileToROCDL.h - kernels at the lane level to AMDGPU ------*- C++ -*-===//
//
// The work of the pass greta-tile-to-rocdl, for those who have a module of
// kernels at hand.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_TILETOROCDL_H
#define GRETA_AMDGPU_TILETOROCDL_H

#include "mlir/IR/BuiltinOps.h"

namespace greta {

/// Replaces every greta_tile.func of the module by an LLVM function for the
/// chip (gfx942, ...). An op that cannot be translated gets a diagnostic.
llvm::LogicalResult convertTileToROCDL(mlir::ModuleOp module,
                                       llvm::StringRef chip);

} // namespace greta

#endif
