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
// place is that of the result. Nowhere does a denormal of the wide type count,
// which a GPU may take for zero. The only other arithmetic is the absolute
// value.
//
// Elements of vectors of E4M3FN, which kernels load, became f16 before
// (ExpandBytes.cpp).
//
// An f64 is narrowed by its own bits: through f32 it would be rounded twice. So
// are f64 to f16 and bf16 on Vulkan, whose drivers go through f32.
//
// In a kernel (greta_tile.func) the 8-bit types themselves then become i8,
// which all code generators know.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Elementwise.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

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
class Expander : Arithmetic {
public:
  Expander(Operation *op, Fp8Kind native, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, source(op->getOperand(0)),
        type(op->getResult(0).getType()), native(native) {}
  Value widen();
  Value narrow();

private:
  Type like(Type element) { return tile::withElementType(type, element); }
  Value constant(Value value, int64_t number) {
    return constantOf(b, value.getType(), number);
  }
  template <typename OpT> Value with(Value value, int64_t number) {
    return OpT::create(b, value, constant(value, number));
  }
  Value isBelow(Value value, int64_t number) {
    return compare(Predicate::ult, value, constant(value, number));
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
  Value small = fmul(arith::UIToFPOp::create(b, like(to), size),
                     constantOf(b, like(to), FloatAttr::get(to, unit)));
  bits = select(isBelow(size, int64_t(1) << from.mantissa),
                arith::BitcastOp::create(b, code.getType(), small), bits);
  // The place of -0, or all ones, is no number.
  Value special = with<arith::OrIOp>(shifted, wide.infinity());
  if (from.isFnuz)
    bits = select(
        equal(code, constant(code, 0x80)),
        constant(code, wide.infinity() | int64_t(1) << (wide.mantissa - 1)),
        bits);
  else
    bits = select(isBelow(size, from.infinity()), bits, special);
  return arith::BitcastOp::create(b, like(to), either(bits, sign));
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
  Value code =
      add(with<arith::AddIOp>(size, (int64_t(1) << (drop - 1)) - 1), odd);
  code = with<arith::SubIOp>(with<arith::ShRUIOp>(code, drop),
                             (wide.bias - format.bias) << format.mantissa);
  // The last place of 2^23 units (f64: 2^52) is one unit.
  double unit =
      std::ldexp(1.0, wide.mantissa + 1 - format.bias - format.mantissa);
  Value anchor = constantOf(b, floats, FloatAttr::get(from, unit));
  Value small = fadd(arith::BitcastOp::create(b, floats, size), anchor);
  small = sub(arith::BitcastOp::create(b, integers, small),
              arith::BitcastOp::create(b, integers, anchor));
  code = select(isBelow(size, (wide.bias - format.bias + 1) << wide.mantissa),
                small, code);
  Value isLarge =
      compare(Predicate::sgt, code, constant(code, format.largest()));
  code = select(isLarge, constant(code, format.infinity()), code);
  // A number beyond infinity is NaN.
  if (format.hasInfinity)
    code = select(isBelow(size, wide.infinity() + 1), code,
                  constant(code, format.infinity() |
                                     int64_t(1) << (format.mantissa - 1)));
  Value result = either(code, sign);
  if (format.isFnuz)
    result = select(equal(code, constant(code, 0)), code, result);
  return finish(result);
}

/// |x| without the sign's bit, which alone is NaN in types that have no -0.
static Value absolute(math::AbsFOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Arithmetic a{b};
  Type type = op.getType(), bits = tile::withElementType(type, b.getI8Type());
  auto constant = [&](uint8_t value) {
    return constantOf(b, bits, static_cast<int8_t>(value));
  };
  Value code = arith::BitcastOp::create(b, bits, op.getOperand());
  Value size = a.both(code, constant(0x7f));
  if (Format(cast<FloatType>(getElementTypeOrSelf(type))).isFnuz) {
    Value isNan = a.equal(code, constant(0x80));
    size = a.select(isNan, code, size);
  }
  return arith::BitcastOp::create(b, type, size);
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
  root->walk([&](Operation *op) {
    if (auto words = dyn_cast<vector::BitCastOp>(op))
      found |= isFloat8(words.getSourceVectorType().getElementType());
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
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Expander expander(op, row.fp8, b);
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
