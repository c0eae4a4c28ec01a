// Requests.cpp: see Requests.h.
#include "server/Requests.h"
#include "model/Json.h"
#include "server/Http.h"

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;

const std::set<std::string> known = {
    "model",          "stream", "stream_options", "max_tokens", "temperature",
    "top_p",          "min_p",  "top_k",          "stop",       "seed",
    "repeat_penalty", "user",   "metadata"};

// Fields of features that this server lacks, with the values that do not ask
// for the feature.
const std::map<std::string, std::vector<json>> neutral = {
    {"n", {1}},
    {"best_of", {1}},
    {"echo", {false}},
    {"suffix", {""}},
    {"logprobs", {false}},
    {"top_logprobs", {0}},
    {"logit_bias", {json::object()}},
    {"frequency_penalty", {0}},
    {"presence_penalty", {0}},
    {"response_format", {{{"type", "text"}}}},
    {"tools", {json::array()}},
    {"tool_choice", {"none", "auto"}},
    {"parallel_tool_calls", {true, false}},
    {"functions", {json::array()}},
    {"function_call", {"none", "auto"}},
    {"modalities", {json::array({"text"})}},
    {"service_tier", {"auto", "default"}},
    {"store", {false}},
};

// Text that need not be UTF-8, as JSON.
std::string show(const json &value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + ".." : text;
}

double numberOf(const json &body, const char *key, double otherwise,
                double least, double most, bool isWhole = false) {
  auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return otherwise;
  double value = it->is_number() ? it->get<double>() : NAN;
  if (!(value >= least && value <= most) ||
      (isWhole && value != std::floor(value))) {
    char text[160];
    snprintf(text, sizeof(text), "'%s' has to be a %snumber from %g to %g", key,
             isWhole ? "whole " : "", least, most);
    throw Refusal(400, text);
  }
  return value;
}

bool flagOf(const json &body, const char *key) {
  auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return false;
  if (!it->is_boolean())
    throw Refusal(400, std::string("'") + key + "' has to be true or false");
  return it->get<bool>();
}

const json &fieldOf(const json &body, const char *key) {
  static const json none;
  auto it = body.find(key);
  return it == body.end() ? none : *it;
}

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
    if (!part.is_object() || fieldOf(part, "type") != "text" ||
        !fieldOf(part, "text").is_string())
      throw Refusal(400, "a part of a message's 'content' has to be "
                         "{\"type\": \"text\", \"text\": ..}");
    text += fieldOf(part, "text").get<std::string>();
  }
  return text;
}

// A message as chat templates take it.
json messageOf(const json &given) {
  // The fields of a message that a template may read.
  static const std::set<std::string> passed = {
      "role",       "content",      "name",
      "tool_calls", "tool_call_id", "reasoning_content"};
  if (!given.is_object() || !fieldOf(given, "role").is_string())
    throw Refusal(400, "a message has to have the text 'role'");
  if (!given.contains("content") && !given.contains("tool_calls"))
    throw Refusal(400, "a message has to have 'content'");
  json message = json::object();
  for (const auto &[name, value] : given.items()) {
    if (value.is_null() || (value.is_array() && value.empty()))
      continue;
    if (!passed.count(name))
      throw Refusal(400, "a message's '" + name + "' is not supported");
    message[name] = value;
  }
  message["content"] = contentOf(fieldOf(given, "content"));
  return message;
}

uint64_t drawnSeed() {
  std::random_device device;
  uint64_t seed = (static_cast<uint64_t>(device()) << 32) | device();
  return seed >> 11; // as large as one that a client can give
}

} // namespace

RequestReader::RequestReader(const Model &model, const Tokenizer &tokenizer,
                             int64_t capacity)
    : model(model), tokenizer(tokenizer), chat(model),
      room(std::min(capacity, model.config.context)) {
  for (size_t id = 0; id < tokenizer.size(); ++id)
    longest =
        std::max(longest, tokenizer.bytesOf(static_cast<int32_t>(id)).size());
  // Special tokens stand for no bytes, and are written with some.
  longest = std::max<size_t>(longest, 32);
}

void RequestReader::checkFields(const json &body, bool isChat) const {
  for (const auto &[name, value] : body.items()) {
    if (known.count(name) || name == (isChat ? "messages" : "prompt") ||
        (isChat && name == "max_completion_tokens"))
      continue;
    auto it = neutral.find(name);
    if (it == neutral.end())
      throw Refusal(400, "'" + name + "' is no field of this API");
    if (!value.is_null() && std::find(it->second.begin(), it->second.end(),
                                      value) == it->second.end())
      throw Refusal(400,
                    "'" + name + "': " + show(value) + " is not supported");
  }
}

/// Refuses a text that no tokens could be enough for, without a look at it.
void RequestReader::checkSize(size_t bytes) const {
  if (bytes / longest > static_cast<size_t>(room))
    throw Refusal(400, "the prompt has " + std::to_string(bytes) +
                           " bytes, for which the context of " +
                           std::to_string(room) + " tokens has no room");
}

std::vector<int32_t> RequestReader::encode(const std::string &text,
                                           bool addsSpecial) const {
  checkSize(text.size());
  return tokenizer.encode(text, addsSpecial);
}

std::vector<int32_t> RequestReader::promptTokens(const json &body) const {
  const json *prompt = &fieldOf(body, "prompt");
  if (prompt->is_array() && prompt->size() == 1 && (*prompt)[0].is_string())
    prompt = &(*prompt)[0];
  if (prompt->is_string())
    return encode(prompt->get_ref<const std::string &>(), true);
  if (!prompt->is_array())
    throw Refusal(400, "'prompt' has to be a text or a list of tokens");
  std::vector<int32_t> tokens;
  for (const json &token : *prompt) {
    int64_t id = token.is_number_integer() ? token.get<int64_t>() : -1;
    if (id < 0 || id >= model.config.vocabulary)
      throw Refusal(400, "'prompt' has " + show(token) +
                             ", which is no token of the model");
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

std::string RequestReader::chatPrompt(const json &body) const {
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
    return chat.prompt(messages);
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
}

void RequestReader::readStops(const json &body, Request &request) const {
  const json &given = fieldOf(body, "stop");
  if (given.is_null())
    return;
  for (const json &stop : given.is_array() ? given : json::array({given})) {
    // A request keeps them for as long as it waits.
    if (!stop.is_string() || stop.get_ref<const std::string &>().empty() ||
        stop.get_ref<const std::string &>().size() > 1024 ||
        request.stops.size() == 16)
      throw Refusal(400, "'stop' has to be a text of at most 1024 bytes, or up "
                         "to 16 of them");
    std::string text = stop.get<std::string>();
    // A special token stands for no text in an answer, but ends it.
    std::optional<int32_t> token = tokenizer.find(text);
    if (token && tokenizer.bytesOf(*token).empty())
      request.ends.push_back(*token);
    request.stops.push_back(std::move(text));
  }
}

Asked RequestReader::read(const std::string &text, bool isChat) const {
  json body;
  try {
    body = parseJson(text, "the request");
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
  if (!body.is_object())
    throw Refusal(400, "the request is no JSON object");
  checkFields(body, isChat);
  for (const char *name : {"model", "user"})
    if (!fieldOf(body, name).is_null() && !fieldOf(body, name).is_string())
      throw Refusal(400, std::string("'") + name + "' has to be a text");
  Asked asked;
  asked.isStream = flagOf(body, "stream");
  const json &stream = fieldOf(body, "stream_options");
  if (!stream.is_null()) {
    if (!stream.is_object())
      throw Refusal(400, "'stream_options' has to be an object");
    for (const auto &[name, value] : stream.items())
      if (name != "include_usage")
        throw Refusal(400, "'stream_options': '" + name + "' is not supported");
    asked.wantsUsage = flagOf(stream, "include_usage");
  }
  Request &request = asked.request;
  readStops(body, request);
  if (isChat && !chat.end().empty())
    if (auto end = tokenizer.find(chat.end()))
      request.ends.push_back(*end);
  request.tokens =
      isChat ? encode(chatPrompt(body), false) : promptTokens(body);
  if (request.tokens.empty())
    throw Refusal(400, "the prompt has no tokens");
  int64_t prompt = static_cast<int64_t>(request.tokens.size());
  if (prompt >= room)
    throw Refusal(400, "the prompt has " + std::to_string(prompt) +
                           " tokens, which leave no room in the context");
  double left = static_cast<double>(room - prompt);
  double most = numberOf(body, "max_tokens", isChat ? left : 16, 1, 1e9, true);
  most = numberOf(body, "max_completion_tokens", most, 1, 1e9, true);
  request.most = static_cast<int64_t>(std::min(left, most));
  Sampling &sampling = request.sampling;
  sampling.temperature = numberOf(body, "temperature", 1, 0, 100);
  sampling.topP = numberOf(body, "top_p", 1, 0, 1);
  sampling.minP = numberOf(body, "min_p", 0, 0, 1);
  sampling.topK =
      static_cast<int64_t>(numberOf(body, "top_k", 0, 0, 1 << 24, true));
  sampling.repeatPenalty = numberOf(body, "repeat_penalty", 1, 0.01, 100);
  double seed = numberOf(body, "seed", -1, 0, 9007199254740992.0, true);
  sampling.seed = seed < 0 ? drawnSeed() : static_cast<uint64_t>(seed);
  return asked;
}

} // namespace greta::llm
