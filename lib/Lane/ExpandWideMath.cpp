//===- ExpandWideMath.cpp - functions of f64 by formulas ------------------===//
//
// No GPU has functions of f64 beyond roundings, fma and the square root. Here
// each becomes f64 arithmetic:
//
//   exp, exp2, expm1   2^k times the series of e^r, |r| <= ln(2) / 2
//   log and its kin    k ln 2 and the series of 2 atanh((m - 1) / (m + 1))
//   sin, cos, tan      the rest of a division by pi/2, then series
//   atan and its kin   a polynomial up to tan(pi/8), formulas beyond
//   erf, erfc          polynomials below 1 and of log(erfc(x) e^(x^2)) beyond
//   the others         by formulas of these
//
// Errors are below 4 ulp (test_wide_math.py holds each function to that, and
// says where it ends), but for
//
//   sin, cos, tan      2^-51 beside the results up to |x| = 10^6; beyond that
//                      the division loses digits
//   pow                2^-51 |y log2 x| of the result
//   asin, acos, atanh, log2, log10, sinh, cosh    8 ulp
//
// Nothing depends on whether a target's fused multiply-add rounds once. The
// polynomials interpolate at Chebyshev's points.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "greta/Tile/Formula.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

namespace {

/// An f64, or a vector of them, in the making.
struct Wide : Formula<Wide, double, int64_t> {
  using Formula::Formula;

  /// A whole number as i64.
  Value whole() const {
    Value narrow = arith::FPToSIOp::create(*b, like(b->getI32Type()), value);
    return arith::ExtSIOp::create(*b, integers(), narrow);
  }
};

/// Two conditions on what is in the making.
Value both(Wide x, Value p, Value q) { return Arithmetic{*x.b}.both(p, q); }

/// Within limits; NaN stays what it is.
Wide clamp(Wide x, double least, double most) {
  Wide below = select(x > most, x.literal(most), x);
  return select(x < least, x.literal(least), below);
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

constexpr double ln2 = llvm::numbers::ln2;
/// ln 2 in two parts, of which the first has 28 bits: times an exponent it is
/// exact.
constexpr double ln2High = 0x1.62e42fep-1, ln2Low = 0x1.f473de6af278fp-30;

/// 2^k of a whole number from -1022 to 1023.
Wide power(Wide like, Value k) {
  Arithmetic a{*like.b};
  Value biased = a.add(k, like.integer(1023));
  return like.fromBits(a.shl(biased, like.integer(52)));
}

/// x 2^k where 2^k alone may be out of range.
Wide scale(Wide x, Wide k) {
  Arithmetic a{*x.b};
  Value whole = k.whole();
  Value half = arith::ShRSIOp::create(a.b, whole, x.integer(1));
  Value rest = a.sub(whole, half);
  return x * power(x, half) * power(x, rest);
}

/// (e^r - 1) for |r| <= ln(2) / 2.
Wide expNear(Wide r) {
  SmallVector<double> series;
  double factorial = 1;
  for (int n = 1; n <= 14; ++n)
    series.push_back(1 / (factorial *= n));
  // The last bits of r^1 are not for the others to lose.
  return r + r * (r * r.polynomial(ArrayRef(series).drop_front()));
}

Wide exp2(Wide x) {
  Wide limited = clamp(x, -1100, 1100), k = limited.roundEven();
  return scale(expNear((limited - k) * ln2) + 1, k);
}

/// e^x = 2^k e^r
struct Reduced {
  Wide k, r;
};
Reduced reduce(Wide x) {
  Wide k = (x * llvm::numbers::log2e).roundEven();
  return {k, x - k * ln2High - k * ln2Low};
}

Wide exp(Wide x) {
  auto [k, r] = reduce(clamp(x, -760, 720));
  return scale(expNear(r) + 1, k);
}

/// 2^k (e^r - 1) + (2^k - 1)
Wide expm1(Wide x) {
  auto [k, r] = reduce(clamp(x, -40, 40));
  Wide factor = power(x, k.whole());
  Wide near = factor * expNear(r) + (factor - 1);
  // Zero keeps its sign.
  near = select(k == 0, select(x == 0, x, expNear(r)), near);
  return select(x.abs() > 40, exp(x) - 1, near);
}

Wide tanh(Wide x) {
  Wide t = expm1(x.abs() * -2);
  return (-t / (t + 2)).withSignOf(x);
}

Wide sinh(Wide x) {
  Wide size = x.abs(), t = expm1(size), half = exp(size * 0.5);
  Wide near = (t + t / (t + 1)) * 0.5;
  return select(size < 40, near, half * 0.5 * half).withSignOf(x);
}

Wide cosh(Wide x) {
  Wide size = x.abs(), t = exp(size), half = exp(size * 0.5);
  Wide near = (t + x.literal(1) / t) * 0.5;
  return select(size < 40, near, half * 0.5 * half);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// x = 2^k m with m from sqrt(1/2) to sqrt(2).
struct Parts {
  Wide k, log; // of m
};
Parts split(Wide x) {
  Arithmetic a{*x.b};
  Value isTiny = x < 0x1p-1022;
  Wide normal = select(isTiny, x * 0x1p54, x);
  Value bits = normal.bits();
  Value fromRoot =
      a.sub(bits, x.integer(llvm::bit_cast<int64_t>(llvm::numbers::sqrt2 / 2)));
  Value exponent = arith::ShRSIOp::create(a.b, fromRoot, x.integer(52));
  Value scaled = a.shl(exponent, x.integer(52));
  Wide f = x.fromBits(a.sub(bits, scaled)) - 1;
  Value narrow =
      arith::TruncIOp::create(a.b, x.like(a.b.getI32Type()), exponent);
  Wide k = x.make(arith::SIToFPOp::create(a.b, x.value.getType(), narrow));
  k = select(isTiny, k - 54, k);
  // 2 atanh(s) = f - f^2/2 + s (f^2/2 + series): the rounding of s counts for
  // little.
  Wide s = f / (f + 2), z = s * s, half = f * f * 0.5;
  SmallVector<double> series;
  for (int n = 1; n <= 11; ++n)
    series.push_back(2.0 / (2 * n + 1));
  return {k, f - (half - s * (half + z * z.polynomial(series)))};
}

/// Logarithms of zero, negative numbers, infinity and NaN.
Wide logOutside(Wide x, Wide log) {
  Wide infinity = x.literal(std::numeric_limits<double>::infinity());
  Wide nan = x.literal(std::numeric_limits<double>::quiet_NaN());
  Wide result = select(x == infinity, infinity, log);
  result = select(x == 0, -infinity, result);
  // A comparison with NaN is false.
  return select(x.is(arith::CmpFPredicate::OGE, x.literal(0)), result, nan);
}

Wide log(Wide x) {
  auto [k, m] = split(x);
  return logOutside(x, k * ln2High + (m + k * ln2Low));
}

Wide log2(Wide x) {
  auto [k, m] = split(x);
  return logOutside(x, k + m * llvm::numbers::log2e);
}

Wide log10(Wide x) { return log(x) * (1 / llvm::numbers::ln10); }

/// log(1 + x), and what the sum lost.
Wide log1p(Wide x) {
  Wide sum = x + 1, lost = x - (sum - 1), whole = log(sum);
  Value hasLost = lost.is(arith::CmpFPredicate::ONE, x.literal(0));
  Wide result = select(hasLost, whole + lost / sum, whole);
  return select(x.abs() < 0x1p-54, x, result);
}

Wide asinh(Wide x) {
  Wide size = x.abs(), square = size * size;
  Wide near = log1p(size + square / ((square + 1).sqrt() + 1));
  return select(size < 0x1p28, near, log(size) + ln2).withSignOf(x);
}

Wide acosh(Wide x) {
  Wide t = x - 1;
  return select(x < 0x1p28, log1p(t + (t * 2 + t * t).sqrt()), log(x) + ln2);
}

Wide atanh(Wide x) {
  Wide size = x.abs();
  return (log1p(size * 2 / (x.literal(1) - size)) * 0.5).withSignOf(x);
}

//===----------------------------------------------------------------------===//
// Circles
//===----------------------------------------------------------------------===//

/// x less its multiple of pi/2, and which one that is.
struct Turned {
  Wide r;
  Value quadrant;
};
Turned turn(Wide x) {
  Wide turns = (x * (2 / llvm::numbers::pi)).roundEven(), r = x;
  // pi/2 in parts of 33 bits, whose products are exact, and the rest.
  for (double part : {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69,
                      0x1.b839a252049c1p-104})
    r = r - turns * part;
  return {r, turns.whole()};
}

/// x - x^3/3! .., or 1 - x^2/2! ..
Wide series(Wide square, int first) {
  SmallVector<double> c;
  double factorial = 1;
  for (int n = first; n <= 19 + first; n += 2) {
    c.push_back((c.size() % 2 ? -1 : 1) / factorial);
    factorial *= (n + 1) * (n + 2);
  }
  return square.polynomial(c);
}

Wide sine(Wide x, int64_t quarters) {
  Turned turned = turn(x);
  Wide r = turned.r;
  Wide square = r * r;
  Wide sin = r - r * square * series(square, 3) * (1.0 / 6);
  Wide cos = series(square, 0);
  // Zero keeps its sign.
  return byQuadrant(turned.quadrant, quarters, cos,
                    [&] { return select(x == 0, x, sin); });
}

/// For x that is not negative.
Wide atanOfSize(Wide x) {
  constexpr double edge = 0.41421356237309503; // tan(pi/8)
  Value isFar = x > 1 / edge, isNear = x < edge;
  Wide middle = (x - 1) / (x + 1), inverse = x.literal(-1) / x;
  Wide u = select(isNear, x, select(isFar, inverse, middle)), z = u * u;
  Wide angle =
      u + u * (z * z.polynomial({-0x1.5555555555555p-2, 0x1.999999999934ap-3,
                                 -0x1.24924924360cbp-3, 0x1.c71c7185314cbp-4,
                                 -0x1.745d0b26b83e7p-4, 0x1.3b1262d95579ep-4,
                                 -0x1.10fa75382537fp-4, 0x1.dfe61e80903d2p-5,
                                 -0x1.a098bb6ba4941p-5, 0x1.41603647c7a7cp-5,
                                 -0x1.3a2b7a07caea9p-6}));
  // pi/2 and pi/4 have bits beyond an f64.
  constexpr double half = llvm::numbers::pi / 2, rest = 0x1.1a62633145c07p-54;
  Wide far = angle + rest + half, quarter = angle + rest / 2 + half / 2;
  return select(isNear, angle, select(isFar, far, quarter));
}

Wide atan(Wide x) { return atanOfSize(x.abs()).withSignOf(x); }

Wide asin(Wide x) {
  Wide one = x.literal(1);
  return atan(x / ((one - x) * (one + x)).sqrt());
}

Wide acos(Wide x) {
  Wide one = x.literal(1);
  return atanOfSize(((one - x) / (one + x)).sqrt()) * 2;
}

Wide atan2(Wide y, Wide x) {
  Wide height = y.abs(), width = x.abs();
  Wide infinity = x.literal(std::numeric_limits<double>::infinity());
  Wide ratio = height / width;
  // Both lengths are 0, or both are infinite.
  ratio = select(both(x, height == 0, width == 0), x.literal(0), ratio);
  ratio = select(both(x, height == infinity, width == infinity), x.literal(1),
                 ratio);
  Wide angle = atanOfSize(ratio);
  // A zero may be negative, so the sign is the bit.
  Value isLeft = Arithmetic{*x.b}.below(x.bits(), x.integer(0));
  Wide turned = x.literal(llvm::numbers::pi) - (angle - 0x1.1a62633145c07p-53);
  return select(isLeft, turned, angle).withSignOf(y);
}

//===----------------------------------------------------------------------===//
// Error functions, powers
//===----------------------------------------------------------------------===//

Wide erfNear(Wide x) {
  Wide z = x * x;
  return x * z.polynomial({0x1.20dd750429b6dp+0, -0x1.812746b0379e6p-2,
                           0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6,
                           0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11,
                           0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
                           0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23,
                           0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
                           0x1.05ffd737fb32ep-34});
}

/// erfc(x) = t e^(p(t) - x^2) from 1 to 28 with t = 2 / (x + 2); 0 beyond.
Wide erfcFar(Wide x) {
  Wide size = clamp(x, 1, 28), t = x.literal(2) / (size + 2);
  Wide w = (t - 11.0 / 30) * (10.0 / 3);
  Wide p = w.polynomial(
      {-0x1.b1a623c84c4bdp-1,  0x1.883263319e6e1p-2,   0x1.d2f6af1c32c95p-6,
       -0x1.b8cf0a69a7d74p-8,  -0x1.381aebea33a57p-9,  0x1.f810ed5d04295p-13,
       0x1.d58b0dc1c496cp-13,  -0x1.97de7ef044b62p-17, -0x1.91253448ae197p-16,
       0x1.5f9baaa0f76cfp-20,  0x1.7152728c5f352p-19,  -0x1.22bc4e840e9c4p-22,
       -0x1.55bc7cd207075p-22, 0x1.fc9485c8eaca0p-25,  0x1.1f30f56a976ebp-25,
       -0x1.7f4af6a49098dp-27, -0x1.662b6bc9c5edfp-29, 0x1.be8da565bf0aep-30,
       0x1.df5ed4ad6b4d1p-35,  -0x1.2d97cb47fa79bp-33, 0x1.cb4b6756f39a8p-37});
  // The part of x^2 that an f64 keeps, and the part that it loses.
  Value upper =
      Arithmetic{*x.b}.both(size.bits(), x.integer(~((1LL << 27) - 1)));
  Wide high = x.fromBits(upper);
  Wide lost = (size - high) * (size + high);
  return t * exp(-(high * high)) * exp(p - lost);
}

Wide erf(Wide x) {
  Wide size = x.abs();
  Wide far = (x.literal(1) - erfcFar(size)).withSignOf(x);
  return select(size < 1, erfNear(x), far);
}

Wide erfc(Wide x) {
  Wide size = x.abs(), far = erfcFar(size);
  far = select(x < 0, x.literal(2) - far, far);
  return select(size < 1, x.literal(1) - erfNear(x), far);
}

Wide cbrt(Wide x) {
  Wide y = exp2(log2(x.abs()) * (1.0 / 3));
  // A step of Newton's; 0 and infinity are their own roots.
  y = y - (y - x.abs() / (y * y)) * (1.0 / 3);
  Wide root = y.withSignOf(x);
  Value isOwn = x == x + x;
  return select(isOwn, x, root);
}

/// |x|^y = 2^(y log2 |x|), and what IEEE has of signs; x^0 and 1^y are 1.
Wide pow(Wide x, Wide y) {
  Arithmetic a{*x.b};
  Wide size = exp2(y * log2(x.abs())), half = y * 0.5;
  Value isOdd = both(x, y.floor() == y, half.floor() != half);
  Wide result = select(isOdd, size.withSignOf(x), size);
  Wide infinity = x.literal(std::numeric_limits<double>::infinity());
  Value isInvalid = both(x, x < 0, y.floor() != y);
  isInvalid = both(x, isInvalid, x != -infinity);
  Wide nan = x.literal(std::numeric_limits<double>::quiet_NaN());
  Value isOne = a.either(y == 0, x == 1);
  isOne = a.either(isOne, both(x, x.abs() == 1, y.abs() == infinity));
  return select(isOne, x.literal(1), select(isInvalid, nan, result));
}

} // namespace

Value greta::expandWideMath(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Wide x{&b, op->getOperand(0)};
  Wide y{&b, op->getNumOperands() > 1 ? op->getOperand(1) : Value()};
  return llvm::TypeSwitch<Operation *, Wide>(op)
      .Case([&](math::ExpOp) { return exp(x); })
      .Case([&](math::Exp2Op) { return exp2(x); })
      .Case([&](math::ExpM1Op) { return expm1(x); })
      .Case([&](math::LogOp) { return log(x); })
      .Case([&](math::Log2Op) { return log2(x); })
      .Case([&](math::Log10Op) { return log10(x); })
      .Case([&](math::Log1pOp) { return log1p(x); })
      .Case([&](math::SinOp) { return sine(x, 0); })
      .Case([&](math::CosOp) { return sine(x, 1); })
      .Case([&](math::TanOp) { return sine(x, 0) / sine(x, 1); })
      .Case([&](math::AsinOp) { return asin(x); })
      .Case([&](math::AcosOp) { return acos(x); })
      .Case([&](math::AtanOp) { return atan(x); })
      .Case([&](math::Atan2Op) { return atan2(x, y); })
      .Case([&](math::SinhOp) { return sinh(x); })
      .Case([&](math::CoshOp) { return cosh(x); })
      .Case([&](math::TanhOp) { return tanh(x); })
      .Case([&](math::AsinhOp) { return asinh(x); })
      .Case([&](math::AcoshOp) { return acosh(x); })
      .Case([&](math::AtanhOp) { return atanh(x); })
      .Case([&](math::ErfOp) { return erf(x); })
      .Case([&](math::ErfcOp) { return erfc(x); })
      .Case([&](math::CbrtOp) { return cbrt(x); })
      .Case([&](math::RsqrtOp) { return x.literal(1) / x.sqrt(); })
      .Case<math::PowFOp, math::FPowIOp>([&](auto power) {
        if (std::optional<int64_t> n = wholeExponent(power.getRhs()))
          return powInteger(x, *n);
        if (std::is_same_v<decltype(power), math::FPowIOp>)
          y.value = arith::SIToFPOp::create(b, x.value.getType(), y.value);
        return pow(x, y);
      })
      .Case([&](math::RoundOp) { return x.round(); })
      .Case([&](math::TruncOp) { return x.trunc(); })
      .Case([&](math::CopySignOp) { return x.withSignOf(y); })
      .Default([&](auto) { return x.make(Value()); })
      .value;
}
