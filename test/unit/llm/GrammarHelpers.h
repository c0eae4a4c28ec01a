// GrammarHelpers.h: what tests of grammars share. In: a grammar, and a text.
// Out: whether it fits, or why there is no such grammar.
#ifndef GRETA_GRAMMAR_HELPERS_H
#define GRETA_GRAMMAR_HELPERS_H

#include "grammar/Matcher.h"
#include "model/Model.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace greta::llm {

inline const Tokenizer &tokenizer() {
  static const Model model = readModel("", "tiny");
  static const Tokenizer one(model);
  return one;
}

inline const SortedVocabulary &vocabulary() {
  static const SortedVocabulary one(tokenizer(),
                                    static_cast<int64_t>(tokenizer().size()));
  return one;
}

inline Matcher matcher(Grammar grammar) {
  return Matcher(std::make_shared<const Grammar>(std::move(grammar)),
                 vocabulary());
}

inline bool fits(const Grammar &grammar, const std::string &text) {
  Matcher one = matcher(grammar);
  return one.take(text) && one.mayEnd();
}

inline Grammar schema(const char *text) {
  return grammarOfSchema(nlohmann::ordered_json::parse(text));
}

inline std::string refusal(const std::function<void()> &made) {
  try {
    made();
  } catch (const std::exception &why) {
    return why.what();
  }
  return "";
}

} // namespace greta::llm
#endif
