// Soak.h: many launches of mixed functions with random sizes, offsets, buffers,
// graphs and streams. In: a device and TestPackage's package. Out: how many
// launches there were, or an exception that says which bytes are wrong. The
// host does the same arithmetic, and what is read back is compared with it.
#ifndef GRETA_TEST_RUNTIME_SOAK_H
#define GRETA_TEST_RUNTIME_SOAK_H

#include "greta_runtime.hpp"

#include <functional>

namespace greta_test {

struct SoakOptions {
  uint64_t Launches = 1000; // of each thread
  unsigned Threads = 2;     // with streams and buffers of their own
  unsigned Seed = 1;
  // Called with the launches of the first thread now and then.
  std::function<void(uint64_t)> Progress = [](uint64_t) {};
};

struct SoakReport {
  uint64_t Launches = 0, Replays = 0, Compared = 0; // compared: reads
};

SoakReport soak(const greta::Runtime &Runtime, const greta::Package &Package,
                const SoakOptions &Options);

} // namespace greta_test
#endif
