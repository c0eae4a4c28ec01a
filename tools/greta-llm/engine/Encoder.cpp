// Encoder.cpp: see Encoder.h.
#include "engine/Encoder.h"
#include "model/Json.h"
#include "model/Shards.h"

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
  if (options.count > 1)
    checkDivisible(model, static_cast<int64_t>(options.count));
  checkKvCache(model, kvCacheNamed(options.kvCache));
  checkFacts(package.manifest(), packagePath, factsOf(model, element));
  firstNorm.push_back(load(encodeFirstFunction));
  for (size_t i = 0; i < classes.first.size(); ++i)
    layers.push_back(load(promptFunction(i)));
  weights = std::make_unique<Weights>(
      model, Stage{0, c.layers}, element, runtime, stream, [&](double share) {
        progress.say("loading weights: " +
                     std::to_string(std::lround(share * 100)) + " %");
      });
  most = std::min(c.context, options.context ? options.context : usualMost);
  rows = std::max(most, options.chunk);
  auto allocate = [&](int64_t count, int64_t columns) {
    return runtime.allocate(static_cast<size_t>(count * columns) * 4);
  };
  for (greta::Buffer *buffer : {&tokens, &positions, &lengths})
    *buffer = allocate(rows, 1);
  for (greta::Buffer &buffer : x)
    buffer = allocate(rows, c.width);
  if (c.pooling == Pooling::First)
    firsts = allocate(rows, c.width);
  if (c.has(LearnedPositions)) {
    placed = allocate(rows, c.width);
  } else {
    for (greta::Buffer *buffer : {&cos, &sin})
      *buffer = allocate(rows, c.pairs());
    for (greta::Buffer *buffer : {&cosTable, &sinTable})
      *buffer = allocate(most, c.pairs());
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

greta::Tensor Encoder::bind(const std::string &name, int64_t layer,
                            const Pass &pass, const Buffer &from) const {
  const Config &c = model.config;
  if (name == "tokens")
    return {&tokens, {pass.tokens()}};
  if (name == "positions")
    return {&positions, {pass.tokens()}};
  if (name == "lengths")
    return {&lengths, {pass.texts}};
  if (name == "x")
    return {&from, {pass.tokens(), c.width}};
  if (name == "placed" && c.has(LearnedPositions))
    return {&placed, {pass.tokens(), c.width}};
  if (!c.has(LearnedPositions)) {
    if (name == "cos" || name == "sin")
      return {name == "cos" ? &cos : &sin, {pass.tokens(), c.pairs()}};
    if (name == "cos_table" || name == "sin_table")
      return {name == "cos_table" ? &cosTable : &sinTable, {most, c.pairs()}};
  }
  const DeviceTensor *weight =
      weights->find(layer < 0 ? name : Model::inLayer(layer, name));
  return weight ? greta::Tensor(weight->buffer.get(), weight->shape)
                : greta::Tensor();
}

void Encoder::checkArguments(const greta::Function &function,
                             int64_t layer) const {
  llm::checkArguments(
      function, packagePath, *weights, layer,
      [&](const std::string &name) { return bind(name, layer, {1, 1}, x[0]); });
}

void Encoder::launch(const greta::Function &function, int64_t layer,
                     const Pass &pass, const Buffer &from,
                     const std::vector<greta::Tensor> &to) {
  std::vector<greta::Tensor> tensors;
  for (const greta::TensorInfo &info : function.arguments())
    tensors.push_back(bind(info.name, layer, pass, from));
  function.launch(stream, tensors, to);
}

// Shorter texts are filled up by a token like others, which no text sees.
void Encoder::write(const Texts &texts, const Pass &pass) {
  auto count = static_cast<size_t>(pass.tokens());
  std::vector<int32_t> ids(count), places(count), sizes;
  for (size_t i = 0; i < count; ++i)
    places[i] = static_cast<int32_t>(i % static_cast<size_t>(pass.length));
  for (size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i]->begin(), texts[i]->end(),
              ids.begin() + static_cast<std::ptrdiff_t>(i) * pass.length);
    sizes.push_back(static_cast<int32_t>(texts[i]->size()));
  }
  stream.write(tokens, ids.data(), ids.size() * 4);
  stream.write(positions, places.data(), places.size() * 4);
  stream.write(lengths, sizes.data(), sizes.size() * 4);
}

std::vector<std::vector<float>> Encoder::embed(const Texts &texts) {
  const Config &c = model.config;
  Pass pass{static_cast<int64_t>(texts.size()), 0};
  for (const std::vector<int32_t> *text : texts)
    pass.length = std::max(pass.length, static_cast<int64_t>(text->size()));
  write(texts, pass);
  std::vector<int64_t> shape = {pass.tokens(), c.width},
                       turns = {pass.tokens(), c.pairs()};
  if (c.has(LearnedPositions))
    launch(lookup, -1, pass, x[1], {{&x[1], shape}, {&placed, shape}});
  else
    launch(lookup, -1, pass, x[1],
           {{&x[1], shape}, {&cos, turns}, {&sin, turns}});
  launch(firstNorm.front(), -1, pass, x[1], {{&x[0], shape}});
  for (int64_t layer = 0; layer < c.layers; ++layer)
    launch(layers[classes.classOf[static_cast<size_t>(layer)]], layer, pass,
           x[layer % 2], {{&x[(layer + 1) % 2], shape}});
  // The host waits once for all texts. The device puts the rows of first tokens
  // together where these alone are read.
  const Buffer *states = &x[c.layers % 2];
  auto width = static_cast<size_t>(c.width);
  auto pitch = static_cast<size_t>(pass.length);
  if (c.pooling == Pooling::First) {
    for (size_t i = 0; i < texts.size(); ++i)
      stream.copy(firsts, *states, width * 4, i * width * 4,
                  i * pitch * width * 4);
    states = &firsts;
    pitch = 1;
  }
  std::vector<float> all(texts.size() * pitch * width);
  stream.read(*states, all.data(), all.size() * 4);
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < texts.size(); ++i)
    results.push_back(pooled(all.data() + i * pitch * width,
                             std::min(pitch, texts[i]->size())));
  return results;
}

std::vector<float> Encoder::pooled(const float *states, size_t count) const {
  size_t width = static_cast<size_t>(model.config.width);
  std::vector<double> sums(width);
  for (size_t i = 0; i < count * width; ++i)
    sums[i % width] += static_cast<double>(states[i]);
  double squares = 0;
  for (double sum : sums)
    squares += sum * sum;
  std::vector<float> result;
  if (!std::isfinite(squares))
    return result;
  double length = std::sqrt(squares);
  for (double sum : sums)
    result.push_back(static_cast<float>(length > 0 ? sum / length : 0));
  return result;
}

std::string Encoder::notFinite() const {
  return model.path + ": the text's embedding has numbers that are not "
                      "finite; compile the model with --type=f32";
}

} // namespace greta::llm
