//===- HipState.h - what the simulated HIP library keeps --------*- C++ -*-===//
//
// libgreta_hip_sim.so exports AMD's HIP API over the simulator. There is one
// device. Everything runs in the calling thread, in order: an asynchronous call
// has finished when it returns, which HIP allows. With CheckPrograms streams
// are compared (StreamOrder.h). While a stream is captured its operations are
// recorded into a graph instead, and calls that ROCm refuses then are refused
// here: they answer an error and invalidate the capture, whose end fails. The
// effect of a call on captures follows the mode of the capture and of the
// calling thread (hipThreadExchangeStreamCaptureMode).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_HIP_HIPSTATE_H
#define GRETA_SIM_HIP_HIPSTATE_H

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include "Hip/StreamOrder.h"
#include <chrono>
#include <functional>
#include <hip/hip_runtime_api.h>
#include <mutex>
#include <set>
#include <thread>

namespace greta::sim::hip {

/// Runs on the stream that it is given: for a graph's operations that is the
/// stream that launches the graph.
using Operation = std::function<hipError_t(hipStream_t)>;

struct Graph {
  std::vector<Operation> operations;
};

/// The capture that a stream is in.
struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  hipStreamCaptureMode mode;
  std::thread::id thread;
  bool valid = true;
  /// Returns whether calls of this thread that cannot be captured disturb it.
  bool disturbedHere() const;
};

/// Every API function enters this first.
struct State {
  std::recursive_mutex lock;
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Device>>
      retired; ///< modules may still refer to them
  unsigned checks = CheckAll;
  /// Belongs to the calling thread, as in HIP.
  static thread_local hipError_t last;
  static thread_local std::string message;
  /// The arguments of the next launch, if its caller describes them.
  static thread_local std::vector<ArgumentExtent> arguments;
  uint64_t allocated = 0;
  StreamOrder order;
  std::set<std::shared_ptr<Capture>> captures;

  static State &get();
  /// Creates the device of GRETA_SIM_CHIP (default gfx942) when none was
  /// chosen.
  hipError_t open();
  hipError_t choose(const char *chip);
  /// Remembers an error for hipGetLastError and its text for people.
  hipError_t report(hipError_t e, std::string text);
  hipError_t report(hipError_t e, llvm::Error text) {
    return report(e, llvm::toString(std::move(text)));
  }
  /// Refuses a call that may not come while this thread, or any in global mode,
  /// captures: allocating, freeing, waiting for another stream.
  hipError_t refuseWhileCapturing(const char *call);
  /// Refuses a call that waits for the whole device while any thread captures,
  /// in any mode.
  hipError_t refuseWhileAnyCaptures(const char *call, hipError_t e);
};

/// Runs the operation, or records it if the stream is being captured.
hipError_t submit(hipStream_t stream, Operation op);
/// Notes what an operation did; with CheckPrograms a race is an error.
hipError_t did(hipStream_t stream, StreamOrder::Operation op);
/// Notes that the host has seen all work of the stream done.
void finish(hipStream_t stream);

} // namespace greta::sim::hip

#define REFUSE(refusal)                                                        \
  if (hipError_t refused = refusal; refused != hipSuccess)                     \
  return refused

#define ENTER()                                                                \
  State &state = State::get();                                                 \
  std::lock_guard<std::recursive_mutex> guard(state.lock);                     \
  if (hipError_t opened = state.open(); opened != hipSuccess)                  \
  return opened

/// Describes an argument as the runtime does; element_bytes is 0 if it is no
/// tensor.
struct greta_hip_sim_argument {
  uint64_t address, bytes, element_bytes;
  const char *name;
};

/// HIP's opaque handles.
struct ihipStream_t : greta::sim::hip::StreamOrder::Stream {
  explicit ihipStream_t(bool isBlocking = true)
      : Stream(greta::sim::hip::State::get().order.makeStream()),
        isBlocking(isBlocking) {}
  std::shared_ptr<greta::sim::hip::Capture> capture;
  bool isBlocking; ///< in order with the null stream
  unsigned asked = 0;
};
struct ihipEvent_t {
  /// The capture that recorded it last.
  std::weak_ptr<greta::sim::hip::Capture> capture;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  greta::sim::hip::StreamOrder::Clock done; ///< when it was recorded
  unsigned asked = 0;
};

#endif
