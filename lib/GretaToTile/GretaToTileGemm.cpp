//===- GretaToTileGemm.cpp - GEMMs on blocks ------------------------------===//
//
// A GEMM's kernel loops over K: a block of each operand is loaded and
// multiplied into the accumulator, on which the rest of the space continues.
// Two GEMMs of the same A go through one loop. If heads follow, the space's
// second dimension counts them, and its columns are one's. For rope a block may
// be a part of a head: some columns of each half, so that B's block is
// [K, 2, columns], or some pairs where pairs are neighbours.
//
// An operand is loaded, or computed. Its blocks have dimensions of their own,
// [M, K] or [K, N], and the space's machinery works on them instead: values
// that do not depend on K are computed before the loop, the rest in it.
//
// A may be a norm: sum_k (x_mk w_k) b_kn is multiplied by the row's scale after
// the loop, which adds up the squares of what it loads.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

int64_t SpaceEmitter::blockColumns() const {
  int64_t columns = 1;
  for (const Dim &dim : ArrayRef(dims).drop_front())
    columns *= dim.kind == Dim::Depth || dim.kind == Dim::Run ? 1 : dim.extent;
  return columns;
}

/// Returns the number of slices of a block, if there are no stages. Each slice
/// is multiplied by some of the waves.
int64_t SpaceEmitter::partsOfDepth() const {
  return config.pipeline && !config.pipeline.getStages()
             ? config.depth / config.pipeline.getSlice()
             : 1;
}

Mapping SpaceEmitter::matrixMapping(MatmulOp op, unsigned number,
                                    ArrayRef<int64_t> columns) {
  int64_t row = op.getBatchRank();
  Mapping mapping;
  if (number == 0 || op.hasBatchedB())
    mapping = identityMapping(row);
  if (number == 0)
    mapping.erase(mapping.begin(), mapping.begin() + op.getRankWithoutA());
  bool isDepthFirst = number == 0 ? op.getTransposeA() : !op.getTransposeB();
  if (isDepthFirst)
    mapping.push_back(depthId());
  llvm::append_range(mapping, number == 0 ? ArrayRef(row) : columns);
  if (!isDepthFirst)
    mapping.push_back(depthId());
  return mapping;
}

SpaceEmitter::Operand SpaceEmitter::operandOf(MatmulOp op, unsigned number,
                                              AffineExpr size) {
  bool masked = size.getLargestKnownDivisor() % config.depth != 0;
  Dim depth{Dim::Depth, -1, config.depth, size, masked, Value(), /*unit=*/1};
  Operand operand;
  operand.identity = matrixMapping(op, number, {space.rank() - 1});
  operand.depthDim = 1 - number;
  if (number == 1) {
    Dim column = dims[1];
    operand.dims = {depth};
    if (space.heads) {
      int64_t head = space.headSize();
      column.kind = Dim::Column;
      column.extent = blockColumns();
      column.size = column.size * head;
      if (column.offset)
        column.offset = mul(column.offset, i32(head));
      if (isPartOfHead()) {
        bool areHalves = space.pairs == Space::Pairs::Halves;
        Value first = dims[columnDim].offset;
        if (!areHalves)
          first = mul(first, i32(2));
        column.offset = column.offset ? add(column.offset, first) : first;
        if (areHalves) {
          column.extent /= 2;
          operand.pairDim = 1;
          operand.columnDim = 2;
          operand.dims.push_back({Dim::Pair, -1, 2, fixed(2), /*masked=*/false,
                                  Value(), 0, /*step=*/head / 2});
        }
      }
    }
    operand.dims.push_back(column);
    return operand;
  }
  operand.dims = {dims[0], depth};
  // A as [parts, M, K / parts]; parts are whole.
  if (int64_t parts = partsOfDepth(); parts > 1) {
    Dim part = depth;
    part.extent = parts;
    part.unit = operand.dims[1].extent = config.depth / parts;
    operand.dims.insert(operand.dims.begin(), part);
    operand.depthDim = 2;
  }
  return operand;
}

/// Exchanges the space's blocks with an operand's.
void SpaceEmitter::exchange(Operand &operand) {
  std::swap(dims, operand.dims);
  std::swap(identity, operand.identity);
  std::swap(columnDim, operand.columnDim);
  std::swap(depthDim, operand.depthDim);
  std::swap(pairDim, operand.pairDim);
  std::swap(outer, operand.outer);
  std::swap(inner, operand.inner);
  inOperand = !inOperand;
}

/// Returns a block of a norm for the GEMM: x w, rounded. Rows are scaled after
/// the GEMM.
Value SpaceEmitter::weighted(RmsNormOp norm, const Mapping &mapping) {
  Value x = value(norm.getX(), mapping);
  Value w = value(norm.getW(), {mapping.back()});
  Type element = getElementTypeOrSelf(x.getType());
  // A product of two f16 is rounded as it would be from f32.
  if (!element.isF16() || element != getElementTypeOrSelf(w.getType())) {
    x = extend(x);
    w = extend(w);
  }
  return narrow(fmul(x, broadcast(w, shapeOf(mapping))), element);
}

/// Adds the squares of a norm's block to the sums of their lanes.
Value SpaceEmitter::addSquares(RmsNormOp norm, const Mapping &mapping,
                               Value sums, ArrayRef<int64_t> along) {
  Value x = value(norm.getX(), mapping);
  if (dims[depthDim].masked && !isa<BlockArgument>(norm.getX()))
    x = maskDepth(x);
  return tile::ContractOp::create(b, sums.getType(), x, x, sums, along);
}

/// Emits a block of an operand, with zeros beyond K, as loads leave them.
Value SpaceEmitter::emitOperand(Value v) {
  Value block = broadcast(value(v, identity), shapeOf(identity));
  bool isLoaded = isa<BlockArgument>(v) || v.getDefiningOp<PatchesOp>();
  return dims[depthDim].masked && !isLoaded ? maskDepth(block) : block;
}

/// Returns this workgroup's range of K. All parts have the same number of whole
/// blocks, but for the last.
SpaceEmitter::DepthRange SpaceEmitter::depthRange(AffineExpr depth,
                                                  int64_t block) {
  if (config.split == 1)
    return {Value(), scalars.get(b, depth)};
  int64_t size = cast<AffineConstantExpr>(depth).getValue();
  int64_t each =
      llvm::divideCeil(llvm::divideCeil(size, block), config.split) * block;
  Value begin = mul(part, i32(each));
  if (each * config.split == size)
    return {begin, i32(each)};
  Value rest = sub(i32(size), begin);
  return {begin, least(rest, i32(each))};
}

/// Splits a block of f32 into a sum of two blocks of bf16: its rounded upper
/// half, and the upper half of the rest, which may have either sign. The second
/// part keeps NaN, so the first need not. Conversions that keep every NaN take
/// four times the instructions on targets without one.
std::pair<Value, Value> SpaceEmitter::inParts(Value whole) {
  auto bitsOf = [&](Value v) -> Value {
    return arith::BitcastOp::create(b, block(shapeOf(v), b.getI32Type()), v);
  };
  auto upperHalf = [&](Value bits) -> Value {
    auto type = cast<RankedTensorType>(bits.getType());
    bits = shr(bits, constant(type, 16));
    bits = arith::TruncIOp::create(b, type.clone(b.getI16Type()), bits);
    return arith::BitcastOp::create(b, type.clone(b.getBF16Type()), bits);
  };
  Value bits = bitsOf(whole);
  auto type = cast<RankedTensorType>(bits.getType());
  bits = both(add(bits, constant(type, 0x8000)), constant(type, -0x10000));
  Value high = arith::BitcastOp::create(b, whole.getType(), bits);
  return {upperHalf(bits), upperHalf(bitsOf(fsub(whole, high)))};
}

/// Returns a GEMM's result in the accumulators' type. The first call emits all
/// GEMMs of the space.
Value SpaceEmitter::computeMatmul(MatmulOp op) {
  auto compute = [&] { return config.run ? computeSkinny() : computeLoop(); };
  if (sums.empty())
    for (auto [gemm, sum] : llvm::zip(
             space.gemms(), isGrouped() ? computeInGroup(compute) : compute()))
      sums[gemm] = sum;
  return sums.lookup(op);
}

SmallVector<Value> SpaceEmitter::addBlocks(scf::ForOp gemm, Value k,
                                           Operand &operandA,
                                           Operand &operandB) {
  MatmulOp op = space.matmul;
  auto emitBlock = [&](Operand &operand, Value v) {
    exchange(operand);
    dims[depthDim].offset = k;
    loop = gemm;
    Value block = emitOperand(v);
    loop = nullptr;
    exchange(operand);
    return block;
  };
  Value left = emitBlock(operandA, op.getA());
  auto multiply = [&](Value left, Value right, Value sum) -> Value {
    return tile::DotOp::create(b, sum.getType(), left, right, sum,
                               config.matrix);
  };
  // By bf16x3, the small products first.
  bool inThree = bool(op.getPrecision());
  std::pair<Value, Value> leftParts;
  if (inThree)
    leftParts = inParts(left);
  int64_t parts = partsOfDepth();
  SmallVector<Value> next;
  for (auto [each, sum] : llvm::zip(space.gemms(), gemm.getRegionIterArgs())) {
    Value right = emitBlock(operandB, each.getB());
    int64_t columns = blockColumns();
    if (parts > 1)
      right = reshape(right, {parts, config.depth / parts, columns});
    else if (shapeOf(right).size() > 2)
      right = reshape(right, {config.depth, columns});
    if (!inThree) {
      next.push_back(multiply(left, right, sum));
      continue;
    }
    auto [high, low] = inParts(right);
    Value part = multiply(leftParts.second, high, sum);
    part = multiply(leftParts.first, low, part);
    next.push_back(multiply(leftParts.first, high, part));
  }
  if (RmsNormOp norm = normOfA()) {
    exchange(operandA);
    next.push_back(
        addSquares(norm, identity, gemm.getRegionIterArgs().back(), {1}));
    exchange(operandA);
  }
  return next;
}

SmallVector<Value> SpaceEmitter::finishSums(SmallVector<Value> results) {
  if (partsOfDepth() > 1)
    for (Value &sum : results)
      sum = reshape(sumAlong(sum, 0), ArrayRef(shapeOf(sum)).drop_front());
  RmsNormOp norm = normOfA();
  if (!norm)
    return results;
  Value squares = results.pop_back_val();
  auto rows = block({dims[0].extent, 1}, b.getF32Type());
  squares = sumAlong(squares, 1);
  Value scale = scaleOf(norm, tile::ConvertLayoutOp::create(b, rows, squares),
                        norm.getEps());
  for (Value &sum : results)
    sum = fmul(sum, broadcast(scale, shapeOf(sum)));
  return results;
}

SmallVector<Value> SpaceEmitter::computeLoop() {
  MatmulOp op = space.matmul;
  SmallVector<int64_t> extents = {dims[0].extent, blockColumns()};
  if (partsOfDepth() > 1)
    extents.insert(extents.begin(), partsOfDepth());
  auto type = block(extents, op.getSumType());
  // A dynamic K is that of operands as they are stored.
  AffineExpr depth = fixed(op.getDepth());
  if (ShapedType::isDynamic(op.getDepth()))
    depth = shapeOfArgument(cast<BlockArgument>(op.getA()).getArgNumber())
                .getResult(op.dimKOfA());
  Value zero = zeroOf(type);
  SmallVector<Value> zeros(space.gemms().size(), zero);
  // There may be nothing to load.
  if (depth == fixed(0))
    return zeros;
  Operand operandA = operandOf(op, 0, depth),
          operandB = operandOf(op, 1, depth);
  // A block's first element is read also where it is masked: there must be one.
  OpBuilder::InsertionGuard guard(b);
  scf::IfOp filled;
  if (!isa<AffineConstantExpr>(depth)) {
    Value some = compare(Predicate::sgt, scalars.get(b, depth), i32(0));
    filled = scf::IfOp::create(b, ValueRange(zeros).getTypes(), some,
                               /*addThenBlock=*/true, /*addElseBlock=*/true);
    b.setInsertionPointToEnd(filled.elseBlock());
    scf::YieldOp::create(b, zeros);
    b.setInsertionPointToEnd(filled.thenBlock());
  }
  // Sums of a norm's squares: a lane adds up what it loads at a time.
  if (normOfA())
    zeros.push_back(
        zeroOf(block({dims[0].extent, std::max<int64_t>(1, config.depth / 8)},
                     b.getF32Type())));
  auto [begin, length] = depthRange(depth, config.depth);
  // No part of K is empty.
  if (begin)
    tile::AssumeOp::create(b, compare(Predicate::sgt, length, i32(0)));
  auto gemm = scf::ForOp::create(b, i32(0), length, i32(config.depth), zeros);
  if (filled)
    scf::YieldOp::create(b, gemm.getResults());
  if (config.pipeline)
    gemm->setAttr(tile::pipelineName, config.pipeline);
  b.setInsertionPointToEnd(gemm.getBody());
  Value k = gemm.getInductionVar();
  if (begin)
    k = add(begin, k);
  scf::YieldOp::create(b, addBlocks(gemm, k, operandA, operandB));
  if (filled)
    return filled.getResults();
  b.setInsertionPointAfter(gemm);
  return finishSums(gemm.getResults());
}
