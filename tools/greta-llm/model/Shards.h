// Shards.h: a model's part on one of several devices that compute every layer
// together. In: the whole model, which of them it is, and how many there are.
// Out: a model of fewer heads, a narrower MLP and narrower experts, whose
// weights are parts of the whole one's, where they lie in its files.
#ifndef GRETA_LLM_MODEL_SHARDS_H
#define GRETA_LLM_MODEL_SHARDS_H

#include "model/Model.h"

namespace greta::llm {

// Fails where a model cannot be divided.
void checkDivisible(const Model &whole, int64_t count);

// The whole model outlives it.
Model shardOf(const Model &whole, int64_t number, int64_t count);

} // namespace greta::llm
#endif
