//===- TileToSPIRVRange.cpp - how large can an index be? ------------------===//
//
// Ranges of integers, found while the kernel is translated, by what MLIR knows
// of each op: enough to see that `lane * 8 + constant` times the element's
// bytes fits into 32 bits, which is what lets a driver use a scalar base plus a
// 32-bit lane offset, and that a division is one of natural numbers.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;

ConstantIntRanges KernelEmitter::rangeOf(Value integer) const {
  auto known = ranges.find(integer);
  if (known != ranges.end())
    return known->second;
  // Nothing is noted of a vector's elements.
  return ConstantIntRanges::maxRange(
      getElementTypeOrSelf(integer.getType()).getIntOrFloatBitWidth());
}

bool KernelEmitter::isNonNegative(Value value) const {
  return isa<IntegerType>(value.getType()) &&
         rangeOf(value).smin().isNonNegative();
}

void KernelEmitter::setMaximum(Value value, const APInt &maximum) {
  ranges.try_emplace(value,
                     ConstantIntRanges::fromUnsigned(
                         APInt::getZero(maximum.getBitWidth()), maximum));
}

void KernelEmitter::noteRange(Operation *op) {
  auto isInteger = [](Type type) { return isa<IntegerType>(type); };
  if (op->getNumResults() != 1 || !isInteger(op->getResultTypes().front()) ||
      !llvm::all_of(op->getOperandTypes(), isInteger))
    return;
  Value result = op->getResult(0);
  if (isa<tile::ProgramIdOp>(op))
    return setMaximum(result, APInt::getSignedMaxValue(32));
  if (isa<tile::LaneIdOp>(op))
    return setMaximum(result, APInt(32, kernel.getNumLanes() - 1));
  if (isa<tile::WaveIdOp>(op))
    return setMaximum(result, APInt(32, kernel.getNumWaves() - 1));
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands())
    operands.push_back(rangeOf(operand));
  bool isNatural = llvm::all_of(
      op->getOperands(), [&](Value value) { return isNonNegative(value); });
  // MLIR gives signed divisions up where the divisor may be zero.
  if (isa<arith::DivSIOp>(op) && isNatural)
    ranges.try_emplace(result, intrange::inferDivU(operands));
  else if (isa<arith::RemSIOp>(op) && isNatural)
    ranges.try_emplace(result, intrange::inferRemU(operands));
  else if (auto infer = dyn_cast<InferIntRangeInterface>(op))
    infer.inferResultRanges(operands,
                            [&](Value value, const ConstantIntRanges &range) {
                              ranges.try_emplace(value, range);
                            });
}
