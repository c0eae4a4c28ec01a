// Pool.cpp: see Pool.h.
#include "Pool.h"
#include "Device.h"
#include "Process.h"

#include <algorithm>
#include <new>

namespace greta::rt::vulkan {

// A buffer larger than half of a block has one of its own.
static constexpr VkDeviceSize blockBytes = 64u << 20;

// GRETA_VULKAN_POOL=off gives every buffer its own, so that tools that watch
// the driver's memory tell buffers apart.
static bool isShared() {
  static const bool Shared = [] {
    const char *Value = environment("GRETA_VULKAN_POOL");
    return !Value || std::string(Value) != "off";
  }();
  return Shared;
}

VkResult Pool::take(const VkMemoryRequirements &Needs, uint32_t Type,
                    Place &Out) {
  std::lock_guard<std::mutex> Guard(Lock);
  for (Block &B : Blocks)
    if (B.Type == Type && isShared())
      if (auto Offset = B.Parts.take(Needs.size, Needs.alignment)) {
        Out = {&B, *Offset};
        return VK_SUCCESS;
      }
  bool IsAlone = Needs.size > blockBytes / 2 || !isShared();
  VkDeviceSize Size = IsAlone ? Needs.size : blockBytes;
  VkMemoryAllocateFlagsInfo Flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  Flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo Info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  Info.pNext = &Flags;
  Info.memoryTypeIndex = Type;
  VkDeviceMemory Memory = VK_NULL_HANDLE;
  auto allocate = [&](VkDeviceSize Bytes) {
    Info.allocationSize = Size = Bytes;
    return C.Fn.AllocateMemory(C.Handle, &Info, nullptr, &Memory);
  };
  VkResult Result = allocate(Size);
  // There may be room without unused blocks, or for this buffer alone.
  if (Result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    trimLocked();
    Result = allocate(Size);
  }
  if (Result == VK_ERROR_OUT_OF_DEVICE_MEMORY && Size > Needs.size)
    Result = allocate(Needs.size);
  if (Result != VK_SUCCESS)
    return Result;
  // Reads and writes go through staging memory if mapping fails.
  void *Mapped = nullptr;
  if (C.sharesMemory() && (C.Memory.memoryTypes[Type].propertyFlags &
                           VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
    (void)C.Fn.MapMemory(C.Handle, Memory, 0, VK_WHOLE_SIZE, 0, &Mapped);
  try {
    std::list<Block> Made;
    Made.push_back({Memory, Mapped, Size, Type, Ranges(Size)});
    Out = {&Made.back(), *Made.back().Parts.take(Needs.size, Needs.alignment)};
    Blocks.splice(Blocks.end(), Made);
  } catch (const std::bad_alloc &) { // its entry could not be allocated
    Out = {};
    C.Fn.FreeMemory(C.Handle, Memory, nullptr);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  return VK_SUCCESS;
}

void Pool::release(std::list<Block>::iterator It) {
  C.Fn.FreeMemory(C.Handle, It->Memory, nullptr);
  Blocks.erase(It);
}

// One empty block stays for the next buffers; a large buffer's is freed.
void Pool::give(const Place &P) {
  std::lock_guard<std::mutex> Guard(Lock);
  P.In->Parts.give(P.Offset);
  if (!P.In->Parts.empty())
    return;
  bool IsSpare = P.In->Size == blockBytes && isShared();
  for (auto It = Blocks.begin(); It != Blocks.end();) {
    auto Here = It++;
    bool IsThis = &*Here == P.In;
    if (IsSpare ? !IsThis && Here->Parts.empty() : IsThis)
      release(Here);
  }
}

void Pool::trimLocked() {
  for (auto It = Blocks.begin(); It != Blocks.end();) {
    auto Here = It++;
    if (Here->Parts.empty())
      release(Here);
  }
}

void Pool::trim() {
  std::lock_guard<std::mutex> Guard(Lock);
  trimLocked();
}

uint64_t Pool::reserved() {
  std::lock_guard<std::mutex> Guard(Lock);
  uint64_t Sum = 0;
  for (const Block &B : Blocks)
    Sum += B.Size;
  return Sum;
}

uint64_t Pool::largestFree() {
  std::lock_guard<std::mutex> Guard(Lock);
  uint64_t Largest = 0;
  for (const Block &B : Blocks)
    Largest = std::max(Largest, B.Parts.largestFree());
  return Largest;
}

} // namespace greta::rt::vulkan
