// LosingVulkan.cpp: a libvulkan.so.1 in front of the real one, whose path is in
// $GRETA_TEST_VULKAN. Its devices are lost from the moment on when there is a
// file $GRETA_TEST_LOSE: as after a fault, what asks for work or for news says
// so, for good.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
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
  return Found;
}
