//===- MainLoop.h - a GEMM's main loop, from its code alone -----*- C++ -*-===//
#ifndef GRETA_SIM_MAINLOOP_H
#define GRETA_SIM_MAINLOOP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace greta::sim {

struct MainLoop {
  unsigned instructions = 0;
  unsigned matrix = 0; ///< of them for the matrix unit
  /// The share of the loop's time that the matrix units are busy while all
  /// waves of a compute unit run it, by the issue model: nothing in LDS
  /// conflicts, and every block comes from memory.
  double matrixShare = 0;
};

/// Returns the loop with the most matrix instructions, of several the shortest;
/// none: the kernel has no such loop. `wavesPerSimd` is the occupancy, and a
/// workgroup has `waves` waves.
llvm::Expected<std::optional<MainLoop>>
findMainLoop(llvm::ArrayRef<uint8_t> codeObject, llvm::StringRef kernel,
             unsigned waves, unsigned wavesPerSimd);

} // namespace greta::sim

#endif
