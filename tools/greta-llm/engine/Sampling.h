// Sampling.h: the choice of the next token, which is the device's, so that
// decode never waits for the host. In: how to choose, as options. Out: the
// words that the device reads, and the text of the function that chooses.
//
// The logits are changed first: those of the last tokens by the penalty of
// repeating, of what the sequence has generated so far by the penalties of
// frequency (for each time) and presence (once), of some by a bias; a mask
// leaves some tokens out.
//
// The choice. The allowed tokens, by their changed logits l, are those
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
#include <utility>
#include <vector>

namespace greta::llm {

struct Sampling {
  double temperature = 0.8; // 0: the likeliest token
  int64_t topK = 40;        // 0: all
  double topP = 0.95;
  double minP = 0.05;
  double repeatPenalty = 1;
  int64_t repeatWindow = 64; // tokens that the penalty looks back at
  double frequencyPenalty = 0, presencePenalty = 0;
  std::vector<std::pair<int32_t, float>> biases; // of tokens, each once
  bool isMasked = false; // only tokens of a mask, which is set for each step
  uint64_t seed = 0;

  bool counts() const { return frequencyPenalty != 0 || presencePenalty != 0; }
};

// The tokens of a sequence that its row remembers.
constexpr int64_t rememberedTokens = 256;
// The most biases of a sequence.
constexpr int64_t mostBiases = 512;
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
  Masked,    // 1: the mask counts
  BiasCount, //
  Frequency, // f32, as the next
  Presence,  // if it or Frequency is not 0, tokens are counted
  History,   // on: tokens by their position modulo rememberedTokens
  BiasTokens = History + rememberedTokens,
  BiasValues = BiasTokens + mostBiases, // f32
  SamplingWords = BiasValues + mostBiases
};

// 32-bit words of a mask: bit t % 32 of word t / 32 says whether token t may be
// chosen.
constexpr int64_t maskWords(int64_t vocabulary) {
  return (vocabulary + 31) / 32;
}

// The row of a sequence of the first `count` of these tokens that wants `left`
// more.
std::vector<int32_t> samplingRow(const Sampling &sampling, int64_t left,
                                 const std::vector<int32_t> &tokens,
                                 size_t count);

// The function `sample` and its kernels.
std::string writeSampling(int64_t vocabulary, int64_t pageSize);

} // namespace greta::llm
#endif
