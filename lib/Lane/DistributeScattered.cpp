//===- DistributeScattered.cpp - accesses through pointers ----------------===//
//
// In: load_scattered and store_scattered. Out: lane accesses, each register's
// in a branch where it has a mask, so that no lane touches memory for an
// element that is masked off. If the mask bounds indices, and the first
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
// If an argument promises to reach less than 2^31 bytes, the offset is a
// sum of 32 bits, uniform parts included, which may wrap on the way: no lane
// has an address of its own, and AMD's buffer loads take masks without a
// branch.
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

/// Sums and products of offsets, with 64 or (modulo 2^32) 32 bits.
class OffsetBuilder {
public:
  OffsetBuilder(ImplicitLocOpBuilder &b, unsigned bits,
                llvm::function_ref<Value(Value)> scalar)
      : b(b), bits(bits), scalar(scalar) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getIntegerType(bits),
                            APInt(64, value, true).trunc(bits)));
  }
  Value fit(Value value) {
    unsigned width = value.getType().getIntOrFloatBitWidth();
    Type type = b.getIntegerType(bits);
    if (width < bits)
      return arith::ExtSIOp::create(b, type, value);
    return width == bits ? value
                         : arith::TruncIOp::create(b, type, value).getResult();
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
      Value fitting = fit(scalar(factor));
      result = result ? multiply(result, fitting) : fitting;
    }
    return result ? multiply(result, term.constant) : constant(term.constant);
  }
  Value move(Value pointer, Value offset) {
    return offset ? PtrAddOp::create(b, pointer, offset).getResult() : pointer;
  }

private:
  ImplicitLocOpBuilder &b;
  unsigned bits;
  llvm::function_ref<Value(Value)> scalar;
};

/// The factor of an index along a dimension.
struct Stride {
  int64_t fixed = 0;
  Value dynamic; // of as many bits as the sums
};

} // namespace

/// Whether a pointer is an argument that promises to reach less than 2^31
/// bytes, moved by what is added to `steps`; then `pointer` becomes it.
static bool reachesLittle(Value &pointer, SmallVectorImpl<Value> &steps) {
  BlockArgument argument = argumentOf(pointer);
  if (!hasPointerRange(argument) || argument.getType() != pointer.getType())
    return false;
  for (Value at = pointer; at != argument;) {
    auto add = at.getDefiningOp<PtrAddOp>();
    if (!add)
      return false;
    steps.push_back(add.getOffset());
    at = add.getBase();
  }
  pointer = argument;
  return true;
}

/// The dimensions along which a load's mask bounds indices, if none of its
/// elements of index 0 there is masked off and all else of an address is the
/// same along them; else none.
llvm::SmallBitVector Distributor::safeDims(LoadScatteredOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  llvm::SmallBitVector dims(type.getRank()), none = dims;
  auto bounds = op.getMask() ? getMaskBounds(op.getMask()) : std::nullopt;
  if (!bounds || !bounds->areUpper())
    return none;
  for (const MaskBound &bound : bounds->bounds) {
    if (!facts.isBelow(*bound.scalarOffset(), *bound.scalarBound(), op))
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
  if (!isa<RankedTensorType>(pointers.getType())) {
    access.bases = {scalar(pointers)};
    access.offsets = {constant(0)};
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

  SmallVector<Value> steps;
  access.isSmall =
      address.hasUniformBase() && reachesLittle(address.base, steps);
  unsigned bits = access.isSmall ? 32 : 64;
  auto scalarOf = [&](Value value) { return scalar(value); };
  OffsetBuilder sums(b, bits, scalarOf);
  SmallVector<Stride> strides(layout.layout.rank());
  Value uniform;
  for (Value step : steps)
    uniform = sums.add(uniform, sums.fit(scalar(step)));
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
  if (base && !access.isSmall)
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
  // An element that is masked off has index 0 along the dimensions that its
  // mask bounds.
  llvm::SmallBitVector safe(layout.layout.rank());
  if (auto load = dyn_cast<LoadScatteredOp>(op);
      load && !hasMaskedLoads(access))
    safe = safeDims(load);
  access.isSafe = safe.any();
  // The lane's part: in 32 bits, or in as many as its base is moved by. The
  // second of each is along those dimensions.
  std::array<Value, 2> narrow, lane;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    Value index = layout.threadIndex[dim];
    if (matchPattern(index, m_Zero()))
      continue;
    if (isNarrow && !access.isSmall && stride.fixed) {
      Value term = stride.fixed == 1
                       ? index
                       : arith::MulIOp::create(b, index, constant(stride.fixed))
                             .getResult();
      narrow[safe[dim]] = sums.add(narrow[safe[dim]], term);
      continue;
    }
    index = sums.fit(index);
    Value &sum = lane[safe[dim]];
    if (stride.fixed)
      sum = sums.add(sum, sums.multiply(index, stride.fixed));
    if (stride.dynamic)
      sum = sums.add(sum, sums.multiply(index, stride.dynamic));
  }
  // And the registers'. Sums that do not differ between them come first, of
  // what changes in a loop, too.
  bool isOneInside = true;
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += access.width)
    for (unsigned dim : safe.set_bits())
      isOneInside = isOneInside && !layout.registerIndex[reg][dim];
  for (unsigned reg = 0; reg < layout.registerIndex.size(); ++reg) {
    if (reg % access.width) {
      access.bases.push_back({});
      access.offsets.push_back({});
      continue;
    }
    std::array<int64_t, 2> fixed = {0, 0};
    Value moved = base ? Value() : uniform, inside = lane[1];
    for (auto [dim, index] : llvm::enumerate(layout.registerIndex[reg])) {
      fixed[safe[dim]] += index * strides[dim].fixed;
      Value &sum = safe[dim] ? inside : moved;
      if (index && strides[dim].dynamic)
        sum = sums.add(sum, sums.multiply(strides[dim].dynamic, index));
    }
    if (fixed[0])
      moved = sums.add(moved, sums.constant(fixed[0]));
    if (fixed[1])
      inside = sums.add(inside, sums.constant(fixed[1]));
    Value mine = lane[0], offset = narrow[0];
    for (const LinearTerm &term : address.terms)
      if (term.block)
        mine = sums.add(mine, sums.multiply(sums.fit(lanes(term.block)[reg]),
                                            term.constant));
    auto orZero = [&](Value part) -> Value {
      if (!part)
        return part;
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(part.getType()));
      return arith::SelectOp::create(b, access.masks[reg], part, zero);
    };
    inside = orZero(inside);
    offset = sums.add(offset, orZero(narrow[1]));
    if (!offset)
      offset = constant(0);
    if (access.isSmall) {
      Value sum = sums.add(mine, moved);
      sum = isOneInside ? sums.add(sum, sums.add(uniform, inside))
                        : sums.add(sums.add(sum, uniform), inside);
      access.bases.push_back(base);
      access.offsets.push_back(sum ? sum : offset);
      continue;
    }
    Value pointer = sums.move(base ? base : lanes(address.base)[reg], moved);
    access.bases.push_back(isOneInside
                               ? sums.move(pointer, sums.add(mine, inside))
                               : sums.move(sums.move(pointer, mine), inside));
    access.offsets.push_back(offset);
  }
  return access;
}

/// A lane's access as memory has it: i1 is a byte.
static Value asBytes(ImplicitLocOpBuilder &b, Value base) {
  auto bytes = PtrType::get(b.getI8Type());
  return PtrCastOp::create(b, bytes, base);
}

static Value loadLane(ImplicitLocOpBuilder &b, Type type, Value base,
                      Value offset, Value mask, int64_t align, bool wraps) {
  if (!getElementTypeOrSelf(type).isInteger(1))
    return PtrLoadOp::create(b, type, base, offset, mask, align, wraps);
  Type bytes = b.getI8Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bytes = vector.clone(bytes);
  Value loaded =
      PtrLoadOp::create(b, bytes, asBytes(b, base), offset, mask, align, wraps);
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

SmallVector<unsigned>
Distributor::storedRegisters(const DistributedLayout &layout, unsigned width) {
  SmallVector<unsigned> registers;
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += width)
    if (!(reg % layout.layout.tileRegisters() &
          layout.layout.freeRegisterBits()))
      registers.push_back(reg);
  return registers;
}

void Distributor::storeRegisters(
    ArrayRef<unsigned> registers, ArrayRef<Value> masks, Value owner,
    ImplicitLocOpBuilder &b,
    llvm::function_ref<void(ImplicitLocOpBuilder &, unsigned)> store) {
  while (!registers.empty()) {
    ArrayRef<unsigned> group =
        registers.take_front(countUnderMask(masks, registers));
    registers = registers.drop_front(group.size());
    Value mask = masks.empty() ? Value() : masks[group.front()];
    storeWhere(accumulate<arith::AndIOp>(b, owner, mask), b,
               [&](ImplicitLocOpBuilder &inner) {
                 for (unsigned reg : group)
                   store(inner, reg);
               });
  }
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
  bool isZero =
      op.getOther() && (matchPattern(op.getOther(), m_Zero()) ||
                        matchPattern(op.getOther(), m_PosZeroFloat()));
  if (op.getOther() && op.getMask() && !isZero)
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
        loaded.push_back(loadLane(inner, type, access->bases[reg],
                                  access->offsets[reg], Value(), align,
                                  access->isSmall));
      return loaded;
    };
    if (access->masks.empty()) {
      llvm::append_range(out, load(b));
      continue;
    }
    if (others.empty() && !zero)
      zero = arith::ConstantOp::create(prologue, op.getLoc(),
                                       cast<TypedAttr>(b.getZeroAttr(type)));
    Value mask = access->masks[group.front()];
    // A target's masked loads bring zeros.
    bool isMasked = hasMaskedLoads(*access);
    if (isMasked || access->isSafe) {
      bool isWhole = op->hasAttr(aheadName) || (isMasked && others.empty());
      for (unsigned reg : group) {
        Value loaded =
            loadLane(b, type, access->bases[reg], access->offsets[reg],
                     isMasked ? mask : Value(), align, access->isSmall);
        if (!isWhole)
          loaded = b.createOrFold<arith::SelectOp>(
              mask, loaded, others.empty() ? zero : others[reg / width]);
        out.push_back(loaded);
      }
      continue;
    }
    auto branch = scf::IfOp::create(
        b, mask,
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
  SmallVector<unsigned> registers = {0};
  if (access->layout) {
    owner = ownsCopies(access->layout->layout, b);
    registers = storedRegisters(*access->layout, width);
  }
  storeRegisters(registers, access->masks, owner, b,
                 [&](ImplicitLocOpBuilder &inner, unsigned reg) {
                   storeLane(inner, stored[reg / width], access->bases[reg],
                             access->offsets[reg],
                             width * bytesInMemory(element));
                 });
  return success();
}
