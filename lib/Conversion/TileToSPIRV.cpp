//===- TileToSPIRV.cpp - kernels at the lane level to spirv.module --------===//
//
// The pass greta-tile-to-spirv and the shell of a module: entry point,
// execution modes, capabilities.
//
//===----------------------------------------------------------------------===//

#include "greta/Conversion/TileToSPIRV.h"
#include "GretaTile/GretaTile.h"
#include "greta/Conversion/Passes.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"

using namespace mlir;

namespace greta {
#define GEN_PASS_DEF_GRETATILETOSPIRV
#include "greta/Conversion/Passes.h.inc"
} // namespace greta

FailureOr<OwningOpRef<spirv::ModuleOp>>
greta::convertTileToSPIRV(tile::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  OpBuilder builder(context);
  auto vce = spirv::VerCapExtAttr::get(
      spirv::Version::V_1_5,
      {spirv::Capability::Shader,
       spirv::Capability::PhysicalStorageBufferAddresses},
      ArrayRef<spirv::Extension>(), context);
  OwningOpRef<spirv::ModuleOp> module = spirv::ModuleOp::create(
      builder, kernel.getLoc(), spirv::AddressingModel::PhysicalStorageBuffer64,
      spirv::MemoryModel::GLSL450, vce, kernel.getName());
  builder.setInsertionPointToStart(module->getBody());
  auto function =
      spirv::FuncOp::create(builder, kernel.getLoc(), kernel.getName(),
                            builder.getFunctionType({}, {}));
  spirv::EntryPointOp::create(builder, kernel.getLoc(),
                              spirv::ExecutionModel::GLCompute, function,
                              ArrayRef<Attribute>());
  spirv::ExecutionModeOp::create(
      builder, kernel.getLoc(), function, spirv::ExecutionMode::LocalSize,
      {static_cast<int32_t>(kernel.getBlockSize()), 1, 1});
  builder.setInsertionPointToStart(function.addEntryBlock());
  for (Operation &op : kernel.getBody().front()) {
    if (!isa<tile::ReturnOp>(op))
      return op.emitError("greta-tile-to-spirv does not know this op");
    spirv::ReturnOp::create(builder, op.getLoc());
  }
  return module;
}

namespace {
struct GretaTileToSPIRV
    : public greta::impl::GretaTileToSPIRVBase<GretaTileToSPIRV> {
  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(
             getOperation().getOps<greta::tile::FuncOp>())) {
      FailureOr<OwningOpRef<spirv::ModuleOp>> module =
          greta::convertTileToSPIRV(kernel);
      if (failed(module))
        return signalPassFailure();
      OpBuilder(kernel).insert(module->release());
      kernel.erase();
    }
  }
};
} // namespace
