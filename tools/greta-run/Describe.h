// Describe.h: what a manifest says about functions, and what a list of devices
// says to install, as text for people. Used by greta-run, greta-translate
// --report and Python.
#ifndef GRETA_RUN_DESCRIBE_H
#define GRETA_RUN_DESCRIBE_H

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace greta_run {

// {"a": 1, "b": 2} -> "a 1, b 2"
std::string flat(const nlohmann::json &Object);

// A function of a manifest with its variants and kernels; `Device`: what one
// made of them, by variant, or null.
std::string describeFunction(const nlohmann::json &F,
                             const nlohmann::json *Device);

// All functions of a manifest in JSON.
std::string describeManifest(const std::string &Text);

// The things to install or change, by the runtime's list of devices in JSON
// (Diagnose.cpp).
std::vector<std::string> diagnose(const std::string &Devices);

} // namespace greta_run
#endif
