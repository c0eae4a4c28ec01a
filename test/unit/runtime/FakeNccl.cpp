// FakeNccl.cpp: a NCCL and a CUDA driver for the tests of how the runtime uses
// them: functions of both, that count their calls. CUDA's one device has the
// UUID that a test gives it, and there is no library before. An opaque file
// descriptor of lavapipe is a memory file, so its memory is mapped, and
// collectives of ranks that are threads of one process work on it. Work of a
// stream runs in a thread of its own, later than the calls. With FakeHip.cpp it
// is RCCL, and streams are that one's.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

enum { Success = 0, Failed = 1, NotReady = 600 };

std::mutex Lock; // guards everything below
std::condition_variable Changed;
bool Enabled = false;
uint8_t Uuid[16];
std::map<std::string, int> Calls;
// The fault of a test: sums are off by one; rank 1 cannot begin, or its process
// ends there; rank 1 is late with every end.
enum { Right, WrongSums, NoStart, EndsAtStart, LateEnds } Mode = Right;

// Calls a function behind what a stream of HIP has, and says which device the
// thread has; null: streams are CUDA's.
void (*HipCall)(void *, void (*)(void *), void *) = nullptr;
int (*HipCurrent)() = nullptr;

void count(const char *Name) {
  std::lock_guard<std::mutex> Guard(Lock);
  ++Calls[Name];
}

struct Stream {
  Stream() : Worker([this] { run(); }) {}
  ~Stream() {
    {
      std::lock_guard<std::mutex> Guard(Lock);
      Ends = true;
    }
    Changed.notify_all();
    Worker.join();
  }
  void add(std::function<void()> F) {
    {
      std::lock_guard<std::mutex> Guard(Lock);
      Queue.push_back(std::move(F));
    }
    Changed.notify_all();
  }
  void run() {
    std::unique_lock<std::mutex> Guard(Lock);
    while (true) {
      Changed.wait(Guard, [&] { return Ends || !Queue.empty(); });
      if (Queue.empty())
        return;
      auto F = std::move(Queue.front());
      Queue.pop_front();
      Guard.unlock();
      F();
      Guard.lock();
    }
  }
  std::deque<std::function<void()>> Queue;
  bool Ends = false;
  std::thread Worker;
};

struct Event {
  bool Done = false;
};

struct Mapped {
  char *Begin;
  size_t Bytes, Offset;
};

// A rank brings these to a collective.
struct Given {
  const char *From;
  std::vector<const char *> Sends; // by rank
};

struct Team {
  int Size = 0, Joined = 0;
  bool Aborted = false;
  int Inside = 0;        // collectives that have not ended on every rank
  std::set<int> Devices; // of HIP
  std::map<uint64_t, std::vector<Given>> Rounds;
  std::map<uint64_t, int> Came, Went;
};

struct Comm {
  std::shared_ptr<Team> Of;
  int Rank;
  uint64_t Round = 0;
};
std::map<std::string, std::shared_ptr<Team>> Teams;
std::deque<Comm> Comms; // kept, because a stream may be in one that has ended

struct Part {
  bool Receives;
  void *Memory;
  size_t Bytes;
  int Peer;
  Comm *C;
  Stream *S;
};
thread_local std::vector<Part> Group;

// All ranks' parts are there, then F reads them, and nobody goes before all
// have read.
void together(Comm *C, uint64_t Round, Given Mine,
              const std::function<void(const std::vector<Given> &)> &F) {
  std::unique_lock<std::mutex> Guard(Lock);
  Team &T = *C->Of;
  auto &All = T.Rounds[Round];
  All.resize(T.Size);
  All[C->Rank] = std::move(Mine);
  ++T.Came[Round];
  Changed.notify_all();
  Changed.wait(Guard, [&] { return T.Aborted || T.Came[Round] == T.Size; });
  if (T.Aborted)
    return;
  F(All);
  ++T.Went[Round];
  Changed.notify_all();
  Changed.wait(Guard, [&] { return T.Aborted || T.Went[Round] == T.Size; });
}

void queue(
    Comm *C, Stream *S, Given Mine,
    std::function<void(const std::vector<Given> &)> F,
    std::function<void()> Behind = [] {}) {
  uint64_t Round = C->Round++;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    ++C->Of->Inside;
  }
  auto Work = [=, Late = Mode == LateEnds && C->Rank == 1] {
    together(C, Round, Mine, F);
    if (Late)
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::lock_guard<std::mutex> Guard(Lock);
    if (!C->Of->Aborted) // whose memory may be gone
      Behind();
    --C->Of->Inside;
  };
  if (!HipCall)
    return S->add(std::move(Work));
  using Function = std::function<void()>;
  HipCall(
      S,
      [](void *Data) {
        std::unique_ptr<Function> Owned(static_cast<Function *>(Data));
        (*Owned)();
      },
      new Function(std::move(Work)));
}

template <typename T>
void reduce(const std::vector<Given> &All, size_t Begin, void *To, size_t Count,
            int Op) {
  std::vector<T> Sum(Count);
  for (size_t R = 0; R < All.size(); ++R)
    for (size_t I = 0; I < Count; ++I) {
      T V;
      memcpy(&V, All[R].From + (Begin + I) * sizeof(T), sizeof(T));
      Sum[I] = R == 0    ? V
               : Op == 1 ? static_cast<T>(Sum[I] * V)
               : Op == 2 ? std::max(Sum[I], V)
               : Op == 3 ? std::min(Sum[I], V)
                         : static_cast<T>(Sum[I] + V);
    }
  if (Op == 4)
    for (T &One : Sum)
      One = static_cast<T>(One / static_cast<T>(All.size()));
  if (Mode == WrongSums && Count)
    Sum[Count - 1] += 1;
  memcpy(To, Sum.data(), Count * sizeof(T));
}

void reduce(const std::vector<Given> &All, size_t Begin, void *To, size_t Count,
            int Type, int Op) {
  switch (Type) {
  case 0:
    return reduce<int8_t>(All, Begin, To, Count, Op);
  case 1:
    return reduce<uint8_t>(All, Begin, To, Count, Op);
  case 2:
    return reduce<int32_t>(All, Begin, To, Count, Op);
  case 4:
    return reduce<int64_t>(All, Begin, To, Count, Op);
  case 7:
    return reduce<float>(All, Begin, To, Count, Op);
  case 8:
    return reduce<double>(All, Begin, To, Count, Op);
  default: // halves, which the tests do not reduce here
    abort();
  }
}

size_t bytesOf(int Type) {
  return Type < 2                 ? 1
         : Type == 6 || Type == 9 ? 2
         : Type == 2 || Type == 7 ? 4
                                  : 8;
}

} // namespace

extern "C" {

// For the tests: with no UUID there is no library.
void fake_nccl_enable(const uint8_t *Of, int How) {
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Enabled = Of != nullptr;
    Mode = static_cast<decltype(Mode)>(How);
    if (Of)
      memcpy(Uuid, Of, 16);
    Calls.clear();
  }
  Changed.notify_all();
}
void fake_nccl_take_hip(void (*Call)(void *, void (*)(void *), void *),
                        int (*Device)()) {
  HipCall = Call;
  HipCurrent = Device;
}
int fake_nccl_calls(const char *Name) {
  std::lock_guard<std::mutex> Guard(Lock);
  return Calls[Name];
}

int ncclGetVersion(int *Version) {
  *Version = 22300;
  return Enabled ? Success : Failed;
}
const char *ncclGetErrorString(int) { return "of the fake"; }
int ncclGetUniqueId(char *Id) {
  static int Next = 0;
  std::lock_guard<std::mutex> Guard(Lock);
  memset(Id, 0, 128);
  snprintf(Id, 128, "team %d", Next++);
  return Success;
}
struct Id {
  char Text[128];
};
int ncclCommInitRank(Comm **Out, int Size, Id Of, int Rank) {
  count("ncclCommInitRank");
  std::unique_lock<std::mutex> Guard(Lock);
  if (Mode == NoStart && Rank == 1)
    return Failed;
  if (Mode == EndsAtStart && Rank == 1)
    raise(SIGKILL);
  auto &T = Teams[Of.Text];
  if (!T)
    T = std::make_shared<Team>();
  T->Size = Size;
  if (HipCurrent && !T->Devices.insert(HipCurrent()).second)
    return Failed; // RCCL takes no device twice
  ++T->Joined;
  Comms.push_back({T, Rank});
  *Out = &Comms.back();
  Changed.notify_all();
  Changed.wait(Guard, [&] { return T->Joined == T->Size || !Enabled; });
  return T->Joined == T->Size ? Success : Failed;
}
int ncclCommGetAsyncError(Comm *, int *Result) { return *Result = Success; }
int ncclCommAbort(Comm *C) {
  count("ncclCommAbort");
  {
    std::lock_guard<std::mutex> Guard(Lock);
    if (C->Of->Inside)
      ++Calls["ncclCommAbort of a rank that others need"];
    C->Of->Aborted = true;
  }
  Changed.notify_all();
  return Success; // a stream may still be in it
}
int ncclAllReduce(const char *From, char *To, size_t Count, int Type, int Op,
                  Comm *C, Stream *S) {
  count("ncclAllReduce");
  // In place, others still read To.
  auto Out = std::make_shared<std::vector<char>>(Count * bytesOf(Type));
  queue(
      C, S, {From, {}},
      [=](const std::vector<Given> &All) {
        reduce(All, 0, Out->data(), Count, Type, Op);
      },
      [=] { memcpy(To, Out->data(), Out->size()); });
  return Success;
}
int ncclReduceScatter(const char *From, char *To, size_t Count, int Type,
                      int Op, Comm *C, Stream *S) {
  count("ncclReduceScatter");
  queue(C, S, {From, {}}, [=](const std::vector<Given> &All) {
    reduce(All, C->Rank * Count, To, Count, Type, Op);
  });
  return Success;
}
int ncclAllGather(const char *From, char *To, size_t Count, int Type, Comm *C,
                  Stream *S) {
  count("ncclAllGather");
  queue(C, S, {From, {}}, [=](const std::vector<Given> &All) {
    for (size_t R = 0; R < All.size(); ++R)
      memmove(To + R * Count * bytesOf(Type), All[R].From,
              Count * bytesOf(Type));
  });
  return Success;
}
int ncclBroadcast(const char *From, char *To, size_t Count, int Type, int Root,
                  Comm *C, Stream *S) {
  count("ncclBroadcast");
  queue(C, S, {From, {}}, [=](const std::vector<Given> &All) {
    memmove(To, All[Root].From, Count * bytesOf(Type));
  });
  return Success;
}
int ncclGroupStart() {
  Group.clear();
  return Success;
}
int ncclSend(const void *From, size_t Count, int, int Peer, Comm *C,
             Stream *S) {
  count("ncclSend");
  Group.push_back({false, const_cast<void *>(From), Count, Peer, C, S});
  return Success;
}
int ncclRecv(void *To, size_t Count, int, int Peer, Comm *C, Stream *S) {
  count("ncclRecv");
  Group.push_back({true, To, Count, Peer, C, S});
  return Success;
}
// All ranks take part in every group here.
int ncclGroupEnd() {
  std::vector<Part> Parts;
  Parts.swap(Group);
  if (Parts.empty())
    return Success;
  Comm *C = Parts[0].C;
  Given Mine{nullptr, std::vector<const char *>(C->Of->Size)};
  for (const Part &P : Parts)
    if (!P.Receives)
      Mine.Sends[P.Peer] = static_cast<const char *>(P.Memory);
  queue(C, Parts[0].S, Mine, [=](const std::vector<Given> &All) {
    for (const Part &P : Parts)
      if (P.Receives)
        memcpy(P.Memory, All[P.Peer].Sends[C->Rank], P.Bytes);
  });
  return Success;
}

int cuInit(unsigned) { return Enabled ? Success : Failed; }
int cuDeviceGetCount(int *Count) {
  *Count = Enabled;
  return Success;
}
int cuDeviceGet(int *Device, int Number) {
  *Device = Number;
  return Success;
}
int cuDeviceGetUuid(uint8_t *Out, int) {
  memcpy(Out, Uuid, 16);
  return Success;
}
int cuDevicePrimaryCtxRetain(void **Out, int) {
  *Out = &Enabled;
  return Success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return Success; }
int cuCtxPushCurrent_v2(void *) { return Success; }
int cuCtxPopCurrent_v2(void **) { return Success; }
int cuGetErrorString(int, const char **Text) {
  *Text = "of the fake";
  return Success;
}
int cuStreamCreate(Stream **Out, unsigned) {
  *Out = new Stream;
  return Success;
}
int cuStreamDestroy_v2(Stream *S) {
  delete S;
  return Success;
}
int cuEventCreate(std::shared_ptr<Event> **Out, unsigned) {
  *Out = new std::shared_ptr<Event>(std::make_shared<Event>());
  return Success;
}
int cuEventDestroy_v2(std::shared_ptr<Event> *E) {
  delete E;
  return Success;
}
int cuEventRecord(std::shared_ptr<Event> *E, Stream *S) {
  S->add([E = *E] {
    std::lock_guard<std::mutex> Guard(Lock);
    E->Done = true;
  });
  return Success;
}
int cuEventQuery(std::shared_ptr<Event> *E) {
  std::lock_guard<std::mutex> Guard(Lock);
  return (*E)->Done ? Success : NotReady;
}
struct Import {
  unsigned Type;
  union {
    int Fd;
    void *Others[2];
  };
  unsigned long long Size;
};
int cuImportExternalMemory(Mapped **Out, const Import *From) {
  count("cuImportExternalMemory");
  uint64_t Head[2]; // of lavapipe: the file's size, and where the memory begins
  if (pread(From->Fd, Head, sizeof(Head), 0) != sizeof(Head) ||
      Head[1] >= Head[0])
    return Failed;
  void *Begin =
      mmap(nullptr, Head[0], PROT_READ | PROT_WRITE, MAP_SHARED, From->Fd, 0);
  if (Begin == MAP_FAILED)
    return Failed;
  close(From->Fd);
  *Out = new Mapped{static_cast<char *>(Begin), Head[0], Head[1]};
  return Success;
}
int cuExternalMemoryGetMappedBuffer(uint64_t *Out, Mapped *M, const void *) {
  *Out = reinterpret_cast<uint64_t>(M->Begin + M->Offset);
  return Success;
}
int cuDestroyExternalMemory(Mapped *M) {
  count("cuDestroyExternalMemory");
  munmap(M->Begin, M->Bytes);
  delete M;
  return Success;
}
int cuMemFree_v2(uint64_t) { return Success; }
// Lavapipe exports no semaphores.
int cuImportExternalSemaphore(void **, const void *) { return Failed; }
int cuDestroyExternalSemaphore(void *) { return Failed; }
int cuSignalExternalSemaphoresAsync(void **, const void *, unsigned, void *) {
  return Failed;
}
int cuWaitExternalSemaphoresAsync(void **, const void *, unsigned, void *) {
  return Failed;
}

} // extern "C"
