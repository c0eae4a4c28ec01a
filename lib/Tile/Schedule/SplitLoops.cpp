//===- SplitLoops.cpp - greta-tile-split-loops ----------------------------===//
//
// In: a block program whose loops test in each iteration which elements of a
// block are inside. Out: two loops for each of them. The first has the
// iterations in which all elements are inside, and tests nothing:
//
//   scf.for %k = %l to %n step %s { %m = (iota + %k < %n); select %m, %x, .. }
//     →  %end = min(%n, %n - (extent - 1)), rounded up to iterations
//        scf.for %k = %l to %end step %s { %x }
//        scf.for %k = %end to %n step %s { %m = ..; select %m, %x, .. }
//
// A comparison is taken apart into the counter, scalars from outside of the
// loop, and indices, of which the ends count. It compares numbers of 32 bits,
// which wrap around; the bound is computed with 64, and where a side of the
// comparison might have wrapped around the first part has no iterations.
//
// In the first part a maximum of products with one number is that number's
// product with the maximum, as long as the number is positive and finite, which
// is another condition of the first part: the rounding of a product never falls
// where its factor grows. A product that nothing but a sum takes is then one
// instruction with it (docs/internals/numerics.md).
//
// scf::peelForLoop of MLIR takes off the last iteration alone, and knows bounds
// of `index` type; a causal mask leaves several.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LinearAddress.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/Facts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILESPLITLOOPSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// The least share of the elements that a loop computes whose selection makes
/// two loops of it.
static constexpr int64_t leastShare = 16;

/// Sums of few products of 32 bits, and of few indices, with such numbers have
/// 64 bits.
static constexpr int64_t mostTimes = 1 << 20, mostConstant = int64_t(1) << 40;

namespace {

/// A side of a comparison: counter * the loop's counter + scalars + a constant,
/// and between `least` and `most` by the element.
struct Side {
  int64_t counter = 0, constant = 0, least = 0, most = 0;
  SmallVector<std::pair<Value, int64_t>, 2> scalars;

  bool operator==(const Side &other) const {
    return std::tie(counter, constant, least, most, scalars) ==
           std::tie(other.counter, other.constant, other.least, other.most,
                    other.scalars);
  }
};

/// lower + strict <= upper for all elements. It falls with the counter.
struct Condition {
  Side lower, upper;
  int64_t strict = 0;

  bool operator==(const Condition &other) const {
    return lower == other.lower && upper == other.upper &&
           strict == other.strict;
  }
};

/// The conditions that one loop tests in each iteration, and the ops that use
/// them.
struct Asked {
  SmallVector<Condition, 4> conditions;
  llvm::SmallDenseSet<Operation *> compares;
  llvm::SmallSetVector<Operation *, 4> selects, accesses;
  /// Strided loads with those of their bounded dimensions that are whole.
  SmallVector<std::pair<LoadOp, SmallVector<int64_t, 2>>, 4> loads;
};

/// Finds the conditions of a loop.
class Finder {
public:
  explicit Finder(scf::ForOp loop) : loop(loop) {}
  Asked find();

private:
  bool addScalar(Value scalar, int64_t times, Side &side);
  std::optional<Side> sideOf(Value block);
  bool add(Side lower, Side upper, int64_t strict);
  void look(arith::CmpIOp compare);
  void look(LoadOp load);
  bool holds(Value mask) const;

  scf::ForOp loop;
  Asked asked;
};

} // namespace

//===----------------------------------------------------------------------===//
// The conditions of a loop
//===----------------------------------------------------------------------===//

/// Adds a scalar to a side, taken apart as far as the loop computes it; false:
/// it is not linear.
bool Finder::addScalar(Value scalar, int64_t times, Side &side) {
  if (std::abs(times) > mostTimes || side.scalars.size() > 4)
    return false;
  if (scalar == loop.getInductionVar()) {
    side.counter += times;
    return true;
  }
  if (auto constant = getConstantIntValue(scalar)) {
    side.constant += times * *constant;
    return std::abs(side.constant) < mostConstant;
  }
  if (loop.isDefinedOutsideOfLoop(scalar)) {
    side.scalars.push_back({scalar, times});
    return true;
  }
  Operation *op = scalar.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return addScalar(op->getOperand(0), times, side) &&
           addScalar(op->getOperand(1), isa<arith::SubIOp>(op) ? -times : times,
                     side);
  auto factor = isa_and_nonnull<arith::MulIOp>(op)
                    ? getConstantIntValue(op->getOperand(1))
                    : std::nullopt;
  return factor && std::abs(*factor) <= mostTimes &&
         addScalar(op->getOperand(0), times * *factor, side);
}

std::optional<Side> Finder::sideOf(Value block) {
  auto type = cast<RankedTensorType>(block.getType());
  Side side;
  for (const LinearTerm &term : getLinearTerms(block)) {
    if (term.block || term.factors.size() > (term.dim < 0 ? 1 : 0) ||
        term.constant < -mostConstant || term.constant > mostConstant)
      return std::nullopt;
    if (term.dim >= 0) {
      int64_t end = term.constant * (type.getDimSize(term.dim) - 1);
      side.least += std::min<int64_t>(end, 0);
      side.most += std::max<int64_t>(end, 0);
    } else if (term.factors.empty()) {
      side.constant += term.constant;
    } else if (!addScalar(term.factors.front(), term.constant, side)) {
      return std::nullopt;
    }
  }
  return side;
}

/// Adds a condition; false: it does not fall with the counter, or holds in no
/// iteration.
bool Finder::add(Side lower, Side upper, int64_t strict) {
  if (lower.counter < 0 || upper.counter > 0 || lower.counter == upper.counter)
    return false;
  // A loop over what lies on the diagonal begins where the condition ends.
  if (lower.scalars.empty() && upper.scalars.size() == 1 &&
      upper.scalars.front() ==
          std::pair(Value(loop.getLowerBound()), int64_t(1)) &&
      upper.constant + upper.least - lower.constant - lower.most < strict)
    return false;
  Condition condition{lower, upper, strict};
  if (!llvm::is_contained(asked.conditions, condition))
    asked.conditions.push_back(condition);
  return true;
}

void Finder::look(arith::CmpIOp compare) {
  using Predicate = arith::CmpIPredicate;
  auto type = dyn_cast<RankedTensorType>(compare.getLhs().getType());
  if (!type || !type.getElementType().isInteger(32))
    return;
  Value lower = compare.getLhs(), upper = compare.getRhs();
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::sgt || predicate == Predicate::sge)
    std::swap(lower, upper);
  else if (predicate != Predicate::slt && predicate != Predicate::sle)
    return;
  bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  auto x = sideOf(lower), y = sideOf(upper);
  if (x && y && add(*x, *y, isStrict))
    asked.compares.insert(compare);
}

void Finder::look(LoadOp load) {
  auto type = cast<RankedTensorType>(load.getType());
  SmallVector<int64_t, 2> whole;
  for (auto [dim, bound] : llvm::zip(load.getBounded(), load.getBounds())) {
    Side lower, upper;
    lower.most = type.getDimSize(dim) - 1;
    if (!load.isClamped(dim) && !load.isBoundedBelow(dim) &&
        addScalar(load.getOffsets()[dim], 1, lower) &&
        addScalar(bound, 1, upper) && add(lower, upper, /*strict=*/1))
      whole.push_back(dim);
  }
  if (!whole.empty())
    asked.loads.push_back({load, whole});
}

/// Whether a mask is true for all elements where the comparisons are.
bool Finder::holds(Value mask) const {
  Operation *op = mask ? mask.getDefiningOp() : nullptr;
  if (!op || asked.compares.contains(op))
    return op;
  if (isa<arith::AndIOp>(op))
    return holds(op->getOperand(0)) && holds(op->getOperand(1));
  return isa<BroadcastOp, ReshapeOp>(op) && holds(op->getOperand(0));
}

Asked Finder::find() {
  loop.getBody()->walk([&](Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      look(compare);
    else if (auto load = dyn_cast<LoadOp>(op))
      look(load);
  });
  loop.getBody()->walk([&](Operation *op) {
    if (auto select = dyn_cast<arith::SelectOp>(op);
        select && holds(select.getCondition()))
      asked.selects.insert(op);
    if (auto load = dyn_cast<LoadScatteredOp>(op);
        load && holds(load.getMask()))
      asked.accesses.insert(op);
    if (auto store = dyn_cast<StoreScatteredOp>(op);
        store && holds(store.getMask()))
      asked.accesses.insert(op);
  });
  return std::move(asked);
}

/// Whether lanes hold an instruction's operands more than once.
static bool holdsCopies(MatrixAttr instruction) {
  const Layout a = toLayout(instruction.getA());
  return llvm::any_of(a.lane(), [](const auto &basis) {
    return llvm::all_of(basis, [](int64_t step) { return step == 0; });
  });
}

/// Whether the selections that go away are worth a second loop, and a lane's
/// program may be so long. Memory is what bounds a loop without dots, and the
/// products are where they are multiply-adds; where lanes hold operands twice,
/// what both loops need is spilled.
static bool isWorthSplitting(scf::ForOp loop, const Asked &asked,
                             const TargetRow &row) {
  int64_t selected = 0, all = 0;
  bool hasDot = false, isMatrix = true;
  loop.getBody()->walk([&](Operation *op) {
    if (auto dot = dyn_cast<DotOp>(op)) {
      hasDot = true;
      isMatrix &= dot.getMatrixAttr() && !holdsCopies(dot.getMatrixAttr());
    }
    auto type = op->getNumResults()
                    ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                    : RankedTensorType();
    if (!type || !isa<FloatType>(type.getElementType()) ||
        !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      return;
    all += type.getNumElements();
    if (asked.selects.contains(op))
      selected += type.getNumElements();
  });
  // Two loops take up to 42 instructions an element (docs/experiments).
  int64_t lanes = loop->getParentOfType<FuncOp>().getBlockSize();
  return hasDot && isMatrix && selected && selected * leastShare >= all &&
         48 * all <= row.most.instructions * lanes;
}

//===----------------------------------------------------------------------===//
// Two loops
//===----------------------------------------------------------------------===//

namespace {

class Splitter : Arithmetic {
public:
  Splitter(scf::ForOp loop, Asked asked, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, loop(loop), asked(std::move(asked)) {}
  void split();

private:
  Value wide(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64);
  }
  Value wide(Value value) {
    return value.getType().isInteger(64)
               ? value
               : arith::ExtSIOp::create(b, b.getI64Type(), value).getResult();
  }
  Value sumOf(const Side &side, int64_t constant);
  Value fits(const Condition &condition);
  Value endOf(const Condition &condition);
  Value moveFactors(scf::ForOp whole);

  scf::ForOp loop;
  Asked asked;
};

} // namespace

Value Splitter::sumOf(const Side &side, int64_t constant) {
  Value sum = wide(side.constant + constant);
  for (auto [scalar, times] : side.scalars)
    sum = add(sum, mul(wide(scalar), wide(times)));
  return sum;
}

/// Whether neither side wraps around in an iteration where the condition holds;
/// null: neither does. The counter is no negative number.
Value Splitter::fits(const Condition &condition) {
  auto isOne = [](const Side &side) {
    return side.scalars.size() == 1 && side.scalars.front().second == 1;
  };
  auto isConstant = [](const Side &side, int64_t end) {
    return side.scalars.empty() && std::abs(side.constant + end) <= INT32_MAX;
  };
  const Side &lower = condition.lower, &upper = condition.upper;
  Value all;
  if (!isConstant(upper, upper.most) &&
      !(isOne(upper) && upper.constant + upper.most <= 0))
    all = compare(Predicate::sle, sumOf(upper, upper.most), wide(INT32_MAX));
  if (!isConstant(lower, lower.least) &&
      !(isOne(lower) && lower.constant + lower.least >= 0))
    all = allOf(all, compare(Predicate::sge, sumOf(lower, lower.least),
                             wide(INT32_MIN)));
  return all;
}

/// The first number that the counter may not be where the condition holds.
Value Splitter::endOf(const Condition &condition) {
  const auto &[lower, upper, strict] = condition;
  Value room =
      sub(sumOf(upper, upper.least), sumOf(lower, lower.most + strict));
  int64_t times = lower.counter - upper.counter;
  room = most(add(room, wide(times)), wide(0));
  if (times != 1)
    room = div(room, wide(times));
  Value fit = fits(condition);
  return fit ? select(fit, room, wide(0)) : room;
}

/// The products that a reduction to a maximum takes; null: it takes no such.
static arith::MulFOp productsOf(ReduceOp reduce) {
  Block &combiner = reduce.getCombiner().front();
  if (reduce.getValues().size() != 1 || combiner.getOperations().size() != 2 ||
      !isa<arith::MaxNumFOp, arith::MaximumFOp>(combiner.front()))
    return {};
  return reduce.getValues().front().getDefiningOp<arith::MulFOp>();
}

/// The scalar that all elements of a block are.
static Value scalarOf(Value block) {
  auto splat = block.getDefiningOp<SplatOp>();
  return splat ? splat.getValue() : Value();
}

/// Makes products with a number of the maximum, in place of the maximum of
/// products. Returns whether all these numbers are positive and finite; null:
/// there are none.
Value Splitter::moveFactors(scf::ForOp whole) {
  Value all;
  whole.getBody()->walk([&](ReduceOp reduce) {
    arith::MulFOp products = productsOf(reduce);
    auto type = dyn_cast<RankedTensorType>(reduce->getResult(0).getType());
    // The product of a narrow type may be rounded elsewhere.
    if (!products || !type || !type.getElementType().isF32() ||
        !llvm::all_of(products->getUsers(), [&](Operation *user) {
          return user == reduce || isa<arith::SubFOp, arith::AddFOp>(user);
        }))
      return;
    for (unsigned side : {1u, 0u}) {
      Value factor = products->getOperand(side), scalar = scalarOf(factor);
      DenseFPElementsAttr constant;
      if (matchPattern(factor, m_Constant(&constant)) && constant.isSplat()) {
        const APFloat number = constant.getSplatValue<APFloat>();
        if (!number.isFiniteNonZero() || number.isNegative())
          continue;
        b.setInsertionPointAfter(reduce);
        scalar = arith::ConstantOp::create(
            b, b.getFloatAttr(type.getElementType(), number));
      } else if (!scalar || !loop.isDefinedOutsideOfLoop(scalar)) {
        continue;
      } else {
        b.setInsertionPoint(whole);
        auto number = [&](double value) {
          return arith::ConstantOp::create(
              b, b.getFloatAttr(scalar.getType(), value));
        };
        Value good = both(compare(FPredicate::OGT, scalar, number(0)),
                          compare(FPredicate::OLT, scalar, number(INFINITY)));
        all = allOf(all, good);
        b.setInsertionPointAfter(reduce);
      }
      Value result = reduce->getResult(0);
      auto product = arith::MulFOp::create(
          b, result, SplatOp::create(b, type, scalar), products.getFastmath());
      result.replaceAllUsesExcept(product, product);
      reduce.getValuesMutable().assign(products->getOperand(1 - side));
      return;
    }
  });
  return all;
}

void Splitter::split() {
  b.setInsertionPoint(loop);
  IRMapping mapping;
  auto whole = cast<scf::ForOp>(b.clone(*loop, mapping));
  auto inWhole = [&](Operation *op) { return mapping.lookup(op); };
  for (Operation *op : asked.selects) {
    auto select = cast<arith::SelectOp>(inWhole(op));
    select.replaceAllUsesWith(select.getTrueValue());
    select.erase();
  }
  for (Operation *op : asked.accesses) {
    if (auto load = dyn_cast<LoadScatteredOp>(inWhole(op))) {
      load.getMaskMutable().clear();
      load.getOtherMutable().clear();
    } else {
      cast<StoreScatteredOp>(inWhole(op)).getMaskMutable().clear();
    }
  }
  for (auto &[op, dims] : asked.loads) {
    auto load = cast<LoadOp>(inWhole(op));
    SmallVector<int64_t> bounded;
    SmallVector<Value> bounds;
    for (auto [dim, bound] : llvm::zip(load.getBounded(), load.getBounds()))
      if (!llvm::is_contained(dims, dim)) {
        bounded.push_back(dim);
        bounds.push_back(bound);
      }
    load.setBounded(bounded);
    load.getBoundsMutable().assign(bounds);
  }
  // Comparisons that others still use are true.
  for (Operation *op : asked.compares) {
    Operation *compare = inWhole(op);
    b.setInsertionPoint(compare);
    auto type = cast<RankedTensorType>(compare->getResult(0).getType());
    compare->getResult(0).replaceAllUsesWith(arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getBoolAttr(true))));
  }
  Value factors = moveFactors(whole);

  b.setInsertionPoint(whole);
  Value first = loop.getLowerBound(), upper = loop.getUpperBound(), end;
  const int64_t step = *getConstantIntValue(loop.getStep());
  for (const Condition &condition : asked.conditions) {
    Value next = endOf(condition);
    end = end ? least(end, next) : next;
  }
  if (factors)
    end = select(factors, end, wide(0));
  // Iterations that begin in front of both ends, but for one that might end
  // beyond the largest number.
  Value room = most(sub(least(end, wide(upper)), wide(first)), wide(0));
  Value count = div(add(room, wide(step - 1)), wide(step));
  Value largest = div(sub(wide(INT32_MAX), wide(first)), wide(step));
  Value length = mul(least(count, largest), wide(step));
  Value middle =
      add(first, arith::TruncIOp::create(b, first.getType(), length));
  // Facts know what is below the program's end.
  whole.setUpperBound(least(middle, upper));
  loop.setLowerBound(middle);
  loop.getInitArgsMutable().assign(whole.getResults());
}

namespace {
struct SplitLoopsPass
    : greta::impl::GretaTileSplitLoopsPassBase<SplitLoopsPass> {
  using GretaTileSplitLoopsPassBase::GretaTileSplitLoopsPassBase;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      auto step = getConstantIntValue(loop.getStep());
      bool isInner = !loop.getBody()
                          ->walk([](LoopLikeOpInterface) {
                            return WalkResult::interrupt();
                          })
                          .wasInterrupted();
      if (isInner && !loop.getUnsignedCmp() && step && *step > 0 &&
          loop.getInductionVar().getType().isInteger(32))
        loops.push_back(loop);
    });
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    if (loops.empty())
      return;
    Facts facts(getOperation());
    std::vector<std::pair<scf::ForOp, Asked>> chosen;
    for (scf::ForOp loop : loops) {
      Asked asked = Finder(loop).find();
      if (isWorthSplitting(loop, asked, *row) &&
          facts.isNatural(loop.getLowerBound()))
        chosen.push_back({loop, std::move(asked)});
    }
    for (auto &[loop, asked] : chosen) {
      ImplicitLocOpBuilder b(loop.getLoc(), loop);
      Splitter(loop, std::move(asked), b).split();
    }
  }
};
} // namespace
