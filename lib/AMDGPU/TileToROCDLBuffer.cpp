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
                            LoweringBuilder &b) {
  Type element = op.getBase().getType().getElementType();
  Value base = adaptor.getBase();
  Value scalarOffset = constantI32(b, 0);
  if (step) {
    base = b.rewriter.getRemappedValue(step.getBase());
    scalarOffset = LLVM::TruncOp::create(
        b, b.getI32Type(), b.rewriter.getRemappedValue(step.getOffset()));
    scalarOffset = LLVM::MulOp::create(
        b, scalarOffset, constantI32(b, tile::bytesInMemory(element)));
  }
  Value stride = LLVM::ConstantOp::create(b, b.getI16Type(), int16_t(0));
  Value size = LLVM::ConstantOp::create(b, b.getI64Type(), int64_t(records));
  Value buffer = ROCDL::MakeBufferRsrcOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), bufferSpace), base, stride,
      size,
      constantI32(b, records == unbounded ? kernel.bufferFlags
                                          : kernel.boundedFlags));
  Value offset = byteOffset(b, adaptor.getOffset(), element);
  if (Value mask = adaptor.getMask())
    offset = LLVM::SelectOp::create(b, mask, offset, constantI32(b, beyond));
  return {buffer, offset, scalarOffset};
}

/// Returns a load as a buffer load; null: buffer loads do not have its type.
Value bufferLoad(const Kernel &kernel, tile::PtrLoadOp op,
                 tile::PtrLoadOp::Adaptor adaptor, tile::PtrAddOp step,
                 LoweringBuilder &b) {
  Type type = op.getResult().getType();
  auto vector = dyn_cast<VectorType>(type);
  unsigned elementBits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  unsigned bits = elementBits * (vector ? vector.getNumElements() : 1);
  if (bits > 128 || !llvm::isPowerOf2_32(bits) || bits < 8 ||
      op.getAlign() * 8 < std::min(bits, 32u))
    return {};
  Type word = b.getIntegerType(std::min(bits, 32u));
  Type loaded = bits > 32 ? Type(VectorType::get(bits / 32, word)) : word;
  uint32_t records = adaptor.getMask() ? 0xfffffff0 : unbounded;
  BufferAddress at =
      bufferAddress(kernel, op, adaptor, step, records, records, b);
  Value value = ROCDL::RawPtrBufferLoadOp::create(
      b, loaded, at.buffer, at.offset, at.scalarOffset, constantI32(b, 0),
      ArrayAttr(), ArrayAttr(), ArrayAttr());
  return loaded == type ? value
                        : LLVM::BitcastOp::create(b, type, value).getResult();
}

} // namespace

void greta::rocdl::populateLoadPatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Kernel &kernel) {
  Lowerings lowerings(converter, patterns);
  lowerings.add<tile::PtrLoadOp>([&](auto op, auto x, auto &b) -> Value {
    auto known = kernel.inPipeline.find(op);
    bool isKnown = known != kernel.inPipeline.end();
    if (!op.getTransposed() && (isKnown || op.getMask()))
      if (Value value = bufferLoad(
              kernel, op, x, isKnown ? known->second : tile::PtrAddOp(), b))
        return value;
    Value address = laneAddress(b, x.getBase(), x.getOffset(),
                                op.getBase().getType().getElementType());
    Type type = op.getResult().getType();
    if (op.getTransposed())
      return loadTransposed<ROCDL::GlobalLoadTr8_B128,
                            ROCDL::GlobalLoadTr8_B64>(b, type, address,
                                                      [](auto) {});
    return LLVM::LoadOp::create(b, type, address, op.getAlign());
  });
  lowerings.add<tile::PtrLoadSharedOp>([&](auto op, auto x, auto &b) {
    Type element = op.getBase().getType().getElementType();
    BufferAddress at =
        bufferAddress(kernel, op, x, kernel.inPipeline.lookup(op),
                      /*records=*/INT32_MAX, /*beyond=*/uint32_t(INT32_MIN), b);
    Value place =
        sharedAddress(b, x.getArray(), x.getIndex(), op.getArray().getType());
    Value none = constantI32(b, 0);
    Value size =
        constantI32(b, op.getWidth() * element.getIntOrFloatBitWidth() / 8);
    ROCDL::RawPtrBufferLoadLdsOp::create(
        b, at.buffer, place, size, at.offset, at.scalarOffset, none, none,
        b.getArrayAttr({kernel.direct}), b.getArrayAttr({kernel.indirect}),
        ArrayAttr());
    return Value();
  });
}
