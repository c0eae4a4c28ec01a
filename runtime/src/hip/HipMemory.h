// HipMemory.h: one opened HIP device, and its memory: its own, pinned memory of
// the host, the caller's, and an application's.
#ifndef GRETA_RUNTIME_HIP_MEMORY_H
#define GRETA_RUNTIME_HIP_MEMORY_H

#include "Error.h"
#include "HipLibrary.h"

#include <algorithm>
#include <atomic>

namespace greta::rt::hip {

// A device of a library; everything made from it holds it.
struct Core {
  Core(std::shared_ptr<Library> L, int Index, std::string Spec)
      : Lib(std::move(L)), Index(Index), Spec(std::move(Spec)),
        Name(Lib->marketingName(Index)), Arch(Lib->arch(Index)) {
    auto Create = [&] {
      hipError_t Result = Lib->hipSetDevice(this->Index);
      return Result
                 ? Result
                 : Lib->hipStreamCreateWithFlags(&Memory, hipStreamNonBlocking);
    };
    hipError_t Result = Create();
    // Another user in this process lost it and does not use it any more.
    if (Lib->isLoss(Result) && Lib->reset(Index))
      Result = Create();
    Lib->check(Result, "hipStreamCreateWithFlags");
  }
  ~Core() {
    if (const Library *L = living())
      (void)L->hipStreamDestroy(Memory);
  }
  Core(const Core &) = delete;
  // HIP's current device is per thread.
  const Library &use() const {
    if (IsLost)
      failLost(Spec);
    check(Lib->hipSetDevice(Index), Spec);
    return *Lib;
  }
  // Checks every answer that may be an error: after one that ends the device
  // the driver is not asked any more.
  template <typename... Parts>
  void check(hipError_t Result, const Parts &...What) const {
    if (Lib->isLoss(Result))
      IsLost = true;
    Lib->check(Result, What...);
  }
  // Returns the library for callers that give something back; null if the
  // device is lost: its memory is gone and others may have its handles.
  const Library *living() const { return IsLost ? nullptr : Lib.get(); }
  std::shared_ptr<Library> Lib;
  int Index;
  std::string Spec, Name, Arch;
  // Memory is allocated and freed in this stream's order, as hipFree would wait
  // for all work of the device.
  hipStream_t Memory = nullptr;
  mutable std::atomic<bool> IsLost{false};
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
    hipError_t Result = C->use().hipMallocAsync(&Pointer, Rounded, C->Memory);
    // Any stream may use it from now on. Only allocations run here.
    if (Result == hipSuccess)
      Result = C->Lib->hipStreamSynchronize(C->Memory);
    C->check(Result, C->Spec, " cannot allocate ", Bytes, " bytes");
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
  // Streams and graphs keep what their work uses, so no work uses it any more.
  ~HipMemory() override {
    if (const Library *L = C->living())
      (void)L->hipFreeAsync(reinterpret_cast<void *>(Address), C->Memory);
  }
  CoreRef C;
};

// Pinned memory of the host, which the device reaches.
struct PinnedMemory : Memory {
  PinnedMemory(CoreRef Owner, size_t Bytes) : C(std::move(Owner)) {
    Size = Bytes;
    C->check(C->use().hipHostMalloc(&Mapped, std::max<size_t>(Bytes, 1), 0),
             "pinned memory of ", Bytes, " bytes on ", C->Spec);
    void *Pointer = nullptr;
    hipError_t Result = C->Lib->hipHostGetDevicePointer(&Pointer, Mapped, 0);
    if (Result != hipSuccess)
      (void)C->Lib->hipHostFree(Mapped);
    C->check(Result, "pinned memory on ", C->Spec);
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
  ~PinnedMemory() override {
    if (const Library *L = C->living())
      (void)L->hipHostFree(Mapped);
  }
  CoreRef C;
};

// Wraps the caller's memory of the host.
struct RegisteredMemory : Memory {
  RegisteredMemory(CoreRef Owner, void *Host, size_t Bytes)
      : C(std::move(Owner)) {
    Size = Bytes;
    C->check(C->use().hipHostRegister(Host, Bytes, 0),
             "importing host memory of ", Bytes, " bytes on ", C->Spec);
    Mapped = Host;
    void *Pointer = nullptr;
    hipError_t Result = C->Lib->hipHostGetDevicePointer(&Pointer, Host, 0);
    if (Result != hipSuccess)
      (void)C->Lib->hipHostUnregister(Host);
    C->check(Result, "importing host memory on ", C->Spec);
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
  ~RegisteredMemory() override {
    if (const Library *L = C->living())
      (void)L->hipHostUnregister(Mapped);
  }
  CoreRef C;
};

// Wraps the application's memory of this device.
struct AdoptedMemory : Memory {
  AdoptedMemory(void *Pointer, size_t Bytes) {
    Size = Bytes;
    Address = reinterpret_cast<uintptr_t>(Pointer);
  }
};

} // namespace greta::rt::hip
#endif
