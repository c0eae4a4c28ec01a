//===- TileToSPIRVHidden.cpp - numbers that no driver knows ---------------===//
//
// In: constants. Out: values that are these constants whenever a kernel runs,
// but that a driver's compiler does not fold: the lowest bit of n (n + 1) is a
// zero. With it a conversion there and back stays a rounding, and NVIDIA's
// driver makes one instruction of x & m | c (docs/experiments/skinny-tiles.md).
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;

Value KernelEmitter::hiddenZero(Value n) {
  Value one = constI32(1);
  return same<spirv::BitwiseAndOp>(
      same<spirv::IMulOp>(n, same<spirv::IAddOp>(n, one)), one);
}

Value KernelEmitter::hiddenZero() {
  if (!zero) {
    Type i16 = registerType(b.getI16Type());
    Value ids = builtin(spirv::BuiltIn::WorkgroupId,
                        VectorType::get(3, b.getI32Type()));
    constI32(1); // which stands in front of this, too
    zero = inPrologue([&] {
      Value id = spirv::CompositeExtractOp::create(b, ids, {0});
      return make<spirv::UConvertOp>(i16, hiddenZero(id));
    });
  }
  return zero;
}

/// The number of x & m | number, or none.
static std::optional<uint32_t> raisedBy(arith::OrIOp op) {
  APInt number, mask;
  auto masked = op.getLhs().getDefiningOp<arith::AndIOp>();
  if (!op.getType().isInteger(32) || !masked ||
      !matchPattern(op.getRhs(), m_ConstantInt(&number)) ||
      !matchPattern(masked.getRhs(), m_ConstantInt(&mask)))
    return std::nullopt;
  return number.getZExtValue();
}

/// The lanes' own number, because NVIDIA's driver keeps what workgroups share
/// in registers that this instruction does not take; a difference, because it
/// makes one `or` with two operands more of `or` with an `or`.
Value KernelEmitter::hidden(uint32_t number) {
  Value &value = hiddenNumbers[number];
  if (!value) {
    require(spirv::Capability::GroupNonUniform);
    Value lane =
        builtin(spirv::BuiltIn::SubgroupLocalInvocationId, b.getI32Type());
    Value known = constI32(number);
    constI32(1);
    value = inPrologue(
        [&] { return same<spirv::ISubOp>(known, hiddenZero(lane)); });
  }
  return value;
}

Value KernelEmitter::hiddenOperand(Operation *op) {
  constexpr unsigned often = 8; // a register is worth as many instructions
  auto either = dyn_cast<arith::OrIOp>(op);
  if (!driver.mergesUnknown || kernel.getNumLanes() == 1 || !either)
    return {};
  std::optional<uint32_t> number = raisedBy(either);
  if (!number)
    return {};
  if (raised.empty())
    kernel.walk([&](arith::OrIOp each) {
      if (std::optional<uint32_t> other = raisedBy(each))
        ++raised[*other];
    });
  return raised.lookup(*number) >= often ? hidden(*number) : Value();
}
