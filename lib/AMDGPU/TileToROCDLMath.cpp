//===- TileToROCDLMath.cpp - arith and math for the AMDGPU backend --------===//
//
// What the backend has no instruction for becomes what it has, before the
// conversion to LLVM; no device library is linked, so nothing may become a
// call. In this order:
//
//   1. Functions of f16 and bf16, and division of bf16, go through f32: the
//      f32 instructions are as fast, and the result is rounded once.
//   2. sin, tanh, erf, ... become polynomials; pow, sinh, ... other functions.
//   3. f32 arithmetic may contract (a multiplication and an addition become
//      one fma). Narrower types may not: they round where the source says so.
//
// What stays has instructions: exp, exp2, log, log2, log10, sqrt and rsqrt.
// The backend's own expansions of those are good to an ulp or so and right for
// denormals. `fastmath<afn>` on exp and exp2 asks for the bare v_exp_f32: one
// instruction instead of six (exp2) or thirteen (exp). It flushes results below
// 2^-126, and for exp its relative error is |x| * 1e-7; for a softmax (x <= 0)
// that leaves the result's error below 4e-8.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// Functions with instructions for f32, or a short expansion in the backend.
static constexpr StringLiteral native[] = {
    "absf", "absi",  "ceil",  "copysign",  "ctlz",  "cttz",  "ctpop",    "exp",
    "exp2", "floor", "fma",   "isfinite",  "isinf", "isnan", "isnormal", "log",
    "log2", "log10", "round", "roundeven", "rsqrt", "sqrt",  "trunc"};
/// Those of them that f64 has.
static constexpr StringLiteral onF64[] = {
    "absf",  "ceil",  "copysign",  "floor", "fma",  "isfinite",
    "isinf", "isnan", "roundeven", "sqrt",  "trunc"};
/// Functions that become polynomials.
static constexpr StringLiteral polynomial[] = {"acos",  "asin", "atan", "atan2",
                                               "cbrt",  "erf",  "erfc", "expm1",
                                               "log1p", "tanh"};
/// Functions that become other functions.
static constexpr StringLiteral composed[] = {
    "acosh", "asinh", "atanh", "clampf", "cosh", "fpowi", "sinh", "tan"};
/// Functions that are expanded here.
static constexpr StringLiteral ours[] = {"cos", "powf", "sin"};
/// Native functions that narrow floats have too, exactly.
static constexpr StringLiteral exact[] = {
    "absf", "ceil", "copysign", "floor", "round", "roundeven", "trunc"};

/// Name of an op of the math dialect without its dialect, else empty.
static StringRef mathName(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return "";
  return op->getName().stripDialect();
}

/// Element type of an op's only result, else null.
static Type resultElement(Operation *op) {
  return op->getNumResults() == 1 ? getElementTypeOrSelf(op->getResult(0))
                                  : Type();
}

/// An op on a narrow float that is computed in f32.
static bool widens(Operation *op) {
  Type type = resultElement(op);
  if (!type || (!type.isF16() && !type.isBF16()))
    return false;
  if (isa<arith::DivFOp, arith::RemFOp>(op))
    return type.isBF16();
  StringRef name = mathName(op);
  if (name.empty() || (name == "fma" && type.isF16()))
    return false;
  return !llvm::is_contained(exact, name) || type.isBF16();
}

/// Puts `op` on f32, between conversions.
static void widen(Operation *op) {
  OpBuilder builder(op);
  auto f32Like = [&](Type type) -> Type {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(builder.getF32Type());
    return builder.getF32Type();
  };
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (isa<FloatType>(getElementTypeOrSelf(type)))
      operand.set(arith::ExtFOp::create(builder, op->getLoc(), f32Like(type),
                                        operand.get()));
  }
  Value result = op->getResult(0);
  Type narrow = result.getType();
  result.setType(f32Like(narrow));
  builder.setInsertionPointAfter(op);
  auto rounded = arith::TruncFOp::create(builder, op->getLoc(), narrow, result);
  result.replaceAllUsesExcept(rounded, rounded);
}

namespace {
/// |a|^b = exp2(b * log2 |a|); a negative a needs a whole b, and is the
/// result's sign when that is odd. a^0 is 1, also for a NaN.
struct ExpandPow : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value base = op.getLhs(), exponent = op.getRhs();
    Type type = base.getType();
    auto constant = [&](float value) -> Value {
      TypedAttr attr = b.getF32FloatAttr(value);
      if (auto vector = dyn_cast<VectorType>(type))
        attr = DenseElementsAttr::get(vector, attr);
      return arith::ConstantOp::create(b, attr);
    };
    auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
      return arith::CmpFOp::create(b, predicate, x, y).getResult();
    };
    auto select = [&](Value condition, Value yes, Value no) -> Value {
      return arith::SelectOp::create(b, condition, yes, no);
    };
    Value zero = constant(0), one = constant(1), half = constant(0.5);
    Value size = math::Exp2Op::create(
        b, arith::MulFOp::create(
               b, exponent,
               math::Log2Op::create(b, math::AbsFOp::create(b, base))));
    Value halved = arith::MulFOp::create(b, exponent, half);
    Value whole = compare(arith::CmpFPredicate::OEQ,
                          math::TruncOp::create(b, exponent), exponent);
    Value odd = arith::AndIOp::create(b, whole,
                                      compare(arith::CmpFPredicate::UNE,
                                              math::TruncOp::create(b, halved),
                                              halved));
    Value negative = compare(arith::CmpFPredicate::OLT, base, zero);
    Value invalid = arith::AndIOp::create(
        b, negative,
        compare(arith::CmpFPredicate::UNE, math::TruncOp::create(b, exponent),
                exponent));
    Value result =
        select(odd, math::CopySignOp::create(b, size, base).getResult(), size);
    result = select(invalid, constant(std::numeric_limits<float>::quiet_NaN()),
                    result);
    Value always = arith::OrIOp::create(
        b, compare(arith::CmpFPredicate::OEQ, exponent, zero),
        compare(arith::CmpFPredicate::OEQ, base, one));
    rewriter.replaceOp(op, select(always, one, result));
    return success();
  }
};

/// sin and cos: x = k * pi/2 + r with r within pi/4, then a polynomial of r by
/// the quadrant k mod 4. pi/2 is three floats, and the fma that takes k times
/// one of them away rounds only once, so r is good as long as k is exact: for
/// |x| below 10^5 or so. sin(-0) is +0.
template <typename OpT> struct ExpandSine : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value x = op.getOperand();
    Type type = x.getType();
    Type intType = b.getI32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      intType = vector.clone(intType);
    auto constant = [&](TypedAttr attr, Type of) -> Value {
      if (auto vector = dyn_cast<VectorType>(of))
        attr = DenseElementsAttr::get(vector, attr);
      return arith::ConstantOp::create(b, attr);
    };
    auto real = [&](float value) {
      return constant(b.getF32FloatAttr(value), type);
    };
    auto integer = [&](int32_t value) {
      return constant(b.getI32IntegerAttr(value), intType);
    };
    auto fma = [&](Value u, Value v, Value w) -> Value {
      return math::FmaOp::create(b, u, v, w);
    };
    auto isSet = [&](Value bits, int32_t bit) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                   arith::AndIOp::create(b, bits, integer(bit)),
                                   integer(0));
    };
    Value k = math::RoundEvenOp::create(
        b, arith::MulFOp::create(b, x, real(0x1.45f306p-1f)));
    Value r = x;
    for (float part : {-0x1.921fb6p+0f, 0x1.777a5cp-25f, 0x1.ee59dap-50f})
      r = fma(k, real(part), r);
    Value square = arith::MulFOp::create(b, r, r);
    Value sine = fma(square, real(-1.9515295891e-4f), real(8.3321608736e-3f));
    sine = fma(sine, square, real(-1.6666654611e-1f));
    sine = fma(arith::MulFOp::create(b, sine, square), r, r);
    Value cosine =
        fma(square, real(2.443315711810e-5f), real(-1.388731625494e-3f));
    cosine = fma(cosine, square, real(4.166664568299e-2f));
    cosine = fma(cosine, square, real(-0.5f));
    cosine = fma(cosine, square, real(1.0f));
    Value quadrant = arith::FPToSIOp::create(b, intType, k);
    if (std::is_same_v<OpT, math::CosOp>)
      quadrant = arith::AddIOp::create(b, quadrant, integer(1));
    Value size = arith::SelectOp::create(b, isSet(quadrant, 1), cosine, sine);
    rewriter.replaceOp(
        op, arith::SelectOp::create(b, isSet(quadrant, 2),
                                    arith::NegFOp::create(b, size), size));
    return success();
  }
};

/// `exp` and `exp2` of f32 with afn.
template <typename OpT> struct BareExp : ConvertOpToLLVMPattern<OpT> {
  using ConvertOpToLLVMPattern<OpT>::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return failure();
    Value x = adaptor.getOperand();
    if (std::is_same_v<OpT, math::ExpOp>)
      x = LLVM::FMulOp::create(
          rewriter, op.getLoc(), x,
          LLVM::ConstantOp::create(rewriter, op.getLoc(),
                                   rewriter.getF32FloatAttr(1.44269504f)));
    rewriter.replaceOpWithNewOp<ROCDL::ROCDLExp2>(op, x.getType(), x);
    return success();
  }
};
} // namespace

void greta::rocdl::populateBareMathPatterns(const LLVMTypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<BareExp<math::ExpOp>, BareExp<math::Exp2Op>>(converter,
                                                            /*benefit=*/2);
}

static void allowContraction(Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fast || isa<arith::ExtFOp>(op) || !resultElement(op) ||
      !resultElement(op).isF32())
    return;
  arith::FastMathFlags flags = arith::FastMathFlags::contract;
  if (arith::FastMathFlagsAttr given = fast.getFastMathFlagsAttr())
    flags = flags | given.getValue();
  op->setAttr(fast.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}

LogicalResult greta::rocdl::expandMath(Operation *kernel) {
  bool expands = false;
  SmallVector<Operation *> narrow;
  WalkResult walk = kernel->walk([&](Operation *op) {
    if (widens(op))
      narrow.push_back(op);
    StringRef name = mathName(op);
    if (name.empty())
      return WalkResult::advance();
    Type type = resultElement(op);
    if (type && type.isF64() && !llvm::is_contained(onF64, name)) {
      op->emitOpError("is on f64, of which AMD GPUs have roundings, fma and "
                      "sqrt; compute it in f32");
      return WalkResult::interrupt();
    }
    if (llvm::is_contained(native, name))
      return WalkResult::advance();
    if (!llvm::is_contained(ours, name) &&
        !llvm::is_contained(polynomial, name) &&
        !llvm::is_contained(composed, name)) {
      op->emitOpError("has neither an instruction nor an expansion on AMD "
                      "GPUs");
      return WalkResult::interrupt();
    }
    expands = true;
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  llvm::for_each(narrow, widen);
  if (expands) {
    RewritePatternSet patterns(kernel->getContext());
    auto isPolynomial = [](StringRef name) {
      return name.consume_front("math.") &&
             llvm::is_contained(polynomial, name);
    };
    populateMathPolynomialApproximationPatterns(patterns, isPolynomial);
    SmallVector<StringRef> names(std::begin(composed), std::end(composed));
    math::populateExpansionPatterns(patterns, names);
    patterns.add<ExpandPow, ExpandSine<math::SinOp>, ExpandSine<math::CosOp>>(
        kernel->getContext());
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return kernel->emitOpError("has functions whose expansion does not end");
  }
  kernel->walk(allowContraction);
  return success();
}
