//===- CheckSchedule.h - whether a schedule fits its kernel -----*- C++ -*-===//
//
// The schedule of a kernel may be written by hand (#greta.schedule): what its
// entries must be for the regions that it is for.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONFIGURE_CHECKSCHEDULE_H
#define GRETA_CONFIGURE_CHECKSCHEDULE_H

#include "greta/Fuse/Space.h"

namespace greta {

/// Reports a schedule that is missing or does not fit the kernel's spaces.
mlir::LogicalResult checkSchedule(KernelOp kernel,
                                  llvm::ArrayRef<Space> spaces);

} // namespace greta

#endif
