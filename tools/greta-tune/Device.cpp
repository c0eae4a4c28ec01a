//===- Device.cpp - candidates on a device of the runtime -----------------===//
//
// With the sessions, the comparison and the benchmark of greta-run.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Tune.h"

#include <stdexcept>

using namespace greta::tune;
using nlohmann::json;

struct Device::State {
  explicit State(const std::string &spec) : runtime(spec) {}
  greta::Runtime runtime;
  std::vector<greta_run::HostTensor> reference;
};

Device::Device(std::unique_ptr<State> owned) : state(std::move(owned)) {
  json info = json::parse(state->runtime.info());
  deviceName = info.value("name", "");
  backendName = info.value("backend", "");
  archName = info.value("arch", "");
}

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

static std::vector<greta_run::Input>
parse(const std::vector<std::string> &texts) {
  std::vector<greta_run::Input> inputs;
  for (const std::string &text : texts)
    inputs.push_back(greta_run::parseInput(text));
  return inputs;
}

static std::vector<std::vector<uint8_t>>
makeData(const std::vector<greta_run::Input> &inputs) {
  std::vector<std::vector<uint8_t>> data;
  for (const greta_run::Input &input : inputs)
    data.push_back(input.Make());
  return data;
}

std::string Device::setReference(const std::string &bytes,
                                 const std::string &function,
                                 const std::vector<std::string> &texts) {
  state->reference.clear();
  if (bytes.empty())
    return "";
  try {
    greta::Package package(bytes.data(), bytes.size());
    std::vector<greta_run::Input> inputs = parse(texts);
    greta::Runtime host("host");
    greta_run::Session session(host, package, function, "", inputs);
    session.write(makeData(inputs));
    session.launch();
    state->reference = session.read();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

Outcome Device::measure(const std::string &bytes, const std::string &function,
                        const std::string &variant,
                        const std::vector<std::string> &texts, unsigned reps) {
  Outcome outcome;
  try {
    greta::Package package(bytes.data(), bytes.size());
    std::vector<greta_run::Input> inputs = parse(texts);
    std::vector<std::vector<uint8_t>> data = makeData(inputs);
    greta_run::Session session(state->runtime, package, function, variant,
                               inputs);
    session.write(data);
    session.launch();
    std::vector<greta_run::HostTensor> got = session.read();
    greta_run::Options options;
    options.Reps = reps;
    if (state->reference.empty())
      state->reference = got;
    for (size_t i = 0; i < got.size(); ++i) {
      const greta_run::HostTensor &want = state->reference[i];
      std::string why = greta_run::disagreement(
          got[i], want, greta_run::compare(got[i], want, 0, 0), options);
      if (!why.empty())
        throw std::runtime_error("wrong result r" + std::to_string(i) + ": " +
                                 why);
    }
    outcome.microseconds =
        greta_run::bench(session, data, options).value("median_us", 0.0);
    if (!(outcome.microseconds > 0))
      throw std::runtime_error("the device measures no time");
  } catch (const std::exception &error) {
    outcome.rejected = error.what();
  }
  return outcome;
}
