// TokenizerFiles.cpp: a tokenizer's tables from Hugging Face's tokenizer.json,
// from GGUF's metadata, or made up for a synthetic model. A feature of the file
// that is not known here is an error, not a wrong tokenizer.
#include "tokenizer/Charsmap.h"
#include "tokenizer/GgufPatterns.h"
#include "tokenizer/TokenizerTables.h"

#include <cfloat>
#include <cmath>
#include <tuple>

namespace greta::llm {

using nlohmann::json;

namespace {

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

// White space at the ends is left out.
std::string stripped(std::string from, bool left, bool right) {
  std::vector<int32_t> codes = codesOf(from);
  auto isText = [](int32_t code) { return !isWhiteSpace(code); };
  if (right)
    codes.erase(std::find_if(codes.rbegin(), codes.rend(), isText).base(),
                codes.end());
  if (left)
    codes.erase(codes.begin(),
                std::find_if(codes.begin(), codes.end(), isText));
  std::string result;
  for (int32_t code : codes)
    result += utf8(static_cast<uint32_t>(code));
  return result;
}

// `to` stands for two and more spaces.
std::string withoutRepeats(const std::string &from, const std::string &to) {
  std::string result;
  for (size_t at = 0; at < from.size();) {
    size_t end = std::min(from.find_first_not_of(' ', at), from.size());
    if (end - at < 2)
      end = at + 1;
    result += end - at < 2 ? from.substr(at, 1) : to;
    at = end;
  }
  return result;
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
  // Parts are carried out in the order of their stages, so a file has to have
  // them in that order, too. This part belongs behind all up to stage `most`,
  // and is itself in stage `own`.
  void follow(int &stage, int most, int own, const json &value) {
    if (stage > most)
      fail(model.path + ": the tokenizer's '" + text(at(value, {"type"})) +
           "' comes in an order that greta-llm does not carry out");
    stage = own;
  }
  void normalizer(const json &value);
  void preTokenizer(const json &value);
  void postProcessor(const json &value);
  void precompiled(const json &value);
  void unigram(const json &merging);
  void wordPieces(const json &merging);
  void checkNormalizer() const;
  void checkParts(const json &added) const;
  void ggufWordPieces(const json &data);
  std::string spelled(const std::string &token) const;
  void ggufTokens(const json &data, const json &tokens);
  void ggufMerges(const json &data);
  void ggufScores(const json &data, size_t tokens);

  const Model &model;
  Tokenizer::Tables &tables;
  int normalizers = 0, preTokenizers = 0; // the stages of the last ones
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
  } else if (type == "BertNormalizer") {
    follow(normalizers, 0, 1, value);
    BertNormalizer how;
    how.cleans = flag(value, "clean_text", true);
    how.setsChineseApart = flag(value, "handle_chinese_chars", true);
    how.lowers = flag(value, "lowercase", true);
    how.stripsAccents = flag(value, "strip_accents", how.lowers);
    tables.bertNormalizer = how;
  } else if (type == "NFC") {
    follow(normalizers, 1, 1, value);
    tables.composes = true;
  } else if (type == "Precompiled") {
    follow(normalizers, 2, 2, value);
    precompiled(value);
  } else if (type == "Strip") {
    follow(normalizers, 2, 2, value);
    tables.normalizers.push_back(
        [left = flag(value, "strip_left", true),
         right = flag(value, "strip_right", true)](std::string from) {
          return stripped(std::move(from), left, right);
        });
  } else if (type == "Replace" &&
             text(at(value, {"pattern", "Regex"})) == " {2,}" &&
             at(value, {"content"}).is_string()) {
    follow(normalizers, 2, 2, value);
    tables.normalizers.push_back(
        [to = text(at(value, {"content"}))](std::string from) {
          return withoutRepeats(from, to);
        });
  } else if (type == "Prepend" && text(at(value, {"prepend"})) == bar &&
             tables.prepends == Prepend::Never) {
    follow(normalizers, 3, 3, value);
    tables.prepends = Prepend::Always;
  } else if (type == "Replace" && text(at(value, {"content"})) == bar &&
             text(at(value, {"pattern", "String"})) == " ") {
    follow(normalizers, 3, 3, value);
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
  } else if (type == "WhitespaceSplit") {
    follow(preTokenizers, 0, 0, value);
    tables.splitsAtSpaces = true;
  } else if (type == "BertPreTokenizer") {
    follow(preTokenizers, 0, 1, value);
    tables.splitsAsBert = true;
  } else if (type == "ByteLevel") {
    tables.isByteLevel = true;
    tables.startsWithSpace = flag(value, "add_prefix_space", true);
    follow(preTokenizers, tables.startsWithSpace ? 0 : 1, 2, value);
    if (flag(value, "use_regex", true))
      tables.patterns.emplace_back(gpt2Pattern);
  } else if (type == "Split" && text(at(value, {"behavior"})) == "Isolated" &&
             !flag(value, "invert", false) &&
             at(value, {"pattern", "Regex"}).is_string()) {
    follow(preTokenizers, 1, 1, value);
    tables.patterns.emplace_back(text(at(value, {"pattern", "Regex"})));
  } else if (type == "Digits") {
    follow(preTokenizers, 1, 1, value);
    tables.patterns.emplace_back(
        flag(value, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "Metaspace" && text(at(value, {"replacement"})) == bar) {
    follow(preTokenizers, 0, 1, value);
    if (tables.prepends != Prepend::Never)
      fail(model.path + ": the tokenizer has a Prepend and a Metaspace, which "
                        "greta-llm does not know together");
    std::string scheme = text(at(value, {"prepend_scheme"}));
    if (scheme.empty() && !flag(value, "add_prefix_space", true))
      scheme = "never"; // as files of older versions say it
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
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (auto [name, to] :
         {std::pair("cls", &tables.before), std::pair("sep", &tables.after)}) {
      const json &token = at(value, {name});
      to->push_back(checkedId(
          model, token.is_array() && token.size() == 2 ? token[1] : json()));
    }
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

void TableReader::precompiled(const json &value) {
  const json &map = at(value, {"precompiled_charsmap"});
  if (map.is_null())
    return;
  try {
    tables.normalizers.push_back(Charsmap(text(map)));
  } catch (const std::exception &problem) {
    fail(model.path + ": the tokenizer's 'precompiled_charsmap' " +
         problem.what());
  }
}

// The vocabulary is a list of pairs, a token and its score, by id.
void TableReader::unigram(const json &merging) {
  if (flag(merging, "byte_fallback", false))
    fail(model.path + ": the tokenizer is a Unigram with byte_fallback, which "
                      "greta-llm does not know");
  double least = INFINITY;
  for (const json &pair : at(merging, {"vocab"})) {
    int64_t id = static_cast<int64_t>(tables.pieceScores.size());
    bool isPair = pair.is_array() && pair.size() == 2 && pair[0].is_string() &&
                  pair[1].is_number();
    double score = isPair ? pair[1].get<double>() : NAN;
    if (!(std::abs(score) <= DBL_MAX) || text(pair[0]).empty() ||
        tables.find(text(pair[0])))
      fail(model.path + ": the tokenizer's token " + std::to_string(id) +
           " is no text with a finite score, or is there twice");
    setToken(text(pair[0]), checkedId(model, id));
    tables.pieces.add(text(pair[0]), static_cast<int32_t>(id));
    tables.pieceScores.push_back(score);
    least = std::min(least, score);
  }
  // As Hugging Face's library and SentencePiece have it.
  tables.unknownScore = least - 10;
  const json &unknown = at(merging, {"unk_id"});
  int64_t id = unknown.is_number_integer() ? unknown.get<int64_t>() : -1;
  if (id < 0 || id >= static_cast<int64_t>(tables.pieceScores.size()))
    fail(model.path + ": the tokenizer's 'unk_id' is " + unknown.dump() +
         ", which is none of its " + std::to_string(tables.pieceScores.size()) +
         " tokens");
  tables.unknown = static_cast<int32_t>(id);
}

void TableReader::wordPieces(const json &merging) {
  if (!tables.unknown)
    fail(model.path + ": the tokenizer has no token for unknown words");
  const json &prefix = at(merging, {"continuing_subword_prefix"});
  if (prefix.is_string())
    tables.continuing = text(prefix);
  const json &longest = at(merging, {"max_input_chars_per_word"});
  constexpr int64_t most = 200; // each character's time is so many look-ups
  if (longest.is_null())
    return;
  int64_t count = longest.is_number_integer() ? longest.get<int64_t>() : -1;
  if (count < 1 || count > most)
    fail(model.path + ": the tokenizer's 'max_input_chars_per_word' is " +
         longest.dump() + "; 1 to " + std::to_string(most) + " are possible");
  tables.longestWord = static_cast<size_t>(count);
}

// Two files say how texts are normalised; libraries follow one or the other.
void TableReader::checkNormalizer() const {
  if (!tables.bertNormalizer)
    return;
  const BertNormalizer &own = *tables.bertNormalizer;
  const std::tuple<const char *, bool, bool> pairs[] = {
      {"do_lower_case", own.lowers, own.lowers},
      {"strip_accents", own.stripsAccents, own.lowers}, // where it is null
      {"tokenize_chinese_chars", own.setsChineseApart, true}};
  for (const auto &[name, is, otherwise] : pairs)
    if (model.tokenizerConfig.contains(name) &&
        flag(model.tokenizerConfig, name, otherwise) != is)
      fail(model.path + ": '" + name + "' is " +
           at(model.tokenizerConfig, {name}).dump() +
           " in tokenizer_config.json, and the normalizer of tokenizer.json "
           "does otherwise");
}

// Some parts cannot be carried out beside others.
void TableReader::checkParts(const json &added) const {
  auto refuse = [&](const std::string &parts) {
    fail(model.path + ": the tokenizer has " + parts +
         ", which greta-llm does not know");
  };
  if (tables.isByteLevel && (tables.isUnigram || tables.takesLongestTokens))
    refuse("a ByteLevel with a Unigram or a WordPiece");
  // Texts have these bars before they are split, once and not for each word.
  if (normalizers == 3 && tables.splitsAtSpaces)
    refuse("a WhitespaceSplit behind a normalizer that writes '" +
           std::string(bar) + "'");
  if (tables.prepends == Prepend::First && tables.splitsAtSpaces)
    refuse("a WhitespaceSplit before a Metaspace of the prepend_scheme "
           "'first'");
  for (const json &token : added) {
    std::string content = text(at(token, {"content"}));
    if (flag(token, "single_word", false))
      refuse("the token '" + content + "' of 'single_word'");
    // A library looks such a token up in the normalised text, and normalises
    // the token, too.
    if (flag(token, "normalized", false) &&
        tables.normalised(content) != content)
      refuse("the token '" + content +
             "' of 'normalized', which a normalizer changes");
  }
}

void TableReader::fromHuggingFace() {
  const json &file = model.tokenizer;
  const json &merging = at(file, {"model"});
  std::string type = text(at(merging, {"type"}));
  tables.isUnigram = type == "Unigram";
  if ((!type.empty() && type != "BPE" && type != "WordPiece" &&
       !tables.isUnigram) ||
      (tables.isUnigram ? !at(merging, {"vocab"}).is_array()
                        : !at(merging, {"vocab"}).is_object()))
    unknown("model", merging);
  tables.takesLongestTokens = type == "WordPiece";
  for (const char *affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!tables.takesLongestTokens && !text(at(merging, {affix})).empty())
      fail(model.path + ": the tokenizer has a " + std::string(affix) +
           ", which greta-llm does not know");
  if (tables.isUnigram)
    unigram(merging);
  else
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
  if (std::string name = text(at(merging, {"unk_token"}));
      !name.empty() && !tables.isUnigram)
    tables.unknown = tables.find(name);
  for (const json &token : at(file, {"added_tokens"})) {
    int32_t id = checkedId(model, at(token, {"id"}));
    setToken(text(at(token, {"content"})), id);
    addSpecial(text(at(token, {"content"})), id, flag(token, "special", false),
               flag(token, "lstrip", false), flag(token, "rstrip", false));
  }
  if (tables.takesLongestTokens)
    wordPieces(merging);
  normalizer(at(file, {"normalizer"}));
  preTokenizer(at(file, {"pre_tokenizer"}));
  postProcessor(at(file, {"post_processor"}));
  checkNormalizer();
  checkParts(at(file, {"added_tokens"}));
  const json &end = at(model.tokenizerConfig, {"eos_token"});
  if (auto id = tables.find(text(end.is_object() ? at(end, {"content"}) : end)))
    tables.ends.push_back(*id);
}

//===----------------------------------------------------------------------===//
// GGUF, and no file
//===----------------------------------------------------------------------===//

void TableReader::ggufTokens(const json &data, const json &tokens) {
  if (tokens.size() > static_cast<size_t>(model.config.vocabulary))
    fail(model.path + ": the tokenizer has " + std::to_string(tokens.size()) +
         " tokens, the model " + std::to_string(model.config.vocabulary));
  const json &types = at(data, {"tokenizer.ggml.token_type"});
  enum { Unknown = 2, Control = 3, UserDefined = 4 };
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t id = static_cast<int32_t>(i);
    setToken(spelled(text(tokens[i])), id);
    int64_t type =
        types.is_array() && i < types.size() && types[i].is_number_integer()
            ? types[i].get<int64_t>()
            : 1;
    if (type == Unknown)
      tables.unknown = id;
    if (type == Unknown || type == Control || type == UserDefined)
      addSpecial(text(tokens[i]), id, type != UserDefined, false, false);
  }
}

// As tokenizer.json spells a token of WordPiece: GGUF marks those that begin a
// word, not those that go on.
std::string TableReader::spelled(const std::string &token) const {
  bool isSpecial =
      !token.empty() && token.front() == '[' && token.back() == ']';
  if (!tables.takesLongestTokens || isSpecial)
    return token;
  const std::string mark = bar;
  return token.rfind(mark, 0) == 0 ? token.substr(mark.size())
                                   : tables.continuing + token;
}

// GGUF says of a normalizer whether it lowers letters, in newer files.
void TableReader::ggufWordPieces(const json &data) {
  bool lowers = flag(data, "tokenizer.ggml.normalizer.lowercase", true);
  tables.bertNormalizer = BertNormalizer{true, true, lowers, lowers};
  tables.splitsAsBert = true;
  // Files name a token by its number, or it has its usual name.
  auto find = [&](std::initializer_list<const char *> keys, const char *name) {
    for (const char *key : keys)
      if (const json &id = at(data, {key}); !id.is_null())
        return checkedId(model, id);
    std::optional<int32_t> id = tables.find(name);
    if (!id)
      fail(model.path + ": the tokenizer has no token '" + name + "'");
    return *id;
  };
  tables.before.push_back(find(
      {"tokenizer.ggml.cls_token_id", "tokenizer.ggml.bos_token_id"}, "[CLS]"));
  // The key is misspelled in files.
  tables.after.push_back(find({"tokenizer.ggml.seperator_token_id"}, "[SEP]"));
  tables.unknown = find({"tokenizer.ggml.unknown_token_id"}, "[UNK]");
}

void TableReader::ggufMerges(const json &data) {
  int64_t rank = 0;
  for (const json &merge : at(data, {"tokenizer.ggml.merges"})) {
    std::string both = text(merge);
    // A token may be a space's character, but none begins with a space.
    size_t space = both.find(' ', 1);
    if (space == std::string::npos)
      fail(model.path + ": the tokenizer's merge '" + both + "' is no pair");
    addMerge(both.substr(0, space), both.substr(space + 1), rank++);
  }
}

void TableReader::ggufScores(const json &data, size_t tokens) {
  const json &scores = at(data, {"tokenizer.ggml.scores"});
  if (!scores.is_array() || scores.size() != tokens)
    fail(model.path + ": the tokenizer has no score for each token");
  for (const json &score : scores) {
    double value = score.is_number() ? score.get<double>() : NAN;
    if (!(std::abs(value) <= FLT_MAX))
      fail(model.path + ": the tokenizer's score of token " +
           std::to_string(tables.scores.size()) + " is no finite number");
    tables.scores.push_back(static_cast<float>(value));
  }
}

void TableReader::fromGguf() {
  const json &data = model.tokenizer;
  std::string kind = text(at(data, {"tokenizer.ggml.model"}));
  const json &tokens = at(data, {"tokenizer.ggml.tokens"});
  if ((kind != "gpt2" && kind != "llama" && kind != "gemma4" &&
       kind != "bert") ||
      !tokens.is_array())
    fail(model.path + ": the tokenizer '" + kind +
         "' is not known; greta-llm takes gpt2, llama, gemma4 and bert");
  tables.takesLongestTokens = kind == "bert";
  ggufTokens(data, tokens);
  if (kind == "bert")
    return ggufWordPieces(data);
  bool begins = kind != "gpt2";
  if (kind == "gpt2") {
    std::string pre = text(at(data, {"tokenizer.ggml.pre"}));
    const GgufTokenizer *known = findGgufTokenizer(pre);
    if (!known)
      fail(model.path + ": the tokenizer's pattern '" + pre +
           "' is not known; greta-llm takes " + ggufTokenizerNames());
    for (const char *pattern : known->patterns)
      tables.patterns.emplace_back(pattern);
    tables.composes = known->has(GgufTokenizer::Composes);
    tables.takesWholePieces = known->has(GgufTokenizer::WholePieces);
    begins = known->has(GgufTokenizer::Begins);
    tables.isByteLevel = true;
    ggufMerges(data);
  } else {
    if (kind == "llama")
      ggufScores(data, tokens.size());
    else
      ggufMerges(data);
    tables.spacesAreBars = tables.fallsBackToBytes = true;
    if (flag(data, "tokenizer.ggml.add_space_prefix", kind == "llama"))
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
