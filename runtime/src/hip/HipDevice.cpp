// HipDevice.cpp: the HIP backend: `hip:N` on AMD's runtime and `sim:<gfx>` on
// GRETA's simulator, one code path.
#include "Backend.h"
#include "CodeObject.h"
#include "Error.h"
#include "HipLibrary.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace greta::rt {
namespace hip {
namespace {

// A device of a library; everything made from it holds it.
struct Core {
  std::shared_ptr<Library> Lib;
  int Index = 0;
  std::string Spec, Name, Arch;
  // HIP's current device is per thread.
  const Library &use() const {
    Lib->check(Lib->hipSetDevice(Index), Spec);
    return *Lib;
  }
};
using CoreRef = std::shared_ptr<Core>;

struct HipMemory : Memory {
  HipMemory(CoreRef Owner, size_t Bytes) : C(std::move(Owner)) {
    Size = Bytes;
    // Kernels may read whole 16-byte words at the end.
    size_t Rounded = (Bytes + 31) / 16 * 16;
    if (Rounded < Bytes)
      fail(GRETA_ERROR_OUT_OF_MEMORY, C->Spec, " cannot allocate ", Bytes,
           " bytes");
    void *Pointer = nullptr;
    C->Lib->check(C->use().hipMalloc(&Pointer, Rounded),
                  concat(C->Spec, " cannot allocate ", Bytes, " bytes"));
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
  // hipFree waits for work that may still use it.
  ~HipMemory() override {
    (void)C->Lib->hipFree(reinterpret_cast<void *>(Address));
  }
  CoreRef C;
};

char *at(const MemoryRef &M, size_t Offset) {
  return reinterpret_cast<char *>(M->Address) + Offset;
}

struct HipEvent : Event {
  explicit HipEvent(CoreRef Owner) : C(std::move(Owner)) {
    C->Lib->check(C->use().hipEventCreate(&Handle), "hipEventCreate");
  }
  ~HipEvent() override { (void)C->Lib->hipEventDestroy(Handle); }
  void needRecorded() const {
    if (!Recorded)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the event was never recorded");
  }
  void synchronize() override {
    needRecorded();
    C->Lib->check(C->use().hipEventSynchronize(Handle), "waiting for an event");
  }
  double since(Event &Start) override {
    float Milliseconds = 0;
    C->Lib->check(
        C->use().hipEventElapsedTime(
            &Milliseconds, static_cast<HipEvent &>(Start).Handle, Handle),
        "hipEventElapsedTime");
    return Milliseconds * 1000.0;
  }
  CoreRef C;
  hipEvent_t Handle = nullptr;
  bool Recorded = false;
};

struct HipKernel : Kernel {
  HipKernel(CoreRef Owner, const KernelDecl &K,
            const std::vector<uint8_t> &Object)
      : C(std::move(Owner)), Block(K.Block) {
    const Library &L = C->use();
    L.check(L.hipModuleLoadData(&Module, Object.data()),
            concat("loading '", K.File, "' on ", C->Spec));
    hipError_t Result =
        L.hipModuleGetFunction(&Function, Module, K.Entry.c_str());
    if (Result != hipSuccess) {
      (void)L.hipModuleUnload(Module);
      fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "' has no kernel '", K.Entry,
           "'");
    }
  }
  ~HipKernel() override { (void)C->Lib->hipModuleUnload(Module); }
  CoreRef C;
  hipModule_t Module = nullptr;
  hipFunction_t Function = nullptr;
  std::array<uint32_t, 3> Block;
};

struct HipGraph : Graph {
  explicit HipGraph(CoreRef Owner) : C(std::move(Owner)) {}
  ~HipGraph() override {
    if (Exec)
      (void)C->Lib->hipGraphExecDestroy(Exec);
    if (Handle)
      (void)C->Lib->hipGraphDestroy(Handle);
  }
  void launch(Stream &S) override;
  CoreRef C;
  hipGraph_t Handle = nullptr;
  hipGraphExec_t Exec = nullptr;
  KeepList Keep;
};

struct HipStream : Stream {
  explicit HipStream(CoreRef Owner) : C(std::move(Owner)) {
    C->Lib->check(
        C->use().hipStreamCreateWithFlags(&Handle, hipStreamNonBlocking),
        "hipStreamCreateWithFlags");
  }
  ~HipStream() override {
    (void)C->Lib->hipStreamSynchronize(Handle);
    (void)C->Lib->hipStreamDestroy(Handle);
  }
  void move(void *To, const void *From, size_t Size, hipMemcpyKind Kind) {
    C->Lib->check(C->use().hipMemcpyAsync(To, From, Size, Kind, Handle),
                  concat("copying ", Size, " bytes on ", C->Spec));
  }
  void keep(const MemoryRef &M) {
    if (Recording)
      Recording->Keep.push_back(M);
  }
  // Whether the library has taken the caller's bytes when an asynchronous copy
  // returns depends on its release.
  void write(const MemoryRef &To, size_t Offset, const void *Data,
             size_t Size) override {
    move(at(To, Offset), Data, Size, hipMemcpyHostToDevice);
    synchronize();
  }
  void read(const MemoryRef &From, size_t Offset, void *Data,
            size_t Size) override {
    move(Data, at(From, Offset), Size, hipMemcpyDeviceToHost);
    synchronize();
  }
  void copy(const MemoryRef &To, size_t ToOffset, const MemoryRef &From,
            size_t FromOffset, size_t Size) override {
    keep(To);
    keep(From);
    move(at(To, ToOffset), at(From, FromOffset), Size, hipMemcpyDeviceToDevice);
  }
  void fill(const MemoryRef &To, size_t Offset, size_t Size,
            uint32_t Word) override {
    keep(To);
    C->Lib->check(C->use().hipMemsetD32Async(
                      at(To, Offset), static_cast<int>(Word), Size / 4, Handle),
                  "a fill");
  }
  void launch(Launch L) override {
    auto &K = static_cast<HipKernel &>(*L.Code);
    size_t Size = L.Block.size();
    void *Extra[] = {launchBufferPointer, L.Block.data(), launchBufferSize,
                     &Size, launchEnd};
    for (int D = 0; D < 3; ++D)
      if (uint64_t(L.Grid[D]) * K.Block[D] > UINT32_MAX)
        fail(GRETA_ERROR_UNSUPPORTED, "kernel '", K.Name, "' needs ",
             uint64_t(L.Grid[D]) * K.Block[D], " work-items in dim ", D,
             ", the limit is 4294967295");
    C->Lib->check(C->use().hipModuleLaunchKernel(
                      K.Function, L.Grid[0], L.Grid[1], L.Grid[2], K.Block[0],
                      K.Block[1], K.Block[2], 0, Handle, nullptr, Extra),
                  concat("launching '", K.Name, "' on ", C->Spec));
    if (Recording) {
      Recording->Keep.insert(Recording->Keep.end(), L.Keep.begin(),
                             L.Keep.end());
      Recording->Keep.push_back(L.Code);
    }
  }
  void record(Event &E) override {
    auto &H = static_cast<HipEvent &>(E);
    C->Lib->check(C->use().hipEventRecord(H.Handle, Handle),
                  "recording an event");
    H.Recorded = true;
  }
  void wait(Event &E) override {
    auto &H = static_cast<HipEvent &>(E);
    H.needRecorded();
    C->Lib->check(C->use().hipStreamWaitEvent(Handle, H.Handle, 0),
                  "hipStreamWaitEvent");
  }
  void flush() override {} // HIP starts work by itself
  void synchronize() override {
    C->Lib->check(C->use().hipStreamSynchronize(Handle),
                  concat("work on ", C->Spec));
  }
  void beginCapture() override {
    C->Lib->check(
        C->use().hipStreamBeginCapture(Handle, hipStreamCaptureModeThreadLocal),
        "recording a graph");
    Recording = std::make_shared<HipGraph>(C);
  }
  std::shared_ptr<Graph> endCapture() override {
    std::shared_ptr<HipGraph> G = std::move(Recording);
    Recording = nullptr;
    C->Lib->check(C->use().hipStreamEndCapture(Handle, &G->Handle),
                  "recording a graph");
    C->Lib->check(
        C->Lib->hipGraphInstantiate(&G->Exec, G->Handle, nullptr, nullptr, 0),
        "hipGraphInstantiate");
    return G;
  }
  CoreRef C;
  hipStream_t Handle = nullptr;
  std::shared_ptr<HipGraph> Recording;
};

void HipGraph::launch(Stream &S) {
  C->Lib->check(
      C->use().hipGraphLaunch(Exec, static_cast<HipStream &>(S).Handle),
      "launching a graph");
}

struct HipDevice : Device {
  explicit HipDevice(CoreRef Owner) : C(std::move(Owner)) {
    Spec = C->Spec;
    Name = C->Name;
  }
  MemoryRef allocate(size_t Size) override {
    return std::make_shared<HipMemory>(C, Size);
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
  void describe(nlohmann::json &Out) override {
    Out = {{"spec", Spec},
           {"name", Name},
           {"backend", "hip"},
           {"arch", C->Arch},
           {"driver", C->Lib->Path}};
  }
  std::array<uint32_t, 3> maxGrid() const override {
    return {INT32_MAX, 65535, 65535};
  }
  CoreRef C;
};

std::shared_ptr<Device> open(std::shared_ptr<Library> Lib, int Index,
                             const std::string &Spec) {
  auto C = std::make_shared<Core>();
  C->Lib = std::move(Lib);
  C->Index = Index;
  C->Spec = Spec;
  C->Name = C->Lib->marketingName(Index);
  C->Arch = C->Lib->arch(Index);
  return std::make_shared<HipDevice>(std::move(C));
}

} // namespace
} // namespace hip

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
  } catch (const Error &E) {
    J["reason"] = E.what();
  }
  Out.push_back(std::move(J));
}

} // namespace greta::rt
