//===- Archive.cpp - a package's ZIP archive ------------------------------===//

#include "greta/Package/Package.h"
#include "llvm/ADT/ScopeExit.h"
#include <zip.h>

using namespace llvm;
using namespace greta;

static Error archiveError(zip_t *archive, const Twine &what) {
  return createStringError(inconvertibleErrorCode(),
                           "cannot write the archive: " + what + ": " +
                               zip_strerror(archive));
}

/// Adds a stored member that carries no time, so that equal contents give equal
/// archives. `bytes` must live until the archive is closed.
static Error addMember(zip_t *archive, const std::string &name,
                       const std::string &bytes) {
  zip_source_t *source =
      zip_source_buffer(archive, bytes.data(), bytes.size(), /*freep=*/0);
  if (!source)
    return archiveError(archive, name);
  zip_int64_t index =
      zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return archiveError(archive, name);
  }
  // 1980-01-01, where the format's time begins.
  if (zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) ||
      zip_file_set_dostime(archive, index, 0, 1 << 5 | 1, 0))
    return archiveError(archive, name);
  return Error::success();
}

Expected<std::string> greta::archivePackage(const PackageContents &contents) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *memory = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (!memory)
    return createStringError(inconvertibleErrorCode(),
                             "cannot write the archive: out of memory");
  scope_exit freeMemory([&] { zip_source_free(memory); });
  zip_t *archive = zip_open_from_source(memory, ZIP_TRUNCATE, &error);
  if (!archive)
    return createStringError(inconvertibleErrorCode(),
                             std::string("cannot write the archive: ") +
                                 zip_error_strerror(&error));
  // Closing the archive gives this reference up.
  zip_source_keep(memory);
  scope_exit discard([&] { zip_discard(archive); });
  if (Error failure = addMember(archive, "manifest.json", contents.manifest))
    return std::move(failure);
  for (const auto &[name, bytes] : contents.members)
    if (Error failure = addMember(archive, name, bytes))
      return std::move(failure);
  if (zip_close(archive))
    return archiveError(archive, "closing");
  discard.release();

  zip_stat_t stat;
  std::string bytes;
  if (zip_source_stat(memory, &stat) || zip_source_open(memory))
    return createStringError(inconvertibleErrorCode(),
                             "cannot read the archive back");
  bytes.resize(stat.size);
  zip_int64_t read = zip_source_read(memory, bytes.data(), bytes.size());
  zip_source_close(memory);
  if (read != zip_int64_t(bytes.size()))
    return createStringError(inconvertibleErrorCode(),
                             "cannot read the archive back");
  return bytes;
}
