// HostCalls.h: functions of the host in a stream's order. In: a function, and
// the point of the stream's timeline behind which it is called. Out: a point of
// a timeline of its own, for which what comes behind it in the stream waits.
#ifndef GRETA_RUNTIME_VULKAN_HOST_CALLS_H
#define GRETA_RUNTIME_VULKAN_HOST_CALLS_H

#include "Device.h"

#include <condition_variable>
#include <deque>
#include <thread>

namespace greta::rt::vulkan {

class HostCalls {
public:
  HostCalls(CoreRef Owner, VkSemaphore Of);
  // Makes the remaining calls when they are due.
  ~HostCalls();

  // Calls F(Data) when the stream has come to `Behind`. `Timeline` then comes
  // to the result.
  uint64_t add(uint64_t Behind, void (*F)(void *), void *Data);
  VkSemaphore Timeline = VK_NULL_HANDLE;

private:
  struct Call {
    uint64_t Behind;
    void (*F)(void *);
    void *Data;
  };
  void run();

  CoreRef C;
  VkSemaphore Of; // the stream's timeline
  std::mutex Lock;
  std::condition_variable Changed;
  std::deque<Call> Calls;
  uint64_t Added = 0;
  bool Ends = false;
  std::thread Thread;
};

} // namespace greta::rt::vulkan
#endif
