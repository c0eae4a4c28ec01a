//===- HipModule.cpp - modules, launches, streams, events and graphs ------===//
#include "Code/CodeObject.h"
#include "HipState.h"
#include <cstring>
#include <set>
#include <sys/uio.h>
#include <unistd.h>

using namespace greta::sim;
using namespace greta::sim::hip;

struct ihipModule_t {
  std::shared_ptr<Module> module;
};

namespace {
/// Keeps the live handles, so that a stale or foreign one is an error.
struct Handles {
  std::set<void *> modules, streams, events, graphs, execs;
  ihipStream_t nullStream;
};
Handles &handles() {
  static Handles *h = new Handles();
  return *h;
}
template <class T> bool known(const std::set<void *> &set, T *p) {
  return set.count(const_cast<void *>(static_cast<const void *>(p)));
}
Graph *graphOf(void *handle) { return static_cast<Graph *>(handle); }
} // namespace

static hipError_t invalid(const char *what) {
  return State::get().report(hipErrorInvalidHandle,
                             std::string(what) + ": invalid handle");
}
static bool validStream(hipStream_t s) {
  return !s || known(handles().streams, s);
}

static ihipStream_t &streamOf(hipStream_t s) {
  return s ? *s : handles().nullStream;
}

/// Returns the clock of work that the stream gets now. The null stream waits
/// for all blocking streams, and these wait for it.
static StreamOrder::Clock &doneBefore(hipStream_t s) {
  const StreamOrder &order = State::get().order;
  ihipStream_t &stream = streamOf(s);
  if (!s) {
    for (void *other : handles().streams)
      if (auto *its = static_cast<ihipStream_t *>(other); its->isBlocking)
        order.join(stream.done, its->done);
  } else if (stream.isBlocking) {
    order.join(stream.done, handles().nullStream.done);
  }
  return stream.done;
}

hipError_t greta::sim::hip::did(hipStream_t s, StreamOrder::Operation op) {
  State &state = State::get();
  if (!(state.checks & CheckPrograms))
    return hipSuccess;
  doneBefore(s);
  std::string race = state.order.add(streamOf(s), std::move(op), *state.device);
  return race.empty() ? hipSuccess
                      : state.report(hipErrorLaunchFailure, std::move(race));
}

void greta::sim::hip::finish(hipStream_t s) {
  State::get().order.finish(doneBefore(s));
}

hipError_t greta::sim::hip::submit(hipStream_t stream, Operation op) {
  if (!validStream(stream))
    return invalid("stream");
  if (stream && stream->capture) {
    if (!stream->capture->valid)
      return State::get().report(hipErrorStreamCaptureInvalidated,
                                 "an earlier call invalidated the capture");
    stream->capture->graph->operations.push_back(std::move(op));
    return hipSuccess;
  }
  return op(stream);
}

/// Returns whether a query has to be repeated: seven of eight, while the host
/// has not seen some work done. If all were done at once, each query of the
/// runtime before it releases memory would order the work in front of it, and
/// no race would be found.
static bool takesTime(const StreamOrder::Clock &done, unsigned &asked) {
  return !State::get().order.isFinished(done) && ++asked % 8;
}

/// Copies memory that may not all be mapped; returns false if it is not.
static bool copyOf(const void *from, llvm::MutableArrayRef<uint8_t> to) {
  iovec local{to.data(), to.size()},
      remote{const_cast<void *>(from), to.size()};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
         ssize_t(to.size());
}

/// Copies an image. HIP passes no length, so the image's own headers tell it,
/// and may point outside the memory of this process.
static llvm::Expected<std::vector<uint8_t>> copyImage(const void *image) {
  std::vector<uint8_t> bytes(ObjectHeaderBytes);
  if (!copyOf(image, bytes))
    return llvm::createStringError(
        "the module is shorter than an ELF header, or not readable");
  llvm::Expected<uint64_t> size = objectBytes(bytes);
  if (!size)
    return size.takeError();
  bytes.resize(*size);
  if (!copyOf(image, bytes))
    return llvm::createStringError(
        "the module is shorter than the %llu bytes its ELF header asks for",
        static_cast<unsigned long long>(*size));
  return bytes;
}

static hipError_t launch(const Kernel *kernel, const LaunchConfig &shape,
                         std::vector<uint8_t> bytes, hipStream_t stream) {
  return submit(stream, [=, extents = std::exchange(State::arguments, {})](
                            hipStream_t on) {
    State &state = State::get();
    LaunchConfig config = shape;
    config.kernarg = bytes;
    config.extents = extents;
    config.checks = state.checks;
    std::vector<std::string> warnings;
    config.warnings = &warnings;
    MemoryUse touched;
    config.touched = &touched;
    llvm::Error e = state.device->launch(*kernel, config);
    for (const std::string &text : warnings)
      llvm::errs() << "simulator: warning: " << text << "\n";
    if (e)
      return state.report(hipErrorLaunchFailure, std::move(e));
    return did(on,
               {"'" + kernel->info().name + "'", std::move(touched), extents});
  });
}

extern "C" {

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  ENTER();
  if (!module || !image)
    return state.report(hipErrorInvalidValue, "null module or image");
  auto bytes = copyImage(image);
  if (!bytes)
    return state.report(hipErrorInvalidImage, bytes.takeError());
  auto loaded = state.device->load(*bytes);
  if (!loaded)
    return state.report(hipErrorInvalidImage, loaded.takeError());
  *module = new ihipModule_t{std::move(*loaded)};
  handles().modules.insert(*module);
  return hipSuccess;
}
hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned,
                               hipJitOption *, void **) {
  return hipModuleLoadData(module, image);
}
hipError_t hipModuleUnload(hipModule_t module) {
  ENTER();
  REFUSE(state.refuseWhileCapturing("hipModuleUnload"));
  if (!handles().modules.erase(module))
    return invalid("hipModuleUnload");
  delete module;
  return hipSuccess;
}
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module,
                                const char *name) {
  ENTER();
  if (!function || !name)
    return hipErrorInvalidValue;
  if (!known(handles().modules, module))
    return invalid("hipModuleGetFunction");
  const Kernel *k = module->module->find(name);
  if (!k)
    return state.report(hipErrorNotFound,
                        std::string("the module has no kernel '") + name + "'");
  *function = reinterpret_cast<hipFunction_t>(const_cast<Kernel *>(k));
  return hipSuccess;
}
hipError_t hipModuleGetGlobal(hipDeviceptr_t *p, size_t *bytes,
                              hipModule_t module, const char *name) {
  ENTER();
  if (!name || !known(handles().modules, module))
    return invalid("hipModuleGetGlobal");
  auto symbol = module->module->global(name);
  if (!symbol)
    return state.report(hipErrorNotFound, symbol.takeError());
  if (p)
    *p = symbol->first;
  if (bytes)
    *bytes = symbol->second;
  return hipSuccess;
}
hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute,
                               hipFunction_t function) {
  ENTER();
  if (!value || !function)
    return hipErrorInvalidValue;
  const KernelInfo &info = reinterpret_cast<const Kernel *>(function)->info();
  switch (attribute) {
  case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = int(info.maxWorkgroupSize);
    break;
  case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = int(info.ldsBytes);
    break;
  case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = int(info.scratchBytes);
    break;
  case HIP_FUNC_ATTRIBUTE_NUM_REGS:
    *value = int(info.vgprs);
    break;
  default:
    *value = 0;
  }
  return hipSuccess;
}

/// Packs the values of `params` to the offsets that the code object gives.
static hipError_t packed(const KernelInfo &info, void **params, State &state,
                         std::vector<uint8_t> &bytes) {
  bytes.resize(info.explicitKernargBytes);
  size_t n = 0;
  for (const KernelArgument &a : info.args) {
    if (llvm::StringRef(a.kind).starts_with("hidden_"))
      continue;
    if (!params || !params[n])
      return state.report(hipErrorInvalidValue,
                          "launch with too few kernelParams");
    std::memcpy(bytes.data() + a.offset, params[n++], a.size);
  }
  return hipSuccess;
}

/// Headers before ROCm 5.5 lack this function.
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx,
                                            unsigned gy, unsigned gz,
                                            unsigned bx, unsigned by,
                                            unsigned bz, unsigned lds,
                                            hipStream_t stream, void **params) {
  ENTER();
  if (!function)
    return state.report(hipErrorInvalidHandle, "launch of a null function");
  const Kernel *kernel = reinterpret_cast<const Kernel *>(function);
  std::vector<uint8_t> bytes;
  if (hipError_t e = packed(kernel->info(), params, state, bytes);
      e != hipSuccess)
    return e;
  LaunchConfig config;
  config.grid = {gx, gy, gz};
  config.block = {bx, by, bz};
  config.dynamicLds = lds;
  config.resident = true;
  return launch(kernel, config, std::move(bytes), stream);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx,
                                 unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds,
                                 hipStream_t stream, void **params,
                                 void **extra) {
  ENTER();
  if (!function)
    return state.report(hipErrorInvalidHandle, "launch of a null function");
  const Kernel *kernel = reinterpret_cast<const Kernel *>(function);
  const KernelInfo &info = kernel->info();
  std::vector<uint8_t> bytes;
  if (params && extra)
    return state.report(hipErrorInvalidValue,
                        "launch with both kernelParams and extra");
  if (extra) {
    const void *data = nullptr;
    size_t size = 0;
    for (void **e = extra; *e != HIP_LAUNCH_PARAM_END; e += 2) {
      if (*e == HIP_LAUNCH_PARAM_BUFFER_POINTER)
        data = e[1];
      else if (*e == HIP_LAUNCH_PARAM_BUFFER_SIZE)
        size = *static_cast<size_t *>(e[1]);
      else
        return state.report(hipErrorInvalidValue,
                            "launch with a malformed extra list");
    }
    if (size && !data)
      return state.report(hipErrorInvalidValue,
                          "launch without its argument buffer");
    const uint8_t *b = static_cast<const uint8_t *>(data);
    bytes.assign(b, b + size);
  } else {
    if (hipError_t e = packed(info, params, state, bytes); e != hipSuccess)
      return e;
  }
  LaunchConfig config;
  config.grid = {gx, gy, gz};
  config.block = {bx, by, bz};
  config.dynamicLds = lds;
  return launch(kernel, config, std::move(bytes), stream);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  ENTER();
  if (!stream)
    return hipErrorInvalidValue;
  *stream = new ihipStream_t(!(flags & hipStreamNonBlocking));
  handles().streams.insert(*stream);
  return hipSuccess;
}
hipError_t hipStreamCreate(hipStream_t *stream) {
  return hipStreamCreateWithFlags(stream, 0);
}
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags,
                                       int) {
  return hipStreamCreateWithFlags(stream, flags);
}
hipError_t hipStreamDestroy(hipStream_t stream) {
  ENTER();
  if (!handles().streams.erase(stream))
    return invalid("hipStreamDestroy");
  state.captures.erase(stream->capture);
  delete stream;
  return hipSuccess;
}
static hipError_t mayWait(hipStream_t stream) {
  State &state = State::get();
  if (!validStream(stream))
    return invalid("hipStreamSynchronize");
  if (!stream)
    return hipSuccess;
  if (stream->capture) {
    stream->capture->valid = false;
    return state.report(hipErrorStreamCaptureUnsupported,
                        "the stream is being captured");
  }
  return state.refuseWhileCapturing("hipStreamSynchronize");
}
hipError_t hipStreamSynchronize(hipStream_t stream) {
  ENTER();
  REFUSE(mayWait(stream));
  finish(stream);
  return hipSuccess;
}
hipError_t hipStreamQuery(hipStream_t stream) {
  ENTER();
  REFUSE(mayWait(stream));
  if (takesTime(doneBefore(stream), streamOf(stream).asked))
    return hipErrorNotReady;
  finish(stream);
  return hipSuccess;
}
hipError_t hipStreamAddCallback(hipStream_t stream,
                                hipStreamCallback_t callback, void *data,
                                unsigned flags) {
  // The lock is free, so other threads go on while the function runs.
  hipError_t before = hipStreamSynchronize(stream);
  if (before != hipSuccess || !callback || flags)
    return before != hipSuccess ? before : invalid("hipStreamAddCallback");
  callback(stream, hipSuccess, data);
  return hipSuccess;
}
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  ENTER();
  if (!validStream(stream) || !known(handles().events, event))
    return invalid("hipStreamWaitEvent");
  return submit(stream, [event](hipStream_t on) {
    if (known(handles().events, event))
      State::get().order.join(streamOf(on).done, event->done);
    return hipSuccess;
  });
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned) {
  ENTER();
  if (!event)
    return hipErrorInvalidValue;
  *event = new ihipEvent_t();
  handles().events.insert(*event);
  return hipSuccess;
}
hipError_t hipEventCreate(hipEvent_t *event) {
  return hipEventCreateWithFlags(event, 0);
}
hipError_t hipEventDestroy(hipEvent_t event) {
  ENTER();
  if (!handles().events.erase(event))
    return invalid("hipEventDestroy");
  delete event;
  return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  ENTER();
  if (!known(handles().events, event))
    return invalid("hipEventRecord");
  event->capture.reset();
  if (stream && known(handles().streams, stream))
    event->capture = stream->capture;
  return submit(stream, [event](hipStream_t on) {
    if (!known(handles().events, event))
      return invalid("hipEventRecord in a graph");
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    event->done = doneBefore(on);
    return hipSuccess;
  });
}
static hipError_t mayWait(hipEvent_t event) {
  State &state = State::get();
  if (!known(handles().events, event))
    return invalid("hipEventSynchronize");
  if (std::shared_ptr<Capture> capture = event->capture.lock()) {
    capture->valid = false;
    return state.report(hipErrorCapturedEvent,
                        "the event was recorded in a capture");
  }
  return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t event) {
  ENTER();
  REFUSE(mayWait(event));
  state.order.finish(event->done);
  return hipSuccess;
}
hipError_t hipEventQuery(hipEvent_t event) {
  ENTER();
  REFUSE(mayWait(event));
  if (takesTime(event->done, event->asked))
    return hipErrorNotReady;
  state.order.finish(event->done);
  return hipSuccess;
}
hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop) {
  ENTER();
  if (!ms || !known(handles().events, start) || !known(handles().events, stop))
    return invalid("hipEventElapsedTime");
  if (!start->recorded || !stop->recorded)
    return state.report(hipErrorInvalidHandle, "the events were not recorded");
  state.order.finish(stop->done);
  *ms = std::chrono::duration<float, std::milli>(stop->time - start->time)
            .count();
  return hipSuccess;
}

hipError_t hipStreamBeginCapture(hipStream_t stream,
                                 hipStreamCaptureMode mode) {
  ENTER();
  if (!stream || !validStream(stream))
    return invalid("hipStreamBeginCapture");
  if (stream->capture)
    return state.report(hipErrorIllegalState,
                        "the stream is already being captured");
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  state.captures.insert(stream->capture);
  return hipSuccess;
}
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
  ENTER();
  if (!stream || !graph || !validStream(stream))
    return invalid("hipStreamEndCapture");
  if (!stream->capture)
    return state.report(hipErrorIllegalState,
                        "the stream is not being captured");
  if (stream->capture->mode != hipStreamCaptureModeRelaxed &&
      stream->capture->thread != std::this_thread::get_id())
    return state.report(hipErrorStreamCaptureWrongThread,
                        "the capture was begun by another thread");
  std::shared_ptr<Capture> capture = std::move(stream->capture);
  stream->capture.reset();
  state.captures.erase(capture);
  *graph = nullptr;
  if (!capture->valid)
    return state.report(hipErrorStreamCaptureInvalidated,
                        "an earlier call invalidated the capture");
  Graph *captured = capture->graph.release();
  handles().graphs.insert(captured);
  *graph = reinterpret_cast<hipGraph_t>(captured);
  return hipSuccess;
}
hipError_t hipStreamIsCapturing(hipStream_t stream,
                                hipStreamCaptureStatus *status) {
  ENTER();
  if (!status || !validStream(stream))
    return invalid("hipStreamIsCapturing");
  *status = !stream || !stream->capture ? hipStreamCaptureStatusNone
            : stream->capture->valid    ? hipStreamCaptureStatusActive
                                        : hipStreamCaptureStatusInvalidated;
  return hipSuccess;
}
hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph,
                               hipGraphNode_t *, char *, size_t) {
  ENTER();
  if (!exec || !known(handles().graphs, graph))
    return invalid("hipGraphInstantiate");
  Graph *copy = new Graph(*graphOf(graph));
  handles().execs.insert(copy);
  *exec = reinterpret_cast<hipGraphExec_t>(copy);
  return hipSuccess;
}
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  ENTER();
  if (!known(handles().execs, exec))
    return invalid("hipGraphLaunch");
  Graph *graph = graphOf(exec);
  return submit(stream, [graph](hipStream_t on) {
    if (!known(handles().execs, graph))
      return invalid("hipGraphLaunch");
    for (const Operation &op : graph->operations)
      if (hipError_t e = op(on); e != hipSuccess)
        return e;
    return hipSuccess;
  });
}
hipError_t hipGraphDestroy(hipGraph_t graph) {
  ENTER();
  if (!handles().graphs.erase(graph))
    return invalid("hipGraphDestroy");
  delete graphOf(graph);
  return hipSuccess;
}
hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  ENTER();
  if (!handles().execs.erase(exec))
    return invalid("hipGraphExecDestroy");
  delete graphOf(exec);
  return hipSuccess;
}

} // extern "C"
