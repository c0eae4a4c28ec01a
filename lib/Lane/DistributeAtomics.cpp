//===- DistributeAtomics.cpp - atomics of the workgroup's program ---------===//
//
// In: atomic_rmw and atomic_cas. Out: one lane's atomics, which order nothing,
// and fences around them. An order is the whole workgroup's, so that a release
// is a fence of every lane and a barrier, and an acquire a barrier and a fence.
//
//   %old = greta_tile.atomic_rmw add acq_rel device %p, %v
//     →  greta_tile.fence release device
//        greta_tile.barrier global
//        %0 = scf.if %first {
//          greta_tile.fence release device
//          greta_tile.ptr_atomic_rmw add device %p[0], %v
//          greta_tile.fence acquire device
//        }
//        greta_tile.barrier global
//        %old = .. %0 of the first lane, by a shuffle or through shared memory
//        greta_tile.fence acquire device
//
// A fence orders what happened before it by the atomics of its own lane alone,
// so the lane of the atomic has some beside those that make the others' writes
// available, and visible to them.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

LogicalResult Distributor::distributeAtomicRmw(AtomicRmwOp op) {
  LaneValues list(lanes(op.getValue()));
  return distributeAtomic(
      op, op.getPointers(), op.getMask(), op.getOrder(), op.getScope(),
      [&](LanePlace at, unsigned reg) -> Value {
        return PtrAtomicRmwOp::create(b, op.getKind(), op.getScope(), at.base,
                                      at.offset, list[reg]);
      });
}

LogicalResult Distributor::distributeAtomicCas(AtomicCasOp op) {
  LaneValues expected(lanes(op.getExpected())), list(lanes(op.getValue()));
  return distributeAtomic(
      op, op.getPointers(), op.getMask(), op.getOrder(), op.getScope(),
      [&](LanePlace at, unsigned reg) -> Value {
        return PtrAtomicCasOp::create(b, op.getScope(), at.base, at.offset,
                                      expected[reg], list[reg]);
      });
}

LogicalResult Distributor::distributeAtomic(Operation *op, Value pointers,
                                            Value mask, MemoryOrder order,
                                            MemoryScope scope,
                                            AtomicBuilder build) {
  LaneAccess access = scattered(op, pointers, mask, /*isVector=*/false);
  bool acquires = order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel;
  bool releases = order == MemoryOrder::Release || order == MemoryOrder::AcqRel;
  bool hasOthers = kernel.getNumWaves() * kernel.getNumLanes() > 1;
  // Within the workgroup the barrier does what a fence would.
  auto fence = [&](MemoryOrder what) {
    if (!hasOthers || scope != MemoryScope::Workgroup)
      FenceOp::create(b, what, scope);
  };
  // The lanes' fences are those of the lane of the atomic if they are alone.
  auto release = [&] {
    if (releases && hasOthers)
      fence(MemoryOrder::Release);
  };
  auto acquire = [&] {
    if (acquires && hasOthers)
      fence(MemoryOrder::Acquire);
  };
  auto meet = [&] {
    if (hasOthers)
      BarrierOp::create(b, /*global=*/true);
  };
  if (releases) {
    fence(MemoryOrder::Release);
    meet();
  }
  OpResult result = op->getResult(0);
  if (access.layout) {
    release();
    values[result] = atomicOfEach(op, access, build);
    acquire();
    if (acquires)
      meet();
  } else {
    // Who waits for the result waits for the atomic.
    bool isUsed = acquires || !result.use_empty();
    auto ordered = [&](LanePlace place, unsigned reg) {
      release();
      Value old = build(place, reg);
      acquire();
      return old;
    };
    auto meetBehind = [&] {
      if (acquires)
        meet();
    };
    values[result] = {atomicOnce(op, access, isUsed, ordered, meetBehind)};
  }
  if (acquires)
    FenceOp::create(b, MemoryOrder::Acquire, scope);
  return success();
}

/// Emits one atomic by the first lane, and gives its result to all lanes.
/// `meet` emits the barrier behind it, if there is one.
Value Distributor::atomicOnce(Operation *op, const LaneAccess &access,
                              bool isUsed, AtomicBuilder build,
                              function_ref<void()> meet) {
  Type type = op->getResult(0).getType();
  Value mask = access.mask(0);
  bool isOneWave = kernel.getNumWaves() == 1;
  Value array;
  if (isUsed && !isOneWave)
    array = sharedAlloc(1, type);
  auto zero = [&] { return LaneValues{zeroOf(type)}; };
  auto emit = [&] { return LaneValues{build(access.place(0), 0)}; };
  auto emitFirst = [&] {
    LaneValues mine = valuesWhere(mask, emit, zero);
    if (array)
      SharedStoreOp::create(b, mine[0], array, constant(0));
    return mine;
  };
  Value old = valuesWhere(isFirstOfWorkgroup(), emitFirst, zero)[0];
  meet();
  if (!array)
    return isUsed && kernel.getNumLanes() > 1
               ? ShuffleOp::create(b, old, constant(0)).getResult()
               : old;
  return SharedLoadOp::create(b, array, constant(0));
}

/// Emits an atomic for every element by the lane that owns it. Lanes that hold
/// copies get the results through shared memory.
LaneValues Distributor::atomicOfEach(Operation *op, const LaneAccess &access,
                                     AtomicBuilder build) {
  const Layout &layout = access.layout->layout;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Value owner = ownsCopies(layout);
  LaneValues out;
  for (unsigned reg = 0; reg < access.layout->registerIndex.size(); ++reg) {
    if (unsigned first = layout.firstCopy(reg); first != reg) {
      out.push_back(out[first]);
      continue;
    }
    out.append(valuesWhere(
        allOf(owner, access.mask(reg)),
        [&] { return LaneValues{build(access.place(reg), reg)}; },
        [&] { return LaneValues{zeroOf(type)}; }));
  }
  if (owner && !op->getResult(0).use_empty())
    out = convertThroughShared(out, *access.layout, *access.layout);
  return out;
}
