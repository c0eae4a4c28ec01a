// LosingVulkan.cpp: a libvulkan.so.1 in front of the real one, whose path is in
// $GRETA_TEST_VULKAN. Its devices are lost from the moment on when there is a
// file $GRETA_TEST_LOSE: as after a fault, what asks for work or for news says
// so, for good; with $GRETA_TEST_LOSE_ONLY, the one with this number alone, in
// the order in which they are made, and the first one is listed twice. The real
// device still runs what it was given before: nothing that it has is destroyed.
// $GRETA_TEST_MEMORY is how many bytes they say are free.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <map>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>
#include <vulkan/vulkan_core.h>

namespace {

PFN_vkGetInstanceProcAddr realInstance() {
  static auto Found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen(getenv("GRETA_TEST_VULKAN"), RTLD_NOW | RTLD_LOCAL),
            "vkGetInstanceProcAddr"));
  return Found;
}

// The devices, and each queue's: drivers of a machine may have several.
std::mutex Lock;
std::vector<VkDevice> Devices;
std::map<VkQueue, VkDevice> Queues;

bool isLost(VkDevice Device) {
  if (access(getenv("GRETA_TEST_LOSE"), F_OK) != 0)
    return false;
  const char *Only = getenv("GRETA_TEST_LOSE_ONLY");
  std::lock_guard<std::mutex> Guard(Lock);
  return !Only || (atoi(Only) < static_cast<int>(Devices.size()) &&
                   Devices[static_cast<size_t>(atoi(Only))] == Device);
}

bool isLost(VkQueue Queue) {
  VkDevice Device;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Device = Queues.at(Queue);
  }
  return isLost(Device);
}

PFN_vkGetDeviceProcAddr RealDevice;
PFN_vkGetDeviceQueue RealQueue;
PFN_vkQueueSubmit2 RealSubmit;
PFN_vkWaitSemaphores RealWait;
PFN_vkGetSemaphoreCounterValue RealCounter;

VkResult submit(VkQueue Queue, uint32_t Count, const VkSubmitInfo2 *Infos,
                VkFence Fence) {
  return isLost(Queue) ? VK_ERROR_DEVICE_LOST
                       : RealSubmit(Queue, Count, Infos, Fence);
}

VkResult wait(VkDevice Device, const VkSemaphoreWaitInfo *Info,
              uint64_t Timeout) {
  return isLost(Device) ? VK_ERROR_DEVICE_LOST
                        : RealWait(Device, Info, Timeout);
}

VkResult counter(VkDevice Device, VkSemaphore Semaphore, uint64_t *Value) {
  return isLost(Device) ? VK_ERROR_DEVICE_LOST
                        : RealCounter(Device, Semaphore, Value);
}

void queue(VkDevice Device, uint32_t Family, uint32_t Index, VkQueue *Queue) {
  RealQueue(Device, Family, Index, Queue);
  std::lock_guard<std::mutex> Guard(Lock);
  Queues[*Queue] = Device;
}

// vkDestroyBuffer and its like, which take a device and a handle.
constexpr const char *destroyNames[] = {
    "vkDestroyBuffer",         "vkDestroyCommandPool", "vkDestroyPipeline",
    "vkDestroyPipelineLayout", "vkDestroySemaphore",   "vkDestroyShaderModule",
    "vkDestroyPipelineCache",  "vkDestroyQueryPool",   "vkFreeMemory"};
constexpr size_t destroyCount = std::size(destroyNames);
PFN_vkDestroyBuffer RealDestroy[destroyCount];
PFN_vkDestroyDevice RealDestroyDevice;

template <size_t N>
void destroy(VkDevice Device, VkBuffer Handle, const VkAllocationCallbacks *A) {
  if (!isLost(Device))
    RealDestroy[N](Device, Handle, A);
}

template <size_t... N>
PFN_vkDestroyBuffer destroyAt(size_t Index, std::index_sequence<N...>) {
  constexpr PFN_vkDestroyBuffer all[] = {destroy<N>...};
  return all[Index];
}

void destroyDevice(VkDevice Device, const VkAllocationCallbacks *A) {
  if (!isLost(Device))
    RealDestroyDevice(Device, A);
}

// A driver that does not say how much memory is free says so here: the
// extension is listed, and left out again where the driver would refuse it.
const char *freeMemory() { return getenv("GRETA_TEST_MEMORY"); }

PFN_vkEnumerateDeviceExtensionProperties RealExtensions;
PFN_vkEnumeratePhysicalDevices RealList;
PFN_vkCreateDevice RealCreate;
PFN_vkGetPhysicalDeviceMemoryProperties2 RealMemory;

VkResult list(VkInstance Instance, uint32_t *Count, VkPhysicalDevice *Found) {
  uint32_t Number = 0;
  VkResult Result = RealList(Instance, &Number, nullptr);
  std::vector<VkPhysicalDevice> All(Number);
  if (Result == VK_SUCCESS)
    Result = RealList(Instance, &Number, All.data());
  if (Result != VK_SUCCESS || All.empty())
    return Result;
  All.insert(All.begin(), All.front());
  for (size_t I = 0; Found && I < All.size() && I < *Count; ++I)
    Found[I] = All[I];
  *Count = static_cast<uint32_t>(All.size());
  return VK_SUCCESS;
}

VkResult extensions(VkPhysicalDevice Device, const char *Layer, uint32_t *Count,
                    VkExtensionProperties *Properties) {
  uint32_t Room = *Count;
  VkResult Result = RealExtensions(Device, Layer, Count, Properties);
  if (Result != VK_SUCCESS || !freeMemory())
    return Result;
  if (Properties && *Count == Room)
    return VK_INCOMPLETE;
  if (Properties)
    Properties[*Count] = {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 1};
  ++*Count;
  return VK_SUCCESS;
}

VkResult create(VkPhysicalDevice Device, const VkDeviceCreateInfo *Info,
                const VkAllocationCallbacks *Allocator, VkDevice *Created) {
  VkDeviceCreateInfo Less = *Info;
  std::vector<const char *> Names;
  for (uint32_t I = 0; I < Info->enabledExtensionCount; ++I)
    if (!freeMemory() || strcmp(Info->ppEnabledExtensionNames[I],
                                VK_EXT_MEMORY_BUDGET_EXTENSION_NAME))
      Names.push_back(Info->ppEnabledExtensionNames[I]);
  Less.enabledExtensionCount = static_cast<uint32_t>(Names.size());
  Less.ppEnabledExtensionNames = Names.data();
  VkResult Result = RealCreate(Device, &Less, Allocator, Created);
  std::lock_guard<std::mutex> Guard(Lock);
  if (Result == VK_SUCCESS)
    Devices.push_back(*Created);
  return Result;
}

void memory(VkPhysicalDevice Device, VkPhysicalDeviceMemoryProperties2 *Said) {
  RealMemory(Device, Said);
  for (auto *Next = static_cast<VkBaseOutStructure *>(Said->pNext);
       Next && freeMemory(); Next = Next->pNext)
    if (Next->sType ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto *Budget =
          reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT *>(Next);
      for (uint32_t H = 0; H < Said->memoryProperties.memoryHeapCount; ++H)
        Budget->heapBudget[H] =
            Budget->heapUsage[H] + strtoull(freeMemory(), nullptr, 10);
    }
}

template <typename F>
PFN_vkVoidFunction replaced(PFN_vkVoidFunction Found, F &Real, F Mine) {
  Real = reinterpret_cast<F>(Found);
  return reinterpret_cast<PFN_vkVoidFunction>(Mine);
}

PFN_vkVoidFunction ofDevice(VkDevice Device, const char *Name) {
  PFN_vkVoidFunction Found = RealDevice(Device, Name);
  if (!strcmp(Name, "vkQueueSubmit2"))
    return replaced<PFN_vkQueueSubmit2>(Found, RealSubmit, submit);
  if (!strcmp(Name, "vkGetDeviceQueue"))
    return replaced<PFN_vkGetDeviceQueue>(Found, RealQueue, queue);
  if (!strcmp(Name, "vkWaitSemaphores"))
    return replaced<PFN_vkWaitSemaphores>(Found, RealWait, wait);
  if (!strcmp(Name, "vkGetSemaphoreCounterValue"))
    return replaced<PFN_vkGetSemaphoreCounterValue>(Found, RealCounter,
                                                    counter);
  if (!strcmp(Name, "vkDestroyDevice"))
    return replaced<PFN_vkDestroyDevice>(Found, RealDestroyDevice,
                                         destroyDevice);
  for (size_t N = 0; N < destroyCount; ++N)
    if (!strcmp(Name, destroyNames[N]))
      return replaced<PFN_vkDestroyBuffer>(
          Found, RealDestroy[N],
          destroyAt(N, std::make_index_sequence<destroyCount>()));
  return Found;
}

} // namespace

extern "C" PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance Instance,
                                                    const char *Name) {
  PFN_vkVoidFunction Found = realInstance()(Instance, Name);
  if (!strcmp(Name, "vkGetDeviceProcAddr"))
    return replaced<PFN_vkGetDeviceProcAddr>(Found, RealDevice, ofDevice);
  if (!strcmp(Name, "vkEnumerateDeviceExtensionProperties"))
    return replaced<PFN_vkEnumerateDeviceExtensionProperties>(
        Found, RealExtensions, extensions);
  if (!strcmp(Name, "vkEnumeratePhysicalDevices") &&
      getenv("GRETA_TEST_LOSE_ONLY"))
    return replaced<PFN_vkEnumeratePhysicalDevices>(Found, RealList, list);
  if (!strcmp(Name, "vkCreateDevice"))
    return replaced<PFN_vkCreateDevice>(Found, RealCreate, create);
  if (!strcmp(Name, "vkGetPhysicalDeviceMemoryProperties2"))
    return replaced<PFN_vkGetPhysicalDeviceMemoryProperties2>(Found, RealMemory,
                                                              memory);
  return Found;
}
