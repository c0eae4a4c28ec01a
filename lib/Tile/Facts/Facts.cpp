//===- Facts.cpp - what a block program's integers are known to be --------===//

#include "greta/Tile/Facts.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace greta;
using namespace greta::tile;

//===----------------------------------------------------------------------===//
// Facts of a value
//===----------------------------------------------------------------------===//

/// A scalar is a block of one element.
static ArrayRef<int64_t> shapeOf(Type type) {
  static constexpr int64_t one[] = {1};
  auto block = dyn_cast<RankedTensorType>(type);
  return block ? block.getShape() : ArrayRef<int64_t>(one);
}

/// The bytes of the widest access of a lane.
static constexpr int64_t mostBytes = 16;

/// The bytes that a pointer or an address counts in.
static int64_t unitOf(Value value) {
  auto pointer = dyn_cast<PtrType>(getElementTypeOrSelf(value));
  return pointer ? bytesInMemory(pointer.getElementType()) : 1;
}

ValueFacts::ValueFacts(SmallVector<DimFacts, 4> facts)
    : dims(std::move(facts)) {
  // A divisor of all elements divides those that stand first.
  int64_t all = divisibility();
  for (DimFacts &dim : dims)
    dim.divisibility = std::max(dim.divisibility, all);
}

ValueFacts ValueFacts::unknown(Type type) {
  return ValueFacts(SmallVector<DimFacts, 4>(shapeOf(type).size()));
}

ValueFacts ValueFacts::uniform(Type type, int64_t divisibility) {
  SmallVector<DimFacts, 4> dims;
  for (int64_t extent : shapeOf(type))
    dims.push_back(DimFacts::uniform(divisibility, extent));
  return ValueFacts(std::move(dims));
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Ops whose results have elements of their operands, each somewhere.
static bool movesElements(Operation *op) {
  return isa<SplatOp, BroadcastOp, ReshapeOp, ConvertLayoutOp>(op);
}

namespace {

/// MLIR's analysis, with what the dialect's ops add to it.
class RangeAnalysis : public dataflow::IntegerRangeAnalysis {
public:
  using IntegerRangeAnalysis::IntegerRangeAnalysis;

  void setToEntryState(dataflow::IntegerValueRangeLattice *lattice) override {
    auto argument = dyn_cast<BlockArgument>(lattice->getAnchor());
    auto kernel = dyn_cast_or_null<FuncOp>(
        argument ? argument.getOwner()->getParentOp() : nullptr);
    if (!kernel || !argument.getType().isInteger(32) ||
        !kernel.getArgAttr(argument.getArgNumber(), nonNegativeName))
      return IntegerRangeAnalysis::setToEntryState(lattice);
    propagateIfChanged(lattice, lattice->join(ConstantIntRanges::fromSigned(
                                    APInt(32, 0), APInt(32, INT32_MAX))));
  }

  LogicalResult visitOperation(
      Operation *op,
      ArrayRef<const dataflow::IntegerValueRangeLattice *> operands,
      ArrayRef<dataflow::IntegerValueRangeLattice *> results) override {
    auto set = [&](const IntegerValueRange &range) {
      propagateIfChanged(results.front(), results.front()->join(range));
    };
    auto upTo = [&](int64_t last) {
      set(ConstantIntRanges::fromSigned(APInt(32, 0), APInt(32, last)));
    };
    if (movesElements(op))
      set(operands.front()->getValue());
    else if (auto iota = dyn_cast<IotaOp>(op))
      upTo(iota.getResult().getType().getDimSize(iota.getDim()) - 1);
    else if (isa<ProgramIdOp>(op))
      upTo(INT32_MAX);
    else
      return IntegerRangeAnalysis::visitOperation(op, operands, results);
    return success();
  }
};

} // namespace

/// Null where the value is no integer.
static const ConstantIntRanges *lookUp(const DataFlowSolver &ranges,
                                       Value value) {
  auto *state = ranges.lookupState<dataflow::IntegerValueRangeLattice>(value);
  bool isKnown = isa<IntegerType, IndexType>(getElementTypeOrSelf(value)) &&
                 state && !state->getValue().isUninitialized();
  return isKnown ? &state->getValue().getValue() : nullptr;
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

namespace {

using FactsLattice = dataflow::Lattice<ValueFacts>;

class FactsAnalysis
    : public dataflow::SparseForwardDataFlowAnalysis<FactsLattice> {
public:
  FactsAnalysis(DataFlowSolver &solver, const DataFlowSolver &ranges)
      : SparseForwardDataFlowAnalysis(solver), ranges(ranges) {}

  void setToEntryState(FactsLattice *lattice) override;
  LogicalResult visitOperation(Operation *op,
                               ArrayRef<const FactsLattice *> operands,
                               ArrayRef<FactsLattice *> results) override;
  void visitNonControlFlowArguments(Operation *op,
                                    const RegionSuccessor &successor,
                                    ArrayRef<FactsLattice *> arguments,
                                    unsigned firstIndex) override;

private:
  using Operands = ArrayRef<const FactsLattice *>;
  ValueFacts transfer(Operation *op, Operands operands);
  std::optional<DimFacts> transferElementwise(Operation *op, const DimFacts &a,
                                              const DimFacts &b);

  /// The number that every element is, if it is one.
  std::optional<int64_t> constantOf(Value value) {
    const ConstantIntRanges *range = lookUp(ranges, value);
    if (!range || !range->getConstantValue())
      return std::nullopt;
    return range->getConstantValue()->trySExtValue();
  }
  bool isNatural(Value value) {
    const ConstantIntRanges *range = lookUp(ranges, value);
    return range && range->smin().isNonNegative();
  }

  const DataFlowSolver &ranges;
};

} // namespace

void FactsAnalysis::setToEntryState(FactsLattice *lattice) {
  Value value = lattice->getAnchor();
  ValueFacts facts = ValueFacts::unknown(value.getType());
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto kernel = dyn_cast<FuncOp>(argument.getOwner()->getParentOp()))
      if (auto promised = kernel.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), divisibilityName)) {
        int64_t divisibility = std::max<int64_t>(
            1, DimFacts::divisorOf(promised.getInt()) / unitOf(value));
        facts = ValueFacts::uniform(value.getType(), divisibility);
      }
  propagateIfChanged(lattice, lattice->join(facts));
}

void FactsAnalysis::visitNonControlFlowArguments(
    Operation *op, const RegionSuccessor &successor,
    ArrayRef<FactsLattice *> arguments, unsigned firstIndex) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return SparseForwardDataFlowAnalysis::visitNonControlFlowArguments(
        op, successor, arguments, firstIndex);
  // A counter is the first one and some steps.
  ProgramPoint *point = getProgramPointBefore(loop.getBody());
  const ValueFacts &first =
      getLatticeElementFor(point, loop.getLowerBound())->getValue();
  const ValueFacts &step =
      getLatticeElementFor(point, loop.getStep())->getValue();
  FactsLattice *counter = getLatticeElement(loop.getInductionVar());
  if (first.isInitialized() && step.isInitialized())
    propagateIfChanged(
        counter, counter->join(ValueFacts({facts::add(first[0], step[0])})));
}

/// The facts about ops that take elements at the same place; b is a if there is
/// one operand.
std::optional<DimFacts> FactsAnalysis::transferElementwise(Operation *op,
                                                           const DimFacts &a,
                                                           const DimFacts &b) {
  Value left = op->getOperand(0);
  Value right = op->getNumOperands() > 1 ? op->getOperand(1) : left;
  auto least = [&] {
    return std::min(a.divisibilityOf(1), b.divisibilityOf(1));
  };
  auto shifted = [&](DimFacts by) -> std::optional<DimFacts> {
    std::optional<int64_t> bits = constantOf(right);
    if (!bits || *bits < 0 || *bits > 61)
      return std::nullopt;
    by.divisibility = int64_t(1) << *bits;
    return by;
  };
  using Result = std::optional<DimFacts>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp, PtrAddOp>([&](auto) { return facts::add(a, b); })
      .Case([&](arith::SubIOp) { return facts::subtract(a, b); })
      .Case([&](arith::MulIOp) {
        return constantOf(left) == 1
                   ? b
                   : facts::multiply(a, b, constantOf(right) == 1);
      })
      .Case([&](arith::DivUIOp) {
        return facts::divide(a, b, constantOf(right));
      })
      .Case([&](arith::DivSIOp) {
        return isNatural(left) ? facts::divide(a, b, constantOf(right))
                               : facts::divideSigned(a, b, constantOf(right));
      })
      .Case([&](arith::RemUIOp) { return facts::remainder(a, b); })
      .Case([&](arith::RemSIOp) {
        return isNatural(left) ? facts::remainder(a, b)
                               : facts::remainderSigned(a, b);
      })
      .Case([&](arith::ShLIOp) {
        Result by = shifted(b);
        return by ? facts::multiply(a, *by, by->divisibility == 1)
                  : facts::combine(a, b, a.divisibilityOf(1));
      })
      .Case<arith::ShRUIOp, arith::ShRSIOp>([&](auto) {
        Result by = shifted(b);
        return by ? facts::divide(a, *by, by->divisibility)
                  : facts::combine(a, b, 1);
      })
      .Case(
          [&](arith::AndIOp) { return facts::bitAnd(a, b, constantOf(right)); })
      .Case<arith::OrIOp, arith::XOrIOp>(
          [&](auto) { return facts::bitOr(a, b); })
      .Case<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>(
          [&](auto) { return facts::combine(a, b, least()); })
      .Case([&](arith::CmpIOp compare) {
        using Predicate = arith::CmpIPredicate;
        Predicate predicate = compare.getPredicate();
        if (llvm::is_contained({Predicate::slt, Predicate::ult, Predicate::sge,
                                Predicate::uge},
                               predicate))
          return facts::isBelow(a, b);
        if (llvm::is_contained({Predicate::sgt, Predicate::ugt, Predicate::sle,
                                Predicate::ule},
                               predicate))
          return facts::isBelow(b, a);
        return facts::combine(a, b, 1);
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](Operation *) {
        const ConstantIntRanges *range = lookUp(ranges, left);
        return facts::extend(a, !range || range->smax().isMaxSignedValue());
      })
      .Case([&](arith::ExtUIOp) {
        const ConstantIntRanges *range = lookUp(ranges, left);
        return facts::extend(a, !range || range->umax().isMaxValue());
      })
      .Case<PtrCastOp, PtrToIntOp, IntToPtrOp>([&](Operation *op) {
        return facts::rescale(a, unitOf(left), unitOf(op->getResult(0)));
      })
      .Case([&](arith::TruncIOp trunc) {
        return facts::truncate(
            a, getElementTypeOrSelf(trunc.getType()).getIntOrFloatBitWidth());
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// Dimensions in row-major order as one: along the last of them, but for those
/// of one element, what was known stays.
static DimFacts merged(ArrayRef<DimFacts> dims, ArrayRef<int64_t> shape) {
  DimFacts facts;
  int64_t extent = 1;
  for (size_t dim = shape.size(); dim-- > 0; extent *= shape[dim])
    if (extent == 1)
      facts = dims[dim];
    else if (facts.constancy == extent)
      facts.constancy *= dims[dim].constancy;
  return facts;
}

/// Groups of as few dimensions as have the same number of elements become one
/// dimension, which is taken apart again from its end.
static ValueFacts reshaped(const ValueFacts &value, ArrayRef<int64_t> from,
                           ArrayRef<int64_t> to) {
  int64_t all = value.divisibility();
  SmallVector<DimFacts, 4> dims(to.size(), DimFacts::uniform(all, 1));
  for (size_t source = from.size(), target = to.size(); target > 0;) {
    size_t lastSource = source, lastTarget = target;
    int64_t have = 1, want = to[--target];
    while (have != want)
      if (have < want)
        have *= from[--source];
      else
        want *= to[--target];
    size_t count = lastSource - source;
    DimFacts rest =
        merged(value.getDims().slice(source, count), from.slice(source, count));
    for (size_t dim = lastTarget; dim-- > target;) {
      int64_t extent = to[dim];
      if (extent == 1)
        continue;
      dims[dim] = rest.counted(extent);
      dims[dim].constancy = std::gcd(rest.constancy, extent);
      rest = DimFacts::uniform(
          all, rest.constancy % extent ? 1 : rest.constancy / extent);
    }
  }
  return ValueFacts(std::move(dims));
}

ValueFacts FactsAnalysis::transfer(Operation *op, Operands operands) {
  Type type = op->getResult(0).getType();
  ArrayRef<int64_t> shape = shapeOf(type);
  if (std::optional<int64_t> constant = constantOf(op->getResult(0)))
    return ValueFacts::uniform(type, DimFacts::divisorOf(*constant));
  auto operand = [&](unsigned i) -> const ValueFacts & {
    return operands[i]->getValue();
  };
  SmallVector<DimFacts, 4> dims;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    for (auto [dim, extent] : llvm::enumerate(shape))
      dims.push_back(dim == iota.getDim() ? DimFacts::counting(0, extent)
                                          : DimFacts::uniform(1, extent));
    return ValueFacts(std::move(dims));
  }
  if (isa<SplatOp>(op))
    return ValueFacts::uniform(type, operand(0).divisibility());
  if (isa<BroadcastOp>(op)) {
    ArrayRef<int64_t> from = shapeOf(op->getOperand(0).getType());
    for (auto [dim, extent] : llvm::enumerate(shape))
      dims.push_back(
          from[dim] == extent
              ? operand(0)[dim]
              : DimFacts::uniform(operand(0)[dim].divisibility, extent));
    return ValueFacts(std::move(dims));
  }
  if (isa<ReshapeOp>(op))
    return reshaped(operand(0), shapeOf(op->getOperand(0).getType()), shape);
  if (isa<ConvertLayoutOp>(op))
    return operand(0);
  if (!isa<PtrAddOp, PtrCastOp, PtrToIntOp, IntToPtrOp>(op) &&
      !OpTrait::hasElementwiseMappableTraits(op))
    return ValueFacts::unknown(type);
  // Every element of a scalar beside blocks is the same.
  auto along = [&](unsigned i, unsigned dim) {
    bool isScalar = !isa<RankedTensorType>(op->getOperand(i).getType());
    return isScalar ? DimFacts::uniform(operand(i).divisibility(), shape[dim])
                    : operand(i)[dim];
  };
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    std::optional<DimFacts> facts;
    if (isa<arith::SelectOp>(op))
      facts = facts::select(along(0, dim), along(1, dim), along(2, dim));
    else
      facts = transferElementwise(op, along(0, dim),
                                  along(op->getNumOperands() > 1 ? 1 : 0, dim));
    if (!facts)
      return ValueFacts::unknown(type);
    dims.push_back(*facts);
  }
  return ValueFacts(std::move(dims));
}

LogicalResult FactsAnalysis::visitOperation(Operation *op, Operands operands,
                                            ArrayRef<FactsLattice *> results) {
  if (llvm::any_of(operands, [](const FactsLattice *operand) {
        return !operand->getValue().isInitialized();
      }))
    return success();
  for (FactsLattice *result : results) {
    Value value = result->getAnchor();
    bool isKnown =
        results.size() == 1 && isa<IntegerType, IndexType, PtrType>(
                                   getElementTypeOrSelf(value.getType()));
    propagateIfChanged(
        result, result->join(isKnown ? transfer(op, operands)
                                     : ValueFacts::unknown(value.getType())));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

Facts::Facts(FuncOp kernel)
    : ranges(std::make_unique<DataFlowSolver>()),
      solver(std::make_unique<DataFlowSolver>()) {
  // Ranges come first, so that facts rest on what is final.
  dataflow::loadBaselineAnalyses(*ranges);
  ranges->load<RangeAnalysis>();
  dataflow::loadBaselineAnalyses(*solver);
  solver->load<FactsAnalysis>(*ranges);
  // They fail where an analysis does, and these do not.
  if (failed(ranges->initializeAndRun(kernel)) ||
      failed(solver->initializeAndRun(kernel)))
    llvm_unreachable("the analyses take any program");
}

ValueFacts Facts::of(Value value) const {
  auto *state = solver->lookupState<FactsLattice>(value);
  return state && state->getValue().isInitialized()
             ? state->getValue()
             : ValueFacts::unknown(value.getType());
}

std::optional<std::pair<int64_t, int64_t>> Facts::rangeOf(Value value) const {
  const ConstantIntRanges *range = lookUp(*ranges, value);
  if (!range || range->smin().getBitWidth() > 64)
    return std::nullopt;
  return std::pair(range->smin().getSExtValue(), range->smax().getSExtValue());
}

/// Whether a condition holds where `at` stands: a branch around it asks, or it
/// was assumed before. `and` of two implies both.
static bool holds(Value condition, Operation *at,
                  llvm::SmallDenseSet<Value> &seen) {
  if (!seen.insert(condition).second)
    return false;
  for (Operation *user : condition.getUsers()) {
    if (auto branch = dyn_cast<scf::IfOp>(user);
        branch && branch.getThenRegion().isAncestor(at->getParentRegion()))
      return true;
    if (isa<AssumeOp>(user))
      if (Operation *beside = user->getBlock()->findAncestorOpInBlock(*at);
          beside && user->isBeforeInBlock(beside))
        return true;
    if (isa<arith::AndIOp>(user) && holds(user->getResult(0), at, seen))
      return true;
  }
  return false;
}
static bool holds(Value condition, Operation *at) {
  llvm::SmallDenseSet<Value> seen;
  return holds(condition, at, seen);
}

/// Whether `bound` is `least`, or one of the numbers that `least` is the least
/// of.
static bool isLeastOf(Value least, Value bound,
                      llvm::function_ref<bool(Value, Value)> isSame) {
  if (isSame(least, bound))
    return true;
  auto both = least.getDefiningOp<arith::MinSIOp>();
  return both && (isLeastOf(both.getLhs(), bound, isSame) ||
                  isLeastOf(both.getRhs(), bound, isSame));
}

bool Facts::isBelow(Value value, Value bound, Operation *at) const {
  using Range = std::optional<std::pair<int64_t, int64_t>>;
  auto range = [&](Value value) {
    return value ? rangeOf(value) : Range({0, 0});
  };
  Range least = range(value), limit = range(bound);
  if (least && limit && least->second < limit->first)
    return true;
  auto isSame = [&](Value a, Value b) {
    Range x = range(a), y = range(b);
    return a == b || (x && y && x->first == x->second && x == y);
  };
  if (auto argument = dyn_cast_or_null<BlockArgument>(value))
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      if (value == loop.getInductionVar() &&
          isLeastOf(loop.getUpperBound(), bound, isSame))
        return true;
  // As `less < more`, or `less <= more`.
  auto says = [&](Operation *user, bool orEqual, auto isLess, auto isMore) {
    using Predicate = arith::CmpIPredicate;
    auto compare = dyn_cast<arith::CmpIOp>(user);
    if (!compare || !holds(compare.getResult(), at))
      return false;
    Value x = compare.getLhs(), y = compare.getRhs();
    Predicate predicate = compare.getPredicate();
    if (predicate == Predicate::sgt || predicate == Predicate::sge)
      std::swap(x, y);
    bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
    bool isEqual = predicate == Predicate::sle || predicate == Predicate::sge;
    return (isStrict || (orEqual && isEqual)) && isLess(x) && isMore(y);
  };
  // Either may be one of several constants.
  SmallVector<Operation *> users(bound.getUsers());
  if (value)
    llvm::append_range(users, value.getUsers());
  if (llvm::any_of(users, [&](Operation *user) {
        return says(
            user, false, [&](Value less) { return isSame(less, value); },
            [&](Value more) { return isSame(more, bound); });
      }))
    return true;
  // 0 < b - a, where a is natural, so that nothing overflows.
  auto difference = bound.getDefiningOp<arith::SubIOp>();
  if (!least || least->second > 0 || !difference)
    return false;
  Value a = difference.getRhs();
  bool isNaturalToo =
      isNatural(a) || llvm::any_of(a.getUsers(), [&](Operation *user) {
        return says(
            user, true, [&](Value less) { return isNatural(less); },
            [&](Value more) { return more == a; });
      });
  return isNaturalToo && isBelow(a, difference.getLhs(), at);
}

/// As far as the addresses are a multiple of so many elements, and bounds do
/// not fall between them. Behind the dimension's end another may go on in
/// memory, whose index then moves whole groups too.
template <typename OpT>
static int64_t widthOf(const Facts &facts, OpT op, RankedTensorType block,
                       unsigned along, bool isDivided) {
  ArrayRef<int64_t> strides = op.getStrides();
  int64_t width = mostBytes / bytesInMemory(block.getElementType());
  auto keep = [&](int64_t multiple) { width = std::gcd(width, multiple); };
  auto keepTimes = [&](Value value, int64_t step) {
    DimFacts each = DimFacts::uniform(facts.of(value).divisibility(), 1);
    keep(facts::multiply(each, DimFacts::uniform(step, 1), false).divisibility);
  };
  llvm::SmallBitVector row(strides.size());
  row.set(along);
  int64_t end = block.getDimSize(along);
  for (size_t dim = 0; dim < strides.size(); ++dim)
    if (!row[dim] && strides[dim] == end && block.getDimSize(dim) > 1 &&
        op.getRun(along) == 1 && op.getRun(dim) == 1) {
      row.set(dim);
      end *= block.getDimSize(dim);
      dim = -1; // the next one may stand anywhere
    }
  keep(facts.of(op.getBase()).divisibility());
  SmallVector<int64_t> steps;
  unsigned nextDynamic = 0;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    steps.push_back(
        stride == ShapedType::kDynamic
            ? facts.of(op.getDynamicStrides()[nextDynamic++]).divisibility()
            : DimFacts::divisorOf(stride));
    if (int64_t run = op.getRun(dim); run > 1) {
      keep(DimFacts::divisorOf(op.getRunStride(dim)));
      if (dim == along)
        keep(run);
    }
  }
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    if (isDivided && dim != along)
      keep(steps[dim]);
    else
      keepTimes(offset, steps[dim]);
    if (!row[dim] && block.getDimSize(dim) > 1)
      keep(steps[dim]);
  }
  for (auto [dim, bound] : llvm::zip(op.getBounded(), op.getBounds()))
    if (row[dim])
      keepTimes(bound, steps[dim]);
  return width;
}

bool Facts::isWithin(Operation *access, Value offset, Value bound,
                     int64_t extent) const {
  auto first = rangeOf(offset), end = rangeOf(bound);
  if (first && end && first->second + extent <= end->first)
    return true;
  // Between two multiples lies as much.
  return of(offset).divisibility() >= extent &&
         of(bound).divisibility() >= extent && isBelow(offset, bound, access);
}

bool Facts::isWithin(LoadOp load) const {
  ArrayRef<int64_t> shape = shapeOf(load.getType());
  for (auto [dim, bound] : llvm::zip(load.getBounded(), load.getBounds())) {
    Value offset = load.getOffsets()[dim];
    if ((load.isBoundedBelow(dim) && !isNatural(offset)) ||
        !isWithin(load, offset, bound, shape[dim]))
      return false;
  }
  return true;
}

int64_t Facts::vectorWidth(LoadOp load, unsigned dim) const {
  // Neighbours that share an element are none in memory.
  if (load.getDivisor(dim) > 1)
    return 1;
  return widthOf(*this, load, cast<RankedTensorType>(load.getType()), dim,
                 load.getDivisors().has_value());
}

int64_t Facts::vectorWidth(StoreOp store, unsigned dim) const {
  return widthOf(*this, store,
                 cast<RankedTensorType>(store.getValue().getType()), dim,
                 /*isDivided=*/false);
}

int64_t Facts::vectorWidth(Value pointers, Value mask, unsigned dim) const {
  Type element = cast<PtrType>(getElementTypeOrSelf(pointers)).getElementType();
  int64_t width =
      std::gcd(mostBytes / bytesInMemory(element), of(pointers)[dim].aligned());
  return mask ? std::gcd(width, of(mask)[dim].constancy) : width;
}
