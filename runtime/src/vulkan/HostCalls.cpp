// HostCalls.cpp: see HostCalls.h. Vulkan calls no functions of the host, so a
// thread waits for the stream and signals when the function has returned.
#include "HostCalls.h"

namespace greta::rt::vulkan {

HostCalls::HostCalls(CoreRef Owner, VkSemaphore Of)
    : C(std::move(Owner)), Of(Of) {
  Timeline = C->createTimeline();
  Thread = std::thread([this] { run(); });
}

HostCalls::~HostCalls() {
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Ends = true;
  }
  Changed.notify_one();
  Thread.join();
  C->retire(Timeline);
}

uint64_t HostCalls::add(uint64_t Behind, void (*F)(void *), void *Data) {
  std::lock_guard<std::mutex> Guard(Lock);
  Calls.push_back({Behind, F, Data});
  Changed.notify_one();
  return ++Added;
}

// A failure here is also one of the stream's own calls: a lost device has
// nothing to wait for.
void HostCalls::run() {
  std::unique_lock<std::mutex> Guard(Lock);
  for (uint64_t Done = 0;;) {
    Changed.wait(Guard, [&] { return Ends || !Calls.empty(); });
    if (Calls.empty())
      return;
    Call Next = Calls.front();
    Calls.pop_front();
    Guard.unlock();
    (void)C->wait(Of, Next.Behind, UINT64_MAX);
    Next.F(Next.Data);
    VkSemaphoreSignalInfo Signal{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    Signal.semaphore = Timeline;
    Signal.value = ++Done;
    C->learn(C->Fn.SignalSemaphore(C->Handle, &Signal));
    Guard.lock();
  }
}

} // namespace greta::rt::vulkan
