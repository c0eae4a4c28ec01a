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
// An i32 stride of the program has a sign, one of a strided access has none:
// it has to be known not to be negative, by what the launch computes, or by
// an `assume`, as Triton's tutorials have it. As products that make an address
// do not overflow (ptr_add), a lane's part of them is below 2^31 elements then,
// which for two bytes each is below the 2^32 bytes that lane offsets reach.
// For a product of 64 bits the stride's range has to say so.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LinearAddress.h"
#include "greta/Passes.h"
#include "greta/Tile/AccessOrder.h"
#include "greta/Tile/Arithmetic.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

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
};

/// The bounds of one dimension by a mask: below <= index + offset < end.
struct Bounds {
  std::optional<SmallVector<LinearTerm, 2>> offset;
  Value end; // null: none
  bool fromZero = false;
};

} // namespace

/// Whether raising a load pays: its argument is readonly, or a loop around it
/// has a dot.
static bool isWorthRaising(LoadScatteredOp load) {
  if (BlockArgument argument = argumentOf(load.getPointers()))
    if (load->getParentOfType<FuncOp>().getArgAttr(argument.getArgNumber(),
                                                   readonlyName))
      return true;
  auto loop = load->getParentOfType<scf::ForOp>();
  return loop && loop->walk([](DotOp) { return WalkResult::interrupt(); })
                     .wasInterrupted();
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
    auto range = facts.rangeOf(end);
    bool isNatural = getConstantIntValue(end).value_or(-1) >= 0 ||
                     (range && range->first >= 0) ||
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

static std::optional<Strided> asStrided(Value pointers, Value mask,
                                        const Facts &facts, Operation *op,
                                        Arithmetic &a) {
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
  for (auto [stride, extent] : llvm::zip(along, type.getShape()))
    if (!fits(stride, extent, bytes, facts, op))
      return std::nullopt;

  auto bounds = boundsOf(mask, type.getShape(), facts, op, a);
  if (!bounds)
    return std::nullopt;
  Strided access;
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
struct RaiseAccessesPass
    : greta::impl::GretaTileRaiseAccessesPassBase<RaiseAccessesPass> {
  void runOnOperation() override {
    SmallVector<arith::SelectOp> selects;
    getOperation().walk([&](arith::SelectOp op) { selects.push_back(op); });
    llvm::for_each(selects, maskLoad);
    Facts facts(getOperation());
    AccessOrder order(getOperation(), facts);
    llvm::DenseSet<Operation *> written;
    SmallVector<Operation *> accesses;
    bool hasDot = false;
    getOperation().walk([&](Operation *op) {
      hasDot |= isa<DotOp>(op);
      if (isa<LoadScatteredOp, StoreScatteredOp>(op))
        accesses.push_back(op);
      if (isa<LoadScatteredOp>(op) && order.isWritten(op))
        written.insert(op);
    });
    for (Operation *op : accesses) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Arithmetic a{b};
      if (auto load = dyn_cast<LoadScatteredOp>(op)) {
        // Beyond its bounds a strided load reads a row within them and drops
        // it, which would be a race with a lane that stores there.
        if (!isWorthRaising(load) || written.contains(op))
          continue;
        std::optional<Value> other = splatOf(load.getOther());
        auto access =
            other ? asStrided(load.getPointers(), load.getMask(), facts, op, a)
                  : std::nullopt;
        if (!access)
          continue;
        load.replaceAllUsesWith(
            LoadOp::create(
                b, load.getResult().getType(), access->base, access->offsets,
                access->dynamicStrides, access->bounds, *other, access->strides,
                access->bounded, ArrayRef<int64_t>(), access->nonnegative)
                .getResult());
        load.erase();
      } else {
        auto store = cast<StoreScatteredOp>(op);
        if (!hasDot)
          continue;
        auto access =
            asStrided(store.getPointers(), store.getMask(), facts, op, a);
        if (!access)
          continue;
        StoreOp::create(b, store.getValue(), access->base, access->offsets,
                        access->dynamicStrides, access->bounds, access->strides,
                        access->bounded,
                        access->nonnegative.empty()
                            ? DenseI64ArrayAttr()
                            : b.getDenseI64ArrayAttr(access->nonnegative));
        store.erase();
      }
    }
  }
};
} // namespace
