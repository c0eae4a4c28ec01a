//===- Lld.cpp - linking objects into a shared object, in process ---------===//
//
// lld reads and writes files only, so the objects go through a directory of
// their own, made for one call and always removed.
//
// A host object calls libm and libc. Their names must stand in DT_NEEDED, for a
// process that has not loaded them, but no system library is wanted at link
// time: a shared object with the right SONAME that exports nothing gives lld
// the name.
//
//===----------------------------------------------------------------------===//

#include "greta/Link/Lld.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

static Error runLld(ArrayRef<std::string> args) {
  // lld keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<const char *> argv = {"ld.lld", "-shared", "--threads=1",
                                    "--color-diagnostics=never"};
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  std::string said;
  raw_string_ostream os(said);
  lld::Result result =
      lld::lldMain(argv, os, os, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0)
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "linking failed: " + StringRef(said).trim());
}

static Expected<std::string> writeObject(StringRef directory, StringRef name,
                                         StringRef bytes) {
  SmallString<128> path(directory);
  sys::path::append(path, name);
  std::error_code error;
  raw_fd_ostream os(path, error, sys::fs::CD_CreateNew);
  if (!error) {
    os << bytes;
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return createStringError(error,
                             "cannot write " + path + ": " + error.message());
  return std::string(path);
}

Error greta::linkShared(ArrayRef<StringRef> objects, LinkKind kind,
                        SmallVectorImpl<char> &output) {
  SmallString<128> directory;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("greta-link", directory))
    return createStringError(error, "cannot make a temporary directory: " +
                                        error.message());
  scope_exit remove([&] { (void)sys::fs::remove_directories(directory); });

  std::vector<std::string> args;
  for (auto [index, bytes] : enumerate(objects)) {
    Expected<std::string> path =
        writeObject(directory, std::to_string(index) + ".o", bytes);
    if (!path)
      return path.takeError();
    args.push_back(*path);
  }
  if (kind == LinkKind::Host) {
    // lld makes nothing out of nothing: link the object itself under the
    // library's name, and export none of it.
    for (StringRef library : {"libm.so.6", "libc.so.6"}) {
      std::string stub = (directory + "/" + library).str();
      Expected<std::string> script = writeObject(
          directory, (library + ".version").str(), "{ local: *; };");
      if (!script)
        return script.takeError();
      if (Error error =
              runLld({args.front(), "-o", stub, "-soname=" + library.str(),
                      "--gc-sections", "--version-script=" + *script}))
        return error;
      args.push_back(stub);
    }
    args.push_back("--no-as-needed");
    args.push_back("--strip-all");
  } else {
    args.push_back("--no-undefined");
  }
  std::string path = (directory + "/out").str();
  args.insert(args.end(), {"-o", path});
  if (Error error = runLld(args))
    return error;
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(path);
  if (!linked)
    return createStringError(linked.getError(), "cannot read what lld wrote");
  output.assign((*linked)->getBufferStart(), (*linked)->getBufferEnd());
  return Error::success();
}
