// Gguf.cpp: GGUF files, versions 2 and 3. In: the mapped bytes, of a model in
// several files of all. Out: the metadata (GgufConfig.h), the model's weights
// where they lie in the files, and the tokenizer's tables. Every length is
// checked against the file's before it is believed.
#include "model/GgufConfig.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>

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

// The tokenizer's readers take a value of another type than these for none.
struct TokenizerField {
  const char *key; // behind "tokenizer."
  const GgufType &type;
  bool isArray = false;
};
constexpr TokenizerField tokenizerFields[] = {
    {"chat_template", ggufText},
    {"ggml.model", ggufText},
    {"ggml.pre", ggufText},
    {"ggml.tokens", ggufText, /*isArray=*/true},
    {"ggml.scores", ggufNumber, /*isArray=*/true},
    {"ggml.token_type", ggufInteger, /*isArray=*/true},
    {"ggml.merges", ggufText, /*isArray=*/true},
    {"ggml.precompiled_charsmap", ggufInteger, /*isArray=*/true},
    {"ggml.bos_token_id", ggufInteger},
    {"ggml.eos_token_id", ggufInteger},
    {"ggml.eot_token_id", ggufInteger},
    {"ggml.cls_token_id", ggufInteger},
    {"ggml.seperator_token_id", ggufInteger}, // so in files
    {"ggml.unknown_token_id", ggufInteger},
    {"ggml.add_bos_token", ggufFlag},
    {"ggml.add_eos_token", ggufFlag},
    {"ggml.add_space_prefix", ggufFlag},
    {"ggml.remove_extra_whitespaces", ggufFlag},
    {"ggml.normalizer.lowercase", ggufFlag}};

void checkTokenizer(const std::string &path, const json &tokenizer) {
  for (const auto &[name, type, isArray] : tokenizerFields) {
    std::string key = std::string("tokenizer.") + name;
    auto value = tokenizer.find(key);
    if (value != tokenizer.end())
      checkType(path, key, *value, type, isArray);
  }
}

// Tables of a vocabulary, which the tokenizer reads.
bool isTable(const std::string &key) {
  constexpr const char *tables[] = {"tokens", "scores", "token_type", "merges",
                                    "precompiled_charsmap"};
  return std::any_of(std::begin(tables), std::end(tables), [&](auto *table) {
    return key == std::string("tokenizer.ggml.") + table;
  });
}

// The beginning of a file: the metadata, without the tokenizer's tables.
struct Head {
  Reader reader; // at the tensors
  uint64_t tensors;
  GgufMetadata data;
};

Head readHead(const Mapping &file, json &tokenizer) {
  const std::string &path = file.path();
  if (file.size() < 4 || memcmp(file.data(), "GGUF", 4) != 0)
    fail(path + ": is no GGUF file" +
         (std::filesystem::path(path).extension() == ".safetensors"
              ? "; of safetensors name the folder, with their config.json"
              : ""));
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
  if (tokenizer.is_object())
    checkTokenizer(path, tokenizer);
  return {reader, tensors, GgufMetadata(path, std::move(metadata))};
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

// Biases are those that the file has, of those that the architecture may have;
// of queries, keys and values it may have one for all.
void readBiases(Model &model) {
  const Architecture &a = *model.config.architecture;
  auto has = [&](const std::string &name) {
    return model.weights.count(Model::inLayer(0, name + "_bias")) != 0;
  };
  std::set<std::string> ofOne;
  if (a.has(FusedQkv) && has("attn_qkv"))
    ofOne = {"attn_q", "attn_k", "attn_v"};
  for (const char *list : {a.biases, a.askedBiases})
    for (const std::string &name : wordsOf(list))
      if (list == a.biases || has(name) || ofOne.count(name))
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
