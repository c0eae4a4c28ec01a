//===- DistributeAddress.cpp - the places of one lane's accesses ----------===//
//
// In: the address of an access, a strided block or a block of pointers, and its
// bounds or mask. Out: for each register, or several that are neighbours in
// memory, a base, an offset of 32 bits and a mask (LaneAccess).
//
// Either address is a pointer, what is added to it for all elements, and an
// index times a stride along each dimension; a block of pointers may have more,
// of each element. What is uniform moves the pointer by 64 bits. The lane's
// part is the same for all registers, and has 32 bits if it is plainly small
// and not negative, so that targets add it to a uniform address; else the
// lane's pointer is moved by 64 bits. A launch keeps the strides that it
// computes below that.
//
// If an argument promises to reach less than 2^31 bytes, the offset of a block
// of pointers is a sum of 32 bits, uniform parts included, which may wrap on
// the way: no lane has an address of its own, and AMD's buffer loads take masks
// without a branch.
//
// Lanes whose element is masked off may load another one and then select: a
// branch of their own in a hot loop costs more. For a strided block that is its
// first element within, if facts prove that there is one, or else the whole
// workgroup asks. For a block of pointers it is the one of index 0 along the
// dimensions that the mask bounds, if that one is known not to be masked off.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "GretaTile/LoopAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Sums and products of offsets, with 64 or (modulo 2^32) 32 bits.
class Offsets {
public:
  Offsets(ImplicitLocOpBuilder &b, unsigned bits) : b(b), bits(bits) {}

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
  /// The product of a lane's integers and a constant.
  Value product(ArrayRef<Value> factors, int64_t y) {
    Value result;
    for (Value factor : factors) {
      Value fitting = fit(factor);
      result = result ? multiply(result, fitting) : fitting;
    }
    return result ? multiply(result, y) : constant(y);
  }
  Value move(Value pointer, Value offset) {
    return offset ? PtrAddOp::create(b, pointer, offset).getResult() : pointer;
  }

private:
  ImplicitLocOpBuilder &b;
  unsigned bits;
};

/// The factor of an index along a dimension, which is shifted first.
struct Stride {
  int64_t fixed = 0;
  Value dynamic;
  int64_t shift = 0;
};

/// The part of a block's addresses that follows from indices.
struct Strides {
  const DistributedLayout &layout;
  SmallVector<Stride> dims;

  /// `sum` and an i32 index times its stride. Block, thread and register move
  /// different bits of an index, so that each part may be shifted alone.
  Value addIndex(ImplicitLocOpBuilder &b, Offsets &sums, Value sum, Value index,
                 unsigned dim) const {
    const Stride &stride = dims[dim];
    index = sums.fit(shifted(b, index, dim));
    if (stride.fixed)
      sum = sums.add(sum, sums.multiply(index, stride.fixed));
    if (stride.dynamic)
      sum = sums.add(sum, sums.multiply(index, sums.fit(stride.dynamic)));
    return sum;
  }
  Value shifted(ImplicitLocOpBuilder &b, Value index, unsigned dim) const {
    if (!dims[dim].shift)
      return index;
    return arith::ShRUIOp::create(
        b, index, arith::ConstantIntOp::create(b, dims[dim].shift, 32));
  }
  /// `sum` and what a register adds along some dimensions.
  Value addRegister(Offsets sums, Value sum, unsigned reg,
                    const llvm::SmallBitVector &along) const {
    int64_t fixed = 0;
    for (unsigned dim : along.set_bits()) {
      int64_t index = layout.registerIndex[reg][dim] >> dims[dim].shift;
      fixed += index * dims[dim].fixed;
      if (index && dims[dim].dynamic)
        sum = sums.add(sum, sums.multiply(sums.fit(dims[dim].dynamic), index));
    }
    return fixed ? sums.add(sum, sums.constant(fixed)) : sum;
  }
};

/// A strided block's accesses, as LaneAccess asks for them.
struct StridedAccess {
  explicit StridedAccess(const DistributedLayout &layout)
      : strides{layout, SmallVector<Stride>(layout.layout.rank())},
        unclamped(layout.layout.rank(), true) {}

  Strides strides;
  Masking masking = Masking::Branch;
  bool isWide = false;  // 32 bits do not span the block
  bool oneBase = false; // registers differ in offsets alone
  Value zero;           // an i32
  Value base;           // moved to the block's first element
  Value lane;           // the lane's offset: i32 or, where isWide, i64
  struct Limit {
    unsigned dim;
    Value end;   // bound minus offset; of indices from `first` on the bound
    Value first; // the offset, where the sum may be negative; null: it may not
  };
  SmallVector<Limit> limits;
  SmallVector<std::pair<unsigned, Value>> last; // clamped: dim, last index
  llvm::SmallBitVector unclamped;
  Value inside; // offset of the first element within; null: 0
  llvm::DenseMap<std::pair<unsigned, int64_t>, Value> masks, clamped;
  llvm::DenseMap<std::pair<Value, Value>, Value> conjunctions;

  Offsets sums(ImplicitLocOpBuilder &b) const {
    return {b, isWide ? 64u : 32u};
  }

  /// The index of a register's element along a dimension, from `first` on.
  Value indexOf(ImplicitLocOpBuilder &b, unsigned dim, int64_t index,
                Value first = {}) const {
    Value at = accumulate(b, strides.layout.threadIndex[dim], first);
    if (index)
      at = arith::AddIOp::create(b, at,
                                 arith::ConstantIntOp::create(b, index, 32));
    return at;
  }

  /// The offset that a register's clamped indices add to `lane`; null without
  /// any.
  Value clampedOffset(ImplicitLocOpBuilder &b, unsigned reg) {
    Offsets sums = this->sums(b);
    Value sum;
    for (auto [dim, end] : last) {
      int64_t index = strides.layout.registerIndex[reg][dim];
      Value &term = clamped[{dim, index}];
      if (!term) {
        Value at = arith::MinSIOp::create(b, indexOf(b, dim, index), end);
        term = strides.addIndex(b, sums, Value(), at, dim);
      }
      sum = sums.add(sum, term);
    }
    return sum;
  }

  Value mask(ImplicitLocOpBuilder &b, unsigned reg) {
    Value all;
    for (auto [dim, end, first] : limits) {
      int64_t index = strides.layout.registerIndex[reg][dim];
      Value &mask = masks[{dim, index}];
      if (!mask)
        mask = arith::CmpIOp::create(
            b, first ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
            indexOf(b, dim, index, first), end);
      if (!all) {
        all = mask;
        continue;
      }
      Value &both = conjunctions[{all, mask}];
      if (!both)
        both = arith::AndIOp::create(b, all, mask);
      all = both;
    }
    return all;
  }

  LanePlace place(ImplicitLocOpBuilder &b, unsigned reg) {
    Offsets sums = this->sums(b);
    Value offset = sums.add(lane, clampedOffset(b, reg));
    Value masked;
    if (masking != Masking::Branch)
      masked = mask(b, reg);
    if (!isWide && !oneBase && !masked) {
      Offsets wide(b, 64);
      return {
          wide.move(base, strides.addRegister(wide, Value(), reg, unclamped)),
          offset};
    }
    offset =
        sums.add(offset, strides.addRegister(sums, Value(), reg, unclamped));
    if (masked && masking == Masking::Replaced)
      offset = arith::SelectOp::create(b, masked, offset,
                                       inside ? inside : sums.constant(0));
    if (isWide)
      return {sums.move(base, offset), zero};
    return {base, offset};
  }

  /// For each access the register of the first one that has the same elements
  /// and mask.
  SmallVector<unsigned> sharers(unsigned width) const {
    std::map<std::vector<int64_t>, unsigned> firsts;
    SmallVector<unsigned> result;
    ArrayRef<Index> indices = strides.layout.registerIndex;
    for (unsigned reg = 0; reg < indices.size(); reg += width) {
      std::vector<int64_t> key;
      for (auto [index, stride] : llvm::zip(indices[reg], strides.dims))
        key.push_back(index >> stride.shift);
      for (const Limit &limit : limits)
        key.push_back(indices[reg][limit.dim]);
      result.push_back(firsts.try_emplace(key, reg).first->second);
    }
    return result;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Strided blocks
//===----------------------------------------------------------------------===//

static int64_t divisorOf(LoadOp op, unsigned dim) { return op.getDivisor(dim); }
static int64_t divisorOf(StoreOp, unsigned) { return 1; }
static bool isClamped(LoadOp op, unsigned dim) { return op.isClamped(dim); }
static bool isClamped(StoreOp, unsigned) { return false; }
static Value blockOf(LoadOp op) { return op.getResult(); }
static Value blockOf(StoreOp op) { return op.getValue(); }

/// The width of one lane access: limited by the layout's run of registers along
/// the dimension of stride 1, and by what facts know of it. Clamped neighbours
/// are the same element.
template <typename OpT>
static unsigned accessWidth(OpT op, const StridedAccess &access,
                            const Facts &facts) {
  const Layout &layout = access.strides.layout.layout;
  int64_t width = 1;
  for (unsigned dim : access.unclamped.set_bits())
    if (op.getStrides()[dim] == 1)
      width = std::max(width, std::min<int64_t>(layout.contiguity(dim),
                                                facts.vectorWidth(op, dim)));
  return width;
}

/// Whether a block of some extent cannot pass its bound, so that it needs no
/// mask.
static bool isWithin(const Facts &facts, Operation *op, Value offset,
                     Value bound, int64_t extent) {
  auto first = facts.rangeOf(offset), end = facts.rangeOf(bound);
  if (first && end && first->second + extent <= end->first)
    return true;
  // Between two multiples lies as much.
  return facts.of(offset).divisibility() >= extent &&
         facts.of(bound).divisibility() >= extent &&
         facts.isBelow(offset, bound, op);
}

/// Whether the bytes from a block's first element to behind its last may be
/// more than `most`. If that depends on strides which launches compute, the
/// largest ones for which they are not become promises of `kernel`'s arguments.
template <typename OpT>
static bool reachesBeyond(int64_t most, OpT op, const Layout &layout,
                          const Facts &facts, FuncOp kernel) {
  const uint64_t bytes =
      bytesInMemory(getElementTypeOrSelf(blockOf(op).getType()));
  // An access moves up to 16 bytes.
  uint64_t reach = 16, known = 0;
  SmallVector<std::pair<Value, uint64_t>> unknown; // stride, bytes of one
  unsigned nextDynamic = 0;
  for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
    uint64_t steps = bytes * ((llvm::PowerOf2Ceil(layout.shape()[dim]) - 1) /
                              divisorOf(op, dim));
    if (stride != ShapedType::kDynamic) {
      reach = llvm::SaturatingMultiplyAdd(steps, uint64_t(stride), reach);
      continue;
    }
    Value factor = op.getDynamicStrides()[nextDynamic++];
    auto range = facts.rangeOf(factor);
    known = llvm::SaturatingMultiplyAdd(
        steps, range ? uint64_t(range->second) : UINT64_MAX, known);
    if (steps)
      unknown.push_back({factor, steps});
  }
  if (reach > uint64_t(most))
    return true;
  if (llvm::SaturatingAdd(reach, known) <= uint64_t(most))
    return false;
  for (auto [stride, steps] : unknown)
    if (auto argument = dyn_cast<BlockArgument>(stride);
        argument && isa<FuncOp>(argument.getOwner()->getParentOp())) {
      int64_t largest = (most - reach) / unknown.size() / steps;
      unsigned number = argument.getArgNumber();
      if (auto before =
              kernel.getArgAttrOfType<IntegerAttr>(number, largestName))
        largest = std::min(largest, before.getInt());
      kernel.setArgAttr(number, largestName,
                        Builder(op.getContext()).getI64IntegerAttr(largest));
    }
  return false;
}

/// Bounds of a dimension whose block may begin below zero, as one comparison of
/// unsigned numbers. The result is whether some of the block is within.
static Value boundFromZero(ImplicitLocOpBuilder &b, StridedAccess &access,
                           unsigned dim, Value offset, Value bound) {
  auto below = [&](Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Offsets sums = access.sums(b), narrow(b, 32);
  int64_t extent = access.strides.layout.layout.shape()[dim];
  Value zero = narrow.constant(0);
  bound = arith::MaxSIOp::create(b, bound, zero);
  access.limits.push_back({dim, bound, offset});
  Value some = arith::AndIOp::create(
      b, below(narrow.constant(-extent), offset),
      below(arith::MaxSIOp::create(b, offset, zero), bound));
  Value first =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, zero, offset), zero);
  access.inside = access.strides.addIndex(b, sums, access.inside, first, dim);
  return some;
}

template <typename OpT>
LaneAccess Distributor::strided(OpT op, Masking masking, int64_t mostReach,
                                ImplicitLocOpBuilder &b) {
  const DistributedLayout &layout = layoutOf(blockOf(op));
  bool isWide = reachesBeyond(mostReach, op, layout.layout, facts, result);
  if (isWide && masking == Masking::Bounded)
    masking = Masking::Replaced;
  // In a pipelined loop one base serves all registers of a load.
  auto pipeline = dyn_cast<scf::ForOp>(op->getParentOp());
  bool isRolled = pipeline && pipeline->hasAttr(rolledName);
  auto state = std::make_shared<StridedAccess>(layout);
  StridedAccess &access = *state;
  access.masking = masking;
  access.isWide = isWide;
  // So it does of loads to shared memory.
  bool isDirect = llvm::any_of(op->getUsers(), [](Operation *user) {
    auto store = dyn_cast<LocalStoreOp>(user);
    return store && store.getDirect();
  });
  access.oneBase = isDirect || (isRolled && masking != Masking::Branch);
  access.zero = constant(0);
  unsigned nextDynamic = 0;
  for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
    Stride &own = access.strides.dims[dim];
    own.shift = llvm::Log2_64(divisorOf(op, dim));
    if (stride == ShapedType::kDynamic)
      own.dynamic = scalar(op.getDynamicStrides()[nextDynamic++]);
    else
      own.fixed = stride;
  }
  // A term that changes in a pipelined loop is added last.
  Offsets wide(b, 64), sums = access.sums(b);
  Value uniform[2];
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    if (getConstantIntValue(offset) == 0)
      continue;
    const Stride &stride = access.strides.dims[dim];
    SmallVector<Value, 2> factors = {
        access.strides.shifted(b, scalar(offset), dim)};
    if (stride.dynamic)
      factors.push_back(stride.dynamic);
    Value &sum = uniform[isRolled && !pipeline.isDefinedOutsideOfLoop(offset)];
    sum =
        wide.add(sum, wide.product(factors, stride.dynamic ? 1 : stride.fixed));
  }
  access.base =
      wide.move(wide.move(scalar(op.getBase()), uniform[0]), uniform[1]);
  Value some, someFromZero;
  for (auto [dim, bound] : llvm::zip(op.getBounded(), op.getBounds())) {
    Value offset = op.getOffsets()[dim], limit = scalar(bound);
    auto range = facts.rangeOf(offset);
    if (op.isBoundedBelow(dim) && !(range && range->first >= 0)) {
      Value within = boundFromZero(b, access, dim, scalar(offset), limit);
      someFromZero = accumulate<arith::AndIOp>(b, someFromZero, within);
      continue;
    }
    if (isWithin(facts, op, offset, bound, layout.layout.shape()[dim]))
      continue;
    if (isa<LoadOp>(op) && !facts.isBelow(offset, bound, op)) {
      Value begins = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           scalar(offset), limit);
      some = accumulate<arith::AndIOp>(b, some, begins);
    }
    if (getConstantIntValue(offset) != 0)
      limit = arith::SubIOp::create(b, limit, scalar(offset));
    if (!isClamped(op, dim)) {
      access.limits.push_back({unsigned(dim), limit, Value()});
      continue;
    }
    access.unclamped.reset(dim);
    access.last.push_back(
        {dim, arith::SubIOp::create(b, limit,
                                    arith::ConstantIntOp::create(b, 1, 32))});
  }
  for (unsigned dim : access.unclamped.set_bits())
    if (!matchPattern(layout.threadIndex[dim], m_Zero()))
      access.lane = access.strides.addIndex(b, sums, access.lane,
                                            layout.threadIndex[dim], dim);
  if (!access.lane)
    access.lane = sums.constant(0);

  LaneAccess lane;
  lane.layout = &layout;
  lane.width = accessWidth(op, access, facts);
  lane.masking = masking;
  lane.isWide = isWide;
  // A mask of the target has the lower bounds, too.
  lane.some = masking == Masking::Bounded
                  ? some
                  : accumulate<arith::AndIOp>(b, some, someFromZero);
  if (llvm::any_of(access.strides.dims, [](auto &dim) { return dim.shift; }))
    lane.sharers = access.sharers(lane.width);
  lane.place = [state](ImplicitLocOpBuilder &b, unsigned reg) {
    return state->place(b, reg);
  };
  lane.mask = [state](ImplicitLocOpBuilder &b, unsigned reg) {
    return state->mask(b, reg);
  };
  return lane;
}

template LaneAccess Distributor::strided(LoadOp, Masking, int64_t,
                                         ImplicitLocOpBuilder &);
template LaneAccess Distributor::strided(StoreOp, Masking, int64_t,
                                         ImplicitLocOpBuilder &);

//===----------------------------------------------------------------------===//
// Blocks of pointers
//===----------------------------------------------------------------------===//

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

LaneAccess Distributor::scattered(Operation *op, Value pointers, Value mask,
                                  bool isVector, ImplicitLocOpBuilder &b) {
  LaneAccess access;
  LaneValues masks;
  if (mask)
    masks = LaneValues(lanes(mask));
  access.mask = [masks](ImplicitLocOpBuilder &, unsigned reg) {
    return masks.empty() ? Value() : masks[reg];
  };
  if (!isa<RankedTensorType>(pointers.getType())) {
    LanePlace place{scalar(pointers), constant(0)};
    access.place = [place](ImplicitLocOpBuilder &, unsigned) { return place; };
    return access;
  }
  const DistributedLayout &layout = layoutOf(pointers);
  const unsigned rank = layout.layout.rank();
  access.layout = &layout;
  Type element = getElementTypeOrSelf(getPointee(pointers.getType()));
  LinearAddress address = getLinearAddress(pointers);
  for (unsigned dim = 0; isVector && dim < rank; ++dim)
    access.width = std::max<unsigned>(
        access.width,
        std::min<int64_t>(layout.layout.contiguity(dim),
                          facts.vectorWidth(pointers, mask, dim)));

  SmallVector<Value> steps;
  access.wraps = address.hasUniformBase() && reachesLittle(address.base, steps);
  Offsets sums(b, access.wraps ? 32 : 64), narrowSums(b, 32);
  auto coefficient = [&](const LinearTerm &term) {
    SmallVector<Value, 2> factors;
    for (Value factor : term.factors)
      factors.push_back(scalar(factor));
    return sums.product(factors, term.constant);
  };
  Strides strides{layout, SmallVector<Stride>(rank)};
  Value uniform;
  for (Value step : steps)
    uniform = sums.add(uniform, sums.fit(scalar(step)));
  for (const LinearTerm &term : address.terms) {
    if (term.isUniform()) {
      uniform = sums.add(uniform, coefficient(term));
    } else if (term.dim >= 0) {
      Stride &stride = strides.dims[term.dim];
      if (term.factors.empty())
        stride.fixed += term.constant;
      else
        stride.dynamic = sums.add(stride.dynamic, coefficient(term));
    }
  }
  Value base = address.hasUniformBase() ? scalar(address.base) : Value();
  if (base && !access.wraps)
    base = sums.move(base, uniform);

  // Targets add offsets of 32 bits to a base.
  int64_t largest = 0;
  const int64_t end = (int64_t(1) << 32) / bytesInMemory(element);
  bool isNarrow = true;
  for (auto [dim, stride] : llvm::enumerate(strides.dims)) {
    if (matchPattern(layout.threadIndex[dim], m_Zero()))
      continue;
    isNarrow =
        isNarrow && !stride.dynamic && stride.fixed >= 0 && stride.fixed < end;
    if (isNarrow)
      largest += stride.fixed * (layout.layout.shape()[dim] - 1);
    isNarrow = isNarrow && largest < end;
  }
  // An element that is masked off has index 0 along the dimensions that its
  // mask bounds. The second of each sum is along those.
  llvm::SmallBitVector safe(rank);
  if (access.wraps && row.isHip())
    access.masking = Masking::Bounded;
  else if (auto load = dyn_cast<LoadScatteredOp>(op))
    safe = safeDims(load);
  if (safe.any())
    access.masking = Masking::Replaced;
  llvm::SmallBitVector along[2] = {~safe, safe};
  // The lane's part: in 32 bits, or in as many as its base is moved by.
  Value narrow[2], lane[2];
  bool hasOffset = isNarrow && !access.wraps;
  for (auto [dim, index] : llvm::enumerate(layout.threadIndex)) {
    if (matchPattern(index, m_Zero()))
      continue;
    Value &sum = (hasOffset ? narrow : lane)[safe[dim]];
    sum = strides.addIndex(b, hasOffset ? narrowSums : sums, sum, index, dim);
  }
  // And the registers'. Sums that do not differ between them come first, of
  // what changes in a loop, too.
  bool isOneInside = true;
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += access.width)
    for (unsigned dim : safe.set_bits())
      isOneInside = isOneInside && !layout.registerIndex[reg][dim];
  SmallVector<LanePlace> places(layout.registerIndex.size());
  for (unsigned reg = 0; reg < places.size(); reg += access.width) {
    Value moved =
        strides.addRegister(sums, base ? Value() : uniform, reg, along[0]);
    Value inside = strides.addRegister(sums, lane[1], reg, along[1]);
    Value mine = lane[0];
    for (const LinearTerm &term : address.terms)
      if (term.block)
        mine = sums.add(mine, sums.multiply(sums.fit(lanes(term.block)[reg]),
                                            term.constant));
    auto orZero = [&](Value part) -> Value {
      if (!part)
        return part;
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(part.getType()));
      return arith::SelectOp::create(b, masks[reg], part, zero);
    };
    inside = orZero(inside);
    Value offset = sums.add(narrow[0], orZero(narrow[1]));
    if (!offset)
      offset = constant(0);
    if (access.wraps) {
      Value sum = sums.add(mine, moved);
      sum = isOneInside ? sums.add(sum, sums.add(uniform, inside))
                        : sums.add(sums.add(sum, uniform), inside);
      places[reg] = {base, sum ? sum : offset};
      continue;
    }
    Value pointer = sums.move(base ? base : lanes(address.base)[reg], moved);
    pointer = isOneInside ? sums.move(pointer, sums.add(mine, inside))
                          : sums.move(sums.move(pointer, mine), inside);
    places[reg] = {pointer, offset};
  }
  access.place = [places](ImplicitLocOpBuilder &, unsigned reg) {
    return places[reg];
  };
  return access;
}
