// HipDevice.cpp: the HIP backend: `hip:N` on AMD's runtime and `sim:<gfx>` on
// GRETA's simulator, one code path.
#include "Backend.h"
#include "CodeObject.h"
#include "DLPack.h"
#include "Error.h"
#include "HipEvent.h"
#include "HipMemory.h"
#include "Staging.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace greta::rt {
namespace hip {
namespace {

char *at(const MemoryRef &M, size_t Offset) {
  return reinterpret_cast<char *>(M->Address) + Offset;
}

struct HipKernel : Kernel {
  HipKernel(CoreRef Owner, const KernelDecl &K,
            const std::vector<uint8_t> &Object)
      : C(std::move(Owner)), Block(K.Block), IsResident(K.IsResident),
        Offsets(argumentOffsets(K.Args)) {
    const Library &L = C->use();
    C->check(L.hipModuleLoadData(&Module, Object.data()), "loading '", K.File,
             "' on ", C->Spec);
    hipError_t Result =
        L.hipModuleGetFunction(&Function, Module, K.Entry.c_str());
    if (Result != hipSuccess) {
      (void)L.hipModuleUnload(Module);
      fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "' has no kernel '", K.Entry,
           "'");
    }
  }
  ~HipKernel() override {
    if (const Library *L = C->living())
      (void)L->hipModuleUnload(Module);
  }
  CoreRef C;
  hipModule_t Module = nullptr;
  hipFunction_t Function = nullptr;
  std::array<uint32_t, 3> Block;
  bool IsResident;
  std::vector<uint32_t> Offsets; // the arguments' and the block's size
};

struct HipStream;
const Core &coreOf(Device &D);

struct HipGraph : Graph, std::enable_shared_from_this<HipGraph> {
  explicit HipGraph(CoreRef Owner) : C(std::move(Owner)) {}
  ~HipGraph() override {
    const Library *L = C->living();
    if (L && Exec)
      (void)L->hipGraphExecDestroy(Exec);
    if (L && Handle)
      (void)L->hipGraphDestroy(Handle);
  }
  void start(Stream &S) override;
  bool isEmpty() const override { return Operations.empty(); }
  CoreRef C;
  hipGraph_t Handle = nullptr;
  hipGraphExec_t Exec = nullptr;
  // These take the stream, as another graph may launch this one.
  std::vector<std::function<void(HipStream &)>> Operations;
  KeepList Keep;
};

// HIP starts operations by itself. They are counted in batches, each of which
// ends with an event. When it has happened, the batch's objects are released.
struct HipStream : Stream {
  explicit HipStream(CoreRef Owner) : C(std::move(Owner)) {
    C->check(C->use().hipStreamCreateWithFlags(&Handle, hipStreamNonBlocking),
             "hipStreamCreateWithFlags");
  }
  // Wraps an application's stream, which the application keeps.
  HipStream(CoreRef Owner, hipStream_t Own)
      : C(std::move(Owner)), Handle(Own), IsAdopted(true) {}
  ~HipStream() override {
    const Library *L = C->living();
    if (!L || L->isLoss(L->hipStreamSynchronize(Handle)))
      return;
    for (const Batch &B : InFlight)
      (void)L->hipEventDestroy(B.Done);
    for (hipEvent_t E : FreeEvents)
      (void)L->hipEventDestroy(E);
    if (!IsAdopted)
      (void)L->hipStreamDestroy(Handle);
  }
  // The bytes are copied to pinned memory, so nobody waits for the copy.
  void write(const MemoryRef &To, size_t Offset, const void *Data,
             size_t Size) override {
    if (!Staging)
      Staging = std::make_shared<PinnedMemory>(C, StagingRing::bytes);
    for (size_t Done = 0; Done < Size;) {
      size_t N = std::min(StagingRing::chunkBytes, Size - Done);
      char *Piece = static_cast<char *>(Staging->Mapped) + Ring.take(N, *this);
      memcpy(Piece, static_cast<const char *>(Data) + Done, N);
      move(at(To, Offset + Done), Piece, N, hipMemcpyHostToDevice);
      OpenKeep.add(To);
      OpenKeep.add(Staging);
      count();
      Done += N;
      if (N == StagingRing::chunkBytes)
        endBatch();
    }
  }
  void read(const MemoryRef &From, size_t Offset, void *Data,
            size_t Size) override {
    move(Data, at(From, Offset), Size, hipMemcpyDeviceToHost);
    synchronize();
  }
  void copy(const MemoryRef &To, size_t ToOffset, const MemoryRef &From,
            size_t FromOffset, size_t Size) override {
    kept().add(To);
    kept().add(From);
    add([To = at(To, ToOffset), From = at(From, FromOffset), Size](
            HipStream &S) { S.move(To, From, Size, hipMemcpyDeviceToDevice); });
  }
  // A graph does not record this.
  void copyPeer(const MemoryRef &To, size_t ToOffset, Device &Other,
                const MemoryRef &From, size_t FromOffset,
                size_t Size) override {
    C->check(C->use().hipMemcpyPeerAsync(at(To, ToOffset), C->Index,
                                         at(From, FromOffset),
                                         coreOf(Other).Index, Size, Handle),
             "copying ", Size, " bytes from ", Other.Spec, " to ", C->Spec);
    OpenKeep.add(To);
    OpenKeep.add(From);
    count();
  }
  void fill(const MemoryRef &To, size_t Offset, size_t Size,
            uint32_t Word) override {
    kept().add(To);
    add([To = at(To, Offset), Size, Word](HipStream &S) {
      S.C->check(S.C->use().hipMemsetD32Async(To, static_cast<int>(Word),
                                              Size / 4, S.Handle),
                 "a fill");
    });
  }
  void launch(const Launch &L) override {
    auto &K = static_cast<HipKernel &>(**L.Code);
    for (int D = 0; D < 3; ++D)
      if (uint64_t(L.Grid[D]) * K.Block[D] > UINT32_MAX)
        fail(GRETA_ERROR_UNSUPPORTED, "kernel '", K.Name, "' needs ",
             uint64_t(L.Grid[D]) * K.Block[D], " work-items in dim ", D,
             ", the limit is 4294967295");
    kept().add(*L.Code);
    for (const Use &U : L.Uses)
      kept().add(*U.Of);
    if (!Recording) {
      start(K, L.Grid, L.Block, L.Extents);
      return count();
    }
    Recording->Operations.push_back(
        [&K, Grid = L.Grid,
         Block = std::vector<uint8_t>(L.Block.begin(), L.Block.end()),
         Extents = std::vector<Extent>(L.Extents.begin(), L.Extents.end())](
            HipStream &S) {
          S.start(K, Grid, {Block.data(), Block.size()},
                  {Extents.data(), Extents.size()});
        });
  }
  void record(Event &E) override {
    auto &H = static_cast<HipEvent &>(E);
    C->check(C->use().hipEventRecord(H.Handle, Handle), "recording an event");
    H.Recorded = true;
  }
  void wait(Event &E) override {
    auto &H = static_cast<HipEvent &>(E);
    H.needRecorded();
    C->check(C->use().hipStreamWaitEvent(Handle, H.Handle, 0),
             "hipStreamWaitEvent");
  }
  void flush() override {}
  void callHost(void (*F)(void *), void *Data) override {
    struct Call {
      void (*F)(void *);
      void *Data;
    };
    auto Made = std::make_unique<Call>(Call{F, Data});
    C->check(C->use().hipStreamAddCallback(
                 Handle,
                 [](hipStream_t, hipError_t, void *Pointer) {
                   std::unique_ptr<Call> Made(static_cast<Call *>(Pointer));
                   Made->F(Made->Data);
                 },
                 Made.get(), 0),
             "hipStreamAddCallback");
    (void)Made.release();
  }
  // Releases finished operations. An event is always under way that says when
  // the rest has finished.
  void kick() override {
    release(0);
    if (InFlight.empty())
      endBatch();
  }
  void synchronize() override {
    C->check(C->use().hipStreamSynchronize(Handle), "work on ", C->Spec);
    releaseAll();
  }
  bool isDone() override {
    hipError_t Result = C->use().hipStreamQuery(Handle);
    if (Result == hipErrorNotReady)
      return false;
    C->check(Result, "work on ", C->Spec);
    releaseAll();
    return true;
  }
  void *handle() const override { return Handle; }
  void beginCapture() override { Recording = std::make_shared<HipGraph>(C); }
  std::shared_ptr<Graph> endRecording() override;

  // Returns the objects that live as long as the operation that is about to be
  // queued or recorded.
  KeepList &kept() { return Recording ? Recording->Keep : OpenKeep; }
  // Counts a queued operation into the batch.
  void count() {
    if (++OpenOps >= maxBatch) {
      endBatch();
      release(0);
    }
  }
  void waitFor(uint64_t Number) {
    if (Number == Next)
      endBatch();
    for (const Batch &B : InFlight)
      if (B.Number == Number)
        C->check(C->use().hipEventSynchronize(B.Done), "work on ", C->Spec);
    release(std::min(Number, Next - 1));
  }
  uint64_t Next = 1;
  uint64_t Completed = 0;

private:
  static constexpr size_t maxBatch = 128;

  void move(void *To, const void *From, size_t Size, hipMemcpyKind Kind) {
    C->check(C->use().hipMemcpyAsync(To, From, Size, Kind, Handle), "copying ",
             Size, " bytes on ", C->Spec);
  }
  void start(const HipKernel &K, const std::array<uint32_t, 3> &Grid,
             Span<uint8_t> Block, Span<Extent> Extents) {
    if (Extents.Size)
      C->Lib->setArguments(Extents);
    if (K.IsResident)
      return startTogether(K, Grid, Block);
    size_t Size = Block.Size;
    void *Extra[] = {launchBufferPointer, const_cast<uint8_t *>(Block.Data),
                     launchBufferSize, &Size, launchEnd};
    C->check(C->use().hipModuleLaunchKernel(
                 K.Function, Grid[0], Grid[1], Grid[2], K.Block[0], K.Block[1],
                 K.Block[2], 0, Handle, nullptr, Extra),
             "launching '", K.Name, "' on ", C->Spec);
  }
  void startTogether(const HipKernel &K, const std::array<uint32_t, 3> &Grid,
                     Span<uint8_t> Block) {
    std::vector<void *> Arguments;
    for (size_t I = 0; I + 1 < K.Offsets.size(); ++I)
      Arguments.push_back(const_cast<uint8_t *>(Block.Data) + K.Offsets[I]);
    C->use();
    C->check(C->Lib->LaunchTogether(K.Function, Grid[0], Grid[1], Grid[2],
                                    K.Block[0], K.Block[1], K.Block[2], 0,
                                    Handle, Arguments.data()),
             "launching '", K.Name, "', whose workgroups run together, on ",
             C->Spec);
  }
  // Queues the operation, or records it.
  template <typename Operation> void add(Operation O) {
    if (Recording) {
      Recording->Operations.push_back(std::move(O));
      return;
    }
    O(*this);
    count();
  }
  void endBatch() {
    if (!OpenOps)
      return;
    if (FreeEvents.empty()) {
      hipEvent_t E;
      C->check(C->use().hipEventCreateWithFlags(&E, hipEventDisableTiming),
               "hipEventCreateWithFlags");
      FreeEvents.push_back(E);
    }
    C->check(C->use().hipEventRecord(FreeEvents.back(), Handle),
             "ending a batch of operations");
    if (Idle.empty())
      Idle.emplace_back();
    InFlight.splice(InFlight.end(), Idle, Idle.begin());
    Batch &B = InFlight.back();
    B.Done = FreeEvents.back();
    B.Number = Next++;
    std::swap(B.Keep, OpenKeep);
    FreeEvents.pop_back();
    OpenOps = 0;
  }
  void releaseAll() {
    release(Next++);
    OpenKeep.clear();
    OpenOps = 0;
  }
  // Releases the batches up to `Done`, which are known to be done, and later
  // ones that turn out to be done.
  void release(uint64_t Done) {
    Completed = std::max(Completed, Done);
    while (!InFlight.empty() &&
           (InFlight.front().Number <= Done ||
            C->use().hipEventQuery(InFlight.front().Done) == hipSuccess)) {
      Completed = std::max(Completed, InFlight.front().Number);
      FreeEvents.push_back(InFlight.front().Done);
      InFlight.front().Keep.clear();
      Idle.splice(Idle.begin(), InFlight, InFlight.begin());
    }
  }

  struct Batch {
    hipEvent_t Done = nullptr;
    uint64_t Number = 0;
    KeepList Keep;
  };
  CoreRef C;
  hipStream_t Handle = nullptr;
  bool IsAdopted = false;
  KeepList OpenKeep;
  size_t OpenOps = 0;
  std::list<Batch> InFlight;
  std::list<Batch> Idle; // reusable, with empty lists
  std::vector<hipEvent_t> FreeEvents;
  StagingRing Ring;
  std::shared_ptr<PinnedMemory> Staging;
  std::shared_ptr<HipGraph> Recording;
  friend HipGraph;
};

// HIP refuses to allocate, free or wait while it captures. So it captures what
// was recorded only here, where no call of the caller can come between.
std::shared_ptr<Graph> HipStream::endRecording() {
  std::shared_ptr<HipGraph> G = std::move(Recording);
  Recording = nullptr;
  const Library &L = C->use();
  C->check(L.hipStreamBeginCapture(Handle, hipStreamCaptureModeThreadLocal),
           "recording a graph");
  try {
    for (const auto &Operation : G->Operations)
      Operation(*this);
  } catch (...) {
    (void)L.hipStreamEndCapture(Handle, &G->Handle);
    throw;
  }
  C->check(L.hipStreamEndCapture(Handle, &G->Handle), "recording a graph");
  C->check(L.hipGraphInstantiate(&G->Exec, G->Handle, nullptr, nullptr, 0),
           "hipGraphInstantiate");
  return G;
}

void HipGraph::start(Stream &S) {
  auto &H = static_cast<HipStream &>(S);
  if (H.Recording) {
    H.kept().add(shared_from_this());
    H.Recording->Operations.push_back([this](HipStream &On) {
      for (const auto &Operation : Operations)
        Operation(On);
    });
    return;
  }
  C->check(C->use().hipGraphLaunch(Exec, H.Handle), "launching a graph");
  H.OpenKeep.add(shared_from_this());
  H.count();
  H.kick();
}

struct HipDevice : Device {
  explicit HipDevice(CoreRef Owner) : C(std::move(Owner)) {
    Spec = C->Spec;
    Name = C->Name;
  }
  MemoryRef allocateMemory(size_t Size) override {
    return std::make_shared<HipMemory>(C, Size);
  }
  MemoryRef allocateMapped(size_t Size) override {
    return std::make_shared<PinnedMemory>(C, Size);
  }
  MemoryRef importPointer(void *Pointer, size_t Size) override {
    return std::make_shared<RegisteredMemory>(C, Pointer, Size);
  }
  std::pair<int32_t, int32_t> dlpackDevice() const override {
    return {kDLROCM, C->Index};
  }
  MemoryRef adoptHip(void *Pointer, size_t Size) override {
    return std::make_shared<AdoptedMemory>(Pointer, Size);
  }
  std::unique_ptr<Stream> adoptHipStream(void *Stream) override {
    return std::make_unique<HipStream>(C, static_cast<hipStream_t>(Stream));
  }
  void makeCurrent() override {
    if (C->Lib->isSimulator())
      fail(GRETA_ERROR_UNSUPPORTED, "RCCL does not reach ", Spec);
    C->use();
  }
  bool isLost() const override { return C->IsLost; }
  bool copiesFrom(Device &Other) override {
    auto *Its = dynamic_cast<HipDevice *>(&Other);
    const Library &L = *C->Lib;
    if (!Its || Its->C->Lib != C->Lib || !L.hipDeviceCanAccessPeer ||
        !L.hipDeviceEnablePeerAccess || !L.hipMemcpyPeerAsync)
      return false;
    std::lock_guard<std::mutex> Guard(PeersLock);
    auto [It, IsNew] = Peers.try_emplace(Its->C->Index, false);
    if (IsNew)
      It->second = testCopiesFrom(*Its);
    return It->second;
  }
  Reserved reserved() override {
    size_t Free = 0, Total = 0;
    C->check(C->use().hipMemGetInfo(&Free, &Total), "the memory of ", C->Spec);
    return {use().InUse, 0, Total, Free};
  }
  std::unique_ptr<Stream> createStream() override {
    return std::make_unique<HipStream>(C);
  }
  std::unique_ptr<Event> createEvent() override {
    return std::make_unique<HipEvent>(C);
  }
  KernelRef loadKernel(const Variant &V, const KernelDecl &K,
                       const std::vector<uint8_t> &Object, bool) override {
    checkCodeObject(Object, K, V.Requires.Arch);
    return std::make_shared<HipKernel>(C, K, Object);
  }
  std::string whyNot(const Variant &V) override {
    if (V.Backend != "hip")
      return "it is for " + V.Backend;
    if (!V.Requires.Unknown.empty())
      return "unknown requirement '" + V.Requires.Unknown + "'";
    if (V.Requires.Arch != C->Arch)
      return "it is for " + V.Requires.Arch + ", the device is " + C->Arch;
    return "";
  }
  uint32_t computeUnits() const override {
    return C->Lib->computeUnits(C->Index);
  }
  // The compiler knows how many workgroups fit on the compute units that it
  // also asks for, and the driver refuses more.
  bool launchesTogether() const override {
    return C->Lib->launchesTogether(C->Index);
  }
  void describe(nlohmann::json &Out) override {
    Out = {{"spec", Spec},
           {"name", Name},
           {"backend", "hip"},
           {"arch", C->Arch},
           {"uuid", C->Lib->uuid(C->Index)},
           {"driver", C->Lib->Path}};
    if (uint32_t Units = computeUnits())
      Out["compute_units"] = Units;
  }
  bool wantsExtents() const override { return C->Lib->wantsArguments(); }
  std::array<uint32_t, 3> maxGrid() const override {
    return {INT32_MAX, 65535, 65535};
  }
  CoreRef C;

private:
  bool testCopiesFrom(HipDevice &Other);

  std::mutex PeersLock;
  std::map<int, bool> Peers; // by index: whether copies from it are right
};

const Core &coreOf(Device &D) { return *static_cast<HipDevice &>(D).C; }

// Drivers have said that devices reach each other, and then copied other bytes.
bool HipDevice::testCopiesFrom(HipDevice &Other) {
  constexpr size_t count = size_t(1) << 16, bytes = count * 4;
  try {
    const Library &L = C->use();
    int Reaches = 0;
    if (L.hipDeviceCanAccessPeer(&Reaches, C->Index, Other.C->Index) ||
        !Reaches)
      return false;
    hipError_t Result = L.hipDeviceEnablePeerAccess(Other.C->Index, 0);
    if (Result && Result != hipErrorPeerAccessAlreadyEnabled)
      return false;
    std::vector<uint32_t> Words(count), Got(count);
    for (size_t I = 0; I < count; ++I)
      Words[I] = static_cast<uint32_t>(I) * 2654435761u + 1;
    MemoryRef From = Other.allocateMemory(bytes), To = allocateMemory(bytes);
    HipStream Out(Other.C), In(C);
    Out.write(From, 0, Words.data(), bytes);
    Out.synchronize();
    In.fill(To, 0, bytes, 0);
    In.copyPeer(To, 0, Other, From, 0, bytes);
    In.read(To, 0, Got.data(), bytes);
    return Got == Words;
  } catch (const Error &) {
    return false;
  }
}

std::shared_ptr<Device> open(std::shared_ptr<Library> Lib, int Index,
                             const std::string &Spec) {
  return std::make_shared<HipDevice>(
      std::make_shared<Core>(std::move(Lib), Index, Spec));
}

} // namespace
} // namespace hip

unsigned hipIndex(const std::string &Uuid) {
  auto Lib = hip::Library::real();
  for (int Index = 0, Count = Lib->deviceCount(); Index < Count; ++Index)
    if (Lib->uuid(Index) == Uuid)
      return static_cast<unsigned>(Index);
  fail(GRETA_ERROR_NOT_FOUND, "no HIP device has the UUID ", Uuid);
}

std::shared_ptr<Device> openHip(unsigned Index) {
  auto Lib = hip::Library::real();
  int Count = Lib->deviceCount();
  if (Index >= static_cast<unsigned>(Count))
    fail(GRETA_ERROR_NOT_FOUND, "no device hip:", Index, "; ", Lib->Path,
         " finds ", Count, " devices");
  return hip::open(Lib, static_cast<int>(Index),
                   "hip:" + std::to_string(Index));
}

std::shared_ptr<Device> openSim(const std::string &Chip) {
  if (Chip.empty())
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "device 'sim:' needs a chip, sim:gfx942 for example");
  return hip::open(hip::Library::simulator(Chip), 0, "sim:" + Chip);
}

void listHip(nlohmann::json &Out) {
  nlohmann::json Missing = {
      {"spec", "hip"}, {"backend", "hip"}, {"available", false}};
  try {
    auto Lib = hip::Library::real();
    int Count = Lib->deviceCount();
    for (int Index = 0; Index < Count; ++Index) {
      nlohmann::json J;
      hip::open(Lib, Index, "hip:" + std::to_string(Index))->describe(J);
      J["available"] = true;
      Out.push_back(std::move(J));
    }
  } catch (const Error &E) {
    Missing["reason"] = E.what();
    Out.push_back(std::move(Missing));
  }
}

void listSim(nlohmann::json &Out) {
  nlohmann::json J = {
      {"spec", "sim:<gfx>"}, {"backend", "hip"}, {"available", false}};
  try {
    auto Lib = hip::Library::simulator("");
    J["available"] = true;
    J["name"] = "AMDGPU simulator";
    J["driver"] = Lib->Path;
    J["chips"] = Lib->chips();
  } catch (const Error &E) {
    J["reason"] = E.what();
  }
  Out.push_back(std::move(J));
}

} // namespace greta::rt
