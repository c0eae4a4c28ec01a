//===- Evaluate.h - a block program's integers by hand ----------*- C++ -*-===//
//
// Runs the integer ops of a block program on numbers and shows every result to
// whoever asks, each iteration of a loop anew.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_UNIT_FACTS_EVALUATE_H
#define GRETA_TEST_UNIT_FACTS_EVALUATE_H

#include "GretaTile/GretaTile.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <vector>

/// The elements of a value in row-major order, as signed numbers.
using Numbers = std::vector<int64_t>;

class Evaluator {
public:
  std::function<void(mlir::Value, const Numbers &)> visit;
  int64_t programId = 0;

  void set(mlir::Value value, Numbers numbers);
  /// False where an op has no meaning: a division by zero, a shift too far.
  bool run(mlir::Block &block);

private:
  bool runOp(mlir::Operation &op);
  bool runFor(mlir::Operation &op);
  llvm::DenseMap<mlir::Value, Numbers> values;
};

#endif
