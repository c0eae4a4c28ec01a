// Encoder.h: a model of embeddings on a device. In: a model, the package that
// was compiled for it, and the tokens of a text. Out: the text's embedding, a
// vector of length one. Each text is a pass of its own; there is no KV cache.
#ifndef GRETA_LLM_ENCODER_H
#define GRETA_LLM_ENCODER_H

#include "engine/Engine.h"

namespace greta::llm {

class Encoder {
public:
  Encoder(const Model &model, const std::string &packagePath,
          const EngineOptions &options);

  // 1 to longest() tokens of the vocabulary.
  std::vector<float> embed(const std::vector<int32_t> &tokens);
  int64_t longest() const { return most; }
  std::string deviceName() const { return nameOfDevice(runtime); }
  greta_memory memory() const { return runtime.memory(); }

private:
  greta::Function load(const std::string &name);
  greta::Tensor bind(const std::string &name, int64_t layer, int64_t tokens,
                     const Buffer &from) const;
  void checkArguments(const greta::Function &function, int64_t layer) const;
  void launch(const greta::Function &function, int64_t layer, int64_t tokens,
              const Buffer &from, const Buffer &to);
  std::vector<float> pooled(const std::vector<float> &states) const;

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
  int64_t most; // tokens of a text
  greta::Buffer tokenBuffer, x[2], cosTable, sinTable;
};

} // namespace greta::llm
#endif
