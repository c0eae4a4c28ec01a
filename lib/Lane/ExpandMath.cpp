//===- ExpandMath.cpp - functions by formulas -----------------------------===//
//
// In: a kernel at the lane level with ops of arith and math on floats. Out: the
// same, with only those functions that the target has. In this order:
//
//   1. Functions of f16 and bf16, and division of bf16, go through f32: f32
//      instructions are as fast, and the result is rounded once.
//   2. Functions that MLIR has polynomials or formulas for become those.
//   3. The others become formulas of our own. If Vulkan promises little of
// GLSL's function, or there is none:
//
//        tanh, erf     minimax polynomials near 0, exponentials elsewhere;
//                      below 2 ulp
//        sin, cos      the rest of a division by pi/2, then a polynomial by
//                      the quadrant; below 2^-22 up to |x| = 100000
//        expm1, log1p  cancel near 0
//        powf          exp2(y log2 |x|), and IEEE's special cases
//        ctlz          the bits that are not at or below the highest one
//
// Functions of f64 are formulas of f64 (ExpandWideMath.cpp).
//
// The polynomials are least squares fits, reweighted to the smallest maximum of
// the relative error.
//
// Targets differ in their functions and in whether a fused multiply-add rounds
// once: Vulkan leaves that open.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "greta/Tile/Formula.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Functions that targets have
//===----------------------------------------------------------------------===//

/// Functions of f32 with instructions: everywhere, and on AMD; those of LLVM's
/// own expansions are good to an ulp or so.
static constexpr StringLiteral native[] = {"absf",  "exp", "exp2", "floor",
                                           "fma",   "log", "log2", "roundeven",
                                           "rsqrt", "sqrt"};
static constexpr StringLiteral nativeOnAmd[] = {"ceil",  "copysign", "isfinite",
                                                "isinf", "isnan",    "isnormal",
                                                "log10", "round",    "trunc"};
/// The ones of these that f64 has: everywhere, and on AMD.
static constexpr StringLiteral onF64[] = {"absf", "ceil",      "floor",
                                          "fma",  "roundeven", "sqrt"};
static constexpr StringLiteral onF64OfAmd[] = {"copysign", "isfinite", "isinf",
                                               "isnan", "trunc"};
/// The ones of these that AMD's f16 has too, exactly.
static constexpr StringLiteral exact[] = {
    "absf", "ceil", "copysign", "floor", "round", "roundeven", "trunc"};
/// Functions that MLIR has polynomials for, and those that it makes of others.
static constexpr StringLiteral polynomial[] = {"acos",  "asin", "atan",
                                               "atan2", "cbrt", "erfc"};
static constexpr StringLiteral composed[] = {
    "acosh", "asinh", "atanh", "clampf", "cosh", "sinh", "tan"};

/// Name of an op of the math dialect without its dialect, else empty.
static StringRef mathName(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return "";
  return op->getName().stripDialect();
}

/// Element type of an op's first operand, else null.
static Type operandElement(Operation *op) {
  return op->getNumOperands() ? getElementTypeOrSelf(op->getOperand(0))
                              : Type();
}

//===----------------------------------------------------------------------===//
// Narrow floats
//===----------------------------------------------------------------------===//

/// An op on a narrow float that is computed in f32.
static bool widens(Operation *op, const TargetRow &row) {
  Type type = operandElement(op);
  if (!type || (!type.isF16() && !type.isBF16()))
    return false;
  if (isa<arith::DivFOp, arith::RemFOp>(op))
    return type.isBF16() || (row.isVulkan() && isa<arith::RemFOp>(op));
  StringRef name = mathName(op);
  bool isExact = row.isHip() && type.isF16() &&
                 (name == "fma" || llvm::is_contained(exact, name));
  return !name.empty() && !isExact;
}

/// Puts `op` on f32, between conversions.
static void widen(Operation *op) {
  OpBuilder builder(op);
  auto f32Like = [&](Type type) {
    return tile::withElementType(type, builder.getF32Type());
  };
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (isa<FloatType>(getElementTypeOrSelf(type)))
      operand.set(arith::ExtFOp::create(builder, op->getLoc(), f32Like(type),
                                        operand.get()));
  }
  Value result = op->getResult(0);
  Type narrow = result.getType();
  if (!isa<FloatType>(getElementTypeOrSelf(narrow)))
    return;
  result.setType(f32Like(narrow));
  builder.setInsertionPointAfter(op);
  auto rounded = arith::TruncFOp::create(builder, op->getLoc(), narrow, result);
  result.replaceAllUsesExcept(rounded, rounded);
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

namespace {

/// An f32, or a vector of them, in the making: lets formulas read as formulas.
struct Real : Formula<Real, float, int32_t> {
  using Formula::Formula;

  Real exp() const { return with<math::ExpOp>(); }
  Real exp2() const { return with<math::Exp2Op>(); }
  Real log() const { return with<math::LogOp>(); }
  Real log2() const { return with<math::Log2Op>(); }
  Real times(float y, Real z) const { return with<math::FmaOp>(literal(y), z); }

  /// 2^this for results that are neither tiny nor wanted to the last bit.
  Real fastExp2() const {
    return make(math::Exp2Op::create(*b, value, arith::FastMathFlags::afn));
  }
};

/// tanh(x) for |x| < 0.625.
Real tanhNear(Real x) {
  Real square = x * x;
  return x + x * (square * square.polynomial({-0.333332807f, 0.133314416f,
                                              -0.0537397116f, 0.0206390787f,
                                              -0.00570497848f}));
}

Real tanh(Real x) {
  Real size = x.abs();
  // The power may overflow: 2 / infinity is the 0 wanted.
  Real power = (size * 2.88539008f).fastExp2();
  Real far = x.literal(1) - x.literal(2) / (power + 1);
  return select(size < 0.625f, tanhNear(x), far.withSignOf(x));
}

Real erf(Real x) {
  Real size = x.abs(), square = x * x;
  Real near =
      x + x * square.polynomial({0.128379166f, -0.37612626f, 0.112835854f,
                                 -0.026853811f, 0.00518832775f,
                                 -0.000801019254f, 7.85385782e-05f});
  // erfc(t) = 2^(-t p(t)) up to 4, where erf is 1; NaN must survive the clamp.
  Real clamped = select(size.is(arith::CmpFPredicate::OGT, x.literal(4)),
                        x.literal(4), size);
  Real exponent = clamped * clamped.polynomial(
                                {1.62805259f, 0.917310894f, 0.151650548f,
                                 -0.03289124f, 0.0045977952f, -0.00030389434f});
  Real far = x.literal(1) - (-exponent).fastExp2();
  return select(size < 1.0f, near, far.withSignOf(x));
}

/// sin(x + quarters * pi / 2).
Real sine(Real x, int quarters, bool isFused) {
  Real turns = (x * 0.636619772f).roundEven();
  Real r = x;
  if (isFused) {
    // pi/2 in three floats; what is taken away is rounded once.
    for (float part : {-0x1.921fb6p+0f, 0x1.777a5cp-25f, 0x1.ee59dap-50f})
      r = turns.times(part, r);
  } else {
    // In three pieces of 8 bits, whose products are exact, and the rest.
    for (float part :
         {1.5703125f, 0.00048255920f, 1.2665987e-06f, 9.9209358e-10f})
      r = r - turns * part;
  }
  Real square = r * r;
  Real sin = r + r * (square * square.polynomial({-0.166666552f, 0.00833215471f,
                                                  -0.000195140834f}));
  Real cos = square.polynomial(
      {1.0f, -0.5f, 0.0416666456f, -0.00138873374f, 2.44348448e-05f});
  Value quadrant = arith::FPToSIOp::create(*x.b, x.integers(), turns.value);
  return byQuadrant(quadrant, quarters, cos, [&] { return sin; });
}

/// exp(x) - 1 = 2 tanh(x/2) / (1 - tanh(x/2)) near 0.
Real expm1(Real x) {
  Real half = tanhNear(x * 0.5f);
  Real near = (half * 2) / (x.literal(1) - half);
  return select(x.abs() < 0.5f, near, x.exp() - 1);
}

/// log(1 + x) = 2 atanh(x / (2 + x)), by its series near 0.
Real log1p(Real x) {
  Real ratio = x / (x + 2), square = ratio * ratio;
  Real near = ratio * square.polynomial({2.0f, 2.0f / 3, 2.0f / 5, 2.0f / 7,
                                         2.0f / 9, 2.0f / 11});
  return select(x.abs() < 0.5f, near, (x + 1).log());
}

/// log2 |x|, given the bits of |x|; of denormals, which a GPU may take for
/// zero, by the integer that they are.
Real log2OfSize(Real size, Value bits) {
  Arithmetic a{*size.b};
  Real units =
      size.make(arith::SIToFPOp::create(a.b, size.value.getType(), bits));
  Value isSmall =
      a.compare(arith::CmpIPredicate::ult, bits, size.integer(0x00800000));
  return select(isSmall, units.log2() - 149.0f, size.log2());
}

/// |x|^y = 2^(y log2 |x|), what is 0, 1, infinite or no number apart, as C's
/// pow has it: a negative finite x needs a whole y, and is the result's sign
/// where that is odd. x^0 and 1^y are 1, also for a NaN. An `isOdd` is of
/// integers, which are all whole.
Real pow(Real x, Real y, Value isOdd = {}) {
  using P = arith::CmpFPredicate;
  Arithmetic a{*x.b};
  auto both = [&](Value p, Value q) -> Value { return a.both(p, q); };
  Value bits = a.both(x.bits(), x.integer(0x7fffffff));
  Real size = x.make(arith::BitcastOp::create(a.b, x.value.getType(), bits));
  Real infinity = x.literal(std::numeric_limits<float>::infinity());
  Real one = x.literal(1), zero = x.literal(0);
  Real nan = x.literal(std::numeric_limits<float>::quiet_NaN());
  Value isFinite = size.is(P::OLT, infinity);

  Real result = (y * log2OfSize(size, bits)).exp2();
  // The results for 0, 1 and infinity do not depend on a target's functions.
  auto isBits = [&](int32_t number) -> Value {
    return a.equal(bits, x.integer(number));
  };
  Value isZero = isBits(0);
  Value growsInY = size.is(P::OGT, one), isPositive = y.is(P::OGT, zero);
  Value isExtreme = a.either(isZero, isBits(0x7f800000));
  isExtreme = a.either(isExtreme, y.abs() == infinity);
  Value isLarge = a.equal(growsInY, isPositive);
  result = select(isExtreme, select(isLarge, infinity, zero), result);
  result = select(isBits(0x3f800000), one, result);

  Value isInvalid;
  if (!isOdd) {
    Value isFraction = y.floor() != y;
    Real half = y * 0.5f;
    isOdd = both(y.floor() == y, half.floor() != half);
    isInvalid = both(both(x < 0.0f, isFinite), isFraction);
  }
  result = select(isOdd, result.withSignOf(x), result);
  if (isInvalid)
    result = select(isInvalid, nan, result);
  Value isNaN = x.is(P::UNO, y);
  Value isOne = a.either(y == zero, x == one);
  return select(isOne, one, select(isNaN, nan, result));
}

/// Whether the last bit of an integer, or of each of a vector, is set.
Value isOddInteger(ImplicitLocOpBuilder &b, Value n) {
  Arithmetic a{b};
  Value unit = constantOf(b, n.getType(), 1);
  Value last = a.both(n, unit);
  return a.equal(last, unit);
}

/// Zeros above the highest bit: with all bits below it set, those that are not.
/// Vulkan counts the bits of 32-bit integers.
Value leadingZeros(ImplicitLocOpBuilder &b, Value x) {
  Arithmetic a{b};
  Type i32 = b.getI32Type();
  auto constant = [&](Type type, int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  int64_t width = x.getType().getIntOrFloatBitWidth();
  if (width == 64) {
    Value shift = constant(x.getType(), 32);
    Value upper = arith::TruncIOp::create(b, i32, a.shr(x, shift));
    Value lower = arith::TruncIOp::create(b, i32, x);
    Value behind = a.add(leadingZeros(b, lower), constant(i32, 32));
    Value isEmpty = a.equal(upper, constant(i32, 0));
    Value count = a.select(isEmpty, behind, leadingZeros(b, upper));
    return arith::ExtUIOp::create(b, x.getType(), count);
  }
  Value set = width < 32 ? Value(arith::ExtUIOp::create(b, i32, x)) : x;
  for (int64_t shift = 1; shift < width; shift *= 2)
    set = a.either(set, a.shr(set, constant(i32, shift)));
  Value count = a.sub(constant(i32, width), math::CtPopOp::create(b, set));
  return width < 32 ? Value(arith::TruncIOp::create(b, x.getType(), count))
                    : count;
}

} // namespace

std::optional<int64_t> greta::wholeExponent(Value value) {
  constexpr int64_t largest = 64;
  APFloat real(0.0f);
  APInt whole;
  if (matchPattern(value, m_ConstantFloat(&real))) {
    if (!real.isInteger() || std::abs(real.convertToDouble()) > largest)
      return std::nullopt;
    return static_cast<int64_t>(real.convertToDouble());
  }
  if (!matchPattern(value, m_ConstantInt(&whole)) || whole.sgt(largest) ||
      whole.slt(-largest))
    return std::nullopt;
  return whole.getSExtValue();
}

/// `op` as a formula on f32; null if there is none.
static Value formula(Operation *op, const TargetRow &row) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Real x{&b, op->getOperand(0)};
  Real y{&b, op->getNumOperands() > 1 ? op->getOperand(1) : Value()};
  return llvm::TypeSwitch<Operation *, Real>(op)
      .Case([&](math::TanhOp) { return tanh(x); })
      .Case([&](math::ErfOp) { return erf(x); })
      .Case([&](math::SinOp) { return sine(x, 0, row.isHip()); })
      .Case([&](math::CosOp) { return sine(x, 1, row.isHip()); })
      .Case([&](math::ExpM1Op) { return expm1(x); })
      .Case([&](math::Log1pOp) { return log1p(x); })
      .Case([&](math::Log10Op) { return x.log2() * 0.301029996f; })
      .Case([&](math::CeilOp) { return -(-x).floor(); })
      .Case([&](math::TruncOp) { return x.trunc(); })
      .Case([&](math::RoundOp) { return x.round(); })
      .Case([&](math::CopySignOp) { return x.withSignOf(y); })
      .Case<math::PowFOp, math::FPowIOp>([&](auto power) {
        if (std::optional<int64_t> n = wholeExponent(power.getRhs()))
          return powInteger(x, *n);
        if (!std::is_same_v<decltype(power), math::FPowIOp>)
          return pow(x, y);
        Value whole = y.value;
        y.value = arith::SIToFPOp::create(b, x.value.getType(), whole);
        return pow(x, y, isOddInteger(b, whole));
      })
      .Default([&](auto) { return x.make(Value()); })
      .value;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult greta::expandMath(Operation *kernel, const TargetRow &row) {
  SmallVector<Operation *> narrow;
  bool isForeign = false;
  WalkResult walk = kernel->walk([&](Operation *op) -> WalkResult {
    if (widens(op, row))
      narrow.push_back(op);
    StringRef name = mathName(op);
    if (!name.empty() && operandElement(op).isF64() &&
        !llvm::is_contained(onF64, name) &&
        !(row.isHip() && llvm::is_contained(onF64OfAmd, name))) {
      Value value = expandWideMath(op);
      if (!value)
        return op->emitOpError("is on f64, and has no expansion there; compute "
                               "it in f32");
      op->getResult(0).replaceAllUsesWith(value);
      op->erase();
      return WalkResult::advance();
    }
    isForeign |= llvm::is_contained(polynomial, name) ||
                 llvm::is_contained(composed, name);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  llvm::for_each(narrow, widen);
  if (isForeign) {
    RewritePatternSet patterns(kernel->getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name.consume_front("math.") &&
             llvm::is_contained(polynomial, name);
    });
    SmallVector<StringRef> names(std::begin(composed), std::end(composed));
    math::populateExpansionPatterns(patterns, names);
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return kernel->emitOpError("has functions whose expansion does not end");
  }

  walk = kernel->walk([&](Operation *op) -> WalkResult {
    if (row.isVulkan() && isa<arith::RemFOp>(op)) {
      expandRemainder(op);
      return WalkResult::advance();
    }
    if (auto zeros = dyn_cast<math::CountLeadingZerosOp>(op);
        zeros && row.isVulkan() && zeros.getType().isInteger()) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      zeros.replaceAllUsesWith(leadingZeros(b, zeros.getOperand()));
      zeros.erase();
      return WalkResult::advance();
    }
    StringRef name = mathName(op);
    if (name.empty() || !isa<FloatType>(operandElement(op)) ||
        llvm::is_contained(native, name) ||
        (row.isHip() && llvm::is_contained(nativeOnAmd, name)))
      return WalkResult::advance();
    Value value = formula(op, row);
    if (!value)
      return op->emitOpError("has neither an instruction nor an expansion on ")
             << row.name;
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
