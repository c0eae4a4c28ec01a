//===- Formula.h - floats in the making -------------------------*- C++ -*-===//
//
// In: an f32 or f64, or a vector of them. Out: ops of arith and math, written
// as formulas.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_FORMULA_H
#define GRETA_LIB_LANE_FORMULA_H

#include "Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <type_traits>

namespace greta {

/// `SelfT` derives from this; its numbers are `NumberT`, and the integers that
/// have their bits `IntegerT`.
template <typename SelfT, typename NumberT, typename IntegerT> struct Formula {
  mlir::ImplicitLocOpBuilder *b = nullptr;
  mlir::Value value;

  Formula() = default;
  Formula(mlir::ImplicitLocOpBuilder *b, mlir::Value value)
      : b(b), value(value) {}

  SelfT make(mlir::Value result) const { return SelfT(b, result); }
  template <typename OpT, typename... Args> SelfT with(Args... args) const {
    return make(OpT::create(*b, value, args.value...));
  }

  /// A type for each element.
  mlir::Type like(mlir::Type element) const {
    return typeLike(value.getType(), element);
  }
  mlir::Type integers() const {
    return like(b->getIntegerType(8 * sizeof(IntegerT)));
  }
  /// The same constant in all elements.
  mlir::Value splat(mlir::TypedAttr attr) const {
    return constantOf(*b, like(attr.getType()), attr);
  }
  SelfT literal(NumberT number) const {
    constexpr bool isSingle = std::is_same_v<NumberT, float>;
    auto type = isSingle ? mlir::FloatType(b->getF32Type())
                         : mlir::FloatType(b->getF64Type());
    return make(splat(b->getFloatAttr(type, number)));
  }
  mlir::Value integer(IntegerT number) const {
    return splat(
        b->getIntegerAttr(b->getIntegerType(8 * sizeof(IntegerT)), number));
  }
  mlir::Value bits() const {
    return mlir::arith::BitcastOp::create(*b, integers(), value);
  }
  SelfT fromBits(mlir::Value bits) const {
    return make(mlir::arith::BitcastOp::create(*b, value.getType(), bits));
  }

  SelfT operator+(SelfT y) const { return with<mlir::arith::AddFOp>(y); }
  SelfT operator-(SelfT y) const { return with<mlir::arith::SubFOp>(y); }
  SelfT operator*(SelfT y) const { return with<mlir::arith::MulFOp>(y); }
  SelfT operator/(SelfT y) const { return with<mlir::arith::DivFOp>(y); }
  SelfT operator+(NumberT y) const { return *this + literal(y); }
  SelfT operator-(NumberT y) const { return *this - literal(y); }
  SelfT operator*(NumberT y) const { return *this * literal(y); }
  SelfT operator-() const { return with<mlir::arith::NegFOp>(); }
  mlir::Value is(mlir::arith::CmpFPredicate predicate, SelfT y) const {
    return mlir::arith::CmpFOp::create(*b, predicate, value, y.value);
  }
  mlir::Value operator<(NumberT y) const {
    return is(mlir::arith::CmpFPredicate::OLT, literal(y));
  }
  mlir::Value operator>(NumberT y) const {
    return is(mlir::arith::CmpFPredicate::OGT, literal(y));
  }
  mlir::Value operator==(SelfT y) const {
    return is(mlir::arith::CmpFPredicate::OEQ, y);
  }
  mlir::Value operator==(NumberT y) const { return *this == literal(y); }
  mlir::Value operator!=(SelfT y) const {
    return is(mlir::arith::CmpFPredicate::UNE, y);
  }
  SelfT abs() const { return with<mlir::math::AbsFOp>(); }
  SelfT floor() const { return with<mlir::math::FloorOp>(); }
  SelfT roundEven() const { return with<mlir::math::RoundEvenOp>(); }

  /// c[0] + c[1] x + c[2] x^2 + ...
  SelfT polynomial(llvm::ArrayRef<NumberT> c) const {
    SelfT sum = literal(c.back());
    for (NumberT coefficient : llvm::reverse(c.drop_back()))
      sum = sum * make(value) + coefficient;
    return sum;
  }
  SelfT withSignOf(SelfT y) const {
    constexpr IntegerT most = std::numeric_limits<IntegerT>::max();
    using mlir::arith::AndIOp;
    mlir::Value size = AndIOp::create(*b, bits(), integer(most));
    mlir::Value sign = AndIOp::create(*b, y.bits(), integer(-most - 1));
    return fromBits(mlir::arith::OrIOp::create(*b, size, sign));
  }
};

template <typename SelfT, typename NumberT, typename IntegerT>
SelfT select(mlir::Value condition, Formula<SelfT, NumberT, IntegerT> x,
             Formula<SelfT, NumberT, IntegerT> y) {
  return x.make(
      mlir::arith::SelectOp::create(*x.b, condition, x.value, y.value));
}

} // namespace greta

#endif // GRETA_LIB_LANE_FORMULA_H
