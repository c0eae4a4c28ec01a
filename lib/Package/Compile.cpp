//===- Compile.cpp - choosing a code generator ----------------------------===//

#include "greta/Package/Compile.h"
#include "Gpu.h"
#include "Greta/Greta.h"
#include "Launches.h"
#include "Triton/Triton.h"
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
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;

void greta::registerCompilerDialects(DialectRegistry &registry) {
  // What a source may be written in; passes load the rest.
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
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// A function that uses cooperative matrices has a second variant without them,
/// for devices of the family that lack the extension or the shapes.
static LogicalResult
compileForVulkan(OwningOpRef<ModuleOp> module, const TargetRow &row,
                 const CompileOptions &options,
                 SmallVectorImpl<CompiledVariant> &variants) {
  OwningOpRef<ModuleOp> copy;
  if (!row.matrix.empty() && options.artifact == Artifact::Object)
    copy = module->clone();
  if (failed(compileForGpu(std::move(module), row, /*matrix=*/true, options,
                           variants.emplace_back())))
    return failure();
  if (!copy || variants.back().requires_.coopmat.empty())
    return success();
  return compileForGpu(std::move(copy), row, /*matrix=*/false, options,
                       variants.emplace_back());
}

LogicalResult
greta::compileVariants(OwningOpRef<ModuleOp> module, const TargetRow &row,
                       const CompileOptions &options,
                       SmallVectorImpl<CompiledVariant> &variants) {
  switch (row.backend) {
  case Backend::Host:
    return compileForHost(std::move(module), row, options,
                          variants.emplace_back());
  case Backend::Hip:
    return compileForGpu(std::move(module), row, /*matrix=*/true, options,
                         variants.emplace_back());
  case Backend::Vulkan:
    return compileForVulkan(std::move(module), row, options, variants);
  }
  llvm_unreachable("a backend without a code generator");
}

StringRef greta::getDtypeName(Type type, bool all) {
  if (!all && (type.isF64() || type.isInteger(16) || type.isInteger(64)))
    return "";
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](Float32Type) -> StringRef { return "f32"; })
      .Case([](Float64Type) -> StringRef { return "f64"; })
      .Case([](Float16Type) -> StringRef { return "f16"; })
      .Case([](BFloat16Type) -> StringRef { return "bf16"; })
      .Case([](Float8E4M3FNType) -> StringRef { return "f8e4m3fn"; })
      .Case([](Float8E4M3FNUZType) -> StringRef { return "f8e4m3fnuz"; })
      .Case([](Float8E5M2Type) -> StringRef { return "f8e5m2"; })
      .Case([](Float8E5M2FNUZType) -> StringRef { return "f8e5m2fnuz"; })
      .Case([](IntegerType type) -> StringRef {
        return type.isInteger(8)    ? "i8"
               : type.isInteger(16) ? "i16"
               : type.isInteger(32) ? "i32"
               : type.isInteger(64) ? "i64"
                                    : "";
      })
      .Default(StringRef());
}

/// An extent of greta.shapes: an integer, "d0", or [op, a, b].
static AffineExpr parseExtent(Attribute extent) {
  MLIRContext *context = extent.getContext();
  if (auto constant = dyn_cast<IntegerAttr>(extent))
    return getAffineConstantExpr(constant.getInt(), context);
  if (auto name = dyn_cast<StringAttr>(extent)) {
    unsigned symbol = 0;
    name.getValue().drop_front().getAsInteger(10, symbol);
    return getAffineSymbolExpr(symbol, context);
  }
  auto parts = cast<ArrayAttr>(extent).getValue();
  AffineExpr a = parseExtent(parts[1]), b = parseExtent(parts[2]);
  StringRef op = cast<StringAttr>(parts[0]).getValue();
  if (op == "+")
    return a + b;
  if (op == "*")
    return a * b;
  if (op == "floordiv")
    return a.floorDiv(b);
  if (op == "ceildiv")
    return a.ceilDiv(b);
  return a % b;
}

FunctionSpec greta::getFunctionSpec(func::FuncOp func) {
  FunctionSpec spec;
  spec.name = func.getSymName().str();
  for (Attribute symbol : func->getAttrOfType<ArrayAttr>("greta.symbols")) {
    auto pair = cast<ArrayAttr>(symbol).getValue();
    SymbolSpec &made = spec.symbols.emplace_back();
    made.arg = cast<IntegerAttr>(pair[0]).getInt();
    if (pair.size() > 1)
      made.dim = cast<IntegerAttr>(pair[1]).getInt();
  }
  auto shapes = func->getAttrOfType<ArrayAttr>("greta.shapes").getValue();
  auto describe = [&](Type type, Attribute shape, std::string name) {
    TensorSpec tensor;
    tensor.name = std::move(name);
    tensor.elementType = getElementTypeOrSelf(type);
    tensor.isScalar = !isa<RankedTensorType>(type);
    for (Attribute extent : cast<ArrayAttr>(shape))
      tensor.shape.push_back(parseExtent(extent));
    return tensor;
  };
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto name = func.getArgAttrOfType<StringAttr>(i, "greta.name");
    spec.args.push_back(
        describe(func.getArgumentTypes()[i], shapes[i],
                 name ? name.getValue().str() : "arg" + std::to_string(i)));
  }
  auto results = func.getBody().front().getTerminator()->getOperands();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    spec.results.push_back(
        describe(type, shapes[spec.args.size() + i], "r" + std::to_string(i)));
    spec.results.back().tied = tiedArgument(results[i]);
  }
  return spec;
}
