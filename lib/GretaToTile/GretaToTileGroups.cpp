//===- GretaToTileGroups.cpp - grouped GEMMs ------------------------------===//
//
// The rows of a grouped GEMM are in groups, whose offsets are on the device. A
// tile begins where its group does, or some tiles further. The grid has slots
// for the worst case; those of group e begin at
//
//   r(e) = offsets[e] / m + e
//
// where m is the number of a tile's rows. From r(e) to r(e + 1) there are as
// many slots as the group has tiles, or one more, which does nothing. With m =
// 1 r(e) is offsets[e], and there are as many slots as rows. This file finds
// the group of a slot, and moves to the group's matrix. Group E has the rows
// that no other group has: they are not multiplied, and are zero.
//
// Offsets are not trusted. A group's first row is clamped to 0, its end to T,
// and the first group begins with row 0. The search always finds a group, and a
// workgroup continues only if its first row is not negative and below the
// group's end. The code avoids clamps and sums of conditions where it can,
// since LLVM has only vector instructions for them on AMD, and the rest is
// scalar.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

AffineExpr SpaceEmitter::blocksOf(const Dim &dim) const {
  if (!dim.grouped)
    return dim.blocks();
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  return dim.extent == 1 ? dim.size
                         : dim.size.floorDiv(dim.extent) + groups + 1;
}

/// Loads the offset `number` behind that of `group`, without clamping it.
Value SpaceEmitter::offsetOf(Value group, int64_t number) {
  auto offsets = cast<BlockArgument>(MatmulOp(space.matmul).getOffsets());
  Value pointer = advance(pointerOf(offsets), group);
  if (number)
    pointer = advance(pointer, i32(number));
  return gather(b.getI32Type(), pointer, Value());
}

/// Finds the last group whose slots do not begin behind `slot`. Each round of
/// the search reads sixteen offsets, in loads that do not depend on each other,
/// and narrows the range to a sixteenth. The condition r(e) <= slot is
/// offsets[e] < (slot + 1 - e) m. A negative offset, which is not clamped here,
/// finds no other group with rows than its clamped one would.
Value SpaceEmitter::groupOf(Value slot) {
  constexpr int64_t probes = 16;
  int64_t extent = dims[0].extent;
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  int64_t step = 1;
  while (step * probes <= groups)
    step *= probes;
  Value next = add(slot, i32(1)), first;
  Value limit = extent > 1 ? mul(next, i32(extent)) : next;
  for (; step; step /= probes) {
    int64_t count = std::min(probes - 1, groups / step);
    Value base = i32(0), limitOfBase = limit, found = base;
    if (first) {
      // All probes are offsets: a round near the end begins before its group.
      base = minU(first, i32(groups - count * step));
      if (extent > 1)
        limitOfBase = sub(limit, mul(base, i32(extent)));
    }
    SmallVector<Value> begins;
    for (int64_t probe = 1; probe <= count; ++probe)
      begins.push_back(offsetOf(base, probe * step));
    for (auto [i, begin] : llvm::enumerate(begins)) {
      int64_t group = (i + 1) * step;
      Value before = limitOfBase;
      if (extent > 1)
        before = sub(before, i32(group * extent));
      found = select(below(begin, before), i32(group), found);
    }
    first = add(base, found);
  }
  return first;
}

/// Finds this workgroup's rows, and moves to its group's matrix. Leaves the
/// builder in a branch for workgroups that have rows.
void SpaceEmitter::enterGroup() {
  Dim &dim = dims.front();
  int64_t groups = MatmulOp(space.matmul).getNumGroups();
  Value slot = dim.offset, rows = scalars.get(b, dim.size);
  if (isChecked())
    checkAscending(
        slot, i32(groups), rows,
        [&](Value group, int64_t more) { return offsetOf(group, more); },
        "grouped_matmul: 'offsets' do not ascend from 0, or are beyond the "
        "rows");
  Value group = groupOf(slot);
  Value last = i32(groups - 1);
  inGroup = compare(Predicate::sle, group, last);
  Value matrix = minU(group, last);
  dim.offset = slot; // with tiles of one row
  if (dim.extent > 1) {
    Value isFirst = equal(group, i32(0));
    Value end = least(offsetOf(matrix, 1), rows);
    dim.bound = select(inGroup, end, rows);
    Value begin = select(inGroup, offsetOf(matrix), offsetOf(matrix, 1));
    begin = select(isFirst, i32(0), most(begin, i32(0)));
    Value before = add(div(begin, i32(dim.extent)), group);
    Value tile = mul(sub(slot, before), i32(dim.extent));
    dim.offset = add(begin, tile);
    goOnIf(both(compare(Predicate::sge, dim.offset, i32(0)),
                below(dim.offset, dim.bound)));
  }
  for (BlockArgument argument : region.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    bool isPacked = llvm::any_of(argument.getUsers(), llvm::IsaPred<DequantOp>);
    if (argument.use_empty() || (type.getRank() < 3 && !isPacked))
      continue;
    int64_t matrixRows = type.getRank() < 3 ? type.getDimSize(0) / groups : 1;
    AffineExpr stride =
        TensorLayout::of(kernel, argument.getArgNumber()).strides.front();
    views[argument.getArgNumber()] = advance(
        pointerOf(argument), mul(large(matrix), elements(stride * matrixRows)));
  }
}

/// Computes the result of a group with a matrix; rows without one are zero.
SmallVector<Value>
SpaceEmitter::computeInGroup(llvm::function_ref<SmallVector<Value>()> compute) {
  MatmulOp op = space.matmul;
  auto type = block(shapeOf(identity), op.getSumType());
  SmallVector<Type> types(space.gemms().size(), type);
  auto branch = scf::IfOp::create(b, types, inGroup, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  Value zero = zeroOf(type);
  scf::YieldOp::create(b, SmallVector<Value>(types.size(), zero));
  b.setInsertionPointToEnd(branch.thenBlock());
  // Values computed in the branch are not available behind it.
  Scope outside = outer, inside = inner;
  SmallVector<Value> results = compute();
  outer = std::move(outside);
  inner = std::move(inside);
  scf::YieldOp::create(b, results);
  return branch.getResults();
}
