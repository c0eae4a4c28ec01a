//===- ExpandIntegers.cpp - integers to bf16, rounded once ----------------===//
//
// In: conversions of integers of 32 and 64 bits to bf16. Out: the same by f32,
// which all targets go by, and which would round first: 2^24 + 2^16 + 1 becomes
// 2^24 + 2^16 there, the middle of two bf16, and then the wrong one of them.
// So f32 gets an integer that it holds: bits below its last place become one
// bit in that place ("round to odd"), far below where bf16 rounds.
//
// Other types need nothing: integers that f16 and 8-bit floats hold are below
// 2^24.
//
//===----------------------------------------------------------------------===//

#include "greta/Lane/ExpandIntegers.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Elementwise.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace greta;

static bool isNarrow(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() <= 24;
}

/// Whether f32 holds an integer in any case.
static bool isExact(Value value) {
  if (isNarrow(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op))
    return isExact(op->getOperand(0));
  APInt constant;
  return isa_and_nonnull<arith::AndIOp>(op) &&
         matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
         constant.getActiveBits() <= 24;
}

static void roundOnce(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Arithmetic a{b};
  Value x = op->getOperand(0);
  Type floats = tile::withElementType(x.getType(), b.getF32Type());
  auto number = [&](Type type, int64_t value) {
    return constantOf(b, type, value);
  };
  auto toFloat = [&](Value integer) -> Value {
    if (isa<arith::SIToFPOp>(op))
      return arith::SIToFPOp::create(b, floats, integer);
    return arith::UIToFPOp::create(b, floats, integer);
  };
  auto finish = [&](Value integer) {
    Value rounded = arith::TruncFOp::create(b, op->getResult(0).getType(),
                                            toFloat(integer));
    op->replaceAllUsesWith(ValueRange(rounded));
    op->erase();
  };
  if (isExact(x))
    return finish(x);
  // How far its last place in f32 is above 1. A number that rounds up to a
  // power of two gets a place fewer, which is no loss.
  constexpr int64_t mantissa = 23, bias = 127;
  Type words = tile::withElementType(x.getType(), b.getI32Type()),
       type = x.getType();
  Value bits = arith::BitcastOp::create(b, words, toFloat(x));
  Value exponent =
      a.both(a.shr(bits, number(words, mantissa)), number(words, 255));
  Value place =
      a.most(a.sub(exponent, number(words, bias + mantissa)), number(words, 0));
  if (type != words)
    place = arith::ExtUIOp::create(b, type, place);
  Value unit = a.shl(number(type, 1), place);
  Value below = a.both(x, a.sub(unit, number(type, 1)));
  Value isInexact = a.differ(below, number(type, 0));
  Value odd = a.select(isInexact, unit, number(type, 0));
  finish(a.either(a.flip(x, below), odd));
}

void greta::expandIntegers(Operation *root) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) &&
        getElementTypeOrSelf(op->getResult(0)).isBF16() &&
        !isNarrow(op->getOperand(0)))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    roundOnce(op);
}
