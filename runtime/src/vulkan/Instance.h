// Instance.h: libvulkan.so.1 through dlopen, its instance and function
// pointers, and the validation layer.
//
// GRETA_VULKAN_VALIDATE=1 turns VK_LAYER_KHRONOS_validation on; whatever it
// says becomes an error of the API call in which it said it
// (takeVulkanComplaints), so a test that passes proves silence.
#ifndef GRETA_RUNTIME_VULKAN_INSTANCE_H
#define GRETA_RUNTIME_VULKAN_INSTANCE_H

#include "Error.h"
#include "Extensions.h"

#include <memory>
#include <string>
#include <vector>

namespace greta::rt::vulkan {

[[noreturn]] void failed(VkResult Result, const std::string &What);
// Throws Error unless the call returned VK_SUCCESS; memory exhaustion gets its
// own status. The pieces of `What`, joined, say what was tried.
template <typename... Parts> void check(VkResult Result, const Parts &...What) {
  if (Result != VK_SUCCESS)
    failed(Result, concat(What...));
}

#define GRETA_VULKAN_INSTANCE_FUNCTIONS(X)                                     \
  X(CreateDevice)                                                              \
  X(EnumerateDeviceExtensionProperties)                                        \
  X(EnumeratePhysicalDevices)                                                  \
  X(GetDeviceProcAddr)                                                         \
  X(GetPhysicalDeviceFeatures2)                                                \
  X(GetPhysicalDeviceMemoryProperties)                                         \
  X(GetPhysicalDeviceMemoryProperties2)                                        \
  X(GetPhysicalDeviceProperties)                                               \
  X(GetPhysicalDeviceProperties2)                                              \
  X(GetPhysicalDeviceQueueFamilyProperties)

class Instance {
public:
  // Returns the process's instance, which lives while anyone holds it. Throws
  // NotFound when there is no loader.
  static std::shared_ptr<Instance> get();
  explicit Instance(PFN_vkGetInstanceProcAddr GetProc);
  // Wraps an application's instance, which the application keeps.
  Instance(PFN_vkGetInstanceProcAddr GetProc, VkInstance Own);
  ~Instance();
  Instance(const Instance &) = delete;

  std::vector<VkPhysicalDevice> physicalDevices() const;
  VkInstance handle() const { return Handle; }

#define X(Name) PFN_vk##Name Name = nullptr;
  GRETA_VULKAN_INSTANCE_FUNCTIONS(X)
#undef X
  PFN_getCooperativeMatrixProperties GetCooperativeMatrixProperties = nullptr;

private:
  void load(PFN_vkGetInstanceProcAddr GetProc);

  VkInstance Handle = VK_NULL_HANDLE;
  std::shared_ptr<void> Owner; // closes Handle, also when construction fails
  VkDebugUtilsMessengerEXT Messenger = VK_NULL_HANDLE;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyMessenger = nullptr;
};

} // namespace greta::rt::vulkan
#endif
