//===- ConfigureGemm.cpp - tiles of GEMMs ---------------------------------===//
//
// Chooses the instruction, the tile and the schedule of a GEMM. Among the tiles
// that fit, the one with the fewest cycles by TileModel is taken. groupOf
// chooses the order of tiles.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Tile/MatrixInstructions.h"
#include "mlir/IR/Builders.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace greta;

/// Guesses of M, or of another dynamic extent, and of a grouped GEMM's rows:
/// those of a prompt, and eight for each of its tokens.
static constexpr int64_t anyRows = 2048, anyRowsOfGroups = 8 * anyRows;

static SmallVector<const MatrixInstruction *>
instructionsOfThree(MatmulOp matmul, const Limits &limits) {
  if (!matmul.getPrecision())
    return {};
  Type bf16 = BFloat16Type::get(matmul.getContext());
  return instructionsFor(bf16, bf16, limits.matrix, limits.row,
                         /*inRegisters=*/true);
}

bool greta::isInThree(MatmulOp matmul, const Limits &limits) {
  return !instructionsOfThree(matmul, limits).empty();
}

SmallVector<const MatrixInstruction *>
greta::instructionsFor(MatmulOp matmul, const Limits &limits) {
  if (isInThree(matmul, limits))
    return instructionsOfThree(matmul, limits);
  return instructionsFor(matmul.getA().getType().getElementType(),
                         matmul.getB().getType().getElementType(),
                         limits.matrix, limits.row, /*inRegisters=*/true);
}

/// Returns GROUP_M, the rows of tiles that neighbouring workgroups share: that
/// of the target's row, else as many as make the tiles in flight a square.
static int64_t groupOf(const Problem &problem, const Tile &tile,
                       const TargetRow &row) {
  if (row.tiles.rowsOfGroup)
    return row.tiles.rowsOfGroup;
  int64_t square = std::max(
      1.0, std::round(std::sqrt(double(row.computeUnits) * tile.n / tile.m)));
  int64_t rows = llvm::divideCeil(problem.m, tile.m);
  return llvm::divideCeil(rows, llvm::divideCeil(rows, square));
}

int64_t greta::mostParts(int64_t m, int64_t n, const Problem &problem,
                         const Limits &limits) {
  if (!limits.wide || !problem.splits || limits.columns)
    return 1;
  int64_t tiles =
      llvm::divideCeil(problem.m, m) * llvm::divideCeil(problem.n, n);
  constexpr int64_t most = 64;
  return std::clamp<int64_t>(2 * limits.row.computeUnits / tiles, 1, most);
}

/// Visits tiles of skinny GEMMs whose operands go from memory straight to the
/// registers of the matrix instructions. Waves lie along K first, so that many
/// loads are in flight.
static void forEachInRegisters(const Problem &problem, const Limits &limits,
                               ArrayRef<const MatrixInstruction *> available,
                               VisitTile visit) {
  const StreamRates &rates = limits.row.tiles.stream;
  if (!rates.line || problem.m > rates.mostRows)
    return;
  TileModel model(problem, limits);
  bool isShort = problem.group && problem.m > rates.fewRows;
  int64_t slice = std::min<int64_t>(
      rates.numbersOfWave / (isShort ? 2 : 1),
      8 * rates.bytesOfWave / std::max<int64_t>(problem.loaded[1], 1));
  for (const MatrixInstruction *mi : available)
    for (int64_t n : {8, 16, 32, 64, 128})
      for (int64_t parts : {1, 2, 4, 8})
        for (int64_t waves = parts; waves <= 8; waves *= 2) {
          Tile tile{mi, int64_t(llvm::alignTo(problem.m, mi->m)), n,
                    parts * slice, waves};
          tile.stages = 0;
          tile.slice = slice;
          tile.group = groupOf(problem, tile, limits.row);
          if (!model.whyNot(tile))
            visit(tile, model.cycles(tile));
        }
}

/// Returns the numbers of parts along K that a tile may have: about 1, 2, 3, 4,
/// 6, 8, 12 and so on, as long as none is empty.
static SmallVector<int64_t> splitsOf(Tile tile, const Problem &problem,
                                     const Limits &limits,
                                     const TileModel &model) {
  SmallVector<int64_t> splits{1};
  int64_t most = mostParts(tile.m, tile.n, problem, limits);
  // All other numbers take the same additional shared memory.
  tile.split = 2;
  if (most < 2 || model.whyNot(tile))
    return splits;
  for (int64_t split = 2, next = 3; split <= most;
       split = std::exchange(next, 2 * split))
    splits.push_back(partsOf(llvm::divideCeil(problem.k, tile.k), split));
  return splits;
}

static void forEachTile(const Problem &problem, const Limits &limits,
                        ArrayRef<const MatrixInstruction *> available,
                        VisitTile visit) {
  forEachInRegisters(problem, limits, available, visit);
  TileModel model(problem, limits);
  const TileFacts &facts = limits.row.tiles;
  // Iterations along a short K tile only wait.
  const int64_t leastDepth = limits.wide && problem.k >= 32 ? 32 : 1;
  bool direct = model.directBytes() > 0;
  static constexpr int64_t extents[] = {8,   16,  32,  48,  64,  80,  96,
                                        112, 128, 160, 192, 208, 224, 256};
  auto enough = [](int64_t extent, int64_t size, int64_t unit) {
    return extent <= int64_t(llvm::alignTo(size, unit));
  };
  SmallVector<int64_t> widths{ArrayRef<int64_t>(extents)};
  if (problem.head > 1) {
    widths.clear();
    for (int64_t n = problem.head; n <= 256; n += problem.head)
      widths.push_back(n);
  }
  for (const MatrixInstruction *mi : available)
    for (int64_t waves = 1; waves <= 8; waves *= 2)
      for (int64_t m : extents)
        for (int64_t n : widths)
          for (int64_t leastK = std::max<int64_t>(mi->k, leastDepth),
                       k = leastK;
               k <= facts.deepest; k *= 2) {
            if (!enough(m, problem.m, mi->m) || !enough(n, problem.n, mi->n) ||
                (k > mi->k && k / 2 >= problem.k))
              continue;
            // Blocks of patches are of one tap where channels allow it.
            if (problem.channels % k && problem.channels % leastK == 0)
              continue;
            // Lanes load packed weights word by word if they have few words, or
            // no power of two, which the model does not know.
            if (limits.wide && problem.groups && problem.group &&
                (!llvm::isPowerOf2_64(n) ||
                 k < std::min<int64_t>(64, problem.k)))
              continue;
            // Without a register file the device is a CPU, whose driver
            // compiles larger tiles for many seconds.
            bool isSmall = m <= 16 && n <= 16 && k <= 16;
            if (n == problem.head)
              isSmall = m == mi->m && k == mi->k;
            if (!limits.wide && (!isSmall || waves > 4))
              continue;
            Tile tile{mi, m, n, k, waves};
            tile.group = groupOf(problem, tile, limits.row);
            tile.stages = facts.stages;
            for (int64_t slice = mi->k; slice <= k; slice *= 2) {
              if (tile.stages == 1 && slice > mi->k)
                break;
              tile.slice = slice;
              // The first of equals counts: direct loads, which need no
              // registers.
              for (bool isDirect : {true, false}) {
                if (isDirect && !direct)
                  continue;
                tile.direct = isDirect;
                tile.split = 1;
                if (model.whyNot(tile))
                  continue;
                for (int64_t split : splitsOf(tile, problem, limits, model)) {
                  tile.split = split;
                  visit(tile, model.cycles(tile));
                }
              }
            }
          }
}

/// Returns the matrix instruction of the kernel for any M; null: no tile fits.
/// Kernels for ranges of M that add in the same order take it, too. Registers
/// that are left free after spills are not considered, as each kernel spills
/// differently.
static const MatrixInstruction *
instructionForAnyM(Problem problem, Limits limits,
                   ArrayRef<const MatrixInstruction *> available) {
  problem.setRows(problem.groups ? anyRowsOfGroups : anyRows);
  limits.spareRegisters = 0;
  KernelKind kind{MatrixGemm};
  kind.candidates = [&](VisitTile visit) {
    forEachTile(problem, limits, available, visit);
  };
  kind.takeBest();
  return kind.tile.instruction;
}

/// A GEMM by matrix instructions; none: no tile fits.
static std::optional<KernelKind>
matrixKind(const Space &space, const Problem &problem, const Limits &limits) {
  KernelKind kind{MatrixGemm};
  kind.available = instructionsFor(space.matmul, limits);
  if (isBatchInvariant(space.matmul)) {
    const MatrixInstruction *only =
        instructionForAnyM(problem, limits, kind.available);
    kind.available.clear();
    if (only)
      kind.available.push_back(only);
  }
  kind.candidates = [=, &limits, available = kind.available](VisitTile visit) {
    forEachTile(problem, limits, available, visit);
  };
  if (limits.isLedByMatrix())
    kind.tile = *limits.lead;
  else
    kind.takeBest();
  if (!kind.tile.instruction)
    return std::nullopt;
  kind.cyclesOf = [problem, limits](const Tile &tile, int64_t rows) {
    Problem given = problem;
    given.setRows(rows);
    return TileModel(given, limits).cycles(tile) +
           cyclesOfEmptySlots(given.groups, rows, tile.m,
                              llvm::divideCeil(given.n, tile.n), tile.waves,
                              limits);
  };
  kind.whyNot = [=, &limits](const Tile &tile) {
    return TileModel(problem, limits).whyNot(tile, /*asked=*/true);
  };
  return kind;
}

/// Returns the bits in memory that an element of an operand is computed from. A
/// value that several ops use counts once.
static int64_t loadedBits(Value value, RankedTensorType operand,
                          llvm::SmallDenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return 0;
  auto type = cast<RankedTensorType>(value.getType());
  if (isa<BlockArgument>(value))
    return type.getShape() == operand.getShape() ? type.getElementTypeBitWidth()
                                                 : 0;
  if (auto dequant = value.getDefiningOp<DequantOp>())
    return dequant.getRow().allBits();
  if (value.getDefiningOp<PatchesOp>())
    return type.getElementTypeBitWidth();
  int64_t bits = 0;
  for (Value source : value.getDefiningOp()->getOperands())
    bits += loadedBits(source, operand, seen);
  return bits;
}

/// Returns the layout of an operand that is an argument of the kernel.
static std::optional<TensorLayout> layoutOf(Value operand) {
  auto argument = dyn_cast<BlockArgument>(operand);
  if (!argument)
    return std::nullopt;
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  return TensorLayout::of(kernel, argument.getArgNumber());
}

/// Returns the alignment of an operand's rows in memory, and of its beginning.
/// Rows have `row` elements, but those of views may lie farther apart.
static int64_t alignOfRows(Value operand, int64_t row) {
  auto argument = dyn_cast<BlockArgument>(operand);
  if (argument && cast<KernelOp>(argument.getOwner()->getParentOp())
                      .getView(argument.getArgNumber())) {
    TensorLayout layout = *layoutOf(operand);
    for (AffineExpr multiple : ArrayRef(layout.strides).drop_back())
      row = std::gcd(row, multiple.getLargestKnownDivisor());
    row = std::gcd(row, layout.offset.getLargestKnownDivisor());
  }
  int64_t bytes = tile::bytesInMemory(getElementTypeOrSelf(operand));
  return std::min<int64_t>(16, powerPart(std::max<int64_t>(row, 1)) * bytes);
}

/// Returns the elements from a row of an operand to the next. 0: a launch
/// computes and checks it.
static int64_t distanceOfRows(Value operand) {
  std::optional<TensorLayout> layout = layoutOf(operand);
  return layout ? constantOf(layout->strides.end()[-2]).value_or(0) : 0;
}

static Problem problemOf(const Space &space) {
  MatmulOp matmul = space.matmul;
  auto sizeOf = [&](AffineExpr extent) {
    return std::max<int64_t>(1, constantOf(extent).value_or(anyRows));
  };
  MLIRContext *context = matmul.getContext();
  int64_t k = matmul.getDepth(), head = space.headSize();
  auto rowsOf = [&](unsigned group) { return space.rows(group, context); };
  AffineExpr m = rowsOf(space.heads ? 0 : space.groups.size() - 1);
  AffineExpr n = space.heads ? rowsOf(1) * head : space.columns(context);
  // A dynamic batch may be a single GEMM.
  int64_t batch = 1;
  for (unsigned group = 0; !space.heads && group + 1 < space.groups.size();
       ++group)
    batch *= std::max<int64_t>(1, constantOf(rowsOf(group)).value_or(1));
  // An M that is not known is taken for a prompt's length.
  int64_t rows = expectedRows(matmul);
  bool isKnown = constantOf(m) || !ShapedType::isDynamic(rows);
  if (constantOf(m) || !isKnown)
    rows = sizeOf(m);
  // Halves of a head lie in repetitions, not in waves.
  int64_t within = space.pairs == Space::Pairs::Halves ? head / 2 : head;
  int64_t bytes = tile::bytesInMemory(matmul.getA().getType().getElementType());
  int64_t alongK = ShapedType::isDynamic(k) ? 1 : k;
  // Rows of patches are those of an image's channels, one below the other.
  auto patches = matmul.getA().getDefiningOp<PatchesOp>();
  int64_t alongA = patches ? patches.getChannels() : alongK;
  Problem problem{
      rows,
      sizeOf(n),
      ShapedType::isDynamic(k) ? anyRows : std::max<int64_t>(k, 1),
      bytes,
      !matmul.getTransposeA(),
      matmul.getTransposeB(),
      int64_t(space.gemms().size()),
      hasParts(space),
      canSplit(space),
      batch,
      head,
      space.heads ? within : 0,
      alignOfRows(matmul.getA(),
                  matmul.getTransposeA() ? m.getLargestKnownDivisor() : alongA),
      alignOfRows(matmul.getB(),
                  matmul.getTransposeB() ? alongK : n.getLargestKnownDivisor()),
      isa_and_nonnull<RmsNormOp>(matmul.getA().getDefiningOp())};
  problem.hasPairs = space.heads && space.pairs != Space::Pairs::None;
  problem.rowOfA = distanceOfRows(matmul.getA());
  problem.rowOfB = distanceOfRows(matmul.getB());
  problem.group = groupOfWeights(space);
  problem.channels = patches ? patches.getChannels() : 0;
  problem.patchesInB = bool(matmul.getB().getDefiningOp<PatchesOp>());
  // Each group of a grouped GEMM is expected to have as many rows.
  if (int64_t groups = matmul.getNumGroups()) {
    problem.groups = groups;
    problem.setRows(isKnown ? rows : anyRowsOfGroups);
  }
  // Both parts of a number take as much room as it does.
  bool inThree = bool(matmul.getPrecision());
  problem.dots = inThree ? 3 * problem.count : 0;
  problem.unit = unitOfWeights(space);
  matmul->getBlock()->walk([&](DequantOp dequant) {
    problem.hasZeros |= dequant.getZeros() != nullptr;
    problem.sharesRows |= dequant.getRow().scaleRows > 1;
  });
  problem.bytesOut = tile::bytesInMemory(matmul.getType().getElementType());
  for (unsigned number : {0u, 1u}) {
    Value operand = matmul->getOperand(number);
    llvm::SmallDenseSet<Value> seen;
    problem.loaded[number] =
        loadedBits(operand, cast<RankedTensorType>(operand.getType()), seen);
  }
  problem.stored = !inThree && llvm::all_of(space.gemms(), [](MatmulOp gemm) {
    return isa<BlockArgument>(gemm.getA()) && isa<BlockArgument>(gemm.getB());
  });
  problem.parts &= !inThree;
  return problem;
}

tile::PipelineAttr greta::pipelineOf(MLIRContext *context,
                                     const Problem &problem, const Tile &tile,
                                     const Limits &limits) {
  return tile::PipelineAttr::get(
      context, tile.stages, tile.slice,
      tile.direct ? TileModel(problem, limits).directBytes() : 0);
}

/// Whether a skinny GEMM takes matrix instructions. It does if the
/// configuration or a measured entry names one. Else it does if operands may go
/// straight from memory to registers, and this is faster by the model. GEMMs
/// that share a launch follow the first.
static bool suitsMatrix(const Space &space, const Problem &problem,
                        const Limits &limits, const KernelKind &skinny) {
  if (limits.lead)
    return limits.lead->instruction;
  // Heads split the columns, which computed operands do not expect.
  if (space.heads ? !hasParts(space) : space.groups.size() > 1)
    return false;
  FailureOr<DictionaryAttr> asked = configFor(space.matmul, limits.row);
  if (failed(asked))
    return false;
  if (*asked)
    return asked->contains("instruction");
  if (const TuningEntry *entry = measuredFor(space, limits))
    return entry->config.get("instruction");
  if (!limits.wide)
    return false;
  std::optional<KernelKind> matrix = matrixKind(space, problem, limits);
  return matrix && matrix->cycles < skinny.cycles;
}

static FailureOr<KernelKind> kindOfProblem(const Space &space,
                                           const Problem &problem,
                                           const Limits &limits) {
  std::optional<KernelKind> kind = skinnyKind(space, limits);
  if (kind && !suitsMatrix(space, problem, limits, *kind))
    return std::move(*kind);
  MatmulOp matmul = space.matmul;
  // The loop over K looks two blocks ahead in i32.
  constexpr int64_t maxDepth = INT32_MAX / 2;
  if (int64_t k = matmul.getDepth(); !ShapedType::isDynamic(k) && k > maxDepth)
    return matmul.emitOpError("has K = ")
           << k << "; it may have up to " << maxDepth << ": split the GEMM";
  kind = matrixKind(space, problem, limits);
  if (kind)
    return std::move(*kind);
  return simtKind(space, problem, limits);
}

FailureOr<KernelKind> greta::gemmKind(const Space &space,
                                      const Limits &limits) {
  Problem problem = problemOf(space);
  if (!limits.isLedByMatrix())
    problem.n = std::max(problem.n, limits.columns);
  FailureOr<KernelKind> kind = kindOfProblem(space, problem, limits);
  if (succeeded(kind))
    kind->problem = problem;
  return kind;
}

void greta::setLoop(Choice &choice, const Problem &problem,
                    const Limits &limits, MLIRContext *context) {
  Tile &tile = choice.tile;
  tile.split = partsOf(llvm::divideCeil(problem.k, tile.k), tile.split);
  if (!tile.instruction)
    return;
  choice.space.group = tile.group;
  choice.space.chiplets = limits.row.xcds;
  choice.space.pipeline = pipelineOf(context, problem, tile, limits);
  choice.space.matrix =
      matrixAttr(context, *tile.instruction, limits.row,
                 tile.opaque || !tile.instruction->accLayout.isKnown());
}
