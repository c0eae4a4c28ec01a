//===- Queue.cpp - contexts and submissions -------------------------------===//
//
// The ioctls of contexts, of lists of buffers, of submissions (DRM_AMDGPU_CS)
// and of waiting for them.
//
//===----------------------------------------------------------------------===//
#include "CommandProcessor.h"
#include "Radeon.h"
#include <amdgpu_drm.h>
#include <cerrno>
#include <climits>
#include <ctime>

using namespace greta::radeon;

static int controlContext(Connection &c, union drm_amdgpu_ctx &ctx) {
  auto in = ctx.in;
  std::lock_guard<std::mutex> locked(c.lock);
  std::shared_ptr<Context> context = c.contexts.find(in.ctx_id);
  if (in.op != AMDGPU_CTX_OP_ALLOC_CTX && !context)
    return EINVAL;
  ctx = {};
  switch (in.op) {
  case AMDGPU_CTX_OP_ALLOC_CTX:
    ctx.out.alloc.ctx_id = c.contexts.add(std::make_shared<Context>());
    return 0;
  case AMDGPU_CTX_OP_FREE_CTX:
    c.contexts.remove(in.ctx_id);
    return 0;
  case AMDGPU_CTX_OP_QUERY_STATE:
    ctx.out.state.reset_status =
        context->lost ? AMDGPU_CTX_GUILTY_RESET : AMDGPU_CTX_NO_RESET;
    return 0;
  case AMDGPU_CTX_OP_QUERY_STATE2:
    if (context->lost)
      ctx.out.state.flags =
          AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
    return 0;
  case AMDGPU_CTX_OP_GET_STABLE_PSTATE:
  case AMDGPU_CTX_OP_SET_STABLE_PSTATE: // the clock never changes
    return 0;
  }
  return EINVAL;
}

static int controlList(Connection &c, union drm_amdgpu_bo_list &list) {
  auto in = list.in;
  std::lock_guard<std::mutex> locked(c.lock);
  if (in.operation == AMDGPU_BO_LIST_OP_DESTROY)
    return c.lists.remove(in.list_handle) ? 0 : ENOENT;
  if (in.operation != AMDGPU_BO_LIST_OP_CREATE)
    return EINVAL;
  list = {};
  list.out.list_handle = c.lists.add(std::make_shared<std::vector<uint32_t>>());
  return 0;
}

namespace {
/// The chunks of a submission.
class Reader {
public:
  Reader(Connection &c, const drm_amdgpu_cs_in &in) : c(c), in(in) {}
  int read();
  Submission result;
  uint32_t engine = ~0u, ring = 0;
  struct Signal {
    SyncObjectPtr object;
    uint64_t point;
  };
  std::vector<Signal> signals;

private:
  int chunk(const drm_amdgpu_cs_chunk &chunk);
  int waitFor(uint32_t handle, uint64_t point);
  int signalAt(uint32_t handle, uint64_t point);
  int depend(const drm_amdgpu_cs_chunk_dep &dependency);
  template <class T> llvm::ArrayRef<T> entries(const drm_amdgpu_cs_chunk &k) {
    return {reinterpret_cast<const T *>(k.chunk_data),
            size_t(k.length_dw) * 4 / sizeof(T)};
  }
  Connection &c;
  const drm_amdgpu_cs_in &in;
};
} // namespace

int Reader::waitFor(uint32_t handle, uint64_t point) {
  SyncObjectPtr object = c.objects.find(handle);
  if (!object)
    return ENOENT;
  FencePtr fence = object->fence(point);
  if (!fence) // of a point that was reached and forgotten, or nobody's
    return point && object->value(true) >= point ? 0 : EINVAL;
  result.waits.push_back(std::move(fence));
  return 0;
}

int Reader::signalAt(uint32_t handle, uint64_t point) {
  SyncObjectPtr object = c.objects.find(handle);
  if (!object)
    return ENOENT;
  signals.push_back({std::move(object), point});
  return 0;
}

int Reader::depend(const drm_amdgpu_cs_chunk_dep &d) {
  auto context = c.contexts.find(d.ctx_id);
  if (!context)
    return EINVAL;
  Context::Ring &from = context->rings[{d.ip_type, d.ring}];
  auto fence = from.fences.find(d.handle);
  if (fence != from.fences.end())
    result.waits.push_back(fence->second);
  return 0;
}

int Reader::chunk(const drm_amdgpu_cs_chunk &k) {
  switch (k.chunk_id) {
  case AMDGPU_CHUNK_ID_IB:
    for (const auto &ib : entries<drm_amdgpu_cs_chunk_ib>(k)) {
      if (ib.ip_type != AMDGPU_HW_IP_GFX &&
          ib.ip_type != AMDGPU_HW_IP_COMPUTE) {
        say("a submission to an engine that is neither graphics nor compute");
        return EINVAL;
      }
      engine = ib.ip_type;
      ring = ib.ring;
      result.buffers.push_back({ib.va_start, ib.ib_bytes / 4});
    }
    return 0;
  case AMDGPU_CHUNK_ID_FENCE:
    for (const auto &fence : entries<drm_amdgpu_cs_chunk_fence>(k)) {
      result.fenceBuffer = c.buffers.find(fence.handle);
      result.fenceOffset = fence.offset;
      if (!result.fenceBuffer ||
          fence.offset + 8ull > result.fenceBuffer->bytes)
        return EINVAL;
    }
    return 0;
  case AMDGPU_CHUNK_ID_DEPENDENCIES:
  case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
    for (const auto &d : entries<drm_amdgpu_cs_chunk_dep>(k))
      if (int error = depend(d))
        return error;
    return 0;
  case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
    for (const auto &s : entries<drm_amdgpu_cs_chunk_sem>(k))
      if (int error = waitFor(s.handle, 0))
        return error;
    return 0;
  case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
    for (const auto &s : entries<drm_amdgpu_cs_chunk_sem>(k))
      if (int error = signalAt(s.handle, 0))
        return error;
    return 0;
  case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
    for (const auto &s : entries<drm_amdgpu_cs_chunk_syncobj>(k))
      if (int error = waitFor(s.handle, s.point))
        return error;
    return 0;
  case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
    for (const auto &s : entries<drm_amdgpu_cs_chunk_syncobj>(k))
      if (int error = signalAt(s.handle, s.point))
        return error;
    return 0;
  case AMDGPU_CHUNK_ID_BO_HANDLES: {
    // All that has an address stays where it is: only the handles are checked.
    auto lists = entries<drm_amdgpu_bo_list_in>(k);
    for (const auto &list : lists) {
      auto *entry =
          reinterpret_cast<const drm_amdgpu_bo_list_entry *>(list.bo_info_ptr);
      for (uint32_t i = 0; i < list.bo_number; ++i)
        if (!c.buffers.find(entry[i].bo_handle))
          return ENOENT;
    }
    return 0;
  }
  case 0x0a: // AMDGPU_CHUNK_ID_CP_GFX_SHADOW: nothing preempts
    return 0;
  }
  say("unknown chunk " + llvm::Twine(k.chunk_id) + " in a submission");
  return EINVAL;
}

int Reader::read() {
  auto *chunks = reinterpret_cast<const uint64_t *>(in.chunks);
  for (uint32_t k = 0; k < in.num_chunks; ++k)
    if (int error =
            chunk(*reinterpret_cast<const drm_amdgpu_cs_chunk *>(chunks[k])))
      return error;
  return result.buffers.empty() ? EINVAL : 0;
}

static int submit(Connection &c, union drm_amdgpu_cs &cs) {
  std::lock_guard<std::mutex> locked(c.lock);
  auto context = c.contexts.find(cs.in.ctx_id);
  if (!context)
    return EINVAL;
  if (context->lost)
    return ENODATA; // it is guilty itself; ECANCELED would be innocent
  Reader reader(c, cs.in);
  if (int error = reader.read())
    return error;
  Submission &s = reader.result;
  Context::Ring &ring = context->rings[{reader.engine, reader.ring}];
  if (!ring.processor)
    ring.processor = std::make_shared<CommandProcessor>(c.machine);
  s.context = context;
  s.processor = ring.processor;
  s.done = std::make_shared<Fence>();
  s.number = ++ring.submitted;
  for (auto at = ring.fences.begin(); at != ring.fences.end();)
    at = at->second->isSignaled() ? ring.fences.erase(at) : std::next(at);
  ring.fences[s.number] = s.done;
  for (auto &signal : reader.signals)
    signal.object->set(signal.point, s.done);
  cs = {};
  cs.out.handle = s.number;
  c.machine.submit(std::move(s));
  return 0;
}

/// Null when the submission is done.
static FencePtr fenceOf(Connection &c, uint32_t contextId, uint32_t engine,
                        uint32_t ring, uint64_t number, int &error) {
  std::lock_guard<std::mutex> locked(c.lock);
  auto context = c.contexts.find(contextId);
  if (!context) {
    error = EINVAL;
    return nullptr;
  }
  Context::Ring &r = context->rings[{engine, ring}];
  if (number == ~0ull)
    number = r.submitted;
  auto at = r.fences.find(number);
  return at == r.fences.end() ? nullptr : at->second;
}

static int waitSubmission(Connection &c, union drm_amdgpu_wait_cs &wait) {
  auto in = wait.in;
  int error = 0;
  FencePtr fence = fenceOf(c, in.ctx_id, in.ip_type, in.ring, in.handle, error);
  if (error)
    return error;
  wait = {};
  int64_t deadline = int64_t(std::min<uint64_t>(in.timeout, INT64_MAX));
  wait.out.status = fence && !fence->wait(deadline);
  return 0;
}

static int waitFences(Connection &c, union drm_amdgpu_wait_fences &wait) {
  auto in = wait.in;
  auto *fences = reinterpret_cast<const drm_amdgpu_fence *>(in.fences);
  int64_t deadline = int64_t(std::min<uint64_t>(in.timeout_ns, INT64_MAX));
  std::vector<SyncWait> what;
  for (uint32_t k = 0; k < in.fence_count; ++k) {
    int error = 0;
    FencePtr fence = fenceOf(c, fences[k].ctx_id, fences[k].ip_type,
                             fences[k].ring, fences[k].seq_no, error);
    if (error)
      return error;
    auto object = std::make_shared<SyncObject>();
    object->set(0, fence ? fence : std::make_shared<Fence>(true));
    what.push_back({object, 0});
  }
  SyncWaitOptions options;
  options.all = in.wait_all;
  int64_t first = greta::radeon::wait(what, options, deadline);
  wait = {};
  wait.out.status = first >= 0;
  wait.out.first_signaled = first >= 0 ? uint32_t(first) : 0;
  return first >= 0 || first == -ETIME ? 0 : int(-first);
}

static int fenceToHandle(Connection &c, union drm_amdgpu_fence_to_handle &f) {
  int error = 0;
  const drm_amdgpu_fence &in = f.in.fence;
  FencePtr fence = fenceOf(c, in.ctx_id, in.ip_type, in.ring, in.seq_no, error);
  if (error)
    return error;
  if (!fence)
    fence = std::make_shared<Fence>(true);
  uint32_t what = f.in.what;
  f = {};
  if (what == AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD) {
    f.out.handle = uint32_t(exportObject({nullptr, fence}));
    return 0;
  }
  auto object = std::make_shared<SyncObject>();
  object->set(0, fence);
  if (what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD) {
    f.out.handle = uint32_t(exportObject({object, nullptr}));
    return 0;
  }
  std::lock_guard<std::mutex> locked(c.lock);
  f.out.handle = c.objects.add(object);
  return 0;
}

int greta::radeon::controlQueue(Connection &c, unsigned number,
                                void *argument) {
  switch (number) {
  case DRM_COMMAND_BASE + DRM_AMDGPU_CTX:
    return controlContext(c, *static_cast<drm_amdgpu_ctx *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_BO_LIST:
    return controlList(c, *static_cast<drm_amdgpu_bo_list *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_CS:
    return submit(c, *static_cast<drm_amdgpu_cs *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_WAIT_CS:
    return waitSubmission(c, *static_cast<drm_amdgpu_wait_cs *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_WAIT_FENCES:
    return waitFences(c, *static_cast<drm_amdgpu_wait_fences *>(argument));
  case DRM_COMMAND_BASE + DRM_AMDGPU_FENCE_TO_HANDLE:
    return fenceToHandle(c,
                         *static_cast<drm_amdgpu_fence_to_handle *>(argument));
  case DRM_COMMAND_BASE +
      DRM_AMDGPU_VM: // reserves or releases a number of the hardware
  case DRM_COMMAND_BASE + DRM_AMDGPU_SCHED:
    return 0;
  }
  return -ENOTTY;
}
