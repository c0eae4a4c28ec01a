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
// layout, which is the package's argument ABI. Pointers are not `noalias`: a
// caller may pass one buffer as input and output, and row kernels gain nothing
// from it, as all loads of a step come before its stores anyway. What a kernel
// does not write through is `readonly`, what it does not read `writeonly`.
// Alignment is on the accesses, which know it better than the argument.
//
//===----------------------------------------------------------------------===//

#include "greta/Conversion/TileToROCDL.h"
#include "GretaTile/LoopAttributes.h"
#include "TileToROCDL.h"
#include "greta/Conversion/Passes.h"
#include "greta/Target/Target.h"
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
#include "greta/Conversion/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

/// Everything a kernel could ask the launch for beyond its arguments, none of
/// which ours do. Without these the code object has 256 bytes of hidden
/// arguments and registers set up for them.
static constexpr StringLiteral unusedInputs[] = {
    "amdgpu-no-completion-action",  "amdgpu-no-default-queue",
    "amdgpu-no-dispatch-id",        "amdgpu-no-dispatch-ptr",
    "amdgpu-no-heap-ptr",           "amdgpu-no-hostcall-ptr",
    "amdgpu-no-implicitarg-ptr",    "amdgpu-no-lds-kernel-id",
    "amdgpu-no-multigrid-sync-arg", "amdgpu-no-queue-ptr",
    "amdgpu-no-workitem-id-y",      "amdgpu-no-workitem-id-z"};

/// Fails at what the conversion does not take, before anything is changed.
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
  WalkResult walk = kernel.getBody().walk([&](Operation *op) {
    if (llvm::any_of(op->getOperandTypes(), isBlock) ||
        llvm::any_of(op->getResultTypes(), isBlock)) {
      op->emitOpError("works on a block tensor; greta-tile-distribute must run "
                      "before greta-tile-to-rocdl");
      return WalkResult::interrupt();
    }
    if (auto shuffle = dyn_cast<tile::ShuffleXorOp>(op);
        shuffle && static_cast<unsigned>(shuffle.getMask()) >= row.waveSize) {
      shuffle.emitOpError("has mask ")
          << shuffle.getMask() << "; waves of " << row.name << " have "
          << row.waveSize << " lanes";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Makes the LDS globals of a kernel. An array takes the memory of one that is
/// no longer used: where a barrier stands between the last access to that and
/// the first one to the array.
static LogicalResult createShared(tile::FuncOp kernel, const TargetRow &row,
                                  const LLVMTypeConverter &converter,
                                  Kernel &info) {
  OpBuilder builder(kernel);
  DataLayout layout = DataLayout::closest(kernel);
  Block &body = kernel.getBody().front();
  // Of every array where the body first and last uses it.
  llvm::DenseMap<Operation *, unsigned> place;
  SmallVector<unsigned> barriers;
  for (auto [i, op] : llvm::enumerate(body)) {
    place[&op] = i;
    if (isa<tile::BarrierOp>(op))
      barriers.push_back(i);
  }
  struct Array {
    tile::SharedAllocOp alloc;
    size_t number;
    unsigned first = ~0u, last = 0;
  };
  SmallVector<Array> arrays;
  for (auto alloc : body.getOps<tile::SharedAllocOp>()) {
    Array array{alloc, arrays.size()};
    for (Operation *user : alloc->getUsers()) {
      unsigned at = place.at(body.findAncestorOpInBlock(*user));
      array.first = std::min(array.first, at);
      array.last = std::max(array.last, at);
    }
    arrays.push_back(array);
  }
  llvm::sort(arrays, [](const Array &a, const Array &b) {
    return std::pair(a.first, a.number) < std::pair(b.first, b.number);
  });
  struct Memory {
    LLVM::GlobalOp global;
    uint64_t bytes;
    unsigned last;
  };
  SmallVector<Memory> memories;
  uint64_t total = 0;
  for (Array &array : arrays) {
    tile::SharedType type = array.alloc.getResult().getType();
    uint64_t bytes = type.getSize() * layout.getTypeSize(type.getElementType());
    auto isFree = [&](const Memory &memory) {
      auto barrier = llvm::upper_bound(barriers, memory.last);
      return memory.bytes >= bytes && barrier != barriers.end() &&
             *barrier < array.first;
    };
    if (auto memory = llvm::find_if(memories, isFree);
        memory != memories.end()) {
      info.shared[array.alloc] = memory->global;
      memory->last = array.last;
      continue;
    }
    auto storage =
        LLVM::LLVMArrayType::get(type.getElementType(), type.getSize());
    total = llvm::alignTo(total, 16) + bytes;
    std::string name =
        (kernel.getName() + ".lds" + Twine(memories.size())).str();
    auto global = LLVM::GlobalOp::create(
        builder, array.alloc.getLoc(), storage, /*isConstant=*/false,
        LLVM::Linkage::Internal, name, /*value=*/Attribute(), /*alignment=*/16,
        sharedSpace);
    info.shared[array.alloc] = global;
    memories.push_back({global, bytes, array.last});
  }
  if (total > row.ldsBytes)
    return kernel.emitOpError("needs ")
           << total << " bytes of LDS; a workgroup of " << row.name << " has "
           << row.ldsBytes << ": choose a smaller tile";
  return success();
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
    auto argumentOf = [&](Value pointer) {
      while (auto add = pointer.getDefiningOp<tile::PtrAddOp>())
        pointer = add.getBase();
      return dyn_cast<BlockArgument>(pointer);
    };
    // A pointer that is not plainly an argument may be any of them.
    auto mark = [&](Value pointer, llvm::SmallBitVector &bits) {
      BlockArgument argument = argumentOf(pointer);
      if (argument && argument.getOwner() == &kernel.getBody().front())
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

/// The ptr_add of a load's base if its bytes stay below 2^31: it adds the
/// loop's counter, up to `bound`, times a constant.
static tile::PtrAddOp scalarStep(scf::ForOp loop,
                                 TypedValue<tile::PtrType> base) {
  auto step = base.getDefiningOp<tile::PtrAddOp>();
  if (!step || loop.isDefinedOutsideOfLoop(step.getOffset()))
    return {};
  std::optional<int64_t> bound = getConstantIntValue(loop.getUpperBound());
  Value offset = step.getOffset();
  int64_t factor = base.getType().getElementType().getIntOrFloatBitWidth() / 8;
  if (auto product = offset.getDefiningOp<arith::MulIOp>()) {
    std::optional<int64_t> constant = getConstantIntValue(product.getRhs());
    if (!constant || *constant < 0 || *constant > INT32_MAX)
      return {};
    factor *= *constant;
    offset = product.getLhs();
  }
  // min(counter + something, last block): at most the loop's bound.
  auto wide = offset.getDefiningOp<arith::ExtSIOp>();
  bool clamped = wide && wide.getIn().getDefiningOp<arith::MinSIOp>();
  if (!bound || !clamped || *bound < 0 || *bound * factor > INT32_MAX)
    return {};
  return step;
}

static LogicalResult convertKernel(tile::FuncOp kernel, const TargetRow &row) {
  if (failed(checkKernel(kernel, row)))
    return failure();
  pairElements(kernel, row);
  if (failed(expandMath(kernel)))
    return failure();
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
  if (failed(createShared(kernel, row, converter, info)))
    return failure();

  // A pipelined loop is as long as its author wants it.
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
  kernel.walk([&](scf::ForOp loop) {
    if (!loop->hasAttr(tile::rolledName))
      return;
    loop->setAttr("llvm.loop_annotation", annotation);
    loop.walk([&](Operation *op) {
      if (auto load = dyn_cast<tile::PtrLoadOp>(op))
        info.inPipeline[op] = scalarStep(loop, load.getBase());
      else if (auto load = dyn_cast<tile::PtrLoadSharedOp>(op))
        info.inPipeline[op] = scalarStep(loop, load.getBase());
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
  // Any format that is one (7, 4); RDNA: bit 24 is one, no bounds (2 << 28).
  info.bufferFlags = 7 << 12 | 4 << 15;
  if (row.hasFeature("buffer_oob_select"))
    info.bufferFlags |= 1 << 24 | 2 << 28;

  RewritePatternSet patterns(context);
  patterns.add<FuncLowering>(converter, row.name);
  populateLanePatterns(converter, patterns, info);
  populateLoadPatterns(converter, patterns, info);
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
  llvm::Expected<const TargetRow *> row = lookupTarget(chip);
  if (!row)
    return module.emitError(llvm::toString(row.takeError()));
  if (!(*row)->isHip())
    return module.emitError("target '")
           << chip << "' is no AMD chip; kernels for it are made elsewhere";
  WalkResult walk = module.walk([](tile::LaunchOp launch) {
    launch.emitOpError("refers to a kernel that is to be replaced");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  SmallVector<tile::FuncOp> kernels(module.getOps<tile::FuncOp>());
  for (tile::FuncOp kernel : kernels)
    if (failed(convertKernel(kernel, **row)))
      return failure();
  return success();
}
