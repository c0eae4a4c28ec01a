//===- Bessel.cpp - Bessel functions of order 0 and 1 ---------------------===//
//
// In: a scalar or a block x of f32. Out: arith and math ops that are J, Y or I
// of it, by the polynomials of Abramowitz and Stegun, Handbook of Mathematical
// Functions, 9.4.1 to 9.4.6 and 9.8.1 to 9.8.4: one in x near 0, beyond 3 (3.75
// for I) amplitude and phase in 1/x. In f32 they are within 5e-7 of
// max(1, |result|) up to |x| = 50.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

namespace {
struct Polynomials {
  SmallVector<double> near, second, amplitude, phase;
};

class Bessel : Arithmetic {
public:
  Bessel(Value x, bool isOdd, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, x(x), size(math::AbsFOp::create(b, x)), isOdd(isOdd) {}
  Value first(const Polynomials &p);
  Value second(const Polynomials &p);
  Value modified(const Polynomials &p);

private:
  Value number(double value) { return constantOf(x.getType(), value, b); }
  /// Returns c[0] + c[1] at + c[2] at^2 + ...
  Value polynomial(ArrayRef<double> c, Value at) {
    Value sum = number(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fadd(fmul(sum, at), number(coefficient));
    return sum;
  }
  /// Returns a polynomial in the square of |x| / limit, for an odd function
  /// times |x|.
  Value near(ArrayRef<double> c, double limit) {
    Value t = fmul(size, number(1 / limit));
    Value even = polynomial(c, fmul(t, t));
    return isOdd ? fmul(even, size) : even;
  }
  /// Returns amplitude(3 / |x|) / sqrt |x| times the wave's cosine or sine.
  template <typename WaveT> Value wave(const Polynomials &p) {
    Value u = fdiv(number(3), size);
    Value angle = fadd(size, polynomial(p.phase, u));
    Value height =
        fdiv(polynomial(p.amplitude, u), math::SqrtOp::create(b, size));
    return fmul(height, WaveT::create(b, angle));
  }
  using Arithmetic::select;
  Value select(double limit, Value below, Value beyond) {
    Value isNear = compare(FPredicate::OLT, size, number(limit));
    return select(isNear, below, beyond);
  }
  Value withSign(Value y) {
    return isOdd ? fmul(y, math::CopySignOp::create(b, number(1), x)) : y;
  }

  Value x, size;
  bool isOdd;
};
} // namespace

Value Bessel::first(const Polynomials &p) {
  return withSign(select(3, near(p.near, 3), wave<math::CosOp>(p)));
}

/// The logarithm is what the function is where x is not positive: of 0 it is
/// negative infinity, and of what is negative NaN.
Value Bessel::second(const Polynomials &p) {
  Value log = math::LogOp::create(b, fmul(x, number(0.5)));
  Value rest = polynomial(p.second, fmul(fmul(x, x), number(1.0 / 9)));
  if (isOdd)
    rest = fdiv(rest, x);
  Value below =
      fadd(fmul(fmul(log, number(0.636619772367581)), near(p.near, 3)), rest);
  Value isOutside = compare(FPredicate::OLE, x, number(0));
  return select(isOutside, log, select(3, below, wave<math::SinOp>(p)));
}

Value Bessel::modified(const Polynomials &p) {
  constexpr double limit = 3.75;
  Value growth =
      fdiv(math::ExpOp::create(b, size), math::SqrtOp::create(b, size));
  Value beyond =
      fmul(polynomial(p.amplitude, fdiv(number(limit), size)), growth);
  return withSign(select(limit, near(p.near, limit), beyond));
}

// clang-format off
static const Polynomials &ordinary(bool isOdd) {
  static const Polynomials zero = {
      {1, -2.2499997, 1.2656208, -0.3163866, 0.0444479, -0.0039444, 0.0002100},
      {0.36746691, 0.60559366, -0.74350384, 0.25300117, -0.04261214, 0.00427916, -0.00024846},
      {0.79788456, -0.00000077, -0.00552740, -0.00009512, 0.00137237, -0.00072805, 0.00014476},
      {-0.78539816, -0.04166397, -0.00003954, 0.00262573, -0.00054125, -0.00029333, 0.00013558}};
  static const Polynomials one = {
      {0.5, -0.56249985, 0.21093573, -0.03954289, 0.00443319, -0.00031761, 0.00001109},
      {-0.6366198, 0.2212091, 2.1682709, -1.3164827, 0.3123951, -0.0400976, 0.0027873},
      {0.79788456, 0.00000156, 0.01659667, 0.00017105, -0.00249511, 0.00113653, -0.00020033},
      {-2.35619449, 0.12499612, 0.00005650, -0.00637879, 0.00074348, 0.00079824, -0.00029166}};
  return isOdd ? one : zero;
}

static const Polynomials &growing(bool isOdd) {
  static const Polynomials zero = {
      {1, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813}, {},
      {0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377}, {}};
  static const Polynomials one = {
      {0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411}, {},
      {0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059}, {}};
  return isOdd ? one : zero;
}
// clang-format on

Value triton::besselFirst(Value x, bool isOdd, ImplicitLocOpBuilder &b) {
  return Bessel(x, isOdd, b).first(ordinary(isOdd));
}

Value triton::besselSecond(Value x, bool isOdd, ImplicitLocOpBuilder &b) {
  return Bessel(x, isOdd, b).second(ordinary(isOdd));
}

Value triton::besselModified(Value x, bool isOdd, ImplicitLocOpBuilder &b) {
  return Bessel(x, isOdd, b).modified(growing(isOdd));
}
