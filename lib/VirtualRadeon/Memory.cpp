//===- Memory.cpp - buffers and their addresses ---------------------------===//
#include "Memory.h"
#include "Radeon.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace greta::radeon;

// Far from where Linux puts programs, their heaps and their libraries, and from
// what sanitizers reserve; below 2^47, which the process has. Each connection
// gets 256 GiB.
static constexpr uint64_t FirstWindow = 0x300000000000;
static constexpr uint64_t WindowBytes = uint64_t(1) << 38;
static constexpr unsigned WindowCount = 64;

static std::shared_ptr<Buffer> bufferOf(Machine &machine, int file,
                                        uint64_t bytes) {
  struct stat status;
  if (file < 0 || fstat(file, &status)) {
    if (file >= 0)
      close(file);
    return nullptr;
  }
  auto buffer = std::make_shared<Buffer>();
  buffer->machine = &machine;
  buffer->file = file;
  buffer->bytes = bytes;
  buffer->inode = status.st_ino;
  return buffer;
}

std::shared_ptr<Buffer> greta::radeon::makeBuffer(Machine &machine,
                                                  uint64_t bytes) {
  int file = memfd_create("virtual-radeon", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, off_t(bytes))) {
    close(file);
    return nullptr;
  }
  return bufferOf(machine, file, bytes);
}

std::shared_ptr<Buffer> greta::radeon::openBuffer(Machine &machine, int file) {
  struct stat status;
  // Memory files are regular ones that nothing links to.
  if (fstat(file, &status) || !S_ISREG(status.st_mode) || !status.st_size)
    return nullptr;
  return bufferOf(machine, fcntl(file, F_DUPFD_CLOEXEC, 0),
                  uint64_t(status.st_size));
}

std::shared_ptr<Buffer>
greta::radeon::adoptMemory(Machine &machine, uint64_t address, uint64_t bytes) {
  auto buffer = makeBuffer(machine, bytes);
  if (!buffer)
    return nullptr;
  void *program = reinterpret_cast<void *>(address);
  uint64_t written = 0;
  while (written < bytes) {
    ssize_t now = pwrite(buffer->file, static_cast<char *>(program) + written,
                         bytes - written, off_t(written));
    if (now <= 0)
      return nullptr;
    written += uint64_t(now);
  }
  // Private pages cannot be mapped twice: the program gets shared ones with the
  // same contents at the same place.
  if (mmap(program, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           buffer->file, 0) == MAP_FAILED)
    return nullptr;
  return buffer;
}

Buffer::~Buffer() {
  if (isCounted)
    (domains & 4 ? machine->usedVram : machine->usedGtt) -= bytes;
  if (file >= 0)
    close(file);
}

static std::mutex windowLock;
static bool usedWindows[WindowCount];

AddressSpace::AddressSpace(sim::Device &device) : device(device) {
  std::lock_guard<std::mutex> locked(windowLock);
  while (window < WindowCount && usedWindows[window])
    ++window;
  if (window == WindowCount) // map() refuses
    return;
  usedWindows[window] = true;
  base = FirstWindow + window * WindowBytes;
}

AddressSpace::~AddressSpace() {
  if (!base)
    return;
  unmap(base, WindowBytes);
  std::lock_guard<std::mutex> locked(windowLock);
  usedWindows[window] = false;
}

uint64_t AddressSpace::end() const { return base ? base + WindowBytes : 0; }

int AddressSpace::place(uint64_t address, Mapping mapping) {
  if (mapping.buffer) {
    void *at = reinterpret_cast<void *>(address);
    if (mmap(at, mapping.bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED_NOREPLACE, mapping.buffer->file,
             off_t(mapping.offset)) != at)
      return ENOMEM;
    if (llvm::Error e = device.registerHost(at, mapping.bytes)) {
      llvm::consumeError(std::move(e));
      munmap(at, mapping.bytes);
      return EINVAL;
    }
  }
  mappings[address] = std::move(mapping);
  return 0;
}

void AddressSpace::drop(uint64_t address, const Mapping &mapping) {
  if (!mapping.buffer)
    return;
  void *at = reinterpret_cast<void *>(address);
  // Waits for a running kernel, which holds the simulator's lock.
  llvm::consumeError(device.unregisterHost(at));
  munmap(at, mapping.bytes);
}

int AddressSpace::map(uint64_t address, uint64_t bytes,
                      std::shared_ptr<Buffer> buffer, uint64_t offset,
                      bool isReplacing) {
  if (!bytes || (address | bytes | offset) % PageBytes || address < begin() ||
      bytes > WindowBytes || address > end() - bytes)
    return EINVAL;
  if (buffer && (offset > buffer->bytes || bytes > buffer->bytes - offset))
    return EINVAL;
  if (isReplacing)
    unmap(address, bytes);
  auto above = mappings.lower_bound(address);
  if (above != mappings.end() && above->first < address + bytes)
    return EINVAL;
  if (above != mappings.begin() &&
      std::prev(above)->first + std::prev(above)->second.bytes > address)
    return EINVAL;
  return place(address, {bytes, offset, std::move(buffer)});
}

int AddressSpace::unmap(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  bool found = false;
  while (true) {
    auto at = mappings.lower_bound(address);
    if (at != mappings.begin() &&
        std::prev(at)->first + std::prev(at)->second.bytes > address)
      --at;
    if (at == mappings.end() || at->first >= end)
      return found ? 0 : ENOENT;
    found = true;
    uint64_t from = at->first;
    Mapping mapping = std::move(at->second);
    mappings.erase(at);
    drop(from, mapping);
    // The parts on either side of the hole stay.
    if (from < address)
      place(from, {address - from, mapping.offset, mapping.buffer});
    if (from + mapping.bytes > end)
      place(end, {from + mapping.bytes - end, mapping.offset + (end - from),
                  mapping.buffer});
  }
}
