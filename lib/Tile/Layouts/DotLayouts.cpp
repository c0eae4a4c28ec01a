//===- DotLayouts.cpp - layouts around a dot ------------------------------===//
//
// A matrix instruction's operands and accumulator have the target table's
// tiles, spread over waves and repeated. For multiply-adds each lane gets a
// small rectangle of the accumulator and of the operands what it needs for it.
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

/// `tile` gets `wave` bases that step over whole tiles along the two
/// dimensions, zero where `follows` says that the dimension is not the
/// accumulator's.
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

/// An operand's tile of the instruction, several times along K so that a lane
/// has 16 bytes of neighbours: k runs through a lane's registers first, then
/// through the lanes. The instructions that share them take other k than they
/// would alone, the same in both operands.
static Layout widenAlongK(const Layout &tile, unsigned kDim, int64_t depth,
                          int64_t bytes) {
  int64_t inLane = tile.tileRegisters(), factor = 1;
  while (inLane * factor * 2 * bytes <= 16 &&
         depth % (tile.tile()[kDim] * factor * 2) == 0)
    factor *= 2;
  Bases reg = tile.reg(), lane = tile.lane();
  for (Basis &basis : lane)
    basis[kDim] *= factor;
  for (int64_t next = inLane; next < inLane * factor; next *= 2) {
    Basis basis(2, 0);
    basis[kDim] = next;
    reg.push_back(basis);
  }
  return Layout(reg, lane, {}, tile.rep());
}

/// The accumulator of a matrix instruction: its tile, then waves, then
/// repetitions. Waves that share rows would have to exchange what goes into
/// another dot, so in a chain they take rows first.
static FailureOr<Layout> matrixLayout(DotOp dot, ArrayRef<int64_t> shape,
                                      FuncOp kernel, bool chained) {
  Layout tile = toLayout(dot.getMatrixAttr().getAcc());
  int64_t m = shape[0], n = shape[1];
  if (tile.numLanes() != static_cast<unsigned>(kernel.getWaveSize()) ||
      m % tile.tile()[0] || n % tile.tile()[1])
    return emitError(dot.getLoc())
           << "accumulator of " << m << "x" << n << " is not made of tiles of "
           << dot.getMatrixAttr().getIntrinsic() << " for waves of "
           << kernel.getWaveSize();
  int64_t rowsFirst =
      chained
          ? std::min<int64_t>(powerPart(m / tile.tile()[0]),
                              llvm::bit_floor<uint64_t>(kernel.getNumWaves()))
          : 1;
  SmallVector<std::pair<unsigned, bool>> bits(llvm::Log2_64(rowsFirst),
                                              {0, true});
  llvm::append_range(bits,
                     waveBits(tile.tile()[0], tile.tile()[1], m / rowsFirst, n,
                              kernel.getNumWaves() / rowsFirst));
  return spreadTile(tile, shape, bits);
}

/// Each lane holds a rectangle of about sqrt(elements per lane) squared, four
/// neighbours along N at a time so that stores are wide.
static FailureOr<Layout> rectangleLayout(DotOp dot, ArrayRef<int64_t> shape,
                                         FuncOp kernel, int64_t acrossN) {
  int64_t m = shape[0], n = shape[1];
  int64_t lanes = kernel.getWaveSize(), waves = kernel.getNumWaves();
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

/// The dot whose A is made of a value by ops that need no data to move.
static DotOp dotOfRows(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto dot = dyn_cast<DotOp>(user)) {
      if (use.getOperandNumber() == 0)
        return dot;
    } else if (OpTrait::hasElementwiseMappableTraits(user)) {
      if (DotOp dot = dotOfRows(user->getResult(0)))
        return dot;
    }
  }
  return {};
}

/// The dot of which a dot's A is made by such ops.
static DotOp dotBehindRows(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<DotOp>(op))
    return cast_or_null<DotOp>(op);
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (DotOp dot = dotBehindRows(operand))
        return dot;
  return {};
}

FailureOr<Layout> greta::accumulatorLayout(DotOp dot, ArrayRef<int64_t> shape,
                                           FuncOp kernel, int64_t acrossN) {
  if (!dot.getMatrixAttr())
    return rectangleLayout(dot, shape, kernel, acrossN);
  bool chained = dotOfRows(dot.getResult()) || dotBehindRows(dot.getA());
  return matrixLayout(dot, shape, kernel, chained);
}

/// How much of K is read at once.
static int64_t sliceOf(DotOp dot, int64_t depth) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  auto pipeline =
      loop ? loop->getAttrOfType<PipelineAttr>(pipelineName) : nullptr;
  return pipeline ? pipeline.getSlice() : depth;
}

Layout greta::operandLayout(DotOp dot, unsigned operand, const Layout &acc,
                            int64_t fastest, bool inOrder) {
  Value value = operand == 0 ? dot.getA() : dot.getB();
  unsigned shared = operand == 0 ? 0 : 1; // the accumulator's dimension
  unsigned kDim = 1 - shared;
  int64_t depth = cast<RankedTensorType>(value.getType()).getDimSize(kDim);
  if (MatrixAttr matrix = dot.getMatrixAttr()) {
    // Waves that share rows of the accumulator share the rows of A, and so on.
    SmallVector<std::pair<unsigned, bool>> bits;
    for (const Basis &basis : acc.wave())
      bits.push_back({shared, basis[shared] != 0});
    auto type = cast<RankedTensorType>(value.getType());
    Layout tile = toLayout(operand == 0 ? matrix.getA() : matrix.getB());
    if (!matrix.isCooperative() && !inOrder)
      tile = widenAlongK(tile, kDim, sliceOf(dot, depth),
                         std::max(1u, type.getElementTypeBitWidth() / 8));
    return spreadTile(tile, type.getShape(), bits);
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
