//===- RowRanges.h - kernels for ranges of a dynamic M ----------*- C++ -*-===//
//
// A GEMM with a dynamic M has kernels that compute any number of rows, chosen
// for a guess, and so has attention with a dynamic number of queries. If the
// model has others faster for few rows, the function is compiled for
// such ranges, too: with the attribute `greta.rows` on these ops, the largest M
// of the range. The runtime takes the range that fits the values of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONFIGURE_ROWRANGES_H
#define GRETA_CONFIGURE_ROWRANGES_H

#include "greta/Target/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"

namespace greta {

struct TuningDatabase;

/// An attribute of an op with a dynamic M: ascending numbers, up to each of
/// which there are kernels of their own, in place of the ranges that the model
/// chooses.
constexpr llvm::StringLiteral rangesName = "greta.ranges";

/// GEMMs and attentions that share a dynamic M, which counts rows or queries.
struct DynamicRows {
  mlir::AffineExpr
      extent; // M over the function's symbols; null: there are none
  llvm::SmallVector<mlir::Operation *> ops;

  /// The ops with the M of the function's first one that has a dynamic M and no
  /// `greta.config` for the row.
  static DynamicRows of(mlir::func::FuncOp function, const TargetRow &row);
  /// Sets their `greta.rows`.
  void expect(int64_t rows) const;
};

struct RowRange {
  int64_t least, most; // of M
  int64_t expected;    // that the kernels are chosen for, not less than `most`
};

/// The ranges that have kernels of their own, in ascending order: what
/// `greta.ranges` asks for, else what is worth them by the model. The module
/// has one function. A wrong `greta.ranges` gets a diagnostic.
mlir::FailureOr<llvm::SmallVector<RowRange>>
chooseRowRanges(mlir::ModuleOp module, const TargetRow &row, bool matrix,
                const TuningDatabase *tuning);

} // namespace greta

#endif
