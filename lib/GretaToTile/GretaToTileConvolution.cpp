//===- GretaToTileConvolution.cpp - patches of images on blocks -----------===//
//
// A block of patches in a convolution's GEMM is gathered: it has a position (n,
// p, q) of the result and a number k along K, which is a channel c that the tap
// (r, s) sees,
//
//   x[n, p * stride - padding + r * dilation, .., c], or zero
//
// Patches are A as [positions, K] or, of images with channels first, B as [K,
// positions]; then n is an index of the GEMM's batch, and c is outside of the
// taps in k, as it is in the weights.
//
// The part of an address that follows from the position is computed before the
// loop over K, and which taps are inside of the image, as bits. If all of a
// block is of one tap, the loop moves the positions' offsets by a scalar and
// looks at the tap's bit of each position; else each k has its own tap. Blocks
// are of one tap if there is only one, or if blocks along K end where channels
// inside of a tap do.
//
// Positions beyond the last take its place: their products go nowhere.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

/// The sizes and strides of the images of `op`, and values that the positions
/// of a block give before the loop over K.
struct SpaceEmitter::Patches {
  PatchesOp op;
  TensorLayout layout;
  ArrayRef<AffineExpr> size;
  /// Whether elements are counted in i32: those from `pointer` on (`isSmall`),
  /// and those of one image along each dimension that taps reach (`fits`).
  /// Images of unknown number need more, unless each has a GEMM, and so does an
  /// image that is large or has unknown extents.
  bool isSmall = false, fits[4] = {};
  /// The number of elements that all images span.
  AffineExpr total = {};
  /// For each position, the place of its first tap along the image's rows and
  /// columns, and the elements from `pointer` to it.
  Value first[2] = {}, offset = {}, pointer = {};
  /// For each position, bits that say which taps are in the image: one for each
  /// tap or, if these are too many, one for each column of taps and then one
  /// for each row. Null: i32 has too few bits.
  Value inside = {};
  bool hasBitOfTap = false;

  /// Whether taps may be outside of the image along a dimension.
  bool isPadded(unsigned dim) {
    return op.paddingBefore(dim) != 0 || op.paddingBehind(dim) != 0;
  }
};

/// Numbers along K as the tap, its row and column among taps and on the image,
/// the channel, and the elements from a position's first tap to it.
struct SpaceEmitter::Taps {
  Value tap, along[2], moves[2], channel, shift;
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
  const unsigned channel = op.channelDim();
  AffineExpr total = fixed(1), channelsApart = size[channel] * strides[channel],
             seen = channelsApart;
  for (unsigned dim = 0; dim < 4; ++dim)
    total = total + (size[dim] - 1) * strides[dim];
  for (unsigned dim : {0u, 1u})
    seen = seen + (size[op.dimOf(dim)] + op.paddingBefore(dim) +
                   op.paddingBehind(dim)) *
                      strides[op.dimOf(dim)];
  patches.total = total;
  bool isImageSmall = isAtMost(total, INT32_MAX) || isAtMost(seen, INT32_MAX);
  patches.isSmall =
      op.hasChannelsFirst() ? isImageSmall : isAtMost(total, INT32_MAX);
  patches.fits[0] = patches.isSmall;
  patches.fits[op.dimOf(0)] = patches.fits[op.dimOf(1)] = isImageSmall;
  patches.fits[channel] = patches.isSmall || isAtMost(channelsApart, INT32_MAX);
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
  PatchesOp op = patches.op;
  AffineExpr extent = patches.size[op.dimOf(dim)];
  bool isKnown = isa<AffineConstantExpr>(extent);
  Value bound = scalars.get(b, isKnown ? extent : extent - 1);
  return compare(isKnown ? Predicate::ult : Predicate::ule, at,
                 splat(bound, Emitter::shapeOf(at)));
}

void SpaceEmitter::locatePositions(Patches &patches) {
  PatchesOp op = patches.op;
  // The GEMM's M, which blocks of A have first, or N, which those of B have
  // last.
  const bool isB = op.hasChannelsFirst();
  const int64_t id =
      isB ? space.rank() - 1 : MatmulOp(space.matmul).getBatchRank();
  const unsigned positionDim = 1 - depthDim;
  const Dim &along = dims[positionDim];
  SmallVector<int64_t> column = {1, 1};
  column[positionDim] = along.extent;
  auto perPosition = [&](unsigned part, llvm::function_ref<Value()> compute) {
    return memoize(op.getOperation(), part, {id}, compute);
  };
  Value position = perPosition(0, [&]() -> Value {
    Value at = iota(column, positionDim);
    if (along.offset)
      at = add(at, splat(along.offset, column));
    if (!along.masked)
      return at;
    Value last = sub(scalars.get(b, along.size), i32(1));
    return minU(at, splat(last, column));
  });
  auto positionsAlong = [&](unsigned dim) {
    return splat(scalars.get(b, (patches.size[op.dimOf(dim)] + op.shiftOf(dim))
                                        .floorDiv(op.strideOf(dim)) +
                                    1),
                 column);
  };
  // `dim` 1 gives the line of a position and its column. `dim` 0 gives the
  // image of that line, where a GEMM has several, and the row in it.
  auto splitPosition = [&](unsigned dim) -> std::pair<Value, Value> {
    Value columns = positionsAlong(1);
    if (dim == 1)
      return {div(position, columns), rem(position, columns)};
    if (isB)
      return {Value(), div(position, columns)};
    Value rows = positionsAlong(0);
    Value all = div(position, columns);
    return {div(all, rows), rem(all, rows)};
  };
  auto constants = [&](int64_t value) {
    return constant(block(column, b.getI32Type()), value);
  };
  for (unsigned dim : {0u, 1u})
    patches.first[dim] = perPosition(1 + dim, [&]() -> Value {
      Value at = splitPosition(dim).second;
      at = mul(at, constants(op.strideOf(dim)));
      return sub(at, constants(op.paddingBefore(dim)));
    });
  patches.offset = perPosition(3, [&]() -> Value {
    Value sum;
    if (!isB)
      sum = elementsTo(patches, splitPosition(0).first, 0);
    for (unsigned dim : {0u, 1u}) {
      Value more = elementsTo(patches, patches.first[dim], op.dimOf(dim));
      sum = sum ? plus(patches, sum, more) : more;
    }
    return sum;
  });
  // The last block along K may count taps that are none.
  const int64_t columns = op.kernelExtent(1), channels = op.getChannels();
  const int64_t lastK =
      llvm::alignTo(channels * op.numTaps(), dims[depthDim].extent) - 1;
  const int64_t last = isB ? op.numTaps() - 1 : lastK / channels;
  patches.hasBitOfTap = last < 32;
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
  if (patches.hasBitOfTap || columns + last / columns < 32)
    patches.inside = perPosition(5, [&]() -> Value {
      Value ofColumns = bitsAlong(1, constants(1), 0, 1);
      if (patches.hasBitOfTap)
        return bitsAlong(0, ofColumns, 0, columns);
      return either(ofColumns, bitsAlong(0, constants(1), columns, 1));
    });
  patches.pointer = pointerToImages(patches);
}

/// The first element of all images or, where each has a GEMM, of this one's;
/// with groups, of the group's channels.
Value SpaceEmitter::pointerToImages(const Patches &patches) {
  PatchesOp op = patches.op;
  return memoize(op.getOperation(), 4, {}, [&]() -> Value {
    auto argument = cast<BlockArgument>(op.getX());
    Value at = pointerOf(argument);
    int64_t bytes =
        tile::bytesInMemory(getElementTypeOrSelf(argument.getType()));
    if (auto whole = dyn_cast<BlockArgument>(at);
        whole && isAtMost(patches.total, INT32_MAX / bytes))
      cast<tile::FuncOp>(whole.getOwner()->getParentOp())
          .setArgAttr(whole.getArgNumber(), tile::pointerRangeName,
                      b.getUnitAttr());
    ArrayRef<AffineExpr> strides = patches.layout.strides;
    for (const Dim &each : batch) {
      bool isImage =
          op.hasChannelsFirst() && space.groups[each.group].front() == 0;
      AffineExpr stride =
          isImage ? strides[0] : op.getChannels() * strides[op.channelDim()];
      at = advance(at, mul(large(each.offset), elements(stride)));
    }
    return at;
  });
}

SpaceEmitter::Taps SpaceEmitter::tapsOf(const Patches &patches, Value k,
                                        function_ref<Value(int64_t)> number) {
  PatchesOp op = patches.op;
  const int64_t channels = op.getChannels(), columns = op.kernelExtent(1);
  ArrayRef<AffineExpr> strides = patches.layout.strides;
  Taps taps;
  Value inRow; // k within a row of taps
  if (op.hasChannelsFirst()) {
    taps.channel = div(k, number(op.numTaps()));
    taps.tap = sub(k, mul(taps.channel, number(op.numTaps())));
    taps.along[0] = div(taps.tap, number(columns));
    taps.along[1] = sub(taps.tap, mul(taps.along[0], number(columns)));
  } else {
    taps.tap = div(k, number(channels));
    taps.along[0] = div(k, number(columns * channels));
    inRow = sub(k, mul(taps.along[0], number(columns * channels)));
    taps.along[1] = div(inRow, number(channels));
  }
  for (unsigned dim : {0u, 1u})
    taps.moves[dim] = mul(taps.along[dim], number(op.dilationOf(dim)));
  taps.shift = elementsTo(patches, taps.moves[0], op.dimOf(0));
  if (inRow && strides[3] == fixed(1) &&
      strides[2] * op.dilationOf(1) == fixed(channels)) {
    // A row of taps sees elements that follow each other.
    taps.shift = plus(patches, taps.shift, inRow);
    return taps;
  }
  taps.shift = plus(patches, taps.shift,
                    elementsTo(patches, taps.moves[1], op.dimOf(1)));
  if (inRow)
    taps.channel = rem(inRow, number(channels));
  taps.shift = plus(patches, taps.shift,
                    elementsTo(patches, taps.channel, op.channelDim()));
  return taps;
}

Value SpaceEmitter::computePatches(PatchesOp op) {
  Patches patches = sizesOf(op);
  locatePositions(patches);
  const unsigned positionDim = 1 - depthDim;
  const Dim &depth = dims[depthDim];
  SmallVector<int64_t> column = {1, 1}, line = {1, 1};
  column[positionDim] = dims[positionDim].extent;
  line[depthDim] = depth.extent;
  const SmallVector<int64_t> whole = {dims[0].extent, dims[1].extent};

  // In the loop: the taps of the block, or those of each k.
  const bool isOfOneTap = op.hasChannelsFirst()
                              ? op.numTaps() == 1 && !depth.masked
                              : op.getChannels() % depth.extent == 0;
  Value k = depth.offset ? depth.offset : i32(0);
  auto number = [&](int64_t value) -> Value {
    return isOfOneTap ? i32(value)
                      : constant(block(line, b.getI32Type()), value);
  };
  if (!isOfOneTap)
    k = add(splat(k, line), iota(line, depthDim));
  Taps taps = tapsOf(patches, k, number);
  auto wide = [&](Value v) { return broadcast(v, whole); };
  ArrayRef<int64_t> tested = isOfOneTap ? ArrayRef(column) : ArrayRef(whole);
  auto all = [&](Value v) {
    return isOfOneTap ? splat(v, column) : broadcast(v, whole);
  };
  Value mask;
  if (patches.inside && (patches.isPadded(0) || patches.isPadded(1))) {
    Value bits = patches.hasBitOfTap
                     ? shl(number(1), taps.tap)
                     : either(shl(number(1), taps.along[1]),
                              shl(number(int64_t(1) << op.kernelExtent(1)),
                                  taps.along[0]));
    bits = all(bits);
    mask = equal(both(broadcast(patches.inside, tested), bits), bits);
  }
  for (unsigned dim : {0u, 1u})
    if (!patches.inside && patches.isPadded(dim)) {
      Value at =
          add(broadcast(patches.first[dim], tested), all(taps.moves[dim]));
      mask = allOf(mask, isInImage(patches, at, dim));
    }
  if (depth.masked)
    mask = allOf(mask, wide(below(k, splat(scalars.get(b, depth.size), line))));
  // An element outside is the image's first, and then zero: no load is in a
  // branch.
  Value at =
      add(broadcast(patches.offset, tested), all(counted(patches, taps.shift)));
  if (mask)
    at = select(mask, at, zeroOf(at.getType()));
  Value places = wide(advance(patches.pointer, at));
  if (isOfOneTap)
    places = advance(places, wide(elementsTo(patches, iota(line, depthDim),
                                             op.channelDim())));
  auto type = blockType(identity, getElementTypeOrSelf(op.getX().getType()));
  Value loaded = gather(type, places, Value());
  if (!mask)
    return loaded;
  return select(wide(mask), loaded, zeroOf(type));
}
