//===- DotLayouts.h - layouts of dots and contracts -------------*- C++ -*-===//
//
// Layouts of a dot's accumulator and operands. AssignLayouts.cpp gives all
// other blocks theirs.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H
#define GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H

#include "GretaTile/GretaTile.h"

namespace greta {

/// Whether a dot's result becomes another dot's A without data that moves
/// between lanes: the two dots are a chain.
bool isChained(tile::DotOp dot);

/// Returns the tile of a matrix dot's accumulator. In a chain its columns are
/// numbered as the next dot's instruction numbers K.
Layout accumulatorTile(tile::DotOp dot);

/// Returns the layout of an accumulator of `shape` [M, N]. With a matrix
/// instruction it consists of the instruction's tile, then waves, then
/// repetitions. With SIMT FMAs each lane has a rectangle. In a chain each wave
/// has rows of its own as far as they go. If there is no layout, the dot gets
/// an error.
mlir::FailureOr<Layout> accumulatorLayout(tile::DotOp dot,
                                          llvm::ArrayRef<int64_t> shape,
                                          tile::FuncOp kernel);

/// Returns the elements along K that an iteration of a lane's SIMT FMAs takes.
/// 0: there is no loop. A loop is needed beyond 4096 FMAs, which at 8 bytes
/// each fill the instruction cache of 32 KiB that RDNA and CDNA have.
int64_t stepAlongK(tile::DotOp dot, const Layout &acc);

/// Returns the layout in which a dot takes operand 0 (A) or 1 (B), given its
/// accumulator's layout.
///
/// With SIMT FMAs, M or N lies where the accumulator has it, and K wholly in
/// registers. The dimension along which the operand comes in runs, `fastest`,
/// is numbered first, so that runs stay together.
///
/// With a matrix instruction, the operand has the instruction's layout, spread
/// over waves like the accumulator. K may be renumbered, alike in A and B: so
/// that a lane has up to `run` neighbours (0: not renumbered), or as the last
/// dimension of `like` lies, if its registers and lanes can make up those of
/// the instruction.
Layout operandLayout(tile::DotOp dot, unsigned operand, const Layout &acc,
                     int64_t fastest, int64_t run,
                     const Layout *like = nullptr);

/// Returns the shape of the block that a contract's operands and result are
/// broadcast to; often none of them has it.
llvm::SmallVector<int64_t, 4> contractedShape(tile::ContractOp contract);

/// Whether a lane holds everything that a contract adds up to one element.
bool sumsInLanes(tile::ContractOp contract, const Layout &layout);

/// Returns the pipeline of the loop over K around a dot; null: it has none.
tile::PipelineAttr pipelineOf(tile::DotOp dot);

} // namespace greta

#endif // GRETA_LIB_TILE_LAYOUTS_DOTLAYOUTS_H
