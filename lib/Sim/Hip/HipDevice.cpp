//===- HipDevice.cpp - devices and errors of the HIP API ------------------===//
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
  order.finishAll();
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

extern "C" {

/// Chooses the chip, before or between uses; returns 0 if there is such a chip.
int greta_hip_sim_set_chip(const char *chip) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> guard(state.lock);
  if (state.device && chip && state.device->chip() == chip)
    return 0;
  return state.choose(chip) == hipSuccess ? 0 : 1;
}
/// Returns the names that it takes, with a space behind each.
const char *greta_hip_sim_chips(void) {
  static const std::string names = [] {
    std::string all;
    for (llvm::StringRef chip : simulatedChips())
      all += chip.str() + " ";
    return all;
  }();
  return names.c_str();
}
/// Takes "all", "none" or a list, as GRETA_SIM_CHECKS; 0 when understood.
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
/// Returns whether launches want to know what their arguments are.
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
/// Returns this thread's latest error; the text is valid until its next call.
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
  // The UUID is the chip's name, as there is one device of each kind.
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
  REFUSE(state.refuseWhileAnyCaptures("hipDeviceSynchronize",
                                      hipErrorStreamCaptureUnsupported));
  state.order.finishAll();
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
