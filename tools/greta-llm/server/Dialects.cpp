// Dialects.cpp: requests of Ollama's /api/chat and Anthropic's /v1/messages in
// OpenAI's words. In: their bodies. Out: a body of /v1/chat/completions, whose
// reader refuses what is wrong in it; a field that is not known is refused
// here.
#include "server/Fields.h"

namespace greta::llm {
namespace {

using json = OrderedJson;

// Copies fields that have another name, or the same.
void copy(const json &from, json &to,
          std::initializer_list<std::pair<const char *, const char *>> names) {
  for (auto [name, other] : names)
    if (const json &value = fieldOf(from, name); !value.is_null())
      to[other] = value;
}

const json &listOf(const json &body, const char *key) {
  const json &list = fieldOf(body, key);
  if (!list.is_array())
    throw Refusal(400, std::string("'") + key + "' has to be a list");
  return list;
}

} // namespace

//===----------------------------------------------------------------------===//
// Ollama
//===----------------------------------------------------------------------===//

static json ollamaMessage(const json &given) {
  checkKeys(given, "a message",
            {"role", "content", "thinking", "images", "tool_calls", "tool_name",
             "tool_call_id", "name"});
  json message = json::object();
  copy(given, message,
       {{"role", "role"},
        {"content", "content"},
        {"thinking", "reasoning_content"},
        {"images", "images"},
        {"tool_name", "name"},
        {"name", "name"},
        {"tool_call_id", "tool_call_id"}});
  const json &calls = fieldOf(given, "tool_calls");
  if (!calls.is_null() && !calls.is_array())
    throw Refusal(400, "a message's 'tool_calls' has to be a list of calls");
  if (!calls.is_null() && !calls.empty()) {
    json &made = message["tool_calls"] = json::array();
    for (const json &call : calls) {
      if (!call.is_object() || !fieldOf(call, "function").is_object())
        throw Refusal(400, "a call of 'tool_calls' has to have 'function'");
      made.push_back({{"type", "function"}, {"function", call["function"]}});
    }
  }
  if (!message.contains("content"))
    message["content"] = "";
  return message;
}

/// All but `think`, whose reader has to know the chat template, and `num_ctx`.
json fromOllama(const json &body) {
  checkKeys(body, "the request",
            {"model", "messages", "tools", "format", "options", "stream",
             "keep_alive", "think"});
  json made = json::object();
  copy(body, made, {{"model", "model"}, {"tools", "tools"}});
  made["stream"] = flagOf(body, "stream", true);
  json &messages = made["messages"] = json::array();
  for (const json &message : listOf(body, "messages"))
    messages.push_back(ollamaMessage(message));
  const json &format = fieldOf(body, "format");
  if (format == "json")
    made["response_format"] = {{"type", "json_object"}};
  else if (format.is_object())
    made["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"schema", format}}}};
  else if (!format.is_null() && format != "")
    throw Refusal(400, "'format' has to be \"json\" or a JSON schema");
  const json &options = fieldOf(body, "options");
  if (options.is_null())
    return made;
  // num_gpu, num_thread and num_batch are settings of the server: in a request
  // they change nothing. num_ctx is read by the caller, which knows the
  // context.
  checkKeys(options, "'options'",
            {"temperature", "top_k", "top_p", "min_p", "seed", "num_predict",
             "stop", "repeat_penalty", "repeat_last_n", "presence_penalty",
             "frequency_penalty", "num_ctx", "num_gpu", "num_thread",
             "num_batch"});
  copy(options, made,
       {{"temperature", "temperature"},
        {"top_k", "top_k"},
        {"top_p", "top_p"},
        {"min_p", "min_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"repeat_penalty", "repeat_penalty"},
        {"repeat_last_n", "repeat_last_n"},
        {"presence_penalty", "presence_penalty"},
        {"frequency_penalty", "frequency_penalty"}});
  // -1 and -2: as long as there is room.
  double most = numberOf(options, "num_predict", -1, -2, 1e9, true);
  if (most == 0)
    throw Refusal(400, "'num_predict': 0 is not supported");
  if (most > 0)
    made["max_tokens"] = most;
  return made;
}

//===----------------------------------------------------------------------===//
// Anthropic
//===----------------------------------------------------------------------===//

// Texts of a content's blocks, one behind the other.
static std::string textOfBlocks(const json &content, const char *what) {
  if (content.is_string())
    return content.get<std::string>();
  if (content.is_null())
    return "";
  if (!content.is_array())
    throw Refusal(400, std::string(what) + " has to be a text or a list of "
                                           "blocks");
  std::string text;
  for (const json &block : content) {
    if (!block.is_object() || fieldOf(block, "type") != "text" ||
        !fieldOf(block, "text").is_string())
      throw Refusal(400, std::string("a block of ") + what +
                             " has to be {\"type\": \"text\", \"text\": ..}");
    checkKeys(block, std::string("a block of ") + what,
              {"type", "text", "cache_control"});
    text += block["text"].get<std::string>();
  }
  return text;
}

// A message becomes several where it has results of calls.
static void addMessage(const json &given, json &messages) {
  checkKeys(given, "a message", {"role", "content"});
  std::string role = textOf(given, "role");
  const json &content = fieldOf(given, "content");
  if (!content.is_array()) {
    messages.push_back(
        {{"role", role}, {"content", textOfBlocks(content, "'content'")}});
    return;
  }
  std::string text;
  json calls = json::array();
  for (const json &block : content) {
    std::string type = block.is_object() ? textOf(block, "type") : "";
    auto check = [&, what = "a block of type '" + type +
                            "'"](std::set<std::string> known) {
      known.insert({"type", "cache_control"}); // prompts are cached anyway
      checkKeys(block, what, known);
    };
    if (type == "text") {
      check({"text"});
      text += textOf(block, "text");
    } else if (type == "tool_use") {
      check({"id", "name", "input"});
      calls.push_back({{"id", textOf(block, "id")},
                       {"type", "function"},
                       {"function",
                        {{"name", textOf(block, "name")},
                         {"arguments", fieldOf(block, "input").is_null()
                                           ? json::object()
                                           : fieldOf(block, "input")}}}});
    } else if (type == "tool_result") {
      check({"tool_use_id", "content", "is_error"});
      // Templates have no other place for it.
      messages.push_back(
          {{"role", "tool"},
           {"tool_call_id", textOf(block, "tool_use_id")},
           {"content",
            (flagOf(block, "is_error") ? "error: " : "") +
                textOfBlocks(fieldOf(block, "content"), "'tool_result'")}});
    } else {
      throw Refusal(400, "a block of 'content' has to be of type text, "
                         "tool_use or tool_result");
    }
  }
  if (text.empty() && calls.empty())
    return;
  json message = {{"role", role}, {"content", text}};
  if (!calls.empty())
    message["tool_calls"] = calls;
  messages.push_back(std::move(message));
}

json fromMessages(const json &body) {
  checkKeys(body, "the request",
            {"model", "messages", "system", "max_tokens", "stop_sequences",
             "stream", "temperature", "top_p", "top_k", "metadata", "tools",
             "tool_choice"});
  json made = json::object();
  copy(body, made,
       {{"model", "model"},
        {"max_tokens", "max_tokens"},
        {"stop_sequences", "stop"},
        {"stream", "stream"},
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"top_k", "top_k"}});
  if (!made.contains("max_tokens"))
    throw Refusal(400, "'max_tokens' is missing");
  json &messages = made["messages"] = json::array();
  std::string system = textOfBlocks(fieldOf(body, "system"), "'system'");
  if (!system.empty())
    messages.push_back({{"role", "system"}, {"content", system}});
  for (const json &message : listOf(body, "messages"))
    addMessage(message, messages);
  if (const json &tools = fieldOf(body, "tools"); !tools.is_null()) {
    json &functions = made["tools"] = json::array();
    for (const json &tool : listOf(body, "tools")) {
      checkKeys(
          tool, "a tool",
          {"name", "description", "input_schema", "type", "cache_control"});
      if (const json &type = fieldOf(tool, "type");
          !type.is_null() && type != "custom")
        throw Refusal(400,
                      "a tool's 'type': " + shown(type) + " is not supported");
      json function = json::object();
      copy(tool, function,
           {{"name", "name"},
            {"description", "description"},
            {"input_schema", "parameters"}});
      functions.push_back({{"type", "function"}, {"function", function}});
    }
  }
  const json &choice = fieldOf(body, "tool_choice");
  if (choice.is_null())
    return made;
  checkKeys(choice, "'tool_choice'",
            {"type", "name", "disable_parallel_tool_use"});
  std::string type = textOf(choice, "type");
  if (type == "tool")
    made["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", textOf(choice, "name")}}}};
  else
    made["tool_choice"] = type == "any" ? "required" : type;
  made["parallel_tool_calls"] = !flagOf(choice, "disable_parallel_tool_use");
  return made;
}

} // namespace greta::llm
