//===- HipState.h - what the simulated HIP library keeps --------*- C++ -*-===//
//
// libgreta_hip_sim.so exports AMD's HIP API over the simulator. There is one
// device. Everything runs in the calling thread, in order: an asynchronous call
// has finished when it returns, which HIP allows. While a stream is captured
// its operations are recorded into a graph instead.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_HIP_HIPSTATE_H
#define GRETA_SIM_HIP_HIPSTATE_H

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include "greta/Sim/Simulator.h"
#include <chrono>
#include <functional>
#include <hip/hip_runtime_api.h>
#include <mutex>

namespace greta::sim::hip {

using Operation = std::function<hipError_t()>;

struct Graph {
  std::vector<Operation> operations;
};

/// Entered at the start of every API function.
struct State {
  std::recursive_mutex lock;
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Device>>
      retired; ///< modules may still refer to them
  unsigned checks = CheckAll;
  hipError_t last = hipSuccess;
  std::string message;
  uint64_t allocated = 0;

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
};

/// Runs now, or records when the stream is being captured.
hipError_t submit(hipStream_t stream, Operation op);

} // namespace greta::sim::hip

/// HIP's opaque handles.
struct ihipStream_t {
  greta::sim::hip::Graph *capture = nullptr;
};
struct ihipEvent_t {
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
};

#endif
