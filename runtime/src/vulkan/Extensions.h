// Extensions.h: Vulkan's header, and the extensions that Debian 12's (1.3.239)
// predates, declared from the specification under our own names so that a newer
// header does not clash.
#ifndef GRETA_RUNTIME_VULKAN_EXTENSIONS_H
#define GRETA_RUNTIME_VULKAN_EXTENSIONS_H

#include <vulkan/vulkan_core.h>

namespace greta::rt::vulkan {

// VK_KHR_cooperative_matrix
constexpr auto sTypeCoopFeatures = static_cast<VkStructureType>(1000506000);
constexpr auto sTypeCoopProperty = static_cast<VkStructureType>(1000506001);
constexpr uint32_t scopeSubgroup = 3;

struct CoopMatrixFeatures {
  VkStructureType sType;
  void *pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};

struct CoopMatrixProperty {
  VkStructureType sType;
  void *pNext;
  uint32_t M, N, K;
  int32_t AType, BType, CType, ResultType; // VkComponentTypeKHR
  VkBool32 saturatingAccumulation;
  uint32_t scope; // VkScopeKHR
};

using PFN_getCooperativeMatrixProperties =
    VkResult(VKAPI_PTR *)(VkPhysicalDevice, uint32_t *, CoopMatrixProperty *);

// VK_KHR_shader_bfloat16
constexpr auto sTypeBFloat16Features = static_cast<VkStructureType>(1000141000);
struct BFloat16Features {
  VkStructureType sType;
  void *pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};

// VK_EXT_shader_float8
constexpr auto sTypeFloat8Features = static_cast<VkStructureType>(1000567000);
struct Float8Features {
  VkStructureType sType;
  void *pNext;
  VkBool32 shaderFloat8;
  VkBool32 shaderFloat8CooperativeMatrix;
};

} // namespace greta::rt::vulkan
#endif
