//===- TileToSPIRVPointers.cpp - pointers and atomics to SPIR-V -----------===//
//
// In: pointer arithmetic, atomics and fences of the lane level. Out: integers
// of 64 bits, OpAtomic* through physical storage buffer pointers, and memory
// barriers.
//
// A kernel with fences is in the Vulkan memory model, where what other
// workgroups are to see has to be made available: all its accesses of global
// memory are non-private. The device's scope is the queue family's there, which
// needs no feature, and all launches of a function are on one queue.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
namespace tile = greta::tile;

LogicalResult KernelEmitter::emitPtrAdd(tile::PtrAddOp op) {
  Type i64 = b.getI64Type();
  int64_t bytes = tile::bytesInMemory(tile::getPointee(op.getBase().getType()));
  Value offset = getScalar(op.getOffset());
  if (!op.getOffset().getType().isInteger(64))
    offset = make<spirv::SConvertOp>(i64, offset);
  offset = same<spirv::IMulOp>(offset, constInt(i64, bytes));
  set(op, same<spirv::IAddOp>(getScalar(op.getBase()), offset));
  return success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

FailureOr<spirv::Scope> KernelEmitter::scopeOf(Operation *op,
                                               tile::MemoryScope scope) {
  switch (scope) {
  case tile::MemoryScope::Workgroup:
    return spirv::Scope::Workgroup;
  case tile::MemoryScope::Device:
    return inVulkanModel() ? spirv::Scope::QueueFamily : spirv::Scope::Device;
  case tile::MemoryScope::System:
    break;
  }
  return op->emitOpError("has the scope 'system'; Vulkan has none beyond the "
                         "device: use 'device'");
}

/// Returns the pointer of a lane's atomic, and its scope.
template <typename OpT>
FailureOr<KernelEmitter::AtomicPlace> KernelEmitter::atomicPlace(OpT op) {
  FailureOr<spirv::Scope> scope = scopeOf(op, op.getScope());
  if (failed(scope))
    return failure();
  Type element = op.getValue().getType();
  if (!element.isF32() && !element.isInteger(32) && !element.isInteger(64))
    return op->emitOpError("works on ")
           << element
           << "; greta-tile-to-spirv has atomics of i32, i64 and f32: "
              "greta-tile-expand-atomics makes them of others";
  if (element.isInteger(64))
    require(spirv::Capability::Int64Atomics);
  int64_t constantBytes = 0;
  Value address = lanePointer(op.getBase(), op.getOffset(),
                              tile::bytesInMemory(element), constantBytes);
  return AtomicPlace{pointerTo(element, address, constantBytes), *scope};
}

template <typename OpT>
static Value atomic(KernelEmitter &e, Value pointer, spirv::Scope scope,
                    Value value) {
  Type type = cast<spirv::PointerType>(pointer.getType()).getPointeeType();
  Value old = e.make<OpT>(type, pointer, scope, spirv::MemorySemantics::None,
                          e.bitcast(type, value));
  return e.bitcast(value.getType(), old);
}

LogicalResult KernelEmitter::emitAtomicRmw(tile::PtrAtomicRmwOp op) {
  FailureOr<AtomicPlace> place = atomicPlace(op);
  if (failed(place))
    return failure();
  if (op.getKind() == tile::AtomicKind::FAdd)
    require(spirv::Capability::AtomicFloat32AddEXT);
  // In the order of AtomicKind.
  static constexpr Value (*table[])(KernelEmitter &, Value, spirv::Scope,
                                    Value) = {
      atomic<spirv::AtomicIAddOp>, atomic<spirv::EXTAtomicFAddOp>,
      atomic<spirv::AtomicAndOp>,  atomic<spirv::AtomicOrOp>,
      atomic<spirv::AtomicXorOp>,  atomic<spirv::AtomicExchangeOp>,
      atomic<spirv::AtomicSMaxOp>, atomic<spirv::AtomicSMinOp>,
      atomic<spirv::AtomicUMaxOp>, atomic<spirv::AtomicUMinOp>};
  set(op, table[int(op.getKind())](*this, place->pointer, place->scope,
                                   getScalar(op.getValue())));
  return success();
}

LogicalResult KernelEmitter::emitAtomicCas(tile::PtrAtomicCasOp op) {
  Type type = op.getValue().getType();
  FailureOr<AtomicPlace> place = atomicPlace(op);
  if (failed(place))
    return failure();
  auto none = spirv::MemorySemantics::None;
  set(op, make<spirv::AtomicCompareExchangeOp>(
              type, place->pointer, place->scope, none, none,
              getScalar(op.getValue()), getScalar(op.getExpected())));
  return success();
}

/// Whether all lanes release and then meet. The barrier makes what they wrote
/// available to the workgroup, and the fence of the lane whose atomic follows
/// makes that available to the device (Vulkan's availability chains); each
/// atomic that releases has such a fence of its own lane. So theirs is left
/// out, for which every wave would wait. On AMD a wave's fence waits for its
/// own stores alone, so LLVM gets them all.
static bool isPassedOn(tile::FenceOp op) {
  auto barrier = dyn_cast_or_null<tile::BarrierOp>(op->getNextNode());
  return op.getOrder() == tile::MemoryOrder::Release && barrier &&
         barrier.getGlobal();
}

LogicalResult KernelEmitter::emitFence(tile::FenceOp op) {
  using Semantics = spirv::MemorySemantics;
  if (isPassedOn(op))
    return success();
  FailureOr<spirv::Scope> scope = scopeOf(op, op.getScope());
  if (failed(scope))
    return failure();
  auto semantics = [&] {
    switch (op.getOrder()) {
    case tile::MemoryOrder::Acquire:
      return Semantics::Acquire | Semantics::MakeVisible;
    case tile::MemoryOrder::Release:
      return Semantics::Release | Semantics::MakeAvailable;
    default:
      return Semantics::AcquireRelease | Semantics::MakeAvailable |
             Semantics::MakeVisible;
    }
  }();
  spirv::MemoryBarrierOp::create(b, *scope,
                                 semantics | Semantics::UniformMemory);
  return success();
}
