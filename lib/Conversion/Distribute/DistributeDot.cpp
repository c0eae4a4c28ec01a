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
  // Rows of A are where rows of the accumulator are, columns of B likewise.
  if ((*a)->threadIndex[0] != (*c)->threadIndex[0] ||
      (*b)->threadIndex[1] != (*c)->threadIndex[1])
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getResult().getType());
  int64_t depth = cast<RankedTensorType>(op.getA().getType()).getDimSize(1);
  auto gather = [&](Value operand, const DistributedLayout &layout) {
    llvm::DenseMap<std::pair<int64_t, int64_t>, Value> at;
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex))
      at[{index[0], index[1]}] = lanes(operand)[reg];
    return at;
  };
  auto as = gather(op.getA(), **a), bs = gather(op.getB(), **b);
  for (auto *side : {&as, &bs})
    for (auto &entry : *side)
      entry.second = widen(builder, loc, entry.second, type);
  LaneValues out(lanes(op.getAcc()));
  for (int64_t k = 0; k < depth; ++k)
    for (auto [reg, index] : llvm::enumerate((*c)->registerIndex)) {
      Value x = as.lookup({index[0], k}), y = bs.lookup({k, index[1]});
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
  unsigned rows = c.layout.rep()[0], columns = c.layout.rep()[1];
  unsigned depth = a.layout.rep()[1];
  unsigned inTile = as.size() / (rows * depth);
  if (a.layout.rep()[0] != static_cast<int>(rows) ||
      b.layout.rep()[1] != static_cast<int>(columns) ||
      b.layout.rep()[0] != static_cast<int>(depth) ||
      as.size() != rows * depth * inTile ||
      bs.size() != columns * depth * inTile || out.size() != rows * columns)
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned part = 0; part < inTile; ++part)
      for (unsigned i = 0; i < rows; ++i)
        for (unsigned j = 0; j < columns; ++j) {
          Value &sum = out[i * columns + j];
          Value left = as[(i * depth + k) * inTile + part];
          Value right = bs[(k * columns + j) * inTile + part];
          // Rows of A one after another: on the H200 a fragment that is loaded
          // just before its products beats all of them loaded first.
          if (auto load = left.getDefiningOp<FragmentLoadOp>();
              load && load->use_empty() &&
              load->getBlock() == builder.getBlock())
            load->moveBefore(builder.getBlock(), builder.getInsertionPoint());
          if (matrix.getSwapped())
            std::swap(left, right);
          sum = MmaOp::create(builder, op.getLoc(), sum.getType(),
                              matrix.getIntrinsic(), left, right, sum);
        }
  setPieces(op.getResult(), std::move(out));
  return success();
}

/// Whether a product takes what the block reads from shared memory after
/// `first`.
static bool takesReads(Operation &first, MmaOp product) {
  Operation *source = product.getA().getDefiningOp();
  while (isa_and_nonnull<vector::ShuffleOp>(source))
    source = source->getOperand(0).getDefiningOp();
  return isa_and_nonnull<SharedLoadOp>(source) &&
         source->getBlock() == first.getBlock() &&
         !source->isBeforeInBlock(&first);
}

/// Accesses with products between them: reads of shared memory, which feed what
/// comes next, then stores and loads in turn. Reads that feed these very
/// products stand before them.
LogicalResult Distributor::distributeSchedule(ScheduleOp op) {
  constexpr unsigned numKinds = 4;
  std::array<unsigned, numKinds> count = {};
  Operation *first = nullptr;
  MmaOp product; // the first one
  Block *block = builder.getInsertionBlock();
  for (auto it = builder.getInsertionPoint(); it != block->begin();) {
    Operation &before = *--it;
    if (isa<BarrierOp, ScheduleGroupOp>(before))
      break;
    first = &before;
    if (auto mma = dyn_cast<MmaOp>(before))
      product = mma;
    std::optional<ScheduleKind> kind =
        llvm::TypeSwitch<Operation *, std::optional<ScheduleKind>>(&before)
            .Case([](MmaOp) { return ScheduleKind::Mma; })
            .Case([](SharedLoadOp) { return ScheduleKind::SharedLoad; })
            .Case([](SharedStoreOp) { return ScheduleKind::SharedStore; })
            .Case([](PtrLoadOp) { return ScheduleKind::Load; })
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
  unsigned accesses = left(ScheduleKind::SharedLoad) +
                      left(ScheduleKind::SharedStore) +
                      left(ScheduleKind::Load);
  // What is read is wanted soonest, so accesses come early in the mix.
  unsigned between =
      std::max(1u, left(ScheduleKind::Mma) * 3 / (4 * std::max(1u, accesses)));
  if (product && takesReads(*first, product))
    take(ScheduleKind::SharedLoad, left(ScheduleKind::SharedLoad));
  while (left(ScheduleKind::SharedLoad)) {
    take(ScheduleKind::Mma, between);
    take(ScheduleKind::SharedLoad, 1);
  }
  while (left(ScheduleKind::SharedStore) + left(ScheduleKind::Load)) {
    take(ScheduleKind::Mma, between);
    take(ScheduleKind::SharedStore, 1);
    take(ScheduleKind::Mma, between);
    take(ScheduleKind::Load, 1);
  }
  take(ScheduleKind::Mma, left(ScheduleKind::Mma));
  return success();
}
