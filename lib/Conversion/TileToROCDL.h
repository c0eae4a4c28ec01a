//===- TileToROCDL.h - what the parts of the conversion share ---*- C++ -*-===//
//
// The patterns of greta-tile-to-rocdl by subject, and what they ask of a chip.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_CONVERSION_TILETOROCDL_H
#define GRETA_LIB_CONVERSION_TILETOROCDL_H

#include "GretaTile/GretaTile.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/DenseMap.h"

namespace greta::rocdl {

/// How a chip exchanges values between lanes.
struct LaneExchange {
  unsigned waveSize;
  /// DPP row_xmask and v_permlanex16 (RDNA).
  bool rowXmask;
  /// v_permlane32_swap (gfx950).
  bool permlane32Swap;
};

/// What the patterns need to know of the kernel they work in.
struct Kernel {
  int32_t blockSize = 0, waveSize = 0;
  /// The LDS global of every shared_alloc.
  llvm::DenseMap<mlir::Operation *, mlir::LLVM::GlobalOp> shared;
  /// Loads in pipelined loops, and the last step to their base where it fits
  /// into the 32 bits of a buffer load's scalar offset.
  llvm::DenseMap<mlir::Operation *, tile::PtrAddOp> inPipeline;
  /// The last word of a buffer descriptor without bounds.
  int32_t bufferFlags = 0;
};

/// Address spaces of the AMDGPU target.
constexpr unsigned globalSpace = 1, sharedSpace = 3, bufferSpace = 8;

/// Ids, memory, barriers (TileToROCDLOps.cpp).
void populateLanePatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const Kernel &kernel);

/// shuffle_xor and shuffle (TileToROCDLShuffle.cpp).
void populateShufflePatterns(const mlir::LLVMTypeConverter &converter,
                             mlir::RewritePatternSet &patterns,
                             const LaneExchange &exchange);

/// Functions whose flags ask for the bare instruction (TileToROCDLMath.cpp).
void populateBareMathPatterns(const mlir::LLVMTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

/// Rewrites what the backend has no instructions for, or none that are good,
/// within arith and math (TileToROCDLMath.cpp). Fails with a diagnostic at an
/// op that would become a library call.
llvm::LogicalResult expandMath(mlir::Operation *kernel);

} // namespace greta::rocdl

#endif
