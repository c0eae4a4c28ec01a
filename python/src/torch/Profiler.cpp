//===- Profiler.cpp - when kernels ran, for torch.profiler ----------------===//
//
// In: launches of kernels while a session of Kineto's, the library behind
// torch.profiler, is on. Out: a kernel of its trace for each, linked to the
// operator that launched it:
//
//   zero of a device: its first launch of the session is waited for by the host
//   begin, end of a kernel = host's time at zero + device's time since zero
//
// Kernels of graphs and copies between host and device are in no trace.
//
//===----------------------------------------------------------------------===//

#include "Profiler.h"

#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define USE_KINETO
#include <chrono>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

using namespace greta;
using namespace greta::torch_device;

namespace {

struct TimedLaunch {
  std::string kernel;
  c10::DeviceIndex device;
  int64_t stream;
  uint64_t correlation; // of the operator; 0: none
  Event begin, end;
};

struct DeviceZero {
  Event event;
  int64_t nanoseconds; // of the host's clock, since 1970
};

/// Keeps the launches of the current session.
struct KernelTrace {
  std::atomic<bool> isOn{false};
  std::mutex lock;
  std::vector<TimedLaunch> launches;
  std::map<c10::DeviceIndex, DeviceZero> zeros;
};

KernelTrace &seen = *new KernelTrace;            // threads may outlive globals
thread_local std::vector<uint64_t> correlations; // of operators, inner last

void setZero(Device &device, Stream &stream) {
  std::lock_guard<std::mutex> guard(seen.lock);
  if (seen.zeros.count(device.index))
    return;
  Event event = device.runtime().event();
  stream.record(event);
  event.synchronize();
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  seen.zeros.emplace(device.index, DeviceZero{std::move(event), nanoseconds});
}

class KernelSession final : public libkineto::IActivityProfilerSession {
public:
  void start() override {
    std::lock_guard<std::mutex> guard(seen.lock);
    seen.launches.clear();
    seen.zeros.clear();
    seen.isOn = true;
  }
  void stop() override { seen.isOn = false; }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger &logger) override {
    processTrace(logger, nullptr, 0, INT64_MAX);
  }
  void processTrace(libkineto::ActivityLogger &logger,
                    libkineto::getLinkedActivityCallback linked, int64_t from,
                    int64_t to) override;
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return nullptr;
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    return {};
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer);
  }
  void pushCorrelationId(uint64_t id) override { correlations.push_back(id); }
  void popCorrelationId() override {
    if (!correlations.empty())
      correlations.pop_back();
  }

private:
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer;
};

void KernelSession::processTrace(libkineto::ActivityLogger &logger,
                                 libkineto::getLinkedActivityCallback linked,
                                 int64_t from, int64_t to) {
  std::lock_guard<std::mutex> guard(seen.lock);
  buffer = std::make_unique<libkineto::CpuTraceBuffer>();
  buffer->span = libkineto::TraceSpan(from, to, "rdna");
  for (TimedLaunch &one : seen.launches) {
    auto found = seen.zeros.find(one.device);
    if (found == seen.zeros.end())
      continue; // another thread began it in an earlier session
    const DeviceZero &zero = found->second;
    one.end.synchronize();
    auto timeOf = [&](const Event &event) {
      return zero.nanoseconds + int64_t(event.since(zero.event) * 1e3);
    };
    buffer->emplace_activity(
        buffer->span, libkineto::ActivityType::CONCURRENT_KERNEL, one.kernel);
    libkineto::GenericTraceActivity &activity = *buffer->activities.back();
    activity.startTime = timeOf(one.begin);
    activity.endTime = timeOf(one.end);
    activity.id = one.correlation;
    activity.device = one.device;
    activity.resource = one.stream;
    if (linked && one.correlation)
      activity.linked = linked(one.correlation);
    activity.log(logger);
  }
  buffer->gpuOpCount = seen.launches.size();
  seen.launches.clear();
  seen.zeros.clear();
}

class KernelProfiler final : public libkineto::IActivityProfiler {
public:
  const std::string &name() const override { return called; }
  const std::set<libkineto::ActivityType> &
  availableActivities() const override {
    return types;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession>
  configure(const std::set<libkineto::ActivityType> &asked,
            const libkineto::Config &) override {
    return asked.count(libkineto::ActivityType::CONCURRENT_KERNEL)
               ? std::make_unique<KernelSession>()
               : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession>
  configure(int64_t, int64_t, const std::set<libkineto::ActivityType> &asked,
            const libkineto::Config &config) override {
    return configure(asked, config);
  }

private:
  std::string called = "rdna";
  std::set<libkineto::ActivityType> types = {
      libkineto::ActivityType::CONCURRENT_KERNEL};
};

} // namespace

bool torch_device::isProfiled(Device &device, int64_t stream) {
  return seen.isOn && !device.isCapturing(stream);
}

LaunchTimer::LaunchTimer(const std::string &kernel, Device &device,
                         int64_t number, Stream &stream)
    : kernel(kernel), device(device), number(number), stream(stream),
      begin(device.runtime().event()) {
  setZero(device, stream);
  stream.record(begin);
}

void LaunchTimer::finish() {
  Event end = device.runtime().event();
  stream.record(end);
  std::lock_guard<std::mutex> guard(seen.lock);
  seen.launches.push_back({kernel, device.index, number,
                           correlations.empty() ? 0 : correlations.back(),
                           std::move(begin), std::move(end)});
}

void torch_device::registerProfiler() {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance()
      .registerFactory([] { return std::make_unique<KernelProfiler>(); });
}

#else

using namespace greta::torch_device;

bool torch_device::isProfiled(Device &, int64_t) { return false; }
LaunchTimer::LaunchTimer(const std::string &kernel, Device &device,
                         int64_t number, Stream &stream)
    : kernel(kernel), device(device), number(number), stream(stream),
      begin(device.runtime().event()) {}
void LaunchTimer::finish() {}
void torch_device::registerProfiler() {}

#endif
