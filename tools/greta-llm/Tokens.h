// Tokens.h: token ids that a command was given. In: numbers of any size. Out:
// ids of a model, or an error that names what is none.
#ifndef GRETA_LLM_TOKENS_H
#define GRETA_LLM_TOKENS_H

#include "model/Model.h"

namespace greta::llm {

// Errors call them `what`: the prompt, the text.
inline std::vector<int32_t> checkedTokens(const std::vector<int64_t> &given,
                                          const Config &config,
                                          const std::string &what) {
  if (given.empty())
    fail(what + " has no tokens");
  std::vector<int32_t> tokens;
  for (int64_t token : given) {
    if (token < 0 || token >= config.vocabulary)
      fail("there is no token " + std::to_string(token) + "; the model has " +
           std::to_string(config.vocabulary));
    tokens.push_back(static_cast<int32_t>(token));
  }
  return tokens;
}

} // namespace greta::llm
#endif
