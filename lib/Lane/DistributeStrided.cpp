//===- DistributeStrided.cpp - the places of a lane's strided accesses ----===//
//
// In: the address of a strided block's access, and its bounds. Out: for each
// register, or several that are neighbours in memory, a base, an offset of 32
// bits and a mask (LaneAccess). LaneAddress.h says what addresses consist of;
// a launch keeps the strides that it computes below what 32 bits span.
//
// Lanes whose element is masked off may load another one and then select: a
// branch of their own in a hot loop costs more. That is the block's first
// element within, if facts prove that there is one, or else the whole workgroup
// asks.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "LaneAddress.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Computes the places and masks of a strided block for LaneAccess.
struct StridedAccess : Arithmetic {
  StridedAccess(const DistributedLayout &layout, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, strides{{b}, layout},
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

  Offsets sums() const { return {b, isWide ? 64u : 32u}; }

  /// Returns the index of a register's element along a dimension, counted from
  /// `first`.
  Value indexOf(unsigned dim, int64_t index, Value first = {}) {
    Value at = sum(strides.layout.threadIndex[dim], first);
    if (index)
      at = add(at, i32(index));
    return at;
  }

  /// Returns the offset that a register's clamped indices add to `lane`; null:
  /// no index is clamped.
  Value clampedOffset(unsigned reg) {
    Offsets sums = this->sums();
    Value total;
    for (auto [dim, end] : last) {
      int64_t index = strides.layout.registerIndex[reg][dim];
      Value &term = clamped[{dim, index}];
      if (!term) {
        Value at = least(indexOf(dim, index), end);
        term = strides.addIndex(sums, Value(), at, dim);
      }
      total = sums.sum(total, term);
    }
    return total;
  }

  Value mask(unsigned reg) {
    Value all;
    for (auto [dim, end, first] : limits) {
      int64_t index = strides.layout.registerIndex[reg][dim];
      Value &mask = masks[{dim, index}];
      if (!mask)
        mask = compare(first ? Predicate::ult : Predicate::slt,
                       indexOf(dim, index, first), end);
      if (!all) {
        all = mask;
        continue;
      }
      Value &conjunction = conjunctions[{all, mask}];
      if (!conjunction)
        conjunction = both(all, mask);
      all = conjunction;
    }
    return all;
  }

  LanePlace place(unsigned reg) {
    Offsets sums = this->sums();
    Value offset = sums.sum(lane, clampedOffset(reg));
    Value masked;
    if (masking != Masking::Branch)
      masked = mask(reg);
    if (!isWide && !oneBase && !masked) {
      Offsets wide(b, 64);
      return {
          wide.move(base, strides.addRegister(wide, Value(), reg, unclamped)),
          offset};
    }
    offset =
        sums.sum(offset, strides.addRegister(sums, Value(), reg, unclamped));
    if (masked && masking == Masking::Replaced)
      offset = select(masked, offset, inside ? inside : sums.constant(0));
    if (isWide)
      return {sums.move(base, offset), zero};
    return {base, offset};
  }

  /// Sets the bounds of a dimension whose block may begin below zero, as one
  /// comparison of unsigned numbers. Returns whether some of the block is
  /// within.
  Value boundFromZero(unsigned dim, Value offset, Value bound) {
    Offsets sums = this->sums();
    int64_t extent = strides.layout.layout.shape()[dim];
    Value zero = i32(0);
    bound = most(bound, zero);
    limits.push_back({dim, bound, offset});
    Value begins = below(i32(-extent), offset);
    Value some = both(begins, below(most(offset, zero), bound));
    Value first = most(sub(zero, offset), zero);
    inside = strides.addIndex(sums, inside, first, dim);
    return some;
  }

  /// Returns LaneAccess::sharers.
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

static Value blockOf(LoadOp op) { return op.getResult(); }
static Value blockOf(StoreOp op) { return op.getValue(); }

/// Returns the number of elements of one access. It is limited by the layout's
/// neighbours along the dimension of stride 1, and by facts. Clamped neighbours
/// are the same element, so they are accessed one by one.
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
    uint64_t last = (llvm::PowerOf2Ceil(layout.shape()[dim]) - 1) /
                    op.getDivisor(dim),
             steps = bytes * last;
    if (int64_t run = op.getRun(dim); run > 1) {
      reach = llvm::SaturatingMultiplyAdd(
          bytes * std::min(last, uint64_t(run) - 1), uint64_t(stride), reach);
      reach = llvm::SaturatingMultiplyAdd(
          bytes * (last / run), uint64_t(op.getRunStride(dim)), reach);
      continue;
    }
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

namespace greta::tile {

/// Makes a strided block's access from its op.
template <typename OpT> class StridedEmitter : Arithmetic {
public:
  StridedEmitter(Distributor &lanes, OpT op, StridedAccess &access)
      : Arithmetic{lanes.b}, lanes(lanes), op(op), access(access),
        layout(access.strides.layout),
        pipeline(dyn_cast<scf::ForOp>(op->getParentOp())) {
    if (pipeline && !pipeline->hasAttr(rolledName))
      pipeline = {};
  }

  void setStrides() {
    unsigned nextDynamic = 0;
    for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
      Stride &own = access.strides.dims[dim];
      own.shift = llvm::Log2_64(op.getDivisor(dim));
      if (stride == ShapedType::kDynamic)
        own.dynamic = lanes.scalar(op.getDynamicStrides()[nextDynamic++]);
      else
        own.fixed = stride;
      own.run = op.getRun(dim);
      own.ofRun = op.getRunStride(dim);
    }
  }

  /// Whether all registers have one base, as loads in pipelined loops and loads
  /// to shared memory need.
  bool hasOneBase() {
    bool isDirect = llvm::any_of(op->getUsers(), [](Operation *user) {
      auto store = dyn_cast<LocalStoreOp>(user);
      return store && store.getDirect();
    });
    return isDirect || (pipeline && access.masking != Masking::Branch);
  }

  /// Sets the uniform base. A term that changes in a pipelined loop is added
  /// last.
  void setBase() {
    Offsets wide(b, 64);
    Value uniform[2];
    for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
      if (getConstantIntValue(offset) == 0)
        continue;
      const Stride &stride = access.strides.dims[dim];
      Value &sum =
          uniform[pipeline && !pipeline.isDefinedOutsideOfLoop(offset)];
      Value index = access.strides.shifted(lanes.scalar(offset), dim);
      if (stride.run > 1) {
        // Whole runs, or, of a block that is smaller than one, a part.
        if (lanes.facts.of(offset).divisibility() <
            op.getDivisor(dim) * stride.run)
          sum = wide.sum(sum, wide.product({both(index, i32(stride.run - 1))},
                                           stride.fixed));
        index = shr(index, i32(llvm::Log2_64(stride.run)));
        sum = wide.sum(sum, wide.product({index}, stride.ofRun));
        continue;
      }
      SmallVector<Value, 2> factors = {index};
      if (stride.dynamic)
        factors.push_back(stride.dynamic);
      sum = wide.sum(sum,
                     wide.product(factors, stride.dynamic ? 1 : stride.fixed));
    }
    access.base = wide.move(wide.move(lanes.scalar(op.getBase()), uniform[0]),
                            uniform[1]);
  }

  void setBounds() {
    for (auto [dim, bound] : llvm::zip(op.getBounded(), op.getBounds())) {
      Value offset = op.getOffsets()[dim], limit = lanes.scalar(bound);
      if (op.isBoundedBelow(dim) && !lanes.facts.isNatural(offset)) {
        Value within = access.boundFromZero(dim, lanes.scalar(offset), limit);
        someFromZero = allOf(someFromZero, within);
        continue;
      }
      if (!lanes.facts.isWithin(op, offset, bound, layout.layout.shape()[dim]))
        addBound(dim, offset, bound, limit);
    }
  }

  /// Adds the last terms of the lane's offset.
  void setLane() {
    Offsets sums = access.sums();
    for (unsigned dim : access.unclamped.set_bits())
      if (!matchPattern(layout.threadIndex[dim], m_Zero()))
        access.lane = access.strides.addIndex(sums, access.lane,
                                              layout.threadIndex[dim], dim);
    if (!access.lane)
      access.lane = sums.constant(0);
  }

  /// Conditions: the block begins below its upper bounds, and some of it is not
  /// below zero.
  Value some, someFromZero;

private:
  void addBound(unsigned dim, Value offset, Value bound, Value limit) {
    if (isa<LoadOp>(op) && !lanes.facts.isBelow(offset, bound, op)) {
      Value begins = below(lanes.scalar(offset), limit);
      some = allOf(some, begins);
    }
    if (getConstantIntValue(offset) != 0)
      limit = sub(limit, lanes.scalar(offset));
    if (!op.isClamped(dim)) {
      access.limits.push_back({dim, limit, Value()});
      return;
    }
    access.unclamped.reset(dim);
    access.last.push_back({dim, sub(limit, i32(1))});
  }

  Distributor &lanes;
  OpT op;
  StridedAccess &access;
  const DistributedLayout &layout;
  scf::ForOp pipeline; // null: no pipelined loop is around the access
};

} // namespace greta::tile

template <typename OpT>
LaneAccess Distributor::strided(OpT op, const DistributedLayout &layout,
                                Masking masking, int64_t mostReach) {
  bool isWide = op.getWide() ||
                reachesBeyond(mostReach, op, layout.layout, facts, result);
  if (isWide && masking == Masking::Bounded)
    masking = Masking::Replaced;
  auto state = std::make_shared<StridedAccess>(layout, b);
  StridedAccess &access = *state;
  access.masking = masking;
  access.isWide = isWide;
  StridedEmitter<OpT> emitter(*this, op, access);
  access.oneBase = emitter.hasOneBase();
  access.zero = constant(0);
  emitter.setStrides();
  emitter.setBase();
  emitter.setBounds();
  emitter.setLane();

  LaneAccess lane;
  lane.layout = &layout;
  lane.width = accessWidth(op, access, facts);
  lane.masking = masking;
  lane.isWide = isWide;
  // A mask of the target has the lower bounds, too.
  lane.some = masking == Masking::Bounded
                  ? emitter.some
                  : allOf(emitter.some, emitter.someFromZero);
  if (llvm::any_of(access.strides.dims, [](auto &dim) { return dim.shift; }))
    lane.sharers = access.sharers(lane.width);
  lane.place = [state](unsigned reg) { return state->place(reg); };
  lane.mask = [state](unsigned reg) { return state->mask(reg); };
  return lane;
}

template LaneAccess Distributor::strided(LoadOp, const DistributedLayout &,
                                         Masking, int64_t);
template LaneAccess Distributor::strided(StoreOp, const DistributedLayout &,
                                         Masking, int64_t);
