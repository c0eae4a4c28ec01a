//===- TileModel.h - which tiles fit, and their time ------------*- C++ -*-===//
//
// Judges tiles of GEMMs with matrix instructions: whether they fit
// a target, and how many cycles the GEMM takes with them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_CONFIGURE_TILEMODEL_H
#define GRETA_LIB_CONFIGURE_TILEMODEL_H

#include "Configure.h"

namespace greta {

struct TuningKey;

/// Judges tiles of one problem on one target.
class TileModel {
public:
  /// The cycles of a whole compute unit that one iteration of a workgroup's
  /// loop needs.
  struct Iteration {
    double matrix = 0, shared = 0, cached = 0;
    double busiest() const { return std::max({matrix, shared, cached}); }
    double others() const { return matrix + shared + cached - busiest(); }
  };
  TileModel(const Problem &problem, const Limits &limits)
      : problem(problem), limits(limits), row(limits.row) {}
  /// Why the tile cannot be; none: it can. A tile that somebody asks for may
  /// use the registers that choices spare.
  std::optional<std::string> whyNot(const Tile &tile, bool asked = false) const;
  /// Cycles of the whole GEMM.
  double cycles(const Tile &tile) const;
  /// Bytes that a lane can load straight to shared memory at a time; 0: none.
  int64_t directBytes() const;
  /// The waves that workgroups with the tile have on a SIMD.
  double wavesPerSimd(const Tile &tile) const {
    return resident(tile) * tile.waves / simds();
  }
  /// Whether more workgroups than a unit holds would not be faster: they keep
  /// its matrix units busy, but for a part of the time, or memory busy.
  bool leavesNothing(const Tile &tile, double part) const;

private:
  /// An iteration, and the cycles that it takes where the workgroup has the
  /// unit to itself.
  std::pair<Iteration, double> iterationOf(const Tile &tile) const;
  /// Extents of one wave's part.
  std::pair<int64_t, int64_t> waveTile(const Tile &tile) const;
  /// Columns of a row that the waves hold side by side.
  int64_t acrossWaves(const Tile &tile) const;
  /// A wave's part stays within so many columns: the problem's `within`, or its
  /// share of these in a tile that is a part of a head. 0: any.
  int64_t within(const Tile &tile) const {
    return problem.within * std::min(tile.n, problem.head) / problem.head;
  }
  int64_t ldsBytes(const Tile &tile) const;
  /// Whether lanes read an operand from shared memory as it lies in memory:
  /// along K, or by transposed loads.
  bool isReadAsStored(bool rowsAlongK) const;
  std::optional<std::string> whyNotDirect(const Tile &tile) const;
  /// Bytes that an iteration reads from shared memory and brings there; what
  /// lanes read in less than 16 bytes counts as if it were 16.
  double ldsTraffic(const Tile &tile) const;
  /// The extents that a workgroup's waves spread over.
  int64_t simds() const {
    return std::max(1u, row.simdsPerUnit) * row.unitsPerWorkgroup;
  }
  /// Workgroups of the whole GEMM, those that a unit gets, and those that it
  /// holds at a time.
  double workgroups(const Tile &tile) const;
  double perUnit(const Tile &tile) const;
  double resident(const Tile &tile) const;
  /// Cycles that memory takes for the operands of a GEMM.
  double memoryCycles(double bytesOfA, double bytesOfB) const;
  int64_t registers(const Tile &tile, bool asked = false) const;
  /// Cycles of the whole GEMM without shared memory.
  double cyclesInRegisters(const Tile &tile) const;

  const Problem &problem;
  const Limits &limits;
  const TargetRow &row;
};

/// Instructions for the operands with the widest sums. Without known layouts
/// only drivers can load operands.
llvm::SmallVector<const MatrixInstruction *>
instructionsFor(MatmulOp matmul, const Limits &limits);

/// Whether a GEMM's products of f32 become three of bf16.
bool isInThree(MatmulOp matmul, const Limits &limits);

/// Parts of a split GEMM: no more than the device takes at a time. Sums of
/// unknown length have none, nor do heads.
int64_t mostParts(int64_t m, int64_t n, const Problem &problem,
                  const Limits &limits);

/// A tile's schedule as the loop over K has it.
tile::PipelineAttr pipelineOf(mlir::MLIRContext *context,
                              const Problem &problem, const Tile &tile,
                              const Limits &limits);

/// The tuning database's key of a space's GEMM.
TuningKey tuningKey(const Space &space, const TargetRow &row);

} // namespace greta

#endif
