//===- PairBuilder.h - arithmetic on words and pairs ------------*- C++ -*-===//
//
// In: words, which are i32 values of packed numbers. Out: arithmetic on them,
// and pairs, vectors of two f16 in one register.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_PAIRBUILDER_H
#define GRETA_LIB_LANE_PAIRBUILDER_H

#include "greta/Names.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace greta {

/// The same 16 bits twice.
constexpr uint32_t twice(uint32_t half) { return half << 16 | half; }

/// Nothing on pairs is rounded that could be fused, so targets need not be
/// told.
constexpr auto contract = arith::FastMathFlags::contract;

/// Builds arithmetic on words and pairs.
struct PairBuilder : ImplicitLocOpBuilder, Arithmetic {
  PairBuilder(mlir::Location loc, Operation *op)
      : ImplicitLocOpBuilder(loc, op),
        Arithmetic{static_cast<ImplicitLocOpBuilder &>(*this)} {}
  PairBuilder(const PairBuilder &) = delete; // it refers to itself
  VectorType pairType = VectorType::get(2, getF16Type());

  Value bits(uint32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  template <typename OpT> Value with(Value word, uint32_t value) {
    return OpT::create(*this, word, bits(value));
  }
  Value asPair(Value word) { return asPair(word, pairType); }
  Value asPair(Value word, VectorType type) {
    Value words = mlir::vector::FromElementsOp::create(
        *this, VectorType::get(1, getI32Type()), word);
    return mlir::vector::BitCastOp::create(*this, type, words);
  }
  Value pair(Value low, Value high) {
    return mlir::vector::FromElementsOp::create(*this, pairType,
                                                ValueRange{low, high});
  }
  Value at(Value vector, int64_t i) {
    return createOrFold<mlir::vector::ExtractOp>(vector, i);
  }
  /// The E4M3FN in the upper byte of each half as the bits of an f16 with the
  /// exponent a place lower: 1/256 of the number, if it is one.
  Value floatsInUpperBytes(Value word) {
    Value magnitude =
        with<arith::AndIOp>(with<arith::ShRUIOp>(word, 1), twice(0x3f80));
    Value sign = with<arith::AndIOp>(word, twice(0x8000));
    return either(magnitude, sign);
  }
};

} // namespace greta

#endif
