// Stream.cpp: a stream is a timeline semaphore and a row of command buffers on
// one queue.
//
// Operations are recorded into the open batch; a batch is submitted when
// somebody waits, when it is long, or when the device has nothing to do. Each
// submission signals the next value of the timeline, by which finished batches,
// staging space and kept objects are given back. A memory barrier stands before
// each operation that touches what an earlier one wrote, or writes what one
// touched: that is the stream's order. Others overlap, so that one kernel's
// last workgroups run beside the next one's first.
//
// A stream is one thread's, but whoever waits for an event makes the event's
// stream submit what it holds back; StreamState::Lock is for that. Nobody holds
// it while waiting for the device.
#include "Device.h"
#include "Error.h"
#include "Hazards.h"
#include "Health.h"
#include "Staging.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <set>
#include <utility>

namespace greta::rt::vulkan {
namespace {

// Operations before a batch is submitted unasked, whatever the device does.
size_t mostOperations() {
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

// Operations before a device is asked whether it has nothing to do, once it was
// found so again and again: submitting costs more than a short kernel.
constexpr size_t maxPatience = 32;

} // namespace

// What events share with their stream, so that it outlives the handle.
struct StreamState {
  explicit StreamState(CoreRef Owner);
  ~StreamState();

  // All of these are called with Lock held; waitFor lets go of it meanwhile.
  VkCommandBuffer open();
  void submit(VkCommandBuffer Extra, std::shared_ptr<void> Keep);
  void flush() {
    if (Open || !OpenWaits.empty())
      submit(VK_NULL_HANDLE, nullptr);
  }
  bool waitFor(uint64_t Batch, uint64_t Nanoseconds = UINT64_MAX);
  // Submits what an event of another thread needs. A failure is told to that
  // thread, and later to the stream's own.
  void flushFor(uint64_t Batch);
  // Throws if the batch was lost.
  void needDone(uint64_t Batch) const;
  void reportLoss();
  void retire();
  void barrier(VkCommandBuffer Cmd) const;
  // What was written before is there for the host once it has waited.
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
  Hazards Pending;
  VkPipeline Bound = VK_NULL_HANDLE; // in the open command buffer
  bool ForHost = false; // it writes to memory that the host reaches
  size_t OpenOps = 0, Patience = 1;
  const size_t MaxBatch = mostOperations();
  KeepList OpenKeep;
  std::vector<VkSemaphoreSubmitInfo> OpenWaits;
  struct Batch {
    VkCommandBuffer Cmd = VK_NULL_HANDLE;
    uint64_t Number = 0;
    KeepList Keep;
  };
  std::list<Batch> InFlight;
  std::list<Batch> Idle; // with empty lists, for the next ones
  std::vector<VkCommandBuffer> Free;
};

StreamState::StreamState(CoreRef Owner) : C(std::move(Owner)) {
  {
    std::lock_guard<std::mutex> Guard(C->Lock);
    Queue = C->Queues[C->NextQueue++ % C->Queues.size()].get();
  }
  VkSemaphoreTypeCreateInfo Type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  Type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  Info.pNext = &Type;
  check(C->Fn.CreateSemaphore(C->Handle, &Info, nullptr, &Timeline),
        "vkCreateSemaphore");
  VkCommandPoolCreateInfo PoolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  PoolInfo.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  PoolInfo.queueFamilyIndex = C->QueueFamily;
  VkResult Result =
      C->Fn.CreateCommandPool(C->Handle, &PoolInfo, nullptr, &Pool);
  if (Result != VK_SUCCESS) {
    C->Fn.DestroySemaphore(C->Handle, Timeline, nullptr);
    check(Result, "vkCreateCommandPool");
  }
}

StreamState::~StreamState() {
  C->Fn.DestroyCommandPool(C->Handle, Pool, nullptr);
  C->Fn.DestroySemaphore(C->Handle, Timeline, nullptr);
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
    check(C->Fn.AllocateCommandBuffers(C->Handle, &Info, &Cmd),
          "vkAllocateCommandBuffers");
    Free.push_back(Cmd);
  }
  VkCommandBufferBeginInfo Begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  Begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(C->Fn.BeginCommandBuffer(Free.back(), &Begin), "vkBeginCommandBuffer");
  Open = Free.back();
  Free.pop_back();
  Bound = VK_NULL_HANDLE;
  return Open;
}

void StreamState::submit(VkCommandBuffer Extra, std::shared_ptr<void> Keep) {
  if (Open && ForHost)
    toHost(Open);
  ForHost = false;
  VkResult Result = Open ? C->Fn.EndCommandBuffer(Open) : VK_SUCCESS;
  const char *What = "vkEndCommandBuffer";
  if (Result == VK_SUCCESS) {
    VkCommandBufferSubmitInfo Cmds[2] = {
        {VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO},
        {VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO}};
    uint32_t Count = 0;
    for (VkCommandBuffer Cmd : {Open, Extra})
      if (Cmd)
        Cmds[Count++].commandBuffer = Cmd;
    VkSemaphoreSubmitInfo Signal{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
    Signal.semaphore = Timeline;
    Signal.value = Next;
    Signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    VkSubmitInfo2 Info{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
    Info.waitSemaphoreInfoCount = static_cast<uint32_t>(OpenWaits.size());
    Info.pWaitSemaphoreInfos = OpenWaits.data();
    Info.commandBufferInfoCount = Count;
    Info.pCommandBufferInfos = Cmds;
    Info.signalSemaphoreInfoCount = 1;
    Info.pSignalSemaphoreInfos = &Signal;
    std::lock_guard<std::mutex> Guard(Queue->Lock);
    Result = C->Fn.QueueSubmit2(Queue->Handle, 1, &Info, VK_NULL_HANDLE);
    What = "vkQueueSubmit2";
  }
  VkCommandBuffer Ended = Open;
  size_t Operations = OpenOps + (Extra ? 1 : 0);
  Open = VK_NULL_HANDLE;
  OpenOps = 0;
  if (Result != VK_SUCCESS) {
    // The batch is lost, and with it the barriers it had. What it was to wait
    // for, and what keeps that alive, is left to the next batch.
    Lost.insert(Next++);
    Pending.forget();
    if (Ended)
      Free.push_back(Ended); // vkBeginCommandBuffer resets it
    check(Result, What, " (operations lost: ", Operations, ")");
  }
  Submitted = Next++;
  if (Keep)
    OpenKeep.add(Keep);
  if (Idle.empty())
    Idle.emplace_back();
  InFlight.splice(InFlight.end(), Idle, Idle.begin());
  InFlight.back().Cmd = Ended;
  InFlight.back().Number = Submitted;
  std::swap(InFlight.back().Keep, OpenKeep);
  OpenWaits.clear();
}

// What was lost, and what nobody submitted, cannot be waited for: everything
// before it is then done. False when the time is over before.
bool StreamState::waitFor(uint64_t Batch, uint64_t Nanoseconds) {
  if (Batch == Next)
    flush();
  Patience = 1;
  Batch = std::min(Batch, Submitted);
  if (Batch <= Completed)
    return true;
  VkSemaphoreWaitInfo Info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  Info.semaphoreCount = 1;
  Info.pSemaphores = &Timeline;
  Info.pValues = &Batch;
  Lock.unlock();
  VkResult Result = C->Fn.WaitSemaphores(C->Handle, &Info, Nanoseconds);
  Lock.lock();
  if (Result == VK_TIMEOUT)
    return false;
  check(Result, "waiting for the device");
  Completed = std::max(Completed, Batch);
  return true;
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
  if (Lost.count(Batch))
    fail(GRETA_ERROR_DEVICE,
         "the work before the event could not be submitted and is lost");
}

void StreamState::reportLoss() {
  if (std::optional<Error> E = std::exchange(Loss, std::nullopt))
    throw *E;
}

void StreamState::retire() {
  check(C->Fn.GetSemaphoreCounterValue(C->Handle, Timeline, &Completed),
        "vkGetSemaphoreCounterValue");
  while (!InFlight.empty() && InFlight.front().Number <= Completed) {
    if (VkCommandBuffer Cmd = InFlight.front().Cmd) {
      check(C->Fn.ResetCommandBuffer(Cmd, 0), "vkResetCommandBuffer");
      Free.push_back(Cmd);
    }
    InFlight.front().Keep.clear();
    Idle.splice(Idle.begin(), InFlight, InFlight.begin());
  }
}

void StreamState::barrier(VkCommandBuffer Cmd) const {
  VkMemoryBarrier2 Barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  Barrier.srcStageMask = Barrier.dstStageMask =
      VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT |
      VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
  Barrier.srcAccessMask =
      VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  Barrier.dstAccessMask =
      VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT |
      VK_ACCESS_2_TRANSFER_READ_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  VkDependencyInfo Info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  Info.memoryBarrierCount = 1;
  Info.pMemoryBarriers = &Barrier;
  C->Fn.CmdPipelineBarrier2(Cmd, &Info);
}

void StreamState::toHost(VkCommandBuffer Cmd) const {
  VkMemoryBarrier2 Barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  Barrier.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT |
                         VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
  Barrier.srcAccessMask =
      VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  Barrier.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
  Barrier.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;
  VkDependencyInfo Info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  Info.memoryBarrierCount = 1;
  Info.pMemoryBarriers = &Barrier;
  C->Fn.CmdPipelineBarrier2(Cmd, &Info);
}

bool VulkanEvent::wait(uint64_t Nanoseconds) {
  if (!Owner)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "the event was never recorded");
  std::lock_guard<std::mutex> Guard(Owner->Lock);
  Owner->flushFor(Value);
  Owner->needDone(Value);
  return Owner->waitFor(Value, Nanoseconds);
}

uint64_t VulkanEvent::ticks() const {
  const Core &C = *Owner->C;
  {
    std::lock_guard<std::mutex> Guard(Owner->Lock);
    Owner->needDone(Value);
  }
  uint64_t Ticks = 0;
  check(C.Fn.GetQueryPoolResults(C.Handle, Time->Slot.Handle, Time->Slot.Index,
                                 1, sizeof(Ticks), &Ticks, sizeof(Ticks),
                                 VK_QUERY_RESULT_64_BIT |
                                     VK_QUERY_RESULT_WAIT_BIT),
        "reading a timestamp");
  return Ticks;
}

double VulkanEvent::since(Event &Start) {
  const Core &C = *Owner->C;
  if (!C.TimestampBits)
    fail(GRETA_ERROR_UNSUPPORTED, C.Physical.Props.deviceName,
         " has no timestamps on its compute queue");
  uint64_t Ticks = ticks() - static_cast<VulkanEvent &>(Start).ticks();
  // The counter wraps at its valid bits.
  if (C.TimestampBits < 64)
    Ticks &= (uint64_t(1) << C.TimestampBits) - 1;
  return static_cast<double>(Ticks) * C.Physical.Props.limits.timestampPeriod /
         1000.0;
}

namespace {

struct VulkanGraph : Graph, std::enable_shared_from_this<VulkanGraph> {
  explicit VulkanGraph(CoreRef Owner);
  ~VulkanGraph() override {
    C->Fn.DestroyCommandPool(C->Handle, Pool, nullptr);
  }
  void launch(Stream &S) override;
  CoreRef C;
  VkCommandPool Pool = VK_NULL_HANDLE;
  VkCommandBuffer Cmd = VK_NULL_HANDLE;
  Hazards Pending;
  VkPipeline Bound = VK_NULL_HANDLE;
  bool ForHost = false; // it writes to memory that the host reaches
  KeepList Keep;
};

VulkanGraph::VulkanGraph(CoreRef Owner) : C(std::move(Owner)) {
  VkCommandPoolCreateInfo PoolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  PoolInfo.queueFamilyIndex = C->QueueFamily;
  check(C->Fn.CreateCommandPool(C->Handle, &PoolInfo, nullptr, &Pool),
        "vkCreateCommandPool");
  VkCommandBufferAllocateInfo Info{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  Info.commandPool = Pool;
  Info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  Info.commandBufferCount = 1;
  VkCommandBufferBeginInfo Begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  // It may be launched again before the last launch is done.
  Begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  VkResult Result = C->Fn.AllocateCommandBuffers(C->Handle, &Info, &Cmd);
  if (Result == VK_SUCCESS)
    Result = C->Fn.BeginCommandBuffer(Cmd, &Begin);
  if (Result != VK_SUCCESS) {
    C->Fn.DestroyCommandPool(C->Handle, Pool, nullptr);
    check(Result, "recording a graph");
  }
}

class VulkanStream : public Stream {
public:
  explicit VulkanStream(CoreRef Owner)
      : C(Owner), State(std::make_shared<StreamState>(Owner)) {}
  ~VulkanStream() override;
  void write(const MemoryRef &To, size_t Offset, const void *Data,
             size_t Size) override;
  void read(const MemoryRef &From, size_t Offset, void *Data,
            size_t Size) override;
  void copy(const MemoryRef &To, size_t ToOffset, const MemoryRef &From,
            size_t FromOffset, size_t Size) override;
  void fill(const MemoryRef &To, size_t Offset, size_t Size,
            uint32_t Word) override;
  void launch(const Launch &L) override;
  void record(Event &E) override;
  void wait(Event &E) override;
  void flush() override;
  void kick() override;
  void synchronize() override;
  void beginCapture() override { Recording = std::make_shared<VulkanGraph>(C); }
  std::shared_ptr<Graph> endCapture() override;

  CoreRef C;
  std::shared_ptr<StreamState> State;

private:
  // The command buffer that the next operation goes to, after a barrier if it
  // needs one; what it touches lives until it is done.
  VkCommandBuffer next(Span<Use> Uses);
  VkCommandBuffer next(std::initializer_list<Use> Uses) {
    return next({Uses.begin(), Uses.size()});
  }
  KeepList &kept() { return Recording ? Recording->Keep : State->OpenKeep; }
  // Space in the staging memory, free for use; of at most a chunk.
  size_t stage(size_t Size);
  char *staged(size_t At) const {
    return static_cast<char *>(Staging->Mapped) + At;
  }

  std::shared_ptr<VulkanGraph> Recording;
  std::shared_ptr<VulkanMemory> Staging;
  StagingRing Ring;
};

void VulkanGraph::launch(Stream &S) {
  StreamState &State = *static_cast<VulkanStream &>(S).State;
  std::lock_guard<std::mutex> Guard(State.Lock);
  State.reportLoss();
  State.retire();
  State.submit(Cmd, shared_from_this());
  State.Pending.forget();
}

// Unfinished work still uses what the stream keeps. What cannot be submitted is
// lost, and a lost device has nothing to wait for.
VulkanStream::~VulkanStream() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  auto Try = [&](auto Step) {
    try {
      Step();
    } catch (const Error &) {
    }
  };
  Try([&] { State->flush(); });
  Try([&] { State->waitFor(State->Submitted); });
  Try([&] { State->retire(); });
  State->OpenKeep.clear();
}

VkCommandBuffer VulkanStream::next(Span<Use> Uses) {
  State->reportLoss();
  VkCommandBuffer Cmd = Recording ? Recording->Cmd : State->open();
  for (const Use &U : Uses) {
    kept().add(*U.Of);
    (Recording ? Recording->ForHost : State->ForHost) |=
        U.Writes && (*U.Of)->Mapped;
  }
  if ((Recording ? Recording->Pending : State->Pending).begin(Uses))
    State->barrier(Cmd);
  if (!Recording)
    ++State->OpenOps;
  return Cmd;
}

size_t VulkanStream::stage(size_t Size) {
  if (!Staging)
    Staging = std::make_shared<VulkanMemory>(C, StagingRing::bytes,
                                             /*HostVisible=*/true);
  return Ring.take(Size, *State);
}

void VulkanStream::write(const MemoryRef &To, size_t Offset, const void *Data,
                         size_t Size) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  for (size_t Done = 0; Done < Size;) {
    size_t N = std::min(StagingRing::chunkBytes, Size - Done);
    size_t At = stage(N);
    memcpy(staged(At), static_cast<const char *>(Data) + Done, N);
    VkBufferCopy Copy{At, Offset + Done, N};
    VkCommandBuffer Cmd = next({{&To, Offset + Done, Offset + Done + N, true}});
    kept().add(Staging);
    C->Fn.CmdCopyBuffer(Cmd, Staging->Buffer,
                        static_cast<VulkanMemory &>(*To).Buffer, 1, &Copy);
    Done += N;
    if (N == StagingRing::chunkBytes)
      State->flush(); // the copy runs while the next chunk is prepared
  }
}

void VulkanStream::read(const MemoryRef &From, size_t Offset, void *Data,
                        size_t Size) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  struct Part {
    size_t At, Done, N;
    uint64_t Batch;
  };
  std::deque<Part> Parts;
  auto Finish = [&] {
    Part P = Parts.front();
    Parts.pop_front();
    State->waitFor(P.Batch);
    memcpy(static_cast<char *>(Data) + P.Done, staged(P.At), P.N);
  };
  for (size_t Done = 0; Done < Size;) {
    size_t N = std::min(StagingRing::chunkBytes, Size - Done);
    // The ring holds what is not copied out yet: leave room before taking more.
    if (Parts.size() == 2)
      Finish();
    size_t At = stage(N);
    VkBufferCopy Copy{Offset + Done, At, N};
    VkCommandBuffer Cmd =
        next({{&From, Offset + Done, Offset + Done + N, false}});
    kept().add(Staging);
    C->Fn.CmdCopyBuffer(Cmd, static_cast<VulkanMemory &>(*From).Buffer,
                        Staging->Buffer, 1, &Copy);
    State->ForHost = true;
    State->flush();
    Parts.push_back({At, Done, N, State->Submitted});
    Done += N;
  }
  while (!Parts.empty())
    Finish();
}

void VulkanStream::copy(const MemoryRef &To, size_t ToOffset,
                        const MemoryRef &From, size_t FromOffset, size_t Size) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  VkBufferCopy Copy{FromOffset, ToOffset, Size};
  C->Fn.CmdCopyBuffer(next({{&From, FromOffset, FromOffset + Size, false},
                            {&To, ToOffset, ToOffset + Size, true}}),
                      static_cast<VulkanMemory &>(*From).Buffer,
                      static_cast<VulkanMemory &>(*To).Buffer, 1, &Copy);
}

void VulkanStream::fill(const MemoryRef &To, size_t Offset, size_t Size,
                        uint32_t Word) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  C->Fn.CmdFillBuffer(next({{&To, Offset, Offset + Size, true}}),
                      static_cast<VulkanMemory &>(*To).Buffer, Offset, Size,
                      Word);
}

void VulkanStream::launch(const Launch &L) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  auto &K = static_cast<VulkanKernel &>(**L.Code);
  VkCommandBuffer Cmd = next(L.Uses);
  kept().add(*L.Code);
  VkPipeline &Bound = Recording ? Recording->Bound : State->Bound;
  if (Bound != K.Pipeline)
    C->Fn.CmdBindPipeline(Cmd, VK_PIPELINE_BIND_POINT_COMPUTE, K.Pipeline);
  Bound = K.Pipeline;
  if (L.Block.Size)
    C->Fn.CmdPushConstants(Cmd, K.Layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(L.Block.Size), L.Block.Data);
  C->Fn.CmdDispatch(Cmd, L.Grid[0], L.Grid[1], L.Grid[2]);
}

void VulkanStream::record(Event &E) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  auto &V = static_cast<VulkanEvent &>(E);
  auto Time = std::make_shared<Query>(C);
  VkCommandBuffer Cmd = State->open();
  State->OpenKeep.add(Time);
  V.Time = std::move(Time);
  C->Fn.CmdResetQueryPool(Cmd, V.Time->Slot.Handle, V.Time->Slot.Index, 1);
  C->Fn.CmdWriteTimestamp2(Cmd, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                           V.Time->Slot.Handle, V.Time->Slot.Index);
  V.Owner = State;
  V.Value = State->Next;
}

void VulkanStream::wait(Event &E) {
  auto &V = static_cast<VulkanEvent &>(E);
  if (!V.Owner)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "the event was never recorded");
  if (V.Owner == State)
    return; // the stream's own order
  {
    std::lock_guard<std::mutex> Guard(V.Owner->Lock);
    V.Owner->flushFor(V.Value);
    V.Owner->needDone(V.Value);
  }
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush(); // what came before does not wait
  VkSemaphoreSubmitInfo Wait{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Wait.semaphore = V.Owner->Timeline;
  Wait.value = V.Value;
  Wait.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  State->OpenWaits.push_back(Wait);
  State->OpenKeep.add(V.Owner);
}

void VulkanStream::flush() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush();
}

void VulkanStream::kick() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  if (!State->Open ||
      State->OpenOps < std::min(State->Patience, State->MaxBatch))
    return;
  State->retire();
  if (State->Completed != State->Submitted && State->OpenOps < State->MaxBatch)
    return;
  State->flush();
  State->Patience = std::min(2 * State->Patience, maxPatience);
}

void VulkanStream::synchronize() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush();
  State->waitFor(State->Submitted);
  State->retire();
  State->reportLoss();
}

std::shared_ptr<Graph> VulkanStream::endCapture() {
  std::shared_ptr<VulkanGraph> G = std::move(Recording);
  Recording = nullptr;
  if (G->ForHost)
    State->toHost(G->Cmd);
  check(C->Fn.EndCommandBuffer(G->Cmd), "recording a graph");
  return G;
}

} // namespace

std::unique_ptr<Stream> createStream(CoreRef C) {
  return std::make_unique<VulkanStream>(std::move(C));
}

} // namespace greta::rt::vulkan
