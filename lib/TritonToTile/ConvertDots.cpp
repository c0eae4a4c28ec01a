//===- ConvertDots.cpp - Triton IR's dots ---------------------------------===//
//
// A microscaled dot becomes a dot of what its operands stand for, exactly but
// for the sign of zeros of e2m1, which greta_tile.dequant unpacks:
//
//   operand   e2m1, two in a byte along K; e4m3, e5m2; bf16, f16
//   scale     a byte for 32 elements of K, 2^(s - 127) (e8m0), or an e4m3
//             for 16
//   product   bf16, which holds a scaled operand of up to 8 bits, else f32
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

/// Ignores the op's precision, which only allows speed: f32 is multiplied as
/// f32, and no precision asks for more.
LogicalResult OpConverter::convert(DotOp op) {
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  Value acc = op.getC();
  // Sums are of f32 where the source would keep them in less.
  Type wide = element.isF16() || element.isBF16()
                  ? tile::withElementType(type, b.getF32Type())
                  : type;
  if (wide != type)
    acc = arith::ExtFOp::create(b, wide, acc);
  Value sum = tile::DotOp::create(b, wide, op.getA(), op.getB(), acc,
                                  tile::MatrixAttr());
  if (wide != type)
    sum = arith::TruncFOp::create(b, type, sum);
  return replace(op, {sum});
}

namespace {
/// Unpacks the operands of a microscaled dot.
class Unpacking : Blocks {
public:
  Unpacking(Operation *op, ImplicitLocOpBuilder &b) : Blocks{b}, op(op) {}

  /// Returns what an operand stands for, times its scale if it has one, in the
  /// type that holds it. `k` is the dimension of K, `packed` the dimension
  /// along which the two e2m1 of a byte are neighbours.
  FailureOr<Value> operand(Value value, StringRef format, Value scale,
                           unsigned k, unsigned packed);

private:
  Value halfBytes(Value bytes, unsigned packed, Value scales);
  FailureOr<Value> scales(Value scale, ArrayRef<int64_t> shape, unsigned k);
  Value repeated(Value scales, ArrayRef<int64_t> shape, unsigned k);
  Value cast(Value value, Type element) {
    Type type = tile::withElementType(value.getType(), element);
    return type == value.getType() ? value
                                   : arith::ExtFOp::create(b, type, value);
  }
  Value number(Value like, int64_t n) { return numberOf(b, like.getType(), n); }
  Value isEqual(Value x, int64_t n) { return equal(x, number(x, n)); }

  Operation *op;
};
} // namespace

/// Returns the floats of 4 bits in a block of bytes, the lower half first, in
/// f16, or times `scales`, which the eight of a word share, in bf16.
Value Unpacking::halfBytes(Value bytes, unsigned packed, Value scales) {
  SmallVector<int64_t> whole(shapeOf(bytes));
  SmallVector<int64_t> apart = whole, order, one(whole.size(), 1);
  whole[packed] *= 2;
  apart[packed] /= 4;
  apart.insert(apart.begin() + packed + 1, 2, 2);
  // The bytes of a word come last.
  llvm::append_range(order, llvm::seq<int64_t>(0, packed + 1));
  llvm::append_range(order, llvm::seq<int64_t>(packed + 3, apart.size()));
  order.append({packed + 1, packed + 2});
  Value words = transpose(reshape(bytes, apart), order);
  words = arith::ExtUIOp::create(
      b, tile::withElementType(words.getType(), b.getI32Type()), words);
  for (int64_t bits : {8, 16}) {
    auto pairs = ::cast<RankedTensorType>(words.getType());
    Type half = pairs.clone(pairs.getShape().drop_back());
    auto split = tile::SplitOp::create(b, half, half, words);
    Value upper = split.getSecond();
    words = either(split.getFirst(), shl(upper, number(upper, bits)));
  }
  auto single = [&](Type type, double value) {
    return numberOf(b, RankedTensorType::get(one, type), value);
  };
  Type element = scales ? Type(b.getBF16Type()) : b.getF16Type();
  return tile::DequantOp::create(
      b, RankedTensorType::get(whole, element), words, /*high=*/Value(),
      scales ? scales : single(element, 1), single(b.getI32Type(), 0),
      *findWeightFormat("mxfp4"));
}

/// Returns an operand's scales in f32, as many along K as there are groups.
/// They come as [M, K / n] for A, and as [N, K / n] for B: n neighbours along K
/// share one.
FailureOr<Value> Unpacking::scales(Value scale, ArrayRef<int64_t> shape,
                                   unsigned k) {
  auto type = ::cast<RankedTensorType>(scale.getType());
  unsigned rank = shape.size();
  SmallVector<int64_t> expected(shape);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  int64_t groups = type.getRank() == rank ? type.getDimSize(rank - 1) : 0;
  expected[k] = groups;
  std::swap(order[k], order[rank - 1]);
  if (!groups || shape[k] % groups ||
      type.getShape() != ArrayRef(mlir::applyPermutation(expected, order)))
    return op->emitOpError("scales an operand of ")
           << RankedTensorType::get(shape, b.getF32Type()) << " by " << type
           << "; scales are [M, K / n] and [N, K / n]";
  if (type.getElementType().isInteger(8)) {
    Type i32 = type.clone(b.getI32Type());
    Value exponent = arith::ExtUIOp::create(b, i32, scale);
    Value bits = shl(exponent, number(exponent, 23));
    // 2^-127 is below the normal numbers, 255 is NaN.
    bits = select(isEqual(exponent, 0), number(exponent, 1 << 22), bits);
    bits = select(isEqual(exponent, 255), number(exponent, 0x7fc00000), bits);
    scale = arith::BitcastOp::create(b, type.clone(b.getF32Type()), bits);
  } else if (isa<FloatType>(type.getElementType())) {
    scale = cast(scale, b.getF32Type());
  } else {
    return op->emitOpError("has scales of ")
           << type.getElementType() << "; they are bytes (e8m0) or floats";
  }
  return k + 1 == rank ? scale : transpose(scale, order);
}

/// Returns the scale of each element.
Value Unpacking::repeated(Value scales, ArrayRef<int64_t> shape, unsigned k) {
  return reshape(repeat(scales, k + 1, shape[k] / shapeOf(scales)[k]), shape);
}

FailureOr<Value> Unpacking::operand(Value value, StringRef format, Value scale,
                                    unsigned k, unsigned packed) {
  auto type = ::cast<RankedTensorType>(value.getType());
  Type element = llvm::StringSwitch<Type>(format)
                     .Case("e4m3", b.getType<Float8E4M3FNType>())
                     .Case("e5m2", b.getType<Float8E5M2Type>())
                     .Case("bf16", b.getBF16Type())
                     .Case("fp16", b.getF16Type())
                     .Default(Type());
  bool isPacked = format == "e2m1" && type.getElementType().isInteger(8) &&
                  type.getDimSize(packed) % 4 == 0;
  if (!isPacked && (!element || type.getElementTypeBitWidth() !=
                                    element.getIntOrFloatBitWidth()))
    return op->emitOpError("multiplies ")
           << type << " as '" << format
           << "'; operands are e2m1 in bytes, at least eight along the packed "
              "dimension, e4m3, e5m2, bf16 or fp16";
  SmallVector<int64_t> shape(type.getShape());
  if (isPacked)
    shape[packed] *= 2;
  Value factors;
  bool isShared = false; // whether the numbers of a word have one scale
  if (scale) {
    FailureOr<Value> found = scales(scale, shape, k);
    if (failed(found))
      return failure();
    factors = *found;
    auto type = ::cast<RankedTensorType>(factors.getType());
    isShared = k == packed && shape[k] / type.getDimSize(k) % 8 == 0;
  }
  if (isPacked) {
    value = halfBytes(value, packed, isShared ? factors : Value());
    if (isShared)
      return value;
  } else if (type.getElementType() != element) {
    value = arith::BitcastOp::create(b, type.clone(element), value);
  }
  value = cast(value, b.getF32Type());
  Type product =
      element && element.isF16() ? b.getF32Type() : Type(b.getBF16Type());
  if (factors) {
    value = fmul(value, repeated(factors, shape, k));
    if (element && element.isBF16())
      product = b.getF32Type();
  }
  if (product.isF32())
    return value;
  return Value(arith::TruncFOp::create(
      b, tile::withElementType(value.getType(), product), value));
}

LogicalResult OpConverter::convert(DotScaledOp op) {
  Unpacking unpacking(op, b);
  unsigned rank = cast<RankedTensorType>(op.getType()).getRank();
  if (rank < 2)
    return op.emitOpError("makes ") << op.getType() << "; a dot is a matrix";
  FailureOr<Value> x =
      unpacking.operand(op.getA(), op.getLhs(), op.getAScale(), rank - 1,
                        op.getLhsKPack() ? rank - 1 : rank - 2);
  FailureOr<Value> y =
      unpacking.operand(op.getB(), op.getRhs(), op.getBScale(), rank - 2,
                        op.getRhsKPack() ? rank - 2 : rank - 1);
  if (failed(x) || failed(y))
    return failure();
  // Both are of one type.
  for (Value *operand : {&*x, &*y})
    if (getElementTypeOrSelf(x->getType()) !=
            getElementTypeOrSelf(y->getType()) &&
        !getElementTypeOrSelf(operand->getType()).isF32())
      *operand = arith::ExtFOp::create(
          b, tile::withElementType(operand->getType(), b.getF32Type()),
          *operand);
  return replace(op, {tile::DotOp::create(b, op.getType(), *x, *y, op.getC(),
                                          tile::MatrixAttr())});
}
