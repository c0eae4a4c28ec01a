//===- FuseSpace.cpp - the index space of a kernel's region ---------------===//
//
// Goes from the yielded values, which have the space's shape, to the values
// they need, and so finds how every value is indexed. One value may be needed
// in two ways (a square matrix and its first row's ..); each is a demand of its
// own, and greta-to-tile computes or loads it twice.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Fuse/Space.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace greta;

Mapping greta::identityMapping(int64_t rank) {
  return llvm::to_vector<4>(llvm::seq<int64_t>(0, rank));
}

bool greta::isElementwise(Operation *op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return broadcast.isCopy();
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      !OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return false;
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  return llvm::all_of(op->getOperandTypes(), isTensor) &&
         isTensor(op->getResult(0).getType());
}

bool greta::isRowOp(Operation *op) {
  return isa<RmsNormOp, LayerNormOp, SoftmaxOp, SwigluOp, RopeOp, MatmulOp,
             HeadsOp, DequantOp, PatchesOp, ReduceRowsOp>(op);
}

int64_t greta::rowsOfGroup(MatmulOp matmul) {
  int64_t groups = matmul.getNumGroups(), rows = expectedRows(matmul);
  if (!groups || ShapedType::isDynamic(rows) || rows == 0)
    return 0;
  int64_t expected = llvm::divideCeil(2 * rows, groups);
  return 4 * rows <= groups ? 1 : llvm::PowerOf2Ceil(expected);
}

/// The value of `greta.rows`.
static int64_t rowsSaidOf(Operation *op) {
  auto rows = op->getAttrOfType<IntegerAttr>(rowsName);
  return rows ? rows.getInt() : ShapedType::kDynamic;
}

bool greta::isBatchInvariant(Operation *op) {
  return op->hasAttrOfType<UnitAttr>(batchInvariantName);
}

int64_t greta::expectedQueries(Operation *attention) {
  if (hasBegins(attention))
    return ShapedType::kDynamic;
  int64_t count = queryTypeOf(attention).getDimSize(2);
  return ShapedType::isDynamic(count) ? rowsSaidOf(attention) : count;
}

int64_t greta::expectedRows(MatmulOp matmul) {
  SmallVector<int64_t> extents = {
      matmul.getA().getType().getDimSize(matmul.dimM())};
  // One B for a batch is one GEMM with more rows.
  if (!matmul.hasBatchedB())
    llvm::append_range(
        extents, matmul.getType().getShape().take_front(matmul.getBatchRank()));
  if (!ShapedType::isDynamicShape(extents))
    return ShapedType::getNumElements(extents);
  return rowsSaidOf(matmul);
}

bool greta::isSkinny(MatmulOp matmul) {
  if (matmul.getA().getDefiningOp<PatchesOp>() || matmul.getRankWithoutA() ||
      isBatchInvariant(matmul))
    return false;
  int64_t rows =
      matmul.getOffsets() ? rowsOfGroup(matmul) : expectedRows(matmul);
  int64_t columns = matmul.getType().getShape().back();
  int64_t depth = matmul.getDepth();
  // Sums along N are many already; there more rows take the other schedule.
  int64_t most = matmul.getTransposeB() ? 16 : 4;
  return rows >= 1 && rows <= most && columns >= 1 && depth >= 1;
}

bool greta::isComputedOperand(MatmulOp matmul, unsigned number,
                              llvm::function_ref<bool(Value)> isLeaf,
                              llvm::function_ref<void(Operation *)> visit) {
  bool isB = number == 1;
  bool isFixed =
      !ShapedType::isDynamic(matmul.getDepth()) && !matmul.getBatchRank();
  SmallVector<Value> worklist = {matmul->getOperand(number)};
  llvm::SmallDenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (isLeaf(value) || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (auto patches = dyn_cast<PatchesOp>(op)) {
      // In a batch, of its groups, and with channels first of its images.
      bool isTransposed = isB ? matmul.getTransposeB() : matmul.getTransposeA();
      if (isB != patches.hasChannelsFirst() || isTransposed ||
          value != matmul->getOperand(number) || !isLeaf(patches.getX()))
        return false;
      visit(op);
      continue;
    }
    if (!isFixed)
      return false;
    if (isa<DequantOp>(op)) {
      // Packed along the depth; its operands are loaded as they are.
      if (!isB || !matmul.getTransposeB() ||
          !llvm::all_of(op->getOperands(), isLeaf))
        return false;
    } else if (isa<RmsNormOp>(op)) {
      // Rows are scaled after the GEMM.
      if (isB || value != matmul.getA() || matmul.getTransposeA())
        return false;
    } else if (!isElementwise(op) && !isa<BroadcastOp, arith::ConstantOp>(op)) {
      return false;
    } else if (isB && matmul.getOffsets() && isa<BroadcastOp>(op)) {
      // Something for all groups would have to be told from what each has.
      return false;
    } else if (!isB && isSkinny(matmul) &&
               cast<RankedTensorType>(value.getType()).getRank() > 1) {
      // Ops that every workgroup would compute again.
      return false;
    }
    visit(op);
    llvm::append_range(worklist, op->getOperands());
  }
  return true;
}

int64_t greta::unitOfWeights(const Space &space) {
  int64_t unit = 0;
  if (space.matmul)
    for (auto dequant : space.matmul->getBlock()->getOps<DequantOp>())
      unit = std::max<int64_t>(unit, dequant.getRow().unit());
  return unit;
}

bool greta::sharesLoop(MatmulOp first, MatmulOp second) {
  return first.getA() == second.getA() &&
         first.getOffsets() == second.getOffsets() &&
         first.getB().getType() == second.getB().getType() &&
         first.getType() == second.getType() &&
         first->getAttrDictionary() == second->getAttrDictionary();
}

bool greta::isPerRow(Value value, int64_t rank) {
  return cast<RankedTensorType>(value.getType()).getRank() == rank - 1;
}

unsigned greta::numReductions(Operation *op) {
  if (isa<RmsNormOp, ReduceRowsOp>(op))
    return 1;
  return isa<LayerNormOp, SoftmaxOp>(op) ? 2 : 0;
}

Mapping greta::operandMapping(OpOperand &operand, const Mapping &mapping,
                              int64_t rank) {
  Operation *op = operand.getOwner();
  unsigned number = operand.getOperandNumber();
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Mapping inner;
    for (int64_t dim : broadcast.getDims())
      inner.push_back(mapping[dim]);
    return inner;
  }
  if (isa<RmsNormOp, LayerNormOp>(op) && number > 0)
    return {mapping.back()};
  if ((isa<RopeOp>(op) && number > 0) || isa<DequantOp>(op))
    return {0, rank};
  if (isa<ReduceRowsOp>(op))
    return identityMapping(rank);
  return mapping;
}

LogicalResult
greta::walkDemands(ValueRange yielded, int64_t rank,
                   llvm::function_ref<bool(Value)> isInside,
                   llvm::function_ref<void(Value, const Mapping &)> visit,
                   Operation **culprit) {
  Mapping identity = identityMapping(rank), rows = identity;
  if (!rows.empty())
    rows.pop_back();
  llvm::DenseMap<Value, SmallVector<Mapping, 1>> seen;
  SmallVector<std::pair<Value, Mapping>> worklist;
  auto demand = [&](Value value, Mapping mapping) {
    SmallVector<Mapping, 1> &mappings = seen[value];
    if (llvm::is_contained(mappings, mapping))
      return;
    mappings.push_back(mapping);
    worklist.push_back({value, std::move(mapping)});
  };
  for (Value value : yielded)
    demand(value, isPerRow(value, rank) ? rows : identity);
  while (!worklist.empty()) {
    auto [value, mapping] = worklist.pop_back_val();
    visit(value, mapping);
    Operation *op = value.getDefiningOp();
    if (!op || !isInside(value))
      continue;
    if ((isRowOp(op) || isAlone(op)) &&
        mapping != (isa<ReduceRowsOp>(op) ? rows : identity)) {
      if (culprit)
        *culprit = op;
      return failure();
    }
    // The operands of a matmul or of attention are no part of its space.
    if (isa<MatmulOp>(op) || isAlone(op))
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()))
        demand(operand.get(), operandMapping(operand, mapping, rank));
  }
  return success();
}

SmallVector<MatmulOp, 2> Space::gemms() const {
  SmallVector<MatmulOp, 2> result;
  for (MatmulOp gemm : {matmul, second})
    if (gemm)
      result.push_back(gemm);
  return result;
}

int64_t Space::headSize() const {
  return heads ? HeadsOp(heads).getType().getDimSize(2) : 1;
}

TensorLayout TensorLayout::contiguous(ArrayRef<AffineExpr> shape,
                                      MLIRContext *context) {
  TensorLayout layout;
  layout.offset = getAffineConstantExpr(0, context);
  layout.strides.resize(shape.size());
  AffineExpr stride = getAffineConstantExpr(1, context);
  for (unsigned dim = shape.size(); dim-- > 0;) {
    layout.strides[dim] = stride;
    stride = stride * shape[dim];
  }
  return layout;
}

TensorLayout TensorLayout::of(KernelOp kernel, unsigned input) {
  AffineMap view = kernel.getView(input);
  if (!view)
    return contiguous(
        cast<AffineMapAttr>(kernel.getShapes()[input]).getValue().getResults(),
        kernel.getContext());
  TensorLayout layout;
  layout.strides.assign(view.getResults().drop_back().begin(),
                        view.getResults().drop_back().end());
  layout.offset = view.getResults().back();
  return layout;
}

ArrayAttr greta::viewsAttribute(ArrayRef<Attribute> views) {
  if (llvm::none_of(views,
                    [](Attribute view) { return isa<AffineMapAttr>(view); }))
    return ArrayAttr();
  return ArrayAttr::get(views.front().getContext(), views);
}

static AffineExpr product(ArrayRef<AffineExpr> factors, MLIRContext *context) {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr factor : factors)
    result = result * factor;
  return result;
}

AffineExpr Space::rows(unsigned group, MLIRContext *context) const {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (int64_t dim : groups[group])
    result = result * shape[dim];
  return result;
}

AffineExpr Space::columns(MLIRContext *context) const {
  if (shape.empty())
    return getAffineConstantExpr(1, context);
  return pairs == Pairs::None ? shape.back() : shape.back().floorDiv(2);
}

AffineExpr Space::size(MLIRContext *context) const {
  return product(shape, context);
}

/// Row dimensions next to each other that every mapping has both or neither of,
/// and that no view holds `apart` from the one before.
static SmallVector<SmallVector<int64_t>>
groupRows(int64_t rank, ArrayRef<Mapping> mappings,
          const llvm::SmallDenseSet<int64_t> &apart) {
  SmallVector<SmallVector<int64_t>> groups;
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    bool together = dim > 0 && !apart.contains(dim) &&
                    llvm::all_of(mappings, [&](const Mapping &mapping) {
                      return llvm::is_contained(mapping, dim) ==
                             llvm::is_contained(mapping, dim - 1);
                    });
    if (!together)
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  if (groups.empty())
    groups.emplace_back();
  return groups;
}

namespace {
/// Finds the space of a kernel's region.
class SpaceAnalysis {
public:
  SpaceAnalysis(KernelOp kernel, Region &region, AffineMap shape)
      : kernel(kernel), region(region) {
    llvm::append_range(space.shape, shape.getResults());
    rank = space.rank();
  }
  FailureOr<Space> run();

private:
  LogicalResult noteOps();
  LogicalResult noteOp(Operation &op);
  void noteView(Value value, const Mapping &mapping);
  void noteOperand(Value value, const Mapping &mapping);
  LogicalResult noteValues();
  void noteGemm();

  KernelOp kernel;
  Region &region;
  Space space;
  int64_t rank = 0;
  SmallVector<Mapping> mappings; // of operands
  llvm::SmallDenseSet<int64_t> apart;
};
} // namespace

static bool isArgument(Value v) { return isa<BlockArgument>(v); }

LogicalResult SpaceAnalysis::noteOps() {
  llvm::SmallPtrSet<Operation *, 8> ofOperands;
  for (auto matmul : region.front().getOps<MatmulOp>())
    for (unsigned number : {0u, 1u})
      if (!isComputedOperand(matmul, number, isArgument,
                             [&](Operation *op) { ofOperands.insert(op); }))
        return matmul.emitOpError("has an operand that its kernel cannot "
                                  "compute by blocks; compute it in a kernel "
                                  "before");
  for (Operation &op : region.front()) {
    space.hasReduction |= !ofOperands.contains(&op) && numReductions(&op) > 0;
    if (failed(noteOp(op)))
      return failure();
  }
  space.isFlat = !space.hasReduction && !space.matmul &&
                 space.pairs == Space::Pairs::None &&
                 region.front().getOps<DequantOp>().empty();
  return success();
}

LogicalResult SpaceAnalysis::noteOp(Operation &op) {
  space.hasSoftmax |= isa<SoftmaxOp>(op);
  auto constant = dyn_cast<arith::ConstantOp>(op);
  bool isSplat = constant && isa<SplatElementsAttr>(constant.getValue());
  if (!isRowOp(&op) && !isElementwise(&op) && !isSplat &&
      !isa<YieldOp, BroadcastOp>(op))
    return op.emitOpError("has no place in a kernel; greta-fuse puts row ops, "
                          "elementwise work, broadcasts and splats there");
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    if (space.second || (space.matmul && !sharesLoop(space.matmul, matmul)))
      return op.emitOpError("is another GEMM of its kernel; two may be "
                            "in one, of the same 'a' and the same types");
    (space.matmul ? space.second : space.matmul) = matmul;
  }
  if (auto heads = dyn_cast<HeadsOp>(op)) {
    if (!heads.getValue().getDefiningOp<MatmulOp>())
      return op.emitOpError("splits the columns of something that is no "
                            "GEMM; expand the tensor before the kernel");
    space.heads = heads;
  }
  if (auto rope = dyn_cast<RopeOp>(op)) {
    Space::Pairs pairs = rope.pairsAreNeighbours() ? Space::Pairs::Neighbours
                                                   : Space::Pairs::Halves;
    if (space.pairs != Space::Pairs::None && space.pairs != pairs)
      return op.emitOpError("has another style than a rope before it in the "
                            "same space; put it into another");
    space.pairs = pairs;
  }
  return success();
}

void SpaceAnalysis::noteView(Value value, const Mapping &mapping) {
  unsigned input = cast<BlockArgument>(value).getArgNumber();
  if (!kernel.getView(input))
    return;
  ArrayRef<AffineExpr> extents =
      cast<AffineMapAttr>(kernel.getShapes()[input]).getValue().getResults();
  TensorLayout layout = TensorLayout::of(kernel, input);
  for (unsigned i = 1; i < mapping.size(); ++i)
    if (layout.strides[i - 1] != layout.strides[i] * extents[i]) {
      apart.insert(mapping[i]);
      space.isFlat = false;
    }
}

static unsigned elementBits(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
}

void SpaceAnalysis::noteOperand(Value value, const Mapping &mapping) {
  if (!isArgument(value))
    return;
  mappings.push_back(mapping);
  noteView(value, mapping);
  space.narrowest = std::min(space.narrowest, elementBits(value));
  if (static_cast<int64_t>(mapping.size()) == rank)
    ++space.fullOperands;
  else if (!mapping.empty())
    space.isFlat = false;
}

LogicalResult SpaceAnalysis::noteValues() {
  OperandRange yielded = region.front().getTerminator()->getOperands();
  Operation *culprit = nullptr;
  if (failed(walkDemands(
          yielded, rank, [](Value) { return true; },
          [&](Value value, const Mapping &mapping) {
            noteOperand(value, mapping);
          },
          &culprit)))
    return culprit->emitOpError("has a result that is not of its space's "
                                "shape; put it into another kernel");
  for (Value value : yielded) {
    space.narrowest = std::min(space.narrowest, elementBits(value));
    space.fullOperands += !isPerRow(value, rank);
  }
  return success();
}

/// M goes on in the batch only where neither B nor A's order parts them. A
/// space with heads has no batch.
void SpaceAnalysis::noteGemm() {
  if (!space.matmul || space.heads)
    return;
  mappings.push_back({rank - 1});
  if (space.matmul.hasBatchedB())
    llvm::append_range(mappings.back(),
                       llvm::seq<int64_t>(0, space.matmul.getBatchRank()));
  if (space.matmul.getTransposeA())
    mappings.push_back({rank - 2});
  Mapping rows = identityMapping(rank);
  rows.back() = rank; // K
  rows.erase(rows.begin(), rows.begin() + space.matmul.getRankWithoutA());
  mappings.push_back(rows);
  for (MatmulOp gemm : space.gemms()) {
    if (isArgument(gemm.getA()) && !gemm.getTransposeA())
      noteView(gemm.getA(), rows);
    // Only the batch of B and of a transposed A are rows of the space.
    for (Value operand : {Value(gemm.getA()), Value(gemm.getB())}) {
      int64_t operandRank = cast<RankedTensorType>(operand.getType()).getRank();
      if (isArgument(operand) && operandRank == rank)
        noteView(operand, identityMapping(rank - 2));
    }
  }
}

FailureOr<Space> SpaceAnalysis::run() {
  if (failed(noteOps()) || failed(noteValues()))
    return failure();
  noteGemm();
  space.groups = groupRows(rank, mappings, apart);
  if (space.heads)
    space.groups = {{0}, {1}};
  return space;
}

FailureOr<SmallVector<Space>> greta::analyzeSpaces(KernelOp kernel) {
  SmallVector<Space> spaces;
  unsigned next = kernel.getInputs().size();
  auto shapeOf = [&](unsigned i) {
    return cast<AffineMapAttr>(kernel.getShapes()[i]).getValue();
  };
  for (Region &region : kernel.getSpaces()) {
    OperandRange yielded = region.front().getTerminator()->getOperands();
    if (yielded.empty())
      return kernel.emitOpError("has a space that yields nothing");
    auto alone = llvm::find_if(region.front(),
                               [](Operation &op) { return isAlone(&op); });
    if (alone != region.front().end()) {
      FailureOr<Space> space = spaceOfAlone(kernel, region, &*alone);
      if (failed(space))
        return failure();
      return SmallVector<Space>{*space};
    }
    AffineMap shape = shapeOf(next);
    // Beside the space's shape, or alone, that of one number for each row.
    AffineMap rows;
    auto reductions = region.front().getOps<ReduceRowsOp>();
    if (!reductions.empty()) {
      auto type = cast<RankedTensorType>(
          (*reductions.begin()).getValues()[0].getType());
      int64_t rank = type.getRank();
      for (unsigned i = 0; i < yielded.size(); ++i)
        if (shapeOf(next + i).getNumResults() == rank)
          shape = shapeOf(next + i);
      SmallVector<AffineExpr> extents(shape.getResults());
      if (int64_t(extents.size()) < rank)
        extents.push_back(
            getAffineConstantExpr(type.getShape().back(), kernel.getContext()));
      shape = AffineMap::get(0, shape.getNumSymbols(), extents,
                             kernel.getContext());
      extents.pop_back();
      rows = AffineMap::get(0, shape.getNumSymbols(), extents,
                            kernel.getContext());
    }
    for (Value value : yielded) {
      AffineMap own = shapeOf(next++);
      if (own != shape && own != rows)
        return kernel.emitOpError("has a space that yields ")
               << value.getType()
               << " and another shape; put them into two spaces";
    }
    FailureOr<Space> space = SpaceAnalysis(kernel, region, shape).run();
    if (failed(space))
      return failure();
    spaces.push_back(std::move(*space));
  }
  return spaces;
}
