// Sampler.h: the next token. In: logits, what came before, and how to choose.
// Out: a token, the same one for the same seed on every machine that gives the
// same logits.
#ifndef GRETA_LLM_SAMPLER_H
#define GRETA_LLM_SAMPLER_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace greta::llm {

struct Sampling {
  double temperature = 0.8; // 0: the most likely one
  int64_t topK = 40;        // 0: all
  double topP = 0.95;
  double minP = 0.05;
  double repeatPenalty = 1;
  int64_t repeatWindow = 64; // tokens that the penalty looks back at
  uint64_t seed = 0;
};

class Sampler {
public:
  explicit Sampler(const Sampling &sampling)
      : sampling(sampling), state(sampling.seed) {}
  int32_t choose(const float *logits, size_t vocabulary,
                 const std::vector<int32_t> &before);

private:
  double random();

  Sampling sampling;
  uint64_t state;
  std::vector<std::pair<float, int32_t>> candidates;
};

} // namespace greta::llm
#endif
