//===- TileToROCDLBuffer.cpp - loads from global memory on AMDGPU ---------===//
//
// In a pipelined loop LLVM would hoist the zero extension of a lane's offset
// and be left with 64-bit vector additions. There loads are buffer loads: a
// descriptor of the base, which scalar instructions make, and the 32-bit
// offset. LLVM splits the offset into a register and a constant, neither of
// which may be negative. An offset whose parts may be (`wraps`) is therefore
// hidden behind a mask's selection; without a mask the load is another one.
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

/// A buffer descriptor, and two offsets in bytes: the lane's and the wave's.
struct BufferAddress {
  Value buffer, offset, scalarOffset;
};

constexpr uint32_t unbounded = 0xffffffff;

/// Returns the address of an access. `step` is the last ptr_add of its base, if
/// that becomes the scalar offset. A lane that is masked off gets the offset
/// `beyond`, outside of the records.
template <typename OpT>
BufferAddress bufferAddress(const Kernel &kernel, OpT op,
                            typename OpT::Adaptor adaptor, tile::PtrAddOp step,
                            uint32_t records, uint32_t beyond,
                            ConversionPatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  unsigned bytes = tile::bytesInMemory(op.getBase().getType().getElementType());
  Value base = adaptor.getBase(), offset = adaptor.getOffset();
  Value scalarOffset = constantI32(b, 0);
  if (step) {
    base = rewriter.getRemappedValue(step.getBase());
    scalarOffset = LLVM::TruncOp::create(
        b, b.getI32Type(), rewriter.getRemappedValue(step.getOffset()));
    scalarOffset = LLVM::MulOp::create(b, scalarOffset, constantI32(b, bytes));
  }
  Value stride = LLVM::ConstantOp::create(b, b.getI16Type(), int16_t(0));
  Value size = LLVM::ConstantOp::create(b, b.getI64Type(), int64_t(records));
  Value buffer = ROCDL::MakeBufferRsrcOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), bufferSpace), base, stride,
      size,
      constantI32(b, records == unbounded ? kernel.bufferFlags
                                          : kernel.boundedFlags));
  if (bytes > 1)
    offset =
        LLVM::ShlOp::create(b, offset, constantI32(b, llvm::Log2_32(bytes)),
                            LLVM::IntegerOverflowFlags::nuw);
  if (Value mask = adaptor.getMask())
    offset = LLVM::SelectOp::create(b, mask, offset, constantI32(b, beyond));
  return {buffer, offset, scalarOffset};
}

struct PtrLoadLowering : KernelPattern<tile::PtrLoadOp> {
  using KernelPattern::KernelPattern;

  /// Returns a load as a buffer load; null: buffer loads do not have its type.
  Value bufferLoad(tile::PtrLoadOp op, OpAdaptor adaptor, tile::PtrAddOp step,
                   ConversionPatternRewriter &rewriter) const {
    Type type = op.getResult().getType();
    auto vector = dyn_cast<VectorType>(type);
    unsigned elementBits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    unsigned bits = elementBits * (vector ? vector.getNumElements() : 1);
    if (bits > 128 || !llvm::isPowerOf2_32(bits) || bits < 8 ||
        op.getAlign() * 8 < std::min(bits, 32u))
      return {};
    Type word = rewriter.getIntegerType(std::min(bits, 32u));
    Type loaded = bits > 32 ? Type(VectorType::get(bits / 32, word)) : word;
    uint32_t records = adaptor.getMask() ? 0xfffffff0 : unbounded;
    BufferAddress at =
        bufferAddress(kernel, op, adaptor, step, records, records, rewriter);
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value value = ROCDL::RawPtrBufferLoadOp::create(
        b, loaded, at.buffer, at.offset, at.scalarOffset, constantI32(b, 0),
        ArrayAttr(), ArrayAttr(), ArrayAttr());
    return loaded == type ? value
                          : LLVM::BitcastOp::create(b, type, value).getResult();
  }

  /// Emits a transposed load of global memory. As with those of shared memory,
  /// the instruction for elements of 16 bits takes vectors of any type, and the
  /// instruction for 8 bits takes words.
  static Value transposedLoad(VectorType type, Value address,
                              ImplicitLocOpBuilder &b) {
    if (type.getElementTypeBitWidth() == 16)
      return ROCDL::GlobalLoadTr8_B128::create(b, type, address);
    Value words = ROCDL::GlobalLoadTr8_B64::create(
        b, VectorType::get(2, b.getI32Type()), address);
    return LLVM::BitcastOp::create(b, type, words);
  }

  LogicalResult
  matchAndRewrite(tile::PtrLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto known = kernel.inPipeline.find(op);
    bool isKnown = known != kernel.inPipeline.end();
    if (!op.getTransposed() && (isKnown || op.getMask()))
      if (Value value = bufferLoad(op, adaptor,
                                   isKnown ? known->second : tile::PtrAddOp(),
                                   rewriter)) {
        rewriter.replaceOp(op, value);
        return success();
      }
    Value address = laneAddress(b, adaptor.getBase(), adaptor.getOffset(),
                                op.getBase().getType().getElementType());
    Type type = op.getResult().getType();
    if (op.getTransposed())
      rewriter.replaceOp(op,
                         transposedLoad(cast<VectorType>(type), address, b));
    else
      rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, type, address,
                                                op.getAlign());
    return success();
  }
};

struct PtrLoadSharedLowering : KernelPattern<tile::PtrLoadSharedOp> {
  using KernelPattern::KernelPattern;
  LogicalResult
  matchAndRewrite(tile::PtrLoadSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    unsigned bits =
        op.getBase().getType().getElementType().getIntOrFloatBitWidth();
    BufferAddress at = bufferAddress(
        kernel, op, adaptor, kernel.inPipeline.lookup(op),
        /*records=*/INT32_MAX, /*beyond=*/uint32_t(INT32_MIN), rewriter);
    Value place = sharedAddress(b, adaptor.getArray(), adaptor.getIndex(),
                                op.getArray().getType());
    Value none = constantI32(b, 0);
    Value size = constantI32(b, op.getWidth() * bits / 8);
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
