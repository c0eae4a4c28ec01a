//===- RaiseAccesses.cpp - greta-tile-raise-accesses ----------------------===//
//
// In: accesses through blocks of pointers, one by one. Out: where an address is
// one pointer and a stride for each dimension, and the mask bounds indices
// below or above, or asks something of the whole block,
// strided accesses, of which later passes know all that there is to know: one
// uniform base, bounds that hold for a whole row, lane offsets of 32 bits.
//
//   %p = ptr_add %x, %rows * %stride + %columns    %rows = %first + iota 0
//   %v = load_scattered %p mask (%rows < %m and %columns < %n)
//     →  %v = load %x[%first, 0] strides [?, 1] (%stride) bounds [0, 1] (%m,
//     %n)
//
// A program that loads from a place of its own where it wants zeros lets the
// load have the condition as its mask, if its argument reaches less than 2^31
// bytes, so that the target's loads bring zeros:
//
//   %p = ptr_add %x, (select %c, %i, 0)
//   %v = select %c, (load_scattered %p), 0
//     →  %v = load_scattered (ptr_add %x, %i) mask %c
//
// Loads are raised where the kernel does not write what they load
// (AccessOrder.h) and a loop takes them for its dots, or their argument is
// readonly; stores are raised in kernels with dots.
//
// On a target whose loads have no masks, a strided load needs that its block
// begins within its bounds, or a branch stands around it. If that is not known,
// the loop itself gets the branch, if nothing but stores takes what it computes
// and each of them is masked off where the block begins outside:
//
//   %s = scf.for .. iter_args(%c = %zero) { %v = load .. mask %rows < %m }
//   store_scattered %s, .. mask %rows < %m
//     →  %s = scf.if %first < %m { scf.for } else { %zero }
//
// An i32 stride of the program has a sign, one of a strided access has none:
// it has to be known not to be negative, by what the launch computes, or by
// an `assume`, as Triton's tutorials have it. As products that make an address
// do not overflow (ptr_add), a lane's part of them is below 2^31 elements then,
// which for two bytes each is below the 2^32 bytes that lane offsets reach.
// For a product of 64 bits the stride's range has to say so. Targets whose
// loads have no masks take other i32 strides, too: the access is `wide`.
// Pointers are faster there than wide accesses without a mask, and for dots
// that become multiply-adds.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LinearAddress.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Tile/AccessOrder.h"
#include "greta/Tile/Arithmetic.h"
#include "greta/Tile/LoopBody.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILERAISEACCESSESPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// The operands of a greta_tile.load or store.
struct Strided {
  Value base;
  SmallVector<Value> offsets, dynamicStrides, bounds;
  SmallVector<int64_t> strides, bounded, nonnegative;
  bool isWide = false; // a stride may be negative, or too large for 32 bits
};

/// The bounds of one dimension by a mask: below <= index + offset < end.
struct Bounds {
  std::optional<SmallVector<LinearTerm, 2>> offset;
  Value end; // null: none
  bool fromZero = false;
};

} // namespace

/// Returns the dots of the loop around a load.
static SmallVector<DotOp> dotsAround(LoadScatteredOp load) {
  SmallVector<DotOp> dots;
  if (auto loop = load->getParentOfType<scf::ForOp>())
    loop.walk([&](DotOp dot) { dots.push_back(dot); });
  return dots;
}

/// Whether raising a load pays: its argument is readonly, or a loop around it
/// has a dot.
static bool isWorthRaising(LoadScatteredOp load) {
  BlockArgument argument = argumentOf(load.getPointers());
  return (argument && load->getParentOfType<FuncOp>().getArgAttr(
                          argument.getArgNumber(), readonlyName)) ||
         !dotsAround(load).empty();
}

/// Whether all that dots without an instruction multiply may be loaded for the
/// transposed one, which takes few rows (greta-tile-schedule): along K, or
/// without a mask. For other such dots pointers are faster on targets whose
/// loads have no masks.
static bool haveInstructions(ArrayRef<DotOp> dots, const Facts &facts) {
  auto isFit = [&](Value operand, unsigned kDim) {
    auto load = operand.getDefiningOp<LoadScatteredOp>();
    return load &&
           (!load.getMask() ||
            facts.vectorWidth(load.getPointers(), load.getMask(), kDim) > 1);
  };
  return llvm::all_of(dots, [&](DotOp dot) {
    unsigned rank = dot.getA().getType().getRank();
    return dot.getMatrixAttr() ||
           (isFit(dot.getA(), rank - 1) && isFit(dot.getB(), rank - 2));
  });
}

/// Adds up uniform terms with 64 bits; null: there are none.
static Value sumOf(ArrayRef<LinearTerm> terms, Arithmetic &a) {
  Value sum;
  for (const LinearTerm &term : terms) {
    Value product =
        arith::ConstantIntOp::create(a.b, a.b.getI64Type(), term.constant);
    for (Value factor : term.factors) {
      if (!factor.getType().isInteger(64))
        factor = arith::ExtSIOp::create(a.b, a.b.getI64Type(), factor);
      product = a.mul(factor, product);
    }
    sum = sum ? a.add(sum, product) : product;
  }
  return sum;
}

/// Whether a lane's part of an address, in bytes, is not negative and has 32
/// bits at the place of the access.
static bool fits(const LinearTerm &stride, int64_t extent, int64_t bytes,
                 const Facts &facts, Operation *access) {
  const int64_t most = UINT32_MAX / (bytes * extent);
  if (stride.constant < 0 || stride.constant > most)
    return false;
  int64_t largest = stride.constant;
  for (Value factor : stride.factors) {
    auto range = facts.rangeOf(factor);
    if (!factor.getType().isInteger(32) || !range ||
        !(range->first >= 0 || facts.isBelow(/*0*/ Value(), factor, access)))
      return false;
    largest = std::min<uint64_t>(
        INT64_MAX, llvm::SaturatingMultiply<uint64_t>(largest, range->second));
  }
  return stride.factors.empty() || (bytes <= 2 && !stride.isWide) ||
         largest <= most;
}

/// Adds up terms as i32, as the program does; null: there are none, or one has
/// more bits.
static Value narrowSum(ArrayRef<LinearTerm> terms, Arithmetic &a) {
  auto one = dyn_cast_or_null<IntegerType>(terms.size() == 1 && terms[0].scalar
                                               ? terms[0].scalar.getType()
                                               : Type());
  if (one)
    return one.isInteger(32) ? terms[0].scalar : Value();
  Value sum;
  for (const LinearTerm &term : terms) {
    Value product = a.i32(term.constant);
    for (Value factor : term.factors) {
      if (!factor.getType().isInteger(32))
        return {};
      product = a.b.createOrFold<arith::MulIOp>(factor, product);
    }
    sum = sum ? a.b.createOrFold<arith::AddIOp>(sum, product) : product;
  }
  return sum ? sum : a.i32(0);
}

static bool areAlike(ArrayRef<LinearTerm> x, ArrayRef<LinearTerm> y) {
  return std::is_permutation(x.begin(), x.end(), y.begin(), y.end(),
                             [](const LinearTerm &p, const LinearTerm &q) {
                               return p.constant == q.constant &&
                                      p.factors == q.factors;
                             });
}

/// Returns the bounds of each dimension that a mask consists of. A condition of
/// the whole block becomes part of one of them. None: the mask has other
/// conditions.
static std::optional<SmallVector<Bounds>>
boundsOf(Value mask, ArrayRef<int64_t> shape, const Facts &facts, Operation *op,
         Arithmetic &a) {
  SmallVector<Bounds> dims(shape.size());
  if (!mask)
    return dims;
  auto all = getMaskBounds(mask);
  if (!all)
    return std::nullopt;
  for (const MaskBound &bound : all->bounds) {
    Bounds &dim = dims[bound.dim];
    if (dim.offset && !areAlike(*dim.offset, bound.offset))
      return std::nullopt;
    dim.offset = bound.offset;
    if (bound.kind != MaskBound::Kind::Below)
      dim.fromZero = true;
    if (bound.kind == MaskBound::Kind::Nonnegative)
      continue;
    Value end = narrowSum(bound.bound, a);
    if (dim.end || !end)
      return std::nullopt;
    // An unsigned bound that is no negative number is two signed ones.
    bool isNatural = getConstantIntValue(end).value_or(-1) >= 0 ||
                     facts.isNatural(end) ||
                     facts.isBelow(/*0*/ Value(), end, op);
    if (bound.kind == MaskBound::Kind::Unsigned && !isNatural)
      return std::nullopt;
    dim.end = end;
  }
  for (auto [dim, extent] : llvm::zip(dims, shape)) {
    if (!dim.offset)
      continue;
    Value offset = narrowSum(*dim.offset, a);
    if (!offset)
      return std::nullopt;
    if (!dim.end)
      dim.end = a.add(offset, a.i32(extent));
  }
  if (all->conditions.empty())
    return dims;
  // Nothing is below the bound where a condition does not hold.
  auto found = llvm::find_if(dims, [](const Bounds &dim) { return dim.end; });
  Bounds &dim = found == dims.end() ? dims.front() : *found;
  if (!dim.offset)
    dim = {SmallVector<LinearTerm, 2>(), a.i32(shape.front()), false};
  Value none = dim.fromZero ? a.i32(0) : narrowSum(*dim.offset, a);
  for (Value condition : all->conditions)
    dim.end = a.select(condition, dim.end, none);
  return dims;
}

/// Returns a strided access of these pointers. If `mayBeWide`, strides may be
/// negative. None: it is no such access.
static std::optional<Strided> asStrided(Value pointers, Value mask,
                                        bool mayBeWide, const Facts &facts,
                                        Operation *op, Arithmetic &a) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  Type element = getPointee(pointers.getType());
  if (!type || isa<PtrType>(getElementTypeOrSelf(element)) ||
      getElementTypeOrSelf(element).isInteger(1))
    return std::nullopt;
  LinearAddress address = getLinearAddress(pointers);
  if (!address.hasUniformBase())
    return std::nullopt;
  SmallVector<LinearTerm> along(type.getRank(), LinearTerm{0, {}, -1, {}, {}});
  SmallVector<LinearTerm> uniform;
  for (const LinearTerm &term : address.terms) {
    if (term.block)
      return std::nullopt;
    if (term.dim < 0)
      uniform.push_back(term);
    else if (!along[term.dim].constant)
      along[term.dim] = term;
    else if (along[term.dim].factors == term.factors)
      along[term.dim].constant += term.constant;
    else
      return std::nullopt;
  }
  int64_t bytes = bytesInMemory(getElementTypeOrSelf(element));
  bool isWide = false;
  for (auto [stride, extent] : llvm::zip(along, type.getShape())) {
    if (fits(stride, extent, bytes, facts, op))
      continue;
    if (!mayBeWide || stride.isWide || stride.factors.empty() ||
        llvm::any_of(stride.factors,
                     [](Value v) { return !v.getType().isInteger(32); }))
      return std::nullopt;
    isWide = true;
  }

  auto bounds = boundsOf(mask, type.getShape(), facts, op, a);
  if (!bounds)
    return std::nullopt;
  Strided access;
  access.isWide = isWide;
  for (auto [number, dim, stride] : llvm::enumerate(*bounds, along)) {
    access.offsets.push_back(dim.offset ? narrowSum(*dim.offset, a) : a.i32(0));
    if (!dim.offset)
      continue;
    access.bounded.push_back(number);
    access.bounds.push_back(dim.end);
    if (dim.fromZero)
      access.nonnegative.push_back(number);
    // The offset's part of the address goes to the dimension that the bound
    // asks for.
    for (LinearTerm part : *dim.offset) {
      part.constant *= -stride.constant;
      llvm::append_range(part.factors, stride.factors);
      auto cancels = [&](const LinearTerm &term) {
        return term.constant == -part.constant &&
               std::is_permutation(term.factors.begin(), term.factors.end(),
                                   part.factors.begin(), part.factors.end());
      };
      if (auto found = llvm::find_if(uniform, cancels); found != uniform.end())
        uniform.erase(found);
      else
        uniform.push_back(part);
    }
  }
  for (const LinearTerm &stride : along) {
    access.strides.push_back(stride.factors.empty() ? stride.constant
                                                    : ShapedType::kDynamic);
    if (!stride.factors.empty())
      access.dynamicStrides.push_back(stride.factors.size() == 1 &&
                                              stride.constant == 1
                                          ? stride.factors.front()
                                          : narrowSum(stride, a));
  }
  access.base = address.base;
  if (Value sum = sumOf(uniform, a))
    access.base = PtrAddOp::create(a.b, access.base, sum);
  return access;
}

static bool isZero(Value block) {
  return matchPattern(block, m_PosZeroFloat()) || matchPattern(block, m_Zero());
}

/// Returns the number that all elements of a block are, null for zero; none:
/// they may differ.
static std::optional<Value> splatOf(Value block) {
  if (!block || isZero(block))
    return Value();
  if (auto splat = block.getDefiningOp<SplatOp>())
    return splat.getValue();
  return std::nullopt;
}

/// Returns the value that `block` is a broadcast of. `isAlone` becomes false if
/// a value on the way has several uses.
static Value withoutBroadcasts(Value block, bool &isAlone) {
  isAlone &= block.hasOneUse();
  while (auto broadcast = block.getDefiningOp<BroadcastOp>()) {
    block = broadcast.getValue();
    isAlone &= block.hasOneUse();
  }
  return block;
}

static Value withoutBroadcasts(Value block) {
  bool isAlone = true;
  return withoutBroadcasts(block, isAlone);
}

/// Returns the selection that makes an offset zero where `condition` does not
/// hold, if `pointers` are an argument that reaches little plus offsets, and
/// the offset has no other use; null: there is none.
static arith::SelectOp zeroWithout(Value condition, Value pointers) {
  arith::SelectOp found;
  bool isAlone = true;
  pointers = withoutBroadcasts(pointers, isAlone);
  while (auto add = pointers.getDefiningOp<PtrAddOp>()) {
    bool isOwn = isAlone;
    auto select = withoutBroadcasts(add.getOffset(), isOwn)
                      .getDefiningOp<arith::SelectOp>();
    if (select && isOwn && isZero(select.getFalseValue()) &&
        withoutBroadcasts(select.getCondition()) ==
            withoutBroadcasts(condition))
      found = select;
    pointers = withoutBroadcasts(add.getBase(), isAlone);
  }
  return hasPointerRange(dyn_cast<BlockArgument>(pointers)) ? found : nullptr;
}

/// Replaces a load, and a selection of zeros behind it, by a load with the
/// selection's condition as its mask.
static void maskLoad(arith::SelectOp select) {
  auto load = select.getTrueValue().getDefiningOp<LoadScatteredOp>();
  if (!load || load.getMask() || !load->hasOneUse() ||
      !isa<RankedTensorType>(select.getCondition().getType()) ||
      !isZero(select.getFalseValue()))
    return;
  arith::SelectOp offset =
      zeroWithout(select.getCondition(), load.getPointers());
  if (!offset)
    return;
  // The load stays in its place, where only the offset's condition is known.
  OpBuilder b(load);
  Value mask = withoutBroadcasts(offset.getCondition());
  Type type = select.getCondition().getType();
  if (mask.getType() != type)
    mask = BroadcastOp::create(b, load.getLoc(), type, mask);
  offset.replaceAllUsesWith(offset.getTrueValue());
  offset.erase();
  Value masked = LoadScatteredOp::create(b, load.getLoc(), select.getType(),
                                         load.getPointers(), mask, Value());
  select.replaceAllUsesWith(masked);
  select.erase();
  load.erase();
}

namespace {
/// A block begins below an upper bound.
struct Begin {
  Value offset, bound;
  MaskBound said;
};
} // namespace

/// Returns what is not known of a load's block: that it begins below its upper
/// bounds, and none of it is below zero.
static SmallVector<Begin, 2> unknownBegins(const Strided &access, Value mask,
                                           const Facts &facts,
                                           Operation *load) {
  SmallVector<Begin, 2> begins;
  for (auto [dim, bound] : llvm::zip(access.bounded, access.bounds)) {
    // A zero that this pass made has no facts.
    Value offset = access.offsets[dim];
    Value known = matchPattern(offset, m_Zero()) ? Value() : offset;
    bool isNatural = !llvm::is_contained(access.nonnegative, dim) || !known ||
                     facts.isNatural(known);
    if (isNatural && facts.isBelow(known, bound, load))
      continue;
    Begin begin{offset, bound, {}};
    for (const MaskBound &said : getMaskBounds(mask)->bounds)
      if (said.dim == dim && isNatural)
        begin.said = said;
    if (!isNatural)
      begin.said.kind = MaskBound::Kind::Nonnegative;
    begins.push_back(begin);
  }
  return begins;
}

/// Whether a mask is false everywhere unless a block begins so.
static bool asksFor(Value mask, const Begin &begin) {
  auto all = mask ? getMaskBounds(mask) : std::nullopt;
  return all && llvm::any_of(all->bounds, [&](const MaskBound &one) {
           return one.kind == MaskBound::Kind::Below &&
                  begin.said.kind == MaskBound::Kind::Below &&
                  areAlike(one.offset, begin.said.offset) &&
                  areAlike(one.bound, begin.said.bound);
         });
}

/// Whether nothing but stores takes what a loop computes, none of which writes
/// anything unless a block begins so.
static bool storesOnlyIf(scf::ForOp loop, const Begin &begin) {
  if (!loop.isDefinedOutsideOfLoop(begin.offset) ||
      !loop.isDefinedOutsideOfLoop(begin.bound) || writesMemory(loop))
    return false;
  SmallVector<Operation *> users(loop->getUsers());
  llvm::SmallDenseSet<Operation *> seen;
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (!seen.insert(user).second)
      continue;
    if (auto store = dyn_cast<StoreScatteredOp>(user)) {
      if (!asksFor(store.getMask(), begin))
        return false;
      continue;
    }
    if (!isMemoryEffectFree(user) || user->getNumRegions() ||
        user->hasTrait<OpTrait::IsTerminator>())
      return false;
    llvm::append_range(users, user->getUsers());
  }
  return true;
}

/// Lets a loop run only where blocks begin so; else its results are its initial
/// values.
static void runOnlyIf(scf::ForOp loop, ArrayRef<Begin> begins) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Arithmetic a{b};
  Value condition;
  for (const Begin &begin : begins)
    condition = a.allOf(condition, a.below(begin.offset, begin.bound));
  auto branch = scf::IfOp::create(b, loop.getResultTypes(), condition,
                                  /*withElseRegion=*/true);
  loop.replaceAllUsesWith(branch.getResults());
  OpBuilder then = branch.getThenBodyBuilder(),
            otherwise = branch.getElseBodyBuilder();
  loop->moveBefore(
      scf::YieldOp::create(then, loop.getLoc(), loop.getResults()));
  scf::YieldOp::create(otherwise, loop.getLoc(), loop.getInitArgs());
}

namespace {
struct RaiseAccessesPass
    : greta::impl::GretaTileRaiseAccessesPassBase<RaiseAccessesPass> {
  using GretaTileRaiseAccessesPassBase::GretaTileRaiseAccessesPassBase;

  /// Replaces a load by a strided one, if it can be one, and if its lanes need
  /// no branch in a loop on a target whose loads have no masks.
  void raise(LoadScatteredOp load, const Facts &facts) {
    std::optional<Value> other = splatOf(load.getOther());
    if (!other)
      return;
    ImplicitLocOpBuilder b(load.getLoc(), load);
    Arithmetic a{b};
    auto access = asStrided(load.getPointers(), load.getMask(), !masksLoads,
                            facts, load, a);
    if (!access)
      return;
    if (!masksLoads) {
      // Without a mask pointers of unknown strides are faster.
      if (access->isWide && !load.getMask() &&
          llvm::all_of(dotsAround(load),
                       [](DotOp dot) { return dot.getMatrixAttr(); }))
        return;
      auto begins = unknownBegins(*access, load.getMask(), facts, load);
      auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
      if (!llvm::all_of(begins, [&](const Begin &begin) {
            return loop && storesOnlyIf(loop, begin);
          }))
        return;
      if (!begins.empty())
        llvm::append_range(limited[loop], begins);
    }
    auto raised = LoadOp::create(
        b, load.getResult().getType(), access->base, access->offsets,
        access->dynamicStrides, access->bounds, *other, access->strides,
        access->bounded, ArrayRef<int64_t>(), access->nonnegative);
    raised.setWide(access->isWide);
    load.replaceAllUsesWith(raised.getResult());
    load.erase();
  }

  void raise(StoreScatteredOp store, const Facts &facts) {
    ImplicitLocOpBuilder b(store.getLoc(), store);
    Arithmetic a{b};
    auto access = asStrided(store.getPointers(), store.getMask(), !masksLoads,
                            facts, store, a);
    if (!access)
      return;
    StoreOp::create(b, store.getValue(), access->base, access->offsets,
                    access->dynamicStrides, access->bounds, access->strides,
                    access->bounded,
                    access->nonnegative.empty()
                        ? DenseI64ArrayAttr()
                        : b.getDenseI64ArrayAttr(access->nonnegative),
                    access->isWide);
    store.erase();
  }

  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    masksLoads = row->masksLoads();
    limited.clear();
    SmallVector<arith::SelectOp> selects;
    getOperation().walk([&](arith::SelectOp op) { selects.push_back(op); });
    llvm::for_each(selects, maskLoad);
    Facts facts(getOperation());
    AccessOrder order(getOperation(), facts);
    SmallVector<LoadScatteredOp> loads;
    SmallVector<StoreScatteredOp> stores;
    bool hasDot = false;
    auto isForDots = [&](LoadScatteredOp load) {
      SmallVector<DotOp> dots = dotsAround(load);
      return !dots.empty() && haveInstructions(dots, facts);
    };
    getOperation().walk([&](Operation *op) {
      hasDot |= isa<DotOp>(op);
      // A strided load reads a row within its bounds for each that is beyond
      // them, and drops it. A lane that stores to that row would race with it.
      if (auto load = dyn_cast<LoadScatteredOp>(op);
          load && isWorthRaising(load) && !order.isWritten(load) &&
          (masksLoads || isForDots(load)))
        loads.push_back(load);
      if (auto store = dyn_cast<StoreScatteredOp>(op))
        stores.push_back(store);
    });
    for (LoadScatteredOp load : loads)
      raise(load, facts);
    if (hasDot)
      for (StoreScatteredOp store : stores)
        raise(store, facts);
    for (auto &[loop, begins] : limited)
      runOnlyIf(loop, begins);
  }

private:
  bool masksLoads = false;
  /// Loops whose loads need that blocks begin so.
  llvm::MapVector<scf::ForOp, SmallVector<Begin, 2>> limited;
};
} // namespace
