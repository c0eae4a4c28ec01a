// Model.h: a language model as a file describes it: sizes, weights by name, and
// the tokenizer's tables. In: a GGUF file, a folder with safetensors and
// Hugging Face's config.json, or the name of a synthetic model. Out: `Model`,
// the same for all of them.
//
// Weights have GGUF's names without the suffix: token_embd, output_norm,
// output, blk.3.attn_q, blk.3.attn_q_bias.
#ifndef GRETA_LLM_MODEL_H
#define GRETA_LLM_MODEL_H

#include "model/Architecture.h"
#include "model/Formats.h"
#include "model/Mapping.h"
#include "model/Rope.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace greta::llm {

// Layers may differ in these.
struct LayerKind {
  int64_t window = 0; // keys that a token sees; 0: all
  size_t rope = 0;    // of Config::ropes
  bool hasExperts = false;
  bool operator==(const LayerKind &other) const {
    return window == other.window && rope == other.rope &&
           hasExperts == other.hasExperts;
  }
};

// Experts of an MLP.
struct Mixture {
  int64_t count = 0;       // experts
  int64_t used = 0;        // by each token
  int64_t hidden = 0;      // the width of one's MLP
  int64_t shared = 0;      // of the MLP that all tokens have beside; 0: none
  bool normalises = false; // a token's weights add up to one
  double scale = 1;        // of a token's weights
  // A token chooses among the experts of some groups.
  int64_t groups = 1, usedGroups = 1;
};

// Keys and values that are made of a latent for each token.
struct Latent {
  int64_t rank = 0;      // of keys' and values' latents
  int64_t queryRank = 0; // of those of queries; 0: they have none
  int64_t plain = 0;     // numbers of a head's key without rope,
  int64_t rope = 0;      // with rope, the same for all heads,
  int64_t value = 0;     // and of its value
};

// The width of an MLP that so many experts of a width are; -1: too large.
inline int64_t widthOfShared(int64_t count, int64_t width) {
  int64_t product;
  return __builtin_mul_overflow(count, width, &product) ? -1 : product;
}

// The embedding of a text is the mean of its tokens' states, or the state of
// the first one.
enum class Pooling { Mean, First };

struct Config {
  const Architecture *architecture = nullptr;
  int64_t layers = 0, width = 0, hidden = 0, vocabulary = 0, context = 0;
  int64_t heads = 0, keyHeads = 0, headSize = 0;
  int64_t rotated = 0; // numbers of a head that rope turns, the first ones
  double epsilon = 1e-5;
  std::vector<Rope> ropes;
  std::vector<LayerKind> kinds; // of each layer
  Mixture mixture;
  Latent latent; // the one key head is a latent and the key's part with rope
  std::set<std::string> biases; // the layers' matrices that have one
  double clamp = 0, slope = 0;  // of ClampedSwiglu
  double attentionScale = 0;    // of scores; 0: the root of a head's size
  double attentionCap = 0, logitCap = 0; // c: c tanh(x / c); 0: none
  double embeddingScale = 1, residualScale = 1, logitScale = 1;

  // The text part of a model that also sees: files have other parts, and tokens
  // from `vocabulary` up to this one that are no text.
  bool isPart = false;
  int64_t storedVocabulary = 0;
  // Devices that compute layers together, each with a part (Shards.h).
  int64_t shards = 1;
  Pooling pooling = Pooling::Mean; // of an encoder
  int64_t skippedPositions = 0;    // which the file has before those of a text
  // Layers behind the last one, which files have and nobody runs.
  int64_t nextLayers = 0;

  bool has(uint64_t traits) const { return architecture->has(traits); }
  // Pairs in rope's tables.
  int64_t pairs() const {
    return (has(LatentKeys) ? latent.rope : headSize) / 2;
  }
  // Caches of a layer.
  int64_t caches() const { return has(LatentKeys) ? 1 : 2; }
  // The largest window; 0: no layer has one.
  int64_t window() const;
  bool hasExperts(int64_t layer) const {
    return kinds[static_cast<size_t>(layer)].hasExperts;
  }
  // A layer with experts, if the model has some.
  int64_t layerWithExperts() const;
  // All layers are of one kind.
  bool isUniform() const;
};

// A weight of the model: its name in a layer (or alone), and its shape. Devices
// hold those of norms in f32.
struct Weight {
  enum Kind { Matrix, Bias, Norm };
  std::string name;
  std::vector<int64_t> shape;
  Kind kind = Matrix;
};
std::vector<Weight> layerWeights(const Config &config, int64_t layer);
std::vector<Weight> outerWeights(const Config &config);

struct Model {
  std::string path;
  Config config;
  std::map<std::string, Stored> weights;
  // tokenizer.json as it is, or what GGUF's metadata says under "tokenizer.";
  // null where the model has none.
  nlohmann::json tokenizer, tokenizerConfig;
  std::vector<int32_t> ends; // tokens that end a text
  // Rope's pairs of queries and keys are neighbours in the file.
  bool pairsAreNeighbours = false;
  std::vector<std::unique_ptr<Mapping>> files;

  const Stored &weight(const std::string &name) const;
  static std::string inLayer(int64_t layer, const std::string &name) {
    return "blk." + std::to_string(layer) + "." + name;
  }
  // The output's weight is the embedding's where the file has none.
  bool isTied() const { return !weights.count("output"); }
  // The type of activations unless the user says: the type of the weights.
  Element element() const;
};

// `path` is a .gguf file or a folder; `synthetic` the name of a model without a
// file, "tiny" or "llama3-8b", with a format after a colon ("tiny:q4_0"). One
// of them is empty.
Model readModel(const std::string &path, const std::string &synthetic);
// The same of a model that makes texts; one of embeddings is refused.
Model readLanguageModel(const std::string &path, const std::string &synthetic);
// The same, or of a GGUF file that has a vocabulary and no weights what the
// tokenizer needs: the size of the vocabulary and the tables.
Model readVocabulary(const std::string &path, const std::string &synthetic);

// The parts of readModel. Each fills config, weights and tokenizer.
void readGguf(Model &model);
// Fills the vocabulary's size and the tokenizer where the file has no weights.
bool readGgufVocabulary(Model &model);
void readSafetensors(Model &model);
void makeSynthetic(Model &model, const std::string &name);
// The names that it takes, with commas between them.
std::string syntheticNames();
std::string syntheticFormats();

// A shape for people: 96x64.
std::string shapeText(const std::vector<int64_t> &shape);

// Checks everything but the vocabulary, ropes and kinds of layers, before
// memory is taken for them.
void checkSizes(const std::string &path, const Config &config);
// Takes weights of files apart that are several of ours, and says how rows of
// queries and keys are ordered.
void arrangeWeights(Model &model);
// Checks the rest: every weight's shape and format, and that each is used.
void checkModel(const Model &model);

} // namespace greta::llm
#endif
