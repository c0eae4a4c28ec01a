// Sampler.cpp: see Sampler.h.
#include "Sampler.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {

/// SplitMix64, in [0, 1).
double Sampler::random() {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

int32_t Sampler::choose(const float *logits, size_t vocabulary,
                        const std::vector<int32_t> &before) {
  candidates.clear();
  for (size_t i = 0; i < vocabulary; ++i)
    candidates.push_back({logits[i], static_cast<int32_t>(i)});
  if (sampling.repeatPenalty != 1) {
    size_t window =
        static_cast<size_t>(std::max<int64_t>(sampling.repeatWindow, 0));
    size_t first = before.size() - std::min(before.size(), window);
    std::vector<int32_t> seen(before.begin() + static_cast<long>(first),
                              before.end());
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (int32_t token : seen) {
      float &logit = candidates[static_cast<size_t>(token)].first;
      double penalty = sampling.repeatPenalty;
      logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
    }
  }
  // The first of equals; a NaN is less than everything.
  auto better = [](const std::pair<float, int32_t> &a,
                   const std::pair<float, int32_t> &b) {
    if (a.first != b.first && !std::isnan(a.first) && !std::isnan(b.first))
      return a.first > b.first;
    if (std::isnan(a.first) != std::isnan(b.first))
      return std::isnan(b.first);
    return a.second < b.second;
  };
  if (sampling.temperature <= 0)
    return std::min_element(candidates.begin(), candidates.end(), better)
        ->second;
  size_t count = candidates.size();
  if (sampling.topK > 0)
    count = std::min(count, static_cast<size_t>(sampling.topK));
  std::partial_sort(candidates.begin(),
                    candidates.begin() + static_cast<long>(count),
                    candidates.end(), better);
  // Weights at the temperature, relative to the largest.
  std::vector<double> weights(count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    double distance = static_cast<double>(candidates[i].first) -
                      static_cast<double>(candidates[0].first);
    weights[i] = std::exp(distance / sampling.temperature);
    if (!(weights[i] >= sampling.minP)) {
      count = i;
      break;
    }
    sum += weights[i];
  }
  double kept = 0;
  for (size_t i = 0; i < count; ++i) {
    kept += weights[i];
    if (kept >= sampling.topP * sum) {
      count = i + 1;
      break;
    }
  }
  double at = random() * kept;
  for (size_t i = 0; i < count; ++i) {
    at -= weights[i];
    if (at < 0)
      return candidates[i].second;
  }
  return candidates[count ? count - 1 : 0].second;
}

} // namespace greta::llm
