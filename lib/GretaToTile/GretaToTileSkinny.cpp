//===- GretaToTileSkinny.cpp - skinny GEMMs -------------------------------===//
//
// A skinny GEMM is limited by loading B, once. Blocks get the depth
// as further dimensions, so that loaded elements are multiplied where they are:
//
//   [M, N, K / run, run]    A is [M, 1, ..], B [1, N, ..],
//                           the sum [M, N, .., 1]
//
// If the columns are heads, N is the space's [H, D] or, for rope,
// [H, 2, D / 2] or [H, D / 2, 2]: blocks of B have these dimensions from the
// start.
//
// The run is what a lane loads at once; lanes, then waves, lie along the rest
// of the depth, then along N. The kernel goes over the depth in blocks, several
// of them per iteration of its loop so that many loads are under way; sums stay
// in the lanes and meet after the loop. Then the rest of the space continues on
// [M, N, 1, 1].
//
// B may be computed: elementwise work is done on the block that was loaded.
// Packed weights of bf16, or with a result of f16, are multiplied as they are.
// If A is a norm, the rows' squares are added up beside the sums, which are
// scaled at the end.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace greta;

void SpaceEmitter::addDepth() {
  int64_t depth = MatmulOp(space.matmul).getDepth();
  depthDim = dims.size();
  int64_t head = space.headSize();
  bool areHalves = space.pairs == Space::Pairs::Halves;
  for (Dim &dim : dims) {
    if (dim.kind == Dim::Column)
      dim.step = space.pairs == Space::Pairs::Neighbours ? 2 : 1;
    else if (dim.kind == Dim::Pair)
      dim.step = areHalves ? head / 2 : 1;
    else if (space.heads && dim.group == 1)
      dim.step = head;
  }
  auto add = [&](Dim::Kind kind, int64_t extent, int64_t size, int64_t unit) {
    dims.push_back({kind, -1, extent, fixed(size),
                    /*masked=*/false, Value(), unit});
  };
  add(Dim::Depth, config.depth / config.run, depth / config.run, config.run);
  // Packed weights: parts of whole words, and the weights of each.
  int64_t last = unitOfWeights(space);
  if (last)
    add(Dim::Run, config.run / last, config.run / last, last);
  else
    last = config.run;
  add(Dim::Run, last, last, 1);
}

/// Loads everything that `v` is computed from, so that the loads of several
/// blocks come before the first use of one.
void SpaceEmitter::loadLeaves(Value v, const Mapping &mapping, Seen &seen) {
  if (!seen.insert({v.getAsOpaquePointer(), mapping}).second)
    return;
  if (isa<BlockArgument>(v)) {
    value(v, mapping);
    return;
  }
  if (v.getDefiningOp<DequantOp>())
    return;
  for (OpOperand &operand : v.getDefiningOp()->getOpOperands())
    loadLeaves(operand.get(), operandMapping(operand, mapping, space.rank()),
               seen);
}

Value SpaceEmitter::isWithin(unsigned number, unsigned rank) {
  const Dim &dim = dims[number];
  SmallVector<int64_t> shape(rank, 1);
  shape[number] = dim.extent;
  Value bound = scalars.get(b, dim.size);
  if (dim.offset)
    bound = sub(bound, dim.offset);
  return below(iota(shape, number), splat(bound, shape));
}

/// Replaces elements beyond K by zero, since something may have been computed
/// from the zeros that were loaded there.
Value SpaceEmitter::maskDepth(Value block) {
  auto type = cast<RankedTensorType>(block.getType());
  Value mask = isWithin(depthDim, type.getRank());
  Value zero = zeroOf(type);
  return select(broadcast(mask, type.getShape()), block, zero);
}

/// Adds products with packed weights. They are in the format's unit of sums
/// (WeightFormat::sumExponent), so that a sum of eight of them overflows f16
/// only if A does. Scales multiply sums; if a run has several scales, each
/// multiplies its own part. With minima a weight is (q - 8) * scale + (minimum
/// + 8 * scale), where 8 is the middle of all q. The second term multiplies
/// sums of A, so the first stays as small as without minima. If A is of bf16,
/// products and sums are of f32; weights are in f16 there, too, which holds
/// the numbers of all formats.
Value SpaceEmitter::addPackedProducts(Value left, const WeightFormat &format,
                                      const PackedBlocks &blocks, Value sum,
                                      ArrayRef<int64_t> summed) {
  auto type = cast<RankedTensorType>(sum.getType());
  bool isNarrow = getElementTypeOrSelf(left.getType()).isF16();
  SmallVector<int64_t> shape(shapeOf(blocks.words)), parts(type.getShape());
  Value unit =
      constant(block(SmallVector<int64_t>(shape.size(), 1), b.getF16Type()),
               std::ldexp(1.0, format.sumExponent()));
  for (int64_t dim : summed) {
    shape[dim] = dims[dim].extent;
    parts[dim] = shapeOf(blocks.scales)[dim];
  }
  Value weights =
      tile::DequantOp::create(b, block(shape, b.getF16Type()), blocks.words,
                              blocks.high, unit, blocks.zeros, format);
  auto partType = block(parts, type.getElementType());
  Value products = tile::ContractOp::create(
      b, partType, left, weights, constant(partType, 0), summed, isNarrow);
  Value scales = widen(blocks.scales);
  auto times = [&](Value x, double factor) {
    return fmul(x, constant(cast<RankedTensorType>(x.getType()), factor));
  };
  // Sums of parts times what is theirs.
  auto add = [&](Value sums, Value factors) -> Value {
    if (partType != type)
      return tile::ContractOp::create(b, type, sums, factors, sum, summed);
    return math::FmaOp::create(b, broadcast(sums, parts),
                               broadcast(factors, parts), sum);
  };
  if (blocks.minima) {
    SmallVector<int64_t> rows(parts);
    for (auto [dim, extent] : llvm::enumerate(shapeOf(left)))
      if (!llvm::is_contained(summed, dim))
        rows[dim] = std::min(rows[dim], extent);
    auto rowType = block(rows, type.getElementType());
    // Each group of a run has a sum of its own.
    SmallVector<int64_t> ones(shapeOf(unit));
    if (partType != type)
      for (int64_t dim : summed)
        ones[dim] = dims[dim].extent;
    Value one = constant(block(ones, b.getF16Type()), 1);
    Value sums = tile::ContractOp::create(
        b, rowType, left, one, constant(rowType, 0), summed, isNarrow);
    double middle = 1 << (format.allBits() - 1);
    sum = add(sums, fadd(widen(blocks.minima), times(scales, middle)));
  }
  return add(products, times(scales, std::ldexp(1.0, -format.sumExponent())));
}

/// Returns the weights that a GEMM multiplies as they are packed; null: it has
/// none.
static DequantOp packedWeights(MatmulOp gemm) {
  auto packed = gemm.getB().getDefiningOp<DequantOp>();
  bool takesNumbers = packed && (gemm.getType().getElementType().isF16() ||
                                 packed.getType().getElementType().isBF16());
  return takesNumbers ? packed : nullptr;
}

SmallVector<Value> SpaceEmitter::addSkinnyBlocks(const SkinnyLoop &skinny,
                                                 ValueRange from, Value first,
                                                 int64_t count, bool masked) {
  MatmulOp op = space.matmul;
  SmallVector<MatmulOp, 2> gemms = space.gemms();
  SmallVector<Value> next(from);
  SmallVector<Scope> scopes(count);
  SmallVector<SmallVector<PackedBlocks, 2>> weights(count);
  auto enter = [&](int64_t i) {
    std::swap(inner, scopes[i]);
    Value step = i32(i * dims[depthDim].extent);
    dims[depthDim].offset = first;
    if (i > 0)
      dims[depthDim].offset = add(first, step);
    dims[depthDim].masked = masked && i + 1 == count;
  };
  for (int64_t i = 0; i < count; ++i) {
    enter(i);
    Seen seen;
    for (MatmulOp gemm : gemms) {
      DequantOp packed = packedWeights(gemm);
      weights[i].push_back(packed ? loadDequant(packed, /*inGemm=*/true,
                                                /*inParts=*/true)
                                  : PackedBlocks());
      if (!packed)
        loadLeaves(gemm.getB(), skinny.w, seen);
    }
    loadLeaves(op.getA(), skinny.a, seen);
    std::swap(inner, scopes[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    enter(i);
    Value left = value(op.getA(), skinny.a);
    for (auto [gemm, blocks, sum] : llvm::zip(gemms, weights[i], next)) {
      if (DequantOp packed = packedWeights(gemm)) {
        sum = addPackedProducts(left, packed.getRow(), blocks, sum,
                                skinny.summed);
        continue;
      }
      Value right = value(gemm.getB(), skinny.w);
      if (dims[depthDim].masked && !isa<BlockArgument>(gemm.getB()))
        right = maskDepth(right);
      sum = tile::ContractOp::create(b, skinny.type, left, right, sum,
                                     skinny.summed);
    }
    if (RmsNormOp norm = normOfA())
      next.back() = addSquares(norm, skinny.a, next.back(), skinny.summed);
    std::swap(inner, scopes[i]);
  }
  return next;
}

SmallVector<Value> SpaceEmitter::computeSkinny() {
  MatmulOp op = space.matmul;
  Mapping columns;
  for (int64_t dim = op.getBatchRank() + 1; dim < space.rank(); ++dim)
    columns.push_back(dim);
  SmallVector<int64_t> shape = shapeOf(identity);
  shape[depthDim] = dims[depthDim].extent;
  SkinnyLoop skinny = {matrixMapping(op, 0, {}), matrixMapping(op, 1, columns),
                       block(shape, op.getSumType())};
  for (unsigned dim = depthDim + 1; dim < dims.size(); ++dim)
    skinny.summed.push_back(dim);

  // Parts are whole blocks.
  int64_t size =
      cast<AffineConstantExpr>(dims[depthDim].size).getValue() / config.split;
  auto fromBegin = [&](Value at) -> Value {
    if (config.split == 1)
      return at;
    return add(mul(part, i32(size)), at);
  };
  int64_t step = dims[depthDim].extent * config.unroll;
  int64_t looped = size / step > 1 ? size / step * step : 0;
  SmallVector<Value> next(space.gemms().size(), zeroOf(skinny.type));
  RmsNormOp norm = normOfA();
  if (norm) {
    SmallVector<int64_t> squares = shapeOf(skinny.a);
    for (int64_t dim : skinny.summed)
      squares[dim] = 1;
    next.push_back(zeroOf(block(squares, b.getF32Type())));
  }
  if (looped) {
    loop = scf::ForOp::create(b, i32(0), i32(looped), i32(step), next);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, addSkinnyBlocks(skinny, loop.getRegionIterArgs(),
                                            fromBegin(loop.getInductionVar()),
                                            config.unroll,
                                            /*masked=*/false));
    next = loop.getResults();
  }
  loop = nullptr;
  inner = Scope();
  int64_t rest = size - looped, extent = dims[depthDim].extent;
  next = addSkinnyBlocks(skinny, next, fromBegin(i32(looped)),
                         llvm::divideCeil(rest, extent),
                         /*masked=*/rest % extent != 0);
  dims[depthDim].offset = Value();
  dims[depthDim].masked = false;
  for (Value &sum : next)
    sum = sumAlong(sum, depthDim);
  if (norm) {
    Value scale = scaleOf(norm, next.pop_back_val(), norm.getEps());
    for (Value &sum : next)
      sum = fmul(sum, broadcast(scale, shapeOf(identity)));
  }
  return next;
}
