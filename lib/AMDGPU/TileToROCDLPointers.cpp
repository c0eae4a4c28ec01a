//===- TileToROCDLPointers.cpp - pointers and atomics on AMDGPU -----------===//
//
// In: pointer arithmetic, atomics and fences of the lane level. Out: LLVM's.
//
// A package's buffers are in the device's coarse-grained memory. Atomics of
// scopes within the device say so, because otherwise LLVM makes a loop of a
// floating-point addition, which a bus may lack. They also allow instructions
// that flush subnormal numbers, as some chips have
// (docs/internals/numerics.md).
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

static StringRef syncScope(tile::MemoryScope scope) {
  static constexpr StringLiteral names[] = {"workgroup", "agent", ""};
  return names[int(scope)];
}

static LLVM::AtomicBinOp binaryOp(tile::AtomicKind kind) {
  using Op = LLVM::AtomicBinOp;
  // In the order of AtomicKind.
  static constexpr Op ops[] = {Op::add,  Op::fadd, Op::_and, Op::_or,
                               Op::_xor, Op::xchg, Op::max,  Op::min,
                               Op::umax, Op::umin};
  return ops[int(kind)];
}

void greta::rocdl::populatePointerPatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  Lowerings lowerings(converter, patterns);
  lowerings.add<tile::PtrAddOp>([](auto op, auto x, auto &b) -> Value {
    // Not `inbounds`: a part of an address may point beside its buffer, but
    // none leaves the address space.
    return LLVM::GEPOp::create(
        b, x.getBase().getType(), tile::getPointee(op.getBase().getType()),
        x.getBase(), x.getOffset(), LLVM::GEPNoWrapFlags::nusw);
  });
  lowerings.add<tile::PtrToIntOp>([](auto, auto x, auto &b) -> Value {
    return LLVM::PtrToIntOp::create(b, b.getI64Type(), x.getPointers());
  });
  lowerings.add<tile::IntToPtrOp>([&](auto op, auto x, auto &b) -> Value {
    return LLVM::IntToPtrOp::create(
        b, converter.convertType(op.getResult().getType()), x.getAddresses());
  });
  lowerings.add<tile::PtrCastOp>(
      [](auto, auto x, auto &) { return x.getPointers(); });
  lowerings.add<tile::PtrAtomicRmwOp>([](auto op, auto x, auto &b) -> Value {
    Value address =
        laneAddress(b, x.getBase(), x.getOffset(), op.getValue().getType());
    auto atomic = LLVM::AtomicRMWOp::create(
        b, binaryOp(op.getKind()), address, x.getValue(),
        LLVM::AtomicOrdering::monotonic, syncScope(op.getScope()));
    if (op.getScope() != tile::MemoryScope::System)
      for (StringRef promise :
           {"rocdl.no_remote_memory", "rocdl.no_fine_grained_memory",
            "rocdl.ignore_denormal_mode"})
        atomic->setDiscardableAttr(promise, b.getUnitAttr());
    return atomic;
  });
  lowerings.add<tile::PtrAtomicCasOp>([](auto op, auto x, auto &b) -> Value {
    Value address =
        laneAddress(b, x.getBase(), x.getOffset(), op.getValue().getType());
    Value both = LLVM::AtomicCmpXchgOp::create(
        b, address, x.getExpected(), x.getValue(),
        LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic,
        syncScope(op.getScope()));
    return LLVM::ExtractValueOp::create(b, both, 0);
  });
  lowerings.add<tile::FenceOp>([](auto op, auto, auto &b) -> Value {
    auto order = op.getOrder() == tile::MemoryOrder::Acquire
                     ? LLVM::AtomicOrdering::acquire
                 : op.getOrder() == tile::MemoryOrder::Release
                     ? LLVM::AtomicOrdering::release
                     : LLVM::AtomicOrdering::acq_rel;
    auto fence = LLVM::FenceOp::create(b, order, syncScope(op.getScope()));
    fence->setDiscardableAttr(LLVM::LLVMDialect::getMmraAttrName(),
                              LLVM::MMRATagAttr::get(b.getContext(),
                                                     "amdgpu-synchronize-as",
                                                     "global"));
    return {};
  });
}
