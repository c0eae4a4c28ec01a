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
#include "Formula.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using arith::CmpIPredicate;

namespace {

/// Integers of one width in the making.
struct Integers {
  ImplicitLocOpBuilder &b;
  Type type;

  Value operator()(uint64_t number) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), number)));
  }
  Value is(CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  template <typename OpT> Value make(Value x, Value y) {
    return OpT::create(b, x, y);
  }
};

} // namespace

static Value remainderOf(ImplicitLocOpBuilder &b, Value x, Value y) {
  Type type = x.getType();
  unsigned width = type.getIntOrFloatBitWidth(),
           mantissa = width == 64 ? 52 : 23;
  uint64_t sign = uint64_t(1) << (width - 1), one = uint64_t(1) << mantissa;
  uint64_t infinity = sign - one, bias = (infinity >> mantissa) / 2;
  Integers i{b, b.getIntegerType(width)};
  auto bitsOf = [&](Value value) {
    return arith::BitcastOp::create(b, i.type, value).getResult();
  };
  auto fromBits = [&](Value bits) {
    return arith::BitcastOp::create(b, type, bits).getResult();
  };
  Value bits = bitsOf(x);
  Value m = i.make<arith::AndIOp>(bits, i(sign - 1));
  Value n = i.make<arith::AndIOp>(bitsOf(y), i(sign - 1));
  // Infinities and NaN by anything, anything by NaN and 0.
  Value isNaN = i.make<arith::OrIOp>(
      i.make<arith::OrIOp>(i.is(CmpIPredicate::uge, m, i(infinity)),
                           i.is(CmpIPredicate::ugt, n, i(infinity))),
      i.is(CmpIPredicate::eq, n, i(0)));
  Value isSmaller = i.is(CmpIPredicate::ult, m, n);
  auto split = [&](Value size) {
    Value field = i.make<arith::ShRUIOp>(size, i(mantissa));
    Value fraction = i.make<arith::AndIOp>(size, i(one - 1));
    Value isDenormal = i.is(CmpIPredicate::eq, field, i(0));
    return std::pair(
        i.make<arith::MaxUIOp>(field, i(1)),
        i.select(isDenormal, fraction, i.make<arith::OrIOp>(fraction, i(one))));
  };
  auto [e, whole] = split(m);
  auto [f, places] = split(n);
  Value divisor = i.select(isNaN, i(1), places);
  Value left = i.select(i.make<arith::OrIOp>(isNaN, isSmaller), i(0),
                        i.make<arith::SubIOp>(e, f));
  Value rest = i.make<arith::RemUIOp>(whole, divisor);
  unsigned step = width - mantissa - 1;
  auto loop = scf::WhileOp::create(
      b, TypeRange{i.type, i.type}, ValueRange{rest, left},
      [&](OpBuilder &inner, Location, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value isLeft = i.is(CmpIPredicate::ne, carried[1], i(0));
        scf::ConditionOp::create(b, isLeft, carried);
      },
      [&](OpBuilder &inner, Location, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value taken = i.make<arith::MinUIOp>(carried[1], i(step));
        Value next = i.make<arith::RemUIOp>(
            i.make<arith::ShLIOp>(carried[0], taken), divisor);
        Value after = i.make<arith::SubIOp>(carried[1], taken);
        scf::YieldOp::create(b, ValueRange{next, after});
      });
  // The rest times 2^(f - bias - mantissa), exactly: by two factors, because
  // one may be too small for a float.
  Value exponent =
      i.make<arith::SubIOp>(f, i(bias + mantissa)); // negative, or not
  Value half = i.make<arith::ShRSIOp>(exponent, i(1));
  auto power = [&](Value k) {
    return fromBits(
        i.make<arith::ShLIOp>(i.make<arith::AddIOp>(k, i(bias)), i(mantissa)));
  };
  Value size = arith::UIToFPOp::create(b, type, loop.getResult(0));
  size = arith::MulFOp::create(b, size, power(half));
  size = arith::MulFOp::create(b, size,
                               power(i.make<arith::SubIOp>(exponent, half)));
  Value result = fromBits(
      i.make<arith::OrIOp>(bitsOf(size), i.make<arith::AndIOp>(bits, i(sign))));
  result = arith::SelectOp::create(b, isSmaller, x, result);
  return arith::SelectOp::create(b, isNaN, fromBits(i(infinity | one >> 1)),
                                 result);
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
