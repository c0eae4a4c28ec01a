//===- Header.h - a package as a C header -----------------------*- C++ -*-===//
#ifndef GRETA_TRANSLATE_HEADER_H
#define GRETA_TRANSLATE_HEADER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace greta {

/// The header's text: the package's bytes and, per function, its load and
/// launch with one parameter per symbol and buffer. All names start with
/// `prefix`, made an identifier.
llvm::Expected<std::string> makeHeader(llvm::StringRef prefix,
                                       llvm::StringRef package);

} // namespace greta

#endif
