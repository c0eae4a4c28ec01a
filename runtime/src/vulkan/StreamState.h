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

  // The caller holds Lock; waitFor releases it meanwhile.
  VkCommandBuffer open();
  // Appends a graph's commands; `Keep` lives until they are done.
  void append(const std::vector<VkCommandBuffer> &Graph,
              const std::shared_ptr<void> &Keep, bool HasResidentKernels);
  void flush() {
    if (Open || !OpenCmds.empty() || !OpenWaits.empty() || !OpenSignals.empty())
      submit();
  }
  bool waitFor(uint64_t Batch, uint64_t Nanoseconds = UINT64_MAX);
  // Returns whether all that the stream was given is done.
  bool isIdle();
  // Submits what an event of another thread needs. That thread hears of a
  // failure, and so does the stream's own later.
  void flushFor(uint64_t Batch);
  // Returns the counters that this batch may still wait for.
  std::vector<Awaited> awaited(uint64_t Batch) const;
  // Throws if the device is lost, or if the batch is.
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
  uint64_t Next = 1;         // the open batch's timeline value
  uint64_t Submitted = 0;    // the last submission's
  uint64_t Completed = 0;    // the last one's that is known to be done
  std::set<uint64_t> Lost;   // batches that could not be submitted
  std::optional<Error> Loss; // not yet told to the stream's thread
  VkCommandBuffer Open = VK_NULL_HANDLE;
  // The command buffers of the open batch, before Open, and those of them that
  // are its own.
  std::vector<VkCommandBufferSubmitInfo> OpenCmds;
  std::vector<VkCommandBuffer> OwnCmds;
  bool Held = false; // a graph waits for the work behind it
  Hazards Pending;
  VkPipeline Bound = VK_NULL_HANDLE; // in the open command buffer
  bool ForHost = false;      // the batch writes memory that the host reaches
  bool HasResidents = false; // the batch has resident kernels
  size_t OpenOps = 0, Patience = 1;
  const size_t MaxBatch;
  KeepList OpenKeep;
  std::vector<VkSemaphoreSubmitInfo> OpenWaits;
  std::vector<Awaited> OpenCounters;              // waited for, also by events
  std::vector<VkSemaphoreSubmitInfo> OpenSignals; // beside the timeline
  struct Batch {
    std::vector<VkCommandBuffer> Cmds;
    uint64_t Number = 0;
    bool IsSeen = false; // its end was seen
    std::vector<Awaited> Behind;
    KeepList Keep;
  };
  std::list<Batch> InFlight;
  std::list<Batch> Idle; // reusable, with empty lists
  std::vector<VkCommandBuffer> Free;

private:
  void close();
  void submit();
  void see(); // notes the ends of batches up to Completed
  // Queues the open batch behind other streams' kernels whose workgroups wait
  // for each other; returns the lock of such turns.
  std::unique_lock<std::mutex> takeTurn();
  size_t drop(); // drops the open batch; returns its number of operations
  [[noreturn]] void lose(VkResult Result, const char *What);
};

} // namespace greta::rt::vulkan

#endif // GRETA_RUNTIME_VULKAN_STREAM_STATE_H
