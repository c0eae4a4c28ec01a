//===- ConvertDots.cpp - Triton IR's dots ---------------------------------===//
//
// A microscaled dot becomes a dot of what its operands stand for, exactly:
//
//   operand   e2m1, two in a byte along K; e4m3, e5m2; bf16, f16
//   scale     a byte for 32 elements of K, 2^(s - 127) (e8m0), or an e4m3
//             for 16
//   product   bf16, which holds a scaled operand of up to 8 bits, else f32
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
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
class Unpacking : Arithmetic {
public:
  Unpacking(Operation *op, ImplicitLocOpBuilder &b) : Arithmetic{b}, op(op) {}

  /// Returns an operand in f32, times its scale if it has one. `k` is the
  /// dimension of K, `packed` the dimension along which the two e2m1 of a byte
  /// are neighbours.
  FailureOr<Value> operand(Value value, StringRef format, Value scale,
                           unsigned k, unsigned packed);

private:
  Value halfBytes(Value bytes, unsigned packed);
  FailureOr<Value> scales(Value scale, ArrayRef<int64_t> shape, unsigned k);
  Value cast(Value value, Type element) {
    Type type = tile::withElementType(value.getType(), element);
    return type == value.getType() ? value
                                   : arith::ExtFOp::create(b, type, value);
  }
  Value number(Value like, int64_t n) {
    return constantOf(like.getType(), double(n), b);
  }
  Value isEqual(Value x, int64_t n) { return equal(x, number(x, n)); }

  Operation *op;
};
} // namespace

/// Returns the floats of 4 bits in a block of bytes, the lower half first. Each
/// has a sign, two bits of exponent and one of mantissa: 0, 0.5, 1, 1.5, 2, 3,
/// 4, 6. With the bits in the places of sign, exponent and mantissa of an f16,
/// the f16 is 2^-14 of the number.
Value Unpacking::halfBytes(Value bytes, unsigned packed) {
  auto as = [&](Type element) {
    return tile::withElementType(bytes.getType(), element);
  };
  Type f32 = as(b.getF32Type());
  Value word = arith::ExtUIOp::create(b, as(b.getI32Type()), bytes);
  auto half = [&](unsigned first) -> Value {
    auto moved = [&](unsigned shift, unsigned mask) -> Value {
      Value bits = shl(word, number(word, shift));
      return both(bits, number(bits, mask));
    };
    Value bits = either(moved(9 - first, 7 << 9), moved(12 - first, 1 << 15));
    bits = arith::TruncIOp::create(b, as(b.getI16Type()), bits);
    Value small = arith::BitcastOp::create(b, as(b.getF16Type()), bits);
    return fmul(arith::ExtFOp::create(b, f32, small),
                constantOf(f32, 1 << 14, b));
  };
  auto type = ::cast<RankedTensorType>(f32);
  SmallVector<int64_t> pairs(type.getShape()), whole = pairs;
  pairs.push_back(2);
  whole[packed] *= 2;
  Value both = tile::JoinOp::create(b, type.clone(pairs), half(0), half(4));
  // The pair moves behind the dimension that it is part of.
  SmallVector<int64_t> order;
  for (int64_t dim = 0, rank = type.getRank(); dim < rank; ++dim) {
    order.push_back(dim);
    if (dim == packed)
      order.push_back(rank);
  }
  if (packed + 1 != type.getRank()) {
    SmallVector<int64_t> moved;
    for (int64_t dim : order)
      moved.push_back(pairs[dim]);
    both = tile::TransOp::create(b, type.clone(moved), both, order);
  }
  return tile::ReshapeOp::create(b, type.clone(whole), both);
}

/// Returns the scale of each element. They come as [M, K / n] for A, and as
/// [N, K / n] for B: n neighbours along K share one.
FailureOr<Value> Unpacking::scales(Value scale, ArrayRef<int64_t> shape,
                                   unsigned k) {
  auto type = ::cast<RankedTensorType>(scale.getType());
  unsigned rank = shape.size();
  SmallVector<int64_t> expected(shape);
  if (k + 1 != rank)
    std::swap(expected[rank - 1], expected[rank - 2]);
  int64_t groups = type.getRank() == rank ? type.getDimSize(rank - 1) : 0;
  SmallVector<int64_t> outer(expected);
  outer.back() = groups;
  if (!groups || type.getShape() != ArrayRef<int64_t>(outer) ||
      expected.back() % groups)
    return op->emitOpError("scales an operand of ")
           << RankedTensorType::get(shape, b.getF32Type()) << " by " << type
           << "; scales are [M, K / n] and [N, K / n]";
  Type f32 = type.clone(b.getF32Type());
  Value factor;
  if (type.getElementType().isInteger(8)) {
    Type i32 = type.clone(b.getI32Type());
    Value exponent = arith::ExtUIOp::create(b, i32, scale);
    Value bits = shl(exponent, number(exponent, 23));
    // 2^-127 is below the normal numbers, 255 is NaN.
    bits = select(isEqual(exponent, 0), number(exponent, 1 << 22), bits);
    bits = select(isEqual(exponent, 255), number(exponent, 0x7fc00000), bits);
    factor = arith::BitcastOp::create(b, f32, bits);
  } else if (isa<FloatType>(type.getElementType())) {
    factor = cast(scale, b.getF32Type());
  } else {
    return op->emitOpError("has scales of ")
           << type.getElementType() << "; they are bytes (e8m0) or floats";
  }
  auto blockType = ::cast<RankedTensorType>(f32);
  SmallVector<int64_t> single(outer), repeated(outer);
  single.push_back(1);
  repeated.push_back(expected.back() / groups);
  factor = tile::ReshapeOp::create(b, blockType.clone(single), factor);
  factor = tile::BroadcastOp::create(b, blockType.clone(repeated), factor);
  factor = tile::ReshapeOp::create(b, blockType.clone(expected), factor);
  if (k + 1 == rank)
    return factor;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  return Value(tile::TransOp::create(b, blockType.clone(shape), factor, order));
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
  Value wide;
  if (format == "e2m1" && type.getElementType().isInteger(8)) {
    wide = halfBytes(value, packed);
  } else if (element &&
             type.getElementTypeBitWidth() == element.getIntOrFloatBitWidth()) {
    if (type.getElementType() != element)
      value = arith::BitcastOp::create(b, type.clone(element), value);
    wide = cast(value, b.getF32Type());
  } else {
    return op->emitOpError("multiplies ")
           << type << " as '" << format
           << "'; operands are e2m1 in bytes, e4m3, e5m2, bf16 or fp16";
  }
  Type product =
      element && element.isF16() ? b.getF32Type() : Type(b.getBF16Type());
  if (scale) {
    FailureOr<Value> factor =
        scales(scale, ::cast<RankedTensorType>(wide.getType()).getShape(), k);
    if (failed(factor))
      return failure();
    wide = fmul(wide, *factor);
    if (element && element.isBF16())
      product = b.getF32Type();
  }
  if (product.isF32())
    return wide;
  return Value(arith::TruncFOp::create(
      b, tile::withElementType(wide.getType(), product), wide));
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
