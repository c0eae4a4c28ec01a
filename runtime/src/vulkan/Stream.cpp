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
#include "HostCalls.h"
#include "Staging.h"
#include "StreamState.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <utility>

namespace greta::rt::vulkan {
namespace {

// A stream queues at most so many operations before it asks again whether the
// device has nothing to do: submitting costs more than a short kernel.
constexpr size_t maxPatience = 32;

bool isHostReachable(const Memory &M) {
  return M.Mapped || static_cast<const VulkanMemory &>(M).Direct;
}

} // namespace

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
  C.check(C.Fn.GetQueryPoolResults(
              C.Handle, Time->Slot.Handle, Time->Slot.Index, 1, sizeof(Ticks),
              &Ticks, sizeof(Ticks),
              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
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
  void start(Stream &S) override;
  bool isEmpty() const override { return Cmds.empty(); }
  VkCommandBuffer open();
  void close(const StreamState &State);
  void append(const std::shared_ptr<VulkanGraph> &Other,
              const StreamState &State);
  // Returns the address of the arguments, which live as long as the graph.
  uint64_t keepArguments(Span<uint8_t> Block);
  CoreRef C;
  VkCommandPool Pool = VK_NULL_HANDLE;
  // its own and launched graphs', in order
  std::vector<VkCommandBuffer> Cmds;
  VkCommandBuffer Open = VK_NULL_HANDLE; // being recorded, behind Cmds
  Hazards Pending;
  VkPipeline Bound = VK_NULL_HANDLE;
  bool ForHost = false;      // writes memory that the host reaches
  bool HasResidents = false; // has kernels whose workgroups wait for others
  KeepList Keep;
  std::shared_ptr<VulkanMemory> Arguments; // the last piece, mapped
  size_t ArgumentBytes = 0;                // used bytes of it
};

VulkanGraph::VulkanGraph(CoreRef Owner) : C(std::move(Owner)) {
  C->needDevice();
  VkCommandPoolCreateInfo PoolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  PoolInfo.queueFamilyIndex = C->QueueFamily;
  C->check(C->Fn.CreateCommandPool(C->Handle, &PoolInfo, nullptr, &Pool),
           "vkCreateCommandPool");
}

VkCommandBuffer VulkanGraph::open() {
  if (Open)
    return Open;
  VkCommandBufferAllocateInfo Info{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  Info.commandPool = Pool;
  Info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  Info.commandBufferCount = 1;
  VkCommandBufferBeginInfo Begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  // It may be launched again before the last launch is done.
  Begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  VkCommandBuffer Cmd = VK_NULL_HANDLE;
  C->check(C->Fn.AllocateCommandBuffers(C->Handle, &Info, &Cmd),
           "recording a graph");
  C->check(C->Fn.BeginCommandBuffer(Cmd, &Begin), "recording a graph");
  Bound = VK_NULL_HANDLE;
  return Open = Cmd;
}

void VulkanGraph::close(const StreamState &State) {
  if (!Open)
    return;
  if (std::exchange(ForHost, false))
    State.toHost(Open);
  Cmds.push_back(std::exchange(Open, VK_NULL_HANDLE));
  C->check(C->Fn.EndCommandBuffer(Cmds.back()), "recording a graph");
}

// Appends the commands of the other graph behind its own.
void VulkanGraph::append(const std::shared_ptr<VulkanGraph> &Other,
                         const StreamState &State) {
  close(State);
  Cmds.insert(Cmds.end(), Other->Cmds.begin(), Other->Cmds.end());
  Keep.add(Other);
  HasResidents |= Other->HasResidents;
  Pending.forget();
}

uint64_t VulkanGraph::keepArguments(Span<uint8_t> Block) {
  constexpr size_t pieceBytes = 64u << 10;
  size_t Begin = (ArgumentBytes + 15) / 16 * 16;
  if (!Arguments || Begin + Block.Size > Arguments->Size) {
    Arguments = std::make_shared<VulkanMemory>(
        C, std::max(pieceBytes, Block.Size), /*HostVisible=*/true,
        /*PreferDevice=*/true);
    Keep.add(Arguments);
    Begin = 0;
  }
  memcpy(static_cast<char *>(Arguments->Mapped) + Begin, Block.Data,
         Block.Size);
  ArgumentBytes = Begin + Block.Size;
  return Arguments->Address + Begin;
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
  void raise(const std::shared_ptr<Counter> &Of, uint64_t Value) override;
  void await(const std::shared_ptr<Counter> &Of, uint64_t Value) override;
  void flush() override;
  void hold() override;
  void kick() override;
  void callHost(void (*F)(void *), void *Data) override;
  void synchronize() override;
  bool isDone() override;
  void beginCapture() override { Recording = std::make_shared<VulkanGraph>(C); }
  std::shared_ptr<Graph> endRecording() override;
  void launch(const std::shared_ptr<VulkanGraph> &G);

  CoreRef C;
  std::shared_ptr<StreamState> State;

private:
  // Returns the command buffer for the next operation, after a barrier if it
  // needs one. The touched memory lives until it is done.
  VkCommandBuffer next(Span<Use> Uses);
  VkCommandBuffer next(std::initializer_list<Use> Uses) {
    return next({Uses.begin(), Uses.size()});
  }
  KeepList &kept() { return Recording ? Recording->Keep : State->OpenKeep; }
  // Returns free space of at most a chunk in the staging memory.
  size_t stage(size_t Size);
  // Returns the address of memory that holds these arguments until the next
  // operation is done.
  uint64_t keepArguments(Span<uint8_t> Block);
  char *staged(size_t At) const {
    return static_cast<char *>(Staging->Mapped) + At;
  }

  std::shared_ptr<VulkanGraph> Recording;
  std::shared_ptr<VulkanMemory> Staging;
  StagingRing Ring;
  std::unique_ptr<HostCalls> Calls; // destroyed before State
};

void VulkanGraph::start(Stream &S) {
  static_cast<VulkanStream &>(S).launch(shared_from_this());
}

void VulkanStream::launch(const std::shared_ptr<VulkanGraph> &G) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  if (Recording)
    return Recording->append(G, *State);
  State->reportLoss();
  State->append(G->Cmds, G, G->HasResidents);
  if (!State->Held)
    State->flush();
}

// Unfinished work still uses what the stream keeps. Commands that cannot be
// submitted are lost, and a lost device has nothing to wait for.
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
  VkCommandBuffer Cmd = Recording ? Recording->open() : State->open();
  for (const Use &U : Uses) {
    kept().add(*U.Of);
    (Recording ? Recording->ForHost : State->ForHost) |=
        U.Writes && isHostReachable(**U.Of);
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

uint64_t VulkanStream::keepArguments(Span<uint8_t> Block) {
  if (Recording)
    return Recording->keepArguments(Block);
  size_t At = stage(Block.Size);
  memcpy(staged(At), Block.Data, Block.Size);
  return Staging->Address + At;
}

void VulkanStream::write(const MemoryRef &To, size_t Offset, const void *Data,
                         size_t Size) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  auto &M = static_cast<VulkanMemory &>(*To);
  State->reportLoss();
  if (M.Direct && State->isIdle()) {
    memcpy(M.Direct + Offset, Data, Size);
    return;
  }
  for (size_t Done = 0; Done < Size;) {
    size_t N = std::min(StagingRing::chunkBytes, Size - Done);
    size_t At = stage(N);
    memcpy(staged(At), static_cast<const char *>(Data) + Done, N);
    VkBufferCopy Copy{At, Offset + Done, N};
    VkCommandBuffer Cmd = next({{&To, Offset + Done, Offset + Done + N, true}});
    kept().add(Staging);
    C->Fn.CmdCopyBuffer(Cmd, Staging->Buffer, M.Buffer, 1, &Copy);
    Done += N;
    if (N == StagingRing::chunkBytes)
      State->flush(); // the copy runs while the next chunk is prepared
  }
}

void VulkanStream::read(const MemoryRef &From, size_t Offset, void *Data,
                        size_t Size) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  auto &M = static_cast<VulkanMemory &>(*From);
  if (M.Direct && M.IsCached) {
    State->reportLoss();
    State->flush();
    State->waitFor(State->Submitted);
    memcpy(Data, M.Direct + Offset, Size);
    return;
  }
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
    // The ring holds the parts that are not copied out yet, so they go first.
    if (Parts.size() == 2)
      Finish();
    size_t At = stage(N);
    VkBufferCopy Copy{Offset + Done, At, N};
    VkCommandBuffer Cmd =
        next({{&From, Offset + Done, Offset + Done + N, false}});
    kept().add(Staging);
    C->Fn.CmdCopyBuffer(Cmd, M.Buffer, Staging->Buffer, 1, &Copy);
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
  const VulkanPipeline &P = *K.Pipeline;
  Span<uint8_t> Push = L.Block;
  uint64_t Address = 0;
  if (P.FromBuffer) {
    Address = keepArguments(L.Block); // this may wait, so no batch is open
    Push = {reinterpret_cast<const uint8_t *>(&Address), sizeof(Address)};
  }
  VkCommandBuffer Cmd = next(L.Uses);
  kept().add(*L.Code);
  (Recording ? Recording->HasResidents : State->HasResidents) |= K.IsResident;
  if (P.FromBuffer && !Recording)
    kept().add(Staging);
  VkPipeline &Bound = Recording ? Recording->Bound : State->Bound;
  if (Bound != P.Handle)
    C->Fn.CmdBindPipeline(Cmd, VK_PIPELINE_BIND_POINT_COMPUTE, P.Handle);
  Bound = P.Handle;
  if (Push.Size)
    C->Fn.CmdPushConstants(Cmd, P.Layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(Push.Size), Push.Data);
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
    return; // one stream is in order
  std::vector<Awaited> Counters;
  {
    std::lock_guard<std::mutex> Guard(V.Owner->Lock);
    V.Owner->flushFor(V.Value);
    V.Owner->needDone(V.Value);
    Counters = V.Owner->awaited(V.Value);
  }
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush(); // earlier work does not wait
  VkSemaphoreSubmitInfo Wait{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Wait.semaphore = V.Owner->Timeline;
  Wait.value = V.Value;
  Wait.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  State->OpenWaits.push_back(Wait);
  State->OpenKeep.add(V.Owner);
  addTo(State->OpenCounters, Counters);
}

void VulkanStream::raise(const std::shared_ptr<Counter> &Of, uint64_t Value) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->reportLoss();
  State->OpenSignals.push_back(static_cast<VulkanCounter &>(*Of).at(Value));
  State->OpenKeep.add(Of);
  State->flush();
}

void VulkanStream::await(const std::shared_ptr<Counter> &Of, uint64_t Value) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->reportLoss();
  State->flush(); // earlier work does not wait
  auto Counter = std::static_pointer_cast<VulkanCounter>(Of);
  State->OpenWaits.push_back(Counter->at(Value));
  State->OpenKeep.add(Of);
  addTo(State->OpenCounters, {{Counter, Value}});
}

void VulkanStream::flush() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush();
}

void VulkanStream::hold() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->Held = true;
}

void VulkanStream::kick() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  size_t Least = State->Held ? State->MaxBatch : State->Patience;
  if (!State->Open || State->OpenOps < std::min(Least, State->MaxBatch))
    return;
  State->retire();
  if (State->Completed != State->Submitted && State->OpenOps < State->MaxBatch)
    return;
  State->flush();
  State->Patience = std::min(2 * State->Patience, maxPatience);
}

void VulkanStream::callHost(void (*F)(void *), void *Data) {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->reportLoss();
  State->flush();
  if (!Calls)
    Calls = std::make_unique<HostCalls>(C, State->Timeline);
  VkSemaphoreSubmitInfo Wait{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  Wait.semaphore = Calls->Timeline;
  Wait.value = Calls->add(State->Submitted, F, Data);
  Wait.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  State->OpenWaits.push_back(Wait);
}

void VulkanStream::synchronize() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush();
  State->waitFor(State->Submitted);
  State->retire();
  State->reportLoss();
}

bool VulkanStream::isDone() {
  std::lock_guard<std::mutex> Guard(State->Lock);
  State->flush();
  State->reportLoss();
  return State->isIdle();
}

std::shared_ptr<Graph> VulkanStream::endRecording() {
  std::shared_ptr<VulkanGraph> G = std::move(Recording);
  Recording = nullptr;
  G->close(*State);
  return G;
}

} // namespace

std::unique_ptr<Stream> createStream(CoreRef C) {
  return std::make_unique<VulkanStream>(std::move(C));
}

} // namespace greta::rt::vulkan
