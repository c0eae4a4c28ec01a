// Model.cpp: see Model.h.
#include "model/Model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace greta::llm {

int64_t Config::window() const {
  int64_t largest = 0;
  for (const LayerKind &kind : kinds)
    largest = std::max(largest, kind.window);
  return largest;
}

bool Config::isUniform() const {
  return std::all_of(kinds.begin(), kinds.end(), [&](const LayerKind &kind) {
    return kind == kinds.front();
  });
}

namespace {
// The weights of a layer, or those around all, as they are added.
class WeightList {
public:
  explicit WeightList(const Config &config) : config(config) {}

  void norm(const std::string &name, int64_t width) {
    weights.push_back({name, {width}, Weight::Norm});
    if (config.has(NormBiases))
      weights.push_back({name + "_bias", {width}, Weight::Norm});
  }
  void matrix(const std::string &name, int64_t rows, int64_t columns) {
    weights.push_back({name, {rows, columns}});
    if (config.biases.count(name))
      weights.push_back({name + "_bias", {rows}, Weight::Bias});
  }
  void matrices(const std::string &name, int64_t count, int64_t rows,
                int64_t columns) {
    weights.push_back({name, {count, rows, columns}});
    if (config.biases.count(name))
      weights.push_back({name + "_bias", {count, rows}, Weight::Bias});
  }
  std::vector<Weight> weights;

private:
  const Config &config;
};
} // namespace

std::vector<Weight> layerWeights(const Config &c) {
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  WeightList list(c);
  if (c.has(NormsBefore))
    list.norm("attn_norm", c.width);
  list.matrix("attn_q", queries, c.width);
  list.matrix("attn_k", keys, c.width);
  list.matrix("attn_v", keys, c.width);
  list.matrix("attn_output", c.width, queries);
  if (c.has(HeadNorms | RowNorms)) {
    list.norm("attn_q_norm", c.has(HeadNorms) ? c.headSize : queries);
    list.norm("attn_k_norm", c.has(HeadNorms) ? c.headSize : keys);
  }
  if (c.has(Sinks))
    list.weights.push_back({"attn_sinks", {c.heads}, Weight::Norm});
  if (c.has(NormsAfter))
    list.norm("post_attention_norm", c.width);
  if (c.has(NormsBefore) && !c.has(Parallel))
    list.norm("ffn_norm", c.width);
  if (c.has(Experts)) {
    list.matrix("ffn_gate_inp", c.mixture.count, c.width);
    list.matrices("ffn_gate_exps", c.mixture.count, c.hidden, c.width);
    list.matrices("ffn_up_exps", c.mixture.count, c.hidden, c.width);
    list.matrices("ffn_down_exps", c.mixture.count, c.width, c.hidden);
    return list.weights;
  }
  if (!c.has(Ungated))
    list.matrix("ffn_gate", c.hidden, c.width);
  list.matrix("ffn_up", c.hidden, c.width);
  list.matrix("ffn_down", c.width, c.hidden);
  if (c.has(NormsAfter))
    list.norm("post_ffw_norm", c.width);
  return list.weights;
}

std::vector<Weight> outerWeights(const Config &c) {
  WeightList list(c);
  list.matrix("token_embd", c.vocabulary, c.width);
  list.norm("output_norm", c.width);
  list.matrix("output", c.vocabulary, c.width);
  return list.weights;
}

const Stored &Model::weight(const std::string &name) const {
  auto it = weights.find(name == "output" && isTied() ? "token_embd" : name);
  if (it == weights.end())
    fail(path + ": the weight '" + name + "' is missing");
  return it->second;
}

Element Model::element() const {
  // What a file has packed is multiplied in f16.
  if (config.has(Experts) &&
      packedFormat(weight(inLayer(0, "ffn_up_exps")).format))
    return Element::F16;
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
  checkSize(path, "the part of a head that rope turns", c.rotated, 2,
            c.headSize, 2);
  if (c.has(Experts)) {
    checkSize(path, "the number of experts", c.mixture.count, 2, 4096);
    checkSize(path, "the number of a token's experts", c.mixture.used, 1,
              std::min<int64_t>(c.mixture.count, 64));
  }
  if (c.heads % c.keyHeads)
    fail(path + ": " + std::to_string(c.heads) +
         " heads cannot share the keys of " + std::to_string(c.keyHeads));
  checkPositive(path, "the norms' epsilon", c.epsilon);
  const std::pair<const char *, double> scales[] = {
      {"the scale of scores", c.attentionScale},
      {"the bound of scores", c.attentionCap},
      {"the bound of logits", c.logitCap},
      {"the scale of the embedding", c.embeddingScale},
      {"the scale of residuals", c.residualScale},
      {"the scale of logits", c.logitScale}};
  for (auto [what, value] : scales)
    if (value != 0)
      checkPositive(path, what, value);
}

static void checkRopes(const std::string &path, const Config &c) {
  for (const Rope &rope : c.ropes) {
    checkPositive(path, "rope's base", rope.base);
    checkPositive(path, "the scale of what rope turns", rope.scale);
    for (const std::vector<double> *some : {&rope.factors, &rope.longFactors})
      for (double factor : *some)
        checkPositive(path, "a factor of rope", factor);
  }
  for (const LayerKind &kind : c.kinds)
    checkSize(path, "the window", kind.window, 0, int64_t(1) << 40);
}

// Rows `first` to `first + count - 1` of a weight of a file.
static Stored sliceOf(const Model &model, const std::string &name,
                      const Stored &whole, int64_t first, int64_t count) {
  if (whole.format == Format::Int4)
    fail(model.path + ": the weight '" + name +
         "' is several in one, which greta-llm does not read quantised by awq "
         "or gptq");
  Stored slice = whole;
  size_t bytes = whole.rowBytes();
  if (whole.shape.size() == 1) // a bias, whose rows are numbers
    bytes = infoOf(whole.format).bytes;
  slice.shape.front() = count;
  slice.data += static_cast<size_t>(first) * bytes;
  return slice;
}

// Takes `name` of a layer apart, which has the rows of the others.
static void split(Model &model, const std::string &name,
                  const std::vector<std::pair<std::string, int64_t>> &others) {
  int64_t rows = 0, first = 0;
  for (const auto &[other, count] : others)
    rows += count;
  for (const char *suffix : {"", "_bias"}) {
    auto it = model.weights.find(name + suffix);
    if (it == model.weights.end())
      continue;
    Stored whole = it->second;
    if (whole.shape.front() != rows ||
        (infoOf(whole.format).block > 1 && whole.shape.size() == 1))
      fail(model.path + ": the weight '" + name + suffix + "' has " +
           std::to_string(whole.shape.front()) +
           " rows; the model's sizes ask for " + std::to_string(rows));
    model.weights.erase(it);
    first = 0;
    for (const auto &[other, count] : others) {
      model.weights[other + suffix] =
          sliceOf(model, name + suffix, whole, first, count);
      first += count;
    }
  }
}

// Makes one weight of those that experts have as tensors of their own.
static void joinExperts(Model &model, const std::string &name) {
  Stored all;
  for (int64_t expert = 0; expert < model.config.mixture.count; ++expert) {
    std::string one = name + "." + std::to_string(expert);
    auto it = model.weights.find(one);
    if (it == model.weights.end()) {
      if (expert == 0) // they are one in the file
        return;
      fail(model.path + ": the weight '" + one + "' is missing");
    }
    const Stored &part = it->second;
    if (part.format == Format::Int4 || part.shape.size() != 2 ||
        (expert && (part.shape != all.shape || part.format != all.format)))
      fail(model.path + ": the weight '" + one +
           "' has another shape or format than those of other experts, or is "
           "quantised by awq or gptq");
    if (!expert)
      all = part;
    all.parts.push_back(part.data);
    model.weights.erase(it);
  }
  all.shape.insert(all.shape.begin(), model.config.mixture.count);
  model.weights[name] = all;
}

void arrangeWeights(Model &model) {
  const Config &c = model.config;
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  for (const char *name : {"token_embd", "output"})
    if (auto it = model.weights.find(name);
        c.isPart && it != model.weights.end() && !it->second.shape.empty() &&
        it->second.format != Format::Int4 &&
        it->second.shape.front() == c.storedVocabulary)
      it->second.shape.front() = c.vocabulary;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    auto named = [&](const char *name) { return Model::inLayer(layer, name); };
    if (c.has(FusedQkv))
      split(model, named("attn_qkv"),
            {{named("attn_q"), queries},
             {named("attn_k"), keys},
             {named("attn_v"), keys}});
    if (c.has(FusedGate))
      split(model, named("ffn_gate_up"),
            {{named("ffn_gate"), c.hidden}, {named("ffn_up"), c.hidden}});
    if (c.has(Experts))
      for (const char *name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
        joinExperts(model, named(name));
    if (!model.pairsAreNeighbours && c.rotated == c.headSize)
      continue;
    for (const char *name : {"attn_q", "attn_k", "attn_q_bias", "attn_k_bias",
                             "attn_q_norm", "attn_k_norm"})
      if (auto it = model.weights.find(named(name)); it != model.weights.end())
        it->second.headOrder = {c.headSize, c.rotated,
                                model.pairsAreNeighbours};
  }
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
  checkRopes(model.path, c);
  std::set<std::string> used = {"rope_freqs"};
  if (c.has(PartialRope))
    used.insert({"rope_factors_short", "rope_factors_long"});
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
  if (synthetic.empty())
    arrangeWeights(model);
  checkModel(model);
  return model;
}

Model readVocabulary(const std::string &path, const std::string &synthetic) {
  Model model;
  model.path = path;
  if (!path.empty() && synthetic.empty() &&
      !std::filesystem::is_directory(path) && readGgufVocabulary(model))
    return model;
  return readModel(path, synthetic);
}

} // namespace greta::llm
