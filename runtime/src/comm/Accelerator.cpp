// Accelerator.cpp: see Accelerator.h. CUDA's driver is opened with dlopen; HIP
// is what the device runs on.
#include "comm/Accelerator.h"
#include "Libraries.h"
#include "comm/NcclApi.h"

#include <cstring>
#include <unistd.h>

namespace greta::rt::comm {

namespace {

struct Driver {
#define X(Name, Symbol, ...) CUresult (*Name)(__VA_ARGS__) = nullptr;
  GRETA_CUDA_FUNCTIONS(X)
#undef X
  Driver() {
    void *Handle = openLibrary("GRETA_CUDA_LIBRARY", {"libcuda.so.1"});
#define X(Name, Symbol, ...)                                                   \
  bindFunction(Name, Handle, #Symbol, "CUDA's driver");
    GRETA_CUDA_FUNCTIONS(X)
#undef X
    check(cuInit(0), "cuInit");
  }
  void check(CUresult Result, const char *What) const {
    if (Result == CUDA_SUCCESS)
      return;
    const char *Text = nullptr;
    cuGetErrorString(Result, &Text);
    fail(GRETA_ERROR_DEVICE, What, " (CUDA): ", Text ? Text : "error ",
         static_cast<int>(Result));
  }
};

// Returns the driver, or throws as long as there is none.
std::shared_ptr<Driver> driver() {
  static std::mutex Lock;
  static std::shared_ptr<Driver> Loaded;
  std::lock_guard<std::mutex> Guard(Lock);
  if (!Loaded)
    Loaded = std::make_shared<Driver>();
  return Loaded;
}

class Cuda : public Accelerator {
public:
  Cuda(std::shared_ptr<Device> D, const std::string &Uuid)
      : D(std::move(D)), Fn(driver()) {
    int Count = 0;
    Fn->check(Fn->cuDeviceGetCount(&Count), "cuDeviceGetCount");
    CUuuid Of;
    for (int I = 0; I < Count && Number < 0; ++I) {
      CUdevice Found;
      Fn->check(Fn->cuDeviceGet(&Found, I), "cuDeviceGet");
      Fn->check(Fn->cuDeviceGetUuid(&Of, Found), "cuDeviceGetUuid");
      if (hex(Of.bytes, sizeof(Of.bytes)) == Uuid)
        Number = Found;
    }
    if (Number < 0)
      fail(GRETA_ERROR_NOT_FOUND, "CUDA has no device with the UUID ", Uuid);
    Fn->check(Fn->cuDevicePrimaryCtxRetain(&Context, Number),
              "cuDevicePrimaryCtxRetain");
    try {
      auto Current = use();
      Fn->check(Fn->cuStreamCreate(&Queue, CU_STREAM_NON_BLOCKING),
                "cuStreamCreate");
    } catch (...) {
      Fn->cuDevicePrimaryCtxRelease(Number);
      throw;
    }
  }
  ~Cuda() override {
    try {
      auto Current = use();
      for (auto &[M, I] : Imports)
        release(I);
      for (auto &[C, I] : Counters)
        Fn->cuDestroyExternalSemaphore(I.Handle);
      Fn->cuStreamDestroy(Queue);
    } catch (const Error &) { // the device is lost
    }
    Fn->cuDevicePrimaryCtxRelease(Number);
  }
  std::shared_ptr<void> use() override {
    Fn->check(Fn->cuCtxPushCurrent(Context), "cuCtxPushCurrent");
    return {Context, [Fn = Fn](void *) {
              CUcontext Popped;
              Fn->cuCtxPopCurrent(&Popped);
            }};
  }
  void *stream() override { return Queue; }
  MemoryRef allocate(size_t Size) override {
    return D->allocateShared(GRETA_FD_OPAQUE, Size);
  }
  void *address(const MemoryRef &M) override;
  void await(const std::shared_ptr<Counter> &C, uint64_t Value) override {
    CudaSemaphoreParams Params{};
    Params.value = Value;
    CUexternalSemaphore Handle = imported(C);
    Fn->check(Fn->cuWaitExternalSemaphores(&Handle, &Params, 1, Queue),
              "cuWaitExternalSemaphoresAsync");
  }
  void raise(const std::shared_ptr<Counter> &C, uint64_t Value) override {
    CudaSemaphoreParams Params{};
    Params.value = Value;
    CUexternalSemaphore Handle = imported(C);
    Fn->check(Fn->cuSignalExternalSemaphores(&Handle, &Params, 1, Queue),
              "cuSignalExternalSemaphoresAsync");
  }
  // CUDA knows nothing of Vulkan's events, so the host looks.
  bool waitFor(Event &Ready) override { return Ready.wait(0); }
  std::shared_ptr<void> mark() override {
    CUevent Made;
    Fn->check(Fn->cuEventCreate(&Made, CU_EVENT_DISABLE_TIMING),
              "cuEventCreate");
    std::shared_ptr<void> Owner(Made, [Fn = Fn](void *E) {
      Fn->cuEventDestroy(static_cast<CUevent>(E));
    });
    Fn->check(Fn->cuEventRecord(Made, Queue), "cuEventRecord");
    return Owner;
  }
  bool isPassed(void *Mark) override {
    CUresult Result = Fn->cuEventQuery(static_cast<CUevent>(Mark));
    if (Result == CUDA_ERROR_NOT_READY)
      return false;
    Fn->check(Result, "a collective");
    return true;
  }

private:
  struct Import {
    std::weak_ptr<Memory> Of;
    CUexternalMemory Handle;
    CUdeviceptr Address;
  };
  void release(const Import &I) {
    if (!I.Handle)
      return;
    Fn->cuMemFree(I.Address);
    Fn->cuDestroyExternalMemory(I.Handle);
  }
  Import import(const MemoryRef &M);
  CUexternalSemaphore imported(const std::shared_ptr<Counter> &C);

  std::shared_ptr<Device> D;
  std::shared_ptr<Driver> Fn;
  CUdevice Number = -1;
  CUcontext Context = nullptr;
  CUstream Queue = nullptr;
  std::map<const Memory *, Import> Imports; // null: it cannot be imported
  struct ImportedCounter {
    std::weak_ptr<Counter> Of;
    CUexternalSemaphore Handle;
  };
  std::map<const Counter *, ImportedCounter> Counters;
};

CUexternalSemaphore Cuda::imported(const std::shared_ptr<Counter> &C) {
  auto It = Counters.find(C.get());
  if (It != Counters.end() && !It->second.Of.expired())
    return It->second.Handle;
  if (It != Counters.end()) {
    Fn->cuDestroyExternalSemaphore(It->second.Handle);
    Counters.erase(It);
  }
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC Desc{};
  Desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  Desc.handle.fd = C->exportFd();
  CUexternalSemaphore Handle = nullptr;
  CUresult Result = Fn->cuImportExternalSemaphore(&Handle, &Desc);
  if (Result != CUDA_SUCCESS)
    close(Desc.handle.fd); // otherwise CUDA has it
  Fn->check(Result, "importing a semaphore");
  Counters[C.get()] = {C, Handle};
  return Handle;
}

void *Cuda::address(const MemoryRef &M) {
  // Work keeps its memory, so no work uses imports of memory that is gone.
  for (auto It = Imports.begin(); It != Imports.end();) {
    if (It->second.Of.expired()) {
      release(It->second);
      It = Imports.erase(It);
    } else {
      ++It;
    }
  }
  auto It = Imports.find(M.get());
  if (It == Imports.end())
    It = Imports.emplace(M.get(), import(M)).first;
  return reinterpret_cast<void *>(It->second.Address);
}

Cuda::Import Cuda::import(const MemoryRef &M) {
  greta_shared_memory Shared{};
  try {
    M->exportFd(Shared);
  } catch (const Error &) {
    return {M, nullptr, 0};
  }
  if (Shared.kind != GRETA_FD_OPAQUE) {
    close(Shared.fd);
    return {M, nullptr, 0};
  }
  Import Made{M, nullptr, 0};
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC Desc{};
  Desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  Desc.handle.fd = Shared.fd;
  Desc.size = M->Size;
  // The runtime's shared memory is a dedicated allocation.
  Desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
  CUresult Result = Fn->cuImportExternalMemory(&Made.Handle, &Desc);
  if (Result != CUDA_SUCCESS) {
    Desc.flags = 0;
    Result = Fn->cuImportExternalMemory(&Made.Handle, &Desc);
  }
  if (Result != CUDA_SUCCESS)
    close(Shared.fd); // otherwise CUDA has it
  Fn->check(Result, "importing a buffer");
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC Buffer{};
  Buffer.size = M->Size;
  Result =
      Fn->cuExternalMemoryGetMappedBuffer(&Made.Address, Made.Handle, &Buffer);
  if (Result != CUDA_SUCCESS)
    Fn->cuDestroyExternalMemory(Made.Handle);
  Fn->check(Result, "mapping a buffer");
  return Made;
}

class Hip : public Accelerator {
public:
  explicit Hip(std::shared_ptr<Device> Owner)
      : D(std::move(Owner)), Queue(D->createStream()) {}
  // Nothing restores the device: other calls make their own current.
  std::shared_ptr<void> use() override {
    D->makeCurrent();
    return nullptr;
  }
  void *stream() override { return Queue->handle(); }
  MemoryRef allocate(size_t Size) override { return D->allocate(Size); }
  void *address(const MemoryRef &M) override {
    return reinterpret_cast<void *>(M->Address);
  }
  bool waitFor(Event &Ready) override {
    Queue->wait(Ready);
    return true;
  }
  std::shared_ptr<void> mark() override {
    std::shared_ptr<Event> E = D->createEvent();
    Queue->record(*E);
    return E;
  }
  bool isPassed(void *Mark) override {
    return static_cast<Event *>(Mark)->wait(0);
  }
  std::shared_ptr<Event> event(const std::shared_ptr<void> &Mark) override {
    return std::static_pointer_cast<Event>(Mark);
  }

private:
  std::shared_ptr<Device> D;
  std::unique_ptr<Stream> Queue;
};

} // namespace

std::unique_ptr<Accelerator> makeCuda(std::shared_ptr<Device> D,
                                      const std::string &Uuid) {
  return std::make_unique<Cuda>(std::move(D), Uuid);
}

std::unique_ptr<Accelerator> makeHip(std::shared_ptr<Device> D) {
  return std::make_unique<Hip>(std::move(D));
}

} // namespace greta::rt::comm
