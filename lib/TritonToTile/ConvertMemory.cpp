//===- ConvertMemory.cpp - Triton IR's pointers, accesses and atomics -----===//

#include "TritonToTile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

/// Returns a mask; null: it is true everywhere.
static Value realMask(Value mask) {
  return mask && matchPattern(mask, m_One()) ? Value() : mask;
}

LogicalResult OpConverter::convert(AddPtrOp op) {
  Value offsets = op.getOffsets();
  Type element = getElementTypeOrSelf(offsets.getType());
  if (element.getIntOrFloatBitWidth() < 32)
    offsets = arith::ExtSIOp::create(
        b, tile::withElementType(offsets.getType(), b.getI32Type()), offsets);
  return replace(op, {tile::PtrAddOp::create(b, op.getPointers(), offsets)});
}

LogicalResult OpConverter::convert(PtrToIntOp op) {
  Value address = tile::PtrToIntOp::create(b, op.getValue());
  if (address.getType() == op.getType())
    return replace(op, {address});
  return replace(op, {arith::TruncIOp::create(b, op.getType(), address)});
}

LogicalResult OpConverter::convert(IntToPtrOp op) {
  Value address = op.getValue();
  Type wide = tile::withElementType(address.getType(), b.getI64Type());
  if (address.getType() != wide)
    address = arith::ExtUIOp::create(b, wide, address);
  return replace(op, {tile::IntToPtrOp::create(b, op.getType(), address)});
}

LogicalResult OpConverter::convert(BitcastOp op) {
  Value value = op.getValue();
  if (value.getType() == op.getType())
    return replace(op, {value});
  if (isa<tile::PtrType>(getElementTypeOrSelf(value.getType())))
    return replace(op, {tile::PtrCastOp::create(b, op.getType(), value)});
  return replace(op, {arith::BitcastOp::create(b, op.getType(), value)});
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Converts a load. A volatile one becomes an atomic, since it sees what others
/// store in the meantime.
LogicalResult OpConverter::convert(LoadOp op) {
  Value mask = realMask(op.getMask());
  if (!op.getIsVolatile())
    return replace(op, {tile::LoadScatteredOp::create(
                           b, op.getType(), op.getPointers(), mask,
                           mask ? op.getOther() : Value())});
  FailureOr<Value> value =
      atomicLoad(op, op.getPointers(), mask, op.getOther(),
                 {tile::MemoryOrder::Relaxed, tile::MemoryScope::Device});
  return failed(value) ? failure() : replace(op, *value);
}

LogicalResult OpConverter::convert(StoreOp op) {
  tile::StoreScatteredOp::create(b, op.getValue(), op.getPointers(),
                                 realMask(op.getMask()));
  return replace(op, {});
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

FailureOr<OpConverter::Order>
OpConverter::readOrder(Operation *op, StringRef sem, StringRef scope) {
  std::optional<tile::MemoryOrder> known = tile::symbolizeMemoryOrder(sem);
  auto wide = llvm::StringSwitch<std::optional<tile::MemoryScope>>(scope)
                  .Case("cta", tile::MemoryScope::Workgroup)
                  .Case("gpu", tile::MemoryScope::Device)
                  .Case("sys", tile::MemoryScope::System)
                  .Default(std::nullopt);
  if (!known || !wide)
    return op->emitOpError("is ")
           << sem << " in scope " << scope
           << "; atomics are relaxed, acquire, release or acq_rel, in scope "
              "cta, gpu or sys";
  return Order{*known, *wide};
}

static std::optional<tile::AtomicKind> atomicKind(StringRef kind) {
  if (kind == "exch")
    return tile::AtomicKind::Xchg;
  return tile::symbolizeAtomicKind(kind);
}

LogicalResult OpConverter::convert(AtomicRmwOp op) {
  std::optional<tile::AtomicKind> kind = atomicKind(op.getKind());
  if (!kind)
    return op.emitOpError("has kind '") << op.getKind()
                                        << "'; atomics are add, fadd, and, or, "
                                           "xor, exch, max, min, umax and "
                                           "umin";
  FailureOr<Order> order = readOrder(op, op.getSem(), op.getScope());
  if (failed(order))
    return failure();
  return replace(
      op, {tile::AtomicRmwOp::create(b, op.getType(), *kind, order->semantics,
                                     order->scope, op.getPointers(),
                                     op.getValue(), realMask(op.getMask()))});
}

/// Casts pointers to floats to pointers to integers, which atomics work on.
Value OpConverter::pointersToBits(Value pointers) {
  Type element = getElementTypeOrSelf(tile::getPointee(pointers.getType()));
  Type integer = b.getIntegerType(element.getIntOrFloatBitWidth());
  Type bits =
      tile::withElementType(pointers.getType(), tile::PtrType::get(integer));
  if (pointers.getType() == bits)
    return pointers;
  return tile::PtrCastOp::create(b, bits, pointers);
}

/// Compares bits, also those of floats.
LogicalResult OpConverter::convert(AtomicCasOp op) {
  FailureOr<Order> order = readOrder(op, op.getSem(), op.getScope());
  if (failed(order))
    return failure();
  Value pointers = pointersToBits(op.getPointers());
  Type bits = tile::getPointee(pointers.getType());
  auto as = [&](Type type, Value value) -> Value {
    return value.getType() == type
               ? value
               : arith::BitcastOp::create(b, type, value).getResult();
  };
  Value old = tile::AtomicCasOp::create(b, bits, order->semantics, order->scope,
                                        pointers, as(bits, op.getExpected()),
                                        as(bits, op.getValue()), Value());
  return replace(op, {as(op.getType(), old)});
}

/// Loads by an atomic `or` with zero, which other atomics cannot overtake.
FailureOr<Value> OpConverter::atomicLoad(Operation *op, Value pointers,
                                         Value mask, Value other, Order order) {
  Type type = tile::getPointee(pointers.getType());
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (width != 32 && width != 64)
    return op->emitOpError("loads values of ")
           << width
           << " bits that others may store meanwhile; this needs 32 or 64";
  pointers = pointersToBits(pointers);
  Type bits = tile::getPointee(pointers.getType());
  Value value = tile::AtomicRmwOp::create(b, bits, tile::AtomicKind::Or,
                                          order.semantics, order.scope,
                                          pointers, numberOf(b, bits, 0), mask);
  if (bits != type)
    value = arith::BitcastOp::create(b, type, value);
  if (mask && other)
    value = select(mask, value, other);
  return value;
}

LogicalResult OpConverter::convert(AtomicLoadOp op) {
  FailureOr<Order> order = readOrder(op, op.getSem(), op.getScope());
  if (failed(order))
    return failure();
  FailureOr<Value> value =
      atomicLoad(op, op.getPointers(), realMask(op.getMask()), {}, *order);
  return failed(value) ? failure() : replace(op, *value);
}

/// Emits a loop in which the whole program loads until the value is the wanted
/// one.
LogicalResult OpConverter::convert(AtomicPollOp op) {
  if (op.getTimeout() || isa<RankedTensorType>(op.getPointers().getType()))
    return op.emitOpError("polls ")
           << (op.getTimeout() ? "for a time, and kernels have no clock"
                               : "a block of pointers")
           << "; poll one pointer without a timeout";
  FailureOr<Order> order = readOrder(op, op.getSem(), op.getScope());
  if (failed(order))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  b.createBlock(&loop.getBefore());
  FailureOr<Value> value = atomicLoad(op, op.getPointers(), {}, {}, *order);
  if (failed(value))
    return failure();
  Value differs = differ(*value, op.getExpected());
  scf::ConditionOp::create(b, differs, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
  b.setInsertionPointAfter(loop);
  return replace(op, {numberOf(b, b.getI1Type(), 1)});
}

/// Emits an exchange whose old value is not used.
LogicalResult OpConverter::convert(AtomicStoreOp op) {
  FailureOr<Order> order = readOrder(op, op.getSem(), op.getScope());
  if (failed(order))
    return failure();
  Value value = op.getValue(), pointers = pointersToBits(op.getPointers());
  Type bits = tile::getPointee(pointers.getType());
  if (bits != value.getType())
    value = arith::BitcastOp::create(b, bits, value);
  tile::AtomicRmwOp::create(b, bits, tile::AtomicKind::Xchg, order->semantics,
                            order->scope, pointers, value,
                            realMask(op.getMask()));
  return replace(op, {});
}
