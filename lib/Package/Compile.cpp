//===- Compile.cpp - choosing a code generator ----------------------------===//

#include "greta/Package/Compile.h"
#include "Gpu.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "Triton/Triton.h"
#include "greta/AMDGPU/Hsaco.h"
#include "greta/Configure/SumParts.h"
#include "greta/Host/Host.h"
#include "greta/Interface/Launches.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace greta;

void greta::registerCompilerDialects(DialectRegistry &registry) {
  // The dialects of sources; passes load the rest.
  registry.insert<GretaDialect, tile::GretaTileDialect, arith::ArithDialect,
                  func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                  tensor::TensorDialect, affine::AffineDialect,
                  bufferization::BufferizationDialect, memref::MemRefDialect,
                  scf::SCFDialect, LLVM::LLVMDialect, triton::TTDialect,
                  triton::gpu::TTGDialect, cf::ControlFlowDialect,
                  gpu::GPUDialect, ub::UBDialect>();
  func::registerInlinerExtension(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// A function that uses cooperative matrices has a second variant without them,
/// for devices of the family that lack the extension or the shapes. A block
/// program chose its blocks itself: where they do not fit without matrix
/// instructions, or where its dots name these, it needs a device that has them.
static LogicalResult
compileForVulkan(OwningOpRef<ModuleOp> module, const TargetRow &row,
                 const CompileOptions &options,
                 SmallVectorImpl<CompiledVariant> &variants) {
  auto compile = [&](OwningOpRef<ModuleOp> copy, CompiledVariant &variant) {
    return compileForGpu(std::move(copy), row, /*matrix=*/true, options,
                         variant);
  };
  CompiledVariant best;
  if (failed(compile(module->clone(), best)) ||
      failed(addRanges(*module, row, /*matrix=*/true, options, compile, best)))
    return failure();
  bool needsMatrix = !best.requires_.coopmat.empty();
  CompiledVariant plain;
  takeRanges(best, plain);
  variants.push_back(std::move(best));
  if (row.matrix.empty() || options.artifact != Artifact::Object ||
      !needsMatrix)
    return success();
  auto func = *module->getOps<func::FuncOp>().begin();
  if (!launchesKernels(func))
    return compileForGpu(std::move(module), row, /*matrix=*/false, options,
                         variants.emplace_back(std::move(plain)));
  Location loc = func.getLoc();
  std::string name = func.getSymName().str(), why;
  {
    ScopedDiagnosticHandler handler(module->getContext(),
                                    [&](Diagnostic &error) {
                                      if (why.empty())
                                        why = error.str();
                                    });
    bool compiles = succeeded(compileForGpu(module->clone(), row,
                                            /*matrix=*/false, options, plain));
    if (compiles && plain.requires_.coopmat.empty()) {
      variants.push_back(std::move(plain));
      return success();
    }
    if (compiles)
      why = "its dots name them ('matrix')";
  }
  emitWarning(loc) << "'" << name << "' needs cooperative matrices on "
                   << row.name << ": " << why;
  return success();
}

static LogicalResult compileFor(OwningOpRef<ModuleOp> module,
                                const TargetRow &row,
                                const CompileOptions &options,
                                SmallVectorImpl<CompiledVariant> &variants) {
  switch (row.backend) {
  case Backend::Host:
    return compileForHost(std::move(module), row, options,
                          variants.emplace_back());
  case Backend::Hip: {
    HsacoObjects objects;
    CompileOptions own = options;
    own.objects = &objects;
    auto one = [&](OwningOpRef<ModuleOp> copy, CompiledVariant &variant) {
      return compileForHip(std::move(copy), row, own, variant);
    };
    CompiledVariant &variant = variants.emplace_back();
    if (failed(one(module->clone(), variant)))
      return failure();
    return addRanges(*module, row, /*matrix=*/true, options, one, variant);
  }
  case Backend::Vulkan:
    return compileForVulkan(std::move(module), row, options, variants);
  }
  llvm_unreachable("a backend without a code generator");
}

/// The variants whose launches are joined stand in front of those that need no
/// promise of the device. A function with kernels for ranges of rows has none:
/// it is not for a single token.
LogicalResult
greta::compileVariants(OwningOpRef<ModuleOp> module, const TargetRow &row,
                       const CompileOptions &options,
                       SmallVectorImpl<CompiledVariant> &variants) {
  if (!options.joined || row.backend == Backend::Host)
    return compileFor(std::move(module), row, options, variants);
  CompileOptions alone = options;
  alone.joined = 0;
  SmallVector<CompiledVariant, 2> plain, joined;
  if (failed(compileFor(module->clone(), row, alone, plain)))
    return failure();
  bool hasRanges = llvm::any_of(
      plain, [](const CompiledVariant &one) { return !one.ranges.empty(); });
  if (!hasRanges) {
    CompileOptions together = options;
    together.hasRanges = false;
    if (failed(compileFor(std::move(module), row, together, joined)))
      return failure();
    llvm::erase_if(joined, [](const CompiledVariant &one) {
      return !one.requires_.resident;
    });
    for (CompiledVariant &one : joined)
      one.id += "-joined";
  }
  for (auto *list : {&joined, &plain})
    llvm::append_range(variants,
                       llvm::make_range(std::make_move_iterator(list->begin()),
                                        std::make_move_iterator(list->end())));
  return success();
}

FailureOr<SmallVector<CompiledFunction, 1>>
greta::compileFunctions(std::vector<SourceFunction> &functions,
                        ArrayRef<const TargetRow *> rows,
                        const CompileOptions &options,
                        function_ref<void(StringRef, StringRef)> begins) {
  SmallVector<CompiledFunction, 1> compiled;
  for (SourceFunction &function : functions) {
    TimingScope functionScope = options.nest(function.spec.name);
    CompiledFunction &result = compiled.emplace_back();
    result.spec = function.spec;
    choosePartRows(*function.module, rows, options.partRows, options.tuning);
    for (const TargetRow *row : rows) {
      if (begins)
        begins(function.spec.name, row->name);
      TimingScope scope = functionScope.nest(row->name);
      CompileOptions own = options;
      own.timing = &scope;
      OwningOpRef<ModuleOp> module = function.module->clone();
      if (failed(
              compileVariants(std::move(module), *row, own, result.variants)))
        return failure();
    }
  }
  return compiled;
}
