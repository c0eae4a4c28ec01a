// SmallReduce.h: all_reduce of few bytes by one kernel in the stream, or in the
// graph that it records, which meets the other ranks' kernels in memory of the
// host (vulkan/SmallReduce.comp). No thread and no wait of the host takes part.
#ifndef GRETA_RUNTIME_COMM_SMALL_REDUCE_H
#define GRETA_RUNTIME_COMM_SMALL_REDUCE_H

#include "comm/Comm.h"

namespace greta::rt::comm {

class SmallReduce {
public:
  static constexpr size_t mostBytes = Group::boxWords * 4;
  // Throws if the device has no such kernel.
  SmallReduce(std::shared_ptr<Device> D, Group &G);
  // Takes sums and maxima of four types; all ranks answer the same.
  static bool takes(const Collective &C);
  // Queues or records it; the kernel gives up after so many looks for a rank.
  void queue(Stream &S, const Collective &C, uint32_t Patience);

private:
  std::shared_ptr<Device> D;
  const uint32_t Rank, Ranks;
  KernelRef Code;
  MemoryRef Boxes, State;
};

} // namespace greta::rt::comm
#endif
