//===- DistributeLocal.cpp - blocks in shared memory ----------------------===//
//
// A local becomes one array whose elements are the widest vectors that all of
// its accesses take whole. Within a stage a lane's element lies at
//
//   row * stride + (column ^ swizzle(row))
//
// The row number is row-major over all dimensions but the column's. Row and
// column are the thread's part plus the register's, which share no bits within
// a tile, so the swizzle splits in two as well:
//
//   (column of the thread ^ swizzle of its row)        one value per layout
//     ^ (column of the register ^ swizzle of its row)  a constant
//
// A block whose rows lie across what lanes want is read by transposed loads,
// where the target has them. Fragments are loaded whole by the wave, from rows
// that are not swizzled. Direct loads are the business of DistributeMemory.cpp.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "greta/Tile/TransposedLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

SharedPlacement greta::tile::placementOf(LocalType type) {
  PlacementAttr attr = type.getPlacement();
  SharedPlacement placement;
  placement.shape = Index(type.getBlock().getShape());
  placement.rowDim = attr.getDim();
  placement.elementBytes = bytesInMemory(type.getBlock().getElementType());
  placement.rowStride = attr.getStride();
  placement.vector = attr.getVector();
  placement.rowsPerPhase = attr.getRows();
  placement.phases = attr.getPhases();
  return placement;
}

/// Whether columns of matrices lie along the rows of shared memory.
static bool isTransposed(const SharedPlacement &placement) {
  return placement.rowDim + 2 == placement.shape.size();
}

/// Returns the fragment that drivers load for a value, which may be carried by
/// a loop to its dot; none: lanes load the value to registers.
static std::optional<FragmentType> fragmentOf(Value value, bool follow = true) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto dot = dyn_cast<DotOp>(user))
      if (MatrixAttr matrix = dot.getMatrixAttr();
          matrix && matrix.isLoadedWhole() && number < 2)
        return cast<FragmentType>(
            getOperandType(matrix, number ? FragmentUse::B : FragmentUse::A,
                           getElementTypeOrSelf(value.getType())));
    BlockArgument carried;
    if (auto loop = dyn_cast<scf::ForOp>(user))
      carried = loop.getTiedLoopRegionIterArg(&use);
    else if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
             loop && isa<scf::YieldOp>(user))
      carried = loop.getRegionIterArg(number);
    if (carried && follow)
      return fragmentOf(carried, /*follow=*/false);
  }
  return std::nullopt;
}

/// Returns the layout for transposed loads of a block, whose rows lie across
/// the wanted layout's registers; none: lanes read the wanted layout. `width`
/// neighbours are one entry.
std::optional<Layout>
Distributor::readTransposed(const SharedPlacement &placement,
                            const Layout &wanted, int64_t width) {
  const int64_t needed =
      transposedWidth(row, /*isShared=*/true, placement.elementBytes);
  if (!needed || placement.accessWidth(wanted) > 1 || width < needed)
    return std::nullopt;
  auto loaded = beforeTransposedLoad(
      row, /*isShared=*/true, placement.elementBytes, wanted, placement.rowDim);
  return loaded && placement.accessWidth(*loaded) >= needed ? loaded
                                                            : std::nullopt;
}

LogicalResult Distributor::distributeLocalAlloc(LocalAllocOp op) {
  LocalType type = op.getResult().getType();
  SharedPlacement placement = placementOf(type);
  unsigned rank = placement.shape.size();
  if (rank < 2)
    return op.emitOpError("holds blocks of rank ")
           << rank << "; locals have two dimensions or more";
  if (!placement.isSwizzleOfParts())
    return op.emitOpError("swizzles rows of a block of ")
           << type.getBlock()
           << " that phases take apart; inner dimensions are powers of two or "
              "multiples of the rows of all phases";
  int64_t width = placement.elementBytes < 16 ? 16 / placement.elementBytes : 1;
  auto narrow = [&](int64_t most) { width = std::min(width, most & -most); };
  // How stores write decides how loads read.
  for (Operation *user : op->getUsers())
    if (auto store = dyn_cast<LocalStoreOp>(user))
      if (LayoutAttr written = getLayoutOf(store.getValue().getType());
          written && !store.getDirect())
        narrow(placement.accessWidth(toLayout(written)));
  for (Operation *user : op->getUsers()) {
    auto load = dyn_cast<LocalLoadOp>(user);
    auto store = dyn_cast<LocalStoreOp>(user);
    if (!load && !store)
      return user->emitOpError("uses a local; it is stored to and loaded from");
    if (store && store.getDirect())
      continue;
    std::optional<FragmentType> fragment =
        load ? fragmentOf(load.getResult()) : std::nullopt;
    int64_t most;
    if (fragment) {
      most = isTransposed(placement) ? fragment->getRows()
                                     : fragment->getColumns();
    } else {
      const Layout &layout =
          layoutOf(load ? load.getResult() : Value(store.getValue())).layout;
      most = placement.accessWidth(layout);
      if (load && readTransposed(placement, layout, width))
        most = transposedWidth(row, /*isShared=*/true, placement.elementBytes);
    }
    narrow(most);
  }
  narrow(placement.rowStride);
  int64_t size = placement.numRows() * placement.rowStride / width;
  Type element = type.getBlock().getElementType();
  locals[op.getResult()] = {
      sharedAlloc(size * type.getStages(), pieceOf(element, width)), size,
      width};
  return success();
}

Value Distributor::stageOf(LocalType type, const LocalArray &local,
                           Value stage) {
  if (type.getStages() == 1)
    return local.array;
  return SharedStageOp::create(b, local.array, scalar(stage), type.getStages());
}

namespace {
/// Computes the indices of a lane's vectors in a local's array.
class LocalIndex : Arithmetic {
public:
  LocalIndex(ImplicitLocOpBuilder &b, const SharedPlacement &placement,
             int64_t width)
      : Arithmetic{b}, placement(placement), width(width),
        column(placement.rowDim) {}

  /// Sets the thread's part of an index, in entries of the array: that of its
  /// row, and that of its column with the swizzle.
  void setThread(ArrayRef<Value> thread) {
    Value threadRow;
    for (auto [dim, place] : llvm::enumerate(thread))
      if (dim != column)
        threadRow = sum(
            threadRow ? mul(threadRow, placement.shape[dim]) : Value(), place);
    rowPart = mul(threadRow, placement.rowStride / width);
    columnPart = div(thread[column], width);
    if (placement.phases == 1)
      return;
    Value phase = div(threadRow, placement.rowsPerPhase);
    phase = both(phase, i32(placement.phases - 1));
    columnPart = flip(columnPart, mul(phase, placement.vector / width));
  }

  /// Returns the index of the element at a constant distance from the thread's
  /// first one.
  Value at(const Index &distance) {
    int64_t row = placement.rowOf(distance);
    int64_t swizzle =
        row / placement.rowsPerPhase % placement.phases * placement.vector;
    int64_t reach = placement.vector * placement.phases;
    // Elements that a swizzle moves as a whole lie side by side.
    int64_t within = distance[column] % placement.vector;
    int64_t low = (distance[column] ^ swizzle) % reach - within;
    int64_t rest = distance[column] - distance[column] % reach + within;
    int64_t fixed = (row * placement.rowStride + rest) / width;
    Value &swizzled = columns[low];
    if (!swizzled) {
      Value moved = columnPart;
      if (low)
        moved = placement.phases == 1 ? add(columnPart, i32(low / width))
                                      : flip(columnPart, i32(low / width));
      swizzled = add(rowPart, moved);
    }
    return fixed ? add(swizzled, i32(fixed)) : swizzled;
  }

  using Arithmetic::mul, Arithmetic::div;
  Value mul(Value x, int64_t factor) {
    return factor == 1 ? x : mul(x, i32(factor));
  }
  Value div(Value x, int64_t divisor) {
    return divisor == 1 ? x : div(x, i32(divisor));
  }
  /// Adds a distance that is the same for all elements.
  void move(Value uniform) { rowPart = add(rowPart, uniform); }

private:
  const SharedPlacement &placement;
  int64_t width;
  unsigned column;
  Value rowPart, columnPart;
  llvm::DenseMap<int64_t, Value> columns;
};
} // namespace

LogicalResult Distributor::distributeLocalStore(LocalStoreOp op) {
  if (op.getDirect())
    return distributeDirect(op.getValue().getDefiningOp<LoadOp>(), op);
  const DistributedLayout &layout = layoutOf(op.getValue());
  SharedPlacement placement = placementOf(op.getLocal().getType());
  LocalArray local = locals.at(op.getLocal());
  LocalIndex index(b, placement, local.width);
  index.setThread(layout.threadIndex);
  index.move(index.mul(scalar(op.getStage()), local.stageSize));
  Type element = getElementTypeOrSelf(op.getValue().getType());
  LaneValues list = vectors(op.getValue(), pieceOf(element, local.width));
  SmallVector<std::pair<Value, Value>> stores; // piece, index
  for (auto [i, piece] : llvm::enumerate(list)) {
    unsigned reg = i * local.width;
    if (layout.layout.firstCopy(reg) == reg)
      stores.push_back({piece, index.at(layout.registerIndex[reg])});
  }
  Value array = stageOf(op.getLocal().getType(), local, op.getStage());
  storeWhere(ownsCopies(layout.layout), [&] {
    for (auto [piece, at] : stores)
      SharedStoreOp::create(b, piece, array, at);
  });
  return success();
}

LogicalResult Distributor::distributeLocalLoad(LocalLoadOp op) {
  SharedPlacement placement = placementOf(op.getLocal().getType());
  LayoutAttr read = getLayoutOf(op.getResult().getType());
  LocalArray local = locals.at(op.getLocal());
  auto transposed = readTransposed(placement, toLayout(read), local.width);
  if (transposed)
    read = toAttr(op.getContext(), *transposed);
  auto found = distributed(op, read);
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  LocalIndex index(b, placement, local.width);
  std::optional<FragmentType> fragment = fragmentOf(op.getResult());

  const unsigned column = placement.rowDim, rank = placement.shape.size();
  SmallVector<Value, 4> thread(layout.threadIndex);
  for (unsigned dim = 0; fragment && dim != rank; ++dim)
    thread[dim] = fromBits(layout.layout, [&](const ThreadBit &bit) {
      return bit.isWave ? bit.basis[dim] : 0;
    });
  index.setThread(thread);
  index.move(index.mul(scalar(op.getStage()), local.stageSize));
  Index fixed(rank, 0);
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    if (std::optional<int64_t> constant = getConstantIntValue(offset)) {
      fixed[dim] = *constant;
      continue;
    }
    int64_t extent =
        cast<RankedTensorType>(op.getResult().getType()).getDimSize(dim);
    int64_t rows = placement.rowsBetween(dim);
    bool isWhole =
        dim == column
            ? extent % (placement.vector * placement.phases) == 0
            : extent * rows % (placement.rowsPerPhase * placement.phases) == 0;
    if (placement.phases > 1 && !isWhole)
      return op.emitOpError("has an offset along dimension ")
             << dim << " that is no constant, in a swizzled local";
    Value entries = dim == column
                        ? index.div(scalar(offset), local.width)
                        : index.mul(scalar(offset),
                                    rows * placement.rowStride / local.width);
    index.move(entries);
  }
  auto distance = [&](unsigned reg) {
    Index at = layout.registerIndex[reg];
    for (unsigned dim = 0; dim != rank; ++dim)
      at[dim] += fixed[dim];
    return at;
  };

  LaneValues out;
  Value array = stageOf(op.getLocal().getType(), local, op.getStage());
  unsigned step = fragment ? layout.layout.tileRegisters() : local.width;
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += step) {
    Value at = index.at(distance(reg));
    if (fragment)
      out.push_back(FragmentLoadOp::create(b, *fragment, array, at,
                                           placement.rowStride / local.width,
                                           isTransposed(placement)));
    else
      out.push_back(SharedLoadOp::create(b, array, at, transposed.has_value()));
  }
  setVectors(op.getResult(), std::move(out));
  return success();
}
