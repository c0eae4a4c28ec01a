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

int64_t Config::layerWithExperts() const {
  int64_t layer = 0;
  while (layer < layers - 1 && !hasExperts(layer))
    ++layer;
  return layer;
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

std::vector<Weight> layerWeights(const Config &c, int64_t layer) {
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  WeightList list(c);
  if (c.has(NormsBefore))
    list.norm("attn_norm", c.width);
  if (c.has(LatentKeys)) {
    const Latent &l = c.latent;
    int64_t columns = l.queryRank ? l.queryRank : c.width;
    if (l.queryRank) {
      list.matrix("attn_q_a", l.queryRank, c.width);
      list.norm("attn_q_a_norm", l.queryRank);
    }
    list.matrix("attn_q_plain", c.heads * l.plain, columns);
    list.matrix("attn_q_rope", c.heads * l.rope, columns);
    list.matrix("attn_kv_a", l.rank, c.width);
    list.norm("attn_kv_a_norm", l.rank);
    list.matrix("attn_k_rope", l.rope, c.width);
    list.matrices("attn_k_b", c.heads, l.rank, l.plain);
    list.matrices("attn_v_b", c.heads, l.value, l.rank);
    list.matrix("attn_output", c.width, c.heads * l.value);
  } else {
    list.matrix("attn_q", queries, c.width);
    list.matrix("attn_k", keys, c.width);
    list.matrix("attn_v", keys, c.width);
    list.matrix("attn_output", c.width, queries);
  }
  if (c.has(HeadNorms | RowNorms)) {
    list.norm("attn_q_norm", c.has(HeadNorms) ? c.headSize : queries);
    list.norm("attn_k_norm", c.has(HeadNorms) ? c.headSize : keys);
  }
  if (c.has(Bidirectional)) {
    list.norm("attn_output_norm", c.width);
    list.norm("layer_output_norm", c.width);
  }
  if (c.has(Sinks))
    list.weights.push_back({"attn_sinks", {c.heads}, Weight::Norm});
  if (c.has(NormsAfter))
    list.norm("post_attention_norm", c.width);
  if (c.has(NormsBefore) && !c.has(Parallel))
    list.norm("ffn_norm", c.width);
  if (c.hasExperts(layer)) {
    const Mixture &m = c.mixture;
    list.matrix("ffn_gate_inp", m.count, c.width);
    list.matrices("ffn_gate_exps", m.count, m.hidden, c.width);
    list.matrices("ffn_up_exps", m.count, m.hidden, c.width);
    list.matrices("ffn_down_exps", m.count, c.width, m.hidden);
    if (c.has(ChoiceBias))
      list.weights.push_back({"exp_probs_b_bias", {m.count}, Weight::Norm});
    if (m.shared) {
      list.matrix("ffn_gate_shexp", m.shared, c.width);
      list.matrix("ffn_up_shexp", m.shared, c.width);
      list.matrix("ffn_down_shexp", c.width, m.shared);
    }
    if (c.has(SharedGate))
      list.matrix("ffn_gate_inp_shexp", 1, c.width);
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
  if (c.has(Bidirectional)) {
    if (c.has(LearnedPositions))
      list.matrix("position_embd", c.context, c.width);
    list.weights.push_back({"token_types", {c.width}, Weight::Norm});
    list.norm("token_embd_norm", c.width);
    return list.weights;
  }
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
  // Weights that a file has packed are multiplied in f16.
  int64_t last = config.layers - 1;
  if (config.hasExperts(last) &&
      packedFormat(weight(inLayer(last, "ffn_up_exps")).format))
    return Element::F16;
  Format format = weight(inLayer(0, "attn_output")).format;
  return format == Format::F32    ? Element::F32
         : format == Format::BF16 ? Element::BF16
                                  : Element::F16;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string result;
  for (int64_t extent : shape)
    result += (result.empty() ? "" : "x") + std::to_string(extent);
  return result;
}

static void checkWeight(const Model &model, const std::string &name,
                        const std::vector<int64_t> &shape) {
  const Stored &stored = model.weight(name);
  if (stored.shape != shape)
    fail(model.path + ": the weight '" + name + "' is " +
         shapeText(stored.shape) + "; the model's sizes ask for " +
         shapeText(shape));
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
  constexpr double most = 1e38;
  float held = static_cast<float>(std::clamp(value, -most, most));
  if (!(value <= most) || !(held > 0))
    fail(path + ": " + what + " is " + std::to_string(value) +
         "; it has to be a positive number of f32");
}

static void checkMixture(const std::string &path, const Mixture &m) {
  checkSize(path, "the width of an expert", m.hidden, 8, 1 << 22, 8);
  checkSize(path, "the width of shared experts", m.shared, 0, 1 << 22, 8);
  checkSize(path, "the number of experts' groups", m.groups, 1, 64);
  checkSize(path, "the number of a token's groups of experts", m.usedGroups, 1,
            m.groups);
  checkPositive(path, "the scale of experts' weights", m.scale);
  if (m.count % m.groups || m.count / m.groups * m.usedGroups < m.used)
    fail(path + ": " + std::to_string(m.used) + " of " +
         std::to_string(m.count) + " experts cannot be in " +
         std::to_string(m.usedGroups) + " of " + std::to_string(m.groups) +
         " groups");
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
  if (c.has(LatentKeys)) {
    const Latent &l = c.latent;
    checkSize(path, "the rank of keys' latents", l.rank, 8, 896, 8);
    checkSize(path, "the rank of queries' latents", l.queryRank, 0, 1 << 20, 8);
    checkSize(path, "the part of a key without rope", l.plain, 8, 1024, 8);
    checkSize(path, "the part of a key with rope", l.rope, 8, 128, 8);
    checkSize(path, "the size of a value", l.value, 8, 1024, 8);
  }
  if (c.has(Experts)) {
    checkSize(path, "the number of experts", c.mixture.count, 2, 4096);
    checkSize(path, "the number of a token's experts", c.mixture.used, 1,
              std::min<int64_t>(c.mixture.count, 64));
    checkMixture(path, c.mixture);
    // A group counts by its two best experts.
    if (c.has(ChoiceBias) && c.mixture.groups > 1)
      checkSize(path, "the number of experts in a group",
                c.mixture.count / c.mixture.groups, 2, c.mixture.count);
  }
  if (c.heads % c.keyHeads)
    fail(path + ": " + std::to_string(c.heads) +
         " heads cannot share the keys of " + std::to_string(c.keyHeads));
  checkPositive(path, "the norms' epsilon", c.epsilon);
  if (c.architecture->activation == Activation::ClampedSwiglu) {
    checkPositive(path, "the bound of the MLP's gate", c.clamp);
    checkPositive(path, "the slope of the MLP's gate", c.slope);
  }
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

// Takes `count` rows of each head, from `first` on.
static Stored partOfHeads(const Model &model, const Stored &whole,
                          int64_t ofHead, int64_t first, int64_t count) {
  int64_t heads = model.config.heads;
  Stored part = whole;
  part.shape.front() = heads * count;
  for (int64_t head = 0; head < heads; ++head)
    part.parts.push_back(whole.row(static_cast<size_t>(head * ofHead + first)));
  return part;
}

// The weights of keys and values of latents: queries and keys are apart by
// whether they have rope, and what makes keys of latents is transposed, as it
// is for queries here.
static void arrangeLatent(Model &model, int64_t layer) {
  const Config &c = model.config;
  const Latent &l = c.latent;
  auto named = [&](const char *name) { return Model::inLayer(layer, name); };
  auto take = [&](const char *name, std::vector<int64_t> shape) {
    std::string whole = named(name);
    Stored stored = model.weight(whole);
    if (stored.shape != shape || stored.format == Format::Int4)
      fail(model.path + ": the weight '" + whole + "' is " +
           shapeText(stored.shape) + "; the model's sizes ask for " +
           shapeText(shape) + ", not quantised by awq or gptq");
    model.weights.erase(whole);
    return stored;
  };
  HeadOrder order{l.rope, l.rope, model.pairsAreNeighbours};
  Stored q =
      take(l.queryRank ? "attn_q_b" : "attn_q",
           {c.heads * (l.plain + l.rope), l.queryRank ? l.queryRank : c.width});
  model.weights[named("attn_q_plain")] =
      partOfHeads(model, q, l.plain + l.rope, 0, l.plain);
  Stored rope = partOfHeads(model, q, l.plain + l.rope, l.plain, l.rope);
  rope.headOrder = order;
  model.weights[named("attn_q_rope")] = rope;
  Stored kv = take("attn_kv_a_mqa", {l.rank + l.rope, c.width});
  model.weights[named("attn_kv_a")] =
      sliceOf(model, "attn_kv_a_mqa", kv, 0, l.rank);
  rope = sliceOf(model, "attn_kv_a_mqa", kv, l.rank, l.rope);
  rope.headOrder = order;
  model.weights[named("attn_k_rope")] = rope;
  // GGUF files have both parts, and some the whole beside them.
  if (model.weights.count(named("attn_k_b")) &&
      model.weights.count(named("attn_v_b")))
    model.weights.erase(named("attn_kv_b"));
  if (!model.weights.count(named("attn_kv_b")))
    return;
  Stored both = take("attn_kv_b", {c.heads * (l.plain + l.value), l.rank});
  const FormatInfo &info = infoOf(both.format);
  if (info.block > 1)
    fail(model.path + ": the weight '" + named("attn_kv_b") + "' is in " +
         info.name +
         "; greta-llm takes it in floats, or as attn_k_b and "
         "attn_v_b: convert the model with a newer llama.cpp");
  Stored v = partOfHeads(model, both, l.plain + l.value, l.plain, l.value);
  v.shape = {c.heads, l.value, l.rank};
  model.weights[named("attn_v_b")] = v;
  Stored k = partOfHeads(model, both, l.plain + l.value, 0, l.plain);
  k.shape = {c.heads, l.rank, l.plain};
  k.rowStride = info.bytes;
  k.columnStride = both.rowBytes();
  model.weights[named("attn_k_b")] = k;
}

// All tokens of a text are of the first type.
static void takeFirstType(Model &model) {
  auto types = model.weights.find("token_types");
  if (types == model.weights.end())
    return;
  Stored &stored = types->second;
  if (stored.shape.size() != 2 || stored.shape[1] != model.config.width ||
      stored.format == Format::Int4)
    fail(model.path + ": the weight 'token_types' is " +
         shapeText(stored.shape) + "; the model's sizes ask for rows of " +
         std::to_string(model.config.width));
  stored.shape.erase(stored.shape.begin());
}

// Positions that no token of a text has are left out.
static void takeLaterPositions(Model &model) {
  auto found = model.weights.find("position_embd");
  int64_t skipped = model.config.skippedPositions;
  if (!skipped || found == model.weights.end())
    return;
  Stored &stored = found->second;
  if (stored.shape.size() != 2 || stored.format == Format::Int4 ||
      stored.shape[0] <= skipped)
    fail(model.path + ": the weight 'position_embd' is " +
         shapeText(stored.shape) + "; the model's sizes ask for more than " +
         std::to_string(skipped) + " rows");
  stored.data += static_cast<size_t>(skipped) * stored.rowBytes();
  stored.shape[0] -= skipped;
}

void arrangeWeights(Model &model) {
  const Config &c = model.config;
  int64_t queries = c.heads * c.headSize, keys = c.keyHeads * c.headSize;
  if (c.has(Bidirectional))
    takeFirstType(model);
  takeLaterPositions(model);
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
    // GGUF files have it without the dimension of 1.
    if (auto gate = model.weights.find(named("ffn_gate_inp_shexp"));
        gate != model.weights.end() && gate->second.shape.size() == 1)
      gate->second.shape.insert(gate->second.shape.begin(), 1);
    if (c.has(LatentKeys)) {
      arrangeLatent(model, layer);
      continue;
    }
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
    for (const Weight &weight : layerWeights(c, layer))
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

Model readLanguageModel(const std::string &path, const std::string &synthetic) {
  Model model = readModel(path, synthetic);
  if (model.config.has(Bidirectional))
    fail(model.path + ": is a model of embeddings, which makes no texts; the "
                      "commands embed and serve run it");
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
