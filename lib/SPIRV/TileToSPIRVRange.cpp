//===- TileToSPIRVRange.cpp - how large can an index be? ------------------===//
//
// Upper bounds of i32 values, found while the kernel is translated: enough to
// know that `lane * 8 + constant` times the element's bytes fits into 32 bits,
// which is what lets a driver use a scalar base plus a 32-bit lane offset, and
// that a division is one of natural numbers.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;

static constexpr uint64_t unbounded = std::numeric_limits<uint32_t>::max();

uint32_t KernelEmitter::maximumOf(Value value) const {
  auto it = maxima.find(value);
  return it == maxima.end() ? unbounded : it->second;
}

bool KernelEmitter::isNonNegative(Value value) const {
  return maximumOf(value) <= std::numeric_limits<int32_t>::max();
}

void KernelEmitter::noteMaximum(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isInteger(32))
    return;
  // As 64-bit numbers: one sum or product of 32-bit ones cannot wrap there,
  // and a bound beyond 32 bits is none.
  auto max = [&](unsigned operand) -> uint64_t {
    return maximumOf(op->getOperand(operand));
  };
  auto bits = [](uint64_t value) { return llvm::NextPowerOf2(value) - 1; };
  auto constant = [&](unsigned operand) -> std::optional<uint64_t> {
    APInt value;
    if (!matchPattern(op->getOperand(operand), m_ConstantInt(&value)))
      return std::nullopt;
    return value.getZExtValue();
  };
  uint64_t bound =
      llvm::TypeSwitch<Operation *, uint64_t>(op)
          .Case<arith::ConstantOp>([&](arith::ConstantOp op) -> uint64_t {
            return cast<IntegerAttr>(op.getValue()).getValue().getZExtValue();
          })
          .Case<tile::ProgramIdOp>([](auto) -> uint64_t {
            return std::numeric_limits<int32_t>::max();
          })
          .Case<tile::LaneIdOp>(
              [&](auto) { return uint64_t(kernel.getNumLanes()) - 1; })
          .Case<tile::WaveIdOp>(
              [&](auto) { return uint64_t(kernel.getNumWaves()) - 1; })
          .Case<arith::AddIOp>([&](auto) { return max(0) + max(1); })
          .Case<arith::MulIOp>([&](auto) { return max(0) * max(1); })
          .Case<arith::ShLIOp>([&](auto) {
            std::optional<uint64_t> by = constant(1);
            return by && *by < 32 ? max(0) << *by : unbounded;
          })
          .Case<arith::ShRUIOp>([&](auto) {
            std::optional<uint64_t> by = constant(1);
            return by && *by < 32 ? max(0) >> *by : max(0);
          })
          .Case<arith::ShRSIOp>([&](auto) {
            std::optional<uint64_t> by = constant(1);
            return isNonNegative(op->getOperand(0)) && by && *by < 32
                       ? max(0) >> *by
                       : unbounded;
          })
          .Case<arith::AndIOp>([&](auto) { return std::min(max(0), max(1)); })
          .Case<arith::OrIOp, arith::XOrIOp>(
              [&](auto) { return bits(max(0) | max(1)); })
          .Case<arith::DivUIOp>([&](auto) {
            return max(0) / std::max<uint64_t>(constant(1).value_or(1), 1);
          })
          .Case<arith::RemUIOp>([&](auto) {
            return std::min(max(0), std::max<uint64_t>(max(1), 1) - 1);
          })
          .Case<arith::DivSIOp>([&](auto) {
            bool natural = isNonNegative(op->getOperand(0)) &&
                           isNonNegative(op->getOperand(1));
            return natural
                       ? max(0) / std::max<uint64_t>(constant(1).value_or(1), 1)
                       : unbounded;
          })
          .Case<arith::RemSIOp>([&](auto) {
            bool natural = isNonNegative(op->getOperand(0)) &&
                           isNonNegative(op->getOperand(1));
            return natural ? std::min(max(0), std::max<uint64_t>(max(1), 1) - 1)
                           : unbounded;
          })
          .Case<arith::MinUIOp>([&](auto) { return std::min(max(0), max(1)); })
          .Case<arith::MaxUIOp>([&](auto) { return std::max(max(0), max(1)); })
          .Case<arith::MinSIOp>([&](auto) {
            bool natural = isNonNegative(op->getOperand(0)) &&
                           isNonNegative(op->getOperand(1));
            return natural ? std::min(max(0), max(1)) : unbounded;
          })
          .Case<arith::MaxSIOp>([&](auto) {
            bool natural = isNonNegative(op->getOperand(0)) &&
                           isNonNegative(op->getOperand(1));
            return natural ? std::max(max(0), max(1)) : unbounded;
          })
          .Case<arith::SelectOp>([&](auto) { return std::max(max(1), max(2)); })
          .Case<arith::ExtUIOp>([&](arith::ExtUIOp op) {
            return llvm::maskTrailingOnes<uint64_t>(
                op.getIn().getType().getIntOrFloatBitWidth());
          })
          .Default([](auto) { return unbounded; });
  if (bound < unbounded)
    maxima[op->getResult(0)] = static_cast<uint32_t>(bound);
}
