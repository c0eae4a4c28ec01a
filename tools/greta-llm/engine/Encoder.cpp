// Encoder.cpp: see Encoder.h.
#include "engine/Encoder.h"
#include "model/Json.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {

// Positions of longer texts take memory that nobody needs.
constexpr int64_t usualMost = 8192;

static Element elementOf(const greta::Function &embed) {
  for (const greta::TensorInfo &info : embed.arguments())
    if (info.name == "token_embd")
      return elementNamed(info.dtype);
  return Element::F32;
}

Encoder::Encoder(const Model &model, const std::string &packagePath,
                 const EngineOptions &options)
    : model(model), packagePath(packagePath), progress(options.isQuiet),
      runtime(options.device), package(packagePath), stream(runtime.stream()),
      lookup(load("embed")), element(elementOf(lookup)),
      classes(classify(model, element)) {
  const Config &c = model.config;
  checkFacts(package.manifest(), packagePath, factsOf(model, element));
  firstNorm.push_back(load(encodeFirstFunction));
  for (size_t i = 0; i < classes.first.size(); ++i)
    layers.push_back(load(promptFunction(i)));
  weights = std::make_unique<Weights>(
      model, element, runtime, stream, [&](double share) {
        progress.say("loading weights: " +
                     std::to_string(std::lround(share * 100)) + " %");
      });
  most = std::min(c.context, options.context ? options.context : usualMost);
  auto allocate = [&](int64_t columns) {
    return runtime.allocate(static_cast<size_t>(most * columns) * 4);
  };
  tokenBuffer = allocate(1);
  for (greta::Buffer &buffer : x)
    buffer = allocate(c.width);
  if (!c.has(LearnedPositions)) {
    cosTable = allocate(c.pairs());
    sinTable = allocate(c.pairs());
    Rope::Tables tables = c.ropes.front().tables(most, c.pairs());
    stream.write(cosTable, tables.cosines.data(), tables.cosines.size() * 4);
    stream.write(sinTable, tables.sines.data(), tables.sines.size() * 4);
  }
  checkArguments(lookup, -1);
  checkArguments(firstNorm.front(), -1);
  for (size_t i = 0; i < layers.size(); ++i)
    checkArguments(layers[i], classes.first[i]);
  progress.clear();
}

greta::Function Encoder::load(const std::string &name) {
  return loadFunction(runtime, package, packagePath, name);
}

// Positions count from 0, so those of a text are the first rows of tables.
greta::Tensor Encoder::bind(const std::string &name, int64_t layer,
                            int64_t tokens, const Buffer &from) const {
  const Config &c = model.config;
  if (name == "tokens")
    return {&tokenBuffer, {tokens}};
  if (name == "x")
    return {&from, {tokens, c.width}};
  if (!c.has(LearnedPositions) && (name == "cos" || name == "sin"))
    return {name == "cos" ? &cosTable : &sinTable, {tokens, c.pairs()}};
  const DeviceTensor *weight =
      weights->find(layer < 0 ? name : Model::inLayer(layer, name));
  if (!weight)
    return {};
  greta::Tensor tensor(weight->buffer.get(), weight->shape);
  if (name == "position_embd")
    tensor.shape.front() = tokens;
  return tensor;
}

void Encoder::checkArguments(const greta::Function &function,
                             int64_t layer) const {
  llm::checkArguments(
      function, packagePath, *weights, layer,
      [&](const std::string &name) { return bind(name, layer, 1, x[0]); });
}

void Encoder::launch(const greta::Function &function, int64_t layer,
                     int64_t tokens, const Buffer &from, const Buffer &to) {
  std::vector<greta::Tensor> tensors;
  for (const greta::TensorInfo &info : function.arguments())
    tensors.push_back(bind(info.name, layer, tokens, from));
  function.launch(stream, tensors, {{&to, {tokens, model.config.width}}});
}

std::vector<float> Encoder::embed(const std::vector<int32_t> &tokens) {
  const Config &c = model.config;
  int64_t count = static_cast<int64_t>(tokens.size());
  stream.write(tokenBuffer, tokens.data(), tokens.size() * 4);
  launch(lookup, -1, count, x[1], x[1]);
  launch(firstNorm.front(), -1, count, x[1], x[0]);
  for (int64_t layer = 0; layer < c.layers; ++layer)
    launch(layers[classes.classOf[static_cast<size_t>(layer)]], layer, count,
           x[layer % 2], x[(layer + 1) % 2]);
  int64_t rows = c.pooling == Pooling::First ? 1 : count;
  std::vector<float> states(static_cast<size_t>(rows * c.width));
  stream.read(x[c.layers % 2], states.data(), states.size() * 4);
  return pooled(states);
}

std::vector<float> Encoder::pooled(const std::vector<float> &states) const {
  size_t width = static_cast<size_t>(model.config.width);
  std::vector<double> sums(width);
  for (size_t i = 0; i < states.size(); ++i)
    sums[i % width] += static_cast<double>(states[i]);
  double squares = 0;
  for (double sum : sums)
    squares += sum * sum;
  if (!std::isfinite(squares))
    fail(model.path + ": the text's embedding has numbers that are not "
                      "finite; compile the model with --type=f32");
  double length = std::sqrt(squares);
  std::vector<float> result;
  for (double sum : sums)
    result.push_back(static_cast<float>(length > 0 ? sum / length : 0));
  return result;
}

} // namespace greta::llm
