// Pool.h: device memory for buffers, from blocks of the driver's. In: what a
// buffer needs. Out: a place in a block. Drivers allow a few thousand
// allocations and take a while for each; a buffer in a block costs neither.
//
// A buffer gives its place back when the last stream or graph that uses it has
// dropped it, so the next one never waits for the device.
#ifndef GRETA_RUNTIME_VULKAN_POOL_H
#define GRETA_RUNTIME_VULKAN_POOL_H

#include "Features.h"
#include "Ranges.h"

#include <list>
#include <mutex>

namespace greta::rt::vulkan {

struct Core;

class Pool {
public:
  explicit Pool(Core &C) : C(C) {}

  struct Block {
    VkDeviceMemory Memory = VK_NULL_HANDLE;
    void *Mapped = nullptr; // if the device shares the host's memory
    VkDeviceSize Size;
    uint32_t Type;
    Ranges Parts;
  };
  struct Place {
    Block *In = nullptr;
    VkDeviceSize Offset = 0;
  };
  VkResult take(const VkMemoryRequirements &Needs, uint32_t Type, Place &Out);
  void give(const Place &P);
  // Gives empty blocks back to the driver.
  void trim();
  uint64_t reserved();
  // Returns the largest buffer that needs nothing from the driver.
  uint64_t largestFree();

private:
  void release(std::list<Block>::iterator It);
  void trimLocked();

  Core &C;
  std::mutex Lock;
  std::list<Block> Blocks;
};

} // namespace greta::rt::vulkan
#endif
