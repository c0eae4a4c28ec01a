//===- GretaToTileConvolution.cpp - patches of images on blocks -----------===//
//
// A block of A in a convolution's GEMM is gathered: its row is a position (n,
// p, q) of the result, its column k a channel c that the tap (r, s) sees,
//
//   A[row, k] = x[n, p * stride - padding + r * dilation, .., c], or zero
//
// The part of an address that follows from the row is computed before the loop
// over K. If blocks along K end where taps do, all of a block is of one tap,
// and the loop moves the rows' offsets by a scalar and compares rows and
// columns of the image once per row; else each column has its own tap.
//
// Rows beyond the last take its place: their products go nowhere.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

Value SpaceEmitter::computePatches(PatchesOp op) {
  auto argument = cast<BlockArgument>(op.getX());
  TensorLayout layout = layoutOf(argument);
  ArrayRef<AffineExpr> size =
      shapeOfArgument(argument.getArgNumber()).getResults();
  // The GEMM's M, which blocks of A have first.
  const int64_t rowId = MatmulOp(space.matmul).getBatchRank();
  const Dim &row = dims[0], &depth = dims[depthDim];
  const SmallVector<int64_t> column = {row.extent, 1}, line = {1, depth.extent};
  const SmallVector<int64_t> whole = {row.extent, depth.extent};
  auto like = [&](Value scalar, ArrayRef<int64_t> shape) {
    return splat(scalar, shape);
  };
  auto constants = [&](int64_t value, ArrayRef<int64_t> shape) {
    return constant(block(shape, b.getI32Type()), value);
  };
  auto positionsAlong = [&](unsigned dim) {
    return (size[1 + dim] + op.shiftOf(dim)).floorDiv(op.strideOf(dim)) + 1;
  };
  auto perRow = [&](unsigned part, llvm::function_ref<Value()> compute) {
    return memoize(op.getOperation(), part, {rowId}, compute);
  };

  // Before the loop: for each row its position, where the first tap is, and the
  // offset of that in the image.
  Value position = perRow(0, [&]() -> Value {
    Value at = iota(column, 0);
    if (row.offset)
      at = add(at, like(row.offset, column));
    if (!row.masked)
      return at;
    Value last = sub(scalars.get(b, row.size), i32(b, 1));
    return minU(at, like(last, column));
  });
  auto splitPosition = [&](unsigned dim) -> std::pair<Value, Value> {
    Value columns = like(scalars.get(b, positionsAlong(1)), column);
    if (dim == 1)
      return {div(position, columns), rem(position, columns)};
    Value rows = like(scalars.get(b, positionsAlong(0)), column);
    Value all = div(position, columns);
    return {div(all, rows), rem(all, rows)};
  };
  Value first[2];
  for (unsigned dim : {0u, 1u})
    first[dim] = perRow(1 + dim, [&]() -> Value {
      Value at = splitPosition(dim).second;
      at = mul(at, constants(op.strideOf(dim), column));
      return sub(at, constants(op.paddingBefore(dim), column));
    });
  // Images of unknown number may reach beyond what i32 counts, and what taps
  // see of one image may, if it is large or its extents are unknown.
  AffineExpr total = fixed(1), channelsApart = size[3] * layout.strides[3],
             seen = channelsApart;
  for (unsigned dim = 0; dim < 4; ++dim)
    total = total + (size[dim] - 1) * layout.strides[dim];
  for (unsigned dim : {0u, 1u})
    seen =
        seen + (size[1 + dim] + op.paddingBefore(dim) + op.paddingBehind(dim)) *
                   layout.strides[1 + dim];
  auto isAtMost = [](AffineExpr count, int64_t most) {
    auto constant = dyn_cast<AffineConstantExpr>(count);
    return constant && constant.getValue() <= most;
  };
  const bool isSmall = isAtMost(total, INT32_MAX);
  const bool isImageSmall = isSmall || isAtMost(seen, INT32_MAX);
  const bool fits[] = {isSmall, isImageSmall, isImageSmall,
                       isSmall || isAtMost(channelsApart, INT32_MAX)};
  auto counted = [&](Value v) {
    return isSmall || getElementTypeOrSelf(v).isInteger(64) ? v : large(v);
  };
  // Elements from index 0 to `index` along a dimension of the images.
  auto elementsTo = [&](Value index, unsigned dim) -> Value {
    AffineExpr expr = layout.strides[dim];
    Value stride = fits[dim] ? scalars.get(b, expr) : large(expr);
    if (isa<RankedTensorType>(index.getType()))
      stride = like(stride, Emitter::shapeOf(index));
    return mul(fits[dim] ? index : large(index), stride);
  };
  auto plus = [&](Value x, Value y) {
    return x.getType() == y.getType() ? add(x, y) : add(counted(x), counted(y));
  };
  Value offset = perRow(3, [&]() -> Value {
    Value sum = elementsTo(splitPosition(0).first, 0);
    for (unsigned dim : {0u, 1u})
      sum = plus(sum, elementsTo(first[dim], 1 + dim));
    return sum;
  });
  Value pointer = memoize(op.getOperation(), 4, {}, [&]() -> Value {
    Value at = pointerOf(argument);
    int64_t bytes =
        tile::bytesInMemory(getElementTypeOrSelf(argument.getType()));
    if (auto whole = dyn_cast<BlockArgument>(at);
        whole && isAtMost(total, INT32_MAX / bytes))
      cast<tile::FuncOp>(whole.getOwner()->getParentOp())
          .setArgAttr(whole.getArgNumber(), tile::pointerRangeName,
                      b.getUnitAttr());
    auto stride = cast<AffineConstantExpr>(layout.strides[3]);
    for (const Dim &group : batch)
      at = advance(at, mul(large(group.offset),
                           i64(op.getChannels() * stride.getValue())));
    return at;
  });

  // In the loop: the block's tap and channel, or those of each column.
  const int64_t channels = op.getChannels();
  const bool isOfOneTap = channels % depth.extent == 0;
  ArrayRef<int64_t> shape = line;
  Value k = depth.offset ? depth.offset : i32(b, 0);
  auto number = [&](int64_t value) {
    return isOfOneTap ? i32(b, value) : constants(value, shape);
  };
  if (!isOfOneTap)
    k = add(like(k, shape), iota(shape, 1));
  Value tap = div(k, number(channels));
  Value moves[2] = {
      mul(div(tap, number(op.kernelExtent(1))), number(op.dilationOf(0))),
      mul(rem(tap, number(op.kernelExtent(1))), number(op.dilationOf(1)))};
  Value shift = elementsTo(rem(k, number(channels)), 3);
  for (unsigned dim : {0u, 1u})
    shift = plus(shift, elementsTo(moves[dim], 1 + dim));
  auto wide = [&](Value v) { return broadcast(v, whole); };
  ArrayRef<int64_t> tested = isOfOneTap ? ArrayRef(column) : ArrayRef(whole);
  auto all = [&](Value v) {
    return isOfOneTap ? like(v, column) : broadcast(v, whole);
  };
  Value mask;
  auto require = [&](Value condition) {
    mask = mask ? both(mask, condition) : condition;
  };
  // Launches refuse arguments that are negative, and so images without rows or
  // columns, of which no element can be read.
  auto isBelow = [&](Value at, AffineExpr extent) {
    bool isKnown = isa<AffineConstantExpr>(extent);
    Value bound = scalars.get(b, isKnown ? extent : extent - 1);
    return compare(isKnown ? Predicate::ult : Predicate::ule, at,
                   like(bound, tested));
  };
  for (unsigned dim : {0u, 1u})
    if (op.paddingBefore(dim) != 0 || op.paddingBehind(dim) != 0)
      require(isBelow(add(broadcast(first[dim], tested), all(moves[dim])),
                      size[1 + dim]));
  if (depth.masked)
    require(wide(
        compare(Predicate::slt, k, like(scalars.get(b, depth.size), shape))));
  // An element outside is the image's first, and then zero: no load is in a
  // branch.
  Value at = add(broadcast(offset, tested), all(counted(shift)));
  if (mask)
    at = select(mask, at,
                arith::ConstantOp::create(
                    b, b.getZeroAttr(cast<RankedTensorType>(at.getType()))));
  Value places = wide(advance(pointer, at));
  if (isOfOneTap)
    places = advance(places, wide(elementsTo(iota(line, 1), 3)));
  auto type = blockType(identity, getElementTypeOrSelf(argument.getType()));
  Value loaded = gather(type, places, Value());
  if (!mask)
    return loaded;
  return select(wide(mask), loaded,
                arith::ConstantOp::create(b, b.getZeroAttr(type)));
}
