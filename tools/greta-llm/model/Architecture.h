// Architecture.h: what tells one architecture's layers from another's, as rows
// of a table. The readers of files, the writer of the graph and the binding of
// weights all look at a model's row, so an architecture that is made of known
// parts is a row alone.
#ifndef GRETA_LLM_ARCHITECTURE_H
#define GRETA_LLM_ARCHITECTURE_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace greta::llm {

// The parts of an architecture. The ones behind the empty line say which
// numbers a model of the architecture brings, in fields of its description.
enum Trait : uint64_t {
  NormsBefore = 1u << 0,   // norms of what attention and the MLP read
  NormsAfter = 1u << 1,    // norms of what they add to the residual stream
  MeanNorms = 1u << 2,     // norms subtract the mean; else RMS
  NormBiases = 1u << 3,    // norms have biases
  NormsLessOne = 1u << 4,  // safetensors have norms' weights less one
  HeadNorms = 1u << 5,     // norms of each head of queries and keys
  RowNorms = 1u << 6,      // norms of all heads of queries and of keys together
  Parallel = 1u << 7,      // the MLP reads what attention reads
  Ungated = 1u << 8,       // the MLP has no gate
  PairsInGguf = 1u << 9,   // rope's pairs are neighbours in GGUF files
  PairsInFiles = 1u << 10, // they are in all files
  FusedQkv = 1u << 11,     // queries, keys and values are one weight of a file
  FusedGate = 1u << 12,    // gate and up are
  RopeInWindows = 1u << 13, // layers without a window have no rope
  Experts = 1u << 14,       // the MLP is a mixture of experts
  SharesOfAll = 1u << 15,   // in GGUF files their weights do not add up to one

  WidthScale = 1u << 16,   // the embedding is multiplied by the width's root
  Multipliers = 1u << 17,  // of the embedding, residuals, scores and logits
  LogitScale = 1u << 18,   // a factor of the logits
  SoftCaps = 1u << 19,     // bounds of scores and of logits
  QueryScalar = 1u << 20,  // scores are divided by a number's root
  LocalRope = 1u << 21,    // layers with a window have a rope of their own
  PartialRope = 1u << 22,  // rope turns a part of each head
  LayersOfRope = 1u << 23, // a list says which layers have rope
  ForeignCode = 1u << 24,  // files also name code, which does the same

  Sinks = 1u << 25,         // each head has a logit whose weight goes nowhere
  GatesInTurn = 1u << 26,   // experts' gates and ups are rows of one weight, in
                            // turn, and safetensors have floats transposed
  SharedExperts = 1u << 27, // an MLP for all tokens beside a mixture
  SharedGate = 1u << 28,    // which each token multiplies by a sigmoid
  LatentKeys = 1u << 30,    // keys and values are made of latents
  ChoiceBias = 1u << 29,    // experts have weights by sigmoids, and are chosen
                            // by these and a number for each
  DenseLayers = 1u << 31,   // lists and steps say which layers have experts

  // All tokens see each other, and the results are states of tokens. Norms are
  // of the embedding, and of the residual stream behind attention and the MLP.
  Bidirectional = uint64_t(1) << 32,
  LearnedPositions = uint64_t(1) << 33, // are added to the embedding; no rope
  // In safetensors the rows of positions up to that of pad_token_id belong to
  // no token of a text.
  LatePositions = uint64_t(1) << 34,
};

// ClampedSwiglu: (up + 1) * gate * sigmoid(slope * gate) of a gate below a
// bound and an up within it.
enum class Activation { Silu, Gelu, GeluTanh, ClampedSwiglu };

// The layers that see a window of keys: none, all, those that fields ask for,
// all or those without rope where a field asks for it, or all but each
// `period`-th.
enum class Windows {
  Never,
  Always,
  IfAsked,
  AllIfAsked,
  WithoutRopeIfAsked,
  Pattern
};

// Words of a text between spaces.
std::vector<std::string> wordsOf(const std::string &text);

struct Architecture {
  Architecture(const char *huggingFace, const char *gguf, uint64_t traits)
      : huggingFace(huggingFace), gguf(gguf), traits(traits) {}

  const char *huggingFace; // model_type in config.json
  const char *gguf;        // general.architecture
  uint64_t traits;
  Activation activation = Activation::Silu;
  Windows window = Windows::Never;
  int64_t period = 0;
  const char *biases = "";      // weights that have biases,
  const char *askedBiases = ""; // those that have where this field says so
  const char *biasField = nullptr;
  const char *epsilon = "rms_norm_eps"; // the field in config.json
  const char *names = ""; // "theirs=ours": tensors that are not named as usual
  const char *ggufNames = ""; // the same in GGUF files
  const char *defaults = "";  // what config.json means where it says nothing

  bool has(uint64_t some) const { return (traits & some) != 0; }
  // The name that a layer's tensor of safetensors has here; empty: none.
  std::string nameOf(const std::string &theirs) const;
  // The name here of a layer's tensor of GGUF files.
  std::string nameInGguf(const std::string &theirs) const;

  // A row sets these beside its traits.
  Architecture &activates(Activation how);
  Architecture &windows(Windows which, int64_t every = 0);
  Architecture &hasBiases(const char *weights);
  Architecture &asksForBiases(const char *field, const char *weights);
  Architecture &hasEpsilon(const char *field);
  Architecture &hasNames(const char *pairs);
  Architecture &hasGgufNames(const char *pairs);
  Architecture &assumes(const char *json);
  /// The values of fields that are absent.
  nlohmann::json assumed() const;
};

const Architecture *findHuggingFace(const std::string &name);
// Several rows have one name in GGUF, which a file's experts tell apart.
const Architecture *findGguf(const std::string &name, bool hasExperts = false,
                             bool areSigmoids = false);
std::string architectureNames();
std::vector<const Architecture *> allArchitectures();

} // namespace greta::llm
#endif
