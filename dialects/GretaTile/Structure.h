//===- Structure.h - branches as structured control flow --------*- C++ -*-===//
#ifndef GRETATILE_STRUCTURE_H
#define GRETATILE_STRUCTURE_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace greta::tile {

/// Makes one block of a function: its branches become scf. Fails where a loop
/// never ends.
llvm::LogicalResult structureBranches(mlir::FunctionOpInterface func);

} // namespace greta::tile

#endif
