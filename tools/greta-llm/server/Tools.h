// Tools.h: functions that a model may call. In: a request's tools, and the text
// of an answer as it comes. Out: a grammar of calls, where an answer has to be
// one; the answer's text without its calls, and these.
//
// Models write calls as they were taught, and the chat template shows how:
//
//   Hermes, Qwen  <tool_call>{"name": "f", "arguments": {..}}</tool_call>
//   Mistral       [TOOL_CALLS][{"name": "f", "arguments": {..}}]
//   Llama 3       {"name": "f", "parameters": {..}}, at the beginning; more
//                 behind semicolons
#ifndef GRETA_LLM_TOOLS_H
#define GRETA_LLM_TOOLS_H

#include "grammar/Grammar.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace greta::llm {

enum class ToolStyle { None, Hermes, Mistral, Llama };

// The style that a chat template shows; None: it shows no tools.
ToolStyle toolStyleOf(const std::string &chatTemplate);

// The token's text that begins calls, where that may be a special one.
const char *toolMark(ToolStyle style);

struct ToolCall {
  std::string name, arguments; // JSON
};

// What a client asks of calls.
struct ToolChoice {
  ToolStyle style = ToolStyle::None; // None: there are no calls
  bool isRequired = false, isSingle = false;
  std::string name;               // of the only function that may be called
  std::vector<std::string> names; // of all that are offered
  // The prompt ends with the mark, so the answer begins behind it.
  bool isBegun = false;
};

// Calls of these functions; `tools` as OpenAI has them.
Grammar grammarOfCalls(const nlohmann::ordered_json &tools,
                       const ToolChoice &choice);

// Takes an answer apart.
class CallReader {
public:
  explicit CallReader(const ToolChoice &choice)
      : style(choice.style), names(choice.names), isSingle(choice.isSingle),
        isInCall(choice.isBegun),
        opening(choice.isBegun ? toolMark(choice.style) : "") {}

  struct Part {
    std::string text;
    std::vector<ToolCall> calls;
  };
  Part take(const std::string &more, bool isLast);

private:
  bool readCalls(const std::string &text, Part &part);
  void giveUp(size_t end, Part &part);
  void endCall(size_t end);
  bool takeTagged(bool isLast, Part &part);
  bool takeJson(bool isLast, Part &part);
  bool beginsLlama(bool isLast, Part &part);
  bool beginsMarked(bool isLast, Part &part);
  size_t jsonEnd();

  ToolStyle style;
  std::vector<std::string> names;
  bool isSingle, isInCall, isText = false, isBehindCall = false,
                           hasCalled = false;
  // `held` begins with a call, and `opening` is the whitespace and the mark in
  // front of it. So many of its bytes are searched; they have so many end tags
  // that end no call, or open brackets.
  std::string opening, held;
  size_t searched = 0, ends = 0, depth = 0;
  bool isInString = false;
};

} // namespace greta::llm
#endif
