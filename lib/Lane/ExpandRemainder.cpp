//===- ExpandRemainder.cpp - exact remainders of floats -------------------===//
//
// In: the remainder of a division of f32 or f64 on Vulkan, whose own
// instruction may give x - y trunc(x / y) with a rounded quotient: a multiple
// of y too little where the quotient is large. Out: the exact one (C's fmod),
// which other targets give.
//
// It is a division of integers, as on paper: with x = m 2^e and y = n 2^f, the
// remainder of m by n takes as many bits of 2^(e-f) at a time as the integer
// has above the mantissa's.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "greta/Tile/Formula.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;

namespace {

/// Integers of one width in the making.
struct Integers : Arithmetic {
  Type type;

  Value operator()(uint64_t number) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), number)));
  }
};

} // namespace

static Value remainderOf(ImplicitLocOpBuilder &b, Value x, Value y) {
  Type type = x.getType();
  unsigned width = type.getIntOrFloatBitWidth(),
           mantissa = width == 64 ? 52 : 23;
  uint64_t sign = uint64_t(1) << (width - 1), one = uint64_t(1) << mantissa;
  uint64_t infinity = sign - one, bias = (infinity >> mantissa) / 2;
  Integers i{{b}, b.getIntegerType(width)};
  auto bitsOf = [&](Value value) {
    return arith::BitcastOp::create(b, i.type, value).getResult();
  };
  auto fromBits = [&](Value bits) {
    return arith::BitcastOp::create(b, type, bits).getResult();
  };
  Value bits = bitsOf(x);
  Value m = i.both(bits, i(sign - 1));
  Value n = i.both(bitsOf(y), i(sign - 1));
  // Infinities and NaN by anything, anything by NaN and 0.
  Value isNaN =
      i.either(i.either(i.compare(Arithmetic::Predicate::uge, m, i(infinity)),
                        i.compare(Arithmetic::Predicate::ugt, n, i(infinity))),
               i.equal(n, i(0)));
  Value isSmaller = i.compare(Arithmetic::Predicate::ult, m, n);
  auto split = [&](Value size) {
    Value field = i.shr(size, i(mantissa));
    Value fraction = i.both(size, i(one - 1));
    Value isDenormal = i.equal(field, i(0));
    return std::pair(
        Value(arith::MaxUIOp::create(b, field, i(1))),
        i.select(isDenormal, fraction, i.either(fraction, i(one))));
  };
  auto [e, whole] = split(m);
  auto [f, places] = split(n);
  Value divisor = i.select(isNaN, i(1), places);
  Value left = i.select(i.either(isNaN, isSmaller), i(0), i.sub(e, f));
  Value rest = i.rem(whole, divisor);
  unsigned step = width - mantissa - 1;
  auto loop = scf::WhileOp::create(
      b, TypeRange{i.type, i.type}, ValueRange{rest, left},
      [&](OpBuilder &, Location, ValueRange carried) {
        Value isLeft = i.differ(carried[1], i(0));
        scf::ConditionOp::create(b, isLeft, carried);
      },
      [&](OpBuilder &, Location, ValueRange carried) {
        Value taken = i.minU(carried[1], i(step));
        Value next = i.rem(i.shl(carried[0], taken), divisor);
        Value after = i.sub(carried[1], taken);
        scf::YieldOp::create(b, ValueRange{next, after});
      });
  // The rest times 2^(f - bias - mantissa), exactly: by two factors, because
  // one may be too small for a float.
  Value exponent = i.sub(f, i(bias + mantissa)); // negative, or not
  Value half = arith::ShRSIOp::create(b, exponent, i(1));
  auto power = [&](Value k) {
    return fromBits(i.shl(i.add(k, i(bias)), i(mantissa)));
  };
  Value size = arith::UIToFPOp::create(b, type, loop.getResult(0));
  size = i.fmul(size, power(half));
  size = i.fmul(size, power(i.sub(exponent, half)));
  Value result = fromBits(i.either(bitsOf(size), i.both(bits, i(sign))));
  result = i.select(isSmaller, x, result);
  return i.select(isNaN, fromBits(i(infinity | one >> 1)), result);
}

void greta::expandRemainder(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value x = op->getOperand(0), y = op->getOperand(1), result;
  if (auto vector = dyn_cast<VectorType>(x.getType())) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(remainderOf(b, vector::ExtractOp::create(b, x, i),
                                     vector::ExtractOp::create(b, y, i)));
    result = vector::FromElementsOp::create(b, vector, elements);
  } else {
    result = remainderOf(b, x, y);
  }
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}
