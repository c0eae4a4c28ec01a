//===- BlockSize.h - the registers that blocks take -----------*- C++ -*-===//
//
// CodeLimits are in these registers.
//
//===----------------------------------------------------------------------===//

#ifndef GRETA_TILE_BLOCKSIZE_H
#define GRETA_TILE_BLOCKSIZE_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace greta::tile {

/// Returns the registers of 32 bits that `count` elements of a block take. 0:
/// the elements are pointers or wide integers, which make addresses and are
/// taken apart.
inline int64_t registersOf(mlir::Type element, int64_t count) {
  if (!element.isIntOrFloat())
    return 0;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (element.isInteger())
    bits = std::min<int64_t>(bits, 32);
  return llvm::divideCeil(count * bits, 32);
}

} // namespace greta::tile

#endif // GRETA_TILE_BLOCKSIZE_H
