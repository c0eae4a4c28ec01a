//===- AssignLayouts.cpp - greta-tile-assign-layouts ----------------------===//
//
// Gives every block tensor of a kernel a layout of its own.
//
// Ops that no layout can say are first written by ops that have layouts: cat by
// join, trans and reshape, scales that no power of two of weights share by
// copies.
//
// Some values decide: first the accumulators of dots, whose layouts are the
// instruction's, then contracts, then the largest block without a layout, which
// gets what the accesses, reductions and products around it ask for
// (BlockLayout.cpp). From each of them the layout goes on, to operands and to
// results, through the ops that need no data to move (LayoutTransferOpInterface
// and elementwise ops) and around loops and branches, to all values that have
// none yet. At last every op finds its operands in the layouts that belong to
// its results', or convert_layout stands between.
//
//   in    %s = greta_tile.reduce add %x dim 1
//             : tensor<4x256xf32> -> tensor<4x1xf32>
//   out   ... : tensor<4x256xf32, #greta_tile.layout<{reg = [[0,1],..], ..}>>
//               -> tensor<4x1xf32, #greta_tile.layout<{.. rep = [1,1]}>>
//
// So nothing moves in a kernel of row ops, and in one of a product only its
// operands do.
//
//===----------------------------------------------------------------------===//

#include "BlockLayout.h"
#include "DotLayouts.h"
#include "greta/Interface/Targets.h"
#include "greta/Layout/Conversion.h"
#include "greta/Layout/Waves.h"
#include "greta/Passes.h"
#include "greta/Tile/Blocks.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <queue>

namespace greta {
#define GEN_PASS_DEF_GRETATILEASSIGNLAYOUTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

class LayoutAssigner {
public:
  LayoutAssigner(FuncOp kernel, const TargetRow *row)
      : kernel(kernel), row(row), builder(kernel.getContext()) {}
  LogicalResult run();

private:
  void expandOps();
  void copyLeaves();
  void regroupColumns(DotOp dot);
  LogicalResult layOutAccumulator(DotOp dot);
  void layOutOperands(DotOp dot);
  void assignRegrouped(DotOp dot, const Layout &layout);
  LogicalResult layOutContract(ContractOp contract);
  LogicalResult layOutBlock(Value block);
  /// Gives a value its layout, and on from there.
  void assign(Value value, const Layout &layout);
  void setTypes();
  void convertOperands(Operation *op);
  void convertOperand(OpOperand &operand, const Layout &layout);
  void convertResult(OpResult result, const Layout &layout);

  LayoutWishes wishesOf(ArrayRef<Value> values, ArrayRef<int64_t> shape) {
    return collectWishes(values, shape, *facts, row);
  }

  FuncOp kernel;
  const TargetRow *row; // null: not known
  OpBuilder builder;
  std::optional<Facts> facts;
  llvm::DenseMap<Value, Layout> layouts;
  /// The layouts in which dots and contracts take their operands.
  llvm::DenseMap<OpOperand *, Layout> wanted;
  /// B of dots whose columns are regrouped, as it is loaded.
  llvm::DenseMap<Operation *, Value> regrouped;
  /// The layouts in which contracts leave their results.
  llvm::DenseMap<Value, Layout> made;
};

} // namespace

/// Each element of a block as many times as it has neighbours of a block of
/// `shape`, where no power of two of them share it.
static Value repeated(OpBuilder &builder, Value value,
                      ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> apart, wide, joined;
  for (auto [extent, whole] : llvm::zip(type.getShape(), shape)) {
    int64_t factor = whole / extent;
    bool repeats = extent != 1 && !llvm::isPowerOf2_64(factor);
    apart.append({extent, 1});
    wide.append({extent, repeats ? factor : 1});
    joined.push_back(repeats ? whole : extent);
  }
  if (ArrayRef(joined) == type.getShape())
    return value;
  ImplicitLocOpBuilder b(value.getLoc(), builder);
  Blocks a{b};
  return a.reshape(a.broadcast(a.reshape(value, apart), wide), joined);
}

/// Sizes that no layout can have, or that several ops state better.
void LayoutAssigner::expandOps() {
  kernel.getBody().walk([&](Operation *op) {
    builder.setInsertionPoint(op);
    if (auto cat = dyn_cast<CatOp>(op)) {
      cat.replaceAllUsesWith(cat.expand(builder));
      cat.erase();
    } else if (auto dequant = dyn_cast<tile::DequantOp>(op)) {
      for (OpOperand &operand : op->getOpOperands().drop_front())
        operand.set(
            repeated(builder, operand.get(), shapeOf(dequant.getResult())));
    }
  });
}

/// Integers and pointers that follow from indices and scalars.
static bool isIndexOp(Operation *op,
                      const llvm::SmallDenseSet<Operation *> &others) {
  if (op->getNumResults() != 1 || op->getNumRegions() ||
      !isBlock(op->getResult(0)) ||
      !isa<IntegerType, PtrType>(getElementTypeOrSelf(op->getResult(0))) ||
      !(isa<ReshapeOp, BroadcastOp, PtrAddOp>(op) ||
        OpTrait::hasElementwiseMappableTraits(op)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *made = operand.getDefiningOp();
    return !isBlock(operand) ||
           (made && (isa<IotaOp, SplatOp, arith::ConstantOp>(made) ||
                     others.contains(made)));
  });
}

/// Every use of what costs little or nothing to have gets its own: sharing one
/// would tie layouts together that have nothing to do with each other. Values
/// in one layout after all are merged again in the end.
void LayoutAssigner::copyLeaves() {
  SmallVector<Operation *> indices, leaves;
  llvm::SmallDenseSet<Operation *> known;
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isIndexOp(op, known)) {
      indices.push_back(op);
      known.insert(op);
    }
  });
  auto copy = [&](Operation *op) {
    builder.setInsertionPoint(op);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses()))
      use.set(builder.clone(*op)->getResult(0));
    op->erase();
  };
  // Users come before what they use. Few uses, or chains of them become long.
  constexpr unsigned mostUses = 8;
  for (Operation *op : llvm::reverse(indices))
    if (!op->hasOneUse() && !op->getResult(0).hasNUsesOrMore(mostUses + 1))
      copy(op);
  kernel.getBody().walk([&](Operation *op) {
    bool isLeaf =
        isa<IotaOp, SplatOp>(op) || op->hasTrait<OpTrait::ConstantLike>();
    if (isLeaf && isBlock(op->getResult(0)) && !op->hasOneUse())
      leaves.push_back(op);
  });
  llvm::for_each(leaves, copy);
}

/// The last dimension of a block, taken as rows of `extent` in which columns
/// are numbered first.
static Value regroup(OpBuilder &builder, Value value, int64_t extent,
                     int64_t rows) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> apart(type.getShape());
  int64_t last = apart.size() - 1;
  apart[last] /= rows * extent;
  apart.append({rows, extent});
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, apart.size()));
  std::swap(order[last + 1], order[last + 2]);
  ImplicitLocOpBuilder b(value.getLoc(), builder);
  Blocks a{b};
  return a.reshape(a.transpose(a.reshape(value, apart), order),
                   type.getShape());
}

/// A B that lies along its columns in memory, and is loaded into the registers
/// that multiply it: a lane takes neighbouring columns, which go to as many
/// instructions, of which each has a column of every lane.
void LayoutAssigner::regroupColumns(DotOp dot) {
  MatrixAttr matrix = dot.getMatrixAttr();
  PipelineAttr pipeline = pipelineOf(dot);
  if (!matrix || !pipeline || pipeline.getStages())
    return;
  Value b = dot.getB();
  ArrayRef<int64_t> shape = shapeOf(b);
  LayoutWishes wishes = wishesOf(b, shape);
  int64_t columns = toLayout(matrix.getB()).shape()[1];
  int64_t run = std::min(wishes.run, powerPart(shape.back() / columns));
  if (wishes.fastest != int64_t(shape.size()) - 1 || run < 2)
    return;
  builder.setInsertionPoint(dot);
  dot.getBMutable().set(regroup(builder, b, run, columns));
  dot.getAccMutable().set(regroup(builder, dot.getAcc(), run, columns));
  builder.setInsertionPointAfter(dot);
  Value ordered = regroup(builder, dot.getResult(), columns, run);
  Operation *first = ordered.getDefiningOp()->getPrevNode()->getPrevNode();
  dot.getResult().replaceAllUsesExcept(ordered, first);
  regrouped[dot] = b;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

void LayoutAssigner::assign(Value value, const Layout &layout) {
  // The shortest way decides where there are several.
  std::queue<std::pair<Value, Layout>> worklist({{value, layout}});
  while (!worklist.empty()) {
    auto [value, layout] = std::move(worklist.front());
    worklist.pop();
    if (!isBlock(value) || !layouts.try_emplace(value, layout).second)
      continue;
    // A value that is carried in one place has one layout, so it gets it at
    // once: one of them could be reached in another by another way.
    SmallVector<Value> together{value};
    for (size_t i = 0; i < together.size(); ++i)
      for (Value other : carriedTogether(together[i]))
        if (layouts.try_emplace(other, layout).second)
          together.push_back(other);
    auto add = [&](Value to, std::optional<Layout> moved) {
      if (moved)
        worklist.push({to, *moved});
    };
    for (Value carried : together) {
      if (auto result = dyn_cast<OpResult>(carried))
        for (OpOperand &operand : result.getOwner()->getOpOperands())
          if (isBlock(operand.get()))
            add(operand.get(), tile::operandLayout(result, layout, operand));
      for (OpOperand &use : carried.getUses()) {
        for (OpResult result : use.getOwner()->getResults())
          if (isBlock(result))
            add(result, tile::resultLayout(use, layout, result));
        if (takesOneLayout(use.getOwner()))
          for (Value operand : use.getOwner()->getOperands())
            add(operand, layout);
      }
    }
  }
}

/// The cost of a conversion: nothing, shuffles, or a trip through shared
/// memory.
static unsigned effort(const Layout &from, const Layout &to) {
  std::string error;
  FailureOr<Conversion> plan = convert(from, to, error);
  if (failed(plan) || plan->kind == Conversion::Kind::Shared)
    return std::numeric_limits<unsigned>::max();
  return plan->numShuffles();
}

/// The accumulator of a dot.
LogicalResult LayoutAssigner::layOutAccumulator(DotOp dot) {
  Value result = dot.getResult();
  // Another dot's layout, which came here through elementwise work, may be of
  // another instruction; through regrouped columns, written in another way.
  auto known = layouts.find(result);
  MatrixAttr matrix = dot.getMatrixAttr();
  bool isForeign = known != layouts.end() && matrix &&
                   (regrouped.contains(dot) ||
                    (known->second.rank() == 2 &&
                     !known->second.quotient(accumulatorTile(dot))));
  if (known == layouts.end() || isForeign) {
    FailureOr<Layout> layout = accumulatorLayout(dot, shapeOf(result), kernel);
    if (failed(layout))
      return failure();
    SmallVector<Value> stale{result};
    for (size_t i = 0; isForeign && i < stale.size(); ++i)
      if (layouts.erase(stale[i]))
        llvm::append_range(stale, carriedTogether(stale[i]));
    assign(result, *layout);
  }
  return success();
}

/// The layouts of a dot's operands, from its accumulator's.
void LayoutAssigner::layOutOperands(DotOp dot) {
  const Layout acc = layouts.at(dot.getResult());
  MatrixAttr matrix = dot.getMatrixAttr();
  PipelineAttr pipeline = pipelineOf(dot);
  bool isDirect = matrix && pipeline && !pipeline.getStages();
  // From shared memory drivers load whole matrices in any order.
  int64_t run = 0, fastest[2];
  if (matrix && (isDirect || !matrix.isLoadedWhole()))
    run = 16 / bytesInMemory(getElementTypeOrSelf(dot.getA()));
  unsigned rank = acc.rank();
  for (unsigned number : {0, 1}) {
    Value operand = dot.getOperand(number);
    // A block that is taken apart along K is loaded as a whole.
    if (auto reshape = operand.getDefiningOp<ReshapeOp>(); reshape && isDirect)
      operand = reshape.getValue();
    ArrayRef<int64_t> shape = shapeOf(operand);
    LayoutWishes wishes = wishesOf(operand, shape);
    fastest[number] = wishes.fastest;
    if (isDirect && wishes.fastest == int64_t(shape.size()) - 1 - number)
      run = std::max(run, wishes.run);
  }
  std::optional<Layout> like;
  auto layoutOf = [&](unsigned number) {
    return greta::operandLayout(dot, number, acc, fastest[number], run,
                                like ? &*like : nullptr);
  };
  // An operand that another dot left in registers is numbered along K as that
  // left it.
  if (auto known = layouts.find(dot.getA()); known != layouts.end() && matrix) {
    unsigned least = effort(known->second, layoutOf(0));
    int64_t neighbours = std::exchange(run, 0);
    if (unsigned cost = effort(known->second, layoutOf(0)); cost < least)
      least = cost;
    else
      run = neighbours;
    like = known->second;
    if (effort(known->second, layoutOf(0)) >= least)
      like.reset();
  }
  if (!matrix && !pipeline)
    if (int64_t step = stepAlongK(dot, acc)) {
      dot.setStep(step);
      return;
    }
  for (unsigned number : {0, 1}) {
    Layout layout = layoutOf(number);
    wanted[&dot->getOpOperand(number)] = layout;
    // Nothing brings the operands from other lanes, or they stay in registers
    // over a loop's iterations: they are loaded there.
    auto loop = dyn_cast<LoopLikeOpInterface>(dot->getParentOp());
    if (regrouped.contains(dot) && number == 1)
      assignRegrouped(dot, layout);
    else if (isDirect ||
             (loop && loop.isDefinedOutsideOfLoop(dot.getOperand(number))))
      assign(dot.getOperand(number), layout.registersAlong(rank - 1 - number));
  }
}

/// At the load neighbours in memory are neighbours in registers.
void LayoutAssigner::assignRegrouped(DotOp dot, const Layout &layout) {
  Value source = regrouped.lookup(dot), value = dot.getB();
  std::optional<Layout> known = layout;
  while (known && value != source) {
    auto result = cast<OpResult>(value);
    OpOperand &operand = result.getOwner()->getOpOperand(0);
    known = tile::operandLayout(result, *known, operand);
    value = operand.get();
  }
  if (known)
    assign(source, known->registersAlong(known->rank() - 1));
}

LogicalResult LayoutAssigner::layOutContract(ContractOp contract) {
  SmallVector<int64_t, 4> shape = contractedShape(contract);
  SmallVector<Value> values(contract->getOperands());
  values.push_back(contract.getResult());
  // An operand that is the whole may have its layout from another contract.
  FailureOr<Layout> layout = failure();
  for (Value value : values)
    if (ArrayRef(shape) == shapeOf(value) && layouts.contains(value) &&
        sumsInLanes(contract, layouts.at(value)))
      layout = layouts.at(value);
  if (failed(layout))
    layout = blockLayout(wishesOf(values, shape), kernel, contract);
  if (failed(layout))
    return failure();
  for (OpOperand &operand : contract->getOpOperands())
    wanted[&operand] = sharedLayout(*layout, shapeOf(operand.get()));
  made[contract.getResult()] = sharedLayout(*layout, shapeOf(values.back()));
  for (Value value : values)
    assign(value, sharedLayout(*layout, shapeOf(value)));
  return success();
}

LogicalResult LayoutAssigner::layOutBlock(Value block) {
  Operation *op = block.getDefiningOp();
  FailureOr<Layout> layout =
      blockLayout(wishesOf(block, shapeOf(block)), kernel,
                  op ? op : block.getParentBlock()->getParentOp());
  if (failed(layout))
    return failure();
  assign(block, *layout);
  return success();
}

LogicalResult LayoutAssigner::run() {
  expandOps();
  copyLeaves();
  facts.emplace(kernel);
  SmallVector<DotOp> dots;
  SmallVector<ContractOp> contracts;
  SmallVector<Value> blocks;
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto dot = dyn_cast<DotOp>(op))
      dots.push_back(dot);
    else if (auto contract = dyn_cast<ContractOp>(op))
      contracts.push_back(contract);
    llvm::copy_if(op->getResults(), std::back_inserter(blocks), isBlock);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::copy_if(block.getArguments(), std::back_inserter(blocks),
                      isBlock);
  });
  for (Value block : blocks)
    if (shapeOf(block).empty())
      return emitError(block.getLoc())
             << block.getType() << " has no dimension; use a scalar";
  llvm::for_each(dots, [&](DotOp dot) { regroupColumns(dot); });
  for (DotOp dot : dots)
    if (failed(layOutAccumulator(dot)))
      return failure();
  llvm::for_each(dots, [&](DotOp dot) { layOutOperands(dot); });
  auto product = [](ArrayRef<int64_t> shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                           std::multiplies<>());
  };
  llvm::stable_sort(contracts, [&](ContractOp a, ContractOp b) {
    return product(contractedShape(a)) > product(contractedShape(b));
  });
  for (ContractOp contract : contracts)
    if (failed(layOutContract(contract)))
      return failure();
  SmallVector<Value> bySize(blocks);
  llvm::stable_sort(bySize, [&](Value a, Value b) {
    return product(shapeOf(a)) > product(shapeOf(b));
  });
  for (Value block : bySize)
    if (!layouts.contains(block) && failed(layOutBlock(block)))
      return failure();
  setTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static Layout layoutOf(Value value) {
  return toLayout(getLayoutOf(value.getType()));
}

static void setLayout(Value value, const Layout &layout) {
  auto type = cast<RankedTensorType>(value.getType());
  type = withLayout(type, toAttr(value.getContext(), layout));
  value.setType(type);
  // A constant's value carries its type.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(dense.reshape(type));
}

void LayoutAssigner::setTypes() {
  SmallVector<Operation *> ops;
  kernel.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  for (auto &[value, layout] : layouts)
    setLayout(value, layout);
  for (Operation *op : ops)
    convertOperands(op);
}

void LayoutAssigner::convertOperand(OpOperand &operand, const Layout &layout) {
  Value value = operand.get();
  auto type = cast<RankedTensorType>(value.getType());
  if (layoutOf(value) == layout)
    return;
  // In front of the loops that do not change the value.
  Operation *place = operand.getOwner();
  while (auto loop = dyn_cast<LoopLikeOpInterface>(place->getParentOp())) {
    if (!loop.isDefinedOutsideOfLoop(value))
      break;
    place = loop;
  }
  builder.setInsertionPoint(place);
  operand.set(ConvertLayoutOp::create(
      builder, operand.getOwner()->getLoc(),
      withLayout(type, toAttr(builder.getContext(), layout)), value));
}

/// The op leaves its result in `layout`; who uses it finds it as assigned.
void LayoutAssigner::convertResult(OpResult result, const Layout &layout) {
  Type assigned = result.getType();
  if (layoutOf(result) == layout)
    return;
  setLayout(result, layout);
  builder.setInsertionPointAfter(result.getOwner());
  auto convert = ConvertLayoutOp::create(builder, result.getOwner()->getLoc(),
                                         assigned, result);
  result.replaceAllUsesExcept(convert, convert);
}

/// The value in whose place a loop or a branch carries an operand; null: it
/// carries none.
static Value placeOf(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(&operand);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getBeforeArguments()[operand.getOperandNumber()];
  Operation *parent = op->getParentOp();
  if (isa<scf::ConditionOp>(op))
    return parent->getResult(operand.getOperandNumber() - 1);
  if (auto loop = dyn_cast<scf::WhileOp>(parent); loop && isa<scf::YieldOp>(op))
    return loop.getBeforeArguments()[operand.getOperandNumber()];
  if (isa<scf::YieldOp>(op) && isa<scf::ForOp, scf::IfOp>(parent))
    return parent->getResult(operand.getOperandNumber());
  return {};
}

void LayoutAssigner::convertOperands(Operation *op) {
  for (OpResult result : op->getResults())
    if (auto known = made.find(result); known != made.end())
      convertResult(result, known->second);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isBlock(operand.get()))
      continue;
    if (auto known = wanted.find(&operand); known != wanted.end()) {
      convertOperand(operand, known->second);
      continue;
    }
    if (Value place = placeOf(operand)) {
      convertOperand(operand, layouts.at(place));
      continue;
    }
    if (!op->getNumResults() && takesOneLayout(op))
      convertOperand(operand, layoutOf(op->getOperand(0)));
    if (!op->getNumResults() || isa<ConvertLayoutOp>(op))
      continue;
    // Either the results decide, or what the first operand has.
    OpResult first = op->getResult(0);
    std::optional<Layout> decided;
    if (isBlock(first))
      decided = tile::operandLayout(first, layouts.at(first), operand);
    if (decided)
      convertOperand(operand, *decided);
    else if (takesOneLayout(op))
      convertOperand(operand, layoutOf(op->getOperand(0)));
    for (OpResult result : op->getResults().drop_front(decided ? 1 : 0))
      if (isBlock(result))
        if (std::optional<Layout> layout =
                tile::resultLayout(operand, layoutOf(operand.get()), result))
          convertResult(result, *layout);
  }
}

namespace {
struct AssignLayoutsPass
    : greta::impl::GretaTileAssignLayoutsPassBase<AssignLayoutsPass> {
  using GretaTileAssignLayoutsPassBase::GretaTileAssignLayoutsPassBase;
  void runOnOperation() override {
    const TargetRow *row =
        target.empty() ? nullptr : rowOfTarget(getOperation(), target);
    if ((!target.empty() && !row) || failed(getOperation().checkTarget()) ||
        failed(LayoutAssigner(getOperation(), row).run()))
      signalPassFailure();
  }
};
} // namespace
