//===- TileToSPIRVArith.cpp - arith to SPIR-V -----------------------------===//
//
// Element by element, pairs of f16 together. f16 adds, subtracts and multiplies
// natively, each operation rounded (NoContraction); everything else on f16, and
// everything on bf16, is computed in f32 and rounded once. f32 and f64
// may be contracted, but for sums that drivers would only simplify.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;
using greta::tospirv::Parts;

LogicalResult
KernelEmitter::elementwise(Operation *op,
                           llvm::function_ref<Value(Parts)> build) {
  int64_t count = countOf(op->getResult(0).getType());
  PartList results;
  if (isPair(op->getResult(0).getType()) &&
      isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op)) {
    for (Value operand : op->getOperands())
      results.push_back(getPair(operand));
    setWords(op->getResult(0), build(results));
    return success();
  }
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value, 3> operands;
    for (Value operand : op->getOperands()) {
      Parts parts = get(operand);
      // The condition of a select may be one for all.
      operands.push_back(parts.size() == 1 ? parts.front() : parts[i]);
    }
    Value result = build(operands);
    if (!result)
      return unknown(op);
    results.push_back(result);
  }
  set(op->getResult(0), results);
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value KernelEmitter::roundToBF16(Value value, bool approximately) {
  Value bits = bitcast(b.getI32Type(), value);
  auto upperHalf = [&](Value bits) {
    return bitcast(value.getType(),
                   same<spirv::BitwiseAndOp>(bits, constI32(0xffff0000)));
  };
  if (approximately)
    return upperHalf(same<spirv::IAddOp>(bits, constI32(0x8000)));
  // Half of the last place kept, less one where that place is even.
  Value odd = same<spirv::BitwiseAndOp>(
      same<spirv::ShiftRightLogicalOp>(bits, constI32(16)), constI32(1));
  Value rounded =
      same<spirv::IAddOp>(same<spirv::IAddOp>(bits, constI32(0x7fff)), odd);
  // A carry must not turn a NaN into a number; its payload's upper part stays.
  Value quiet = same<spirv::BitwiseOrOp>(bits, constI32(0x00400000));
  return upperHalf(select(isNaN(value), quiet, rounded));
}

/// Whether `value` is the result of a conversion, or a selection, a part or the
/// bits of such a result.
static bool isConverted(Value value) {
  SmallVector<Value> from{value};
  SmallPtrSet<Operation *, 8> seen;
  while (!from.empty()) {
    Operation *op = from.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<spirv::FConvertOp>(op))
      return true;
    if (isa<spirv::SelectOp, spirv::CompositeConstructOp,
            spirv::CompositeExtractOp, spirv::BitcastOp>(op))
      llvm::append_range(from, op->getOperands());
  }
  return false;
}

Value KernelEmitter::toF32(Value value) {
  Type f32 = b.getF32Type();
  if (value.getType() == f32 || value.getType().isF64())
    return value;
  // Drivers take a conversion there and back for none, which would not round:
  // NVIDIA's even where selections, bits or packed pairs stand between
  // (580.159), Mesa 26 unless NoContraction says no.
  if (value.getType().isF16() && isConverted(value)) {
    Value nothing = hiddenZero();
    Value bits = bitcast(nothing.getType(), value);
    value = bitcast(value.getType(), same<spirv::BitwiseOrOp>(bits, nothing));
  }
  return make<spirv::FConvertOp>(f32, value);
}

Value KernelEmitter::fromF32(Value value, Type scalar) {
  if (scalar.isBF16())
    return roundToBF16(value);
  if (!scalar.isF16())
    return value;
  require(spirv::Capability::RoundingModeRTE);
  return make<spirv::FConvertOp>(scalar, value);
}

static bool hasFlag(Operation *op, arith::FastMathFlags flag) {
  auto interface = dyn_cast<arith::ArithFastMathInterface>(op);
  // Casts may have no flags.
  auto flags =
      interface ? interface.getFastMathFlagsAttr() : arith::FastMathFlagsAttr();
  return flags && bitEnumContainsAll(flags.getValue(), flag);
}

Value KernelEmitter::emitCast(Operation *op, Value x) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  Type type = registerType(to);
  bool fromBool = from.isInteger(1), toBool = to.isInteger(1);
  auto fromBoolTo = [&](int64_t one) {
    return select(x, constInt(type, one), constInt(type, 0));
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::ExtFOp>([&](auto) {
        Value wide = toF32(x);
        return to.isF64() ? make<spirv::FConvertOp>(type, wide)
                          : fromF32(wide, to);
      })
      .Case<arith::TruncFOp>([&](auto) {
        Value wide = from.isF64() && !to.isF16()
                         ? make<spirv::FConvertOp>(b.getF32Type(), x)
                         : toF32(x);
        return to.isBF16() && hasFlag(op, arith::FastMathFlags::afn)
                   ? roundToBF16(wide, /*approximately=*/true)
                   : fromF32(wide, to);
      })
      .Case<arith::ExtUIOp>([&](auto) {
        return fromBool ? fromBoolTo(1) : make<spirv::UConvertOp>(type, x);
      })
      .Case<arith::ExtSIOp>([&](auto) {
        return fromBool ? fromBoolTo(-1) : make<spirv::SConvertOp>(type, x);
      })
      .Case<arith::TruncIOp>([&](auto) {
        if (!toBool)
          return make<spirv::UConvertOp>(type, x);
        Value bit = same<spirv::BitwiseAndOp>(x, constInt(from, 1));
        return compare<spirv::INotEqualOp>(bit, constInt(from, 0));
      })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto cast) {
        constexpr bool isSigned =
            std::is_same_v<decltype(cast), arith::SIToFPOp>;
        if (fromBool)
          x = select(x, constI32(isSigned ? -1 : 1), constI32(0));
        Type wide = to.isF64() ? to : b.getF32Type();
        Value number = isSigned ? make<spirv::ConvertSToFOp>(wide, x)
                                : make<spirv::ConvertUToFOp>(wide, x);
        return fromF32(number, to);
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto cast) {
        constexpr bool isSigned =
            std::is_same_v<decltype(cast), arith::FPToSIOp>;
        Type integer = toBool ? Type(b.getI32Type()) : type;
        Value number = isSigned ? make<spirv::ConvertFToSOp>(integer, x)
                                : make<spirv::ConvertFToUOp>(integer, x);
        return toBool ? compare<spirv::INotEqualOp>(number, constI32(0))
                      : number;
      })
      .Case<arith::BitcastOp>([&](auto) -> Value {
        // bf16's register form is not its form in memory.
        Value bits = toMemory(from, x);
        return to.isBF16() ? fromMemory(to, bitcast(b.getI16Type(), bits))
                           : bitcast(type, bits);
      })
      .Default([](auto) { return Value(); });
}

//===----------------------------------------------------------------------===//
// Floating point
//===----------------------------------------------------------------------===//

static bool isSum(Operation *op) {
  return isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op);
}

static Value withoutSign(Value value) {
  auto negated = value.getDefiningOp<arith::NegFOp>();
  return negated ? negated.getOperand() : value;
}

/// Whether a sum should have the decoration against contraction, because that
/// also keeps drivers from simplifying it. Drivers add up the constants of
/// (x + 1) - 2, and cancel terms in (x + y) - x and x - x, also in loops that
/// they unroll. But programs write such sums to round x, to find the error of a
/// sum (compensated sums), or to test for NaN. A sum without a product always
/// has the decoration, since it has nothing to contract.
static bool wouldSimplify(Operation *op) {
  if (!isSum(op))
    return false;
  if (llvm::none_of(op->getOperands(), [](Value operand) {
        return withoutSign(operand).getDefiningOp<arith::MulFOp>();
      }))
    return true;
  // The operands, with those of sums in their place.
  SmallVector<Value> terms;
  bool hasSum = false;
  auto isConstant = [](Value value) {
    return matchPattern(value, m_Constant());
  };
  for (Value operand : op->getOperands()) {
    Operation *inner = withoutSign(operand).getDefiningOp();
    hasSum |= isSum(inner);
    if (isSum(inner))
      for (Value term : inner->getOperands())
        terms.push_back(withoutSign(term));
    else
      terms.push_back(withoutSign(operand));
  }
  if (hasSum && llvm::count_if(terms, isConstant) > 1)
    return true;
  SmallPtrSet<Value, 4> seen;
  return llvm::any_of(terms, [&](Value term) {
    return !isConstant(term) && !seen.insert(term).second;
  });
}

Value KernelEmitter::emitFloatArith(Operation *op, Parts x) {
  Type scalar = getElementTypeOrSelf(op->getResult(0).getType());
  bool native = scalar.isF16();
  // Formulas of f64 functions take parts of constants away one by one.
  bool isFixed = native || scalar.isF64() || wouldSimplify(op);
  // Rounded after each operation, in whatever type that was.
  auto rounded = [&](Value value) {
    if (isFixed && !hasFlag(op, arith::FastMathFlags::contract))
      value.getDefiningOp()->setAttr("no_contraction", b.getUnitAttr());
    if (!native)
      return fromF32(value, scalar);
    require(spirv::Capability::RoundingModeRTE);
    return value;
  };
  using namespace spirv;
  if (Value value =
          emitByRow<Row<arith::AddFOp, FAddOp>, Row<arith::SubFOp, FSubOp>,
                    Row<arith::MulFOp, FMulOp>>(op, x))
    return rounded(value);
  if (Value extreme = emitByRow<
          Row<arith::MaximumFOp, GLFMaxOp>, Row<arith::MinimumFOp, GLFMinOp>,
          Row<arith::MaxNumFOp, GLFMaxOp>, Row<arith::MinNumFOp, GLFMinOp>>(
          op, x)) {
    // GLSL's FMax and FMin leave open what becomes of NaN.
    bool propagate = isa<arith::MaximumFOp, arith::MinimumFOp>(op);
    if (hasFlag(op, arith::FastMathFlags::nnan) ||
        (driver.hasNumberExtrema && !propagate))
      return extreme;
    Value first = select(isNaN(x[0]), x[propagate ? 0 : 1], extreme);
    return select(isNaN(x[1]), x[propagate ? 1 : 0], first);
  }
  if (isa<arith::DivFOp>(op))
    return fromF32(same<FDivOp>(toF32(x[0]), toF32(x[1])), scalar);
  return isa<arith::NegFOp>(op) ? same<FNegateOp>(x[0]) : Value();
}

/// Emits a comparison by one instruction.
using Comparison = Value (*)(KernelEmitter &e, Value x, Value y);
template <typename OpT> static Value by(KernelEmitter &e, Value x, Value y) {
  return e.compare<OpT>(x, y);
}

static Value compareFloats(KernelEmitter &e, arith::CmpFPredicate predicate,
                           Value x, Value y) {
  using P = arith::CmpFPredicate;
  if (predicate == P::AlwaysFalse || predicate == P::AlwaysTrue)
    return e.constInt(e.b.getI1Type(), predicate == P::AlwaysTrue);
  if (predicate == P::ORD || predicate == P::UNO) {
    Value unordered = e.same<spirv::LogicalOrOp>(e.isNaN(x), e.isNaN(y));
    return predicate == P::UNO ? unordered
                               : e.same<spirv::LogicalNotOp>(unordered);
  }
  // From oeq to une.
  static constexpr Comparison table[] = {by<spirv::FOrdEqualOp>,
                                         by<spirv::FOrdGreaterThanOp>,
                                         by<spirv::FOrdGreaterThanEqualOp>,
                                         by<spirv::FOrdLessThanOp>,
                                         by<spirv::FOrdLessThanEqualOp>,
                                         by<spirv::FOrdNotEqualOp>,
                                         nullptr,
                                         by<spirv::FUnordEqualOp>,
                                         by<spirv::FUnordGreaterThanOp>,
                                         by<spirv::FUnordGreaterThanEqualOp>,
                                         by<spirv::FUnordLessThanOp>,
                                         by<spirv::FUnordLessThanEqualOp>,
                                         by<spirv::FUnordNotEqualOp>};
  return table[int(predicate) - int(P::OEQ)](e, x, y);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Compares an integer extended to 64 bits with a constant that its own type
/// holds in that type: one instruction less on devices without 64-bit
/// integers, and lavapipe of Mesa 22.3 gets the wide comparison wrong.
static void narrowComparison(KernelEmitter &e, arith::CmpIPredicate &predicate,
                             Value &x, Value &y) {
  APInt constant;
  if (!x.getType().isInteger(64) || !matchPattern(y, m_ConstantInt(&constant)))
    return;
  bool isSigned = x.getDefiningOp<spirv::SConvertOp>();
  if (!isSigned && !x.getDefiningOp<spirv::UConvertOp>())
    return;
  Value narrow = x.getDefiningOp()->getOperand(0);
  unsigned bits = narrow.getType().getIntOrFloatBitWidth();
  if (bits >= 64 ||
      !(isSigned ? constant.isSignedIntN(bits) : constant.isIntN(bits)))
    return;
  // A zero-extended value is not negative, so signs do not count.
  using P = arith::CmpIPredicate;
  if (!isSigned && predicate >= P::slt && predicate <= P::sge)
    predicate = P(int(predicate) + int(P::ult) - int(P::slt));
  x = narrow;
  y = e.constInt(narrow.getType(), constant.trunc(bits).getSExtValue());
}

static Value compareInts(KernelEmitter &e, arith::CmpIPredicate predicate,
                         Value x, Value y) {
  using P = arith::CmpIPredicate;
  narrowComparison(e, predicate, x, y);
  if (x.getType().isInteger(1)) {
    // Booleans have equality only; the others compare them as numbers, true
    // being -1 where signs count.
    if (predicate == P::eq)
      return e.compare<spirv::LogicalEqualOp>(x, y);
    if (predicate == P::ne)
      return e.compare<spirv::LogicalNotEqualOp>(x, y);
    bool isSigned = predicate == P::slt || predicate == P::sle ||
                    predicate == P::sgt || predicate == P::sge;
    Value one = e.constI32(isSigned ? -1 : 1), zero = e.constI32(0);
    x = e.select(x, one, zero);
    y = e.select(y, one, zero);
  }
  // From eq to uge.
  static constexpr Comparison table[] = {
      by<spirv::IEqualOp>,       by<spirv::INotEqualOp>,
      by<spirv::SLessThanOp>,    by<spirv::SLessThanEqualOp>,
      by<spirv::SGreaterThanOp>, by<spirv::SGreaterThanEqualOp>,
      by<spirv::ULessThanOp>,    by<spirv::ULessThanEqualOp>,
      by<spirv::UGreaterThanOp>, by<spirv::UGreaterThanEqualOp>};
  return table[int(predicate)](e, x, y);
}

/// Emits integer ops on i1, since SPIR-V's booleans are not integers.
static Value emitBoolArith(KernelEmitter &e, Operation *op, Parts x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::AndIOp, arith::MulIOp, arith::MinUIOp, arith::MaxSIOp>(
          [&](auto) { return e.same<spirv::LogicalAndOp>(x[0], x[1]); })
      .Case<arith::OrIOp, arith::MaxUIOp, arith::MinSIOp>(
          [&](auto) { return e.same<spirv::LogicalOrOp>(x[0], x[1]); })
      .Case<arith::XOrIOp, arith::AddIOp, arith::SubIOp>(
          [&](auto) { return e.same<spirv::LogicalNotEqualOp>(x[0], x[1]); })
      .Default([](auto) { return Value(); });
}

Value KernelEmitter::emitIntArith(Operation *op, Parts x) {
  Type type = x.front().getType();
  if (type.isInteger(1))
    return emitBoolArith(*this, op, x);
  auto natural = [&] {
    return llvm::all_of(op->getOperands(),
                        [&](Value value) { return isNonNegative(value); });
  };
  using namespace spirv;
  if (Value number = hiddenOperand(op))
    return same<BitwiseOrOp>(x[0], number);
  if (Value result = emitByRow<
          Row<arith::AddIOp, IAddOp>, Row<arith::SubIOp, ISubOp>,
          Row<arith::MulIOp, IMulOp>, Row<arith::AndIOp, BitwiseAndOp>,
          Row<arith::OrIOp, BitwiseOrOp>, Row<arith::XOrIOp, BitwiseXorOp>,
          Row<arith::ShLIOp, ShiftLeftLogicalOp>,
          Row<arith::ShRUIOp, ShiftRightLogicalOp>,
          Row<arith::ShRSIOp, ShiftRightArithmeticOp>,
          Row<arith::DivUIOp, UDivOp>, Row<arith::RemUIOp, UModOp>,
          Row<arith::MaxSIOp, GLSMaxOp>, Row<arith::MinSIOp, GLSMinOp>,
          Row<arith::MaxUIOp, GLUMaxOp>, Row<arith::MinUIOp, GLUMinOp>>(op, x))
    return result;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::DivSIOp>([&](auto) {
        return natural() ? same<spirv::UDivOp>(x[0], x[1])
                         : same<spirv::SDivOp>(x[0], x[1]);
      })
      .Case<arith::RemSIOp>([&](auto) {
        // Vulkan leaves OpSRem open where an operand is negative.
        if (natural())
          return same<spirv::UModOp>(x[0], x[1]);
        Value quotient = same<spirv::SDivOp>(x[0], x[1]);
        return same<spirv::ISubOp>(x[0], same<spirv::IMulOp>(quotient, x[1]));
      })
      .Default([](auto) { return Value(); });
}

/// Divides a 64-bit integer by a power of two, by shifts. Negative quotients
/// round towards zero.
static Value quotientByPower(KernelEmitter &e, Value x, unsigned power) {
  if (power == 0)
    return x;
  auto bits = [&](unsigned count) { return e.constInt(x.getType(), count); };
  Value sign = e.same<spirv::ShiftRightArithmeticOp>(x, bits(63));
  Value rest = e.same<spirv::ShiftRightLogicalOp>(sign, bits(64 - power));
  return e.same<spirv::ShiftRightArithmeticOp>(e.same<spirv::IAddOp>(x, rest),
                                               bits(power));
}

/// Emits quotients and remainders of 64-bit integers. Powers of two take
/// shifts. Numbers that have 32 bits take a division of 32 bits, behind a
/// branch if ranges do not show that they have.
///
/// A division of 64 bits costs several times one of 32, and NVIDIA's driver 580
/// gets addresses wrong whose expressions hold two of them with one divisor: it
/// reads the first address twice. A value that passes through the branch's phi
/// is right there, and so are shifts.
LogicalResult KernelEmitter::emitWideDivision(Operation *op) {
  bool isRest = isa<arith::RemSIOp, arith::RemUIOp>(op);
  bool isUnsigned = isa<arith::DivUIOp, arith::RemUIOp>(op) ||
                    llvm::all_of(op->getOperands(), [&](Value value) {
                      return isNonNegative(value);
                    });
  Parts xs = get(op->getOperand(0)), ys = get(op->getOperand(1));
  auto finish = [&](Value x, Value y, Value quotient) {
    return isRest ? same<spirv::ISubOp>(x, same<spirv::IMulOp>(quotient, y))
                  : quotient;
  };
  auto emitAll = [&](llvm::function_ref<Value(Value, Value)> quotient) {
    PartList results;
    for (auto [x, y] : llvm::zip_equal(xs, ys))
      results.push_back(finish(x, y, quotient(x, y)));
    return results;
  };
  auto narrow = [&](Value x, Value y) {
    Value quotient =
        same<spirv::UDivOp>(make<spirv::UConvertOp>(b.getI32Type(), x),
                            make<spirv::UConvertOp>(b.getI32Type(), y));
    return make<spirv::UConvertOp>(b.getI64Type(), quotient);
  };
  auto wide = [&](Value x, Value y) {
    return isUnsigned ? same<spirv::UDivOp>(x, y) : same<spirv::SDivOp>(x, y);
  };

  APInt constant;
  if (matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
      constant.isPowerOf2() && !constant.isNegative()) {
    unsigned power = constant.logBase2();
    set(op->getResult(0), emitAll([&](Value x, Value) {
          return isUnsigned && power ? same<spirv::ShiftRightLogicalOp>(
                                           x, constInt(x.getType(), power))
                                     : quotientByPower(*this, x, power);
        }));
    return success();
  }
  if (llvm::all_of(op->getOperands(), [&](Value value) {
        return rangeOf(value).umax().getActiveBits() <= 32;
      })) {
    set(op->getResult(0), emitAll(narrow));
    return success();
  }

  Value upper;
  for (Value x : llvm::concat<const Value>(xs, ys))
    upper = upper ? same<spirv::BitwiseOrOp>(upper, x) : x;
  upper =
      same<spirv::ShiftRightLogicalOp>(upper, constInt(upper.getType(), 32));
  Value fits = compare<spirv::IEqualOp>(upper, constInt(upper.getType(), 0));
  set(op->getResult(0),
      *emitSelection(
          ValueRange(xs).getTypes(), fits, [&] { return emitAll(narrow); },
          [&] { return emitAll(wide); }));
  return success();
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

/// Emits both halves of a product by a multiplication of 64 bits.
LogicalResult KernelEmitter::emitExtendedProduct(Operation *op) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits > 32)
    return unknown(op);
  auto wide = [&](Value x) {
    return isa<arith::MulSIExtendedOp>(op)
               ? make<spirv::SConvertOp>(b.getI64Type(), x)
               : make<spirv::UConvertOp>(b.getI64Type(), x);
  };
  PartList low, high;
  for (auto [x, y] :
       llvm::zip(get(op->getOperand(0)), get(op->getOperand(1)))) {
    Value product = same<spirv::IMulOp>(wide(x), wide(y));
    Value upper = same<spirv::ShiftRightLogicalOp>(
        product, constInt(b.getI64Type(), bits));
    low.push_back(make<spirv::UConvertOp>(type, product));
    high.push_back(make<spirv::UConvertOp>(type, upper));
  }
  set(op->getResult(0), low);
  set(op->getResult(1), high);
  return success();
}

LogicalResult KernelEmitter::emitArithOp(Operation *op) {
  if (isa<arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op))
    return emitExtendedProduct(op);
  if (op->getNumResults() != 1)
    return unknown(op);
  if (auto literal = dyn_cast<arith::ConstantOp>(op)) {
    auto one = [&](Attribute attr) {
      if (auto number = dyn_cast<FloatAttr>(attr);
          number && number.getType().isBF16())
        return constF32(number.getValueAsDouble());
      if (auto truth = dyn_cast<IntegerAttr>(attr);
          truth && truth.getType().isInteger(1))
        return constant(b.getBoolAttr(!truth.getValue().isZero()));
      return constant(cast<TypedAttr>(attr));
    };
    auto elements = dyn_cast<DenseElementsAttr>(literal.getValue());
    if (!elements) {
      set(literal, one(literal.getValue()));
      return success();
    }
    PartList parts;
    for (Attribute attr : elements.getValues<Attribute>())
      parts.push_back(one(attr));
    set(literal, parts);
    return success();
  }
  if (auto comparison = dyn_cast<arith::CmpFOp>(op))
    return elementwise(op, [&](Parts x) {
      return compareFloats(*this, comparison.getPredicate(), x[0], x[1]);
    });
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return elementwise(op, [&](Parts x) {
      return compareInts(*this, comparison.getPredicate(), x[0], x[1]);
    });
  // One condition for packed values leaves them packed.
  if (auto choice = dyn_cast<arith::SelectOp>(op);
      choice && isPacked(choice.getType()) &&
      choice.getCondition().getType().isInteger(1) &&
      (hasWords(choice.getTrueValue()) || hasWords(choice.getFalseValue()))) {
    PartList words = getWords(choice.getTrueValue());
    PartList others = getWords(choice.getFalseValue());
    for (auto [word, other] : llvm::zip(words, others))
      word = select(getScalar(choice.getCondition()), word, other);
    setWords(choice, words);
    return success();
  }
  if (isa<arith::SelectOp>(op))
    return elementwise(op, [&](Parts x) { return select(x[0], x[1], x[2]); });
  if (isa<arith::BitcastOp>(op) && hasWords(op->getOperand(0))) {
    setWords(op->getResult(0), getWords(op->getOperand(0)));
    return success();
  }
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) &&
      getElementTypeOrSelf(op->getResult(0).getType()).isInteger(64))
    return emitWideDivision(op);
  if (isa<CastOpInterface>(op))
    return elementwise(op, [&](Parts x) { return emitCast(op, x[0]); });
  bool floats =
      isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  return elementwise(op, [&](Parts x) {
    return floats ? emitFloatArith(op, x) : emitIntArith(op, x);
  });
}
