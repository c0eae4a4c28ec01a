// KvCache.h: how a device holds keys and values. In: a model and what was asked
// for with --kv-cache. Out: the types and sizes of the caches, or why the model
// has none such.
//
//   full   the type of activations
//   q8_0   numbers of 8 bits, and for each 32 of a head a scale in f16
//   fp8    e4m3, without scales: what is beyond 448 becomes 448
#ifndef GRETA_LLM_KV_CACHE_H
#define GRETA_LLM_KV_CACHE_H

#include "model/Model.h"

#include <string>

namespace greta::llm {

enum class KvCache { Full, Q8_0, Fp8 };

const char *nameOf(KvCache cache);
// The format that --kv-cache names, which takes no other names; "" is Full.
KvCache kvCacheNamed(const std::string &name);
// The format of a package's caches, by the facts in its manifest.
KvCache kvCacheOf(const std::string &manifest, const std::string &packagePath);

// Fails where a model's keys and values cannot be held so.
void checkKvCache(const Model &model, KvCache cache);

// Numbers that share a scale; 0: there are no scales.
int64_t groupOf(KvCache cache);
// The type of a cache's numbers in functions.
std::string elementOf(KvCache cache, const std::string &activations);
// These count the bytes of a head's numbers of one token, without their scales
// and with them.
size_t numberBytes(const Config &config, KvCache cache, Element activations);
size_t rowBytes(const Config &config, KvCache cache, Element activations);

} // namespace greta::llm
#endif
