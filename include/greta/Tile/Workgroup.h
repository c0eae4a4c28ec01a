//===- Workgroup.h - what the first lane does for its workgroup -*- C++ -*-===//
//
// In: a builder at the lane level. Out: atomics of one lane on words in which
// workgroups count, and the fences and barriers that order the accesses of all
// lanes around them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_WORKGROUP_H
#define GRETA_TILE_WORKGROUP_H

#include "GretaTile/GretaTile.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace greta {

/// Whether this is the workgroup's first lane.
inline Value isFirstLane(ImplicitLocOpBuilder &b) {
  Arithmetic a{b};
  Type type = b.getI32Type();
  Value number = a.either(tile::LaneIdOp::create(b, type),
                          tile::WaveIdOp::create(b, type));
  return a.equal(number, a.i32(0));
}

/// Updates a word in which workgroups count, and gives what was there.
inline Value updateCount(ImplicitLocOpBuilder &b, tile::AtomicKind kind,
                         Value counter, Value by) {
  return tile::PtrAtomicRmwOp::create(b, b.getI32Type(), kind,
                                      tile::MemoryScope::Device, counter,
                                      Arithmetic{b}.i32(0), by);
}

inline void emitIf(ImplicitLocOpBuilder &b, Value condition,
                   llvm::function_ref<void()> body) {
  mlir::scf::IfOp::create(b, condition, [&](mlir::OpBuilder &, mlir::Location) {
    body();
    mlir::scf::YieldOp::create(b);
  });
}

/// The first lane does `body`, atomics by which workgroups hear of each other:
/// behind what all lanes wrote, and in front of what all lanes read behind an
/// acquire of their own. A fence orders what happened before it by the atomics
/// of its own lane alone, so the first lane has two: it passes on what the
/// others wrote, which theirs made available to the device.
inline void meetForAtomics(ImplicitLocOpBuilder &b,
                           llvm::function_ref<void()> body) {
  auto fence = [&](tile::MemoryOrder order) {
    tile::FenceOp::create(b, order, tile::MemoryScope::Device);
  };
  fence(tile::MemoryOrder::Release);
  tile::BarrierOp::create(b, /*global=*/true);
  emitIf(b, isFirstLane(b), [&] {
    fence(tile::MemoryOrder::Release);
    body();
    fence(tile::MemoryOrder::Acquire);
  });
  tile::BarrierOp::create(b, /*global=*/true);
}

} // namespace greta

#endif
