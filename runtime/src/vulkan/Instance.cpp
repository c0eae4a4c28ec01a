// Instance.cpp: see Instance.h.
#include "Instance.h"
#include "Backend.h"
#include "Error.h"
#include "Process.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

namespace greta::rt {
namespace vulkan {
namespace {

struct Complaints {
  std::atomic<bool> Any{false}; // every call reads it without the lock
  std::mutex Lock;
  std::vector<std::string> Messages;
};
Complaints &complaints() {
  static Complaints C;
  return C;
}

VKAPI_ATTR VkBool32 VKAPI_CALL onMessage(
    VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
    const VkDebugUtilsMessengerCallbackDataEXT *Data, void *) {
  Complaints &C = complaints();
  std::lock_guard<std::mutex> Guard(C.Lock);
  C.Messages.push_back(Data->pMessage ? Data->pMessage : "(no text)");
  C.Any = true;
  return VK_FALSE;
}

bool validating() { return isOn("GRETA_VULKAN_VALIDATE"); }

} // namespace

void failed(VkResult Result, const std::string &What) {
  if (Result == VK_ERROR_TOO_MANY_OBJECTS)
    fail(GRETA_ERROR_DEVICE, What,
         ": the driver allows no more objects of this kind; destroy some");
  if (Result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      Result == VK_ERROR_OUT_OF_HOST_MEMORY)
    fail(GRETA_ERROR_OUT_OF_MEMORY, What, ": out of ",
         Result == VK_ERROR_OUT_OF_HOST_MEMORY ? "host" : "device", " memory");
  if (Result == VK_ERROR_DEVICE_LOST)
    failLost(What);
  fail(GRETA_ERROR_DEVICE, What, " failed with VkResult ",
       static_cast<int>(Result));
}

std::shared_ptr<Instance> Instance::get() {
  static std::mutex Lock;
  static std::weak_ptr<Instance> Current;
  std::lock_guard<std::mutex> Guard(Lock);
  std::shared_ptr<Instance> I = Current.lock();
  if (!I) {
    // It stays loaded: drivers start threads and register exit handlers that do
    // not survive a dlclose.
    void *Library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!Library)
      fail(GRETA_ERROR_NOT_FOUND, "no Vulkan loader: ", dlerror());
    auto GetProc = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        dlsym(Library, "vkGetInstanceProcAddr"));
    if (!GetProc)
      fail(GRETA_ERROR_NOT_FOUND,
           "libvulkan.so.1 has no vkGetInstanceProcAddr");
    I = std::make_shared<Instance>(GetProc);
    Current = I;
  }
  return I;
}

Instance::Instance(PFN_vkGetInstanceProcAddr GetProc) {
  auto Create = reinterpret_cast<PFN_vkCreateInstance>(
      GetProc(nullptr, "vkCreateInstance"));
  auto Layers = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      GetProc(nullptr, "vkEnumerateInstanceLayerProperties"));
  if (!Create || !Layers)
    fail(GRETA_ERROR_NOT_FOUND, "libvulkan.so.1 is not a Vulkan loader");

  VkApplicationInfo App{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  App.pEngineName = "greta";
  App.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo Info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  Info.pApplicationInfo = &App;
  const char *Layer = "VK_LAYER_KHRONOS_validation";
  const char *DebugUtils = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkDebugUtilsMessengerCreateInfoEXT Debug{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  Debug.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                          VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  Debug.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  Debug.pfnUserCallback = onMessage;
  bool Validate = validating();
  if (Validate) {
    uint32_t Count = 0;
    Layers(&Count, nullptr);
    std::vector<VkLayerProperties> All(Count);
    Layers(&Count, All.data());
    bool Found = false;
    for (const VkLayerProperties &L : All)
      Found |= strcmp(L.layerName, Layer) == 0;
    if (!Found)
      fail(GRETA_ERROR_NOT_FOUND, "GRETA_VULKAN_VALIDATE is set, but ", Layer,
           " is not installed");
    Info.enabledLayerCount = 1;
    Info.ppEnabledLayerNames = &Layer;
    Info.enabledExtensionCount = 1;
    Info.ppEnabledExtensionNames = &DebugUtils;
    Info.pNext = &Debug; // covers the instance's own creation and destruction
  }
  VkResult Result = Create(&Info, nullptr, &Handle);
  if (Result != VK_SUCCESS)
    fail(GRETA_ERROR_NOT_FOUND, "vkCreateInstance failed with VkResult ",
         static_cast<int>(Result), " (no Vulkan 1.3 driver?)");

  auto Destroy = reinterpret_cast<PFN_vkDestroyInstance>(
      GetProc(Handle, "vkDestroyInstance"));
  Owner.reset(Handle, [Destroy](VkInstance I) { Destroy(I, nullptr); });

  load(GetProc);
  if (Validate) {
    auto CreateMessenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        GetProc(Handle, "vkCreateDebugUtilsMessengerEXT"));
    DestroyMessenger = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        GetProc(Handle, "vkDestroyDebugUtilsMessengerEXT"));
    check(CreateMessenger(Handle, &Debug, nullptr, &Messenger),
          "creating the validation messenger");
  }
}

Instance::Instance(PFN_vkGetInstanceProcAddr GetProc, VkInstance Own)
    : Handle(Own) {
  load(GetProc);
}

void Instance::load(PFN_vkGetInstanceProcAddr GetProc) {
#define X(Name)                                                                \
  Name = reinterpret_cast<PFN_vk##Name>(GetProc(Handle, "vk" #Name));          \
  if (!Name)                                                                   \
    fail(GRETA_ERROR_NOT_FOUND, "the Vulkan loader has no vk" #Name);
  GRETA_VULKAN_INSTANCE_FUNCTIONS(X)
#undef X
  GetCooperativeMatrixProperties =
      reinterpret_cast<PFN_getCooperativeMatrixProperties>(
          GetProc(Handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
}

Instance::~Instance() {
  if (Messenger)
    DestroyMessenger(Handle, Messenger, nullptr);
}

std::vector<VkPhysicalDevice> Instance::physicalDevices() const {
  uint32_t Count = 0;
  check(EnumeratePhysicalDevices(Handle, &Count, nullptr),
        "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> All(Count);
  VkResult Result = EnumeratePhysicalDevices(Handle, &Count, All.data());
  if (Result != VK_INCOMPLETE)
    check(Result, "vkEnumeratePhysicalDevices");
  All.resize(Count);
  return All;
}

} // namespace vulkan

std::string takeVulkanComplaints() {
  vulkan::Complaints &C = vulkan::complaints();
  if (!C.Any)
    return "";
  std::lock_guard<std::mutex> Guard(C.Lock);
  std::string All;
  for (const std::string &M : C.Messages)
    All += (All.empty() ? "" : " | ") + M;
  C.Messages.clear();
  C.Any = false;
  return All;
}

} // namespace greta::rt
