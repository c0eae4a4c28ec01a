// NcclTransport.cpp: collectives by NCCL, or by RCCL, which has its API.
//
// On HIP they are operations of a stream. Vulkan's memory is imported into CUDA
// on the device with the same UUID: what was made by greta_buffer_create_shared
// as it is, other memory through a copy that is as large. The streams of Vulkan
// and CUDA wait for each other by timeline semaphores that both know, or, for
// memory that is copied and where the semaphores do not work, the host looks.
#include "DLPack.h"
#include "Libraries.h"
#include "comm/Accelerator.h"
#include "comm/Comm.h"
#include "comm/NcclApi.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

namespace greta::rt::comm {
namespace {

struct Nccl {
#define X(Result, Name, ...) Result (*Name)(__VA_ARGS__) = nullptr;
  GRETA_NCCL_FUNCTIONS(X)
#undef X
  int Version = 0;

  explicit Nccl(const std::vector<std::string> &Candidates) {
    void *Handle = openLibrary("GRETA_NCCL_LIBRARY", Candidates);
#define X(Result, Name, ...)                                                   \
  bindFunction(Name, Handle, #Name, "NCCL's library");
    GRETA_NCCL_FUNCTIONS(X)
#undef X
    check(ncclGetVersion(&Version), "ncclGetVersion");
  }
  void check(ncclResult_t Result, const char *What) const {
    if (Result != ncclSuccess)
      fail(GRETA_ERROR_DEVICE, What, " (NCCL): ", ncclGetErrorString(Result));
  }
};

bool isHip(const Device &D) { return D.dlpackDevice().first == kDLROCM; }

std::shared_ptr<Nccl> library(const Device &D) {
  static std::mutex Lock;
  static std::map<bool, std::shared_ptr<Nccl>> Loaded;
  std::lock_guard<std::mutex> Guard(Lock);
  std::shared_ptr<Nccl> &Library = Loaded[isHip(D)];
  if (!Library)
    Library = std::make_shared<Nccl>(
        isHip(D) ? std::vector<std::string>{"librccl.so.1", "librccl.so"}
                 : std::vector<std::string>{"libnccl.so.2", "libnccl.so"});
  return Library;
}

// These are in the order of Element, and of Reduction.
constexpr std::array<ncclDataType_t, elements.size()> types = {
    ncclUint8,   ncclInt8,     ncclInt32,   ncclInt64,
    ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64};
constexpr std::array<ncclRedOp_t, reductionCount> reductions = {
    ncclSum, ncclMax, ncclMin, ncclProd, ncclAvg};

// A word that ranks compare has the count of collectives that were begun above
// so many bits of their hash.
constexpr unsigned hashBits = 40;

class NcclTransport : public Transport {
public:
  NcclTransport(std::shared_ptr<Device> D, Group &G,
                std::shared_ptr<Accelerator> A, const ncclUniqueId &Id);
  ~NcclTransport() override;
  void begin(const Collective &C, const std::shared_ptr<Ticket> &T) override {
    Waiting.push_back({C, T});
  }
  bool progress() override;
  uint64_t done() const override { return Done; }
  void abort() override;
  std::shared_ptr<Counter> counter() const override { return Raised; }
  void dropCounter() override { Raised = nullptr; }
  bool wantsSharedMemory() const override { return WantsShared; }

private:
  struct Bounce { // NCCL does not reach its Memory
    MemoryRef Memory, Own;
    size_t Offset, Bytes;
    bool Back;
  };
  struct Operation {
    Collective C;
    std::shared_ptr<Ticket> T;
    std::vector<Bounce> Bounces;
    std::shared_ptr<Event> Copied; // into the bounces, then out of them
    // Marks before and behind it in NCCL's stream; Mark is missing if the next
    // one follows without waiting.
    std::shared_ptr<void> Began{}, Mark{};
    bool IsReady = false;
  };
  void tryCounters();
  bool launch(Operation &Op);
  bool finish(Operation &Op);
  void bounce(Operation &Op);
  void copy(Operation &Op, bool Back);
  char *at(const MemoryRef &M, size_t Offset) {
    return static_cast<char *>(A->address(M)) + Offset;
  }
  void start(const Collective &C);
  void tell(const Collective &C);
  void compare();
  void join(const ncclUniqueId &Id);
  void waitForOthers();
  void watch();
  void abortNccl();
  void checkRanks(uint64_t Ranks, Group::Clock::time_point Since,
                  const char *What);
  uint64_t ranksOf(const Collective &C) const;

  std::shared_ptr<Device> D;
  Group &G;
  std::shared_ptr<Accelerator> A;
  std::shared_ptr<Nccl> N;
  ncclComm_t Handle = nullptr;
  std::unique_ptr<Stream> Copies;
  std::shared_ptr<Counter> Raised;
  bool WantsShared = false;
  std::atomic<bool> IsAborted{false}, Closing{false};
  std::mutex AbortLock;
  std::atomic<int64_t> InsideSince{0};  // when the current call of NCCL's began
  std::atomic<uint64_t> InsideRanks{0}; // ranks that the call may wait for
  std::thread Watcher;
  std::deque<Operation> Waiting, Launched;
  Group::Clock::time_point Since = Group::Clock::now(), Asked = Since;
  uint64_t Done = 0;
  // The count and the hash of the collectives of all ranks that this rank has
  // begun, and the words that the other ranks saw of them. A word stays until
  // all others have begun as many.
  uint64_t Begun = 0, Hash = Collective::NoHash;
  std::deque<uint64_t> Words;
};

NcclTransport::NcclTransport(std::shared_ptr<Device> Owner, Group &G,
                             std::shared_ptr<Accelerator> Over,
                             const ncclUniqueId &Id)
    : D(std::move(Owner)), G(G), A(std::move(Over)), N(library(*D)),
      Copies(D->createStream()) {
  join(Id);
  try {
    auto Current = A->use();
    tryCounters();
    WantsShared = !A->address(D->allocate(4));
    Watcher = std::thread([this] { watch(); });
  } catch (...) {
    abortNccl();
    throw;
  }
}

// NCCL waits here for all ranks, for as long as it likes. If one does not come
// the waiting thread is left to itself.
void NcclTransport::join(const ncclUniqueId &Id) {
  struct Call {
    ncclComm_t Handle = nullptr;
    ncclResult_t Result = ncclSuccess;
    std::atomic<bool> Done{false};
  };
  auto Made = std::make_shared<Call>();
  std::thread([Made, Id, A = A, N = N, Size = static_cast<int>(G.Size),
               Rank = static_cast<int>(G.Rank)] {
    try {
      auto Current = A->use();
      Made->Result = N->ncclCommInitRank(&Made->Handle, Size, Id, Rank);
    } catch (const Error &) {
      Made->Result = ncclSystemError;
    }
    Made->Done = true;
  }).detach();
  auto Begin = Group::Clock::now(), Looked = Begin;
  for (Patience P; !Made->Done; P.wait()) {
    if (Group::Clock::now() - Looked < std::chrono::milliseconds(5))
      continue;
    Looked = Group::Clock::now();
    G.check([&](uint32_t R) { return !G.hasLeft(R); }, Begin,
            "ncclCommInitRank");
    if (Looked - Begin > G.trial())
      fail(GRETA_ERROR_PEER_LOST, "ncclCommInitRank has not ended after ",
           G.trial().count(), " ms");
  }
  N->check(Made->Result, "ncclCommInitRank");
  Handle = Made->Handle;
}

NcclTransport::~NcclTransport() {
  if (Waiting.empty() && Launched.empty())
    waitForOthers();
  abort();
  Closing = true;
  Watcher.join();
}

// A collective that has ended here may go on elsewhere, and read memory of this
// rank's NCCL. (NCCL's own way to close waits for all ranks without an end.)
void NcclTransport::waitForOthers() {
  auto Begin = Group::Clock::now();
  auto IsBehind = [&](uint32_t R) {
    return G.of(R).Ended[G.Rank] < G.own().Ended[R] && !G.isGone(R);
  };
  for (uint32_t R = 0; R < G.Size; ++R)
    for (Patience P; !IsAborted && IsBehind(R) && !G.hasEnded() &&
                     Group::Clock::now() - Begin < std::chrono::seconds(5);)
      P.wait();
}

// Ends calls of NCCL's that wait for other ranks, which they do when these have
// not talked before: if a rank is gone the communicator is aborted.
void NcclTransport::watch() {
  while (!Closing) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int64_t Since = InsideSince;
    if (!Since)
      continue;
    try {
      checkRanks(InsideRanks,
                 Group::Clock::time_point(Group::Clock::duration(Since)),
                 "a call of NCCL's");
    } catch (const Error &E) {
      G.abort(E.what());
      abortNccl();
    }
  }
}

// Checks that the ranks are there. One that has left has done its part, and
// NCCL ends soon; if not, it left without.
void NcclTransport::checkRanks(uint64_t Ranks, Group::Clock::time_point Since,
                               const char *What) {
  bool Late = Group::Clock::now() - Since > std::chrono::seconds(2);
  G.check(
      [&](uint32_t R) { return (Ranks >> R & 1) && (Late || !G.hasLeft(R)); },
      Since, What);
}

uint64_t NcclTransport::ranksOf(const Collective &C) const {
  static_assert(Group::maxRanks <= 64);
  if (C.What != Kind::Exchange)
    return ~uint64_t(0);
  uint64_t Ranks = 0;
  for (const Transfer &T : C.Transfers)
    Ranks |= uint64_t(1) << T.Peer;
  return Ranks;
}

// Frees the communicator; only calls that are to end may still be in it.
void NcclTransport::abortNccl() {
  std::lock_guard<std::mutex> Guard(AbortLock);
  if (Handle && !IsAborted.exchange(true))
    N->ncclCommAbort(Handle);
}

// Tests that streams of both kinds really wait for each other, also for a value
// that is raised later.
void NcclTransport::tryCounters() {
  std::shared_ptr<Counter> There, Back;
  std::unique_ptr<Event> E = D->createEvent();
  auto Happens = [&] {
    auto Begin = Group::Clock::now();
    Copies->record(*E);
    Copies->flush();
    for (Patience P; !E->wait(0); P.wait())
      if (Group::Clock::now() - Begin > std::chrono::seconds(2))
        return false;
    return true;
  };
  try {
    There = D->createCounter();
    Back = D->createCounter();
    Copies->raise(There, 1);
    A->await(There, 1);
    A->raise(Back, 1);
    Copies->await(Back, 1);
    bool Works = Happens();
    if (Works) {
      std::unique_ptr<Event> Early = D->createEvent();
      Copies->await(Back, 2);
      Copies->record(*Early);
      Copies->flush();
      Works = !Early->wait(1000000);
      A->raise(Back, 2);
      Works = Happens() && Works;
    }
    if (Works)
      Raised = D->createCounter();
    for (const std::shared_ptr<Counter> &C : {There, Back})
      if (C->value() < 2)
        C->raise(2); // ends any wait for them
  } catch (const Error &) {
    Raised = nullptr;
  }
}

void NcclTransport::abort() {
  try {
    auto Current = A->use();
    abortNccl();
    // Aborted calls end, and raise nothing later.
    auto Begin = Group::Clock::now();
    for (Patience P; Raised && !Launched.empty() && Launched.back().Mark &&
                     !A->isPassed(Launched.back().Mark.get()) &&
                     Group::Clock::now() - Begin < std::chrono::seconds(5);)
      P.wait();
  } catch (const Error &) { // the device is lost
  }
  Waiting.clear();
  Launched.clear();
}

bool NcclTransport::progress() {
  if (Waiting.empty() && Launched.empty())
    return false;
  auto Current = A->use();
  bool Moved = false;
  while (!Waiting.empty() && launch(Waiting.front())) {
    Launched.push_back(std::move(Waiting.front()));
    Waiting.pop_front();
    Operation &Op = Launched.back();
    if (Waiting.empty() || Waiting.front().C.waits() || !Op.Bounces.empty()) {
      if (Op.C.Raises)
        A->raise(Raised, Op.C.Raises);
      Op.Mark = A->mark();
    }
    Moved = true;
  }
  if (!Launched.empty() && Launched.front().Began &&
      A->isPassed(Launched.front().Began.get())) {
    Launched.front().Began = nullptr;
    Moved = true;
  }
  while (!Launched.empty() && finish(Launched.front())) {
    const Collective &C = Launched.front().C;
    for (const Transfer &T : C.Transfers)
      G.set(G.own().Ended[T.Peer], G.own().Ended[T.Peer] + 1, T.Peer);
    for (uint32_t R = 0; C.What != Kind::Exchange && R < G.Size; ++R)
      G.set(G.own().Ended[R], G.own().Ended[R] + 1, R);
    Launched.pop_front();
    ++Done;
    Moved = true;
  }
  auto Time = Group::Clock::now();
  if (Moved) {
    Since = Asked = Time;
  } else if (Time - Asked > std::chrono::milliseconds(5)) {
    Asked = Time;
    compare();
    {
      std::lock_guard<std::mutex> Guard(AbortLock);
      ncclResult_t State = ncclSuccess;
      if (!IsAborted)
        N->check(N->ncclCommGetAsyncError(Handle, &State), "a collective");
      N->check(State, "a collective");
    }
    // The first may still wait for its own stream.
    bool Waits = !Launched.empty() && !Launched.front().Began;
    checkRanks(Waits ? ranksOf(Launched.front().C) : 0, Since,
               Waits ? name(Launched.front().C.What) : "");
  }
  return Moved;
}

// Tells the others of a collective: ranks that differ in one would wait in NCCL
// without an end, or get bytes of another.
void NcclTransport::tell(const Collective &C) {
  constexpr size_t many = 1024;
  if (C.What == Kind::Exchange)
    return;
  Hash = C.hash(Hash);
  Words.push_back(++Begun << hashBits | Hash >> (64 - hashBits));
  G.set(G.own().Doing[0], Words.back());
  if (Words.size() >= many)
    compare();
}

// The rank that has begun more compares. The last word is enough, as its hash
// covers all collectives before it.
void NcclTransport::compare() {
  size_t Kept = 0;
  for (uint32_t R = 0; R < G.Size; ++R) {
    uint64_t Word = G.of(R).Doing[0];
    size_t Less = (Begun - (Word >> hashBits)) & (UINT64_MAX >> hashBits);
    if (Less > Words.size())
      continue; // that rank has begun more
    if (Less < Words.size() && Words[Words.size() - 1 - Less] != Word)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "ranks ", G.Rank, " and ", R,
           " differ in the collective that they call, or in its sizes");
    Kept = std::max(Kept, std::min(Less + 1, Words.size()));
  }
  Words.erase(Words.begin(), Words.end() - static_cast<ptrdiff_t>(Kept));
}

// Returns whether it is in NCCL's stream.
bool NcclTransport::launch(Operation &Op) {
  G.checkEnded();
  if (!Op.IsReady) {
    if (Op.C.Ready && !A->waitFor(*Op.C.Ready))
      return false;
    Op.IsReady = true;
    bounce(Op);
  }
  if (!Op.Bounces.empty()) {
    // It runs alone, as its bounces may be the last one's.
    if (!Launched.empty())
      return false;
    if (!Op.Copied)
      copy(Op, /*Back=*/false);
    if (!Op.Copied->wait(0))
      return false;
    Op.Copied = nullptr;
  }
  if (Op.C.After)
    A->await(Op.C.After, Op.C.AfterValue);
  if (Op.C.waits())
    Op.Began = A->mark();
  tell(Op.C);
  InsideRanks = ranksOf(Op.C);
  InsideSince = Group::Clock::now().time_since_epoch().count();
  try {
    start(Op.C);
  } catch (...) {
    InsideSince = 0;
    throw;
  }
  InsideSince = 0;
  G.checkEnded(); // for what the watcher found
  return true;
}

bool NcclTransport::finish(Operation &Op) {
  if (!Op.Copied) {
    // The last one of a sequence without waits has the mark.
    auto Last = std::find_if(Launched.begin(), Launched.end(),
                             [](const Operation &O) { return bool(O.Mark); });
    if (Last == Launched.end() || !A->isPassed(Last->Mark.get()))
      return false;
  }
  if (!Op.Bounces.empty()) {
    if (!Op.Copied)
      copy(Op, /*Back=*/true);
    if (!Op.Copied->wait(0))
      return false;
    Op.T->Ends.push_back(Op.Copied);
  } else if (Op.Mark) {
    if (std::shared_ptr<Event> E = A->event(Op.Mark))
      Op.T->Ends.push_back(E);
  }
  return true;
}

// Replaces memory that NCCL does not reach by memory that it does.
void NcclTransport::bounce(Operation &Op) {
  auto Replace = [&](MemoryRef &M, size_t &Offset, size_t Bytes, bool Back) {
    if (!Bytes || A->address(M))
      return;
    Op.Bounces.push_back({M, A->allocate(Bytes), Offset, Bytes, Back});
    M = Op.Bounces.back().Own;
    Offset = 0;
  };
  Collective &C = Op.C;
  if (C.What == Kind::Exchange) {
    for (Transfer &T : C.Transfers)
      Replace(T.Memory, T.Offset, T.Bytes, T.Receives);
    return;
  }
  bool Scatters = C.What == Kind::ReduceScatter || C.What == Kind::AllToAll;
  bool Gathers = C.What == Kind::AllGather || C.What == Kind::AllToAll;
  if (C.From)
    Replace(C.From, C.FromOffset, C.bytes() * (Scatters ? G.Size : 1), false);
  Replace(C.To, C.ToOffset, C.bytes() * (Gathers ? G.Size : 1), true);
}

void NcclTransport::copy(Operation &Op, bool Back) {
  if (!Back && Op.C.Ready)
    Copies->wait(*Op.C.Ready);
  for (const Bounce &B : Op.Bounces)
    if (Back && B.Back)
      Copies->copy(B.Memory, B.Offset, B.Own, 0, B.Bytes);
    else if (!Back && !B.Back)
      Copies->copy(B.Own, 0, B.Memory, B.Offset, B.Bytes);
  Op.Copied = D->createEvent();
  Copies->record(*Op.Copied);
  Copies->flush();
}

void NcclTransport::start(const Collective &C) {
  ncclStream_t S = A->stream();
  ncclDataType_t Type = types[static_cast<size_t>(C.Type)];
  ncclRedOp_t Op = reductions[static_cast<size_t>(C.Op)];
  size_t Part = C.bytes();
  if (C.What == Kind::Exchange || C.What == Kind::AllToAll) {
    N->check(N->ncclGroupStart(), name(C.What));
    if (C.What == Kind::AllToAll)
      for (int R = 0; R < static_cast<int>(G.Size); ++R) {
        N->ncclSend(at(C.From, C.FromOffset + R * Part), Part, ncclUint8, R,
                    Handle, S);
        N->ncclRecv(at(C.To, C.ToOffset + R * Part), Part, ncclUint8, R, Handle,
                    S);
      }
    for (const Transfer &T : C.Transfers)
      if (T.Receives)
        N->ncclRecv(at(T.Memory, T.Offset), T.Bytes, ncclUint8,
                    static_cast<int>(T.Peer), Handle, S);
      else
        N->ncclSend(at(T.Memory, T.Offset), T.Bytes, ncclUint8,
                    static_cast<int>(T.Peer), Handle, S);
    return N->check(N->ncclGroupEnd(), name(C.What));
  }
  char *To = at(C.To, C.ToOffset),
       *From = C.From ? at(C.From, C.FromOffset) : To;
  ncclResult_t Result = ncclSuccess;
  switch (C.What) {
  case Kind::AllReduce:
    Result = N->ncclAllReduce(From, To, C.Count, Type, Op, Handle, S);
    break;
  case Kind::AllGather:
    Result = N->ncclAllGather(From, To, C.Count, Type, Handle, S);
    break;
  case Kind::ReduceScatter:
    Result = N->ncclReduceScatter(From, To, C.Count, Type, Op, Handle, S);
    break;
  case Kind::Broadcast:
    Result = N->ncclBroadcast(From, To, C.Count, Type, static_cast<int>(C.Root),
                              Handle, S);
    break;
  case Kind::AllToAll:
  case Kind::Exchange:
    break;
  }
  N->check(Result, name(C.What));
}

} // namespace

// Returns "VERSION UUID"; rank 0's has NCCL's id behind that.
std::string ncclOffer(const std::shared_ptr<Device> &D, const Group &G,
                      std::shared_ptr<Accelerator> &A) {
  nlohmann::json Info;
  D->describe(Info);
  std::string Uuid = Info.value("uuid", "");
  if (Uuid.empty())
    fail(GRETA_ERROR_UNSUPPORTED, D->Spec, " has no UUID");
  if (isHip(*D))
    D->makeCurrent(); // throws if RCCL has no device
  std::shared_ptr<Nccl> N = library(*D);
  A = isHip(*D) ? makeHip(D) : makeCuda(D, Uuid);
  std::string Offer = concat(N->Version, " ", Uuid);
  if (G.Rank == 0) {
    ncclUniqueId Id;
    N->check(N->ncclGetUniqueId(&Id), "ncclGetUniqueId");
    Offer += " " + hex(reinterpret_cast<const uint8_t *>(Id.internal),
                       sizeof(Id.internal));
  }
  return Offer;
}

std::unique_ptr<Transport>
makeNcclTransport(std::shared_ptr<Device> D, Group &G,
                  std::shared_ptr<Accelerator> A,
                  const std::vector<std::string> &Offers) {
  std::string Version, IdText;
  for (uint32_t R = 0; R < G.Size; ++R) {
    std::istringstream Words(Offers[R]);
    std::string Its, Uuid;
    Words >> Its >> Uuid;
    if (R == 0) {
      Version = Its;
      Words >> IdText;
    }
    if (Its != Version)
      fail(GRETA_ERROR_UNSUPPORTED, "rank 0 has version ", Version,
           " of NCCL, rank ", R, " has ", Its);
  }
  ncclUniqueId Id;
  for (size_t I = 0; I < sizeof(Id.internal); ++I)
    Id.internal[I] = static_cast<char>(
        strtoul(IdText.substr(2 * I, 2).c_str(), nullptr, 16));
  return std::make_unique<NcclTransport>(std::move(D), G, std::move(A), Id);
}

} // namespace greta::rt::comm
