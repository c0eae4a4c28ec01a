// Accelerator.h: a device as NCCL or RCCL sees it. In: memory and events of the
// runtime's device. Out: addresses and a stream of CUDA or HIP.
#ifndef GRETA_RUNTIME_COMM_ACCELERATOR_H
#define GRETA_RUNTIME_COMM_ACCELERATOR_H

#include "Backend.h"

namespace greta::rt::comm {

class Accelerator {
public:
  virtual ~Accelerator() = default;
  // Makes the device current on this thread while it lives.
  virtual std::shared_ptr<void> use() = 0;
  virtual void *stream() = 0;
  // Returns the memory's address there; null if it cannot be reached.
  virtual void *address(const MemoryRef &M) = 0;
  // Allocates memory that can be reached.
  virtual MemoryRef allocate(size_t Size) = 0;
  // Later work of the stream waits on the device until the counter has the
  // value; raise() gives it the value when the earlier work is done. Both throw
  // if the two do not share counters.
  virtual void await(const std::shared_ptr<Counter> &, uint64_t) {
    fail(GRETA_ERROR_UNSUPPORTED, "streams share no counters");
  }
  virtual void raise(const std::shared_ptr<Counter> &, uint64_t) {}
  // Later work of the stream runs when the event has happened; returns false if
  // the event is not known yet.
  virtual bool waitFor(Event &Ready) = 0;
  // Marks a point in the stream; isPassed() says whether it was passed.
  virtual std::shared_ptr<void> mark() = 0;
  virtual bool isPassed(void *Mark) = 0;
  // Returns the mark as an event for streams of the runtime, if it is one.
  virtual std::shared_ptr<Event> event(const std::shared_ptr<void> &) {
    return nullptr;
  }
};

// Make CUDA's view of a Vulkan device, by its UUID, and HIP's of a HIP device.
// Both throw what is missing.
std::unique_ptr<Accelerator> makeCuda(std::shared_ptr<Device> D,
                                      const std::string &Uuid);
std::unique_ptr<Accelerator> makeHip(std::shared_ptr<Device> D);

} // namespace greta::rt::comm
#endif
