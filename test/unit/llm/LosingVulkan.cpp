// LosingVulkan.cpp: a libvulkan.so.1 in front of the real one, whose path is in
// $GRETA_TEST_VULKAN. Its devices are lost from the moment on when there is a
// file $GRETA_TEST_LOSE: as after a fault, what asks for work or for news says
// so, for good. $GRETA_TEST_MEMORY is how many bytes they say are free.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>
#include <vulkan/vulkan_core.h>

namespace {

PFN_vkGetInstanceProcAddr realInstance() {
  static auto Found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen(getenv("GRETA_TEST_VULKAN"), RTLD_NOW | RTLD_LOCAL),
            "vkGetInstanceProcAddr"));
  return Found;
}

bool isLost() { return access(getenv("GRETA_TEST_LOSE"), F_OK) == 0; }

PFN_vkGetDeviceProcAddr RealDevice;
PFN_vkQueueSubmit2 RealSubmit;
PFN_vkWaitSemaphores RealWait;
PFN_vkGetSemaphoreCounterValue RealCounter;

VkResult submit(VkQueue Queue, uint32_t Count, const VkSubmitInfo2 *Infos,
                VkFence Fence) {
  return isLost() ? VK_ERROR_DEVICE_LOST
                  : RealSubmit(Queue, Count, Infos, Fence);
}

VkResult wait(VkDevice Device, const VkSemaphoreWaitInfo *Info,
              uint64_t Timeout) {
  return isLost() ? VK_ERROR_DEVICE_LOST : RealWait(Device, Info, Timeout);
}

VkResult counter(VkDevice Device, VkSemaphore Semaphore, uint64_t *Value) {
  return isLost() ? VK_ERROR_DEVICE_LOST
                  : RealCounter(Device, Semaphore, Value);
}

// A driver that does not say how much memory is free says so here: the
// extension is listed, and left out again where the driver would refuse it.
const char *freeMemory() { return getenv("GRETA_TEST_MEMORY"); }

PFN_vkEnumerateDeviceExtensionProperties RealExtensions;
PFN_vkCreateDevice RealCreate;
PFN_vkGetPhysicalDeviceMemoryProperties2 RealMemory;

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
    if (strcmp(Info->ppEnabledExtensionNames[I],
               VK_EXT_MEMORY_BUDGET_EXTENSION_NAME))
      Names.push_back(Info->ppEnabledExtensionNames[I]);
  Less.enabledExtensionCount = static_cast<uint32_t>(Names.size());
  Less.ppEnabledExtensionNames = Names.data();
  return RealCreate(Device, &Less, Allocator, Created);
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
  if (!strcmp(Name, "vkWaitSemaphores"))
    return replaced<PFN_vkWaitSemaphores>(Found, RealWait, wait);
  if (!strcmp(Name, "vkGetSemaphoreCounterValue"))
    return replaced<PFN_vkGetSemaphoreCounterValue>(Found, RealCounter,
                                                    counter);
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
  if (!strcmp(Name, "vkCreateDevice") && freeMemory())
    return replaced<PFN_vkCreateDevice>(Found, RealCreate, create);
  if (!strcmp(Name, "vkGetPhysicalDeviceMemoryProperties2"))
    return replaced<PFN_vkGetPhysicalDeviceMemoryProperties2>(Found, RealMemory,
                                                              memory);
  return Found;
}
