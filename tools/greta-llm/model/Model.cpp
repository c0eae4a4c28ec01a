// Model.cpp: see Model.h.
#include "model/Model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace greta::llm {

static const Architecture architectures[] = {
    // Hugging Face, GGUF, bias, head norms, GGUF's pairs, window
    {"llama", "llama", false, false, true, Architecture::Never},
    {"mistral", "llama", false, false, true, Architecture::Always},
    {"qwen2", "qwen2", true, false, false, Architecture::IfAsked},
    {"qwen3", "qwen3", false, true, false, Architecture::IfAsked},
};

const Architecture *findHuggingFace(const std::string &name) {
  for (const Architecture &architecture : architectures)
    if (name == architecture.huggingFace)
      return &architecture;
  return nullptr;
}

const Architecture *findGguf(const std::string &name) {
  for (const Architecture &architecture : architectures)
    if (name == architecture.gguf)
      return &architecture;
  return nullptr;
}

std::string architectureNames() {
  std::string names;
  for (const Architecture &architecture : architectures)
    names +=
        (names.empty() ? "" : ", ") + std::string(architecture.huggingFace);
  return names;
}

std::vector<Weight> layerWeights(const Config &c) {
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  std::vector<Weight> weights = {{"attn_norm", {c.width}},
                                 {"attn_q", {queries, c.width}},
                                 {"attn_k", {keys, c.width}},
                                 {"attn_v", {keys, c.width}},
                                 {"attn_output", {c.width, queries}},
                                 {"ffn_norm", {c.width}},
                                 {"ffn_gate", {c.hidden, c.width}},
                                 {"ffn_up", {c.hidden, c.width}},
                                 {"ffn_down", {c.width, c.hidden}}};
  if (c.hasBias)
    weights.insert(weights.end(), {{"attn_q_bias", {queries}},
                                   {"attn_k_bias", {keys}},
                                   {"attn_v_bias", {keys}}});
  if (c.hasHeadNorms)
    weights.insert(weights.end(), {{"attn_q_norm", {c.headSize}},
                                   {"attn_k_norm", {c.headSize}}});
  return weights;
}

std::vector<Weight> outerWeights(const Config &c) {
  return {{"token_embd", {c.vocabulary, c.width}},
          {"output_norm", {c.width}},
          {"output", {c.vocabulary, c.width}}};
}

const Stored &Model::weight(const std::string &name) const {
  auto it = weights.find(name == "output" && isTied() ? "token_embd" : name);
  if (it == weights.end())
    fail(path + ": the weight '" + name + "' is missing");
  return it->second;
}

Element Model::element() const {
  Format format = weight(inLayer(0, "attn_q")).format;
  return format == Format::F32    ? Element::F32
         : format == Format::BF16 ? Element::BF16
                                  : Element::F16;
}

static std::string text(const std::vector<int64_t> &shape) {
  std::string result;
  for (int64_t extent : shape)
    result += (result.empty() ? "" : "x") + std::to_string(extent);
  return result;
}

static void checkWeight(const Model &model, const std::string &name,
                        const std::vector<int64_t> &shape) {
  const Stored &stored = model.weight(name);
  if (stored.shape != shape)
    fail(model.path + ": the weight '" + name + "' is " + text(stored.shape) +
         "; the model's sizes ask for " + text(shape));
  const FormatInfo &info = infoOf(stored.format);
  if (stored.columns() % info.block)
    fail(model.path + ": the weight '" + name + "' has rows of " +
         std::to_string(stored.columns()) + " numbers, which are no whole " +
         info.name + " blocks of " + std::to_string(info.block));
}

static void checkSize(const std::string &path, const char *what, int64_t size,
                      int64_t least, int64_t most, int64_t multiple = 1) {
  if (size < least || size > most || size % multiple)
    fail(
        path + ": " + what + " is " + std::to_string(size) + "; it has to be " +
        std::to_string(least) + " to " + std::to_string(most) +
        (multiple > 1 ? " and a multiple of " + std::to_string(multiple) : ""));
}

// Devices compute with it in f32.
static void checkPositive(const std::string &path, const char *what,
                          double value) {
  float held = static_cast<float>(std::clamp(value, -1e38, 1e38));
  if (!std::isfinite(value) || !(held > 0))
    fail(path + ": " + what + " is " + std::to_string(value) +
         "; it has to be a positive number");
}

void checkSizes(const std::string &path, const Config &c) {
  checkSize(path, "the number of layers", c.layers, 1, 4096);
  checkSize(path, "the width", c.width, 8, 1 << 20, 8);
  checkSize(path, "the MLP's width", c.hidden, 8, 1 << 22, 8);
  checkSize(path, "the context", c.context, 1, 1 << 28);
  checkSize(path, "the number of heads", c.heads, 1, 4096);
  checkSize(path, "the number of key heads", c.keyHeads, 1, c.heads);
  checkSize(path, "the size of a head", c.headSize, 8, 1024, 8);
  checkSize(path, "the window", c.window, 0, int64_t(1) << 40);
  if (c.heads % c.keyHeads)
    fail(path + ": " + std::to_string(c.heads) +
         " heads cannot share the keys of " + std::to_string(c.keyHeads));
  checkPositive(path, "the norms' epsilon", c.epsilon);
  checkPositive(path, "rope's base", c.ropeBase);
}

// Quantisers add biases of zeros to matrices that had none.
static bool isBiasOfZeros(const std::string &name, const Stored &stored) {
  constexpr std::string_view suffix = "_bias";
  if (!stored.data || stored.shape.size() != 1 || name.size() < suffix.size() ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return false;
  return std::all_of(stored.data, stored.data + stored.rowBytes(),
                     [](uint8_t byte) { return byte == 0; });
}

void checkModel(const Model &model) {
  const Config &c = model.config;
  checkSizes(model.path, c);
  checkSize(model.path, "the vocabulary", c.vocabulary, 1, 1 << 24);
  for (double factor : c.ropeFactors)
    checkPositive(model.path, "a factor of rope", factor);
  std::set<std::string> used = {"rope_freqs"};
  auto check = [&](const std::string &name, const Weight &weight) {
    checkWeight(model, name, weight.shape);
    used.insert(name);
  };
  for (const Weight &weight : outerWeights(c))
    check(weight.name, weight);
  for (int64_t layer = 0; layer < c.layers; ++layer)
    for (const Weight &weight : layerWeights(c))
      check(Model::inLayer(layer, weight.name), weight);
  for (const auto &[name, stored] : model.weights)
    if (!used.count(name) && !isBiasOfZeros(name, stored))
      fail(model.path + ": the weight '" + name +
           "' is not one that greta-llm uses");
}

Model readModel(const std::string &path, const std::string &synthetic) {
  if (path.empty() == synthetic.empty())
    fail("name one model: a .gguf file, a folder with safetensors, or "
         "--synthetic=NAME");
  Model model;
  model.path = path;
  if (!synthetic.empty())
    makeSynthetic(model, synthetic);
  else if (std::filesystem::is_directory(path))
    readSafetensors(model);
  else
    readGguf(model);
  checkModel(model);
  return model;
}

} // namespace greta::llm
