//===- SharedOrder.h - who must wait for whom in shared memory --*- C++ -*-===//
//
// An analysis of one lane's program for greta-tile-barriers and
// greta-tile-plan-memory. It finds the accesses to shared memory that other
// lanes may not have finished when a lane comes to an access of its own, and
// the places where barriers are missing.
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

/// Returns the bytes of an array.
int64_t getSharedBytes(SharedType type);

/// Returns the array that a value is, or is a stage of.
SharedAllocOp getSharedArray(Value value);

/// The barrier that waits for a direct load: one of its own, in front of the
/// first use of the loaded elements, or an earlier one that is there anyway.
enum class DirectWait { Own, Earlier };

/// Follows the accesses of a kernel through its control flow, and decides where
/// barriers are missing. Loops are visited until their back edge brings nothing
/// new.
class SharedOrder {
public:
  SharedOrder(FuncOp kernel, DirectWait wait);

  /// A barrier's number of a lane's loads that it leaves in flight; `none`: it
  /// does not wait for loads.
  static constexpr int64_t none = -1;
  /// The missing barriers, by the op in front of which each has to stand, and
  /// the existing barriers that have to wait for more loads.
  DenseMap<Operation *, int64_t> missing, existing;
  /// Pairs of different arrays: while a lane is at the first, others may still
  /// be at the second.
  llvm::DenseSet<std::pair<Operation *, Operation *>> unordered;

  /// The cost of the missing barriers. One in a loop costs as much as many
  /// outside.
  double cost() const;

private:
  /// A stage of an array. Its number is `root` + `offset` modulo `count`, the
  /// array's number of stages; a null `root` is 0.
  struct Stage {
    SharedAllocOp array;
    int64_t count = 1, offset = 0;
    Value root;
    bool isKnown = true;
    bool operator==(const Stage &other) const;
  };
  /// The accesses to a stage that lanes may not have finished.
  struct Pending {
    Stage stage;
    /// The depth of the region that the accesses are in.
    unsigned level;
    bool reads = false;
    /// Whether they are atomic additions, which need no order among each other.
    bool adds = false;
    /// The block with the stores. They count as one, since nothing reads
    /// between them.
    Block *writer = nullptr;
    bool writes = false;
    /// The loads of this lane since its last direct load to the stage.
    int64_t age = none;
    /// The last barrier since that load, and the loads between the two.
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
  /// These rewrite the stages of a state for another program point: `enter` for
  /// the start of a loop's body, given the values of its arguments from before
  /// the loop or from the back edge; `leave` for the point behind `op`.
  void enter(Operation *loop, ValueRange given, State &state);
  void leave(Operation *op, State &state);

  DirectWait wait;
  DenseMap<Block *, SmallVector<Operation *>> relevant;
  DenseMap<Operation *, Access> accesses;
  /// The values that are roots of stages.
  llvm::DenseSet<Value> roots;
  /// The number of loads that each barrier may leave in flight, by later uses.
  DenseMap<Operation *, int64_t> allowed;
  bool allowsLess = false;
  unsigned level = 0;
};

} // namespace greta::tile

#endif
