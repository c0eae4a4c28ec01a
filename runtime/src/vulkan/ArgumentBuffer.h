// ArgumentBuffer.h: arguments of a kernel that are more than a device has push
// constants for. The module is rewritten so that it finds the same block in
// memory; its push constants are the block's address.
#ifndef GRETA_RUNTIME_VULKAN_ARGUMENTBUFFER_H
#define GRETA_RUNTIME_VULKAN_ARGUMENTBUFFER_H

#include <cstdint>
#include <vector>

namespace greta::rt::vulkan {

// Rewrites `Words`, a module that passed checkModule. The block begins at a
// multiple of 16 bytes.
std::vector<uint32_t> argumentsFromBuffer(const std::vector<uint32_t> &Words);

} // namespace greta::rt::vulkan
#endif
