// Files.cpp: see Files.h.
#include "Files.h"
#include "Package.h"
#include "Process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace greta::rt {
namespace fs = std::filesystem;

std::string ownFolder() {
  Dl_info Info;
  if (!dladdr(reinterpret_cast<void *>(&ownFolder), &Info) || !Info.dli_fname)
    return ".";
  std::string Path = Info.dli_fname;
  size_t Slash = Path.rfind('/');
  return Slash == std::string::npos ? "." : Path.substr(0, Slash);
}

bool readFile(const std::string &Path, std::vector<uint8_t> &Bytes) {
  std::ifstream In(Path, std::ios::binary);
  if (!In)
    return false;
  Bytes.assign(std::istreambuf_iterator<char>(In), {});
  return !In.bad();
}

bool writeAll(int FD, const void *Data, size_t Size) {
  const char *Bytes = static_cast<const char *>(Data);
  for (size_t Done = 0; Done < Size;) {
    ssize_t N = write(FD, Bytes + Done, Size - Done);
    if (N >= 0)
      Done += static_cast<size_t>(N);
    else if (errno != EINTR)
      return false;
  }
  return true;
}

bool writeFileAtomically(const std::string &Path, const void *Data,
                         size_t Size) {
  std::string Temporary = Path + ".XXXXXX";
  int FD = mkstemp(Temporary.data());
  if (FD < 0)
    return false;
  bool Good = writeAll(FD, Data, Size);
  Good = close(FD) == 0 && Good;
  Good = Good && rename(Temporary.c_str(), Path.c_str()) == 0;
  if (!Good)
    unlink(Temporary.c_str());
  return Good;
}

// Returns whether only the user may read and write the folder, as its files
// reach drivers. Makes a missing folder, and closes one of the user's that
// others may enter.
static bool isPrivate(const char *Path) {
  if (mkdir(Path, S_IRWXU) != 0 && errno != EEXIST)
    return false;
  int FD = open(Path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (FD < 0)
    return false;
  struct stat Stat;
  bool Good = fstat(FD, &Stat) == 0 && Stat.st_uid == geteuid();
  if (Good && (Stat.st_mode & (S_IRWXG | S_IRWXO)))
    Good = fchmod(FD, S_IRWXU) == 0;
  close(FD);
  return Good;
}

std::string cacheDirectory() {
  fs::path Dir;
  const char *Xdg = environment("XDG_CACHE_HOME");
  const char *Home = environment("HOME");
  if (Xdg && *Xdg)
    Dir = Xdg;
  else if (Home && *Home)
    Dir = fs::path(Home) / ".cache";
  else
    return "";
  std::error_code EC;
  fs::create_directories(Dir, EC);
  Dir /= "greta";
  return isPrivate(Dir.c_str()) ? Dir.string() : "";
}

bool readCache(const std::string &Name, std::vector<uint8_t> &Bytes) {
  std::string Dir = cacheDirectory();
  constexpr size_t hashSize = 64;
  if (Dir.empty() || !readFile(Dir + "/" + Name, Bytes) ||
      Bytes.size() < hashSize)
    return false;
  std::string Hash(Bytes.begin(), Bytes.begin() + hashSize);
  Bytes.erase(Bytes.begin(), Bytes.begin() + hashSize);
  return sha256(Bytes.data(), Bytes.size()) == Hash;
}

void writeCache(const std::string &Name, const std::vector<uint8_t> &Bytes) {
  std::string Dir = cacheDirectory();
  if (Dir.empty())
    return;
  std::string Hash = sha256(Bytes.data(), Bytes.size());
  std::vector<uint8_t> All(Hash.begin(), Hash.end());
  All.insert(All.end(), Bytes.begin(), Bytes.end());
  writeFileAtomically(Dir + "/" + Name, All.data(), All.size());
}

} // namespace greta::rt
