//===- HipDevice.cpp - devices, memory and errors of the HIP API ----------===//
#include "HipState.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace greta::sim;
using namespace greta::sim::hip;

thread_local hipError_t State::last = hipSuccess;
thread_local std::string State::message;
thread_local std::vector<ArgumentExtent> State::arguments;

State &State::get() {
  static State *state = new State(); // outlives every static of the program
  return *state;
}

hipError_t State::report(hipError_t e, std::string text) {
  if (e != hipSuccess) {
    last = e;
    message = std::move(text);
  }
  return e;
}

hipError_t State::choose(const char *chip) {
  auto created = Device::create(chip ? chip : "");
  if (!created)
    return report(hipErrorNoDevice, created.takeError());
  if (device)
    retired.push_back(std::move(device));
  device = std::move(*created);
  if (const char *text = secure_getenv("GRETA_SIM_CHECKS"); text && *text) {
    auto parsed = parseChecks(text);
    if (!parsed)
      return report(hipErrorInvalidValue,
                    "GRETA_SIM_CHECKS: " + llvm::toString(parsed.takeError()));
    checks = *parsed;
  }
  const char *wanted = secure_getenv("GRETA_CHECK");
  if (wanted && *wanted && llvm::StringRef(wanted) != "0")
    checks |= CheckAll | CheckPrograms;
  return hipSuccess;
}

hipError_t State::open() {
  if (device)
    return hipSuccess;
  const char *chip = secure_getenv("GRETA_SIM_CHIP");
  return choose(chip ? chip : "gfx942");
}

static thread_local hipStreamCaptureMode threadMode =
    hipStreamCaptureModeGlobal;

bool Capture::disturbedHere() const {
  if (mode == hipStreamCaptureModeRelaxed ||
      threadMode == hipStreamCaptureModeRelaxed)
    return false;
  return thread == std::this_thread::get_id() ||
         (mode == hipStreamCaptureModeGlobal &&
          threadMode == hipStreamCaptureModeGlobal);
}

hipError_t State::refuseWhileCapturing(const char *call) {
  bool disturbed = false;
  for (const std::shared_ptr<Capture> &c : captures)
    if (c->disturbedHere()) {
      c->valid = false;
      disturbed = true;
    }
  return disturbed
             ? report(hipErrorStreamCaptureUnsupported,
                      std::string(call) + " while a stream is being captured")
             : hipSuccess;
}

hipError_t State::refuseWhileAnyCaptures(const char *call, hipError_t e) {
  for (const std::shared_ptr<Capture> &c : captures)
    c->valid = false;
  return captures.empty() ? hipSuccess
                          : report(e, std::string(call) +
                                          " while a stream is being captured");
}

#define REFUSE(refusal)                                                        \
  if (hipError_t refused = state.refusal; refused != hipSuccess)               \
  return refused

#define ENTER()                                                                \
  State &state = State::get();                                                 \
  std::lock_guard<std::recursive_mutex> guard(state.lock);                     \
  if (hipError_t opened = state.open(); opened != hipSuccess)                  \
  return opened

/// Whether [p, p+bytes) is host memory or inside one device allocation.
static hipError_t range(State &state, const void *p, size_t bytes,
                        const char *what) {
  auto [base, size] = state.device->allocationOf(p);
  if (!base)
    return hipSuccess; // host memory: not ours to know
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
  return submit(stream, [=] {
    if (bytes) {
      std::memmove(to, from, bytes);
      State::get().device->wrote(to, bytes, from);
    }
    return hipSuccess;
  });
}

static hipError_t fill(hipStream_t stream, void *to, uint32_t value,
                       unsigned width, size_t count) {
  State &state = State::get();
  if (count && !to)
    return state.report(hipErrorInvalidValue, "memset of a null pointer");
  if (hipError_t e = range(state, to, count * width, "memset"); e != hipSuccess)
    return e;
  return submit(stream, [=] {
    for (size_t k = 0; k < count; ++k)
      std::memcpy(static_cast<char *>(to) + k * width, &value, width);
    State::get().device->wrote(to, count * width);
    return hipSuccess;
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

/// Chooses the chip, before or between uses; 0 when the simulator has it.
int greta_hip_sim_set_chip(const char *chip) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> guard(state.lock);
  if (state.device && chip && state.device->chip() == chip)
    return 0;
  return state.choose(chip) == hipSuccess ? 0 : 1;
}
/// The names that it takes, with a space behind each.
const char *greta_hip_sim_chips(void) {
  static const std::string names = [] {
    std::string all;
    for (llvm::StringRef chip : simulatedChips())
      all += chip.str() + " ";
    return all;
  }();
  return names.c_str();
}
/// "all", "none" or a list, as GRETA_SIM_CHECKS; 0 when understood.
int greta_hip_sim_set_checks(const char *text) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> guard(state.lock);
  auto parsed = parseChecks(text ? text : "");
  if (!parsed) {
    (void)state.report(hipErrorInvalidValue, parsed.takeError());
    return 1;
  }
  state.checks = *parsed;
  return 0;
}
/// Whether launches want to know what their arguments are.
int greta_hip_sim_wants_arguments(void) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> guard(state.lock);
  return (state.checks & CheckPrograms) != 0;
}
/// Says what the explicit arguments of this thread's next launch point to.
void greta_hip_sim_set_arguments(const greta_hip_sim_argument *arguments,
                                 size_t count) {
  State::arguments.clear();
  for (const greta_hip_sim_argument &a : llvm::ArrayRef(arguments, count))
    State::arguments.push_back({a.address, a.bytes, a.element_bytes, a.name});
}
/// The text of this thread's latest error; valid until its next call.
const char *greta_hip_sim_last_error(void) { return State::message.c_str(); }

hipError_t hipInit(unsigned flags) {
  ENTER();
  return flags ? hipErrorInvalidValue : hipSuccess;
}
hipError_t hipDriverGetVersion(int *version) {
  ENTER();
  if (!version)
    return hipErrorInvalidValue;
  *version = HIP_VERSION;
  return hipSuccess;
}
hipError_t hipRuntimeGetVersion(int *version) {
  return hipDriverGetVersion(version);
}
hipError_t hipGetDeviceCount(int *count) {
  if (!count)
    return hipErrorInvalidValue;
  *count = 0;
  ENTER();
  *count = 1;
  return hipSuccess;
}
hipError_t hipGetDevice(int *device) {
  ENTER();
  if (!device)
    return hipErrorInvalidValue;
  *device = 0;
  return hipSuccess;
}
hipError_t hipSetDevice(int device) {
  ENTER();
  return device == 0 ? hipSuccess : hipErrorInvalidDevice;
}
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  ENTER();
  if (!device || ordinal)
    return hipErrorInvalidDevice;
  *device = 0;
  return hipSuccess;
}
hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device) {
  ENTER();
  if (!name || len <= 0 || device)
    return hipErrorInvalidValue;
  std::string text = "GRETA simulator of " + state.device->chip().str();
  std::strncpy(name, text.c_str(), size_t(len));
  name[len - 1] = 0;
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
  ENTER();
  if (!uuid || device)
    return hipErrorInvalidValue;
  // The chip's name: one of each kind.
  std::strncpy(uuid->bytes, state.device->chip().str().c_str(),
               sizeof(uuid->bytes));
  return hipSuccess;
}
hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int device) {
  ENTER();
  if (!prop || device)
    return hipErrorInvalidDevice;
  std::memset(static_cast<void *>(prop), 0, sizeof(*prop));
  const Device &d = *state.device;
  (void)hipDeviceGetName(prop->name, sizeof(prop->name), 0);
  std::strncpy(prop->gcnArchName, d.chip().str().c_str(),
               sizeof(prop->gcnArchName) - 1);
  prop->totalGlobalMem = size_t(16) << 30;
  prop->sharedMemPerBlock = d.ldsBytesPerWorkgroup();
  prop->maxSharedMemoryPerMultiProcessor = d.ldsBytesPerWorkgroup();
  prop->regsPerBlock = 65536;
  prop->warpSize = int(d.waveSize());
  prop->maxThreadsPerBlock = 1024;
  for (int k = 0; k < 3; ++k) {
    prop->maxThreadsDim[k] = 1024;
    prop->maxGridSize[k] = INT32_MAX;
  }
  prop->multiProcessorCount = int(d.computeUnits());
  prop->maxThreadsPerMultiProcessor = 2048;
  prop->major = d.chip().starts_with("gfx9")    ? 9
                : d.chip().starts_with("gfx12") ? 12
                                                : 11;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->memPitch = INT32_MAX;
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute,
                                 int device) {
  ENTER();
  if (!value || device)
    return hipErrorInvalidValue;
  hipDeviceProp_t p;
  (void)hipGetDeviceProperties(&p, 0);
  switch (attribute) {
  case hipDeviceAttributeWarpSize:
    *value = p.warpSize;
    break;
  case hipDeviceAttributeMaxThreadsPerBlock:
  case hipDeviceAttributeMaxBlockDimX:
  case hipDeviceAttributeMaxBlockDimY:
  case hipDeviceAttributeMaxBlockDimZ:
    *value = 1024;
    break;
  case hipDeviceAttributeMaxGridDimX:
  case hipDeviceAttributeMaxGridDimY:
  case hipDeviceAttributeMaxGridDimZ:
    *value = INT32_MAX;
    break;
  case hipDeviceAttributeMaxSharedMemoryPerBlock:
  case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
    *value = int(p.sharedMemPerBlock);
    break;
  case hipDeviceAttributeMultiprocessorCount:
  case hipDeviceAttributePhysicalMultiProcessorCount:
    *value = p.multiProcessorCount;
    break;
  case hipDeviceAttributeMaxThreadsPerMultiProcessor:
    *value = p.maxThreadsPerMultiProcessor;
    break;
  case hipDeviceAttributeMaxRegistersPerBlock:
    *value = p.regsPerBlock;
    break;
  case hipDeviceAttributeComputeCapabilityMajor:
    *value = p.major;
    break;
  case hipDeviceAttributeCanMapHostMemory:
  case hipDeviceAttributeConcurrentKernels:
  case hipDeviceAttributeCooperativeLaunch:
    *value = 1;
    break;
  case hipDeviceAttributeComputeCapabilityMinor:
  case hipDeviceAttributeManagedMemory:
  case hipDeviceAttributeIntegrated:
  case hipDeviceAttributeEccEnabled:
    *value = 0;
    break;
  default:
    return state.report(hipErrorInvalidValue,
                        "the simulator has no value for this attribute");
  }
  return hipSuccess;
}
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  ENTER();
  if (!bytes || device)
    return hipErrorInvalidValue;
  *bytes = size_t(16) << 30;
  return hipSuccess;
}
hipError_t hipDeviceSynchronize(void) {
  ENTER();
  REFUSE(refuseWhileAnyCaptures("hipDeviceSynchronize",
                                hipErrorStreamCaptureUnsupported));
  return hipSuccess;
}
hipError_t hipMemGetInfo(size_t *free, size_t *total) {
  ENTER();
  if (!free || !total)
    return hipErrorInvalidValue;
  *total = size_t(16) << 30;
  *free = state.allocated < *total ? *total - state.allocated : 0;
  return hipSuccess;
}

hipError_t hipMalloc(void **p, size_t bytes) {
  ENTER();
  REFUSE(refuseWhileCapturing("hipMalloc"));
  return allocate(p, bytes, /*isFresh=*/true);
}
hipError_t hipFree(void *p) {
  ENTER();
  REFUSE(refuseWhileCapturing("hipFree"));
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
  REFUSE(refuseWhileCapturing("hipHostMalloc"));
  return allocate(p, bytes);
}
hipError_t hipHostFree(void *p) {
  ENTER();
  REFUSE(refuseWhileCapturing("hipHostFree"));
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
  REFUSE(refuseWhileCapturing("hipHostRegister"));
  if (!p || !bytes)
    return hipErrorInvalidValue;
  if (llvm::Error e = state.device->registerHost(p, bytes))
    return state.report(hipErrorInvalidValue, std::move(e));
  return hipSuccess;
}
hipError_t hipHostUnregister(void *p) {
  ENTER();
  REFUSE(refuseWhileCapturing("hipHostUnregister"));
  if (llvm::Error e = state.device->unregisterHost(p))
    return state.report(hipErrorInvalidValue, std::move(e));
  return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind) {
  ENTER();
  REFUSE(refuseWhileAnyCaptures("hipMemcpy", hipErrorStreamCaptureImplicit));
  return copy(nullptr, to, from, bytes);
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                          hipMemcpyKind, hipStream_t stream) {
  ENTER();
  return copy(stream, to, from, bytes);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t bytes) {
  ENTER();
  REFUSE(
      refuseWhileAnyCaptures("hipMemcpyHtoD", hipErrorStreamCaptureImplicit));
  return copy(nullptr, to, from, bytes);
}
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
  ENTER();
  REFUSE(
      refuseWhileAnyCaptures("hipMemcpyDtoH", hipErrorStreamCaptureImplicit));
  return copy(nullptr, to, from, bytes);
}
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  ENTER();
  REFUSE(
      refuseWhileAnyCaptures("hipMemcpyDtoD", hipErrorStreamCaptureImplicit));
  return copy(nullptr, to, from, bytes);
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
  REFUSE(refuseWhileAnyCaptures("hipMemset", hipErrorStreamCaptureImplicit));
  return fill(nullptr, to, uint32_t(value), 1, bytes);
}
hipError_t hipMemsetAsync(void *to, int value, size_t bytes,
                          hipStream_t stream) {
  ENTER();
  return fill(stream, to, uint32_t(value), 1, bytes);
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  ENTER();
  REFUSE(refuseWhileAnyCaptures("hipMemsetD8", hipErrorStreamCaptureImplicit));
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
  REFUSE(refuseWhileAnyCaptures("hipMemsetD32", hipErrorStreamCaptureImplicit));
  return fill(nullptr, to, uint32_t(value), 4, count);
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                             hipStream_t stream) {
  ENTER();
  return fill(stream, to, uint32_t(value), 4, count);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  if (!mode || *mode < hipStreamCaptureModeGlobal ||
      *mode > hipStreamCaptureModeRelaxed)
    return hipErrorInvalidValue;
  std::swap(threadMode, *mode);
  return hipSuccess;
}

hipError_t hipGetLastError(void) {
  return std::exchange(State::last, hipSuccess);
}
hipError_t hipPeekAtLastError(void) { return State::last; }

#define ERRORS(X)                                                              \
  X(hipSuccess, "no error")                                                    \
  X(hipErrorInvalidValue, "invalid argument")                                  \
  X(hipErrorOutOfMemory, "out of memory")                                      \
  X(hipErrorNotInitialized, "initialization error")                            \
  X(hipErrorNoDevice, "no ROCm-capable device is detected")                    \
  X(hipErrorInvalidDevice, "invalid device ordinal")                           \
  X(hipErrorInvalidImage, "device kernel image is invalid")                    \
  X(hipErrorNotFound, "named symbol not found")                                \
  X(hipErrorInvalidHandle, "invalid resource handle")                          \
  X(hipErrorNotReady, "device not ready")                                      \
  X(hipErrorLaunchFailure, "unspecified launch failure")                       \
  X(hipErrorIllegalState, "operation would make the legal state inconsistent") \
  X(hipErrorStreamCaptureUnsupported,                                          \
    "operation not permitted when stream is capturing")                        \
  X(hipErrorStreamCaptureInvalidated,                                          \
    "operation failed due to a previous error during capture")                 \
  X(hipErrorStreamCaptureImplicit,                                             \
    "operation would make the legacy stream depend on a capturing stream")     \
  X(hipErrorCapturedEvent,                                                     \
    "operation not permitted on an event last recorded in a capturing stream") \
  X(hipErrorStreamCaptureWrongThread,                                          \
    "attempt to terminate a thread-local capture sequence from another "       \
    "thread")

const char *hipGetErrorName(hipError_t e) {
  switch (e) {
#define X(name, text)                                                          \
  case name:                                                                   \
    return #name;
    ERRORS(X)
#undef X
  default:
    return "hipErrorUnknown";
  }
}
const char *hipGetErrorString(hipError_t e) {
  switch (e) {
#define X(name, text)                                                          \
  case name:                                                                   \
    return text;
    ERRORS(X)
#undef X
  default:
    return "unknown error";
  }
}

} // extern "C"
