// Bindings.cpp: which tensor an argument of a function is (Engine.h). In: the
// names of arguments, which are those of weights and of the engine's buffers.
// Out: tensors, or that a package is not this model's.
#include "engine/Engine.h"
#include "engine/Experts.h"
#include "engine/Latent.h"

#include <cstdlib>

namespace greta::llm {

void checkArguments(
    const greta::Function &function, const std::string &packagePath,
    const Weights &weights, int64_t layer,
    const std::function<greta::Tensor(const std::string &)> &bind) {
  for (const greta::TensorInfo &info : function.arguments()) {
    greta::Tensor tensor = bind(info.name);
    const DeviceTensor *weight =
        weights.find(layer < 0 ? info.name : Model::inLayer(layer, info.name));
    bool fits = tensor.buffer && tensor.shape.size() == info.shape.size() &&
                (!weight || weight->dtype == info.dtype);
    // The first dimension of what is no weight counts tokens, of which each
    // launch has its own number.
    for (size_t i = weight ? 0 : 1; fits && i < info.shape.size(); ++i)
      fits = info.shape[i] == -1 || info.shape[i] == tensor.shape[i];
    if (!fits)
      fail(packagePath + ": its argument '" + info.name +
           "' is not what this model has; run greta-llm compile");
  }
}

void Engine::checkArguments(const greta::Function &function, int64_t layer) {
  Inputs inputs = inputsOf(1, 1, pages);
  llm::checkArguments(function, packagePath, *weights, layer,
                      [&](const std::string &name) {
                        return bind(name, layer, inputs, x[0], 0);
                      });
}

// The cosines and sines of a layer's rope, and of all: cos1 and cos1_table are
// those of the second one.
greta::Tensor Engine::bindTurns(const std::string &name, int64_t layer,
                                int64_t tokens) {
  size_t rope = layer >= 0 ? model.config.kinds[static_cast<size_t>(layer)].rope
                           : static_cast<size_t>(atoi(name.c_str() + 3));
  if (rope >= turns.size())
    return {};
  Turns &some = turns[rope];
  bool isCos = name[0] == 'c', isTable = name.find("_table") != name.npos;
  int64_t half = model.config.pairs();
  if (isTable)
    return {isCos ? &some.cosTable : &some.sinTable, {positions, half}};
  return {isCos ? &some.cos : &some.sin, {tokens, half}};
}

// The buffers between the functions of a layer with experts.
greta::Tensor Engine::bindPairs(const std::string &name, int64_t tokens) {
  const Config &c = model.config;
  int64_t rows = tokens * c.mixture.used;
  if (!c.has(Experts))
    return {};
  if (name == "normed")
    return {&pairs.normed, {tokens, c.width}};
  if (name == "router_logits")
    return {&pairs.logits, {tokens, c.mixture.count}};
  if (name == "pair_weights")
    return {&pairs.weights, {tokens, c.mixture.used}};
  if (name == "pair_places")
    return {&pairs.places, {rows}};
  if (name == "expert_offsets")
    return {&pairs.offsets, {c.mixture.count + 1}};
  if (name == "pair_rows")
    return {&pairs.rows, {rows, c.width}};
  if (name == "pair_results")
    return {&pairs.results, {rows, c.width}};
  for (const ExpertBias &bias : expertBiases(c))
    if (biasOfPairs(bias.weight) == name)
      return {&pairs.biases.at(name), {rows, bias.width}};
  return {};
}

// The norm that a layer reads, or the head, and the weights of that which it
// leaves. A stage's last layer has no next one of its own; nobody reads its.
greta::Tensor Engine::bindHanded(const std::string &name, int64_t layer,
                                 int64_t tokens) {
  const Config &c = model.config;
  if (name == "normed" && handed[0])
    return {&handed[static_cast<size_t>(layer < 0 ? c.layers : layer) % 2],
            {tokens, c.width}};
  constexpr std::string_view next = "next_norm";
  if (name.compare(0, next.size(), next) != 0)
    return {};
  bool isLast = layer + 1 == c.layers;
  std::string weight =
      (isLast ? "output_norm" : "attn_norm") + name.substr(next.size());
  if (!isLast)
    weight =
        Model::inLayer(layer + 1 < stage.end ? layer + 1 : stage.first, weight);
  const DeviceTensor *found = weights->find(weight);
  return found ? greta::Tensor(found->buffer.get(), found->shape)
               : greta::Tensor();
}

// The keys, the values, or their scales, of a layer.
greta::Tensor Engine::bindCache(const std::string &name, int64_t layer) {
  const Config &c = model.config;
  size_t i = static_cast<size_t>(layer);
  auto bound = [&](std::vector<greta::Buffer> &buffers, int64_t columns) {
    return layer < 0 || i >= buffers.size()
               ? greta::Tensor()
               : greta::Tensor(&buffers[i],
                               {pages, pageSize, c.keyHeads, columns});
  };
  if (name == "k_cache")
    return bound(keys, c.headSize);
  if (name == "v_cache")
    return bound(values, c.headSize);
  int64_t group = groupOf(kvCache);
  if (group && name == "k_scales")
    return bound(keyScales, c.headSize / group);
  if (group && name == "v_scales")
    return bound(valueScales, c.headSize / group);
  return {};
}

greta::Tensor Engine::bindLatent(const std::string &name, int64_t tokens) {
  auto buffer = latents.find(name);
  return buffer == latents.end()
             ? greta::Tensor()
             : greta::Tensor(&buffer->second,
                             latentShape(model.config, name, tokens));
}

// The tensor that an argument's name means in a step.
greta::Tensor Engine::bind(const std::string &name, int64_t layer,
                           const Inputs &inputs, const Buffer &from,
                           int64_t row) {
  const Config &c = model.config;
  auto input = [&](int array, std::vector<int64_t> shape) {
    return greta::Tensor(inputs.buffer, std::move(shape), inputs.offset(array));
  };
  if (name == "tokens")
    return input(Tokens, {inputs.tokens});
  if (name == "positions")
    return input(Positions, {inputs.tokens});
  if (name == "slots")
    return input(Slots, {inputs.tokens});
  if (name == "lengths")
    return input(Lengths, {inputs.sequences});
  if (name == "begins")
    return input(Begins, {inputs.sequences + 1});
  if (name == "table")
    return input(Tables, {inputs.sequences, inputs.pages});
  if (name == "logits")
    return greta::Tensor(&logitBuffer, {inputs.tokens, c.vocabulary});
  if (name == "places")
    return greta::Tensor(&places.numbers, {inputs.tokens});
  if (name == "rows")
    return greta::Tensor(&places.rows, {inputs.tokens, SamplingWords});
  if (name == "masks")
    return greta::Tensor(&places.masks,
                         {inputs.tokens, maskWords(c.vocabulary)});
  if (name == "counts")
    return greta::Tensor(&places.counts, {inputs.tokens, c.vocabulary});
  if (name == "x")
    return greta::Tensor(&from, {inputs.tokens, c.width},
                         static_cast<size_t>(row * c.width) * 4);
  if (name.rfind("cos", 0) == 0 || name.rfind("sin", 0) == 0)
    return bindTurns(name, layer, inputs.tokens);
  for (const greta::Tensor &handed :
       {bindCache(name, layer), bindPairs(name, inputs.tokens),
        bindLatent(name, inputs.tokens),
        bindHanded(name, layer, inputs.tokens)})
    if (handed.buffer)
      return handed;
  const DeviceTensor *weight =
      weights->find(layer < 0 ? name : Model::inLayer(layer, name));
  return weight ? greta::Tensor(weight->buffer.get(), weight->shape)
                : greta::Tensor();
}

std::vector<greta::Tensor> Engine::bindAll(const greta::Function &function,
                                           int64_t layer, const Inputs &inputs,
                                           const Buffer &from, int64_t row) {
  std::vector<greta::Tensor> tensors;
  for (const greta::TensorInfo &info : function.arguments())
    tensors.push_back(bind(info.name, layer, inputs, from, row));
  return tensors;
}

} // namespace greta::llm
