// ShareTest.cpp: memory that the host reaches, that comes from the caller, that
// two devices share, and an application's own objects.
#include "EveryDevice.h"
#include "TestPackage.h"
#include "vulkan/Device.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <numeric>
#include <unistd.h>

using namespace greta_test;

namespace {

constexpr int64_t shareCount = 1024;

class Share : public EveryDevice {
protected:
  bool isVulkan() const { return std::string(GetParam()) == "vulkan"; }
  static std::string refusal(const std::function<void()> &F) {
    try {
      F();
    } catch (const greta::Error &E) {
      return E.what();
    }
    return "";
  }
  // y = 2 x + 1 of floats of the host, which `In` and `Out` hold.
  void checkScale(greta::Runtime &On, greta::Stream &S, const greta::Buffer &In,
                  const greta::Buffer &Out) {
    auto *X = static_cast<float *>(In.pointer()),
         *Y = static_cast<float *>(Out.pointer());
    greta::Function F = On.load(P, "scale");
    greta::Graph G = S.capture([&] {
      F.launch(S, {{&In, {1, shareCount}}}, {{&Out, {1, shareCount}}});
    });
    for (float First : {1.0f, 5.0f, 9.0f}) {
      std::iota(X, X + shareCount, First);
      if (First == 9)
        S.launch(G);
      else
        F.launch(S, {{&In, {1, shareCount}}}, {{&Out, {1, shareCount}}});
      S.synchronize();
      for (int64_t I = 0; I < shareCount; ++I)
        ASSERT_EQ(Y[I], 2 * (First + static_cast<float>(I)) + 1);
    }
  }
  Bytes Data = package();
  greta::Package P{Data.data(), Data.size()};
};

INSTANTIATE_TEST_SUITE_P(Devices, Share, everyDevice(), deviceName);

TEST_P(Share, MappedBuffers) {
  greta::Stream S = R->stream();
  greta::Buffer In = R->allocateMapped(shareCount * 4),
                Out = R->allocateMapped(shareCount * 4);
  ASSERT_NE(In.pointer(), nullptr);
  checkScale(*R, S, In, Out);
  if (std::string(GetParam()) != "host") { // where all memory is mapped
    EXPECT_EQ(R->allocate(64).pointer(), nullptr);
  }
}

TEST_P(Share, ImportedPointers) {
  constexpr size_t page = 4096;
  std::unique_ptr<void, decltype(&free)> Mine(
      std::aligned_alloc(page, 2 * shareCount * 4), &free);
  auto *Floats = static_cast<float *>(Mine.get());
  static_assert(shareCount * 4 % page == 0);
  greta::Stream S = R->stream();
  {
    greta::Buffer In = R->import(Floats, shareCount * 4),
                  Out = R->import(Floats + shareCount, shareCount * 4);
    EXPECT_EQ(In.pointer(), Floats);
    checkScale(*R, S, In, Out);
  }
  EXPECT_EQ(Floats[shareCount], 19.0f); // it is still the caller's
  greta_buffer *B = nullptr;
  EXPECT_EQ(greta_buffer_import_pointer(R->get(), nullptr, 64, &B),
            GRETA_ERROR_INVALID_ARGUMENT);
  std::string Text = refusal([&] { R->import(Floats + 1, 64); });
  if (isVulkan()) {
    EXPECT_NE(Text.find("begins at a multiple of"), std::string::npos) << Text;
  }
}

// A thread of a driver may open a file of the same number once a descriptor is
// closed. Drivers open with close-on-exec, so a descriptor without it is ours.
static void mark(int Fd) { ASSERT_EQ(fcntl(Fd, F_SETFD, 0), 0); }
static bool isMarked(int Fd) { return fcntl(Fd, F_GETFD) == 0; }

// Another handle of the same memory reads the writes of one device.
TEST_P(Share, FileDescriptors) {
  if (!isVulkan()) {
    std::string Text = refusal([&] { R->allocateShared(GRETA_FD_OPAQUE, 64); });
    EXPECT_NE(Text.find("has no memory that is shared"), std::string::npos)
        << Text;
    int Pipe[2];
    ASSERT_EQ(pipe(Pipe), 0);
    auto Memory = greta::detail::sized<greta_shared_memory>();
    Memory.kind = GRETA_FD_OPAQUE;
    Memory.fd = Pipe[0];
    Memory.bytes = 64;
    EXPECT_NE(refusal([&] { R->importFd(Memory); }), "");
    char Byte;
    EXPECT_EQ(read(Pipe[0], &Byte, 1), -1); // it was taken and closed
    close(Pipe[1]);
    return;
  }
  greta::Stream S = R->stream();
  std::vector<uint32_t> Words(shareCount);
  unsigned Shared = 0;
  for (greta_fd_kind Kind : {GRETA_FD_OPAQUE, GRETA_FD_DMA_BUF}) {
    greta::Buffer A;
    try {
      A = R->allocateShared(Kind, shareCount * 4);
    } catch (const greta::Error &E) {
      // Debian testing's lavapipe makes dma_bufs of the kernel's /dev/udmabuf,
      // which it opens when it allocates; containers and small virtual machines
      // have none.
      std::string Text = E.what();
      bool HasNoMaker = Kind == GRETA_FD_DMA_BUF &&
                        Text.find("llvmpipe") == 0 &&
                        access("/dev/udmabuf", R_OK | W_OK) != 0 &&
                        Text.find("cannot allocate") != std::string::npos;
      EXPECT_TRUE(HasNoMaker || Text.find("has no VK_") != std::string::npos)
          << Text;
      continue;
    }
    greta_shared_memory Memory = A.exportFd();
    mark(Memory.fd);
    EXPECT_EQ(Memory.kind, Kind);
    EXPECT_EQ(Memory.bytes, shareCount * 4u);
    greta::Buffer B = R->importFd(Memory);
    EXPECT_FALSE(isMarked(Memory.fd)); // it was taken
    S.fill(A, shareCount * 4, 77);
    S.synchronize();
    S.read(B, Words.data(), shareCount * 4);
    EXPECT_EQ(Words, std::vector<uint32_t>(shareCount, 77));
    ++Shared;
    // To another device, or another driver of this one, an opaque descriptor
    // means other memory. Who does not know the driver (CUDA) says nothing.
    auto Altered = [&](auto Change) {
      greta_shared_memory Other = A.exportFd();
      Change(Other);
      mark(Other.fd);
      std::string Text = refusal([&] { R->importFd(Other); });
      EXPECT_FALSE(isMarked(Other.fd));
      return Text;
    };
    bool IsOpaque = Kind == GRETA_FD_OPAQUE;
    for (auto Text : {Altered([](auto &M) { M.device_uuid[15] ^= 1; }),
                      Altered([](auto &M) { M.driver_uuid[0] ^= 1; })})
      EXPECT_EQ(Text.find("of another device or driver") != std::string::npos,
                IsOpaque)
          << Text;
    EXPECT_EQ(Altered([](auto &M) {
                memset(M.driver_uuid, 0, sizeof(M.driver_uuid));
              }),
              "");
  }
  EXPECT_GE(Shared, 1u);
  greta::Buffer Own = R->allocate(64);
  EXPECT_NE(refusal([&] { Own.exportFd(); }).find("create_shared"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              auto None = greta::detail::sized<greta_shared_memory>();
              None.kind = GRETA_FD_OPAQUE;
              None.fd = -1;
              R->importFd(None);
            }).find("no file descriptor: -1"),
            std::string::npos);
  greta_buffer *Nothing = nullptr;
  EXPECT_EQ(greta_buffer_import_fd(R->get(), nullptr, &Nothing),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(refusal([&] {
              R->allocateShared(9, 64);
            }).find("unknown kind of file descriptor 9"),
            std::string::npos);
}

TEST_P(Share, KnowsWhatIsFree) {
  greta_memory M = R->memory();
  EXPECT_LE(M.free, M.total);
  if (!isVulkan()) { // there it is an extension
    EXPECT_GT(M.free, 0u);
  }
}

TEST_P(Share, HipObjects) {
  if (isVulkan() || std::string(GetParam()) == "host") {
    greta_stream *S = nullptr;
    greta_buffer *B = nullptr;
    EXPECT_EQ(greta_stream_adopt_hip(R->get(), nullptr, &S),
              GRETA_ERROR_UNSUPPORTED);
    EXPECT_EQ(greta_buffer_adopt_hip(R->get(), nullptr, 64, &B),
              GRETA_ERROR_UNSUPPORTED);
    return;
  }
  // Memory and a stream of the library that an application may have opened too.
  const char *Path = std::string(GetParam()) == "hip" ? GRETA_TEST_FAKE_HIP
                                                      : getenv("GRETA_HIP_SIM");
  void *Library = dlopen(Path, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(Library, nullptr);
  auto Function = [&](const char *Name) { return dlsym(Library, Name); };
  auto Create = reinterpret_cast<int (*)(void **, unsigned)>(
      Function("hipStreamCreateWithFlags"));
  auto Destroy =
      reinterpret_cast<int (*)(void *)>(Function("hipStreamDestroy"));
  void *Own = nullptr;
  ASSERT_EQ(Create(&Own, 1), 0);
  {
    greta_stream *Handle = nullptr;
    greta::check(greta_stream_adopt_hip(R->get(), Own, &Handle));
    greta::Stream S(Handle);
    greta::Buffer In = R->allocateMapped(shareCount * 4),
                  Out = R->allocateMapped(shareCount * 4);
    checkScale(*R, S, In, Out);
    greta_buffer *Adopted = nullptr;
    greta::check(greta_buffer_adopt_hip(R->get(),
                                        reinterpret_cast<void *>(Out.address()),
                                        shareCount * 4, &Adopted));
    greta::Buffer Same(Adopted);
    uint32_t Word = 0;
    S.fill(Same, 4, 5);
    S.read(Out, &Word, 4);
    EXPECT_EQ(Word, 5u);
  }
  EXPECT_EQ(Destroy(Own), 0); // it was left to us
  dlclose(Library);
}

// Launches on a VkDevice and into a VkBuffer that are the application's.
TEST(AdoptedVulkan, RunsOnAnApplicationsDevice) {
  using namespace greta::rt::vulkan;
  std::shared_ptr<Core> Application;
  try {
    std::shared_ptr<Instance> I = Instance::get();
    for (PhysicalDevice &P : physicalDevices(*I))
      if (P.Refused.empty() && !Application)
        Application = std::make_shared<Core>(I, P);
  } catch (const greta::rt::Error &E) {
    GTEST_SKIP() << E.what();
  }
  if (!Application)
    GTEST_SKIP() << "no Vulkan device";
  std::vector<const char *> Features, Extensions;
  for (const std::string &F : Application->Physical.Features)
    Features.push_back(F.c_str());
  for (const std::string &E : Application->Physical.Extensions)
    Extensions.push_back(E.c_str());
  auto Own = greta::detail::sized<greta_vulkan_device>();
  Own.get_instance_proc_addr =
      dlsym(dlopen("libvulkan.so.1", RTLD_NOW), "vkGetInstanceProcAddr");
  Own.physical_device = Application->Physical.Handle;
  Own.device = Application->Handle;
  Own.queue_family = Application->QueueFamily;
  Own.features = Features.data();
  Own.extensions = Extensions.data();
  Own.extension_count = Extensions.size();
  auto Refusal = [&] {
    greta_device *D = nullptr;
    EXPECT_NE(greta_device_adopt_vulkan(&Own, &D), GRETA_OK);
    return std::string(greta_last_error());
  };
  EXPECT_NE(Refusal().find("is given by vkGetInstanceProcAddr"),
            std::string::npos);
  Own.instance = Application->Inst->handle();
  EXPECT_NE(Refusal().find("was created without"), std::string::npos);
  Own.feature_count = Features.size();
  Own.queue = 1000;
  EXPECT_NE(Refusal().find("has no compute queue 1000"), std::string::npos);
  Own.queue = 0;
  Own.physical_device = &Own;
  EXPECT_NE(Refusal().find("does not have this physical device"),
            std::string::npos);
  Own.physical_device = Application->Physical.Handle;

  greta::Package P = packageOf(package());
  VulkanMemory Theirs(Application, shareCount * 4, /*HostVisible=*/true);
  {
    greta::Runtime R(Own);
    greta_buffer *Handle = nullptr;
    uint64_t Buffer = 0;
    memcpy(&Buffer, &Theirs.Buffer, sizeof(Buffer));
    greta::check(
        greta_buffer_adopt_vulkan(R.get(), Buffer, shareCount * 4, &Handle));
    greta::Buffer Out(Handle), In = R.allocate(shareCount * 4);
    greta::Stream S = R.stream();
    std::vector<float> X(shareCount, 3.0f), Y(shareCount);
    S.write(In, X.data(), shareCount * 4);
    R.load(P, "scale")
        .launch(S, {{&In, {1, shareCount}}}, {{&Out, {1, shareCount}}});
    S.read(Out, Y.data(), shareCount * 4);
    EXPECT_EQ(Y, std::vector<float>(shareCount, 7.0f));
    R.close();
  }
  EXPECT_EQ(static_cast<float *>(Theirs.Mapped)[shareCount - 1], 7.0f);
}

} // namespace
