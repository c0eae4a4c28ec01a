// Model.h: a language model as a file describes it: sizes, weights by name, and
// the tokenizer's tables. In: a GGUF file, a folder with safetensors and
// Hugging Face's config.json, or the name of a synthetic model. Out: `Model`,
// the same for all of them.
//
// Weights have GGUF's names without the suffix: token_embd, output_norm,
// output, blk.3.attn_q, blk.3.attn_q_bias.
#ifndef GRETA_LLM_MODEL_H
#define GRETA_LLM_MODEL_H

#include "model/Formats.h"
#include "model/Mapping.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace greta::llm {

// The options that tell one architecture's layers from another's.
struct Architecture {
  const char *huggingFace; // model_type in config.json
  const char *gguf;        // general.architecture
  bool hasBias;            // of queries, keys and values
  bool hasHeadNorms;       // of queries and keys
  bool ggufPairs;          // GGUF files have rope's pairs as neighbours
  // When a config.json's `sliding_window` counts: never, always, or in the
  // layers from `max_window_layers` on if `use_sliding_window` says so.
  enum Window { Never, Always, IfAsked } window;
};

struct Config {
  const Architecture *architecture = nullptr;
  int64_t layers = 0, width = 0, hidden = 0, vocabulary = 0, context = 0;
  int64_t heads = 0, keyHeads = 0, headSize = 0;
  double epsilon = 1e-5, ropeBase = 10000;
  // Rope's angle of pair i turns by base^(-2i / headSize) / ropeFactors[i] a
  // token.
  std::vector<double> ropeFactors;
  int64_t window = 0; // keys that a token sees; 0: all
  bool hasBias = false, hasHeadNorms = false;
};

// A weight of the model: its name in a layer (or alone), and its shape.
struct Weight {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<Weight> layerWeights(const Config &config);
std::vector<Weight> outerWeights(const Config &config);

struct Model {
  std::string path;
  Config config;
  std::map<std::string, Stored> weights;
  // tokenizer.json as it is, or what GGUF's metadata says under "tokenizer.";
  // null where the model has none.
  nlohmann::json tokenizer, tokenizerConfig;
  std::vector<int32_t> ends; // tokens that end a text
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

// The parts of readModel. Each fills config, weights and tokenizer.
void readGguf(Model &model);
void readSafetensors(Model &model);
void makeSynthetic(Model &model, const std::string &name);

const Architecture *findHuggingFace(const std::string &name);
const Architecture *findGguf(const std::string &name);
std::string architectureNames();
// Checks everything but the vocabulary and rope's factors, before memory is
// taken for them.
void checkSizes(const std::string &path, const Config &config);
// Checks the rest: every weight's shape and format, and that each is used.
void checkModel(const Model &model);

} // namespace greta::llm
#endif
