//===- greta-opt.cpp - mlir-opt with GRETA's dialects and passes ----------===//
//
// Registers what our pipelines use of MLIR, not everything: the tool starts in
// tens of milliseconds, and every lit test starts it.
//
//===----------------------------------------------------------------------===//

#include "DrawLayouts.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "OneLine.h"
#include "greta/Host/Host.h"
#include "greta/Package/Compile.h"
#include "greta/Package/Frontend.h"
#include "greta/Passes.h"
#include "mlir/Bytecode/BytecodeReader.h"
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
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

namespace {
/// Options of greta-to-lanes.
struct LanesOptions : mlir::PassPipelineOptions<LanesOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("a GPU of the target table")};
  Option<bool> matrix{*this, "matrix",
                      llvm::cl::desc("use the target's matrix instructions"),
                      llvm::cl::init(true)};
  Option<bool> blocks{*this, "blocks",
                      llvm::cl::desc("the functions launch block programs"),
                      llvm::cl::init(false)};
  Option<int64_t> joined{
      *this, "joined",
      llvm::cl::desc("join launches, for so many workgroups a compute unit"),
      llvm::cl::init(0)};
};
} // namespace

/// Registers greta-to-lanes: what packages are compiled with, up to one lane's
/// program.
static void registerLanesPipeline() {
  mlir::registerPassPipeline(
      "greta-to-lanes",
      "greta ops or block programs to one lane's program for a GPU",
      [](mlir::OpPassManager &passes, llvm::StringRef text,
         llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> error) {
        LanesOptions options;
        if (failed(options.parseFromString(text)))
          return llvm::failure();
        auto row = greta::lookupTarget(options.target);
        if (!row)
          return error(llvm::toString(row.takeError()));
        if (!(*row)->isHip() && !(*row)->isVulkan())
          return error("greta-to-lanes: '" + options.target +
                       "' is no GPU; say target=gfx942");
        if (!options.blocks)
          passes.addNestedPass<mlir::func::FuncOp>(
              greta::createGretaAnnotateShapesPass());
        greta::CompileOptions compile;
        compile.joined = options.joined;
        greta::buildGpuPipeline(passes, **row, options.matrix, options.blocks,
                                compile);
        return llvm::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(LanesOptions());
      });
}

/// Does what mlir-opt does, whose messages repeat the names and the lines of
/// files as they are.
static llvm::LogicalResult optimize(int argc, char **argv,
                                    mlir::DialectRegistry &registry) {
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "GRETA's optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  llvm::InitLLVM init(argc, argv);
  std::string why;
  auto fail = [&] {
    llvm::WithColor::error() << onOneLine(why) << "\n";
    return llvm::failure();
  };
  auto file = mlir::openInputFile(input, &why);
  if (!file)
    return fail();
  auto result = mlir::openOutputFile(output, &why);
  if (!result)
    return fail();
  auto named = llvm::MemoryBuffer::getMemBuffer(
      file->getBuffer(), onOneLine(file->getBufferIdentifier().str()));
  llvm::SourceMgr none;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::SourceMgrDiagnosticHandler handler(none, &context);
  if (!mlir::isBytecode(*named) &&
      failed(greta::checkText(named->getBufferIdentifier(), named->getBuffer(),
                              &context)))
    return llvm::failure();
  if (failed(
          mlir::MlirOptMain(result->os(), std::move(named), registry, config)))
    return llvm::failure();
  result->keep();
  return llvm::success();
}

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
  registerLanesPipeline();
  greta::registerGretaPasses();
  registerDrawLayouts();
  mlir::registerTransformsPasses();
  mlir::registerLinalgPasses();
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "greta-opt " GRETA_VERSION "\n"; });
  return mlir::asMainReturnCode(optimize(argc, argv, registry));
}
