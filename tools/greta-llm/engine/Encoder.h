// Encoder.h: a model of embeddings on a device. In: a model, the package that
// was compiled for it, and the tokens of texts. Out: the embedding of each
// text, a vector of length one. There is no KV cache.
//
// Texts of a pass are filled up to the length of the longest one, and keep
// their own lengths in attention: a text's embedding does not depend on the
// others.
#ifndef GRETA_LLM_ENCODER_H
#define GRETA_LLM_ENCODER_H

#include "engine/Engine.h"

namespace greta::llm {

class Encoder {
public:
  Encoder(const Model &model, const std::string &packagePath,
          const EngineOptions &options);

  using Texts = std::vector<const std::vector<int32_t> *>;
  // All texts go through in one pass. Each has 1 to longest() tokens of the
  // vocabulary, and all have up to room(), as if each were as long as the
  // longest one. A text whose states are not finite has no numbers.
  std::vector<std::vector<float>> embed(const Texts &texts);
  std::string notFinite() const; // what is wrong then
  int64_t longest() const { return most; }
  int64_t room() const { return rows; }
  std::string deviceName() const { return nameOfDevice(runtime); }
  greta_memory memory() const { return runtime.memory(); }

private:
  struct Pass {
    int64_t texts, length; // of the longest text
    int64_t tokens() const { return texts * length; }
  };
  greta::Function load(const std::string &name);
  greta::Tensor bind(const std::string &name, int64_t layer, const Pass &pass,
                     const Buffer &from) const;
  void checkArguments(const greta::Function &function, int64_t layer) const;
  void write(const Texts &texts, const Pass &pass);
  void launch(const greta::Function &function, int64_t layer, const Pass &pass,
              const Buffer &from, const std::vector<greta::Tensor> &to);
  std::vector<float> pooled(const float *states, size_t count) const;

  const Model &model;
  const std::string packagePath;
  Progress progress; // while the constructor loads
  greta::Runtime runtime;
  greta::Package package;
  greta::Stream stream;
  greta::Function lookup; // of the tokens
  const Element element;
  const LayerClasses classes;
  std::vector<greta::Function> layers;    // by class
  std::vector<greta::Function> firstNorm; // empty until it is loaded
  std::unique_ptr<Weights> weights;
  int64_t most, rows; // tokens of a text, and of a pass
  greta::Buffer tokens, positions, lengths, x[2];
  greta::Buffer firsts; // states of first tokens, where these are what is read
  // These are vectors of positions, or angles of a rope.
  greta::Buffer placed, cos, sin, cosTable, sinTable;
};

} // namespace greta::llm
#endif
