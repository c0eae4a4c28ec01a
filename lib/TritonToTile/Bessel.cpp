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
} // namespace

/// Returns a polynomial in the square of |x| / limit, for an odd function times
/// |x|.
static Number near(Number size, bool isOdd, ArrayRef<double> c, double limit) {
  Number t = size * (1 / limit), even = (t * t).polynomial(c);
  return isOdd ? even * size : even;
}

/// Returns amplitude(3 / |x|) / sqrt |x| times the wave's cosine or sine.
template <typename WaveT>
static Number wave(Number size, const Polynomials &p) {
  Number u = size.literal(3) / size, angle = size + u.polynomial(p.phase);
  return u.polynomial(p.amplitude) / size.sqrt() * angle.with<WaveT>();
}

static Number split(Number size, double limit, Number below, Number beyond) {
  return select(size < limit, below, beyond);
}

static Number withSign(Number y, Number x, bool isOdd) {
  return isOdd ? y * x.literal(1).with<math::CopySignOp>(x) : y;
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

Number triton::besselFirst(Number x, bool isOdd) {
  const Polynomials &p = ordinary(isOdd);
  Number size = x.abs(), below = near(size, isOdd, p.near, 3);
  Number y = split(size, 3, below, wave<math::CosOp>(size, p));
  return withSign(y, x, isOdd);
}

/// The logarithm is what the function is where x is not positive: of 0 it is
/// negative infinity, and of what is negative NaN.
Number triton::besselSecond(Number x, bool isOdd) {
  const Polynomials &p = ordinary(isOdd);
  Number size = x.abs(), log = (x * 0.5).with<math::LogOp>();
  Number rest = (x * x * (1.0 / 9)).polynomial(p.second);
  if (isOdd)
    rest = rest / x;
  Number below = log * 0.636619772367581 * near(size, isOdd, p.near, 3) + rest;
  Value isOutside = x.is(arith::CmpFPredicate::OLE, x.literal(0));
  return select(isOutside, log,
                split(size, 3, below, wave<math::SinOp>(size, p)));
}

Number triton::besselModified(Number x, bool isOdd) {
  constexpr double limit = 3.75;
  const Polynomials &p = growing(isOdd);
  Number size = x.abs(), growth = size.with<math::ExpOp>() / size.sqrt();
  Number beyond = (size.literal(limit) / size).polynomial(p.amplitude) * growth;
  Number below = near(size, isOdd, p.near, limit);
  return withSign(split(size, limit, below, beyond), x, isOdd);
}
