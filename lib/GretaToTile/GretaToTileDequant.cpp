//===- GretaToTileDequant.cpp - packed weights on blocks ------------------===//
//
// The weight at depth k is some bits of word k / perWord, and maybe of word k /
// perHigh of the upper bits (greta/Interface/WeightFormats.h); its scale has
// index k / group, its zero is four bits of word k / group / 8; a minimum is
// where the scale is. A block of the depth may have several dimensions, in
// units of some number of weights:
//
//   in a kernel of its own    columns, in units of 1
//   in a GEMM's            runs, parts of a run, weights of a part: V, U, 1
//
// k / c over such dimensions: those of units that c divides count whole, those
// that stay within c weights drop out, and the one in between is divided.
//
//===----------------------------------------------------------------------===//

#include "Greta/PackedWeights.h"
#include "GretaToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

/// Returns the elements between rows of packed weights, or of their scales or
/// zeros. The number is constant, since K is.
static int64_t rowStrideOf(const TensorLayout &layout) {
  return cast<AffineConstantExpr>(layout.strides.front()).getValue();
}

/// The indices by which a block's dimensions reach elements that `perElement`
/// weights share. The loaded block repeats an element for each of these
/// weights; with `inParts` it has each element of a run once.
struct SpaceEmitter::Packed {
  struct Along {
    int64_t extent = 1, stride = 0, divisor = 1;
    int64_t rows = 0; // of the weights, of one step
    bool isDepth = false;
  };

  /// So many rows (`scaleRows`) share an element, too.
  Packed(ArrayRef<Dim> dims, bool inGemm, int64_t perElement,
         bool inParts = false, int64_t scaleRows = 1) {
    for (const Dim &dim : dims) {
      Along &along = alongs.emplace_back();
      along.rows = inGemm ? dim.step : dim.kind == Dim::Group;
      bool isDepth = inGemm ? dim.unit > 0 : dim.kind == Dim::Column;
      if (along.rows) {
        along.extent = dim.extent;
        along.divisor = scaleRows;
      }
      int64_t unit = inGemm ? dim.unit : 1;
      if (!isDepth || (!dim.offset && perElement % (unit * dim.extent) == 0))
        continue;
      along.isDepth = true;
      along.extent = dim.extent;
      if (inParts && unit < perElement && dim.kind == Dim::Run) {
        along.extent = dim.extent * unit / perElement;
        along.stride = 1;
        continue;
      }
      along.stride = std::max<int64_t>(1, unit / perElement);
      along.divisor = std::max<int64_t>(1, perElement / unit);
    }
  }

  SmallVector<int64_t> shape() const {
    return llvm::map_to_vector(alongs, [](const Along &a) { return a.extent; });
  }

  SmallVector<Along> alongs; // per dimension of the block
  /// The elements of a row before the other row's, if two lie together; 0: rows
  /// lie one behind the other.
  int64_t inRun = 0;
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
    int64_t stride = along.rows ? along.rows * rowStride : along.stride;
    int64_t run = 1, runStride = 0;
    if (packed.inRun && along.rows % 2) {
      assert(along.rows == 1 && "a pair of rows is apart");
      stride = packed.inRun;
      run = 2;
      runStride = 2 * rowStride;
    } else if (packed.inRun && along.isDepth) {
      if (stride < packed.inRun) {
        run = packed.inRun / stride;
        runStride = 2 * packed.inRun;
      } else {
        stride *= 2;
      }
    }
    addDim(a, moves ? dim.offset : Value(), fixed(stride));
    a.runs.push_back(run);
    a.runStrides.push_back(runStride);
    divisors.push_back(along.divisor);
    if (moves && dim.masked)
      setBound(a, i, reached(a.offsets.back(), scalars.get(b, dim.size)));
  }
  auto type = block(packed.shape(), tensor.getElementType());
  tile::LoadOp loaded = load(type, pointerOf(argument), a);
  loaded.setDivisors(divisors);
  return loaded;
}

/// Returns the index along K without multiples of `unit`; null: it is 0.
Value SpaceEmitter::indexAlong(const Packed &packed, int64_t unit) {
  Value sum;
  for (auto [i, dim, along] : llvm::enumerate(dims, packed.alongs)) {
    if (!along.isDepth || along.stride % unit == 0)
      continue;
    SmallVector<int64_t> shape(dims.size(), 1);
    shape[i] = along.extent;
    auto like = [&](Value value) { return splat(value, shape); };
    Value index = iota(shape, i);
    if (dim.offset)
      index = add(index, like(dim.offset));
    if (along.divisor > 1)
      index = shr(index, like(i32(llvm::Log2_64(along.divisor))));
    if (along.stride > 1)
      index = mul(index, like(i32(along.stride)));
    if (sum) {
      SmallVector<int64_t> whole(packed.shape());
      for (auto [extent, depth] : llvm::zip(whole, packed.alongs))
        extent = depth.isDepth ? extent : 1;
      index = add(broadcast(sum, whole), broadcast(index, whole));
    }
    sum = index;
  }
  return sum;
}

/// Shifts a word to the right; a null shift leaves it as it is.
Value SpaceEmitter::shifted(Value word, Value shift) {
  if (!shift)
    return word;
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(shapeOf(word), shapeOf(shift)))
    shape.push_back(std::max(x, y));
  return shr(broadcast(word, shape), broadcast(shift, shape));
}

/// Emits dequantisation in a GEMM's loop over K. Blocks are [K, N], or [K, 2,
/// N] of parts of a head's halves, and their extent along K is some groups, or
/// a part of one. Each word is loaded once for all of its weights, each scale
/// and zero once for its group.
Value SpaceEmitter::computeDequantBlock(DequantOp op) {
  const Dim &depth = dims[depthDim], &row = dims[columnDim];
  const WeightFormat &format = op.getRow();
  int64_t group = op.getGroup();
  Value k = depth.offset ? depth.offset : i32(0);
  auto divided = [&](int64_t by) -> Value { return div(k, i32(by)); };
  /// The shape of a block with these extents along K, and the rows.
  auto withRows = [&](ArrayRef<int64_t> along) {
    SmallVector<int64_t> shape(along);
    for (const Dim &dim : ArrayRef(dims).drop_front())
      shape.push_back(dim.extent);
    return shape;
  };
  /// `count` elements along the depth, which `each` weights share.
  auto loadShared = [&](Value v, int64_t count, int64_t each) -> tile::LoadOp {
    auto argument = cast<BlockArgument>(v);
    auto tensor = cast<RankedTensorType>(v.getType());
    Access a;
    int64_t rowStride = rowStrideOf(layoutOf(argument));
    int64_t inRun = format.isInterleaved ? format.elementsOfRun(each) : 0;
    addDim(a, divided(each), fixed(inRun == 1 ? 2 : 1));
    if (pairDim >= 0)
      addDim(a, Value(), fixed(dims[pairDim].step * rowStride));
    addDim(a, row.offset, fixed(inRun ? inRun : rowStride));
    if (inRun) {
      a.runs.assign(dims.size(), 1);
      a.runStrides.assign(dims.size(), 0);
      a.runs.front() = inRun;
      a.runStrides.front() = inRun > 1 ? 2 * inRun : 0;
      a.runs.back() = 2;
      a.runStrides.back() = 2 * rowStride;
    }
    if (depth.masked && count > 1)
      setBound(a, 0, reached(a.offsets[0], i32(tensor.getDimSize(1))));
    if (row.masked) {
      a.clamped.push_back(columnDim);
      setBound(a, columnDim,
               reached(a.offsets[columnDim], scalars.get(b, row.size)));
    }
    return load(block(withRows(count), tensor.getElementType()),
                pointerOf(argument), a);
  };
  int64_t groups = std::max<int64_t>(1, depth.extent / group);
  PackedWeights weights(b, format);
  Value words =
      loadShared(op.getQ(), depth.extent / format.perWord(), format.perWord());
  Value high;
  if (op.getHigh())
    high = loadShared(op.getHigh(), depth.extent / format.perHigh(),
                      format.perHigh());
  tile::LoadOp loadedScales = loadShared(op.getScales(), groups, group);
  if (format.scaleRows > 1) {
    SmallVector<int64_t> divisors(dims.size(), 1);
    divisors.back() = format.scaleRows;
    loadedScales.setDivisors(divisors);
  }
  Value scales = loadedScales;
  Type element = op.getType().getElementType();
  if (format.scale == WeightFormat::Scale::E8M0) {
    scales = weights.scale(scales);
    if (element.isF16())
      scales = narrow(scales, element);
  }
  auto combine = [&](Value zeros) -> Value {
    return tile::DequantOp::create(b, block(shapeOf(identity), element), words,
                                   high, scales, zeros, format);
  };
  if (!op.getZeros())
    return combine(
        constant(block(SmallVector<int64_t>(dims.size(), 1), b.getI32Type()),
                 format.fixedZero()));
  if (op.hasMinima())
    return combine(loadShared(op.getZeros(), groups, group));
  // Eight groups share a word of zeros: [words, 8, N] where there are more.
  int64_t numWords = std::max<int64_t>(1, groups / 8);
  Value zeros = loadShared(op.getZeros(), numWords, 8 * group);
  SmallVector<int64_t> digits(dims.size(), 1);
  digits.front() = std::min<int64_t>(groups, 8);
  if (numWords > 1) {
    zeros = reshape(zeros, withRows({numWords, 1}));
    digits.insert(digits.begin(), 1);
  }
  Value number = splat(rem(divided(group), i32(8)), digits);
  if (groups > 1)
    number = add(number, iota(digits, numWords > 1 ? 1 : 0));
  number = mul(number, constant(block(digits, b.getI32Type()), format.bits));
  zeros = weights.number(shifted(zeros, number), Value());
  if (numWords > 1)
    zeros = reshape(zeros, withRows(groups));
  return combine(zeros);
}

SpaceEmitter::PackedBlocks SpaceEmitter::loadDequant(DequantOp op, bool inGemm,
                                                     bool inParts) {
  const WeightFormat &format = op.getRow();
  int64_t group = op.getGroup();
  PackedWeights weights(b, format);
  auto loaded = [&](Value v, int64_t perElement,
                    int64_t scaleRows = 1) -> Value {
    if (!v)
      return Value();
    Packed packed(dims, inGemm, perElement, inParts, scaleRows);
    if (format.isInterleaved)
      packed.inRun = format.elementsOfRun(perElement);
    return loadPacked(v, packed);
  };
  PackedBlocks blocks;
  blocks.words = loaded(op.getQ(), format.perWord());
  blocks.high = loaded(op.getHigh(), format.perHigh());
  blocks.scales = loaded(op.getScales(), group, format.scaleRows);
  if (format.scale != WeightFormat::Scale::F16)
    blocks.scales = weights.scale(blocks.scales);
  auto fixed = [&](int64_t number) {
    SmallVector<int64_t> one(dims.size(), 1);
    return constant(block(one, b.getI32Type()), number);
  };
  if (op.hasMinima()) {
    blocks.zeros = fixed(1 << (format.allBits() - 1));
    blocks.minima = loaded(op.getZeros(), group);
  } else if (op.getZeros()) {
    Value zeros = loaded(op.getZeros(), 8 * group);
    Value index =
        indexAlong(Packed(dims, inGemm, group, inParts), format.perWord());
    blocks.zeros = weights.number(
        shifted(zeros, index ? weights.shiftInWord(index) : Value()), Value());
  } else {
    blocks.zeros = fixed(format.fixedZero());
  }
  return blocks;
}

Value SpaceEmitter::computeDequant(DequantOp op, const Mapping &mapping) {
  bool inGemm = hasDepth(mapping);
  PackedBlocks blocks = loadDequant(op, inGemm, /*inParts=*/false);
  PackedWeights weights(b, op.getRow());
  SmallVector<int64_t> shape = shapeOf(mapping);
  auto like = [&](Value shared) { return broadcast(shared, shape); };
  Value index = indexAlong(Packed(dims, inGemm, 1), op.getRow().unit());
  Value high;
  if (blocks.high)
    high = shifted(blocks.high, index ? weights.shiftInHigh(index) : Value());
  Value number = weights.number(
      shifted(blocks.words, index ? weights.shiftInWord(index) : Value()),
      high);
  number = weights.decode(like(number),
                          blocks.minima ? Value() : like(blocks.zeros));
  Value scale = like(extend(blocks.scales));
  Value result =
      blocks.minima
          ? math::FmaOp::create(b, number, scale, like(extend(blocks.minima)))
                .getResult()
          : fmul(number, scale);
  return narrow(result, op.getType().getElementType());
}
