//===- PackedWeights.cpp - see PackedWeights.h ----------------------------===//

#include "PackedWeights.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

/// A scalar or a block like `type`, of other elements.
static Type typeLike(Type type, Type element) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(element);
  return element;
}

static Value splat(ImplicitLocOpBuilder &b, Type type, TypedAttr value) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  return arith::ConstantOp::create(b, value);
}

Value PackedWeights::constant(Value like, int64_t value) {
  return splat(b, like.getType(),
               b.getIntegerAttr(getElementTypeOrSelf(like), value));
}

Value PackedWeights::shiftInWord(Value index) {
  Value e = with<arith::AndIOp>(index, format.perWord() - 1);
  if (!format.isPaired)
    return with<arith::MulIOp>(e, format.bits);
  return arith::AddIOp::create(
      b, with<arith::MulIOp>(with<arith::ShRUIOp>(e, 1), format.bits),
      with<arith::MulIOp>(with<arith::AndIOp>(e, 1), 16));
}

Value PackedWeights::shiftInHigh(Value index) {
  Value e = with<arith::AndIOp>(index, format.perHigh() - 1);
  return arith::AddIOp::create(
      b, with<arith::MulIOp>(with<arith::ShRUIOp>(e, 1), format.highBits),
      with<arith::MulIOp>(with<arith::AndIOp>(e, 1), 16));
}

Value PackedWeights::number(Value word, Value high) {
  Value number = with<arith::AndIOp>(word, (1 << format.bits) - 1);
  if (high)
    number = arith::OrIOp::create(
        b, number,
        with<arith::ShLIOp>(
            with<arith::AndIOp>(high, (1 << format.highBits) - 1),
            format.bits));
  if (int offset = format.offset())
    number = with<arith::XOrIOp>(number, offset);
  return number;
}

/// One of `count` codes from `first` on, which bits of the number choose.
Value PackedWeights::code(Value number, int first, int count) {
  if (count == 1) {
    APFloat value(APFloat::IEEEhalf(), APInt(16, format.codes[first]));
    bool isInexact;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &isInexact);
    return splat(b, typeLike(number.getType(), b.getF32Type()),
                 b.getFloatAttr(b.getF32Type(), value));
  }
  int half = count / 2;
  Value isUpper = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                        with<arith::AndIOp>(number, half),
                                        constant(number, 0));
  return arith::SelectOp::create(b, isUpper, code(number, first + half, half),
                                 code(number, first, half));
}

Value PackedWeights::decode(Value number, Value zero) {
  if (format.codes)
    return code(number, 0, 1 << format.bits);
  if (format.isE4M3) {
    auto as = [&](Type element) { return typeLike(number.getType(), element); };
    Value byte = arith::TruncIOp::create(b, as(b.getI8Type()), number);
    Value weight =
        arith::BitcastOp::create(b, as(b.getType<Float8E4M3FNType>()), byte);
    return arith::ExtFOp::create(b, as(b.getF32Type()), weight);
  }
  if (zero)
    number = arith::SubIOp::create(b, number, zero);
  return arith::SIToFPOp::create(b, typeLike(number.getType(), b.getF32Type()),
                                 number);
}

Value PackedWeights::scale(Value stored) {
  Type type = stored.getType(), wide = typeLike(type, b.getF32Type());
  if (getElementTypeOrSelf(type).isF32())
    return stored;
  if (format.scale == WeightFormat::Scale::F16)
    return arith::ExtFOp::create(b, wide, stored);
  Value exponent =
      arith::ExtUIOp::create(b, typeLike(type, b.getI32Type()), stored);
  return arith::BitcastOp::create(b, wide, with<arith::ShLIOp>(exponent, 23));
}
