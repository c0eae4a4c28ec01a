//===- DistributeMemory.cpp - block loads and stores to lane accesses -----===//
//
// A block access becomes one lane access per group of registers that are
// neighbours in memory, as wide as layout, alignment and strides allow, at most
// 16 bytes. Its address has a uniform part (block offsets and the registers'
// offsets, added to the pointer with 64 bits) and a part that depends on the
// lane (32 bits), which is the same for all groups. If a block's elements lie
// further apart than 32 bits of bytes reach, each lane moves the pointer by
// 64 bits instead. A launch keeps the strides that it computes below that.
//
// Lanes that are out of bounds load the block's first element within and then
// select: a branch of their own in a hot loop costs more. If facts do not prove
// that there is one, the whole workgroup asks, in one branch around the
// loads. Stores branch. Loads straight
// to shared memory leave what is out of bounds to the target, with a mask.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "GretaTile/LoopAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// Everything about one block access that load and store share.
struct Access {
  Access(ImplicitLocOpBuilder &b, const DistributedLayout &layout,
         ArrayRef<int64_t> strides)
      : b(b), layout(layout), strides(strides) {}

  ImplicitLocOpBuilder &b;
  const DistributedLayout &layout;
  SmallVector<int64_t> strides;      // kDynamic where dynamicStrides has it
  SmallVector<Value> dynamicStrides; // per dim, null where static
  Value base;                        // moved to the block's first element
  Value laneOffset;                  // elements, i32 or where isWide i64
  bool isWide = false;               // the block is larger than 32 bits reach
  unsigned width = 1;                // elements per lane access
  SmallVector<int64_t> shifts;       // log2 of the divisors, per dim
  struct Limit {
    unsigned dim;
    Value end;   // bound minus offset; of indices from `first` on the bound
    Value first; // the offset, where the sum may be negative; null: it may not
  };
  SmallVector<Limit> limits;
  SmallVector<std::pair<unsigned, Value>> last; // clamped: dim, last index
  Value some; // uniform i1: a load's block begins within; null: it does
  // The same of dimensions that begin below zero: some of the block is within.
  Value someFromZero;
  Value inside; // offset of the first element within; null: 0

  /// The offset that a register's clamped indices add to the lane's, beyond
  /// `laneOffset`; null without any.
  Value clampedOffset(unsigned reg) {
    Value sum;
    for (auto [dim, end] : last) {
      int64_t index = layout.registerIndex[reg][dim];
      Value &term = clampedTerms[{dim, index}];
      if (!term) {
        Value at = layout.threadIndex[dim];
        if (index)
          at = arith::AddIOp::create(
              b, at, arith::ConstantIntOp::create(b, index, 32));
        term = scaled(divided(arith::MinSIOp::create(b, at, end), dim), dim);
      }
      sum = accumulate(b, sum, term);
    }
    return sum;
  }
  bool isClamped(unsigned dim) const {
    return llvm::any_of(last, [&](auto &entry) { return entry.first == dim; });
  }
  /// Block, thread and register move different bits of an index, so that each
  /// part may be divided alone.
  Value divided(Value index, unsigned dim) {
    if (!shifts[dim])
      return index;
    return arith::ShRUIOp::create(
        b, index, arith::ConstantIntOp::create(b, shifts[dim], 32));
  }
  /// index * stride of a dimension, with as many bits as the lane's offset.
  Value scaled(Value index, unsigned dim) {
    if (isWide)
      index = arith::ExtSIOp::create(b, b.getI64Type(), index);
    if (Value stride = dynamicStrides[dim]) {
      if (isWide)
        stride = arith::ExtSIOp::create(b, b.getI64Type(), stride);
      return arith::MulIOp::create(b, index, stride);
    }
    return strides[dim] == 1
               ? index
               : arith::MulIOp::create(b, index,
                                       arith::ConstantIntOp::create(
                                           b, strides[dim], isWide ? 64 : 32))
                     .getResult();
  }

  /// The address of a register's element in a block that 32 bits do not span;
  /// the address of the block's first element where the mask is off.
  Value farAddress(ImplicitLocOpBuilder &b, unsigned reg, Value mask) {
    Value offset = accumulate(b, laneOffset, clampedOffset(reg));
    if (registerOffset(reg) != 0)
      offset = accumulate(b, offset, registerOffsetValue(b, reg, 64));
    if (mask)
      offset = arith::SelectOp::create(b, mask, offset, insideOffset());
    return PtrAddOp::create(b, base, offset);
  }

  /// The place that lanes out of bounds load instead.
  Value insideOffset() {
    return inside ? inside
                  : arith::ConstantIntOp::create(b, 0, isWide ? 64 : 32)
                        .getResult();
  }

  /// Uniform element offset of a register: null if it is not static.
  std::optional<int64_t> registerOffset(unsigned reg) const {
    int64_t offset = 0;
    for (auto [dim, index] : llvm::enumerate(layout.registerIndex[reg])) {
      if (!index || isClamped(dim))
        continue;
      if (dynamicStrides[dim])
        return std::nullopt;
      offset += (index >> shifts[dim]) * strides[dim];
    }
    return offset;
  }

  /// The same as an i32 (bits 32) or i64 value.
  Value registerOffsetValue(ImplicitLocOpBuilder &b, unsigned reg,
                            unsigned bits) const {
    Value sum;
    int64_t fixed = 0;
    Type type = b.getIntegerType(bits);
    for (auto [dim, whole] : llvm::enumerate(layout.registerIndex[reg])) {
      int64_t index = whole >> shifts[dim];
      if (!index || isClamped(dim))
        continue;
      if (!dynamicStrides[dim]) {
        fixed += index * strides[dim];
        continue;
      }
      Value stride = dynamicStrides[dim];
      if (bits == 64)
        stride = arith::ExtSIOp::create(b, type, stride);
      Value part = arith::MulIOp::create(
          b, stride, arith::ConstantIntOp::create(b, index, bits));
      sum = accumulate(b, sum, part);
    }
    return accumulate(b, sum, arith::ConstantIntOp::create(b, fixed, bits));
  }

  /// i1: the register's element is within bounds; null when it always is.
  Value inBounds(unsigned reg) {
    Value all;
    for (auto [dim, end, first] : limits) {
      int64_t index = layout.registerIndex[reg][dim];
      Value &mask = masks[{dim, index}];
      if (!mask) {
        Value at = layout.threadIndex[dim];
        if (first)
          at = arith::AddIOp::create(b, at, first);
        if (index)
          at = arith::AddIOp::create(
              b, at, arith::ConstantIntOp::create(b, index, 32));
        mask = arith::CmpIOp::create(
            b, first ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
            at, end);
      }
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

private:
  llvm::DenseMap<std::pair<unsigned, int64_t>, Value> masks, clampedTerms;
  llvm::DenseMap<std::pair<Value, Value>, Value> conjunctions;
};

} // namespace

/// The bytes of a block that 32 bits may reach: a pipelined loop on AMD adds as
/// many at most, and the records of buffers end 16 bytes before 2^32. The
/// records of direct loads end at 2^31.
static constexpr int64_t mostReach = INT32_MAX - 15;
static constexpr int64_t mostDirectReach = int64_t(1) << 30;

static int64_t divisorOf(LoadOp op, unsigned dim) { return op.getDivisor(dim); }
static int64_t divisorOf(StoreOp, unsigned) { return 1; }

/// In bytes, of so many elements that facts have side by side.
static int64_t alignmentOf(Type element, unsigned width) {
  return width * bytesInMemory(element);
}

/// The width of one lane access: limited by the layout's run of registers along
/// the dimension of stride 1, and by what facts know of it. Clamped neighbours
/// are the same element.
template <typename OpT>
static unsigned accessWidth(OpT op, const Access &access, const Facts &facts) {
  const Layout &layout = access.layout.layout;
  int64_t width = 1;
  for (auto [dim, stride] : llvm::enumerate(op.getStrides()))
    if (stride == 1 && !access.isClamped(dim))
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
  auto block =
      cast<RankedTensorType>(isa<LoadOp>(op) ? op->getResult(0).getType()
                                             : op->getOperand(0).getType());
  const uint64_t bytes = bytesInMemory(block.getElementType());
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

/// Bounds of a dimension whose block may begin below zero: one comparison of
/// unsigned numbers.
static void boundFromZero(Access &access, unsigned dim, Value offset,
                          Value bound, int64_t extent) {
  ImplicitLocOpBuilder &b = access.b;
  auto constant = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto below = [&](Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Value zero = constant(0);
  bound = arith::MaxSIOp::create(b, bound, zero);
  access.limits.push_back({dim, bound, offset});
  Value some = arith::AndIOp::create(
      b, below(constant(-extent), offset),
      below(arith::MaxSIOp::create(b, offset, zero), bound));
  access.someFromZero = accumulate<arith::AndIOp>(b, access.someFromZero, some);
  Value first =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, zero, offset), zero);
  access.inside = accumulate(b, access.inside, access.scaled(first, dim));
}

/// Builds the address parts; `value` maps the op's scalar operands.
template <typename OpT, typename MapT>
static Access
makeAccess(OpT op, const DistributedLayout &layout, const Facts &facts,
           ImplicitLocOpBuilder &b, MapT value,
           llvm::function_ref<bool(int64_t)> isClamped, bool isWide) {
  Access access(b, layout, op.getStrides());
  access.isWide = isWide;
  unsigned nextDynamic = 0;
  for (int64_t stride : op.getStrides())
    access.dynamicStrides.push_back(
        stride == ShapedType::kDynamic
            ? value(op.getDynamicStrides()[nextDynamic++])
            : Value());
  Type i64 = b.getI64Type();
  // A term that changes in a pipelined loop is added last.
  auto pipeline = dyn_cast<scf::ForOp>(op->getParentOp());
  Value uniform[2];
  for (unsigned dim = 0; dim < layout.layout.rank(); ++dim)
    access.shifts.push_back(llvm::Log2_64(divisorOf(op, dim)));
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    if (getConstantIntValue(offset) == 0)
      continue;
    Value term =
        arith::ExtSIOp::create(b, i64, access.divided(value(offset), dim));
    if (Value stride = access.dynamicStrides[dim])
      term = arith::MulIOp::create(b, term,
                                   arith::ExtSIOp::create(b, i64, stride));
    else if (access.strides[dim] != 1)
      term = arith::MulIOp::create(
          b, term, arith::ConstantIntOp::create(b, access.strides[dim], 64));
    Value &sum = uniform[pipeline && pipeline->hasAttr(rolledName) &&
                         !pipeline.isDefinedOutsideOfLoop(offset)];
    sum = accumulate(b, sum, term);
  }
  access.base = value(op.getBase());
  for (Value offset : uniform)
    if (offset)
      access.base = PtrAddOp::create(b, access.base, offset);
  for (auto [dim, bound] : llvm::zip(op.getBounded(), op.getBounds())) {
    Value offset = op.getOffsets()[dim], limit = value(bound);
    int64_t extent = layout.layout.shape()[dim];
    auto range = facts.rangeOf(offset);
    if (op.isBoundedBelow(dim) && !(range && range->first >= 0)) {
      boundFromZero(access, dim, value(offset), limit, extent);
      continue;
    }
    if (isWithin(facts, op, offset, bound, extent))
      continue;
    if (isa<LoadOp>(op) && !facts.isBelow(offset, bound, op)) {
      Value begins = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           value(offset), limit);
      access.some = accumulate<arith::AndIOp>(b, access.some, begins);
    }
    if (getConstantIntValue(offset) != 0)
      limit = arith::SubIOp::create(b, limit, value(offset));
    if (isClamped(dim))
      access.last.push_back(
          {static_cast<unsigned>(dim),
           arith::SubIOp::create(b, limit,
                                 arith::ConstantIntOp::create(b, 1, 32))});
    else
      access.limits.push_back({static_cast<unsigned>(dim), limit, Value()});
  }
  for (unsigned dim = 0; dim < layout.layout.rank(); ++dim) {
    Value term = layout.threadIndex[dim];
    if (getConstantIntValue(term) == 0 || access.strides[dim] == 0 ||
        access.isClamped(dim))
      continue;
    term = access.scaled(access.divided(term, dim), dim);
    access.laneOffset = accumulate(b, access.laneOffset, term);
  }
  if (!access.laneOffset)
    access.laneOffset =
        arith::ConstantIntOp::create(b, 0, access.isWide ? 64 : 32);
  access.width = accessWidth(op, access, facts);
  return access;
}

LogicalResult Distributor::distributeLoad(LoadOp op) {
  // A block that is stored directly is loaded at its store.
  for (Operation *user : op->getUsers())
    if (auto store = dyn_cast<LocalStoreOp>(user); store && store.getDirect())
      return success();
  auto found = layoutOf(op, op.getResult());
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    int64_t extent = llvm::PowerOf2Ceil(layout.layout.shape()[dim]);
    int64_t multiple = std::min(op.getDivisor(dim), extent);
    if (facts.of(offset).divisibility() < multiple)
      return op.emitOpError("divides the indices along dimension ")
             << dim << " by " << op.getDivisor(dim)
             << ", but its offset is not known to be a multiple of " << multiple
             << "; make it one that the facts analysis sees";
  }
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Type element = getElementTypeOrSelf(op.getResult().getType());
  Access access = makeAccess(
      op, layout, facts, b, [&](Value v) { return scalar(v); },
      [&](int64_t dim) { return op.isClamped(dim); },
      reachesBeyond(mostReach, op, layout.layout, facts, result));
  unsigned width = access.width;
  Type type = pieceOf(element, width);
  // The block's `other` as what a load brings.
  auto otherwise = [&]() -> Value {
    Value other = op.getOther()
                      ? scalar(op.getOther())
                      : arith::ConstantOp::create(prologue, op.getLoc(),
                                                  b.getZeroAttr(element));
    return width > 1 ? vector::BroadcastOp::create(b, type, other).getResult()
                     : other;
  };
  // In a pipelined loop one base serves all registers.
  bool oneBase = op->getParentOp()->hasAttr(rolledName);
  // There AMD's loads have bounds, beyond which lanes that are masked off are:
  // no branch for blocks that begin outside, no selection.
  // The first blocks' in front of it likewise, so that none waits for another.
  bool isMasked = (oneBase || op->hasAttr(firstName)) && row.isHip() &&
                  !element.isInteger(1) && !access.isWide;
  auto emit = [&] {
    LaneValues out;
    Value other;
    // Registers that share an element (and a mask) share its load.
    std::map<std::pair<std::vector<int64_t>, void *>, Value> loads;
    for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += width) {
      Value base = access.base, offset;
      if (!access.isWide)
        offset = accumulate(b, access.laneOffset, access.clampedOffset(reg));
      Value mask = access.inBounds(reg);
      Value *shared = nullptr;
      if (op.getDivisors()) {
        std::vector<int64_t> place;
        for (auto [index, shift] :
             llvm::zip(layout.registerIndex[reg], access.shifts))
          place.push_back(index >> shift);
        shared = &loads[{place, mask.getAsOpaquePointer()}];
        if (*shared) {
          out.push_back(*shared);
          continue;
        }
      }
      if (access.isWide) {
        base = access.farAddress(b, reg, mask);
        offset = constant(0);
      } else if (mask || oneBase) {
        if (access.registerOffset(reg) != 0)
          offset = arith::AddIOp::create(
              b, offset, access.registerOffsetValue(b, reg, 32));
        if (mask && !isMasked)
          offset =
              arith::SelectOp::create(b, mask, offset, access.insideOffset());
      } else if (access.registerOffset(reg) != 0) {
        base =
            PtrAddOp::create(b, base, access.registerOffsetValue(b, reg, 64));
      }
      if (isMasked)
        mask = accumulate<arith::AndIOp>(b, access.some, mask);
      Value loaded =
          PtrLoadOp::create(b, type, base, offset, isMasked ? mask : Value(),
                            alignmentOf(element, width));
      if (mask && (!isMasked || op.getOther())) {
        if (!other)
          other = otherwise();
        loaded = arith::SelectOp::create(b, mask, loaded, other);
      }
      if (shared)
        *shared = loaded;
      out.push_back(loaded);
    }
    return out;
  };
  LaneValues out;
  Value some = accumulate<arith::AndIOp>(b, access.some, access.someFromZero);
  if (some && !isMasked) {
    SmallVector<Type> types(layout.registerIndex.size() / width, type);
    auto branch = scf::IfOp::create(b, types, some,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, emit());
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, LaneValues(types.size(), otherwise()));
    out = LaneValues(branch.getResults());
  } else {
    out = emit();
  }
  setVectors(op.getResult(), std::move(out));
  return success();
}

/// The loads of a wave's lanes come to neighbouring places, so the layout has
/// to be the one that fills the local in order, and the wave's place is
/// uniform.
LogicalResult Distributor::distributeDirect(LoadOp op, LocalStoreOp store) {
  auto found = layoutOf(op, op.getResult());
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  SharedPlacement placement = placementOf(store.getLocal().getType());
  const LocalArray &local = locals.at(store.getLocal());
  unsigned width = layout.layout.tileRegisters(), lanes = kernel.getNumLanes();
  std::optional<Layout> filling =
      fillingLayout(placement, width, lanes, kernel.getNumWaves());
  if (!filling || *filling != layout.layout || width * lanes % local.width)
    return store.emitOpError("is 'direct' but its layout does not fill the "
                             "local in order");
  ImplicitLocOpBuilder b(store.getLoc(), builder);
  if (reachesBeyond(mostDirectReach, op, layout.layout, facts, result))
    return store.emitOpError("is 'direct' but the rows of its block lie more "
                             "than 2^30 bytes apart; load it otherwise");
  Access access = makeAccess(
      op, layout, facts, b, [&](Value v) { return scalar(v); },
      [&](int64_t dim) { return op.isClamped(dim); }, /*isWide=*/false);
  if (access.width < width)
    return store.emitOpError("is 'direct' but its loads are not known to have ")
           << width << " neighbours in memory";
  // In entries of the array.
  Value first =
      arith::MulIOp::create(b, waveId(), constant(width * lanes / local.width));
  first =
      arith::AddIOp::create(b, first,
                            arith::MulIOp::create(b, scalar(store.getStage()),
                                                  constant(local.stageSize)));
  Value array = stageOf(store.getLocal().getType(), local, store.getStage(), b);
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += width) {
    Value offset = accumulate(b, access.laneOffset, access.clampedOffset(reg));
    if (access.registerOffset(reg) != 0)
      offset = arith::AddIOp::create(b, offset,
                                     access.registerOffsetValue(b, reg, 32));
    int64_t place = placement.offset(layout.registerIndex[reg]) /
                    placement.elementBytes / local.width;
    Value mask =
        accumulate<arith::AndIOp>(b, access.some, access.inBounds(reg));
    PtrLoadSharedOp::create(b, access.base, offset, mask, array,
                            offsetBy(b, first, place), width);
  }
  return success();
}

LogicalResult Distributor::distributeStore(StoreOp op) {
  auto found = layoutOf(op, op.getValue());
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Type element = getElementTypeOrSelf(op.getValue().getType());
  Access access = makeAccess(
      op, layout, facts, b, [&](Value v) { return scalar(v); },
      [](int64_t) { return false; },
      reachesBeyond(mostReach, op, layout.layout, facts, result));
  unsigned width = access.width;
  Value owner = ownsCopies(layout.layout, b);
  SmallVector<unsigned> registers = storedRegisters(layout, width);
  LaneValues masks(layout.registerIndex.size());
  for (unsigned reg : registers)
    masks[reg] = access.inBounds(reg);
  LaneValues list = vectors(op.getValue(), pieceOf(element, width));
  storeRegisters(
      registers, masks, owner, b, [&](ImplicitLocOpBuilder &b, unsigned reg) {
        Value base = access.base, offset = access.laneOffset;
        if (access.isWide) {
          base = access.farAddress(b, reg, /*mask=*/Value());
          offset = constant(0);
        } else if (access.registerOffset(reg) != 0) {
          base =
              PtrAddOp::create(b, base, access.registerOffsetValue(b, reg, 64));
        }
        PtrStoreOp::create(b, list[reg / width], base, offset,
                           alignmentOf(element, width));
      });
  return success();
}
