// Requests.h: clients' requests as the scheduler takes them. In: a body as it
// came, in OpenAI's words, Ollama's or Anthropic's. Out: tokens and how to go
// on from them, or what is wrong (Refusal).
//
// Every field is honoured, or refused by its name, unless it has the value at
// which it changes nothing.
#ifndef GRETA_LLM_REQUESTS_H
#define GRETA_LLM_REQUESTS_H

#include "server/Chat.h"
#include "server/Scheduler.h"

#include <nlohmann/json.hpp>

namespace greta::llm {

enum class Api {
  Completion, // OpenAI's /v1/completions
  Chat,       // OpenAI's /v1/chat/completions
  Ollama,     // /api/chat
  Messages    // Anthropic's /v1/messages
};

constexpr size_t mostChoices = 16;  // of a prompt
constexpr size_t mostAnswers = 128; // of a request, of all its prompts

struct Asked {
  // For each of the answers: those to the first prompt, to the next, and so on,
  // of each prompt as many.
  std::vector<Request> requests;
  bool isStream = false, wantsUsage = false;
  bool hidesSizes = false;         // of a stream's events
  std::vector<std::string> echoes; // of each prompt, in front of its answers
  ToolChoice tools;
};

// A body as a JSON object.
nlohmann::ordered_json parsedRequest(const std::string &body);

class RequestReader {
public:
  using json = nlohmann::ordered_json;

  // `capacity`: of the KV cache, in tokens.
  RequestReader(const Model &model, const Tokenizer &tokenizer,
                int64_t capacity);

  Asked read(const std::string &body, Api api) const;
  // The answers of /tokenize and /detokenize.
  json tokenize(const std::string &body) const;
  json detokenize(const std::string &body) const;
  // Why there are no chats; "" if there are.
  const std::string &chatProblem() const { return chat.problem(); }

private:
  void checkSize(size_t bytes) const;
  std::vector<int32_t> encode(const std::string &text, bool addsSpecial) const;
  bool isSpecial(const std::string &text) const;
  int32_t tokenOf(const json &value, const char *field) const;
  struct Prompt {
    std::vector<int32_t> tokens;
    std::string text;
  };
  // A completion's prompts; each is to have so many answers.
  std::vector<Prompt> promptsOf(const json &body, size_t choices) const;
  static int64_t mostOf(const json &body, size_t prompt, int64_t context,
                        bool isChat);
  json templateValues(const json &body, const json &think) const;
  std::string chatPrompt(const json &body, const json &tools,
                         const json &think) const;
  void readStops(const json &body, Request &request) const;
  void readSampling(const json &body, Sampling &sampling) const;
  void readChances(const json &body, bool isChat, Request &request) const;
  json readTools(const json &body, ToolChoice &choice) const;
  void readGrammar(const json &body, const json &tools, Asked &asked,
                   Request &request) const;

  const Model &model;
  const Tokenizer &tokenizer;
  const ChatTemplate chat;
  const int64_t room; // tokens of a prompt and its answer together
};

} // namespace greta::llm
#endif
