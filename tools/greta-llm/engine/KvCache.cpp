// KvCache.cpp: see KvCache.h.
#include "engine/KvCache.h"
#include "engine/Graph.h"
#include "model/Json.h"

namespace greta::llm {

constexpr KvCache all[] = {KvCache::Full, KvCache::Q8_0, KvCache::Fp8};

const char *nameOf(KvCache cache) {
  switch (cache) {
  case KvCache::Full:
    return "full";
  case KvCache::Q8_0:
    return "q8_0";
  case KvCache::Fp8:
    break;
  }
  return "fp8";
}

KvCache kvCacheNamed(const std::string &name) {
  for (KvCache cache : all)
    if (name == nameOf(cache))
      return cache;
  return KvCache::Full;
}

KvCache kvCacheOf(const std::string &manifest, const std::string &packagePath) {
  nlohmann::json parsed = parseJson(manifest, packagePath);
  auto facts = parsed.find("metadata");
  if (facts == parsed.end() || !facts->is_object())
    return KvCache::Full;
  auto fact = facts->find(kvCacheFact);
  if (fact == facts->end() || !fact->is_string())
    return KvCache::Full;
  for (KvCache cache : all)
    if (*fact == nameOf(cache))
      return cache;
  fail(packagePath + ": has a KV cache in " + fact->get<std::string>() +
       ", which this greta-llm does not know; run greta-llm compile");
}

void checkKvCache(const Model &model, KvCache cache) {
  if (cache == KvCache::Full)
    return;
  const Config &c = model.config;
  std::string asked = std::string("--kv-cache=") + nameOf(cache) + ": ";
  if (c.has(Bidirectional))
    fail(asked + model.path +
         " is a model of embeddings, which has no KV "
         "cache");
  if (c.has(LatentKeys))
    fail(asked + model.path +
         " keeps latents in place of keys and values, "
         "which stay in full");
  if (int64_t group = groupOf(cache); group && c.headSize % group)
    fail(asked + "heads of " + std::to_string(c.headSize) +
         " numbers are no whole groups of " + std::to_string(group) +
         "; take fp8 or full");
}

int64_t groupOf(KvCache cache) { return cache == KvCache::Q8_0 ? 32 : 0; }

std::string elementOf(KvCache cache, const std::string &activations) {
  return cache == KvCache::Q8_0  ? "i8"
         : cache == KvCache::Fp8 ? "f8E4M3FN"
                                 : activations;
}

size_t numberBytes(const Config &config, KvCache cache, Element activations) {
  return static_cast<size_t>(config.headSize) *
         (cache == KvCache::Full ? bytesOf(activations) : 1);
}

size_t rowBytes(const Config &config, KvCache cache, Element activations) {
  int64_t group = groupOf(cache);
  return numberBytes(config, cache, activations) +
         (group ? static_cast<size_t>(config.headSize / group) * 2 : 0);
}

} // namespace greta::llm
