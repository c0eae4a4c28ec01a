//===- DistributeDot.cpp - the dots of one lane ---------------------------===//
//
// A dot is a chain of FMAs, or one greta_tile.mma per tile of its accumulator
// and step along K. With `step` the chain is a loop, whose
// iterations find their operands in shared memory:
//
//   %c = greta_tile.dot %a, %b, %acc {step = 2} : tensor<..x64xf32>, ..
//     →  shared_store of %a and %b
//        scf.for %iteration = 0 to 32 iter_args(%c0 = %acc0, ..)
//          %a0 = shared_load .. ; %b0 = shared_load ..
//          math.fma %a0, %b0, %c0 ..
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Layout/Waves.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

Type greta::tile::getOperandType(MatrixAttr matrix, FragmentUse use,
                                 Type element) {
  LayoutAttr attr = use == FragmentUse::A   ? matrix.getA()
                    : use == FragmentUse::B ? matrix.getB()
                                            : matrix.getAcc();
  Layout layout = toLayout(attr);
  if (matrix.isCooperative()) {
    int64_t rows = layout.tile()[0], columns = layout.tile()[1];
    if (matrix.getSwapped()) {
      std::swap(rows, columns);
      use = use == FragmentUse::A   ? FragmentUse::B
            : use == FragmentUse::B ? FragmentUse::A
                                    : use;
    }
    return FragmentType::get(element.getContext(), rows, columns, element, use);
  }
  return VectorType::get(layout.tileRegisters(), element);
}

Value Distributor::widen(Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, type, value);
  return arith::ExtSIOp::create(b, type, value);
}

Value Distributor::multiplyAdd(Value x, Value y, Value sum) {
  if (isa<FloatType>(sum.getType()))
    return math::FmaOp::create(b, x, y, sum);
  return add(mul(x, y), sum);
}

LogicalResult Distributor::distributeDot(DotOp op) {
  const DistributedLayout &left = layoutOf(op.getA());
  const DistributedLayout &right = layoutOf(op.getB());
  const DistributedLayout &c = layoutOf(op.getResult());
  if (op.getMatrixAttr())
    return distributeMatrixDot(op, left, right, c);
  if (op.getStep())
    return distributeSteppedDot(op, left, right, c);
  // Rows of A are where rows of the accumulator are, columns of B likewise,
  // and matrices of a batch in both.
  unsigned columnDim = c.layout.rank() - 1, rowDim = columnDim - 1;
  auto follows = [&](const DistributedLayout &operand, unsigned dim) {
    return operand.threadIndex[dim] == c.threadIndex[dim];
  };
  if (!follows(left, rowDim) || !follows(right, columnDim) ||
      (rowDim && (!follows(left, 0) || !follows(right, 0))))
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  Type type = getElementTypeOrSelf(op.getResult().getType());
  int64_t depth =
      cast<RankedTensorType>(op.getA().getType()).getDimSize(columnDim);
  auto gather = [&](Value operand, const DistributedLayout &layout) {
    std::map<Index, Value> at;
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex))
      at[index] = lanes(operand)[reg];
    return at;
  };
  auto as = gather(op.getA(), left), bs = gather(op.getB(), right);
  // Widened where it is used first: all of it before the sums would fill the
  // registers.
  auto widened = [&](auto &side, Index at, unsigned kDim, int64_t k) -> Value {
    at[kDim] = k;
    auto it = side.find(at);
    if (it == side.end())
      return {};
    return it->second = widen(it->second, type);
  };
  LaneValues out(lanes(op.getAcc()));
  for (int64_t k = 0; k < depth; ++k)
    for (auto [reg, index] : llvm::enumerate(c.registerIndex)) {
      Value x = widened(as, index, columnDim, k);
      Value y = widened(bs, index, rowDim, k);
      if (!x || !y)
        return op.emitOpError("has operands whose K is not in registers");
      out[reg] = multiplyAdd(x, y, out[reg]);
    }
  values[op.getResult()] = std::move(out);
  return success();
}

/// An operand of a dot that goes over K in steps. K is outermost in shared
/// memory, so that the elements of a step lie together, and a part is a range
/// of K.
struct Distributor::SteppedOperand {
  const DistributedLayout &src;
  unsigned kDim;
  SharedOrder order;
  Value array;
  int64_t perStep;               // entries
  Value thread;                  // the entry of its first element
  Value entry;                   // the same in this step
  std::map<Index, Value> loaded; // in this step, widened
};

/// Makes such an operand. Its vectors are runs, along K or along the
/// accumulator's dimension `own`, that both the block's registers and a lane's
/// reads have.
Distributor::SteppedOperand
Distributor::steppedOperand(Value block, const DistributedLayout &src,
                            const Layout &acc, unsigned own, unsigned kDim,
                            int64_t depth, int64_t step) {
  Type element = getElementTypeOrSelf(block.getType());
  unsigned most = std::max<int64_t>(1, 16 / bytesInMemory(element));
  unsigned alongK =
      std::min({src.layout.contiguity(kDim), unsigned(step), most});
  unsigned across = std::min({src.layout.contiguity(own),
                              acc.registersAlong(own).contiguity(own), most});
  SharedOrder order{alongK > across ? kDim : own, std::max(alongK, across),
                    SmallVector<int64_t>(acc.rank())};
  Index shape = src.layout.shape();
  order.part = 1;
  auto add = [&](unsigned dim, int64_t extent) {
    order.strides[dim] = order.part;
    order.part *= dim == order.fastest ? extent / order.width : extent;
  };
  add(own, shape[own]);
  if (acc.rank() == 3)
    add(0, shape[0]);
  add(kDim, depth);
  order.size = order.part * (shape[kDim] / depth);
  Value array = sharedAlloc(order.part, pieceOf(element, order.width));
  int64_t perStep = order.strides[kDim] * step;
  if (order.fastest == kDim)
    perStep /= order.width;
  return {src, kDim, order, array, perStep, {}, {}, {}};
}

LogicalResult Distributor::distributeSteppedDot(DotOp op,
                                                const DistributedLayout &left,
                                                const DistributedLayout &right,
                                                const DistributedLayout &c) {
  unsigned columnDim = c.layout.rank() - 1, rowDim = columnDim - 1;
  // As much of K at a time as there is room for.
  int64_t k = left.layout.shape()[columnDim], depth = k, bytes = 0;
  for (Value block : {op.getA(), op.getB()}) {
    auto type = cast<RankedTensorType>(block.getType());
    bytes = std::max(bytes, type.getNumElements() / k *
                                bytesInMemory(type.getElementType()));
  }
  largestMove = std::max(largestMove, k * bytes);
  if (depth * bytes > mostBytes)
    depth = powerPart(k);
  while (depth > 1 && depth * bytes > mostBytes)
    depth /= 2;
  int64_t step =
      std::min<int64_t>(llvm::bit_floor(*op.getStep()), powerPart(depth));
  SteppedOperand operands[] = {
      steppedOperand(op.getA(), left, c.layout, rowDim, columnDim, depth, step),
      steppedOperand(op.getB(), right, c.layout, columnDim, rowDim, depth,
                     step)};
  for (SteppedOperand &operand : operands) {
    auto thread = c.threadIndex;
    thread[operand.kDim] = constant(0);
    operand.thread = sharedThreadOffset(thread, operand.order);
  }
  LaneValues blocks[] = {LaneValues(lanes(op.getA())),
                         LaneValues(lanes(op.getB()))};
  LaneValues out(lanes(op.getAcc()));
  Type type = out.front().getType();
  for (int64_t part = 0; part < k / depth; ++part) {
    for (auto [operand, block] : llvm::zip(operands, blocks))
      storePart(block, operand.array, part, operand.src, operand.order);
    auto loop = scf::ForOp::create(b, constant(0), constant(depth / step),
                                   constant(1), out);
    loop->setAttr(rolledName, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    for (SteppedOperand &operand : operands) {
      Value ahead = mul(loop.getInductionVar(), constant(operand.perStep));
      operand.entry = add(operand.thread, ahead);
      operand.loaded.clear();
    }
    auto load = [&](SteppedOperand &operand, Index at, int64_t k) {
      const SharedOrder &order = operand.order;
      at[operand.kDim] = k;
      if (Value known = operand.loaded[at])
        return known;
      Index first = at;
      first[order.fastest] -= first[order.fastest] % order.width;
      Value piece = SharedLoadOp::create(
          b, operand.array, offsetBy(operand.entry, order.offset(first)));
      for (unsigned i = 0; i < order.width; ++i, ++first[order.fastest]) {
        Value element = order.width > 1
                            ? vector::ExtractOp::create(b, piece, i).getResult()
                            : piece;
        operand.loaded[first] = widen(element, type);
      }
      return operand.loaded[at];
    };
    LaneValues sums(loop.getRegionIterArgs());
    for (int64_t k = 0; k < step; ++k)
      for (auto [sum, index] : llvm::zip(sums, c.registerIndex)) {
        Value x = load(operands[0], index, k);
        sum = multiplyAdd(x, load(operands[1], index, k), sum);
      }
    scf::YieldOp::create(b, sums);
    out = LaneValues(loop.getResults());
  }
  values[op.getResult()] = std::move(out);
  return success();
}

/// Whether an op reads a fragment's elements, or puts vectors of them together.
static bool isOfFragment(Operation *op) {
  return op && (isa<FragmentFromElementsOp, SharedLoadOp>(op) ||
                isa<vector::VectorDialect>(op->getDialect()));
}

/// Moves the ops that make an instruction's fragments to the place in front of
/// it, unless they have other uses before, or a store or a barrier stands
/// between. A fragment takes registers beside those of its elements.
static void putTogetherAt(MmaOp mma) {
  Operation *fence = mma;
  auto isFence = [](Operation *op) {
    return isa<BarrierOp, SharedStoreOp>(op) || op->getNumRegions();
  };
  while (fence && !isFence(fence))
    fence = fence->getPrevNode();
  for (Value operand : {mma.getA(), mma.getB(), mma.getAcc()}) {
    llvm::SmallSetVector<Operation *, 16> ops;
    auto add = [&](Value from) {
      Operation *op = from.getDefiningOp();
      if (isOfFragment(op) && op->getBlock() == mma->getBlock() &&
          !(fence && op->isBeforeInBlock(fence)))
        ops.insert(op);
    };
    add(operand);
    for (size_t i = 0; i < ops.size(); ++i)
      if (!isa<SharedLoadOp>(ops[i]))
        llvm::for_each(ops[i]->getOperands(), add);
    auto isNeeded = [&](Operation *op) {
      return llvm::any_of(op->getUsers(), [&](Operation *user) {
        return user != mma && !ops.contains(user);
      });
    };
    while (ops.remove_if(isNeeded))
      ;
    SmallVector<Operation *> sorted(ops.begin(), ops.end());
    llvm::sort(sorted, [](Operation *x, Operation *y) {
      return x->isBeforeInBlock(y);
    });
    for (Operation *op : sorted)
      op->moveBefore(mma);
  }
}

/// Multiplies tile by tile. An operand's tile may hold several of the
/// instruction's along K, one after another in its registers; both operands
/// number K alike.
LogicalResult Distributor::distributeMatrixDot(DotOp op,
                                               const DistributedLayout &left,
                                               const DistributedLayout &right,
                                               const DistributedLayout &c) {
  MatrixAttr matrix = op.getMatrixAttr();
  auto operand = [&](Value value, FragmentUse use) {
    return vectors(
        value,
        getOperandType(matrix, use, getElementTypeOrSelf(value.getType())));
  };
  LaneValues as = operand(op.getA(), FragmentUse::A);
  LaneValues bs = operand(op.getB(), FragmentUse::B);
  LaneValues out = operand(op.getAcc(), FragmentUse::Acc);
  // Repetitions: of the batch, and [rows, depth] by [depth, columns].
  ArrayRef<int32_t> repC = c.layout.rep();
  unsigned rank = repC.size(), batch = rank == 3 ? repC[0] : 1;
  unsigned rows = repC[rank - 2], columns = repC[rank - 1];
  unsigned depth = left.layout.rep()[rank - 1];
  unsigned inTile = as.size() / (batch * rows * depth);
  Basis repA(repC), repB(repC);
  repA[rank - 1] = repB[rank - 2] = depth;
  if (left.layout.rep() != ArrayRef(repA) ||
      right.layout.rep() != ArrayRef(repB) ||
      as.size() != batch * rows * depth * inTile ||
      bs.size() != batch * columns * depth * inTile ||
      out.size() != batch * rows * columns)
    return op.emitOpError("has operands that are not laid out for its "
                          "accumulator; convert_layout first");
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned part = 0; part < inTile; ++part)
      for (unsigned row = 0; row < batch * rows; ++row)
        for (unsigned j = 0; j < columns; ++j) {
          Value &sum = out[row * columns + j];
          Value x = as[(row * depth + k) * inTile + part];
          unsigned rowOfB = row / rows * depth + k;
          Value y = bs[(rowOfB * columns + j) * inTile + part];
          if (matrix.getSwapped())
            std::swap(x, y);
          auto mma =
              MmaOp::create(b, sum.getType(), matrix.getIntrinsic(), x, y, sum);
          if (matrix.getElements())
            putTogetherAt(mma);
          sum = mma;
        }
  setVectors(op.getResult(), std::move(out));
  return success();
}
