//===- SyncTest.cpp - fences and synchronization objects ------------------===//
//
// In: ioctls of synchronization objects, submissions that wait and signal. Out:
// what is signaled when, and error numbers.
//
//===----------------------------------------------------------------------===//
#include "Card.h"
#include <cerrno>
#include <chrono>
#include <thread>
#include <unistd.h>

using namespace greta::radeon;
using namespace greta::radeon::test;

namespace {

struct Syncs : Card {
  uint32_t make(uint32_t flags = 0) {
    drm_syncobj_create create = {};
    create.flags = flags;
    EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_CREATE, create));
    return create.handle;
  }
  int waitFor(std::vector<uint32_t> handles, std::vector<uint64_t> points,
              uint32_t flags, int64_t deadline = 0, uint32_t *first = nullptr) {
    drm_syncobj_timeline_wait w = {};
    w.handles = reinterpret_cast<uint64_t>(handles.data());
    w.points = reinterpret_cast<uint64_t>(points.data());
    w.count_handles = uint32_t(handles.size());
    w.flags = flags;
    w.timeout_nsec = deadline;
    int error = control(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, w);
    if (first)
      *first = w.first_signaled;
    return error;
  }
  int signal(uint32_t handle, uint64_t point) {
    drm_syncobj_timeline_array a = {};
    a.handles = reinterpret_cast<uint64_t>(&handle);
    a.points = reinterpret_cast<uint64_t>(&point);
    a.count_handles = 1;
    return control(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, a);
  }
  uint64_t value(uint32_t handle) {
    uint64_t point = ~0ull;
    drm_syncobj_timeline_array a = {};
    a.handles = reinterpret_cast<uint64_t>(&handle);
    a.points = reinterpret_cast<uint64_t>(&point);
    a.count_handles = 1;
    EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_QUERY, a));
    return point;
  }
  static int64_t in(int milliseconds) {
    return std::chrono::steady_clock::now().time_since_epoch().count() +
           int64_t(milliseconds) * 1000000;
  }
  template <class T>
  static drm_amdgpu_cs_chunk chunk(uint32_t id, const T &data) {
    return {id, sizeof(data) / 4, reinterpret_cast<uint64_t>(&data)};
  }
};
constexpr uint32_t All = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
                   ForSubmit = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
                   Available = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;

TEST_F(Syncs, BinaryOnes) {
  uint32_t a = make(), b = make(DRM_SYNCOBJ_CREATE_SIGNALED), first = 9;
  EXPECT_EQ(EINVAL, waitFor({a}, {0}, 0)); // nobody has submitted it
  EXPECT_EQ(ETIME, waitFor({a}, {0}, ForSubmit));
  EXPECT_EQ(0, waitFor({a, b}, {0, 0}, ForSubmit, 0, &first));
  EXPECT_EQ(1u, first);
  EXPECT_EQ(ETIME, waitFor({a, b}, {0, 0}, ForSubmit | All, in(20)));
  drm_syncobj_array array = {};
  array.handles = reinterpret_cast<uint64_t>(&a);
  array.count_handles = 1;
  EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_SIGNAL, array));
  EXPECT_EQ(0, waitFor({a, b}, {0, 0}, All));
  EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_RESET, array));
  EXPECT_EQ(EINVAL, waitFor({a}, {0}, 0));
  EXPECT_EQ(ENOENT, waitFor({777}, {0}, 0));
  drm_syncobj_destroy destroy = {};
  destroy.handle = a;
  EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_DESTROY, destroy));
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_SYNCOBJ_DESTROY, destroy));
}

TEST_F(Syncs, Timelines) {
  uint32_t t = make();
  EXPECT_EQ(0u, value(t));
  EXPECT_EQ(0, signal(t, 5));
  EXPECT_EQ(5u, value(t));
  EXPECT_EQ(0, waitFor({t}, {3}, 0));
  EXPECT_EQ(EINVAL, waitFor({t}, {6}, 0));
  EXPECT_EQ(ETIME, waitFor({t}, {6}, Available));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    signal(t, 7);
  });
  EXPECT_EQ(0, waitFor({t}, {6}, ForSubmit, INT64_MAX));
  later.join();
  EXPECT_EQ(7u, value(t));
  EXPECT_EQ(0, waitFor({t}, {1}, 0));
}

TEST_F(Syncs, SubmissionsWaitAndSignal) {
  // A packet that waits for the host, behind which another submission waits.
  Memory flag = allocate(64);
  std::vector<uint32_t> waits, writes;
  add(waits, 0x3c,
      {3 | 1 << 4, low(flag.address), high(flag.address), 1, ~0u, 4});
  add(writes, 0x37, {5 << 8, low(flag.address + 4), high(flag.address), 9});
  Memory first = packets(waits), second = packets(writes);
  uint32_t t = make(), binary = make();
  drm_amdgpu_cs_chunk_syncobj at4 = {t, 0, 4}, at6 = {t, 0, 6};
  drm_amdgpu_cs_chunk_sem out = {binary};
  uint64_t a = 0, b = 0;
  ASSERT_EQ(0, submit(first, uint32_t(waits.size()), a,
                      {chunk(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, at4),
                       chunk(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, out)}));
  ASSERT_EQ(0, submit(second, uint32_t(writes.size()), b,
                      {chunk(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, at4),
                       chunk(AMDGPU_CHUNK_ID_SYNCOBJ_IN, out),
                       chunk(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, at6)}));
  EXPECT_EQ(a + 1, b);
  EXPECT_FALSE(wait(a, uint64_t(in(20))));
  EXPECT_EQ(0u, value(t));
  EXPECT_EQ(0, waitFor({t}, {6}, Available)); // submitted, not done
  EXPECT_EQ(ETIME, waitFor({t}, {6}, 0));
  union drm_amdgpu_gem_wait_idle idle = {};
  idle.in.handle = flag.handle;
  EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, idle));
  EXPECT_EQ(1u, idle.out.status);
  *reinterpret_cast<volatile uint32_t *>(flag.address) = 1;
  EXPECT_TRUE(wait(b));
  EXPECT_EQ(9u, flag.as()[1]);
  EXPECT_EQ(6u, value(t));
  EXPECT_FALSE(isLost());
}

TEST_F(Syncs, SubmissionsThatAreRefused) {
  Memory m = packets({header(0x10, 1), 0});
  uint64_t number = 0;
  drm_amdgpu_cs_chunk_sem none = {999};
  EXPECT_EQ(ENOENT,
            submit(m, 2, number, {chunk(AMDGPU_CHUNK_ID_SYNCOBJ_IN, none)}));
  drm_amdgpu_cs_chunk_syncobj never = {make(), 0, 4};
  EXPECT_EQ(EINVAL,
            submit(m, 2, number,
                   {chunk(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, never)}));
  drm_amdgpu_cs_chunk_ib video = {};
  video.ip_type = AMDGPU_HW_IP_VCN_DEC;
  testing::internal::CaptureStderr();
  EXPECT_EQ(EINVAL, submit(m, 2, number, {chunk(AMDGPU_CHUNK_ID_IB, video)}));
  EXPECT_EQ(EINVAL, submit(m, 2, number, {chunk(0x55, video)}));
  EXPECT_EQ("virtual Radeon: a submission to an engine that is neither "
            "graphics nor compute\n"
            "virtual Radeon: unknown chunk 85 in a submission\n",
            testing::internal::GetCapturedStderr());
  context = 999;
  EXPECT_EQ(EINVAL, submit(m, 2, number));
}

TEST_F(Syncs, FenceMemoryAndDependencies) {
  Memory m = packets({header(0x10, 1), 0}), fences = allocate(64);
  drm_amdgpu_cs_chunk_fence fence = {fences.handle, 16};
  uint64_t a = 0, b = 0;
  ASSERT_EQ(0, submit(m, 2, a, {chunk(AMDGPU_CHUNK_ID_FENCE, fence)}));
  drm_amdgpu_cs_chunk_dep dependency = {};
  dependency.ip_type = AMDGPU_HW_IP_COMPUTE;
  dependency.ctx_id = context;
  dependency.handle = a;
  ASSERT_EQ(0,
            submit(m, 2, b, {chunk(AMDGPU_CHUNK_ID_DEPENDENCIES, dependency)}));
  EXPECT_TRUE(wait(b));
  EXPECT_EQ(a, fences.as<uint64_t>()[2]);
  drm_amdgpu_fence both[2] = {};
  for (unsigned k = 0; k < 2; ++k) {
    both[k].ctx_id = context;
    both[k].ip_type = AMDGPU_HW_IP_COMPUTE;
    both[k].seq_no = k ? b : a;
  }
  union drm_amdgpu_wait_fences w = {};
  w.in.fences = reinterpret_cast<uint64_t>(both);
  w.in.fence_count = 2;
  w.in.wait_all = 1;
  EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_WAIT_FENCES, w));
  EXPECT_EQ(1u, w.out.status);
}

TEST_F(Syncs, AreSharedAsFiles) {
  uint32_t a = make(DRM_SYNCOBJ_CREATE_SIGNALED), b = make();
  drm_syncobj_handle h = {};
  h.handle = a;
  ASSERT_EQ(0, control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, h));
  drm_syncobj_handle back = {};
  back.fd = h.fd;
  ASSERT_EQ(0, control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, back));
  EXPECT_EQ(0, waitFor({back.handle}, {0}, 0));
  // A sync file is the fence alone.
  h = {};
  h.handle = a;
  h.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  ASSERT_EQ(0, control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, h));
  back = {};
  back.fd = h.fd;
  back.handle = b;
  back.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
  ASSERT_EQ(0, control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, back));
  EXPECT_EQ(0, waitFor({b}, {0}, 0));
  back.flags = 0;
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, back));
  h.handle = make();
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, h));
}

TEST_F(Syncs, FencesOfSeveral) {
  auto a = std::make_shared<Fence>(), b = std::make_shared<Fence>();
  Fence both(std::vector<FencePtr>{a, b});
  a->signal();
  EXPECT_FALSE(both.isSignaled());
  EXPECT_FALSE(both.wait(in(5)));
  b->signal();
  EXPECT_TRUE(both.wait(0));
}

TEST_F(Syncs, Transfers) {
  uint32_t a = make(DRM_SYNCOBJ_CREATE_SIGNALED), t = make();
  drm_syncobj_transfer transfer = {};
  transfer.src_handle = a;
  transfer.dst_handle = t;
  transfer.dst_point = 12;
  EXPECT_EQ(0, control(DRM_IOCTL_SYNCOBJ_TRANSFER, transfer));
  EXPECT_EQ(12u, value(t));
  transfer.src_handle = make();
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_SYNCOBJ_TRANSFER, transfer));
  transfer.src_handle = 999;
  EXPECT_EQ(ENOENT, control(DRM_IOCTL_SYNCOBJ_TRANSFER, transfer));
}

TEST_F(Syncs, ManyConnections) {
  // Windows, handles and contexts of each are free again.
  for (unsigned k = 0; k < 200; ++k) {
    Connection other(*machine);
    ASSERT_NE(0u, other.space.begin()) << k;
  }
}

} // namespace
