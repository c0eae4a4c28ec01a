//===- DotLayouts.h - layouts of dots and contracts -------------*- C++ -*-===//
//
// The layouts of a dot's accumulator and operands (AssignLayouts.cpp gives all
// other blocks theirs).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H
#define GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H

#include "GretaTile/GretaTile.h"

namespace greta {

/// Whether a dot's rows are another's: the one's result becomes the other's A
/// by ops that need no data to move.
bool isChained(tile::DotOp dot);

/// The tile of a matrix dot's accumulator; in a chain its columns are numbered
/// as the next dot's instruction has K.
Layout accumulatorTile(tile::DotOp dot);

/// The layout of an accumulator of `shape` [M, N]: a matrix instruction's tile,
/// then waves, then repetitions; for multiply-adds a rectangle for each lane,
/// and threads within the last `acrossN` columns of N. In a chain each
/// wave has rows of its own as far as they go. An error at the dot where there
/// is none.
mlir::FailureOr<Layout> accumulatorLayout(tile::DotOp dot,
                                          llvm::ArrayRef<int64_t> shape,
                                          tile::FuncOp kernel, int64_t acrossN);

/// How many K an iteration of a lane's multiply-adds takes; 0: all, without a
/// loop. 4096 of 8 bytes each are the 32 KiB of an RDNA or CDNA instruction
/// cache. Beyond them operands fill no registers, either.
int64_t stepAlongK(tile::DotOp dot, const Layout &acc);

/// The layout in which a dot takes operand 0 (A) or 1 (B) beside the
/// accumulator's: the instruction's, spread like the accumulator's; for
/// multiply-adds M or N where the accumulator has it, K wholly in registers.
/// The dimension along which the operand arrives in runs, `fastest`, is
/// numbered first there, so that runs stay together. A matrix instruction's K
/// is numbered so that a lane has up to `run` neighbours, or, where that is 0,
/// as the instruction has it; or along the last dimension of `like`, if its
/// registers and lanes can make up the instruction's.
Layout operandLayout(tile::DotOp dot, unsigned operand, const Layout &acc,
                     int64_t fastest, int64_t run,
                     const Layout *like = nullptr);

/// The block of which a contract's operands and result are parts; often none
/// of them is the whole.
llvm::SmallVector<int64_t, 4> contractedShape(tile::ContractOp contract);

/// Whether a lane holds all that a contract adds up to one element.
bool sumsInLanes(tile::ContractOp contract, const Layout &layout);

/// The schedule of the loop over K around a dot; null: none.
tile::PipelineAttr pipelineOf(tile::DotOp dot);

} // namespace greta

#endif // GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H
