//===- Formula.h - floats in the making -------------------------*- C++ -*-===//
//
// In: a float, or a vector or a block of them. Out: ops of arith and math,
// written as formulas.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_FORMULA_H
#define GRETA_TILE_FORMULA_H

#include "GretaTile/GretaTile.h"
#include "greta/Names.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Elementwise.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace greta {

/// `SelfT` derives from this; its numbers are `NumberT`, and the integers that
/// have their bits `IntegerT`.
template <typename SelfT, typename NumberT, typename IntegerT> struct Formula {
  ImplicitLocOpBuilder *b = nullptr;
  Value value;

  Formula() = default;
  Formula(ImplicitLocOpBuilder *b, Value value) : b(b), value(value) {}

  SelfT make(Value result) const { return SelfT(b, result); }
  template <typename OpT, typename... Args> SelfT with(Args... args) const {
    return make(OpT::create(*b, value, args.value...));
  }

  /// A type for each element.
  Type like(Type element) const {
    return tile::withElementType(value.getType(), element);
  }
  Type integers() const {
    return like(b->getIntegerType(8 * sizeof(IntegerT)));
  }
  SelfT literal(NumberT number) const {
    return make(numberOf(*b, value.getType(), number));
  }
  Value integer(IntegerT number) const {
    return constantOf(*b, integers(), int64_t(number));
  }
  Value bits() const { return arith::BitcastOp::create(*b, integers(), value); }
  SelfT fromBits(Value bits) const {
    return make(arith::BitcastOp::create(*b, value.getType(), bits));
  }

  SelfT operator+(SelfT y) const { return with<arith::AddFOp>(y); }
  SelfT operator-(SelfT y) const { return with<arith::SubFOp>(y); }
  SelfT operator*(SelfT y) const { return with<arith::MulFOp>(y); }
  SelfT operator/(SelfT y) const { return with<arith::DivFOp>(y); }
  SelfT operator+(NumberT y) const { return *this + literal(y); }
  SelfT operator-(NumberT y) const { return *this - literal(y); }
  SelfT operator*(NumberT y) const { return *this * literal(y); }
  SelfT operator-() const { return with<arith::NegFOp>(); }
  Value is(arith::CmpFPredicate predicate, SelfT y) const {
    return arith::CmpFOp::create(*b, predicate, value, y.value);
  }
  Value operator<(NumberT y) const {
    return is(arith::CmpFPredicate::OLT, literal(y));
  }
  Value operator>(NumberT y) const {
    return is(arith::CmpFPredicate::OGT, literal(y));
  }
  Value operator==(SelfT y) const { return is(arith::CmpFPredicate::OEQ, y); }
  Value operator==(NumberT y) const { return *this == literal(y); }
  Value operator!=(SelfT y) const { return is(arith::CmpFPredicate::UNE, y); }
  SelfT abs() const { return with<mlir::math::AbsFOp>(); }
  SelfT floor() const { return with<mlir::math::FloorOp>(); }
  SelfT roundEven() const { return with<mlir::math::RoundEvenOp>(); }
  SelfT trunc() const { return abs().floor().withSignOf(make(value)); }
  /// Halves away from zero; the addend is the largest number below one half, so
  /// that 0.49999997 does not become 1.
  SelfT round() const {
    const NumberT most = std::nextafter(NumberT(0.5), NumberT(0));
    return (abs() + most).floor().withSignOf(make(value));
  }
  SelfT sqrt() const { return with<mlir::math::SqrtOp>(); }

  /// c[0] + c[1] x + c[2] x^2 + ...
  SelfT polynomial(ArrayRef<NumberT> c) const {
    SelfT sum = literal(c.back());
    for (NumberT coefficient : llvm::reverse(c.drop_back()))
      sum = sum * make(value) + coefficient;
    return sum;
  }
  SelfT withSignOf(SelfT y) const {
    constexpr IntegerT most = std::numeric_limits<IntegerT>::max();
    using arith::AndIOp;
    Value size = AndIOp::create(*b, bits(), integer(most));
    Value sign = AndIOp::create(*b, y.bits(), integer(-most - 1));
    return fromBits(arith::OrIOp::create(*b, size, sign));
  }
};

template <typename SelfT, typename NumberT, typename IntegerT>
SelfT select(Value condition, Formula<SelfT, NumberT, IntegerT> x,
             Formula<SelfT, NumberT, IntegerT> y) {
  return x.make(arith::SelectOp::create(*x.b, condition, x.value, y.value));
}

/// Returns the sine or the cosine of a sum of r and some quarters of a turn, by
/// the cosine of r and what makes its sine. The lowest bits of `quadrant` count
/// the quarters.
template <typename SelfT, typename SineT>
SelfT byQuadrant(Value quadrant, int quarters, SelfT cos, SineT sine) {
  Arithmetic a{*cos.b};
  if (quarters)
    quadrant = a.add(quadrant, cos.integer(quarters));
  auto isSet = [&](int bit) {
    return a.differ(a.both(quadrant, cos.integer(bit)), cos.integer(0));
  };
  SelfT result = select(isSet(1), cos, sine());
  return select(isSet(2), -result, result);
}

} // namespace greta

#endif // GRETA_TILE_FORMULA_H
