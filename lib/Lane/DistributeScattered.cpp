//===- DistributeScattered.cpp - accesses through pointers ----------------===//
//
// In: load_scattered and store_scattered. Out: lane accesses, each register's
// in a branch where it has a mask, so that no lane touches memory for an
// element that is masked off. Where the mask bounds indices, and the first
// elements within are known not to be masked off, lanes load those instead and
// then select: a branch in a hot loop costs more.
//
//   %p = greta_tile.ptr_add %x, %i : ..        %i = %first + iota
//   %v = greta_tile.load_scattered %p mask %m
//     →  %b  = greta_tile.ptr_add %x, %first   the same in all lanes
//        %v0 = scf.if %m0 { greta_tile.ptr_load %b[%lane] }
//
// A block of pointers that comes from one pointer is that pointer, moved by
// what is uniform, and a lane's offset: of 32 bits where it is plainly small
// and not negative, so that targets add it to a uniform address; else the
// lane's base is moved by 64 bits.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "GretaTile/LoopAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Sums and products of offsets, with 64 bits.
class OffsetBuilder {
public:
  OffsetBuilder(ImplicitLocOpBuilder &b,
                llvm::function_ref<Value(Value)> scalar)
      : b(b), scalar(scalar) {}

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64);
  }
  Value widen(Value value) {
    return value.getType().isInteger(64)
               ? value
               : arith::ExtSIOp::create(b, b.getI64Type(), value).getResult();
  }
  /// Either may be null, which is nothing to add.
  Value add(Value x, Value y) { return accumulate(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value multiply(Value x, int64_t y) {
    return y == 1 ? x : multiply(x, constant(y));
  }
  /// The constant and the uniform factors of a term.
  Value coefficient(const LinearTerm &term) {
    Value result;
    for (Value factor : term.factors) {
      Value wide = widen(scalar(factor));
      result = result ? multiply(result, wide) : wide;
    }
    return result ? multiply(result, term.constant) : constant(term.constant);
  }
  Value move(Value pointer, Value offset) {
    return offset ? PtrAddOp::create(b, pointer, offset).getResult() : pointer;
  }

private:
  ImplicitLocOpBuilder &b;
  llvm::function_ref<Value(Value)> scalar;
};

/// What an index along a dimension is multiplied by.
struct Stride {
  int64_t fixed = 0;
  Value dynamic; // i64
};

} // namespace

/// The dimensions along which a load's mask bounds indices, if none of its
/// elements of index 0 there is masked off and all else of an address is the
/// same along them; else none.
llvm::SmallBitVector Distributor::safeDims(LoadScatteredOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  llvm::SmallBitVector dims(type.getRank()), none = dims;
  auto bounds = op.getMask() ? getMaskBounds(op.getMask()) : std::nullopt;
  if (!bounds)
    return none;
  for (const MaskBound &bound : *bounds) {
    if (!facts.isBelow(bound.offset, bound.bound, op))
      return none;
    dims.set(bound.dim);
  }
  auto varies = [&](Value block) {
    return llvm::any_of(dims.set_bits(), [&](unsigned dim) {
      return isa<RankedTensorType>(block.getType()) &&
             facts.of(block)[dim].constancy < type.getDimSize(dim);
    });
  };
  LinearAddress address = getLinearAddress(op.getPointers());
  bool isElsewhere = varies(address.base);
  for (const LinearTerm &term : address.terms)
    isElsewhere |= term.block && varies(term.block);
  return isElsewhere ? none : dims;
}

FailureOr<Distributor::Scattered>
Distributor::scatter(Operation *op, Value pointers, Value mask, bool isWide,
                     ImplicitLocOpBuilder &b) {
  Scattered access;
  if (mask)
    access.masks = LaneValues(lanes(mask));
  access.offset = constant(0);
  if (!isa<RankedTensorType>(pointers.getType())) {
    access.bases = {scalar(pointers)};
    return access;
  }
  auto found = layoutOf(op, pointers);
  if (failed(found))
    return failure();
  access.layout = *found;
  const DistributedLayout &layout = **found;
  Type element = getElementTypeOrSelf(getPointee(pointers.getType()));
  LinearAddress address = getLinearAddress(pointers);
  for (unsigned dim = 0; isWide && dim < layout.layout.rank(); ++dim)
    access.width = std::max<unsigned>(
        access.width,
        std::min<int64_t>(layout.layout.contiguity(dim),
                          facts.vectorWidth(pointers, mask, dim)));

  auto scalarOf = [&](Value value) { return scalar(value); };
  OffsetBuilder sums(b, scalarOf);
  SmallVector<Stride> strides(layout.layout.rank());
  Value uniform;
  for (const LinearTerm &term : address.terms) {
    if (term.isUniform())
      uniform = sums.add(uniform, sums.coefficient(term));
    else if (term.dim >= 0 && term.factors.empty())
      strides[term.dim].fixed += term.constant;
    else if (term.dim >= 0)
      strides[term.dim].dynamic =
          sums.add(strides[term.dim].dynamic, sums.coefficient(term));
  }
  Value base = address.hasUniformBase() ? scalar(address.base) : Value();
  if (base)
    base = sums.move(base, uniform);

  // As targets add offsets of 32 bits.
  int64_t largest = 0;
  const int64_t end = (int64_t(1) << 32) / bytesInMemory(element);
  bool isNarrow = true;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    if (matchPattern(layout.threadIndex[dim], m_Zero()))
      continue;
    isNarrow =
        isNarrow && !stride.dynamic && stride.fixed >= 0 && stride.fixed < end;
    if (isNarrow)
      largest += stride.fixed * (layout.layout.shape()[dim] - 1);
    isNarrow = isNarrow && largest < end;
  }
  // With index 0 along some dimensions.
  auto locate = [&](const llvm::SmallBitVector &zero, LaneValues &bases) {
    // The lane's part.
    Value offset = constant(0), wide;
    for (auto [dim, stride] : llvm::enumerate(strides)) {
      Value index = layout.threadIndex[dim];
      if (zero[dim] || matchPattern(index, m_Zero()))
        continue;
      if (isNarrow && stride.fixed) {
        Value term =
            stride.fixed == 1
                ? index
                : arith::MulIOp::create(b, index, constant(stride.fixed))
                      .getResult();
        offset = offset == constant(0) ? term
                                       : arith::AddIOp::create(b, offset, term);
      } else if (!isNarrow) {
        index = sums.widen(index);
        if (stride.fixed)
          wide = sums.add(wide, sums.multiply(index, stride.fixed));
        if (stride.dynamic)
          wide = sums.add(wide, sums.multiply(index, stride.dynamic));
      }
    }
    // And the registers'.
    for (unsigned reg = 0; reg < layout.registerIndex.size(); ++reg) {
      if (reg % access.width) {
        bases.push_back({});
        continue;
      }
      int64_t fixed = 0;
      Value moved = base ? Value() : uniform;
      for (auto [dim, index] : llvm::enumerate(layout.registerIndex[reg])) {
        if (zero[dim])
          continue;
        fixed += index * strides[dim].fixed;
        if (index && strides[dim].dynamic)
          moved = sums.add(moved, sums.multiply(strides[dim].dynamic, index));
      }
      if (fixed)
        moved = sums.add(moved, sums.constant(fixed));
      Value pointer = sums.move(base ? base : lanes(address.base)[reg], moved);
      Value lane = wide;
      for (const LinearTerm &term : address.terms)
        if (term.block)
          lane =
              sums.add(lane, sums.multiply(sums.widen(lanes(term.block)[reg]),
                                           term.constant));
      bases.push_back(sums.move(pointer, lane));
    }
    return offset;
  };
  unsigned rank = layout.layout.rank();
  access.offset = locate(llvm::SmallBitVector(rank), access.bases);
  if (auto load = dyn_cast<LoadScatteredOp>(op))
    if (llvm::SmallBitVector zero = safeDims(load); zero.any())
      access.safeOffset = locate(zero, access.safeBases);
  return access;
}

/// A lane's access as memory has it: i1 is a byte.
static Value asBytes(ImplicitLocOpBuilder &b, Value base) {
  auto bytes = PtrType::get(b.getI8Type());
  return PtrCastOp::create(b, bytes, base);
}

static Value loadLane(ImplicitLocOpBuilder &b, Type type, Value base,
                      Value offset, int64_t align) {
  if (!getElementTypeOrSelf(type).isInteger(1))
    return PtrLoadOp::create(b, type, base, offset, align);
  Type bytes = b.getI8Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bytes = vector.clone(bytes);
  Value loaded = PtrLoadOp::create(b, bytes, asBytes(b, base), offset, align);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(bytes));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, loaded, zero);
}

static void storeLane(ImplicitLocOpBuilder &b, Value value, Value base,
                      Value offset, int64_t align) {
  if (getElementTypeOrSelf(value.getType()).isInteger(1)) {
    Type bytes = b.getI8Type();
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      bytes = vector.clone(bytes);
    value = arith::ExtUIOp::create(b, bytes, value);
    base = asBytes(b, base);
  }
  PtrStoreOp::create(b, value, base, offset, align);
}

/// How many of the registers from `first` on, in steps of `width`, have the
/// mask of the first.
static size_t countUnderMask(ArrayRef<Value> masks, ArrayRef<unsigned> first) {
  if (masks.empty())
    return first.size();
  return llvm::find_if(
             first,
             [&](unsigned reg) { return masks[reg] != masks[first.front()]; }) -
         first.begin();
}

LogicalResult Distributor::distributeLoadScattered(LoadScatteredOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  FailureOr<Scattered> access =
      scatter(op, op.getPointers(), op.getMask(), /*isWide=*/true, b);
  if (failed(access))
    return failure();
  Type element = getElementTypeOrSelf(op.getResult().getType());
  unsigned width = access->width;
  Type type = pieceOf(element, width);
  int64_t align = width * bytesInMemory(element);
  LaneValues others;
  if (op.getOther() && op.getMask())
    others = vectors(op.getOther(), type);
  Value zero;
  SmallVector<unsigned> registers;
  for (unsigned reg = 0; reg < access->bases.size(); reg += width)
    registers.push_back(reg);
  LaneValues out;
  for (ArrayRef<unsigned> rest = registers; !rest.empty();) {
    ArrayRef<unsigned> group =
        rest.take_front(countUnderMask(access->masks, rest));
    rest = rest.drop_front(group.size());
    auto load = [&](OpBuilder &at) {
      ImplicitLocOpBuilder inner(op.getLoc(), at);
      LaneValues loaded;
      for (unsigned reg : group)
        loaded.push_back(
            loadLane(inner, type, access->bases[reg], access->offset, align));
      return loaded;
    };
    if (access->masks.empty()) {
      llvm::append_range(out, load(b));
      continue;
    }
    if (others.empty() && !zero)
      zero = arith::ConstantOp::create(prologue, op.getLoc(),
                                       cast<TypedAttr>(b.getZeroAttr(type)));
    if (access->safeOffset) {
      Value mask = access->masks[group.front()];
      auto select = [&](Value x, Value y) {
        return b.createOrFold<arith::SelectOp>(mask, x, y);
      };
      for (unsigned reg : group) {
        Value loaded = loadLane(
            b, type, select(access->bases[reg], access->safeBases[reg]),
            select(access->offset, access->safeOffset), align);
        out.push_back(
            op->hasAttr(aheadName)
                ? loaded
                : select(loaded, others.empty() ? zero : others[reg / width]));
      }
      continue;
    }
    auto branch = scf::IfOp::create(
        b, access->masks[group.front()],
        [&](OpBuilder &at, Location loc) {
          scf::YieldOp::create(at, loc, load(at));
        },
        [&](OpBuilder &at, Location loc) {
          LaneValues values(group.size(), zero);
          if (!others.empty())
            for (auto [value, reg] : llvm::zip(values, group))
              value = others[reg / width];
          scf::YieldOp::create(at, loc, values);
        });
    llvm::append_range(out, branch.getResults());
  }
  setVectors(op.getResult(), std::move(out));
  return success();
}

LogicalResult Distributor::distributeStoreScattered(StoreScatteredOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  FailureOr<Scattered> access =
      scatter(op, op.getPointers(), op.getMask(), /*isWide=*/true, b);
  if (failed(access))
    return failure();
  Type element = getElementTypeOrSelf(op.getValue().getType());
  unsigned width = access->width;
  Type type = pieceOf(element, width);
  LaneValues stored = vectors(op.getValue(), type);
  Value owner = isFirstOfWorkgroup(b);
  SmallVector<unsigned> registers;
  if (access->layout) {
    const Layout &layout = access->layout->layout;
    owner = ownsCopies(layout, b);
    for (unsigned reg = 0; reg < access->bases.size(); reg += width)
      if (!(reg % layout.tileRegisters() & layout.freeRegisterBits()))
        registers.push_back(reg);
  } else {
    registers.push_back(0);
  }
  for (ArrayRef<unsigned> rest = registers; !rest.empty();) {
    ArrayRef<unsigned> group =
        rest.take_front(countUnderMask(access->masks, rest));
    rest = rest.drop_front(group.size());
    Value mask = access->masks.empty() ? Value() : access->masks[group.front()];
    storeWhere(accumulate<arith::AndIOp>(b, owner, mask), b,
               [&](ImplicitLocOpBuilder &inner) {
                 for (unsigned reg : group)
                   storeLane(inner, stored[reg / width], access->bases[reg],
                             access->offset, width * bytesInMemory(element));
               });
  }
  return success();
}
