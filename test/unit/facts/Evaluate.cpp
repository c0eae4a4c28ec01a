//===- Evaluate.cpp - a block program's integers by hand ------------------===//

#include "Evaluate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta::tile;

/// Pointers count elements with 64 bits.
static unsigned bitsOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
}

static SmallVector<int64_t> shapeOf(Type type) {
  auto block = dyn_cast<RankedTensorType>(type);
  return block ? SmallVector<int64_t>(block.getShape())
               : SmallVector<int64_t>{1};
}

static size_t sizeOf(Type type) {
  return ShapedType::getNumElements(shapeOf(type));
}

void Evaluator::set(Value value, Numbers numbers) {
  unsigned bits = bitsOf(value.getType());
  for (int64_t &number : numbers)
    number = bits < 64 ? llvm::SignExtend64(number, bits) : number;
  visit(value, numbers);
  values[value] = std::move(numbers);
}

bool Evaluator::run(Block &block) {
  return llvm::all_of(block.without_terminator(),
                      [&](Operation &op) { return runOp(op); });
}

bool Evaluator::runFor(Operation &op) {
  auto loop = cast<scf::ForOp>(op);
  auto scalar = [&](Value value) { return values.at(value).front(); };
  int64_t step = scalar(loop.getStep()), end = scalar(loop.getUpperBound());
  if (step <= 0)
    return false;
  SmallVector<Numbers> carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(values.at(init));
  for (int64_t i = scalar(loop.getLowerBound()); i < end; i += step) {
    set(loop.getInductionVar(), {i});
    for (auto [argument, numbers] :
         llvm::zip(loop.getRegionIterArgs(), carried))
      set(argument, numbers);
    if (!run(*loop.getBody()))
      return false;
    for (auto [numbers, yielded] :
         llvm::zip(carried, loop.getBody()->getTerminator()->getOperands()))
      numbers = values.at(yielded);
  }
  for (auto [result, numbers] : llvm::zip(loop.getResults(), carried))
    set(result, numbers);
  return true;
}

static std::optional<APInt> compute(Operation &op, ArrayRef<APInt> x) {
  using Result = std::optional<APInt>;
  auto divisible = [&] {
    return !x[1].isZero() && !(x[0].isMinSignedValue() && x[1].isAllOnes());
  };
  auto inWidth = [&] { return x[1].ult(x[0].getBitWidth()); };
  unsigned bits = bitsOf(op.getResult(0).getType());
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case([&](arith::AddIOp) { return x[0] + x[1]; })
      .Case([&](PtrAddOp) { return x[0] + x[1].sextOrTrunc(64); })
      .Case([&](PtrToIntOp) { return x[0] * 2; }) // of halves
      .Case([&](arith::SubIOp) { return x[0] - x[1]; })
      .Case([&](arith::MulIOp) { return x[0] * x[1]; })
      .Case([&](arith::DivSIOp) -> Result {
        if (!divisible())
          return std::nullopt;
        return x[0].sdiv(x[1]);
      })
      .Case([&](arith::RemSIOp) -> Result {
        if (!divisible())
          return std::nullopt;
        return x[0].srem(x[1]);
      })
      .Case([&](arith::DivUIOp) -> Result {
        if (x[1].isZero())
          return std::nullopt;
        return x[0].udiv(x[1]);
      })
      .Case([&](arith::RemUIOp) -> Result {
        if (x[1].isZero())
          return std::nullopt;
        return x[0].urem(x[1]);
      })
      .Case([&](arith::ShLIOp) -> Result {
        if (!inWidth())
          return std::nullopt;
        return x[0].shl(x[1]);
      })
      .Case([&](arith::ShRUIOp) -> Result {
        if (!inWidth())
          return std::nullopt;
        return x[0].lshr(x[1]);
      })
      .Case([&](arith::ShRSIOp) -> Result {
        if (!inWidth())
          return std::nullopt;
        return x[0].ashr(x[1]);
      })
      .Case([&](arith::AndIOp) { return x[0] & x[1]; })
      .Case([&](arith::OrIOp) { return x[0] | x[1]; })
      .Case([&](arith::XOrIOp) { return x[0] ^ x[1]; })
      .Case([&](arith::MinSIOp) { return llvm::APIntOps::smin(x[0], x[1]); })
      .Case([&](arith::MaxSIOp) { return llvm::APIntOps::smax(x[0], x[1]); })
      .Case([&](arith::MinUIOp) { return llvm::APIntOps::umin(x[0], x[1]); })
      .Case([&](arith::MaxUIOp) { return llvm::APIntOps::umax(x[0], x[1]); })
      .Case([&](arith::CmpIOp compare) {
        return APInt(1, applyCmpPredicate(compare.getPredicate(), x[0], x[1]));
      })
      .Case([&](arith::SelectOp) { return x[0].isZero() ? x[2] : x[1]; })
      .Case([&](arith::ExtSIOp) { return x[0].sext(bits); })
      .Case([&](arith::ExtUIOp) { return x[0].zext(bits); })
      .Case([&](arith::TruncIOp) { return x[0].trunc(bits); })
      .Default([](Operation *) -> Result {
        llvm_unreachable("no op of the random programs");
      });
}

bool Evaluator::runOp(Operation &op) {
  if (isa<scf::ForOp>(op))
    return runFor(op);
  Value result = op.getResult(0);
  SmallVector<int64_t> shape = shapeOf(result.getType());
  Numbers numbers(sizeOf(result.getType()));
  auto at = [&](int64_t place, unsigned dim) {
    for (unsigned inner = dim + 1; inner < shape.size(); ++inner)
      place /= shape[inner];
    return place % shape[dim];
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    int64_t number = dense ? dense.getSplatValue<APInt>().getSExtValue()
                           : cast<IntegerAttr>(constant.getValue()).getInt();
    numbers.assign(numbers.size(), number);
  } else if (isa<ProgramIdOp>(op)) {
    numbers = {programId};
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = at(i, iota.getDim());
  } else if (isa<SplatOp>(op)) {
    numbers.assign(numbers.size(), values.at(op.getOperand(0)).front());
  } else if (isa<ReshapeOp>(op)) {
    numbers = values.at(op.getOperand(0));
  } else if (isa<BroadcastOp>(op)) {
    SmallVector<int64_t> from = shapeOf(op.getOperand(0).getType());
    for (size_t i = 0; i < numbers.size(); ++i) {
      int64_t place = 0;
      for (auto [dim, extent] : llvm::enumerate(from))
        place = place * extent + (extent == 1 ? 0 : at(i, dim));
      numbers[i] = values.at(op.getOperand(0))[place];
    }
  } else {
    for (size_t i = 0; i < numbers.size(); ++i) {
      SmallVector<APInt> operands;
      for (Value operand : op.getOperands()) {
        const Numbers &list = values.at(operand);
        // A scalar serves every element.
        operands.push_back(APInt(bitsOf(operand.getType()),
                                 list[list.size() == 1 ? 0 : i], true));
      }
      std::optional<APInt> number = compute(op, operands);
      if (!number)
        return false;
      numbers[i] = number->getSExtValue();
    }
  }
  set(result, std::move(numbers));
  return true;
}
