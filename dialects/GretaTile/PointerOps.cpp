//===- PointerOps.cpp - types and verifiers of pointers and atomics -------===//

#include "GretaTile/GretaTile.h"

using namespace mlir;
using namespace greta::tile;

Type greta::tile::withElementType(Type type, Type element) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(element)) : element;
}

Type greta::tile::getPointee(Type pointers) {
  auto pointer = dyn_cast<PtrType>(getElementTypeOrSelf(pointers));
  return withElementType(pointers, pointer ? pointer.getElementType() : Type());
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

BlockArgument greta::tile::argumentOf(Value pointer) {
  while (isa_and_nonnull<PtrAddOp, PtrCastOp>(pointer.getDefiningOp()))
    pointer = pointer.getDefiningOp()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(pointer);
  return argument && isa<FuncOp>(argument.getOwner()->getParentOp())
             ? argument
             : BlockArgument();
}

bool greta::tile::sharesInLoops(Operation *kernel) {
  return kernel
      ->walk([](LoopLikeOpInterface loop) {
        return loop->walk([](Operation *op) {
          return isa<SharedStoreOp, PtrLoadSharedOp>(op)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        });
      })
      .wasInterrupted();
}

bool greta::tile::hasPointerRange(BlockArgument argument) {
  auto func = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp())
                       : FuncOp();
  return func && func.getArgAttr(argument.getArgNumber(), pointerRangeName);
}

LogicalResult PtrAddOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         ValueRange operands, DictionaryAttr,
                                         OpaqueProperties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Type base = operands[0].getType(), offset = operands[1].getType();
  types.push_back(isa<RankedTensorType>(base) ? base
                                              : withElementType(offset, base));
  return success();
}

LogicalResult PtrAddOp::verify() {
  auto base = dyn_cast<RankedTensorType>(getBase().getType());
  auto offset = dyn_cast<RankedTensorType>(getOffset().getType());
  if (base && offset && base.clone(offset.getElementType()) != offset)
    return emitOpError("moves ")
           << base << " by " << offset << "; blocks have one shape";
  return success();
}

LogicalResult PtrToIntOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location>,
                                           ValueRange operands, DictionaryAttr,
                                           OpaqueProperties, RegionRange,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(
      withElementType(operands[0].getType(), IntegerType::get(context, 64)));
  return success();
}

/// Both are scalars, or blocks of a shape.
static LogicalResult verifySameShape(Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (withElementType(from, getElementTypeOrSelf(to)) != to)
    return op->emitOpError("makes ")
           << to << " of " << from << "; the shape stays as it is";
  return success();
}

LogicalResult IntToPtrOp::verify() { return verifySameShape(*this); }
LogicalResult PtrCastOp::verify() { return verifySameShape(*this); }

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static LogicalResult verifyInteger(Operation *op, Type element) {
  if (!element.isInteger(32) && !element.isInteger(64))
    return op->emitOpError("works on ")
           << element << "; atomics of integers have 32 or 64 bits";
  return success();
}

/// The types that the kinds take, at either level.
static LogicalResult verifyAtomic(Operation *op, AtomicKind kind, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (kind == AtomicKind::FAdd) {
    if (!element.isF16() && !element.isBF16() && !element.isF32() &&
        !element.isF64())
      return op->emitOpError("adds ")
             << element << "; 'fadd' takes f16, bf16, f32 and f64";
    return success();
  }
  if (kind == AtomicKind::Xchg && (element.isF32() || element.isF64()))
    return success();
  return verifyInteger(op, element);
}

LogicalResult AtomicRmwOp::verify() {
  return verifyAtomic(*this, getKind(), getValue().getType());
}

static LogicalResult verifyExchanged(Operation *op, Type element) {
  if (!element.isInteger(16) && !element.isInteger(32) &&
      !element.isInteger(64))
    return op->emitOpError("works on ")
           << element << "; it compares integers of 16, 32 or 64 bits";
  return success();
}

LogicalResult AtomicCasOp::verify() {
  return verifyExchanged(*this, getElementTypeOrSelf(getValue().getType()));
}

static LogicalResult verifyPointee(Operation *op, PtrType pointer, Type type) {
  if (pointer.getElementType() != type)
    return op->emitOpError("moves ") << type << " through " << pointer;
  return success();
}

LogicalResult PtrAtomicRmwOp::verify() {
  if (failed(verifyPointee(*this, getBase().getType(), getValue().getType())))
    return failure();
  return verifyAtomic(*this, getKind(), getValue().getType());
}

LogicalResult PtrAtomicCasOp::verify() {
  if (failed(verifyPointee(*this, getBase().getType(), getValue().getType())))
    return failure();
  return verifyExchanged(*this, getValue().getType());
}

LogicalResult FenceOp::verify() {
  if (getOrder() == MemoryOrder::Relaxed)
    return emitOpError("is relaxed, which orders nothing; it takes acquire, "
                       "release or acq_rel");
  return success();
}
