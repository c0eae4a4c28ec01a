// Stages.cpp: a model whose layers several devices have (Engine.h). Each hands
// on to the next one what its layers leave, and cosines and sines, so that only
// the first one looks tokens up. The engine that the application has is the
// last stage: it has the logits, chooses tokens, and tells the others what the
// next step begins with. Devices may be of different kinds.
#include "engine/Engine.h"
#include "model/Shards.h"

#include <numeric>
#include <sstream>

namespace greta::llm {

// Engines of other models, or that divide prompts otherwise, would add up what
// does not belong together.
uint64_t Engine::alike() const {
  std::ostringstream text;
  text << greta_version() << ' ' << sizeof(Call) << ' ' << options.context
       << ' ' << options.chunk << ' ' << options.sequences << ' '
       << options.drafts << ' ' << options.keepsSize << options.usesGraphs
       << options.isByLayers << options.mayHaveFewer;
  for (int64_t layers : options.layersOfStages)
    text << ' ' << layers;
  for (const auto &[name, fact] : factsOf(model, element, kvCache))
    text << ' ' << name << ' ' << fact;
  // FNV-1a, which every machine computes alike.
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text.str())
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Stage Engine::agreeOnStage() {
  const Config &c = model.config;
  std::vector<int64_t> shares = options.layersOfStages;
  int64_t sum = std::accumulate(shares.begin(), shares.end(), int64_t(0));
  size_t count = options.count;
  if (!shares.empty() && (shares.size() != count || sum != c.layers))
    fail("--split: has " + std::to_string(sum) + " layers for " +
         std::to_string(shares.size()) + " devices; the model has " +
         std::to_string(c.layers) + ", and " + option() + " " +
         std::to_string(count));
  if (!isShared())
    return {0, c.layers};
  members = options.team->meet(
      options.number, {nameOfDevice(runtime), runtime.memory().free, alike()});
  for (const Team::Member &member : members)
    if (member.alike != members.front().alike)
      fail("rank " + std::to_string(&member - members.data()) +
           " has another model, other options or another version than rank 0");
  if (hasSums()) {
    // Sums of unequal devices would be rounded alike, but not the rest, and
    // they would choose other tokens.
    for (const Team::Member &member : members)
      if (member.device != members.front().device)
        fail(option() + ": a model is divided among equal devices, not " +
             members.front().device + " and " + member.device +
             "; unequal ones are for --split=layers");
    return {0, c.layers};
  }
  size_t number = (options.number + count - 1) % count;
  if (static_cast<int64_t>(count) > c.layers)
    fail(model.path + ": has " + std::to_string(c.layers) + " layers for " +
         std::to_string(count) + " devices");
  if (shares.empty()) {
    std::vector<double> free;
    for (size_t stage = 0; stage < count; ++stage)
      free.push_back(static_cast<double>(members[(stage + 1) % count].free));
    shares = layersByMemory(c.layers, free);
  }
  int64_t first = std::accumulate(
      shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(number),
      int64_t(0));
  return {first, first + shares[number], number == 0, number + 1 == count};
}

int64_t Engine::ownLayer(const std::function<bool(int64_t)> &isOne) const {
  for (int64_t layer = stage.first; layer < stage.end; ++layer)
    if (isOne(layer))
      return layer;
  return -1;
}

int64_t Engine::layerOfClass(size_t number) const {
  return ownLayer([&](int64_t layer) {
    return classes.classOf[static_cast<size_t>(layer)] == number;
  });
}

// These go from stage to stage before a layer, for so many tokens.
std::vector<greta_comm_transfer> Engine::residual(int64_t layer, int64_t tokens,
                                                  bool receives) const {
  size_t count = options.count;
  auto peer = static_cast<uint32_t>(
      (options.number + (receives ? count - 1 : 1)) % count);
  std::vector<greta_comm_transfer> all;
  auto add = [&](const Buffer &buffer, int64_t columns) {
    all.push_back({buffer.get(), 0, static_cast<size_t>(tokens * columns) * 4,
                   peer, receives});
  };
  add(x[layer % 2], model.config.width);
  for (const Turns &some : turns)
    for (const Buffer *buffer : {&some.cos, &some.sin})
      add(*buffer, model.config.pairs());
  return all;
}

void Engine::receiveResidual(int64_t tokens) {
  if (!stage.isFirst)
    comm->exchange(stream, residual(stage.first, tokens, /*receives=*/true));
}

void Engine::sendResidual(int64_t tokens) {
  if (!stage.isLast)
    comm->exchange(stream, residual(stage.end, tokens, /*receives=*/false));
}

// Sampling leaves tokens, positions, rows of the cache and lengths of the next
// step; the last stage tells them to all.
void Engine::shareNextInput() {
  if (isShared() && !hasSums())
    comm->broadcast(stream, places.input, places.input,
                    static_cast<size_t>(Begins * places.lines) * 4, 0);
}

} // namespace greta::llm
