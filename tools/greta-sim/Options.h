//===- Options.h - what greta-sim was asked for -----------------*- C++ -*-===//
#ifndef GRETA_SIM_OPTIONS_H
#define GRETA_SIM_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta_sim {

struct Options {
  std::string input, kernel, check = "all", latency, scale;
  std::vector<uint32_t> grid = {1}, block = {1};
  std::vector<std::string> arguments; // in:FILE, i32:5, ...
  uint32_t lds = 0, threads = 0, cuWorkgroups = 0, computeUnits = 0;
  uint64_t trace = 0, budget = 2000000000;
  bool stats = false, estimate = false, oneWave = false, json = false;
};

/// The whole tool; the process's exit status.
int run(const Options &options);

} // namespace greta_sim
#endif
