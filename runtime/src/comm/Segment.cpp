// Segment.cpp: ranks of one host find each other by a file. In: an id, or a
// path at which rank 0 writes one. Out: the segment of Group.h, mapped; or what
// every rank that comes finds in it, the reason why one declines.
#include "comm/Segment.h"
#include "Files.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace greta::rt::comm {
namespace {

constexpr char prefix[] = "greta-comm-";

// Segments lie in the host's memory if the system has such a folder.
std::vector<std::string> folders() { return {"/dev/shm", "/tmp"}; }

// Removes the files of processes that ended before all ranks had come. A young
// file may not have been locked yet.
void removeStale(const std::string &Folder) {
  constexpr time_t young = 60;
  DIR *D = opendir(Folder.c_str());
  if (!D)
    return;
  while (const dirent *Entry = readdir(D)) {
    if (strncmp(Entry->d_name, prefix, strlen(prefix)) != 0)
      continue;
    std::string Path = Folder + "/" + Entry->d_name;
    int Fd = open(Path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (Fd < 0)
      continue;
    struct stat Stat;
    struct flock Lock{};
    Lock.l_type = F_WRLCK;
    Lock.l_whence = SEEK_SET;
    Lock.l_len = 1;
    if (!fstat(Fd, &Stat) && Stat.st_uid == geteuid() &&
        time(nullptr) - Stat.st_mtime > young &&
        !fcntl(Fd, F_OFD_GETLK, &Lock) && Lock.l_type == F_UNLCK)
      unlink(Path.c_str());
    close(Fd);
  }
  closedir(D);
}

} // namespace

void Group::decline(const Place &At, uint32_t Rank, uint32_t Size,
                    uint64_t TimeoutMs, const std::string &Reason) {
  Group G(At, Rank, Size, TimeoutMs);
  try {
    G.join(At, leastSlotBytes);
    G.Map->control()->Declines = true;
    G.end(concat("rank ", Rank, ": ", Reason));
    G.set(G.own().Presence, State::Joined);
    G.waitUntilAllKnow();
  } catch (...) {
    G.removeFiles();
    throw;
  }
  G.removeFiles();
}

// Rank 0 makes the segment, and the others find it.
void Group::join(const Place &At, size_t Wanted) {
  const std::string &Path = At.Path;
  if (Rank == 0) {
    if (!Path.empty()) {
      Id Fresh = newId();
      Name = hex(Fresh.data(), Fresh.size());
    }
    create(Wanted);
    if (!Path.empty()) {
      PathFile = Path;
      if (!writeFileAtomically(Path, Name.data(), Name.size())) {
        const std::string Why = strerror(errno);
        removeFiles();
        File.clear(); // nobody finds the segment, or is waited for
        fail(GRETA_ERROR_NOT_FOUND, "cannot write ", Path, ": ", Why);
      }
    }
    return;
  }
  std::string Why;
  while (!find(Path, Why)) {
    if (Clock::now() - Came > Timeout)
      fail(GRETA_ERROR_PEER_LOST, "rank ", Rank, " of ", Size, " has waited ",
           Timeout.count(), " ms for rank 0: ", Why);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A rank that comes later finds the segment, and in it why there is no
// communicator. Only rank 0's file leads to it.
void Group::waitUntilAllKnow() {
  if (Rank || File.empty())
    return;
  for (uint32_t R = 1; R < Size; ++R)
    while (of(R).Presence == State::Absent && Clock::now() - Came < Timeout)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void Group::removeFiles() {
  if (Rank == 0 && !File.empty())
    unlink(File.c_str());
  // Another rank 0 may have written its id there since.
  std::vector<uint8_t> Text;
  if (!PathFile.empty() && readFile(PathFile, Text) &&
      std::equal(Text.begin(), Text.end(), Name.begin(), Name.end()))
    unlink(PathFile.c_str());
}

// Creates the segment with room for the slots, as large as the folder allows.
void Group::create(size_t Wanted) {
  std::string Reason;
  for (const std::string &Folder : folders()) {
    removeStale(Folder);
    File = Folder + "/" + prefix + Name;
    Fd = Descriptor([&] {
      return open(File.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    });
    if (!Fd && errno == EEXIST) {
      File.clear(); // the file is another's
      fail(GRETA_ERROR_INVALID_ARGUMENT, "rank 0 has joined already");
    }
    if (!Fd) {
      Reason = concat(File, ": ", strerror(errno));
      continue;
    }
    for (SlotBytes = Wanted; SlotBytes >= leastSlotBytes;
         SlotBytes = roundUp(SlotBytes / 4, dataUnit)) {
      // Without this memory the first access would end the process.
      int Problem =
          posix_fallocate(Fd.get(), 0, static_cast<off_t>(fileBytes()));
      if (!Problem) {
        struct flock Lock = byteOf(0, F_WRLCK);
        if (fcntl(Fd.get(), F_OFD_SETLK, &Lock))
          fail(GRETA_ERROR_INTERNAL, "locking ", File, ": ", strerror(errno));
        map();
        Control &C = *Map->control();
        C.Head.Ranks = Size;
        C.Head.SlotBytes = SlotBytes;
        C.Head.Magic = magic;
        return;
      }
      Reason = concat(File, ": ", strerror(Problem));
      (void)ftruncate(Fd.get(), 0);
      if (SlotBytes == leastSlotBytes)
        break;
    }
    Fd.close();
    unlink(File.c_str());
  }
  File.clear();
  fail(GRETA_ERROR_OUT_OF_MEMORY,
       "no memory that ranks of one host could share: ", Reason);
}

// Returns whether rank 0's segment is there.
bool Group::find(const std::string &Path, std::string &Why) {
  if (!Path.empty()) {
    std::vector<uint8_t> Text;
    if (!readFile(Path, Text) || Text.size() != 2 * sizeof(Id) ||
        !std::all_of(Text.begin(), Text.end(), [](uint8_t C) {
          return (C >= '0' && C <= '9') || (C >= 'a' && C <= 'f');
        })) {
      Why = concat("there is no id in ", Path);
      return false;
    }
    Name.assign(Text.begin(), Text.end());
  }
  Why = concat("there is no segment greta-comm-", Name,
               " (is rank 0 on another host? then ranks need its address)");
  for (const std::string &Folder : folders()) {
    File = Folder + "/" + prefix + Name;
    Fd = Descriptor(
        [&] { return open(File.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW); });
    if (!Fd)
      continue;
    struct stat Stat;
    struct {
      uint32_t Magic, Ranks;
      uint64_t SlotBytes;
    } Head;
    static_assert(sizeof(Head) == sizeof(Control::Head));
    // The process of a segment without a lock has ended.
    if (isAlive(0) && !fstat(Fd.get(), &Stat) && Stat.st_uid == geteuid() &&
        pread(Fd.get(), &Head, sizeof(Head), 0) ==
            static_cast<ssize_t>(sizeof(Head)) &&
        Head.Magic == magic) {
      SlotBytes = Head.SlotBytes;
      if (Head.Ranks != Size)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "rank ", Rank, " is one of ", Size,
             ", rank 0 one of ", Head.Ranks);
      if (SlotBytes > mostSlotBytes || SlotBytes % dataUnit ||
          static_cast<size_t>(Stat.st_size) != fileBytes())
        fail(GRETA_ERROR_INVALID_ARGUMENT, File,
             " is not of this version of the library");
      struct flock Lock = byteOf(Rank, F_WRLCK);
      if (fcntl(Fd.get(), F_OFD_SETLK, &Lock))
        fail(GRETA_ERROR_INVALID_ARGUMENT, "rank ", Rank,
             " has joined already");
      map();
      return true;
    }
    Fd.close();
  }
  return false;
}

} // namespace greta::rt::comm
