//===- greta-opt.cpp - mlir-opt with GRETA's dialects and passes ----------===//
//
// Registers what our pipelines use of MLIR, not everything: the tool starts in
// tens of milliseconds, and every lit test starts it.
//
//===----------------------------------------------------------------------===//

#include "DrawLayouts.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "greta/Host/Host.h"
#include "greta/Package/Compile.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<greta::GretaDialect, greta::tile::GretaTileDialect,
                  mlir::affine::AffineDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::gpu::GPUDialect,
                  mlir::LLVM::LLVMDialect, mlir::ROCDL::ROCDLDialect,
                  mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::spirv::SPIRVDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect>();
  greta::registerCompilerDialects(registry);
  mlir::PassPipelineRegistration<>(
      "greta-to-host", "greta ops on tensors to the LLVM dialect for a CPU",
      greta::buildHostPipeline);
  greta::registerGretaPasses();
  registerDrawLayouts();
  mlir::registerTransformsPasses();
  mlir::registerLinalgPasses();
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "greta-opt " GRETA_VERSION "\n"; });
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "GRETA's optimizer driver\n", registry));
}
