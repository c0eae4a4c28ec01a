//===- Arithmetic.h - short names for arithmetic ----------------*- C++ -*-===//
//
// In: a builder with a location. Out: ops of arith on scalars and on blocks,
// which the passes that emit many of them inherit.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_ARITHMETIC_H
#define GRETA_TILE_ARITHMETIC_H

#include "greta/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace greta {

/// A class that emits arithmetic at `b` has these names by inheriting them.
struct Arithmetic {
  using Flags = arith::FastMathFlags;
  using Predicate = arith::CmpIPredicate;
  using FPredicate = arith::CmpFPredicate;

  ImplicitLocOpBuilder &b;

  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  /// The operands are natural numbers.
  Value div(Value x, Value y) { return arith::DivUIOp::create(b, x, y); }
  Value rem(Value x, Value y) { return arith::RemUIOp::create(b, x, y); }
  Value minU(Value x, Value y) { return arith::MinUIOp::create(b, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value most(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  /// The operands are bits or truth values.
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value flip(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value shl(Value x, Value y) { return arith::ShLIOp::create(b, x, y); }
  Value shr(Value x, Value y) { return arith::ShRUIOp::create(b, x, y); }
  Value fadd(Value x, Value y, Flags flags = Flags::none) {
    return arith::AddFOp::create(b, x, y, flags);
  }
  Value fsub(Value x, Value y, Flags flags = Flags::none) {
    return arith::SubFOp::create(b, x, y, flags);
  }
  Value fmul(Value x, Value y, Flags flags = Flags::none) {
    return arith::MulFOp::create(b, x, y, flags);
  }
  Value fdiv(Value x, Value y, Flags flags = Flags::none) {
    return arith::DivFOp::create(b, x, y, flags);
  }
  Value compare(Predicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  Value compare(FPredicate how, Value x, Value y) {
    return arith::CmpFOp::create(b, how, x, y);
  }
  Value equal(Value x, Value y) { return compare(Predicate::eq, x, y); }
  Value differ(Value x, Value y) { return compare(Predicate::ne, x, y); }
  Value below(Value x, Value y) { return compare(Predicate::slt, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  /// Null is nothing to add, and no condition.
  Value sum(Value x, Value y) { return x && y ? add(x, y) : x ? x : y; }
  Value allOf(Value x, Value y) { return x && y ? both(x, y) : x ? x : y; }
  Value zeroOf(Type type) {
    return arith::ConstantOp::create(b, b.getZeroAttr(type));
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
};

} // namespace greta

#endif // GRETA_TILE_ARITHMETIC_H
