//===- Profiler.h - when kernels ran, for torch.profiler ------------------===//
//
// In: launches in a stream. Out: a kernel in torch.profiler's trace for each.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Devices.h"

namespace greta::torch_device {

/// Returns whether torch.profiler asks for the kernels of a stream now. A graph
/// that is being recorded takes no events, so its kernels are not asked for.
bool isProfiled(Device &device, int64_t stream);

/// Times a launch in a stream for torch.profiler: it is made before the launch
/// and finished behind it.
class LaunchTimer {
public:
  LaunchTimer(const std::string &kernel, Device &device, int64_t number,
              Stream &stream);
  void finish();

private:
  const std::string &kernel;
  Device &device;
  int64_t number;
  Stream &stream;
  Event begin;
};

/// Adds the profiler; does nothing in torch 2.11, which has no way to add one.
void registerProfiler();

} // namespace greta::torch_device
