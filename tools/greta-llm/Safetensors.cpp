// Safetensors.cpp: a folder as Hugging Face's tools write it. In: config.json,
// model.safetensors or the parts that model.safetensors.index.json names, and
// tokenizer.json where there is one. Out: sizes, weights under GGUF's names,
// and the tokenizer's JSON.
#include "Model.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;

json readJson(const std::string &path) {
  json value = json::parse(readText(path), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object())
    fail(path + ": is no JSON object");
  return value;
}

// A field of a JSON object with the type that is expected of it.
class Fields {
public:
  Fields(const std::string &path, const json &object)
      : path(path), object(object) {}

  const json *find(const char *key) const {
    auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }
  double number(const char *key) const {
    const json *value = find(key);
    if (!value || !value->is_number())
      fail(path + ": lacks the number '" + key + "'");
    return value->get<double>();
  }
  double number(const char *key, double otherwise) const {
    return find(key) ? number(key) : otherwise;
  }
  int64_t size(const char *key) const {
    double value = number(key);
    return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : -1;
  }
  int64_t size(const char *key, int64_t otherwise) const {
    return find(key) ? size(key) : otherwise;
  }
  bool flag(const char *key) const {
    const json *value = find(key);
    return value && value->is_boolean() && value->get<bool>();
  }
  std::string text(const char *key) const {
    const json *value = find(key);
    return value && value->is_string() ? value->get<std::string>() : "";
  }

private:
  const std::string &path;
  const json &object;
};

// How much slower each pair turns than base^(-2i/D) says.
std::vector<double> ropeFactors(const std::string &path, const json &rope,
                                const Config &c) {
  std::vector<double> factors(
      static_cast<size_t>(std::max<int64_t>(c.headSize, 0)) / 2, 1.0);
  Fields fields(path, rope);
  std::string type =
      fields.text(fields.find("rope_type") ? "rope_type" : "type");
  if (type.empty() || type == "default")
    return factors;
  if (type != "linear" && type != "llama3")
    fail(path + ": rope scaling '" + type +
         "' is not known; greta-llm takes default, linear and llama3");
  double factor = fields.number("factor");
  for (size_t i = 0; i < factors.size(); ++i) {
    if (type == "linear") {
      factors[i] = factor;
      continue;
    }
    // Short waves stay, long ones are stretched, between them it is a mixture.
    double low = fields.number("low_freq_factor"),
           high = fields.number("high_freq_factor"),
           trained = fields.number("original_max_position_embeddings");
    double wave = 2 * M_PI *
                  std::pow(c.ropeBase, 2.0 * static_cast<double>(i) /
                                           static_cast<double>(c.headSize));
    double smooth = (trained / wave - low) / (high - low);
    smooth = std::min(1.0, std::max(0.0, smooth));
    factors[i] = 1 / ((1 - smooth) / factor + smooth);
  }
  return factors;
}

Config configOf(const std::string &path, const json &object) {
  Fields fields(path, object);
  Config c;
  std::string type = fields.text("model_type");
  c.architecture = findHuggingFace(type);
  if (!c.architecture)
    fail(path + ": the model type '" + type +
         "' is not known; greta-llm runs " + architectureNames());
  if (std::string act = fields.text("hidden_act"); act != "silu")
    fail(path + ": the activation is '" + act + "'; greta-llm takes silu");
  if (fields.flag("mlp_bias"))
    fail(path + ": the MLP has a bias, which greta-llm does not add");
  c.layers = fields.size("num_hidden_layers");
  c.width = fields.size("hidden_size");
  c.hidden = fields.size("intermediate_size");
  c.vocabulary = fields.size("vocab_size");
  c.context = fields.size("max_position_embeddings");
  c.heads = fields.size("num_attention_heads");
  c.keyHeads = fields.size("num_key_value_heads", c.heads);
  c.headSize = fields.size("head_dim", c.width / std::max<int64_t>(c.heads, 1));
  c.epsilon = fields.number("rms_norm_eps");
  // Qwen says with a flag of its own whether its window is in use.
  if (!fields.find("use_sliding_window") || fields.flag("use_sliding_window"))
    c.window = fields.size("sliding_window", 0);
  c.hasBias = c.architecture->hasBias;
  c.hasHeadNorms = c.architecture->hasHeadNorms;
  if (fields.flag("attention_bias"))
    fail(path + ": the attention's output has a bias, which greta-llm does not "
                "add");
  // Since transformers 5 everything about rope is in one object.
  const json *rope = fields.find("rope_parameters");
  if (!rope)
    rope = fields.find("rope_scaling");
  const json none = json::object();
  Fields ropeFields(path, rope && rope->is_object() ? *rope : none);
  c.ropeBase =
      ropeFields.number("rope_theta", fields.number("rope_theta", 10000));
  c.ropeFactors =
      ropeFactors(path, rope && rope->is_object() ? *rope : none, c);
  return c;
}

// "model.layers.3.self_attn.q_proj.weight" as "blk.3.attn_q"; what is no weight
// of a known layer has no name. Other parts of a weight keep theirs.
std::string shortName(std::string name) {
  static const std::pair<const char *, const char *> parts[] = {
      {"embed_tokens", "token_embd"},
      {"norm", "output_norm"},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  size_t dot = name.rfind('.');
  if (dot == std::string::npos)
    return "";
  std::string part = name.substr(dot);
  std::string suffix = part == ".bias"     ? "_bias"
                       : part == ".weight" ? ""
                                           : part;
  name.resize(dot);
  if (name == "lm_head")
    return "output" + suffix;
  if (name.rfind("model.", 0) != 0)
    return "";
  name = name.substr(6);
  std::string prefix;
  if (name.rfind("layers.", 0) == 0) {
    size_t end = name.find('.', 7);
    if (end == std::string::npos)
      return "";
    prefix = "blk." + name.substr(7, end - 7) + ".";
    name = name.substr(end + 1);
  }
  for (auto [theirs, ours] : parts)
    if (name == theirs)
      return prefix + ours + suffix;
  return "";
}

// How AWQ and GPTQ say in config.json what they did.
struct Quantisation {
  std::string method; // empty: none
  int64_t group = 0;  // -1: all of K
  bool isStoredLessOne = false;
};

Quantisation quantisationOf(const std::string &path, const json &config) {
  Quantisation result;
  const json *about = Fields(path, config).find("quantization_config");
  if (!about)
    return result;
  const json none = json::object();
  Fields fields(path, about->is_object() ? *about : none);
  result.method = fields.text("quant_method");
  if (result.method != "awq" && result.method != "gptq")
    fail(path + ": the weights are quantised by '" + result.method +
         "'; greta-llm reads awq and gptq, and GGUF files");
  if (fields.number("bits") != 4)
    fail(path + ": the weights have " + std::to_string(fields.size("bits")) +
         " bits; greta-llm reads awq and gptq with 4");
  if (std::string version = fields.text("version");
      result.method == "awq" && !version.empty() && version != "gemm")
    fail(path + ": the weights are in awq's form '" + version +
         "'; greta-llm reads 'gemm'");
  result.group = static_cast<int64_t>(fields.number("group_size"));
  result.isStoredLessOne =
      result.method == "gptq" && fields.text("checkpoint_format") != "gptq_v2";
  return result;
}

// A tensor that is a part of a quantised weight.
struct Part {
  std::vector<int64_t> shape;
  std::string dtype;
  const uint8_t *data = nullptr;
};
using Parts = std::map<std::string, Part>; // blk.0.attn_q.qweight

// Makes one weight of the parts that the name in `parts` begins.
void join(Model &model, const Parts &parts, const std::string &name,
          const Quantisation &how) {
  auto part = [&](const char *suffix, const char *dtype,
                  std::vector<int64_t> shape) -> const uint8_t * {
    auto it = parts.find(name + suffix);
    if (it == parts.end() || it->second.dtype != dtype ||
        (!shape.empty() && it->second.shape != shape))
      fail(model.path + ": the " + how.method + " weight '" + name +
           "' has no '" + (suffix + 1) + "' of " + dtype +
           " that fits its shape");
    return it->second.data;
  };
  Stored stored;
  stored.format = Format::Int4;
  Grouped &g = stored.grouped;
  g.isAwq = how.method == "awq";
  g.zeroOffset = how.isStoredLessOne;
  g.words = part(".qweight", "I32", {});
  std::vector<int64_t> words = parts.at(name + ".qweight").shape;
  if (words.size() != 2 || words[0] > 1 << 24 || words[1] > 1 << 24)
    fail(model.path + ": the " + how.method + " weight '" + name +
         "' is no matrix");
  int64_t k = words[0] * (g.isAwq ? 1 : 8), n = words[1] * (g.isAwq ? 8 : 1);
  g.group = how.group == -1 ? k : how.group;
  if (g.group < 1 || k % g.group || n % 8)
    fail(model.path + ": the " + how.method + " weight '" + name + "' has " +
         std::to_string(k) + " rows in groups of " + std::to_string(g.group) +
         " and " + std::to_string(n) +
         " columns; they have to be whole groups, and eights");
  int64_t groups = k / g.group;
  g.zeros = part(".qzeros", "I32", {groups, n / 8});
  g.scales = part(".scales", "F16", {groups, n});
  if (parts.count(name + ".g_idx")) {
    const uint8_t *groupOf = part(".g_idx", "I32", {k});
    for (int64_t i = 0; i < k; ++i) {
      int32_t group;
      memcpy(&group, groupOf + 4 * i, 4);
      if (group < 0 || group >= groups)
        fail(model.path + ": the " + how.method + " weight '" + name +
             "' has a 'g_idx' of " + std::to_string(group) + "; there are " +
             std::to_string(groups) + " groups");
      if (group != i / g.group)
        g.groupOf = groupOf;
    }
  }
  stored.shape = {n, k};
  model.weights[name] = stored;
}

void readTensors(Model &model, Parts &quantised, const std::string &path) {
  model.files.push_back(std::make_unique<Mapping>(path));
  const Mapping &file = *model.files.back();
  uint64_t length = 0;
  if (file.size() >= 8)
    memcpy(&length, file.data(), 8);
  if (file.size() < 8 || length > file.size() - 8)
    fail(path + ": the safetensors header is cut off");
  const char *text = reinterpret_cast<const char *>(file.data()) + 8;
  json header = json::parse(text, text + length, nullptr, false);
  if (!header.is_object())
    fail(path + ": the safetensors header is no JSON object");
  const uint8_t *data = file.data() + 8 + length;
  uint64_t bytes = file.size() - 8 - length;
  for (auto &[name, about] : header.items()) {
    std::string ours = shortName(name);
    if (ours.empty())
      continue;
    Stored stored;
    uint64_t begin = 0, end = 0, elements = 1;
    bool isPossible = true;
    std::string dtype;
    try {
      dtype = about.at("dtype").get<std::string>();
      for (const json &extent : about.at("shape")) {
        stored.shape.push_back(extent.get<int64_t>());
        isPossible = isPossible && stored.shape.back() >= 1 &&
                     !__builtin_mul_overflow(
                         elements, static_cast<uint64_t>(stored.shape.back()),
                         &elements) &&
                     elements <= uint64_t(1) << 48;
      }
      begin = about.at("data_offsets").at(0).get<uint64_t>();
      end = about.at("data_offsets").at(1).get<uint64_t>();
    } catch (const json::exception &) {
      fail(path + ": the safetensors header describes '" + name +
           "' in a way that cannot be read");
    }
    std::string suffix = name.substr(name.rfind('.'));
    bool isPart = suffix != ".weight" && suffix != ".bias";
    // Words are as long as f32.
    const FormatInfo *info = dtype == "F32" || (isPart && dtype == "I32")
                                 ? findFormat("f32")
                             : dtype == "F16"  ? findFormat("f16")
                             : dtype == "BF16" ? findFormat("bf16")
                                               : nullptr;
    if (!info)
      fail(path + ": the tensor '" + name + "' is of " + dtype +
           "; greta-llm reads F32, F16 and BF16");
    stored.format = info->format;
    if (!isPossible || stored.shape.empty() || begin > end || end > bytes ||
        elements * info->bytes != end - begin)
      fail(path + ": the tensor '" + name +
           "' does not lie within the file as its shape says");
    stored.data = data + begin;
    if (isPart)
      quantised[ours] = {stored.shape, dtype, stored.data};
    else
      model.weights[ours] = stored;
  }
}

} // namespace

void readSafetensors(Model &model) {
  namespace fs = std::filesystem;
  fs::path folder = model.path;
  std::string configPath = folder / "config.json";
  json config = readJson(configPath);
  model.config = configOf(configPath, config);
  std::set<std::string> parts;
  std::string index = folder / "model.safetensors.index.json";
  if (fs::exists(index)) {
    json names = readJson(index)["weight_map"];
    if (!names.is_object())
      fail(index + ": has no weight_map");
    for (auto &[name, part] : names.items()) {
      // A part lies in the folder itself.
      if (!part.is_string() ||
          fs::path(part.get<std::string>()).has_parent_path())
        fail(index + ": '" + name + "' is in no file of the folder");
      parts.insert(part.get<std::string>());
    }
  } else {
    parts.insert("model.safetensors");
  }
  Quantisation how = quantisationOf(configPath, config);
  Parts quantised;
  for (const std::string &part : parts)
    readTensors(model, quantised, folder / part);
  const std::string words = ".qweight";
  for (const auto &[name, part] : quantised)
    if (size_t end = name.size() - std::min(words.size(), name.size());
        !how.method.empty() && name.substr(end) == words)
      join(model, quantised, name.substr(0, end), how);
  if (Fields(configPath, config).flag("tie_word_embeddings"))
    model.weights.erase("output");
  // One id, or a list; a file for generation has the longer one.
  std::string generation = folder / "generation_config.json";
  for (const json &about :
       {config, fs::exists(generation) ? readJson(generation) : json()}) {
    if (!about.contains("eos_token_id"))
      continue;
    const json &given = about["eos_token_id"];
    for (const json &id : given.is_array() ? given : json::array({given}))
      if (id.is_number_integer())
        model.ends.push_back(id.get<int32_t>());
  }
  if (fs::exists(folder / "tokenizer.json"))
    model.tokenizer = readJson(folder / "tokenizer.json");
  if (fs::exists(folder / "tokenizer_config.json"))
    model.tokenizerConfig = readJson(folder / "tokenizer_config.json");
  // Newer models have the template in a file of its own.
  if (std::ifstream file(folder / "chat_template.jinja"); file)
    model.tokenizerConfig["chat_template"] =
        std::string(std::istreambuf_iterator<char>(file), {});
}

} // namespace greta::llm
