//===- Fidelity.h - how far a simulated run is the hardware's ---*- C++ -*-===//
//
// In: a kernel that was launched, and what the launch asked for. Out: which of
// its results are exact, which are approximate, what the simulator has no model
// of, and where each number of the issue model is from. docs/internals/
// simulator.md has the sources themselves.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_FIDELITY_H
#define GRETA_SIM_FIDELITY_H

#include "greta/Sim/Simulator.h"

namespace greta::sim {

struct Fidelity {
  std::vector<std::string> exact, approximate, notModelled;
  /// Checks of Check that the launch made, by their names.
  std::vector<std::string> checked;
};
/// By the instructions that the kernel reaches; it was launched before.
Fidelity fidelityOf(const Kernel &kernel, const LaunchConfig &config);

/// A number that estimates are made of.
struct TimingNumber {
  const char *name, *unit;
  double value;
  std::string source;
};
std::vector<TimingNumber> timingNumbers(llvm::StringRef chip,
                                        const EstimateOptions &options);

} // namespace greta::sim

#endif
