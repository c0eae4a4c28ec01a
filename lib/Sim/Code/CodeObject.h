//===- CodeObject.h - parts of the loader that others check -----*- C++ -*-===//
#ifndef GRETA_SIM_CODEOBJECT_H
#define GRETA_SIM_CODEOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace greta::sim {

/// Bytes of the longest ELF header, and the most a code object may have, in its
/// file and in memory.
constexpr uint64_t ObjectHeaderBytes = 64, LargestObject = uint64_t(1) << 28;

/// The length of a file by its first ObjectHeaderBytes: a caller without a
/// length has to read that much. ObjectHeaderBytes if it is no 64-bit ELF.
llvm::Expected<uint64_t> objectBytes(llvm::ArrayRef<uint8_t> header);

/// Whether LLVM's MessagePack document may read the blob: it trusts lengths and
/// recursion, so both are checked first.
llvm::Error checkMsgPack(llvm::StringRef blob);

} // namespace greta::sim

#endif
