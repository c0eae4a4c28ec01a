// IntegratedTest.cpp: buffers of a device whose memory is the host's. A real
// driver is told to be an APU as RADV describes one: two heaps that are parts
// of one memory, and the same types in both. The bytes in a heap are counted
// here.
#include "AnyVulkan.h"

#include <array>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <map>

using namespace greta::rt;
using namespace greta::rt::vulkan;
using namespace greta_test;

namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr size_t MiB = size_t(1) << 20;
// Larger than half of a pool's block, so that each has an allocation alone.
constexpr size_t largeBytes = 40 * MiB;

// Counts of the replaced functions' calls; the driver's own are in `Real`.
struct Apu {
  DeviceFunctions Real;
  VkPhysicalDeviceMemoryProperties Memory{}; // what the runtime sees
  uint32_t RealType = 0;                     // of all allocations
  std::array<VkDeviceSize, 2> Used{};        // of the heaps
  std::map<VkDeviceMemory, std::pair<uint32_t, VkDeviceSize>> Allocations;
  int Copies = 0, Submitted = 0;
} Card;

class Integrated : public AnyVulkan {
protected:
  void SetUp() override {
    AnyVulkan::SetUp();
    if (!C)
      return; // skipped
    Card = {};
    Card.Real = C->Fn;
    auto Type = C->memoryType(~0u, visible);
    ASSERT_TRUE(Type);
    Card.RealType = *Type;
    describe();
    C->Memory = Card.Memory;
    C->Physical.Props.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    C->Fn.GetBufferMemoryRequirements = [](VkDevice D, VkBuffer B,
                                           VkMemoryRequirements *Needs) {
      Card.Real.GetBufferMemoryRequirements(D, B, Needs);
      Needs->memoryTypeBits = (1u << Card.Memory.memoryTypeCount) - 1;
    };
    C->Fn.AllocateMemory = [](VkDevice D, const VkMemoryAllocateInfo *Info,
                              const VkAllocationCallbacks *A,
                              VkDeviceMemory *M) {
      uint32_t Heap = Card.Memory.memoryTypes[Info->memoryTypeIndex].heapIndex;
      if (Card.Used[Heap] + Info->allocationSize >
          Card.Memory.memoryHeaps[Heap].size)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
      VkMemoryAllocateInfo Own = *Info;
      Own.memoryTypeIndex = Card.RealType;
      VkResult Result = Card.Real.AllocateMemory(D, &Own, A, M);
      if (Result == VK_SUCCESS) {
        Card.Allocations[*M] = {Heap, Info->allocationSize};
        Card.Used[Heap] += Info->allocationSize;
      }
      return Result;
    };
    C->Fn.FreeMemory = [](VkDevice D, VkDeviceMemory M,
                          const VkAllocationCallbacks *A) {
      auto [Heap, Bytes] = Card.Allocations[M];
      Card.Used[Heap] -= Bytes;
      Card.Allocations.erase(M);
      Card.Real.FreeMemory(D, M, A);
    };
    C->Fn.CmdCopyBuffer = [](VkCommandBuffer Cmd, VkBuffer From, VkBuffer To,
                             uint32_t N, const VkBufferCopy *Parts) {
      ++Card.Copies;
      Card.Real.CmdCopyBuffer(Cmd, From, To, N, Parts);
    };
    C->Fn.QueueSubmit2 = [](VkQueue Q, uint32_t N, const VkSubmitInfo2 *Info,
                            VkFence F) {
      ++Card.Submitted;
      return Card.Real.QueueSubmit2(Q, N, Info, F);
    };
    S = createStream(C);
  }
  void beDiscrete() {
    C->Physical.Props.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  }
  std::vector<MemoryRef> allocateAll() {
    std::vector<MemoryRef> All;
    try {
      while (All.size() < 100)
        All.push_back(memory(largeBytes));
    } catch (const Error &E) {
      EXPECT_EQ(E.code(), GRETA_ERROR_OUT_OF_MEMORY) << E.what();
      std::string Total = std::to_string(C->deviceMemory());
      EXPECT_NE(std::string(E.what()).find(Total), std::string::npos)
          << E.what();
    }
    return All;
  }
  MemoryRef mapped(size_t Bytes) {
    return std::make_shared<VulkanMemory>(C, Bytes, /*HostVisible=*/true,
                                          /*PreferDevice=*/true);
  }
  std::unique_ptr<Stream> S;

private:
  static void describe() {
    VkPhysicalDeviceMemoryProperties &M = Card.Memory;
    M.memoryHeapCount = 2;
    M.memoryHeaps[0] = {2 * largeBytes, 0};
    M.memoryHeaps[1] = {4 * largeBytes, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    M.memoryTypeCount = 4;
    M.memoryTypes[0] = {local, 1};
    M.memoryTypes[1] = {visible, 0};
    M.memoryTypes[2] = {local | visible, 1};
    M.memoryTypes[3] = {visible | cached, 0};
  }
};

std::vector<uint32_t> counted(size_t Bytes) {
  std::vector<uint32_t> Words(Bytes / 4);
  for (size_t I = 0; I < Words.size(); ++I)
    Words[I] = static_cast<uint32_t>(I * 2654435761u);
  return Words;
}

TEST_F(Integrated, WritesMakeNoCopy) {
  std::vector<uint32_t> Data = counted(64 * MiB), Back(Data.size());
  MemoryRef A = memory(64 * MiB);
  EXPECT_EQ(A->Mapped, nullptr); // that is the application's pointer
  S->write(A, 0, Data.data(), 64 * MiB);
  EXPECT_EQ(Card.Copies, 0);
  EXPECT_EQ(Card.Submitted, 0);
  // The device sees it, and what the device writes is read.
  MemoryRef B = memory(64 * MiB);
  S->copy(B, 0, A, 0, 64 * MiB);
  // Memory that the host does not cache is read through cached memory.
  S->read(B, 0, Back.data(), 64 * MiB);
  EXPECT_EQ(Card.Copies, 1 + 16);
  EXPECT_EQ(Back, Data);
}

TEST_F(Integrated, CachedMemoryIsReadInPlace) {
  std::vector<uint32_t> Data = counted(8 * MiB), Back(Data.size());
  MemoryRef A = memory(8 * MiB), M = mapped(8 * MiB);
  EXPECT_TRUE(static_cast<VulkanMemory &>(*M).IsCached);
  EXPECT_FALSE(static_cast<VulkanMemory &>(*A).IsCached);
  S->write(A, 0, Data.data(), 8 * MiB);
  S->copy(M, 0, A, 0, 8 * MiB);
  S->read(M, 0, Back.data(), 8 * MiB);
  EXPECT_EQ(Card.Copies, 1);
  EXPECT_EQ(Back, Data);
}

TEST_F(Integrated, DiscreteDevicesCopy) {
  beDiscrete();
  std::vector<uint32_t> Data = counted(8 * MiB), Back(Data.size());
  MemoryRef A = memory(8 * MiB);
  S->write(A, 0, Data.data(), 8 * MiB);
  EXPECT_EQ(Card.Copies, 2);
  S->read(A, 0, Back.data(), 8 * MiB);
  EXPECT_EQ(Card.Copies, 4);
  EXPECT_EQ(Back, Data);
}

// A write behind work that is not done waits for nobody and overtakes nothing.
TEST_F(Integrated, BusyStreamsKeepTheirOrder) {
  MemoryRef A = memory(256);
  uint32_t Two = 2, Words[2] = {};
  for (bool IsSubmitted : {false, true}) {
    std::promise<void> Release;
    std::shared_future<void> Released = Release.get_future().share();
    S->callHost(
        [](void *F) { static_cast<std::shared_future<void> *>(F)->wait(); },
        &Released);
    S->fill(A, 0, 256, 1);
    if (IsSubmitted)
      S->flush();
    S->write(A, 0, &Two, 4);
    Release.set_value();
    S->read(A, 0, Words, 8);
    EXPECT_EQ(Words[0], 2u);
    EXPECT_EQ(Words[1], 1u);
  }
  // The function of the host alone keeps the stream busy, too.
  std::promise<void> Release;
  std::shared_future<void> Released = Release.get_future().share();
  S->callHost(
      [](void *F) { static_cast<std::shared_future<void> *>(F)->wait(); },
      &Released);
  uint32_t Three = 3;
  S->write(A, 0, &Three, 4);
  const char *Direct = static_cast<VulkanMemory &>(*A).Direct;
  EXPECT_EQ(memcmp(Direct, &Two, 4), 0);
  Release.set_value();
  S->read(A, 0, Words, 4);
  EXPECT_EQ(Words[0], 3u);
}

TEST_F(Integrated, AllHeapsHoldBuffers) {
  EXPECT_EQ(C->deviceMemory(), 6 * largeBytes);
  {
    MemoryRef First = memory(largeBytes);
    EXPECT_EQ(Card.Used[0], 0u); // the device's own part first
  }
  std::vector<MemoryRef> All = allocateAll();
  EXPECT_EQ(All.size(), 6u);
  // All of them are written in place; there is no room for staging memory.
  uint32_t Word = 5;
  for (const MemoryRef &M : All) {
    S->write(M, largeBytes - 4, &++Word, 4);
    const char *Direct = static_cast<VulkanMemory &>(*M).Direct;
    ASSERT_NE(Direct, nullptr);
    EXPECT_EQ(memcmp(Direct + largeBytes - 4, &Word, 4), 0);
  }
}

TEST_F(Integrated, DiscreteDevicesHaveTheirOwnHeap) {
  beDiscrete();
  EXPECT_EQ(C->deviceMemory(), 4 * largeBytes);
  EXPECT_EQ(allocateAll().size(), 4u);
  EXPECT_EQ(Card.Used[0], 0u);
}

} // namespace
