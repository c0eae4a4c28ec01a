//===- DistributeShared.cpp - blocks on their way through shared memory ---===//
//
// In: a lane's registers of a block. Out: stores to an array in shared memory
// and, for a layout conversion or a reshape, the loads by which each lane finds
// its registers of the other layout there.
//
// An element lies in an entry of the array, the thread's part plus the
// register's. A block that is too large for the array passes in parts, one
// after another through the same entries:
//
//   entry = part * order.part + place        both of thread and register add
//
// so a register's part is known, up to what the thread adds to it. Registers
// that only some threads store now do so in a branch, and what a thread loads
// in the wrong part it drops.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "greta/Layout/Waves.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

//===----------------------------------------------------------------------===//
// The places of elements
//===----------------------------------------------------------------------===//

/// Returns the sizes, in entries, of the parts that a block of `shape` may be
/// cut into. A part has some neighbours along one dimension, and all entries
/// within them. Their number is a power of two, so that thread and register
/// each decide their share of the part's number. Padded rows are not cut.
SmallVector<int64_t>
Distributor::SharedOrder::parts(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> found{size};
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    int64_t entries = dim == fastest ? shape[dim] / width : shape[dim];
    if (dim == fastest && isPadded)
      continue;
    for (int64_t count = powerPart(entries); count; count /= 2)
      found.push_back(stride * count);
  }
  return found;
}

int64_t Distributor::SharedOrder::offset(const Index &index) const {
  int64_t offset = 0;
  for (auto [dim, at] : llvm::enumerate(index))
    offset += (dim == fastest ? at / width : at) * strides[dim];
  return offset;
}

/// Returns the highest number of a part that thread bits alone give.
int64_t
Distributor::SharedOrder::lastPart(const DistributedLayout &layout) const {
  int64_t last = 0;
  for (const ThreadBit &bit : layout.layout.threadBits())
    last += offset(Index(bit.basis.begin(), bit.basis.end()));
  return last / part;
}

Distributor::SharedOrder Distributor::rowMajor(const Layout &layout,
                                               unsigned width) {
  Index shape = layout.shape();
  SharedOrder order{unsigned(shape.size()) - 1, width, {}};
  order.strides.resize(shape.size(), 1);
  int64_t stride = shape.back();
  for (unsigned dim = shape.size() - 1; dim-- > 0;) {
    order.strides[dim] = stride / width;
    stride *= shape[dim];
  }
  order.size = order.part = stride / width;
  return order;
}

Value Distributor::sharedThreadOffset(ArrayRef<Value> threadIndex,
                                      const SharedOrder &order) {
  Value entry;
  for (auto [dim, index] : llvm::enumerate(threadIndex)) {
    Value term = index;
    if (dim == order.fastest && order.width > 1)
      term = div(term, constant(order.width));
    if (order.strides[dim] != 1)
      term = mul(term, constant(order.strides[dim]));
    entry = sum(entry, term);
  }
  return entry;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Moves a block through shared memory. There it is row-major, in vectors, with
/// the dimension fastest along which both layouts have the longest runs. Rows
/// are padded by one vector, and at least by a bank, against conflicts.
LaneValues Distributor::convertThroughShared(ArrayRef<Value> from,
                                             const DistributedLayout &src,
                                             const DistributedLayout &dst) {
  unsigned rank = src.layout.rank();
  unsigned bits = from.front().getType().getIntOrFloatBitWidth();
  unsigned fastest = rank - 1, width = 1;
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned run =
        std::min({src.layout.contiguity(dim), dst.layout.contiguity(dim),
                  std::max(1u, 128 / bits)});
    if (run > width) {
      width = run;
      fastest = dim;
    }
  }
  Index shape = src.layout.shape();
  auto nested = [&](unsigned outermost, bool isPadded) {
    SharedOrder order{fastest, width, SmallVector<int64_t>(rank, 1)};
    order.size = shape[fastest] / width;
    order.isPadded = isPadded && order.size > 1;
    if (order.isPadded)
      order.size += std::max(1u, 32 / (std::max(bits, 8u) * width));
    auto add = [&](unsigned dim) {
      order.strides[dim] = order.size;
      order.size *= shape[dim];
    };
    for (unsigned dim = rank; dim-- > 0;)
      if (dim != fastest && dim != outermost)
        add(dim);
    if (outermost != fastest)
      add(outermost);
    order.part = order.size;
    return order;
  };
  SharedOrder order = nested(/*outermost=*/fastest, /*isPadded=*/true);
  int64_t most = entriesAtATime(from.front().getType(), order);
  // Parts along the dimension that fewest threads tell apart; only where rows
  // are too long themselves, parts of rows.
  std::optional<SharedOrder> best;
  auto cost = [&](const SharedOrder &order) {
    return order.size / order.part *
           (2 + order.lastPart(src) + order.lastPart(dst));
  };
  for (bool isPadded : {true, false}) {
    if (best || most == order.size)
      break;
    for (unsigned dim = 0; dim < rank; ++dim) {
      SharedOrder cut = nested(dim, isPadded);
      for (int64_t part : cut.parts(shape)) {
        cut.part = part;
        if (part <= most && (!best || cost(cut) < cost(*best)))
          best = cut;
      }
    }
  }
  if (best)
    order = *best;
  return moveThroughShared(from, src, order, dst, order);
}

/// Moves a block through shared memory, row-major on both sides, so that each
/// element keeps its place.
LaneValues Distributor::reshapeThroughShared(ArrayRef<Value> from,
                                             const DistributedLayout &src,
                                             const DistributedLayout &dst) {
  unsigned srcLast = src.layout.rank() - 1, dstLast = dst.layout.rank() - 1;
  unsigned bits = from.front().getType().getIntOrFloatBitWidth();
  unsigned width =
      std::min({src.layout.contiguity(srcLast), dst.layout.contiguity(dstLast),
                std::max(1u, 128 / bits)});
  SharedOrder srcOrder = rowMajor(src.layout, width);
  SharedOrder dstOrder = rowMajor(dst.layout, width);
  int64_t most = entriesAtATime(from.front().getType(), srcOrder), part = 0;
  SmallVector<int64_t> parts = dstOrder.parts(dst.layout.shape());
  for (int64_t entries : srcOrder.parts(src.layout.shape()))
    if (entries <= most && llvm::is_contained(parts, entries))
      part = std::max(part, entries);
  // Both sides may have no parts in common but a few elements.
  constexpr int64_t mostParts = 64;
  if (part * mostParts >= srcOrder.size)
    srcOrder.part = dstOrder.part = part;
  return moveThroughShared(from, src, srcOrder, dst, dstOrder);
}

int64_t Distributor::entriesAtATime(Type element, const SharedOrder &order) {
  int64_t bytes = bytesInMemory(element) * order.width;
  largestMove = std::max(largestMove, order.size * bytes);
  return order.size * bytes > mostBytes ? mostBytes / bytes : order.size;
}

//===----------------------------------------------------------------------===//
// Stores and loads
//===----------------------------------------------------------------------===//

/// Returns the thread's entry within its part, and the number of the part
/// unless all threads are in the first one.
Distributor::SharedThread
Distributor::sharedThread(const DistributedLayout &layout,
                          const SharedOrder &order) {
  Value at = sharedThreadOffset(layout.threadIndex, order);
  int64_t last = order.lastPart(layout);
  if (!last)
    return {at, {}, 0};
  Value size = constant(order.part);
  return {rem(at, size), div(at, size), last};
}

void Distributor::storePart(ArrayRef<Value> from, Value array, int64_t part,
                            const DistributedLayout &src,
                            const SharedOrder &order) {
  Type type = cast<SharedType>(array.getType()).getElementType();
  unsigned width = order.width;
  Value writes = ownsCopies(src.layout);
  SharedThread thread = sharedThread(src, order);
  // The registers by what threads have to add to their part.
  llvm::MapVector<int64_t, SmallVector<unsigned>> registers;
  for (unsigned reg = 0; reg < from.size(); reg += width) {
    int64_t missing = part - order.offset(src.registerIndex[reg]) / order.part;
    if (src.layout.firstCopy(reg) == reg && missing >= 0 &&
        missing <= thread.lastPart)
      registers[missing].push_back(reg);
  }
  for (const auto &entry : registers) {
    Value isHere = thread.part ? isPart(thread, entry.first) : Value();
    storeWhere(allOf(isHere, writes), [&] {
      for (unsigned reg : entry.second) {
        Value value = from[reg];
        if (width > 1)
          value = vector::FromElementsOp::create(b, cast<VectorType>(type),
                                                 from.slice(reg, width));
        int64_t at = order.offset(src.registerIndex[reg]) % order.part;
        SharedStoreOp::create(b, value, array, offsetBy(thread.entry, at));
      }
    });
  }
}

Value Distributor::isPart(const SharedThread &thread, int64_t part) {
  return equal(thread.part, constant(part));
}

Value Distributor::storeShared(ArrayRef<Value> from,
                               const DistributedLayout &src,
                               const SharedOrder &order) {
  Value array =
      sharedAlloc(order.part, pieceOf(from.front().getType(), order.width));
  storePart(from, array, /*part=*/0, src, order);
  return array;
}

LaneValues Distributor::moveThroughShared(ArrayRef<Value> from,
                                          const DistributedLayout &src,
                                          const SharedOrder &srcOrder,
                                          const DistributedLayout &dst,
                                          const SharedOrder &dstOrder) {
  unsigned width = dstOrder.width;
  Value array =
      sharedAlloc(srcOrder.part, pieceOf(from.front().getType(), width));
  LaneValues out(dst.registerIndex.size());
  auto unpack = [&](unsigned reg) {
    Value value = out[reg];
    for (unsigned i = 0; i < width && width > 1; ++i)
      out[reg + i] = vector::ExtractOp::create(b, value, i);
  };
  for (int64_t part = 0; part < dstOrder.size / dstOrder.part; ++part) {
    storePart(from, array, part, src, srcOrder);
    SharedThread thread = sharedThread(dst, dstOrder);
    for (unsigned reg = 0; reg < out.size(); reg += width) {
      int64_t at = dstOrder.offset(dst.registerIndex[reg]);
      int64_t missing = part - at / dstOrder.part;
      if (missing < 0 || missing > thread.lastPart)
        continue;
      Value value = SharedLoadOp::create(
          b, array, offsetBy(thread.entry, at % dstOrder.part));
      if (missing)
        value = select(isPart(thread, missing), value, out[reg]);
      out[reg] = value;
      if (!thread.lastPart)
        unpack(reg);
    }
  }
  if (dstOrder.lastPart(dst))
    for (unsigned reg = 0; reg < out.size(); reg += width)
      unpack(reg);
  return out;
}
