//===- Structure.h - branches as structured control flow --------*- C++ -*-===//
#ifndef GRETATILE_STRUCTURE_H
#define GRETATILE_STRUCTURE_H

#include "mlir/IR/Region.h"

namespace greta::tile {

/// Makes one block of a function's or another op's body: its branches become
/// scf. Fails where a loop never ends.
llvm::LogicalResult structureBranches(mlir::Region &body);

} // namespace greta::tile

#endif
