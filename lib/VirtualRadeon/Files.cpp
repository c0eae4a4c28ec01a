//===- Files.cpp - the C library's functions on files, of the card's ------===//
//
// This library is loaded before all others, so these functions take the place
// of the C library's. Paths and files of the virtual card are answered here;
// everything else goes on to where it belongs.
//
//===----------------------------------------------------------------------===//
#include "Connection.h"
#include "Nodes.h"
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

using namespace greta::radeon;

#define EXPORT extern "C" __attribute__((visibility("default")))
/// The function that this one takes the place of.
#define REAL(name)                                                             \
  static auto real =                                                           \
      reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name))
#define REAL_AS(name, type)                                                    \
  static auto real = reinterpret_cast<type>(dlsym(RTLD_NEXT, #name))

static int fail(int error) {
  errno = error;
  return -1;
}

//===----------------------------------------------------------------------===//
// Opening and closing
//===----------------------------------------------------------------------===//

/// A file with the text of a node.
static int openText(const std::string &text) {
  int file = memfd_create("virtual-radeon-text", MFD_CLOEXEC);
  if (file < 0)
    return file;
  ssize_t written = write(file, text.data(), text.size());
  (void)written;
  lseek(file, 0, SEEK_SET);
  return file;
}

static int openNode(const Node &node, int flags) {
  switch (node.kind) {
  case Node::Device:
    return connect(node.minor, flags);
  case Node::File:
    return openText(node.text);
  default:
    return fail(EACCES);
  }
}

#define MODE_OF_VARIADIC(flags)                                                \
  mode_t mode = 0;                                                             \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                                     \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode = va_arg(list, mode_t);                                               \
    va_end(list);                                                              \
  }

EXPORT int open(const char *path, int flags, ...) {
  MODE_OF_VARIADIC(flags)
  if (const Node *node = findNode(path))
    return openNode(*node, flags);
  REAL(open);
  return real(path, flags, mode);
}
EXPORT int open64(const char *path, int flags, ...) {
  MODE_OF_VARIADIC(flags)
  if (const Node *node = findNode(path))
    return openNode(*node, flags);
  REAL(open64);
  return real(path, flags, mode);
}
EXPORT int openat(int folder, const char *path, int flags, ...) {
  MODE_OF_VARIADIC(flags)
  if (const Node *node = findNode(path))
    return openNode(*node, flags);
  REAL(openat);
  return real(folder, path, flags, mode);
}
EXPORT int openat64(int folder, const char *path, int flags, ...) {
  MODE_OF_VARIADIC(flags)
  if (const Node *node = findNode(path))
    return openNode(*node, flags);
  REAL(openat64);
  return real(folder, path, flags, mode);
}
// The C library's headers turn open() into these when they check buffers.
EXPORT int __open_2(const char *path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char *path, int flags) {
  return open64(path, flags);
}
EXPORT FILE *fopen(const char *path, const char *mode) {
  if (const Node *node = findNode(path)) {
    int file = openNode(*node, O_CLOEXEC);
    return file < 0 ? nullptr : fdopen(file, mode);
  }
  REAL(fopen);
  return real(path, mode);
}
EXPORT FILE *fopen64(const char *path, const char *mode) {
  if (findNode(path))
    return fopen(path, mode);
  REAL(fopen64);
  return real(path, mode);
}
EXPORT int close(int file) {
  forget(file);
  REAL(close);
  return real(file);
}
EXPORT int dup(int file) noexcept {
  REAL(dup);
  int copy = real(file);
  if (copy >= 0)
    duplicate(file, copy);
  return copy;
}
EXPORT int dup2(int file, int to) noexcept {
  REAL(dup2);
  int copy = real(file, to);
  if (copy >= 0 && file != to)
    duplicate(file, copy);
  return copy;
}
EXPORT int dup3(int file, int to, int flags) noexcept {
  REAL(dup3);
  int copy = real(file, to, flags);
  if (copy >= 0)
    duplicate(file, copy);
  return copy;
}

#define FCNTL(name)                                                            \
  EXPORT int name(int file, int command, ...) {                                \
    va_list list;                                                              \
    va_start(list, command);                                                   \
    void *argument = va_arg(list, void *);                                     \
    va_end(list);                                                              \
    REAL_AS(name, int (*)(int, int, ...));                                     \
    int result = real(file, command, argument);                                \
    if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))     \
      duplicate(file, result);                                                 \
    return result;                                                             \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

//===----------------------------------------------------------------------===//
// Kinds of paths and files
//===----------------------------------------------------------------------===//

template <class Stat>
static int describe(Node::Kind kind, unsigned minor, uint64_t bytes, Stat &s) {
  s = {};
  s.st_nlink = 1;
  s.st_size = off_t(bytes);
  switch (kind) {
  case Node::Device:
    s.st_mode = S_IFCHR | 0666;
    s.st_rdev = makedev(DrmMajor, minor);
    break;
  case Node::Folder:
  case Node::Link: // each leads to a folder
    s.st_mode = S_IFDIR | 0755;
    break;
  case Node::File:
    s.st_mode = S_IFREG | 0444;
    break;
  }
  return 0;
}
template <class Stat> static int describe(const Node &node, Stat &s) {
  return describe(node.kind, node.minor, node.text.size(), s);
}

#define STAT(name, type)                                                       \
  EXPORT int name(const char *path, struct type *s) noexcept {                 \
    if (const Node *node = findNode(path))                                     \
      return describe(*node, *s);                                              \
    REAL_AS(name, int (*)(const char *, struct type *));                       \
    return real(path, s);                                                      \
  }
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define FSTAT(name, type)                                                      \
  EXPORT int name(int file, struct type *s) noexcept {                         \
    auto open = fileOf(file);                                                  \
    if (open && open->connection)                                              \
      return describe(Node::Device, open->minor, 0, *s);                       \
    REAL_AS(name, int (*)(int, struct type *));                                \
    return real(file, s);                                                      \
  }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, type)                                                    \
  EXPORT int name(int folder, const char *path, struct type *s,                \
                  int flags) noexcept {                                        \
    if (const Node *node = findNode(path))                                     \
      return describe(*node, *s);                                              \
    auto open = path && !*path ? fileOf(folder) : nullptr;                     \
    if (open && open->connection)                                              \
      return describe(Node::Device, open->minor, 0, *s);                       \
    REAL_AS(name, int (*)(int, const char *, struct type *, int));             \
    return real(folder, path, s, flags);                                       \
  }
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

EXPORT int access(const char *path, int mode) noexcept {
  if (findNode(path))
    return 0;
  REAL(access);
  return real(path, mode);
}
EXPORT ssize_t readlink(const char *path, char *to, size_t room) noexcept {
  if (const Node *node = findNode(path)) {
    if (node->kind != Node::Link)
      return fail(EINVAL);
    size_t bytes = std::min(room, node->text.size());
    std::memcpy(to, node->text.data(), bytes);
    return ssize_t(bytes);
  }
  REAL(readlink);
  return real(path, to, room);
}
EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t room,
                              size_t) noexcept {
  return readlink(path, to, room);
}
EXPORT char *realpath(const char *path, char *to) noexcept {
  if (findNode(path))
    return to ? std::strcpy(to, path) : strdup(path);
  REAL(realpath);
  return real(path, to);
}
EXPORT char *__realpath_chk(const char *path, char *to, size_t) noexcept {
  return realpath(path, to);
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

namespace {
struct Listing {
  const Node *node;
  size_t at = 0;
  dirent entry;
  dirent64 entry64;
};
} // namespace

static std::mutex listingsLock;
static std::set<void *> &listings() {
  static auto *all = new std::set<void *>;
  return *all;
}
static Listing *listingOf(DIR *folder) {
  std::lock_guard<std::mutex> locked(listingsLock);
  return listings().count(folder) ? reinterpret_cast<Listing *>(folder)
                                  : nullptr;
}

template <class Entry> static Entry *step(Listing &l, Entry &entry) {
  if (l.at >= l.node->names.size())
    return nullptr;
  const std::string &name = l.node->names[l.at++];
  entry = {};
  entry.d_ino = l.at;
  entry.d_reclen = sizeof(entry);
  entry.d_type = DT_UNKNOWN;
  std::memcpy(entry.d_name, name.c_str(), name.size() + 1);
  return &entry;
}

EXPORT DIR *opendir(const char *path) {
  if (const Node *node = findNode(path)) {
    if (node->kind != Node::Folder) {
      errno = ENOTDIR;
      return nullptr;
    }
    auto *listing = new Listing;
    listing->node = node;
    std::lock_guard<std::mutex> locked(listingsLock);
    listings().insert(listing);
    return reinterpret_cast<DIR *>(listing);
  }
  REAL(opendir);
  return real(path);
}
EXPORT dirent *readdir(DIR *folder) {
  if (Listing *l = listingOf(folder))
    return step(*l, l->entry);
  REAL(readdir);
  return real(folder);
}
EXPORT dirent64 *readdir64(DIR *folder) {
  if (Listing *l = listingOf(folder))
    return step(*l, l->entry64);
  REAL(readdir64);
  return real(folder);
}
EXPORT void rewinddir(DIR *folder) noexcept {
  if (Listing *l = listingOf(folder)) {
    l->at = 0;
    return;
  }
  REAL(rewinddir);
  real(folder);
}
EXPORT int closedir(DIR *folder) {
  if (Listing *l = listingOf(folder)) {
    std::lock_guard<std::mutex> locked(listingsLock);
    listings().erase(folder);
    delete l;
    return 0;
  }
  REAL(closedir);
  return real(folder);
}

//===----------------------------------------------------------------------===//
// Commands and memory
//===----------------------------------------------------------------------===//

/// SYNC_IOC_MERGE: a sync file that is done when both are.
static int merge(const SharedObject &first, sync_merge_data &data) {
  auto second = importObject(data.fd2);
  if (!first.fence || !second || !second->fence)
    return fail(EINVAL);
  SharedObject both;
  both.fence = std::make_shared<Fence>(
      std::vector<FencePtr>{first.fence, second->fence});
  data.fence = exportObject(std::move(both));
  return data.fence < 0 ? -1 : 0;
}

EXPORT int ioctl(int file, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void *argument = va_arg(list, void *);
  va_end(list);
  // Programs that pass an int extend its sign.
  request &= 0xffffffff;
  if (auto open = fileOf(file)) {
    if (open->connection && _IOC_TYPE(request) == 'd') {
      int error = open->connection->control(request, argument);
      return error ? fail(error) : 0;
    }
    if (open->shared && request == SYNC_IOC_MERGE)
      return merge(*open->shared, *static_cast<sync_merge_data *>(argument));
    return fail(ENOTTY);
  }
  REAL_AS(ioctl, int (*)(int, unsigned long, ...));
  return real(file, request, argument);
}

/// The memory file and the offset in it that a mapping of the device file is.
static std::shared_ptr<Buffer> mapped(int file, off64_t &offset) {
  auto open = file < 0 ? nullptr : fileOf(file);
  if (!open || !open->connection)
    return nullptr;
  Connection &c = *open->connection;
  std::lock_guard<std::mutex> locked(c.lock);
  auto buffer = c.buffers.find(uint32_t(uint64_t(offset) >> 40));
  offset &= (off64_t(1) << 40) - 1;
  return buffer;
}

#define MMAP(name, type)                                                       \
  EXPORT void *name(void *at, size_t bytes, int protection, int flags,         \
                    int file, type offset) noexcept {                          \
    REAL_AS(name, void *(*)(void *, size_t, int, int, int, type));             \
    off64_t inside = offset;                                                   \
    if (auto buffer = mapped(file, inside))                                    \
      return real(at, bytes, protection, flags, buffer->file, inside);         \
    return real(at, bytes, protection, flags, file, offset);                   \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
