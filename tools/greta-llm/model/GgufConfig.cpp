// GgufConfig.cpp: see GgufConfig.h.
#include "model/GgufConfig.h"
#include "model/Description.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {
namespace {

using nlohmann::json;

// A number of the architecture's by its name, or what it is without.
class Numbers {
public:
  Numbers(const GgufMetadata &data, std::string name)
      : data(data), name(std::move(name)) {}

  bool has(const char *key) const { return data.find(name + key); }
  int64_t size(const char *key) const { return data.size(name + key); }
  int64_t size(const char *key, int64_t otherwise) const {
    return has(key) ? size(key) : otherwise;
  }
  double number(const char *key) const { return data.number(name + key); }
  double number(const char *key, double otherwise) const {
    return data.number(name + key, otherwise);
  }
  bool flag(const char *key, bool otherwise) const {
    return data.flag(name + key, otherwise);
  }
  std::string text(const char *key) const { return data.text(name + key); }
  const GgufMetadata &data;
  const std::string name;
};

void readSizes(const Numbers &numbers, Config &c) {
  c.layers = numbers.size(".block_count");
  c.width = numbers.size(".embedding_length");
  c.hidden = numbers.size(".feed_forward_length");
  c.context = numbers.size(".context_length");
  c.heads = numbers.size(".attention.head_count");
  c.keyHeads = numbers.size(".attention.head_count_kv", c.heads);
  c.headSize = numbers.size(".attention.key_length",
                            c.width / std::max<int64_t>(c.heads, 1));
  c.rotated = numbers.size(".rope.dimension_count", c.headSize);
  if (c.has(Experts)) {
    c.mixture.count = numbers.size(".expert_count");
    c.mixture.used = numbers.size(".expert_used_count");
    c.mixture.normalises =
        numbers.flag(".expert_weights_norm", !c.has(SharesOfAll));
    c.mixture.hidden = numbers.size(".expert_feed_forward_length", c.hidden);
    if (c.has(SharedExperts))
      c.mixture.shared =
          numbers.size(".expert_shared_feed_forward_length",
                       widthOfShared(numbers.size(".expert_shared_count", 0),
                                     c.mixture.hidden));
    if (double scale = numbers.number(".expert_weights_scale", 0))
      c.mixture.scale = scale;
    c.mixture.groups = numbers.size(".expert_group_count", 1);
    c.mixture.usedGroups = numbers.size(".expert_group_used_count", 1);
  }
  if (c.has(LatentKeys)) {
    Latent &l = c.latent;
    l.rank = numbers.size(".attention.kv_lora_rank");
    l.queryRank = numbers.size(".attention.q_lora_rank", 0);
    l.rope = c.rotated;
    l.plain = numbers.size(".attention.key_length_mla",
                           numbers.size(".attention.key_length")) -
              l.rope;
    l.value = numbers.size(".attention.value_length_mla",
                           numbers.size(".attention.value_length"));
    c.keyHeads = 1;
    c.headSize = l.rank + l.rope;
  }
  const std::pair<const char *, bool> same[] = {
      {".attention.value_length", !c.has(LatentKeys)},
      {".rope.dimension_count", !c.has(PartialRope | LatentKeys)}};
  for (auto [key, isSame] : same)
    if (isSame && numbers.size(key, c.headSize) != c.headSize)
      fail(numbers.data.path + ": '" + numbers.name + key + "' is " +
           std::to_string(numbers.size(key)) + "; a head's keys have " +
           std::to_string(c.headSize));
  c.epsilon =
      numbers.number(c.has(MeanNorms) ? ".attention.layer_norm_epsilon"
                                      : ".attention.layer_norm_rms_epsilon");
}

void readScales(const Numbers &numbers, Config &c) {
  // Gemma's largest models, known by their layers, divide by another size.
  if (c.has(QueryScalar) && (c.layers == 46 || c.layers == 62))
    c.attentionScale =
        std::sqrt(static_cast<double>(c.heads) / static_cast<double>(c.width));
  // A tenth of config.json's mscale_all_dim; 1 is that of V3.
  if (c.has(LatentKeys)) {
    double factor = numbers.number(".rope.scaling.factor", 1),
           magnitude = yarnMagnitude(
               factor,
               10 * numbers.number(".rope.scaling.yarn_log_multiplier", 0));
    c.attentionScale =
        magnitude * magnitude /
        std::sqrt(static_cast<double>(c.latent.plain + c.latent.rope));
  }
  // Zero stands for none in files.
  auto given = [&](const char *key, double otherwise) {
    double value = numbers.number(key, 0);
    return value != 0 ? value : otherwise;
  };
  c.attentionScale = given(".attention.scale", c.attentionScale);
  const json defaults = c.architecture->assumed();
  c.clamp = defaults.value("swiglu_limit", 0.0);
  c.slope = defaults.value("swiglu_alpha", 0.0);
  auto cap = [&](const char *key) { // config.json's name behind a dot
    return numbers.number(key, defaults.value(key + 1, 0.0));
  };
  c.attentionCap = cap(".attn_logit_softcapping");
  c.logitCap = cap(".final_logit_softcapping");
  if (c.has(WidthScale))
    c.embeddingScale = std::sqrt(static_cast<double>(c.width));
  c.embeddingScale = given(".embedding_scale", c.embeddingScale);
  c.residualScale = given(".residual_scale", 1);
  c.logitScale = given(".logit_scale", 1);
  if (c.has(Multipliers)) // a divisor
    c.logitScale = 1 / c.logitScale;
}

Pooling poolingOf(const Numbers &numbers) {
  enum { Mean = 1, Cls = 2 };
  int64_t type = numbers.size(".pooling_type", Mean);
  if (type != Mean && type != Cls)
    fail(numbers.data.path + ": '" + numbers.name + ".pooling_type' is " +
         std::to_string(type) + "; greta-llm takes 1 (mean) and 2 (CLS)");
  return type == Cls ? Pooling::First : Pooling::Mean;
}

Rope ropeOf(const Numbers &numbers, const Config &c) {
  Rope rope;
  rope.base = numbers.number(".rope.freq_base", 10000);
  rope.factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  rope.scale = numbers.number(".rope.scaling.attn_factor", 1);
  rope.trained = numbers.size(".rope.scaling.original_context_length", 0);
  if (!rope.trained)
    rope.trained = c.context;
  bool hasType = numbers.has(".rope.scaling.type");
  if (!hasType && !numbers.has(".rope.scaling.factor"))
    return rope;
  std::string type = hasType ? numbers.text(".rope.scaling.type") : "linear";
  if (type == "linear") {
    std::fill(rope.factors.begin(), rope.factors.end(),
              numbers.number(".rope.scaling.factor"));
  } else if (type == "yarn") {
    YarnScaling how;
    how.factor = numbers.number(".rope.scaling.factor");
    how.trained = static_cast<double>(rope.trained);
    how.fast = numbers.number(".rope.scaling.yarn_beta_fast", how.fast);
    how.slow = numbers.number(".rope.scaling.yarn_beta_slow", how.slow);
    how.rounds = !c.architecture->assumed().contains(
        json::json_pointer("/rope_scaling/truncate"));
    if (!(how.factor > 0 && how.trained > 0 && how.fast > 0 && how.slow > 0 &&
          rope.base > 1))
      fail(numbers.data.path + ": YaRN's factor, original context and betas "
                               "have to be positive, and rope's base above 1");
    if (!c.has(LatentKeys)) // the scores have it
      rope.scale *= yarnMagnitude(how.factor);
    scale(rope, how);
  } else if (type != "none") {
    fail(numbers.data.path + ": rope scaling '" + type +
         "' is not known; greta-llm takes none, linear, yarn, and factors in "
         "rope_freqs");
  }
  return rope;
}

// GGUF files do not say which layers have a window; the architecture does.
void readKinds(const Numbers &numbers, Config &c) {
  const Architecture &a = *c.architecture;
  bool isPattern = a.window == Windows::Pattern;
  int64_t window =
      numbers.size(".attention.sliding_window",
                   isPattern ? a.assumed().value("sliding_window", 0) : 0);
  // Mistral's files say that they are llama's.
  bool isOfAll = a.window == Windows::Always || std::string(a.gguf) == "llama";
  if (window && !isPattern && !isOfAll)
    fail(numbers.data.path + ": '" + numbers.name +
         ".attention.sliding_window' is " + std::to_string(window) +
         "; which layers it is for is not in the file");
  if (c.has(LocalRope)) {
    c.ropes.push_back(Rope());
    c.ropes.back().base = numbers.number(".rope.freq_base_swa", 10000);
    c.ropes.back().factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  }
  if (c.has(RopeInWindows | LayersOfRope))
    c.ropes.push_back(Rope()); // that turns nothing
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    bool isWhole = a.period && (layer + 1) % a.period == 0;
    LayerKind kind;
    kind.window = isPattern && isWhole ? 0 : window;
    kind.hasExperts = c.has(Experts) &&
                      layer >= numbers.size(".leading_dense_block_count", 0);
    if (c.ropes.size() > 1)
      kind.rope = c.has(LocalRope) != isWhole ? 1 : 0;
    c.kinds.push_back(kind);
  }
}

} // namespace

void checkType(const std::string &path, const std::string &key,
               const json &value, const GgufType &type, bool isArray) {
  bool isRight = isArray ? value.is_array() &&
                               (value.empty() || (value.front().*type.holds)())
                         : (value.*type.holds)();
  if (isRight)
    return;
  std::string expected = isArray ? std::string("an array of ") + type.noun + "s"
                                 : std::string(type.article) + type.noun;
  fail(path + ": '" + key + "' of the GGUF metadata is not " + expected);
}

Config configOf(const GgufMetadata &data) {
  std::string name = data.text("general.architecture");
  Config c;
  bool hasExperts = data.number(name + ".expert_count", 0) != 0;
  double gates = data.number(name + ".expert_gating_func", 0);
  if (gates > 2)
    fail(data.path + ": '" + name + ".expert_gating_func' is " +
         std::to_string(static_cast<int64_t>(gates)) +
         "; greta-llm takes 1 and 2");
  bool areSigmoids = gates == 2;
  c.architecture = findGguf(name, hasExperts, areSigmoids);
  if (!c.architecture && hasExperts && findGguf(name, false))
    fail(data.path + ": '" + name + ".expert_count' is " +
         std::to_string(data.size(name + ".expert_count")) +
         "; greta-llm runs '" + name + "' without experts");
  if (!c.architecture)
    fail(data.path + ": the architecture '" + name +
         "' is not known; greta-llm runs " + architectureNames());
  checkFields(Description::Gguf, data.path, data.below(name + "."),
              c.architecture);
  Numbers numbers(data, name);
  readSizes(numbers, c);
  readScales(numbers, c);
  checkSizes(data.path, c);
  c.ropes.push_back(c.has(LearnedPositions) ? Rope() : ropeOf(numbers, c));
  if (c.has(Bidirectional))
    c.pooling = poolingOf(numbers);
  readKinds(numbers, c);
  return c;
}

} // namespace greta::llm
