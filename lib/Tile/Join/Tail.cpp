//===- Tail.cpp - greta-tile-tail -----------------------------------------===//
//
// In: at the lane level, a launch, and behind it one of a single workgroup that
// reads what the first one wrote. Out: one launch; its last workgroup to arrive
// does the second one's work (docs/internals/one-launch.md):
//
//   launch @gemm grid 512; launch @norm grid 1
//     →  launch @f_tail0 grid 512
//        func @f_tail0 {
//          gemm's body
//          fence release device; barrier global
//          if first lane of the workgroup
//            fence release device
//            %before = ptr_atomic_rmw add %arrived, 1
//            shared_store %before
//            fence acquire device
//          barrier global
//          if shared_load == 511
//            fence acquire device
//            %arrived = 0, for the next launch
//            norm's body
//        }
//
// Nobody waits for anybody, so nothing is asked of how workgroups are
// scheduled.
//
//===----------------------------------------------------------------------===//

#include "Joiner.h"
#include "greta/Interface/Launches.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/SharedMemory.h"
#include "greta/Tile/Workgroup.h"
#include "llvm/Support/MathExtras.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILETAILPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// A launch, and its tail.
class TailJoiner : public Joiner {
public:
  TailJoiner(SymbolTable &symbols, const TargetRow &row)
      : Joiner(symbols, /*isResident=*/false), row(row) {}

private:
  bool admits(LaunchOp launch) override;
  void emitPhases(FuncOp kernel) override;
  Form formOf(FuncOp kernel) override;
  bool readsWhatIsWritten(LaunchOp launch);
  bool hasRoomFor(LaunchOp launch);
  void goOnAsLast(FuncOp kernel, ImplicitLocOpBuilder &b);

  const TargetRow &row;
};

} // namespace

bool TailJoiner::readsWhatIsWritten(LaunchOp launch) {
  llvm::SmallDenseSet<Value> written;
  for (const Use &use : usesOf(launches.front()))
    if (use.isWritten)
      written.insert(use.memory);
  return llvm::any_of(launch.getOperands(), [&](Value operand) {
    return written.contains(memoryOf(operand));
  });
}

/// Whether the tail's shared memory fits beside that of the first kernel, all
/// of whose workgroups have it, too: on Vulkan arrays of two types never share.
/// Up to 2 KB hardly change how many workgroups a compute unit has.
bool TailJoiner::hasRoomFor(LaunchOp launch) {
  constexpr int64_t most = 2048, counted = 16;
  int64_t bytes = leastSharedBytes(kernelOf(launch), row);
  int64_t all =
      bytes + counted + leastSharedBytes(kernelOf(launches.front()), row);
  return bytes <= most && all <= row.ldsBytes;
}

/// The tail has no matrix products, which are configured with a depth or have
/// matrix instructions: their registers would be those of all workgroups. A
/// driver may end a lane's loops after 65,535 iterations, all of a kernel
/// counted.
bool TailJoiner::admits(LaunchOp launch) {
  constexpr uint64_t mostIterations = 1 << 15;
  std::optional<int64_t> workgroups = workgroupsOf(launch);
  if (!workgroups || launch.getByRows())
    return false;
  if (launches.empty())
    return *workgroups > 1;
  if (launches.size() > 1 || *workgroups > 1 || !readsWhatIsWritten(launch))
    return false;
  uint64_t iterations = 0;
  for (LaunchOp one : {launches.front(), launch})
    iterations = llvm::SaturatingAdd(
        iterations, iterationsOf(kernelOf(one).getBody().front()));
  DictionaryAttr config = launch.getConfigAttr();
  bool hasProducts =
      (config && config.contains("depth")) || hasOp<MmaOp>(kernelOf(launch));
  return !hasProducts && iterations <= mostIterations && hasRoomFor(launch);
}

void TailJoiner::emitPhases(FuncOp kernel) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  emitPhase(0, kernel, b, [&](LaunchOp) {
    SmallVector<Value, 3> ids;
    for (int axis = 0; axis < 3; ++axis)
      ids.push_back(ProgramIdOp::create(b, axis));
    return ids;
  });
  emitPhase(1, kernel, b, [&](LaunchOp) {
    goOnAsLast(kernel, b);
    return SmallVector<Value, 3>(3, Arithmetic{b}.i32(0));
  });
  ReturnOp::create(b);
}

/// Leaves the builder where the last workgroup to arrive goes on.
void TailJoiner::goOnAsLast(FuncOp kernel, ImplicitLocOpBuilder &b) {
  Arithmetic a{b};
  Value array = SharedAllocOp::create(
      b, SharedType::get(b.getContext(), 1, b.getI32Type()));
  Value zero = a.i32(0), counter = counterOf(kernel);
  meetForAtomics(b, [&] {
    Value before = updateCount(b, AtomicKind::Add, counter, a.i32(1));
    SharedStoreOp::create(b, before, array, zero);
  });
  Value before = SharedLoadOp::create(b, array, zero);
  Value last = a.i32(*workgroupsOf(launches.front()) - 1);
  auto goesOn = scf::IfOp::create(b, a.equal(before, last), /*withElse=*/false);
  b.setInsertionPointToStart(goesOn.thenBlock());
  FenceOp::create(b, MemoryOrder::Acquire, MemoryScope::Device);
  // For the next launch.
  emitIf(b, isFirstLane(b),
         [&] { updateCount(b, AtomicKind::Xchg, counter, zero); });
}

Joiner::Form TailJoiner::formOf(FuncOp kernel) {
  LaunchOp launch = launches.front();
  SmallVector<NamedAttribute> config;
  if (DictionaryAttr own = launch.getConfigAttr())
    llvm::append_range(config, own);
  Builder b(kernel.getContext());
  config.push_back(b.getNamedAttr("tail", b.getI64IntegerAttr(1)));
  return {launch.getGrid(), config};
}

namespace {
struct TailPass : greta::impl::GretaTileTailPassBase<TailPass> {
  using GretaTileTailPassBase::GretaTileTailPassBase;

  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && !func->hasAttr(inPlaceName))
        joinIn(func, symbols, *row);
    eraseUnlaunched(getOperation());
  }

private:
  void joinIn(func::FuncOp func, SymbolTable &symbols, const TargetRow &row) {
    unsigned number = 0;
    auto launches = llvm::to_vector(func.getOps<LaunchOp>());
    for (size_t i = 0; i + 1 < launches.size(); ++i) {
      TailJoiner joiner(symbols, row);
      if (!joiner.take(launches[i]) || !joiner.take(launches[i + 1]))
        continue;
      joiner.join((func.getName() + "_tail" + Twine(number++)).str());
      ++i;
    }
  }
};
} // namespace
