//===- TileToROCDLBuffer.cpp - loads from global memory on AMDGPU ---------===//
//
// In a pipelined loop LLVM would hoist the zero extension of a lane's offset
// and be left with 64-bit vector additions. There loads are buffer loads: a
// descriptor of the base, which scalar instructions make, and the 32-bit
// offset. LLVM takes that apart into a register and a constant, neither of
// which may be negative: an offset that wraps on its way is for a mask's
// selection, or another kind of load.
//
// Loads straight to shared memory are buffer loads everywhere. Bytes beyond the
// records of their descriptor, 2^31 - 1 bytes, read as zeros, and masked lanes
// have their offsets there. Loads with a mask do the same with all
// but the last 16 of 2^32 bytes.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

namespace {

/// A buffer, and its two offsets in bytes: the lane's and the wave's.
struct BufferAddress {
  Value buffer, offset, scalarOffset;
};

constexpr uint32_t unbounded = 0xffffffff;

/// The lane's offset, or where it is masked off one that is beyond the records.
Value maskedOffset(Value offset, Value mask, uint32_t records, Location loc,
                   OpBuilder &builder) {
  return mask ? LLVM::SelectOp::create(builder, loc, mask, offset,
                                       constantI32(builder, loc, records))
                    .getResult()
              : offset;
}

/// `step` is the last ptr_add of the base if it becomes the scalar offset.
BufferAddress bufferAddress(const Kernel &kernel, tile::PtrType pointer,
                            Value base, Value offset, tile::PtrAddOp step,
                            uint32_t records, Location loc,
                            ConversionPatternRewriter &builder) {
  unsigned bytes = tile::bytesInMemory(pointer.getElementType());
  Value scalarOffset = constantI32(builder, loc, 0);
  if (step) {
    base = builder.getRemappedValue(step.getBase());
    scalarOffset =
        LLVM::TruncOp::create(builder, loc, builder.getI32Type(),
                              builder.getRemappedValue(step.getOffset()));
    scalarOffset = LLVM::MulOp::create(builder, loc, scalarOffset,
                                       constantI32(builder, loc, bytes));
  }
  Value stride =
      LLVM::ConstantOp::create(builder, loc, builder.getI16Type(), int16_t(0));
  Value size = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                        int64_t(records));
  Value buffer = ROCDL::MakeBufferRsrcOp::create(
      builder, loc,
      LLVM::LLVMPointerType::get(builder.getContext(), bufferSpace), base,
      stride, size,
      constantI32(builder, loc,
                  records == unbounded ? kernel.bufferFlags
                                       : kernel.boundedFlags));
  if (bytes > 1)
    offset = LLVM::ShlOp::create(
        builder, loc, offset, constantI32(builder, loc, llvm::Log2_32(bytes)),
        LLVM::IntegerOverflowFlags::nuw);
  return {buffer, offset, scalarOffset};
}

struct PtrLoadLowering : KernelPattern<tile::PtrLoadOp> {
  using KernelPattern::KernelPattern;

  /// The load as a buffer load; null where its type is none of theirs.
  Value bufferLoad(tile::PtrLoadOp op, OpAdaptor adaptor, tile::PtrAddOp step,
                   ConversionPatternRewriter &builder) const {
    Location loc = op.getLoc();
    Type type = op.getResult().getType();
    auto vector = dyn_cast<VectorType>(type);
    unsigned elementBits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    unsigned bits = elementBits * (vector ? vector.getNumElements() : 1);
    if (bits > 128 || !llvm::isPowerOf2_32(bits) || bits < 8 ||
        op.getAlign() * 8 < std::min(bits, 32u))
      return {};
    Type word = builder.getIntegerType(std::min(bits, 32u));
    Type loaded = bits > 32 ? Type(VectorType::get(bits / 32, word)) : word;
    uint32_t records = adaptor.getMask() ? 0xfffffff0 : unbounded;
    BufferAddress at =
        bufferAddress(kernel, op.getBase().getType(), adaptor.getBase(),
                      adaptor.getOffset(), step, records, loc, builder);
    at.offset =
        maskedOffset(at.offset, adaptor.getMask(), records, loc, builder);
    Value value = ROCDL::RawPtrBufferLoadOp::create(
        builder, loc, loaded, at.buffer, at.offset, at.scalarOffset,
        constantI32(builder, loc, 0), ArrayAttr(), ArrayAttr(), ArrayAttr());
    return loaded == type
               ? value
               : LLVM::BitcastOp::create(builder, loc, type, value).getResult();
  }

  /// As for those of shared memory, the instruction for elements of 16 bits
  /// takes vectors of any, and that for 8 bits words.
  static Value transposedLoad(tile::PtrLoadOp op, OpAdaptor adaptor,
                              ConversionPatternRewriter &builder) {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getResult().getType());
    Value address =
        laneAddress(builder, loc, adaptor.getBase(), adaptor.getOffset(),
                    op.getBase().getType().getElementType());
    if (type.getElementTypeBitWidth() == 16)
      return ROCDL::GlobalLoadTr8_B128::create(builder, loc, type, address);
    Value words = ROCDL::GlobalLoadTr8_B64::create(
        builder, loc, VectorType::get(2, builder.getI32Type()), address);
    return LLVM::BitcastOp::create(builder, loc, type, words);
  }

  LogicalResult
  matchAndRewrite(tile::PtrLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getTransposed()) {
      rewriter.replaceOp(op, transposedLoad(op, adaptor, rewriter));
      return success();
    }
    auto known = kernel.inPipeline.find(op);
    if (known != kernel.inPipeline.end() || op.getMask())
      if (Value value =
              bufferLoad(op, adaptor,
                         known == kernel.inPipeline.end() ? tile::PtrAddOp()
                                                          : known->second,
                         rewriter)) {
        rewriter.replaceOp(op, value);
        return success();
      }
    Value address = laneAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                adaptor.getOffset(),
                                op.getBase().getType().getElementType());
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getResult().getType(),
                                              address, op.getAlign());
    return success();
  }
};

struct PtrLoadSharedLowering : KernelPattern<tile::PtrLoadSharedOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::PtrLoadSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    unsigned bits =
        op.getBase().getType().getElementType().getIntOrFloatBitWidth();
    BufferAddress at = bufferAddress(
        kernel, op.getBase().getType(), adaptor.getBase(), adaptor.getOffset(),
        kernel.inPipeline.lookup(op), /*records=*/INT32_MAX, loc, rewriter);
    at.offset = maskedOffset(at.offset, adaptor.getMask(), uint32_t(INT32_MIN),
                             loc, rewriter);
    Value place = sharedAddress(rewriter, loc, adaptor.getArray(),
                                adaptor.getIndex(), op.getArray().getType());
    Value none = constantI32(rewriter, loc, 0);
    Value size = constantI32(rewriter, loc, op.getWidth() * bits / 8);
    rewriter.replaceOpWithNewOp<ROCDL::RawPtrBufferLoadLdsOp>(
        op, at.buffer, place, size, at.offset, at.scalarOffset, none, none,
        rewriter.getArrayAttr({kernel.direct}),
        rewriter.getArrayAttr({kernel.indirect}), ArrayAttr());
    return success();
  }
};

} // namespace

void greta::rocdl::populateLoadPatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Kernel &kernel) {
  patterns.add<PtrLoadLowering, PtrLoadSharedLowering>(converter, kernel);
}
