//===- Hsaco.h - a kernel at the lane level to an AMD code object -*- C++
//-*-===//
//
// The second half of the AMD target: greta_tile.func at the lane level -> LLVM
// -> code object, all in process.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_AMDGPU_HSACO_H
#define GRETA_AMDGPU_HSACO_H

#include "greta/Interface/Options.h"
#include "greta/Interface/Variant.h"
#include <array>
#include <map>

namespace greta {
namespace tile {
class FuncOp;
}

struct HsacoKernel {
  /// The code object, or the text that options.artifact asks for.
  std::string object;
  /// The code object's metadata; absent from texts.
  std::optional<KernelStats> stats;
};

/// Code objects by the SHA-1 of all that they are compiled from. A function's
/// kernels for ranges of M, and those of choices of tiles that replace one that
/// spills, are mostly the same.
struct HsacoObjects {
  std::map<std::array<uint8_t, 20>, HsacoKernel> compiled;
};

/// Compiles one kernel whose body is at the lane level for the chip of `row`.
/// The kernel stays as it is. Its name is the code object's entry. A kernel
/// that spills registers gets a warning; what cannot be compiled an error.
mlir::FailureOr<HsacoKernel> emitHsaco(tile::FuncOp kernel,
                                       const TargetRow &row,
                                       const CompileOptions &options);

/// Reads the registers, LDS, scratch and spills of kernel `name` from the
/// metadata note of a code object; the occupancy is that of `row`.
llvm::Expected<KernelStats> readHsacoStats(llvm::StringRef object,
                                           llvm::StringRef name,
                                           const TargetRow &row);

/// The main loop of kernel `name`, whose workgroups have `waves` waves and of
/// which a SIMD holds `occupancy`; none without matrix instructions.
llvm::Expected<std::optional<LoopStats>> readHsacoLoop(llvm::StringRef object,
                                                       llvm::StringRef name,
                                                       unsigned waves,
                                                       unsigned occupancy);

} // namespace greta

#endif
