// Facts.cpp: what of a model its functions depend on (Graph.h): how weights are
// held, which layers share functions, and the facts that a package is compared
// by.
#include "engine/FunctionText.h"
#include "engine/Graph.h"
#include "model/Fp8.h"
#include "model/Json.h"

#include <cstdio>
#include <map>
#include <set>

namespace greta::llm {

// Biases of experts have two dimensions.
static bool isBias(const std::string &name) {
  constexpr std::string_view suffix = "_bias";
  return name.size() > suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// A matrix for each head, which are multiplied as floats.
static bool isOfHeads(const std::string &name) {
  std::string last = name.substr(name.rfind('.') + 1);
  return last == "attn_k_b" || last == "attn_v_b";
}

int64_t heldGroup(const Model &model, const std::string &name,
                  Element element) {
  // The embedding is also looked up, so it is held in rows; a packed copy
  // serves the output where one weight is both.
  const Stored &stored = model.weight(name);
  if (element == Element::F32 || name == "token_embd" ||
      name == "position_embd" || name == "token_types" || isBias(name) ||
      isOfHeads(name))
    return 0;
  if (stored.format == Format::Int4)
    return canPackGrouped(stored) ? stored.grouped.group : 0;
  if (stored.format == Format::F8_E4M3)
    return fp8Group(stored);
  return packedFormat(stored.format) ? infoOf(stored.format).group : 0;
}

// How functions take a weight.
static std::string describeArgument(const Model &model, const std::string &name,
                                    Element element) {
  int64_t group = heldGroup(model, name, element);
  if (!group)
    return nameOf(element);
  const Stored &stored = model.weight(name);
  const WeightFormat *row = heldFormat(stored);
  return (row ? std::string(row->name) : infoOf(stored.format).name) +
         " in groups of " + std::to_string(group);
}

std::string describeHeld(const Model &model, Element element) {
  std::map<std::string, int> counts;
  for (const auto &[name, stored] : model.weights) {
    if (stored.shape.size() < 2 || isBias(name))
      continue;
    std::string format = infoOf(stored.format).name;
    const WeightFormat *row = packedFormat(stored.format);
    int bits = row ? row->allBits() : 4;
    bool isPacked = heldGroup(model, name, element) != 0;
    ++counts[" in " + format +
             (isPacked ? ", kept in " + std::to_string(bits) + " bits"
              : format == nameOf(element)
                  ? ""
                  : std::string(", expanded to ") + nameOf(element))];
  }
  std::vector<std::string> parts;
  for (const auto &[what, count] : counts)
    parts.push_back(std::to_string(count) +
                    (count == 1 ? " matrix" : " matrices") + what);
  return joined(parts, "; ");
}

// The parts of a layer's functions that its kind decides; rope's angles are
// arguments.
static std::string describeKind(const Config &c, int64_t layer) {
  const LayerKind &kind = c.kinds[static_cast<size_t>(layer)];
  return (kind.window ? "a window of " + std::to_string(kind.window)
                      : std::string("no window")) +
         (c.ropes[kind.rope].factors.empty() ? ", no rope" : "") +
         (c.has(Experts) && !kind.hasExperts ? ", no experts" : "");
}

LayerClasses classify(const Model &model, Element element) {
  LayerClasses classes;
  std::map<std::vector<std::string>, size_t> known;
  for (int64_t layer = 0; layer < model.config.layers; ++layer) {
    std::vector<std::string> held;
    for (const Weight &weight : layerWeights(model.config, layer))
      held.push_back(
          describeArgument(model, Model::inLayer(layer, weight.name), element));
    held.push_back(describeKind(model.config, layer));
    auto [it, isNew] = known.emplace(std::move(held), known.size());
    if (isNew)
      classes.first.push_back(layer);
    classes.classOf.push_back(it->second);
  }
  return classes;
}

// How functions take the matrices with these names, and in which of them.
static std::string describeMatrices(
    const Model &model, Element element,
    const std::vector<std::pair<std::string, std::string>> &names) {
  std::map<std::string, std::vector<std::string>> held;
  for (const auto &[shown, stored] : names)
    held[describeArgument(model, stored, element)].push_back(shown);
  std::vector<std::string> parts;
  for (const auto &[how, which] : held)
    parts.push_back(held.size() == 1 ? how : how + " (" + joined(which) + ")");
  return joined(parts);
}

// The facts that a model has where its architecture is not as most are.
static void addUnusual(const Config &c,
                       std::map<std::string, std::string> &facts) {
  const std::pair<uint64_t, const char *> traits[] = {
      {NormsAfter, "norms behind attention and MLP"},
      {MeanNorms, "norms of means"},
      {NormBiases, "biases of norms"},
      {RowNorms, "norms of all heads together"},
      {Parallel, "attention beside the MLP"},
      {Ungated, "an MLP without a gate"},
      {Sinks, "sinks of attention"},
      {Bidirectional, "tokens see all others"},
      {LearnedPositions, "learned positions"}};
  for (auto [trait, name] : traits)
    if (c.has(trait))
      facts[name] = "yes";
  if (c.has(LatentKeys))
    facts["latents"] = std::to_string(c.latent.rank) + ", of queries " +
                       std::to_string(c.latent.queryRank) + ", keys of " +
                       std::to_string(c.latent.plain) + " and " +
                       std::to_string(c.latent.rope) + ", values of " +
                       std::to_string(c.latent.value);
  if (c.has(Experts)) {
    facts["experts"] = std::to_string(c.mixture.count);
    facts["experts of a token"] = std::to_string(c.mixture.used);
    facts["weights of experts add up to one"] =
        c.mixture.normalises ? "yes" : "no";
    facts["width of an expert"] = std::to_string(c.mixture.hidden);
    if (c.mixture.shared)
      facts["width of shared experts"] = std::to_string(c.mixture.shared) +
                                         (c.has(SharedGate) ? ", gated" : "");
    if (c.mixture.groups > 1)
      facts["groups of experts"] = std::to_string(c.mixture.usedGroups) +
                                   " of " + std::to_string(c.mixture.groups);
    if (c.has(ChoiceBias))
      facts["experts are chosen"] = "by sigmoids and a bias";
  }
  if (!c.has(NormsBefore))
    facts["norms before attention and MLP"] = "no";
  if (c.architecture->activation == Activation::GeluTanh)
    facts["activation"] = "GELU";
  if (c.architecture->activation == Activation::Gelu)
    facts["activation"] = "GELU by the error function";
  if (c.ropes.size() > 1)
    facts["ropes"] = std::to_string(c.ropes.size());
  const std::pair<const char *, std::pair<double, double>> scales[] = {
      {"scale of scores", {c.attentionScale, 0}},
      {"bound of scores", {c.attentionCap, 0}},
      {"bound of logits", {c.logitCap, 0}},
      {"bound of the MLP's gate", {c.clamp, 0}},
      {"slope of the MLP's gate", {c.slope, 0}},
      {"scale of the embedding", {c.embeddingScale, 1}},
      {"scale of residuals", {c.residualScale, 1}},
      {"scale of experts", {c.mixture.scale, 1}},
      {"scale of logits", {c.logitScale, 1}}};
  for (const auto &[name, values] : scales)
    if (values.first != values.second) {
      char text[32];
      snprintf(text, sizeof(text), "%.6g",
               static_cast<double>(static_cast<float>(values.first)));
      facts[name] = text;
    }
}

static const std::set<std::string> biasesOfQkv = {"attn_q", "attn_k", "attn_v"};

std::map<std::string, std::string> factsOf(const Model &model, Element element,
                                           KvCache cache) {
  const Config &c = model.config;
  char epsilon[32];
  snprintf(epsilon, sizeof(epsilon), "%.6g",
           static_cast<double>(static_cast<float>(c.epsilon)));
  // None is about rope's angles, which are tables of the engine's, or its
  // order: the loader puts the rows of every file into the same one.
  std::map<std::string, std::string> facts = {
      // Counts up when functions change their meaning, not their arguments.
      {"functions", c.has(Bidirectional) ? "3" : "2"},
      {"layers", std::to_string(c.layers)},
      {"width", std::to_string(c.width)},
      {"MLP width", std::to_string(c.hidden)},
      {"vocabulary", std::to_string(c.vocabulary)},
      {"heads", std::to_string(c.heads)},
      {"key heads", std::to_string(c.keyHeads)},
      {"head size", std::to_string(c.headSize)},
      {"window", c.window() ? std::to_string(c.window()) : "none"},
      {"epsilon", epsilon},
      {"biases of queries, keys and values",
       c.biases.count("attn_q") ? "yes" : "no"},
      {"norms of queries and keys", c.has(HeadNorms) ? "yes" : "no"}};
  if (!c.has(Bidirectional))
    facts["output"] = describeMatrices(model, element, {{"output", "output"}});
  if (cache != KvCache::Full)
    facts[kvCacheFact] = nameOf(cache);
  if (c.shards > 1) {
    facts["devices"] = std::to_string(c.shards);
    // Packages of before had sums between functions.
    facts["sums over devices"] = "in layers";
  }
  if (!c.biases.empty() && c.biases != biasesOfQkv)
    facts["biases"] = joined({c.biases.begin(), c.biases.end()});
  addUnusual(c, facts);
  LayerClasses classes = classify(model, element);
  for (size_t i = 0; i < classes.first.size(); ++i) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const Weight &weight : layerWeights(c, classes.first[i]))
      if (weight.kind == Weight::Matrix)
        names.push_back(
            {weight.name, Model::inLayer(classes.first[i], weight.name)});
    facts["matrices of layers of class " + std::to_string(i)] =
        describeMatrices(model, element, names);
    if (!c.isUniform())
      facts["layers of class " + std::to_string(i)] =
          describeKind(c, classes.first[i]);
  }
  return facts;
}

// Shapes are not enough: models that differ in a number alone have the same.
void checkFacts(const std::string &text, const std::string &packagePath,
                const std::map<std::string, std::string> &model) {
  nlohmann::json manifest = parseJson(text, packagePath);
  auto made = manifest.find("metadata");
  if (made == manifest.end() || !made->is_object())
    fail(packagePath + ": does not say which model it was compiled for; run "
                       "greta-llm compile");
  std::string differing;
  auto compare = [&](const std::string &name, const std::string &ofPackage,
                     const std::string &ofModel) {
    if (ofPackage != ofModel)
      differing += (differing.empty() ? "" : "; ") + name + ": " + ofPackage +
                   " in the package, " + ofModel + " in the model";
  };
  for (const auto &[name, value] : made->items())
    if (!model.count(name))
      compare(name, value.is_string() ? value.get<std::string>() : "unknown",
              "none");
  for (const auto &[name, value] : model)
    compare(name,
            made->contains(name) && (*made)[name].is_string()
                ? (*made)[name].get<std::string>()
                : "none",
            value);
  if (!differing.empty())
    fail(packagePath + ": was compiled for another model (" + differing +
         "); run greta-llm compile");
}

} // namespace greta::llm
