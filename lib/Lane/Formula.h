//===- Formula.h - floats in the making -------------------------*- C++ -*-===//
//
// In: an f32 or f64, or a vector of them. Out: ops of arith and math, written
// as formulas.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_FORMULA_H
#define GRETA_LIB_LANE_FORMULA_H

#include "Elementwise.h"
#include "greta/Names.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <type_traits>

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
  Type like(Type element) const { return typeLike(value.getType(), element); }
  Type integers() const {
    return like(b->getIntegerType(8 * sizeof(IntegerT)));
  }
  /// The same constant in all elements.
  Value splat(mlir::TypedAttr attr) const {
    return constantOf(*b, like(attr.getType()), attr);
  }
  SelfT literal(NumberT number) const {
    constexpr bool isSingle = std::is_same_v<NumberT, float>;
    auto type = isSingle ? mlir::FloatType(b->getF32Type())
                         : mlir::FloatType(b->getF64Type());
    return make(splat(b->getFloatAttr(type, number)));
  }
  Value integer(IntegerT number) const {
    return splat(
        b->getIntegerAttr(b->getIntegerType(8 * sizeof(IntegerT)), number));
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

} // namespace greta

#endif // GRETA_LIB_LANE_FORMULA_H
