//===- Package.h - writing .greta files -------------------------*- C++ -*-===//
#ifndef GRETA_PACKAGE_PACKAGE_H
#define GRETA_PACKAGE_PACKAGE_H

#include "greta/Interface/Variant.h"
#include "llvm/Support/Error.h"
#include <map>

namespace greta {

struct PackageContents {
  std::string manifest; // JSON text, docs/internals/package.md
  std::map<std::string, std::string> members; // objects/<name> → bytes
};

/// Names the objects and describes everything. Equal objects become one member.
PackageContents describePackage(llvm::ArrayRef<CompiledFunction> functions,
                                mlir::DictionaryAttr metadata = {});

/// The archive's bytes; the same contents give the same bytes.
llvm::Expected<std::string> archivePackage(const PackageContents &contents);

/// Writes all bytes of a file or none: it writes a file beside it, and renames
/// that. A device, a FIFO or a link stays what it is and is written through.
llvm::Error writeWhole(llvm::StringRef path, llvm::StringRef bytes);

} // namespace greta

#endif
