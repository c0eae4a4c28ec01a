//===- Targets.h - the target that a pass's option names --------*- C++ -*-===//
#ifndef GRETA_INTERFACE_TARGETS_H
#define GRETA_INTERFACE_TARGETS_H

#include "greta/Target/Target.h"
#include "mlir/IR/Operation.h"

namespace greta {

/// The row of the target table with the name or alias `target`; null: there is
/// none, which is an error at `op`.
inline const TargetRow *rowOfTarget(mlir::Operation *op,
                                    llvm::StringRef target) {
  llvm::Expected<const TargetRow *> row = lookupTarget(target);
  if (row)
    return *row;
  op->emitError(llvm::toString(row.takeError()));
  return nullptr;
}

} // namespace greta

#endif
