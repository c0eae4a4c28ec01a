//===- WriteWhole.cpp - files that tools write ----------------------------===//

#include "greta/Package/Package.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace greta;

/// Writes to the file that is at the path already.
static Error writeThrough(StringRef path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (code)
    return errorCodeToError(code);
  os << bytes;
  os.close();
  code = os.error();
  os.clear_error();
  return errorCodeToError(code);
}

Error greta::writeWhole(StringRef path, StringRef bytes) {
  sys::fs::file_status old;
  bool isThere = !sys::fs::status(path, old, /*follow=*/false);
  Error failed = isThere && !sys::fs::is_regular_file(old)
                     ? writeThrough(path, bytes)
                     : writeToOutput(path, [&](raw_ostream &os) {
                         os << bytes;
                         return Error::success();
                       });
  if (!failed)
    return Error::success();
  std::string why;
  handleAllErrors(
      std::move(failed),
      [&](const FileError &error) { why = error.messageWithoutFileInfo(); },
      [&](const ErrorInfoBase &error) { why = error.message(); });
  return createStringError("cannot write '" + path + "': " + why);
}
