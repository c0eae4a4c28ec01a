//===- RaiseAccesses.cpp - greta-tile-raise-accesses ----------------------===//
//
// In: accesses through blocks of pointers, one by one. Out: where an address is
// one pointer and a stride for each dimension, and the mask bounds indices,
// strided accesses, of which later passes know all that there is to know: one
// uniform base, bounds that hold for a whole row, lane offsets of 32 bits.
//
//   %p = ptr_add %x, %rows * %stride + %columns    %rows = %first + iota 0
//   %v = load_scattered %p mask (%rows < %m and %columns < %n)
//     →  %v = load %x[%first, 0] strides [?, 1] (%stride) bounds [0, 1] (%m,
//     %n)
//
// Loads are raised where the kernel does not write what they load
// (AccessOrder.h) and a loop takes them for its dots, or their argument is
// readonly; stores are raised in kernels with dots.
//
// An i32 stride of the program has a sign, one of a strided access has none:
// it has to be known not to be negative, by what the launch computes, or by
// an `assume`, as Triton's tutorials have it. As products that make an address
// do not overflow (ptr_add), a lane's part of them is below 2^31 elements then,
// which for two bytes each is below the 2^32 bytes that lane offsets reach. Of
// a product of 64 bits the stride's range has to say so.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LinearAddress.h"
#include "greta/Passes.h"
#include "greta/Tile/AccessOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILERAISEACCESSESPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// An access as greta_tile.load and store have it.
struct Strided {
  Value base;
  SmallVector<Value> offsets, dynamicStrides, bounds;
  SmallVector<int64_t> strides, bounded;
};

} // namespace

/// Whether a load's argument is readonly, or a loop around it has a dot, where
/// masks that are bounds are worth most.
static bool isWorthRaising(LoadScatteredOp load) {
  if (BlockArgument argument = argumentOf(load.getPointers()))
    if (load->getParentOfType<FuncOp>().getArgAttr(argument.getArgNumber(),
                                                   readonlyName))
      return true;
  auto loop = load->getParentOfType<scf::ForOp>();
  return loop && loop->walk([](DotOp) { return WalkResult::interrupt(); })
                     .wasInterrupted();
}

/// The sum of uniform terms, with 64 bits; null: nothing.
static Value sumOf(ArrayRef<LinearTerm> terms, ImplicitLocOpBuilder &b) {
  Value sum;
  for (const LinearTerm &term : terms) {
    Value product =
        arith::ConstantIntOp::create(b, b.getI64Type(), term.constant);
    for (Value factor : term.factors) {
      if (!factor.getType().isInteger(64))
        factor = arith::ExtSIOp::create(b, b.getI64Type(), factor);
      product = arith::MulIOp::create(b, factor, product);
    }
    sum = sum ? arith::AddIOp::create(b, sum, product).getResult() : product;
  }
  return sum;
}

/// Whether a lane's part of an address is a natural number of 32 bits, in
/// bytes, where the access stands.
static bool fits(const LinearTerm &stride, int64_t extent, int64_t bytes,
                 const Facts &facts, Operation *access) {
  const int64_t most = UINT32_MAX / (bytes * extent);
  if (stride.factors.empty())
    return stride.constant >= 0 && stride.constant <= most;
  Value factor = stride.factors.front();
  auto range = facts.rangeOf(factor);
  return stride.constant == 1 && stride.factors.size() == 1 &&
         factor.getType().isInteger(32) && range &&
         (range->first >= 0 || facts.isBelow(/*0*/ Value(), factor, access)) &&
         ((bytes <= 2 && !stride.isWide) || range->second <= most);
}

static std::optional<Strided> asStrided(Value pointers, Value mask,
                                        const Facts &facts, Operation *op,
                                        ImplicitLocOpBuilder &b) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  Type element = getPointee(pointers.getType());
  if (!type || isa<PtrType>(getElementTypeOrSelf(element)) ||
      getElementTypeOrSelf(element).isInteger(1))
    return std::nullopt;
  LinearAddress address = getLinearAddress(pointers);
  auto bounds = mask ? getMaskBounds(mask) : SmallVector<MaskBound, 2>();
  if (!address.hasUniformBase() || !bounds)
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

  Strided access;
  llvm::sort(*bounds, [](const MaskBound &x, const MaskBound &y) {
    return x.dim < y.dim;
  });
  Value zero = arith::ConstantIntOp::create(b, 0, 32);
  access.offsets.assign(type.getRank(), zero);
  for (const MaskBound &bound : *bounds) {
    if (llvm::is_contained(access.bounded, bound.dim) ||
        !bound.bound.getType().isInteger(32) ||
        (bound.offset && !bound.offset.getType().isInteger(32)))
      return std::nullopt;
    access.bounded.push_back(bound.dim);
    access.bounds.push_back(bound.bound);
    if (!bound.offset)
      continue;
    // What the offset adds to the address goes where the bound asks for it.
    access.offsets[bound.dim] = bound.offset;
    LinearTerm part = getScalarTerm(bound.offset);
    part.constant *= -along[bound.dim].constant;
    llvm::append_range(part.factors, along[bound.dim].factors);
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
  for (const LinearTerm &stride : along) {
    access.strides.push_back(stride.factors.empty() ? stride.constant
                                                    : ShapedType::kDynamic);
    llvm::append_range(access.dynamicStrides, stride.factors);
  }
  access.base = address.base;
  if (Value sum = sumOf(uniform, b))
    access.base = PtrAddOp::create(b, access.base, sum);
  return access;
}

/// The one number that a block has in every element, null for zero; none: it
/// may differ.
static std::optional<Value> splatOf(Value block) {
  if (!block || matchPattern(block, m_PosZeroFloat()) ||
      matchPattern(block, m_Zero()))
    return Value();
  if (auto splat = block.getDefiningOp<SplatOp>())
    return splat.getValue();
  return std::nullopt;
}

namespace {
struct RaiseAccessesPass
    : greta::impl::GretaTileRaiseAccessesPassBase<RaiseAccessesPass> {
  void runOnOperation() override {
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
      if (auto load = dyn_cast<LoadScatteredOp>(op)) {
        // Beyond its bounds a strided load reads a row within them and drops
        // it, which would be a race with a lane that stores there.
        if (!isWorthRaising(load) || written.contains(op))
          continue;
        std::optional<Value> other = splatOf(load.getOther());
        auto access =
            other ? asStrided(load.getPointers(), load.getMask(), facts, op, b)
                  : std::nullopt;
        if (!access)
          continue;
        load.replaceAllUsesWith(LoadOp::create(b, load.getResult().getType(),
                                               access->base, access->offsets,
                                               access->dynamicStrides,
                                               access->bounds, *other,
                                               access->strides, access->bounded)
                                    .getResult());
        load.erase();
      } else {
        auto store = cast<StoreScatteredOp>(op);
        if (!hasDot)
          continue;
        auto access =
            asStrided(store.getPointers(), store.getMask(), facts, op, b);
        if (!access)
          continue;
        StoreOp::create(b, store.getValue(), access->base, access->offsets,
                        access->dynamicStrides, access->bounds, access->strides,
                        access->bounded);
        store.erase();
      }
    }
  }
};
} // namespace
