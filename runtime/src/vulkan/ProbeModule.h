// ProbeModule.h: the SPIR-V module that reads which element of a cooperative
// matrix each lane holds.
#ifndef GRETA_RUNTIME_VULKAN_PROBEMODULE_H
#define GRETA_RUNTIME_VULKAN_PROBEMODULE_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::rt::vulkan {

struct ProbeMatrix {
  std::string Use, DType; // a, b, acc; f16 f32 bf16 i8 u8 i32 u32
  uint32_t Rows, Cols;
};

// Returns whether the probe can read this element type.
bool canProbe(const std::string &DType);

// Has the entry point "probe", LocalSize lanes x 1 x 1, and push constants
// {input, output} as device addresses. The input is the row-major matrix; the
// output is u32: the number of elements a lane holds, then for each lane
// `Stride` words, the values of its elements converted to u32.
std::vector<uint32_t> probeModule(const ProbeMatrix &M, uint32_t Lanes,
                                  uint32_t Stride);

} // namespace greta::rt::vulkan
#endif
