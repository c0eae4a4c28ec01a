//===- WriteWhole.cpp - files that tools write ----------------------------===//

#include "greta/Package/Package.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace greta;

static Error write(raw_fd_ostream &os, StringRef bytes) {
  os << bytes;
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  return errorCodeToError(code);
}

/// Writes to the file that is at the path already.
static Error writeThrough(StringRef path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream os(path, code);
  return code ? errorCodeToError(code) : write(os, bytes);
}

/// Writes beside the path first. LLVM's writeToOutput does so, too, but puts
/// half of a file there, and ends the process, if the disk is full.
static Error writeBeside(StringRef path, StringRef bytes) {
  auto made = sys::fs::TempFile::create(path + ".temp-%%%%%%%%");
  if (!made)
    return made.takeError();
  raw_fd_ostream os(made->FD, /*shouldClose=*/false);
  if (Error failed = write(os, bytes))
    return joinErrors(std::move(failed), made->discard());
  return made->keep(path);
}

Error greta::writeWhole(StringRef path, StringRef bytes) {
  sys::fs::file_status old;
  bool isThere = !sys::fs::status(path, old, /*follow=*/false);
  Error failed = path == "-" ? write(outs(), bytes)
                 : isThere && !sys::fs::is_regular_file(old)
                     ? writeThrough(path, bytes)
                     : writeBeside(path, bytes);
  if (!failed)
    return Error::success();
  std::string why;
  handleAllErrors(
      std::move(failed),
      [&](const FileError &error) { why = error.messageWithoutFileInfo(); },
      [&](const ErrorInfoBase &error) { why = error.message(); });
  return createStringError("cannot write '" + path + "': " + why);
}
