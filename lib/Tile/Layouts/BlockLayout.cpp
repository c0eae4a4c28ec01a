//===- BlockLayout.cpp - a layout for a block of its own ------------------===//

#include "BlockLayout.h"
#include "greta/Tile/TransposedLoads.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

//===----------------------------------------------------------------------===//
// Wishes
//===----------------------------------------------------------------------===//

namespace {

/// The blocks that elementwise work, broadcasts, reductions, reshapes and loops
/// connect with some. A dimension is followed as long as its extent is the
/// same, or a part of it (packed weights); an extent of 1 says nothing.
class ConnectedBlocks {
public:
  ConnectedBlocks(ArrayRef<Value> values, ArrayRef<int64_t> shape);
  /// The dimension of the first block that each dimension of another block is;
  /// -1: none.
  int64_t dimOf(Value value, unsigned dim) const {
    auto it = dims.find(value);
    return it == dims.end() ? -1 : it->second[dim];
  }
  bool contains(Value value) const { return dims.contains(value); }

private:
  using Dims = SmallVector<int64_t>;
  void reach(Value value, Dims from);
  void visit(Operation *op, Value from);
  ArrayRef<int64_t> shape;
  llvm::DenseMap<Value, Dims> dims;
  SmallVector<Value> worklist;
};

} // namespace

ConnectedBlocks::ConnectedBlocks(ArrayRef<Value> values,
                                 ArrayRef<int64_t> shape)
    : shape(shape) {
  for (Value value : values)
    reach(value, llvm::to_vector(llvm::seq<int64_t>(0, shape.size())));
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (Value other : carriedTogether(value))
      reach(other, dims[value]);
    if (Operation *op = value.getDefiningOp())
      visit(op, value);
    for (Operation *user : value.getUsers())
      visit(user, value);
  }
}

void ConnectedBlocks::visit(Operation *op, Value from) {
  Dims known = dims[from];
  // A contract's operands and results are parts of one block.
  if (isa<ContractOp>(op)) {
    for (Value value : op->getOperands())
      reach(value, known);
    return reach(op->getResult(0), known);
  }
  for (OpResult result : op->getResults())
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isBlock(result) || !isBlock(operand.get()) ||
          (result != from && operand.get() != from))
        continue;
      SmallVector<int64_t> places = operandDims(operand, result);
      if (places.empty())
        continue;
      Dims moved;
      if (operand.get() == from) {
        for (int64_t place : places)
          moved.push_back(place < 0 ? -1 : known[place]);
        reach(result, moved);
      } else {
        moved.assign(shapeOf(operand.get()).size(), -1);
        for (auto [dim, place] : llvm::enumerate(places))
          if (place >= 0)
            moved[place] = known[dim];
        reach(operand.get(), moved);
      }
    }
}

void ConnectedBlocks::reach(Value value, Dims from) {
  if (!isBlock(value))
    return;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(value))) {
    if (from[dim] < 0)
      continue;
    int64_t whole = shape[from[dim]];
    if (whole % extent || !llvm::isPowerOf2_64(whole / extent) ||
        (extent == 1 && whole != 1))
      from[dim] = -1;
  }
  auto [it, isNew] = dims.try_emplace(value, from);
  bool more = isNew;
  for (auto [before, now] : llvm::zip(it->second, from))
    if (before < 0 && now >= 0) {
      before = now;
      more = true;
    }
  if (more)
    worklist.push_back(value);
}

SmallVector<Value> greta::carriedTogether(Value value) {
  SmallVector<Value> others;
  auto addLoop = [&](LoopLikeOpInterface loop, unsigned i) {
    others.append({loop.getInits()[i], loop.getRegionIterArgs()[i],
                   loop.getYieldedValues()[i], (*loop.getLoopResults())[i]});
  };
  // The values that a while loop's iterations begin with, and those that its
  // condition passes on.
  auto addIteration = [&](scf::WhileOp loop, unsigned i) {
    others.append({loop.getInits()[i], loop.getBeforeArguments()[i],
                   loop.getYieldOp().getOperand(i)});
  };
  auto addPassed = [&](scf::WhileOp loop, unsigned i) {
    others.append({loop.getConditionOp().getArgs()[i],
                   loop.getAfterArguments()[i], loop.getResult(i)});
  };
  auto addBranch = [&](scf::IfOp branch, unsigned i) {
    others.push_back(branch.getResult(i));
    for (Region &region : branch->getRegions())
      if (!region.empty())
        others.push_back(region.front().getTerminator()->getOperand(i));
  };
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      addLoop(loop, arg.getArgNumber() - loop.getNumInductionVars());
    else if (auto loop = dyn_cast<scf::WhileOp>(parent))
      arg.getOwner() == loop.getBeforeBody()
          ? addIteration(loop, arg.getArgNumber())
          : addPassed(loop, arg.getArgNumber());
  } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
    addLoop(loop, cast<OpResult>(value).getResultNumber());
  } else if (auto loop = value.getDefiningOp<scf::WhileOp>()) {
    addPassed(loop, cast<OpResult>(value).getResultNumber());
  } else if (auto branch = value.getDefiningOp<scf::IfOp>()) {
    addBranch(branch, cast<OpResult>(value).getResultNumber());
  }
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      addLoop(loop, use.getOperandNumber() - loop.getNumControlOperands());
    } else if (auto loop = dyn_cast<scf::WhileOp>(user)) {
      addIteration(loop, use.getOperandNumber());
    } else if (auto condition = dyn_cast<scf::ConditionOp>(user)) {
      addPassed(condition.getParentOp<scf::WhileOp>(),
                use.getOperandNumber() - 1);
    } else if (isa<scf::YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        addLoop(loop, use.getOperandNumber());
      else if (auto loop = dyn_cast<scf::WhileOp>(parent))
        addIteration(loop, use.getOperandNumber());
      else if (auto branch = dyn_cast<scf::IfOp>(parent))
        addBranch(branch, use.getOperandNumber());
    } else if (auto dot = dyn_cast<DotOp>(user); dot && dot.getAcc() == value) {
      others.push_back(dot.getResult());
    }
  }
  if (auto dot = value.getDefiningOp<DotOp>())
    others.push_back(dot.getAcc());
  return others;
}

/// Neighbours along a dimension of a block are neighbours in memory, of which
/// an access may take `count`.
static void noteNeighbours(Value block, unsigned dim, int64_t count,
                           const ConnectedBlocks &blocks,
                           LayoutWishes &wishes) {
  auto type = cast<RankedTensorType>(block.getType());
  int64_t place = blocks.dimOf(block, dim);
  if (type.getDimSize(dim) == 1 || place < 0)
    return;
  // An element may be that of several neighbours; no type is narrower than
  // four bits.
  int64_t shared = wishes.shape[place] / type.getDimSize(dim);
  int64_t run = std::min<int64_t>(count * shared, 32);
  // The larger block decides along which dimension neighbours lie, unless an op
  // needs them along one.
  int64_t elements = type.getNumElements();
  if (place == wishes.fastest) {
    wishes.run = std::max(wishes.run, run);
  } else if (elements > wishes.accessed && wishes.leastRun == 1) {
    wishes.fastest = place;
    wishes.run = std::max<int64_t>(run, 1);
  }
  wishes.accessed = std::max(wishes.accessed, elements);
}

/// The wish of an access through pointers, which may be the only one of the
/// blocks.
static void noteScattered(Value pointers, Value mask, Value moved,
                          const ConnectedBlocks &blocks, const Facts &facts,
                          LayoutWishes &wishes) {
  if (!isBlock(pointers))
    return;
  for (auto [dim, known] : llvm::enumerate(facts.of(pointers).getDims()))
    if (known.contiguity > 1)
      noteNeighbours(blocks.contains(moved) ? moved : pointers, dim,
                     facts.vectorWidth(pointers, mask, dim), blocks, wishes);
}

/// Whether a run along the dimension has less than the 16 bytes of an access,
/// as the scales of two interleaved rows.
template <typename OpT>
static bool isShortRun(OpT op, Value block, unsigned dim) {
  int64_t run = op.getRun(dim);
  return run > 1 &&
         run * bytesInMemory(getElementTypeOrSelf(block.getType())) < 16;
}

/// How many neighbours along the dimension of stride 1 one access may take.
template <typename OpT>
static void noteAccess(OpT op, Value block, const ConnectedBlocks &blocks,
                       const Facts &facts, LayoutWishes &wishes) {
  for (auto [dim, stride] : llvm::enumerate(op.getStrides()))
    if (stride == 1 && !isShortRun(op, block, dim))
      noteNeighbours(block, dim, facts.vectorWidth(op, dim), blocks, wishes);
}

/// Notes a dimension along which neighbours' 16 bytes lie next to each other.
static void noteRuns(LoadOp op, const ConnectedBlocks &blocks,
                     LayoutWishes &wishes) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t bytes = bytesInMemory(type.getElementType());
  for (auto [dim, stride] : llvm::enumerate(op.getStrides()))
    if (op.getRun(dim) > 1 && stride * bytes == 16)
      wishes.together = blocks.dimOf(op.getResult(), dim);
}

/// A lane holds the elements that it adds up, but for groups of neighbours, of
/// which it holds each.
static void noteContract(ContractOp op, const ConnectedBlocks &blocks,
                         LayoutWishes &wishes) {
  ArrayRef<int64_t> sums = shapeOf(op.getResult());
  for (int64_t dim : op.getDims()) {
    // An operand has the dimension; the result and the other may have 1 of it.
    int64_t place =
        std::max(blocks.dimOf(op.getA(), dim), blocks.dimOf(op.getB(), dim));
    if (place < 0)
      continue;
    if (sums[dim] == 1) {
      wishes.contracted = true;
      wishes.inRegisters.set(place);
    } else {
      wishes.fastest = place;
      wishes.leastRun = wishes.shape[place] / sums[dim];
    }
  }
}

/// Whether the target's transposed loads bring neighbours along K of all that
/// is accessed of some blocks.
static bool areTransposed(FuncOp kernel, const ConnectedBlocks &blocks,
                          const LayoutWishes &wishes, const Facts &facts,
                          const TargetRow &row) {
  auto isTransposed = [&](LoadOp load) {
    auto type = cast<RankedTensorType>(load.getResult().getType());
    int64_t width = transposedWidth(row, /*isShared=*/false,
                                    bytesInMemory(type.getElementType()));
    if (!width || width > wishes.deepRun ||
        type.getShape() != ArrayRef(wishes.shape) || !facts.isWithin(load))
      return false;
    for (auto [dim, stride] : llvm::enumerate(load.getStrides()))
      if (blocks.dimOf(load.getResult(), dim) == wishes.fastest)
        return stride == 1 && facts.vectorWidth(load, dim) >= width;
    return false;
  };
  auto isPart = [&](Value value) { return blocks.contains(value); };
  return !hasOpThat(kernel, [&](Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    return isa<LoadOp, StoreOp, LoadScatteredOp, StoreScatteredOp>(op) &&
           (llvm::any_of(op->getOperands(), isPart) ||
            llvm::any_of(op->getResults(), isPart)) &&
           !(load && isTransposed(load));
  });
}

LayoutWishes greta::collectWishes(ArrayRef<Value> values,
                                  ArrayRef<int64_t> shape, const Facts &facts,
                                  const TargetRow *row) {
  LayoutWishes wishes(shape);
  ConnectedBlocks blocks(values, shape);
  Region *region = Value(values.front()).getParentRegion();
  auto kernel = region->getParentOfType<FuncOp>();
  kernel.getBody().walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      noteAccess(load, load.getResult(), blocks, facts, wishes);
      noteRuns(load, blocks, wishes);
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      noteAccess(store, store.getValue(), blocks, facts, wishes);
    } else if (auto load = dyn_cast<LoadScatteredOp>(op)) {
      noteScattered(load.getPointers(), load.getMask(), load.getResult(),
                    blocks, facts, wishes);
    } else if (auto store = dyn_cast<StoreScatteredOp>(op)) {
      noteScattered(store.getPointers(), store.getMask(), store.getValue(),
                    blocks, facts, wishes);
    } else if (auto split = dyn_cast<SplitOp>(op)) {
      int64_t last = shapeOf(split.getFirst()).size();
      if (int64_t dim = blocks.dimOf(split.getValue(), last); dim >= 0)
        wishes.inRegisters.set(dim);
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      int64_t dim = blocks.dimOf(reduce.getValues().front(), reduce.getAxis());
      if (dim >= 0)
        wishes.reduced.set(dim);
    } else if (auto contract = dyn_cast<ContractOp>(op)) {
      if (blocks.contains(contract.getResult()))
        noteContract(contract, blocks, wishes);
    } else if (auto dequant = dyn_cast<tile::DequantOp>(op)) {
      int64_t place = blocks.dimOf(dequant.getResult(), dequant.getDim());
      if (place < 0)
        return;
      wishes.fastest = place;
      wishes.leastRun = 8; // the weights of a word, or of two
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      // Matrix instructions take neighbours along K from a lane. Drivers that
      // load matrices whole take any order.
      MatrixAttr matrix = dot.getMatrixAttr();
      for (unsigned operand : {0u, 1u}) {
        Value value = dot->getOperand(operand);
        int64_t place =
            blocks.dimOf(value, shapeOf(value).size() - 1 - operand);
        if (!matrix || matrix.isLoadedWhole() || place < 0)
          continue;
        // Blocks of loops pass through shared memory, where transposed loads
        // take neighbours along any dimension.
        int64_t bytes = bytesInMemory(getElementTypeOrSelf(value));
        if (row && isa<scf::ForOp>(dot->getParentOp()) &&
            transposedWidth(*row, /*isShared=*/true, bytes))
          continue;
        wishes.depth = place;
        wishes.deepRun = 16 / bytes;
      }
    }
  });
  wishes.transposes = row && wishes.depth >= 0 &&
                      wishes.depth != wishes.fastest && wishes.leastRun == 1 &&
                      wishes.inRegisters.none() &&
                      areTransposed(kernel, blocks, wishes, facts, *row);
  return wishes;
}

//===----------------------------------------------------------------------===//
// The layout
//===----------------------------------------------------------------------===//

FailureOr<Layout> greta::blockLayout(const LayoutWishes &wishes, FuncOp kernel,
                                     Operation *op) {
  unsigned rank = wishes.shape.size();
  // The extent that each dimension still has to give, in powers of two.
  SmallVector<int64_t, 4> left(rank), at(rank, 1);
  int64_t elements = 1;
  for (unsigned dim = 0; dim < rank; ++dim) {
    left[dim] = wishes.shape[dim] & -wishes.shape[dim];
    elements *= wishes.shape[dim];
    if (wishes.inRegisters[dim] && left[dim] != wishes.shape[dim])
      return emitError(op->getLoc())
             << "dimension " << dim << " of extent " << wishes.shape[dim]
             << " is to be in registers; its extent must be a power of two";
  }
  unsigned fastest = wishes.fastest >= 0 ? wishes.fastest : rank - 1;
  Bases bases[3]; // reg, lane, wave
  auto take = [&](Bases &to, unsigned dim) {
    Basis basis(rank, 0);
    basis[dim] = at[dim];
    to.push_back(basis);
    at[dim] *= 2;
    left[dim] /= 2;
  };
  // Neighbours in registers, unless that would leave lanes idle.
  int64_t perLane = std::max<int64_t>(1, llvm::PowerOf2Ceil(elements) /
                                             kernel.getBlockSize());
  int64_t inSlices = 1;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (wishes.inRegisters[dim])
      inSlices *= wishes.shape[dim];
  int64_t run = std::min(wishes.run, std::max<int64_t>(1, perLane / inSlices));
  run = std::max(run, wishes.leastRun);
  // Slices along the fastest dimension itself (pairs) come on top of the run.
  if (wishes.inRegisters[fastest])
    run = 1;
  // Neighbours along K, where they are none in memory, are brought together in
  // the lane before they go to shared memory: a square of them, four of
  // memory's neighbours at least.
  int64_t deep = 1;
  if (wishes.transposes && perLane >= wishes.deepRun) {
    deep = wishes.deepRun;
    run = 1;
  } else if (wishes.depth >= 0 && wishes.depth != fastest) {
    int64_t least = std::max(wishes.leastRun, std::min<int64_t>(run, 4));
    deep = std::min(wishes.deepRun, std::max<int64_t>(1, perLane / least));
    run = std::max(wishes.leastRun, std::min(run, perLane / deep));
  }
  for (int64_t n = 1; n < run && left[fastest] > 1; n *= 2)
    take(bases[0], fastest);
  for (int64_t n = 1; n < deep && left[wishes.depth] > 1; n *= 2)
    take(bases[0], wishes.depth);
  for (unsigned dim = rank; dim-- > 0;)
    if (wishes.inRegisters[dim])
      while (left[dim] > 1)
        take(bases[0], dim);
  // Pairs in memory: what lies around them completes the 16 bytes.
  if (wishes.inRegisters[fastest] && fastest > 0 && !wishes.contracted) {
    unsigned around = fastest - 1;
    int64_t have = wishes.shape[fastest];
    for (; have < wishes.run && have < perLane && left[around] > 1; have *= 2)
      take(bases[0], around);
  }

  auto order = llvm::to_vector(llvm::reverse(llvm::seq<unsigned>(rank)));
  std::swap(order.front(), *llvm::find(order, fastest));
  auto distribute = [&](Bases &to, int64_t count, ArrayRef<unsigned> dims) {
    for (unsigned dim : dims)
      while (count > 1 && left[dim] > 1) {
        take(to, dim);
        count /= 2;
      }
    for (; count > 1; count /= 2) // the rest holds copies
      to.push_back(Basis(rank, 0));
  };
  // Lanes side by side along a row of shared memory keep its banks apart, as
  // far as memory's lines of 64 bytes stay whole.
  int64_t lanes = kernel.getNumLanes();
  for (int64_t n = 4 * wishes.deepRun / deep;
       deep > 1 && run > 1 && n > 1 && left[wishes.depth] > 1;
       n /= 2, lanes /= 2)
    take(bases[1], wishes.depth);
  // If lanes sum, rows that lie together are neighbouring lanes'.
  if (int64_t dim = wishes.together;
      wishes.contracted && dim >= 0 && left[dim] > 1 && lanes > 1) {
    take(bases[1], dim);
    lanes /= 2;
  }
  distribute(bases[1], lanes, order);
  SmallVector<unsigned> waveOrder;
  for (bool reduced : {false, true})
    llvm::copy_if(order, std::back_inserter(waveOrder), [&](unsigned dim) {
      return (wishes.reduced[dim] && !wishes.contracted) == reduced;
    });
  distribute(bases[2], kernel.getNumWaves(), waveOrder);

  Basis rep;
  for (unsigned dim = 0; dim < rank; ++dim)
    rep.push_back(wishes.shape[dim] / at[dim]);
  return Layout(bases[0], bases[1], bases[2], rep);
}
