// Prompts.cpp: what a request wants to be answered, as tokens (Requests.h): the
// prompts of a completion, or a chat's messages by the model's template.
#include "model/Json.h"
#include "server/Fields.h"
#include "server/Requests.h"

namespace greta::llm {
namespace {

using json = OrderedJson;

constexpr size_t mostCalls = 128; // of a message

// A message's content: a text, or parts that are texts.
std::string contentOf(const json &content) {
  if (content.is_null())
    return "";
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    throw Refusal(400, "a message's 'content' has to be a text or a list of "
                       "parts");
  std::string text;
  for (const json &part : content) {
    // A model's refusal is a text like any other.
    bool isRefusal = part.is_object() && fieldOf(part, "type") == "refusal";
    const char *key = isRefusal ? "refusal" : "text";
    if (!part.is_object() || fieldOf(part, "type") != key ||
        !fieldOf(part, key).is_string())
      throw Refusal(400, "a part of a message's 'content' has to be "
                         "{\"type\": \"text\", \"text\": ..}");
    checkKeys(part, "a part of a message's 'content'", {"type", key});
    text += fieldOf(part, key).get<std::string>();
  }
  return text;
}

// Calls of an answer, whose arguments templates take as objects.
json callsOf(const json &given) {
  json calls = json::array();
  if (!given.is_array() || given.size() > mostCalls)
    throw Refusal(400, "a message's 'tool_calls' has to be a list of calls");
  for (const json &call : given) {
    if (!call.is_object() || !fieldOf(call, "function").is_object() ||
        !fieldOf(call["function"], "name").is_string())
      throw Refusal(400, "a call of 'tool_calls' has to have 'function' with "
                         "its 'name'");
    checkKeys(call, "a call of 'tool_calls'",
              {"id", "type", "function", "index"});
    checkKeys(call["function"], "'function' of a call",
              {"name", "arguments", "index"}); // Ollama's has the number here
    calls.push_back(call);
    json &arguments = calls.back()["function"]["arguments"];
    if (!arguments.is_string())
      continue;
    try {
      json value = orderedJson(arguments.get<std::string>(), "a call");
      if (value.is_object())
        arguments = std::move(value);
    } catch (const std::exception &) { // a text like any other
    }
  }
  return calls;
}

// A message as chat templates take it.
json messageOf(const json &given) {
  // The fields of a message that a template may read.
  static const std::set<std::string> passed = {
      "role",       "content",      "name",
      "tool_calls", "tool_call_id", "reasoning_content"};
  if (!given.is_object() || !fieldOf(given, "role").is_string())
    throw Refusal(400, "a message has to have the text 'role'");
  std::string refusal = llm::textOf(given, "refusal");
  if (!given.contains("content") && !given.contains("tool_calls") &&
      refusal.empty())
    throw Refusal(400, "a message has to have 'content'");
  json message = json::object();
  for (const auto &[name, value] : given.items()) {
    if (value.is_null() || (value.is_array() && value.empty()) ||
        name == "refusal")
      continue;
    if (!passed.count(name))
      throw Refusal(400, "a message's '" + name + "' is not supported");
    message[name] = name == "tool_calls" ? callsOf(value) : value;
  }
  message["content"] = contentOf(fieldOf(given, "content")) + refusal;
  return message;
}

} // namespace

/// Refuses a text that no tokens could be enough for, without a look at it.
void RequestReader::checkSize(size_t bytes) const {
  if (tokenizer.isTooLong(bytes, room))
    throw Refusal(400, "the prompt has " + std::to_string(bytes) +
                           " bytes, for which the context of " +
                           std::to_string(room) + " tokens has no room");
}

std::vector<int32_t> RequestReader::encode(const std::string &text,
                                           bool addsSpecial) const {
  checkSize(text.size());
  return tokenizer.encode(text, addsSpecial);
}

std::vector<RequestReader::Prompt>
RequestReader::promptsOf(const json &body, size_t choices) const {
  const json &given = fieldOf(body, "prompt");
  bool isList = given.is_array(), isText = given.is_string();
  if (!isText && !isList)
    throw Refusal(400, "'prompt' has to be a text, a list of tokens, or a list "
                       "of such");
  // An empty list is a prompt without tokens.
  bool isOne = isText || given.empty() || given.front().is_number();
  // Nothing is read before it is clear that there are not too many.
  if (!isOne && given.size() * choices > mostAnswers)
    throw Refusal(400,
                  "'prompt' has " + std::to_string(given.size()) +
                      " texts, each with 'n' = " + std::to_string(choices) +
                      "; up to " + std::to_string(mostAnswers) +
                      " answers are possible");
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < (isOne ? 1 : given.size()); ++i) {
    const json &one = isOne ? given : given[i];
    if (!one.is_string() && !one.is_array())
      throw Refusal(400, "'prompt' has " + shown(one) +
                             " in place of a text or a list of tokens");
    Prompt prompt;
    if (one.is_string()) {
      prompt.text = one.get<std::string>();
      prompt.tokens = encode(prompt.text, true);
    } else {
      for (const json &token : one) {
        prompt.tokens.push_back(tokenOf(token, "prompt"));
        prompt.text += tokenizer.bytesOf(prompt.tokens.back());
      }
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::string RequestReader::chatPrompt(const json &body,
                                      const json &tools) const {
  if (!chat.problem().empty())
    throw Refusal(400, chat.problem() + "; use /v1/completions");
  const json &given = fieldOf(body, "messages");
  if (!given.is_array() || given.empty())
    throw Refusal(400, "'messages' has to be a list of messages");
  // A template takes time for each message, and a token at least.
  if (given.size() > static_cast<size_t>(room))
    throw Refusal(400, "there are " + std::to_string(given.size()) +
                           " messages, for which the context of " +
                           std::to_string(room) + " tokens has no room");
  json messages = json::array();
  size_t bytes = 0;
  for (const json &message : given) {
    messages.push_back(messageOf(message));
    bytes += messages.back()["content"].get_ref<const std::string &>().size();
  }
  checkSize(bytes);
  try {
    return chat.prompt(messages, tools);
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
}

} // namespace greta::llm
