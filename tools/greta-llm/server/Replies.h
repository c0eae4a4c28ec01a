// Replies.h: answers in the words of an API. In: what was asked, and the pieces
// of its answers as they come. Out: JSON, whole or as a stream's parts.
#ifndef GRETA_LLM_REPLIES_H
#define GRETA_LLM_REPLIES_H

#include "server/Requests.h"

namespace greta::llm {

class Reply {
public:
  // `number` makes ids; `model` is the name that the client reads.
  Reply(Api api, const Asked &asked, int64_t number, std::string model,
        const Tokenizer &tokenizer,
        std::vector<std::shared_ptr<Answer>> answers);
  virtual ~Reply() = default;
  static std::unique_ptr<Reply>
  of(Api api, const Asked &asked, int64_t number, std::string model,
     const Tokenizer &tokenizer, std::vector<std::shared_ptr<Answer>> answers);

  // The part of an answer that is new. An answer that is no stream has one.
  // A problem of the device is said by `deviceProblem`.
  struct Part {
    std::string text;
    bool isLast = false;
    int status = 200;
  };
  Part take(const std::function<std::string()> &deviceProblem);

  // For the log.
  std::string note() const;

protected:
  struct Choice {
    size_t index;
    CallReader reader;
    std::string echo;            // the prompt, in front of the first piece
    std::string text, reasoning; // of a whole answer
    std::vector<ToolCall> calls;
    std::vector<TokenChance> tokens;
    std::string reason; // "" until it has ended
    std::string stop;   // the text that ended it
  };
  // The text and calls that one piece brings.
  struct Piece {
    std::string text, reasoning;
    std::vector<ToolCall> calls;
    std::vector<TokenChance> tokens;
    std::string reason;
    bool isFirst = false, isVeryLast = false;
  };
  virtual std::string streamed(const Choice &choice, const Piece &piece) = 0;
  virtual std::string whole() = 0;
  virtual std::string streamEnd() { return ""; }
  virtual std::string streamError(const std::string &error) = 0;

  std::string id(const char *prefix) const {
    return prefix + std::to_string(number);
  }
  std::string callId(size_t choice, size_t call) const;
  // Tokens of all prompts, each counted once.
  int64_t promptTokens() const;
  int64_t cachedTokens() const;
  int64_t generatedTokens() const;
  std::string bytesOf(int32_t token) const { return tokenizer.bytesOf(token); }

  const Api api;
  const bool isStream, wantsUsage, hidesSizes;
  const int64_t number;
  const std::string model;
  const Tokenizer &tokenizer;
  const double begin;
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<Choice> choices;

private:
  const size_t prompts; // each has as many answers
};

// JSON of texts that need not be UTF-8.
// A number of /metrics, in Prometheus' form.
std::string metric(const char *name, const char *kind, const char *help,
                   double value);
std::string dumped(const nlohmann::ordered_json &value);

} // namespace greta::llm
#endif
