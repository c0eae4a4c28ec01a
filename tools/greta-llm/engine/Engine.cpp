// Engine.cpp: see Engine.h. The input of some tokens (tokens, positions, slots,
// lengths and page tables) is one buffer, which the host writes for prompts.
#include "engine/Engine.h"
#include "Options.h"
#include "engine/Experts.h"
#include "engine/Latent.h"
#include "model/Json.h"
#include "model/Shards.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <sstream>

namespace greta::llm {

EngineOptions EngineOptions::of(const Options &options) {
  EngineOptions engine;
  engine.devices = options.devices;
  engine.meet = options.meet;
  engine.meeting = options.meeting;
  engine.number = static_cast<size_t>(options.rank);
  engine.count = options.meet.empty()
                     ? std::max<size_t>(1, options.devices.size())
                     : static_cast<size_t>(options.ranks);
  auto refuse = [&] {
    fail("--split is tensor, layers, or the number of layers of each device: "
         "layers:20,12, not " +
         options.split);
  };
  std::istringstream words(options.split);
  std::string word;
  std::getline(words, word, ':');
  engine.isByLayers = word == "layers" && engine.count > 1;
  if ((word != "layers" && word != "tensor") || options.split.back() == ',' ||
      options.split.back() == ':')
    refuse();
  while (std::getline(words, word, ',')) {
    bool isNumber = !word.empty() && word.size() < 6 &&
                    word.find_first_not_of("0123456789") == std::string::npos;
    engine.layersOfStages.push_back(isNumber ? std::stoll(word) : 0);
    if (engine.layersOfStages.back() < 1 || options.split[0] == 't')
      refuse();
  }
  if (engine.isByLayers && !engine.devices.empty())
    std::rotate(engine.devices.begin(), engine.devices.end() - 1,
                engine.devices.end());
  engine.device =
      engine.devices.empty() ? options.device : engine.devices.front();
  engine.context = options.context;
  engine.chunk = options.chunk;
  engine.usesGraphs = !options.noGraphs;
  engine.keepsSize = options.isDeterministic;
  engine.drafts = options.drafts;
  engine.isQuiet = options.isQuiet || engine.number > 0;
  engine.kvCache = options.kvCache;
  return engine;
}

static bool hasArgument(const greta::Function &function, const char *name) {
  std::vector<greta::TensorInfo> infos = function.arguments();
  return std::any_of(infos.begin(), infos.end(),
                     [&](const auto &info) { return info.name == name; });
}

// The sizes of steps that a package has functions for, in ascending order, and
// 0, which stands for prompts, behind them.
static std::vector<int64_t> stepSizes(const greta::Package &package) {
  std::vector<int64_t> sizes;
  for (const std::string &name : package.functions())
    if (name.rfind("head_", 0) == 0 && name != headFunction(0))
      sizes.push_back(std::atoll(name.c_str() + 5));
  std::sort(sizes.begin(), sizes.end());
  sizes.push_back(0);
  return sizes;
}

// Elements of each latent tensor of a pass over so many tokens, by name.
static std::map<std::string, int64_t> latentSizes(const Config &config,
                                                  int64_t tokens) {
  std::map<std::string, int64_t> sizes;
  if (!config.has(LatentKeys))
    return sizes;
  std::vector<std::string> names(std::begin(latentResults),
                                 std::end(latentResults));
  names.push_back("latent_queries");
  for (const std::string &name : names) {
    int64_t elements = 1;
    for (int64_t extent : latentShape(config, name, tokens))
      elements *= extent;
    sizes[name] = elements;
  }
  return sizes;
}

Engine::Engine(const Model &model, const std::string &packagePath,
               const EngineOptions &options)
    : shard(options.count > 1 && !options.isByLayers
                ? std::make_unique<Model>(
                      shardOf(model, static_cast<int64_t>(options.number),
                              static_cast<int64_t>(options.count)))
                : nullptr),
      model(shard ? *shard : model), options(options),
      progress(options.isQuiet), packagePath(packagePath),
      runtime(options.device), package(packagePath), stream(runtime.stream()),
      element(elementOfPackage()), kvCache(kvCacheOfPackage()),
      classes(classify(this->model, element)) {
  const Config &c = this->model.config;
  makeOthers(model);
  stage = agreeOnStage();
  checkFacts(package.manifest(), packagePath,
             factsOf(this->model, element, kvCache));
  if (stage.isFirst)
    embed.push_back(load("embed"));
  if (stage.isLast)
    sample.push_back(load("sample"));
  int64_t withExperts =
      ownLayer([&](int64_t layer) { return c.hasExperts(layer); });
  if (withExperts >= 0) {
    orderExperts.push_back(load("experts_order"));
    orderExpertsOfOne.push_back(load("experts_order_1"));
    addExperts.push_back(load("experts_add"));
  }
  if (c.has(LatentKeys))
    joinLatents.push_back(load("latent_join"));
  for (int64_t size : stepSizes(package))
    steps.push_back(loadStep(size));

  weights = std::make_unique<Weights>(
      this->model, stage, element, runtime, stream, [&](double share) {
        progress.say("loading weights: " +
                     std::to_string(std::lround(share * 100)) + " %");
      });
  int64_t context = agreeOnContext();
  pages = (context + pageSize - 1) / pageSize;
  int64_t chunk = std::max<int64_t>(options.chunk, 1);
  logitRows = 16;
  for (const Step &step : steps) {
    chunk = std::max(chunk, step.size);
    logitRows = std::max(logitRows, step.size);
  }
  this->options.chunk = chunk;
  auto allocate = [&](int64_t elements, size_t bytes) {
    return runtime.allocate(static_cast<size_t>(elements) * bytes);
  };
  for (greta::Buffer &buffer : x)
    buffer = allocateForOthers(static_cast<size_t>(chunk * c.width) * 4);
  if (withExperts >= 0)
    makePairs();
  for (const auto &[name, elements] : latentSizes(c, chunk))
    latents[name] = allocate(elements, bytesOf(element));
  logitBuffer = allocate(logitRows * c.vocabulary, 4);
  makeCaches();
  cache = Pages(pages);

  positions = pages * pageSize;
  // Sequences that share the cache are none of them longer than the context.
  if (this->options.sequences > 1)
    positions =
        std::min(positions, (c.context + pageSize - 1) / pageSize * pageSize);
  inputBuffer = runtime.allocate(
      inputsOf(chunk, static_cast<int64_t>(mostParts) + wantedPlaces(),
               positions / pageSize)
          .bytes());
  makeTurns();

  for (const auto *some : {&embed, &sample})
    for (const greta::Function &function : *some)
      checkArguments(function, -1);
  for (const auto *some : {&orderExperts, &orderExpertsOfOne, &addExperts})
    for (const greta::Function &function : *some)
      checkArguments(function, withExperts);
  for (const greta::Function &function : joinLatents)
    checkArguments(function, stage.first);
  for (const Step &step : steps) {
    for (const auto *some : {&step.layers, &step.experts, &step.latents})
      for (const auto &[i, function] : *some)
        checkArguments(function, layerOfClass(i));
    for (const auto &[i, function] : step.layers)
      if (!step.size && !hasArgument(function, "begins"))
        fail(packagePath + ": its prompts are of one sequence each, as those "
                           "of an older greta-llm were; run greta-llm compile");
    for (const auto *some : {&step.head, &step.begin})
      for (const greta::Function &function : *some)
        checkArguments(function, some == &step.head ? -1 : stage.first);
  }
  makePlaces(wantedPlaces());
  if (options.drafts && places.size == 1)
    fail(packagePath + ": has kernels for one token at a time alone; "
                       "--drafts needs others: compile with --batch=1,8");
  if (isShared())
    join();
  progress.clear();
}

void Engine::makeCaches() {
  const Config &c = model.config;
  size_t rows = static_cast<size_t>(pages * pageSize * c.keyHeads);
  size_t numbers = numberBytes(c, kvCache, element);
  size_t ofScales = rowBytes(c, kvCache, element) - numbers;
  for (auto *all : {&keys, &values, &keyScales, &valueScales})
    all->resize(static_cast<size_t>(c.layers));
  auto make = [&](greta::Buffer &buffer, size_t bytes) {
    buffer = runtime.allocate(rows * bytes);
    // Memory that was never written is multiplied by weights of zero.
    stream.fill(buffer, rows * bytes, 0);
  };
  for (int64_t layer = stage.first; layer < stage.end; ++layer) {
    size_t i = static_cast<size_t>(layer);
    make(keys[i], numbers);
    if (c.caches() > 1)
      make(values[i], numbers);
    if (ofScales)
      for (auto *scales : {&keyScales, &valueScales})
        make((*scales)[i], ofScales);
  }
}

size_t Engine::cachedBytes() const {
  const Config &c = model.config;
  return static_cast<size_t>(c.caches() * c.keyHeads) *
         rowBytes(c, kvCache, element);
}

void Engine::makePairs() {
  const Config &c = model.config;
  int64_t rows = options.chunk * c.mixture.used;
  auto allocate = [&](int64_t elements, size_t bytes) {
    return runtime.allocate(static_cast<size_t>(elements) * bytes);
  };
  pairs.normed = allocate(options.chunk * c.width, bytesOf(element));
  pairs.logits = allocate(options.chunk * c.mixture.count, 4);
  pairs.weights = allocate(rows, 4);
  pairs.places = allocate(rows, 4);
  pairs.offsets = allocate(c.mixture.count + 1, 4);
  pairs.rows = allocate(rows * c.width, bytesOf(element));
  pairs.results = allocate(rows * c.width, 4);
  for (const ExpertBias &bias : expertBiases(c))
    pairs.biases[biasOfPairs(bias.weight)] =
        allocate(rows * bias.width, bytesOf(element));
}

/// Angles are the model's, as tables. Norms go from layer to layer in steps
/// that begin with one.
void Engine::makeTurns() {
  int64_t half = model.config.pairs(), most = 0;
  for (const Step &step : steps)
    most = std::max(most, step.begin.empty() ? 0 : step.size);
  for (greta::Buffer &buffer : handed)
    if (most)
      buffer = runtime.allocate(static_cast<size_t>(most * model.config.width) *
                                bytesOf(element));
  for (const Rope &rope : model.config.ropes) {
    auto bytes = [&](int64_t rows) {
      return static_cast<size_t>(rows * half) * 4;
    };
    // The next stage gets the cosines and sines of a step.
    turns.push_back({allocateForOthers(bytes(options.chunk)),
                     allocateForOthers(bytes(options.chunk)),
                     runtime.allocate(bytes(positions)),
                     runtime.allocate(bytes(positions))});
    Rope::Tables tables = rope.tables(positions, half);
    stream.write(turns.back().cosTable, tables.cosines.data(),
                 tables.cosines.size() * 4);
    stream.write(turns.back().sinTable, tables.sines.data(),
                 tables.sines.size() * 4);
  }
}

/// The whole context for every sequence, or as much as half of the memory holds
/// that the weights leave free.
int64_t Engine::contextThatFits() const {
  const Config &c = model.config;
  greta_memory memory = runtime.memory();
  if (!memory.free) // not known
    return c.context;
  size_t layer = cachedBytes();
  // makePlaces allocates these for sequences that generate.
  auto places = static_cast<size_t>(
      wantedPlaces() * (c.vocabulary + maskWords(c.vocabulary)) * 4);
  auto fits = static_cast<int64_t>(
      (memory.free - std::min(memory.free, places)) / 2 /
      (static_cast<size_t>(stage.end - stage.first) * layer));
  return std::max(std::min(c.context * options.sequences, fits), pageSize);
}

/// Tokens of the cache, of all engines as many. They decide how many sequences
/// share it, too, where nobody said either number.
int64_t Engine::agreeOnContext() {
  int64_t context = options.context ? options.context : contextThatFits();
  if (isShared())
    context = options.team->least(context);
  if (options.mayHaveFewer && !options.context)
    options.sequences =
        sequencesThatFit(context, model.config.context, options.sequences);
  return context;
}

/// With less for each, sequences would take the cache from each other again and
/// again (Admission.cpp); a request without a place waits.
int64_t sequencesThatFit(int64_t cache, int64_t context, int64_t most) {
  constexpr int64_t least = 1024; // tokens of a sequence: some turns of a chat
  return std::clamp<int64_t>(cache / std::min(least, context), 1, most);
}

std::string nameOfDevice(const greta::Runtime &runtime) {
  auto info = nlohmann::json::parse(runtime.info(), nullptr, false);
  return info.is_object() ? info.value("name", "") : "";
}

void Engine::profile(bool on) {
  stream.profile(on);
  options.usesGraphs = !on;
}

double Engine::copyBandwidth() {
  constexpr size_t bytes = size_t(64) << 20;
  constexpr int copies = 8, turns = 5;
  greta::Buffer from = runtime.allocate(bytes), to = runtime.allocate(bytes);
  stream.fill(from, bytes, 0x9e3779b9);
  greta::Graph graph = stream.capture([&] {
    for (int i = 0; i < copies; ++i)
      stream.copy(to, from, bytes);
  });
  greta::Event start = runtime.event(), end = runtime.event();
  double best = 0;
  for (int i = 0; i < turns; ++i) {
    stream.record(start);
    stream.launch(graph);
    stream.record(end);
    best = std::max(best, 1 / end.since(start));
  }
  return best * 1e6 * 2 * copies * static_cast<double>(bytes);
}

std::map<std::string, std::string> Engine::variants() const {
  std::map<std::string, std::string> all;
  for (const greta::Function &function : embed)
    all["embed"] = function.variant();
  for (const greta::Function &function : sample)
    all["sample"] = function.variant();
  for (const Step &step : steps) {
    for (const auto &[i, layer] : step.layers)
      all[step.size ? layerFunction(i, step.size) : promptFunction(i)] =
          layer.variant();
    for (const auto &[i, experts] : step.experts)
      all[expertsFunction(i, step.size)] = experts.variant();
    for (const auto &[i, latents] : step.latents)
      all[latentFunction(i, step.size)] = latents.variant();
    for (const greta::Function &head : step.head)
      all[headFunction(step.size)] = head.variant();
  }
  return all;
}

/// A layer that a function is for; -1: it is for none.
int64_t Engine::layerOf(const std::string &function) const {
  for (size_t i = 0; i < classes.first.size(); ++i) {
    std::string prompt = promptFunction(i), layer = layerFunction(i, 1);
    layer.pop_back(); // the number of tokens
    std::string experts = expertsFunction(i, 1), latent = latentFunction(i, 1);
    experts.pop_back();
    latent.pop_back();
    if (function == prompt || function.rfind(layer, 0) == 0 ||
        function.rfind(experts, 0) == 0 || function.rfind(latent, 0) == 0)
      return layerOfClass(i);
  }
  return -1;
}

int64_t Engine::windowOf(const std::string &function) const {
  int64_t layer = layerOf(function);
  return layer < 0 ? 0 : model.config.kinds[static_cast<size_t>(layer)].window;
}

std::pair<size_t, int64_t> Engine::weightSize(const std::string &function,
                                              const std::string &name) const {
  int64_t layer = layerOf(function);
  std::string whole = layer < 0 ? name : Model::inLayer(layer, name);
  const DeviceTensor *weight = weights->find(whole);
  if (!weight)
    return {0, 0};
  auto stored = model.weights.find(
      whole == "output" && model.isTied() ? "token_embd" : whole);
  bool isMatrix =
      stored != model.weights.end() && stored->second.shape.size() > 1;
  return {weight->buffer->size(),
          isMatrix ? stored->second.rows() * stored->second.columns() : 0};
}

//===----------------------------------------------------------------------===//
// The package
//===----------------------------------------------------------------------===//

greta::Function loadFunction(greta::Runtime &runtime,
                             const greta::Package &package,
                             const std::string &packagePath,
                             const std::string &name) {
  std::vector<std::string> names = package.functions();
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(packagePath + ": has no function '" + name +
         "'; it was not compiled for this model: run greta-llm compile");
  return runtime.load(package, name);
}

greta::Function Engine::load(const std::string &name) {
  progress.say("loading kernels: " + name);
  return loadFunction(runtime, package, packagePath, name);
}

Element Engine::elementOfPackage() {
  for (const greta::TensorInfo &info : load("embed").arguments())
    if (info.name == "token_embd")
      return elementNamed(info.dtype);
  fail(packagePath + ": has no embedding; run greta-llm compile");
}

/// The package's format, which must be the one that was asked for.
KvCache Engine::kvCacheOfPackage() const {
  KvCache its = kvCacheOf(package.manifest(), packagePath);
  if (!options.kvCache.empty() && its != kvCacheNamed(options.kvCache))
    fail(packagePath + ": was compiled with --kv-cache=" + nameOf(its) +
         ", not " + options.kvCache + "; run greta-llm compile");
  checkKvCache(model, its);
  return its;
}

Engine::Step Engine::loadStep(int64_t size) {
  Step step{size, {}, {}, {}, {}, {}};
  for (size_t i = 0; i < classes.first.size(); ++i) {
    if (layerOfClass(i) < 0)
      continue;
    step.layers.emplace(
        i, load(size ? layerFunction(i, size) : promptFunction(i)));
    if (model.config.hasExperts(classes.first[i]))
      step.experts.emplace(i, load(expertsFunction(i, size)));
    if (model.config.has(LatentKeys))
      step.latents.emplace(i, load(latentFunction(i, size)));
  }
  if (stage.isLast)
    step.head.push_back(load(headFunction(size)));
  std::vector<std::string> names = package.functions();
  std::string begin = beginFunction(size);
  if (std::find(names.begin(), names.end(), begin) != names.end())
    step.begin.push_back(load(begin));
  return step;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

// Sequences begin at one place more than there are of them.
Engine::Inputs Engine::inputsOf(int64_t tokens, int64_t sequences,
                                int64_t columns) const {
  int64_t most = std::max(tokens, sequences + 1);
  return {&inputBuffer, (most + 3) / 4 * 4, 0, tokens, sequences, columns};
}

// The rest of a layer with experts, behind its own function.
void Engine::queueExperts(const greta::Function &experts, const Inputs &inputs,
                          int64_t layer) {
  const Buffer &to = x[(layer + 1) % 2];
  std::vector<greta::Tensor> ordered;
  for (const char *name :
       {"pair_weights", "pair_places", "expert_offsets", "pair_rows"})
    ordered.push_back(bindPairs(name, inputs.tokens));
  for (const ExpertBias &bias : expertBiases(model.config))
    ordered.push_back(bindPairs(biasOfPairs(bias.weight), inputs.tokens));
  const greta::Function &order =
      (inputs.tokens == 1 ? orderExpertsOfOne : orderExperts).front();
  order.launch(stream, bindAll(order, layer, inputs, to, 0), ordered);
  experts.launch(stream, bindAll(experts, layer, inputs, to, 0),
                 {bindPairs("pair_results", inputs.tokens)});
  addExperts.front().launch(stream,
                            bindAll(addExperts.front(), -1, inputs, to, 0),
                            {{&to, {inputs.tokens, model.config.width}}});
}

// The beginning of a layer of latents, before its own function.
void Engine::queueLatents(const greta::Function &function, const Inputs &inputs,
                          int64_t layer) {
  const Buffer &from = x[layer % 2];
  std::vector<greta::Tensor> made;
  for (const char *name : latentResults)
    made.push_back(bindLatent(name, inputs.tokens));
  function.launch(stream, bindAll(function, layer, inputs, from, 0), made);
  const greta::Function &join = joinLatents.front();
  join.launch(stream, bindAll(join, layer, inputs, from, 0),
              {bind("k_cache", layer, inputs, from, 0),
               bindLatent("latent_queries", inputs.tokens)});
}

// Queues the layers, which leave their result in x[lastX()]. The functions of
// devices that have parts of each add up behind attention and behind the MLP;
// behind experts, whose rows a block program adds, it is done here.
void Engine::queueLayers(const Step &step, const Inputs &inputs) {
  const Config &c = model.config;
  int64_t tokens = inputs.tokens, half = c.pairs();
  std::vector<greta::Tensor> embedded = {{&x[0], {tokens, c.width}}};
  for (Turns &some : turns)
    for (greta::Buffer *buffer : {&some.cos, &some.sin})
      embedded.push_back({buffer, {tokens, half}});
  for (const greta::Function &function : embed)
    function.launch(stream, bindAll(function, -1, inputs, x[0], 0), embedded);
  for (const greta::Function &function : step.begin)
    function.launch(
        stream, bindAll(function, stage.first, inputs, x[stage.first % 2], 0),
        {bindHanded("normed", stage.first, tokens)});
  for (int64_t layer = stage.first; layer < stage.end; ++layer) {
    size_t i = static_cast<size_t>(layer);
    const greta::Function &function = step.layers.at(classes.classOf[i]);
    const Buffer &from = x[layer % 2], &to = x[(layer + 1) % 2];
    std::vector<greta::Tensor> results = {{&to, {tokens, c.width}}};
    if (!step.begin.empty())
      results.push_back(bindHanded("normed", layer + 1, tokens));
    if (c.hasExperts(layer))
      for (const char *name : {"normed", "router_logits"})
        results.push_back(bindPairs(name, tokens));
    if (c.has(LatentKeys)) {
      queueLatents(step.latents.at(classes.classOf[i]), inputs, layer);
    } else {
      for (const char *name : {"k_cache", "k_scales", "v_cache", "v_scales"})
        if (greta::Tensor tensor = bindCache(name, layer); tensor.buffer)
          results.push_back(tensor);
    }
    function.launch(stream, bindAll(function, layer, inputs, from, 0), results);
    if (!c.hasExperts(layer))
      continue;
    queueExperts(step.experts.at(classes.classOf[i]), inputs, layer);
    if (hasSums())
      reduce(to, tokens);
  }
}

void Engine::queueHead(const Step &step, const Inputs &inputs, int64_t row,
                       int64_t rows) {
  Inputs some = inputs;
  some.tokens = rows;
  for (const greta::Function &head : step.head)
    head.launch(stream, bindAll(head, -1, some, x[lastX()], row),
                {{&logitBuffer, {rows, model.config.vocabulary}}});
}

} // namespace greta::llm
