// Host.cpp: the CPU as a device. A kernel is a shared object with `void
// entry(void **pointers, const int64_t *symbols)`; its bytes go to a memfd and
// from there through dlopen, so nothing is written to disk. Streams run at
// once.
#include "Backend.h"
#include "DLPack.h"
#include "Elf.h"
#include "Error.h"
#include "Files.h"
#include "Process.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace greta::rt {
namespace {

constexpr size_t alignment = 64; // enough for vector code of any x86 level

struct HostMemory : Memory {
  explicit HostMemory(size_t Bytes) {
    Size = Bytes;
    // The kernel promises more than there is; touching it would end the
    // process.
    size_t Physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (Bytes > Physical)
      fail(GRETA_ERROR_OUT_OF_MEMORY, "host: cannot allocate ", Bytes,
           " bytes, the machine has ", Physical);
    size_t Rounded = Bytes + alignment;
    Rounded = Rounded / alignment * alignment;
    Data = std::aligned_alloc(alignment, Rounded);
    if (!Data)
      fail(GRETA_ERROR_OUT_OF_MEMORY, "host: cannot allocate ", Bytes,
           " bytes");
    Mapped = Data;
    Address = reinterpret_cast<uintptr_t>(Data);
  }
  // Wraps the caller's memory.
  HostMemory(void *Pointer, size_t Bytes) {
    Size = Bytes;
    Mapped = Pointer;
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
  ~HostMemory() override { free(Data); }
  void *Data = nullptr;
};

char *at(const MemoryRef &M, size_t Offset) {
  return reinterpret_cast<char *>(M->Address) + Offset;
}

struct HostEvent : Event {
  bool wait(uint64_t) override {
    if (!Recorded)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the event was never recorded");
    return true;
  }
  double since(Event &Start) override {
    return std::chrono::duration<double, std::micro>(
               Time - static_cast<HostEvent &>(Start).Time)
        .count();
  }
  bool Recorded = false;
  std::chrono::steady_clock::time_point Time;
};

struct HostKernel : Kernel {
  HostKernel(const KernelDecl &K, const std::vector<uint8_t> &Object)
      : Pointers(K.Args.size()) {
    // The system's loader trusts headers, so they are checked here.
    ElfFile(Object, "'" + K.File + "'");
    FD = memfd_create("greta-host-object", MFD_CLOEXEC);
    if (FD < 0)
      fail(GRETA_ERROR_DEVICE, "host: memfd_create: ", strerror(errno));
    bool Written = writeAll(FD, Object.data(), Object.size());
    std::string Path = "/proc/self/fd/" + std::to_string(FD);
    if (Written)
      Library = dlopen(Path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!Library) {
      const char *Problem = Written ? dlerror() : strerror(errno);
      close(FD);
      fail(GRETA_ERROR_BAD_PACKAGE, "host: cannot load '", K.File,
           "': ", Problem);
    }
    Entry = reinterpret_cast<EntryType *>(dlsym(Library, K.Entry.c_str()));
    if (!Entry) {
      dlclose(Library);
      close(FD);
      fail(GRETA_ERROR_BAD_PACKAGE, "host: '", K.File, "' has no symbol '",
           K.Entry, "'");
    }
  }
  ~HostKernel() override {
    dlclose(Library);
    close(FD);
  }

  // The block is the pointers, then the symbols, eight bytes each. It is
  // copied, because a kernel may write to it.
  void run(Span<uint8_t> Block, std::vector<void *> &P,
           std::vector<int64_t> &Symbols) const {
    P.resize(Pointers + 1);
    Symbols.resize(Block.Size / 8 - Pointers + 1);
    memcpy(P.data(), Block.Data, Pointers * 8);
    memcpy(Symbols.data(), Block.Data + Pointers * 8,
           Block.Size - Pointers * 8);
    Entry(P.data(), Symbols.data());
  }

  using EntryType = void(void **, const int64_t *);
  // The file is open as long as the library is: dlopen takes a second library
  // of the same path for the first.
  int FD = -1;
  void *Library = nullptr;
  EntryType *Entry = nullptr;
  size_t Pointers;
};

struct HostStream : Stream {
  using Op = std::function<void()>;
  template <typename Operation> void add(Operation O) {
    if (Capturing)
      Recorded.push_back(std::move(O));
    else
      O();
  }
  void write(const MemoryRef &To, size_t Offset, const void *Data,
             size_t Size) override {
    memcpy(at(To, Offset), Data, Size);
  }
  void read(const MemoryRef &From, size_t Offset, void *Data,
            size_t Size) override {
    memcpy(Data, at(From, Offset), Size);
  }
  void copy(const MemoryRef &To, size_t ToOffset, const MemoryRef &From,
            size_t FromOffset, size_t Size) override {
    add([=] { memcpy(at(To, ToOffset), at(From, FromOffset), Size); });
  }
  void fill(const MemoryRef &To, size_t Offset, size_t Size,
            uint32_t Word) override {
    add([=] {
      for (size_t I = 0; I < Size; I += 4)
        memcpy(at(To, Offset + I), &Word, 4);
    });
  }
  void launch(const Launch &L) override {
    const auto &K = static_cast<const HostKernel &>(**L.Code);
    if (!Capturing)
      return K.run(L.Block, Pointers, Symbols);
    KeepList Keep;
    Keep.add(*L.Code);
    for (const Use &U : L.Uses)
      Keep.add(*U.Of);
    Recorded.push_back(
        [&K, Keep,
         Block = std::vector<uint8_t>(L.Block.begin(), L.Block.end())] {
          std::vector<void *> P;
          std::vector<int64_t> S;
          K.run({Block.data(), Block.size()}, P, S);
        });
  }
  void record(Event &E) override {
    auto &H = static_cast<HostEvent &>(E);
    H.Time = std::chrono::steady_clock::now();
    H.Recorded = true;
  }
  void wait(Event &E) override { E.synchronize(); }
  void flush() override {}
  void callHost(void (*F)(void *), void *Data) override { F(Data); }
  void synchronize() override {}
  bool isDone() override { return true; }
  void beginCapture() override { Recorded.clear(); }
  std::shared_ptr<Graph> endRecording() override {
    struct HostGraph : Graph, std::enable_shared_from_this<HostGraph> {
      std::vector<Op> Ops;
      void run() const {
        for (const Op &O : Ops)
          O();
      }
      bool isEmpty() const override { return Ops.empty(); }
      void start(Stream &S) override {
        static_cast<HostStream &>(S).add(
            [Self = shared_from_this()] { Self->run(); });
      }
    };
    auto G = std::make_shared<HostGraph>();
    G->Ops.swap(Recorded);
    return G;
  }
  std::vector<Op> Recorded;
  std::vector<void *> Pointers; // the current launch's
  std::vector<int64_t> Symbols;
};

// Returns whether this CPU runs code for the named architecture level.
bool runsOn(const std::string &Arch) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool V2 = __builtin_cpu_supports("sse4.2") &&
            __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
  bool V3 = V2 && __builtin_cpu_supports("avx2") &&
            __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
            __builtin_cpu_supports("bmi2");
  bool V4 = V3 && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return Arch == "x86-64" || (Arch == "x86-64-v2" && V2) ||
         (Arch == "x86-64-v3" && V3) || (Arch == "x86-64-v4" && V4);
#elif defined(__aarch64__)
  return Arch == "aarch64";
#else
  return false;
#endif
}

struct HostDevice : Device {
  HostDevice() {
    Spec = "host";
    Name = "CPU";
  }
  MemoryRef allocateMemory(size_t Size) override {
    return std::make_shared<HostMemory>(Size);
  }
  MemoryRef allocateMapped(size_t Size) override { return allocate(Size); }
  MemoryRef importPointer(void *Pointer, size_t Size) override {
    if (reinterpret_cast<uintptr_t>(Pointer) % alignment)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "host: imported memory begins at a multiple of ", alignment,
           " bytes");
    return std::make_shared<HostMemory>(Pointer, Size);
  }
  size_t pointerUnit() const override { return alignment; }
  std::pair<int32_t, int32_t> dlpackDevice() const override {
    return {kDLCPU, 0};
  }
  Reserved reserved() override {
    size_t Page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return {use().InUse, 0, Page * static_cast<size_t>(sysconf(_SC_PHYS_PAGES)),
            Page * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES))};
  }
  std::unique_ptr<Stream> createStream() override {
    return std::make_unique<HostStream>();
  }
  std::unique_ptr<Event> createEvent() override {
    return std::make_unique<HostEvent>();
  }
  KernelRef loadKernel(const Variant &, const KernelDecl &K,
                       const std::vector<uint8_t> &Object, bool) override {
    return std::make_shared<HostKernel>(K, Object);
  }
  std::string whyNot(const Variant &V) override {
    if (V.Backend != "host")
      return "it is for " + V.Backend;
    if (!V.Requires.Unknown.empty())
      return "unknown requirement '" + V.Requires.Unknown + "'";
    if (!runsOn(V.Requires.Arch))
      return "this CPU is not " + V.Requires.Arch;
    return "";
  }
  void describe(nlohmann::json &Out) override {
    Out = {{"spec", Spec}, {"name", Name}, {"backend", "host"}};
    Out["arch"] = nlohmann::json::array();
    for (const char *Arch :
         {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"})
      if (runsOn(Arch))
        Out["arch"].push_back(Arch);
  }
  std::array<uint32_t, 3> maxGrid() const override { return {1, 1, 1}; }
};

} // namespace

static std::atomic<bool> NativeRefused{false};
void refuseNativeCode() { NativeRefused = true; }
bool nativeCodeIsRefused() { return NativeRefused || isOn("GRETA_NO_NATIVE"); }

std::shared_ptr<Device> openHost() { return std::make_shared<HostDevice>(); }

void listHost(nlohmann::json &Out) {
  nlohmann::json J;
  HostDevice().describe(J);
  J["available"] = true;
  Out.push_back(std::move(J));
}

} // namespace greta::rt
