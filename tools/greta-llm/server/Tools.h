// Tools.h: functions that a model may call. In: a request's tools, and the text
// of an answer as it comes. Out: a grammar of calls, where an answer has to be
// one; the answer's text without its calls, and these.
//
// Models write calls as they were taught, and the chat template shows how:
//
//   Hermes, Qwen  <tool_call>{"name": "f", "arguments": {..}}</tool_call>
//   Qwen3-Coder   <tool_call><function=f><parameter=a>..</parameter></function>
//                 </tool_call>, with line breaks (ToolParameters.h)
//   Mistral       [TOOL_CALLS][{"name": "f", "arguments": {..}}]
//                 Small 3.2 and later: of each call [TOOL_CALLS]f[ARGS]{..},
//                 which may have [CALL_ID] and a number behind the name
//   Command-R7B   <|START_ACTION|>[{"tool_name": "f", "parameters": {..}}]
//                 <|END_ACTION|>
//   Granite 3     <|tool_call|>[{"name": "f", "arguments": {..}}]
//   Llama 3       {"name": "f", "parameters": {..}}, at the beginning; more
//                 behind semicolons
//   DeepSeek      a begin, then of each call a begin, "function", a separator,
//                 the name and arguments between ```json and ```, an end; in
//                 V3.1 the name, the separator and arguments alone
//   GLM 4         f and a line with {..}, at the beginning of a turn
//   gpt-oss       messages in channels (harmony): <|channel|>commentary
//                 to=functions.f <|constrain|>json<|message|>{..}; what is in
//                 the channel "analysis" is no part of the answer
#ifndef GRETA_LLM_TOOLS_H
#define GRETA_LLM_TOOLS_H

#include "grammar/Grammar.h"
#include "server/Thoughts.h"
#include "server/ToolParameters.h"
#include "tokenizer/Tokenizer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace greta::llm {

enum class ToolStyle {
  None,
  Hermes,
  Coder, // Qwen3-Coder
  Mistral,
  MistralNamed, // Small 3.2 and later
  Granite,
  Cohere,
  Llama,
  DeepSeek,
  DeepSeekPlain, // V3.1
  Glm,
  Harmony
};

// The style that a chat template shows; None: it shows no tools.
ToolStyle toolStyleOf(const std::string &chatTemplate);

// Texts of answers that may be special tokens; the first one begins calls.
std::vector<std::string> toolMarks(ToolStyle style);
// Texts of tokens that end an answer, beside those of the tokenizer.
std::vector<std::string> toolEnds(ToolStyle style);

struct ToolCall {
  // JSON; of an answer that was cut, with the last brace missing.
  std::string name, arguments;
};

// A client's choice of whether, and which, calls are made.
struct ToolChoice {
  ToolStyle style = ToolStyle::None; // None: there are no calls
  bool isRequired = false, isSingle = false;
  std::string name;               // of the only function that may be called
  std::vector<std::string> names; // of all that are offered
  // The kinds of their parameters, where the style has to know them.
  std::shared_ptr<const std::map<std::string, ParameterKinds>> kinds;
  bool takesAny = false;           // functions that are not offered are called
  Thought thought = Thought::None; // where an answer begins
  // The prompt ends with this beginning of the answer.
  std::string begun;
};

// Special tokens whose texts a reader of the answer needs.
std::vector<std::pair<int32_t, std::string>>
shownTokens(const Tokenizer &tokenizer, const ToolChoice &choice);

// The beginning of a call, up to where the model has a choice.
std::string beginningOfCall(const ToolChoice &choice);
// The beginning of an answer that has to be of a grammar.
std::string beginningOfText(ToolStyle style);

// Calls of these functions; `tools` as OpenAI has them.
Grammar grammarOfCalls(const nlohmann::ordered_json &tools,
                       const ToolChoice &choice);

// Takes an answer apart.
class CallReader {
public:
  explicit CallReader(const ToolChoice &choice)
      : style(choice.style), names(choice.names), kinds(choice.kinds),
        isSingle(choice.isSingle), takesAny(choice.takesAny),
        thoughts(choice.thought), held(choice.begun) {}

  struct Part {
    std::string text, reasoning;
    std::vector<ToolCall> calls;
  };
  // `isCut`: the answer would have gone on behind its last part.
  Part take(const std::string &more, bool isLast, bool isCut = false);

private:
  bool isOffered(const std::string &name) const;
  bool readCalls(const std::string &text, Part &part);
  bool readCall(const std::string &name, const std::string &arguments,
                Part &part);
  void add(std::vector<ToolCall> calls, Part &part);
  bool readCoder(const std::string &text, bool isCut, Part &part);
  bool readDeepSeek(const std::string &text, Part &part);
  void giveUp(size_t end, Part &part);
  void endCall(size_t end);
  bool takeTagged(bool isLast, Part &part);
  bool takeCoder(bool isLast, bool isCut, Part &part);
  bool takeBetween(bool isLast, Part &part);
  bool takeJson(bool isLast, Part &part);
  bool takeNamed(bool isLast, Part &part);
  bool beginsLlama(bool isLast, Part &part);
  bool beginsGlm(bool isLast, Part &part);
  bool beginsMarked(bool isLast, Part &part);
  bool takeHarmony(bool isLast, Part &part);
  size_t jsonEnd();

  ToolStyle style;
  std::vector<std::string> names;
  std::shared_ptr<const std::map<std::string, ParameterKinds>> kinds;
  bool isSingle, isInCall = false, isText = false, isBehindCall = false,
                 hasCalled = false;
  bool takesAny;
  ThoughtReader thoughts;
  std::string called;  // the function whose arguments come by themselves
  std::string channel; // harmony's, of the message that `held` is of
  // `held` begins with a call, and `opening` is the whitespace and the mark in
  // front of it. So many of its bytes are searched; they have so many end tags
  // that end no call, or open brackets.
  std::string opening, held;
  size_t searched = 0, ends = 0, depth = 0;
  bool isInString = false;
};

} // namespace greta::llm
#endif
