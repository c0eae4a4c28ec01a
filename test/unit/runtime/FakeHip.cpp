// FakeHip.cpp: a HIP library whose work is asynchronous, for the tests of what
// the runtime keeps alive and what it waits for: `hip` in the runtime's tests.
//
// Each stream is a thread that runs its operations in order, later than the
// calls. The tests can stop all of them (fake_hip_hold). An operation that
// touches memory, a module or a graph that is gone by the time it runs is a
// fault (fake_hip_faults). They can also break the device (fake_hip_break):
// then what asks it for work, memory or news says so until it is reset, which
// ends all that it had. There are two devices, which reach each other's memory
// as the tests want it (fake_hip_peers). There is one kernel, `scale`: y is
// 2 * x + 1. Written against HIP's binary interface, without its headers.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <utility>
#include <vector>

namespace {

enum Status { Success = 0, Invalid = 1, OutOfMemory = 2, NotReady = 600 };

using Operation = std::function<void()>;
using Operations = std::vector<Operation>;

struct Event {
  bool Recorded = false, Done = false;
  std::chrono::steady_clock::time_point Time;
};

struct Stream {
  std::deque<Operation> Queue;
  size_t Queued = 0, Ran = 0;
  std::unique_ptr<Operations> Capture;
  bool Ending = false;
  std::thread Worker;
};

// One lock for everything; operations run under it, but calls of a test.
struct State {
  std::mutex Lock;
  std::condition_variable Changed;
  bool Held = false;
  int Faults = 0;
  int Broken = 0; // what calls return since the device broke
  int Calls = 0;  // of the device, since it broke
  std::vector<Stream *> Streams;
  std::vector<void *> Handles; // so that nobody takes lost ones for leaks
  char *Arena = nullptr;       // addresses are never used twice
  size_t Used = 0;
  struct Allocation {
    size_t Bytes;
    int Device;
  };
  std::map<char *, Allocation> Alive;
  // Copies between devices: there are none, they are right, they leave out the
  // last word.
  enum { None, Right, Wrong } Peers = Right;
  int PeerCopies = 0;
};
constexpr int devices = 2;
thread_local int Current = 0;
constexpr size_t arenaBytes = size_t(8) << 30;

State &state() {
  static State *S = [] {
    auto *New = new State();
    New->Arena = static_cast<char *>(
        mmap(nullptr, arenaBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return New;
  }();
  return *S;
}

// The status of a call that reaches the device.
int answer() {
  std::lock_guard<std::mutex> Guard(state().Lock);
  if (state().Broken)
    ++state().Calls;
  return state().Broken;
}

template <typename T> T *made(T *New) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  state().Handles.push_back(New);
  return New;
}

// The allocation at `Data` if nobody freed it and it is that device's, else
// null. Memory of the caller's is his.
void *alive(const void *Data, size_t Bytes, int Device = -1) {
  State &S = state();
  char *P = static_cast<char *>(const_cast<void *>(Data));
  if (P < S.Arena || P >= S.Arena + arenaBytes)
    return P;
  auto Next = S.Alive.upper_bound(P);
  if (Next != S.Alive.begin()) {
    auto [Base, A] = *std::prev(Next);
    if (P + Bytes <= Base + A.Bytes && (Device < 0 || A.Device == Device))
      return P;
  }
  ++S.Faults;
  return nullptr;
}

void work(Stream *Self) {
  State &S = state();
  std::unique_lock<std::mutex> Guard(S.Lock);
  while (true) {
    S.Changed.wait(
        Guard, [&] { return Self->Queue.empty() ? Self->Ending : !S.Held; });
    if (Self->Queue.empty())
      return;
    // It may let go of the lock, and the queue may be cleared then.
    Operation Next = std::move(Self->Queue.front());
    Self->Queue.pop_front();
    Next();
    ++Self->Ran;
    S.Changed.notify_all();
  }
}

void submit(Stream *To, Operation O) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  if (To->Capture) {
    To->Capture->push_back(std::move(O));
    return;
  }
  To->Queue.push_back(std::move(O));
  ++To->Queued;
  state().Changed.notify_all();
}

int allocate(void **Out, size_t Bytes) {
  State &S = state();
  std::lock_guard<std::mutex> Guard(S.Lock);
  size_t Rounded = (Bytes + 4095) / 4096 * 4096; // whole pages are given back
  if (Bytes > arenaBytes || S.Used + Rounded > arenaBytes)
    return OutOfMemory;
  *Out = S.Arena + S.Used;
  S.Used += Rounded;
  S.Alive[static_cast<char *>(*Out)] = {Bytes, Current};
  return Success;
}

int release(void *Memory) {
  State &S = state();
  std::lock_guard<std::mutex> Guard(S.Lock);
  auto Found = S.Alive.find(static_cast<char *>(Memory));
  if (Found == S.Alive.end())
    return Invalid;
  madvise(Found->first, Found->second.Bytes, MADV_DONTNEED);
  S.Alive.erase(Found);
  return Success;
}

// Handles whose end operations may have to notice.
struct Module {};
struct Graph {
  Operations All;
};
template <typename T> struct Handle {
  std::shared_ptr<T> Object = std::make_shared<T>();
};

void scale(const std::vector<char> &Block) {
  struct {
    const float *X;
    float *Y;
    int32_t N;
  } Args{};
  memcpy(&Args, Block.data(), std::min(Block.size(), sizeof(Args)));
  size_t Bytes = static_cast<size_t>(Args.N) * 4;
  if (alive(Args.X, Bytes) && alive(Args.Y, Bytes))
    for (int32_t I = 0; I < Args.N; ++I)
      Args.Y[I] = 2 * Args.X[I] + 1;
}

} // namespace

extern "C" {

// Stops all work, or lets it go on.
void fake_hip_hold(int On) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  state().Held = On != 0;
  state().Changed.notify_all();
}
int fake_hip_faults() {
  std::lock_guard<std::mutex> Guard(state().Lock);
  return state().Faults;
}
// Allocations that nobody freed.
size_t fake_hip_allocations() {
  std::lock_guard<std::mutex> Guard(state().Lock);
  return state().Alive.size();
}

void fake_hip_break(int Status) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  state().Broken = Status;
  state().Calls = 0;
}
int fake_hip_calls() {
  std::lock_guard<std::mutex> Guard(state().Lock);
  return state().Calls;
}

// How many copies there were between devices; the next ones are as `How` says.
int fake_hip_peers(int How) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  state().Peers = static_cast<decltype(State::Peers)>(How);
  return std::exchange(state().PeerCopies, 0);
}

// The calling thread's device.
int fake_hip_current() { return Current; }

// Calls F behind what was queued. Other streams go on meanwhile, as they do
// beside a kernel that waits for them.
void fake_hip_call(Stream *On, void (*F)(void *), void *Data) {
  submit(On, [=] {
    state().Lock.unlock();
    F(Data);
    state().Lock.lock();
  });
}

int hipInit(unsigned) { return Success; }
int hipGetDeviceCount(int *Count) {
  *Count = devices;
  return Success;
}
int hipSetDevice(int Index) {
  Current = Index;
  return Index < devices ? Success : Invalid;
}
const char *hipGetErrorString(int) { return "an error of the fake"; }
int hipGetDeviceProperties(void *Properties, int) {
  // The name, and the architecture somewhere behind it.
  strcpy(static_cast<char *>(Properties), "fake");
  strcpy(static_cast<char *>(Properties) + 1024, "gfx942:sramecc+:xnack-");
  return Success;
}

int hipDeviceGetUuid(void *Uuid, int Index) {
  memcpy(Uuid, "\x01\xfe of the fake!", 16);
  static_cast<char *>(Uuid)[15] += static_cast<char>(Index);
  return Success;
}

int hipMallocAsync(void **Out, size_t Bytes, Stream *) {
  int Status = answer();
  return Status ? Status : allocate(Out, Bytes);
}
int hipFreeAsync(void *Memory, Stream *) {
  int Status = answer();
  return Status ? Status : release(Memory);
}
int hipHostMalloc(void **Out, size_t Bytes, unsigned) {
  return allocate(Out, Bytes);
}
int hipHostFree(void *Memory) { return release(Memory); }
int hipHostGetDevicePointer(void **Out, void *Host, unsigned) {
  *Out = Host;
  return Success;
}
int hipHostRegister(void *, size_t, unsigned) { return Success; }
int hipHostUnregister(void *) { return Success; }
int hipMemGetInfo(size_t *Free, size_t *Total) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  *Total = arenaBytes;
  *Free = arenaBytes - state().Used;
  return Success;
}

int hipStreamCreateWithFlags(Stream **Out, unsigned) {
  if (int Status = answer())
    return Status;
  *Out = made(new Stream());
  {
    std::lock_guard<std::mutex> Guard(state().Lock);
    state().Streams.push_back(*Out);
  }
  (*Out)->Worker = std::thread(work, *Out);
  return Success;
}
int hipStreamSynchronize(Stream *Which) {
  if (int Status = answer())
    return Status;
  std::unique_lock<std::mutex> Guard(state().Lock);
  size_t Want = Which->Queued;
  state().Changed.wait(Guard, [&] { return Which->Ran >= Want; });
  return Success;
}
int hipStreamQuery(Stream *Which) {
  if (int Status = answer())
    return Status;
  std::lock_guard<std::mutex> Guard(state().Lock);
  return Which->Ran < Which->Queued ? NotReady : Success;
}
int hipStreamDestroy(Stream *Which) {
  {
    std::lock_guard<std::mutex> Guard(state().Lock);
    Which->Ending = true;
    auto &All = state().Streams;
    All.erase(std::remove(All.begin(), All.end(), Which), All.end());
    state().Changed.notify_all();
  }
  Which->Worker.join();
  delete Which;
  return Success;
}

int hipEventCreateWithFlags(Handle<Event> **Out, unsigned) {
  *Out = made(new Handle<Event>());
  return answer();
}
int hipEventCreate(Handle<Event> **Out) {
  return hipEventCreateWithFlags(Out, 0);
}
int hipEventDestroy(Handle<Event> *Which) {
  delete Which;
  return Success;
}
int hipEventRecord(Handle<Event> *Which, Stream *On) {
  if (int Status = answer())
    return Status;
  {
    std::lock_guard<std::mutex> Guard(state().Lock);
    *Which = {}; // whoever waits for an earlier point goes on waiting for it
    Which->Object->Recorded = true;
  }
  submit(On, [E = Which->Object] {
    E->Done = true;
    E->Time = std::chrono::steady_clock::now();
  });
  return Success;
}
int hipEventQuery(Handle<Event> *Which) {
  if (int Status = answer())
    return Status;
  std::lock_guard<std::mutex> Guard(state().Lock);
  return Which->Object->Recorded && !Which->Object->Done ? NotReady : Success;
}
int hipEventSynchronize(Handle<Event> *Which) {
  if (int Status = answer())
    return Status;
  std::unique_lock<std::mutex> Guard(state().Lock);
  std::shared_ptr<Event> E = Which->Object;
  state().Changed.wait(Guard, [&] { return !E->Recorded || E->Done; });
  return Success;
}
int hipEventElapsedTime(float *Milliseconds, Handle<Event> *Start,
                        Handle<Event> *End) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  *Milliseconds = std::chrono::duration<float, std::milli>(End->Object->Time -
                                                           Start->Object->Time)
                      .count();
  return Success;
}
// Waits at once: the fake's streams are threads, but its tests do not need them
// to wait for each other by themselves.
int hipStreamWaitEvent(Stream *, Handle<Event> *Which, unsigned) {
  return hipEventSynchronize(Which);
}

int hipMemcpyAsync(void *To, const void *From, size_t Bytes, int, Stream *On) {
  if (int Status = answer())
    return Status;
  submit(On, [=] {
    if (alive(To, Bytes) && alive(From, Bytes))
      memcpy(To, From, Bytes);
  });
  return Success;
}
int hipDeviceCanAccessPeer(int *Can, int Device, int Peer) {
  *Can = Device != Peer && state().Peers != State::None;
  return Success;
}
int hipDeviceEnablePeerAccess(int, unsigned) { return Success; }
int hipMemcpyPeerAsync(void *To, int ToDevice, const void *From, int FromDevice,
                       size_t Bytes, Stream *On) {
  if (int Status = answer())
    return Status;
  submit(On, [=] {
    State &S = state();
    ++S.PeerCopies;
    size_t Copied = S.Peers == State::Wrong ? Bytes - 4 : Bytes;
    if (alive(To, Bytes, ToDevice) && alive(From, Bytes, FromDevice))
      memcpy(To, From, Copied);
  });
  return Success;
}
int hipMemsetD32Async(void *To, int Word, size_t Count, Stream *On) {
  if (int Status = answer())
    return Status;
  submit(On, [=] {
    if (alive(To, Count * 4))
      for (size_t I = 0; I < Count; ++I)
        memcpy(static_cast<char *>(To) + I * 4, &Word, 4);
  });
  return Success;
}

int hipStreamAddCallback(Stream *On, void (*F)(Stream *, int, void *),
                         void *Data, unsigned) {
  if (int Status = answer())
    return Status;
  submit(On, [=] { F(On, Success, Data); });
  return Success;
}

int hipModuleLoadData(Handle<Module> **Out, const void *) {
  *Out = made(new Handle<Module>());
  return answer();
}
int hipModuleUnload(Handle<Module> *Which) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  delete Which;
  return Success;
}
int hipModuleGetFunction(Handle<Module> **Out, Handle<Module> *Which,
                         const char *) {
  *Out = Which; // there is one
  return Success;
}
int hipModuleLaunchKernel(Handle<Module> *Which, unsigned, unsigned, unsigned,
                          unsigned, unsigned, unsigned, unsigned, Stream *On,
                          void **, void **Extra) {
  if (int Status = answer())
    return Status;
  // Pointer and size of the arguments, in this order.
  const char *Data = static_cast<const char *>(Extra[1]);
  std::vector<char> Block(Data, Data + *static_cast<size_t *>(Extra[3]));
  submit(On, [Module = std::weak_ptr<struct Module>(Which->Object),
              Block = std::move(Block)] {
    if (Module.expired())
      ++state().Faults;
    else
      scale(Block);
  });
  return Success;
}

// Its memory goes, too, and its streams end with what is queued undone.
int hipDeviceReset() {
  State &S = state();
  std::vector<Stream *> Streams;
  {
    std::lock_guard<std::mutex> Guard(S.Lock);
    for (Stream *Each : S.Streams)
      Each->Queue.clear();
    Streams = S.Streams;
    for (auto &[Base, A] : S.Alive)
      madvise(Base, A.Bytes, MADV_DONTNEED);
    S.Alive.clear();
    S.Broken = 0;
  }
  for (Stream *Each : Streams)
    hipStreamDestroy(Each);
  return Success;
}

int hipStreamBeginCapture(Stream *On, int) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  On->Capture = std::make_unique<Operations>();
  return Success;
}
int hipStreamEndCapture(Stream *On, Handle<Graph> **Out) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  *Out = new Handle<Graph>();
  state().Handles.push_back(*Out);
  (*Out)->Object->All = std::move(*On->Capture);
  On->Capture.reset();
  return Success;
}
int hipGraphInstantiate(Handle<Graph> **Out, Handle<Graph> *From, void *,
                        char *, size_t) {
  *Out = made(new Handle<Graph>());
  (*Out)->Object->All = From->Object->All;
  return Success;
}
int hipGraphDestroy(Handle<Graph> *Which) {
  std::lock_guard<std::mutex> Guard(state().Lock);
  delete Which;
  return Success;
}
int hipGraphExecDestroy(Handle<Graph> *Which) { return hipGraphDestroy(Which); }
int hipGraphLaunch(Handle<Graph> *Which, Stream *On) {
  if (int Status = answer())
    return Status;
  submit(On, [Graph = std::weak_ptr<struct Graph>(Which->Object)] {
    if (auto G = Graph.lock())
      for (const Operation &O : G->All)
        O();
    else
      ++state().Faults;
  });
  return Success;
}

} // extern "C"
