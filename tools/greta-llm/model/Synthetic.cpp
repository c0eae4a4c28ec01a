// Synthetic.cpp: models without a file, for benchmarks and demonstrations. In:
// a name, with a format after a colon. Out: sizes, and weights without data,
// which Rows.cpp fills with random numbers as it uploads them.
//
// Formats are mixed as llama-quantize mixes them, which decides how much a
// token reads.
#include "model/ConfigJson.h"

#include <algorithm>

namespace greta::llm {

namespace {
struct Preset {
  const char *name;
  const char *format;          // where none is named
  const char *config, *common; // as config.json has it
};

constexpr const char *llama = R"({"model_type": "llama", "hidden_act": "silu",
  "rms_norm_eps": 1e-5, "vocab_size": 128256, "num_key_value_heads": 8,
  "max_position_embeddings": 8192, "rope_theta": 500000})";
constexpr const char *qwen = R"({"model_type": "qwen3_moe",
  "hidden_act": "silu", "rms_norm_eps": 1e-5, "norm_topk_prob": true,
  "num_experts_per_tok": 8})";

const Preset presets[] = {
    {"tiny", "f16", R"({"num_hidden_layers": 2, "hidden_size": 64,
      "intermediate_size": 192, "vocab_size": 512, "rope_theta": 10000,
      "max_position_embeddings": 2048, "num_attention_heads": 4,
      "num_key_value_heads": 2})",
     llama},
    {"llama3-1b", "q4_0", R"({"num_hidden_layers": 16, "hidden_size": 2048,
      "intermediate_size": 8192, "num_attention_heads": 32})",
     llama},
    {"llama3-8b", "q4_0", R"({"num_hidden_layers": 32, "hidden_size": 4096,
      "intermediate_size": 14336, "num_attention_heads": 32})",
     llama},
    {"llama3-70b", "q4_k_m", R"({"num_hidden_layers": 80, "hidden_size": 8192,
      "intermediate_size": 28672, "num_attention_heads": 64})",
     llama},
    {"tiny-moe", "f16", R"({"num_hidden_layers": 2, "hidden_size": 64,
      "intermediate_size": 192, "moe_intermediate_size": 192,
      "vocab_size": 512, "max_position_embeddings": 2048, "rope_theta": 10000,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "num_experts": 8, "num_experts_per_tok": 2})",
     qwen},
    {"qwen3-30b-a3b", "q4_0", R"({"num_hidden_layers": 48, "hidden_size": 2048,
      "intermediate_size": 6144, "moe_intermediate_size": 768,
      "vocab_size": 151936, "max_position_embeddings": 32768,
      "rope_theta": 1000000, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128})",
     qwen},
    {"gpt-oss-20b", "mxfp4", R"({"num_hidden_layers": 24, "hidden_size": 2880,
      "intermediate_size": 2880, "vocab_size": 201088,
      "max_position_embeddings": 131072, "num_attention_heads": 64,
      "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32,
      "num_experts_per_tok": 4})",
     R"({"model_type": "gpt_oss", "hidden_act": "silu",
      "rms_norm_eps": 1e-5})"},
};

/// Whether a layer's matrices of values and its last one have more bits in the
/// mixes "M".
bool hasMoreBits(int64_t layer, int64_t layers) {
  int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/// The format that llama-quantize gives a matrix of a layer, or of none (-1).
Format mixed(const Config &c, Format base, bool isMedium, int64_t layer,
             const std::string &name) {
  bool isOfExperts = name.find("_exps") != name.npos;
  if (infoOf(base).block == 1)
    return base;
  if (name == "token_embd") // is looked up, not multiplied
    return Format::F16;
  if (name == "ffn_gate_inp") // is never packed
    return Format::F32;
  if (base == Format::MXFP4 && c.has(Experts))
    return isOfExperts ? base : Format::Q8_0;
  if (base == Format::Q8_0 || base == Format::MXFP4)
    return base;
  if (name == "output")
    return c.width % 256 ? Format::Q8_0 : Format::Q6_K;
  bool isValue = name == "attn_v",
       isDown = name == "ffn_down" || name == "ffn_down_exps";
  if (isMedium && (isValue || isDown) && hasMoreBits(layer, c.layers))
    return Format::Q6_K;
  // A model of 70B has so few values that a bit more costs nothing.
  if (isValue && base == Format::Q4_K && c.layers == 80)
    return Format::Q5_K;
  return base;
}
} // namespace

std::string syntheticNames() {
  std::string names;
  for (const Preset &one : presets)
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

std::string syntheticFormats() {
  return fileFormats(/*onlyThatStay=*/true) + ", q4_k_m, q5_k_m";
}

void makeSynthetic(Model &model, const std::string &name) {
  size_t colon = name.find(':');
  std::string wanted = name.substr(0, colon);
  const Preset *preset = nullptr;
  for (const Preset &one : presets)
    if (wanted == one.name)
      preset = &one;
  if (!preset)
    fail("--synthetic=" + name + ": no such model; there are " +
         syntheticNames());
  std::string formatName =
      colon == std::string::npos ? preset->format : name.substr(colon + 1);
  bool isMedium = formatName == "q4_k_m" || formatName == "q5_k_m";
  const FormatInfo *format = findFormat(
      isMedium ? formatName.substr(0, formatName.size() - 2) : formatName);
  if (!format || !staysAsItIs(*format))
    fail("--synthetic=" + name + ": the format '" + formatName +
         "' is not one of " + syntheticFormats());
  nlohmann::json config = nlohmann::json::parse(preset->common);
  config.update(nlohmann::json::parse(preset->config));
  // "synthetic-tiny", "synthetic-tiny-q4_0": the name that a server shows.
  model.path = "synthetic-" + wanted +
               (colon == std::string::npos ? "" : "-" + formatName);
  model.config = configOf(model.path, config);
  const Config &c = model.config;
  for (int64_t row : {c.width, c.has(Experts) ? c.mixture.hidden : c.hidden})
    if (row % format->block)
      fail("--synthetic=" + name + ": the format '" + formatName +
           "' has blocks of " + std::to_string(format->block) +
           " weights, and the model rows of " + std::to_string(row));
  // A conversation as a script, without special tokens, which the made-up
  // vocabulary does not have.
  model.tokenizerConfig["chat_template"] =
      "{% if tools %}{{ tools | tojson }}\n{% endif %}"
      "{% for message in messages %}"
      "{{ message.role }}: {{ message.content }}\n"
      "{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}";
  auto add = [&](const std::string &name, const Weight &weight, int64_t layer) {
    model.weights[name] = {
        weight.kind == Weight::Matrix
            ? mixed(c, format->format, isMedium, layer, weight.name)
            : Format::F32,
        weight.shape, nullptr};
  };
  for (int64_t layer = 0; layer < c.layers; ++layer)
    for (const Weight &weight : layerWeights(c, layer))
      add(Model::inLayer(layer, weight.name), weight, layer);
  for (const Weight &weight : outerWeights(c))
    add(weight.name, weight, -1);
}

} // namespace greta::llm
