//===- Candidates.cpp - what greta-tune has to try ------------------------===//
//
// Names GEMMs for the tuning database and lists the configurations that are
// worth measuring.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Configure/Tuning.h"

using namespace mlir;
using namespace greta;

/// Returns a GEMM's name in the tuning database, such as "matmul f16 nt -> f16
/// with dequant, elementwise". It has the operands' types (one if they are
/// alike), n or t for the order of each in memory, the type of the result in
/// memory, and what else the kernel computes. In skinny GEMMs the bits of
/// packed weights decide how much a lane loads, and the order of their rows how
/// lanes lie, so the name has both; 4 and 5 bits share a name without them.
static std::string nameOf(MatmulOp matmul) {
  std::string name;
  llvm::raw_string_ostream os(name);
  unsigned gemms = 0;
  SmallVector<std::string> others;
  int64_t rows = matmul.getType().getShape().end()[-2];
  bool hasFewRows = !ShapedType::isDynamic(rows) && rows <= 4;
  Type stored = matmul.getType().getElementType();
  for (Operation &op : *matmul->getBlock()) {
    if (isa<MatmulOp>(op)) {
      ++gemms;
      continue;
    }
    if (auto yield = dyn_cast<YieldOp>(op)) {
      stored = cast<RankedTensorType>(yield.getValues()[0].getType())
                   .getElementType();
      continue;
    }
    std::string other = op.getDialect() == matmul->getDialect()
                            ? op.getName().stripDialect().str()
                            : "elementwise";
    if (auto dequant = dyn_cast<DequantOp>(op); dequant && hasFewRows) {
      if (int bits = dequant.getRow().allBits(); bits > 5)
        other += " of " + std::to_string(bits) + " bits";
      if (dequant.getRow().isInterleaved)
        other += ", interleaved";
    }
    if (!op.hasTrait<OpTrait::ConstantLike>() &&
        !llvm::is_contained(others, other))
      others.push_back(other);
  }
  llvm::sort(others);
  Type a = matmul.getA().getType().getElementType();
  Type b = matmul.getB().getType().getElementType();
  if (gemms > 1)
    os << gemms << " ";
  os << (matmul.getOffsets() ? "grouped matmul " : "matmul ") << a;
  if (a != b)
    os << " " << b;
  if (matmul.getPrecision())
    os << " by " << *matmul.getPrecision();
  os << " " << (matmul.getTransposeA() ? "t" : "n")
     << (matmul.getTransposeB() ? "t" : "n") << " -> " << stored;
  if (!others.empty())
    os << " with " << llvm::join(others, ", ");
  return name;
}

TuningKey greta::tuningKey(const Space &space, const TargetRow &row) {
  MatmulOp matmul = space.matmul;
  TuningKey key;
  key.target = row.name.str();
  key.op = nameOf(matmul);
  key.shape = llvm::to_vector(matmul.getType().getShape());
  int64_t &rows = key.shape[key.shape.size() - 2];
  if (ShapedType::isDynamic(rows) && !matmul.getBatchRank())
    rows = expectedRows(matmul);
  ArrayRef<int64_t> a = matmul.getA().getType().getShape();
  key.shape.push_back(a[a.size() - (matmul.getTransposeA() ? 2 : 1)]);
  // A tile has rows of one group, so T alone does not decide.
  if (matmul.getOffsets())
    key.shape.insert(key.shape.begin(), matmul.getNumGroups());
  return key;
}

namespace {
/// Up to `count` different configurations.
struct Candidates {
  size_t count;
  std::vector<llvm::json::Object> configs = {};
  bool isFull() const { return configs.size() == count; }
  /// Adds a tile, and returns whether it is a new one.
  bool add(const Tile &tile) {
    llvm::json::Object config = configOf(tile);
    if (isFull() || llvm::is_contained(configs, config))
      return false;
    configs.push_back(std::move(config));
    return true;
  }
};
} // namespace

/// Adds the chosen tile with some other values of `group` and `slice`, then
/// other tiles, the fastest by the model first.
static void addTiles(const KernelKind &kind, int64_t rows,
                     Candidates &candidates) {
  // The model does not tell apart orders of blocks, nor the lengths of the
  // loop over slices.
  const Tile &best = kind.tile;
  for (int64_t group : {best.group / 2, best.group * 2, best.group * 4}) {
    Tile tile = best;
    tile.group = std::clamp<int64_t>(group, 1, llvm::divideCeil(rows, best.m));
    candidates.add(tile);
  }
  for (int64_t slice = 2 * best.slice; best.stages == 1 && slice <= best.k;
       slice *= 2) {
    Tile tile = best;
    tile.slice = slice;
    if (!kind.whyNot(tile))
      candidates.add(tile);
  }
  std::vector<Tile> tiles;
  std::vector<std::pair<double, size_t>> order;
  kind.candidates([&](const Tile &tile, double cycles) {
    order.push_back({cycles, tiles.size()});
    tiles.push_back(tile);
  });
  llvm::sort(order);
  for (auto [cycles, index] : order)
    candidates.add(tiles[index]);
}

/// Adds the tiles that are one step from the chosen one, a factor of two in one
/// of its fields, then those that are two steps away, and so on.
static void addNeighbours(const KernelKind &kind, Candidates &candidates) {
  std::vector<Tile> tiles = {kind.tile};
  for (size_t from = 0; from < tiles.size() && !candidates.isFull(); ++from)
    for (int64_t Tile::*part : kind.steps)
      for (bool twice : {true, false}) {
        Tile next = tiles[from];
        next.*part = twice ? next.*part * 2 : next.*part / 2;
        if (next.*part >= 1 && next.split <= mostSplit && !kind.whyNot(next) &&
            candidates.add(next))
          tiles.push_back(next);
      }
}

FailureOr<std::vector<TunableGemm>>
greta::findTunable(Operation *function, const TargetRow &row, unsigned count) {
  std::vector<TunableGemm> found;
  Limits limits(row, /*useMatrix=*/true);
  WalkResult result = function->walk([&](KernelOp kernel) {
    FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
    if (failed(spaces))
      return WalkResult::interrupt();
    for (const Space &space : *spaces) {
      if (!space.matmul)
        continue;
      FailureOr<DictionaryAttr> asked = configFor(space.matmul, row);
      if (failed(asked))
        return WalkResult::interrupt();
      TuningKey key = tuningKey(space, row);
      if (*asked || llvm::any_of(found, [&](const TunableGemm &gemm) {
            return gemm.key == key;
          }))
        continue;
      FailureOr<KernelKind> kind = kindOf(space, limits, kernel.getContext());
      if (failed(kind))
        return WalkResult::interrupt();
      Candidates candidates{count};
      candidates.add(kind->tile);
      if (kind->steps.empty())
        addTiles(*kind, kind->problem.m, candidates);
      else
        addNeighbours(*kind, candidates);
      found.push_back(
          {std::move(key), /*rows=*/0, std::move(candidates.configs)});
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return found;
}
