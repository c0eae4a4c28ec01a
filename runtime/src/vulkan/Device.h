// Device.h: one opened Vulkan device: memory, queues, queries, pipelines.
//
// Kernels get device addresses through push constants, so there are no
// descriptors: a buffer is memory with an address, a launch is pipeline + push
// constants + dispatch. Arguments that are more than the device has push
// constants for lie in memory of the stream or the graph (ArgumentBuffer.h).
#ifndef GRETA_RUNTIME_VULKAN_DEVICE_H
#define GRETA_RUNTIME_VULKAN_DEVICE_H

#include "Backend.h"
#include "DLPack.h"
#include "Features.h"
#include "Pipelines.h"
#include "Pool.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace greta::rt::vulkan {

#define GRETA_VULKAN_DEVICE_FUNCTIONS(X)                                       \
  X(AllocateCommandBuffers)                                                    \
  X(AllocateMemory)                                                            \
  X(BeginCommandBuffer)                                                        \
  X(BindBufferMemory)                                                          \
  X(CmdBindPipeline)                                                           \
  X(CmdCopyBuffer)                                                             \
  X(CmdDispatch)                                                               \
  X(CmdFillBuffer)                                                             \
  X(CmdPipelineBarrier2)                                                       \
  X(CmdPushConstants)                                                          \
  X(CmdResetQueryPool)                                                         \
  X(CmdWriteTimestamp2)                                                        \
  X(CreateBuffer)                                                              \
  X(CreateCommandPool)                                                         \
  X(CreateComputePipelines)                                                    \
  X(CreatePipelineCache)                                                       \
  X(CreatePipelineLayout)                                                      \
  X(CreateQueryPool)                                                           \
  X(CreateSemaphore)                                                           \
  X(CreateShaderModule)                                                        \
  X(DestroyBuffer)                                                             \
  X(DestroyCommandPool)                                                        \
  X(DestroyPipeline)                                                           \
  X(DestroyPipelineCache)                                                      \
  X(DestroyPipelineLayout)                                                     \
  X(DestroyQueryPool)                                                          \
  X(DestroySemaphore)                                                          \
  X(DestroyShaderModule)                                                       \
  X(EndCommandBuffer)                                                          \
  X(FreeMemory)                                                                \
  X(GetBufferDeviceAddress)                                                    \
  X(GetBufferMemoryRequirements)                                               \
  X(GetDeviceQueue)                                                            \
  X(GetPipelineCacheData)                                                      \
  X(GetQueryPoolResults)                                                       \
  X(GetSemaphoreCounterValue)                                                  \
  X(MapMemory)                                                                 \
  X(QueueSubmit2)                                                              \
  X(QueueWaitIdle)                                                             \
  X(ResetCommandBuffer)                                                        \
  X(SignalSemaphore)                                                           \
  X(WaitSemaphores)

// The functions of one VkDevice.
struct DeviceFunctions {
#define X(Name) PFN_vk##Name Name = nullptr;
  GRETA_VULKAN_DEVICE_FUNCTIONS(X)
#undef X
  // VK_KHR_pipeline_executable_properties; null without it.
  PFN_vkGetPipelineExecutablePropertiesKHR GetPipelineExecutableProperties =
      nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR GetPipelineExecutableStatistics =
      nullptr;
  // VK_KHR_external_semaphore_fd; null without it.
  PFN_vkGetSemaphoreFdKHR GetSemaphoreFd = nullptr;
  // VK_KHR_external_memory_fd, VK_EXT_external_memory_host; null without them.
  PFN_vkGetMemoryFdKHR GetMemoryFd = nullptr;
  PFN_vkGetMemoryFdPropertiesKHR GetMemoryFdProperties = nullptr;
  PFN_vkGetMemoryHostPointerPropertiesEXT GetMemoryHostPointerProperties =
      nullptr;
};

// A layout as probed on this device with this subgroup size. `Why` says why
// there is none.
struct ProbedLayout {
  CoopLayout Layout;
  uint32_t SubgroupSize = 0;
  std::string Why;
};

struct StreamState;
struct VulkanCounter;

// A counter that a stream was told to wait for, which keeps it until then.
struct Awaited {
  std::weak_ptr<VulkanCounter> Of;
  uint64_t Value;
};
// Adds missing counters; one that is in both gets the larger value.
void addTo(std::vector<Awaited> &All, const std::vector<Awaited> &More);

// Workgroups that wait for each other all need places. Two such launches beside
// each other may each get a part of the places and wait for ever, so a batch
// with some waits for the one of another stream that was submitted before it.
struct Turns {
  std::mutex Lock; // guards the rest, also during a submission
  VkSemaphore Timeline = VK_NULL_HANDLE; // has a value for each batch
  uint64_t Given = 0;
  const StreamState *Last = nullptr; // the last batch's stream
  std::vector<Awaited> Behind;       // counters it waits for
};

// The VkDevice itself; everything made from it holds it.
struct Core {
  Core(std::shared_ptr<Instance> I, PhysicalDevice P);
  // Wraps an application's device; P has the features enabled there.
  Core(std::shared_ptr<Instance> I, PhysicalDevice P,
       const greta_vulkan_device &Own);
  ~Core();
  Core(const Core &) = delete;
  // All answers of the driver go through these. After the first that says that
  // the device is lost, the driver is not asked any more.
  void learn(VkResult Result) const {
    if (Result == VK_ERROR_DEVICE_LOST)
      IsLost = true;
  }
  template <typename... Parts>
  void check(VkResult Result, const Parts &...What) const {
    learn(Result);
    vulkan::check(Result, What...);
  }
  // Drivers differ in what they answer once a device is lost.
  void needDevice() const {
    if (IsLost)
      failLost(Physical.Props.deviceName);
  }
  // Waits, at most so long, until the timeline has come to Value (or
  // VK_TIMEOUT) or the device is lost, whoever finds out.
  VkResult wait(VkSemaphore Timeline, uint64_t Value,
                uint64_t Nanoseconds) const;
  [[noreturn]] void outOfMemory(size_t Size) const;
  VkSemaphore createTimeline(const void *Next = nullptr) const;
  // Destroys it and all that were retired before, now or in a later call, when
  // no batch can be at work with them. Batches that are submitted later do not
  // use it. The caller has no queue's lock.
  void retire(VkSemaphore Semaphore);
  // Returns whether device memory is the host's: an integrated GPU or a CPU.
  bool sharesMemory() const;
  uint64_t deviceMemory() const; // bytes of the heaps for buffers
  uint64_t freeMemory() const;   // of these heaps; 0: not known
  // Returns a memory type with these properties, if there is one.
  std::optional<uint32_t> memoryType(uint32_t Allowed,
                                     VkMemoryPropertyFlags Wanted) const;
  // Returns properties for a buffer's memory, the best first.
  std::vector<VkMemoryPropertyFlags> wishes(bool HostVisible,
                                            bool PreferDevice) const;

  std::shared_ptr<Instance> Inst;
  PhysicalDevice Physical;
  VkDevice Handle = VK_NULL_HANDLE;
  std::shared_ptr<void> Owner; // closes Handle, also when construction fails
  DeviceFunctions Fn;
  VkPhysicalDeviceMemoryProperties Memory{};
  uint32_t QueueFamily = 0;
  uint32_t TimestampBits = 0;
  struct Queue {
    VkQueue Handle;
    std::mutex Lock; // guards the rest
    // Its batches may still wait for these counters. Every later batch of the
    // queue waits for them, too.
    std::vector<Awaited> Behind;
    // Counts batches whose end no stream has seen.
    std::atomic<size_t> InFlight{0};
    bool HasRun = false; // since the driver last said that it is idle
  };
  std::vector<std::unique_ptr<Queue>> Queues; // streams share them in turn
  Pool Blocks{*this};                         // device memory for buffers
  Turns Residents;
  VkPipelineCache Cache = VK_NULL_HANDLE;
  std::atomic<bool> CacheChanged{false};
  PipelineTable Pipelines;
  mutable std::atomic<bool> IsLost{false}; // never reset
  std::mutex RetiredLock;                  // taken before a queue's
  std::vector<VkSemaphore> Retired;
  std::mutex Lock; // guards the members below
  size_t NextQueue = 0;
  struct QueryPool {
    VkQueryPool Handle;
    uint32_t Index;
  };
  std::vector<VkQueryPool> QueryPools;
  std::vector<QueryPool> FreeQueries;
  std::mutex LayoutLock; // guards Layouts; probedLayouts fills it
  std::optional<std::vector<ProbedLayout>> Layouts;

private:
  std::vector<uint32_t> bufferHeaps() const;
  void loadFunctions();
  void loadCache();
  void saveCache();
};
using CoreRef = std::shared_ptr<Core>;

struct VulkanMemory : Memory {
  // Describes memory that comes from elsewhere or goes there.
  struct External {
    VkExternalMemoryHandleTypeFlagBits Type;
    void *Pointer; // host memory to import
    int Fd;        // to import; with neither, memory is exported
  };

  // Allocates device-local memory, or memory visible to the host (Mapped is
  // set) that is on the device if that is wanted and it has some.
  VulkanMemory(CoreRef C, size_t Bytes, bool HostVisible,
               bool PreferDevice = false);
  VulkanMemory(CoreRef C, size_t Bytes, const External &From);
  // Wraps an application's buffer, which the application keeps.
  VulkanMemory(CoreRef C, size_t Bytes, VkBuffer Own);
  ~VulkanMemory() override;
  void exportFd(greta_shared_memory &Out) const override;
  bool isShared() const override {
    return Exported == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  }
  void *handle() const override { return reinterpret_cast<void *>(Buffer); }
  CoreRef C;
  VkBuffer Buffer = VK_NULL_HANDLE;
  Pool::Place Place;                          // for device-local memory
  VkDeviceMemory Allocation = VK_NULL_HANDLE; // for other memory
  // The runtime itself writes and reads at this address, on a device with the
  // host's memory; null if it goes through staging memory.
  char *Direct = nullptr;
  bool IsCached = false; // by the host, which reads other memory slowly
  VkExternalMemoryHandleTypeFlagBits Exported{};
  bool IsAdopted = false;

private:
  // The other constructors delegate to this one, so ~VulkanMemory frees what
  // they made if they throw.
  VulkanMemory(CoreRef C, size_t Bytes);
  void create(const void *Next);
  void findAddress();
  void checkBound(VkResult Result);
  void releaseMemory();
  VkResult bind(bool HostVisible, bool PreferDevice);
  VkResult bindInBlock(const VkMemoryRequirements &Needs, uint32_t Type);
  VkResult bindExternal(const External &From);
  VkResult allocate(const VkMemoryRequirements &Needs,
                    std::optional<uint32_t> Type, const void *Next);
};

struct VulkanPipeline {
  // `Words` is a module that passed checkModule.
  VulkanPipeline(CoreRef C, uint32_t SubgroupSize, const KernelDecl &K,
                 const std::vector<uint32_t> &Words, bool CaptureStatistics);
  ~VulkanPipeline();
  CoreRef C;
  VkPipelineLayout Layout = VK_NULL_HANDLE;
  VkPipeline Handle = VK_NULL_HANDLE;
  bool Captured = false;
  // It has too many arguments for push constants, which have their address.
  bool FromBuffer = false;
};

struct VulkanKernel : Kernel {
  VulkanKernel(PipelineRef Pipeline, bool IsResident)
      : Pipeline(std::move(Pipeline)), IsResident(IsResident) {}
  void statistics(nlohmann::json &Out) const override;
  PipelineRef Pipeline; // also of kernels with the same module
  bool IsResident;      // its workgroups wait for each other
};

// A query of type VK_QUERY_TYPE_TIMESTAMP of its own, which goes back to the
// device when it is unused.
struct Query {
  explicit Query(CoreRef C);
  ~Query();
  CoreRef C;
  Core::QueryPool Slot;
};

// A timeline semaphore that another API imports.
struct VulkanCounter : Counter {
  explicit VulkanCounter(CoreRef C);
  ~VulkanCounter() override;
  int exportFd() const override;
  void raise(uint64_t Value) override;
  uint64_t value() const override;
  VkSemaphoreSubmitInfo at(uint64_t Value) const;
  CoreRef C;
  VkSemaphore Handle = VK_NULL_HANDLE;
};

struct VulkanEvent : Event {
  bool wait(uint64_t Nanoseconds) override;
  double since(Event &Start) override;
  uint64_t ticks() const;
  std::shared_ptr<StreamState> Owner; // the stream that recorded it last
  uint64_t Value = 0;                 // value of that stream's timeline
  std::shared_ptr<Query> Time;
};

std::unique_ptr<Stream> createStream(CoreRef C);

class VulkanDevice : public Device {
public:
  VulkanDevice(CoreRef C, unsigned Index);
  bool isLost() const override { return C->IsLost; }
  Reserved reserved() override;
  void trim() override { C->Blocks.trim(); }
  MemoryRef allocateMapped(size_t Size) override;
  MemoryRef importPointer(void *Pointer, size_t Size) override;
  size_t pointerUnit() const override;
  std::pair<int32_t, int32_t> dlpackDevice() const override {
    return {kDLVulkan, static_cast<int32_t>(Index)};
  }
  MemoryRef allocateShared(greta_fd_kind Kind, size_t Size) override;
  MemoryRef importFd(const greta_shared_memory &From) override;
  MemoryRef adoptVulkan(uint64_t Buffer, size_t Size) override;
  std::unique_ptr<Stream> createStream() override;
  std::unique_ptr<Event> createEvent() override;
  std::shared_ptr<Counter> createCounter() override;
  KernelRef loadKernel(const Variant &V, const KernelDecl &K,
                       const std::vector<uint8_t> &Object,
                       bool CaptureStatistics) override;
  KernelRef smallReduce(size_t ArgumentBytes) override;
  std::string whyNot(const Variant &V) override;
  unsigned madeFor(const Variant &V) const override;
  uint32_t computeUnits() const override;
  uint32_t defaultSubgroupSize() const override;
  void describe(nlohmann::json &Out) override;
  std::array<uint32_t, 3> maxGrid() const override;
  std::string cacheKey() const override { return C->Physical.cacheKey(); }

protected:
  MemoryRef allocateMemory(size_t Size) override;

private:
  VkExternalMemoryHandleTypeFlagBits handleType(greta_fd_kind Kind) const;
  std::string whyNotSubgroup(const Variant &V) const;
  CoreRef C;
  unsigned Index;
};

// Returns whether compute pipelines can be pinned to this subgroup size with
// all lanes on.
bool canPinSubgroup(const PhysicalDevice &P, uint32_t Size);

} // namespace greta::rt::vulkan
#endif
