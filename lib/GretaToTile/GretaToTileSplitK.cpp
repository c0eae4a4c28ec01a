//===- GretaToTileSplitK.cpp - GEMMs in parts along K ---------------------===//
//
// Each range of K has workgroups of its own. A workgroup stores its partial
// sums of a tile, then counts itself at the tile. When the last one has
// arrived, the parts are added up, from the first range to the last whoever
// adds them, and the epilogue follows. The last one alone does so where tiles
// are small:
//
//   store sums, parts[tile][part]
//   if atomic add 1, count[tile] == split - 1
//     count[tile] = 0                        for the next launch
//     sums = parts[tile][0] + .. + parts[tile][split - 1]
//     epilogue
//
// The partial sums of large tiles are more than one compute unit reads in a
// short time, while those beside it have nothing to do. If all workgroups run
// at a time, the rows are added in slices, by whoever is still there: a
// workgroup that was not the last looks a few times whether all have arrived.
// The last arrival takes slice 0, and the counter goes on to give out the
// others:
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
                                      const SpaceSchedule &config) {
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

/// Returns the access to a block that has memory of its own, row by row.
Emitter::Access Emitter::wholeBlock(ArrayRef<int64_t> shape) {
  Access access;
  access.offsets.assign(shape.size(), i32(0));
  access.strides = computeStrides(shape);
  return access;
}

/// Adds up a block of each part, in the order of the parts, from `parts` on. As
/// many blocks are loaded at a time as registers hold; if there are more parts,
/// this is a loop.
Value SpaceEmitter::addParts(Value parts, RankedTensorType type,
                             int64_t apart) {
  constexpr int64_t registers = 32;
  auto func =
      b.getInsertionBlock()->getParent()->getParentOfType<tile::FuncOp>();
  const int64_t together = std::clamp<int64_t>(
      std::max(registers * func.getBlockSize(), apart) / type.getNumElements(),
      1, 8);
  Access a = wholeBlock(type.getShape());
  auto addSome = [&](Value sum, Value first, int64_t count) {
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < count; ++i) {
      Value number = add(first, i32(i));
      loaded.push_back(load(type, advance(parts, mul(number, i32(apart))), a));
    }
    for (Value part : loaded)
      sum = addNumbers(sum, part);
    return sum;
  };
  int64_t looped =
      config.split > together ? config.split / together * together : 0;
  Value sum = zeroOf(type);
  if (looped) {
    auto loop = loopOver(
        i32(0), i32(looped), together, sum, [&](Value first, ValueRange sums) {
          return SmallVector<Value>{addSome(sums[0], first, together)};
        });
    loop->setAttr(tile::rolledName, b.getUnitAttr());
    sum = loop.getResult(0);
  }
  return addSome(sum, i32(looped), config.split - looped);
}

void Emitter::goOnAsLast(Value counter, Value expected) {
  Value before = tile::AtomicRmwOp::create(
      b, b.getI32Type(), tile::AtomicKind::Add, tile::MemoryOrder::AcqRel,
      tile::MemoryScope::Device, counter, i32(1), Value());
  Value last = b.createOrFold<arith::SubIOp>(expected, i32(1));
  goOnIf(equal(before, last));
  tile::StoreScatteredOp::create(b, i32(0), counter, Value());
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

/// Leaves the builder where a workgroup continues with a slice of the tile, and
/// returns the slice's number. There are `slices` slices, at most `most`.
Value SpaceEmitter::goOnWithSlices(Value counter, int64_t most, Value slices) {
  constexpr int64_t leaves = 1 << 16, looks = 24;
  Type type = b.getI32Type();
  auto update = [&](tile::AtomicKind kind, tile::MemoryOrder order, Value value,
                    Value mask = {}) -> Value {
    return tile::AtomicRmwOp::create(
        b, type, kind, order, tile::MemoryScope::Device, counter, value, mask);
  };
  auto count = [&](tile::MemoryOrder order, Value value, Value mask = {}) {
    return update(tile::AtomicKind::Add, order, value, mask);
  };
  auto low = [&](Value value) -> Value { return both(value, i32(leaves - 1)); };
  auto sliceOf = [&](Value taken) -> Value {
    Value number = sub(low(taken), i32(config.split - 1));
    return minU(number, i32(most));
  };
  Value split = i32(config.split), one = i32(1);
  Value arrived = count(tile::MemoryOrder::AcqRel, one);
  Value seen = add(arrived, one);
  auto look = scf::WhileOp::create(
      b, TypeRange{type, type}, ValueRange{i32(0), seen},
      [&](OpBuilder &, Location, ValueRange args) {
        Value some = below(low(args[1]), split);
        Value more = below(args[0], i32(looks));
        scf::ConditionOp::create(b, both(some, more), args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        Value now =
            update(tile::AtomicKind::Or, tile::MemoryOrder::Relaxed, i32(0));
        Value next = add(args[0], one);
        scf::YieldOp::create(b, ValueRange{next, now});
      });
  Value isWhole = compare(Predicate::sge, low(look.getResult(1)), split);
  Value isEarly = differ(low(seen), split);
  Value step = select(isWhole, one, i32(leaves));
  Value taken = select(
      isEarly, count(tile::MemoryOrder::Acquire, step, isEarly), arrived);
  Value first = select(isWhole, sliceOf(taken), i32(most));
  Block *body = nullptr;
  auto work = scf::WhileOp::create(
      b, TypeRange{type, type}, ValueRange{first, taken},
      [&](OpBuilder &, Location, ValueRange args) {
        Value isSlice = below(args[0], slices);
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
  Value others = add(low(left), shr(left, i32(llvm::Log2_32(leaves))));
  Value all = add(slices, i32(2 * config.split - 2));
  goOnIf(equal(others, all));
  tile::StoreScatteredOp::create(b, i32(0), counter, Value());
  b.setInsertionPointToStart(body);
  return body->getArgument(0);
}

/// Adds up the parts of K, and leaves the builder where a workgroup continues
/// with the whole sums of the tile, or of a slice of it.
void SpaceEmitter::joinParts() {
  computeMatmul(space.matmul);
  SmallVector<MatmulOp, 2> gemms = space.gemms();
  SmallVector<Value> tiles; // each GEMM's parts of this tile
  Value first = mul(large(tileNumber), i64(config.split));
  auto type = cast<RankedTensorType>(sums.lookup(gemms.front()).getType());
  const int64_t size = type.getNumElements();
  AffineExpr groups = workgroups();
  extents.assign(gemms.size(), groups * size);
  extents.push_back(groups.floorDiv(config.split));
  for (auto [gemm, parts] : llvm::zip(gemms, pointers.scratch)) {
    Value elements = i64(size);
    tiles.push_back(advance(parts, mul(first, elements)));
    store(sums.lookup(gemm), advance(tiles.back(), mul(large(part), elements)),
          wholeBlock(type.getShape()));
  }
  Value counter = advance(pointers.scratch.back(), tileNumber);
  if (int64_t slices = slicesOfTile(); slices == 1) {
    goOnAsLast(counter, i32(config.split));
  } else {
    Dim &rows = dims[0];
    rows.extent /= slices;
    if (!rows.offset)
      rows.offset = i32(0);
    Value count = i32(slices);
    if (rows.masked) {
      // Slices that begin beyond the rows are none.
      Value left = sub(scalars.get(b, rows.size), rows.offset);
      left = add(left, i32(rows.extent - 1));
      left = div(left, i32(rows.extent));
      count = minU(left, count);
      rows.masked = rows.size.getLargestKnownDivisor() % rows.extent != 0;
    }
    Value slice = goOnWithSlices(counter, slices, count);
    Value row = mul(slice, i32(rows.extent));
    rows.offset = add(rows.offset, row);
    Value begin = mul(slice, i32(size / slices));
    for (Value &parts : tiles)
      parts = advance(parts, begin);
    type = block({rows.extent, type.getDimSize(1)}, type.getElementType());
  }
  for (auto [gemm, parts] : llvm::zip(gemms, tiles))
    sums[gemm] = addParts(parts, type, size);
}
