// Prompts.cpp: what a request wants to be answered, as tokens (Requests.h): the
// prompts of a completion, or a chat's messages by the model's template.
#include "model/Json.h"
#include "server/Fields.h"
#include "server/Requests.h"

#include <set>

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

/// Values for the chat template beside messages and tools. A template that does
/// not read a name would say nothing, and drop what was asked.
json RequestReader::templateValues(const json &body, const json &think) const {
  json values = json::object();
  auto set = [&](const std::string &what, const std::string &name,
                 const json &value) {
    static const std::set<std::string> own = {
        "messages",  "tools",     "add_generation_prompt",
        "bos_token", "eos_token", "strftime_now"};
    if (own.count(name) || !chat.reads(name))
      throw Refusal(400, what + ": the model's chat template takes no '" +
                             name + "' from a request");
    // A template would take any text for yes, "false" too.
    if (name == "enable_thinking" && !value.is_boolean())
      throw Refusal(400, what + ": 'enable_thinking' has to be true or false");
    if (name == "reasoning_effort" && !value.is_string())
      throw Refusal(400, what + ": 'reasoning_effort' has to be a text");
    if (values.contains(name))
      throw Refusal(400, what + ": '" + name + "' is given twice");
    values[name] = value;
  };
  const json &given = fieldOf(body, "chat_template_kwargs");
  if (!given.is_null() && !given.is_object())
    throw Refusal(400, "'chat_template_kwargs' has to be an object");
  if (given.is_object())
    for (const auto &[name, value] : given.items())
      set("'chat_template_kwargs'", name, value);
  if (const json &effort = fieldOf(body, "reasoning_effort"); !effort.is_null())
    set("'reasoning_effort'", "reasoning_effort", effort);
  if (think.is_string())
    set("'think'", "reasoning_effort", think);
  else if (!think.is_null() && !think.is_boolean())
    throw Refusal(400, "'think' has to be true, false or a text");
  else if (think.is_boolean() && chat.reads("enable_thinking"))
    set("'think'", "enable_thinking", think);
  else if (think == true && !chat.thinks())
    throw Refusal(400, "'think': the model's chat template has no thoughts");
  return values;
}

std::string RequestReader::chatPrompt(const json &body, const json &tools,
                                      const json &think) const {
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
  json values = templateValues(body, think);
  if (!values.empty())
    bytes += values.dump().size();
  checkSize(bytes);
  try {
    return chat.prompt(messages, tools, values);
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
}

} // namespace greta::llm
