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
  // The memory's address there; null if this memory cannot be reached.
  virtual void *address(const MemoryRef &M) = 0;
  // Memory that can.
  virtual MemoryRef allocate(size_t Size) = 0;
  // Later work of the stream waits until the counter has the value, on the
  // device; the counter gets the value when the earlier work is done. Throws
  // where the two do not share counters.
  virtual void await(const std::shared_ptr<Counter> &, uint64_t) {
    fail(GRETA_ERROR_UNSUPPORTED, "streams share no counters");
  }
  virtual void raise(const std::shared_ptr<Counter> &, uint64_t) {}
  // Later work of the stream runs when the event has happened; false if the
  // event is not known yet.
  virtual bool waitFor(Event &Ready) = 0;
  // A point in the stream, and whether it was passed.
  virtual std::shared_ptr<void> mark() = 0;
  virtual bool isPassed(void *Mark) = 0;
  // The mark for a stream of the runtime to wait for, if it is one's.
  virtual std::shared_ptr<Event> event(const std::shared_ptr<void> &) {
    return nullptr;
  }
};

// CUDA's view of a Vulkan device, by its UUID; HIP's of a HIP device. Both
// throw what is missing.
std::unique_ptr<Accelerator> makeCuda(std::shared_ptr<Device> D,
                                      const std::string &Uuid);
std::unique_ptr<Accelerator> makeHip(std::shared_ptr<Device> D);

} // namespace greta::rt::comm
#endif
