//===- Connection.cpp - open files of the virtual card --------------------===//
//
// Numbers of open files and what they stand for, and the way from an ioctl to
// the group that knows it.
//
//===----------------------------------------------------------------------===//
#include "Connection.h"
#include <amdgpu_drm.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <set>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace greta::radeon;

static constexpr int MostFiles = 1 << 16;
static std::atomic<bool> isOurs[MostFiles];
static std::mutex filesLock;
static std::map<int, std::shared_ptr<OpenFile>> &files() {
  static auto *all = new std::map<int, std::shared_ptr<OpenFile>>;
  return *all;
}

std::shared_ptr<OpenFile> greta::radeon::fileOf(int file) {
  if (file < 0 || file >= MostFiles || !isOurs[file])
    return nullptr;
  std::lock_guard<std::mutex> locked(filesLock);
  auto at = files().find(file);
  return at == files().end() ? nullptr : at->second;
}

int greta::radeon::remember(int file, std::shared_ptr<OpenFile> what) {
  if (file < 0)
    return file;
  if (file >= MostFiles) {
    close(file);
    errno = EMFILE;
    return -1;
  }
  std::lock_guard<std::mutex> locked(filesLock);
  files()[file] = std::move(what);
  isOurs[file] = true;
  return file;
}

void greta::radeon::forget(int file) {
  if (file < 0 || file >= MostFiles || !isOurs[file])
    return;
  std::shared_ptr<OpenFile> last; // dies without the lock
  std::lock_guard<std::mutex> locked(filesLock);
  isOurs[file] = false;
  auto at = files().find(file);
  if (at == files().end())
    return;
  last = std::move(at->second);
  files().erase(at);
}

void greta::radeon::duplicate(int file, int copy) {
  if (auto what = fileOf(file))
    remember(copy, what);
  else
    forget(copy); // dup2 closes what it replaces
}

int greta::radeon::connect(unsigned minor, int flags) {
  int file = open("/dev/null", O_RDWR | (flags & O_CLOEXEC));
  if (file < 0)
    return file;
  auto open = std::make_shared<OpenFile>();
  open->connection = std::make_shared<Connection>(*Machine::get());
  open->minor = minor;
  return remember(file, std::move(open));
}

int greta::radeon::exportObject(SharedObject object) {
  auto open = std::make_shared<OpenFile>();
  open->shared = std::make_shared<SharedObject>(std::move(object));
  return remember(eventfd(0, EFD_CLOEXEC), std::move(open));
}

std::shared_ptr<SharedObject> greta::radeon::importObject(int file) {
  auto open = fileOf(file);
  return open ? open->shared : nullptr;
}

uint64_t greta::radeon::mapOffset(uint32_t handle) {
  return uint64_t(handle) << 40;
}

Connection::Connection(Machine &machine)
    : machine(machine), space(machine.device()) {}

Connection::~Connection() {
  machine.waitIdle(INT64_MAX); // what was submitted uses the addresses
}

int Connection::control(unsigned long request, void *argument) {
  alignas(16) uint8_t room[1024] = {};
  unsigned number = _IOC_NR(request), size = _IOC_SIZE(request);
  if (size > sizeof(room) / 2)
    return EINVAL;
  std::memcpy(room, argument, size);
  int error = -ENOTTY;
  for (auto *group : {controlQueue, controlMemory, controlSync, controlInfo})
    if ((error = group(*this, number, room)) != -ENOTTY)
      break;
  if (error == -ENOTTY) {
    static std::mutex lock;
    static auto *named = new std::set<unsigned>;
    std::lock_guard<std::mutex> locked(lock);
    if (named->insert(number).second)
      say("ioctl number 0x" + llvm::Twine::utohexstr(number) +
          " is not simulated");
    return ENOTTY;
  }
  if (_IOC_DIR(request) & _IOC_READ)
    std::memcpy(argument, room, size);
  if (error && machine.isTraced())
    say("ioctl number 0x" + llvm::Twine::utohexstr(number) + ": " +
        std::strerror(error));
  return error;
}
