//===- Candidates.cpp - what greta-tune has to try ------------------------===//
//
// Names products for the tuning database and lists the tiles that are worth
// measuring.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Transforms/Tuning.h"

using namespace mlir;
using namespace greta;

/// matmul f16 nt -> f16 with dequant, elementwise: the operands' types (once
/// where they are alike), n or t for each as it is stored, the type of the
/// result in memory, and what else the kernel does.
static std::string nameOf(MatmulOp matmul) {
  std::string name;
  llvm::raw_string_ostream os(name);
  unsigned products = 0;
  SmallVector<StringRef> others;
  Type stored = matmul.getType().getElementType();
  for (Operation &op : *matmul->getBlock()) {
    if (isa<MatmulOp>(op)) {
      ++products;
      continue;
    }
    if (auto yield = dyn_cast<YieldOp>(op)) {
      stored = cast<RankedTensorType>(yield.getValues()[0].getType())
                   .getElementType();
      continue;
    }
    StringRef other = op.getDialect() == matmul->getDialect()
                          ? op.getName().stripDialect()
                          : "elementwise";
    if (!op.hasTrait<OpTrait::ConstantLike>() &&
        !llvm::is_contained(others, other))
      others.push_back(other);
  }
  llvm::sort(others);
  Type a = matmul.getA().getType().getElementType();
  Type b = matmul.getB().getType().getElementType();
  if (products > 1)
    os << products << " ";
  os << "matmul " << a;
  if (a != b)
    os << " " << b;
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
  ArrayRef<int64_t> a = matmul.getA().getType().getShape();
  key.shape.push_back(a[a.size() - (matmul.getTransposeA() ? 2 : 1)]);
  return key;
}

/// The choice, then the others by the model's cycles.
static std::vector<llvm::json::Object>
candidatesFor(const Space &space, const Limits &limits, unsigned count) {
  SmallVector<const MatrixInstruction *> available =
      instructionsFor(space.matmul, limits);
  Problem problem = problemOf(space);
  std::optional<Tile> best = bestTile(problem, limits, available);
  if (!best)
    return {};
  std::vector<llvm::json::Object> candidates = {configOf(*best)};
  std::vector<Tile> tiles;
  std::vector<std::pair<double, size_t>> order;
  forEachTile(problem, limits, available, [&](const Tile &tile, double cycles) {
    order.push_back({cycles, tiles.size()});
    tiles.push_back(tile);
  });
  llvm::sort(order);
  for (auto [cycles, index] : order) {
    if (candidates.size() == count)
      break;
    llvm::json::Object config = configOf(tiles[index]);
    if (!llvm::is_contained(candidates, config))
      candidates.push_back(std::move(config));
  }
  return candidates;
}

FailureOr<std::vector<TunableProduct>>
greta::findTunable(Operation *function, const TargetRow &row, unsigned count) {
  std::vector<TunableProduct> found;
  Limits limits(row, /*useMatrix=*/true);
  WalkResult result = function->walk([&](KernelOp kernel) {
    FailureOr<SmallVector<Space>> spaces = analyzeSpaces(kernel);
    if (failed(spaces))
      return WalkResult::interrupt();
    for (const Space &space : *spaces) {
      if (!space.matmul || hasFewRows(space.matmul))
        continue;
      FailureOr<DictionaryAttr> asked = configFor(space.matmul, row);
      if (failed(asked))
        return WalkResult::interrupt();
      TuningKey key = tuningKey(space, row);
      if (*asked || llvm::any_of(found, [&](const TunableProduct &product) {
            return product.key == key;
          }))
        continue;
      std::vector<llvm::json::Object> candidates =
          candidatesFor(space, limits, count);
      if (!candidates.empty())
        found.push_back({std::move(key), std::move(candidates)});
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return found;
}
