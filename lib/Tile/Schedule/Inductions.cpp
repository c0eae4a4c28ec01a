//===- Inductions.cpp - greta-tile-inductions -----------------------------===//
//
// In: a block program whose loops carry integers and pointers from iteration to
// iteration. Out: what advances by the same amount each iteration is computed
// from the iteration's number, so that an address is a base, what is uniform
// and an index, and nothing of it stays in registers; and loops that count
// blocks count elements, so that what is known of their counter is known of the
// elements.
//
//   scf.for %i = 0 to (K + 31) / 32 iter_args(%p = %p0) {
//     .. %i * 32 .. ; %n = ptr_add %p, splat(%s); yield %n }
//     →  scf.for %k = 0 to K step 32 {
//          .. %k ..  ;  %p = ptr_add %p0, splat(%k / 32 * %s) }
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Passes.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEINDUCTIONSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Returns K if a number is (K + size - 1) / size; else null.
static Value roundedUp(Value count, int64_t size) {
  auto divide = count.getDefiningOp();
  if (!isa_and_nonnull<arith::DivSIOp>(divide) ||
      getConstantIntValue(divide->getOperand(1)) != size)
    return {};
  auto add = divide->getOperand(0).getDefiningOp<arith::AddIOp>();
  return add && getConstantIntValue(add.getRhs()) == size - 1 ? add.getLhs()
                                                              : Value();
}

/// Makes a loop that counts blocks of a fixed size count elements.
static void countElements(scf::ForOp loop) {
  if (getConstantIntValue(loop.getLowerBound()) != 0 ||
      getConstantIntValue(loop.getStep()) != 1)
    return;
  Value block = loop.getInductionVar();
  for (Operation *user : block.getUsers()) {
    auto multiply = dyn_cast<arith::MulIOp>(user);
    std::optional<int64_t> size =
        multiply ? getConstantIntValue(multiply.getRhs()) : std::nullopt;
    if (!size || *size < 2)
      continue;
    Value elements = roundedUp(loop.getUpperBound(), *size);
    if (!elements)
      continue;
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value step = arith::ConstantIntOp::create(b, block.getType(), *size);
    loop.setUpperBound(elements);
    loop.setStep(step);
    b.setInsertionPointToStart(loop.getBody());
    auto number = arith::DivSIOp::create(b, block, step);
    block.replaceAllUsesExcept(number, number);
    for (Operation *other : llvm::make_early_inc_range(number->getUsers()))
      if (isa<arith::MulIOp>(other) &&
          getConstantIntValue(other->getOperand(1)) == *size)
        other->getResult(0).replaceAllUsesWith(block);
    return;
  }
}

namespace {

/// The increment of a value in each iteration: a constant and an integer,
/// either of which may be missing.
struct Growth {
  int64_t constant = 1;
  Value factor;
};

} // namespace

/// Returns an integer from outside of the loop that all elements share.
static std::optional<Growth> growthOf(Value value, scf::ForOp loop) {
  if (!loop.isDefinedOutsideOfLoop(value))
    return std::nullopt;
  if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
    DenseIntElementsAttr splat;
    if (matchPattern(value, m_Constant(&splat)) && splat.isSplat())
      return Growth{splat.getSplatValue<APInt>().getSExtValue(), {}};
    auto op = value.getDefiningOp();
    if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(op))
      return growthOf(op->getOperand(0), loop);
    return std::nullopt;
  }
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Growth{*constant, {}};
  if (auto multiply = value.getDefiningOp<arith::MulIOp>())
    if (std::optional<int64_t> constant =
            getConstantIntValue(multiply.getRhs()))
      return Growth{*constant, multiply.getLhs()};
  return Growth{1, value};
}

/// Returns the growth of a carried value; none: it changes otherwise.
static std::optional<Growth> growthOf(BlockArgument carried, scf::ForOp loop) {
  Operation *next =
      loop.getTiedLoopYieldedValue(carried)->get().getDefiningOp();
  if (!isa_and_nonnull<PtrAddOp, arith::AddIOp, arith::SubIOp>(next) ||
      next->getOperand(0) != carried)
    return std::nullopt;
  std::optional<Growth> growth = growthOf(next->getOperand(1), loop);
  if (growth && isa<arith::SubIOp>(next))
    growth->constant = -growth->constant;
  return growth;
}

/// Computes a carried value from the iteration's number; the argument is
/// carried unchanged then, and canonicalisation removes it.
static void compute(BlockArgument carried, const Growth &growth,
                    scf::ForOp loop) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Arithmetic a{b};
  b.setInsertionPointToStart(loop.getBody());
  bool isPointer = isa<PtrType>(getElementTypeOrSelf(carried.getType()));
  Type type =
      isPointer ? b.getI64Type() : getElementTypeOrSelf(carried.getType());
  auto resized = [&](Value value) -> Value {
    unsigned from = value.getType().getIntOrFloatBitWidth();
    unsigned to = type.getIntOrFloatBitWidth();
    return from < to   ? arith::ExtSIOp::create(b, type, value).getResult()
           : from > to ? arith::TruncIOp::create(b, type, value).getResult()
                       : value;
  };
  Value count = loop.getInductionVar(), lower = loop.getLowerBound();
  if (getConstantIntValue(lower) != 0)
    count = a.sub(count, lower);
  // Whole multiples of the step are of the iteration's number.
  int64_t constant = growth.constant;
  auto step = getConstantIntValue(loop.getStep());
  if (step && constant % *step == 0)
    constant /= *step;
  else
    count = arith::DivSIOp::create(b, count, loop.getStep());
  Value offset = resized(count);
  if (growth.factor)
    offset = a.mul(offset, resized(growth.factor));
  if (constant != 1)
    offset = a.mul(offset, arith::ConstantIntOp::create(b, type, constant));
  Value now;
  if (isPointer)
    now = PtrAddOp::create(b, carried, offset);
  auto blocks = dyn_cast<RankedTensorType>(carried.getType());
  if (!isPointer) {
    if (blocks)
      offset = SplatOp::create(b, blocks, offset);
    now = a.add(carried, offset);
  }
  carried.replaceAllUsesExcept(now, now.getDefiningOp());
  loop.getTiedLoopYieldedValue(carried)->set(carried);
}

namespace {
struct InductionsPass
    : greta::impl::GretaTileInductionsPassBase<InductionsPass> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      if (loop.getInductionVar().getType().isIndex())
        return;
      countElements(loop);
      for (BlockArgument carried : loop.getRegionIterArgs())
        // The value that is left at the end would have to be computed as well.
        if (loop.getTiedLoopResult(carried).use_empty())
          if (std::optional<Growth> growth = growthOf(carried, loop))
            compute(carried, *growth, loop);
    });
  }
};
} // namespace
