//===- AccessOrder.h - which accesses wait for which ------------*- C++ -*-===//
//
// A block program reads and writes global memory as if one thread ran it
// (docs/internals/tile-language.md, Memory). Lanes share the work, so a lane
// may read what another has yet to write. This analysis answers two questions
// about the accesses of a kernel, through pointers or by strides, loads, stores
// and atomics alike: may two of them meet in memory, and if so, does the same
// lane do both for every element? Accesses that meet in different lanes need a
// barrier between them.
//
//   %x = load_scattered %p      layout of a dot's operand
//   store_scattered %y, %p      layout of its result: must wait
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_ACCESSORDER_H
#define GRETA_TILE_ACCESSORDER_H

#include "greta/Tile/Facts.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace greta::tile {

class AccessOrder {
public:
  AccessOrder(FuncOp kernel, const Facts &facts);

  /// Whether the kernel may write, through the same pointer, elements that
  /// `load` reads.
  bool isWritten(mlir::Operation *load) const;

  /// Whether some iteration of a loop around `load` may write elements that
  /// `load` reads in any iteration.
  bool isWrittenIn(mlir::Operation *loop, mlir::Operation *load) const;

  /// Returns the accesses in front of which all lanes have to wait. Every block
  /// must have a layout.
  llvm::DenseSet<mlir::Operation *> findWaits();

  /// Whether accesses through an argument need no order with any other access
  /// of the kernel. Every block must have a layout.
  bool isUnordered(mlir::BlockArgument argument) const;

private:
  /// A product: uniform factors in a fixed order, times the index along a
  /// dimension (-1: none), times a block (null: none).
  struct Term {
    llvm::SmallVector<mlir::Value, 2> factors;
    int64_t dim = -1;
    mlir::Value block;
    bool operator<(const Term &other) const;
    bool operator==(const Term &other) const;
  };
  /// A sum of terms, each with its factor in bytes.
  using Sum = std::map<Term, int64_t>;
  struct Access {
    mlir::Operation *op;
    bool reads, writes, isAtomic;
    mlir::Type element;
    llvm::SmallVector<int64_t> shape;
    LayoutAttr layout; // null: one element
    /// The pointers that the address may come from.
    llvm::SmallSetVector<mlir::Value, 1> roots;
    /// The address relative to its only root; none: it is not known.
    std::optional<Sum> place;
  };
  /// An access that some lanes may not have finished, and the outermost loop
  /// that has begun another iteration since; null: none has.
  using Pending = std::pair<const Access *, mlir::Operation *>;
  using State = llvm::SmallSetVector<Pending, 8>;

  void addAccess(mlir::Operation *op);
  void setPlace(Access &access);
  Sum sumOf(mlir::Value scalar);
  static Sum product(const Sum &x, const Sum &y);
  static void add(Sum &to, const Sum &sum, int64_t factor);

  static bool shareRoot(const Access &a, const Access &b);
  bool mayMeet(const Access &a, const Access &b,
               mlir::Operation *crossed) const;
  bool mayMeetElsewhere(const Access &a, const Access &b) const;
  std::optional<bool> areDisjoint(const Access &a, const Access &b,
                                  mlir::Operation *crossed) const;
  bool hasSameLanes(const Access &a, const Access &b,
                    mlir::Operation *crossed) const;
  bool addressesAlike(const Access &a, const Access &b,
                      mlir::Operation *crossed) const;
  bool conflict(const Access &a, const Access &b,
                mlir::Operation *crossed) const {
    return mayMeet(a, b, crossed) && !hasSameLanes(a, b, crossed);
  }

  void visit(mlir::Block &block, State &state);
  void visit(const Access &access, State &state);
  void visitLoop(mlir::Operation *loop, State &state);

  FuncOp kernel;
  const Facts &facts;
  llvm::MapVector<mlir::Operation *, Access> accesses;
  llvm::DenseMap<mlir::Value, Sum> sums;
  /// The state that each loop's back edge carries.
  llvm::DenseMap<mlir::Operation *, State> rounds;
  llvm::DenseSet<mlir::Operation *> waits;
};

} // namespace greta::tile

#endif
