//===- TileToSPIRVMath.cpp - math to SPIR-V -------------------------------===//
//
// But for f64 everything is computed in f32 and rounded once to f16 or bf16.
// What Vulkan specifies well enough (exp, log, sqrt, ... within a few units in
// the last place) is GLSL's instruction. Where GLSL is weak, formulas of our
// own:
//
//   tanh, erf   GLSL's tanh cancels near 0, erf does not exist: minimax
//               polynomials near 0, exponentials elsewhere; below 2 ulp
//   sin, cos    GLSL promises 2^-11 in [-pi, pi]: argument reduction by pi/2
//               in four steps, below 2^-23 up to |x| = 100000
//   expm1, log1p  cancel near 0
//   powf        GLSL leaves negative bases open
//
// The polynomials are least squares fits, reweighted to the smallest maximum of
// the relative error.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::Parts;

namespace {

/// An f32 in the making: lets formulas read as formulas.
struct F32 {
  KernelEmitter *e;
  Value value;

  F32 make(Value result) const { return {e, result}; }
  F32 literal(float number) const { return {e, e->constF32(number)}; }

  F32 operator+(F32 y) const {
    return make(e->same<spirv::FAddOp>(value, y.value));
  }
  F32 operator-(F32 y) const {
    return make(e->same<spirv::FSubOp>(value, y.value));
  }
  F32 operator*(F32 y) const {
    return make(e->same<spirv::FMulOp>(value, y.value));
  }
  F32 operator/(F32 y) const {
    return make(e->same<spirv::FDivOp>(value, y.value));
  }
  F32 operator+(float y) const { return *this + literal(y); }
  F32 operator-(float y) const { return *this - literal(y); }
  F32 operator*(float y) const { return *this * literal(y); }
  F32 operator-() const { return make(e->same<spirv::FNegateOp>(value)); }
  Value operator<(float y) const {
    return e->compare<spirv::FOrdLessThanOp>(value, literal(y).value);
  }
  Value operator==(F32 y) const {
    return e->compare<spirv::FOrdEqualOp>(value, y.value);
  }
  F32 abs() const { return make(e->same<spirv::GLFAbsOp>(value)); }
  F32 exp() const { return make(e->same<spirv::GLExpOp>(value)); }
  F32 exp2() const { return make(e->same<spirv::GLExp2Op>(value)); }
  F32 log() const { return make(e->same<spirv::GLLogOp>(value)); }
  F32 log2() const { return make(e->same<spirv::GLLog2Op>(value)); }
  F32 floor() const { return make(e->same<spirv::GLFloorOp>(value)); }
  F32 roundEven() const { return make(e->same<spirv::GLRoundEvenOp>(value)); }

  /// c[0] + c[1] x + c[2] x^2 + ...
  F32 polynomial(llvm::ArrayRef<float> c) const {
    F32 sum = literal(c.back());
    for (float coefficient : llvm::reverse(c.drop_back()))
      sum = sum * *this + coefficient;
    return sum;
  }
  F32 withSignOf(F32 y) const {
    Type i32 = e->b.getI32Type();
    Value magnitude = e->same<spirv::BitwiseAndOp>(e->bitcast(i32, value),
                                                   e->constI32(0x7fffffff));
    Value sign = e->same<spirv::BitwiseAndOp>(e->bitcast(i32, y.value),
                                              e->constI32(0x80000000));
    return make(e->bitcast(value.getType(),
                           e->same<spirv::BitwiseOrOp>(magnitude, sign)));
  }
};

F32 select(Value condition, F32 x, F32 y) {
  return x.make(x.e->select(condition, x.value, y.value));
}

F32 tanh(F32 x) {
  F32 size = x.abs(), square = x * x;
  F32 near = x + x * (square * square.polynomial({-0.333332807f, 0.133314416f,
                                                  -0.0537397116f, 0.0206390787f,
                                                  -0.00570497848f}));
  // exp may overflow: 2 / infinity is the 0 wanted.
  F32 far = x.literal(1) - x.literal(2) / ((size * 2).exp() + 1);
  return select(size < 0.625f, near, far.withSignOf(x));
}

F32 erf(F32 x) {
  F32 size = x.abs(), square = x * x;
  F32 near =
      x + x * square.polynomial({0.128379166f, -0.37612626f, 0.112835854f,
                                 -0.026853811f, 0.00518832775f,
                                 -0.000801019254f, 7.85385782e-05f});
  // erfc(t) = 2^(-t p(t)) up to 4, where erf is 1; NaN must survive the clamp.
  F32 clamped = select(
      x.e->compare<spirv::FOrdGreaterThanOp>(size.value, x.literal(4).value),
      x.literal(4), size);
  F32 exponent = clamped * clamped.polynomial({1.62805259f, 0.917310894f,
                                               0.151650548f, -0.03289124f,
                                               0.0045977952f, -0.00030389434f});
  F32 far = x.literal(1) - (-exponent).exp2();
  return select(size < 1.0f, near, far.withSignOf(x));
}

/// sin(x + quarters * pi / 2).
F32 sine(F32 x, int quarters) {
  KernelEmitter &e = *x.e;
  F32 turns = (x * 0.636619772f).roundEven();
  // pi/2 in three pieces of 8 bits, whose products are exact, and the rest.
  F32 r = x;
  for (float piece :
       {1.5703125f, 0.00048255920f, 1.2665987e-06f, 9.9209358e-10f})
    r = r - turns * piece;
  F32 square = r * r;
  F32 sin = r + r * (square * square.polynomial({-0.166666552f, 0.00833215471f,
                                                 -0.000195140834f}));
  F32 cos = square.polynomial(
      {1.0f, -0.5f, 0.0416666456f, -0.00138873374f, 2.44348448e-05f});
  Value quadrant = e.make<spirv::ConvertFToSOp>(e.b.getI32Type(), turns.value);
  if (quarters)
    quadrant = e.same<spirv::IAddOp>(quadrant, e.constI32(quarters));
  auto bit = [&](int64_t mask) {
    Value masked = e.same<spirv::BitwiseAndOp>(quadrant, e.constI32(mask));
    return e.compare<spirv::INotEqualOp>(masked, e.constI32(0));
  };
  F32 result = select(bit(1), cos, sin);
  return select(bit(2), -result, result);
}

/// exp(x) - 1 = 2 tanh(x/2) / (1 - tanh(x/2)) near 0.
F32 expm1(F32 x) {
  F32 half = tanh(x * 0.5f);
  F32 near = (half * 2) / (x.literal(1) - half);
  return select(x.abs() < 0.5f, near, x.exp() - 1);
}

/// log(1 + x) = 2 atanh(x / (2 + x)), by its series near 0.
F32 log1p(F32 x) {
  F32 ratio = x / (x + 2), square = ratio * ratio;
  F32 near = ratio * square.polynomial({2.0f, 2.0f / 3, 2.0f / 5, 2.0f / 7,
                                        2.0f / 9, 2.0f / 11});
  return select(x.abs() < 0.5f, near, (x + 1).log());
}

F32 truncate(F32 x) { return x.abs().floor().withSignOf(x); }

/// Halves away from zero; the addend is the largest float below one half, so
/// that 0.49999997 does not become 1.
F32 round(F32 x) { return (x.abs() + 0.49999997f).floor().withSignOf(x); }

F32 pow(F32 x, F32 y) {
  F32 size = (y * x.abs().log2()).exp2();
  // A negative base: odd exponents change the sign, fractions have no result.
  F32 half = y * 0.5f;
  Value whole = y.floor() == y, even = half.floor() == half;
  F32 nan = x.literal(std::numeric_limits<float>::quiet_NaN());
  F32 signedSize = select(whole, select(even, size, -size), nan);
  F32 result = select(x < 0.0f, signedSize, size);
  return select(y == y.literal(0), x.literal(1), result);
}

/// x^n by squaring.
F32 powInteger(F32 x, int64_t n) {
  uint64_t left = std::abs(n);
  F32 result = x.literal(1), power = x;
  bool first = true;
  for (; left; left /= 2) {
    if (left % 2) {
      result = first ? power : result * power;
      first = false;
    }
    if (left > 1)
      power = power * power;
  }
  return n < 0 ? x.literal(1) / result : result;
}

/// The exponent of a power that is a small constant whole number.
std::optional<int64_t> wholeExponent(Value value) {
  constexpr int64_t largest = 64;
  APFloat real(0.0f);
  APInt whole;
  int64_t n;
  if (matchPattern(value, m_ConstantFloat(&real))) {
    if (!real.isInteger() || real.isInfinity())
      return std::nullopt;
    n = static_cast<int64_t>(real.convertToDouble());
  } else if (matchPattern(value, m_ConstantInt(&whole))) {
    n = whole.getSExtValue();
  } else {
    return std::nullopt;
  }
  return std::abs(n) <= largest ? std::optional(n) : std::nullopt;
}

} // namespace

/// On f32 operands; null for ops that are not known.
static Value emitReal(KernelEmitter &e, Operation *op, Parts parts) {
  F32 x{&e, parts[0]};
  F32 y{&e, parts.size() > 1 ? parts[1] : Value()};
  F32 result =
      llvm::TypeSwitch<Operation *, F32>(op)
          .Case<math::ExpOp>([&](auto) { return x.exp(); })
          .Case<math::Exp2Op>([&](auto) { return x.exp2(); })
          .Case<math::ExpM1Op>([&](auto) { return expm1(x); })
          .Case<math::LogOp>([&](auto) { return x.log(); })
          .Case<math::Log2Op>([&](auto) { return x.log2(); })
          .Case<math::Log10Op>([&](auto) { return x.log2() * 0.301029996f; })
          .Case<math::Log1pOp>([&](auto) { return log1p(x); })
          .Case<math::SqrtOp>(
              [&](auto) { return x.make(e.same<spirv::GLSqrtOp>(x.value)); })
          .Case<math::RsqrtOp>([&](auto) {
            return x.make(e.same<spirv::GLInverseSqrtOp>(x.value));
          })
          .Case<math::TanhOp>([&](auto) { return tanh(x); })
          .Case<math::ErfOp>([&](auto) { return erf(x); })
          .Case<math::SinOp>([&](auto) { return sine(x, 0); })
          .Case<math::CosOp>([&](auto) { return sine(x, 1); })
          .Case<math::TanOp>([&](auto) { return sine(x, 0) / sine(x, 1); })
          .Case<math::FloorOp>([&](auto) { return x.floor(); })
          .Case<math::CeilOp>([&](auto) { return -(-x).floor(); })
          .Case<math::TruncOp>([&](auto) { return truncate(x); })
          .Case<math::RoundOp>([&](auto) { return round(x); })
          .Case<math::RoundEvenOp>([&](auto) { return x.roundEven(); })
          .Case<math::AbsFOp>([&](auto) { return x.abs(); })
          .Case<math::CopySignOp>([&](auto) { return x.withSignOf(y); })
          .Case<math::FmaOp>([&](auto) {
            return x.make(e.same<spirv::GLFmaOp>(parts[0], parts[1], parts[2]));
          })
          .Case<math::PowFOp, math::FPowIOp>([&](auto power) {
            if (std::optional<int64_t> n = wholeExponent(power.getRhs()))
              return powInteger(x, *n);
            return std::is_same_v<decltype(power), math::PowFOp>
                       ? pow(x, y)
                       : F32{&e, Value()};
          })
          .Default([&](auto) { return F32{&e, Value()}; });
  return result.value;
}

/// On f64, of which Vulkan has GLSL's roundings and roots; null for others.
static Value emitDouble(KernelEmitter &e, Operation *op, Parts x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::SqrtOp>([&](auto) { return e.same<spirv::GLSqrtOp>(x[0]); })
      .Case<math::FloorOp>([&](auto) { return e.same<spirv::GLFloorOp>(x[0]); })
      .Case<math::CeilOp>([&](auto) { return e.same<spirv::GLCeilOp>(x[0]); })
      .Case<math::AbsFOp>([&](auto) { return e.same<spirv::GLFAbsOp>(x[0]); })
      .Case<math::RoundEvenOp>(
          [&](auto) { return e.same<spirv::GLRoundEvenOp>(x[0]); })
      .Case<math::FmaOp>(
          [&](auto) { return e.same<spirv::GLFmaOp>(x[0], x[1], x[2]); })
      .Default([](auto) { return Value(); });
}

LogicalResult KernelEmitter::emitMathOp(Operation *op) {
  if (op->getNumResults() != 1)
    return unknown(op);
  Type scalar = getElementTypeOrSelf(op->getResult(0).getType());
  return elementwise(op, [&](Parts x) -> Value {
    if (isa<math::AbsIOp>(op))
      return same<spirv::GLSAbsOp>(x[0]);
    // Vulkan counts the bits of 32-bit integers only.
    if (isa<math::CtPopOp>(op) && scalar.isInteger(32))
      return same<spirv::BitCountOp>(x[0]);
    if (!isa<FloatType>(scalar))
      return Value();
    if (scalar.isF64())
      return emitDouble(*this, op, x);
    SmallVector<Value, 3> operands;
    for (Value operand : x)
      operands.push_back(isa<FloatType>(operand.getType()) ? toF32(operand)
                                                           : operand);
    Value result = emitReal(*this, op, operands);
    return result ? fromF32(result, scalar) : result;
  });
}
