// Sampling.h: the choice of the next token, which is the device's, so that
// decode never waits for the host. In: how to choose, as options. Out: the
// words that the device reads, and the text of the function that chooses.
//
// The choice. The allowed tokens, by their logits l after the penalty, are
// those
// - that have fewer than top_k likelier ones,
// - that have at least min_p of the likeliest one's probability,
// - whose likelier ones have less than top_p of all probability together;
// the likeliest is always allowed, and equals are allowed together. The token
// is the allowed one with the largest l / temperature + g, the first of equals.
// g is Gumbel noise, a function of the seed, the token's position in its
// sequence and the token: so a token is drawn with the probability that softmax
// gives it among the allowed ones, whatever is computed in which order.
// test/llm/sampling.py defines the same in float64.
#ifndef GRETA_LLM_SAMPLING_H
#define GRETA_LLM_SAMPLING_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::llm {

struct Sampling {
  double temperature = 0.8; // 0: the likeliest token
  int64_t topK = 40;        // 0: all
  double topP = 0.95;
  double minP = 0.05;
  double repeatPenalty = 1;
  int64_t repeatWindow = 64; // tokens that the penalty looks back at
  uint64_t seed = 0;
};

// The tokens of a sequence that its row remembers.
constexpr int64_t rememberedTokens = 256;
// The largest vocabulary that can be sampled from.
constexpr int64_t largestVocabulary = 256 * 1024;

// The device's state of a sequence that generates, beside the next step's
// input: a row of 32-bit words.
enum SamplingWord {
  Left,        // tokens that are still wanted; 0: nothing is chosen
  Position,    // of the last token
  TopK,        // at least 1
  Window,      // tokens that the penalty looks back at
  SeedLow,     //
  SeedHigh,    //
  Inverse,     // of the temperature; from here on f32
  Noise,       // its factor: 0 for the likeliest token, else 1
  MinDistance, // temperature times ln min_p
  TopP,        // above 1: all
  Penalty,     //
  InversePenalty,
  History = 16, // on: tokens by their position modulo rememberedTokens
  SamplingWords = History + rememberedTokens
};

// The row of a sequence of these tokens that wants `left` more.
std::vector<int32_t> samplingRow(const Sampling &sampling, int64_t left,
                                 const std::vector<int32_t> &tokens);

// The function `sample` and its kernels.
std::string writeSampling(int64_t vocabulary, int64_t pageSize);

} // namespace greta::llm
#endif
