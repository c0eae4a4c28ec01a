//===- TileToROCDL.cpp - kernels at the lane level to LLVM for AMDGPU -----===//
//
// Input: greta_tile.func kernels whose bodies hold scalars, small vectors and
// greta_tile lane ops, as greta-tile-distribute leaves them. Output: one LLVM
// function per kernel, ready for the AMDGPU backend, with everything in its
// attributes that the code object says about it: exact workgroup size, chip,
// and that it needs none of the hidden arguments.
//
//   greta_tile.func @k(%x: !greta_tile.ptr<f16>, %n: i32)
//       attributes {wave_size = 64 : i32, waves = 4 : i32} { ... }
//     becomes
//   llvm.func protected @k(%x: !llvm.ptr<1> {llvm.noundef, llvm.readonly},
//                          %n: i32 {llvm.noundef})
//       attributes {rocdl.kernel, rocdl.flat_work_group_size = "256,256",
//                   rocdl.reqd_work_group_size = [256, 1, 1], ...}
//
// Arguments keep their order and get their natural alignment from LLVM's data
// layout, which is the package's argument ABI. Pointers are not `noalias`:
// functions in place may get one buffer as two arguments, and row kernels gain
// nothing from it, as all loads of a step come before its stores. An argument
// that the kernel does not write through is `readonly`, one that it does not
// read `writeonly`.
// Alignment is on the accesses, which know it better than the argument.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/TileToROCDL.h"
#include "GretaTile/LoopAttributes.h"
#include "TileToROCDL.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Facts.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallBitVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILETOROCDL
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

/// Attributes by which a kernel asks for no inputs beyond its arguments.
/// Without them a code object has 256 bytes of hidden arguments, and registers
/// are set up for them.
static constexpr StringLiteral unusedInputs[] = {
    "amdgpu-no-completion-action",  "amdgpu-no-default-queue",
    "amdgpu-no-dispatch-id",        "amdgpu-no-dispatch-ptr",
    "amdgpu-no-heap-ptr",           "amdgpu-no-hostcall-ptr",
    "amdgpu-no-implicitarg-ptr",    "amdgpu-no-lds-kernel-id",
    "amdgpu-no-multigrid-sync-arg", "amdgpu-no-queue-ptr",
    "amdgpu-no-workitem-id-y",      "amdgpu-no-workitem-id-z"};

/// Fails at ops that the conversion does not take, before anything is changed.
static LogicalResult checkKernel(tile::FuncOp kernel, const TargetRow &row) {
  if (failed(kernel.checkTarget()))
    return failure();
  // A wave of one lane would do without exchange between lanes; that is for
  // targets that have none.
  if (static_cast<unsigned>(kernel.getNumLanes()) != row.waveSize)
    return kernel.emitOpError("has wave_size ")
           << kernel.getNumLanes() << "; waves of " << row.name << " have "
           << row.waveSize << " lanes";
  if (static_cast<unsigned>(kernel.getBlockSize()) > row.maxWorkgroupSize)
    return kernel.emitOpError("has workgroups of ")
           << kernel.getBlockSize() << " lanes; those of " << row.name
           << " have at most " << row.maxWorkgroupSize;
  auto isBlock = [](Type type) { return isa<TensorType>(type); };
  WalkResult walk = kernel.getBody().walk([&](Operation *op) -> WalkResult {
    if (llvm::any_of(op->getOperandTypes(), isBlock) ||
        llvm::any_of(op->getResultTypes(), isBlock))
      return op->emitOpError("works on a block tensor; greta-tile-distribute "
                             "must run before greta-tile-to-rocdl");
    if (auto shuffle = dyn_cast<tile::ShuffleXorOp>(op);
        shuffle && static_cast<unsigned>(shuffle.getMask()) >= row.waveSize)
      return shuffle.emitOpError("has mask ")
             << shuffle.getMask() << "; waves of " << row.name << " have "
             << row.waveSize << " lanes";
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Makes the LDS globals of a kernel. Arrays that share bytes are in one
/// global, so that LLVM knows that others do not alias.
static void createShared(tile::FuncOp kernel, Kernel &info) {
  OpBuilder builder(kernel);
  DataLayout layout = DataLayout::closest(kernel);
  struct Array {
    tile::SharedAllocOp alloc;
    uint64_t begin, end;
  };
  SmallVector<Array> arrays;
  for (auto alloc : kernel.getBody().getOps<tile::SharedAllocOp>()) {
    tile::SharedType type = alloc.getResult().getType();
    uint64_t begin = alloc.getOffset().value_or(0);
    arrays.push_back(
        {alloc, begin,
         begin + type.getSize() * layout.getTypeSize(type.getElementType())});
  }
  llvm::stable_sort(
      arrays, [](const Array &x, const Array &y) { return x.begin < y.begin; });
  for (size_t i = 0, number = 0; i < arrays.size(); ++number) {
    uint64_t begin = arrays[i].begin, end = arrays[i].end;
    size_t next = i + 1;
    while (next < arrays.size() && arrays[i].alloc.getOffset() &&
           arrays[next].alloc.getOffset() && arrays[next].begin < end)
      end = std::max(end, arrays[next++].end);
    std::string name = (kernel.getName() + ".lds" + Twine(number)).str();
    auto global = LLVM::GlobalOp::create(
        builder, arrays[i].alloc.getLoc(),
        LLVM::LLVMArrayType::get(builder.getI8Type(), end - begin),
        /*isConstant=*/false, LLVM::Linkage::Internal, name,
        /*value=*/Attribute(), /*alignment=*/16, sharedSpace);
    for (; i < next; ++i)
      info.shared[arrays[i].alloc] = {global, arrays[i].begin - begin};
  }
}

namespace {

struct FuncLowering : ConvertOpToLLVMPattern<tile::FuncOp> {
  FuncLowering(const LLVMTypeConverter &converter, StringRef chip)
      : ConvertOpToLLVMPattern(converter), chip(chip) {}

  LogicalResult
  matchAndRewrite(tile::FuncOp kernel, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MLIRContext *context = rewriter.getContext();
    TypeConverter::SignatureConversion signature(kernel.getNumArguments());
    SmallVector<Type> types;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      types.push_back(getTypeConverter()->convertType(type));
      signature.addInputs(i, types.back());
    }
    SmallVector<DictionaryAttr> argAttrs = argumentAttrs(kernel);
    auto function = LLVM::LLVMFuncOp::create(
        rewriter, kernel.getLoc(), kernel.getName(),
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
    function.setVisibility_(LLVM::Visibility::Protected);
    for (auto [i, attrs] : llvm::enumerate(argAttrs))
      function.setArgAttrs(i, attrs);
    setKernelAttrs(function, kernel.getBlockSize());

    rewriter.inlineRegionBefore(kernel.getBody(), function.getBody(),
                                function.end());
    if (failed(rewriter.convertRegionTypes(&function.getBody(),
                                           *getTypeConverter(), &signature)))
      return failure();
    rewriter.eraseOp(kernel);
    return success();
  }

private:
  static SmallVector<DictionaryAttr> argumentAttrs(tile::FuncOp kernel) {
    llvm::SmallBitVector reads(kernel.getNumArguments()), writes = reads;
    // A pointer that is not plainly an argument may be any of them.
    auto mark = [&](Value pointer, llvm::SmallBitVector &bits) {
      if (BlockArgument argument = tile::argumentOf(pointer))
        bits.set(argument.getArgNumber());
      else
        bits.set();
    };
    kernel.getBody().walk([&](Operation *op) {
      if (auto load = dyn_cast<tile::PtrLoadOp>(op))
        mark(load.getBase(), reads);
      else if (auto load = dyn_cast<tile::PtrLoadSharedOp>(op))
        mark(load.getBase(), reads);
      else if (auto store = dyn_cast<tile::PtrStoreOp>(op))
        mark(store.getBase(), writes);
      else if (isa<tile::PtrAtomicRmwOp, tile::PtrAtomicCasOp>(op))
        for (auto *bits : {&reads, &writes})
          mark(op->getOperand(0), *bits);
    });
    Builder builder(kernel.getContext());
    SmallVector<DictionaryAttr> result;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      NamedAttrList attrs;
      auto set = [&](StringRef name) {
        attrs.set(name, builder.getUnitAttr());
      };
      set(LLVM::LLVMDialect::getNoUndefAttrName());
      if (isa<tile::PtrType>(type)) {
        if (!writes[i])
          set(LLVM::LLVMDialect::getReadonlyAttrName());
        else if (!reads[i])
          set(LLVM::LLVMDialect::getWriteOnlyAttrName());
      }
      result.push_back(attrs.getDictionary(kernel.getContext()));
    }
    return result;
  }

  void setKernelAttrs(LLVM::LLVMFuncOp function, int32_t blockSize) const {
    Builder builder(function.getContext());
    using Rocdl = ROCDL::ROCDLDialect;
    function->setAttr(Rocdl::getKernelFuncAttrName(), builder.getUnitAttr());
    function->setAttr(Rocdl::getReqdWorkGroupSizeAttrName(),
                      builder.getDenseI32ArrayAttr({blockSize, 1, 1}));
    std::string flat = (Twine(blockSize) + "," + Twine(blockSize)).str();
    function->setAttr(Rocdl::getFlatWorkGroupSizeAttrName(),
                      builder.getStringAttr(flat));
    function.setTargetCpu(chip);
    SmallVector<StringRef> unused(std::begin(unusedInputs),
                                  std::end(unusedInputs));
    function.setPassthroughAttr(builder.getStrArrayAttr(unused));
  }

  StringRef chip;
};

struct GretaTileToROCDL
    : public greta::impl::GretaTileToROCDLBase<GretaTileToROCDL> {
  using GretaTileToROCDLBase::GretaTileToROCDLBase;
  void runOnOperation() override {
    if (failed(convertTileToROCDL(getOperation(), chip)))
      signalPassFailure();
  }
};

} // namespace

/// Returns the ptr_add of a load's base if it adds, in each iteration of the
/// loop, a number from 0 to `most` bytes; else null.
static tile::PtrAddOp scalarStep(scf::ForOp loop,
                                 TypedValue<tile::PtrType> base, int64_t most,
                                 const tile::Facts &facts) {
  auto step = base.getDefiningOp<tile::PtrAddOp>();
  if (!step || !step.getOffset().getType().isInteger(64) ||
      loop.isDefinedOutsideOfLoop(step.getOffset()))
    return {};
  auto range = facts.rangeOf(step.getOffset());
  int64_t bytes = tile::bytesInMemory(base.getType().getElementType());
  if (!range || range->first < 0 || range->second > most / bytes)
    return {};
  return step;
}

/// Whether it is plain that all lanes have the same value: it is computed from
/// arguments, constants, ids of workgroup and wave, and loop counters. Values
/// in `seen` count as such.
static bool isUniform(Value value, llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  auto isUniformToo = [&](Value from) { return isUniform(from, seen); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    return isa<tile::FuncOp>(parent) ||
           (loop && argument == loop.getInductionVar() &&
            isUniformToo(loop.getLowerBound()) && isUniformToo(loop.getStep()));
  }
  Operation *op = value.getDefiningOp();
  return !isa<tile::LaneIdOp, tile::ShuffleOp, tile::ShuffleXorOp>(op) &&
         !op->getNumRegions() && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), isUniformToo);
}

static bool isUniform(Value value) {
  llvm::DenseSet<Value> seen;
  return isUniform(value, seen);
}

/// Takes one lane's value of a while loop's condition, so that LLVM knows that
/// it is uniform. All lanes agree on it, since it is a scalar of the block
/// program, but for loops that repeat until an atomic succeeds
/// (greta-tile-expand-atomics).
static void makeUniform(scf::ConditionOp op) {
  auto test = op.getCondition().getDefiningOp<arith::CmpIOp>();
  if (test && test.getLhs().getDefiningOp<tile::PtrAtomicCasOp>())
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value wide = arith::ExtUIOp::create(b, b.getI32Type(), op.getCondition());
  Value first = ROCDL::ReadfirstlaneOp::create(b, b.getI32Type(), wide);
  op.getConditionMutable().assign(
      arith::TruncIOp::create(b, b.getI1Type(), first));
}

static LogicalResult convertKernel(tile::FuncOp kernel, const TargetRow &row) {
  if (failed(checkKernel(kernel, row)))
    return failure();
  kernel.walk(makeUniform);
  pairElements(kernel, row);
  combineHalves(kernel, row);
  kernel.walk(allowContraction);
  MLIRContext *context = kernel.getContext();
  Builder builder(context);
  LLVMTypeConverter converter(context);
  converter.addConversion([&](tile::PtrType) {
    return LLVM::LLVMPointerType::get(context, globalSpace);
  });
  converter.addConversion([&](tile::SharedType) {
    return LLVM::LLVMPointerType::get(context, sharedSpace);
  });
  Kernel info;
  info.blockSize = kernel.getBlockSize();
  info.waveSize = kernel.getNumLanes();
  createShared(kernel, info);

  // A pipelined loop is as long as its author wants it.
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
  std::optional<tile::Facts> facts;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop->hasAttr(tile::rolledName))
      return;
    if (!facts)
      facts.emplace(kernel);
    loop->setAttr("llvm.loop_annotation", annotation);
    loop.walk([&](Operation *op) {
      if (auto load = dyn_cast<tile::PtrLoadOp>(op);
          load && isUniform(load.getBase()) && !load.getWraps())
        info.inPipeline[op] =
            scalarStep(loop, load.getBase(), INT32_MAX, *facts);
      else if (auto load = dyn_cast<tile::PtrLoadSharedOp>(op))
        info.inPipeline[op] =
            scalarStep(loop, load.getBase(), (int64_t(1) << 30) - 1, *facts);
    });
  });
  kernel.walk([&](tile::PtrLoadSharedOp) {
    auto domain = LLVM::AliasScopeDomainAttr::get(
        context, builder.getStringAttr("shared memory"));
    auto scope = [&](StringRef name) {
      return LLVM::AliasScopeAttr::get(domain, builder.getStringAttr(name));
    };
    info.direct = scope("direct");
    info.indirect = scope("others");
    return WalkResult::interrupt();
  });
  // Any format that is one (7, 4); RDNA: bit 24 is one, no bounds (2 << 28), or
  // those of bytes (3 << 28).
  info.bufferFlags = info.boundedFlags = 7 << 12 | 4 << 15;
  if (row.hasFeature("buffer_oob_select")) {
    info.bufferFlags |= 1 << 24 | 2 << 28;
    info.boundedFlags |= 1 << 24 | 3 << 28;
  }

  RewritePatternSet patterns(context);
  patterns.add<FuncLowering>(converter, row.name);
  populateLanePatterns(converter, patterns, info);
  populateLoadPatterns(converter, patterns, info);
  populatePointerPatterns(converter, patterns);
  populateShufflePatterns(converter, patterns,
                          {row.waveSize, row.hasFeature("row_xmask"),
                           row.hasFeature("permlane32_swap")});
  populateBareMathPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect, ROCDL::ROCDLDialect>();
  target.addIllegalDialect<tile::GretaTileDialect>();
  Operation *module = kernel->getParentOp();
  if (failed(applyFullConversion(kernel, target, std::move(patterns))))
    return failure();
  // The patterns carry the annotation to the branch back under the loop's name
  // for it; the translation looks for the branch's own.
  module->walk([&](LLVM::BrOp back) {
    if (auto found = dyn_cast_or_null<LLVM::LoopAnnotationAttr>(
            back->removeDiscardableAttr("llvm.loop_annotation")))
      back.setLoopAnnotationAttr(found);
  });
  return success();
}

LogicalResult greta::convertTileToROCDL(ModuleOp module, StringRef chip) {
  const TargetRow *row = rowOfTarget(module, chip);
  if (!row)
    return failure();
  if (!row->isHip())
    return module.emitError("target '")
           << chip << "' is no AMD chip; kernels for it are made elsewhere";
  if (failed(tile::checkNoLaunch(module)))
    return failure();
  SmallVector<tile::FuncOp> kernels(module.getOps<tile::FuncOp>());
  for (tile::FuncOp kernel : kernels)
    if (failed(convertKernel(kernel, *row)))
      return failure();
  return success();
}
