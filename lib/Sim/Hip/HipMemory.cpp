//===- HipMemory.cpp - memory, copies and fills of the HIP API ------------===//
#include "HipState.h"
#include <cstring>

using namespace greta::sim;
using namespace greta::sim::hip;

static MemoryUse::Range span(const void *p, size_t bytes) {
  uint64_t begin = reinterpret_cast<uint64_t>(p);
  return {begin, begin + bytes};
}

/// Checks that [p, p+bytes) is host memory or inside one device allocation.
static hipError_t range(State &state, const void *p, size_t bytes,
                        const char *what) {
  auto [base, size] = state.device->allocationOf(p);
  if (!base)
    return hipSuccess; // host memory has no known bounds
  uint64_t offset =
      uint64_t(static_cast<const char *>(p) - static_cast<char *>(base));
  if (size - offset >= bytes)
    return hipSuccess;
  return state.report(hipErrorInvalidValue,
                      std::string(what) + " of " + std::to_string(bytes) +
                          " bytes passes the end of an allocation of " +
                          std::to_string(size));
}

static hipError_t copy(hipStream_t stream, void *to, const void *from,
                       size_t bytes) {
  State &state = State::get();
  if (bytes && (!to || !from))
    return state.report(hipErrorInvalidValue, "copy from or to a null pointer");
  if (hipError_t e = range(state, to, bytes, "copy"); e != hipSuccess)
    return e;
  if (hipError_t e = range(state, from, bytes, "copy"); e != hipSuccess)
    return e;
  return submit(stream, [=](hipStream_t on) {
    if (!bytes)
      return hipSuccess;
    std::memmove(to, from, bytes);
    Device &device = *State::get().device;
    device.wrote(to, bytes, from);
    hipError_t e =
        did(on, {"a copy", {{span(from, bytes)}, {span(to, bytes)}, {}}});
    // A copy from or to pageable memory of the host waits until it is done.
    if (!device.allocationOf(to).first || !device.allocationOf(from).first)
      finish(on);
    return e;
  });
}

static hipError_t copyAndWait(const char *call, void *to, const void *from,
                              size_t bytes) {
  ENTER();
  REFUSE(state.refuseWhileAnyCaptures(call, hipErrorStreamCaptureImplicit));
  hipError_t e = copy(nullptr, to, from, bytes);
  finish(nullptr);
  return e;
}

static hipError_t fill(hipStream_t stream, void *to, uint32_t value,
                       unsigned width, size_t count) {
  State &state = State::get();
  if (count && !to)
    return state.report(hipErrorInvalidValue, "memset of a null pointer");
  if (hipError_t e = range(state, to, count * width, "memset"); e != hipSuccess)
    return e;
  return submit(stream, [=](hipStream_t on) {
    for (size_t k = 0; k < count; ++k)
      std::memcpy(static_cast<char *>(to) + k * width, &value, width);
    State::get().device->wrote(to, count * width);
    return did(on, {"a fill", {{}, {span(to, count * width)}, {}}});
  });
}

static hipError_t allocate(void **p, size_t bytes, bool isFresh = false) {
  State &state = State::get();
  if (!p)
    return hipErrorInvalidValue;
  *p = nullptr;
  if (!bytes)
    return hipSuccess;
  size_t limit = size_t(16) << 30;
  *p = bytes > limit ? nullptr
                     : state.device->allocate(
                           bytes, isFresh && (state.checks & CheckPrograms));
  if (!*p)
    return state.report(hipErrorOutOfMemory,
                        "out of memory: " + std::to_string(bytes) + " bytes");
  state.allocated += bytes;
  return hipSuccess;
}

static hipError_t release(void *p) {
  State &state = State::get();
  if (!p)
    return hipSuccess;
  auto [base, size] = state.device->allocationOf(p);
  if (llvm::Error e = state.device->free(p))
    return state.report(hipErrorInvalidValue, std::move(e));
  state.allocated -= base ? size : 0;
  state.order.forget(reinterpret_cast<uint64_t>(p), size);
  return hipSuccess;
}

/// Memory that a graph owns is not simulated.
static hipError_t needUncaptured(hipStream_t stream, const char *call) {
  if (!stream || !stream->capture)
    return hipSuccess;
  stream->capture->valid = false;
  return State::get().report(hipErrorStreamCaptureUnsupported,
                             std::string("the simulator does not capture ") +
                                 call);
}

extern "C" {

hipError_t hipMalloc(void **p, size_t bytes) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipMalloc"));
  return allocate(p, bytes, /*isFresh=*/true);
}
hipError_t hipFree(void *p) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipFree"));
  state.order.finishAll(); // it waits for the device
  return release(p);
}
hipError_t hipMallocAsync(void **p, size_t bytes, hipStream_t stream) {
  ENTER();
  if (hipError_t e = needUncaptured(stream, "hipMallocAsync"); e != hipSuccess)
    return e;
  return allocate(p, bytes, /*isFresh=*/true);
}
hipError_t hipFreeAsync(void *p, hipStream_t stream) {
  ENTER();
  if (hipError_t e = needUncaptured(stream, "hipFreeAsync"); e != hipSuccess)
    return e;
  return release(p);
}
hipError_t hipHostMalloc(void **p, size_t bytes, unsigned) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipHostMalloc"));
  return allocate(p, bytes);
}
hipError_t hipHostFree(void *p) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipHostFree"));
  state.order.finishAll(); // it waits for the device
  return release(p);
}
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned) {
  ENTER();
  if (!device || !host)
    return hipErrorInvalidValue;
  *device = host;
  return hipSuccess;
}
hipError_t hipHostRegister(void *p, size_t bytes, unsigned) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipHostRegister"));
  if (!p || !bytes)
    return hipErrorInvalidValue;
  if (llvm::Error e = state.device->registerHost(p, bytes))
    return state.report(hipErrorInvalidValue, std::move(e));
  return hipSuccess;
}
hipError_t hipHostUnregister(void *p) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipHostUnregister"));
  auto [base, size] = state.device->allocationOf(p);
  if (llvm::Error e = state.device->unregisterHost(p))
    return state.report(hipErrorInvalidValue, std::move(e));
  state.order.forget(reinterpret_cast<uint64_t>(base), size);
  return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind) {
  return copyAndWait("hipMemcpy", to, from, bytes);
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                          hipMemcpyKind, hipStream_t stream) {
  ENTER();
  return copy(stream, to, from, bytes);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t bytes) {
  return copyAndWait("hipMemcpyHtoD", to, from, bytes);
}
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
  return copyAndWait("hipMemcpyDtoH", to, from, bytes);
}
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return copyAndWait("hipMemcpyDtoD", to, from, bytes);
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes,
                              hipStream_t stream) {
  ENTER();
  return copy(stream, to, from, bytes);
}
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes,
                              hipStream_t stream) {
  ENTER();
  return copy(stream, to, from, bytes);
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                              size_t bytes, hipStream_t stream) {
  ENTER();
  return copy(stream, to, from, bytes);
}
hipError_t hipMemset(void *to, int value, size_t bytes) {
  ENTER();
  REFUSE(
      state.refuseWhileAnyCaptures("hipMemset", hipErrorStreamCaptureImplicit));
  return fill(nullptr, to, uint32_t(value), 1, bytes);
}
hipError_t hipMemsetAsync(void *to, int value, size_t bytes,
                          hipStream_t stream) {
  ENTER();
  return fill(stream, to, uint32_t(value), 1, bytes);
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  ENTER();
  REFUSE(state.refuseWhileAnyCaptures("hipMemsetD8",
                                      hipErrorStreamCaptureImplicit));
  return fill(nullptr, to, value, 1, count);
}
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value,
                            size_t count, hipStream_t stream) {
  ENTER();
  return fill(stream, to, value, 1, count);
}
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                             size_t count, hipStream_t stream) {
  ENTER();
  return fill(stream, to, value, 2, count);
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  ENTER();
  REFUSE(state.refuseWhileAnyCaptures("hipMemsetD32",
                                      hipErrorStreamCaptureImplicit));
  return fill(nullptr, to, uint32_t(value), 4, count);
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                             hipStream_t stream) {
  ENTER();
  return fill(stream, to, uint32_t(value), 4, count);
}

} // extern "C"
