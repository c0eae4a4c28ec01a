// Bench.h: what `bench` measures, and where the time of a measurement goes.
#ifndef GRETA_LLM_BENCH_H
#define GRETA_LLM_BENCH_H

#include "Options.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace greta::llm {

class Engine;

// `batch` sequences, each of `depth` tokens before it begins.
struct Row {
  int64_t prompt, generated, depth, batch;
  std::vector<double> seconds;

  std::string test() const {
    std::string name = prompt ? "pp" + std::to_string(prompt)
                              : "tg" + std::to_string(generated);
    if (depth)
      name += " @ d" + std::to_string(depth);
    return batch > 1 ? name + " x" + std::to_string(batch) : name;
  }
  // The tokens that are appended to the sequence at its depth.
  int64_t appended() const { return std::max<int64_t>(prompt, 1); }
  int64_t context() const { return depth + appended() + generated + 1; }
  double tokens() const {
    return static_cast<double>((prompt + generated) * batch);
  }
};

// Prints for each kernel, by the times of its launches in microseconds: how
// often, how long, its share, the bytes it moves and the operations it
// computes, and how near that is to what the
// device copies, or to --bandwidth, and, if there is one, to --peak.
void printProfile(Engine &engine, const Row &row,
                  const std::vector<std::pair<std::string, double>> &times,
                  const Options &options);

} // namespace greta::llm
#endif
