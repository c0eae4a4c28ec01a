//===- HostLowering.cpp - linalg on tensors to the LLVM dialect -----------===//
//
// The host target runs the ops' definitions. Tensors become buffers with
// upstream's one-shot bufferization, after the signature has been rewritten so
// that results are written in place:
//
//   func @f(%x: tensor<?x8xf16>) -> tensor<?x8xf16>
//   func @f(%x: memref<1xf16>, %r: memref<1xf16>, %d0: index)
//     %m = memref.reinterpret_cast %x to offset: [0], sizes: [%d0, 8]
//     %t = bufferization.to_tensor %m restrict
//     bufferization.materialize_in_destination %result in writable %n
//
// Loops are left to LLVM's vectoriser, which wants contiguous inner loops;
// matrix products get those here, and tiles that fit the caches.
//
//===----------------------------------------------------------------------===//

#include "greta/Host/Host.h"
#include "greta/Lane/ExpandIntegers.h"
#include "greta/Passes.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// The generics of `func` that are products of two matrices, or of a batch of
/// them.
static SmallVector<linalg::GenericOp> findContractions(func::FuncOp func) {
  SmallVector<linalg::GenericOp> products;
  func.walk([&](linalg::GenericOp op) {
    if (op.getNumLoops() >= 3 && op.getNumReductionLoops() == 1 &&
        op.getNumDpsInputs() == 2 && linalg::isaContractionOpInterface(op))
      products.push_back(op);
  });
  return products;
}

/// `values` with the last two swapped.
template <typename T> static SmallVector<T> swapLast(SmallVector<T> values) {
  std::swap(values[values.size() - 2], values.back());
  return values;
}

/// A copy of the matrices `value` with their dimensions swapped.
static Value transpose(ImplicitLocOpBuilder &b, Value value) {
  SmallVector<OpFoldResult> sizes =
      swapLast(tensor::getMixedSizes(b, b.getLoc(), value));
  Value empty = tensor::EmptyOp::create(
      b, sizes, cast<RankedTensorType>(value.getType()).getElementType());
  auto order = swapLast(llvm::to_vector(llvm::seq<int64_t>(0, sizes.size())));
  return linalg::TransposeOp::create(b, value, empty, order)->getResult(0);
}

/// A product's loops come as (batch, m, n, k).
static LogicalResult interchangeContractions(func::FuncOp func) {
  IRRewriter rewriter(func.getContext());
  for (linalg::GenericOp op : findContractions(func)) {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    unsigned loops = op.getNumLoops();
    auto last = [](AffineMap map) {
      return map.getResult(map.getNumResults() - 1);
    };
    bool alongN = last(maps[1]) == rewriter.getAffineDimExpr(loops - 2);
    rewriter.setInsertionPoint(op);
    if (alongN) {
      auto order = swapLast(llvm::to_vector(llvm::seq<unsigned>(0, loops)));
      (void)linalg::interchangeGenericOp(rewriter, op, order);
      continue;
    }
    // B has its rows along k, so k is innermost; A must have, too.
    if (last(maps[0]) != rewriter.getAffineDimExpr(loops - 1)) {
      ImplicitLocOpBuilder b(op.getLoc(), rewriter);
      Value copy = transpose(b, op.getInputs()[0]);
      maps[0] = AffineMap::get(loops, 0,
                               swapLast(llvm::to_vector(maps[0].getResults())),
                               op.getContext());
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(0, copy);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
    }
  }
  return success();
}

static LogicalResult tileContractions(func::FuncOp func) {
  IRRewriter rewriter(func.getContext());
  for (linalg::GenericOp op : findContractions(func)) {
    bool alongK =
        op.getIteratorTypesArray().back() == utils::IteratorType::reduction;
    // Loops (m, n, k): 32 rows of B stay in the second-level cache for all of
    // m. Loops (m, k, n): a block of 256 x 512 does.
    SmallVector<int64_t> sizes(op.getNumLoops(), 0);
    sizes[sizes.size() - 2] = alongK ? 32 : 256;
    sizes.back() = alongK ? 0 : 512;
    rewriter.setInsertionPoint(op);
    linalg::LinalgTilingOptions options;
    options.setTileSizes(sizes);
    if (failed(linalg::tileLinalgOp(rewriter, op, options)))
      return op.emitError("cannot be tiled for the host");
    rewriter.eraseOp(op);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

/// A view of the memory at `pointer` as the tensor that `spec` describes, with
/// the type's static extents.
static Value viewAs(ImplicitLocOpBuilder &b, Value pointer,
                    RankedTensorType type, const TensorSpec &spec,
                    ArrayRef<OpFoldResult> symbols) {
  SmallVector<OpFoldResult> sizes, strides(type.getRank());
  for (auto [dim, extent] : llvm::enumerate(spec.shape)) {
    if (!type.isDynamicDim(dim)) {
      sizes.push_back(b.getIndexAttr(type.getDimSize(dim)));
      continue;
    }
    OpFoldResult size = affine::makeComposedFoldedAffineApply(
        b, b.getLoc(),
        AffineMap::get(0, symbols.size(), extent, b.getContext()), symbols);
    // The type says that it is dynamic, so it stays a value.
    sizes.push_back(getValueOrCreateConstantIndexOp(b, b.getLoc(), size));
  }
  OpFoldResult stride = b.getIndexAttr(1);
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    strides[dim] = stride;
    AffineExpr product = b.getAffineSymbolExpr(0) * b.getAffineSymbolExpr(1);
    stride = affine::makeComposedFoldedAffineApply(b, b.getLoc(), product,
                                                   {stride, sizes[dim]});
  }
  return memref::ReinterpretCastOp::create(b, pointer, b.getIndexAttr(0), sizes,
                                           strides);
}

/// Every op gets what it accumulates into for itself. Two results that begin
/// as one would both be made in the first one's memory: upstream's elimination
/// of empty tensors gives it to whoever comes first and copies too late.
static void separateInits(func::FuncOp func) {
  auto separate = [&](auto op) {
    OpBuilder b(op);
    for (OpOperand &use : llvm::make_early_inc_range(
             llvm::drop_begin(op->getResult(0).getUses())))
      use.set(b.clone(*op)->getResult(0));
  };
  // A fill's copies share its empty tensor until that is copied in turn.
  func.walk([&](linalg::FillOp op) { separate(op); });
  func.walk([&](tensor::EmptyOp op) { separate(op); });
}

static LogicalResult passTensorsByPointer(func::FuncOp func) {
  if (!func->hasAttr("greta.symbols") || !func->hasAttr("greta.shapes"))
    return func.emitOpError(
        "has no greta.symbols; run greta-annotate-shapes first");
  separateInits(func);
  FunctionSpec spec = getFunctionSpec(func);
  Block &body = func.getBody().front();
  Operation *terminator = body.getTerminator();
  ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
  b.setInsertionPointToStart(&body);
  unsigned args = spec.args.size(), results = spec.results.size();

  auto addPointer = [&](Type element) -> Value {
    return body.addArgument(MemRefType::get({1}, element), func.getLoc());
  };
  SmallVector<Value> pointers;
  for (const TensorSpec &tensor : spec.args)
    pointers.push_back(addPointer(tensor.elementType));
  for (const TensorSpec &tensor : spec.results)
    pointers.push_back(addPointer(tensor.elementType));
  SmallVector<OpFoldResult> symbols;
  for (size_t symbol = 0; symbol < spec.symbols.size(); ++symbol)
    symbols.push_back(Value(body.addArgument(b.getIndexType(), func.getLoc())));

  SmallVector<Value> arguments;
  for (unsigned i = 0; i < args; ++i) {
    auto type = cast<RankedTensorType>(body.getArgument(i).getType());
    arguments.push_back(viewAs(b, pointers[i], type, spec.args[i], symbols));
  }
  // Here and not at the end: what computes a result writes straight into it.
  SmallVector<Value> destinations;
  llvm::SmallDenseSet<unsigned> updated;
  for (unsigned i = 0; i < results; ++i) {
    auto type = cast<RankedTensorType>(terminator->getOperand(i).getType());
    destinations.push_back(
        viewAs(b, pointers[args + i], type, spec.results[i], symbols));
    // A tensor that is updated in place lies in the result from the beginning.
    if (std::optional<unsigned> tied = spec.results[i].tied) {
      arguments[*tied] =
          viewAs(b, pointers[args + i],
                 cast<RankedTensorType>(body.getArgument(*tied).getType()),
                 spec.args[*tied], symbols);
      updated.insert(*tied);
    }
  }
  for (unsigned i = 0; i < args; ++i) {
    Value tensor = bufferization::ToTensorOp::create(
        b, body.getArgument(i).getType(), arguments[i], /*restrict=*/true,
        /*writable=*/updated.contains(i));
    body.getArgument(i).replaceAllUsesWith(tensor);
  }
  b.setInsertionPoint(terminator);
  for (unsigned i = 0; i < results; ++i)
    bufferization::MaterializeInDestinationOp::create(
        b, Type(), terminator->getOperand(i), destinations[i],
        /*restrict=*/true, /*writable=*/true);
  terminator->eraseOperands(0, results);
  body.eraseArguments(0, args);

  func.setType(b.getFunctionType(body.getArgumentTypes(), {}));
  func.removeArgAttrsAttr();
  func.removeResAttrsAttr();
  // docs/internals/package.md: a result overlaps nothing.
  for (unsigned i = 0; i < results; ++i)
    func.setArgAttr(args + i, "llvm.noalias", b.getUnitAttr());
  return success();
}

static LogicalResult finishBuffers(func::FuncOp func) {
  // The body is one block, and no buffer is made inside of a loop.
  Block &body = func.getBody().front();
  OpBuilder builder(body.getTerminator());
  for (memref::AllocOp alloc : body.getOps<memref::AllocOp>())
    memref::DeallocOp::create(builder, alloc.getLoc(), alloc);
  // memref.copy of strided buffers would call a library of MLIR's.
  func.walk([](memref::CopyOp copy) {
    OpBuilder b(copy);
    linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    copy.erase();
  });
  return success();
}

/// Conversions between integers and floats narrower than f32 go by f32.
static LogicalResult convertByF32(func::FuncOp func) {
  Type f32 = Float32Type::get(func.getContext());
  func.walk([&](Operation *op) {
    OpBuilder b(op);
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
      Value result = op->getResult(0);
      Type type = result.getType();
      if (type.getIntOrFloatBitWidth() >= 32)
        return;
      result.setType(f32);
      b.setInsertionPointAfter(op);
      auto rounded = arith::TruncFOp::create(b, op->getLoc(), type, result);
      result.replaceAllUsesExcept(rounded, rounded);
    } else if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
      Value operand = op->getOperand(0);
      if (operand.getType().getIntOrFloatBitWidth() < 32)
        op->setOperand(0, arith::ExtFOp::create(b, op->getLoc(), f32, operand));
    }
  });
  return success();
}

/// Upstream's emulation of narrow floats would round wide integers twice.
static LogicalResult roundIntegersOnce(func::FuncOp func) {
  expandIntegers(func);
  return success();
}

/// Upstream's emulation of narrow floats allows to contract its conversions,
/// and LLVM takes one there and back for none: what the source rounds between
/// two operations would not be rounded.
static LogicalResult roundInBetween(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      op->removeAttr("fastmath");
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {
/// One of the steps above as a pass.
template <LogicalResult (*step)(func::FuncOp), typename... Dialects>
struct Step
    : PassWrapper<Step<step, Dialects...>, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Step)
  explicit Step(StringRef name) : name(name) {}
  StringRef getName() const override { return name; }
  void getDependentDialects(DialectRegistry &registry) const override {
    (registry.insert<Dialects>(), ...);
  }
  void runOnOperation() override {
    if (failed(step(this->getOperation())))
      this->signalPassFailure();
  }
  StringRef name;
};

/// Only loads, stores, constants, selects and bitcasts of bf16 are left: the
/// integer of its bits serves for them, and LLVM has no vector selects of it
/// but by f32.
struct BFloatToInteger
    : PassWrapper<BFloatToInteger, OperationPass<LLVM::LLVMFuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BFloatToInteger)
  StringRef getName() const override { return "HostBFloat"; }
  void runOnOperation() override {
    auto i16 = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](BFloat16Type) -> Type { return i16; });
    replacer.addReplacement([&](FloatAttr attr) -> std::optional<Attribute> {
      if (!attr.getType().isBF16())
        return std::nullopt;
      return IntegerAttr::get(i16, attr.getValue().bitcastToAPInt());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};

/// Elementwise fusion that never computes anything twice: a producer with one
/// use, in a consumer over the same loops.
struct FuseElementwise
    : PassWrapper<FuseElementwise, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseElementwise)
  StringRef getName() const override { return "HostFuseElementwise"; }
  void runOnOperation() override {
    auto control = [](OpOperand *operand) {
      auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
      auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
      return producer && consumer && producer->hasOneUse() &&
             producer.getNumLoops() == consumer.getNumLoops();
    };
    RewritePatternSet patterns(&getContext());
    // Not with tensor.empty's own patterns: where a dynamic extent is known,
    // they and linalg's RemoveOutsDependency undo each other for ever.
    linalg::populateElementwiseOpsFusionPatterns(patterns, control);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void greta::buildHostPipeline(OpPassManager &pm) {
  auto onTensors = [&](std::unique_ptr<Pass> pass) {
    pm.addNestedPass<func::FuncOp>(std::move(pass));
  };
  pm.addPass(createGretaDecomposePass());
  onTensors(createConvertElementwiseToLinalgPass());
  onTensors(std::make_unique<FuseElementwise>());
  onTensors(createCSEPass());
  onTensors(std::make_unique<Step<interchangeContractions>>("HostInterchange"));
  onTensors(
      std::make_unique<
          Step<passTensorsByPointer, affine::AffineDialect, arith::ArithDialect,
               memref::MemRefDialect, bufferization::BufferizationDialect>>(
          "HostAbi"));

  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferAlignment = 64;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));

  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(std::make_unique<Step<finishBuffers>>("HostBuffers"));
  func.addPass(
      std::make_unique<Step<tileContractions, scf::SCFDialect>>("HostTile"));
  func.addPass(createConvertLinalgToLoopsPass());
  func.addPass(memref::createFoldMemRefAliasOpsPass());
  func.addPass(memref::createExpandStridedMetadataPass());
  // Arithmetic on narrower floats is f32 arithmetic that rounds, spelled out:
  // the CPU has no other, and LLVM would call libgcc for bf16.
  func.addPass(math::createMathExtendToSupportedTypes());
  func.addPass(std::make_unique<Step<roundIntegersOnce>>("HostIntegers"));
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"f16",    "bf16",       "f8E4M3FN",
                            "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"};
  func.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  func.addPass(std::make_unique<Step<roundInBetween>>("HostRound"));
  func.addPass(std::make_unique<Step<convertByF32>>("HostConvert"));
  func.addPass(createGretaExpandPass());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  func.addPass(arith::createArithExpandOpsPass(expand));
  func.addPass(createLowerAffinePass());
  func.addPass(createSCFToControlFlowPass());
  func.addPass(createConvertMathToLLVMPass());

  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  ConvertFuncToLLVMPassOptions bare;
  bare.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(bare));
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addNestedPass<LLVM::LLVMFuncOp>(std::make_unique<BFloatToInteger>());
}
