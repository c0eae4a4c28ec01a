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

// The other way to divide a model gives each device some of the layers: as many
// as its share of the free bytes where all are known (not 0), else as many as
// the others have, and at least one.
std::vector<int64_t> layersByMemory(int64_t layers,
                                    const std::vector<double> &free);

} // namespace greta::llm
#endif
