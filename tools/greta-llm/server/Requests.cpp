// Requests.cpp: see Requests.h.
#include "server/Requests.h"
#include "model/Json.h"
#include "server/Fields.h"

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace greta::llm {
namespace {

using json = OrderedJson;

constexpr size_t mostTools = 128, mostLikeliest = 20;
constexpr size_t grammarBytes = 64 << 10;

const std::set<std::string> known = {"model",
                                     "stream",
                                     "stream_options",
                                     "max_tokens",
                                     "temperature",
                                     "top_p",
                                     "min_p",
                                     "top_k",
                                     "stop",
                                     "seed",
                                     "user",
                                     "metadata",
                                     "repeat_penalty",
                                     "repeat_last_n",
                                     "repetition_penalty",
                                     "n",
                                     "logprobs",
                                     "logit_bias",
                                     "grammar",
                                     "response_format",
                                     "frequency_penalty",
                                     "presence_penalty"};
const std::set<std::string> ofCompletions = {"prompt", "echo"};
const std::set<std::string> ofChats = {
    "messages",         "max_completion_tokens",
    "top_logprobs",     "tools",
    "tool_choice",      "parallel_tool_calls",
    "reasoning_effort", "chat_template_kwargs"};

// Fields of features that this server lacks, or an API, with the values that do
// not ask for the feature.
const std::map<std::string, std::vector<json>> neutral = {
    {"best_of", {1}},
    {"echo", {false}},
    {"suffix", {""}},
    {"top_logprobs", {0}},
    {"tools", {json::array()}},
    {"tool_choice", {"none", "auto"}},
    {"parallel_tool_calls", {true, false}},
    {"functions", {json::array()}},
    {"function_call", {"none", "auto"}},
    {"modalities", {json::array({"text"})}},
    {"service_tier", {"auto", "default"}},
    {"store", {false}},
};

uint64_t drawnSeed() {
  std::random_device device;
  uint64_t seed = (static_cast<uint64_t>(device()) << 32) | device();
  return seed >> 11; // as large as one that a client can give
}

void checkFields(const json &body, bool isChat) {
  for (const auto &[name, value] : body.items()) {
    if (known.count(name) || (isChat ? ofChats : ofCompletions).count(name))
      continue;
    auto it = neutral.find(name);
    if (it == neutral.end())
      throw Refusal(400, "'" + name + "' is no field of this API");
    if (!value.is_null() && std::find(it->second.begin(), it->second.end(),
                                      value) == it->second.end())
      throw Refusal(400,
                    "'" + name + "': " + shown(value) + " is not supported");
  }
}

// Returns the grammar that a 'response_format' asks for; none: any text will
// do.
std::optional<Grammar> grammarOfFormat(const json &format,
                                       const std::string &type) {
  if (type == "text")
    return std::nullopt;
  if (type == "json_object") {
    const json &schema = fieldOf(format, "schema");
    return schema.is_null() ? grammarOfJson(true) : grammarOfSchema(schema);
  }
  if (type != "json_schema")
    throw std::runtime_error("'type' has to be text, json_object or "
                             "json_schema");
  const json &about = fieldOf(format, "json_schema");
  checkKeys(about, "'json_schema'",
            {"name", "description", "schema", "strict"});
  return grammarOfSchema(fieldOf(about, "schema"));
}

} // namespace

OrderedJson orderedJson(const std::string &text, const std::string &what) {
  return mostNames(text) <= 640 ? parseJson<json>(text, what)
                                : json(parseJson(text, what));
}

OrderedJson parsedRequest(const std::string &text) {
  json body;
  try {
    body = orderedJson(text, "the request");
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
  if (!body.is_object())
    throw Refusal(400, "the request is no JSON object");
  return body;
}

RequestReader::RequestReader(const Model &model, const Tokenizer &tokenizer,
                             int64_t capacity)
    : model(model), tokenizer(tokenizer), chat(model),
      room(std::min(capacity, model.config.context)) {}

/// A token that stands for no bytes.
bool RequestReader::isSpecial(const std::string &text) const {
  std::optional<int32_t> token = tokenizer.find(text);
  return token && tokenizer.bytesOf(*token).empty();
}

int32_t RequestReader::tokenOf(const json &value, const char *field) const {
  int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (id < 0 || id >= model.config.vocabulary)
    throw Refusal(400, std::string("'") + field + "' has " + shown(value) +
                           ", which is no token of the model");
  return static_cast<int32_t>(id);
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

void RequestReader::readSampling(const json &body, Sampling &sampling) const {
  sampling.temperature = numberOf(body, "temperature", 1, 0, 100);
  sampling.topP = numberOf(body, "top_p", 1, 0, 1);
  sampling.minP = numberOf(body, "min_p", 0, 0, 1);
  sampling.topK =
      static_cast<int64_t>(numberOf(body, "top_k", 0, 0, 1 << 24, true));
  sampling.repeatPenalty = numberOf(body, "repetition_penalty", 1, 0.01, 100);
  sampling.repeatPenalty =
      numberOf(body, "repeat_penalty", sampling.repeatPenalty, 0.01, 100);
  sampling.repeatWindow = static_cast<int64_t>(
      numberOf(body, "repeat_last_n", 64, 0, rememberedTokens, true));
  sampling.frequencyPenalty = numberOf(body, "frequency_penalty", 0, -2, 2);
  sampling.presencePenalty = numberOf(body, "presence_penalty", 0, -2, 2);
  double seed = numberOf(body, "seed", -1, 0, 9007199254740992.0, true);
  sampling.seed = seed < 0 ? drawnSeed() : static_cast<uint64_t>(seed);
  const json &biases = fieldOf(body, "logit_bias");
  if (biases.is_null())
    return;
  if (!biases.is_object() || biases.size() > mostBiases)
    throw Refusal(400, "'logit_bias' has to be an object of at most " +
                           std::to_string(mostBiases) + " tokens");
  std::map<int32_t, float> all;
  for (const auto &[name, bias] : biases.items()) {
    bool isNumber = !name.empty() && name.size() < 10 &&
                    name.find_first_not_of("0123456789") == name.npos;
    json token = isNumber ? json(std::stoll(name)) : json(name);
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= 100))
      throw Refusal(400, "'logit_bias' has " + shown(bias) +
                             " in place of a number from -100 to 100");
    all[tokenOf(token, "logit_bias")] = bias.get<float>();
  }
  sampling.biases.assign(all.begin(), all.end());
}

/// Reads what the client wants to know of each token's chance.
void RequestReader::readChances(const json &body, bool isChat,
                                Request &request) const {
  const json &asked = fieldOf(body, "logprobs");
  if (!isChat) {
    if (!asked.is_null() && asked != false)
      request.likeliest = static_cast<int64_t>(
          numberOf(body, "logprobs", 0, 0, mostLikeliest, true));
    return;
  }
  auto count = static_cast<int64_t>(
      numberOf(body, "top_logprobs", 0, 0, mostLikeliest, true));
  if (flagOf(body, "logprobs"))
    request.likeliest = count;
  else if (count)
    throw Refusal(400, "'top_logprobs' needs 'logprobs': true");
}

/// The functions that may be called, as the template takes them.
RequestReader::json RequestReader::readTools(const json &body,
                                             ToolChoice &choice) const {
  const json &tools = fieldOf(body, "tools");
  const json &how = fieldOf(body, "tool_choice");
  if (tools.is_null() || tools == json::array()) {
    if (!how.is_null() && how != "none" && how != "auto")
      throw Refusal(400, "'tool_choice' needs 'tools'");
    return json::array();
  }
  if (!tools.is_array() || tools.size() > mostTools)
    throw Refusal(400, "'tools' has to be a list of at most 128 functions");
  std::set<std::string> names;
  for (const json &tool : tools) {
    checkKeys(tool, "a tool", {"type", "function"});
    if (fieldOf(tool, "type") != "function")
      throw Refusal(400, "a tool's 'type' has to be \"function\"");
    const json &function = fieldOf(tool, "function");
    checkKeys(function, "a tool's 'function'",
              {"name", "description", "parameters", "strict"});
    std::string name = llm::textOf(function, "name");
    auto isPlain = [](unsigned char c) {
      return isalnum(c) || c == '_' || c == '-' || c == '.';
    };
    if (name.empty() || name.size() > 64 ||
        !std::all_of(name.begin(), name.end(), isPlain) ||
        !names.insert(name).second)
      throw Refusal(400, "a function's 'name' has to be of 1 to 64 letters, "
                         "digits, '_', '-' and '.', and no other's");
    (void)llm::textOf(function, "description");
    if (!fieldOf(function, "parameters").is_null() &&
        !function["parameters"].is_object())
      throw Refusal(400, "a function's 'parameters' has to be a JSON schema");
  }
  if (how == "none")
    return json::array();
  choice.style = chat.toolStyle();
  if (choice.style == ToolStyle::None && chat.problem().empty())
    throw Refusal(400, "the model's chat template knows no 'tools'");
  choice.names.assign(names.begin(), names.end());
  if (choice.style == ToolStyle::Coder)
    choice.kinds =
        std::make_shared<const std::map<std::string, ParameterKinds>>(
            kindsOfParameters(tools));
  choice.isSingle = !flagOf(body, "parallel_tool_calls", true);
  if (how.is_object()) {
    checkKeys(how, "'tool_choice'", {"type", "function"});
    if (fieldOf(how, "function").is_object())
      checkKeys(how["function"], "'function' of 'tool_choice'", {"name"});
    choice.name = llm::textOf(
        fieldOf(how, "function").is_object() ? how["function"] : json::object(),
        "name");
    if (fieldOf(how, "type") != "function" || !names.count(choice.name))
      throw Refusal(400, "'tool_choice' names no function of 'tools'");
    choice.isSingle = true;
  }
  choice.isRequired = how.is_object() || how == "required";
  if (!choice.isRequired && !how.is_null() && how != "auto")
    throw Refusal(400, "'tool_choice' has to be \"none\", \"auto\", "
                       "\"required\" or a function");
  return tools;
}

/// Reads the grammar that an answer has to follow.
void RequestReader::readGrammar(const json &body, const json &tools,
                                Asked &asked, Request &request) const {
  const json &format = fieldOf(body, "response_format");
  std::string type = "text", grammar = llm::textOf(body, "grammar");
  if (!format.is_null()) {
    checkKeys(format, "'response_format'", {"type", "json_schema", "schema"});
    type = llm::textOf(format, "type");
    for (const char *key : {"json_schema", "schema"})
      if (!fieldOf(format, key).is_null() &&
          type != (key[0] == 'j' ? "json_schema" : "json_object"))
        throw Refusal(400, std::string("'response_format' has '") + key +
                               "' beside another 'type'");
  }
  // The format is that of texts: a call that is required has another.
  bool hasFormat = type != "text" && !asked.tools.isRequired;
  if (!grammar.empty() + hasFormat + asked.tools.isRequired > 1)
    throw Refusal(400, "of 'grammar', 'response_format' and a call that "
                       "'tool_choice' requires there can be one");
  if (grammar.size() > grammarBytes)
    throw Refusal(400, "'grammar' has more than 64 KiB");
  const char *what = "'response_format'";
  try {
    std::optional<Grammar> made = grammarOfFormat(format, type);
    if ((made || !grammar.empty()) && !asked.tools.isRequired)
      asked.tools.begun = beginningOfText(asked.tools.style);
    if (!grammar.empty()) {
      what = "'grammar'";
      made = grammarOfGbnf(grammar);
    } else if (asked.tools.isRequired) {
      what = "'tools'";
      // A mark that is a token for no text is part of the prompt.
      if (isSpecial(toolMarks(asked.tools.style)[0]))
        asked.tools.begun = beginningOfCall(asked.tools);
      made = grammarOfCalls(tools, asked.tools);
    }
    if (made)
      request.grammar = std::make_shared<const Grammar>(std::move(*made));
  } catch (const Refusal &) {
    throw;
  } catch (const std::exception &why) {
    throw Refusal(400, std::string(what) + ": " + why.what());
  }
}

Asked RequestReader::read(const std::string &text, Api api) const {
  json body = parsedRequest(text);
  json think; // Ollama's, of which OpenAI's bodies have none
  int64_t context = room;
  if (api == Api::Ollama) {
    think = fieldOf(body, "think");
    const json options = fieldOf(body, "options");
    body = fromOllama(body);
    if (!options.is_null())
      context = static_cast<int64_t>(numberOf(options, "num_ctx",
                                              static_cast<double>(room), 1,
                                              static_cast<double>(room), true));
  }
  if (api == Api::Messages)
    body = fromMessages(body);
  bool isChat = api != Api::Completion;
  checkFields(body, isChat);
  for (const char *name : {"model", "user"})
    (void)llm::textOf(body, name);
  Asked asked;
  asked.isStream = flagOf(body, "stream");
  const json &stream = fieldOf(body, "stream_options");
  if (!stream.is_null()) {
    checkKeys(stream, "'stream_options'",
              {"include_usage", "include_obfuscation"});
    asked.wantsUsage = flagOf(stream, "include_usage");
    asked.hidesSizes = flagOf(stream, "include_obfuscation");
  }
  Request request;
  readStops(body, request);
  readSampling(body, request.sampling);
  readChances(body, isChat, request);
  // Its answers are in channels, with tools or without.
  if (isChat && chat.toolStyle() == ToolStyle::Harmony)
    asked.tools.style = ToolStyle::Harmony;
  json tools = readTools(isChat ? body : json::object(), asked.tools);
  if (isChat && !chat.end().empty())
    if (auto end = tokenizer.find(chat.end()))
      request.ends.push_back(*end);
  auto choices = static_cast<size_t>(
      numberOf(body, "n", 1, 1, static_cast<double>(mostChoices), true));
  readGrammar(body, tools, asked, request);
  std::string prompt = isChat ? chatPrompt(body, tools, think) : "";
  // A grammar is that of an answer without a thought.
  if (isChat && !request.grammar)
    asked.tools.thought = chat.thoughtBehind(prompt);
  request.shown = shownTokens(tokenizer, asked.tools);
  for (const std::string &end : toolEnds(asked.tools.style))
    if (auto token = tokenizer.find(end))
      request.ends.push_back(*token);
  bool isEchoed = !isChat && flagOf(body, "echo");
  request.tellsPrompt = isEchoed && request.likeliest >= 0;
  for (Prompt &one : isChat ? std::vector{Prompt{encode(prompt, false), ""}}
                            : promptsOf(body, choices)) {
    request.tokens = std::move(one.tokens);
    if (!asked.tools.begun.empty())
      for (int32_t token : tokenizer.encode(asked.tools.begun, false))
        request.tokens.push_back(token);
    request.most = mostOf(body, request.tokens.size(), context, isChat);
    asked.echoes.push_back(isEchoed ? std::move(one.text) : "");
    for (size_t i = 0; i < choices; ++i) {
      asked.requests.push_back(request);
      ++request.sampling.seed;
    }
  }
  return asked;
}

/// How many tokens may be made behind a prompt of so many; both lie in
/// `context` tokens.
int64_t RequestReader::mostOf(const json &body, size_t prompt, int64_t context,
                              bool isChat) {
  if (!prompt)
    throw Refusal(400, "the prompt has no tokens");
  auto size = static_cast<int64_t>(prompt);
  if (size >= context)
    throw Refusal(400, "the prompt has " + std::to_string(size) +
                           " tokens, which leave no room in the context");
  double left = static_cast<double>(context - size);
  double most = numberOf(body, "max_tokens", isChat ? left : 16, 1, 1e9, true);
  most = numberOf(body, "max_completion_tokens", most, 1, 1e9, true);
  return static_cast<int64_t>(std::min(left, most));
}

//===----------------------------------------------------------------------===//
// Tokens alone
//===----------------------------------------------------------------------===//

RequestReader::json RequestReader::tokenize(const std::string &text) const {
  json body = parsedRequest(text);
  checkKeys(body, "the request",
            {"content", "add_special", "with_pieces", "model"});
  if (!fieldOf(body, "content").is_string())
    throw Refusal(400, "'content' has to be a text");
  json tokens = json::array();
  bool withPieces = flagOf(body, "with_pieces");
  std::string content = llm::textOf(body, "content");
  // The answer is many times larger.
  size_t most = withPieces ? size_t(128) << 10 : size_t(1) << 20;
  if (content.size() > most)
    throw Refusal(400,
                  "'content' has more than " + std::to_string(most) + " bytes");
  for (int32_t token : tokenizer.encode(content, flagOf(body, "add_special")))
    if (withPieces)
      tokens.push_back({{"id", token}, {"piece", tokenizer.bytesOf(token)}});
    else
      tokens.push_back(token);
  return {{"tokens", tokens}};
}

RequestReader::json RequestReader::detokenize(const std::string &text) const {
  json body = parsedRequest(text);
  checkKeys(body, "the request", {"tokens", "model"});
  const json &tokens = fieldOf(body, "tokens");
  if (!tokens.is_array())
    throw Refusal(400, "'tokens' has to be a list of tokens");
  std::string content;
  for (const json &token : tokens) {
    content += tokenizer.bytesOf(tokenOf(token, "tokens"));
    if (content.size() > size_t(16) << 20)
      throw Refusal(400, "the text has more than 16 MiB");
  }
  return {{"content", content}};
}

} // namespace greta::llm
