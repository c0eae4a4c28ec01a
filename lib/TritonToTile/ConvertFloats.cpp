//===- ConvertFloats.cpp - Triton IR's elementwise ops --------------------===//
//
// Conversions between floats that say how they round:
//
//   to the nearest   arith.truncf
//   towards zero     that, and one step back where it went away from zero
//
// 8-bit floats end at their largest number, as instructions have it, where
// arith.truncf would give infinity or NaN.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

static bool isFloat8(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
}

LogicalResult OpConverter::convert(FpToFpOp op) {
  Value value = op.getValue();
  Type type = op.getType(), to = getElementTypeOrSelf(type);
  StringRef rounding = op.getRounding().value_or("rtne");
  if (rounding != "rtne" && rounding != "rtz")
    return op.emitOpError("rounds by '")
           << rounding
           << "'; floats round to the nearest (rtne) or towards "
              "zero (rtz)";
  auto widthOf = [](Type type) {
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  };
  if (value.getType() == type)
    return replace(op, {value});
  // Floats of one width have none between them but f32.
  if (widthOf(value.getType()) == widthOf(type))
    value = arith::ExtFOp::create(
        b, tile::withElementType(type, b.getF32Type()), value);
  if (widthOf(value.getType()) < widthOf(type))
    return replace(op, {arith::ExtFOp::create(b, type, value)});

  Type wide = value.getType();
  Value limited = value;
  if (isFloat8(to)) {
    double largest =
        APFloat::getLargest(cast<FloatType>(to).getFloatSemantics())
            .convertToDouble();
    limited = arith::MaximumFOp::create(
        b, arith::MinimumFOp::create(b, limited, numberOf(b, wide, largest)),
        numberOf(b, wide, -largest));
  }
  Value nearest = arith::TruncFOp::create(b, type, limited);
  if (rounding == "rtne")
    return replace(op, {nearest});
  Value back = arith::ExtFOp::create(b, wide, nearest);
  Value isBeyond = compare(FPredicate::OGT, math::AbsFOp::create(b, back),
                           math::AbsFOp::create(b, value));
  Type bits = tile::withElementType(type, b.getIntegerType(widthOf(type)));
  Value nearestBits = arith::BitcastOp::create(b, bits, nearest);
  Value before = sub(nearestBits, numberOf(b, bits, 1));
  // In front of the first number below zero is NaN, where there is no -0.
  if (isa<Float8E5M2FNUZType, Float8E4M3FNUZType>(to)) {
    Value isNaN = equal(before, numberOf(b, bits, -128));
    before = select(isNaN, numberOf(b, bits, 0), before);
  }
  Value chosen = select(isBeyond, before, nearestBits);
  return replace(op, {arith::BitcastOp::create(b, type, chosen)});
}

/// The upper half of x * y, from gemms of halves where no integer has the
/// whole.
LogicalResult OpConverter::convert(MulhiUIOp op) {
  Type type = op.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto shiftRight = [&](Value x, unsigned bits) -> Value {
    return shr(x, numberOf(b, x.getType(), bits));
  };
  if (width < 64) {
    Type wide = tile::withElementType(type, b.getIntegerType(2 * width));
    Value product = mul(arith::ExtUIOp::create(b, wide, op.getX()),
                        arith::ExtUIOp::create(b, wide, op.getY()));
    return replace(
        op, {arith::TruncIOp::create(b, type, shiftRight(product, width))});
  }
  Value mask = numberOf(b, type, 0xffffffffu);
  auto low = [&](Value x) -> Value { return both(x, mask); };
  Value x0 = low(op.getX()), x1 = shiftRight(op.getX(), 32);
  Value y0 = low(op.getY()), y1 = shiftRight(op.getY(), 32);
  Value middle = add(mul(x1, y0), shiftRight(mul(x0, y0), 32));
  Value carry = shiftRight(add(mul(x0, y1), low(middle)), 32);
  return replace(op, {add(add(mul(x1, y1), shiftRight(middle, 32)), carry)});
}

/// Computes an op of f32 in f64 and rounds the result. An f64 has more than
/// twice the bits of an f32, so rounding twice does no harm. Division and roots
/// of f32 are off by some units in the last place on most devices.
template <typename OpT, typename... Values>
static Value preciseF32(ImplicitLocOpBuilder &b, Type type, Values... values) {
  if (!getElementTypeOrSelf(type).isF32())
    return OpT::create(b, values...);
  Type wide = tile::withElementType(type, b.getF64Type());
  return arith::TruncFOp::create(
      b, type, OpT::create(b, arith::ExtFOp::create(b, wide, values)...));
}

LogicalResult OpConverter::convert(PreciseDivFOp op) {
  return replace(
      op, {preciseF32<arith::DivFOp>(b, op.getType(), op.getX(), op.getY())});
}

LogicalResult OpConverter::convert(PreciseSqrtOp op) {
  return replace(op, {preciseF32<math::SqrtOp>(b, op.getType(), op.getX())});
}

LogicalResult OpConverter::convert(ClampFOp op) {
  if (op.getPropagateNan() == "all")
    return replace(op,
                   {arith::MinimumFOp::create(
                       b, arith::MaximumFOp::create(b, op.getX(), op.getMin()),
                       op.getMax())});
  return replace(op, {arith::MinNumFOp::create(
                         b, arith::MaxNumFOp::create(b, op.getX(), op.getMin()),
                         op.getMax())});
}

LogicalResult OpConverter::convert(ExternElementwiseOp op) {
  Value value = expandLibraryFunction(op.getSymbol(), op.getValues(), b);
  if (!value || value.getType() != op.getType())
    return op.emitOpError("calls '")
           << op.getSymbol() << "' of a device library; of libdevice there is "
           << "what arith and math have, docs/guide/triton.md has the list";
  return replace(op, {value});
}
