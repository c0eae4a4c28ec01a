//===- Libdevice.cpp - functions of device libraries by name --------------===//
//
// Triton's `libdevice` names functions as NVIDIA's library does or as AMD's:
//
//   __nv_sinf, __nv_sin     __ocml_sin_f32, __ocml_sin_f64     -> sin
//
// A name means one op of arith or math, or a line of them.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

using LocBuilder = ImplicitLocOpBuilder;
struct Function {
  unsigned arity;
  Value (*expand)(ValueRange, LocBuilder &);
};

template <typename OpT> static Value unary(ValueRange x, LocBuilder &b) {
  return OpT::create(b, x[0]);
}
template <typename OpT> static Value binary(ValueRange x, LocBuilder &b) {
  return OpT::create(b, x[0], x[1]);
}
template <typename OpT> static Value ternary(ValueRange x, LocBuilder &b) {
  return OpT::create(b, x[0], x[1], x[2]);
}

/// Extends a truth to an i32, as which Triton takes it from libraries.
static Value asI32(Value truth, LocBuilder &b) {
  return arith::ExtUIOp::create(
      b, tile::withElementType(truth.getType(), b.getI32Type()), truth);
}

using Predicate = arith::CmpFPredicate;
static constexpr double infinity = std::numeric_limits<double>::infinity();

static Value isNan(ValueRange v, LocBuilder &b) {
  Number x(&b, v[0]);
  return asI32(x.is(Predicate::UNO, x), b);
}
static Value isInf(ValueRange v, LocBuilder &b) {
  return asI32(Number(&b, v[0]).abs() == infinity, b);
}
static Value isFinite(ValueRange v, LocBuilder &b) {
  return asI32(Number(&b, v[0]).abs() < infinity, b);
}
static Value signBit(ValueRange v, LocBuilder &b) {
  Type type = v[0].getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Type bits = tile::withElementType(type, b.getIntegerType(width));
  Value value = arith::BitcastOp::create(b, bits, v[0]);
  return asI32(Arithmetic{b}.below(value, numberOf(b, bits, 0)), b);
}
static Value fdim(ValueRange v, LocBuilder &b) {
  Number x(&b, v[0]), y(&b, v[1]), difference = x - y, zero = x.literal(0);
  return select(x.is(Predicate::OLE, y), zero, difference).value;
}
/// Returns the larger number times the root of 1 + the square of the quotient.
/// It is infinite beside an infinite number, then NaN beside NaN.
static Value hypot(ValueRange v, LocBuilder &b) {
  Number x = Number(&b, v[0]).abs(), y = Number(&b, v[1]).abs();
  Number most = x.with<arith::MaxNumFOp>(y),
         least = x.with<arith::MinNumFOp>(y);
  Number q = least / most, root = (q * q + 1).sqrt();
  Value isZero = least == 0, isInfinite = most == infinity;
  Value isNan = x.is(Predicate::UNO, y);
  Number length = select(isZero, most, most * root);
  length = select(isNan, x + y, length);
  return select(isInfinite, most, length).value;
}
static Value exp10(ValueRange v, LocBuilder &b) {
  Number x(&b, v[0]);
  return x.literal(10).with<math::PowFOp>(x).value;
}
static Value reciprocal(ValueRange v, LocBuilder &b) {
  Number x(&b, v[0]);
  return (x.literal(1) / x).value;
}
static Value saturate(ValueRange v, LocBuilder &b) {
  Number x(&b, v[0]), natural = x.with<arith::MaxNumFOp>(x.literal(0));
  return natural.with<arith::MinNumFOp>(x.literal(1)).value;
}
static Value bitsAs(Type element, Value x, LocBuilder &b) {
  return arith::BitcastOp::create(
      b, tile::withElementType(x.getType(), element), x);
}
static Value asInt(ValueRange x, LocBuilder &b) {
  return bitsAs(b.getI32Type(), x[0], b);
}
static Value asFloat(ValueRange x, LocBuilder &b) {
  return bitsAs(b.getF32Type(), x[0], b);
}

template <Number (*Bessel)(Number, bool), bool IsOdd>
static Value bessel(ValueRange x, LocBuilder &b) {
  return Bessel(Number(&b, x[0]), IsOdd).value;
}

static const llvm::StringMap<Function> &table() {
  static const llvm::StringMap<Function> functions = {
      // clang-format off
      {"abs", {1, [](ValueRange x, LocBuilder &b) -> Value {
         return isa<FloatType>(getElementTypeOrSelf(x[0].getType()))
                    ? unary<math::AbsFOp>(x, b) : unary<math::AbsIOp>(x, b); }}},
      {"llabs", {1, unary<math::AbsIOp>}},
      {"fabs", {1, unary<math::AbsFOp>}},
      {"floor", {1, unary<math::FloorOp>}}, {"ceil", {1, unary<math::CeilOp>}},
      {"trunc", {1, unary<math::TruncOp>}}, {"round", {1, unary<math::RoundOp>}},
      {"rint", {1, unary<math::RoundEvenOp>}}, {"nearbyint", {1, unary<math::RoundEvenOp>}},
      {"sqrt", {1, unary<math::SqrtOp>}}, {"rsqrt", {1, unary<math::RsqrtOp>}}, {"cbrt", {1, unary<math::CbrtOp>}},
      {"fsqrt_rn", {1, unary<math::SqrtOp>}}, {"dsqrt_rn", {1, unary<math::SqrtOp>}}, {"frsqrt_rn", {1, unary<math::RsqrtOp>}},
      {"exp", {1, unary<math::ExpOp>}}, {"exp2", {1, unary<math::Exp2Op>}}, {"exp10", {1, exp10}}, {"expm1", {1, unary<math::ExpM1Op>}},
      {"log", {1, unary<math::LogOp>}}, {"log2", {1, unary<math::Log2Op>}}, {"log10", {1, unary<math::Log10Op>}}, {"log1p", {1, unary<math::Log1pOp>}},
      {"sin", {1, unary<math::SinOp>}}, {"cos", {1, unary<math::CosOp>}}, {"tan", {1, unary<math::TanOp>}},
      {"asin", {1, unary<math::AsinOp>}}, {"acos", {1, unary<math::AcosOp>}}, {"atan", {1, unary<math::AtanOp>}},
      {"sinh", {1, unary<math::SinhOp>}}, {"cosh", {1, unary<math::CoshOp>}}, {"tanh", {1, unary<math::TanhOp>}},
      {"asinh", {1, unary<math::AsinhOp>}}, {"acosh", {1, unary<math::AcoshOp>}}, {"atanh", {1, unary<math::AtanhOp>}},
      {"erf", {1, unary<math::ErfOp>}}, {"erfc", {1, unary<math::ErfcOp>}},
      {"atan2", {2, binary<math::Atan2Op>}}, {"pow", {2, binary<math::PowFOp>}}, {"powi", {2, binary<math::FPowIOp>}}, {"pown", {2, binary<math::FPowIOp>}},
      {"fmod", {2, binary<arith::RemFOp>}}, {"copysign", {2, binary<math::CopySignOp>}}, {"hypot", {2, hypot}}, {"fdim", {2, fdim}},
      {"fmin", {2, binary<arith::MinNumFOp>}}, {"fmax", {2, binary<arith::MaxNumFOp>}},
      {"fma", {3, ternary<math::FmaOp>}}, {"fmaf_rn", {3, ternary<math::FmaOp>}},
      {"fadd_rn", {2, binary<arith::AddFOp>}}, {"fsub_rn", {2, binary<arith::SubFOp>}}, {"fmul_rn", {2, binary<arith::MulFOp>}},
      {"fdiv_rn", {2, binary<arith::DivFOp>}}, {"dadd_rn", {2, binary<arith::AddFOp>}}, {"dsub_rn", {2, binary<arith::SubFOp>}},
      {"dmul_rn", {2, binary<arith::MulFOp>}}, {"ddiv_rn", {2, binary<arith::DivFOp>}}, {"frcp_rn", {1, reciprocal}},
      {"fast_sin", {1, unary<math::SinOp>}}, {"fast_cos", {1, unary<math::CosOp>}}, {"fast_tan", {1, unary<math::TanOp>}},
      {"fast_exp", {1, unary<math::ExpOp>}}, {"fast_exp10", {1, exp10}}, {"fast_log", {1, unary<math::LogOp>}},
      {"fast_log2", {1, unary<math::Log2Op>}}, {"fast_log10", {1, unary<math::Log10Op>}}, {"fast_pow", {2, binary<math::PowFOp>}},
      {"fast_tanh", {1, unary<math::TanhOp>}}, {"fast_fdivide", {2, binary<arith::DivFOp>}},
      {"saturate", {1, saturate}},
      {"isnan", {1, isNan}}, {"isnand", {1, isNan}}, {"isinf", {1, isInf}}, {"isinfd", {1, isInf}},
      {"finite", {1, isFinite}}, {"isfinited", {1, isFinite}}, {"isfinite", {1, isFinite}}, {"signbit", {1, signBit}}, {"signbitd", {1, signBit}},
      {"min", {2, binary<arith::MinSIOp>}}, {"max", {2, binary<arith::MaxSIOp>}}, {"umin", {2, binary<arith::MinUIOp>}}, {"umax", {2, binary<arith::MaxUIOp>}},
      {"clz", {1, unary<math::CountLeadingZerosOp>}}, {"popc", {1, unary<math::CtPopOp>}},
      {"j0", {1, bessel<besselFirst, false>}}, {"j1", {1, bessel<besselFirst, true>}},
      {"y0", {1, bessel<besselSecond, false>}}, {"y1", {1, bessel<besselSecond, true>}},
      {"cyl_bessel_i0", {1, bessel<besselModified, false>}}, {"cyl_bessel_i1", {1, bessel<besselModified, true>}},
      {"i0", {1, bessel<besselModified, false>}}, {"i1", {1, bessel<besselModified, true>}},
      {"float_as_int", {1, asInt}}, {"float_as_uint", {1, asInt}}, {"int_as_float", {1, asFloat}}, {"uint_as_float", {1, asFloat}},
      // clang-format on
  };
  return functions;
}

Value triton::expandLibraryFunction(StringRef symbol, ValueRange operands,
                                    ImplicitLocOpBuilder &b) {
  StringRef name = symbol;
  if (name.consume_front("__ocml_"))
    name = name.substr(0, name.rfind('_'));
  else if (!name.consume_front("__nv_"))
    return {};
  auto known = table().find(name);
  if (known == table().end() && name.consume_back("f"))
    known = table().find(name);
  if (known == table().end() || known->second.arity != operands.size())
    return {};
  return known->second.expand(operands, b);
}
