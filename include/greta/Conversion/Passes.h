//===- Passes.h - conversions between the levels of the compiler -*- C++
//-*-===//
//
// Declares the passes of lib/Conversion; Passes.td describes them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONVERSION_PASSES_H
#define GRETA_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace greta {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "greta/Conversion/Passes.h.inc"
} // namespace greta

#endif
