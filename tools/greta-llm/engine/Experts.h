// Experts.h: a mixture of experts around its matrix products. In: how many
// experts there are, and how many a token has. Out: functions and kernels, as
// text of greta_tile, that choose each token's experts, order tokens by expert,
// and add up what experts say. The host waits for none of them.
#ifndef GRETA_LLM_EXPERTS_H
#define GRETA_LLM_EXPERTS_H

#include "model/Model.h"

#include <cstdint>
#include <string>

namespace greta::llm {

// A pair is a token and one of its experts; token t has those from t * used on.
// A layer's own functions leave the residual stream x, what the MLP reads and
// the router's logits; then follow
//
//   experts_order   the largest of the softmax of each token's logits; pairs in
//                   the order of experts, then of tokens -> weights and places
//                   of pairs, where each expert's rows begin, and for each pair
//                   a row of what the MLP reads, at its place; where experts
//                   have biases, also a row of each of them
//   experts_order_1 the same of one token, in one launch in place of three
//   expertsC_T      the experts' matrix products (Graph.h)
//   experts_add     x, in place, and for each token its pairs' rows times their
//                   weights
//
// experts_order and experts_add take any number of tokens. `element` is of what
// the MLP reads.
std::string writeExperts(const Config &config, const std::string &element);

// The experts' weights that have biases, and how wide these are.
struct ExpertBias {
  std::string weight;
  int64_t width;
};
std::vector<ExpertBias> expertBiases(const Config &config);
// The name of the bias's rows, one for each pair.
std::string biasOfPairs(const std::string &weight);

} // namespace greta::llm
#endif
