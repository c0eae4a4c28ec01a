//===- PlanMemory.cpp - greta-tile-plan-memory ----------------------------===//
//
// In: one lane's program with its barriers. Out: every array in shared memory
// has an offset; arrays that are never in use together may share bytes.
//
// An array is in use from its first access to its last, and all through the
// loops that have one of them, but for those around all of its accesses: where
// the first one is a store that each iteration of theirs executes, an iteration
// begins anew. Two arrays share for nothing where a barrier stands between
// their uses anyway. Elsewhere sharing costs a barrier, which
// greta-tile-barriers puts there when it runs again: that is done where more
// workgroups fit on a compute unit then, or one at all.
//
// On AMD shared memory is bytes. In SPIR-V it is variables, which only arrays
// of one element type can share.
//
//===----------------------------------------------------------------------===//

#include "SharedOrder.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/SharedMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEPLANMEMORYPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

struct Array {
  SharedAllocOp alloc;
  int64_t bytes;
  int64_t stages = 1;
  /// The numbers of the first and the last op that use the array.
  unsigned first = ~0u, last = 0;
  int64_t offset = 0;

  SharedType type() const {
    return cast<SharedType>(alloc->getResult(0).getType());
  }
};

class Planner {
public:
  Planner(FuncOp kernel, const TargetRow &row);
  LogicalResult run();
  /// Places all arrays, with at most `stages` stages each. Returns the bytes in
  /// all.
  int64_t place(bool forBarrier, int64_t stages = INT64_MAX);

private:
  void findUses();
  bool mayShare(const Array &x, const Array &y, bool forBarrier) const;
  LogicalResult fail(int64_t total);
  unsigned occupancy(int64_t bytes) {
    return getOccupancy(row, /*vgprs=*/1, /*agprs=*/0, /*sgprs=*/1, bytes,
                        kernel.getBlockSize());
  }

  FuncOp kernel;
  const TargetRow &row;
  /// The order that the existing barriers give.
  std::optional<SharedOrder> order;
  SmallVector<Array> arrays; // the largest first
};

} // namespace

/// The alignment of arrays, which is that of the widest access of a lane.
static constexpr int64_t granule = 16;

/// Whether some lanes of every workgroup take a branch: its condition depends
/// on the lane or the wave. No condition of a block program does.
static bool isBranchOfLanes(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return false;
  SetVector<Value> seen;
  seen.insert(branch.getCondition());
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *made = seen[i].getDefiningOp();
    if (isa_and_nonnull<LaneIdOp, WaveIdOp>(made))
      return true;
    if (isa_and_nonnull<arith::ArithDialect>(made ? made->getDialect()
                                                  : nullptr))
      seen.insert(made->operand_begin(), made->operand_end());
  }
  return false;
}

Planner::Planner(FuncOp kernel, const TargetRow &row)
    : kernel(kernel), row(row) {
  for (auto alloc : kernel.getBody().getOps<SharedAllocOp>()) {
    SharedType type = alloc.getResult().getType();
    // In SPIR-V a truth value is a word.
    bool isTruth = getElementTypeOrSelf(type.getElementType()).isInteger(1);
    int64_t bytes = getSharedBytes(type);
    arrays.push_back({alloc, isTruth && row.isVulkan() ? 4 * bytes : bytes});
    for (Operation *user : alloc->getUsers())
      if (auto stage = dyn_cast<SharedStageOp>(user))
        arrays.back().stages = stage.getStages();
  }
  llvm::stable_sort(
      arrays, [](const Array &x, const Array &y) { return x.bytes > y.bytes; });
  findUses();
}

void Planner::findUses() {
  llvm::DenseMap<Operation *, Array *> known;
  for (Array &array : arrays)
    known[array.alloc] = &array;
  unsigned number = 0;
  llvm::DenseMap<Operation *, unsigned> begin, end;
  kernel.walk([&](Operation *op, const WalkStage &stage) {
    if (stage.isBeforeAllRegions())
      begin[op] = number++;
    if (stage.isAfterAllRegions())
      end[op] = number++;
  });
  llvm::MapVector<Array *, SmallVector<Operation *>> accesses;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isa<SharedType>(operand.getType()))
        accesses[known.at(getSharedArray(operand))].push_back(op);
  });
  for (auto &[array, users] : accesses) {
    Operation *first = *llvm::find_if_not(
        users, [](Operation *op) { return isa<SharedStageOp>(op); });
    // The block that has all of them, each in it or in an op of it.
    Block *block = first->getBlock();
    auto isOutside = [&](Operation *op) {
      return !block->findAncestorOpInBlock(*op);
    };
    while (llvm::any_of(users, isOutside))
      block = block->getParentOp()->getBlock();
    bool isAlwaysStored = isa<SharedStoreOp>(first);
    for (Operation *at = first->getParentOp(); at != block->getParentOp();
         at = at->getParentOp())
      isAlwaysStored &= isBranchOfLanes(at);
    // The innermost loop is one use.
    auto loopOf = [](Operation *op) {
      return op->getParentOfType<LoopLikeOpInterface>();
    };
    bool isInLoop = llvm::any_of(users, [&](Operation *op) {
      return loopOf(op) && !isOutside(loopOf(op));
    });
    if (LoopLikeOpInterface loop = loopOf(first); loop && !isInLoop)
      block = loop->getBlock();
    if (!isAlwaysStored)
      block = &kernel.getBody().front();
    for (Operation *user : users) {
      Operation *use = block->findAncestorOpInBlock(*user);
      array->first = std::min(array->first, begin[use]);
      array->last = std::max(array->last, end[use]);
    }
  }
}

bool Planner::mayShare(const Array &x, const Array &y, bool forBarrier) const {
  if (row.isVulkan() && x.type().getElementType() != y.type().getElementType())
    return false;
  if (x.first <= y.last && y.first <= x.last)
    return false;
  return forBarrier || (!order->unordered.contains({x.alloc, y.alloc}) &&
                        !order->unordered.contains({y.alloc, x.alloc}));
}

int64_t Planner::place(bool forBarrier, int64_t stages) {
  int64_t total = 0;
  auto sizeOf = [&](const Array &array) -> int64_t {
    return llvm::alignTo(
        array.bytes / array.stages * std::min(array.stages, stages), granule);
  };
  for (size_t i = 0; i < arrays.size(); ++i) {
    Array &array = arrays[i];
    // The first place that none of those has which it may not share with. A
    // SPIR-V variable is shared from its start, by what is not larger.
    ArrayRef<Array> placed = ArrayRef(arrays).take_front(i);
    SmallVector<int64_t> offsets = {0};
    for (const Array &other : placed)
      offsets.append({other.offset, other.offset + sizeOf(other)});
    llvm::sort(offsets);
    array.offset = *llvm::find_if(offsets, [&](int64_t offset) {
      return llvm::all_of(placed, [&](const Array &other) {
        bool isApart = offset >= other.offset + sizeOf(other) ||
                       offset + sizeOf(array) <= other.offset;
        return isApart || (mayShare(array, other, forBarrier) &&
                           (!row.isVulkan() || offset == other.offset));
      });
    });
    total = std::max(total, array.offset + sizeOf(array));
  }
  return total;
}

LogicalResult Planner::fail(int64_t total) {
  // At the line of the source that the largest array is for.
  Operation *access = arrays.front().alloc;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isAccess = !isa<SharedStageOp>(op) &&
                    llvm::any_of(op->getOperands(), [&](Value operand) {
                      return isa<SharedType>(operand.getType()) &&
                             getSharedArray(operand) == arrays.front().alloc;
                    });
    if (isAccess)
      access = op;
    return isAccess ? WalkResult::interrupt() : WalkResult::advance();
  });
  auto error = access->emitError("kernel '")
               << kernel.getName() << "' needs " << total
               << " bytes where a workgroup of " << row.name << " has "
               << row.ldsBytes << " of shared memory; its largest arrays take";
  int64_t stages = 1;
  for (auto [i, array] : llvm::enumerate(arrays)) {
    stages = std::max(stages, array.stages);
    if (i >= 3)
      continue;
    error << (i ? ", " : " ") << array.bytes << " bytes";
    if (array.stages > 1)
      error << " (" << array.stages << " stages)";
  }
  while (--stages > 0) {
    int64_t fewer = place(/*forBarrier=*/true, stages);
    if (fewer <= row.ldsBytes)
      return error << ": with " << stages << (stages > 1 ? " stages" : " stage")
                   << " it needs " << fewer;
  }
  int64_t part = llvm::PowerOf2Ceil(llvm::divideCeil(total, row.ldsBytes));
  return error << ": choose a smaller tile, one with 1/" << part
               << " of the elements fits";
}

LogicalResult Planner::run() {
  order.emplace(kernel, DirectWait::Own);
  int64_t total = place(/*forBarrier=*/false);
  if (int64_t less = place(/*forBarrier=*/true);
      total > row.ldsBytes || occupancy(less) > occupancy(total))
    total = less;
  else
    place(/*forBarrier=*/false);
  if (total > row.ldsBytes)
    return fail(total);
  for (Array &array : arrays)
    array.alloc.setOffset(array.offset);
  return success();
}

int64_t greta::tile::leastSharedBytes(FuncOp kernel, const TargetRow &row) {
  return Planner(kernel, row).place(/*forBarrier=*/true);
}

namespace {
struct PlanMemoryPass
    : greta::impl::GretaTilePlanMemoryPassBase<PlanMemoryPass> {
  using GretaTilePlanMemoryPassBase::GretaTilePlanMemoryPassBase;
  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    if (failed(Planner(getOperation(), *row).run()))
      signalPassFailure();
  }
};
} // namespace
