//===- TileToROCDLOps.cpp - ids, memory and barriers on AMDGPU ------------===//
//
// Addresses. A kernel's pointer is uniform: it lives in scalar registers, and
// so does what ptr_add makes of it. A lane's offset is 32 bits wide, counts
// elements and is not negative; its byte offset stays below 2^32. The access
// is formed as
//
//   base + zext(offset * size)
//
// which is what the "saddr" form of global loads and stores takes: a scalar
// base, one 32-bit vector register, and the constant part of the offset as an
// immediate. The multiplication carries nuw, without which the constant part
// could not be moved out of the zero extension.
//
// In pipelined loops loads take other forms: TileToROCDLBuffer.cpp.
//
// Barriers. Only shared memory is ordered (the memory model annotation
// "amdgpu-synchronize-as:local"), so loads from global memory stay in flight
// across a barrier. LLVM would have a release by the workgroup and reads of
// shared memory wait for all loads straight to it. A barrier that leaves some
// in flight waits with an s_waitcnt of its own, and between releases by the
// wave, which cost nothing; and these loads are no alias (Kernel::direct) of
// what is read.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

Value greta::rocdl::constantI32(OpBuilder &builder, Location loc,
                                int32_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value);
}

Value greta::rocdl::laneAddress(OpBuilder &builder, Location loc, Value base,
                                Value offset, Type element) {
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  if (bytes > 1)
    offset = LLVM::ShlOp::create(
        builder, loc, offset, constantI32(builder, loc, llvm::Log2_32(bytes)),
        LLVM::IntegerOverflowFlags::nuw);
  Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), offset);
  return LLVM::GEPOp::create(
      builder, loc, base.getType(), builder.getI8Type(), base, wide,
      LLVM::GEPNoWrapFlags::nusw | LLVM::GEPNoWrapFlags::nuw);
}

Value greta::rocdl::sharedAddress(OpBuilder &builder, Location loc, Value array,
                                  Value index, tile::SharedType type) {
  Type storage =
      LLVM::LLVMArrayType::get(type.getElementType(), type.getSize());
  return LLVM::GEPOp::create(builder, loc, array.getType(), storage, array,
                             ArrayRef<LLVM::GEPArg>{0, index},
                             LLVM::GEPNoWrapFlags::inbounds |
                                 LLVM::GEPNoWrapFlags::nuw);
}

namespace {

/// Index of the lane in the workgroup; workgroups have one axis.
Value threadId(OpBuilder &builder, Location loc, int32_t block) {
  auto range = LLVM::ConstantRangeAttr::get(builder.getContext(), APInt(32, 0),
                                            APInt(32, block));
  return ROCDL::ThreadIdXOp::create(builder, loc, builder.getI32Type(), range);
}

struct ProgramIdLowering : ConvertOpToLLVMPattern<tile::ProgramIdOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::ProgramIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = rewriter.getI32Type();
    switch (op.getAxis()) {
    case 0:
      rewriter.replaceOpWithNewOp<ROCDL::BlockIdXOp>(op, type);
      return success();
    case 1:
      rewriter.replaceOpWithNewOp<ROCDL::BlockIdYOp>(op, type);
      return success();
    default:
      rewriter.replaceOpWithNewOp<ROCDL::BlockIdZOp>(op, type);
      return success();
    }
  }
};

struct LaneIdLowering : KernelPattern<tile::LaneIdOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::LaneIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value id = threadId(rewriter, loc, kernel.blockSize);
    if (kernel.blockSize != kernel.waveSize)
      id = LLVM::AndOp::create(rewriter, loc, id,
                               constantI32(rewriter, loc, kernel.waveSize - 1));
    rewriter.replaceOp(op, id);
    return success();
  }
};

struct WaveIdLowering : KernelPattern<tile::WaveIdOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::WaveIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (kernel.blockSize == kernel.waveSize) {
      rewriter.replaceOp(op, constantI32(rewriter, loc, 0));
      return success();
    }
    // The backend does not see that the quotient is the same in all lanes of
    // a wave; readfirstlane says so, and moves it to a scalar register.
    Value id = threadId(rewriter, loc, kernel.blockSize);
    id = LLVM::LShrOp::create(
        rewriter, loc, id,
        constantI32(rewriter, loc, llvm::Log2_32(kernel.waveSize)));
    rewriter.replaceOpWithNewOp<ROCDL::ReadfirstlaneOp>(
        op, rewriter.getI32Type(), id);
    return success();
  }
};

struct PtrStoreLowering : ConvertOpToLLVMPattern<tile::PtrStoreOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = laneAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                adaptor.getOffset(),
                                op.getBase().getType().getElementType());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, adaptor.getValue(), address,
                                               op.getAlign());
    return success();
  }
};

struct SharedAllocLowering : KernelPattern<tile::SharedAllocOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::SharedAllocOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto [global, offset] = kernel.shared.at(op);
    Value begin = LLVM::AddressOfOp::create(rewriter, op.getLoc(), global);
    if (offset)
      begin = LLVM::GEPOp::create(
          rewriter, op.getLoc(), begin.getType(), rewriter.getI8Type(), begin,
          ArrayRef<LLVM::GEPArg>{int32_t(offset)},
          LLVM::GEPNoWrapFlags::inbounds | LLVM::GEPNoWrapFlags::nuw);
    rewriter.replaceOp(op, begin);
    return success();
  }
};

struct SharedStageLowering : ConvertOpToLLVMPattern<tile::SharedStageOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::SharedStageOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getArray());
    return success();
  }
};

struct SharedLoadLowering : KernelPattern<tile::SharedLoadOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::SharedLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = sharedAddress(rewriter, op.getLoc(), adaptor.getArray(),
                                  adaptor.getIndex(), op.getArray().getType());
    auto load = LLVM::LoadOp::create(rewriter, op.getLoc(),
                                     op.getResult().getType(), address);
    kernel.setUndirect(load);
    rewriter.replaceOp(op, load);
    return success();
  }
};

struct SharedStoreLowering : KernelPattern<tile::SharedStoreOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::SharedStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = sharedAddress(rewriter, op.getLoc(), adaptor.getArray(),
                                  adaptor.getIndex(), op.getArray().getType());
    kernel.setUndirect(LLVM::StoreOp::create(rewriter, op.getLoc(),
                                             adaptor.getValue(), address));
    rewriter.eraseOp(op);
    return success();
  }
};

struct SharedAddLowering : ConvertOpToLLVMPattern<tile::SharedAddOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::SharedAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = sharedAddress(rewriter, op.getLoc(), adaptor.getArray(),
                                  adaptor.getIndex(), op.getArray().getType());
    LLVM::AtomicRMWOp::create(rewriter, op.getLoc(), LLVM::AtomicBinOp::add,
                              address, adaptor.getValue(),
                              LLVM::AtomicOrdering::monotonic, "workgroup");
    rewriter.eraseOp(op);
    return success();
  }
};

struct BarrierLowering : ConvertOpToLLVMPattern<tile::BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Attribute localOnly = LLVM::MMRATagAttr::get(
        rewriter.getContext(), "amdgpu-synchronize-as", "local");
    std::optional<uint32_t> inFlight = op.getInFlight();
    auto fence = [&](LLVM::AtomicOrdering ordering) {
      auto fenceOp = LLVM::FenceOp::create(
          rewriter, loc, ordering, inFlight ? "wavefront" : "workgroup");
      fenceOp->setDiscardableAttr(LLVM::LLVMDialect::getMmraAttrName(),
                                  localOnly);
    };
    fence(LLVM::AtomicOrdering::release);
    if (inFlight) {
      // gfx9: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8.
      uint32_t count = std::min<uint32_t>(*inFlight, 63);
      ROCDL::SWaitcntOp::create(rewriter, loc,
                                0x70 | (count & 15) | (count >> 4) << 14);
    }
    ROCDL::SBarrierOp::create(rewriter, loc);
    fence(LLVM::AtomicOrdering::acquire);
    rewriter.eraseOp(op);
    return success();
  }
};

/// MFMA takes three immediates that permute blocks (ISA guides of CDNA, "MFMA
/// broadcast"): none here. Where the instruction is older than LLVM's bfloat,
/// it takes 16-bit integers.
struct ScheduleGroupLowering : ConvertOpToLLVMPattern<tile::ScheduleGroupOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::ScheduleGroupOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // Masks of llvm.amdgcn.sched.group.barrier, AMDGPUUsage.rst.
    auto mask = [&]() -> uint32_t {
      switch (op.getKind()) {
      case tile::ScheduleKind::Mma:
        return 0x8;
      case tile::ScheduleKind::SharedLoad:
        return 0x100;
      case tile::ScheduleKind::SharedStore:
        return 0x200;
      case tile::ScheduleKind::Load:
        return 0x20;
      case tile::ScheduleKind::Compute:
        return 0x2;
      }
      llvm_unreachable("a kind without a mask");
    };
    rewriter.replaceOpWithNewOp<ROCDL::SchedGroupBarrier>(op, mask(),
                                                          op.getCount(), 0);
    return success();
  }
};

struct MmaLowering : ConvertOpToLLVMPattern<tile::MmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::MmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    StringRef name = op.getIntrinsic();
    bool takesBits = name.contains("bf16.1k") ||
                     (name.starts_with("wmma") && name.contains("bf16"));
    bool isWmma = name.starts_with("wmma");
    auto operand = [&](Value value) -> Value {
      auto type = cast<VectorType>(value.getType());
      Type to;
      // Bytes travel in words; MFMA takes eight of them as one integer.
      if (type.getElementTypeBitWidth() == 8) {
        unsigned bits = type.getNumElements() * 8;
        to = bits == 32 ? Type(rewriter.getI32Type())
             : bits == 64 && !isWmma
                 ? Type(rewriter.getI64Type())
                 : VectorType::get(bits / 32, rewriter.getI32Type());
      } else if (type.getNumElements() == 1) {
        return LLVM::ExtractElementOp::create(rewriter, loc, value,
                                              constantI32(rewriter, loc, 0));
      } else if (takesBits && type.getElementType().isBF16()) {
        to = VectorType::get(type.getShape(), rewriter.getI16Type());
      }
      return to ? LLVM::BitcastOp::create(rewriter, loc, to, value).getResult()
                : value;
    };
    SmallVector<Value> operands = {operand(adaptor.getA()),
                                   operand(adaptor.getB()), adaptor.getAcc()};
    auto flag = [&](bool value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI1Type(),
                                      value);
    };
    if (name.starts_with("mfma"))
      operands.append(3, constantI32(rewriter, loc, 0));
    else if (name.contains("iu8")) // signed A, signed B, no clamp
      operands = {flag(true),  operands[0], flag(true),
                  operands[1], operands[2], flag(false)};
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, adaptor.getAcc().getType(),
        rewriter.getStringAttr("llvm.amdgcn." + name), operands);
    return success();
  }
};

/// Weights e and e+4 of a word come out of it together, as f16 with the bits of
/// the exponent put in front: 64 + w / 16, or 4 + w / 16 for the upper of two.
/// Differences to the zero are exact, products are summed in f32.
struct DotPackedLowering : ConvertOpToLLVMPattern<tile::DotPackedOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::DotPackedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    auto pair = VectorType::get(2, b.getF16Type());
    auto bits = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, i32, b.getI32IntegerAttr(value));
    };
    auto withExponent = [&](Value x, int64_t exponent) -> Value {
      return LLVM::BitcastOp::create(b, pair,
                                     LLVM::OrOp::create(b, x, bits(exponent)));
    };
    Value zeros = LLVM::MulOp::create(b, adaptor.getZero(), bits(0x00010001));
    Value bias[2] = {
        withExponent(zeros, 0x54005400),
        withExponent(LLVM::ShlOp::create(b, zeros, bits(4)), 0x44004400)};
    Value sum = LLVM::ConstantOp::create(b, f32, b.getF32FloatAttr(0.0));
    Value no = LLVM::ConstantOp::create(b, b.getI1Type(), b.getBoolAttr(false));
    int64_t count = op.getWords().getType().getNumElements();
    for (int64_t i = 0; i < count; ++i) {
      Value word =
          LLVM::ExtractElementOp::create(b, adaptor.getWords(), bits(i));
      for (int32_t e = 0; e < 4; ++e) {
        if (e == 2)
          word = LLVM::LShrOp::create(b, word, bits(8));
        Value weights = LLVM::FSubOp::create(
            b,
            withExponent(LLVM::AndOp::create(
                             b, word, bits(e % 2 ? 0x00f000f0 : 0x000f000f)),
                         e % 2 ? 0x44004400 : 0x54005400),
            bias[e % 2]);
        int32_t at = 8 * i + e;
        Value x = LLVM::ShuffleVectorOp::create(
            b, adaptor.getA(), adaptor.getA(), ArrayRef<int32_t>{at, at + 4});
        sum = LLVM::CallIntrinsicOp::create(
                  b, f32, b.getStringAttr("llvm.amdgcn.fdot2"),
                  ValueRange{weights, x, sum, no})
                  .getResult(0);
      }
    }
    Value sixteen = LLVM::ConstantOp::create(b, f32, b.getF32FloatAttr(16.0));
    rewriter.replaceOpWithNewOp<LLVM::FMulOp>(op, sum, sixteen);
    return success();
  }
};

/// Two neighbours at a time: their byte goes into both halves, 1024 + w below
/// and 1024 + 16 w above by the exponent's bits. What a fused multiply-add
/// takes off is exact, and the product with the scale is rounded once.
struct DequantWordLowering : ConvertOpToLLVMPattern<tile::DequantWordOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::DequantWordOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type i32 = b.getI32Type();
    auto pair = VectorType::get(2, b.getF16Type());
    auto bits = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, i32, b.getI32IntegerAttr(value));
    };
    auto halves = [&](float low, float high) -> Value {
      Attribute elements[] = {b.getF16FloatAttr(low), b.getF16FloatAttr(high)};
      return LLVM::ConstantOp::create(
          b, pair, DenseElementsAttr::get(pair, ArrayRef<Attribute>(elements)));
    };
    auto both = [&](Value half) -> Value {
      Value vector = LLVM::PoisonOp::create(b, pair);
      for (int64_t i : {0, 1})
        vector = LLVM::InsertElementOp::create(b, vector, half, bits(i));
      return vector;
    };
    // -(1024 + zero) and -(64 + zero).
    Value zero = LLVM::SIToFPOp::create(
        b, b.getF16Type(),
        LLVM::TruncOp::create(b, b.getI16Type(), adaptor.getZero()));
    Value bias = LLVM::FSubOp::create(b, halves(-1024, -64), both(zero));
    Value scale = both(adaptor.getScale());
    Value pairs[4];
    for (int64_t i = 0; i < 4; ++i) {
      Value word = adaptor.getWord();
      Value spread =
          LLVM::CallIntrinsicOp::create(
              b, i32, b.getStringAttr("llvm.amdgcn.perm"),
              ValueRange{word, word, bits(0x0c000c00 + i * 0x00010001)})
              .getResult(0);
      spread = LLVM::OrOp::create(
          b, LLVM::AndOp::create(b, spread, bits(0x00f0000f)),
          bits(0x64006400));
      Value raised = LLVM::BitcastOp::create(b, pair, spread);
      Value weight = LLVM::FMAOp::create(b, raised, halves(1, 0.0625), bias);
      pairs[i] = LLVM::FMulOp::create(b, weight, scale);
    }
    Value low = LLVM::ShuffleVectorOp::create(b, pairs[0], pairs[1],
                                              ArrayRef<int32_t>{0, 1, 2, 3});
    Value high = LLVM::ShuffleVectorOp::create(b, pairs[2], pairs[3],
                                               ArrayRef<int32_t>{0, 1, 2, 3});
    rewriter.replaceOpWithNewOp<LLVM::ShuffleVectorOp>(
        op, low, high, ArrayRef<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
    return success();
  }
};

struct ReturnLowering : ConvertOpToLLVMPattern<tile::ReturnOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

} // namespace

void greta::rocdl::populateLanePatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Kernel &kernel) {
  patterns.add<DotPackedLowering, DequantWordLowering, MmaLowering,
               ProgramIdLowering, PtrStoreLowering, ScheduleGroupLowering,
               SharedAddLowering, SharedStageLowering, BarrierLowering,
               ReturnLowering>(converter);
  patterns.add<LaneIdLowering, WaveIdLowering, SharedAllocLowering,
               SharedLoadLowering, SharedStoreLowering>(converter, kernel);
}
