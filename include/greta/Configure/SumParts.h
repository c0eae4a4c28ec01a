//===- SumParts.h - the parts of sums over ranks ----------------*- C++ -*-===//
//
// A sum over ranks is made in parts of rows where the next part's GEMM takes
// the time that this part's sum needs. All targets of a package have the same
// parts, because ranks may run different variants.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONFIGURE_SUMPARTS_H
#define GRETA_CONFIGURE_SUMPARTS_H

#include "greta/Target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace greta {

struct TuningDatabase;

/// The times of a GEMM and of the sum over two ranks behind it, in
/// microseconds, by the model.
struct SumTime {
  double gemm = 0, sum = 0; // each as a whole
  double whole = 0;         // the one behind the other
  double parts = 0;         // with parts of `rows` rows
  int64_t rows = 0;         // 0: parts bring nothing
};

/// A prompt's rows, for which parts are chosen.
constexpr int64_t rowsOfPrompt = 2048;

/// Returns the time of each sum of a module with one function, for so many
/// rows. A sum with `part_rows` has these parts. None: the target's link is not
/// known.
std::optional<llvm::SmallVector<SumTime>>
timeSums(mlir::ModuleOp module, const TargetRow &row, int64_t rows,
         const TuningDatabase *tuning);

/// Sets `part_rows` of each sum that has none: to `asked`, or, if parts pay on
/// every target, to the model's choice.
void choosePartRows(mlir::ModuleOp module,
                    llvm::ArrayRef<const TargetRow *> targets,
                    std::optional<int64_t> asked, const TuningDatabase *tuning);

} // namespace greta

#endif
