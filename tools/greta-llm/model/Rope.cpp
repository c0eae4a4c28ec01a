// Rope.cpp: see Rope.h.
#include "model/Rope.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {

std::vector<double> Rope::turns(int64_t context) const {
  const std::vector<double> &some =
      context > trained && !longFactors.empty() ? longFactors : factors;
  std::vector<double> result;
  for (size_t i = 0; i < some.size(); ++i)
    result.push_back(std::pow(base, -static_cast<double>(i) /
                                        static_cast<double>(some.size())) /
                     some[i]);
  return result;
}

Rope::Tables Rope::tables(int64_t positions, int64_t pairs) const {
  std::vector<double> angles = turns(positions);
  Tables made;
  for (int64_t position = 0; position < positions; ++position)
    for (size_t i = 0; i < static_cast<size_t>(pairs); ++i) {
      bool isTurned = i < angles.size();
      double angle = isTurned ? static_cast<double>(position) * angles[i] : 0;
      double size = isTurned ? scale : 1;
      made.cosines.push_back(static_cast<float>(size * std::cos(angle)));
      made.sines.push_back(static_cast<float>(size * std::sin(angle)));
    }
  return made;
}

void stretchBase(std::vector<double> &factors, double stretch) {
  for (size_t i = 1; i < factors.size(); ++i)
    factors[i] *=
        std::pow(stretch, static_cast<double>(i) /
                              static_cast<double>(factors.size() - 1));
}

void scale(Rope &rope, const Llama3Scaling &how) {
  size_t pairs = rope.factors.size();
  for (size_t i = 0; i < pairs; ++i) {
    double wave = 2 * M_PI *
                  std::pow(rope.base,
                           static_cast<double>(i) / static_cast<double>(pairs));
    double smooth = (how.trained / wave - how.low) / (how.high - how.low);
    smooth = std::min(1.0, std::max(0.0, smooth));
    rope.factors[i] = 1 / ((1 - smooth) / how.factor + smooth);
  }
}

void scale(Rope &rope, const YarnScaling &how) {
  double pairs = static_cast<double>(rope.factors.size());
  // The pair that turns so many times in the trained context.
  auto pairOf = [&](double times) {
    return pairs * std::log(how.trained / (times * 2 * M_PI)) /
           std::log(rope.base);
  };
  double low = pairOf(how.fast), high = pairOf(how.slow);
  if (how.rounds) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, 2 * pairs - 1);
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < rope.factors.size(); ++i) {
    double ramp = (static_cast<double>(i) - low) / (high - low);
    ramp = std::min(1.0, std::max(0.0, ramp));
    rope.factors[i] = 1 / (ramp / how.factor + 1 - ramp);
  }
}

double yarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

} // namespace greta::llm
