// Spirv.h: SPIR-V's numbers, from Debian's SPIRV-Headers (1.3.239) and, for
// what it predates, from the extensions' specifications.
#ifndef GRETA_RUNTIME_VULKAN_SPIRV_H
#define GRETA_RUNTIME_VULKAN_SPIRV_H

#include <cstdint>
#include <spirv/unified1/spirv.hpp>

namespace greta::rt::vulkan::spirv {

// SPV_KHR_cooperative_matrix
constexpr uint32_t OpTypeCooperativeMatrixKHR = 4456;
constexpr uint32_t OpCooperativeMatrixLoadKHR = 4457;
constexpr uint32_t OpCooperativeMatrixStoreKHR = 4458;
constexpr uint32_t OpCooperativeMatrixMulAddKHR = 4459;
constexpr uint32_t OpCooperativeMatrixLengthKHR = 4460;
constexpr uint32_t CapabilityCooperativeMatrixKHR = 6022;

// SPV_KHR_bfloat16
constexpr uint32_t CapabilityBFloat16TypeKHR = 5116;
constexpr uint32_t CapabilityBFloat16CooperativeMatrixKHR = 5118;

} // namespace greta::rt::vulkan::spirv
#endif
