// Memory.cpp: memory of a Vulkan device: buffers of its own, those that the
// host reaches, and what is imported, exported or an application's.
#include "Device.h"
#include "Error.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace greta::rt::vulkan {

bool Core::sharesMemory() const {
  VkPhysicalDeviceType Type = Physical.Props.deviceType;
  return Type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
         Type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// Returns all heaps if they are parts of one memory, as drivers of APUs divide
// it; else the largest of the device's own.
std::vector<uint32_t> Core::bufferHeaps() const {
  std::vector<uint32_t> Heaps;
  for (uint32_t H = 0; H < Memory.memoryHeapCount; ++H) {
    const VkMemoryHeap &Heap = Memory.memoryHeaps[H];
    if (sharesMemory())
      Heaps.push_back(H);
    else if ((Heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
             (Heaps.empty() || Heap.size > Memory.memoryHeaps[Heaps[0]].size))
      Heaps = {H};
  }
  return Heaps;
}

uint64_t Core::deviceMemory() const {
  uint64_t Sum = 0;
  for (uint32_t H : bufferHeaps())
    Sum += Memory.memoryHeaps[H].size;
  return Sum;
}

uint64_t Core::freeMemory() const {
  if (!Physical.Extensions.count("VK_EXT_memory_budget"))
    return 0;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT Budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 Properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  Properties.pNext = &Budget;
  Inst->GetPhysicalDeviceMemoryProperties2(Physical.Handle, &Properties);
  uint64_t Sum = 0;
  for (uint32_t H : bufferHeaps())
    Sum += Budget.heapBudget[H] -
           std::min(Budget.heapBudget[H], Budget.heapUsage[H]);
  return Sum;
}

void Core::outOfMemory(size_t Size) const {
  fail(GRETA_ERROR_OUT_OF_MEMORY, Physical.Props.deviceName,
       " cannot allocate ", Size, " bytes (device memory: ", deviceMemory(),
       " bytes)");
}

std::optional<uint32_t> Core::memoryType(uint32_t Allowed,
                                         VkMemoryPropertyFlags Wanted) const {
  for (uint32_t T = 0; T < Memory.memoryTypeCount; ++T)
    if ((Allowed >> T & 1) &&
        (Memory.memoryTypes[T].propertyFlags & Wanted) == Wanted)
      return T;
  return std::nullopt;
}

// Cached memory makes reads back fast, and any coherent memory will do, also
// when the device's is used up. If a device shares the host's memory, buffers
// lie where the host reaches them.
std::vector<VkMemoryPropertyFlags> Core::wishes(bool HostVisible,
                                                bool PreferDevice) const {
  constexpr VkMemoryPropertyFlags visible =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  if (!HostVisible && !sharesMemory())
    return {local};
  if (!HostVisible)
    return {visible | local, visible, local};
  if (PreferDevice && !sharesMemory())
    return {visible | local, visible | cached, visible};
  return {visible | cached, visible | local, visible};
}

VulkanMemory::VulkanMemory(CoreRef Owner, size_t Bytes) : C(std::move(Owner)) {
  C->needDevice();
  Size = Bytes;
}

VulkanMemory::VulkanMemory(CoreRef Owner, size_t Bytes, bool HostVisible,
                           bool PreferDevice)
    : VulkanMemory(std::move(Owner), Bytes) {
  create(nullptr);
  checkBound(bind(HostVisible, PreferDevice));
}

VulkanMemory::VulkanMemory(CoreRef Owner, size_t Bytes, const External &From)
    : VulkanMemory(std::move(Owner), Bytes) {
  VkExternalMemoryBufferCreateInfo Info{
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  Info.handleTypes = From.Type;
  create(&Info);
  checkBound(bindExternal(From));
  Mapped = From.Pointer;
  if (!From.Pointer && From.Fd < 0)
    Exported = From.Type;
}

VulkanMemory::VulkanMemory(CoreRef Owner, size_t Bytes, VkBuffer Own)
    : VulkanMemory(std::move(Owner), Bytes) {
  Buffer = Own;
  IsAdopted = true;
  findAddress();
}

void VulkanMemory::create(const void *Next) {
  size_t Bytes = Size;
  // Kernels may read whole 16-byte words at the end.
  VkDeviceSize Rounded = (std::max<size_t>(Bytes, 1) + 15) / 16 * 16;
  const auto &P = C->Physical;
  VkDeviceSize Heap = 0;
  for (uint32_t H = 0; H < C->Memory.memoryHeapCount; ++H)
    Heap = std::max(Heap, C->Memory.memoryHeaps[H].size);
  // maxMemoryAllocationSize is not asked: drivers give more than it says.
  if (Rounded < Bytes || Rounded > P.V13.maxBufferSize || Rounded > Heap)
    C->outOfMemory(Bytes);
  VkBufferCreateInfo Info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  Info.pNext = Next;
  Info.size = Rounded;
  Info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  C->check(C->Fn.CreateBuffer(C->Handle, &Info, nullptr, &Buffer),
           "a buffer of ", Bytes, " bytes");
}

void VulkanMemory::checkBound(VkResult Result) {
  if (Result == VK_SUCCESS)
    return findAddress();
  if (Result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      Result == VK_ERROR_OUT_OF_HOST_MEMORY)
    C->outOfMemory(Size);
  const VkPhysicalDeviceProperties &P = C->Physical.Props;
  if (Result == VK_ERROR_TOO_MANY_OBJECTS)
    fail(GRETA_ERROR_DEVICE, P.deviceName, " allows ",
         P.limits.maxMemoryAllocationCount,
         " allocations at once; destroy buffers, or let tensors share one at "
         "several offsets");
  if (Result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
    fail(GRETA_ERROR_INVALID_ARGUMENT, P.deviceName,
         " cannot import this memory as a buffer of ", Size, " bytes");
  C->check(Result, "allocating ", Size, " bytes");
}

void VulkanMemory::findAddress() {
  VkBufferDeviceAddressInfo Info{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  Info.buffer = Buffer;
  Address = C->Fn.GetBufferDeviceAddress(C->Handle, &Info);
}

VkResult VulkanMemory::allocate(const VkMemoryRequirements &Needs,
                                std::optional<uint32_t> Type,
                                const void *Next) {
  VkMemoryAllocateFlagsInfo Flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  Flags.pNext = Next;
  Flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo Info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  Info.pNext = &Flags;
  Info.allocationSize = Needs.size;
  Info.memoryTypeIndex = Type.value_or(0);
  VkResult Result =
      Type ? C->Fn.AllocateMemory(C->Handle, &Info, nullptr, &Allocation)
           : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return Result ? Result
                : C->Fn.BindBufferMemory(C->Handle, Buffer, Allocation, 0);
}

VkResult VulkanMemory::bindInBlock(const VkMemoryRequirements &Needs,
                                   uint32_t Type) {
  VkResult Result = C->Blocks.take(Needs, Type, Place);
  return Result ? Result
                : C->Fn.BindBufferMemory(C->Handle, Buffer, Place.In->Memory,
                                         Place.Offset);
}

VkResult VulkanMemory::bind(bool HostVisible, bool PreferDevice) {
  VkMemoryRequirements Needs;
  C->Fn.GetBufferMemoryRequirements(C->Handle, Buffer, &Needs);
  VkResult Result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (VkMemoryPropertyFlags Wish : C->wishes(HostVisible, PreferDevice)) {
    auto Type = C->memoryType(Needs.memoryTypeBits, Wish);
    if (!Type || Result != VK_ERROR_OUT_OF_DEVICE_MEMORY)
      continue;
    releaseMemory(); // undoes an attempt that only failed to bind
    Result = HostVisible ? allocate(Needs, Type, nullptr)
                         : bindInBlock(Needs, *Type);
    IsCached = C->Memory.memoryTypes[*Type].propertyFlags &
               VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  }
  if (Result == VK_SUCCESS && HostVisible)
    Result =
        C->Fn.MapMemory(C->Handle, Allocation, 0, VK_WHOLE_SIZE, 0, &Mapped);
  if (Result != VK_SUCCESS)
    return Result;
  if (C->sharesMemory() && Place.In && Place.In->Mapped)
    Direct = static_cast<char *>(Place.In->Mapped) + Place.Offset;
  else if (C->sharesMemory())
    Direct = static_cast<char *>(Mapped);
  return Result;
}

void VulkanMemory::releaseMemory() {
  if (Place.In)
    C->Blocks.give(std::exchange(Place, {}));
  if (Allocation)
    C->Fn.FreeMemory(C->Handle, std::exchange(Allocation, nullptr), nullptr);
}

VkResult VulkanMemory::bindExternal(const External &From) {
  VkMemoryRequirements Needs;
  C->Fn.GetBufferMemoryRequirements(C->Handle, Buffer, &Needs);
  uint32_t Types = Needs.memoryTypeBits;
  VkMemoryDedicatedAllocateInfo Dedicated{
      VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
  Dedicated.buffer = Buffer;
  if (From.Pointer) {
    VkDeviceSize Unit = C->Physical.HostImport.minImportedHostPointerAlignment;
    Needs.size = (Needs.size + Unit - 1) / Unit * Unit;
    VkMemoryHostPointerPropertiesEXT Properties{
        VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult Result = C->Fn.GetMemoryHostPointerProperties(
        C->Handle, From.Type, From.Pointer, &Properties);
    if (Result != VK_SUCCESS)
      return Result;
    VkImportMemoryHostPointerInfoEXT Import{
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
    Import.handleType = From.Type;
    Import.pHostPointer = From.Pointer;
    // Without these properties the device might cache memory that the host and
    // other devices use at the same time.
    std::optional<uint32_t> Type;
    for (VkMemoryPropertyFlags Wish :
         {VkMemoryPropertyFlags(VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                VK_MEMORY_PROPERTY_HOST_CACHED_BIT),
          VkMemoryPropertyFlags(VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                VK_MEMORY_PROPERTY_HOST_COHERENT_BIT),
          VkMemoryPropertyFlags(0)})
      if (!Type)
        Type = C->memoryType(Types & Properties.memoryTypeBits, Wish);
    return allocate(Needs, Type, &Import);
  }
  if (From.Fd < 0) {
    VkExportMemoryAllocateInfo Export{
        VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO};
    Export.pNext = &Dedicated;
    Export.handleTypes = From.Type;
    return allocate(Needs,
                    C->memoryType(Types, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
                    &Export);
  }
  if (From.Type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT) {
    VkMemoryFdPropertiesKHR Properties{
        VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    VkResult Result =
        C->Fn.GetMemoryFdProperties(C->Handle, From.Type, From.Fd, &Properties);
    if (Result != VK_SUCCESS)
      return Result;
    Types &= Properties.memoryTypeBits;
  }
  VkImportMemoryFdInfoKHR Import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR};
  Import.pNext = &Dedicated;
  Import.handleType = From.Type;
  // The driver takes the descriptor with the memory, even if the rest fails.
  Import.fd = fcntl(From.Fd, F_DUPFD_CLOEXEC, 0);
  VkResult Result =
      allocate(Needs, C->memoryType(Types, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
               &Import);
  if (!Allocation && Import.fd >= 0)
    close(Import.fd);
  return Result;
}

void VulkanMemory::exportFd(greta_shared_memory &Out) const {
  if (!Exported)
    return Memory::exportFd(Out);
  VkMemoryGetFdInfoKHR Info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
  Info.memory = Allocation;
  Info.handleType = Exported;
  C->check(C->Fn.GetMemoryFd(C->Handle, &Info, &Out.fd), "exporting a buffer");
  Out.kind = Exported == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
                 ? GRETA_FD_OPAQUE
                 : GRETA_FD_DMA_BUF;
  memcpy(Out.device_uuid, C->Physical.V11.deviceUUID, VK_UUID_SIZE);
  memcpy(Out.driver_uuid, C->Physical.V11.driverUUID, VK_UUID_SIZE);
}

VulkanMemory::~VulkanMemory() {
  if (IsAdopted)
    return;
  C->Fn.DestroyBuffer(C->Handle, Buffer, nullptr);
  releaseMemory();
}

Device::Reserved VulkanDevice::reserved() {
  return {C->Blocks.reserved(), C->Blocks.largestFree(), C->deviceMemory(),
          C->freeMemory()};
}

MemoryRef VulkanDevice::allocateMemory(size_t Size) {
  return std::make_shared<VulkanMemory>(C, Size, /*HostVisible=*/false);
}

MemoryRef VulkanDevice::allocateMapped(size_t Size) {
  return std::make_shared<VulkanMemory>(C, Size, /*HostVisible=*/true,
                                        /*PreferDevice=*/true);
}

size_t VulkanDevice::pointerUnit() const {
  return std::max<VkDeviceSize>(
      C->Physical.HostImport.minImportedHostPointerAlignment, 1);
}

MemoryRef VulkanDevice::importPointer(void *Pointer, size_t Size) {
  if (!C->Fn.GetMemoryHostPointerProperties)
    lacks("VK_EXT_external_memory_host");
  VkDeviceSize Unit = C->Physical.HostImport.minImportedHostPointerAlignment;
  if (reinterpret_cast<uintptr_t>(Pointer) % Unit)
    fail(GRETA_ERROR_INVALID_ARGUMENT, Name,
         ": imported memory begins at a multiple of ", Unit, " bytes");
  return std::make_shared<VulkanMemory>(
      C, Size,
      VulkanMemory::External{
          VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, Pointer, -1});
}

VkExternalMemoryHandleTypeFlagBits
VulkanDevice::handleType(greta_fd_kind Kind) const {
  if (!C->Fn.GetMemoryFd)
    lacks("VK_KHR_external_memory_fd");
  if (Kind == GRETA_FD_OPAQUE)
    return VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  if (!C->Physical.Extensions.count("VK_EXT_external_memory_dma_buf"))
    lacks("VK_EXT_external_memory_dma_buf");
  return VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
}

MemoryRef VulkanDevice::allocateShared(greta_fd_kind Kind, size_t Size) {
  return std::make_shared<VulkanMemory>(
      C, Size, VulkanMemory::External{handleType(Kind), nullptr, -1});
}

MemoryRef VulkanDevice::importFd(const greta_shared_memory &From) {
  if (From.fd < 0)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "no file descriptor: ", From.fd);
  // Drivers take another device's descriptor for memory of their own.
  auto Differs = [](const uint8_t *A, const uint8_t *B) {
    return memcmp(A, B, VK_UUID_SIZE) != 0;
  };
  const VkPhysicalDeviceVulkan11Properties &P = C->Physical.V11;
  constexpr uint8_t unknown[VK_UUID_SIZE] = {};
  if (From.kind == GRETA_FD_OPAQUE &&
      (Differs(From.device_uuid, P.deviceUUID) ||
       (Differs(From.driver_uuid, unknown) &&
        Differs(From.driver_uuid, P.driverUUID))))
    fail(GRETA_ERROR_INVALID_ARGUMENT, Spec, " (", Name, ", ",
         C->Physical.uuid(),
         ") cannot import the opaque file descriptor of another device or "
         "driver (",
         hex(From.device_uuid, VK_UUID_SIZE),
         "); GRETA_FD_DMA_BUF, or greta_buffer_copy_peer, is for that");
  return std::make_shared<VulkanMemory>(
      C, From.bytes,
      VulkanMemory::External{handleType(From.kind), nullptr, From.fd});
}

MemoryRef VulkanDevice::adoptVulkan(uint64_t Buffer, size_t Size) {
  VkBuffer Own;
  static_assert(sizeof(Own) == sizeof(Buffer));
  memcpy(&Own, &Buffer, sizeof(Own));
  return std::make_shared<VulkanMemory>(C, Size, Own);
}

} // namespace greta::rt::vulkan
