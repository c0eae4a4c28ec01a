// VulkanFaultTest.cpp: the Vulkan backend when the driver fails or keeps
// somebody waiting.
#include "VulkanFault.h"
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <cstring>
#include <dlfcn.h>

using namespace greta_test;

namespace {

TEST_F(VulkanFault, FailedSubmissionLeavesAUsableStream) {
  for (int *Fails : {&Fault.Ends, &Fault.Submits}) {
    VulkanEvent Before, With;
    S->fill(A, 0, 256, 1);
    S->record(Before);
    S->flush();
    S->fill(A, 0, 256, 2);
    S->record(With);
    *Fails = 1;
    std::string Text = message([&] { S->flush(); }, GRETA_ERROR_OUT_OF_MEMORY);
    EXPECT_NE(Text.find("operations lost: 1"), std::string::npos) << Text;
    // Lost work is not waited for, in any way.
    Before.synchronize();
    expectSays([&] { With.synchronize(); }, "is lost");
    expectSays([&] { With.since(Before); }, "is lost");
    std::unique_ptr<Stream> Other = createStream(C);
    expectSays([&] { Other->wait(With); }, "is lost");
    S->synchronize();
    EXPECT_EQ(word(A), 1u);
    S->fill(A, 0, 256, 3);
    EXPECT_EQ(word(A), 3u);
    S->record(With);
    With.synchronize();
    EXPECT_GE(With.since(Before), 0.0);
  }
}

// Lost batches do not keep their part of the staging memory.
TEST_F(VulkanFault, StagingOutlivesLostBatches) {
  C->Physical.Props.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::vector<uint32_t> Data(6u << 20, 7); // 24 MiB, more than the ring
  MemoryRef Large = memory(Data.size() * 4);
  for (int I = 0; I < 8; ++I) {
    Fault.Submits = 1;
    message([&] { S->write(Large, 0, Data.data(), Data.size() * 4); },
            GRETA_ERROR_OUT_OF_MEMORY);
  }
  S->write(Large, 0, Data.data(), Data.size() * 4);
  EXPECT_EQ(word(Large, Data.size() * 4 - 4), 7u);
}

// The barrier between the fill and whoever reads it was in the batch that is
// lost.
TEST_F(VulkanFault, LostBarriersAreMadeUpFor) {
  MemoryRef B = memory(256), D = memory(256);
  S->fill(A, 0, 256, 1);
  S->flush();
  S->copy(B, 0, A, 0, 256);
  Fault.Submits = 1;
  message([&] { S->flush(); }, GRETA_ERROR_OUT_OF_MEMORY);
  Fault.Barriers = 0;
  S->copy(D, 0, A, 0, 256);
  EXPECT_EQ(Fault.Barriers, 1);
}

// Operations wait for each other where they share bytes that one of them
// writes.
TEST_F(VulkanFault, BarriersOnlyWhereBytesAreShared) {
  MemoryRef B = memory(256);
  S->fill(A, 0, 256, 1);
  S->flush();
  auto barriers = [&](const std::function<void()> &F) {
    Fault.Barriers = 0;
    F();
    return Fault.Barriers;
  };
  EXPECT_EQ(barriers([&] { S->copy(B, 0, A, 0, 128); }), 1); // reads the fill
  EXPECT_EQ(barriers([&] {
              S->copy(B, 128, A, 0, 128); // reads what is read
              S->fill(A, 128, 64, 2);     // nobody touched it since
            }),
            0);
  EXPECT_EQ(barriers([&] { S->fill(A, 64, 64, 3); }), 1);     // it was read
  EXPECT_EQ(barriers([&] { S->copy(B, 0, A, 124, 8); }), 1);  // 4 bytes of it
  EXPECT_EQ(barriers([&] { S->copy(B, 8, A, 192, 64); }), 0); // beside it
  EXPECT_EQ(word(A, 64), 3u);
}

// A temporary that was to hold zeros and could not be filled with them is
// filled by the next launch.
TEST_F(VulkanFault, FailedClearsAreMadeUpFor) {
  nlohmann::json M = manifest();
  for (nlohmann::json &F : M["functions"])
    if (F["name"] == "twice_scaled")
      for (nlohmann::json &V : F["variants"]) {
        // Its kernels in the other order read what they find there.
        V["temps"][0]["zeroed"] = true;
        std::swap(V["kernels"][0], V["kernels"][1]);
      }
  greta::Package P = packageOf(package(M));
  greta::Runtime R("vulkan");
  greta::Function F = R.load(P, "twice_scaled");
  greta::Stream Own = R.stream();
  greta::Buffer In = R.allocate(256), Out = R.allocate(256);
  Own.fill(In, 256, 0);
  Own.synchronize();
  // The runtime has the device once.
  MemoryRef Theirs = openDevice("vulkan")->allocate(256);
  DeviceFunctions &Fn = static_cast<VulkanMemory &>(*Theirs).C->Fn;
  static DeviceFunctions Real;
  static int Fills;
  Real = Fn;
  Fills = 0;
  Fn.CmdFillBuffer = [](VkCommandBuffer Cmd, VkBuffer B, VkDeviceSize Offset,
                        VkDeviceSize Size, uint32_t Word) {
    ++Fills;
    Real.CmdFillBuffer(Cmd, B, Offset, Size, Word);
  };
  Fn.QueueSubmit2 = [](VkQueue, uint32_t, const VkSubmitInfo2 *, VkFence) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  };
  auto Launch = [&] { F.launch(Own, {{&In, {1, 64}}}, {{&Out, {1, 64}}}); };
  EXPECT_THROW(Launch(), greta::Error);
  EXPECT_EQ(Fills, 1);
  Fn.QueueSubmit2 = Real.QueueSubmit2;
  Launch();
  EXPECT_EQ(Fills, 2);
  std::vector<float> Y(64);
  Own.read(Out, Y.data(), 256);
  EXPECT_EQ(Y, std::vector<float>(64, 1.0f));
  Launch();
  Own.synchronize();
  EXPECT_EQ(Fills, 2);
  Fn = Real;
}

// A stream hears of work that was lost when another thread had it submitted.
TEST_F(VulkanFault, TheStreamHearsOfItsLoss) {
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  Fault.Submits = 1;
  message([&] { E.synchronize(); }, GRETA_ERROR_OUT_OF_MEMORY);
  message([&] { S->fill(A, 0, 256, 2); }, GRETA_ERROR_OUT_OF_MEMORY);
  S->fill(A, 0, 256, 3);
  EXPECT_EQ(word(A), 3u);
}

// While one thread waits for an event, the event's stream takes work.
TEST_F(VulkanFault, WaitingForAnEventHoldsNoLock) {
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  std::promise<void> Waiting, Release;
  NextWait = &Waiting;
  Fault.Release = Release.get_future().share();
  auto Waiter = std::async(std::launch::async, [&] { E.synchronize(); });
  Waiting.get_future().wait();
  auto Filler = std::async(std::launch::async, [&] {
    S->fill(A, 0, 4096 / 16, 2);
    S->flush();
  });
  EXPECT_EQ(Filler.wait_for(std::chrono::seconds(60)),
            std::future_status::ready);
  Release.set_value();
  Waiter.get();
  Filler.get();
  EXPECT_EQ(word(A), 2u);
}

TEST_F(VulkanFault, WaitsEndInTime) {
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  Late = true;
  EXPECT_FALSE(E.wait(0));
  EXPECT_FALSE(E.wait(1000));
  Late = false;
  EXPECT_TRUE(E.wait(uint64_t(60) << 30));
  EXPECT_TRUE(E.wait(0));
}

TEST_F(VulkanFault, StreamsAreAskedWithoutAWait) {
  EXPECT_TRUE(S->isDone());
  Late = true;
  S->fill(A, 0, 256, 1);
  EXPECT_FALSE(S->isDone());
  Late = false;
  S->synchronize();
  EXPECT_TRUE(S->isDone());
}

// Everybody who waits hears of it, and from then on nobody asks the driver.
TEST_F(VulkanFault, LostDevicesStayLost) {
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  std::unique_ptr<Stream> Other = createStream(C);
  Lost = true;
  auto SaysLost = [](const std::function<void()> &F) {
    std::string Text = message(F, GRETA_ERROR_DEVICE_LOST);
    EXPECT_NE(Text.find("the device was lost (a kernel crashed or ran too "
                        "long); destroy all that was made from it"),
              std::string::npos)
        << Text;
  };
  SaysLost([&] { S->synchronize(); });
  Waits = 0;
  Fault.Submitted = 0;
  uint32_t Word = 0;
  SaysLost([&] { S->synchronize(); });
  SaysLost([&] { S->read(A, 0, &Word, 4); });
  SaysLost([&] { S->fill(A, 0, 256, 2); });
  SaysLost([&] { S->callHost([](void *) {}, nullptr); });
  SaysLost([&] { Other->copy(A, 0, A, 128, 128); });
  SaysLost([&] { E.synchronize(); });
  SaysLost([&] { Other->wait(E); });
  S.reset();
  EXPECT_EQ(Waits, 0);
  EXPECT_EQ(Fault.Submitted, 0);
  Lost = false;
  // The driver, which has lost nothing, may still be at work on what E keeps.
  VkSemaphoreWaitInfo Wait{};
  Wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  Wait.semaphoreCount = 1;
  Wait.pSemaphores = &E.Owner->Timeline;
  Wait.pValues = &E.Value;
  EXPECT_EQ(Fault.Real.WaitSemaphores(C->Handle, &Wait, UINT64_MAX),
            VK_SUCCESS);
}

// Whichever call of the driver says it first.
TEST_F(VulkanFault, AnyCallMayLearnOfTheLoss) {
  auto SaysLost = [](const std::function<void()> &F) {
    message(F, GRETA_ERROR_DEVICE_LOST);
  };
  Fault.Allocations = 1;
  Fault.AllocationSays = VK_ERROR_DEVICE_LOST;
  SaysLost([&] { memory(64u << 20); });
  Waits = 0;
  Fault.Submitted = 0;
  SaysLost([&] { memory(256); });
  SaysLost([&] { S->fill(A, 0, 256, 1); });
  SaysLost([&] { createStream(C); });
  SaysLost([&] { S->beginCapture(); });
  SaysLost([&] { Query Q(C); });
  EXPECT_EQ(Waits + Fault.Submitted, 0);

  C->IsLost = false;
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  E.synchronize();
  C->Fn.GetQueryPoolResults =
      [](VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void *,
         VkDeviceSize, VkQueryResultFlags) { return VK_ERROR_DEVICE_LOST; };
  SaysLost([&] { E.since(E); });
  SaysLost([&] { memory(256); });
  C->IsLost = false;
  S->synchronize();
}

// A device that is lost opens again while handles of it are still there.
TEST_F(VulkanFault, LostDevicesOpenAgain) {
  std::shared_ptr<Device> Old = openDevice("vulkan");
  EXPECT_EQ(openDevice("vulkan"), Old);
  MemoryRef Theirs = Old->allocate(256);
  static_cast<VulkanMemory &>(*Theirs).C->IsLost = true;
  EXPECT_TRUE(Old->isLost());
  std::shared_ptr<Device> New = openDevice("vulkan");
  EXPECT_NE(New, Old);
  EXPECT_EQ(openDevice("vulkan"), New);
  MemoryRef Ours = New->allocate(256);
  std::unique_ptr<Stream> On = New->createStream();
  On->fill(Ours, 0, 256, 5);
  uint32_t Word = 0;
  On->read(Ours, 0, &Word, 4);
  EXPECT_EQ(Word, 5u);
  message([&] { Old->allocate(256); }, GRETA_ERROR_DEVICE_LOST);
}

// Each attempt gives its allocation back before the next one.
TEST_F(VulkanFault, FailedBindsLeakNothing) {
  C->Blocks.trim();
  int Before = Fault.Allocated;
  Fault.Binds = 2;
  std::make_shared<VulkanMemory>(C, 256, /*HostVisible=*/true, true);
  EXPECT_EQ(Fault.Allocated, Before);
  for (bool HostVisible : {false, true}) {
    Fault.Binds = 9;
    message([&] { VulkanMemory(C, 256, HostVisible); },
            GRETA_ERROR_OUT_OF_MEMORY);
    Fault.Binds = 0;
    C->Blocks.trim();
    EXPECT_EQ(Fault.Allocated, Before);
  }
}

// A command buffer is in one list only, also where it cannot be reset.
TEST_F(VulkanFault, FailedResetsLoseNoCommandBuffer) {
  S->beginCapture();
  S->fill(A, 128, 4, 2);
  std::shared_ptr<Graph> G = S->endCapture();
  VulkanEvent E;
  S->hold();
  S->fill(A, 0, 128, 1);
  G->launch(*S);
  S->fill(A, 132, 4, 3);
  S->record(E);
  S->flush();
  E.synchronize();
  Fault.Resets = 2; // the second one fails
  message([&] { S->synchronize(); }, GRETA_ERROR_OUT_OF_MEMORY);
  S->synchronize();
  const std::vector<VkCommandBuffer> &Free = E.Owner->Free;
  EXPECT_GE(Free.size(), 2u);
  EXPECT_EQ(std::set<VkCommandBuffer>(Free.begin(), Free.end()).size(),
            Free.size());
}

// A driver that does not wake those who wait for a device that is lost.
TEST_F(VulkanFault, NobodyWaitsForALostDeviceForEver) {
  std::promise<void> Called;
  S->fill(A, 0, 256, 1);
  Late = true;
  S->callHost(
      [](void *P) { static_cast<std::promise<void> *>(P)->set_value(); },
      &Called);
  auto Waiter = std::async(std::launch::async, [&] {
    return message([&] { S->synchronize(); }, GRETA_ERROR_DEVICE_LOST);
  });
  LostToCounters = true;
  EXPECT_EQ(Called.get_future().wait_for(std::chrono::seconds(60)),
            std::future_status::ready);
  Waiter.get();
  // The driver has lost nothing.
  Late = LostToCounters = false;
  auto Idle = reinterpret_cast<PFN_vkDeviceWaitIdle>(
      Inst->GetDeviceProcAddr(C->Handle, "vkDeviceWaitIdle"));
  EXPECT_EQ(Idle(C->Handle), VK_SUCCESS);
  S.reset();
}

// A held graph is one submission with what comes behind it.
TEST_F(VulkanFault, HeldGraphsAreSubmittedWithTheRest) {
  S->beginCapture();
  S->fill(A, 0, 256, 1);
  std::shared_ptr<Graph> Inner = S->endCapture();
  S->beginCapture();
  Inner->launch(*S);
  S->fill(A, 128, 4, 2);
  std::shared_ptr<Graph> G = S->endCapture();
  Inner = nullptr;
  for (bool Holds : {false, true}) {
    S->fill(A, 0, 256, 0);
    S->synchronize();
    Fault.Submitted = 0;
    if (Holds)
      S->hold();
    VulkanEvent E;
    G->launch(*S);
    S->copy(A, 4, A, 128, 4);
    S->record(E);
    S->flush();
    EXPECT_EQ(Fault.Submitted, Holds ? 1 : 2);
    E.synchronize();
    EXPECT_EQ(word(A), 1u);
    EXPECT_EQ(word(A, 4), 2u);
    EXPECT_EQ(word(A, 252), 1u);
  }
}

TEST_F(VulkanFault, TooManyObjectsIsNotOutOfMemory) {
  Fault.Allocations = 1;
  expectSays([&] { memory(64u << 20); }, // not a part of another's block
             std::to_string(C->Physical.Props.limits.maxMemoryAllocationCount)
                 .c_str());
  expectSays([] { check(VK_ERROR_TOO_MANY_OBJECTS, "making", " it"); },
             "making it: the driver allows no more objects");
  memory(256);
}

// A driver that lacks a function: what was opened before that is closed.
TEST_F(VulkanFault, DeviceClosesWhenItsConstructorThrows) {
  Fault.GetDevice = Inst->GetDeviceProcAddr;
  Inst->GetDeviceProcAddr = [](VkDevice D,
                               const char *Name) -> PFN_vkVoidFunction {
    PFN_vkVoidFunction F = Fault.GetDevice(D, Name);
    if (!strcmp(Name, "vkQueueSubmit2"))
      return nullptr;
    if (strcmp(Name, "vkDestroyDevice"))
      return F;
    Fault.DestroyDevice = reinterpret_cast<PFN_vkDestroyDevice>(F);
    return reinterpret_cast<PFN_vkVoidFunction>(
        +[](VkDevice D, const VkAllocationCallbacks *A) {
          ++Fault.Destroyed;
          Fault.DestroyDevice(D, A);
        });
  };
  expectSays([&] { Core(Inst, C->Physical); }, "no vkQueueSubmit2");
  Inst->GetDeviceProcAddr = Fault.GetDevice;
  EXPECT_EQ(Fault.Destroyed, 1);
}

TEST_F(VulkanFault, InstanceClosesWhenItsConstructorThrows) {
  Fault.GetInstance = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen("libvulkan.so.1", RTLD_NOW), "vkGetInstanceProcAddr"));
  auto GetProc = [](VkInstance I, const char *Name) -> PFN_vkVoidFunction {
    PFN_vkVoidFunction F = Fault.GetInstance(I, Name);
    if (!strcmp(Name, "vkGetPhysicalDeviceFeatures2"))
      return nullptr;
    if (strcmp(Name, "vkDestroyInstance"))
      return F;
    Fault.DestroyInstance = reinterpret_cast<PFN_vkDestroyInstance>(F);
    return reinterpret_cast<PFN_vkVoidFunction>(
        +[](VkInstance I, const VkAllocationCallbacks *A) {
          ++Fault.Destroyed;
          Fault.DestroyInstance(I, A);
        });
  };
  message([&] { Instance I(GetProc); }, GRETA_ERROR_NOT_FOUND);
  EXPECT_EQ(Fault.Destroyed, 1);
}

} // namespace
