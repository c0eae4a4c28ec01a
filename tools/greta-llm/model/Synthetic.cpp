// Synthetic.cpp: models without a file, for benchmarks and demonstrations. In:
// a name, with a format after a colon. Out: sizes, and weights without data,
// which Weights.cpp fills with random numbers as it uploads them.
#include "model/Model.h"

namespace greta::llm {

namespace {
struct Preset {
  const char *name;
  const char *huggingFace;
  int64_t layers, width, hidden, vocabulary, context, heads, keyHeads, headSize;
  double ropeBase;
  const char *format; // where none is named
  int64_t experts = 0, used = 0;
};
} // namespace

static const Preset presets[] = {
    {"tiny", "llama", 2, 64, 192, 512, 2048, 4, 2, 16, 10000, "f16"},
    {"llama3-1b", "llama", 16, 2048, 8192, 128256, 8192, 32, 8, 64, 500000,
     "q4_0"},
    {"llama3-8b", "llama", 32, 4096, 14336, 128256, 8192, 32, 8, 128, 500000,
     "q4_0"},
    {"tiny-moe", "qwen3_moe", 2, 64, 192, 512, 2048, 4, 2, 16, 10000, "f16", 8,
     2},
    {"qwen3-30b-a3b", "qwen3_moe", 48, 2048, 768, 151936, 32768, 32, 4, 128,
     1000000, "q4_0", 128, 8},
};

std::string syntheticNames() {
  std::string names;
  for (const Preset &one : presets)
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

void makeSynthetic(Model &model, const std::string &name) {
  size_t colon = name.find(':');
  std::string wanted = name.substr(0, colon);
  const Preset *preset = nullptr;
  for (const Preset &one : presets)
    if (wanted == one.name)
      preset = &one;
  if (!preset)
    fail("--synthetic=" + name + ": no such model; there are " +
         syntheticNames());
  std::string formatName =
      colon == std::string::npos ? preset->format : name.substr(colon + 1);
  const FormatInfo *format = findFormat(formatName);
  if (!format || format->format == Format::Int4 ||
      format->format == Format::F8_E4M3 ||
      (format->block > 1 && !format->packed))
    fail("--synthetic=" + name + ": the format '" + formatName +
         "' is not one of " + fileFormats());
  for (int64_t row : {preset->width, preset->hidden})
    if (row % format->block)
      fail("--synthetic=" + name + ": the format '" + formatName +
           "' has blocks of " + std::to_string(format->block) +
           " weights, and the model rows of " + std::to_string(row));
  // "synthetic-tiny", "synthetic-tiny-q4_0": the name that a server shows.
  model.path = "synthetic-" + wanted +
               (colon == std::string::npos ? "" : "-" + formatName);
  // A conversation as a script, without special tokens, which the made-up
  // vocabulary does not have.
  model.tokenizerConfig["chat_template"] =
      "{% for message in messages %}"
      "{{ message.role }}: {{ message.content }}\n"
      "{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}";
  Config &c = model.config;
  c.architecture = findHuggingFace(preset->huggingFace);
  c.layers = preset->layers;
  c.width = preset->width;
  c.hidden = preset->hidden;
  c.vocabulary = preset->vocabulary;
  c.context = preset->context;
  c.heads = preset->heads;
  c.keyHeads = preset->keyHeads;
  c.headSize = preset->headSize;
  c.mixture.count = preset->experts;
  c.mixture.used = preset->used;
  c.mixture.hidden = preset->hidden;
  c.mixture.normalises = true;
  c.rotated = c.headSize;
  Rope rope;
  rope.base = preset->ropeBase;
  rope.factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  c.ropes.push_back(rope);
  LayerKind kind;
  kind.hasExperts = preset->experts != 0;
  c.kinds.assign(static_cast<size_t>(c.layers), kind);
  for (const std::string &biased : wordsOf(c.architecture->biases))
    c.biases.insert(biased);
  auto add = [&](const std::string &name, const Weight &weight) {
    // The embedding is looked up, not multiplied: as llama.cpp's files have it,
    // it is not packed.
    bool isMatrix = weight.shape.size() > 1 && weight.name != "token_embd";
    Format held = isMatrix ? format->format
                  : weight.shape.size() > 1 && format->block == 1
                      ? format->format
                  : weight.shape.size() > 1 ? Format::F16
                                            : Format::F32;
    model.weights[name] = {held, weight.shape, nullptr};
  };
  for (int64_t layer = 0; layer < c.layers; ++layer)
    for (const Weight &weight : layerWeights(c, layer))
      add(Model::inLayer(layer, weight.name), weight);
  for (const Weight &weight : outerWeights(c))
    add(weight.name, weight);
}

} // namespace greta::llm
