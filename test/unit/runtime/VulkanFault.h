// VulkanFault.h: the fixture of tests of the Vulkan backend when the driver
// fails or keeps somebody waiting: single functions of a real driver are
// replaced.
#ifndef GRETA_TEST_RUNTIME_VULKANFAULT_H
#define GRETA_TEST_RUNTIME_VULKANFAULT_H

#include "AnyVulkan.h"

#include <atomic>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <utility>

namespace greta_test {

using namespace greta::rt;
using namespace greta::rt::vulkan;

// The state of the replaced functions; the driver's own are in `Real`.
struct Faults {
  DeviceFunctions Real;
  int Ends = 0, Submits = 0, Allocations = 0; // how many calls fail
  VkResult AllocationSays = VK_ERROR_TOO_MANY_OBJECTS;
  int Binds = 0, Resets = 0; // how many calls fail
  int Allocated = 0;         // that nobody freed
  int Barriers = 0;
  int Submitted = 0; // how often something was submitted
  std::vector<VkSemaphoreSubmitInfo> Awaits, Signals; // of the last one
  std::shared_future<void> Release; // what a wait that was awaited waits for
  int Destroyed = 0;
  PFN_vkGetDeviceProcAddr GetDevice;
  PFN_vkGetInstanceProcAddr GetInstance;
  PFN_vkDestroyDevice DestroyDevice;
  PFN_vkDestroyInstance DestroyInstance;
};
inline Faults Fault;
// Several threads use these: the runtime has threads that wait.
inline std::atomic<int> Waits{0};
inline std::atomic<bool> Late{false}; // the device never gets done
inline std::atomic<bool> Lost{false}; // waiting reports that it is lost
// Reading a semaphore reports that the device is lost.
inline std::atomic<bool> LostToCounters{false};
// Hears of the next wait.
inline std::atomic<std::promise<void> *> NextWait{nullptr};

class VulkanFault : public AnyVulkan {
protected:
  static std::string message(const std::function<void()> &F,
                             greta_status Status) {
    try {
      F();
    } catch (const Error &E) {
      EXPECT_EQ(E.code(), Status) << E.what();
      return E.what();
    }
    ADD_FAILURE() << "nothing was wrong";
    return "";
  }

  static void expectSays(const std::function<void()> &F, const char *Says) {
    std::string Text = message(F, GRETA_ERROR_DEVICE);
    EXPECT_NE(Text.find(Says), std::string::npos) << Text;
  }
  void SetUp() override {
    AnyVulkan::SetUp();
    if (!C)
      return; // skipped
    Fault = {};
    Late = Lost = LostToCounters = false;
    NextWait = nullptr;
    Fault.Real = C->Fn;
    C->Fn.EndCommandBuffer = [](VkCommandBuffer Cmd) {
      return Fault.Ends-- > 0 ? VK_ERROR_OUT_OF_HOST_MEMORY
                              : Fault.Real.EndCommandBuffer(Cmd);
    };
    C->Fn.QueueSubmit2 = [](VkQueue Q, uint32_t N, const VkSubmitInfo2 *Info,
                            VkFence F) {
      ++Fault.Submitted;
      Fault.Awaits.assign(Info->pWaitSemaphoreInfos,
                          Info->pWaitSemaphoreInfos +
                              Info->waitSemaphoreInfoCount);
      Fault.Signals.assign(Info->pSignalSemaphoreInfos,
                           Info->pSignalSemaphoreInfos +
                               Info->signalSemaphoreInfoCount);
      return Fault.Submits-- > 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                                 : Fault.Real.QueueSubmit2(Q, N, Info, F);
    };
    C->Fn.AllocateMemory = [](VkDevice D, const VkMemoryAllocateInfo *Info,
                              const VkAllocationCallbacks *A,
                              VkDeviceMemory *M) {
      if (Fault.Allocations-- > 0)
        return Fault.AllocationSays;
      ++Fault.Allocated;
      return Fault.Real.AllocateMemory(D, Info, A, M);
    };
    C->Fn.FreeMemory = [](VkDevice D, VkDeviceMemory M,
                          const VkAllocationCallbacks *A) {
      Fault.Allocated -= M != VK_NULL_HANDLE;
      Fault.Real.FreeMemory(D, M, A);
    };
    C->Fn.BindBufferMemory = [](VkDevice D, VkBuffer B, VkDeviceMemory M,
                                VkDeviceSize Offset) {
      return Fault.Binds-- > 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                               : Fault.Real.BindBufferMemory(D, B, M, Offset);
    };
    C->Fn.ResetCommandBuffer = [](VkCommandBuffer Cmd,
                                  VkCommandBufferResetFlags Flags) {
      return Fault.Resets-- == 1 ? VK_ERROR_OUT_OF_HOST_MEMORY
                                 : Fault.Real.ResetCommandBuffer(Cmd, Flags);
    };
    C->Fn.GetSemaphoreCounterValue = [](VkDevice D, VkSemaphore S,
                                        uint64_t *Value) {
      if (LostToCounters)
        return VK_ERROR_DEVICE_LOST;
      if (!Late)
        return Fault.Real.GetSemaphoreCounterValue(D, S, Value);
      *Value = 0;
      return VK_SUCCESS;
    };
    C->Fn.CmdPipelineBarrier2 = [](VkCommandBuffer Cmd,
                                   const VkDependencyInfo *Info) {
      ++Fault.Barriers;
      Fault.Real.CmdPipelineBarrier2(Cmd, Info);
    };
    C->Fn.WaitSemaphores = [](VkDevice D, const VkSemaphoreWaitInfo *Info,
                              uint64_t Timeout) {
      ++Waits;
      if (Lost)
        return VK_ERROR_DEVICE_LOST;
      if (std::promise<void> *Waiting = NextWait.exchange(nullptr)) {
        Waiting->set_value();
        Fault.Release.wait();
      }
      return Late ? VK_TIMEOUT : Fault.Real.WaitSemaphores(D, Info, Timeout);
    };
    A = std::make_shared<VulkanMemory>(C, 256, false);
    S = createStream(C);
  }
  uint32_t word(const MemoryRef &M, size_t Offset = 0) {
    uint32_t Word = 0;
    S->read(M, Offset, &Word, 4);
    return Word;
  }
  MemoryRef A;
  std::unique_ptr<Stream> S;
};

} // namespace greta_test
#endif
