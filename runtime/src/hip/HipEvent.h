// HipEvent.h: points in streams that are waited for and timed.
#ifndef GRETA_RUNTIME_HIP_EVENT_H
#define GRETA_RUNTIME_HIP_EVENT_H

#include "Error.h"
#include "HipMemory.h"

#include <chrono>
#include <thread>

namespace greta::rt::hip {

struct HipEvent : Event {
  explicit HipEvent(CoreRef Owner) : C(std::move(Owner)) {
    C->check(C->use().hipEventCreate(&Handle), "hipEventCreate");
  }
  ~HipEvent() override {
    if (const Library *L = C->living())
      (void)L->hipEventDestroy(Handle);
  }
  void needRecorded() const {
    if (!Recorded)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the event was never recorded");
  }
  // HIP has no wait with a time limit, so it is asked again and again.
  bool wait(uint64_t Nanoseconds) override {
    needRecorded();
    const Library &L = C->use();
    if (Nanoseconds == UINT64_MAX) {
      C->check(L.hipEventSynchronize(Handle), "waiting for an event");
      return true;
    }
    auto Begin = std::chrono::steady_clock::now();
    while (true) {
      hipError_t Result = L.hipEventQuery(Handle);
      if (Result != hipErrorNotReady) {
        C->check(Result, "waiting for an event");
        return true;
      }
      if (std::chrono::steady_clock::now() - Begin >=
          std::chrono::nanoseconds(Nanoseconds))
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  double since(Event &Start) override {
    float Milliseconds = 0;
    C->check(C->use().hipEventElapsedTime(
                 &Milliseconds, static_cast<HipEvent &>(Start).Handle, Handle),
             "hipEventElapsedTime");
    return Milliseconds * 1000.0;
  }
  CoreRef C;
  hipEvent_t Handle = nullptr;
  bool Recorded = false;
};

} // namespace greta::rt::hip
#endif
