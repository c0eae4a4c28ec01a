//===- LoopBody.h - what a loop's body loads and computes -------*- C++ -*-===//
//
// In: a loop of block tensors with layouts. Out: the ops of its body in two
// parts. Loads of dots' operands, and elementwise work on these, may run ahead
// of their iteration; everything else waits for it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_LOOPBODY_H
#define GRETA_TILE_LOOPBODY_H

#include "GretaTile/GretaTile.h"
#include "greta/Target/Target.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace greta {

/// Whether a loop's body writes memory. `except` leaves out writes to locals,
/// or plain stores.
enum class Except { Nothing, Locals, Stores };
bool writesMemory(mlir::scf::ForOp loop, Except except = Except::Nothing);

/// The stages that the loop asks for, three at most; 0: it does not ask. The
/// kernel may ask for all of its loops (stagesName), as Triton's launches do,
/// where loops have more than one stage (TileFacts::stagesOfLoop): drivers that
/// load matrices whole were always slower with a launch's number.
int64_t askedStages(mlir::scf::ForOp loop, const TargetRow &row);

/// The bytes of a block in shared memory, with `padding` bytes between rows.
/// Rows may lie along either of the last two dimensions.
int64_t sharedBytes(mlir::RankedTensorType type, int64_t padding);

/// An operand of dots that follows from the body's loads and the iteration's
/// number. `source` is its value before it is laid out for the dots, `type` its
/// type after that.
struct LoadedOperand {
  mlir::Value source;
  mlir::RankedTensorType type;
  unsigned kDim;
  bool isFixed = false; // the same in every iteration

  int64_t depth() const { return type.getDimSize(kDim); }
  /// The matrix's dimension that is not K, which the accumulator has, too.
  unsigned ownDim() const { return 2 * type.getRank() - 3 - kDim; }
  /// The repetitions of the dots' layout along K.
  int64_t tileDepth() const;
};

/// Dots of which each adds to the result of the one before. The first adds to
/// `init`, which is no dot's result in this iteration; `last` is the last one.
struct DotChain {
  mlir::Value init;
  tile::DotOp last;
};

struct LoopBody {
  /// `rest` says whether a GEMM's body may compute something beside its dots.
  explicit LoopBody(mlir::scf::ForOp loop, bool rest);

  bool isLoadedWhole() const;
  /// Whether a dot's A (0) or B (1) is a loaded operand.
  bool isLoaded(tile::DotOp dot, unsigned side) const {
    return places.contains(&dot->getOpOperand(side));
  }
  const LoadedOperand &operandOf(tile::DotOp dot, unsigned side) const {
    return operands[places.at(&dot->getOpOperand(side))];
  }

  /// The dots that take loaded operands, and these operands.
  llvm::SmallVector<tile::DotOp> dots;
  llvm::SmallVector<LoadedOperand> operands;
  /// The ops that make operands, in the order of the body: loads, ops that only
  /// the loads' addresses need, and ops on the loaded values, sums included.
  llvm::SmallVector<mlir::Operation *> loads, addresses, prepare;
  /// The ops that operands need and that are the same in every iteration; they
  /// are in none of the lists above.
  llvm::SmallVector<mlir::Operation *> fixed;
  /// Contracts that add loaded values to a carried value, each with the number
  /// of that value; and the numbers of all other carried values.
  llvm::SmallVector<std::pair<unsigned, tile::ContractOp>> sums;
  llvm::SmallVector<unsigned> carried;
  /// Everything else, in order.
  llvm::SmallVector<mlir::Operation *> compute;
  /// Whether all dots of the body multiply loaded operands of one depth, in
  /// chains, and nothing else stands between them. The ops in `before` need no
  /// dot. The ops in `after` need whole sums, as the scaling of an iteration's
  /// sums does.
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
