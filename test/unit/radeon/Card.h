//===- Card.h - a driver of the virtual Radeon for tests --------*- C++ -*-===//
//
// Opens a connection as /dev/dri/renderD128 does and speaks to it by ioctls, as
// libdrm does. The card is a Phoenix (gfx1103).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_RADEON_CARD_H
#define GRETA_TEST_RADEON_CARD_H

#include "Radeon.h"
#include <amdgpu_drm.h>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace greta::radeon::test {

struct Memory {
  uint32_t handle = 0;
  uint64_t address = 0, bytes = 0;
  /// Addresses of the card are addresses of this process.
  template <class T = uint32_t> T *as() const {
    return reinterpret_cast<T *>(address);
  }
};

class Card : public ::testing::Test {
protected:
  Card() {
    setenv("GRETA_VIRTUAL_RADEON", "phoenix", 1);
    machine = Machine::get();
    connection = std::make_unique<Connection>(*machine);
    next = connection->space.begin();
    drm_amdgpu_ctx make = {};
    make.in.op = AMDGPU_CTX_OP_ALLOC_CTX;
    EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_CTX, make));
    context = make.out.alloc.ctx_id;
  }

  template <class T> int control(unsigned long request, T &argument) {
    return connection->control(request, &argument);
  }

  uint32_t create(uint64_t bytes, uint64_t domains = AMDGPU_GEM_DOMAIN_GTT) {
    union drm_amdgpu_gem_create create = {};
    create.in.bo_size = bytes;
    create.in.domains = domains;
    EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_CREATE, create));
    return create.out.handle;
  }
  int place(uint32_t operation, uint32_t handle, uint64_t address,
            uint64_t bytes, uint64_t offset = 0, uint32_t flags = 0) {
    drm_amdgpu_gem_va va = {};
    va.handle = handle;
    va.operation = operation;
    va.va_address = address;
    va.map_size = bytes;
    va.offset_in_bo = offset;
    va.flags = flags;
    return control(DRM_IOCTL_AMDGPU_GEM_VA, va);
  }
  /// Memory with an address, 64 KiB from the next.
  Memory allocate(uint64_t bytes) {
    Memory m;
    m.bytes = (bytes + PageBytes - 1) / PageBytes * PageBytes;
    m.handle = create(bytes);
    m.address = next;
    next += (m.bytes + 0x1ffff) & ~0xffffull;
    EXPECT_EQ(0, place(AMDGPU_VA_OP_MAP, m.handle, m.address, m.bytes));
    return m;
  }

  /// An indirect buffer with these dwords.
  Memory packets(const std::vector<uint32_t> &dwords) {
    Memory m = allocate(dwords.size() * 4);
    std::memcpy(m.as(), dwords.data(), dwords.size() * 4);
    return m;
  }
  static uint32_t header(unsigned opcode, size_t body, bool predicate = false) {
    return 3u << 30 | uint32_t(body - 1) << 16 | opcode << 8 | predicate;
  }
  static void add(std::vector<uint32_t> &to, unsigned opcode,
                  const std::vector<uint32_t> &body, bool predicate = false) {
    to.push_back(header(opcode, body.size(), predicate));
    to.insert(to.end(), body.begin(), body.end());
  }
  static uint32_t low(uint64_t x) { return uint32_t(x); }
  static uint32_t high(uint64_t x) { return uint32_t(x >> 32); }

  /// Submits with any chunks behind that of the buffer: an error number or 0,
  /// and the submission's number.
  int submit(const Memory &m, uint32_t dwords, uint64_t &number,
             std::vector<drm_amdgpu_cs_chunk> chunks = {}) {
    drm_amdgpu_cs_chunk_ib ib = {};
    ib.va_start = m.address;
    ib.ib_bytes = dwords * 4;
    ib.ip_type = AMDGPU_HW_IP_COMPUTE;
    chunks.insert(chunks.begin(), {AMDGPU_CHUNK_ID_IB, sizeof(ib) / 4,
                                   reinterpret_cast<uint64_t>(&ib)});
    std::vector<uint64_t> pointers;
    for (auto &chunk : chunks)
      pointers.push_back(reinterpret_cast<uint64_t>(&chunk));
    union drm_amdgpu_cs cs = {};
    cs.in.ctx_id = context;
    cs.in.num_chunks = uint32_t(chunks.size());
    cs.in.chunks = reinterpret_cast<uint64_t>(pointers.data());
    int error = control(DRM_IOCTL_AMDGPU_CS, cs);
    number = cs.out.handle;
    return error;
  }
  bool wait(uint64_t number, uint64_t deadline = INT64_MAX) {
    union drm_amdgpu_wait_cs wait = {};
    wait.in.handle = number;
    wait.in.ctx_id = context;
    wait.in.ip_type = AMDGPU_HW_IP_COMPUTE;
    wait.in.timeout = deadline;
    EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_WAIT_CS, wait));
    return !wait.out.status;
  }
  bool isLost() {
    union drm_amdgpu_ctx query = {};
    query.in.op = AMDGPU_CTX_OP_QUERY_STATE2;
    query.in.ctx_id = context;
    EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_CTX, query));
    return query.out.state.flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
  }
  /// The packets' report; empty when they went through.
  std::string run(const std::vector<uint32_t> &dwords) {
    Memory m = packets(dwords);
    testing::internal::CaptureStderr();
    uint64_t number = 0;
    EXPECT_EQ(0, submit(m, uint32_t(dwords.size()), number));
    EXPECT_TRUE(wait(number));
    std::string report = testing::internal::GetCapturedStderr();
    EXPECT_EQ(isLost(), !report.empty()) << report;
    return report;
  }

  Machine *machine;
  std::unique_ptr<Connection> connection;
  uint64_t next;
  uint32_t context;
};

} // namespace greta::radeon::test

#endif
