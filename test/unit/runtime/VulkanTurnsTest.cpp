// VulkanTurnsTest.cpp: streams take turns with kernels whose workgroups wait
// for each other, and refuse a turn that might never come.
#include "VulkanFault.h"

using namespace greta_test;

namespace {

// S has the first queue, and the streams after it the next ones in turn.
class VulkanTurns : public VulkanFault {
protected:
  static constexpr size_t queues = 4;
  void SetUp() override {
    VulkanFault::SetUp();
    if (!C)
      return; // skipped
    // Queues of which the driver has fewer are one to it.
    while (C->Queues.size() < queues) {
      C->Queues.push_back(std::make_unique<Core::Queue>());
      C->Queues.back()->Handle = C->Queues.front()->Handle;
    }
    // Counters are made here that no other API may import.
    C->Fn.CreateSemaphore = [](VkDevice D, const VkSemaphoreCreateInfo *Info,
                               const VkAllocationCallbacks *A,
                               VkSemaphore *Out) {
      auto Type = *static_cast<const VkSemaphoreTypeCreateInfo *>(Info->pNext);
      Type.pNext = nullptr;
      VkSemaphoreCreateInfo Own = *Info;
      Own.pNext = &Type;
      return Fault.Real.CreateSemaphore(D, &Own, A, Out);
    };
  }
  // Submits a batch; whose it is.
  StreamState &submit(Stream &On, bool HasResidents = true) {
    VulkanEvent E;
    On.fill(A, 0, 256, 1);
    On.record(E);
    E.Owner->HasResidents = HasResidents;
    On.flush();
    return *E.Owner;
  }
  void expectRefused(Stream &On) {
    std::string Text = message([&] { submit(On); }, GRETA_ERROR_UNSUPPORTED);
    EXPECT_NE(Text.find("behind a counter that was not raised yet"),
              std::string::npos)
        << Text;
  }
  std::shared_ptr<VulkanCounter> counter() {
    return std::make_shared<VulkanCounter>(C);
  }
};

// Kernels whose workgroups wait for each other have the device to themselves: a
// stream's batch with some waits for that of another which came before, and for
// nothing if the one before is its own.
TEST_F(VulkanTurns, OfStreams) {
  std::unique_ptr<Stream> Other = createStream(C);
  auto ExpectWaits = [&](uint64_t Value) {
    ASSERT_EQ(Fault.Awaits.size(), 1u);
    EXPECT_EQ(Fault.Awaits[0].semaphore, C->Residents.Timeline);
    EXPECT_EQ(Fault.Awaits[0].value, Value);
  };
  auto ExpectSignals = [&](uint64_t Value) {
    ASSERT_EQ(Fault.Signals.size(), 2u);
    EXPECT_EQ(Fault.Signals[0].semaphore, C->Residents.Timeline);
    EXPECT_EQ(Fault.Signals[0].value, Value);
  };
  submit(*S, false);
  EXPECT_EQ(Fault.Signals.size(), 1u);
  for (uint64_t Turn : {1, 2}) {
    submit(*S, true);
    EXPECT_TRUE(Fault.Awaits.empty());
    ExpectSignals(Turn);
  }
  submit(*Other, true);
  ExpectWaits(2);
  ExpectSignals(3);
  submit(*Other, false);
  EXPECT_TRUE(Fault.Awaits.empty());
  EXPECT_EQ(Fault.Signals.size(), 1u);
  // A batch that is lost has had no turn.
  Fault.Submits = 1;
  message([&] { submit(*S, true); }, GRETA_ERROR_OUT_OF_MEMORY);
  submit(*S, true);
  ExpectSignals(4);
  for (const VkSemaphoreSubmitInfo &Wait : Fault.Awaits)
    EXPECT_EQ(Wait.value, 3u);
  // Who comes after a stream that is gone waits for nobody: it was done.
  S.reset();
  submit(*Other, true);
  EXPECT_TRUE(Fault.Awaits.empty());
  ExpectSignals(5);
  Other->synchronize();
  uint64_t Value = 0;
  EXPECT_EQ(
      C->Fn.GetSemaphoreCounterValue(C->Handle, C->Residents.Timeline, &Value),
      VK_SUCCESS);
  EXPECT_EQ(Value, 5u);
}

// One that waits for a counter may wait for what comes: its turn would never
// end.
TEST_F(VulkanTurns, NoneBehindACounterThatNobodyRaised) {
  std::unique_ptr<Stream> Other = createStream(C), Third = createStream(C);
  std::shared_ptr<VulkanCounter> Counter = counter();
  S->await(Counter, 1);
  submit(*S);
  expectRefused(*Other);
  // A stream that waits for an event behind the counter is refused, too.
  VulkanEvent E;
  S->record(E);
  Third->wait(E);
  Counter->raise(1);
  submit(*Third);
  submit(*Other);
  Other->synchronize();
  Counter = counter();
  S->await(Counter, 1);
  S->record(E);
  Third->wait(E);
  submit(*Third);
  expectRefused(*Other);
  Counter->raise(1);
  submit(*Other);
  Other->synchronize();
}

// A driver's thread may be at work with a semaphore when the end of the batch
// that waited for it has been seen.
TEST_F(VulkanTurns, SemaphoresAreDestroyedWhenQueuesAreIdle) {
  static int Idle, Destroyed;
  Idle = Destroyed = 0;
  C->Fn.QueueWaitIdle = [](VkQueue Q) {
    ++Idle;
    return Fault.Real.QueueWaitIdle(Q);
  };
  C->Fn.DestroySemaphore = [](VkDevice D, VkSemaphore Of,
                              const VkAllocationCallbacks *A) {
    ++Destroyed;
    Fault.Real.DestroySemaphore(D, Of, A);
  };
  std::shared_ptr<VulkanCounter> Counter = counter();
  S->await(Counter, 1);
  submit(*S);
  counter().reset(); // while a batch waits for what comes
  EXPECT_EQ(Idle + Destroyed, 0);
  Counter->raise(1);
  S->synchronize();
  Counter.reset();
  EXPECT_EQ(Idle, 1); // the others have had no batch
  EXPECT_EQ(Destroyed, 2);
}

// An event is behind what its stream waited for before it was recorded.
TEST_F(VulkanTurns, EventsAreInFrontOfLaterCounters) {
  std::unique_ptr<Stream> Other = createStream(C), Third = createStream(C);
  std::shared_ptr<VulkanCounter> Counter = counter();
  VulkanEvent E;
  S->fill(A, 0, 256, 1);
  S->record(E);
  S->await(Counter, 1);
  submit(*S, false);
  Third->wait(E);
  submit(*Third);
  submit(*Other);
  Counter->raise(1);
  Other->synchronize();
}

// A batch waits for those before it on its queue, whoever submitted them.
TEST_F(VulkanTurns, NoneOnAQueueBehindACounter) {
  std::vector<std::unique_ptr<Stream>> Next(queues);
  for (std::unique_ptr<Stream> &One : Next)
    One = createStream(C);
  Stream &Other = *Next.front();
  std::shared_ptr<VulkanCounter> Counter = counter();
  Stream &Beside = *Next.back();
  submit(Beside);
  submit(Other);
  S->await(Counter, 1);
  StreamState &Waits = submit(*S, false);
  ASSERT_EQ(submit(Beside).Queue, Waits.Queue);
  expectRefused(Other);
  VulkanEvent E;
  Beside.record(E);
  Next[1]->wait(E);
  // Streams that wait for each other know the counter once.
  for (int I = 0; I < 50; ++I) {
    Next[1]->record(E);
    Beside.wait(E);
    Beside.record(E);
    Next[1]->wait(E);
  }
  StreamState &Behind = submit(*Next[1], false);
  EXPECT_NE(Behind.Queue, Waits.Queue);
  EXPECT_EQ(Behind.Queue->Behind.size(), 1u);
  EXPECT_EQ(Waits.Queue->Behind.size(), 1u);
  Counter->raise(1);
  submit(Other);
  Other.synchronize();
}

} // namespace
