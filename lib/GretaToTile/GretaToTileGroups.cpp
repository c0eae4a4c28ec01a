//===- GretaToTileGroups.cpp - grouped GEMMs ------------------------------===//
//
// The rows of a grouped GEMM are in groups, whose offsets are on the device. A
// tile begins where its group does, or some tiles further. The grid has slots
// for the worst case; those of group e begin at
//
//   r(e) = offsets[e] / m + e
//
// where m are the rows of a tile: from r(e) to r(e + 1) are as many slots as
// the group has tiles, or one more, which does nothing. With m = 1 r(e) is
// offsets[e], and there are as many. Here: which slot is whose, and the
// pointers of the group's matrix. Group E has the rows that no group has: they
// are not multiplied, and zero.
//
// Offsets are not trusted: each is clamped to [0, T], the first is 0. Whatever
// the search finds is a group, and a workgroup goes on only where its first row
// is natural and below the group's end.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

AffineExpr SpaceEmitter::blocksOf(const Dim &dim) const {
  if (!dim.grouped)
    return dim.size.ceilDiv(dim.extent);
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  return dim.extent == 1 ? dim.size
                         : dim.size.floorDiv(dim.extent) + groups + 1;
}

/// Offset number `group` as it is.
Value SpaceEmitter::offsetOf(Value group) {
  auto offsets = cast<BlockArgument>(MatmulOp(space.matmul).getOffsets());
  return tile::LoadScatteredOp::create(
      b, b.getI32Type(), advance(pointerOf(offsets), group), Value(), Value());
}

/// The last group whose slots do not begin behind `slot`: sixteenths of the
/// groups, then sixteenths of those. Probes of a round do not depend on each
/// other, so their loads are under way together.
Value SpaceEmitter::groupOf(Value slot, Value rows) {
  constexpr int64_t probes = 16;
  int64_t extent = dims[0].extent;
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  int64_t step = 1;
  while (step * probes <= groups)
    step *= probes;
  Value first = i32(b, 0), last = i32(b, groups);
  for (bool isFirst = true; step; step /= probes, isFirst = false) {
    Value found = i32(b, 0);
    for (int64_t probe = 1; probe < probes; ++probe) {
      if (isFirst && probe * step > groups)
        break;
      Value group = i32(b, probe * step);
      if (!isFirst)
        group = add(first, group);
      Value begin = clamped(offsetOf(minU(group, last)), rows);
      if (extent > 1)
        begin = add(div(begin, i32(b, extent)), group);
      Value isBefore = compare(Predicate::sle, begin, slot);
      if (!isFirst)
        isBefore = both(isBefore, compare(Predicate::sle, group, last));
      found = add(found, arith::ExtUIOp::create(b, b.getI32Type(), isBefore));
    }
    first = add(first, mul(found, i32(b, step)));
  }
  return first;
}

Value SpaceEmitter::clamped(Value offset, Value rows) {
  return least(most(offset, i32(b, 0)), rows);
}

/// In checked functions: every offset, once.
void SpaceEmitter::checkOffsets(Value slot, Value rows) {
  if (!isChecked())
    return;
  OpBuilder::InsertionGuard guard(b);
  goOnIf(compare(Predicate::eq, slot, i32(b, 0)));
  Value groups = i32(b, MatmulOp(space.matmul).getNumGroups());
  auto loop = scf::ForOp::create(b, i32(b, 0), groups, i32(b, 1));
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value group = loop.getInductionVar();
  Value begin = offsetOf(group), end = offsetOf(add(group, i32(b, 1)));
  Value isFirst = compare(Predicate::eq, group, i32(b, 0));
  Value wanted = select(isFirst, i32(b, 0), begin);
  check(
      [&] {
        return both(both(compare(Predicate::eq, begin, wanted),
                         compare(Predicate::sle, begin, end)),
                    compare(Predicate::sle, end, rows));
      },
      "grouped_matmul: 'offsets' do not ascend from 0, or are beyond the rows");
}

/// From this workgroup's slot to its rows, and to the group's matrix; leaves
/// the builder where only workgroups with rows go on.
void SpaceEmitter::enterGroup() {
  Dim &dim = dims.front();
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  Value slot = dim.offset, rows = scalars.get(b, dim.size);
  checkOffsets(slot, rows);
  Value group = groupOf(slot, rows);
  Value isFirst = compare(Predicate::eq, group, i32(b, 0));
  Value begin = select(isFirst, i32(b, 0), clamped(offsetOf(group), rows));
  Value last = i32(b, groups);
  inGroup = compare(Predicate::slt, group, last);
  Value next = minU(add(group, i32(b, 1)), last);
  dim.bound = select(inGroup, clamped(offsetOf(next), rows), rows);
  if (dim.extent == 1) {
    dim.offset = slot;
  } else {
    Value before = add(div(begin, i32(b, dim.extent)), group);
    Value tile = mul(sub(slot, before), i32(b, dim.extent));
    dim.offset = add(begin, tile);
  }
  // What is not natural is large.
  goOnIf(compare(Predicate::ult, dim.offset, dim.bound));
  Value matrix = large(least(group, i32(b, groups - 1)));
  for (BlockArgument argument : region.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    bool isPacked = llvm::any_of(argument.getUsers(), llvm::IsaPred<DequantOp>);
    if (argument.use_empty() || (type.getRank() < 3 && !isPacked))
      continue;
    int64_t matrixRows = type.getRank() < 3 ? type.getDimSize(0) / groups : 1;
    AffineExpr stride =
        TensorLayout::of(kernel, argument.getArgNumber()).strides.front();
    views[argument.getArgNumber()] = advance(
        pointerOf(argument), mul(matrix, elements(stride * matrixRows)));
  }
}

/// What GEMMs of the group's matrix are, and zero where there is none.
SmallVector<Value>
SpaceEmitter::computeInGroup(llvm::function_ref<SmallVector<Value>()> compute) {
  MatmulOp op = space.matmul;
  auto type = block(shapeOf(identity), op.getSumType());
  SmallVector<Type> types(space.gemms().size(), type);
  auto branch = scf::IfOp::create(b, types, inGroup, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  scf::YieldOp::create(b, SmallVector<Value>(types.size(), zero));
  b.setInsertionPointToEnd(branch.thenBlock());
  // What is computed on the way is not there behind the branch.
  Scope outside = outer, inside = inner;
  SmallVector<Value> results = compute();
  outer = std::move(outside);
  inner = std::move(inside);
  scf::YieldOp::create(b, results);
  return branch.getResults();
}
