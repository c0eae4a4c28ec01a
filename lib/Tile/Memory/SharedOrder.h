//===- SharedOrder.h - who must wait for whom in shared memory --*- C++ -*-===//
//
// Questions of greta-tile-barriers and greta-tile-plan-memory about one lane's
// program: which accesses to shared memory other lanes may still be at, and
// where barriers have to stand.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_MEMORY_SHAREDORDER_H
#define GRETA_LIB_TILE_MEMORY_SHAREDORDER_H

#include "GretaTile/GretaTile.h"
#include "greta/Names.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace greta::tile {

/// Bytes of an array.
int64_t getSharedBytes(SharedType type);

/// The array that a value is, or is a stage of.
SharedAllocOp getSharedArray(Value value);

/// Whether barriers wait for direct loads by ones of their own where these are
/// used first, or by an earlier one that stands there anyway.
enum class DirectWait { Own, Earlier };

/// Follows the accesses of a kernel through its control flow, loops until
/// nothing new comes round, and decides where barriers are missing.
class SharedOrder {
public:
  SharedOrder(FuncOp kernel, DirectWait wait);

  /// How many loads of a lane a barrier leaves in flight; `none` where it does
  /// not wait for any.
  static constexpr int64_t none = -1;
  /// The barriers that are missing, by the op that each stands before, and
  /// those that are there but have to wait for more loads.
  DenseMap<Operation *, int64_t> missing, existing;
  /// Pairs of different arrays: while a lane is at the first, others may still
  /// be at the second.
  llvm::DenseSet<std::pair<Operation *, Operation *>> unordered;

  /// The cost of the missing barriers: one in a loop counts as many outside.
  double cost() const;

private:
  /// A stage of an array, as a number modulo the array's stages: a constant on
  /// top of `root`, which is null for a constant alone.
  struct Stage {
    SharedAllocOp array;
    int64_t count = 1, offset = 0;
    Value root;
    bool isKnown = true;
    bool operator==(const Stage &other) const;
  };
  /// The accesses that lanes may still be doing to a stage.
  struct Pending {
    Stage stage;
    /// Depth of the region from which it comes.
    unsigned level;
    /// From the iteration of the loop before this one.
    bool isRound = false;
    bool reads = false;
    /// By atomic additions, which need no order among each other.
    bool adds = false;
    /// Stores of one block are one store: nobody reads between them.
    Block *writer = nullptr;
    bool writes = false;
    /// Loads of this lane since the last direct one to the stage.
    int64_t age = none;
    /// The last barrier since then, and the loads before it.
    Operation *passed = nullptr;
    int64_t agePassed = none;
  };
  using State = SmallVector<Pending, 8>;
  /// A barrier that has to stand before an op of an outer region.
  struct Need {
    int64_t inFlight;
    unsigned level;
  };
  struct Access {
    Stage stage;
    bool reads, writes, isDirect, adds;
  };

  void collect(Operation *op);
  static Stage stageOf(Value array);
  static void setResidue(Stage &stage, Value value);
  static bool mayMeet(const Stage &x, const Stage &y);
  static bool join(State &into, const State &from);

  std::optional<Need> visit(Block &block, State &state);
  std::optional<Need> visit(Operation *op, State &state);
  std::optional<Need> visitAccess(Operation *op, State &state);
  std::optional<Need> visitBranches(Operation *op, State &state);
  std::optional<Need> visitLoop(Operation *op, State &state);
  void place(Operation *op, int64_t inFlight, State &state);
  void pass(Operation *barrier, int64_t inFlight, State &state);
  /// The same stages in words that hold at the start of a loop's body, seen
  /// from before the loop or from the end of the body; or behind an op.
  void enter(Operation *loop, ValueRange given, State &state);
  void leave(Operation *op, State &state);

  DirectWait wait;
  DenseMap<Block *, SmallVector<Operation *>> relevant;
  DenseMap<Operation *, Access> accesses;
  /// The value that stages are counted from.
  llvm::DenseSet<Value> roots;
  /// The loads in flight that later uses allow each barrier.
  DenseMap<Operation *, int64_t> allowed;
  bool allowsLess = false;
  /// The loops whose bodies end with a barrier.
  llvm::DenseSet<Operation *> turnEnds;
  unsigned level = 0;
};

} // namespace greta::tile

#endif
