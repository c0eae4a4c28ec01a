// Features.h: what a physical device is and can do, by the names the manifest
// uses; and the rules that deny a driver.
#ifndef GRETA_RUNTIME_VULKAN_FEATURES_H
#define GRETA_RUNTIME_VULKAN_FEATURES_H

#include "Instance.h"
#include "Package.h"

#include <nlohmann/json_fwd.hpp>
#include <set>

namespace greta::rt::vulkan {

// Chains every feature struct that the runtime reads. It is used for the query
// and, reduced, for device creation.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 Core;
  VkPhysicalDeviceVulkan11Features V11;
  VkPhysicalDeviceVulkan12Features V12;
  VkPhysicalDeviceVulkan13Features V13;
  CoopMatrixFeatures Coop;
  BFloat16Features BFloat16;
  Float8Features Float8;
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT AtomicFloat;
  VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR WorkgroupLayout;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR Executable;

  // Zeroes everything and links the structs of core Vulkan 1.3 and of the
  // extensions present.
  void link(const std::set<std::string> &Extensions);
};

struct PhysicalDevice {
  VkPhysicalDevice Handle = VK_NULL_HANDLE;
  std::string Refused; // why the runtime does not use it, or ""
  VkPhysicalDeviceProperties Props{};
  VkPhysicalDeviceVulkan11Properties V11{};
  VkPhysicalDeviceVulkan12Properties V12{};
  VkPhysicalDeviceVulkan13Properties V13{};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT HostImport{};
  std::set<std::string> Extensions; // of those that the runtime uses
  std::set<std::string> Features;   // by Vulkan's member names
  std::vector<CoopShape> Coopmat;   // with subgroup scope
  bool CoopmatDenied = false;
  uint32_t ComputeUnits = 0; // 0: the driver does not say

  // Keeps only what was enabled on an application's device.
  void restrict(const std::set<std::string> &EnabledFeatures,
                const std::set<std::string> &EnabledExtensions);
  std::string uuid() const; // 32 hexadecimal digits
  // Returns a stable name of device and driver for cache files.
  std::string cacheKey() const;
  // Returns its family in the target table, or the nearest one; "" if there is
  // none of its vendor.
  std::string family() const;
  void describe(nlohmann::json &Out) const;
};

// Returns all devices of the instance, the best kind first (discrete,
// integrated, virtual, CPU), refused ones last.
std::vector<PhysicalDevice> physicalDevices(const Instance &I);

// Enables in `Chain` every feature of `P` that the runtime knows.
void enableFeatures(const PhysicalDevice &P, FeatureChain &Chain);

// Returns the names of VkSubgroupFeatureFlagBits that are set.
std::vector<std::string> subgroupOps(VkSubgroupFeatureFlags Flags);
bool knownFeature(const std::string &Name);

} // namespace greta::rt::vulkan
#endif
