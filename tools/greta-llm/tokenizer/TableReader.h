// TableReader.h: builds a tokenizer's tables from a file. TokenizerFiles.cpp
// reads tokenizer.json and makes up the synthetic one, TokenizerGguf.cpp reads
// GGUF's metadata.
#ifndef GRETA_LLM_TOKENIZER_TABLE_READER_H
#define GRETA_LLM_TOKENIZER_TABLE_READER_H

#include "tokenizer/TokenizerTables.h"

namespace greta::llm {

using nlohmann::json;

// Builds a tokenizer's tables.
class TableReader {
public:
  TableReader(const Model &model, Tokenizer::Tables &tables)
      : model(model), tables(tables) {}

  void fromHuggingFace();
  void fromGguf();
  void makeSynthetic();

private:
  // Ids come from files: each is checked before it becomes an index.
  static int32_t checkedId(const Model &model, const json &value);
  // The value at a path of keys, null where there is none.
  static const json &at(const json &object,
                        std::initializer_list<const char *> keys);
  static std::string text(const json &value); // "" where it is none
  static bool flag(const json &object, const char *key, bool otherwise);
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
  void addSpecial(AddedToken token) {
    if (token.text.empty())
      return;
    tables.isSpecial[token.id] = token.isSpecial;
    tables.added.push_back(std::move(token));
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
  void writeBarsBefore(bool prepends);
  void preTokenizer(const json &value);
  void postProcessor(const json &value);
  void precompiled(const json &value);
  void unigram(const json &merging);
  void wordPieces(const json &merging);
  void checkNormalizer() const;
  void checkParts(const json &added) const;
  void ggufWordPieces(const json &data);
  void ggufUnigram(const json &data, const json &tokens);
  int32_t ggufType(const json &data, size_t token) const;
  std::string spelled(const std::string &token) const;
  void ggufTokens(const json &data, const json &tokens);
  void ggufMerges(const json &data);
  void ggufScores(const json &data, size_t tokens);
  void ggufEnds(const json &data);

  const Model &model;
  Tokenizer::Tables &tables;
  int normalizers = 0, preTokenizers = 0; // the stages of the last ones
};

} // namespace greta::llm
#endif
