//===- Device.cpp - candidates on a device of the runtime -----------------===//
//
// With the sessions, the comparison and the benchmark of greta-run. On a
// virtual Radeon (scripts/virtual-radeon) times are the simulator's model: one
// launch tells, and its name says so.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Tune.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>

using namespace greta::tune;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// A device that has waited for longer, for a compiler, is slow at first.
static constexpr std::chrono::milliseconds idle(20);

struct Device::State {
  explicit State(const std::string &spec) : runtime(spec) {}
  bool isModel = false; // times are estimates
  bool isWhole = true;  // all workgroups run: there are results to compare
  greta::Runtime runtime;
  std::string function;
  std::vector<greta_run::Input> inputs;
  std::vector<std::vector<uint8_t>> data;
  std::vector<greta_run::HostTensor> reference;
  Clock::time_point busy; // until then, at least
};

Device::Device(std::unique_ptr<State> owned) : state(std::move(owned)) {
  json info = json::parse(state->runtime.info());
  deviceName = info.value("name", "");
  backendName = info.value("backend", "");
  archName = info.value("arch", "");
  units = info.value("compute_units", 0);
  state->isModel =
      backendName == "vulkan" && secure_getenv("GRETA_VIRTUAL_RADEON");
  if (state->isModel) {
    state->isWhole = !secure_getenv("GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY");
    deviceName = "estimate: " + deviceName + ", " + info.value("driver", "");
  }
}

bool Device::isModel() const { return state->isModel; }

Device::~Device() = default;

std::unique_ptr<Device> Device::open(const std::string &spec,
                                     std::string &why) {
  try {
    return std::unique_ptr<Device>(new Device(std::make_unique<State>(spec)));
  } catch (const std::exception &error) {
    why = error.what();
    return nullptr;
  }
}

std::string Device::choose(const std::string &bytes,
                           const std::string &function,
                           std::string &why) const {
  try {
    greta::Package package(bytes.data(), bytes.size());
    return state->runtime.load(package, function).variant();
  } catch (const std::exception &error) {
    why = error.what();
    return "";
  }
}

std::string Device::setProblem(const std::string &bytes,
                               const std::string &function,
                               const std::vector<std::string> &texts) {
  state->function = function;
  state->inputs.clear();
  state->data.clear();
  state->reference.clear();
  try {
    for (const std::string &text : texts) {
      state->inputs.push_back(greta_run::parseInput(text));
      state->data.push_back(state->inputs.back().Make());
    }
    if (bytes.empty() || !state->isWhole)
      return "";
    greta::Package package(bytes.data(), bytes.size());
    greta::Runtime host("host");
    greta_run::Session session(host, package, function, "", state->inputs);
    session.write(state->data);
    session.launch();
    state->reference = session.read();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

/// Between two events.
static double timeOfOneLaunch(greta::Runtime &runtime,
                              greta_run::Session &session) {
  greta::Event start = runtime.event(), end = runtime.event();
  session.Stream.record(start);
  session.launch();
  session.Stream.record(end);
  session.Stream.synchronize();
  return end.since(start);
}

Outcome Device::measure(const std::string &bytes, const std::string &variant,
                        const Options &options) {
  Outcome outcome;
  try {
    greta::Package package(bytes.data(), bytes.size());
    greta_run::Session session(state->runtime, package, state->function,
                               variant, state->inputs);
    if (state->isWhole)
      session.write(state->data);
    if (state->isModel)
      outcome.microseconds = timeOfOneLaunch(state->runtime, session);
    else
      session.launch();
    if (!state->isWhole)
      return outcome;
    std::vector<greta_run::HostTensor> got = session.read();
    if (state->reference.empty())
      state->reference = got;
    // A GEMM may round its sums to an operand's type, whatever the result's is.
    std::vector<std::string> types;
    for (const greta_run::Input &input : state->inputs)
      if (input.DType[0] != 'i' && input.DType[0] != 'u')
        types.push_back(input.DType);
    std::string why = greta_run::disagreement(got, state->reference, types);
    if (!why.empty())
      throw std::runtime_error(why);
    if (state->isModel)
      return outcome;
    greta_run::Options bench;
    bench.Reps = options.reps;
    bench.BatchMs = options.batchMs;
    bench.Chain = true; // as layers are
    if (Clock::now() - state->busy < idle)
      bench.WakeMs = 0;
    outcome.microseconds =
        greta_run::bench(session, state->data, bench).value("median_us", 0.0);
    state->busy = Clock::now();
    if (!(outcome.microseconds > 0))
      throw std::runtime_error("the device measures no time");
  } catch (const std::exception &error) {
    outcome.rejected = error.what();
  }
  return outcome;
}
