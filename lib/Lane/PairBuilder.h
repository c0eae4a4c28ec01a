//===- PairBuilder.h - arithmetic on words and pairs ------------*- C++ -*-===//
//
// In: words, which are i32 values of packed numbers. Out: arithmetic on them,
// and pairs, vectors of two f16 in one register.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_PAIRBUILDER_H
#define GRETA_LIB_LANE_PAIRBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta {

/// The same 16 bits twice.
constexpr uint32_t twice(uint32_t half) { return half << 16 | half; }

/// Nothing on pairs is rounded that could be fused, so targets need not be
/// told.
constexpr auto contract = mlir::arith::FastMathFlags::contract;

/// Builds arithmetic on words and pairs.
struct PairBuilder : mlir::ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  mlir::VectorType pairType = mlir::VectorType::get(2, getF16Type());

  mlir::Value bits(uint32_t value) {
    return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  template <typename OpT> mlir::Value with(mlir::Value word, uint32_t value) {
    return OpT::create(*this, word, bits(value));
  }
  mlir::Value asPair(mlir::Value word) {
    mlir::Value words = mlir::vector::FromElementsOp::create(
        *this, mlir::VectorType::get(1, getI32Type()), word);
    return mlir::vector::BitCastOp::create(*this, pairType, words);
  }
  mlir::Value pair(mlir::Value low, mlir::Value high) {
    return mlir::vector::FromElementsOp::create(*this, pairType,
                                                mlir::ValueRange{low, high});
  }
  mlir::Value at(mlir::Value vector, int64_t i) {
    return createOrFold<mlir::vector::ExtractOp>(vector, i);
  }
  /// The E4M3FN in the upper byte of each half as the bits of an f16 with the
  /// exponent a place lower: 1/256 of the number, if it is one.
  mlir::Value floatsInUpperBytes(mlir::Value word) {
    mlir::Value magnitude = with<mlir::arith::AndIOp>(
        with<mlir::arith::ShRUIOp>(word, 1), twice(0x3f80));
    mlir::Value sign = with<mlir::arith::AndIOp>(word, twice(0x8000));
    return mlir::arith::OrIOp::create(*this, magnitude, sign);
  }
};

} // namespace greta

#endif
