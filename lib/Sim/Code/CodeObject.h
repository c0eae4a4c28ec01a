//===- CodeObject.h - parts of the loader that others check -----*- C++ -*-===//
#ifndef GRETA_SIM_CODEOBJECT_H
#define GRETA_SIM_CODEOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace greta::sim {

/// The longest ELF header, and the largest code object, in its file and in
/// memory, in bytes.
constexpr uint64_t ObjectHeaderBytes = 64, LargestObject = uint64_t(1) << 28;

/// Returns the length of a file by its first ObjectHeaderBytes, which a caller
/// without a length has to read. Returns ObjectHeaderBytes for no 64-bit ELF.
llvm::Expected<uint64_t> objectBytes(llvm::ArrayRef<uint8_t> header);

/// Checks lengths and nesting, which LLVM's MessagePack document trusts, before
/// it reads the blob.
llvm::Error checkMsgPack(llvm::StringRef blob);

} // namespace greta::sim

#endif
