//===- Estimate.cpp - candidates by the simulator's model -----------------===//

#include "Tune.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;
using namespace greta::sim;
using greta::tune::Launch;

/// Arguments as a kernel gets them: each at its natural alignment. A buffer
/// holds one word everywhere, mostly 0: hardly a time depends on it.
static Expected<std::vector<uint8_t>>
packArguments(Device &device, const Launch &launch,
              std::vector<void *> &buffers) {
  std::vector<uint8_t> packed;
  auto append = [&](const void *value, size_t bytes) {
    packed.resize(alignTo(packed.size(), bytes) + bytes);
    std::memcpy(packed.data() + packed.size() - bytes, value, bytes);
  };
  for (const Launch::Argument &argument : launch.arguments) {
    if (!argument.isBuffer) {
      int32_t value = static_cast<int32_t>(argument.value);
      append(&value, 4);
      continue;
    }
    // A kernel may read up to the next multiple of 16 bytes.
    uint64_t bytes = alignTo(std::max<uint64_t>(argument.bytes, 1), 16);
    void *buffer = device.allocate(bytes);
    if (!buffer)
      return createStringError("out of memory: a buffer of " + Twine(bytes) +
                               " bytes");
    buffers.push_back(buffer);
    std::fill_n(static_cast<uint32_t *>(buffer), bytes / 4,
                static_cast<uint32_t>(argument.value));
    append(&buffer, 8);
  }
  return packed;
}

static Error launchEstimate(Device &device, const Kernel &kernel,
                            const Launch &launch, std::vector<void *> &buffers,
                            CycleEstimate &cycles) {
  auto packed = packArguments(device, launch, buffers);
  if (!packed)
    return packed.takeError();
  auto dim = [](const std::array<int64_t, 3> &from) {
    return Dim3{uint32_t(from[0]), uint32_t(from[1]), uint32_t(from[2])};
  };
  LaunchConfig config;
  config.grid = dim(launch.grid);
  config.block = dim(launch.block);
  config.kernarg = *packed;
  config.checks = CheckNone;
  config.estimate = &cycles;
  config.estimateOnly = true;
  return device.launch(kernel, config);
}

static Expected<double> estimateOne(Device &device, const Launch &launch) {
  for (int64_t extent : launch.grid) {
    if (extent == 0)
      return 0.0;
    if (!isUInt<32>(extent))
      return createStringError("a grid of " + Twine(extent) + " workgroups");
  }
  auto module = device.load(arrayRefFromStringRef(launch.object));
  if (!module)
    return module.takeError();
  const Kernel *kernel = (*module)->find(launch.entry);
  if (!kernel)
    return createStringError("no kernel '" + launch.entry + "'");
  std::vector<void *> buffers;
  CycleEstimate cycles;
  Error failed = launchEstimate(device, *kernel, launch, buffers, cycles);
  for (void *buffer : buffers)
    failed = joinErrors(std::move(failed), device.free(buffer));
  if (failed)
    return std::move(failed);
  return cycles.microseconds;
}

greta::tune::Outcome
greta::tune::estimate(const std::string &chip,
                      const std::vector<Launch> &launches) {
  Outcome outcome;
  auto device = sim::Device::create(chip);
  if (!device) {
    outcome.rejected = toString(device.takeError());
    return outcome;
  }
  // Between two kernels that depend on each other 3 to 5 microseconds pass.
  constexpr double between = 4;
  for (const Launch &launch : launches) {
    outcome.microseconds += &launch == launches.data() ? 0 : between;
    Expected<double> time = estimateOne(**device, launch);
    if (!time) {
      outcome.rejected = toString(time.takeError());
      return outcome;
    }
    outcome.microseconds += *time;
  }
  if (outcome.microseconds <= 0)
    outcome.rejected = "nothing is launched";
  return outcome;
}
