// Counter.cpp: timeline semaphores that another API imports, by which it and a
// stream wait for each other on the device.
#include "Device.h"

namespace greta::rt::vulkan {

VulkanCounter::VulkanCounter(CoreRef Owner) : C(std::move(Owner)) {
  VkExportSemaphoreCreateInfo Export{
      VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO};
  Export.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  Handle = C->createTimeline(&Export);
}

VulkanCounter::~VulkanCounter() { C->retire(Handle); }

int VulkanCounter::exportFd() const {
  VkSemaphoreGetFdInfoKHR Info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR};
  Info.semaphore = Handle;
  Info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  int Fd = -1;
  C->check(C->Fn.GetSemaphoreFd(C->Handle, &Info, &Fd),
           "exporting a semaphore");
  return Fd;
}

void VulkanCounter::raise(uint64_t Value) {
  VkSemaphoreSignalInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
  Info.semaphore = Handle;
  Info.value = Value;
  C->learn(C->Fn.SignalSemaphore(C->Handle, &Info));
}

uint64_t VulkanCounter::value() const {
  uint64_t Value = 0;
  C->check(C->Fn.GetSemaphoreCounterValue(C->Handle, Handle, &Value),
           "vkGetSemaphoreCounterValue");
  return Value;
}

VkSemaphoreSubmitInfo VulkanCounter::at(uint64_t Value) const {
  VkSemaphoreSubmitInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Info.semaphore = Handle;
  Info.value = Value;
  Info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return Info;
}

std::shared_ptr<Counter> VulkanDevice::createCounter() {
  if (!C->Fn.GetSemaphoreFd)
    lacks("VK_KHR_external_semaphore_fd");
  return std::make_shared<VulkanCounter>(C);
}

} // namespace greta::rt::vulkan
