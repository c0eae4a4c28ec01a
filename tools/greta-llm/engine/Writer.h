// Writer.h: writes the functions of one model (Graph.h). In: the model and what
// activations are held in. Out: each function as text.
#ifndef GRETA_LLM_WRITER_H
#define GRETA_LLM_WRITER_H

#include "engine/FunctionText.h"
#include "engine/Graph.h"

#include <cstdio>

namespace greta::llm {

class Writer {
public:
  Writer(const Model &model, Element element, KvCache cache)
      : model(model), config(model.config), element(nameOf(element)),
        kind(element), cache(cache) {}

  std::string embed() const;
  std::string layer(const std::string &name, int64_t layer, int64_t tokens,
                    bool isPrompt) const;
  // The products before attention in a layer of latents.
  std::string latent(const std::string &name, int64_t layer,
                     int64_t tokens) const;
  // The experts' matrix products of a layer, whose rows are ordered by expert.
  std::string experts(const std::string &name, int64_t layer,
                      int64_t tokens) const;
  std::string head(const std::string &name, int64_t tokens) const;
  // Each layer of a step hands the next one its norm, so that the norm stands
  // behind the product whose last workgroup computes it; the first layer's is a
  // function of its own.
  bool handsNorms() const {
    return config.has(NormsBefore) && !config.has(Experts) &&
           !config.has(LatentKeys);
  }
  std::string begin(const std::string &name, int64_t tokens) const;
  // The functions of an encoder (EncoderGraph.cpp).
  std::string encodeFirst() const;
  std::string encodeLayer(const std::string &name, int64_t layer) const;

private:
  // The values of a layer that its parts share.
  struct Layer {
    Function &f;
    int64_t number, tokens;
    bool isPrompt;
    Value cos, sin, slots, table, lengths;
    Value begins; // of prompts
  };
  std::string metadata() const;
  Value attendToAll(const Layer &in, const Value &x) const;
  Value linear(Function &f, const Value &x, const std::string &weight,
               const std::string &stored, const std::string &result) const;
  Value norm(Function &f, const Value &x, const std::string &weight,
             int64_t width) const {
    return norm(f, x, weight, width, config.epsilon);
  }
  Value norm(Function &f, const Value &x, const std::string &weight,
             int64_t width, double eps) const;
  Value project(const Layer &in, const Value &x, const std::string &weight,
                const std::string &result) const {
    return linear(in.f, x, weight, Model::inLayer(in.number, weight), result);
  }
  Value heads(const Layer &in, const Value &x, const std::string &weight,
              int64_t count) const;
  Value rotated(const Layer &in, const Value &heads,
                const std::string &weight) const;
  // Keys or values of all tokens; scales where they have some.
  struct Cached {
    Value rows;
    std::vector<Value> scales;
  };
  Cached updated(const Layer &in, const std::string &name,
                 const Value &rows) const;
  Value narrowed(Function &f, const Value &x) const;
  Value attention(const Layer &in, const Value &x,
                  std::vector<Value> &caches) const;
  Value attend(const Layer &in, const Value &queries, const Cached &keys,
               const Cached &values) const;
  Value attentionOfLatents(const Layer &in) const;
  Value batched(Function &f, const Value &x, const std::string &weight,
                int64_t rows, int64_t columns) const;
  Value gelu(Function &f, const Value &gate) const;
  Value clampedSwiglu(Function &f, const Value &gate, const Value &up) const;
  Value gated(Function &f, const Value &gate, const Value &up) const;
  Value mlp(const Layer &in, const Value &x,
            const std::string &suffix = "") const;
  Value shared(const Layer &in, const Value &x) const;
  Value grouped(Function &f, int64_t layer, const Value &x,
                const std::string &weight, const Value &offsets,
                const std::string &result) const;
  // A weight as a matrix, or as one for each expert.
  Value held(Function &f, const std::string &weight,
             const std::string &stored) const;
  // The element type of a product with a weight, `result` or one to convert.
  std::string resultOf(const std::string &stored,
                       const std::string &result) const;
  Value input(Function &f, const Value &from, const char *normName) const;
  // Devices that compute together add up what they make of x and of the biases
  // of their sums, of which each has so much; this is exact, as they are 2, 4
  // or 8.
  double share() const { return 1 / static_cast<double>(config.shards); }
  Value biased(Function &f, const Value &y, Value bias,
               const std::string &weight) const;
  Value summed(Function &f, const Value &y) const;
  std::vector<Value> toExperts(const Layer &in, const Value &x,
                               const Value &inner) const;
  Value residual(Function &f, const Value &x, Value more,
                 const char *norm) const;
  std::string number(double value) const {
    char text[64];
    snprintf(text, sizeof(text), "%.9e : f32", value);
    return text;
  }

  const Model &model;
  const Config &config;
  std::string element;
  Element kind;
  KvCache cache;
};

// A block program that looks rows of a table up by index and multiplies them.
std::string lookupKernel(const std::string &name, const std::string &element,
                         double scale = 1);

} // namespace greta::llm
#endif
