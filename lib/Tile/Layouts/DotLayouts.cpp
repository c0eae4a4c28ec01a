//===- DotLayouts.cpp - layouts around a dot ------------------------------===//
//
// A matrix instruction's operands and accumulator have the target table's
// tiles, spread over waves and repeated. With SIMT FMAs each lane has a small
// rectangle of the accumulator, and the elements of the operands that it needs.
//
//===----------------------------------------------------------------------===//

#include "DotLayouts.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Layout/Waves.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Adds wave bases to `tile` that step over whole tiles along the two
/// dimensions. They are zero along a dimension that the accumulator lacks, by
/// `follows`.
static Layout spreadTile(const Layout &tile, ArrayRef<int64_t> shape,
                         ArrayRef<std::pair<unsigned, bool>> waveBits) {
  Bases waves;
  Basis extent{static_cast<int32_t>(tile.tile()[0]),
               static_cast<int32_t>(tile.tile()[1])};
  for (auto [dim, follows] : waveBits) {
    Basis basis(2, 0);
    if (follows) {
      basis[dim] = extent[dim];
      extent[dim] *= 2;
    }
    waves.push_back(basis);
  }
  Basis rep{static_cast<int32_t>(shape[0] / extent[0]),
            static_cast<int32_t>(shape[1] / extent[1])};
  return Layout(tile.reg(), tile.lane(), waves, rep);
}

/// Returns the bases that move along a dimension, the shortest first.
static SmallVector<Basis *> basesAlong(Bases &bases, unsigned dim) {
  SmallVector<Basis *> along;
  for (Basis &basis : bases)
    if (basis[dim])
      along.push_back(&basis);
  llvm::sort(along, [&](const Basis *a, const Basis *b) {
    return (*a)[dim] < (*b)[dim];
  });
  return along;
}

/// Repeats an operand's tile of the instruction along K, so that a lane has up
/// to `run` neighbours: K is numbered along a lane's registers first, then
/// along the lanes. Each instruction then takes other elements along K than it
/// would alone, the same in both operands.
static Layout widenAlongK(const Layout &tile, unsigned kDim, int64_t depth,
                          int64_t run) {
  Bases reg = tile.reg(), lane = tile.lane();
  int32_t next = 1;
  auto number = [&](Bases &bases) {
    for (Basis *basis : basesAlong(bases, kDim)) {
      (*basis)[kDim] = next;
      next *= 2;
    }
  };
  number(reg);
  for (int64_t extent = 2 * tile.tile()[kDim];
       2 * next <= run && depth % extent == 0; extent *= 2, next *= 2) {
    Basis basis(2, 0);
    basis[kDim] = next;
    reg.push_back(basis);
  }
  number(lane);
  return Layout(reg, lane, {}, tile.rep());
}

/// Returns the steps along the last dimension of a layout's registers, with
/// repetitions behind them, and of its lanes.
static std::array<SmallVector<int32_t>, 2> numbersAlongK(const Layout &layout) {
  unsigned kDim = layout.rank() - 1;
  std::array<SmallVector<int32_t>, 2> numbers;
  for (auto [bases, found] :
       {std::pair(&layout.reg(), &numbers[0]), {&layout.lane(), &numbers[1]}})
    for (const Basis &basis : *bases)
      if (basis[kDim])
        found->push_back(basis[kDim]);
  int32_t extent = layout.tile()[kDim];
  for (int64_t left = powerPart(layout.rep()[kDim]); left > 1; left /= 2) {
    numbers[0].push_back(extent);
    extent *= 2;
  }
  return numbers;
}

/// Returns an operand's tile of the instruction with K numbered as in another
/// block; none: that block's registers and lanes cannot make up a tile.
static std::optional<Layout> numberedLike(const Layout &tile, unsigned kDim,
                                          const Layout &block) {
  auto numbers = numbersAlongK(block);
  Bases bases[2] = {tile.reg(), tile.lane()};
  int32_t taken = 0, count = 0;
  for (unsigned group : {0, 1}) {
    SmallVector<Basis *> alongK = basesAlong(bases[group], kDim);
    bool isWhole = group == 0 ? alongK.size() <= numbers[group].size()
                              : alongK.size() == numbers[group].size();
    if (!isWhole)
      return std::nullopt;
    for (auto [basis, number] : llvm::zip(alongK, numbers[group])) {
      (*basis)[kDim] = number;
      taken |= number;
      ++count;
    }
  }
  // Whole tiles follow each other.
  if (taken != (1 << count) - 1)
    return std::nullopt;
  return Layout(bases[0], bases[1], {}, tile.rep());
}

using ValueSet = llvm::SmallDenseSet<Value, 16>;

/// Returns the dot whose A is made of a value by ops that move no data between
/// lanes. Values in `seen` lead to no such dot.
static DotOp dotOfRows(Value value, ValueSet &seen) {
  if (!seen.insert(value).second)
    return {};
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto dot = dyn_cast<DotOp>(user)) {
      if (use.getOperandNumber() == 0)
        return dot;
    } else if (OpTrait::hasElementwiseMappableTraits(user)) {
      if (DotOp dot = dotOfRows(user->getResult(0), seen))
        return dot;
    }
  }
  return {};
}

static DotOp dotOfRows(Value value) {
  ValueSet seen;
  return dotOfRows(value, seen);
}

/// Returns the dot from whose result a dot's A is made by such ops.
static DotOp dotBehindRows(Value value, ValueSet &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<DotOp>(op))
    return cast_or_null<DotOp>(op);
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        if (DotOp dot = dotBehindRows(operand, seen))
          return dot;
  return {};
}

bool greta::isChained(DotOp dot) {
  ValueSet seen;
  return dotOfRows(dot.getResult()) || dotBehindRows(dot.getA(), seen);
}

/// Returns the steps of bases along a dimension, in ascending order.
static SmallVector<int32_t> numbersAlong(Bases bases, unsigned dim) {
  return llvm::map_to_vector(basesAlong(bases, dim),
                             [&](const Basis *basis) { return (*basis)[dim]; });
}

/// A tile of the accumulator or of B. If the result that a dot leaves in
/// registers is another's A, its columns are those that make it that operand as
/// it is, so
/// that neighbours along the other's K are neighbours in memory, too.
static Layout withColumnsOfChain(DotOp dot, const Layout &tile) {
  MatrixAttr matrix = dot.getMatrixAttr();
  DotOp next = dotOfRows(dot.getResult());
  if (!next || !next.getMatrixAttr() || matrix.isLoadedWhole())
    return tile;
  Layout acc = toLayout(matrix.getAcc());
  Layout operand = toLayout(next.getMatrixAttr().getA());
  SmallVector<int32_t> lanes = numbersAlong(acc.lane(), 1),
                       lanesOfNext = numbersAlong(operand.lane(), 1),
                       registers = numbersAlong(acc.reg(), 1),
                       registersOfNext = numbersAlong(operand.reg(), 1);
  if (lanes.size() != lanesOfNext.size() ||
      registers.size() < registersOfNext.size())
    return tile;
  for (int32_t step = operand.tile()[1];
       registersOfNext.size() < registers.size(); step *= 2)
    registersOfNext.push_back(step);
  llvm::SmallDenseMap<int32_t, int32_t> columns{{0, 0}};
  for (auto [before, now] : llvm::zip(lanes, lanesOfNext))
    columns[before] = now;
  for (auto [before, now] : llvm::zip(registers, registersOfNext))
    columns[before] = now;
  Bases reg = tile.reg(), lane = tile.lane();
  for (Bases *bases : {&reg, &lane})
    for (Basis &basis : *bases)
      basis[1] = columns.at(basis[1]);
  return Layout(reg, lane, {}, tile.rep());
}

Layout greta::accumulatorTile(DotOp dot) {
  return withColumnsOfChain(dot, toLayout(dot.getMatrixAttr().getAcc()));
}

/// Returns the layout of a matrix instruction's accumulator: its tile, then
/// waves, then repetitions. In a chain waves go along rows first, since waves
/// that share rows would have to exchange the next dot's operand.
static FailureOr<Layout> matrixLayout(DotOp dot, ArrayRef<int64_t> shape,
                                      FuncOp kernel, int64_t waves,
                                      bool chained) {
  Layout tile = accumulatorTile(dot);
  int64_t m = shape[0], n = shape[1];
  if (tile.numLanes() != static_cast<unsigned>(kernel.getNumLanes()) ||
      m % tile.tile()[0] || n % tile.tile()[1])
    return emitError(dot.getLoc())
           << "accumulator of " << m << "x" << n << " is not made of tiles of "
           << dot.getMatrixAttr().getIntrinsic() << " for waves of "
           << kernel.getNumLanes();
  int64_t rowsFirst = chained
                          ? std::min<int64_t>(powerPart(m / tile.tile()[0]),
                                              llvm::bit_floor<uint64_t>(waves))
                          : 1;
  SmallVector<std::pair<unsigned, bool>> bits(llvm::Log2_64(rowsFirst),
                                              {0, true});
  llvm::append_range(bits, waveBits(tile.tile()[0], tile.tile()[1],
                                    m / rowsFirst, n, waves / rowsFirst));
  return spreadTile(tile, shape, bits);
}

/// Returns a layout in which each lane holds a rectangle, nearly a square, of
/// four neighbours along N at a time, so that stores are wide.
static FailureOr<Layout> rectangleLayout(DotOp dot, ArrayRef<int64_t> shape,
                                         FuncOp kernel, int64_t waves) {
  int64_t m = shape[0], n = shape[1], lanes = kernel.getNumLanes();
  int64_t acrossN = powerPart(n);
  int64_t perLane = std::max<int64_t>(1, m * acrossN / (lanes * waves));
  int64_t runN = std::min<int64_t>({4, acrossN, perLane});
  int64_t runM = std::min<int64_t>(
      {4, powerPart(m), std::max<int64_t>(1, perLane / runN)});
  // Lanes, then waves, as square as the block allows.
  auto split = [&](int64_t count, int64_t roomM, int64_t roomN) {
    int64_t inN = 1, inM = 1;
    while (inN * inM < count) {
      bool growN = roomN > inN && (inN * runN <= inM * runM || roomM <= inM);
      if (growN || roomM <= inM)
        inN *= 2;
      else
        inM *= 2;
    }
    return std::pair(inM, inN);
  };
  int64_t roomM = powerPart(m) / runM, roomN = acrossN / runN;
  auto [lanesM, lanesN] = split(lanes, roomM, roomN);
  auto [wavesM, wavesN] = split(waves, std::max<int64_t>(1, roomM / lanesM),
                                std::max<int64_t>(1, roomN / lanesN));
  std::string error;
  FailureOr<Layout> layout = Layout::blocked(
      shape, {runM, runN}, {lanesM, lanesN}, {wavesM, wavesN}, {1, 0}, error);
  if (failed(layout))
    return emitError(dot.getLoc())
           << "no layout for an accumulator of " << m << "x" << n << " over "
           << waves << " waves of " << lanes << " lanes: " << error;
  return layout;
}

/// Returns the bases of a matrix as bases in three dimensions.
static Bases lifted(const Bases &bases) {
  Bases out;
  for (const Basis &basis : bases)
    out.push_back({0, basis[0], basis[1]});
  return out;
}

/// Returns the layout of matrices, one after another along the first of three
/// dimensions. Wave bits `alongBatch` come first, then those within a matrix.
static Layout inBatch(const Layout &plane, const Bases &alongBatch,
                      int64_t repetitions) {
  Bases wave = alongBatch;
  llvm::append_range(wave, lifted(plane.wave()));
  return Layout(
      lifted(plane.reg()), lifted(plane.lane()), wave,
      {static_cast<int32_t>(repetitions), plane.rep()[0], plane.rep()[1]});
}

FailureOr<Layout> greta::accumulatorLayout(DotOp dot, ArrayRef<int64_t> shape,
                                           FuncOp kernel) {
  // Waves take matrices of their own first.
  int64_t waves = kernel.getNumWaves(), batch = 1;
  if (shape.size() == 3)
    batch = std::min<int64_t>(powerPart(shape[0]),
                              llvm::bit_floor<uint64_t>(waves));
  ArrayRef<int64_t> matrix = shape.take_back(2);
  FailureOr<Layout> plane =
      dot.getMatrixAttr()
          ? matrixLayout(dot, matrix, kernel, waves / batch, isChained(dot))
          : rectangleLayout(dot, matrix, kernel, waves / batch);
  if (failed(plane) || shape.size() == 2)
    return plane;
  Bases alongBatch;
  for (int64_t bit = 1; bit < batch; bit *= 2)
    alongBatch.push_back({static_cast<int32_t>(bit), 0, 0});
  return inBatch(*plane, alongBatch, shape[0] / batch);
}

PipelineAttr greta::pipelineOf(DotOp dot) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  return loop ? loop->getAttrOfType<PipelineAttr>(pipelineName) : nullptr;
}

/// Returns the layout of an operand of two dimensions.
static Layout planeOperand(DotOp dot, unsigned operand, const Layout &acc,
                           int64_t fastest, int64_t run, const Layout *like) {
  Value value = operand == 0 ? dot.getA() : dot.getB();
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> shape = type.getShape().take_back(2);
  unsigned shared = operand == 0 ? 0 : 1; // the accumulator's dimension
  unsigned kDim = 1 - shared;
  int64_t depth = shape[kDim];
  if (MatrixAttr matrix = dot.getMatrixAttr()) {
    // Waves that share rows of the accumulator share the rows of A, and so on.
    SmallVector<std::pair<unsigned, bool>> bits;
    for (const Basis &basis : acc.wave())
      bits.push_back({shared, basis[shared] != 0});
    Layout tile = toLayout(operand == 0 ? matrix.getA() : matrix.getB());
    PipelineAttr pipeline = pipelineOf(dot);
    if (like)
      tile = numberedLike(tile, kDim, *like).value_or(tile);
    else if (run)
      tile =
          widenAlongK(tile, kDim, pipeline ? pipeline.getSlice() : depth, run);
    if (operand == 1)
      tile = withColumnsOfChain(dot, tile);
    return spreadTile(tile, shape, bits);
  }
  auto keep = [&](const Bases &bases, bool dropZero) {
    Bases out;
    for (Basis basis : bases) {
      basis[kDim] = 0;
      if (!dropZero || basis[shared])
        out.push_back(basis);
    }
    return out;
  };
  Bases alongK;
  for (int64_t bit = 1; bit < powerPart(depth); bit *= 2) {
    Basis basis(2, 0);
    basis[kDim] = bit;
    alongK.push_back(basis);
  }
  Bases along = keep(acc.reg(), /*dropZero=*/true);
  Bases reg = fastest == kDim ? alongK : along;
  llvm::append_range(reg, fastest == kDim ? along : alongK);
  Basis rep(2);
  rep[shared] = acc.rep()[shared];
  rep[kDim] = depth / powerPart(depth);
  return Layout(reg, keep(acc.lane(), false), keep(acc.wave(), false), rep);
}

Layout greta::operandLayout(DotOp dot, unsigned operand, const Layout &acc,
                            int64_t fastest, int64_t run, const Layout *like) {
  if (acc.rank() == 2)
    return planeOperand(dot, operand, acc, fastest, run, like);
  // The accumulator's matrices, and waves within one.
  auto dropped = [](const Bases &bases) {
    Bases out;
    for (const Basis &basis : bases)
      if (!basis[0])
        out.push_back({basis[1], basis[2]});
    return out;
  };
  Layout plane(dropped(acc.reg()), dropped(acc.lane()), dropped(acc.wave()),
               {acc.rep()[1], acc.rep()[2]});
  Bases alongBatch;
  llvm::copy_if(acc.wave(), std::back_inserter(alongBatch),
                [](const Basis &basis) { return basis[0] != 0; });
  return inBatch(planeOperand(dot, operand, plane, fastest - 1, run, like),
                 alongBatch, acc.rep()[0]);
}

SmallVector<int64_t, 4> greta::contractedShape(ContractOp contract) {
  SmallVector<int64_t, 4> shape(contract.getType().getShape());
  for (Value value : contract->getOperands())
    for (auto [whole, extent] :
         llvm::zip(shape, cast<RankedTensorType>(value.getType()).getShape()))
      whole = std::max(whole, extent);
  return shape;
}

bool greta::sumsInLanes(ContractOp contract, const Layout &layout) {
  Index shape = layout.shape();
  for (auto [number, sums] : llvm::enumerate(contract.getType().getShape())) {
    size_t dim = number;
    bool inLane = llvm::none_of(layout.threadBits(), [&](const ThreadBit &bit) {
      return bit.basis[dim] != 0;
    });
    bool isSummed = sums != shape[dim] &&
                    llvm::is_contained(contract.getDims(), int64_t(dim));
    if (isSummed && !inLane &&
        (sums == 1 || layout.contiguity(dim) % (shape[dim] / sums)))
      return false;
  }
  return true;
}

int64_t greta::stepAlongK(DotOp dot, const Layout &acc) {
  constexpr int64_t mostInIteration = 4096;
  int64_t sums = acc.numRegisters(),
          depth =
              cast<RankedTensorType>(dot.getA().getType()).getShape().back();
  if (sums * depth <= mostInIteration)
    return 0;
  return llvm::bit_floor<uint64_t>(
      std::max<int64_t>(1, mostInIteration / sums));
}
