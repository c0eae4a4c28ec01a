//===- Lld.h - linking objects into a shared object, in process -*- C++ -*-===//
//
// The one place that calls lld.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LINK_LLD_H
#define GRETA_LINK_LLD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace greta {

/// The kind of the output; lld takes the machine from the objects.
enum class LinkKind {
  Amdgpu, ///< a code object that HIP loads
  Host,   ///< a CPU shared object that needs libm.so.6 and libc.so.6
};

/// Links relocatable ELF objects into a shared object and writes its bytes to
/// `output`. Nothing is printed: what lld says becomes the error. Objects pass
/// through a private directory that is gone afterwards. Safe to call again and
/// from several threads, which then take turns. lld resets
/// every cl::opt of the process to its default.
llvm::Error linkShared(llvm::ArrayRef<llvm::StringRef> objects, LinkKind kind,
                       llvm::SmallVectorImpl<char> &output);

} // namespace greta

#endif
