// OutputFiles.cpp: see OutputFiles.h.
#include "OutputFiles.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace greta_run {
namespace {

[[noreturn]] void cannot(const std::string &Path) {
  throw std::runtime_error("cannot write " + Path + ": " + strerror(errno));
}

void save(int FD, const std::string &Path, const std::vector<uint8_t> &Bytes) {
  int Error = 0;
  for (size_t Done = 0; Done < Bytes.size() && !Error;) {
    ssize_t N = ::write(FD, Bytes.data() + Done, Bytes.size() - Done);
    if (N >= 0)
      Done += static_cast<size_t>(N);
    else if (errno != EINTR)
      Error = errno;
  }
  if (close(FD) != 0 && !Error)
    Error = errno;
  errno = Error;
  if (Error)
    cannot(Path);
}

} // namespace

OutputFiles::~OutputFiles() {
  for (const auto &[Temporary, Path] : Renamed)
    unlink(Temporary.c_str());
}

void OutputFiles::add(const std::string &Path, std::vector<uint8_t> Bytes) {
  struct stat Old;
  for (const auto &[Temporary, Other] : Renamed)
    if (Other == Path)
      throw std::runtime_error("cannot write " + Path + ": it is named twice");
  bool Exists = lstat(Path.c_str(), &Old) == 0;
  if (Exists && !S_ISREG(Old.st_mode)) {
    Through.emplace_back(Path, std::move(Bytes));
    return;
  }
  if (Exists && access(Path.c_str(), W_OK) != 0)
    cannot(Path);
  std::string Temporary = Path + ".tmp" + std::to_string(getpid());
  int FD = open(Temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                0666); // less the umask
  if (FD < 0)
    cannot(Path);
  Renamed.emplace_back(Temporary, Path);
  if (Exists && fchmod(FD, Old.st_mode & 07777) != 0)
    cannot(Path);
  save(FD, Path, Bytes);
}

void OutputFiles::commit() {
  for (const auto &[Path, Bytes] : Through) {
    int FD = open(Path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (FD < 0)
      cannot(Path);
    save(FD, Path, Bytes);
  }
  for (const auto &[Temporary, Path] : Renamed)
    if (rename(Temporary.c_str(), Path.c_str()) != 0)
      cannot(Path);
  Renamed.clear();
}

} // namespace greta_run
