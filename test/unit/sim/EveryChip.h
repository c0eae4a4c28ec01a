//===- EveryChip.h - what a test of all chips runs on -----------*- C++ -*-===//
#ifndef GRETA_TEST_SIM_EVERYCHIP_H
#define GRETA_TEST_SIM_EVERYCHIP_H

#include "greta/Sim/Simulator.h"
#include <vector>

namespace greta::sim::test {

/// The names of the simulated chips, as GoogleTest's parameters take them.
inline std::vector<const char *> everyChip() {
  std::vector<const char *> names;
  for (llvm::StringRef name : simulatedChips())
    names.push_back(name.data());
  return names;
}

} // namespace greta::sim::test

#endif
