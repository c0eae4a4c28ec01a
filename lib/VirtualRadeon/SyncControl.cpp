//===- SyncControl.cpp - the ioctls of synchronization objects ------------===//
#include "Radeon.h"
#include "llvm/ADT/ArrayRef.h"
#include <cerrno>
#include <drm.h>
#include <fcntl.h>

using namespace greta::radeon;

static int create(Connection &c, drm_syncobj_create &create) {
  auto object = std::make_shared<SyncObject>();
  if (create.flags & DRM_SYNCOBJ_CREATE_SIGNALED)
    object->set(0, std::make_shared<Fence>(true));
  std::lock_guard<std::mutex> locked(c.lock);
  create.handle = c.objects.add(std::move(object));
  return 0;
}

static SyncObjectPtr find(Connection &c, uint32_t handle) {
  std::lock_guard<std::mutex> locked(c.lock);
  return c.objects.find(handle);
}

static int toFile(Connection &c, drm_syncobj_handle &h) {
  SyncObjectPtr object = find(c, h.handle);
  if (!object)
    return ENOENT;
  SharedObject shared;
  if (h.flags & DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE) {
    // A structure of Linux 6.14 and later names a point behind the padding.
    shared.fence = object->fence(0);
    if (!shared.fence)
      return EINVAL;
  } else {
    shared.object = object;
  }
  h.fd = exportObject(std::move(shared));
  return h.fd < 0 ? EMFILE : 0;
}

static int fromFile(Connection &c, drm_syncobj_handle &h) {
  std::shared_ptr<SharedObject> shared = importObject(h.fd);
  bool isFence = h.flags & DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
  if (!shared || (isFence ? !shared->fence : !shared->object))
    return EINVAL;
  if (isFence) {
    SyncObjectPtr object = find(c, h.handle);
    if (!object)
      return ENOENT;
    object->set(0, shared->fence);
    return 0;
  }
  std::lock_guard<std::mutex> locked(c.lock);
  h.handle = c.objects.add(shared->object);
  return 0;
}

/// The objects of an array of handles; an error number or 0.
static int findAll(Connection &c, uint64_t handles, uint32_t count,
                   std::vector<SyncObjectPtr> &objects) {
  auto *list = reinterpret_cast<const uint32_t *>(handles);
  std::lock_guard<std::mutex> locked(c.lock);
  for (uint32_t k = 0; k < count; ++k) {
    objects.push_back(c.objects.find(list[k]));
    if (!objects.back())
      return ENOENT;
  }
  return 0;
}

static int waitFor(Connection &c, uint64_t handles, uint64_t points,
                   uint32_t count, uint32_t flags, int64_t deadline,
                   uint32_t &first) {
  std::vector<SyncObjectPtr> objects;
  if (int error = findAll(c, handles, count, objects))
    return error;
  std::vector<SyncWait> what;
  auto *at = reinterpret_cast<const uint64_t *>(points);
  for (uint32_t k = 0; k < count; ++k)
    what.push_back({objects[k], points ? at[k] : 0});
  SyncWaitOptions options;
  options.all = flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL;
  options.submitted = flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
  options.available = flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
  int64_t result = greta::radeon::wait(what, options, deadline);
  if (result < 0)
    return int(-result);
  first = uint32_t(result);
  return 0;
}

static int signal(Connection &c, uint64_t handles, uint64_t points,
                  uint32_t count) {
  std::vector<SyncObjectPtr> objects;
  if (int error = findAll(c, handles, count, objects))
    return error;
  auto *at = reinterpret_cast<const uint64_t *>(points);
  for (uint32_t k = 0; k < count; ++k)
    objects[k]->set(points ? at[k] : 0, std::make_shared<Fence>(true));
  return 0;
}

static int queryPoints(Connection &c, const drm_syncobj_timeline_array &a) {
  std::vector<SyncObjectPtr> objects;
  if (int error = findAll(c, a.handles, a.count_handles, objects))
    return error;
  auto *points = reinterpret_cast<uint64_t *>(a.points);
  for (uint32_t k = 0; k < a.count_handles; ++k)
    points[k] =
        objects[k]->value(a.flags & DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED);
  return 0;
}

static int transfer(Connection &c, const drm_syncobj_transfer &t) {
  SyncObjectPtr from = find(c, t.src_handle), to = find(c, t.dst_handle);
  if (!from || !to)
    return ENOENT;
  if (t.flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT) {
    SyncWaitOptions options;
    options.available = true;
    greta::radeon::wait({{from, t.src_point}}, options, INT64_MAX);
  }
  FencePtr fence = from->fence(t.src_point);
  if (!fence)
    return EINVAL;
  to->set(t.dst_point, std::move(fence));
  return 0;
}

int greta::radeon::controlSync(Connection &c, unsigned number, void *argument) {
  switch (number) {
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_CREATE):
    return create(c, *static_cast<drm_syncobj_create *>(argument));
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_DESTROY): {
    std::lock_guard<std::mutex> locked(c.lock);
    uint32_t handle = static_cast<drm_syncobj_destroy *>(argument)->handle;
    return c.objects.remove(handle) ? 0 : EINVAL;
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD):
    return toFile(c, *static_cast<drm_syncobj_handle *>(argument));
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE):
    return fromFile(c, *static_cast<drm_syncobj_handle *>(argument));
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT): {
    auto &w = *static_cast<drm_syncobj_wait *>(argument);
    return waitFor(c, w.handles, 0, w.count_handles, w.flags, w.timeout_nsec,
                   w.first_signaled);
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT): {
    auto &w = *static_cast<drm_syncobj_timeline_wait *>(argument);
    return waitFor(c, w.handles, w.points, w.count_handles, w.flags,
                   w.timeout_nsec, w.first_signaled);
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET): {
    auto &a = *static_cast<drm_syncobj_array *>(argument);
    std::vector<SyncObjectPtr> objects;
    if (int error = findAll(c, a.handles, a.count_handles, objects))
      return error;
    for (const SyncObjectPtr &object : objects)
      object->reset();
    return 0;
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL): {
    auto &a = *static_cast<drm_syncobj_array *>(argument);
    return signal(c, a.handles, 0, a.count_handles);
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL): {
    auto &a = *static_cast<drm_syncobj_timeline_array *>(argument);
    return signal(c, a.handles, a.points, a.count_handles);
  }
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY):
    return queryPoints(c, *static_cast<drm_syncobj_timeline_array *>(argument));
  case _IOC_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
    return transfer(c, *static_cast<drm_syncobj_transfer *>(argument));
  }
  return -ENOTTY;
}
