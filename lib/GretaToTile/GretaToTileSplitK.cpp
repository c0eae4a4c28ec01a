//===- GretaToTileSplitK.cpp - GEMMs in parts along K ---------------------===//
//
// Each range of K has workgroups of its own. A workgroup stores what it has of
// its tile, then counts itself at the tile; the last one there adds the parts
// up, from the first range to the last whoever was last, and does the epilogue:
//
//   store sums, parts[tile][part]
//   if atomic add 1, arrivals[tile] == split - 1
//     arrivals[tile] = 0                     for the next launch
//     sums = parts[tile][0] + .. + parts[tile][split - 1]
//     epilogue
//
// Nobody waits for anybody, so nothing is asked of how workgroups are
// scheduled. A second kernel for the sum would begin 3 to 5 microseconds after
// the first.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "GretaToTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace greta;

SmallVector<Type> greta::scratchTypes(const Space &space,
                                      const SpaceConfig &config) {
  if (config.split == 1)
    return {};
  if (space.alone)
    return attentionScratch(space.alone->getContext());
  MatmulOp matmul = space.matmul;
  // The parts of each GEMM.
  SmallVector<Type> types(space.gemms().size(), matmul.getSumType());
  types.push_back(IntegerType::get(matmul.getContext(), 32));
  return types;
}

SmallVector<AffineExpr> SpaceEmitter::scratchExtents() {
  if (config.split == 1)
    return {};
  AffineExpr groups = workgroups();
  SmallVector<AffineExpr> extents;
  for (MatmulOp gemm : space.gemms())
    extents.push_back(
        groups *
        cast<RankedTensorType>(sums.lookup(gemm).getType()).getNumElements());
  extents.push_back(groups.floorDiv(config.split));
  return extents;
}

/// The sum of the tile's parts in their order, beginning at `parts`. As many as
/// registers hold are loaded at a time, in a loop where they are more.
Value SpaceEmitter::addParts(Value parts, RankedTensorType type) {
  constexpr int64_t registers = 32;
  auto func =
      b.getInsertionBlock()->getParent()->getParentOfType<tile::FuncOp>();
  const int64_t together = std::clamp<int64_t>(
      registers * func.getBlockSize() / type.getNumElements(), 1, 8);
  SmallVector<Value> zeros(type.getRank(), i32(b, 0));
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  auto add = [&](Value sum, Value first, int64_t count) {
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < count; ++i) {
      Value number = arith::AddIOp::create(b, first, i32(b, i));
      Value offset =
          arith::MulIOp::create(b, number, i32(b, type.getNumElements()));
      loaded.push_back(tile::LoadOp::create(
          b, type, tile::PtrAddOp::create(b, parts, offset), zeros,
          ValueRange(), ValueRange(), Value(), strides, ArrayRef<int64_t>()));
    }
    for (Value part : loaded)
      sum = isa<FloatType>(type.getElementType())
                ? arith::AddFOp::create(b, sum, part).getResult()
                : arith::AddIOp::create(b, sum, part).getResult();
    return sum;
  };
  int64_t looped =
      config.split > together ? config.split / together * together : 0;
  Value sum = arith::ConstantOp::create(b, b.getZeroAttr(type));
  if (looped) {
    auto loop = scf::ForOp::create(b, i32(b, 0), i32(b, looped),
                                   i32(b, together), ValueRange{sum});
    loop->setAttr(tile::rolledName, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(
        b, add(loop.getRegionIterArg(0), loop.getInductionVar(), together));
    sum = loop.getResult(0);
  }
  return add(sum, i32(b, looped), config.split - looped);
}

void greta::goOnAsLast(ImplicitLocOpBuilder &b, Value counter, Value expected) {
  Value before = tile::AtomicRmwOp::create(
      b, b.getI32Type(), tile::AtomicKind::Add, tile::MemoryOrder::AcqRel,
      tile::MemoryScope::Device, counter, i32(b, 1), Value());
  Value last = b.createOrFold<arith::SubIOp>(expected, i32(b, 1));
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, last);
  auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  tile::StoreScatteredOp::create(b, i32(b, 0), counter, Value());
}

/// Leaves the builder where the last workgroup of a tile goes on, with whole
/// sums.
void SpaceEmitter::joinParts() {
  computeMatmul(space.matmul);
  SmallVector<MatmulOp, 2> gemms = space.gemms();
  auto wide = [&](Value value) -> Value {
    return arith::ExtSIOp::create(b, b.getI64Type(), value);
  };
  SmallVector<Value> tiles; // each GEMM's parts of this tile
  Value first = arith::MulIOp::create(
      b, wide(tileNumber), arith::ConstantIntOp::create(b, config.split, 64));
  for (auto [gemm, parts] : llvm::zip(gemms, pointers.scratch)) {
    Value sum = sums.lookup(gemm);
    auto type = cast<RankedTensorType>(sum.getType());
    Value elements = arith::ConstantIntOp::create(b, type.getNumElements(), 64);
    tiles.push_back(tile::PtrAddOp::create(
        b, parts, arith::MulIOp::create(b, first, elements)));
    Value mine = tile::PtrAddOp::create(
        b, tiles.back(), arith::MulIOp::create(b, wide(part), elements));
    tile::StoreOp::create(b, sum, mine,
                          SmallVector<Value>(type.getRank(), i32(b, 0)),
                          ValueRange(), ValueRange(),
                          computeStrides(type.getShape()), ArrayRef<int64_t>());
  }
  Value arrivals =
      tile::PtrAddOp::create(b, pointers.scratch.back(), tileNumber);
  goOnAsLast(b, arrivals, i32(b, config.split));
  for (auto [gemm, parts] : llvm::zip(gemms, tiles))
    sums[gemm] =
        addParts(parts, cast<RankedTensorType>(sums.lookup(gemm).getType()));
}
