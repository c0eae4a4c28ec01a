//===- GretaToTileConvolution.cpp - patches of images on blocks -----------===//
//
// A block of A in a convolution's GEMM is gathered: its row is a position (n,
// p, q) of the result, its column k a channel c that the tap (r, s) sees,
//
//   A[row, k] = x[n, p * stride - padding + r * dilation, .., c], or zero
//
// The part of an address that follows from the row is computed before the loop
// over K, and which taps are inside of the image, as bits. If blocks along K
// end where taps do, all of a block is of one tap, and the loop moves the rows'
// offsets by a scalar and looks at the tap's bit of each row; else each column
// has its own tap.
//
// Rows beyond the last take its place: their products go nowhere.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

/// The sizes and strides of the images of `op`, and values that the rows of a
/// block give before the loop over K.
struct SpaceEmitter::Patches {
  PatchesOp op;
  TensorLayout layout;
  ArrayRef<AffineExpr> size;
  /// Whether elements are counted in i32: those of all images (`isSmall`), and
  /// those of one image along each dimension that taps reach (`fits`). Images
  /// of unknown number need more, and so does an image that is large or has
  /// unknown extents.
  bool isSmall = false, fits[4] = {};
  /// The number of elements that all images span.
  AffineExpr total = {};
  /// For each row, the place of its first tap along the image's rows and
  /// columns, and the elements from `pointer` to it.
  Value first[2] = {}, offset = {}, pointer = {};
  /// For each row, bits that say which taps are in the image: one for each tap
  /// or, if these are too many, one for each column of taps and then one for
  /// each row. Null: i32 has too few bits.
  Value inside = {};
  bool hasBitOfTap = false;

  /// Whether taps may be outside of the image along a dimension.
  bool isPadded(unsigned dim) {
    return op.paddingBefore(dim) != 0 || op.paddingBehind(dim) != 0;
  }
};

static bool isAtMost(AffineExpr count, int64_t most) {
  auto constant = dyn_cast<AffineConstantExpr>(count);
  return constant && constant.getValue() <= most;
}

SpaceEmitter::Patches SpaceEmitter::sizesOf(PatchesOp op) {
  auto argument = cast<BlockArgument>(op.getX());
  Patches patches = {op, layoutOf(argument),
                     shapeOfArgument(argument.getArgNumber()).getResults()};
  ArrayRef<AffineExpr> size = patches.size, strides = patches.layout.strides;
  AffineExpr total = fixed(1), channelsApart = size[3] * strides[3],
             seen = channelsApart;
  for (unsigned dim = 0; dim < 4; ++dim)
    total = total + (size[dim] - 1) * strides[dim];
  for (unsigned dim : {0u, 1u})
    seen =
        seen + (size[1 + dim] + op.paddingBefore(dim) + op.paddingBehind(dim)) *
                   strides[1 + dim];
  patches.total = total;
  patches.isSmall = isAtMost(total, INT32_MAX);
  bool isImageSmall = patches.isSmall || isAtMost(seen, INT32_MAX);
  patches.fits[0] = patches.isSmall;
  patches.fits[1] = patches.fits[2] = isImageSmall;
  patches.fits[3] = patches.isSmall || isAtMost(channelsApart, INT32_MAX);
  return patches;
}

Value SpaceEmitter::elementsTo(const Patches &patches, Value index,
                               unsigned dim) {
  AffineExpr expr = patches.layout.strides[dim];
  bool fits = patches.fits[dim];
  Value stride = fits ? scalars.get(b, expr) : large(expr);
  if (isa<RankedTensorType>(index.getType()))
    stride = splat(stride, Emitter::shapeOf(index));
  return mul(fits ? index : large(index), stride);
}

Value SpaceEmitter::plus(const Patches &patches, Value x, Value y) {
  if (x.getType() == y.getType())
    return add(x, y);
  return add(counted(patches, x), counted(patches, y));
}

Value SpaceEmitter::counted(const Patches &patches, Value v) {
  bool isCounted = patches.isSmall || getElementTypeOrSelf(v).isInteger(64);
  return isCounted ? v : large(v);
}

Value SpaceEmitter::isInImage(const Patches &patches, Value at, unsigned dim) {
  // Launches refuse arguments that are negative, and so images without rows or
  // columns, of which no element can be read.
  AffineExpr extent = patches.size[1 + dim];
  bool isKnown = isa<AffineConstantExpr>(extent);
  Value bound = scalars.get(b, isKnown ? extent : extent - 1);
  return compare(isKnown ? Predicate::ult : Predicate::ule, at,
                 splat(bound, Emitter::shapeOf(at)));
}

void SpaceEmitter::locateRows(Patches &patches) {
  PatchesOp op = patches.op;
  // The GEMM's M, which blocks of A have first.
  const int64_t rowId = MatmulOp(space.matmul).getBatchRank();
  const Dim &row = dims[0];
  const SmallVector<int64_t> column = {row.extent, 1};
  auto perRow = [&](unsigned part, llvm::function_ref<Value()> compute) {
    return memoize(op.getOperation(), part, {rowId}, compute);
  };
  Value position = perRow(0, [&]() -> Value {
    Value at = iota(column, 0);
    if (row.offset)
      at = add(at, splat(row.offset, column));
    if (!row.masked)
      return at;
    Value last = sub(scalars.get(b, row.size), i32(1));
    return minU(at, splat(last, column));
  });
  auto positionsAlong = [&](unsigned dim) {
    return splat(scalars.get(b, (patches.size[1 + dim] + op.shiftOf(dim))
                                        .floorDiv(op.strideOf(dim)) +
                                    1),
                 column);
  };
  auto splitPosition = [&](unsigned dim) -> std::pair<Value, Value> {
    Value columns = positionsAlong(1);
    if (dim == 1)
      return {div(position, columns), rem(position, columns)};
    Value rows = positionsAlong(0);
    Value all = div(position, columns);
    return {div(all, rows), rem(all, rows)};
  };
  auto constants = [&](int64_t value) {
    return constant(block(column, b.getI32Type()), value);
  };
  for (unsigned dim : {0u, 1u})
    patches.first[dim] = perRow(1 + dim, [&]() -> Value {
      Value at = splitPosition(dim).second;
      at = mul(at, constants(op.strideOf(dim)));
      return sub(at, constants(op.paddingBefore(dim)));
    });
  patches.offset = perRow(3, [&]() -> Value {
    Value sum = elementsTo(patches, splitPosition(0).first, 0);
    for (unsigned dim : {0u, 1u})
      sum =
          plus(patches, sum, elementsTo(patches, patches.first[dim], 1 + dim));
    return sum;
  });
  // The last block along K may count taps that are none.
  const int64_t columns = op.kernelExtent(1), channels = op.getChannels();
  const int64_t last =
      llvm::alignTo(op.getType().getShape().back(), dims[depthDim].extent) - 1;
  patches.hasBitOfTap = last / channels < 32;
  // The result has `bits` once for each tap along a dimension that is inside,
  // `apart` places from one tap to the next.
  auto bitsAlong = [&](unsigned dim, Value bits, int64_t begin, int64_t apart) {
    Value sum = constants(0);
    for (int64_t tap = 0; tap < op.kernelExtent(dim); ++tap) {
      Value at = add(patches.first[dim], constants(tap * op.dilationOf(dim)));
      Value bit = shl(bits, constants(begin + tap * apart));
      if (patches.isPadded(dim))
        bit = select(isInImage(patches, at, dim), bit, constants(0));
      sum = either(sum, bit);
    }
    return sum;
  };
  if (patches.hasBitOfTap || columns + last / (columns * channels) < 32)
    patches.inside = perRow(5, [&]() -> Value {
      Value ofColumns = bitsAlong(1, constants(1), 0, 1);
      if (patches.hasBitOfTap)
        return bitsAlong(0, ofColumns, 0, columns);
      return either(ofColumns, bitsAlong(0, constants(1), columns, 1));
    });
  patches.pointer = memoize(op.getOperation(), 4, {}, [&]() -> Value {
    auto argument = cast<BlockArgument>(op.getX());
    Value at = pointerOf(argument);
    int64_t bytes =
        tile::bytesInMemory(getElementTypeOrSelf(argument.getType()));
    if (auto whole = dyn_cast<BlockArgument>(at);
        whole && isAtMost(patches.total, INT32_MAX / bytes))
      cast<tile::FuncOp>(whole.getOwner()->getParentOp())
          .setArgAttr(whole.getArgNumber(), tile::pointerRangeName,
                      b.getUnitAttr());
    auto stride = cast<AffineConstantExpr>(patches.layout.strides[3]);
    for (const Dim &group : batch)
      at = advance(at, mul(large(group.offset),
                           i64(op.getChannels() * stride.getValue())));
    return at;
  });
}

Value SpaceEmitter::computePatches(PatchesOp op) {
  Patches patches = sizesOf(op);
  locateRows(patches);
  const Dim &row = dims[0], &depth = dims[depthDim];
  const SmallVector<int64_t> column = {row.extent, 1}, line = {1, depth.extent};
  const SmallVector<int64_t> whole = {row.extent, depth.extent};

  // In the loop: the block's tap, its row and its column among taps, and its
  // channel, or those of each column.
  const int64_t channels = op.getChannels();
  const int64_t rowOfTaps = op.kernelExtent(1) * channels;
  const bool isOfOneTap = channels % depth.extent == 0;
  Value k = depth.offset ? depth.offset : i32(0);
  auto number = [&](int64_t value) -> Value {
    return isOfOneTap ? i32(value)
                      : constant(block(line, b.getI32Type()), value);
  };
  if (!isOfOneTap)
    k = add(splat(k, line), iota(line, 1));
  Value tap = div(k, number(channels));
  Value taps[2] = {div(k, number(rowOfTaps)), Value()};
  Value inRow = sub(k, mul(taps[0], number(rowOfTaps)));
  taps[1] = div(inRow, number(channels));
  Value moves[2];
  for (unsigned dim : {0u, 1u})
    moves[dim] = mul(taps[dim], number(op.dilationOf(dim)));
  Value shift = elementsTo(patches, moves[0], 1);
  ArrayRef<AffineExpr> strides = patches.layout.strides;
  if (strides[3] == fixed(1) &&
      strides[2] * op.dilationOf(1) == fixed(channels)) {
    // A row of taps sees elements that follow each other.
    shift = plus(patches, shift, inRow);
  } else {
    shift = plus(patches, shift, elementsTo(patches, moves[1], 2));
    Value channel = rem(inRow, number(channels));
    shift = plus(patches, shift, elementsTo(patches, channel, 3));
  }
  auto wide = [&](Value v) { return broadcast(v, whole); };
  ArrayRef<int64_t> tested = isOfOneTap ? ArrayRef(column) : ArrayRef(whole);
  auto all = [&](Value v) {
    return isOfOneTap ? splat(v, column) : broadcast(v, whole);
  };
  Value mask;
  if (patches.inside && (patches.isPadded(0) || patches.isPadded(1))) {
    Value bits =
        patches.hasBitOfTap
            ? shl(number(1), tap)
            : either(shl(number(1), taps[1]),
                     shl(number(int64_t(1) << op.kernelExtent(1)), taps[0]));
    bits = all(bits);
    mask = equal(both(broadcast(patches.inside, tested), bits), bits);
  }
  for (unsigned dim : {0u, 1u})
    if (!patches.inside && patches.isPadded(dim)) {
      Value at = add(broadcast(patches.first[dim], tested), all(moves[dim]));
      mask = allOf(mask, isInImage(patches, at, dim));
    }
  if (depth.masked)
    mask = allOf(mask, wide(below(k, splat(scalars.get(b, depth.size), line))));
  // An element outside is the image's first, and then zero: no load is in a
  // branch.
  Value at =
      add(broadcast(patches.offset, tested), all(counted(patches, shift)));
  if (mask)
    at = select(mask, at,
                arith::ConstantOp::create(
                    b, b.getZeroAttr(cast<RankedTensorType>(at.getType()))));
  Value places = wide(advance(patches.pointer, at));
  if (isOfOneTap)
    places = advance(places, wide(elementsTo(patches, iota(line, 1), 3)));
  auto type = blockType(identity, getElementTypeOrSelf(op.getX().getType()));
  Value loaded = gather(type, places, Value());
  if (!mask)
    return loaded;
  return select(wide(mask), loaded, zeroOf(type));
}
