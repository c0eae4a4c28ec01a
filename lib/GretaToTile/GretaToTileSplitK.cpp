//===- GretaToTileSplitK.cpp - GEMMs in parts along K ---------------------===//
//
// Each range of K has workgroups of its own. A workgroup stores what it has of
// its tile, then counts itself at the tile. When the last one has arrived, the
// parts are added up, from the first range to the last whoever adds them, and
// the epilogue follows. The last one alone does so where tiles are small:
//
//   store sums, parts[tile][part]
//   if atomic add 1, count[tile] == split - 1
//     count[tile] = 0                        for the next launch
//     sums = parts[tile][0] + .. + parts[tile][split - 1]
//     epilogue
//
// Of large tiles the parts are more than one compute unit reads in a short
// time, while those beside it have nothing to do. Where all workgroups run at a
// time, the rows are added in slices, by whoever is still there: a workgroup
// that was not the last looks a few times whether all have arrived. The last
// arrival takes slice 0, and the counter goes on to give out the others:
//
//   arrived = atomic add 1, count[tile]                 low 16 bits
//   look up to 24 times: count[tile] >= split
//   taken = arrived                                     of the last one
//         | atomic add 1, count[tile]                   of who sees it is so
//         | atomic add 65536, count[tile]               of who goes away
//   while taken - (split - 1) is a slice's number
//     sums = parts[tile][0][slice] + ..
//     epilogue of the slice
//     taken = atomic add 1, count[tile]
//   if all others have left: count[tile] = 0
//
// So nobody waits for anybody without end, and nothing is asked of how
// workgroups are scheduled. A second kernel for the sum would begin 3 to 5
// microseconds after the first.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "GretaToTile.h"
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

/// The sum of a block of each part, the first one at `parts`, in their order.
/// As many as registers hold are loaded at a time, in a loop where they are
/// more; the registers of a whole part are free again.
Value SpaceEmitter::addParts(Value parts, RankedTensorType type,
                             int64_t apart) {
  constexpr int64_t registers = 32;
  auto func =
      b.getInsertionBlock()->getParent()->getParentOfType<tile::FuncOp>();
  const int64_t together = std::clamp<int64_t>(
      std::max(registers * func.getBlockSize(), apart) / type.getNumElements(),
      1, 8);
  SmallVector<Value> zeros(type.getRank(), i32(b, 0));
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  auto addSome = [&](Value sum, Value first, int64_t count) {
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < count; ++i) {
      Value number = add(first, i32(b, i));
      Value offset = mul(number, i32(b, apart));
      loaded.push_back(tile::LoadOp::create(
          b, type, tile::PtrAddOp::create(b, parts, offset), zeros,
          ValueRange(), ValueRange(), Value(), strides, ArrayRef<int64_t>()));
    }
    for (Value part : loaded)
      sum = isa<FloatType>(type.getElementType())
                ? arith::AddFOp::create(b, sum, part).getResult()
                : add(sum, part);
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
        b, addSome(loop.getRegionIterArg(0), loop.getInductionVar(), together));
    sum = loop.getResult(0);
  }
  return addSome(sum, i32(b, looped), config.split - looped);
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

int64_t SpaceEmitter::slicesOfTile() {
  // Fewer elements of all parts are loaded faster than a slice is given out.
  constexpr int64_t least = 8192;
  // Nobody looks for workgroups that may only begin when it has gone.
  auto groups = dyn_cast<AffineConstantExpr>(workgroups());
  if (!groups || groups.getValue() > units || config.run)
    return 1;
  int64_t slices = 1, rows = dims[0].extent;
  const int64_t loads = rows * blockColumns() * config.split;
  while (2 * slices <= config.split && rows % (2 * slices) == 0 &&
         loads >= 2 * slices * least)
    slices *= 2;
  return slices;
}

/// Leaves the builder where a workgroup goes on with a slice of the tile, and
/// gives the slice's number. There are `slices` of them, at most `most`.
Value SpaceEmitter::goOnWithSlices(Value counter, int64_t most, Value slices) {
  constexpr int64_t leaves = 1 << 16, looks = 24;
  using Predicate = arith::CmpIPredicate;
  Type type = b.getI32Type();
  auto update = [&](tile::AtomicKind kind, tile::MemoryOrder order, Value value,
                    Value mask = {}) -> Value {
    return tile::AtomicRmwOp::create(
        b, type, kind, order, tile::MemoryScope::Device, counter, value, mask);
  };
  auto count = [&](tile::MemoryOrder order, Value value, Value mask = {}) {
    return update(tile::AtomicKind::Add, order, value, mask);
  };
  auto low = [&](Value value) -> Value {
    return arith::AndIOp::create(b, value, i32(b, leaves - 1));
  };
  auto sliceOf = [&](Value taken) -> Value {
    Value number = sub(low(taken), i32(b, config.split - 1));
    return arith::MinUIOp::create(b, number, i32(b, most));
  };
  Value split = i32(b, config.split), one = i32(b, 1);
  Value arrived = count(tile::MemoryOrder::AcqRel, one);
  Value seen = add(arrived, one);
  auto look = scf::WhileOp::create(
      b, TypeRange{type, type}, ValueRange{i32(b, 0), seen},
      [&](OpBuilder &, Location, ValueRange args) {
        Value some = compare(Predicate::slt, low(args[1]), split);
        Value more = compare(Predicate::slt, args[0], i32(b, looks));
        scf::ConditionOp::create(b, arith::AndIOp::create(b, some, more), args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        Value now =
            update(tile::AtomicKind::Or, tile::MemoryOrder::Relaxed, i32(b, 0));
        Value next = add(args[0], one);
        scf::YieldOp::create(b, ValueRange{next, now});
      });
  Value isWhole = compare(Predicate::sge, low(look.getResult(1)), split);
  Value isEarly = compare(Predicate::ne, low(seen), split);
  Value step = select(isWhole, one, i32(b, leaves));
  Value taken = select(
      isEarly, count(tile::MemoryOrder::Acquire, step, isEarly), arrived);
  Value first = select(isWhole, sliceOf(taken), i32(b, most));
  Block *body = nullptr;
  auto work = scf::WhileOp::create(
      b, TypeRange{type, type}, ValueRange{first, taken},
      [&](OpBuilder &, Location, ValueRange args) {
        Value isSlice = compare(Predicate::slt, args[0], slices);
        scf::ConditionOp::create(b, isSlice, args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        body = b.getInsertionBlock();
        Value next = count(tile::MemoryOrder::Relaxed, one);
        scf::YieldOp::create(b, ValueRange{sliceOf(next), next});
      });
  // All have arrived, all slices but the first have been taken, and all others
  // have left, to do nothing or behind the last slice.
  Value left = work.getResult(1);
  Value others =
      add(low(left),
          arith::ShRUIOp::create(b, left, i32(b, llvm::Log2_32(leaves))));
  Value all = add(slices, i32(b, 2 * config.split - 2));
  auto branch = scf::IfOp::create(b, compare(Predicate::eq, others, all),
                                  /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  tile::StoreScatteredOp::create(b, i32(b, 0), counter, Value());
  b.setInsertionPointToStart(body);
  return body->getArgument(0);
}

/// Leaves the builder where a workgroup goes on with whole sums: of the tile,
/// or of slices of it.
void SpaceEmitter::joinParts() {
  computeMatmul(space.matmul);
  SmallVector<MatmulOp, 2> gemms = space.gemms();
  auto wide = [&](Value value) -> Value {
    return arith::ExtSIOp::create(b, b.getI64Type(), value);
  };
  SmallVector<Value> tiles; // each GEMM's parts of this tile
  Value first =
      mul(wide(tileNumber), arith::ConstantIntOp::create(b, config.split, 64));
  auto type = cast<RankedTensorType>(sums.lookup(gemms.front()).getType());
  const int64_t size = type.getNumElements();
  AffineExpr groups = workgroups();
  extents.assign(gemms.size(), groups * size);
  extents.push_back(groups.floorDiv(config.split));
  for (auto [gemm, parts] : llvm::zip(gemms, pointers.scratch)) {
    Value elements = arith::ConstantIntOp::create(b, size, 64);
    tiles.push_back(tile::PtrAddOp::create(b, parts, mul(first, elements)));
    Value mine =
        tile::PtrAddOp::create(b, tiles.back(), mul(wide(part), elements));
    tile::StoreOp::create(b, sums.lookup(gemm), mine,
                          SmallVector<Value>(type.getRank(), i32(b, 0)),
                          ValueRange(), ValueRange(),
                          computeStrides(type.getShape()), ArrayRef<int64_t>());
  }
  Value counter =
      tile::PtrAddOp::create(b, pointers.scratch.back(), tileNumber);
  if (int64_t slices = slicesOfTile(); slices == 1) {
    goOnAsLast(b, counter, i32(b, config.split));
  } else {
    Dim &rows = dims[0];
    rows.extent /= slices;
    if (!rows.offset)
      rows.offset = i32(b, 0);
    Value count = i32(b, slices);
    if (rows.masked) {
      // Slices that begin beyond the rows are none.
      Value left = sub(scalars.get(b, rows.size), rows.offset);
      left = add(left, i32(b, rows.extent - 1));
      left = div(left, i32(b, rows.extent));
      count = arith::MinUIOp::create(b, left, count);
      rows.masked = rows.size.getLargestKnownDivisor() % rows.extent != 0;
    }
    Value slice = goOnWithSlices(counter, slices, count);
    Value row = mul(slice, i32(b, rows.extent));
    rows.offset = add(rows.offset, row);
    Value begin = mul(slice, i32(b, size / slices));
    for (Value &parts : tiles)
      parts = tile::PtrAddOp::create(b, parts, begin);
    type = RankedTensorType::get({rows.extent, type.getDimSize(1)},
                                 type.getElementType());
  }
  for (auto [gemm, parts] : llvm::zip(gemms, tiles))
    sums[gemm] = addParts(parts, type, size);
}
