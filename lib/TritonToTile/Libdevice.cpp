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

static Value compare(Value x, Value y, arith::CmpFPredicate predicate,
                     LocBuilder &b) {
  return arith::CmpFOp::create(b, predicate, x, y);
}
/// Extends a truth to an i32, as which Triton takes it from libraries.
static Value asI32(Value truth, LocBuilder &b) {
  return arith::ExtUIOp::create(
      b, tile::withElementType(truth.getType(), b.getI32Type()), truth);
}
static Value infinityLike(Value x, LocBuilder &b) {
  return constantOf(x.getType(), std::numeric_limits<double>::infinity(), b);
}

static Value isNan(ValueRange x, LocBuilder &b) {
  return asI32(compare(x[0], x[0], arith::CmpFPredicate::UNO, b), b);
}
static Value isInf(ValueRange x, LocBuilder &b) {
  return asI32(compare(math::AbsFOp::create(b, x[0]), infinityLike(x[0], b),
                       arith::CmpFPredicate::OEQ, b),
               b);
}
static Value isFinite(ValueRange x, LocBuilder &b) {
  return asI32(compare(math::AbsFOp::create(b, x[0]), infinityLike(x[0], b),
                       arith::CmpFPredicate::OLT, b),
               b);
}
static Value signBit(ValueRange x, LocBuilder &b) {
  Type type = x[0].getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Type bits = tile::withElementType(type, b.getIntegerType(width));
  Value value = arith::BitcastOp::create(b, bits, x[0]);
  return asI32(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, value,
                                     constantOf(bits, 0.0, b)),
               b);
}
static Value fdim(ValueRange x, LocBuilder &b) {
  Value difference = arith::SubFOp::create(b, x[0], x[1]);
  Value zero = constantOf(x[0].getType(), 0.0, b);
  return arith::SelectOp::create(
      b, compare(x[0], x[1], arith::CmpFPredicate::OLE, b), zero, difference);
}
/// Returns the larger number times the root of 1 + the square of the quotient.
/// It is infinite beside an infinite number, then NaN beside NaN.
static Value hypot(ValueRange x, LocBuilder &b) {
  Value u = math::AbsFOp::create(b, x[0]), v = math::AbsFOp::create(b, x[1]);
  Value most = arith::MaxNumFOp::create(b, u, v);
  Value least = arith::MinNumFOp::create(b, u, v);
  Value one = constantOf(u.getType(), 1.0, b);
  Value zero = constantOf(u.getType(), 0.0, b);
  Value q = arith::DivFOp::create(b, least, most);
  Value root = math::SqrtOp::create(
      b, arith::AddFOp::create(b, arith::MulFOp::create(b, q, q), one));
  Value isZero = compare(least, zero, arith::CmpFPredicate::OEQ, b);
  Value isInfinite =
      compare(most, infinityLike(u, b), arith::CmpFPredicate::OEQ, b);
  Value isNan = compare(u, v, arith::CmpFPredicate::UNO, b);
  Value length = arith::SelectOp::create(b, isZero, most,
                                         arith::MulFOp::create(b, most, root));
  length =
      arith::SelectOp::create(b, isNan, arith::AddFOp::create(b, u, v), length);
  return arith::SelectOp::create(b, isInfinite, most, length);
}
static Value exp10(ValueRange x, LocBuilder &b) {
  return math::PowFOp::create(b, constantOf(x[0].getType(), 10.0, b), x[0]);
}
static Value reciprocal(ValueRange x, LocBuilder &b) {
  return arith::DivFOp::create(b, constantOf(x[0].getType(), 1.0, b), x[0]);
}
static Value saturate(ValueRange x, LocBuilder &b) {
  Value zero = constantOf(x[0].getType(), 0.0, b);
  Value one = constantOf(x[0].getType(), 1.0, b);
  return arith::MinNumFOp::create(b, arith::MaxNumFOp::create(b, x[0], zero),
                                  one);
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

template <Value (*Bessel)(Value, bool, LocBuilder &), bool IsOdd>
static Value bessel(ValueRange x, LocBuilder &b) {
  return Bessel(x[0], IsOdd, b);
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
