//===- DistributeMemory.cpp - loads and stores to lane accesses -----------===//
//
// In: loads and stores of strided blocks and of blocks of pointers. Out: one
// lane access per group of registers that are neighbours in memory, as wide as
// layout, alignment and strides allow, at most 16 bytes. DistributeStrided.cpp
// and DistributePointers.cpp say where each is, and how lanes go about an
// element that is masked off.
//
//   %p = greta_tile.ptr_add %x, %i : ..        %i = %first + iota
//   %v = greta_tile.load_scattered %p mask %m
//     →  %b  = greta_tile.ptr_add %x, %first   the same in all lanes
//        %v0 = scf.if %m0 { greta_tile.ptr_load %b[%lane] }
//
// Stores branch. Loads straight to shared memory leave what is out of bounds to
// the target, with a mask.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Tile/TransposedLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// The most bytes that a block may span if its offsets have 32 bits. A
/// pipelined loop on AMD adds at most as many, and buffers end 16 bytes before
/// 2^32. Buffers of direct loads end at 2^31.
static constexpr int64_t mostReach = INT32_MAX - 15;
static constexpr int64_t mostDirectReach = int64_t(1) << 30;

//===----------------------------------------------------------------------===//
// One lane's accesses
//===----------------------------------------------------------------------===//

/// Returns the alignment of an access, which is its size, since facts have
/// shown that it is aligned.
static int64_t alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return bytesInMemory(getElementTypeOrSelf(type)) *
         (vector ? vector.getNumElements() : 1);
}

/// Converts a pointer to the type in memory: i1 is a byte there.
static Value asBytes(ImplicitLocOpBuilder &b, Value base) {
  auto bytes = PtrType::get(b.getI8Type());
  return PtrCastOp::create(b, bytes, base);
}

static Value loadLane(ImplicitLocOpBuilder &b, Type type, LanePlace at,
                      Value mask, const LaneAccess &access) {
  int64_t align = alignmentOf(type);
  bool wraps = access.wraps;
  if (!getElementTypeOrSelf(type).isInteger(1))
    return PtrLoadOp::create(b, type, at.base, at.offset, mask, align, wraps,
                             access.transposed);
  Type bytes = b.getI8Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bytes = vector.clone(bytes);
  Value loaded = PtrLoadOp::create(b, bytes, asBytes(b, at.base), at.offset,
                                   mask, align, wraps, /*transposed=*/false);
  Arithmetic a{b};
  return a.differ(loaded, a.zeroOf(bytes));
}

static void storeLane(ImplicitLocOpBuilder &b, Value value, LanePlace at) {
  int64_t align = alignmentOf(value.getType());
  if (getElementTypeOrSelf(value.getType()).isInteger(1)) {
    Type bytes = b.getI8Type();
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      bytes = vector.clone(bytes);
    value = arith::ExtUIOp::create(b, bytes, value);
    at.base = asBytes(b, at.base);
  }
  PtrStoreOp::create(b, value, at.base, at.offset, align);
}

/// Removes the first registers, as many as have the same mask, and returns
/// them.
static ArrayRef<unsigned> takeGroup(ArrayRef<unsigned> &registers,
                                    llvm::function_ref<Value(unsigned)> mask) {
  Value first = mask(registers.front());
  ArrayRef<unsigned> group =
      registers.take_while([&](unsigned reg) { return mask(reg) == first; });
  registers = registers.drop_front(group.size());
  return group;
}

LaneValues
Distributor::loadRegisters(const LaneAccess &access, Type type, bool isWhole,
                           llvm::function_ref<Value(unsigned)> other) {
  const bool isBounded = access.masking == Masking::Bounded,
             isBranch = access.masking == Masking::Branch;
  auto load = [&](ArrayRef<unsigned> group) {
    LaneValues out;
    for (unsigned reg : group) {
      if (!access.sharers.empty())
        if (unsigned first = access.sharers[reg / access.width]; first != reg) {
          out.push_back(out[first / access.width]);
          continue;
        }
      LanePlace at = access.place(reg);
      Value mask = isBranch ? Value() : access.mask(reg);
      if (isBounded)
        mask = allOf(access.some, mask);
      Value loaded = loadLane(b, type, at, isBounded ? mask : Value(), access);
      if (mask && !isWhole)
        loaded = b.createOrFold<arith::SelectOp>(mask, loaded, other(reg));
      out.push_back(loaded);
    }
    return out;
  };
  auto loadWhere = [&](Value condition, ArrayRef<unsigned> group) {
    return valuesWhere(
        condition, [&] { return load(group); },
        [&] { return LaneValues(llvm::map_range(group, other)); });
  };
  SmallVector<unsigned> registers = access.registers();
  if (!isBranch)
    return loadWhere(isBounded ? Value() : access.some, registers);
  LaneValues out;
  auto maskOf = [&](unsigned reg) { return access.mask(reg); };
  for (ArrayRef<unsigned> rest = registers; !rest.empty();) {
    ArrayRef<unsigned> group = takeGroup(rest, maskOf);
    llvm::append_range(out, loadWhere(maskOf(group.front()), group));
  }
  return out;
}

void Distributor::storeRegisters(Value block, const LaneAccess &access) {
  Value owner = isFirstOfWorkgroup();
  SmallVector<unsigned> registers = access.registers();
  if (access.layout) {
    const Layout &layout = access.layout->layout;
    owner = ownsCopies(layout);
    // The others are copies.
    llvm::erase_if(registers,
                   [&](unsigned reg) { return layout.firstCopy(reg) != reg; });
  }
  llvm::DenseMap<unsigned, Value> masks;
  for (unsigned reg : registers)
    masks[reg] = access.mask(reg);
  Type element = getElementTypeOrSelf(block.getType());
  LaneValues stored = vectors(block, pieceOf(element, access.width));
  for (ArrayRef<unsigned> rest = registers; !rest.empty();) {
    ArrayRef<unsigned> group =
        takeGroup(rest, [&](unsigned reg) { return masks[reg]; });
    storeWhere(allOf(owner, masks[group.front()]), [&] {
      for (unsigned reg : group)
        storeLane(b, stored[reg / access.width], access.place(reg));
    });
  }
}

Value Distributor::zeros(Type type) {
  return arith::ConstantOp::create(prologue, b.getZeroAttr(type));
}

//===----------------------------------------------------------------------===//
// Strided blocks
//===----------------------------------------------------------------------===//

/// Returns the layout in which lanes load a block by the target's transposed
/// load, because its neighbours in memory lie across the wanted layout's
/// registers; null: lanes load the wanted layout.
const DistributedLayout *Distributor::beforeTransposition(LoadOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const Layout &held = layoutOf(op.getResult()).layout;
  const unsigned bytes = bytesInMemory(type.getElementType()),
                 width = transposedWidth(row, /*isShared=*/false, bytes);
  if (!width || type.getElementType().isInteger(1) || op.getDivisors() ||
      op.getRuns() || !facts.isWithin(op))
    return nullptr;
  for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
    if (stride != 1 || held.contiguity(dim) > 1 ||
        facts.vectorWidth(op, dim) < width)
      continue;
    if (auto loaded =
            beforeTransposedLoad(row, /*isShared=*/false, bytes, held, dim))
      return &distributed(toAttr(op.getContext(), *loaded));
  }
  return nullptr;
}

LogicalResult Distributor::distributeLoad(LoadOp op) {
  // A block that is stored directly is loaded at its store.
  for (Operation *user : op->getUsers())
    if (auto store = dyn_cast<LocalStoreOp>(user); store && store.getDirect())
      return success();
  const Layout &layout = layoutOf(op.getResult()).layout;
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    int64_t extent = llvm::PowerOf2Ceil(layout.shape()[dim]);
    int64_t unit = op.getDivisor(dim) * op.getRun(dim),
            multiple = std::min(unit, extent);
    if (facts.of(offset).divisibility() < multiple)
      return op.emitOpError("divides the indices along dimension ")
             << dim << " by " << unit
             << ", but its offset is not known to be a multiple of " << multiple
             << "; make it one that the facts analysis sees";
  }
  Type element = getElementTypeOrSelf(op.getResult().getType());
  // In a pipelined loop the target's loads have bounds, beyond which lanes that
  // are masked off are: no branch for blocks that begin outside, no selection.
  // The first blocks' in front of it likewise, so that none waits for another.
  bool isBounded =
      (op->getParentOp()->hasAttr(rolledName) || op->hasAttr(firstName)) &&
      row.masksLoads() && !element.isInteger(1);
  const DistributedLayout *loaded = beforeTransposition(op);
  LaneAccess access = strided(
      op, loaded ? *loaded : layoutOf(op.getResult()),
      isBounded && !loaded ? Masking::Bounded : Masking::Replaced, mostReach);
  if ((access.transposed = loaded))
    access.width =
        transposedWidth(row, /*isShared=*/false, bytesInMemory(element));
  Type type = pieceOf(element, access.width);
  auto other = [&](unsigned) -> Value {
    Value one = op.getOther() ? scalar(op.getOther()) : zeros(element);
    return access.width > 1
               ? vector::BroadcastOp::create(b, type, one).getResult()
               : one;
  };
  bool isWhole = op->hasAttr(aheadName) ||
                 (access.masking == Masking::Bounded && !op.getOther());
  setVectors(op.getResult(), loadRegisters(access, type, isWhole, other));
  return success();
}

/// Emits a load straight to shared memory. The elements of a wave's lanes go to
/// neighbouring places from a uniform one on, so the layout has to fill the
/// local in order.
LogicalResult Distributor::distributeDirect(LoadOp op, LocalStoreOp store) {
  const DistributedLayout &layout = layoutOf(op.getResult());
  SharedPlacement placement = placementOf(store.getLocal().getType());
  const LocalArray &local = locals.at(store.getLocal());
  unsigned width = layout.layout.tileRegisters(), lanes = kernel.getNumLanes();
  std::optional<Layout> filling =
      fillingLayout(placement, width, lanes, kernel.getNumWaves());
  if (!filling || *filling != layout.layout || width * lanes % local.width)
    return store.emitOpError("is 'direct' but its layout does not fill the "
                             "local in order");
  LaneAccess access = strided(op, layout, Masking::Bounded, mostDirectReach);
  if (access.isWide)
    return store.emitOpError("is 'direct' but the rows of its block lie more "
                             "than 2^30 bytes apart; load it otherwise");
  if (access.width < width)
    return store.emitOpError("is 'direct' but its loads are not known to have ")
           << width << " neighbours in memory";
  // In entries of the array.
  Value first = mul(waveId(), constant(width * lanes / local.width));
  first = add(first, mul(scalar(store.getStage()), constant(local.stageSize)));
  Value array = stageOf(store.getLocal().getType(), local, store.getStage());
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += width) {
    LanePlace at = access.place(reg);
    int64_t place = placement.offset(layout.registerIndex[reg]) /
                    placement.elementBytes / local.width;
    Value mask = allOf(access.some, access.mask(reg));
    PtrLoadSharedOp::create(b, at.base, at.offset, mask, array,
                            offsetBy(first, place), width);
  }
  return success();
}

LogicalResult Distributor::distributeStore(StoreOp op) {
  storeRegisters(op.getValue(), strided(op, layoutOf(op.getValue()),
                                        Masking::Branch, mostReach));
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks of pointers
//===----------------------------------------------------------------------===//

LogicalResult Distributor::distributeLoadScattered(LoadScatteredOp op) {
  LaneAccess access =
      scattered(op, op.getPointers(), op.getMask(), /*isVector=*/true);
  Type type =
      pieceOf(getElementTypeOrSelf(op.getResult().getType()), access.width);
  bool isZero = !op.getOther() || !op.getMask() ||
                matchPattern(op.getOther(), m_Zero()) ||
                matchPattern(op.getOther(), m_PosZeroFloat());
  LaneValues others;
  if (!isZero)
    others = vectors(op.getOther(), type);
  auto other = [&](unsigned reg) {
    return isZero ? zeros(type) : others[reg / access.width];
  };
  // A target's masked loads bring zeros.
  bool isWhole =
      op->hasAttr(aheadName) || (access.masking == Masking::Bounded && isZero);
  setVectors(op.getResult(), loadRegisters(access, type, isWhole, other));
  return success();
}

LogicalResult Distributor::distributeStoreScattered(StoreScatteredOp op) {
  storeRegisters(op.getValue(), scattered(op, op.getPointers(), op.getMask(),
                                          /*isVector=*/true));
  return success();
}
