//===- MemoryTest.cpp - buffers, addresses and what the card says ---------===//
//
// In: ioctls of buffers, of addresses and of queries. Out: handles, contents,
// counts and error numbers.
//
//===----------------------------------------------------------------------===//
#include "Card.h"
#include "Nodes.h"
#include "llvm/ADT/bit.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace greta::radeon;
using namespace greta::radeon::test;

namespace {

struct Buffers : Card {
  int close(uint32_t handle) {
    drm_gem_close close = {};
    close.handle = handle;
    return control(DRM_IOCTL_GEM_CLOSE, close);
  }
  template <class T> T query(uint32_t what) {
    T result = {};
    drm_amdgpu_info info = {};
    info.return_pointer = reinterpret_cast<uint64_t>(&result);
    info.return_size = sizeof(result);
    info.query = what;
    EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_INFO, info));
    return result;
  }
};

TEST_F(Buffers, OneMemoryAtTwoAddresses) {
  Memory m = allocate(2 * PageBytes);
  uint64_t other = next;
  ASSERT_EQ(0, place(AMDGPU_VA_OP_MAP, m.handle, other, PageBytes, PageBytes));
  m.as()[PageBytes / 4] = 77;
  EXPECT_EQ(77u, *reinterpret_cast<uint32_t *>(other));
  EXPECT_EQ(0, place(AMDGPU_VA_OP_UNMAP, m.handle, other, PageBytes));
  EXPECT_EQ(ENOENT, place(AMDGPU_VA_OP_UNMAP, m.handle, other, PageBytes));
  EXPECT_EQ(
      nullptr,
      machine->device().allocationOf(reinterpret_cast<void *>(other)).first);
}

TEST_F(Buffers, AddressesThatAreRefused) {
  Memory m = allocate(2 * PageBytes);
  uint64_t first = connection->space.begin();
  testing::internal::CaptureStderr();
  // Occupied, of the program, beyond the window, misaligned, beyond the buffer.
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, m.handle, m.address, PageBytes));
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, m.handle, 0x400000, PageBytes));
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, m.handle, connection->space.end(),
                          PageBytes));
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, m.handle, next + 64, PageBytes));
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, m.handle, next, 3 * PageBytes));
  EXPECT_EQ(EINVAL, place(AMDGPU_VA_OP_MAP, 0, next, PageBytes));
  EXPECT_EQ(ENOENT, place(AMDGPU_VA_OP_MAP, 999, next, PageBytes));
  EXPECT_EQ(EINVAL, place(77, m.handle, first, PageBytes));
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos,
            said.find("no memory can be at address 0x400000"))
      << said;
}

TEST_F(Buffers, ReplacingSplitsWhatWasThere) {
  Memory m = allocate(4 * PageBytes);
  uint32_t other = create(PageBytes);
  for (unsigned k = 0; k < 4; ++k)
    m.as()[k * PageBytes / 4] = 10 + k;
  uint64_t middle = m.address + PageBytes;
  ASSERT_EQ(0, place(AMDGPU_VA_OP_REPLACE, other, middle, PageBytes));
  EXPECT_EQ(10u, m.as()[0]);
  EXPECT_EQ(0u, m.as()[PageBytes / 4]);
  EXPECT_EQ(12u, m.as()[2 * PageBytes / 4]);
  EXPECT_EQ(13u, m.as()[3 * PageBytes / 4]);
  // A reserved range has no memory.
  ASSERT_EQ(0, place(AMDGPU_VA_OP_REPLACE, 0, middle, PageBytes, 0,
                     AMDGPU_VM_PAGE_PRT));
  EXPECT_EQ(
      nullptr,
      machine->device().allocationOf(reinterpret_cast<void *>(middle)).first);
  EXPECT_EQ(0, place(AMDGPU_VA_OP_CLEAR, 0, m.address, 4 * PageBytes));
  EXPECT_EQ(0, place(AMDGPU_VA_OP_CLEAR, 0, m.address, 4 * PageBytes));
}

TEST_F(Buffers, WindowsOfConnectionsLieApart) {
  auto other = std::make_unique<Connection>(*machine);
  uint64_t window = other->space.begin();
  EXPECT_TRUE(window >= connection->space.end() ||
              other->space.end() <= connection->space.begin());
  other = nullptr;
  EXPECT_EQ(window, Connection(*machine).space.begin());
}

TEST_F(Buffers, MemoryIsCounted) {
  uint64_t before = query<uint64_t>(AMDGPU_INFO_VRAM_USAGE);
  uint32_t handle = create(100000, AMDGPU_GEM_DOMAIN_VRAM);
  EXPECT_EQ(before + 25 * PageBytes, query<uint64_t>(AMDGPU_INFO_VRAM_USAGE));
  EXPECT_EQ(0, close(handle));
  EXPECT_EQ(EINVAL, close(handle));
  EXPECT_EQ(before, query<uint64_t>(AMDGPU_INFO_VRAM_USAGE));
  union drm_amdgpu_gem_create huge = {};
  huge.in.bo_size = machine->chip().vramBytes + PageBytes;
  huge.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
  EXPECT_EQ(ENOMEM, control(DRM_IOCTL_AMDGPU_GEM_CREATE, huge));
  huge = {};
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_AMDGPU_GEM_CREATE, huge));
  EXPECT_EQ(before, query<uint64_t>(AMDGPU_INFO_VRAM_USAGE));
}

TEST_F(Buffers, AreShared) {
  Memory m = allocate(PageBytes);
  m.as()[5] = 55;
  drm_prime_handle out = {};
  out.handle = m.handle;
  out.flags = DRM_CLOEXEC | DRM_RDWR;
  ASSERT_EQ(0, control(DRM_IOCTL_PRIME_HANDLE_TO_FD, out));
  // The same connection knows it, another one gets a handle of its own.
  drm_prime_handle in = {};
  in.fd = out.fd;
  ASSERT_EQ(0, control(DRM_IOCTL_PRIME_FD_TO_HANDLE, in));
  EXPECT_EQ(m.handle, in.handle);
  Connection other(*machine);
  ASSERT_EQ(0, other.control(DRM_IOCTL_PRIME_FD_TO_HANDLE, &in));
  drm_amdgpu_gem_va va = {};
  va.handle = in.handle;
  va.operation = AMDGPU_VA_OP_MAP;
  va.va_address = other.space.begin();
  va.map_size = PageBytes;
  ASSERT_EQ(0, other.control(DRM_IOCTL_AMDGPU_GEM_VA, &va));
  EXPECT_EQ(55u, reinterpret_cast<uint32_t *>(va.va_address)[5]);
  ::close(out.fd);
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  in.fd = pipes[0];
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_PRIME_FD_TO_HANDLE, in));
  ::close(pipes[0]);
  ::close(pipes[1]);
}

TEST_F(Buffers, MemoryOfTheProgram) {
  void *own = mmap(nullptr, 2 * PageBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto *words = static_cast<uint32_t *>(own);
  words[3] = 33;
  drm_amdgpu_gem_userptr user = {};
  user.addr = reinterpret_cast<uint64_t>(own);
  user.size = 2 * PageBytes;
  ASSERT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user));
  ASSERT_EQ(0, place(AMDGPU_VA_OP_MAP, user.handle, next, 2 * PageBytes));
  auto *there = reinterpret_cast<uint32_t *>(next);
  EXPECT_EQ(33u, there[3]);
  there[4] = 44;
  EXPECT_EQ(44u, words[4]);
  words[1025] = 11;
  EXPECT_EQ(11u, there[1025]);
  user.addr += 8;
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user));
  munmap(own, 2 * PageBytes);
  user.addr -= 8;
  EXPECT_EQ(EFAULT, control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user));
}

// Ranks of a communicator in one process, and those of others, import the same.
TEST_F(Buffers, MemoryThatTheProgramShares) {
  for (bool isFile : {false, true}) {
    int file = isFile ? memfd_create("shared", MFD_CLOEXEC) : -1;
    if (isFile) {
      ASSERT_EQ(0, ftruncate(file, 4 * PageBytes));
    }
    auto *own = static_cast<uint32_t *>(
        mmap(nullptr, 4 * PageBytes, PROT_READ | PROT_WRITE,
             isFile ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0));
    drm_amdgpu_gem_userptr user = {};
    user.addr = reinterpret_cast<uint64_t>(own);
    user.size = 4 * PageBytes;
    uint32_t *there[2];
    for (uint32_t *&at : there) {
      at = reinterpret_cast<uint32_t *>(next);
      ASSERT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user));
      // Its end first: pages lie at their offsets.
      ASSERT_EQ(0, place(AMDGPU_VA_OP_MAP, user.handle, next + PageBytes,
                         3 * PageBytes, PageBytes));
      ASSERT_EQ(0, place(AMDGPU_VA_OP_MAP, user.handle, next, PageBytes));
      next += 4 * PageBytes;
    }
    there[0][5] = 55;
    there[1][1025] = 66;
    EXPECT_EQ(55u, own[5]);
    EXPECT_EQ(55u, there[1][5]);
    EXPECT_EQ(66u, own[1025]);
    EXPECT_EQ(66u, there[0][1025]);
    uint32_t other = 0;
    if (isFile) {
      EXPECT_EQ(4, pread(file, &other, 4, 5 * 4));
      EXPECT_EQ(55u, other);
      ::close(file);
    }
    // A part of it is shared, the rest is not.
    void *after = mmap(own + PageBytes / 4, PageBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_EQ(own + PageBytes / 4, after);
    testing::internal::CaptureStderr();
    EXPECT_EQ(EFAULT, control(DRM_IOCTL_AMDGPU_GEM_USERPTR, user));
    EXPECT_NE(std::string::npos,
              testing::internal::GetCapturedStderr().find("shared in part"));
    munmap(own, 4 * PageBytes);
    EXPECT_EQ(66u, there[0][1025]);
  }
}

TEST_F(Buffers, Metadata) {
  uint32_t handle = create(PageBytes);
  drm_amdgpu_gem_metadata m = {};
  m.handle = handle;
  m.op = AMDGPU_GEM_METADATA_OP_SET_METADATA;
  m.data.tiling_info = 42;
  m.data.data_size_bytes = 8;
  m.data.data[1] = 9;
  EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_METADATA, m));
  m = {};
  m.handle = handle;
  m.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
  EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_METADATA, m));
  EXPECT_EQ(42u, m.data.tiling_info);
  EXPECT_EQ(8u, m.data.data_size_bytes);
  EXPECT_EQ(9u, m.data.data[1]);
  drm_amdgpu_gem_create_in info = {};
  drm_amdgpu_gem_op op = {};
  op.handle = handle;
  op.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO;
  op.value = reinterpret_cast<uint64_t>(&info);
  EXPECT_EQ(0, control(DRM_IOCTL_AMDGPU_GEM_OP, op));
  EXPECT_EQ(PageBytes, info.bo_size);
}

TEST_F(Buffers, TheCardIsThatOfTheTable) {
  auto d = query<drm_amdgpu_info_device>(AMDGPU_INFO_DEV_INFO);
  const Chip &chip = *findChip("gfx1103");
  EXPECT_EQ(&chip, &machine->chip());
  EXPECT_EQ(chip.deviceId, d.device_id);
  unsigned units = 0;
  for (auto &engine : d.cu_bitmap)
    for (uint32_t array : engine)
      units += unsigned(llvm::popcount(array));
  EXPECT_EQ(chip.units, units);
  EXPECT_EQ(chip.units, machine->device().computeUnits());
  EXPECT_EQ(connection->space.begin(), d.high_va_offset);
  EXPECT_EQ(0u, d.high_va_offset % (uint64_t(1) << 32));
  EXPECT_LT(d.high_va_max, uint64_t(1) << 47);
}

TEST(Chips, AreSimulated) {
  for (const Chip &c : chips()) {
    auto device = greta::sim::Device::create(c.gfx);
    ASSERT_TRUE(bool(device)) << c.name;
    EXPECT_EQ(c.units, (*device)->computeUnits()) << c.name;
    // The table's arrays have a place for every unit.
    EXPECT_GE(c.engines * c.arraysPerEngine * c.unitsPerArray, c.units)
        << c.name;
  }
  EXPECT_EQ(nullptr, findChip("voodoo"));
}

TEST_F(Buffers, UnknownRequests) {
  testing::internal::CaptureStderr();
  drm_amdgpu_info info = {};
  info.query = 0xfe;
  EXPECT_EQ(EINVAL, control(DRM_IOCTL_AMDGPU_INFO, info));
  uint32_t word = 0;
  for (unsigned k = 0; k < 2; ++k)
    EXPECT_EQ(ENOTTY, control(DRM_IOWR(0x9f, uint32_t), word));
  EXPECT_EQ("virtual Radeon: ioctl number 0x9f is not simulated\n",
            testing::internal::GetCapturedStderr());
}

TEST_F(Buffers, Nodes) {
  ASSERT_NE(nullptr, findNode("/dev/dri/renderD128"));
  EXPECT_EQ(128u, findNode("/dev/dri/renderD128")->minor);
  EXPECT_EQ(2u, findNode("/dev/dri/")->names.size());
  EXPECT_EQ("0x15bf\n", findNode("/sys/dev/char/226:128/device/device")->text);
  EXPECT_EQ(nullptr, findNode("/dev/dri/renderD129"));
  EXPECT_EQ(nullptr, findNode("/dev/null"));
}

} // namespace
