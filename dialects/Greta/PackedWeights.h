//===- PackedWeights.h - a weight's number from its words -------*- C++ -*-===//
//
// In: words of a format, and where along K the weight is. Out: arithmetic that
// yields its number, on scalars (the definition of greta.dequant) or on blocks.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_DIALECTS_GRETA_PACKEDWEIGHTS_H
#define GRETA_DIALECTS_GRETA_PACKEDWEIGHTS_H

#include "greta/Interface/WeightFormats.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta {

/// The values are i32, or blocks of i32, if nothing else is said.
class PackedWeights {
public:
  PackedWeights(mlir::ImplicitLocOpBuilder &b, const WeightFormat &format)
      : b(b), format(format) {}

  /// The first bit of weight `index` in the words of its row.
  mlir::Value shiftInWord(mlir::Value index);
  mlir::Value shiftInHigh(mlir::Value index);
  /// The natural number in the last bits of a word; `high` is null where the
  /// format has none.
  mlir::Value number(mlir::Value word, mlir::Value high);
  /// A number less a zero, as f32; null: 0.
  mlir::Value decode(mlir::Value number, mlir::Value zero);
  /// A scale as f32.
  mlir::Value scale(mlir::Value stored);

private:
  mlir::Value constant(mlir::Value like, int64_t value);
  template <typename OpT> mlir::Value with(mlir::Value x, int64_t value) {
    return OpT::create(b, x, constant(x, value));
  }
  mlir::Value code(mlir::Value number, int first, int count);

  mlir::ImplicitLocOpBuilder &b;
  const WeightFormat &format;
};

} // namespace greta

#endif
