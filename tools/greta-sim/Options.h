//===- Options.h - what greta-sim was asked for -----------------*- C++ -*-===//
#ifndef GRETA_SIM_OPTIONS_H
#define GRETA_SIM_OPTIONS_H

#include "greta/Sim/Simulator.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace greta_sim {

struct Options {
  std::string input, kernel, check = "all", latency, scale, timeline;
  std::vector<uint32_t> grid = {1}, block = {1};
  std::vector<std::string> arguments; // in:FILE, i32:5, ...
  uint32_t lds = 0, threads = 0, cuWorkgroups = 0, computeUnits = 0;
  uint64_t trace = 0, budget = 2000000000;
  bool stats = false, estimate = false, oneWave = false, json = false;
};

/// The whole tool; the process's exit status.
int run(const Options &options);

/// Draws the replay of the code object into a file.
llvm::Error writeTimeline(llvm::StringRef path,
                          const greta::sim::Timeline &timeline,
                          llvm::MemoryBufferRef code);

} // namespace greta_sim
#endif
