// Gguf.cpp: GGUF files, versions 2 and 3. In: the mapped bytes, of a model in
// several files of all. Out: the model's sizes from the metadata, its weights
// where they lie in the files, and the tokenizer's tables. Every length is
// checked against the file's before it is believed.
#include "model/Description.h"
#include "model/Model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace greta::llm {
namespace {

using nlohmann::json;

// A vocabulary's tables have a few hundred thousand.
constexpr uint64_t largestArray = 1u << 22;
constexpr uint64_t largestMetadata = 1u << 16; // a file has some fifty
constexpr int64_t mostFiles = 1000;            // of one model

class Reader {
public:
  explicit Reader(const Mapping &file) : file(file) {}

  template <typename T> T number() {
    T value;
    memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text() {
    uint64_t length = number<uint64_t>();
    const uint8_t *bytes = take(length);
    return {reinterpret_cast<const char *>(bytes), length};
  }
  // An array is null unless `keepsArray`.
  json value(uint32_t type, bool keepsArray);
  // Fails before memory is taken for things that cannot be in the file.
  void expect(uint64_t count, uint64_t bytesOfEach) const {
    if (count > (file.size() - at) / bytesOfEach)
      cutOff("says that " + std::to_string(count) + " things follow");
  }
  size_t position() const { return at; }

private:
  [[noreturn]] void cutOff(const std::string &why) const {
    fail(file.path() + ": the GGUF file is cut off: byte " +
         std::to_string(at) + " " + why);
  }
  const uint8_t *take(uint64_t bytes) {
    if (bytes > file.size() - at)
      cutOff("begins something that ends behind the file");
    const uint8_t *from = file.data() + at;
    at += bytes;
    return from;
  }

  const Mapping &file;
  size_t at = 0;
};

// Bytes of a value of each type, of a text or array at least so many.
size_t leastBytes(uint32_t type) {
  constexpr size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return type < std::size(bytes) ? bytes[type] : 0;
}

json Reader::value(uint32_t type, bool keepsArray) {
  switch (type) {
  case 0:
    return number<uint8_t>();
  case 1:
    return number<int8_t>();
  case 2:
    return number<uint16_t>();
  case 3:
    return number<int16_t>();
  case 4:
    return number<uint32_t>();
  case 5:
    return number<int32_t>();
  case 6:
    return number<float>();
  case 7:
    return number<uint8_t>() != 0;
  case 8:
    return text();
  case 9: {
    uint32_t element = number<uint32_t>();
    uint64_t count = number<uint64_t>();
    size_t least = leastBytes(element);
    if (!least || element == 9)
      fail(file.path() + ": the GGUF metadata has an array of unknown type " +
           std::to_string(element));
    expect(count, least);
    if (!keepsArray) {
      if (element != 8)
        take(count * least);
      for (uint64_t i = 0; element == 8 && i < count; ++i)
        take(number<uint64_t>());
      return json();
    }
    if (count > largestArray)
      fail(file.path() + ": the GGUF metadata has an array of " +
           std::to_string(count) + " values; greta-llm reads up to " +
           std::to_string(largestArray));
    json array = json::array();
    array.get_ref<json::array_t &>().reserve(count);
    for (uint64_t i = 0; i < count; ++i)
      array.push_back(value(element, false));
    return array;
  }
  case 10:
    return number<uint64_t>();
  case 11:
    return number<int64_t>();
  case 12:
    return number<double>();
  }
  fail(file.path() + ": the GGUF metadata has a value of unknown type " +
       std::to_string(type));
}

// The metadata, by key.
class Metadata {
public:
  Metadata(std::string path, json values)
      : path(std::move(path)), values(std::move(values)) {}

  const json *find(const std::string &key) const {
    auto it = values.find(key);
    return it == values.end() ? nullptr : &*it;
  }
  std::string text(const std::string &key) const {
    const json *value = find(key);
    if (!value || !value->is_string())
      fail(path + ": the GGUF metadata lacks the text '" + key + "'");
    return value->get<std::string>();
  }
  double number(const std::string &key) const {
    const json *value = find(key);
    if (!value || !value->is_number())
      fail(path + ": the GGUF metadata lacks the number '" + key + "'");
    return value->get<double>();
  }
  double number(const std::string &key, double otherwise) const {
    return find(key) ? number(key) : otherwise;
  }
  int64_t size(const std::string &key) const {
    double value = number(key);
    return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : -1;
  }
  // The values whose keys begin so, without the beginning.
  json below(const std::string &prefix) const {
    json some = json::object();
    for (const auto &[key, value] : values.items())
      if (key.rfind(prefix, 0) == 0)
        some[key.substr(prefix.size())] = value;
    return some;
  }
  std::string path;

private:
  json values;
};

// A number of the architecture's by its name, or what it is without.
class Numbers {
public:
  Numbers(const Metadata &data, std::string name)
      : data(data), name(std::move(name)) {}

  bool has(const char *key) const { return data.find(name + key); }
  int64_t size(const char *key) const { return data.size(name + key); }
  int64_t size(const char *key, int64_t otherwise) const {
    return has(key) ? size(key) : otherwise;
  }
  double number(const char *key) const { return data.number(name + key); }
  double number(const char *key, double otherwise) const {
    return data.number(name + key, otherwise);
  }
  bool flag(const char *key, bool otherwise) const {
    const json *value = data.find(name + key);
    return value && value->is_boolean() ? value->get<bool>() : otherwise;
  }
  std::string text(const char *key) const {
    const json *value = data.find(name + key);
    return value && value->is_string() ? value->get<std::string>() : "";
  }
  const Metadata &data;
  const std::string name;
};

void readSizes(const Numbers &numbers, Config &c) {
  c.layers = numbers.size(".block_count");
  c.width = numbers.size(".embedding_length");
  c.hidden = numbers.size(".feed_forward_length");
  c.context = numbers.size(".context_length");
  c.heads = numbers.size(".attention.head_count");
  c.keyHeads = numbers.size(".attention.head_count_kv", c.heads);
  c.headSize = numbers.size(".attention.key_length",
                            c.width / std::max<int64_t>(c.heads, 1));
  c.rotated = numbers.size(".rope.dimension_count", c.headSize);
  if (c.has(Experts)) {
    c.mixture.count = numbers.size(".expert_count");
    c.mixture.used = numbers.size(".expert_used_count");
    c.mixture.normalises =
        numbers.flag(".expert_weights_norm", !c.has(SharesOfAll));
    c.mixture.hidden = numbers.size(".expert_feed_forward_length", c.hidden);
    if (c.has(SharedExperts))
      c.mixture.shared =
          numbers.size(".expert_shared_feed_forward_length",
                       widthOfShared(numbers.size(".expert_shared_count", 0),
                                     c.mixture.hidden));
    if (double scale = numbers.number(".expert_weights_scale", 0))
      c.mixture.scale = scale;
    c.mixture.groups = numbers.size(".expert_group_count", 1);
    c.mixture.usedGroups = numbers.size(".expert_group_used_count", 1);
  }
  if (c.has(LatentKeys)) {
    Latent &l = c.latent;
    l.rank = numbers.size(".attention.kv_lora_rank");
    l.queryRank = numbers.size(".attention.q_lora_rank", 0);
    l.rope = c.rotated;
    l.plain = numbers.size(".attention.key_length_mla",
                           numbers.size(".attention.key_length")) -
              l.rope;
    l.value = numbers.size(".attention.value_length_mla",
                           numbers.size(".attention.value_length"));
    c.keyHeads = 1;
    c.headSize = l.rank + l.rope;
  }
  const std::pair<const char *, bool> same[] = {
      {".attention.value_length", !c.has(LatentKeys)},
      {".rope.dimension_count", !c.has(PartialRope | LatentKeys)}};
  for (auto [key, isSame] : same)
    if (isSame && numbers.size(key, c.headSize) != c.headSize)
      fail(numbers.data.path + ": '" + numbers.name + key + "' is " +
           std::to_string(numbers.size(key)) + "; a head's keys have " +
           std::to_string(c.headSize));
  c.epsilon =
      numbers.number(c.has(MeanNorms) ? ".attention.layer_norm_epsilon"
                                      : ".attention.layer_norm_rms_epsilon");
}

void readScales(const Numbers &numbers, Config &c) {
  // Gemma's largest models, known by their layers, divide by another size.
  if (c.has(QueryScalar) && (c.layers == 46 || c.layers == 62))
    c.attentionScale =
        std::sqrt(static_cast<double>(c.heads) / static_cast<double>(c.width));
  // A tenth of config.json's mscale_all_dim; 1 is that of V3.
  if (c.has(LatentKeys)) {
    double factor = numbers.number(".rope.scaling.factor", 1),
           magnitude = yarnMagnitude(
               factor,
               10 * numbers.number(".rope.scaling.yarn_log_multiplier", 0));
    c.attentionScale =
        magnitude * magnitude /
        std::sqrt(static_cast<double>(c.latent.plain + c.latent.rope));
  }
  // Zero stands for none in files.
  auto given = [&](const char *key, double otherwise) {
    double value = numbers.number(key, 0);
    return value != 0 ? value : otherwise;
  };
  c.attentionScale = given(".attention.scale", c.attentionScale);
  const json defaults = c.architecture->assumed();
  c.clamp = defaults.value("swiglu_limit", 0.0);
  c.slope = defaults.value("swiglu_alpha", 0.0);
  auto cap = [&](const char *key) { // config.json's name behind a dot
    return numbers.number(key, defaults.value(key + 1, 0.0));
  };
  c.attentionCap = cap(".attn_logit_softcapping");
  c.logitCap = cap(".final_logit_softcapping");
  if (c.has(WidthScale))
    c.embeddingScale = std::sqrt(static_cast<double>(c.width));
  c.embeddingScale = given(".embedding_scale", c.embeddingScale);
  c.residualScale = given(".residual_scale", 1);
  c.logitScale = given(".logit_scale", 1);
  if (c.has(Multipliers)) // a divisor
    c.logitScale = 1 / c.logitScale;
}

Pooling poolingOf(const Numbers &numbers) {
  enum { Mean = 1, Cls = 2 };
  int64_t type = numbers.size(".pooling_type", Mean);
  if (type != Mean && type != Cls)
    fail(numbers.data.path + ": '" + numbers.name + ".pooling_type' is " +
         std::to_string(type) + "; greta-llm takes 1 (mean) and 2 (CLS)");
  return type == Cls ? Pooling::First : Pooling::Mean;
}

Rope ropeOf(const Numbers &numbers, const Config &c) {
  Rope rope;
  rope.base = numbers.number(".rope.freq_base", 10000);
  rope.factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  rope.scale = numbers.number(".rope.scaling.attn_factor", 1);
  rope.trained = numbers.size(".rope.scaling.original_context_length", 0);
  if (!rope.trained)
    rope.trained = c.context;
  bool hasType = numbers.has(".rope.scaling.type");
  if (!hasType && !numbers.has(".rope.scaling.factor"))
    return rope;
  std::string type = hasType ? numbers.text(".rope.scaling.type") : "linear";
  if (type == "linear") {
    std::fill(rope.factors.begin(), rope.factors.end(),
              numbers.number(".rope.scaling.factor"));
  } else if (type == "yarn") {
    YarnScaling how;
    how.factor = numbers.number(".rope.scaling.factor");
    how.trained = static_cast<double>(rope.trained);
    how.fast = numbers.number(".rope.scaling.yarn_beta_fast", how.fast);
    how.slow = numbers.number(".rope.scaling.yarn_beta_slow", how.slow);
    how.rounds = !c.architecture->assumed().contains(
        json::json_pointer("/rope_scaling/truncate"));
    if (!(how.factor > 0 && how.trained > 0 && how.fast > 0 && how.slow > 0 &&
          rope.base > 1))
      fail(numbers.data.path + ": YaRN's factor, original context and betas "
                               "have to be positive, and rope's base above 1");
    if (!c.has(LatentKeys)) // the scores have it
      rope.scale *= yarnMagnitude(how.factor);
    scale(rope, how);
  } else if (type != "none") {
    fail(numbers.data.path + ": rope scaling '" + type +
         "' is not known; greta-llm takes none, linear, yarn, and factors in "
         "rope_freqs");
  }
  return rope;
}

// GGUF files do not say which layers have a window; the architecture does.
void readKinds(const Numbers &numbers, Config &c) {
  const Architecture &a = *c.architecture;
  bool isPattern = a.window == Windows::Pattern;
  int64_t window =
      numbers.size(".attention.sliding_window",
                   isPattern ? a.assumed().value("sliding_window", 0) : 0);
  // Mistral's files say that they are llama's.
  bool isOfAll = a.window == Windows::Always || std::string(a.gguf) == "llama";
  if (window && !isPattern && !isOfAll)
    fail(numbers.data.path + ": '" + numbers.name +
         ".attention.sliding_window' is " + std::to_string(window) +
         "; which layers it is for is not in the file");
  if (c.has(LocalRope)) {
    c.ropes.push_back(Rope());
    c.ropes.back().base = numbers.number(".rope.freq_base_swa", 10000);
    c.ropes.back().factors.assign(static_cast<size_t>(c.rotated) / 2, 1.0);
  }
  if (c.has(RopeInWindows | LayersOfRope))
    c.ropes.push_back(Rope()); // that turns nothing
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    bool isWhole = a.period && (layer + 1) % a.period == 0;
    LayerKind kind;
    kind.window = isPattern && isWhole ? 0 : window;
    kind.hasExperts = c.has(Experts) &&
                      layer >= numbers.size(".leading_dense_block_count", 0);
    if (c.ropes.size() > 1)
      kind.rope = c.has(LocalRope) != isWhole ? 1 : 0;
    c.kinds.push_back(kind);
  }
}

Config configOf(const Metadata &data) {
  std::string name = data.text("general.architecture");
  Config c;
  bool hasExperts = data.number(name + ".expert_count", 0) != 0;
  double gates = data.number(name + ".expert_gating_func", 0);
  if (gates > 2)
    fail(data.path + ": '" + name + ".expert_gating_func' is " +
         std::to_string(static_cast<int64_t>(gates)) +
         "; greta-llm takes 1 and 2");
  bool areSigmoids = gates == 2;
  c.architecture = findGguf(name, hasExperts, areSigmoids);
  if (!c.architecture && hasExperts && findGguf(name, false))
    fail(data.path + ": '" + name + ".expert_count' is " +
         std::to_string(data.size(name + ".expert_count")) +
         "; greta-llm runs '" + name + "' without experts");
  if (!c.architecture)
    fail(data.path + ": the architecture '" + name +
         "' is not known; greta-llm runs " + architectureNames());
  checkFields(Description::Gguf, data.path, data.below(name + "."),
              c.architecture);
  Numbers numbers(data, name);
  readSizes(numbers, c);
  readScales(numbers, c);
  checkSizes(data.path, c);
  c.ropes.push_back(c.has(LearnedPositions) ? Rope() : ropeOf(numbers, c));
  if (c.has(Bidirectional))
    c.pooling = poolingOf(numbers);
  readKinds(numbers, c);
  return c;
}

// "blk.0.attn_q.weight" as "blk.0.attn_q", ".bias" as "_bias".
std::string shortName(const Architecture &architecture,
                      const std::string &name) {
  size_t dot = name.rfind('.');
  std::string suffix = dot == std::string::npos ? "" : name.substr(dot);
  if (suffix != ".weight" && suffix != ".bias")
    return name;
  std::string whole = name.substr(0, dot);
  size_t layer = whole.rfind('.') + 1; // 0: of no layer
  if (layer)
    whole =
        whole.substr(0, layer) + architecture.nameInGguf(whole.substr(layer));
  return suffix == ".bias" ? whole + "_bias" : whole;
}

void readTensors(Model &model, const Mapping &file, Reader &reader,
                 uint64_t count, uint64_t alignment) {
  struct Entry {
    std::string name;
    Stored stored;
    uint64_t offset, bytes;
  };
  std::vector<Entry> entries;
  reader.expect(count, 8 + 4 + 8 + 4 + 8);
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    std::string name = reader.text();
    entry.name = shortName(*model.config.architecture, name);
    uint32_t rank = reader.number<uint32_t>();
    if (rank < 1 || rank > 4)
      fail(file.path() + ": the tensor '" + name + "' has " +
           std::to_string(rank) + " dimensions; 1 to 4 are possible");
    uint64_t elements = 1;
    for (uint32_t dim = 0; dim < rank; ++dim) {
      uint64_t extent = reader.number<uint64_t>();
      if (extent == 0 || __builtin_mul_overflow(elements, extent, &elements) ||
          elements > uint64_t(1) << 48)
        fail(file.path() + ": the tensor '" + name + "' has an extent of " +
             std::to_string(extent));
      entry.stored.shape.insert(entry.stored.shape.begin(),
                                static_cast<int64_t>(extent));
    }
    uint32_t type = reader.number<uint32_t>();
    entry.offset = reader.number<uint64_t>();
    const FormatInfo *info = findGgufFormat(type);
    if (!info)
      fail(file.path() + ": the tensor '" + name + "' has the format " +
           std::to_string(type) + ", which greta-llm does not read; it reads " +
           fileFormats());
    entry.stored.format = info->format;
    entry.bytes = elements / static_cast<uint64_t>(info->block) * info->bytes;
    entries.push_back(std::move(entry));
  }
  uint64_t begin = (reader.position() + alignment - 1) / alignment * alignment;
  for (Entry &entry : entries) {
    if (begin > file.size() || entry.offset > file.size() - begin ||
        entry.bytes > file.size() - begin - entry.offset)
      fail(file.path() + ": the GGUF file is cut off: the tensor '" +
           entry.name + "' ends behind the file");
    if (entry.offset % alignment)
      fail(file.path() + ": the tensor '" + entry.name + "' begins at " +
           std::to_string(entry.offset) + ", which is no multiple of " +
           std::to_string(alignment));
    entry.stored.data = file.data() + begin + entry.offset;
    if (!model.weights.emplace(entry.name, entry.stored).second)
      fail(file.path() + ": the tensor '" + entry.name + "' is there twice");
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.offset < b.offset; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].offset - entries[i - 1].offset < entries[i - 1].bytes)
      fail(file.path() + ": the tensors '" + entries[i - 1].name + "' and '" +
           entries[i].name + "' overlap");
}

// Tables of a vocabulary, which the tokenizer reads.
bool isTable(const std::string &key) {
  constexpr const char *tables[] = {"tokens", "scores", "token_type", "merges"};
  return std::any_of(std::begin(tables), std::end(tables), [&](auto *table) {
    return key == std::string("tokenizer.ggml.") + table;
  });
}

// The beginning of a file: the metadata, without the tokenizer's tables.
struct Head {
  Reader reader; // at the tensors
  uint64_t tensors;
  Metadata data;
};

Head readHead(const Mapping &file, json &tokenizer) {
  const std::string &path = file.path();
  if (file.size() < 4 || memcmp(file.data(), "GGUF", 4) != 0)
    fail(path + ": is no GGUF file");
  Reader reader(file);
  reader.number<uint32_t>();
  uint32_t version = reader.number<uint32_t>();
  if (version < 2 || version > 3)
    fail(path + ": GGUF version " + std::to_string(version) +
         " is not known; 2 and 3 are");
  uint64_t tensors = reader.number<uint64_t>();
  uint64_t values = reader.number<uint64_t>();
  reader.expect(values, 8 + 4 + 1);
  if (values > largestMetadata)
    fail(path + ": the GGUF metadata has " + std::to_string(values) +
         " values; greta-llm reads up to " + std::to_string(largestMetadata));
  json metadata = json::object();
  for (uint64_t i = 0; i < values; ++i) {
    std::string key = reader.text();
    uint32_t type = reader.number<uint32_t>();
    bool isTokenizer = key.rfind("tokenizer.", 0) == 0;
    json value = reader.value(type, isTable(key));
    json &all = isTokenizer ? tokenizer : metadata;
    if (all.contains(key))
      fail(path + ": the GGUF metadata has '" + key + "' twice");
    // No array of the architecture's is known.
    if (type == 9 && !isTokenizer)
      value = "an array";
    all[key] = std::move(value);
  }
  return {reader, tensors, Metadata(path, std::move(metadata))};
}

// The tensors of one file become the model's.
void readTensors(Model &model, const Mapping &file, Head &head) {
  double alignment = head.data.number("general.alignment", 32);
  uint64_t multiple = alignment >= 1 && alignment <= 65536
                          ? static_cast<uint64_t>(alignment)
                          : 0;
  if (!multiple || multiple & (multiple - 1))
    fail(file.path() + ": the GGUF alignment is " + std::to_string(alignment));
  readTensors(model, file, head.reader, head.tensors, multiple);
}

// The number of a file of several, from 1 on, as gguf-split writes names:
// model-00002-of-00005.gguf.
std::string nameOfFile(const std::string &stem, int64_t number, int64_t count) {
  char end[40];
  snprintf(end, sizeof(end), "-%05lld-of-%05lld.gguf",
           static_cast<long long>(number), static_cast<long long>(count));
  return stem + end;
}

// How many files the model has. The one that was named has to be their first.
int64_t countFiles(const Head &named) {
  const std::string &path = named.data.path;
  int64_t count =
      named.data.find("split.count") ? named.data.size("split.count") : 1;
  if (count == 0 || count == 1)
    return 1;
  if (count < 0 || count > mostFiles)
    fail(path + ": is of a model in " + std::to_string(count) +
         " files; greta-llm reads up to " + std::to_string(mostFiles));
  std::string end = nameOfFile("", 1, count);
  if (named.data.size("split.no") != 0 || path.size() < end.size() ||
      path.compare(path.size() - end.size(), end.size(), end) != 0)
    fail(path + ": is one of a model's " + std::to_string(count) +
         " files; name the first, .." + end);
  return count;
}

// The files behind the first, whose head is `first`.
void readOtherFiles(Model &model, const Head &first, int64_t count) {
  size_t end = nameOfFile("", 1, count).size();
  std::string stem = model.path.substr(0, model.path.size() - end);
  for (int64_t other = 1; other < count; ++other) {
    model.files.push_back(
        std::make_unique<Mapping>(nameOfFile(stem, other + 1, count)));
    const Mapping &file = *model.files.back();
    json nothing = json::object();
    Head head = readHead(file, nothing);
    if (head.data.size("split.no") != other ||
        head.data.size("split.count") != count)
      fail(file.path() + ": is not file " + std::to_string(other + 1) + " of " +
           std::to_string(count) + " by its own metadata");
    readTensors(model, file, head);
  }
  int64_t tensors = first.data.size("split.tensors.count");
  if (tensors != static_cast<int64_t>(model.weights.size()))
    fail(model.path + ": the model has " + std::to_string(tensors) +
         " tensors; its files have " + std::to_string(model.weights.size()));
}

// Biases are those that the file has, of those that the architecture may have.
void readBiases(Model &model) {
  const Architecture &a = *model.config.architecture;
  for (const char *list : {a.biases, a.askedBiases})
    for (const std::string &name : wordsOf(list))
      if (list == a.biases ||
          model.weights.count(Model::inLayer(0, name + "_bias")))
        model.config.biases.insert(name);
}

// Factors of rope's pairs as a tensor.
void readFactors(Model &model, const std::string &name,
                 std::vector<double> &to) {
  auto factors = model.weights.find(name);
  if (factors == model.weights.end())
    return;
  const Stored &from = factors->second;
  if (from.format != Format::F32 ||
      from.shape != std::vector<int64_t>{static_cast<int64_t>(to.size())})
    fail(model.path + ": " + name + " is no list of " +
         std::to_string(to.size()) + " numbers of f32");
  for (size_t i = 0; i < to.size(); ++i) {
    float value;
    memcpy(&value, from.data + 4 * i, 4);
    to[i] = value;
  }
}

} // namespace

bool readGgufVocabulary(Model &model) {
  model.files.push_back(std::make_unique<Mapping>(model.path));
  const Mapping &file = *model.files.back();
  uint64_t tensors = 1; // behind the format's name and version
  if (file.size() >= 16)
    memcpy(&tensors, file.data() + 8, sizeof(tensors));
  if (tensors != 0)
    return false;
  Head head = readHead(file, model.tokenizer);
  auto tokens = model.tokenizer.find("tokenizer.ggml.tokens");
  if (countFiles(head) != 1 || tokens == model.tokenizer.end() ||
      !tokens->is_array())
    return false;
  model.config.vocabulary = static_cast<int64_t>(tokens->size());
  return true;
}

void readGguf(Model &model) {
  model.files.push_back(std::make_unique<Mapping>(model.path));
  const Mapping &file = *model.files.back();
  Head head = readHead(file, model.tokenizer);
  int64_t files = countFiles(head);
  model.config = configOf(head.data);
  readTensors(model, file, head);
  if (files > 1)
    readOtherFiles(model, head, files);
  Config &c = model.config;
  c.vocabulary = model.weight("token_embd").shape.front();
  model.pairsAreNeighbours = c.has(PairsInGguf | PairsInFiles);
  readBiases(model);
  Rope &rope = c.ropes.front();
  for (const char *name : {"rope_freqs", "rope_factors_short"})
    readFactors(model, name, rope.factors);
  if (model.weights.count("rope_factors_long")) {
    rope.longFactors = rope.factors;
    readFactors(model, "rope_factors_long", rope.longFactors);
  }
}

} // namespace greta::llm
