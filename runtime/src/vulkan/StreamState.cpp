// StreamState.cpp: batches of a stream, from recording to what they kept.
#include "StreamState.h"
#include "Health.h"

#include <algorithm>
#include <utility>

namespace greta::rt::vulkan {

// Kernels and copies run in these stages.
static constexpr VkPipelineStageFlags2 deviceStages =
    VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT |
    VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;

// A batch of so many operations is submitted, whatever the device does.
static size_t mostOperations() {
  switch (profile()) {
  case Profile::UltraSafe:
    return 4;
  case Profile::Default:
    return 128;
  case Profile::Fast:
    return 512;
  }
  return 1;
}

StreamState::StreamState(CoreRef Owner)
    : C(std::move(Owner)), MaxBatch(mostOperations()) {
  C->needDevice();
  {
    std::lock_guard<std::mutex> Guard(C->Lock);
    Queue = C->Queues[C->NextQueue++ % C->Queues.size()].get();
  }
  Timeline = C->createTimeline();
  VkCommandPoolCreateInfo PoolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  PoolInfo.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  PoolInfo.queueFamilyIndex = C->QueueFamily;
  VkResult Result =
      C->Fn.CreateCommandPool(C->Handle, &PoolInfo, nullptr, &Pool);
  if (Result != VK_SUCCESS) {
    C->Fn.DestroySemaphore(C->Handle, Timeline, nullptr);
    C->check(Result, "vkCreateCommandPool");
  }
}

StreamState::~StreamState() {
  {
    // Another stream may get this address.
    std::lock_guard<std::mutex> Guard(C->Residents.Lock);
    if (C->Residents.Last == this)
      C->Residents.Last = nullptr;
  }
  for (const Batch &B : InFlight)
    Queue->InFlight -= !B.IsSeen;
  C->Fn.DestroyCommandPool(C->Handle, Pool, nullptr);
  C->retire(Timeline);
}

VkCommandBuffer StreamState::open() {
  if (Open)
    return Open;
  retire();
  if (Free.empty()) {
    VkCommandBufferAllocateInfo Info{
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    Info.commandPool = Pool;
    Info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    Info.commandBufferCount = 1;
    VkCommandBuffer Cmd;
    C->check(C->Fn.AllocateCommandBuffers(C->Handle, &Info, &Cmd),
             "vkAllocateCommandBuffers");
    Free.push_back(Cmd);
  }
  VkCommandBufferBeginInfo Begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  Begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  C->check(C->Fn.BeginCommandBuffer(Free.back(), &Begin),
           "vkBeginCommandBuffer");
  Open = Free.back();
  Free.pop_back();
  Bound = VK_NULL_HANDLE;
  return Open;
}

// Ends the open command buffer.
void StreamState::close() {
  if (!Open)
    return;
  if (std::exchange(ForHost, false))
    toHost(Open);
  VkCommandBuffer Cmd = std::exchange(Open, VK_NULL_HANDLE);
  OwnCmds.push_back(Cmd);
  VkResult Result = C->Fn.EndCommandBuffer(Cmd);
  if (Result != VK_SUCCESS)
    lose(Result, "vkEndCommandBuffer");
  OpenCmds.push_back({VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO});
  OpenCmds.back().commandBuffer = Cmd;
}

void StreamState::append(const std::vector<VkCommandBuffer> &Graph,
                         const std::shared_ptr<void> &Keep,
                         bool HasResidentKernels) {
  HasResidents |= HasResidentKernels;
  if (!Open)
    retire();
  close();
  for (VkCommandBuffer Cmd : Graph) {
    OpenCmds.push_back({VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO});
    OpenCmds.back().commandBuffer = Cmd;
  }
  OpenKeep.add(Keep);
  ++OpenOps;
  Pending.forget();
}

// Drops a batch that is lost, with its barriers. The next batch takes over its
// waits and the objects they need.
size_t StreamState::drop() {
  Lost.insert(Next++);
  Pending.forget();
  OpenCmds.clear();
  OpenSignals.clear();
  // vkBeginCommandBuffer resets them.
  Free.insert(Free.end(), OwnCmds.begin(), OwnCmds.end());
  OwnCmds.clear();
  HasResidents = false;
  return std::exchange(OpenOps, 0);
}

void StreamState::lose(VkResult Result, const char *What) {
  size_t Operations = drop();
  C->learn(Result);
  failed(Result, concat(What, " (operations lost: ", Operations, ")"));
}

// Erases counters that have come to their values. `Seen` takes them, as it may
// be their last owner.
static void forgetReached(std::vector<Awaited> &Counters,
                          std::vector<std::shared_ptr<VulkanCounter>> &Seen) {
  auto IsReached = [&](const Awaited &A) {
    Seen.push_back(A.Of.lock());
    return !Seen.back() || Seen.back()->value() >= A.Value;
  };
  Counters.erase(std::remove_if(Counters.begin(), Counters.end(), IsReached),
                 Counters.end());
}

void addTo(std::vector<Awaited> &All, const std::vector<Awaited> &More) {
  for (const Awaited &A : More) {
    auto Same = std::find_if(All.begin(), All.end(), [&](const Awaited &B) {
      return !A.Of.owner_before(B.Of) && !B.Of.owner_before(A.Of);
    });
    if (Same == All.end())
      All.push_back(A);
    else
      Same->Value = std::max(Same->Value, A.Value);
  }
}

// Returns the counters that a batch waits for; one that is done has none.
std::vector<Awaited> StreamState::awaited(uint64_t Batch) const {
  for (auto B = InFlight.rbegin(); B != InFlight.rend(); ++B)
    if (B->Number == Batch)
      return B->Behind;
  return {};
}

// The other stream's batch may wait for a counter that is raised only later,
// behind this batch; then the turn is refused.
std::unique_lock<std::mutex> StreamState::takeTurn() {
  Turns &T = C->Residents;
  std::unique_lock<std::mutex> Guard(T.Lock);
  if (!T.Timeline)
    T.Timeline = C->createTimeline();
  VkSemaphoreSubmitInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Info.semaphore = T.Timeline;
  Info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  if (T.Last && T.Last != this) {
    std::vector<std::shared_ptr<VulkanCounter>> Seen;
    forgetReached(T.Behind, Seen);
    if (!T.Behind.empty()) {
      size_t Operations = drop();
      fail(GRETA_ERROR_UNSUPPORTED,
           "kernels whose workgroups wait for each other run in another stream "
           "behind a counter that was not raised yet; launch such kernels from "
           "one stream, or raise it before (operations lost: ",
           Operations, ")");
    }
    Info.value = T.Given;
    OpenWaits.push_back(Info);
  }
  Info.value = T.Given + 1;
  OpenSignals.push_back(Info);
  return Guard;
}

void StreamState::submit() {
  Held = false;
  close();
  std::unique_lock<std::mutex> Turn;
  if (HasResidents)
    Turn = takeTurn();
  VkSemaphoreSubmitInfo Signal{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Signal.semaphore = Timeline;
  Signal.value = Next;
  Signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSubmitInfo2 Info{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  Info.waitSemaphoreInfoCount = static_cast<uint32_t>(OpenWaits.size());
  Info.pWaitSemaphoreInfos = OpenWaits.data();
  Info.commandBufferInfoCount = static_cast<uint32_t>(OpenCmds.size());
  Info.pCommandBufferInfos = OpenCmds.data();
  OpenSignals.push_back(Signal);
  Info.signalSemaphoreInfoCount = static_cast<uint32_t>(OpenSignals.size());
  Info.pSignalSemaphoreInfos = OpenSignals.data();
  VkResult Result;
  std::vector<Awaited> Behind;
  std::vector<std::shared_ptr<VulkanCounter>> Seen; // released without the lock
  {
    std::lock_guard<std::mutex> Guard(Queue->Lock);
    constexpr size_t many = 16;
    if (!OpenCounters.empty() && Queue->Behind.size() >= many)
      forgetReached(Queue->Behind, Seen);
    Result = C->Fn.QueueSubmit2(Queue->Handle, 1, &Info, VK_NULL_HANDLE);
    if (Result == VK_SUCCESS) {
      ++Queue->InFlight;
      Queue->HasRun = true;
      addTo(Queue->Behind, std::exchange(OpenCounters, {}));
      Behind = Queue->Behind;
    }
  }
  if (Result != VK_SUCCESS)
    lose(Result, "vkQueueSubmit2");
  if (Turn) {
    ++C->Residents.Given;
    C->Residents.Last = this;
    C->Residents.Behind = Behind;
    Turn.unlock();
  }
  HasResidents = false;
  OpenCmds.clear();
  OpenWaits.clear();
  OpenSignals.clear();
  OpenOps = 0;
  Submitted = Next++;
  if (Idle.empty())
    Idle.emplace_back();
  InFlight.splice(InFlight.end(), Idle, Idle.begin());
  InFlight.back().Number = Submitted;
  InFlight.back().IsSeen = false;
  InFlight.back().Cmds.assign(OwnCmds.begin(), OwnCmds.end());
  OwnCmds.clear();
  InFlight.back().Behind = std::move(Behind);
  std::swap(InFlight.back().Keep, OpenKeep);
}

// Lost work, and work that was not submitted, cannot be waited for: everything
// before it is done then. Returns false if the time is over before.
bool StreamState::waitFor(uint64_t Batch, uint64_t Nanoseconds) {
  if (Batch == Next)
    flush();
  Patience = 1;
  C->needDevice();
  Batch = std::min(Batch, Submitted);
  if (Batch <= Completed)
    return true;
  if (!Nanoseconds) { // polls, as a wait costs more
    C->check(C->Fn.GetSemaphoreCounterValue(C->Handle, Timeline, &Completed),
             "vkGetSemaphoreCounterValue");
    see();
    return Batch <= Completed;
  }
  Lock.unlock();
  VkResult Result = C->wait(Timeline, Batch, Nanoseconds);
  Lock.lock();
  if (Result == VK_TIMEOUT)
    return false;
  C->check(Result, "waiting for the device");
  Completed = std::max(Completed, Batch);
  see();
  return true;
}

bool StreamState::isIdle() {
  if (Open || !OpenCmds.empty() || !OpenWaits.empty())
    return false;
  if (Completed < Submitted)
    retire();
  return Completed >= Submitted;
}

void StreamState::flushFor(uint64_t Batch) {
  try {
    if (Batch == Next)
      flush();
  } catch (const Error &E) {
    Loss = E;
    throw;
  }
}

void StreamState::needDone(uint64_t Batch) const {
  C->needDevice();
  if (Lost.count(Batch))
    fail(GRETA_ERROR_DEVICE,
         "the work before the event could not be submitted and is lost");
}

void StreamState::reportLoss() {
  C->needDevice();
  if (std::optional<Error> E = std::exchange(Loss, std::nullopt))
    throw *E;
}

void StreamState::see() {
  for (Batch &B : InFlight)
    if (B.Number <= Completed && !std::exchange(B.IsSeen, true))
      --Queue->InFlight;
}

void StreamState::retire() {
  C->check(C->Fn.GetSemaphoreCounterValue(C->Handle, Timeline, &Completed),
           "vkGetSemaphoreCounterValue");
  see();
  while (!InFlight.empty() && InFlight.front().Number <= Completed) {
    // Each buffer is in one list at any time, also if a reset fails.
    for (auto &Cmds = InFlight.front().Cmds; !Cmds.empty(); Cmds.pop_back()) {
      C->check(C->Fn.ResetCommandBuffer(Cmds.back(), 0),
               "vkResetCommandBuffer");
      Free.push_back(Cmds.back());
    }
    Idle.splice(Idle.begin(), InFlight, InFlight.begin());
    Idle.front().Keep.clear();
  }
}

void StreamState::makeVisible(VkCommandBuffer Cmd, VkPipelineStageFlags2 Stages,
                              VkAccessFlags2 Access) const {
  VkMemoryBarrier2 Barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  Barrier.srcStageMask = deviceStages;
  Barrier.srcAccessMask =
      VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  Barrier.dstStageMask = Stages;
  Barrier.dstAccessMask = Access;
  VkDependencyInfo Info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  Info.memoryBarrierCount = 1;
  Info.pMemoryBarriers = &Barrier;
  C->Fn.CmdPipelineBarrier2(Cmd, &Info);
}

void StreamState::barrier(VkCommandBuffer Cmd) const {
  makeVisible(Cmd, deviceStages,
              VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT |
                  VK_ACCESS_2_TRANSFER_READ_BIT |
                  VK_ACCESS_2_TRANSFER_WRITE_BIT);
}

void StreamState::toHost(VkCommandBuffer Cmd) const {
  makeVisible(Cmd, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
}

} // namespace greta::rt::vulkan
