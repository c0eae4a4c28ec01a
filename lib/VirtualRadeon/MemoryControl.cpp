//===- MemoryControl.cpp - the ioctls of buffers --------------------------===//
//
// Creating, mapping, naming and sharing buffers, and giving them addresses.
//
//===----------------------------------------------------------------------===//
#include "Radeon.h"
#include <amdgpu_drm.h>
#include <cerrno>
#include <climits>
#include <fcntl.h>

using namespace greta::radeon;

static uint64_t pages(uint64_t bytes) {
  return (bytes + PageBytes - 1) / PageBytes * PageBytes;
}

/// Counts the buffer's memory; false when the card has no more.
static bool count(Buffer &b) {
  bool inVram = b.domains & AMDGPU_GEM_DOMAIN_VRAM;
  Machine &m = *b.machine;
  uint64_t limit = inVram ? m.chip().vramBytes : m.gttBytes();
  std::atomic<uint64_t> &used = inVram ? m.usedVram : m.usedGtt;
  b.isCounted = true;
  return (used += b.bytes) <= limit;
}

static int create(Connection &c, union drm_amdgpu_gem_create &create) {
  auto in = create.in;
  if (!in.bo_size || in.bo_size > uint64_t(1) << 40)
    return EINVAL;
  auto buffer = makeBuffer(c.machine, pages(in.bo_size));
  if (!buffer)
    return ENOMEM;
  buffer->alignment = in.alignment;
  buffer->domains = uint32_t(in.domains);
  buffer->flags = in.domain_flags;
  if (!count(*buffer)) {
    // Drivers that allow both get system memory when video memory is full.
    if (!(buffer->domains & AMDGPU_GEM_DOMAIN_GTT) ||
        !(buffer->domains & AMDGPU_GEM_DOMAIN_VRAM))
      return ENOMEM;
    c.machine.usedVram -= buffer->bytes;
    buffer->isCounted = false;
    buffer->domains &= ~uint32_t(AMDGPU_GEM_DOMAIN_VRAM);
    if (!count(*buffer))
      return ENOMEM;
  }
  std::lock_guard<std::mutex> locked(c.lock);
  create = {};
  create.out.handle = c.buffers.add(std::move(buffer));
  return 0;
}

static int adopt(Connection &c, drm_amdgpu_gem_userptr &user) {
  if (user.addr % PageBytes || !user.size || user.size % PageBytes)
    return EINVAL;
  auto buffer = adoptMemory(c.machine, user.addr, user.size);
  if (!buffer)
    return EFAULT;
  buffer->domains = AMDGPU_GEM_DOMAIN_GTT;
  std::lock_guard<std::mutex> locked(c.lock);
  user.handle = c.buffers.add(std::move(buffer));
  return 0;
}

static int place(Connection &c, const drm_amdgpu_gem_va &va) {
  std::lock_guard<std::mutex> locked(c.lock);
  std::shared_ptr<Buffer> buffer;
  if (va.handle && !(buffer = c.buffers.find(va.handle)))
    return ENOENT;
  uint64_t bytes = pages(va.map_size);
  switch (va.operation) {
  case AMDGPU_VA_OP_MAP:
  case AMDGPU_VA_OP_REPLACE: {
    bool isReserved = va.flags & AMDGPU_VM_PAGE_PRT;
    if (!buffer && !isReserved)
      return EINVAL;
    int error =
        c.space.map(va.va_address, bytes, isReserved ? nullptr : buffer,
                    va.offset_in_bo, va.operation == AMDGPU_VA_OP_REPLACE);
    if (error)
      say("no memory can be at address 0x" +
          llvm::Twine::utohexstr(va.va_address) + ", " + llvm::Twine(bytes) +
          " bytes");
    return error;
  }
  case AMDGPU_VA_OP_UNMAP:
    return c.space.unmap(va.va_address, bytes);
  case AMDGPU_VA_OP_CLEAR:
    c.space.unmap(va.va_address, bytes);
    return 0;
  }
  return EINVAL;
}

static int describe(Connection &c, drm_amdgpu_gem_metadata &m) {
  std::lock_guard<std::mutex> locked(c.lock);
  auto buffer = c.buffers.find(m.handle);
  if (!buffer)
    return ENOENT;
  if (m.op == AMDGPU_GEM_METADATA_OP_SET_METADATA) {
    if (m.data.data_size_bytes > sizeof(m.data.data))
      return EINVAL;
    buffer->tiling = m.data.tiling_info;
    buffer->metadataFlags = m.data.flags;
    buffer->metadata.assign(m.data.data,
                            m.data.data + (m.data.data_size_bytes + 3) / 4);
    return 0;
  }
  m.data.tiling_info = buffer->tiling;
  m.data.flags = buffer->metadataFlags;
  m.data.data_size_bytes = uint32_t(buffer->metadata.size() * 4);
  llvm::copy(buffer->metadata, m.data.data);
  return 0;
}

static int query(Connection &c, drm_amdgpu_gem_op &op) {
  std::lock_guard<std::mutex> locked(c.lock);
  auto buffer = c.buffers.find(op.handle);
  if (!buffer)
    return ENOENT;
  if (op.op == AMDGPU_GEM_OP_SET_PLACEMENT) {
    buffer->domains = uint32_t(op.value);
    return 0;
  }
  drm_amdgpu_gem_create_in info = {};
  info.bo_size = buffer->bytes;
  info.alignment = buffer->alignment;
  info.domains = buffer->domains;
  info.domain_flags = buffer->flags;
  *reinterpret_cast<drm_amdgpu_gem_create_in *>(op.value) = info;
  return 0;
}

static int waitIdle(Connection &c, union drm_amdgpu_gem_wait_idle &wait) {
  int64_t deadline = int64_t(std::min<uint64_t>(wait.in.timeout, INT64_MAX));
  wait = {};
  wait.out.status = !c.machine.waitIdle(deadline);
  return 0;
}

static int exportBuffer(Connection &c, drm_prime_handle &prime) {
  std::lock_guard<std::mutex> locked(c.lock);
  auto buffer = c.buffers.find(prime.handle);
  if (!buffer)
    return ENOENT;
  prime.fd = fcntl(buffer->file,
                   prime.flags & DRM_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  return prime.fd < 0 ? errno : 0;
}

static int importBuffer(Connection &c, drm_prime_handle &prime) {
  auto buffer = openBuffer(c.machine, prime.fd);
  if (!buffer)
    return EINVAL;
  std::lock_guard<std::mutex> locked(c.lock);
  for (const auto &[handle, other] : c.buffers.entries())
    if (other->inode == buffer->inode) {
      prime.handle = handle;
      return 0;
    }
  buffer->domains = AMDGPU_GEM_DOMAIN_GTT;
  prime.handle = c.buffers.add(std::move(buffer));
  return 0;
}

int greta::radeon::controlMemory(Connection &c, unsigned number,
                                 void *argument) {
  switch (number) {
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE:
    return create(c, *static_cast<drm_amdgpu_gem_create *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_USERPTR:
    return adopt(c, *static_cast<drm_amdgpu_gem_userptr *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP: {
    auto &map = *static_cast<drm_amdgpu_gem_mmap *>(argument);
    uint32_t handle = map.in.handle;
    std::lock_guard<std::mutex> locked(c.lock);
    if (!c.buffers.find(handle))
      return ENOENT;
    map = {};
    map.out.addr_ptr = mapOffset(handle);
    return 0;
  }
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA:
    return place(c, *static_cast<drm_amdgpu_gem_va *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_METADATA:
    return describe(c, *static_cast<drm_amdgpu_gem_metadata *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP:
    return query(c, *static_cast<drm_amdgpu_gem_op *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_WAIT_IDLE:
    return waitIdle(c, *static_cast<drm_amdgpu_gem_wait_idle *>(argument));
  case _IOC_NR(DRM_IOCTL_GEM_CLOSE): {
    std::lock_guard<std::mutex> locked(c.lock);
    uint32_t handle = static_cast<drm_gem_close *>(argument)->handle;
    return c.buffers.remove(handle) ? 0 : EINVAL;
  }
  case _IOC_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD):
    return exportBuffer(c, *static_cast<drm_prime_handle *>(argument));
  case _IOC_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE):
    return importBuffer(c, *static_cast<drm_prime_handle *>(argument));
  }
  return -ENOTTY;
}
