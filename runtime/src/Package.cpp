// Package.cpp: opens the ZIP, checks the manifest and the hash of every object.
// A package is untrusted: whatever is wrong with it ends in one
// Error(GRETA_ERROR_BAD_PACKAGE).
#include "Package.h"
#include "Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <openssl/evp.h>
#include <unistd.h>
#include <zip.h>

namespace greta::rt {
namespace {

constexpr zip_uint64_t maxManifest = 64u << 20;
constexpr zip_uint64_t maxObject = 1u << 30;
constexpr zip_int64_t maxMembers = 65536;

struct ZipCloser {
  void operator()(zip_t *Z) const { zip_discard(Z); }
};
using Zip = std::unique_ptr<zip_t, ZipCloser>;

bool goodMemberName(const std::string &Name) {
  if (Name == "manifest.json")
    return true;
  const std::string Prefix = "objects/";
  if (Name.compare(0, Prefix.size(), Prefix) != 0 ||
      Name.size() == Prefix.size() || Name.size() > 255 ||
      Name[Prefix.size()] == '.')
    return false;
  return Name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                "TUVWXYZ0123456789._-",
                                Prefix.size()) == std::string::npos;
}

std::vector<uint8_t> readMember(zip_t *Z, zip_uint64_t Index,
                                const zip_stat_t &Stat, zip_uint64_t Limit) {
  if (Stat.size > Limit)
    fail(GRETA_ERROR_BAD_PACKAGE, "member '", Stat.name, "' has ", Stat.size,
         " bytes, the limit is ", Limit);
  zip_file_t *File = zip_fopen_index(Z, Index, 0);
  if (!File)
    fail(GRETA_ERROR_BAD_PACKAGE, "member '", Stat.name,
         "': ", zip_strerror(Z));
  // The size in the header is only a claim, so the bytes grow as they come.
  std::vector<uint8_t> Bytes;
  zip_uint64_t Done = 0;
  zip_int64_t Got = 1;
  while (Done < Stat.size && Got > 0) {
    zip_uint64_t Want = std::min<zip_uint64_t>(Stat.size - Done, 4u << 20);
    Bytes.resize(Done + Want);
    Got = zip_fread(File, Bytes.data() + Done, Want);
    Done += Got > 0 ? static_cast<zip_uint64_t>(Got) : 0;
  }
  // One read past the end makes libzip compare the CRC.
  uint8_t Extra;
  bool Complete = Done == Stat.size && zip_fread(File, &Extra, 1) == 0;
  zip_fclose(File);
  if (!Complete)
    fail(GRETA_ERROR_BAD_PACKAGE, "member '", Stat.name,
         "' is damaged or truncated");
  return Bytes;
}

// `Size` is the archive's.
std::shared_ptr<const Package> readZip(Zip Z, zip_uint64_t Size) {
  auto P = std::make_shared<Package>();
  zip_int64_t Count = zip_get_num_entries(Z.get(), 0);
  if (Count > maxMembers)
    fail(GRETA_ERROR_BAD_PACKAGE, Count, " members, the limit is ", maxMembers);

  zip_uint64_t Left = Size;
  std::map<std::string, zip_uint64_t> Index;
  std::map<std::string, zip_stat_t> Stats;
  for (zip_int64_t I = 0; I < Count; ++I) {
    zip_stat_t Stat;
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE |
                                    ZIP_STAT_COMP_METHOD |
                                    ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(Z.get(), static_cast<zip_uint64_t>(I), 0, &Stat) != 0 ||
        (Stat.valid & needed) != needed)
      fail(GRETA_ERROR_BAD_PACKAGE, "member ", I,
           " cannot be read: ", zip_strerror(Z.get()));
    if (!goodMemberName(Stat.name))
      fail(GRETA_ERROR_BAD_PACKAGE, "member ", I,
           " is neither manifest.json nor objects/<name>");
    if (Stat.comp_method != ZIP_CM_STORE ||
        Stat.encryption_method != ZIP_EM_NONE)
      fail(GRETA_ERROR_BAD_PACKAGE, "member '", Stat.name,
           "' is compressed or encrypted; members are stored");
    // Stored members lie side by side; overlapping ones would fill the memory
    // with copies.
    if (Stat.size > Left)
      fail(GRETA_ERROR_BAD_PACKAGE, "its members are larger than the archive");
    Left -= Stat.size;
    if (!Index.emplace(Stat.name, static_cast<zip_uint64_t>(I)).second)
      fail(GRETA_ERROR_BAD_PACKAGE, "member '", Stat.name, "' appears twice");
    Stats[Stat.name] = Stat;
  }

  auto Manifest = Index.find("manifest.json");
  if (Manifest == Index.end())
    fail(GRETA_ERROR_BAD_PACKAGE, "no manifest.json: not a GRETA package");
  std::vector<uint8_t> Text = readMember(Z.get(), Manifest->second,
                                         Stats["manifest.json"], maxManifest);
  P->ManifestText.assign(Text.begin(), Text.end());
  std::map<std::string, std::string> Hashes;
  P->Functions = parseManifest(P->ManifestText, Hashes);

  for (const auto &[Name, Hash] : Hashes) {
    auto It = Index.find(Name);
    if (It == Index.end())
      fail(GRETA_ERROR_BAD_PACKAGE, "the manifest names '", Name,
           "', which is not in the package");
    std::vector<uint8_t> Bytes =
        readMember(Z.get(), It->second, Stats[Name], maxObject);
    if (sha256(Bytes.data(), Bytes.size()) != Hash)
      fail(GRETA_ERROR_BAD_PACKAGE, "the SHA-256 of '", Name,
           "' is not the manifest's: the package was changed or damaged");
    P->Objects[Name] = std::move(Bytes);
  }
  return P;
}

Zip openSource(zip_source_t *Source) {
  zip_error_t Problem;
  zip_error_init(&Problem);
  zip_t *Z = zip_open_from_source(Source, ZIP_RDONLY | ZIP_CHECKCONS, &Problem);
  if (!Z) {
    std::string Text = zip_error_strerror(&Problem);
    zip_error_fini(&Problem);
    zip_source_free(Source);
    fail(GRETA_ERROR_BAD_PACKAGE, "not a readable ZIP archive (", Text, ")");
  }
  zip_error_fini(&Problem);
  return Zip(Z);
}

template <typename Body>
std::shared_ptr<const Package> named(const std::string &Name, Body B) {
  try {
    return B();
  } catch (const Error &E) {
    fail(E.code(), Name, ": ", E.what());
  }
}

} // namespace

std::string sha256(const void *Data, size_t Size) {
  unsigned char Digest[EVP_MAX_MD_SIZE];
  unsigned Length = 0;
  if (EVP_Digest(Data, Size, Digest, &Length, EVP_sha256(), nullptr) != 1)
    fail(GRETA_ERROR_INTERNAL, "libcrypto has no SHA-256");
  std::string Hex;
  for (unsigned I = 0; I < Length; ++I) {
    Hex += "0123456789abcdef"[Digest[I] >> 4];
    Hex += "0123456789abcdef"[Digest[I] & 15];
  }
  return Hex;
}

const FunctionDecl *Package::find(const std::string &Name) const {
  for (const FunctionDecl &F : Functions)
    if (F.Name == Name)
      return &F;
  return nullptr;
}

std::shared_ptr<const Package> openPackage(const std::string &Path) {
  return named(Path, [&] {
    // libzip opens a directory, and fails to read it as an archive.
    std::error_code Ignored;
    if (std::filesystem::is_directory(Path, Ignored))
      fail(GRETA_ERROR_BAD_PACKAGE,
           "cannot open the package: ", strerror(EISDIR));
    // libzip reports a file that is missing, or that this process may not read,
    // as a bad archive.
    int FD = ::open(Path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (FD < 0)
      fail(errno == ENOENT || errno == ENOTDIR ? GRETA_ERROR_NOT_FOUND
                                               : GRETA_ERROR_BAD_PACKAGE,
           "cannot open the package: ", strerror(errno));
    ::close(FD);
    zip_error_t Problem;
    zip_error_init(&Problem);
    zip_source_t *Source =
        zip_source_file_create(Path.c_str(), 0, -1, &Problem);
    zip_error_fini(&Problem);
    if (!Source)
      fail(GRETA_ERROR_OUT_OF_MEMORY, "out of memory");
    zip_stat_t Stat;
    if (zip_source_stat(Source, &Stat) != 0) {
      zip_source_free(Source);
      fail(GRETA_ERROR_NOT_FOUND, "cannot open the package: ", strerror(errno));
    }
    return readZip(openSource(Source), Stat.size);
  });
}

std::shared_ptr<const Package> readPackage(const void *Data, size_t Size,
                                           const std::string &Name) {
  return named(Name, [&] {
    zip_error_t Problem;
    zip_error_init(&Problem);
    zip_source_t *Source = zip_source_buffer_create(Data, Size, 0, &Problem);
    zip_error_fini(&Problem);
    if (!Source)
      fail(GRETA_ERROR_OUT_OF_MEMORY, "out of memory");
    return readZip(openSource(Source), Size);
  });
}

} // namespace greta::rt
