// Histogram.h: how often something took how long, as Prometheus has it. In:
// seconds, from any thread. Out: counts by their upper bounds.
#ifndef GRETA_LLM_HISTOGRAM_H
#define GRETA_LLM_HISTOGRAM_H

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

namespace greta::llm {

class Histogram {
public:
  void add(double seconds) {
    size_t i = 0;
    while (i < bounds.size() && seconds > bounds[i])
      ++i;
    ++counts[i];
    microseconds += static_cast<int64_t>(seconds * 1e6);
  }
  std::string text(const std::string &name, const std::string &help) const {
    std::string all =
        "# HELP " + name + " " + help + "\n# TYPE " + name + " histogram\n";
    int64_t sum = 0;
    char line[200];
    for (size_t i = 0; i < counts.size(); ++i) {
      sum += counts[i];
      char bound[32] = "+Inf";
      if (i < bounds.size())
        snprintf(bound, sizeof(bound), "%g", bounds[i]);
      snprintf(line, sizeof(line), "%s_bucket{le=\"%s\"} %lld\n", name.c_str(),
               bound, static_cast<long long>(sum));
      all += line;
    }
    snprintf(line, sizeof(line), "%s_sum %.6f\n%s_count %lld\n", name.c_str(),
             static_cast<double>(microseconds) * 1e-6, name.c_str(),
             static_cast<long long>(sum));
    return all + line;
  }

private:
  static constexpr std::array<double, 15> bounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
      0.5,   1,      2.5,   5,    10,    30,   60};
  std::array<std::atomic<int64_t>, bounds.size() + 1> counts{};
  std::atomic<int64_t> microseconds{0};
};

} // namespace greta::llm
#endif
