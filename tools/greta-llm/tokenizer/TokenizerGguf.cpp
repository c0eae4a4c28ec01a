// TokenizerGguf.cpp: a tokenizer's tables from GGUF's metadata, as llama.cpp
// writes it.
#include "OneLine.h"
#include "tokenizer/Charsmap.h"
#include "tokenizer/GgufPatterns.h"
#include "tokenizer/Normalizers.h"
#include "tokenizer/TableReader.h"

#include <cfloat>
#include <cmath>
#include <cstdio>

namespace greta::llm {

namespace {
// Files say with these numbers what a token is.
enum TokenType {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5
};
} // namespace

void TableReader::ggufTokens(const json &data, const json &tokens) {
  if (tokens.size() > static_cast<size_t>(model.config.vocabulary))
    fail(model.path + ": the tokenizer has " + std::to_string(tokens.size()) +
         " tokens, the model " + std::to_string(model.config.vocabulary));
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t id = static_cast<int32_t>(i), type = ggufType(data, i);
    setToken(spelled(text(tokens[i])), id);
    if (type == Unknown)
      tables.unknown = id;
    if (type == Unknown || type == Control || type == UserDefined)
      addSpecial({text(tokens[i]), id, type != UserDefined});
  }
}

int32_t TableReader::ggufType(const json &data, size_t token) const {
  const json &types = at(data, {"tokenizer.ggml.token_type"});
  return types.is_array() && token < types.size() &&
                 types[token].is_number_integer()
             ? types[token].get<int32_t>()
             : Normal;
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

// SentencePiece's unigrams. Spaces are normalised here, so nothing else changes
// them.
void TableReader::ggufUnigram(const json &data, const json &tokens) {
  ggufScores(data, tokens.size());
  tables.isUnigram = true;
  float least = FLT_MAX;
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t type = ggufType(data, i);
    if (type != Normal && type != UserDefined && type != Unused)
      continue;
    if (text(tokens[i]).empty())
      continue;
    if (type == Normal)
      least = std::min(least, tables.scores[i]);
    tables.pieces.add(text(tokens[i]), static_cast<int32_t>(i));
  }
  tables.unknownScore = least - 10;
  for (size_t i = 0; i < tokens.size(); ++i)
    tables.pieceScores.push_back(
        ggufType(data, i) == UserDefined ? 0 : double(tables.scores[i]));
  tables.scores.clear(); // by which no tokens are joined
  const json &unknown = at(data, {"tokenizer.ggml.unknown_token_id"});
  if (!unknown.is_null())
    tables.unknown = checkedId(model, unknown);
  if (!tables.unknown || static_cast<size_t>(*tables.unknown) >= tokens.size())
    fail(model.path + ": the tokenizer has no token for unknown characters");
  if (const json &map = at(data, {"tokenizer.ggml.precompiled_charsmap"});
      !map.is_null()) {
    std::string bytes;
    for (const json &byte : map)
      bytes += static_cast<char>(
          byte.is_number_integer() ? byte.get<int64_t>() & 0xff : 0);
    try {
      tables.normalizers.push_back(
          [map = Charsmap(bytes)](const std::string &from) {
            return map.longest(from);
          });
    } catch (const std::exception &problem) {
      fail(model.path + ": the tokenizer's 'precompiled_charsmap' " +
           problem.what());
    }
  }
  tables.normalizers.push_back(
      [prepends = flag(data, "tokenizer.ggml.add_space_prefix", false),
       merges = flag(data, "tokenizer.ggml.remove_extra_whitespaces", false)](
          const std::string &from) {
        return withBars(from, prepends, merges);
      });
  tables.spacesAreBars = true;
}

// Tokens behind which a text ends.
void TableReader::ggufEnds(const json &data) {
  for (const char *end :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const json &id = at(data, {end}); !id.is_null())
      tables.ends.push_back(checkedId(model, id));
}

void TableReader::fromGguf() {
  const json &data = model.tokenizer;
  std::string kind = text(at(data, {"tokenizer.ggml.model"}));
  const json &tokens = at(data, {"tokenizer.ggml.tokens"});
  if ((kind != "gpt2" && kind != "llama" && kind != "gemma4" &&
       kind != "bert" && kind != "t5") ||
      !tokens.is_array())
    fail(model.path + ": the tokenizer '" + kind +
         "' is not known; greta-llm takes gpt2, llama, gemma4, bert and t5");
  tables.takesLongestTokens = kind == "bert";
  ggufTokens(data, tokens);
  if (kind == "bert")
    return ggufWordPieces(data);
  // Files name the tokens around a text where these are not the usual ones.
  bool begins = kind != "gpt2" && kind != "t5", ends = kind == "t5";
  if (kind == "t5") {
    ggufUnigram(data, tokens);
  } else if (kind == "gpt2") {
    std::string pre = text(at(data, {"tokenizer.ggml.pre"}));
    if (pre.empty() || pre == "default") {
      pre = "default";
      fprintf(stderr,
              "%s: names no pattern of its tokenizer, so texts are split by "
              "llama.cpp's default, with which few models were trained\n",
              onOneLine(model.path).c_str());
    }
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
  if (flag(data, "tokenizer.ggml.add_eos_token", ends))
    tables.after.push_back(
        checkedId(model, at(data, {"tokenizer.ggml.eos_token_id"})));
  ggufEnds(data);
}

} // namespace greta::llm
