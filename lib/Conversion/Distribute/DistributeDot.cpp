//===- DistributeDot.cpp - products of one lane ---------------------------===//
//
// A dot is a chain of multiply-adds, or one greta_tile.mma per tile of its
// accumulator and step along K. Where a loop over K asks for it, the accesses
// around the products are spread between them.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace greta;
using namespace greta::tile;

Type greta::tile::getOperandType(MatrixAttr matrix, FragmentUse use,
                                 Type element) {
  LayoutAttr attr = use == FragmentUse::A   ? matrix.getA()
                    : use == FragmentUse::B ? matrix.getB()
                                            : matrix.getAcc();
  Layout layout = toLayout(attr);
  if (matrix.isCooperative())
    return FragmentType::get(element.getContext(), layout.tile()[0],
                             layout.tile()[1], element, use);
  return VectorType::get(layout.tileRegisters(), element);
}

/// Widens to the accumulator's type.
static Value widen(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::ExtSIOp::create(builder, loc, type, value);
}

LogicalResult Distributor::distributeDot(DotOp op) {
  auto a = layoutOf(op, op.getA());
  auto b = layoutOf(op, op.getB());
  auto c = layoutOf(op, op.getResult());
  if (failed(a) || failed(b) || failed(c))
    return failure();
  if (op.getMatrixAttr())
    return distributeMatrixDot(op, **a, **b, **c);
  // Rows of A are where rows of the accumulator are, columns of B likewise,
  // and matrices of a batch in both.
  unsigned columnDim = (*c)->layout.rank() - 1, rowDim = columnDim - 1;
  auto follows = [&](const DistributedLayout &operand, unsigned dim) {
    return operand.threadIndex[dim] == (*c)->threadIndex[dim];
  };
  if (!follows(**a, rowDim) || !follows(**b, columnDim) ||
      (rowDim && (!follows(**a, 0) || !follows(**b, 0))))
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getResult().getType());
  int64_t depth =
      cast<RankedTensorType>(op.getA().getType()).getDimSize(columnDim);
  auto gather = [&](Value operand, const DistributedLayout &layout) {
    std::map<Index, Value> at;
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex))
      at[index] = lanes(operand)[reg];
    return at;
  };
  auto as = gather(op.getA(), **a), bs = gather(op.getB(), **b);
  // Widened where it is used first: all of it before the sums would fill the
  // registers (gfx1030: 110 spilled for 20 sums a lane of bf16).
  auto widened = [&](auto &side, Index at, unsigned kDim, int64_t k) -> Value {
    at[kDim] = k;
    auto it = side.find(at);
    if (it == side.end())
      return {};
    return it->second = widen(builder, loc, it->second, type);
  };
  LaneValues out(lanes(op.getAcc()));
  for (int64_t k = 0; k < depth; ++k)
    for (auto [reg, index] : llvm::enumerate((*c)->registerIndex)) {
      Value x = widened(as, index, columnDim, k);
      Value y = widened(bs, index, rowDim, k);
      if (!x || !y)
        return op.emitOpError("has operands whose K is not in registers");
      if (isa<FloatType>(type))
        out[reg] = math::FmaOp::create(builder, loc, x, y, out[reg]);
      else
        out[reg] = arith::AddIOp::create(
            builder, loc, arith::MulIOp::create(builder, loc, x, y), out[reg]);
    }
  values[op.getResult()] = std::move(out);
  return success();
}

/// Tile by tile. An operand's tile may hold several of the instruction's along
/// K, one after another in its registers; both operands number K alike.
LogicalResult Distributor::distributeMatrixDot(DotOp op,
                                               const DistributedLayout &a,
                                               const DistributedLayout &b,
                                               const DistributedLayout &c) {
  MatrixAttr matrix = op.getMatrixAttr();
  auto operand = [&](Value value, FragmentUse use) {
    return pieces(value, getOperandType(matrix, use,
                                        getElementTypeOrSelf(value.getType())));
  };
  LaneValues as = operand(op.getA(), FragmentUse::A);
  LaneValues bs = operand(op.getB(), FragmentUse::B);
  LaneValues out = operand(op.getAcc(), FragmentUse::Acc);
  // Repetitions: of the batch, and [rows, depth] by [depth, columns].
  ArrayRef<int32_t> repC = c.layout.rep();
  unsigned rank = repC.size(), batch = rank == 3 ? repC[0] : 1;
  unsigned rows = repC[rank - 2], columns = repC[rank - 1];
  unsigned depth = a.layout.rep()[rank - 1];
  unsigned inTile = as.size() / (batch * rows * depth);
  Basis repA(repC), repB(repC);
  repA[rank - 1] = repB[rank - 2] = depth;
  if (a.layout.rep() != ArrayRef(repA) || b.layout.rep() != ArrayRef(repB) ||
      as.size() != batch * rows * depth * inTile ||
      bs.size() != batch * columns * depth * inTile ||
      out.size() != batch * rows * columns)
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  // What is read before this op may be written behind it.
  Block *block = builder.getInsertionBlock();
  Operation *fence = nullptr;
  for (auto it = builder.getInsertionPoint(); !fence && it != block->begin();) {
    Operation &before = *--it;
    if (isa<BarrierOp, SharedStoreOp, FragmentStoreOp>(before))
      fence = &before;
  }
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned part = 0; part < inTile; ++part)
      for (unsigned row = 0; row < batch * rows; ++row)
        for (unsigned j = 0; j < columns; ++j) {
          Value &sum = out[row * columns + j];
          Value left = as[(row * depth + k) * inTile + part];
          unsigned rowOfB = row / rows * depth + k;
          Value right = bs[(rowOfB * columns + j) * inTile + part];
          // Rows of A one after another: on the H200 a fragment that is loaded
          // just before its products beats all of them loaded first.
          if (auto load = left.getDefiningOp<FragmentLoadOp>();
              load && load->use_empty() && load->getBlock() == block &&
              (!fence || fence->isBeforeInBlock(load)))
            load->moveBefore(block, builder.getInsertionPoint());
          if (matrix.getSwapped())
            std::swap(left, right);
          sum = MmaOp::create(builder, op.getLoc(), sum.getType(),
                              matrix.getIntrinsic(), left, right, sum);
        }
  setPieces(op.getResult(), std::move(out));
  return success();
}

/// The reads of shared memory from `first` on that a value is made of, without
/// those in `known`, to which they are added.
static unsigned addReads(Value value, Operation &first,
                         llvm::SmallDenseSet<Operation *> &known) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != first.getBlock() ||
      op->isBeforeInBlock(&first) || !known.insert(op).second)
    return 0;
  if (isa<SharedLoadOp>(op))
    return 1;
  unsigned count = 0;
  if (isa<vector::VectorDialect>(op->getDialect()))
    for (Value operand : op->getOperands())
      count += addReads(operand, first, known);
  return count;
}

/// Accesses with products between them: reads of shared memory, which feed what
/// comes next, then stores, then loads. Reads that feed these very products
/// come a few products ahead.
LogicalResult Distributor::distributeSchedule(ScheduleOp op) {
  constexpr unsigned numKinds = 5;
  std::array<unsigned, numKinds> count = {};
  Operation *first = nullptr;
  SmallVector<MmaOp> products;
  Block *block = builder.getInsertionBlock();
  for (auto it = builder.getInsertionPoint(); it != block->begin();) {
    Operation &before = *--it;
    if (isa<BarrierOp, ScheduleGroupOp>(before))
      break;
    first = &before;
    if (auto mma = dyn_cast<MmaOp>(before))
      products.push_back(mma);
    std::optional<ScheduleKind> kind =
        llvm::TypeSwitch<Operation *, std::optional<ScheduleKind>>(&before)
            .Case([](MmaOp) { return ScheduleKind::Mma; })
            .Case([](SharedLoadOp) { return ScheduleKind::SharedLoad; })
            .Case([](SharedStoreOp) { return ScheduleKind::SharedStore; })
            .Case<PtrLoadOp, PtrLoadSharedOp>(
                [](auto) { return ScheduleKind::Load; })
            .Default([](Operation *) { return std::nullopt; });
    if (kind)
      ++count[static_cast<unsigned>(*kind)];
  }
  auto left = [&](ScheduleKind kind) -> unsigned & {
    return count[static_cast<unsigned>(kind)];
  };
  auto take = [&](ScheduleKind kind, unsigned wanted) {
    unsigned n = std::min(wanted, left(kind));
    if (n)
      ScheduleGroupOp::create(builder, op.getLoc(), kind, n);
    left(kind) -= n;
  };
  // Operands that nothing aligns come in many narrow loads; LLVM takes minutes
  // to put hundreds of groups in order, and there is nothing to be hidden
  // under.
  constexpr unsigned most = 32;
  if (left(ScheduleKind::Load) > most || left(ScheduleKind::SharedStore) > most)
    return success();
  // Products, each with the work for what is stored next that it hides.
  auto takeProducts = [&](unsigned wanted) {
    int64_t hidden = op.getCompute().value_or(0);
    if (!hidden || !left(ScheduleKind::SharedStore))
      return take(ScheduleKind::Mma, wanted);
    for (; wanted && left(ScheduleKind::Mma); --wanted) {
      take(ScheduleKind::Mma, 1);
      ScheduleGroupOp::create(builder, op.getLoc(), ScheduleKind::Compute,
                              hidden);
    }
  };
  // The reads that each product adds to those before it.
  llvm::SmallDenseSet<Operation *> known;
  SmallVector<unsigned> reads;
  for (MmaOp product : llvm::reverse(products))
    reads.push_back(addReads(product.getA(), *first, known) +
                    addReads(product.getB(), *first, known));
  bool justInTime = llvm::any_of(reads, [](unsigned n) { return n > 0; });
  // What is read is wanted soonest, and what is stored has to arrive before the
  // barrier, so accesses come in the first seven tenths of the products (of
  // 1/2 to 1 the best on gfx90a and gfx942; gfx950 has 0.8 % less than with
  // 3/4).
  unsigned early = products.size() * 7 / 10, done = 0, mixed = 0;
  unsigned accesses =
      left(ScheduleKind::SharedStore) + left(ScheduleKind::Load);
  if (!justInTime)
    accesses += left(ScheduleKind::SharedLoad);
  unsigned asked = 0;
  // Products, with their reads before them where they have some.
  constexpr unsigned ahead = 4;
  auto multiply = [&](unsigned n) {
    while (n) {
      unsigned at = products.size() - left(ScheduleKind::Mma), wanted = 0;
      unsigned run = justInTime ? 0 : n;
      for (; run < n; ++run) {
        auto next = ArrayRef(reads).take_front(at + run + ahead + 1);
        unsigned due = std::accumulate(next.begin(), next.end(), 0u);
        if (run && due > asked)
          break;
        wanted += due - asked;
        asked = due;
      }
      take(ScheduleKind::SharedLoad, wanted);
      takeProducts(run);
      n = left(ScheduleKind::Mma) ? n - run : 0;
    }
  };
  auto mix = [&](ScheduleKind kind) {
    while (left(kind)) {
      unsigned due = ++done * early / accesses;
      multiply(due - mixed);
      mixed = due;
      take(kind, 1);
    }
  };
  if (!justInTime)
    mix(ScheduleKind::SharedLoad);
  mix(ScheduleKind::SharedStore);
  mix(ScheduleKind::Load);
  multiply(left(ScheduleKind::Mma));
  return success();
}
