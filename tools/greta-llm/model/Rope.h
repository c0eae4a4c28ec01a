// Rope.h: how fast rope turns a head's pairs, by the kinds of scaling that
// models have for contexts longer than those they were trained on.
#ifndef GRETA_LLM_ROPE_H
#define GRETA_LLM_ROPE_H

#include <cstdint>
#include <vector>

namespace greta::llm {

// Pair i of the first factors.size() turns by
// base^(-i / factors.size()) / factors[i] a token, the others do not turn.
struct Rope {
  double base = 10000;
  std::vector<double> factors;
  // In place of `factors`, in contexts of more tokens than `trained`.
  std::vector<double> longFactors;
  int64_t trained = 0;
  double scale = 1; // of what is turned

  // The angle of each pair from one token to the next.
  std::vector<double> turns(int64_t context) const;

  // The cosines and sines of positions 0 to `positions` - 1, [positions,
  // pairs]. Pairs that do not turn are multiplied by 1.
  struct Tables {
    std::vector<float> cosines, sines;
  };
  Tables tables(int64_t positions, int64_t pairs) const;
};

// Factors of pairs as of a base with which the last pair turns `stretch` times
// more slowly and the first one as before.
void stretchBase(std::vector<double> &factors, double stretch);

// Llama 3: short waves stay, waves of more than trained / low tokens are
// stretched, between them it is a mixture.
struct Llama3Scaling {
  double factor, low, high, trained;
};
void scale(Rope &rope, const Llama3Scaling &how);

// YaRN: pairs that turn more than `fast` times in the trained context stay,
// those that turn fewer than `slow` times are stretched, and it is a ramp
// between them. Source: B. Peng et al., "YaRN: Efficient Context Window
// Extension of Large Language Models", 2023, arXiv:2309.00071.
struct YarnScaling {
  double factor, trained, fast = 32, slow = 1;
  bool rounds = true; // the ends of the ramp to whole pairs
};
void scale(Rope &rope, const YarnScaling &how);
// YaRN multiplies queries and keys by this factor if a model gives none.
double yarnMagnitude(double factor, double multiplier = 1);

} // namespace greta::llm
#endif
