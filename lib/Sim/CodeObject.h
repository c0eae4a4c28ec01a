//===- CodeObject.h - parts of the loader that others check -----*- C++ -*-===//
#ifndef GRETA_SIM_CODEOBJECT_H
#define GRETA_SIM_CODEOBJECT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace greta::sim {

/// Whether LLVM's MessagePack document may read the blob: it trusts lengths and
/// recursion, so both are checked first.
llvm::Error checkMsgPack(llvm::StringRef blob);

} // namespace greta::sim

#endif
