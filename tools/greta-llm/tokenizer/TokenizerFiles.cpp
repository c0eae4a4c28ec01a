// TokenizerFiles.cpp: a tokenizer's tables from Hugging Face's tokenizer.json,
// from GGUF's metadata, or made up for a synthetic model. A feature of the file
// that is not known here is an error, not a wrong tokenizer.
#include "tokenizer/TokenizerTables.h"

#include <cfloat>
#include <cmath>

namespace greta::llm {

using nlohmann::json;

namespace {

// GPT-2's, which `ByteLevel` uses on its own.
constexpr const char *gpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// GGUF names a pattern only.
const struct {
  const char *name, *pattern;
  bool composes, takesWholePieces;
} ggufPatterns[] = {
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false, true},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true, false},
    {"gpt-2", gpt2Pattern, false, false},
};

// Ids come from files: each is checked before it becomes an index.
int32_t checkedId(const Model &model, const json &value) {
  int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (id < 0 || id >= model.config.vocabulary)
    fail(model.path + ": the tokenizer has the id " + value.dump() +
         ", the model " + std::to_string(model.config.vocabulary) + " tokens");
  return static_cast<int32_t>(id);
}

// The value at a path of keys, null where there is none.
const json &at(const json &object, std::initializer_list<const char *> keys) {
  static const json none;
  const json *value = &object;
  for (const char *key : keys) {
    if (!value->is_object())
      return none;
    auto it = value->find(key);
    if (it == value->end())
      return none;
    value = &*it;
  }
  return *value;
}

std::string text(const json &value) {
  return value.is_string() ? value.get<std::string>() : "";
}

bool flag(const json &object, const char *key, bool otherwise) {
  const json &value = at(object, {key});
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

} // namespace

// Builds a tokenizer's tables.
class TableReader {
public:
  TableReader(const Model &model, Tokenizer::Tables &tables)
      : model(model), tables(tables) {}

  void fromHuggingFace();
  void fromGguf();
  void makeSynthetic();

private:
  [[noreturn]] void unknown(const char *part, const json &value) {
    std::string shown = value.is_object() ? text(at(value, {"type"})) : "";
    fail(model.path + ": the tokenizer's " + part + " '" + shown +
         "' is not one that greta-llm knows");
  }
  void setToken(const std::string &token, int32_t id) {
    if (token.size() > largestToken)
      fail(model.path + ": the tokenizer's token " + std::to_string(id) +
           " has " + std::to_string(token.size()) + " bytes; up to " +
           std::to_string(largestToken) + " are possible");
    if (tables.tokens.size() <= static_cast<size_t>(id))
      tables.tokens.resize(static_cast<size_t>(id) + 1);
    tables.tokens[static_cast<size_t>(id)] = token;
    tables.ids.emplace(token, id);
  }
  void addSpecial(const std::string &token, int32_t id, bool isSpecial,
                  bool stripsLeft, bool stripsRight) {
    if (token.empty())
      return;
    tables.added.push_back({token, id, isSpecial, stripsLeft, stripsRight});
    tables.isSpecial[id] = isSpecial;
  }
  void addMerge(const std::string &left, const std::string &right,
                int64_t rank) {
    auto a = tables.find(left), b = tables.find(right),
         joined = tables.find(left + right);
    if (!a || !b || !joined)
      fail(model.path + ": the tokenizer joins '" + left + "' and '" + right +
           "', which are no tokens of it");
    tables.merges.emplace(Tokenizer::Tables::key(*a, *b),
                          Tokenizer::Tables::Merge{rank, *joined});
  }
  void normalizer(const json &value);
  void preTokenizer(const json &value);
  void postProcessor(const json &value);

  const Model &model;
  Tokenizer::Tables &tables;
};

//===----------------------------------------------------------------------===//
// tokenizer.json
//===----------------------------------------------------------------------===//

void TableReader::normalizer(const json &value) {
  if (value.is_null())
    return;
  std::string type = text(at(value, {"type"}));
  if (type == "Sequence") {
    for (const json &part : at(value, {"normalizers"}))
      normalizer(part);
  } else if (type == "NFC") {
    tables.composes = true;
  } else if (type == "Prepend" && text(at(value, {"prepend"})) == bar) {
    tables.prepends = Prepend::Always;
  } else if (type == "Replace" && text(at(value, {"content"})) == bar &&
             text(at(value, {"pattern", "String"})) == " ") {
    tables.spacesAreBars = true;
  } else {
    unknown("normalizer", value);
  }
}

void TableReader::preTokenizer(const json &value) {
  if (value.is_null())
    return;
  std::string type = text(at(value, {"type"}));
  if (type == "Sequence") {
    for (const json &part : at(value, {"pretokenizers"}))
      preTokenizer(part);
  } else if (type == "ByteLevel") {
    tables.isByteLevel = true;
    tables.startsWithSpace = flag(value, "add_prefix_space", true);
    if (flag(value, "use_regex", true))
      tables.patterns.emplace_back(gpt2Pattern);
  } else if (type == "Split" && text(at(value, {"behavior"})) == "Isolated" &&
             !flag(value, "invert", false) &&
             at(value, {"pattern", "Regex"}).is_string()) {
    tables.patterns.emplace_back(text(at(value, {"pattern", "Regex"})));
  } else if (type == "Digits") {
    tables.patterns.emplace_back(
        flag(value, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "Metaspace" && text(at(value, {"replacement"})) == bar) {
    std::string scheme = text(at(value, {"prepend_scheme"}));
    tables.spacesAreBars = tables.prependsOnce = true;
    tables.prepends = scheme == "first"   ? Prepend::First
                      : scheme == "never" ? Prepend::Never
                                          : Prepend::Always;
    if (flag(value, "split", true))
      tables.patterns.emplace_back(std::string(bar) + "[^" + bar + "]*");
  } else {
    unknown("pre-tokenizer", value);
  }
}

void TableReader::postProcessor(const json &value) {
  if (value.is_null())
    return;
  std::string type = text(at(value, {"type"}));
  if (type == "ByteLevel")
    return;
  if (type == "Sequence") {
    for (const json &part : at(value, {"processors"}))
      postProcessor(part);
    return;
  }
  if (type != "TemplateProcessing")
    unknown("post-processor", value);
  bool isBefore = true;
  for (const json &part : at(value, {"single"})) {
    if (part.contains("Sequence"))
      isBefore = false;
    std::string name = text(at(part, {"SpecialToken", "id"}));
    if (name.empty())
      continue;
    for (const json &id : at(value, {"special_tokens", name.c_str(), "ids"}))
      (isBefore ? tables.before : tables.after).push_back(checkedId(model, id));
  }
}

void TableReader::fromHuggingFace() {
  const json &file = model.tokenizer;
  const json &merging = at(file, {"model"});
  std::string type = text(at(merging, {"type"}));
  if ((!type.empty() && type != "BPE") || !at(merging, {"vocab"}).is_object())
    unknown("model", merging);
  for (const char *affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!text(at(merging, {affix})).empty())
      fail(model.path + ": the tokenizer has a " + std::string(affix) +
           ", which greta-llm does not know");
  for (auto &[token, id] : at(merging, {"vocab"}).items())
    setToken(token, checkedId(model, id));
  int64_t rank = 0;
  for (const json &merge : at(merging, {"merges"})) {
    if (merge.is_array() && merge.size() == 2) {
      addMerge(text(merge[0]), text(merge[1]), rank++);
      continue;
    }
    std::string both = text(merge);
    size_t space = both.find(' ');
    if (space == std::string::npos)
      fail(model.path + ": the tokenizer's merge " + merge.dump() +
           " is no pair");
    addMerge(both.substr(0, space), both.substr(space + 1), rank++);
  }
  tables.takesWholePieces = flag(merging, "ignore_merges", false);
  tables.fallsBackToBytes = flag(merging, "byte_fallback", false);
  tables.fusesUnknown = flag(merging, "fuse_unk", false);
  if (std::string name = text(at(merging, {"unk_token"})); !name.empty())
    tables.unknown = tables.find(name);
  for (const json &token : at(file, {"added_tokens"})) {
    int32_t id = checkedId(model, at(token, {"id"}));
    setToken(text(at(token, {"content"})), id);
    addSpecial(text(at(token, {"content"})), id, flag(token, "special", false),
               flag(token, "lstrip", false), flag(token, "rstrip", false));
  }
  normalizer(at(file, {"normalizer"}));
  preTokenizer(at(file, {"pre_tokenizer"}));
  postProcessor(at(file, {"post_processor"}));
  const json &end = at(model.tokenizerConfig, {"eos_token"});
  if (auto id = tables.find(text(end.is_object() ? at(end, {"content"}) : end)))
    tables.ends.push_back(*id);
}

//===----------------------------------------------------------------------===//
// GGUF, and no file
//===----------------------------------------------------------------------===//

void TableReader::fromGguf() {
  const json &data = model.tokenizer;
  std::string kind = text(at(data, {"tokenizer.ggml.model"}));
  const json &tokens = at(data, {"tokenizer.ggml.tokens"}),
             &types = at(data, {"tokenizer.ggml.token_type"});
  if ((kind != "gpt2" && kind != "llama") || !tokens.is_array())
    fail(model.path + ": the tokenizer '" + kind +
         "' is not known; greta-llm takes gpt2 and llama");
  if (tokens.size() > static_cast<size_t>(model.config.vocabulary))
    fail(model.path + ": the tokenizer has " + std::to_string(tokens.size()) +
         " tokens, the model " + std::to_string(model.config.vocabulary));
  enum { Unknown = 2, Control = 3, UserDefined = 4 };
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t id = static_cast<int32_t>(i);
    setToken(text(tokens[i]), id);
    int64_t type =
        types.is_array() && i < types.size() && types[i].is_number_integer()
            ? types[i].get<int64_t>()
            : 1;
    if (type == Unknown)
      tables.unknown = id;
    if (type == Unknown || type == Control || type == UserDefined)
      addSpecial(text(tokens[i]), id, type != UserDefined, false, false);
  }
  bool begins = kind == "llama";
  if (kind == "gpt2") {
    std::string pre = text(at(data, {"tokenizer.ggml.pre"}));
    for (const auto &known : ggufPatterns)
      if (pre == known.name) {
        tables.patterns.emplace_back(known.pattern);
        tables.composes = known.composes;
        begins = tables.takesWholePieces = known.takesWholePieces;
      }
    if (tables.patterns.empty())
      fail(model.path + ": the tokenizer's pattern '" + pre +
           "' is not known; greta-llm takes llama-bpe, qwen2 and gpt-2");
    tables.isByteLevel = true;
    int64_t rank = 0;
    for (const json &merge : at(data, {"tokenizer.ggml.merges"})) {
      std::string both = text(merge);
      // A token may be a space's character, but none begins with a space.
      size_t space = both.find(' ', 1);
      if (space == std::string::npos)
        fail(model.path + ": the tokenizer's merge '" + both + "' is no pair");
      addMerge(both.substr(0, space), both.substr(space + 1), rank++);
    }
  } else {
    const json &scores = at(data, {"tokenizer.ggml.scores"});
    if (!scores.is_array() || scores.size() != tokens.size())
      fail(model.path + ": the tokenizer has no score for each token");
    for (const json &score : scores) {
      double value = score.is_number() ? score.get<double>() : NAN;
      if (!(std::abs(value) <= FLT_MAX))
        fail(model.path + ": the tokenizer's score of token " +
             std::to_string(tables.scores.size()) + " is no finite number");
      tables.scores.push_back(static_cast<float>(value));
    }
    tables.spacesAreBars = tables.fallsBackToBytes = true;
    if (flag(data, "tokenizer.ggml.add_space_prefix", true))
      tables.prepends = Prepend::Always;
  }
  if (flag(data, "tokenizer.ggml.add_bos_token", begins))
    tables.before.push_back(
        checkedId(model, at(data, {"tokenizer.ggml.bos_token_id"})));
  if (flag(data, "tokenizer.ggml.add_eos_token", false))
    tables.after.push_back(
        checkedId(model, at(data, {"tokenizer.ggml.eos_token_id"})));
  for (const char *end :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const json &id = at(data, {end}); !id.is_null())
      tables.ends.push_back(checkedId(model, id));
}

// A token per byte, then words of syllables.
void TableReader::makeSynthetic() {
  tables.isByteLevel = true;
  constexpr const char *consonants = "bdfgklmnprstvz", *vowels = "aeiou";
  for (int64_t i = 0; i < model.config.vocabulary; ++i) {
    std::string word;
    if (i < 256)
      word = characterOf(static_cast<unsigned char>(i));
    else
      word = characterOf(' ');
    for (int64_t rest = i; i >= 256 && rest > 0; rest /= 70) {
      word += consonants[rest % 14];
      word += vowels[rest / 14 % 5];
    }
    setToken(word, static_cast<int32_t>(i));
  }
}

Tokenizer::Tokenizer(const Model &model) : tables(std::make_unique<Tables>()) {
  TableReader reader(model, *tables);
  if (model.files.empty())
    reader.makeSynthetic();
  else if (model.tokenizer.is_null())
    fail(model.path + ": has no tokenizer (tokenizer.json)");
  else if (model.tokenizer.contains("tokenizer.ggml.model"))
    reader.fromGguf();
  else
    reader.fromHuggingFace();
  for (int32_t end : model.ends)
    tables->ends.push_back(end);
  tables->finish();
}

} // namespace greta::llm
