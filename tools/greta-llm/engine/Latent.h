// Latent.h: the middle of a layer whose attention is over latents (DeepSeek's
// MLA). In: sizes. Out: a function that puts queries together, and the latents
// into the cache, as text of greta_tile.
//
// The cache has one row for a token: its normed latent, and behind it the part
// of its key that rope turns. Queries are brought into the space of latents, so
// this row is the key, and its latent the value, of all heads. A layer is
//
//   latentC_T     queries of latents, their parts with rope, and the tokens'
//   own
//                 latents and keys with rope
//   latent_join   both parts as one query for each head; rows of the cache, in
//                 place
//   layerC_T      attention, values out of latents, and the rest (Graph.h)
#ifndef GRETA_LLM_LATENT_H
#define GRETA_LLM_LATENT_H

#include "model/Model.h"

#include <cstdint>
#include <string>

namespace greta::llm {

std::string writeLatent(const Config &config, int64_t page,
                        const std::string &element);

// The norms of latents have it whatever the model's others have: DeepSeek's
// code, and transformers', do not hand rms_norm_eps to them.
constexpr double epsilonOfLatents = 1e-6;

// A tensor between these functions, of so many tokens; no shape: it is none.
std::vector<int64_t> latentShape(const Config &config, const std::string &name,
                                 int64_t tokens);
// The results of latentC_T, in order.
constexpr const char *latentResults[] = {"latent_q", "latent_q_rope",
                                         "latent_kv", "latent_k_rope"};

} // namespace greta::llm
#endif
