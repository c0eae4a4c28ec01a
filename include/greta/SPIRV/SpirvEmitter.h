//===- SpirvEmitter.h - one kernel to a SPIR-V binary -----------*- C++ -*-===//
//
// The last step of the Vulkan generator, and what it asks of a device.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SPIRV_SPIRVEMITTER_H
#define GRETA_SPIRV_SPIRVEMITTER_H

#include "greta/Interface/Options.h"
#include "greta/Interface/Variant.h"

namespace greta {
namespace tile {
class FuncOp;
} // namespace tile

struct SpirvObject {
  /// The binary, or the spirv dialect's text for Artifact::Assembly.
  std::string object;
  /// subgroupSize is the kernel's wave size where it uses subgroups.
  Requirements requirements;
};

/// Compiles a kernel whose body is at the lane level for the family of `row`.
/// An op that cannot be compiled gets a diagnostic.
mlir::FailureOr<SpirvObject> emitSpirv(tile::FuncOp kernel,
                                       const TargetRow &row, Artifact artifact);

/// Adds what a further kernel of a variant asks for. Shared memory is that of
/// the kernel that needs most.
void addRequirements(Requirements &all, const Requirements &more);

} // namespace greta

#endif
