// HipApi.h: what the runtime uses of AMD's HIP API, declared here so that it
// builds without AMD's headers and runs with every release of libamdhip64.so.
// Names, values and parameters are HIP's; test/unit/runtime/HipApiTest.cpp
// compares them with the headers where those are installed.
#ifndef GRETA_RUNTIME_HIP_API_H
#define GRETA_RUNTIME_HIP_API_H

#include <cstddef>

namespace greta::rt::hip {

// The underlying types are fixed: a library may answer with unnamed values.
enum hipError_t : int {
  hipSuccess = 0,
  hipErrorOutOfMemory = 2,
  hipErrorECCNotCorrectable = 214,
  hipErrorNotReady = 600,
  hipErrorIllegalAddress = 700,
  hipErrorLaunchTimeOut = 702,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorContextIsDestroyed = 709,
  hipErrorAssert = 710,
  hipErrorLaunchFailure = 719
};
enum hipMemcpyKind : int {
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3
};
enum hipStreamCaptureMode : int { hipStreamCaptureModeThreadLocal = 1 };
enum : unsigned { hipStreamNonBlocking = 1, hipEventDisableTiming = 2 };

using hipDeviceptr_t = void *;
using hipEvent_t = struct HipEventHandle *;
using hipFunction_t = struct HipFunctionHandle *;
using hipGraphExec_t = struct HipGraphExecHandle *;
using hipGraphNode_t = struct HipGraphNodeHandle *;
using hipGraph_t = struct HipGraphHandle *;
using hipModule_t = struct HipModuleHandle *;
using hipStream_t = struct HipStreamHandle *;
using hipStreamCallback_t = void (*)(hipStream_t, hipError_t, void *);
struct hipUUID {
  char bytes[16];
};

// Keys of hipModuleLaunchKernel's last parameter, HIP_LAUNCH_PARAM_* there,
// which pass the arguments as one block of bytes.
inline void *const launchBufferPointer = reinterpret_cast<void *>(1);
inline void *const launchBufferSize = reinterpret_cast<void *>(2);
inline void *const launchEnd = reinterpret_cast<void *>(3);

// X(result, name, parameters...) of every function; a library without one of
// them is refused.
#define GRETA_HIP_FUNCTIONS(X)                                                 \
  X(hipError_t, hipDeviceGetUuid, hipUUID *, int)                              \
  X(hipError_t, hipEventCreate, hipEvent_t *)                                  \
  X(hipError_t, hipEventCreateWithFlags, hipEvent_t *, unsigned)               \
  X(hipError_t, hipEventDestroy, hipEvent_t)                                   \
  X(hipError_t, hipEventElapsedTime, float *, hipEvent_t, hipEvent_t)          \
  X(hipError_t, hipEventQuery, hipEvent_t)                                     \
  X(hipError_t, hipEventRecord, hipEvent_t, hipStream_t)                       \
  X(hipError_t, hipEventSynchronize, hipEvent_t)                               \
  X(hipError_t, hipFreeAsync, void *, hipStream_t)                             \
  X(hipError_t, hipGetDeviceCount, int *)                                      \
  X(const char *, hipGetErrorString, hipError_t)                               \
  X(hipError_t, hipGraphDestroy, hipGraph_t)                                   \
  X(hipError_t, hipGraphExecDestroy, hipGraphExec_t)                           \
  X(hipError_t, hipGraphInstantiate, hipGraphExec_t *, hipGraph_t,             \
    hipGraphNode_t *, char *, size_t)                                          \
  X(hipError_t, hipGraphLaunch, hipGraphExec_t, hipStream_t)                   \
  X(hipError_t, hipHostFree, void *)                                           \
  X(hipError_t, hipHostGetDevicePointer, void **, void *, unsigned)            \
  X(hipError_t, hipHostMalloc, void **, size_t, unsigned)                      \
  X(hipError_t, hipHostRegister, void *, size_t, unsigned)                     \
  X(hipError_t, hipHostUnregister, void *)                                     \
  X(hipError_t, hipInit, unsigned)                                             \
  X(hipError_t, hipMallocAsync, void **, size_t, hipStream_t)                  \
  X(hipError_t, hipMemGetInfo, size_t *, size_t *)                             \
  X(hipError_t, hipMemcpyAsync, void *, const void *, size_t, hipMemcpyKind,   \
    hipStream_t)                                                               \
  X(hipError_t, hipMemsetD32Async, hipDeviceptr_t, int, size_t, hipStream_t)   \
  X(hipError_t, hipModuleGetFunction, hipFunction_t *, hipModule_t,            \
    const char *)                                                              \
  X(hipError_t, hipModuleLaunchKernel, hipFunction_t, unsigned, unsigned,      \
    unsigned, unsigned, unsigned, unsigned, unsigned, hipStream_t, void **,    \
    void **)                                                                   \
  X(hipError_t, hipModuleLoadData, hipModule_t *, const void *)                \
  X(hipError_t, hipModuleUnload, hipModule_t)                                  \
  X(hipError_t, hipSetDevice, int)                                             \
  X(hipError_t, hipStreamAddCallback, hipStream_t, hipStreamCallback_t,        \
    void *, unsigned)                                                          \
  X(hipError_t, hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)      \
  X(hipError_t, hipStreamCreateWithFlags, hipStream_t *, unsigned)             \
  X(hipError_t, hipStreamDestroy, hipStream_t)                                 \
  X(hipError_t, hipStreamEndCapture, hipStream_t, hipGraph_t *)                \
  X(hipError_t, hipStreamQuery, hipStream_t)                                   \
  X(hipError_t, hipStreamSynchronize, hipStream_t)                             \
  X(hipError_t, hipStreamWaitEvent, hipStream_t, hipEvent_t, unsigned)

// X of functions that a library may lack.
#define GRETA_HIP_OPTIONAL_FUNCTIONS(X)                                        \
  X(hipError_t, hipDeviceCanAccessPeer, int *, int, int)                       \
  X(hipError_t, hipDeviceEnablePeerAccess, int, unsigned)                      \
  X(hipError_t, hipMemcpyPeerAsync, void *, int, const void *, int, size_t,    \
    hipStream_t)

} // namespace greta::rt::hip
#endif
