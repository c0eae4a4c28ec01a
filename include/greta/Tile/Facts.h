//===- Facts.h - what is known of a program's integers ----------*- C++ -*-===//
//
// A forward dataflow analysis over a kernel: of every integer and pointer, and
// of every element of blocks of them, divisibility, contiguity and constancy
// along each dimension (DimFacts), and its range (MLIR's IntegerRangeAnalysis).
// Pointers count in elements: one of divisibility 8 is a multiple of 8
// elements.
//
// Sources are constants, iota, program ids, the loops' counters, and what
// callers promise of the kernel's arguments: `greta.divisibility`, in bytes of
// a pointer, in ones of an integer. Relations between scalars are what
// `assume`, branches and loops around say.
//
// Nothing else tells a pass how wide an access may be or whether a mask is
// needed.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_FACTS_H
#define GRETA_TILE_FACTS_H

#include "GretaTile/GretaTile.h"
#include "greta/Tile/DimFacts.h"
#include "mlir/Analysis/DataFlowFramework.h"

namespace greta::tile {

/// Per dimension of a block; a scalar has one. Empty: nothing has reached the
/// value yet.
class ValueFacts {
public:
  ValueFacts() = default;
  ValueFacts(llvm::SmallVector<DimFacts, 4> dims);
  /// The facts about any value.
  static ValueFacts unknown(mlir::Type type);
  /// A number in every element.
  static ValueFacts uniform(mlir::Type type, int64_t divisibility);

  bool isInitialized() const { return !dims.empty(); }
  llvm::ArrayRef<DimFacts> getDims() const { return dims; }
  const DimFacts &operator[](unsigned dim) const { return dims[dim]; }
  /// The divisor of every element.
  int64_t divisibility() const;

  bool operator==(const ValueFacts &other) const { return dims == other.dims; }
  static ValueFacts join(const ValueFacts &a, const ValueFacts &b);
  void print(llvm::raw_ostream &os) const;

private:
  llvm::SmallVector<DimFacts, 4> dims;
};

class Facts {
public:
  explicit Facts(FuncOp kernel);

  ValueFacts of(mlir::Value value) const;
  /// The least and the largest element as signed numbers; none: not an integer.
  std::optional<std::pair<int64_t, int64_t>> rangeOf(mlir::Value value) const;
  /// Whether a scalar (null: zero) is less than another, as signed numbers,
  /// where `at` stands.
  bool isBelow(mlir::Value value, mlir::Value bound, mlir::Operation *at) const;

  /// Whether an access of `extent` from `offset` on is within a bound, so that
  /// it needs no mask.
  bool isWithin(mlir::Operation *access, mlir::Value offset, mlir::Value bound,
                int64_t extent) const;
  /// The same of a load's whole block.
  bool isWithin(LoadOp load) const;

  /// How many neighbours along a dimension of stride 1 one access may move: up
  /// to 16 bytes, as address, strides and bounds allow.
  int64_t vectorWidth(LoadOp load, unsigned dim) const;
  int64_t vectorWidth(StoreOp store, unsigned dim) const;
  /// The same through pointers, under a mask that may be null: along which
  /// dimension neighbours lie the pointers say.
  int64_t vectorWidth(mlir::Value pointers, mlir::Value mask,
                      unsigned dim) const;

private:
  std::unique_ptr<mlir::DataFlowSolver> ranges, solver;
};

} // namespace greta::tile

#endif
