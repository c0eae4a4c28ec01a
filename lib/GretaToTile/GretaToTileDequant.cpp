//===- GretaToTileDequant.cpp - packed weights on blocks ------------------===//
//
// The weight at depth k is four bits of word k / 8; its scale has index k /
// group, its zero is four bits of word k / group / 8. A block of the depth may
// have several dimensions, in units of some number of weights:
//
//   in a kernel of its own    columns, in units of 1
//   in a GEMM's            runs, words of a run, weights of a word: V, 8, 1
//
// k / c over such dimensions: those of units that c divides count whole, those
// that stay within c weights drop out, and the one in between is divided.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

/// Elements between rows of packed weights, or of what they share: constant,
/// as the depth is.
static int64_t rowStrideOf(const TensorLayout &layout) {
  return cast<AffineConstantExpr>(layout.strides.front()).getValue();
}

/// How the dimensions of the block index something that `perElement` weights
/// share.
struct SpaceEmitter::Packed {
  struct Along {
    int64_t extent = 1, stride = 0, divisor = 1;
    int64_t rows = 0; // of the weights, of one step
    bool isDepth = false;
  };

  Packed(ArrayRef<Dim> dims, bool inGemm, int64_t perElement) {
    for (const Dim &dim : dims) {
      Along &along = alongs.emplace_back();
      along.rows = inGemm ? dim.step : dim.kind == Dim::Group;
      bool isDepth = inGemm ? dim.unit > 0 : dim.kind == Dim::Column;
      if (along.rows)
        along.extent = dim.extent;
      int64_t unit = inGemm ? dim.unit : 1;
      if (!isDepth || (!dim.offset && perElement % (unit * dim.extent) == 0))
        continue;
      along.isDepth = true;
      along.extent = dim.extent;
      along.stride = std::max<int64_t>(1, unit / perElement);
      along.divisor = std::max<int64_t>(1, perElement / unit);
    }
  }

  SmallVector<int64_t> shape() const {
    return llvm::map_to_vector(alongs, [](const Along &a) { return a.extent; });
  }

  SmallVector<Along> alongs; // per dimension of the block
};

Value SpaceEmitter::loadPacked(Value v, const Packed &packed) {
  auto argument = cast<BlockArgument>(v);
  auto tensor = cast<RankedTensorType>(v.getType());
  TensorLayout layout = layoutOf(argument);
  int64_t rowStride = rowStrideOf(layout);
  SmallVector<Value> offsets, bounds;
  SmallVector<int64_t> strides, bounded, divisors;
  for (auto [i, dim, along] : llvm::enumerate(dims, packed.alongs)) {
    bool moves = along.rows || along.isDepth;
    offsets.push_back(moves && dim.offset ? dim.offset : i32(b, 0));
    strides.push_back(along.rows ? along.rows * rowStride : along.stride);
    divisors.push_back(along.divisor);
    if (moves && dim.masked) {
      bounded.push_back(i);
      bounds.push_back(reached(offsets.back(), scalars.get(b, dim.size)));
    }
  }
  auto type = RankedTensorType::get(packed.shape(), tensor.getElementType());
  auto load =
      tile::LoadOp::create(b, type, pointerOf(argument), offsets, ValueRange(),
                           bounds, Value(), strides, bounded);
  load.setDivisors(divisors);
  return load;
}

/// The index along the depth, modulo eight: which four bits of a word.
Value SpaceEmitter::digit(const Packed &packed) {
  Value sum;
  for (auto [i, dim, along] : llvm::enumerate(dims, packed.alongs)) {
    if (!along.isDepth || along.stride % 8 == 0)
      continue;
    SmallVector<int64_t> shape(dims.size(), 1);
    shape[i] = along.extent;
    auto type = RankedTensorType::get(shape, b.getI32Type());
    auto splat = [&](Value value) -> Value {
      return tile::SplatOp::create(b, type, value);
    };
    Value index = tile::IotaOp::create(b, type, i);
    if (dim.offset)
      index = add(index, splat(dim.offset));
    if (along.divisor > 1)
      index = arith::ShRUIOp::create(
          b, index, splat(i32(b, llvm::Log2_64(along.divisor))));
    if (along.stride > 1)
      index = mul(index, splat(i32(b, along.stride)));
    if (sum) {
      SmallVector<int64_t> whole(packed.shape());
      for (auto [extent, depth] : llvm::zip(whole, packed.alongs))
        extent = depth.isDepth ? extent : 1;
      index = add(broadcastTo(sum, whole), broadcastTo(index, whole));
    }
    sum = index;
  }
  if (!sum)
    return sum;
  auto type = cast<RankedTensorType>(sum.getType());
  Value seven = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, b.getI32IntegerAttr(7)));
  return arith::AndIOp::create(b, sum, seven);
}

/// Four bits of every word.
Value SpaceEmitter::nibble(Value word, Value number) {
  auto splat = [&](RankedTensorType type, int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
  };
  auto type = cast<RankedTensorType>(word.getType());
  if (number) {
    auto numbers = cast<RankedTensorType>(number.getType());
    SmallVector<int64_t> shape;
    for (auto [x, y] : llvm::zip(type.getShape(), numbers.getShape()))
      shape.push_back(std::max(x, y));
    Value shift = mul(number, splat(numbers, 4));
    type = RankedTensorType::get(shape, b.getI32Type());
    word = arith::ShRUIOp::create(b, broadcastTo(word, shape),
                                  broadcastTo(shift, shape));
  }
  return arith::AndIOp::create(b, word, splat(type, 15));
}

/// One zero for all of a block.
Value SpaceEmitter::defaultZeros() {
  auto type = RankedTensorType::get(SmallVector<int64_t>(dims.size(), 1),
                                    b.getI32Type());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type,
                                b.getI32IntegerAttr(DequantOp::defaultZero)));
}

/// In a GEMM's loop over K, where blocks are [K, N] and their depth is
/// groups or a part of one: a word for every eight weights, scales and zeros
/// once for what shares them.
Value SpaceEmitter::computeDequantBlock(DequantOp op) {
  const Dim &depth = dims[depthDim], &row = dims[1 - depthDim];
  int64_t group = op.getGroup();
  Value k = depth.offset ? depth.offset : i32(b, 0);
  auto divided = [&](int64_t by) -> Value { return div(k, i32(b, by)); };
  /// `count` elements along the depth, which `each` weights share.
  auto load = [&](Value v, int64_t count, int64_t each) -> Value {
    auto argument = cast<BlockArgument>(v);
    auto tensor = cast<RankedTensorType>(v.getType());
    TensorLayout layout = layoutOf(argument);
    int64_t stride = rowStrideOf(layout);
    SmallVector<int64_t> shape = {count, row.extent}, bounded, clamped;
    SmallVector<Value> bounds;
    Value first = divided(each), below = row.offset ? row.offset : i32(b, 0);
    if (depth.masked && count > 1) {
      bounded.push_back(0);
      bounds.push_back(reached(first, i32(b, tensor.getDimSize(1))));
    }
    if (row.masked) {
      bounded.push_back(1);
      clamped.push_back(1);
      bounds.push_back(reached(below, scalars.get(b, row.size)));
    }
    return tile::LoadOp::create(
        b, RankedTensorType::get(shape, tensor.getElementType()),
        pointerOf(argument), ValueRange{first, below}, ValueRange(), bounds,
        Value(), ArrayRef<int64_t>{1, stride}, bounded, clamped);
  };
  int64_t groups = std::max<int64_t>(1, depth.extent / group);
  Value words = load(op.getQ(), depth.extent / 8, 8);
  Value scales = load(op.getScales(), groups, group);
  auto combine = [&](Value zeros) -> Value {
    return tile::DequantOp::create(
        b, RankedTensorType::get(shapeOf(identity), b.getF16Type()), words,
        scales, zeros);
  };
  if (!op.getZeros())
    return combine(defaultZeros());
  auto reshape = [&](Value v, ArrayRef<int64_t> shape) -> Value {
    return tile::ReshapeOp::create(
        b, RankedTensorType::get(shape, b.getI32Type()), v);
  };
  // Eight groups share a word of zeros: [words, 8, N] where there are more.
  int64_t numWords = std::max<int64_t>(1, groups / 8);
  Value zeros = load(op.getZeros(), numWords, 8 * group);
  SmallVector<int64_t> digits = {std::min<int64_t>(groups, 8), 1};
  if (numWords > 1) {
    zeros = reshape(zeros, {numWords, 1, row.extent});
    digits = {1, 8, 1};
  }
  auto type = RankedTensorType::get(digits, b.getI32Type());
  Value number = tile::SplatOp::create(b, type, rem(divided(group), i32(b, 8)));
  if (groups > 1)
    number = add(number, tile::IotaOp::create(b, type, numWords > 1 ? 1 : 0));
  zeros = nibble(zeros, number);
  if (numWords > 1)
    zeros = reshape(zeros, {groups, row.extent});
  return combine(zeros);
}

SpaceEmitter::PackedBlocks SpaceEmitter::loadDequant(DequantOp op,
                                                     bool inGemm) {
  int64_t group = op.getGroup();
  Value words = loadPacked(op.getQ(), Packed(dims, inGemm, 8));
  Value scales = loadPacked(op.getScales(), Packed(dims, inGemm, group));
  if (!op.getZeros())
    return {words, defaultZeros(), scales};
  Value zeros = loadPacked(op.getZeros(), Packed(dims, inGemm, 8 * group));
  return {words, nibble(zeros, digit(Packed(dims, inGemm, group))), scales};
}

Value SpaceEmitter::computeDequant(DequantOp op, const Mapping &mapping) {
  bool inGemm = hasDepth(mapping);
  PackedBlocks blocks = loadDequant(op, inGemm);
  Value q = nibble(blocks.words, digit(Packed(dims, inGemm, 1)));
  SmallVector<int64_t> shape = shapeOf(mapping);
  auto type = RankedTensorType::get(shape, b.getF32Type());
  Value difference =
      sub(broadcastTo(q, shape), broadcastTo(blocks.zeros, shape));
  Value product =
      arith::MulFOp::create(b, arith::SIToFPOp::create(b, type, difference),
                            broadcastTo(widen(blocks.scales), shape));
  return narrow(product, b.getF16Type());
}
