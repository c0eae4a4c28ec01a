//===- Interleave.cpp - greta-tile-interleave -----------------------------===//
//
// The order in which one lane of a GEMM reads, stores, loads and multiplies.
// In: one lane's program with its barriers, where greta_tile.schedule ends a
// stretch of accesses and mmas. Out: fragments of A are loaded just before
// their first MMA, and schedule_groups say how accesses and MMAs
// alternate. Nothing moves across a barrier.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

namespace greta {
#define GEN_PASS_DEF_GRETATILEINTERLEAVEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Moves the load of each row of A just before its MMAs, which is faster than
/// to load all rows first. If A is in registers, this moves loads of tiles of
/// B.
static void sinkFragments(Block &block) {
  Operation *fence = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    // Memory that is read before this op may be written behind it.
    if (isa<BarrierOp, SharedStoreOp, FragmentStoreOp>(op) ||
        op.getNumRegions())
      fence = &op;
    auto mma = dyn_cast<MmaOp>(op);
    if (!mma)
      continue;
    auto load = mma.getA().getDefiningOp<FragmentLoadOp>();
    if (!load)
      load = mma.getB().getDefiningOp<FragmentLoadOp>();
    if (!load || load->getBlock() != &block ||
        (fence && load->isBeforeInBlock(fence)))
      continue;
    bool isFirst = llvm::all_of(load->getUsers(), [&](Operation *user) {
      return user == mma || user->getBlock() != &block ||
             mma->isBeforeInBlock(user);
    });
    if (isFirst)
      load->moveBefore(mma);
  }
}

/// Counts the reads of shared memory, from the op `first` on, that a value is
/// made of. Reads in `known` do not count; the others are added to it.
static unsigned addReads(Value value, Operation &first,
                         llvm::SmallDenseSet<Operation *> &known) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != first.getBlock() ||
      op->isBeforeInBlock(&first) || !known.insert(op).second)
    return 0;
  if (isa<SharedLoadOp>(op))
    return 1;
  unsigned count = 0;
  if (isa<vector::VectorDialect>(op->getDialect()))
    for (Value operand : op->getOperands())
      count += addReads(operand, first, known);
  return count;
}

/// Adds all ops, from `first` on, that a value is made of.
static void addSources(Value value, Operation &first,
                       llvm::SmallDenseSet<Operation *> &sources) {
  Operation *op = value.getDefiningOp();
  if (op && op->getBlock() == first.getBlock() &&
      !op->isBeforeInBlock(&first) && sources.insert(op).second)
    for (Value operand : op->getOperands())
      addSources(operand, first, sources);
}

namespace {
/// Orders a stretch of MMAs with accesses between them: first reads of shared
/// memory for the next stretch, then stores, then loads. Reads for these MMAs
/// themselves come a few MMAs ahead, and loads for them before all MMAs.
class Interleaver {
public:
  explicit Interleaver(ScheduleOp op) : op(op), builder(op) {}
  void run();

private:
  void collect();
  unsigned &left(ScheduleKind kind) {
    return count[static_cast<unsigned>(kind)];
  }
  void take(ScheduleKind kind, unsigned wanted);
  void multiply(unsigned n);
  void mix(ScheduleKind kind);

  ScheduleOp op;
  OpBuilder builder;
  static constexpr unsigned numKinds = 4;
  std::array<unsigned, numKinds> count = {}; // that no group has yet
  Operation *first = nullptr;                // of the stretch
  SmallVector<MmaOp> mmas;                   // from the last to the first
  SmallVector<Operation *> loads;
  bool isPutTogether = false;  // what is stored
  SmallVector<unsigned> reads; // that each MMA adds to those before it
  bool justInTime = false, hidesWork = false;
  unsigned accesses = 0, early = 0, done = 0, mixed = 0, asked = 0;
};
} // namespace

void Interleaver::collect() {
  Block *block = op->getBlock();
  for (auto it = op->getIterator(); it != block->begin();) {
    Operation &before = *--it;
    if (isa<BarrierOp, ScheduleGroupOp>(before) || before.getNumRegions())
      break;
    first = &before;
    if (auto mma = dyn_cast<MmaOp>(before))
      mmas.push_back(mma);
    if (isa<PtrLoadOp, PtrLoadSharedOp>(before))
      loads.push_back(&before);
    if (auto store = dyn_cast<SharedStoreOp>(before))
      isPutTogether |=
          store.getValue().getDefiningOp<vector::FromElementsOp>() != nullptr;
    std::optional<ScheduleKind> kind =
        llvm::TypeSwitch<Operation *, std::optional<ScheduleKind>>(&before)
            .Case([](MmaOp) { return ScheduleKind::Mma; })
            .Case([](SharedLoadOp) { return ScheduleKind::SharedLoad; })
            .Case([](SharedStoreOp) { return ScheduleKind::SharedStore; })
            .Default([](Operation *) { return std::nullopt; });
    if (kind)
      ++left(*kind);
  }
  llvm::SmallDenseSet<Operation *> sources;
  for (MmaOp mma : mmas)
    for (Value operand : mma->getOperands())
      addSources(operand, *first, sources);
  left(ScheduleKind::Load) = llvm::count_if(
      loads, [&](Operation *load) { return !sources.contains(load); });
}

void Interleaver::take(ScheduleKind kind, unsigned wanted) {
  unsigned n = std::min(wanted, left(kind));
  if (n)
    ScheduleGroupOp::create(builder, op.getLoc(), kind, n);
  left(kind) -= n;
}

/// Emits MMAs, with the reads that they need in front of them.
void Interleaver::multiply(unsigned n) {
  constexpr unsigned ahead = 4;
  while (n) {
    unsigned at = mmas.size() - left(ScheduleKind::Mma), wanted = 0;
    unsigned run = justInTime ? 0 : n;
    for (; run < n; ++run) {
      auto next = ArrayRef(reads).take_front(at + run + ahead + 1);
      unsigned due = std::accumulate(next.begin(), next.end(), 0u);
      if (run && due > asked)
        break;
      wanted += due - asked;
      asked = due;
    }
    take(ScheduleKind::SharedLoad, wanted);
    take(ScheduleKind::Mma, run);
    n = left(ScheduleKind::Mma) ? n - run : 0;
  }
}

void Interleaver::mix(ScheduleKind kind) {
  while (left(kind)) {
    unsigned due = (++done * early + (hidesWork ? accesses - 1 : 0)) / accesses;
    multiply(due - mixed);
    mixed = due;
    take(kind, 1);
  }
}

void Interleaver::run() {
  collect();
  // Operands that nothing aligns come in many narrow loads; LLVM takes minutes
  // to put hundreds of groups in order, and there is nothing to be hidden
  // under.
  constexpr unsigned most = 32;
  if (left(ScheduleKind::Load) > most || left(ScheduleKind::SharedStore) > most)
    return;
  llvm::SmallDenseSet<Operation *> known;
  for (MmaOp mma : llvm::reverse(mmas))
    reads.push_back(addReads(mma.getA(), *first, known) +
                    addReads(mma.getB(), *first, known));
  justInTime = llvm::any_of(reads, [](unsigned n) { return n > 0; });
  // Reads are wanted soonest, and stores have to arrive before the barrier, so
  // accesses come in the first seven tenths of the MMAs.
  early = mmas.size() * 7 / 10;
  accesses = left(ScheduleKind::SharedStore) + left(ScheduleKind::Load);
  if (!justInTime)
    accesses += left(ScheduleKind::SharedLoad);
  // MMAs that wait for their reads in any case should not wait for what stores
  // put together, too.
  hidesWork = justInTime && isPutTogether;
  if (!justInTime)
    mix(ScheduleKind::SharedLoad);
  mix(ScheduleKind::SharedStore);
  mix(ScheduleKind::Load);
  multiply(left(ScheduleKind::Mma));
}

/// Keeps LLVM's time small, which tries an instruction in many groups and
/// orders it with each other one that groups of the block name. In a block of
/// many groups those that follow each other and have one kind become one, so
/// that their own order is left to LLVM; where they still name many
/// instructions, reads of shared memory have none, since the MMAs that use them
/// order them.
static void boundGroups(Block &block) {
  constexpr unsigned mostGroups = 160, mostInstructions = 352;
  auto groups = llvm::to_vector(block.getOps<ScheduleGroupOp>());
  if (groups.size() <= mostGroups)
    return;
  unsigned instructions = 0;
  for (ScheduleGroupOp group : groups)
    instructions += group.getCount();
  for (ScheduleGroupOp group : groups) {
    if (instructions > mostInstructions &&
        group.getKind() == ScheduleKind::SharedLoad) {
      group.erase();
      continue;
    }
    auto next = dyn_cast_or_null<ScheduleGroupOp>(group->getNextNode());
    if (!next || next.getKind() != group.getKind())
      continue;
    next.setCount(group.getCount() + next.getCount());
    group.erase();
  }
}

namespace {
struct InterleavePass
    : greta::impl::GretaTileInterleavePassBase<InterleavePass> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) {
      sinkFragments(*block);
      for (auto op : llvm::make_early_inc_range(block->getOps<ScheduleOp>())) {
        Interleaver(op).run();
        op.erase();
      }
      boundGroups(*block);
    });
  }
};
} // namespace
