// Requests.h: OpenAI's requests as the scheduler takes them. In: a body as it
// came. Out: tokens and how to go on from them, or what is wrong (Refusal).
//
// Every field is honoured, or refused by its name, unless it has the value at
// which it changes nothing.
#ifndef GRETA_LLM_REQUESTS_H
#define GRETA_LLM_REQUESTS_H

#include "server/Chat.h"
#include "server/Scheduler.h"

#include <nlohmann/json.hpp>

namespace greta::llm {

struct Asked {
  Request request;
  bool isStream = false, wantsUsage = false;
};

class RequestReader {
public:
  // `capacity`: of the KV cache, in tokens.
  RequestReader(const Model &model, const Tokenizer &tokenizer,
                int64_t capacity);

  Asked read(const std::string &body, bool isChat) const;
  // Why there are no chats; "" if there are.
  const std::string &chatProblem() const { return chat.problem(); }

private:
  void checkFields(const nlohmann::json &body, bool isChat) const;
  void checkSize(size_t bytes) const;
  std::vector<int32_t> encode(const std::string &text, bool addsSpecial) const;
  std::vector<int32_t> promptTokens(const nlohmann::json &body) const;
  std::string chatPrompt(const nlohmann::json &body) const;
  void readStops(const nlohmann::json &body, Request &request) const;

  const Model &model;
  const Tokenizer &tokenizer;
  const ChatTemplate chat;
  const int64_t room; // tokens of a prompt and its answer together
  size_t longest = 1; // token's bytes
};

} // namespace greta::llm
#endif
