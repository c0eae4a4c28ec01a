//===- MatrixInstructions.h - the target table's, as attributes -*- C++ -*-===//
//
// Which matrix instructions a target has for a product, and their attributes.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_MATRIXINSTRUCTIONS_H
#define GRETA_TILE_MATRIXINSTRUCTIONS_H

#include "GretaTile/GretaTile.h"
#include "greta/Target/Target.h"

namespace greta {

/// Returns the instructions of `available` for operands of these element types,
/// with the widest sums. Without known layouts only drivers can load operands;
/// some are only for operands that come in registers.
llvm::SmallVector<const MatrixInstruction *>
instructionsFor(mlir::Type a, mlir::Type b,
                llvm::ArrayRef<MatrixInstruction> available,
                const TargetRow &row, bool inRegisters = false);

/// Returns the instruction for a dot, among those whose tiles make up its
/// block: the one that keeps most waves busy, then the fastest, then the
/// largest. Null: there is none.
const MatrixInstruction *instructionFor(tile::DotOp dot, unsigned waves,
                                        const TargetRow &row, bool inRegisters);

/// The instruction and where a wave of the target holds its operands; `opaque`
/// takes layouts that are known for unknown.
tile::MatrixAttr matrixAttr(mlir::MLIRContext *context,
                            const MatrixInstruction &instruction,
                            const TargetRow &row, bool opaque = false);

} // namespace greta

#endif
