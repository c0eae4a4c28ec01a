//===- DistributePointers.cpp - the places of accesses through pointers ---===//
//
// In: a block of pointers, or one pointer, and a mask. Out: for each register,
// or several that are neighbours in memory, a base, an offset of 32 bits and a
// mask (LaneAccess). LaneAddress.h says what addresses consist of.
//
// If an argument promises to reach less than 2^31 bytes, the offset is a sum of
// 32 bits, uniform parts included, which may wrap on the way: no lane has an
// address of its own, and AMD's buffer loads take masks without a branch.
//
// Lanes whose element is masked off may load another one and then select: a
// branch of their own in a hot loop costs more. That is the one of index 0
// along the dimensions that the mask bounds, if that one is known not to be
// masked off.
//
//===----------------------------------------------------------------------===//

#include "LaneAddress.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Returns the dimensions along which index 0 may be loaded in place of an
/// element that is masked off: the mask bounds indices there, index 0 is never
/// masked off, and the rest of the address does not change along them.
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

namespace greta::tile {

/// Computes the places of a block of pointers.
class PointerEmitter : Arithmetic {
public:
  PointerEmitter(Distributor &lanes, const DistributedLayout &layout,
                 LinearAddress address)
      : Arithmetic{lanes.b}, lanes(lanes), layout(layout),
        address(std::move(address)), strides{{b}, layout} {
    SmallVector<Value> steps;
    wraps = this->address.hasUniformBase() &&
            reachesLittle(this->address.base, steps);
    Offsets sums = this->sums();
    for (Value step : steps)
      uniform = sums.sum(uniform, sums.fit(lanes.scalar(step)));
    for (const LinearTerm &term : this->address.terms)
      addTerm(sums, term);
    if (this->address.hasUniformBase())
      base = lanes.scalar(this->address.base);
    if (base && !wraps)
      base = sums.move(base, uniform);
  }

  /// Whether targets add the lane's offset, of 32 bits, to a base.
  bool hasOffset(int64_t elementBytes) const {
    const int64_t end = (int64_t(1) << 32) / elementBytes;
    int64_t largest = 0;
    for (auto [dim, stride] : llvm::enumerate(strides.dims)) {
      if (matchPattern(layout.threadIndex[dim], m_Zero()))
        continue;
      if (stride.dynamic || stride.fixed < 0 || stride.fixed >= end)
        return false;
      largest += stride.fixed * (layout.layout.shape()[dim] - 1);
      if (largest >= end)
        return false;
    }
    return !wraps;
  }

  /// Sets the lane's part of the places: an offset of 32 bits, or a pointer
  /// that is moved. An element that is masked off has index 0 along the
  /// dimensions `safe`.
  void setLane(const llvm::SmallBitVector &safe, bool asOffset,
               unsigned width) {
    along[0] = ~safe;
    along[1] = safe;
    Offsets offsets(b, asOffset || wraps ? 32u : 64u);
    for (auto [dim, index] : llvm::enumerate(layout.threadIndex)) {
      if (matchPattern(index, m_Zero()))
        continue;
      Value &total = (asOffset ? narrow : lane)[safe[dim]];
      total = strides.addIndex(offsets, total, index, dim);
    }
    ArrayRef<Index> indices = layout.registerIndex;
    for (unsigned reg = 0; reg < indices.size(); reg += width)
      for (unsigned dim : safe.set_bits())
        isOneInside = isOneInside && !indices[reg][dim];
  }

  /// Returns the place of a register. Terms that registers share are added
  /// first, also those that change in a loop.
  LanePlace place(unsigned reg, Value mask) {
    Offsets sums = this->sums();
    Value moved =
        strides.addRegister(sums, base ? Value() : uniform, reg, along[0]);
    Value inside = strides.addRegister(sums, lane[1], reg, along[1]);
    Value mine = lane[0];
    for (const LinearTerm &term : address.terms)
      if (term.block)
        mine = sums.sum(mine, sums.mul(sums.fit(lanes.lanes(term.block)[reg]),
                                       term.constant));
    inside = orZero(inside, mask);
    Value offset = sums.sum(narrow[0], orZero(narrow[1], mask));
    if (!offset)
      offset = lanes.constant(0);
    if (wraps) {
      Value sum = sums.sum(mine, moved);
      sum = isOneInside ? sums.sum(sum, sums.sum(uniform, inside))
                        : sums.sum(sums.sum(sum, uniform), inside);
      return {base, sum ? sum : offset};
    }
    Value pointer =
        sums.move(base ? base : lanes.lanes(address.base)[reg], moved);
    pointer = isOneInside ? sums.move(pointer, sums.sum(mine, inside))
                          : sums.move(sums.move(pointer, mine), inside);
    return {pointer, offset};
  }

  bool wraps; // an offset is the whole sum, of 32 bits

private:
  Offsets sums() const { return {b, wraps ? 32u : 64u}; }

  void addTerm(Offsets &sums, const LinearTerm &term) {
    auto coefficient = [&] {
      SmallVector<Value, 2> factors;
      for (Value factor : term.factors)
        factors.push_back(lanes.scalar(factor));
      return sums.product(factors, term.constant);
    };
    if (term.isUniform()) {
      uniform = sums.sum(uniform, coefficient());
    } else if (term.dim >= 0) {
      Stride &stride = strides.dims[term.dim];
      if (term.factors.empty())
        stride.fixed += term.constant;
      else
        stride.dynamic = sums.sum(stride.dynamic, coefficient());
    }
  }

  /// Returns `part`, a term along dimensions that the mask bounds, or zero if
  /// the element is masked off.
  Value orZero(Value part, Value mask) {
    if (!part)
      return part;
    return select(mask, part, lanes.zeroOf(part.getType()));
  }

  Distributor &lanes;
  const DistributedLayout &layout;
  LinearAddress address;
  Strides strides;
  Value uniform, base;
  // The second of each is along the dimensions that the mask bounds.
  llvm::SmallBitVector along[2];
  Value narrow[2], lane[2];
  bool isOneInside = true;
};

} // namespace greta::tile

LaneAccess Distributor::scattered(Operation *op, Value pointers, Value mask,
                                  bool isVector) {
  LaneAccess access;
  LaneValues masks;
  if (mask)
    masks = LaneValues(lanes(mask));
  access.mask = [masks](unsigned reg) {
    return masks.empty() ? Value() : masks[reg];
  };
  if (!isa<RankedTensorType>(pointers.getType())) {
    LanePlace place{scalar(pointers), constant(0)};
    access.place = [place](unsigned) { return place; };
    return access;
  }
  const DistributedLayout &layout = layoutOf(pointers);
  const unsigned rank = layout.layout.rank();
  access.layout = &layout;
  for (unsigned dim = 0; isVector && dim < rank; ++dim)
    access.width = std::max<unsigned>(
        access.width,
        std::min<int64_t>(layout.layout.contiguity(dim),
                          facts.vectorWidth(pointers, mask, dim)));

  PointerEmitter emitter(*this, layout, getLinearAddress(pointers));
  access.wraps = emitter.wraps;
  llvm::SmallBitVector safe(rank);
  if (access.wraps && row.masksLoads())
    access.masking = Masking::Bounded;
  else if (auto load = dyn_cast<LoadScatteredOp>(op))
    safe = safeDims(load);
  if (safe.any())
    access.masking = Masking::Replaced;
  Type element = getElementTypeOrSelf(getPointee(pointers.getType()));
  emitter.setLane(safe, emitter.hasOffset(bytesInMemory(element)),
                  access.width);
  SmallVector<LanePlace> places(layout.registerIndex.size());
  for (unsigned reg = 0; reg < places.size(); reg += access.width)
    places[reg] = emitter.place(reg, masks.empty() ? Value() : masks[reg]);
  access.place = [places](unsigned reg) { return places[reg]; };
  return access;
}
