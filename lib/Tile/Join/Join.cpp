//===- Join.cpp - greta-tile-join -----------------------------------------===//
//
// In: a function's launches in a row, at the lane level, with constant grids
// and workgroups of one size. Out: one resident launch of a kernel with their
// bodies as phases (docs/internals/one-launch.md):
//
//   launch @a grid 768; launch @b grid 264
//     →  launch @f_joined0 grid 132 resident
//        func @f_joined0 {
//          for %tile = program_id 0 to 768 step 132 { a's body }
//          grid_barrier %met until 132
//          for %tile = program_id 0 to 264 step 132 { b's body }
//          grid_barrier %met until 264 last
//        }
//
// Phases that touch no tensor of each other's have no barrier between them. The
// launch's last scalar is zero, and one in a trial of whether all workgroups
// run at a time (ExpandAtomics.cpp). LoadAhead.cpp loads ahead what a phase
// reads of memory that nobody writes.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "Joiner.h"
#include "LoadAhead.h"
#include "greta/Interface/Launches.h"
#include "greta/Passes.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEJOINPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Launches whose workgroups stay for the next one's.
class ResidentJoiner : public Joiner {
public:
  ResidentJoiner(SymbolTable &symbols, int64_t residents, uint64_t most)
      : Joiner(symbols, /*isResident=*/true), residents(residents), most(most) {
  }

private:
  bool admits(LaunchOp launch) override;
  void emitPhases(FuncOp kernel) override;
  Form formOf(FuncOp kernel) override;

  int64_t residents;
  uint64_t most;           // iterations of a lane's loops; 0: there is no limit
  uint64_t iterations = 1; // iterations so far: of the trial, and phases
};

} // namespace

bool ResidentJoiner::admits(LaunchOp launch) {
  if (!workgroupsOf(launch))
    return false;
  if (most) {
    // The loop over the tiles, what runs in it, and the wait in front of it.
    uint64_t tiles = llvm::divideCeil(*workgroupsOf(launch), residents);
    uint64_t inTile = iterationsOf(kernelOf(launch).getBody().front());
    uint64_t own = llvm::SaturatingMultiplyAdd(tiles, inTile, tiles);
    uint64_t all = llvm::SaturatingAdd(iterations, own, uint64_t(1));
    if (all > most)
      return false;
    iterations = all;
  }
  return true;
}

void ResidentJoiner::emitPhases(FuncOp kernel) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  Arithmetic a{b};
  Value counter = counterOf(kernel);
  int64_t arrivals = 0;
  auto meet = [&](bool last) {
    arrivals += residents;
    GridBarrierOp::create(b, counter, arrivals, last);
  };
  auto loopOverTiles = [&](LaunchOp launch) {
    Value first = ProgramIdOp::create(b, 0);
    Value end = a.i32(*workgroupsOf(launch)), step = a.i32(residents);
    auto loop = scf::ForOp::create(b, first, end, step);
    loop->setAttr(rolledName, b.getUnitAttr());
    b.setInsertionPointToStart(loop.getBody());
    // The tile's number along each axis, x fastest.
    SmallVector<Value, 3> ids;
    Value rest = loop.getInductionVar();
    ArrayRef<AffineExpr> axes = launch.getGrid().getResults();
    for (AffineExpr axis : axes.drop_back()) {
      Value extent = a.i32(cast<AffineConstantExpr>(axis).getValue());
      ids.push_back(a.rem(rest, extent));
      rest = a.div(rest, extent);
    }
    ids.push_back(rest);
    while (ids.size() < 3)
      ids.push_back(a.i32(0));
    return ids;
  };
  llvm::SmallDenseSet<Value> read, written; // since the last barrier
  for (auto [i, launch] : llvm::enumerate(launches)) {
    SmallVector<Use> uses = usesOf(launch);
    bool waits = llvm::any_of(uses, [&](const Use &use) {
      return written.contains(use.memory) ||
             (use.isWritten && read.contains(use.memory));
    });
    if (waits) {
      meet(/*last=*/false);
      read.clear();
      written.clear();
    }
    for (const Use &use : uses)
      (use.isWritten ? written : read).insert(use.memory);
    emitPhase(i, kernel, b, loopOverTiles);
  }
  meet(/*last=*/true);
  ReturnOp::create(b);
  loadAhead(kernel);
}

Joiner::Form ResidentJoiner::formOf(FuncOp kernel) {
  Builder b(kernel.getContext());
  auto number = [&](StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  };
  int64_t barriers = llvm::range_size(kernel.getOps<GridBarrierOp>()) - 1;
  return {AffineMap::getConstantMap(residents, kernel.getContext()),
          {number("joined", launches.size()), number("residents", residents),
           number("barriers", barriers)}};
}

namespace {
struct JoinPass : greta::impl::GretaTileJoinPassBase<JoinPass> {
  using GretaTileJoinPassBase::GretaTileJoinPassBase;

  void runOnOperation() override {
    if (residents < 1) {
      getOperation().emitError("greta-tile-join needs how many workgroups "
                               "run at a time, residents=N");
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && !func->hasAttr(inPlaceName))
        joinIn(func, symbols);
    eraseUnlaunched(getOperation());
  }

private:
  void joinIn(func::FuncOp func, SymbolTable &symbols) {
    unsigned number = 0;
    std::optional<ResidentJoiner> joiner;
    auto finish = [&] {
      if (joiner && joiner->size() > 1)
        joiner->join((func.getName() + "_joined" + Twine(number++)).str());
      joiner.reset();
    };
    for (auto launch : llvm::to_vector(func.getOps<LaunchOp>())) {
      if (joiner && joiner->take(launch))
        continue;
      finish();
      joiner.emplace(symbols, residents, iterations);
      if (!joiner->take(launch))
        joiner.reset();
    }
    finish();
  }
};
} // namespace
