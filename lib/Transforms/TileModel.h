//===- TileModel.h - which tiles fit, and their time ------------*- C++ -*-===//
//
// Judges tiles of matrix products with matrix instructions: whether they fit
// a target, and how many cycles the product takes with them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TRANSFORMS_TILEMODEL_H
#define GRETA_LIB_TRANSFORMS_TILEMODEL_H

#include "Configure.h"

namespace greta {

/// A product as the choice sees it.
struct Problem {
  int64_t m, n, k;       // guesses where dynamic
  int64_t bytes;         // of an element of A and B
  bool rowsOfA, rowsOfB; // stored with neighbours along K
  int64_t count;         // products of the same A
};

struct Tile {
  const MatrixInstruction *instruction = nullptr;
  int64_t m = 0, n = 0, k = 0, waves = 0;
  int64_t stages = 1, slice = 0, group = 8;
  bool opaque = false; // takes the layouts for unknown
};

/// Judges tiles of one problem on one target.
class TileModel {
public:
  TileModel(const Problem &problem, const Limits &limits)
      : problem(problem), limits(limits), row(limits.row) {}
  /// Why the tile cannot be; none: it can. A tile that somebody asks for may
  /// use the registers that choices spare.
  std::optional<std::string> whyNot(const Tile &tile, bool asked = false) const;
  /// Cycles of the whole product.
  double cycles(const Tile &tile) const;

private:
  /// Extents of one wave's part.
  std::pair<int64_t, int64_t> waveTile(const Tile &tile) const;
  int64_t ldsBytes(const Tile &tile) const;
  double wavesPerSimd(const Tile &tile) const;
  int64_t registers(const Tile &tile) const;

  const Problem &problem;
  const Limits &limits;
  const TargetRow &row;
};

/// What `greta.config` says about a product, in place of what was chosen.
mlir::LogicalResult
overrideTile(Tile &tile, MatmulOp matmul,
             llvm::ArrayRef<const MatrixInstruction *> available);

} // namespace greta

#endif
