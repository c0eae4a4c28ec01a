//===- GretaToTileDequant.cpp - packed weights on blocks ------------------===//
//
// The weight at depth k is four bits of word k / 8; its scale has index k /
// group, its zero is four bits of word k / group / 8; a minimum is where the
// scale is. A block of the depth may have several dimensions, in units of some
// number of weights:
//
//   in a kernel of its own    columns, in units of 1
//   in a GEMM's            runs, words of a run, weights of a word: V, 8, 1
//
// k / c over such dimensions: those of units that c divides count whole, those
// that stay within c weights drop out, and the one in between is divided.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
  SmallVector<int64_t> divisors;
  Access a;
  for (auto [i, dim, along] : llvm::enumerate(dims, packed.alongs)) {
    bool moves = along.rows || along.isDepth;
    addDim(a, moves ? dim.offset : Value(),
           fixed(along.rows ? along.rows * rowStride : along.stride));
    divisors.push_back(along.divisor);
    if (moves && dim.masked)
      setBound(a, i, reached(a.offsets.back(), scalars.get(b, dim.size)));
  }
  auto type = block(packed.shape(), tensor.getElementType());
  tile::LoadOp loaded = load(type, pointerOf(argument), a);
  loaded.setDivisors(divisors);
  return loaded;
}

/// The index along the depth, modulo eight: which four bits of a word.
Value SpaceEmitter::digit(const Packed &packed) {
  Value sum;
  for (auto [i, dim, along] : llvm::enumerate(dims, packed.alongs)) {
    if (!along.isDepth || along.stride % 8 == 0)
      continue;
    SmallVector<int64_t> shape(dims.size(), 1);
    shape[i] = along.extent;
    auto like = [&](Value value) { return splat(value, shape); };
    Value index = iota(shape, i);
    if (dim.offset)
      index = add(index, like(dim.offset));
    if (along.divisor > 1)
      index = arith::ShRUIOp::create(
          b, index, like(i32(b, llvm::Log2_64(along.divisor))));
    if (along.stride > 1)
      index = mul(index, like(i32(b, along.stride)));
    if (sum) {
      SmallVector<int64_t> whole(packed.shape());
      for (auto [extent, depth] : llvm::zip(whole, packed.alongs))
        extent = depth.isDepth ? extent : 1;
      index = add(broadcast(sum, whole), broadcast(index, whole));
    }
    sum = index;
  }
  if (!sum)
    return sum;
  return both(sum, constant(cast<RankedTensorType>(sum.getType()), 7));
}

/// Four bits of every word.
Value SpaceEmitter::nibble(Value word, Value number) {
  auto type = cast<RankedTensorType>(word.getType());
  if (number) {
    auto numbers = cast<RankedTensorType>(number.getType());
    SmallVector<int64_t> shape;
    for (auto [x, y] : llvm::zip(type.getShape(), numbers.getShape()))
      shape.push_back(std::max(x, y));
    Value shift = mul(number, constant(numbers, 4));
    type = block(shape, b.getI32Type());
    word = arith::ShRUIOp::create(b, broadcast(word, shape),
                                  broadcast(shift, shape));
  }
  return both(word, constant(type, 15));
}

/// One zero for all of a block.
Value SpaceEmitter::defaultZeros() {
  return constant(block(SmallVector<int64_t>(dims.size(), 1), b.getI32Type()),
                  DequantOp::defaultZero);
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
  auto loadShared = [&](Value v, int64_t count, int64_t each) -> Value {
    auto argument = cast<BlockArgument>(v);
    auto tensor = cast<RankedTensorType>(v.getType());
    Access a;
    addDim(a, divided(each), fixed(1));
    addDim(a, row.offset, fixed(rowStrideOf(layoutOf(argument))));
    if (depth.masked && count > 1)
      setBound(a, 0, reached(a.offsets[0], i32(b, tensor.getDimSize(1))));
    if (row.masked) {
      a.clamped.push_back(1);
      setBound(a, 1, reached(a.offsets[1], scalars.get(b, row.size)));
    }
    return load(block({count, row.extent}, tensor.getElementType()),
                pointerOf(argument), a);
  };
  int64_t groups = std::max<int64_t>(1, depth.extent / group);
  Value words = loadShared(op.getQ(), depth.extent / 8, 8);
  Value scales = loadShared(op.getScales(), groups, group);
  auto combine = [&](Value zeros) -> Value {
    return tile::DequantOp::create(b, block(shapeOf(identity), b.getF16Type()),
                                   words, scales, zeros);
  };
  if (!op.getZeros())
    return combine(defaultZeros());
  if (op.hasMinima())
    return combine(loadShared(op.getZeros(), groups, group));
  // Eight groups share a word of zeros: [words, 8, N] where there are more.
  int64_t numWords = std::max<int64_t>(1, groups / 8);
  Value zeros = loadShared(op.getZeros(), numWords, 8 * group);
  SmallVector<int64_t> digits = {std::min<int64_t>(groups, 8), 1};
  if (numWords > 1) {
    zeros = reshape(zeros, {numWords, 1, row.extent});
    digits = {1, 8, 1};
  }
  Value number = splat(rem(divided(group), i32(b, 8)), digits);
  if (groups > 1)
    number = add(number, iota(digits, numWords > 1 ? 1 : 0));
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
    return {words, defaultZeros(), scales, Value()};
  if (op.hasMinima())
    return {words, defaultZeros(), scales,
            loadPacked(op.getZeros(), Packed(dims, inGemm, group))};
  Value zeros = loadPacked(op.getZeros(), Packed(dims, inGemm, 8 * group));
  return {words, nibble(zeros, digit(Packed(dims, inGemm, group))), scales,
          Value()};
}

Value SpaceEmitter::computeDequant(DequantOp op, const Mapping &mapping) {
  bool inGemm = hasDepth(mapping);
  PackedBlocks blocks = loadDequant(op, inGemm);
  Value q = nibble(blocks.words, digit(Packed(dims, inGemm, 1)));
  SmallVector<int64_t> shape = shapeOf(mapping);
  auto type = block(shape, b.getF32Type());
  if (blocks.minima) {
    Value sum = math::FmaOp::create(
        b, arith::SIToFPOp::create(b, type, broadcast(q, shape)),
        broadcast(widen(blocks.scales), shape),
        broadcast(widen(blocks.minima), shape));
    return narrow(sum, b.getF16Type());
  }
  Value difference = sub(broadcast(q, shape), broadcast(blocks.zeros, shape));
  Value product = fmul(arith::SIToFPOp::create(b, type, difference),
                       broadcast(widen(blocks.scales), shape));
  return narrow(product, b.getF16Type());
}
