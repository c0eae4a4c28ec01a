// ConfigJson.cpp: see ConfigJson.h.
#include "model/ConfigJson.h"
#include "model/Description.h"
#include "model/Fields.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {
namespace {

using nlohmann::json;

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

std::string ropeType(const std::string &path, const Fields &fields) {
  std::string type =
      fields.text(fields.find("rope_type") ? "rope_type" : "type");
  if (fields.find("type") && fields.text("type") != type)
    fail(path + ": rope's 'type' is '" + fields.text("type") +
         "', its 'rope_type' '" + type + "'");
  return type.empty() ? "default" : type;
}

void scaleAsLlama3(const std::string &path, const Fields &fields, Rope &rope) {
  Llama3Scaling how = {fields.number("factor"),
                       fields.number("low_freq_factor"),
                       fields.number("high_freq_factor"),
                       fields.number("original_max_position_embeddings")};
  if (!(how.low > 0 && how.high > how.low && how.trained > 0))
    fail(path + ": rope's low_freq_factor, high_freq_factor and "
                "original_max_position_embeddings have to be positive, the "
                "second greater than the first");
  scale(rope, how);
}

void scaleAsYarn(const std::string &path, const Fields &fields, Rope &rope,
                 const Config &c) {
  YarnScaling how;
  how.factor = fields.number("factor");
  how.trained = fields.number("original_max_position_embeddings",
                              static_cast<double>(c.context));
  how.fast = fields.number("beta_fast", how.fast);
  how.slow = fields.number("beta_slow", how.slow);
  how.rounds = !fields.find("truncate") || fields.flag("truncate");
  if (!(how.factor > 0 && how.trained > 0 && how.fast > 0 && how.slow > 0 &&
        rope.base > 1))
    fail(path + ": YaRN's factor, original_max_position_embeddings, beta_fast "
                "and beta_slow have to be positive, and rope_theta above 1");
  double magnitude = fields.number("mscale", 0),
         ofAll = fields.number("mscale_all_dim", 0);
  rope.scale =
      fields.number("attention_factor",
                    magnitude && ofAll ? yarnMagnitude(how.factor, magnitude) /
                                             yarnMagnitude(how.factor, ofAll)
                                       : yarnMagnitude(how.factor));
  scale(rope, how);
}

// Longrope: factors of each pair, others in contexts that are longer than those
// of training.
void scaleAsLongrope(const std::string &path, const Fields &fields,
                     const Fields &config, Rope &rope, const Config &c) {
  size_t pairs = rope.factors.size();
  rope.factors = fields.numbers("short_factor");
  rope.longFactors = fields.numbers("long_factor");
  for (const std::vector<double> *some : {&rope.factors, &rope.longFactors})
    if (some->size() != pairs)
      fail(path + ": rope's short_factor and long_factor have to be lists of " +
           std::to_string(pairs) + " numbers");
  const Fields &where =
      config.find("original_max_position_embeddings") ? config : fields;
  rope.trained = where.size("original_max_position_embeddings");
  if (rope.trained < 2)
    fail(path + ": 'original_max_position_embeddings' is no number of tokens");
  double trained = static_cast<double>(rope.trained);
  double factor =
      fields.number("factor", static_cast<double>(c.context) / trained);
  rope.scale = fields.number(
      "attention_factor",
      factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(trained)));
}

// The base of what transformers calls dynamic grows with the sequence, which
// keys in the cache cannot follow. So it is transformers' base for a prompt as
// long as the factor allows, which is vLLM's for all lengths; contexts of no
// more tokens than the model was trained on have none, as in transformers.
void scaleAsDynamic(const std::string &path, const Fields &fields, Rope &rope,
                    const Config &c) {
  double factor = fields.number("factor");
  if (!(factor >= 1 && factor <= 1024))
    fail(path + ": the factor of rope's dynamic scaling has to be 1 to 1024");
  if (fields.size("original_max_position_embeddings", c.context) != c.context)
    fail(path + ": rope's dynamic scaling begins at 'max_position_embeddings', "
                "from which 'original_max_position_embeddings' differs");
  rope.trained = c.context;
  rope.longFactors = rope.factors;
  stretchBase(rope.longFactors, factor * factor - factor + 1);
}

Rope ropeOf(const std::string &path, const json &about, const Fields &config,
            const Config &c, double base) {
  checkFields(Description::Rope, path, about, c.architecture);
  Fields fields(path, about);
  Rope rope;
  rope.base = fields.number("rope_theta", base);
  rope.factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  std::string type = ropeType(path, fields);
  if (type == "linear")
    std::fill(rope.factors.begin(), rope.factors.end(),
              fields.number("factor"));
  else if (type == "llama3")
    scaleAsLlama3(path, fields, rope);
  else if (type == "longrope" || type == "su" ||
           (type == "yarn" && fields.find("short_factor"))) // Phi 3's old name
    scaleAsLongrope(path, fields, config, rope, c);
  else if (type == "dynamic")
    scaleAsDynamic(path, fields, rope, c);
  else if (type == "yarn")
    scaleAsYarn(path, fields, rope, c);
  else if (type != "default")
    fail(path + ": rope scaling '" + type +
         "' is not known; greta-llm takes default, linear, dynamic, llama3, "
         "yarn and longrope");
  return rope;
}

// Since transformers 5 everything about rope is in one object, of which models
// with a rope for layers with windows have two.
struct AboutRope {
  json whole = json::object(), local = json::object();
};

AboutRope aboutRope(const std::string &path, const Fields &fields,
                    const Config &c) {
  const json *rope = fields.find("rope_parameters"),
             *scaling = fields.find("rope_scaling");
  if (rope && scaling && *rope != *scaling)
    fail(path + ": 'rope_parameters' and 'rope_scaling' differ");
  AboutRope about;
  if (rope || scaling)
    about.whole = rope ? *rope : *scaling;
  if (about.whole.is_object() && c.has(LocalRope) &&
      about.whole.contains("full_attention")) {
    json both = about.whole;
    for (auto &[name, one] : both.items())
      if (name != "full_attention" && name != "sliding_attention")
        fail(path + ": 'rope_parameters' has '" + name +
             "' beside 'full_attention' and 'sliding_attention'");
    about.whole = both["full_attention"];
    if (both.contains("sliding_attention"))
      about.local = both["sliding_attention"];
  } else if (rope && c.has(LocalRope)) {
    fail(path + ": 'rope_parameters' lacks 'full_attention'");
  }
  if (!about.whole.is_object() || !about.local.is_object())
    fail(path + ": what it says about rope is no object");
  return about;
}

// The part of a head that rope turns, in numbers.
int64_t rotatedOf(const Fields &fields, const Fields &rope, const Config &c) {
  double part = rope.number("partial_rotary_factor",
                            fields.number("partial_rotary_factor", 1));
  if (c.has(LatentKeys))
    return c.latent.rope;
  double rotated = part * static_cast<double>(c.headSize);
  return rotated >= 0 && rotated <= static_cast<double>(c.headSize)
             ? static_cast<int64_t>(rotated)
             : -1;
}

//===----------------------------------------------------------------------===//
// Kinds of layers
//===----------------------------------------------------------------------===//

// Whether each layer has a window, as a list of their types says.
std::vector<bool> typesOf(const std::string &path, const json &types,
                          const Config &c) {
  std::vector<bool> result;
  bool isKnown =
      types.is_array() && types.size() == static_cast<size_t>(c.layers);
  for (size_t i = 0; isKnown && i < types.size(); ++i) {
    result.push_back(types[i] == "sliding_attention");
    isKnown = result.back() || types[i] == "full_attention";
  }
  if (!isKnown)
    fail(path + ": 'layer_types' is no list of 'full_attention' and "
                "'sliding_attention' for each layer");
  return result;
}

// Whether each layer has rope, where fields say so.
std::vector<bool> ropesListed(const std::string &path, const Fields &fields,
                              const Config &c) {
  std::vector<bool> result(static_cast<size_t>(c.layers), true);
  if (fields.find("no_rope_layers")) { // a 1 says that there is rope
    std::vector<double> list = fields.numbers("no_rope_layers");
    if (list.size() != result.size())
      fail(path + ": 'no_rope_layers' is no list of a number for each layer");
    for (size_t i = 0; i < list.size(); ++i)
      result[i] = list[i] != 0;
    return result;
  }
  int64_t interval = fields.size("no_rope_layer_interval", 4);
  if (interval < 1)
    fail(path + ": 'no_rope_layer_interval' is no number of layers");
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = (i + 1) % static_cast<size_t>(interval) != 0;
  return result;
}

// Whether each layer has a window.
std::vector<bool> windowed(const std::string &path, const Fields &fields,
                           const Config &c) {
  Windows kind = c.architecture->window;
  bool isOfAll = kind == Windows::Always || kind == Windows::AllIfAsked;
  bool isAsked = kind == Windows::Always || kind == Windows::Pattern ||
                 fields.flag("use_sliding_window");
  std::vector<bool> result(static_cast<size_t>(c.layers), isOfAll);
  if (const json *types = fields.find("layer_types")) {
    result = typesOf(path, *types, c);
    if (isOfAll &&
        std::find(result.begin(), result.end(), false) != result.end() &&
        std::find(result.begin(), result.end(), true) != result.end())
      fail(path + ": 'layer_types' gives a part of the layers a window; this "
                  "model type has one in all layers, or none");
  } else if (kind == Windows::WithoutRopeIfAsked && isAsked) {
    result = ropesListed(path, fields, c);
    result.flip();
  } else if (kind == Windows::IfAsked && isAsked) {
    int64_t first = fields.size("max_window_layers");
    if (first < 0)
      fail(path + ": 'max_window_layers' is no number of layers");
    for (int64_t layer = std::min(first, c.layers); layer < c.layers; ++layer)
      result[static_cast<size_t>(layer)] = true;
  } else if (kind == Windows::Pattern) {
    int64_t period =
        fields.size("sliding_window_pattern", c.architecture->period);
    if (period < 1)
      fail(path + ": 'sliding_window_pattern' is no number of layers");
    for (int64_t layer = 0; layer < c.layers; ++layer)
      result[static_cast<size_t>(layer)] = (layer + 1) % period != 0;
  }
  if (!isAsked || kind == Windows::Never)
    std::fill(result.begin(), result.end(), false);
  return result;
}

// Whether each layer has rope.
std::vector<bool> roped(const std::string &path, const Fields &fields,
                        const std::vector<bool> &windows, const Config &c) {
  if (c.has(RopeInWindows))
    return windows;
  return c.has(LayersOfRope)
             ? ropesListed(path, fields, c)
             : std::vector<bool>(static_cast<size_t>(c.layers), true);
}

// Whether each layer has experts.
std::vector<bool> mixed(const std::string &path, const Fields &fields,
                        const Config &c) {
  std::vector<bool> result(static_cast<size_t>(c.layers), c.has(Experts));
  if (!c.has(Experts))
    return result;
  int64_t first = fields.size("first_k_dense_replace", 0),
          step = fields.size("decoder_sparse_step", 1);
  if (first < 0 || step < 1)
    fail(path + ": 'first_k_dense_replace' or 'decoder_sparse_step' is no "
                "number of layers");
  for (int64_t layer = 0; layer < c.layers; ++layer)
    result[static_cast<size_t>(layer)] =
        layer >= first && (layer + 1) % step == 0;
  if (fields.find("mlp_only_layers"))
    for (double layer : fields.numbers("mlp_only_layers"))
      if (layer >= 0 && layer < static_cast<double>(c.layers))
        result[static_cast<size_t>(layer)] = false;
  return result;
}

void readKinds(const std::string &path, const Fields &fields, Config &c) {
  int64_t window = fields.size("sliding_window", 0);
  if (c.architecture->window == Windows::Never &&
      (window || fields.flag("use_sliding_window")))
    fail(path + ": has a 'sliding_window', which this model type does not use");
  std::vector<bool> windows = windowed(path, fields, c),
                    ropes = roped(path, fields, windows, c);
  if (std::find(ropes.begin(), ropes.end(), false) != ropes.end())
    c.ropes.push_back(Rope()); // that turns nothing
  std::vector<bool> experts = mixed(path, fields, c);
  for (size_t i = 0; i < windows.size(); ++i) {
    LayerKind kind;
    kind.hasExperts = experts[i];
    kind.window = windows[i] ? window : 0;
    if (!ropes[i])
      kind.rope = c.ropes.size() - 1;
    else if (c.has(LocalRope) && windows[i])
      kind.rope = 1;
    c.kinds.push_back(kind);
  }
}

//===----------------------------------------------------------------------===//
// Sizes and numbers
//===----------------------------------------------------------------------===//

void readSizes(const Fields &fields, Config &c) {
  c.layers = fields.size("num_hidden_layers");
  c.width = fields.size("hidden_size");
  c.hidden = fields.size("intermediate_size");
  c.vocabulary = fields.size("vocab_size");
  c.context = fields.size("max_position_embeddings");
  // In longer texts Nomic's code has another rope.
  c.context =
      std::min(c.context, fields.size("max_trained_positions", c.context));
  if (c.has(LatePositions)) {
    c.skippedPositions = fields.size("pad_token_id") + 1;
    c.context -= c.skippedPositions;
  }
  c.heads = fields.size("num_attention_heads");
  c.keyHeads = fields.size("num_key_value_heads", c.heads);
  c.headSize = fields.size("head_dim", c.width / std::max<int64_t>(c.heads, 1));
  c.epsilon = fields.number(c.architecture->epsilon);
  if (!c.has(LatentKeys))
    return;
  Latent &l = c.latent;
  l.rank = fields.size("kv_lora_rank");
  l.queryRank = fields.size("q_lora_rank", 0);
  l.plain = fields.size("qk_nope_head_dim");
  l.rope = fields.size("qk_rope_head_dim");
  l.value = fields.size("v_head_dim");
  c.keyHeads = 1;
  c.headSize = l.rank + l.rope;
  c.nextLayers = fields.size("num_nextn_predict_layers", 0);
}

void readMixture(const std::string &path, const Fields &fields, Config &c) {
  if (!c.has(Experts))
    return;
  Mixture &m = c.mixture;
  for (const char *name :
       {"n_routed_experts", "num_experts", "num_local_experts"})
    if (!m.count && fields.find(name))
      m.count = fields.size(name);
  m.used = fields.size("num_experts_per_tok");
  m.normalises = fields.flag("norm_topk_prob");
  m.hidden = fields.size("moe_intermediate_size", c.hidden);
  if (c.has(SharedExperts))
    m.shared =
        fields.find("shared_expert_intermediate_size")
            ? fields.size("shared_expert_intermediate_size")
            : widthOfShared(fields.size("n_shared_experts", 0), m.hidden);
  m.scale = fields.number("routed_scaling_factor", 1);
  std::string method = fields.text("topk_method");
  if (c.has(LatentKeys) && !c.has(ChoiceBias) && method != "greedy" &&
      method != "group_limited_greedy")
    fail(path + ": 'topk_method' is '" + method +
         "'; greta-llm takes greedy and group_limited_greedy");
  if (method != "greedy") {
    m.groups = fields.size("n_group", 1);
    m.usedGroups = fields.size("topk_group", 1);
  }
}

void readScales(const std::string &path, const Fields &fields, Config &c) {
  // Zero stands for none in `Config`.
  auto given = [&](const char *key, double otherwise) {
    double value = fields.number(key, otherwise);
    if (fields.find(key) && !(value > 0))
      fail(path + ": '" + key + "' is " + std::to_string(value) +
           "; it has to be a positive number");
    return value;
  };
  if (fields.find("query_pre_attn_scalar"))
    c.attentionScale = 1 / std::sqrt(given("query_pre_attn_scalar", 1));
  c.attentionScale = given("attention_multiplier", c.attentionScale);
  c.clamp = given("swiglu_limit", 0);
  c.slope = given("swiglu_alpha", 0);
  c.attentionCap = given("attn_logit_softcapping", 0);
  c.logitCap = given("final_logit_softcapping", 0);
  if (c.has(WidthScale))
    c.embeddingScale = std::sqrt(static_cast<double>(c.width));
  c.embeddingScale = given("embedding_multiplier", c.embeddingScale);
  c.residualScale = given("residual_multiplier", 1);
  c.logitScale = given("logit_scale", 1) / given("logits_scaling", 1);
}

void readBiases(const Fields &fields, Config &c) {
  const Architecture &a = *c.architecture;
  for (const std::string &name : wordsOf(a.biases))
    c.biases.insert(name);
  if (a.biasField && fields.flag(a.biasField))
    for (const std::string &name : wordsOf(a.askedBiases))
      c.biases.insert(name);
}

void checkActivation(const std::string &path, const Fields &fields,
                     const Config &c) {
  const char *wanted =
      c.architecture->activation == Activation::GeluTanh ? "gelu_pytorch_tanh"
      : c.architecture->activation == Activation::Gelu   ? "gelu"
                                                         : "silu";
  const char *fieldNames[] = {"hidden_act", "hidden_activation"};
  bool isSaid = false;
  for (const char *field : fieldNames) {
    if (!fields.find(field))
      continue;
    isSaid = true;
    if (std::string act = fields.text(field); act != wanted)
      fail(path + ": the activation is '" + act + "'; greta-llm takes " +
           wanted + " for this model type");
  }
  if (!isSaid)
    fail(path + ": lacks the text 'hidden_act'");
}

// The fields of the text part in place of all, for a model that also sees; the
// number of the first token that is no text.
int64_t takeText(const std::string &path, json &object) {
  checkFields(Description::Vision, path, object, nullptr);
  json text = object.value("text_config", json());
  if (!text.is_object())
    fail(path + ": 'text_config' is no object");
  if (!text.contains("model_type"))
    text["model_type"] = "gemma3_text";
  for (const char *shared :
       {"eos_token_id", "quantization_config", "tie_word_embeddings"})
    if (object.contains(shared) && !text.contains(shared))
      text[shared] = object[shared];
  int64_t first = Fields(path, object).size("image_token_index", 262144);
  object = std::move(text);
  return first;
}

// Fields as transformers names them, of Nomic's own code.
void renameFields(json &object) {
  constexpr const char *names[][2] = {
      {"n_embd", "hidden_size"},
      {"n_head", "num_attention_heads"},
      {"n_inner", "intermediate_size"},
      {"n_layer", "num_hidden_layers"},
      {"n_positions", "max_position_embeddings"},
      {"layer_norm_epsilon", "layer_norm_eps"},
      {"rotary_emb_base", "rope_theta"}};
  for (const auto &[theirs, usual] : names)
    if (object.contains(theirs) && !object.contains(usual)) {
      object[usual] = object[theirs];
      object.erase(theirs);
    }
}

// Whether a field means what the architecture assumes. A null means so where it
// does not stand for none, as that of a window or of a bound does.
bool isAbsent(const json &object, const std::string &name, const Config &c) {
  if (name == "rope_scaling" && object.contains("rope_parameters") &&
      !object["rope_parameters"].is_null())
    return false;
  return !object.contains(name) ||
         (c.has(GatesInTurn) && object[name].is_null() &&
          name != "sliding_window");
}

// YaRN's magnitude of all that scores are products of.
double scaleOfLatents(const std::string &type, const Fields &rope,
                      const Config &c) {
  double scale =
             1 / std::sqrt(static_cast<double>(c.latent.plain + c.latent.rope)),
         ofAll = type == "default" ? 0 : rope.number("mscale_all_dim", 0);
  double magnitude = ofAll ? yarnMagnitude(rope.number("factor", 1), ofAll) : 1;
  return scale * magnitude * magnitude;
}

} // namespace

Config configOf(const std::string &path, json &object) {
  Config c;
  c.isPart = Fields(path, object).text("model_type") == "gemma3";
  int64_t firstImageToken = c.isPart ? takeText(path, object) : 0;
  std::string type = Fields(path, object).text("model_type");
  c.architecture = findHuggingFace(type);
  if (!c.architecture)
    fail(path + ": " +
         (type.empty() ? "no 'model_type' says what the model is"
                       : "the model type '" + type + "' is not known") +
         "; greta-llm runs " + architectureNames());
  if (type == "nomic_bert")
    renameFields(object);
  checkFields(Description::Config, path, object, c.architecture);
  const json defaults = c.architecture->assumed();
  for (const auto &[name, value] : defaults.items())
    if (isAbsent(object, name, c))
      object[name] = value;
  Fields fields(path, object);
  checkActivation(path, fields, c);
  readSizes(fields, c);
  c.storedVocabulary = c.vocabulary;
  if (c.isPart)
    c.vocabulary = std::min(c.vocabulary, firstImageToken);
  readMixture(path, fields, c);
  AboutRope about = aboutRope(path, fields, c);
  c.rotated = rotatedOf(fields, Fields(path, about.whole), c);
  readScales(path, fields, c);
  readBiases(fields, c);
  if (c.has(LatePositions) && c.skippedPositions < 1)
    fail(path + ": 'pad_token_id' is no token");
  checkSizes(path, c);
  if (c.has(LatentKeys)) {
    Fields rope(path, about.whole);
    c.attentionScale = scaleOfLatents(ropeType(path, rope), rope, c);
  }
  if (c.has(LearnedPositions))
    c.ropes.push_back(Rope()); // that turns nothing
  else
    c.ropes.push_back(ropeOf(path, about.whole, fields, c,
                             fields.number("rope_theta", 10000)));
  if (c.has(LocalRope))
    c.ropes.push_back(ropeOf(path, about.local, fields, c,
                             fields.number("rope_local_base_freq", 10000)));
  Fields whole(path, about.whole);
  if (ropeType(path, whole) == "dynamic")
    c.context = static_cast<int64_t>(static_cast<double>(c.context) *
                                     whole.number("factor"));
  readKinds(path, fields, c);
  return c;
}

} // namespace greta::llm
