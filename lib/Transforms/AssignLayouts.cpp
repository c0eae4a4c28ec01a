//===- AssignLayouts.cpp - greta-tile-assign-layouts ----------------------===//
//
// Gives every block tensor of a kernel a layout.
//
// Ranks never change, and extents are full or 1, so the values that elementwise
// ops, broadcasts, reductions, slices and loops connect form a *space*: one
// shape, of which every member has each extent, 1, or (packed weights and what
// they share) a part of it. A space gets one layout; a member has it with the
// dimensions of extent 1 collapsed, the others coarsened. So nothing moves
// within a space, and convert_layout appears only where spaces meet: at the
// operands of a dot.
//
//   in    %s = greta_tile.reduce add %x dim 1 : tensor<4x256xf32> ->
//   tensor<4x1xf32> out   ... : tensor<4x256xf32, #greta_tile.layout<{reg =
//   [[0,1],..], ..}>>
//                 -> tensor<4x1xf32, #greta_tile.layout<{.. rep = [1,1]}>>
//
// How a space is laid out: neighbours in memory in the registers of a lane, up
// to 16 bytes of the narrowest type; dimensions that are flipped or added up in
// a lane wholly in registers; then lanes along the contiguous dimension and the
// others; then waves, along dimensions that no reduction crosses first; what is
// left repeats. The accumulator of a dot and its operands have layouts of their
// own (DotLayouts.cpp); what an accumulator is split into keeps its layout.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "DotLayouts.h"
#include "greta/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEASSIGNLAYOUTSPASS
#include "greta/Transforms/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

using Shape = SmallVector<int64_t, 4>;

/// What the members of a space ask of its layout.
struct Space {
  Shape shape;
  SmallVector<Value> members;
  DotOp dot;                        // its accumulator, or null
  SplitOp source, split;            // what it comes from, and goes to
  llvm::SmallBitVector inRegisters; // dimensions that lanes would rather hold
  llvm::SmallBitVector reduced;
  bool contracted = false; // of a contract: waves go on where lanes end
  int64_t fastest = -1;    // dimension of neighbours in memory
  int64_t run = 1;         // how many of them an access may take
  int64_t depth = -1;      // K, where matrix instructions take it
  int64_t deepRun = 1;     // how many of K's neighbours make 16 bytes
  int64_t leastRun = 1;    // how many of them a lane needs
  LayoutAttr layout;
};

class LayoutAssigner {
public:
  explicit LayoutAssigner(FuncOp kernel) : kernel(kernel) {}
  LogicalResult run();

private:
  void splitConstants();
  void unify(Value a, Value b);
  void connect(Operation *op);
  LogicalResult collectSpaces();
  template <typename OpT> void noteAccess(OpT op, Value block);
  void noteDepth(DotOp dot, unsigned operand);
  LogicalResult layOut(Space &space);
  LogicalResult layOutAccumulator(Space &space);
  std::optional<Layout> splitLayout(Space &space);
  Space &spaceOf(Value value) {
    return spaces.find(classes.getLeaderValue(value.getAsOpaquePointer()))
        ->second;
  }
  LayoutAttr memberLayout(const Space &space, RankedTensorType type);

  FuncOp kernel;
  llvm::EquivalenceClasses<const void *> classes;
  SmallVector<Value> blocks; // in program order
  llvm::MapVector<const void *, Space> spaces;
};

} // namespace

static bool isBlock(Value value) {
  return isa<RankedTensorType>(value.getType());
}

void LayoutAssigner::unify(Value a, Value b) {
  if (isBlock(a) && isBlock(b))
    classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
}

void LayoutAssigner::connect(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, arg, result, yielded] :
         llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(),
                   loop.getResults(), loop.getYieldedValues())) {
      unify(init, arg);
      unify(init, result);
      unify(init, yielded);
    }
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region &region : branch->getRegions())
      if (!region.empty())
        for (auto [result, yielded] :
             llvm::zip(branch.getResults(),
                       region.front().getTerminator()->getOperands()))
          unify(result, yielded);
    return;
  }
  if (auto dot = dyn_cast<DotOp>(op))
    return unify(dot.getAcc(), dot.getResult());
  // What a loop or branch yields belongs to its results, one by one.
  if (isa<ConvertLayoutOp, SplitOp, scf::YieldOp>(op))
    return;
  Value first;
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults())))
    if (isBlock(value)) {
      if (first)
        unify(first, value);
      else
        first = value;
    }
}

/// How many neighbours along the dimension of stride 1 one access may take.
template <typename OpT> void LayoutAssigner::noteAccess(OpT op, Value block) {
  Space &space = spaceOf(block);
  auto type = cast<RankedTensorType>(block.getType());
  int64_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
  for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
    if (stride != 1 || type.getDimSize(dim) == 1)
      continue;
    // An element may be that of several neighbours; no type is narrower than
    // four bits.
    int64_t shared = space.shape[dim] / type.getDimSize(dim);
    int64_t run = std::min<int64_t>(16, op.getAlign()) / bytes * shared;
    run = std::min<int64_t>(run, 32);
    // What is split over slices is no neighbour in memory unless it is whole.
    if (space.fastest < 0 || run > space.run) {
      space.fastest = dim;
      space.run = std::max<int64_t>(run, 1);
    }
  }
}

LogicalResult LayoutAssigner::collectSpaces() {
  auto note = [&](Value value) {
    if (!isBlock(value))
      return;
    blocks.push_back(value);
    classes.insert(value.getAsOpaquePointer());
  };
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      note(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value arg : block.getArguments())
          note(arg);
  });
  kernel.getBody().walk([&](Operation *op) { connect(op); });

  for (Value value : blocks) {
    Space &space = spaces[classes.getLeaderValue(value.getAsOpaquePointer())];
    auto type = cast<RankedTensorType>(value.getType());
    if (space.shape.empty()) {
      space.shape.assign(type.getRank(), 1);
      space.inRegisters.resize(type.getRank());
      space.reduced.resize(type.getRank());
    }
    space.members.push_back(value);
    if (type.getRank() != static_cast<int64_t>(space.shape.size()))
      return emitError(value.getLoc())
             << "block of rank " << type.getRank() << " meets one of rank "
             << space.shape.size() << "; ranks never change in a kernel";
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      int64_t &whole = space.shape[dim];
      int64_t most = std::max(whole, extent), least = std::min(whole, extent);
      if (least != 1 && (most % least || !llvm::isPowerOf2_64(most / least)))
        return emitError(value.getLoc())
               << "block of extent " << extent << " along dimension " << dim
               << " meets one of extent " << whole
               << "; extents are equal, 1, or divided by a power of two";
      whole = most;
    }
  }
  kernel.getBody().walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      noteAccess(load, load.getResult());
    else if (auto store = dyn_cast<StoreOp>(op))
      noteAccess(store, store.getValue());
    else if (auto flip = dyn_cast<FlipOp>(op))
      spaceOf(flip.getResult()).inRegisters.set(flip.getDim());
    else if (auto split = dyn_cast<SplitOp>(op)) {
      spaceOf(split.getResult()).source = split;
      spaceOf(split.getValue()).split = split;
    } else if (auto reduce = dyn_cast<ReduceOp>(op))
      spaceOf(reduce.getResult()).reduced.set(reduce.getDim());
    else if (auto contract = dyn_cast<ContractOp>(op)) {
      Space &space = spaceOf(contract.getResult());
      auto sums = cast<RankedTensorType>(contract.getResult().getType());
      for (int64_t dim : contract.getDims())
        if (sums.getDimSize(dim) == 1) {
          space.contracted = true;
          space.inRegisters.set(dim);
        } else { // of neighbours
          space.fastest = dim;
          space.leastRun = space.shape[dim] / sums.getDimSize(dim);
        }
    } else if (auto contract = dyn_cast<ContractPackedOp>(op)) {
      Space &space = spaceOf(contract.getResult());
      space.contracted = true;
      unsigned rank = space.shape.size();
      space.inRegisters.set(rank - 2, rank);
    } else if (auto dequant = dyn_cast<tile::DequantOp>(op)) {
      Space &space = spaceOf(dequant.getResult());
      space.fastest = dequant.getDim();
      space.leastRun = 8; // the weights of a word
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      spaceOf(dot.getResult()).dot = dot;
      for (unsigned operand : {0u, 1u})
        noteDepth(dot, operand);
    }
  });
  return success();
}

/// Matrix instructions take neighbours along K from a lane. Drivers load whole
/// matrices from any order.
void LayoutAssigner::noteDepth(DotOp dot, unsigned operand) {
  MatrixAttr matrix = dot.getMatrixAttr();
  if (!matrix || matrix.isCooperative())
    return;
  Value value = dot->getOperand(operand);
  Space &space = spaceOf(value);
  space.depth = 1 - operand;
  space.deepRun =
      16 /
      std::max(1u, getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8);
}

LogicalResult LayoutAssigner::layOut(Space &space) {
  if (space.layout)
    return success();
  if (space.source) {
    if (failed(layOut(spaceOf(space.source.getValue()))))
      return failure();
    if (std::optional<Layout> layout = splitLayout(space)) {
      space.layout = toAttr(kernel.getContext(), *layout);
      return success();
    }
  }
  if (space.dot)
    return layOutAccumulator(space);
  unsigned rank = space.shape.size();
  // What each dimension still has to give, in powers of two.
  Shape left(rank), at(rank, 1);
  int64_t elements = 1;
  for (unsigned dim = 0; dim < rank; ++dim) {
    left[dim] = powerPart(space.shape[dim]);
    elements *= space.shape[dim];
    if (space.inRegisters[dim] && left[dim] != space.shape[dim])
      return emitError(space.members.front().getLoc())
             << "dimension " << dim << " of extent " << space.shape[dim]
             << " is to be in registers; its extent must be a power of two";
  }
  unsigned fastest = space.fastest >= 0 ? space.fastest : rank - 1;
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
    if (space.inRegisters[dim])
      inSlices *= space.shape[dim];
  int64_t run = std::min(space.run, std::max<int64_t>(1, perLane / inSlices));
  run = std::max(run, space.leastRun);
  // Slices along the fastest dimension itself (pairs) come on top of the run.
  if (space.inRegisters[fastest])
    run = 1;
  // Neighbours along K, where they are none in memory, are brought together in
  // the lane before they go to shared memory: a square of them, four of
  // memory's neighbours at least.
  int64_t deep = 1;
  if (space.depth >= 0 && space.depth != fastest) {
    deep = std::min(space.deepRun,
                    std::max<int64_t>(1, perLane / std::min<int64_t>(run, 4)));
    run = std::min(run, std::max<int64_t>(1, perLane / deep));
  }
  for (int64_t n = 1; n < run && left[fastest] > 1; n *= 2)
    take(bases[0], fastest);
  for (int64_t n = 1; n < deep && left[space.depth] > 1; n *= 2)
    take(bases[0], space.depth);
  for (unsigned dim = rank; dim-- > 0;)
    if (space.inRegisters[dim])
      while (left[dim] > 1)
        take(bases[0], dim);
  // Pairs in memory: what lies around them completes the 16 bytes.
  if (space.inRegisters[fastest] && fastest > 0 && !space.contracted) {
    unsigned around = fastest - 1;
    int64_t have = space.shape[fastest];
    for (; have < space.run && have < perLane && left[around] > 1; have *= 2)
      take(bases[0], around);
  }

  SmallVector<unsigned> order;
  for (unsigned dim = rank; dim-- > 0;)
    order.push_back(dim);
  std::swap(order.front(), *llvm::find(order, fastest));
  auto distribute = [&](Bases &to, int64_t count, ArrayRef<unsigned> dims) {
    for (unsigned dim : dims)
      while (count > 1 && left[dim] > 1) {
        take(to, dim);
        count /= 2;
      }
    return count;
  };
  // Lanes side by side along a row of shared memory keep its banks apart, as
  // far as memory's lines of 64 bytes stay whole.
  int64_t lanes = kernel.getWaveSize();
  for (int64_t n = 4 * space.deepRun / deep;
       deep > 1 && run > 1 && n > 1 && left[space.depth] > 1;
       n /= 2, lanes /= 2)
    take(bases[1], space.depth);
  int64_t idle = distribute(bases[1], lanes, order);
  for (; idle > 1; idle /= 2)
    bases[1].push_back(Basis(rank, 0));
  SmallVector<unsigned> waveOrder;
  for (bool reduced : {false, true})
    llvm::copy_if(order, std::back_inserter(waveOrder), [&](unsigned dim) {
      return (space.reduced[dim] && !space.contracted) == reduced;
    });
  idle = distribute(bases[2], kernel.getNumWaves(), waveOrder);
  for (; idle > 1; idle /= 2)
    bases[2].push_back(Basis(rank, 0));

  Basis rep;
  for (unsigned dim = 0; dim < rank; ++dim)
    rep.push_back(space.shape[dim] / at[dim]);
  space.layout =
      toAttr(kernel.getContext(), Layout(bases[0], bases[1], bases[2], rep));
  return success();
}

/// The layout that a space had before it was split, where its tile and the new
/// extents divide one another.
std::optional<Layout> LayoutAssigner::splitLayout(Space &space) {
  Space &from = spaceOf(space.source.getValue());
  std::optional<Layout> layout = toLayout(from.layout);
  for (unsigned dim = from.shape.size(); dim < space.shape.size() && layout;
       ++dim) {
    int64_t inner = 1;
    for (int64_t extent : ArrayRef(space.shape).drop_front(dim))
      inner *= extent;
    layout = layout->split(dim - 1, inner);
  }
  return layout;
}

/// The accumulator of a dot. Of a dimension that will be split, threads stay
/// within the last extents, up to one that is to be in registers; what is
/// beyond repeats.
LogicalResult LayoutAssigner::layOutAccumulator(Space &space) {
  int64_t acrossN = powerPart(space.shape[1]);
  if (SplitOp split = space.split) {
    Space &into = spaceOf(split.getResult());
    int64_t last = into.shape.size() - 1;
    acrossN = 1;
    for (int64_t dim = last; dim > 0; --dim) {
      if (into.inRegisters[dim] && dim != last)
        break;
      acrossN *= powerPart(into.shape[dim]);
      if (!llvm::isPowerOf2_64(into.shape[dim]))
        break;
    }
  }
  FailureOr<Layout> layout =
      accumulatorLayout(space.dot, space.shape, kernel, acrossN);
  if (failed(layout))
    return failure();
  space.layout = toAttr(kernel.getContext(), *layout);
  return success();
}

LayoutAttr LayoutAssigner::memberLayout(const Space &space,
                                        RankedTensorType type) {
  Layout layout = toLayout(space.layout);
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    if (extent == space.shape[dim])
      continue;
    int64_t factor = space.shape[dim] / extent;
    layout = extent == 1 ? layout.collapse(dim) : layout.coarsen(dim, factor);
  }
  return toAttr(kernel.getContext(), layout);
}

/// Every use of a constant gets its own copy: sharing one would tie spaces
/// together that have nothing to do with each other.
void LayoutAssigner::splitConstants() {
  SmallVector<arith::ConstantOp> constants;
  kernel.getBody().walk([&](arith::ConstantOp op) {
    if (isBlock(op.getResult()) && !op->hasOneUse())
      constants.push_back(op);
  });
  for (arith::ConstantOp constant : constants) {
    OpBuilder builder(constant);
    for (OpOperand &use :
         llvm::make_early_inc_range(constant->getResult(0).getUses()))
      use.set(builder.clone(*constant)->getResult(0));
    constant.erase();
  }
}

LogicalResult LayoutAssigner::run() {
  splitConstants();
  if (failed(collectSpaces()))
    return failure();
  for (auto &entry : spaces)
    if (failed(layOut(entry.second)))
      return failure();
  // Dots look at their operands' spaces by value: plan them before types
  // change.
  SmallVector<std::pair<DotOp, std::array<LayoutAttr, 2>>> dots;
  kernel.getBody().walk([&](DotOp dot) {
    Layout acc = toLayout(spaceOf(dot.getResult()).layout);
    std::array<LayoutAttr, 2> layouts;
    for (unsigned i = 0; i < 2; ++i)
      layouts[i] = toAttr(
          kernel.getContext(),
          operandLayout(dot, i, acc, spaceOf(dot->getOperand(i)).fastest));
    dots.push_back({dot, layouts});
  });
  for (Value value : blocks) {
    auto type = cast<RankedTensorType>(value.getType());
    LayoutAttr layout = memberLayout(spaceOf(value), type);
    Index shape = toLayout(layout).shape();
    if (!llvm::equal(shape, type.getShape()))
      return emitError(value.getLoc())
             << "neighbours that share an element of " << type
             << " are in several repetitions of its layout; use a larger block "
                "or a smaller extent";
    RankedTensorType laidOut = withLayout(type, layout);
    value.setType(laidOut);
    // A constant's value carries its type.
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(dense.reshape(laidOut));
  }
  for (auto &[dot, layouts] : dots)
    for (unsigned i = 0; i < 2; ++i) {
      OpOperand &operand = dot->getOpOperand(i);
      auto type = cast<RankedTensorType>(operand.get().getType());
      if (getLayoutOf(type) == layouts[i])
        continue;
      OpBuilder builder(dot);
      operand.set(ConvertLayoutOp::create(
          builder, dot.getLoc(), withLayout(type, layouts[i]), operand.get()));
    }
  return success();
}

namespace {
struct AssignLayoutsPass
    : greta::impl::GretaTileAssignLayoutsPassBase<AssignLayoutsPass> {
  void runOnOperation() override {
    if (failed(LayoutAssigner(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
