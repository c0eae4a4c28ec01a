//===- Options.h - what emitters are asked for ------------------*- C++ -*-===//
#ifndef GRETA_INTERFACE_OPTIONS_H
#define GRETA_INTERFACE_OPTIONS_H

#include "mlir/Support/Timing.h"
#include <optional>

namespace greta {

struct HsacoObjects;
struct TuningDatabase;

/// The kind of CompiledKernel::object.
enum class Artifact {
  Object,   ///< hsaco, SPIR-V binary, shared object
  Assembly, ///< the target's assembly, or SPIR-V as MLIR's spirv dialect
  LLVMIR,   ///< after optimisation; hip and host only
  Nothing,  ///< no more than what is ours: LLVM gets its IR, unused
};

struct CompileOptions {
  Artifact artifact = Artifact::Object;
  /// Generators nest a scope per step.
  mlir::TimingScope *timing = nullptr;
  /// The measured tiles of GEMMs; null: none.
  const TuningDatabase *tuning = nullptr;
  /// Registers of a lane that tiles leave free.
  int64_t spareRegisters = 0;
  /// GEMMs with a dynamic M have kernels for ranges of M, too.
  bool hasRanges = true;
  /// Launches of a function become one (greta-tile-join) whose workgroups, so
  /// many on each compute unit, run at a time; 0: they stay.
  int64_t joined = 0;
  /// The rows of a part of a sum over ranks, where the sum does not say it;
  /// none: the model chooses.
  std::optional<int64_t> partRows = std::nullopt;
  /// AMD code objects say which lines of the source they come from.
  bool lineTables = false;
  /// An AMD kernel that spills, or has few waves, is also compiled in LLVM's
  /// other orders of instructions, and the fastest is taken.
  bool reorders = false;
  /// AMD code objects by kernel, so that equal kernels are compiled once; null:
  /// none are kept.
  HsacoObjects *objects = nullptr;

  mlir::TimingScope nest(llvm::StringRef step) const {
    return timing ? timing->nest(step) : mlir::TimingScope();
  }
};

} // namespace greta

#endif
