// StreamState.h: what a stream has recorded and submitted: in come operations
// and submissions, out go numbers of the timeline to wait for.
#ifndef GRETA_RUNTIME_VULKAN_STREAM_STATE_H
#define GRETA_RUNTIME_VULKAN_STREAM_STATE_H

#include "Device.h"
#include "Error.h"
#include "Hazards.h"

#include <list>
#include <optional>
#include <set>

namespace greta::rt::vulkan {

// The state that events share with their stream, so that it outlives the
// handle.
struct StreamState {
  explicit StreamState(CoreRef Owner);
  ~StreamState();

  // All of these are called with Lock held; waitFor lets go of it meanwhile.
  VkCommandBuffer open();
  // A graph's commands behind what is open; `Keep` lives until they are done.
  void append(const std::vector<VkCommandBuffer> &Graph,
              const std::shared_ptr<void> &Keep, bool HasResidentKernels);
  void flush() {
    if (Open || !OpenCmds.empty() || !OpenWaits.empty() || !OpenSignals.empty())
      submit();
  }
  bool waitFor(uint64_t Batch, uint64_t Nanoseconds = UINT64_MAX);
  // Whether all that the stream was given is done.
  bool isIdle();
  // Submits what an event of another thread needs. A failure is told to that
  // thread, and later to the stream's own.
  void flushFor(uint64_t Batch);
  // The counters that this batch may still wait for.
  std::vector<Awaited> awaited(uint64_t Batch) const;
  // Throws if the device is lost, and if the batch is.
  void needDone(uint64_t Batch) const;
  void reportLoss();
  void retire();
  // Makes the writes of kernels and copies visible to `Access` in `Stages`.
  void makeVisible(VkCommandBuffer Cmd, VkPipelineStageFlags2 Stages,
                   VkAccessFlags2 Access) const;
  void barrier(VkCommandBuffer Cmd) const;
  // Makes earlier writes visible to the host once it has waited.
  void toHost(VkCommandBuffer Cmd) const;

  CoreRef C;
  std::mutex Lock;
  Core::Queue *Queue;
  VkSemaphore Timeline = VK_NULL_HANDLE;
  VkCommandPool Pool = VK_NULL_HANDLE;
  uint64_t Next = 1;         // the timeline value that the open batch will have
  uint64_t Submitted = 0;    // of the last submission
  uint64_t Completed = 0;    // of the last one seen to be done
  std::set<uint64_t> Lost;   // of batches that could not be submitted
  std::optional<Error> Loss; // what the stream's thread has not heard of yet
  VkCommandBuffer Open = VK_NULL_HANDLE;
  // The command buffers of the open batch, before Open: all that it submits,
  // and which are its own.
  std::vector<VkCommandBufferSubmitInfo> OpenCmds;
  std::vector<VkCommandBuffer> OwnCmds;
  bool Held = false; // a graph waits for what comes behind it
  Hazards Pending;
  VkPipeline Bound = VK_NULL_HANDLE; // in the open command buffer
  bool ForHost = false;      // it writes to memory that the host reaches
  bool HasResidents = false; // the open batch has such kernels
  size_t OpenOps = 0, Patience = 1;
  const size_t MaxBatch;
  KeepList OpenKeep;
  std::vector<VkSemaphoreSubmitInfo> OpenWaits;
  std::vector<Awaited> OpenCounters; // that these wait for, also by events
  std::vector<VkSemaphoreSubmitInfo> OpenSignals; // beside the timeline
  struct Batch {
    std::vector<VkCommandBuffer> Cmds;
    uint64_t Number = 0;
    bool IsSeen = false; // its end
    std::vector<Awaited> Behind;
    KeepList Keep;
  };
  std::list<Batch> InFlight;
  std::list<Batch> Idle; // with empty lists, for the next ones
  std::vector<VkCommandBuffer> Free;

private:
  void close();
  void submit();
  void see(); // the ends of batches up to Completed
  // The open batch runs behind the kernels of other streams whose workgroups
  // wait for each other; holds the lock of such turns.
  std::unique_lock<std::mutex> takeTurn();
  size_t drop(); // the open batch; how many operations it had
  [[noreturn]] void lose(VkResult Result, const char *What);
};

} // namespace greta::rt::vulkan

#endif // GRETA_RUNTIME_VULKAN_STREAM_STATE_H
