// Denormals.h: denormals as numbers on devices that otherwise may take them for
// zero.
#ifndef GRETA_RUNTIME_VULKAN_DENORMALS_H
#define GRETA_RUNTIME_VULKAN_DENORMALS_H

#include "Extensions.h"

#include <cstdint>
#include <vector>

namespace greta::rt::vulkan {

// Returns the module with the execution mode DenormPreserve for every width of
// floats that the device has it for, of f32 only without exponentials, and
// SignedZeroInfNanPreserve for f64; without any mode it is unchanged.
std::vector<uint32_t>
keepDenormals(std::vector<uint32_t> Words,
              const VkPhysicalDeviceVulkan12Properties &Device);

} // namespace greta::rt::vulkan
#endif
