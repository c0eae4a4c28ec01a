// Device.cpp: opening a device, queries, and whether a variant can run.
#include "Device.h"
#include "Coopmat.h"
#include "Error.h"
#include "Files.h"
#include "ModuleCheck.h"
#include "Process.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace greta::rt {
namespace vulkan {

Core::Core(std::shared_ptr<Instance> I, PhysicalDevice P)
    : Inst(std::move(I)), Physical(std::move(P)) {
  uint32_t Count = 0;
  Inst->GetPhysicalDeviceQueueFamilyProperties(Physical.Handle, &Count,
                                               nullptr);
  std::vector<VkQueueFamilyProperties> Families(Count);
  Inst->GetPhysicalDeviceQueueFamilyProperties(Physical.Handle, &Count,
                                               Families.data());
  QueueFamily = Count;
  for (uint32_t F = 0; F < Count && QueueFamily == Count; ++F)
    if (Families[F].queueFlags & VK_QUEUE_COMPUTE_BIT)
      QueueFamily = F;
  if (QueueFamily == Count)
    fail(GRETA_ERROR_UNSUPPORTED, Physical.Props.deviceName,
         " has no compute queue");
  TimestampBits = Families[QueueFamily].timestampValidBits;

  constexpr uint32_t maxQueues = 4;
  uint32_t QueueCount = std::min(maxQueues, Families[QueueFamily].queueCount);
  std::vector<float> Priorities(QueueCount, 1.0f);
  VkDeviceQueueCreateInfo QueueInfo{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  QueueInfo.queueFamilyIndex = QueueFamily;
  QueueInfo.queueCount = QueueCount;
  QueueInfo.pQueuePriorities = Priorities.data();
  FeatureChain Features;
  enableFeatures(Physical, Features);
  std::vector<const char *> Extensions;
  for (const std::string &E : Physical.Extensions)
    Extensions.push_back(E.c_str());
  VkDeviceCreateInfo Info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  Info.pNext = &Features.Core;
  Info.queueCreateInfoCount = 1;
  Info.pQueueCreateInfos = &QueueInfo;
  Info.enabledExtensionCount = static_cast<uint32_t>(Extensions.size());
  Info.ppEnabledExtensionNames = Extensions.data();
  check(Inst->CreateDevice(Physical.Handle, &Info, nullptr, &Handle),
        "opening ", Physical.Props.deviceName);
  auto Destroy = reinterpret_cast<PFN_vkDestroyDevice>(
      Inst->GetDeviceProcAddr(Handle, "vkDestroyDevice"));
  Owner.reset(Handle, [Destroy](VkDevice D) { Destroy(D, nullptr); });

  loadFunctions();
  for (uint32_t Q = 0; Q < QueueCount; ++Q) {
    Queues.push_back(std::make_unique<Queue>());
    Fn.GetDeviceQueue(Handle, QueueFamily, Q, &Queues.back()->Handle);
  }
  loadCache();
}

Core::Core(std::shared_ptr<Instance> I, PhysicalDevice P,
           const greta_vulkan_device &Own)
    : Inst(std::move(I)), Physical(std::move(P)),
      Handle(static_cast<VkDevice>(Own.device)), QueueFamily(Own.queue_family) {
  uint32_t Count = 0;
  Inst->GetPhysicalDeviceQueueFamilyProperties(Physical.Handle, &Count,
                                               nullptr);
  std::vector<VkQueueFamilyProperties> Families(Count);
  Inst->GetPhysicalDeviceQueueFamilyProperties(Physical.Handle, &Count,
                                               Families.data());
  if (QueueFamily >= Count || Own.queue >= Families[QueueFamily].queueCount ||
      !(Families[QueueFamily].queueFlags & VK_QUEUE_COMPUTE_BIT))
    fail(GRETA_ERROR_INVALID_ARGUMENT, Physical.Props.deviceName,
         " has no compute queue ", Own.queue, " of family ", QueueFamily);
  TimestampBits = Families[QueueFamily].timestampValidBits;
  loadFunctions();
  Queues.push_back(std::make_unique<Queue>());
  Fn.GetDeviceQueue(Handle, QueueFamily, Own.queue, &Queues.back()->Handle);
  loadCache();
}

void Core::loadFunctions() {
#define X(Name)                                                                \
  Fn.Name = reinterpret_cast<PFN_vk##Name>(                                    \
      Inst->GetDeviceProcAddr(Handle, "vk" #Name));                            \
  if (!Fn.Name)                                                                \
    fail(GRETA_ERROR_DEVICE, "the driver has no vk" #Name);
  GRETA_VULKAN_DEVICE_FUNCTIONS(X)
#undef X
  auto Load = [&](auto &Function, const char *Name) {
    Function = reinterpret_cast<std::decay_t<decltype(Function)>>(
        Inst->GetDeviceProcAddr(Handle, Name));
  };
  if (Physical.Features.count("pipelineExecutableInfo")) {
    Load(Fn.GetPipelineExecutableProperties,
         "vkGetPipelineExecutablePropertiesKHR");
    Load(Fn.GetPipelineExecutableStatistics,
         "vkGetPipelineExecutableStatisticsKHR");
  }
  if (Physical.Extensions.count("VK_KHR_external_memory_fd")) {
    Load(Fn.GetMemoryFd, "vkGetMemoryFdKHR");
    Load(Fn.GetMemoryFdProperties, "vkGetMemoryFdPropertiesKHR");
  }
  if (Physical.Extensions.count("VK_KHR_external_semaphore_fd"))
    Load(Fn.GetSemaphoreFd, "vkGetSemaphoreFdKHR");
  if (Physical.Extensions.count("VK_EXT_external_memory_host"))
    Load(Fn.GetMemoryHostPointerProperties,
         "vkGetMemoryHostPointerPropertiesEXT");
  Inst->GetPhysicalDeviceMemoryProperties(Physical.Handle, &Memory);
}

VkSemaphore Core::createTimeline(const void *Next) const {
  VkSemaphoreTypeCreateInfo Type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  Type.pNext = Next;
  Type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  Info.pNext = &Type;
  VkSemaphore Timeline = VK_NULL_HANDLE;
  check(Fn.CreateSemaphore(Handle, &Info, nullptr, &Timeline),
        "vkCreateSemaphore");
  return Timeline;
}

VkResult Core::wait(VkSemaphore Timeline, uint64_t Value,
                    uint64_t Nanoseconds) const {
  // Some drivers do not wake threads that wait for a lost device, so these look
  // again from time to time.
  constexpr uint64_t most = 500'000'000;
  VkSemaphoreWaitInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  Info.semaphoreCount = 1;
  Info.pSemaphores = &Timeline;
  Info.pValues = &Value;
  while (!IsLost) {
    uint64_t Now = std::min(Nanoseconds, most);
    VkResult Result = Fn.WaitSemaphores(Handle, &Info, Now);
    learn(Result);
    if (Result != VK_TIMEOUT || Now == Nanoseconds)
      return Result;
    if (Nanoseconds != UINT64_MAX)
      Nanoseconds -= Now;
    uint64_t Reached = 0;
    learn(Fn.GetSemaphoreCounterValue(Handle, Timeline, &Reached));
  }
  return VK_ERROR_DEVICE_LOST;
}

Core::~Core() {
  Blocks.trim();
  saveCache();
  Fn.DestroyPipelineCache(Handle, Cache, nullptr);
  for (VkQueryPool P : QueryPools)
    Fn.DestroyQueryPool(Handle, P, nullptr);
  retire(Residents.Timeline);
  for (VkSemaphore S : Retired)
    Fn.DestroySemaphore(Handle, S, nullptr);
}

// A batch's end is seen before Mesa's thread is through with the semaphores
// that the batch waited for; the thread is through when its queue says that it
// is idle. A queue that has batches is not asked: they may wait for the
// caller's next step. A lost device is not asked either, and an application's
// queue has batches that nobody here knows of.
void Core::retire(VkSemaphore Semaphore) {
  std::lock_guard<std::mutex> Guard(RetiredLock);
  if (Semaphore)
    Retired.push_back(Semaphore);
  if (Owner)
    for (const std::unique_ptr<Queue> &Q : Queues) {
      if (IsLost)
        return;
      std::lock_guard<std::mutex> QueueGuard(Q->Lock);
      if (Q->InFlight)
        return;
      if (std::exchange(Q->HasRun, false))
        learn(Fn.QueueWaitIdle(Q->Handle));
    }
  for (VkSemaphore S : Retired)
    Fn.DestroySemaphore(Handle, S, nullptr);
  Retired.clear();
}

// The driver checks only the data's header, and the file's hash the rest.
void Core::loadCache() {
  std::vector<uint8_t> Data;
  VkPipelineCacheCreateInfo Info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  if (readCache("vulkan-pipelines-" + Physical.cacheKey(), Data)) {
    Info.initialDataSize = Data.size();
    Info.pInitialData = Data.data();
  }
  check(Fn.CreatePipelineCache(Handle, &Info, nullptr, &Cache),
        "vkCreatePipelineCache");
}

void Core::saveCache() {
  if (!CacheChanged)
    return;
  size_t Size = 0;
  if (Fn.GetPipelineCacheData(Handle, Cache, &Size, nullptr) != VK_SUCCESS)
    return;
  std::vector<uint8_t> Data(Size);
  if (Fn.GetPipelineCacheData(Handle, Cache, &Size, Data.data()) != VK_SUCCESS)
    return;
  Data.resize(Size);
  writeCache("vulkan-pipelines-" + Physical.cacheKey(), Data);
}

Query::Query(CoreRef Owner) : C(std::move(Owner)) {
  C->needDevice();
  std::lock_guard<std::mutex> Guard(C->Lock);
  if (C->FreeQueries.empty()) {
    VkQueryPoolCreateInfo Info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    Info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    Info.queryCount = 256;
    VkQueryPool Pool;
    C->check(C->Fn.CreateQueryPool(C->Handle, &Info, nullptr, &Pool),
             "vkCreateQueryPool");
    C->QueryPools.push_back(Pool);
    for (uint32_t Q = 0; Q < Info.queryCount; ++Q)
      C->FreeQueries.push_back({Pool, Q});
  }
  Slot = C->FreeQueries.back();
  C->FreeQueries.pop_back();
}

Query::~Query() {
  std::lock_guard<std::mutex> Guard(C->Lock);
  C->FreeQueries.push_back(Slot);
}

VulkanDevice::VulkanDevice(CoreRef Owner, unsigned Index)
    : C(std::move(Owner)), Index(Index) {
  Spec = "vulkan:" + std::to_string(Index);
  Name = C->Physical.Props.deviceName;
}

std::unique_ptr<Stream> VulkanDevice::createStream() {
  return vulkan::createStream(C);
}
std::unique_ptr<Event> VulkanDevice::createEvent() {
  return std::make_unique<VulkanEvent>();
}

KernelRef VulkanDevice::loadKernel(const Variant &V, const KernelDecl &K,
                                   const std::vector<uint8_t> &Object,
                                   bool CaptureStatistics) {
  C->needDevice(); // also where the pipeline is there
  uint32_t Subgroup = V.Requires.SubgroupSize;
  std::vector<uint32_t> Words = checkModule(Object, K, V.Requires);
  auto Make = [&] {
    return std::make_shared<VulkanPipeline>(C, Subgroup, K, Words,
                                            CaptureStatistics);
  };
  // The layout has the size of the arguments alone.
  std::vector<uint32_t> Key = withoutNames(Words);
  Key.insert(Key.end(), {Subgroup, argumentOffsets(K.Args).back(),
                         uint32_t{CaptureStatistics}});
  return std::make_shared<VulkanKernel>(C->Pipelines.get(std::move(Key), Make),
                                        K.IsResident);
}

unsigned VulkanDevice::madeFor(const Variant &V) const {
  std::string Family = C->Physical.family();
  // vulkan:nvidia and vulkan:nvidia-ada are rows of one family.
  if (V.Target == Family || V.Target.rfind(Family + "-", 0) == 0)
    return 2;
  size_t Vendor = Family.find_last_not_of("0123456789") + 1;
  return Vendor && V.Target.compare(0, Vendor, Family, 0, Vendor) == 0;
}

uint32_t VulkanDevice::computeUnits() const { return C->Physical.ComputeUnits; }

uint32_t VulkanDevice::defaultSubgroupSize() const {
  return C->Physical.V11.subgroupSize;
}

std::array<uint32_t, 3> VulkanDevice::maxGrid() const {
  const uint32_t *Max = C->Physical.Props.limits.maxComputeWorkGroupCount;
  return {Max[0], Max[1], Max[2]};
}

bool canPinSubgroup(const PhysicalDevice &P, uint32_t Size) {
  if (P.V13.minSubgroupSize == P.V13.maxSubgroupSize)
    return Size == P.V11.subgroupSize;
  return P.Features.count("subgroupSizeControl") &&
         P.Features.count("computeFullSubgroups") &&
         (P.V13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         Size >= P.V13.minSubgroupSize && Size <= P.V13.maxSubgroupSize;
}

std::string VulkanDevice::whyNotSubgroup(const Variant &V) const {
  const PhysicalDevice &P = C->Physical;
  uint32_t Size = V.Requires.SubgroupSize;
  if (!Size)
    return V.Requires.SubgroupOps.empty()
               ? ""
               : "subgroup operations without a subgroup size";
  if (!canPinSubgroup(P, Size))
    return concat("subgroup size ", Size, " is needed, the device has ",
                  P.V13.minSubgroupSize,
                  P.V13.minSubgroupSize == P.V13.maxSubgroupSize
                      ? ""
                      : concat(" to ", P.V13.maxSubgroupSize));
  if (!(P.V11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
    return "no subgroup operations in compute shaders";
  std::vector<std::string> Have =
      subgroupOps(P.V11.subgroupSupportedOperations);
  for (const std::string &Op : V.Requires.SubgroupOps)
    if (std::find(Have.begin(), Have.end(), Op) == Have.end())
      return "subgroup operation '" + Op + "' is not supported";
  for (const KernelDecl &K : V.Kernels) {
    if (K.Block[0] % Size)
      return concat("workgroup x size ", K.Block[0],
                    " is not a multiple of the subgroup size ", Size);
    uint32_t Threads = K.Block[0] * K.Block[1] * K.Block[2];
    if (P.V13.maxComputeWorkgroupSubgroups &&
        Threads / Size > P.V13.maxComputeWorkgroupSubgroups)
      return concat(Threads / Size, " subgroups a workgroup, the limit is ",
                    P.V13.maxComputeWorkgroupSubgroups);
  }
  return "";
}

std::string VulkanDevice::whyNot(const Variant &V) {
  if (V.Backend != "vulkan")
    return "it is for " + V.Backend;
  const PhysicalDevice &P = C->Physical;
  const Requirements &R = V.Requires;
  if (!R.Unknown.empty())
    return "unknown requirement '" + R.Unknown + "'";
  for (const std::string &F : R.Features)
    if (!P.Features.count(F))
      return (knownFeature(F) ? "missing feature " : "unknown feature ") + F;
  std::string Why = whyNotSubgroup(V);
  if (!Why.empty())
    return Why;
  const VkPhysicalDeviceLimits &L = P.Props.limits;
  for (const KernelDecl &K : V.Kernels) {
    uint64_t Shared = std::max(K.LdsBytes, R.SharedBytes);
    if (Shared > L.maxComputeSharedMemorySize)
      return concat(Shared, " bytes of shared memory, the limit is ",
                    L.maxComputeSharedMemorySize);
    uint32_t Threads = K.Block[0] * K.Block[1] * K.Block[2];
    if (Threads > L.maxComputeWorkGroupInvocations)
      return concat(Threads, " invocations a workgroup, the limit is ",
                    L.maxComputeWorkGroupInvocations);
    for (int D = 0; D < 3; ++D)
      if (K.Block[D] > L.maxComputeWorkGroupSize[D])
        return concat("workgroup size ", K.Block[D], " in dim ", D,
                      ", the limit is ", L.maxComputeWorkGroupSize[D]);
  }
  return whyNotCoopmat(C, R);
}

void VulkanDevice::describe(nlohmann::json &Out) {
  Out["spec"] = Spec;
  C->Physical.describe(Out);
  describeLayouts(C, Out);
}

} // namespace vulkan

std::shared_ptr<Device> openVulkan(unsigned Index) {
  auto I = vulkan::Instance::get();
  std::vector<vulkan::PhysicalDevice> All = vulkan::physicalDevices(*I);
  size_t Usable = 0;
  for (const vulkan::PhysicalDevice &P : All)
    Usable += P.Refused.empty();
  if (Index >= Usable) {
    std::string Reasons;
    for (const vulkan::PhysicalDevice &P : All)
      if (!P.Refused.empty())
        Reasons += concat("; ", P.Props.deviceName, ": ", P.Refused);
    fail(GRETA_ERROR_NOT_FOUND, "no device vulkan:", Index,
         "; usable Vulkan devices: ", Usable, Reasons);
  }
  return std::make_shared<vulkan::VulkanDevice>(
      std::make_shared<vulkan::Core>(I, All[Index]), Index);
}

unsigned vulkanIndex(const std::string &Uuid) {
  std::vector<vulkan::PhysicalDevice> All =
      vulkan::physicalDevices(*vulkan::Instance::get());
  for (size_t Index = 0; Index < All.size(); ++Index)
    if (All[Index].Refused.empty() && All[Index].uuid() == Uuid)
      return static_cast<unsigned>(Index);
  fail(GRETA_ERROR_NOT_FOUND, "no usable Vulkan device has the UUID ", Uuid);
}

std::shared_ptr<Device> adoptVulkan(const greta_vulkan_device &Own) {
  auto GetProc =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(Own.get_instance_proc_addr);
  if (!GetProc || !Own.instance || !Own.physical_device || !Own.device)
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "an application's Vulkan device is given by vkGetInstanceProcAddr, "
         "VkInstance, VkPhysicalDevice and VkDevice");
  auto I = std::make_shared<vulkan::Instance>(
      GetProc, static_cast<VkInstance>(Own.instance));
  for (vulkan::PhysicalDevice &P : vulkan::physicalDevices(*I)) {
    if (P.Handle != Own.physical_device)
      continue;
    if (!P.Refused.empty())
      fail(GRETA_ERROR_UNSUPPORTED, P.Props.deviceName, ": ", P.Refused);
    P.restrict({Own.features, Own.features + Own.feature_count},
               {Own.extensions, Own.extensions + Own.extension_count});
    return std::make_shared<vulkan::VulkanDevice>(
        std::make_shared<vulkan::Core>(I, P, Own), 0);
  }
  fail(GRETA_ERROR_NOT_FOUND,
       "the instance does not have this physical device");
}

void listVulkan(nlohmann::json &Out) {
  try {
    auto I = vulkan::Instance::get();
    std::vector<vulkan::PhysicalDevice> All = vulkan::physicalDevices(*I);
    if (All.empty())
      fail(GRETA_ERROR_NOT_FOUND, "the Vulkan loader found no device");
    for (unsigned Index = 0; Index < All.size(); ++Index) {
      nlohmann::json J = {{"spec", "vulkan:" + std::to_string(Index)},
                          {"available", All[Index].Refused.empty()}};
      if (!All[Index].Refused.empty()) {
        J["spec"] = "vulkan";
        J["reason"] = All[Index].Refused;
        All[Index].describe(J);
      } else {
        vulkan::VulkanDevice(std::make_shared<vulkan::Core>(I, All[Index]),
                             Index)
            .describe(J);
      }
      Out.push_back(std::move(J));
    }
  } catch (const Error &E) {
    Out.push_back({{"spec", "vulkan"},
                   {"backend", "vulkan"},
                   {"available", false},
                   {"reason", E.what()}});
  }
}

} // namespace greta::rt
