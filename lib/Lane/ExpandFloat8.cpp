//===- ExpandFloat8.cpp - 8-bit floats by their bits ----------------------===//
//
// Conversions to and from floats of 8 bits become instructions where the target
// has them for that kind, else integer arithmetic. They round to the nearest,
// ties to even; a number that is too large becomes infinity, or NaN in the
// types that have none, as arith.truncf and AMD's instructions have it.
//
// Widening puts exponent and mantissa to their place in the wide type, whose
// bias is larger; numbers below the smallest exponent are integers times a
// power of two. Narrowing rounds by adding just less than half of the last
// place kept, or, below the smallest exponent, by adding a number whose last
// place is that of the result. There no denormal of the wide type counts, which
// a GPU may take for zero. The only other arithmetic is the absolute value.
//
// Elements of a vector of E4M3FN, which kernels load from caches, become f16
// two at a time, by their word. In the upper bits of an f16, the exponent a
// place lower, they are 1/256 of themselves; denormals are among them, which
// the runtime has drivers keep (Denormals.cpp). Elements 1 and 3 of word %w:
//
//   %m = %w >> 1 & 0x3f803f80
//   %n = %m + 0x00800080 & 0x40004000    0x7f gets the exponent of NaN
//   %p = (%m | %n | %w & 0x80008000 as vector<2xf16>) * 256
//
// The others are those of %w << 8. Each element alone takes twice as many
// instructions and a conversion from an integer, which is slow on NVIDIA.
//
// An f64 is narrowed by its own bits: through f32 it would be rounded twice. So
// are f64 to f16 and bf16 on Vulkan, whose drivers go through f32.
//
// In a kernel (greta_tile.func) the 8-bit types themselves then become i8,
// which all code generators know.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Expand.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include <array>
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace greta;

namespace {

/// A float type by its parts.
struct Format {
  explicit Format(FloatType type)
      : mantissa(type.getFPMantissaWidth() - 1), bits(type.getWidth()),
        bias(1 - llvm::APFloat::semanticsMinExponent(type.getFloatSemantics())),
        isFnuz(isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(type)),
        hasInfinity(llvm::APFloat::semanticsHasInf(type.getFloatSemantics())) {}
  int64_t mantissa, bits, bias;
  bool isFnuz; // one NaN, in the place of -0
  bool hasInfinity;
  /// The code of infinity, or without it of NaN; of the largest number.
  int64_t infinity() const {
    return hasInfinity ? ((int64_t(1) << (bits - 1 - mantissa)) - 1) << mantissa
                       : (isFnuz ? 0x80 : 0x7f);
  }
  int64_t largest() const { return (isFnuz ? 0x80 : infinity()) - 1; }
};

/// Replaces one conversion.
class Expander {
public:
  Expander(Operation *op, Fp8Kind native)
      : b(op->getLoc(), op), source(op->getOperand(0)),
        type(op->getResult(0).getType()), native(native) {}
  Value widen();
  Value narrow();

private:
  Type like(Type element) { return typeLike(type, element); }
  Value constant(Value value, int64_t number) {
    return constantOf(b, value.getType(), number);
  }
  template <typename OpT> Value with(Value value, int64_t number) {
    return OpT::create(b, value, constant(value, number));
  }
  Value isBelow(Value value, int64_t number) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, value,
                                 constant(value, number));
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  bool isNative(Type element) const {
    bool isFnuz = isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(element);
    return !isa<ShapedType>(type) &&
           native == (isFnuz ? Fp8Kind::Fnuz : Fp8Kind::Ocp);
  }
  Value widenTo(Value code, const Format &from, FloatType to);
  /// The last bits of `code` as a number of the result's type.
  Value finish(Value code) {
    Type bits = like(
        b.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth()));
    return arith::BitcastOp::create(b, type,
                                    arith::TruncIOp::create(b, bits, code));
  }

  ImplicitLocOpBuilder b;
  Value source;
  Type type;
  Fp8Kind native;
};

} // namespace

/// `code`, an integer of the bits of `to`, as a number of that type; all of its
/// finite numbers are normal ones there.
Value Expander::widenTo(Value code, const Format &from, FloatType to) {
  Format wide(to);
  int64_t shift = wide.mantissa - from.mantissa;
  Value size = with<arith::AndIOp>(code, 0x7f);
  Value sign =
      with<arith::ShLIOp>(with<arith::AndIOp>(code, 0x80), wide.bits - 8);
  Value shifted = with<arith::ShLIOp>(size, shift);
  Value bits =
      with<arith::AddIOp>(shifted, (wide.bias - from.bias) << wide.mantissa);
  double unit = std::ldexp(1.0, 1 - from.bias - from.mantissa);
  Value small =
      arith::MulFOp::create(b, arith::UIToFPOp::create(b, like(to), size),
                            constantOf(b, like(to), FloatAttr::get(to, unit)));
  bits = select(isBelow(size, int64_t(1) << from.mantissa),
                arith::BitcastOp::create(b, code.getType(), small), bits);
  // The place of -0, or all ones, is no number.
  Value special = with<arith::OrIOp>(shifted, wide.infinity());
  if (from.isFnuz)
    bits = select(
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code,
                              constant(code, 0x80)),
        constant(code, wide.infinity() | int64_t(1) << (wide.mantissa - 1)),
        bits);
  else
    bits = select(isBelow(size, from.infinity()), bits, special);
  return arith::BitcastOp::create(b, like(to),
                                  arith::OrIOp::create(b, bits, sign));
}

Value Expander::widen() {
  Type from = getElementTypeOrSelf(source.getType());
  auto to = cast<FloatType>(getElementTypeOrSelf(type));
  bool isE4M3 = isa<Float8E4M3FNType, Float8E4M3FNUZType>(from);
  Value code = arith::BitcastOp::create(b, like(b.getI8Type()), source);
  // The upper half of an f16.
  if (to.isF16() && isa<Float8E5M2Type>(from)) {
    code = arith::ExtUIOp::create(b, like(b.getI16Type()), code);
    return arith::BitcastOp::create(b, type, with<arith::ShLIOp>(code, 8));
  }
  // Numbers of E5M2 kinds may be denormal as f16.
  bool isNarrow = to.isF16() && isE4M3 && !isNative(from);
  FloatType wide = isNarrow ? to : FloatType(b.getF32Type());
  code =
      arith::ExtUIOp::create(b, like(b.getIntegerType(wide.getWidth())), code);
  Value number;
  if (!isNative(from))
    number = widenTo(code, Format(cast<FloatType>(from)), wide);
  else if (isE4M3)
    number = ROCDL::CvtF32Fp8Op::create(b, wide, code, /*byteSel=*/0);
  else
    number = ROCDL::CvtF32Bf8Op::create(b, wide, code, /*byteSel=*/0);
  if (wide == to)
    return number;
  if (to.getWidth() < wide.getWidth())
    return arith::TruncFOp::create(b, type, number);
  return arith::ExtFOp::create(b, type, number);
}

Value Expander::narrow() {
  Type to = getElementTypeOrSelf(type);
  bool isDouble = getElementTypeOrSelf(source.getType()).isF64();
  FloatType from = isDouble ? FloatType(b.getF64Type()) : b.getF32Type();
  Type floats = like(from), integers = like(b.getIntegerType(from.getWidth()));
  Value number = source;
  if (number.getType() != floats)
    number = arith::ExtFOp::create(b, floats, source);
  if (isNative(to) && !isDouble) {
    Value old = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
    bool isE4M3 = isa<Float8E4M3FNType, Float8E4M3FNUZType>(to);
    if (isE4M3)
      return finish(ROCDL::CvtPkFp8F32Op::create(b, integers, number, number,
                                                 old, /*wordSel=*/false));
    return finish(ROCDL::CvtPkBf8F32Op::create(b, integers, number, number, old,
                                               /*wordSel=*/false));
  }
  Format format(cast<FloatType>(to)), wide(from);
  int64_t drop = wide.mantissa - format.mantissa;
  Value bits = arith::BitcastOp::create(b, integers, number);
  int64_t signBit = int64_t(1) << (format.bits - 1);
  Value sign = with<arith::AndIOp>(
      with<arith::ShRUIOp>(bits, wide.bits - format.bits), signBit);
  Value size = with<arith::AndIOp>(
      bits, static_cast<int64_t>(~uint64_t(0) >> (65 - wide.bits)));
  // Half of the last place kept, less one where that place is even.
  Value odd = with<arith::AndIOp>(with<arith::ShRUIOp>(size, drop), 1);
  Value code = arith::AddIOp::create(
      b, with<arith::AddIOp>(size, (int64_t(1) << (drop - 1)) - 1), odd);
  code = with<arith::SubIOp>(with<arith::ShRUIOp>(code, drop),
                             (wide.bias - format.bias) << format.mantissa);
  // The last place of 2^23 units (f64: 2^52) is one unit.
  double unit =
      std::ldexp(1.0, wide.mantissa + 1 - format.bias - format.mantissa);
  Value anchor = constantOf(b, floats, FloatAttr::get(from, unit));
  Value small = arith::AddFOp::create(
      b, arith::BitcastOp::create(b, floats, size), anchor);
  small = arith::SubIOp::create(b, arith::BitcastOp::create(b, integers, small),
                                arith::BitcastOp::create(b, integers, anchor));
  code = select(isBelow(size, (wide.bias - format.bias + 1) << wide.mantissa),
                small, code);
  Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, code,
                                        constant(code, format.largest()));
  code = select(isLarge, constant(code, format.infinity()), code);
  // A number beyond infinity is NaN.
  if (format.hasInfinity)
    code = select(isBelow(size, wide.infinity() + 1), code,
                  constant(code, format.infinity() |
                                     int64_t(1) << (format.mantissa - 1)));
  Value result = arith::OrIOp::create(b, code, sign);
  if (format.isFnuz)
    result = select(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code,
                                          constant(code, 0)),
                    code, result);
  return finish(result);
}

/// |x| without the sign's bit, which alone is NaN in types that have no -0.
static Value absolute(math::AbsFOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type type = op.getType(), bits = typeLike(type, b.getI8Type());
  auto constant = [&](uint8_t value) {
    return constantOf(b, bits, static_cast<int8_t>(value));
  };
  Value code = arith::BitcastOp::create(b, bits, op.getOperand());
  Value size = arith::AndIOp::create(b, code, constant(0x7f));
  if (Format(cast<FloatType>(getElementTypeOrSelf(type))).isFnuz) {
    Value isNan = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code,
                                        constant(0x80));
    size = arith::SelectOp::create(b, isNan, code, size);
  }
  return arith::BitcastOp::create(b, type, size);
}

namespace {
/// Converts elements of vectors of E4M3FN to f16 by words of four.
class WordWidener {
public:
  /// Whether `op` was such a conversion, and is replaced.
  bool widen(arith::ExtFOp op);

private:
  using Pairs = std::array<Value, 2>;
  static Pairs pairsOf(ImplicitLocOpBuilder &b, Value vector, int64_t word);

  /// Where they are first wanted in a block, so that what a loop has loaded
  /// ahead of its use stays a word until then.
  DenseMap<std::tuple<Block *, Value, int64_t>, Pairs> known;
};
} // namespace

WordWidener::Pairs WordWidener::pairsOf(ImplicitLocOpBuilder &b, Value vector,
                                        int64_t word) {
  int64_t count = cast<VectorType>(vector.getType()).getNumElements() / 4;
  Value words = vector::BitCastOp::create(
      b, VectorType::get(count, b.getI32Type()), vector);
  Value upper = vector::ExtractOp::create(b, words, word);
  auto bits = [&](uint32_t half) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(half << 16 | half));
  };
  auto pairType = VectorType::get(2, b.getF16Type());
  Value factor = constantOf(b, pairType, FloatAttr::get(b.getF16Type(), 256));
  Value one = arith::ConstantOp::create(b, b.getI32IntegerAttr(1));
  Value eight = arith::ConstantOp::create(b, b.getI32IntegerAttr(8));
  Pairs pairs;
  for (int i : {1, 0}) {
    if (i == 0)
      upper = arith::ShLIOp::create(b, upper, eight);
    Value size = arith::AndIOp::create(b, arith::ShRUIOp::create(b, upper, one),
                                       bits(0x3f80));
    Value special = arith::AndIOp::create(
        b, arith::AddIOp::create(b, size, bits(0x80)), bits(0x4000));
    Value sign = arith::AndIOp::create(b, upper, bits(0x8000));
    Value code =
        arith::OrIOp::create(b, arith::OrIOp::create(b, size, special), sign);
    Value pair = vector::BitCastOp::create(
        b, pairType,
        vector::FromElementsOp::create(b, VectorType::get(1, b.getI32Type()),
                                       code));
    // The product is exact.
    pairs[i] =
        arith::MulFOp::create(b, pair, factor, arith::FastMathFlags::contract);
  }
  return pairs;
}

bool WordWidener::widen(arith::ExtFOp op) {
  auto element = op.getIn().getDefiningOp<vector::ExtractOp>();
  if (!element || !op.getType().isF16() ||
      !isa<Float8E4M3FNType>(op.getIn().getType()) ||
      element.hasDynamicPosition())
    return false;
  VectorType type = element.getSourceVectorType();
  if (type.getRank() != 1 || type.getNumElements() % 4)
    return false;
  int64_t i = element.getStaticPosition().front();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto [entry, isNew] =
      known.try_emplace({op->getBlock(), element.getSource(), i / 4});
  if (isNew)
    entry->second = pairsOf(b, element.getSource(), i / 4);
  op.replaceAllUsesWith(
      vector::ExtractOp::create(b, entry->second[i % 2], i % 4 / 2)
          .getResult());
  op.erase();
  return true;
}

/// Values of 8-bit floats become i8.
static void replaceTypes(tile::FuncOp kernel) {
  auto i8 = IntegerType::get(kernel.getContext(), 8);
  kernel.walk([&](arith::ConstantOp constant) {
    if (!isFloat8(getElementTypeOrSelf(constant.getType())))
      return;
    TypedAttr value = constant.getValue();
    if (auto number = dyn_cast<FloatAttr>(value))
      value = IntegerAttr::get(i8, number.getValue().bitcastToAPInt());
    else
      value = cast<DenseElementsAttr>(value).bitcast(i8);
    constant.setValueAttr(value);
    constant.getResult().setType(value.getType());
  });
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](Type type) -> std::optional<Type> {
    if (isFloat8(type))
      return i8;
    return std::nullopt;
  });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  kernel.walk([](arith::BitcastOp cast) {
    if (cast.getIn().getType() != cast.getType())
      return;
    cast.replaceAllUsesWith(cast.getIn());
    cast.erase();
  });
}

/// A conversion that Vulkan's drivers make in two steps.
static bool roundsTwice(Operation *op, const TargetRow &row) {
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  return row.isVulkan() && isa<arith::TruncFOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isF64() &&
         (to.isF16() || to.isBF16());
}

void greta::expandFloat8(Operation *root, const TargetRow &row) {
  bool found = false;
  bool hasWords = isa<tile::FuncOp>(root) && row.fp8 != Fp8Kind::Ocp;
  WordWidener words;
  root->walk([&](Operation *op) {
    if (auto extension = dyn_cast<arith::ExtFOp>(op);
        extension && hasWords && words.widen(extension)) {
      found = true;
      return;
    }
    if (auto abs = dyn_cast<math::AbsFOp>(op);
        abs && isFloat8(getElementTypeOrSelf(abs.getType()))) {
      found = true;
      abs.replaceAllUsesWith(absolute(abs));
      abs.erase();
      return;
    }
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return;
    bool widens = isFloat8(getElementTypeOrSelf(op->getOperand(0).getType()));
    bool is8Bit =
        widens || isFloat8(getElementTypeOrSelf(op->getResult(0).getType()));
    if (!is8Bit && !roundsTwice(op, row))
      return;
    found |= is8Bit;
    Expander expander(op, row.fp8);
    op->getResult(0).replaceAllUsesWith(widens ? expander.widen()
                                               : expander.narrow());
    op->erase();
  });
  auto kernel = dyn_cast<tile::FuncOp>(root);
  if (kernel && (found || llvm::any_of(kernel.getArgumentTypes(), [](Type t) {
                   auto pointer = dyn_cast<tile::PtrType>(t);
                   return pointer && isFloat8(pointer.getElementType());
                 })))
    replaceTypes(kernel);
}
