// TokenizerFiles.cpp: a tokenizer's tables from Hugging Face's tokenizer.json,
// or made up for a synthetic model. A feature of the file that is not known
// here is an error, not a wrong tokenizer.
#include "tokenizer/Charsmap.h"
#include "tokenizer/GgufPatterns.h"
#include "tokenizer/Normalizers.h"
#include "tokenizer/TableReader.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <tuple>

namespace greta::llm {

int32_t TableReader::checkedId(const Model &model, const json &value) {
  int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (id < 0 || id >= model.config.vocabulary)
    fail(model.path + ": the tokenizer has the id " + value.dump() +
         ", the model " + std::to_string(model.config.vocabulary) + " tokens");
  return static_cast<int32_t>(id);
}

const json &TableReader::at(const json &object,
                            std::initializer_list<const char *> keys) {
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

std::string TableReader::text(const json &value) {
  return value.is_string() ? value.get<std::string>() : "";
}

bool TableReader::flag(const json &object, const char *key, bool otherwise) {
  const json &value = at(object, {key});
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

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
    tables.normalizers.push_back(Charsmap(bytesOfBase64(text(map))));
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
  }
}

// A normalizer's bars are in a text, and in tokens, before these are found.
void TableReader::writeBarsBefore(bool prepends) {
  if (normalizers != 3 ||
      std::none_of(tables.added.begin(), tables.added.end(),
                   [](const AddedToken &one) { return one.isNormalised; }))
    return;
  if (prepends)
    tables.prepends = Prepend::Never;
  tables.normalizers.push_back(
      [prepends, writes = tables.spacesAreBars](std::string text) {
        if (writes)
          replaceAll(text, " ", bar);
        return prepends && !text.empty() ? bar + text : text;
      });
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
    addSpecial({text(at(token, {"content"})), id, flag(token, "special", false),
                flag(token, "lstrip", false), flag(token, "rstrip", false),
                flag(token, "normalized", false)});
  }
  if (tables.takesLongestTokens)
    wordPieces(merging);
  normalizer(at(file, {"normalizer"}));
  bool prepends = tables.prepends != Prepend::Never;
  preTokenizer(at(file, {"pre_tokenizer"}));
  writeBarsBefore(prepends);
  postProcessor(at(file, {"post_processor"}));
  checkNormalizer();
  checkParts(at(file, {"added_tokens"}));
  const json &end = at(model.tokenizerConfig, {"eos_token"});
  if (auto id = tables.find(text(end.is_object() ? at(end, {"content"}) : end)))
    tables.ends.push_back(*id);
}

//===----------------------------------------------------------------------===//
// No file
//===----------------------------------------------------------------------===//

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
