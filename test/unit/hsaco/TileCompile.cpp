//===- TileCompile.cpp - lane-level kernels to AMD code, for tests --------===//
//
// greta-tile-compile FILE --target=gfx942 [--emit=hsaco|asm|llvm|stats]
//                    [-o OUT] [--timing]
//
// Compiles the one greta_tile.func of FILE. Functions of the greta dialect go
// through greta-translate; this is for what stands below it.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/AMDGPU/Hsaco.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace greta;

enum class Emit { Hsaco, Asm, Llvm, Stats };

static llvm::cl::opt<std::string> input(llvm::cl::Positional,
                                        llvm::cl::Required);
static llvm::cl::opt<std::string> target("target", llvm::cl::Required);
static llvm::cl::opt<std::string> outputName("o", llvm::cl::init("-"));
static llvm::cl::opt<bool> timed("timing");
static llvm::cl::opt<Emit>
    emit("emit", llvm::cl::init(Emit::Hsaco),
         llvm::cl::values(clEnumValN(Emit::Hsaco, "hsaco", ""),
                          clEnumValN(Emit::Asm, "asm", ""),
                          clEnumValN(Emit::Llvm, "llvm", ""),
                          clEnumValN(Emit::Stats, "stats", "")));

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv);
  // lld resets every option of the process.
  const std::string output = outputName;
  const Emit wanted = emit;
  llvm::Expected<const TargetRow *> row = lookupTarget(target);
  if (!row) {
    llvm::errs() << "error: " << llvm::toString(row.takeError()) << "\n";
    return 1;
  }
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                  vector::VectorDialect, tile::GretaTileDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  auto kernels = module->getOps<tile::FuncOp>();
  if (std::distance(kernels.begin(), kernels.end()) != 1) {
    module->emitError("holds no kernel or several");
    return 1;
  }
  DefaultTimingManager timing;
  timing.setEnabled(timed);
  TimingScope scope = timing.getRootScope();
  CompileOptions options;
  options.timing = &scope;
  options.artifact = wanted == Emit::Asm    ? Artifact::Assembly
                     : wanted == Emit::Llvm ? Artifact::LLVMIR
                                            : Artifact::Object;
  FailureOr<HsacoKernel> result = emitHsaco(*kernels.begin(), **row, options);
  if (failed(result))
    return 1;
  std::string error;
  auto file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << "error: " << error << "\n";
    return 1;
  }
  if (wanted == Emit::Stats) {
    const KernelStats &stats = *result->stats;
    file->os() << "vgprs=" << stats.vgprs << " agprs=" << stats.agprs
               << " sgprs=" << stats.sgprs << " lds=" << stats.ldsBytes
               << " scratch=" << stats.scratchBytes
               << " spills=" << stats.vgprSpills + stats.sgprSpills
               << " occupancy=" << stats.occupancy << "\n";
  } else {
    file->os() << result->object;
  }
  file->keep();
  return 0;
}
