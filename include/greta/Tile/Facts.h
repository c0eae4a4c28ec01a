//===- Facts.h - what is known of a program's integers ----------*- C++ -*-===//
//
// A forward dataflow analysis of a kernel's integers and pointers, and of
// blocks of them. It knows divisibility, contiguity and constancy along each
// dimension (DimFacts), and ranges (MLIR's IntegerRangeAnalysis). Pointers
// count in elements: a pointer with divisibility 8 is a multiple of 8 elements.
//
// Facts come from constants, iota, program ids, loop counters, and the promises
// of callers about arguments: `greta.divisibility` is in bytes for a pointer,
// in ones for an integer. Relations between scalars come from `assume`, and
// from branches and loops around.
//
// Passes decide by these facts alone how wide an access may be, and whether it
// needs a mask.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_FACTS_H
#define GRETA_TILE_FACTS_H

#include "GretaTile/GretaTile.h"
#include "greta/Tile/DimFacts.h"
#include "mlir/Analysis/DataFlowFramework.h"

namespace greta::tile {

/// The facts of each dimension of a block; a scalar has one dimension. Empty:
/// the analysis has not reached the value yet.
class ValueFacts {
public:
  ValueFacts() = default;
  ValueFacts(llvm::SmallVector<DimFacts, 4> dims);
  /// The facts that hold for every value of a type.
  static ValueFacts unknown(mlir::Type type);
  /// The facts of a block whose elements are all equal.
  static ValueFacts uniform(mlir::Type type, int64_t divisibility);

  bool isInitialized() const { return !dims.empty(); }
  llvm::ArrayRef<DimFacts> getDims() const { return dims; }
  const DimFacts &operator[](unsigned dim) const { return dims[dim]; }
  /// The number that divides every element.
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
  /// The least and the largest element, as signed numbers; none: the value is
  /// no integer.
  std::optional<std::pair<int64_t, int64_t>> rangeOf(mlir::Value value) const;
  /// Whether no element is negative, by its range.
  bool isNatural(mlir::Value value) const {
    auto range = rangeOf(value);
    return range && range->first >= 0;
  }
  /// Whether a scalar (null: zero) is less than another, as signed numbers, at
  /// the op `at`.
  bool isBelow(mlir::Value value, mlir::Value bound, mlir::Operation *at) const;

  /// Whether an access of `extent` from `offset` on is within a bound, so that
  /// it needs no mask.
  bool isWithin(mlir::Operation *access, mlir::Value offset, mlir::Value bound,
                int64_t extent) const;
  /// Whether a load's whole block is within its bounds.
  bool isWithin(LoadOp load) const;

  /// The number of neighbours along a dimension of stride 1 that one access may
  /// move: up to 16 bytes, as address, strides and bounds allow.
  int64_t vectorWidth(LoadOp load, unsigned dim) const;
  int64_t vectorWidth(StoreOp store, unsigned dim) const;
  /// The same for a block of pointers and its mask, which may be null. The
  /// facts of the pointers say whether neighbours lie along the dimension.
  int64_t vectorWidth(mlir::Value pointers, mlir::Value mask,
                      unsigned dim) const;

private:
  std::unique_ptr<mlir::DataFlowSolver> ranges, solver;
};

} // namespace greta::tile

#endif
