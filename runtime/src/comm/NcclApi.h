// NcclApi.h: what the runtime uses of NCCL's API, which RCCL has, too, and of
// CUDA's driver, declared here so that it builds without their headers. Names,
// values and parameters are theirs.
#ifndef GRETA_RUNTIME_COMM_NCCL_API_H
#define GRETA_RUNTIME_COMM_NCCL_API_H

#include <cstddef>
#include <cstdint>

namespace greta::rt::comm {

enum ncclResult_t : int { ncclSuccess = 0, ncclSystemError = 2 };
enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
enum ncclRedOp_t : int {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4
};
using ncclComm_t = struct NcclCommHandle *;
using ncclStream_t = void *; // cudaStream_t, hipStream_t
struct ncclUniqueId {
  char internal[128];
};

#define GRETA_NCCL_FUNCTIONS(X)                                                \
  X(ncclResult_t, ncclAllGather, const void *, void *, size_t, ncclDataType_t, \
    ncclComm_t, ncclStream_t)                                                  \
  X(ncclResult_t, ncclAllReduce, const void *, void *, size_t, ncclDataType_t, \
    ncclRedOp_t, ncclComm_t, ncclStream_t)                                     \
  X(ncclResult_t, ncclBroadcast, const void *, void *, size_t, ncclDataType_t, \
    int, ncclComm_t, ncclStream_t)                                             \
  X(ncclResult_t, ncclCommAbort, ncclComm_t)                                   \
  X(ncclResult_t, ncclCommGetAsyncError, ncclComm_t, ncclResult_t *)           \
  X(ncclResult_t, ncclCommInitRank, ncclComm_t *, int, ncclUniqueId, int)      \
  X(const char *, ncclGetErrorString, ncclResult_t)                            \
  X(ncclResult_t, ncclGetUniqueId, ncclUniqueId *)                             \
  X(ncclResult_t, ncclGetVersion, int *)                                       \
  X(ncclResult_t, ncclGroupEnd)                                                \
  X(ncclResult_t, ncclGroupStart)                                              \
  X(ncclResult_t, ncclRecv, void *, size_t, ncclDataType_t, int, ncclComm_t,   \
    ncclStream_t)                                                              \
  X(ncclResult_t, ncclReduceScatter, const void *, void *, size_t,             \
    ncclDataType_t, ncclRedOp_t, ncclComm_t, ncclStream_t)                     \
  X(ncclResult_t, ncclSend, const void *, size_t, ncclDataType_t, int,         \
    ncclComm_t, ncclStream_t)

enum CUresult : int { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_READY = 600 };
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CudaContextHandle *;
using CUstream = struct CudaStreamHandle *;
using CUevent = struct CudaEventHandle *;
using CUexternalMemory = struct CudaMemoryHandle *;
using CUexternalSemaphore = struct CudaSemaphoreHandle *;
struct CUuuid {
  uint8_t bytes[16];
};
enum : unsigned {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
  CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9,
  CUDA_EXTERNAL_MEMORY_DEDICATED = 1
};
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
  unsigned type;
  union {
    int fd;
    struct {
      void *handle;
      const void *name;
    } win32;
  } handle;
  unsigned long long size;
  unsigned flags;
  unsigned reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
  unsigned long long offset, size;
  unsigned flags;
  unsigned reserved[16];
};
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
  unsigned type;
  union {
    int fd;
    struct {
      void *handle;
      const void *name;
    } win32;
  } handle;
  unsigned flags;
  unsigned reserved[16];
};
// CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and _WAIT_PARAMS. Only the value of a
// timeline semaphore is read.
struct CudaSemaphoreParams {
  unsigned long long value;
  unsigned char rest[64];
  unsigned flags;
  unsigned reserved[16];
};
static_assert(sizeof(CudaSemaphoreParams) == 144);

// X(function, symbol, parameters...); all return CUresult.
#define GRETA_CUDA_FUNCTIONS(X)                                                \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, CUcontext *)                          \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, CUcontext)                          \
  X(cuDestroyExternalMemory, cuDestroyExternalMemory, CUexternalMemory)        \
  X(cuDestroyExternalSemaphore, cuDestroyExternalSemaphore,                    \
    CUexternalSemaphore)                                                       \
  X(cuDeviceGet, cuDeviceGet, CUdevice *, int)                                 \
  X(cuDeviceGetCount, cuDeviceGetCount, int *)                                 \
  X(cuDeviceGetUuid, cuDeviceGetUuid, CUuuid *, CUdevice)                      \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CUdevice)         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, CUcontext *, CUdevice) \
  X(cuEventCreate, cuEventCreate, CUevent *, unsigned)                         \
  X(cuEventDestroy, cuEventDestroy_v2, CUevent)                                \
  X(cuEventQuery, cuEventQuery, CUevent)                                       \
  X(cuEventRecord, cuEventRecord, CUevent, CUstream)                           \
  X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer,          \
    CUdeviceptr *, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *) \
  X(cuGetErrorString, cuGetErrorString, CUresult, const char **)               \
  X(cuImportExternalMemory, cuImportExternalMemory, CUexternalMemory *,        \
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)                                  \
  X(cuImportExternalSemaphore, cuImportExternalSemaphore,                      \
    CUexternalSemaphore *, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *)        \
  X(cuInit, cuInit, unsigned)                                                  \
  X(cuMemFree, cuMemFree_v2, CUdeviceptr)                                      \
  X(cuSignalExternalSemaphores, cuSignalExternalSemaphoresAsync,               \
    const CUexternalSemaphore *, const CudaSemaphoreParams *, unsigned,        \
    CUstream)                                                                  \
  X(cuStreamCreate, cuStreamCreate, CUstream *, unsigned)                      \
  X(cuStreamDestroy, cuStreamDestroy_v2, CUstream)                             \
  X(cuWaitExternalSemaphores, cuWaitExternalSemaphoresAsync,                   \
    const CUexternalSemaphore *, const CudaSemaphoreParams *, unsigned,        \
    CUstream)

} // namespace greta::rt::comm
#endif
