//===- TileToSPIRV.h - one kernel at the lane level to SPIR-V ---*- C++ -*-===//
//
// The work of the pass greta-tile-to-spirv on each kernel, for those who have
// one kernel and want one module.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SPIRV_TILETOSPIRV_H
#define GRETA_SPIRV_TILETOSPIRV_H

#include "greta/Target/Target.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace greta {
namespace tile {
class FuncOp;
} // namespace tile

/// The SPIR-V module of a kernel whose body is at the lane level, for drivers
/// of this kind. The kernel stays as it is. An op that cannot be translated
/// gets a diagnostic. With `hasNumberExtrema` FMax and FMin become NMax and
/// NMin in the binary (SpirvEmitter.cpp).
mlir::FailureOr<mlir::OwningOpRef<mlir::spirv::ModuleOp>>
convertTileToSPIRV(tile::FuncOp kernel, const DriverFacts &driver = {});

} // namespace greta

#endif
