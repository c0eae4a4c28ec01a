//===- TileToROCDLPointers.cpp - pointers and atomics on AMDGPU -----------===//
//
// In: pointer arithmetic, atomics and fences of the lane level. Out: LLVM's.
//
// The memory of a package's buffers is on the device and coarse-grained, which
// the atomics of scopes within the device say: without that LLVM makes loops of
// floating-point additions, since the bus may not have them. The instructions
// of some chips flush subnormal numbers, which they are allowed to
// (docs/numerics.md).
//
// Fences order global memory alone; shared memory is the barriers' business.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

namespace {

struct PtrAddLowering : ConvertOpToLLVMPattern<tile::PtrAddOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // Not `inbounds`: a part of an address may point beside its buffer, but
    // none leaves the address space.
    Value base = adaptor.getBase();
    rewriter.replaceOpWithNewOp<LLVM::GEPOp>(
        op, base.getType(), tile::getPointee(op.getBase().getType()), base,
        adaptor.getOffset(), LLVM::GEPNoWrapFlags::nusw);
    return success();
  }
};

struct PtrToIntLowering : ConvertOpToLLVMPattern<tile::PtrToIntOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrToIntOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::PtrToIntOp>(op, rewriter.getI64Type(),
                                                  adaptor.getPointers());
    return success();
  }
};

struct IntToPtrLowering : ConvertOpToLLVMPattern<tile::IntToPtrOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::IntToPtrOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::IntToPtrOp>(
        op, getTypeConverter()->convertType(op.getResult().getType()),
        adaptor.getAddresses());
    return success();
  }
};

struct PtrCastLowering : ConvertOpToLLVMPattern<tile::PtrCastOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getPointers());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

StringRef syncScope(tile::MemoryScope scope) {
  switch (scope) {
  case tile::MemoryScope::Workgroup:
    return "workgroup";
  case tile::MemoryScope::Device:
    return "agent";
  case tile::MemoryScope::System:
    return "";
  }
  llvm_unreachable("a scope without a name");
}

LLVM::AtomicBinOp binaryOp(tile::AtomicKind kind) {
  using Kind = tile::AtomicKind;
  switch (kind) {
  case Kind::Add:
    return LLVM::AtomicBinOp::add;
  case Kind::FAdd:
    return LLVM::AtomicBinOp::fadd;
  case Kind::And:
    return LLVM::AtomicBinOp::_and;
  case Kind::Or:
    return LLVM::AtomicBinOp::_or;
  case Kind::Xor:
    return LLVM::AtomicBinOp::_xor;
  case Kind::Xchg:
    return LLVM::AtomicBinOp::xchg;
  case Kind::Max:
    return LLVM::AtomicBinOp::max;
  case Kind::Min:
    return LLVM::AtomicBinOp::min;
  case Kind::UMax:
    return LLVM::AtomicBinOp::umax;
  case Kind::UMin:
    return LLVM::AtomicBinOp::umin;
  }
  llvm_unreachable("a kind without an operation");
}

struct PtrAtomicRmwLowering : ConvertOpToLLVMPattern<tile::PtrAtomicRmwOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrAtomicRmwOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = laneAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                adaptor.getOffset(), op.getValue().getType());
    auto atomic = LLVM::AtomicRMWOp::create(
        rewriter, op.getLoc(), binaryOp(op.getKind()), address,
        adaptor.getValue(), LLVM::AtomicOrdering::monotonic,
        syncScope(op.getScope()));
    if (op.getScope() != tile::MemoryScope::System)
      for (StringRef promise :
           {"rocdl.no_remote_memory", "rocdl.no_fine_grained_memory",
            "rocdl.ignore_denormal_mode"})
        atomic->setDiscardableAttr(promise, rewriter.getUnitAttr());
    rewriter.replaceOp(op, atomic);
    return success();
  }
};

struct PtrAtomicCasLowering : ConvertOpToLLVMPattern<tile::PtrAtomicCasOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::PtrAtomicCasOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = laneAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                adaptor.getOffset(), op.getValue().getType());
    Value both = LLVM::AtomicCmpXchgOp::create(
        rewriter, op.getLoc(), address, adaptor.getExpected(),
        adaptor.getValue(), LLVM::AtomicOrdering::monotonic,
        LLVM::AtomicOrdering::monotonic, syncScope(op.getScope()));
    rewriter.replaceOpWithNewOp<LLVM::ExtractValueOp>(op, both, 0);
    return success();
  }
};

struct FenceLowering : ConvertOpToLLVMPattern<tile::FenceOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(tile::FenceOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto order = op.getOrder() == tile::MemoryOrder::Acquire
                     ? LLVM::AtomicOrdering::acquire
                 : op.getOrder() == tile::MemoryOrder::Release
                     ? LLVM::AtomicOrdering::release
                     : LLVM::AtomicOrdering::acq_rel;
    auto fence = rewriter.replaceOpWithNewOp<LLVM::FenceOp>(
        op, order, syncScope(op.getScope()));
    fence->setDiscardableAttr(LLVM::LLVMDialect::getMmraAttrName(),
                              LLVM::MMRATagAttr::get(rewriter.getContext(),
                                                     "amdgpu-synchronize-as",
                                                     "global"));
    return success();
  }
};

} // namespace

void greta::rocdl::populatePointerPatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns
      .add<PtrAddLowering, PtrToIntLowering, IntToPtrLowering, PtrCastLowering,
           PtrAtomicRmwLowering, PtrAtomicCasLowering, FenceLowering>(
          converter);
}
