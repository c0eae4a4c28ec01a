//===- LoopBody.h - what a loop's body loads and computes -------*- C++ -*-===//
//
// In: a loop of block tensors with layouts. Out: its body taken apart into what
// may run ahead of its iteration, which is loads of dots' operands and
// elementwise work on them, and what has to wait for it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_LOOPBODY_H
#define GRETA_TILE_LOOPBODY_H

#include "GretaTile/GretaTile.h"
#include "greta/Target/Target.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace greta {

/// Whether a loop's body writes any memory, or any but locals, or any otherwise
/// than by plain stores.
enum class Except { Nothing, Locals, Stores };
bool writesMemory(mlir::scf::ForOp loop, Except except = Except::Nothing);

/// The stages that the loop asks for or, where a model chooses schedules, its
/// kernel (stagesName), up to the three that a pipeline may have; 0: nobody
/// does. A launch's number was chosen with a compiler for devices whose loads
/// run beside the lanes: Vulkan's drivers were always slower with it.
int64_t askedStages(mlir::scf::ForOp loop, const TargetRow &row);

/// An operand of dots that follows from what the body loads and from the
/// iteration's number: its value before and its type after it is laid out for
/// the dots.
struct LoadedOperand {
  mlir::Value source;
  mlir::RankedTensorType type;
  unsigned kDim;
  bool isFixed = false; // the same in every iteration

  int64_t depth() const { return type.getDimSize(kDim); }
  /// The dimension that the accumulator has, too: the matrix's other one.
  unsigned ownDim() const { return 2 * type.getRank() - 3 - kDim; }
  /// The repetitions of the dots' layout along K.
  int64_t tileDepth() const;
};

/// Dots that add to each other's result, each once an iteration: from `init`,
/// which no dot of the iteration makes, to `last`.
struct DotChain {
  mlir::Value init;
  tile::DotOp last;
};

struct LoopBody {
  /// `rest`: whether the body of a GEMM may compute something beside its dots.
  explicit LoopBody(mlir::scf::ForOp loop, bool rest);

  bool isLoadedWhole() const;
  /// Whether a dot's A (0) or B (1) is a loaded operand.
  bool isLoaded(tile::DotOp dot, unsigned side) const {
    return places.contains(&dot->getOpOperand(side));
  }
  const LoadedOperand &operandOf(tile::DotOp dot, unsigned side) const {
    return operands[places.at(&dot->getOpOperand(side))];
  }

  /// The dots that take loaded operands, and those.
  llvm::SmallVector<tile::DotOp> dots;
  llvm::SmallVector<LoadedOperand> operands;
  /// The ops that make operands, in the order of the body: loads, ops that only
  /// their addresses need, and ops on the loaded values, with the sums of them.
  llvm::SmallVector<mlir::Operation *> loads, addresses, prepare;
  /// All that operands are made of which every iteration has, apart from those.
  llvm::SmallVector<mlir::Operation *> fixed;
  /// Contracts that add what is loaded to a carried value, and where that is
  /// carried; where all others are.
  llvm::SmallVector<std::pair<unsigned, tile::ContractOp>> sums;
  llvm::SmallVector<unsigned> carried;
  /// Everything else, in order.
  llvm::SmallVector<mlir::Operation *> compute;
  /// All dots of the body multiply loaded operands of one depth, in chains.
  /// Nothing else that it computes stands between them: it needs no dot
  /// (`before`), or whole sums (`after`), as a scale of an iteration's sums
  /// does.
  bool isGemm = false;
  llvm::SmallVector<DotChain> chains;
  unsigned chainOf(tile::DotOp dot) const { return chainNumbers.at(dot); }
  llvm::SmallVector<mlir::Operation *> before, after;

private:
  class Analysis;
  llvm::DenseMap<mlir::OpOperand *, unsigned> places;
  llvm::DenseMap<mlir::Operation *, unsigned> chainNumbers;
};

} // namespace greta

#endif // GRETA_TILE_LOOPBODY_H
