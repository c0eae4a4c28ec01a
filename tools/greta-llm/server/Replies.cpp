// Replies.cpp: see Replies.h.
#include "server/Replies.h"
#include "model/Json.h"
#include "server/Http.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

namespace greta::llm {

using json = nlohmann::ordered_json;

std::string dumped(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string metric(const char *name, const char *kind, const char *help,
                   double value) {
  char line[400];
  snprintf(line, sizeof(line),
           "# HELP greta_%s %s\n# TYPE greta_%s %s\ngreta_%s %.15g\n", name,
           help, name, kind, name, value);
  return line;
}

Reply::Reply(Api api, const Asked &asked, int64_t number, std::string model,
             const Tokenizer &tokenizer,
             std::vector<std::shared_ptr<Answer>> given)
    : api(api), isStream(asked.isStream), wantsUsage(asked.wantsUsage),
      hidesSizes(asked.hidesSizes), number(number), model(std::move(model)),
      tokenizer(tokenizer), begin(seconds()), answers(std::move(given)),
      prompts(asked.echoes.size()) {
  for (size_t i = 0; i < answers.size(); ++i)
    choices.push_back({i,
                       CallReader(asked.tools),
                       asked.echoes[i * prompts / answers.size()],
                       "",
                       "",
                       {},
                       {},
                       "",
                       ""});
}

int64_t Reply::promptTokens() const {
  int64_t sum = 0;
  for (size_t i = 0; i < answers.size(); i += answers.size() / prompts)
    sum += answers[i]->promptTokens;
  return sum;
}

int64_t Reply::cachedTokens() const {
  int64_t sum = 0;
  for (size_t i = 0; i < answers.size(); i += answers.size() / prompts)
    sum += answers[i]->cached;
  return sum;
}

int64_t Reply::generatedTokens() const {
  int64_t sum = 0;
  for (const std::shared_ptr<Answer> &answer : answers)
    sum += answer->generated;
  return sum;
}

/// An id that no other call of a conversation has. Mistral's chat templates
/// refuse all but nine letters and digits: six say the request, one the choice,
/// two the call.
std::string Reply::callId(size_t choice, size_t call) const {
  constexpr int64_t base = 36,
                    requests = base * base * base * base * base * base;
  int64_t value = ((number % requests) * base + static_cast<int64_t>(choice)) *
                      base * base +
                  static_cast<int64_t>(call) % (base * base);
  std::string text(9, '0');
  for (size_t i = text.size(); i--; value /= base)
    text[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % base];
  return text;
}

std::string Reply::note() const {
  return "prompt " + std::to_string(promptTokens()) +
         (cachedTokens() ? " (" + std::to_string(cachedTokens()) + " cached)"
                         : "") +
         ", generated " + std::to_string(generatedTokens()) + " tokens";
}

Reply::Part Reply::take(const std::function<std::string()> &deviceProblem) {
  Part part;
  auto isOpen = [](const Choice &choice) { return choice.reason.empty(); };
  for (Choice &choice : choices)
    for (Answer::Piece &given : answers[choice.index]->take()) {
      if (given.reason == "error") {
        bool isOwn = !given.problem.empty();
        std::string error = HttpServer::errorText(
            isOwn ? 400 : 500, isOwn ? given.problem : deviceProblem());
        part.isLast = true;
        part.status = isOwn ? 400 : 503;
        part.text =
            isStream ? part.text + streamError(error) + streamEnd() : error;
        return part;
      }
      bool isFirst =
          choice.text.empty() && choice.tokens.empty() && choice.calls.empty();
      CallReader::Part read = choice.reader.take(given.text, given.isLast,
                                                 given.reason == "length");
      if (isFirst)
        read.text = choice.echo + read.text;
      choice.tokens.insert(choice.tokens.end(), given.tokens.begin(),
                           given.tokens.end());
      choice.calls.insert(choice.calls.end(), read.calls.begin(),
                          read.calls.end());
      // A stream has sent it; that something came is all it needs to know.
      if (isStream)
        choice.text = " ";
      else
        choice.text += read.text;
      if (!isStream)
        choice.reasoning += read.reasoning;
      Piece piece{std::move(read.text),
                  std::move(read.reasoning),
                  std::move(read.calls),
                  std::move(given.tokens),
                  given.reason,
                  isFirst,
                  false};
      if (given.isLast) {
        if (piece.reason.empty())
          piece.reason = "stop";
        if (piece.reason == "stop" && !choice.calls.empty())
          piece.reason = "tool_calls";
        choice.reason = piece.reason;
        choice.stop = given.stop;
      }
      piece.isVeryLast = std::none_of(choices.begin(), choices.end(), isOpen);
      if (isStream)
        part.text += streamed(choice, piece);
    }
  part.isLast = std::none_of(choices.begin(), choices.end(), isOpen);
  if (part.isLast)
    part.text += isStream ? streamEnd() : whole();
  return part;
}

namespace {

json argumentsOf(const ToolCall &call) {
  // A call that was cut lacks the last brace, and a model may write values
  // without end inside each other.
  for (const char *end : {"", "}"})
    try {
      json value =
          parseJson<json>(call.arguments + end, "a call", {256, 1u << 20u});
      if (value.is_object())
        return value;
    } catch (const std::exception &) {
    }
  return json::object();
}

//===----------------------------------------------------------------------===//
// OpenAI
//===----------------------------------------------------------------------===//

class OpenAi : public Reply {
public:
  using Reply::Reply;

private:
  bool isChat() const { return api == Api::Chat; }
  json chanceOf(const std::string &bytes, double chance) const {
    json list = json::array();
    for (char byte : bytes)
      list.push_back(static_cast<unsigned char>(byte));
    return {{"token", bytes}, {"logprob", chance}, {"bytes", list}};
  }
  json chances(const std::vector<TokenChance> &tokens) const;
  json describe(const char *object, json choiceList) const {
    return {{"id", id(isChat() ? "chatcmpl-" : "cmpl-")},
            {"object", object},
            {"created", static_cast<int64_t>(time(nullptr))},
            {"model", model},
            {"choices", std::move(choiceList)}};
  }
  json calls(size_t choice, size_t first, const std::vector<ToolCall> &some,
             bool isPiece) const;
  json usage() const {
    int64_t generated = generatedTokens();
    return {{"prompt_tokens", promptTokens()},
            {"completion_tokens", generated},
            {"total_tokens", promptTokens() + generated},
            {"prompt_tokens_details", {{"cached_tokens", cachedTokens()}}}};
  }
  std::string event(const json &value) const {
    return "data: " + dumped(value) + "\n\n";
  }
  std::string streamed(const Choice &choice, const Piece &piece) override;
  std::string whole() override;
  std::string streamEnd() override { return "data: [DONE]\n\n"; }
  std::string streamError(const std::string &error) override {
    return "data: " + error + "\n\n";
  }
};

json OpenAi::chances(const std::vector<TokenChance> &tokens) const {
  if (isChat()) {
    json list = json::array();
    for (const TokenChance &token : tokens) {
      json one = chanceOf(bytesOf(token.token), token.chance);
      json &others = one["top_logprobs"] = json::array();
      for (auto [other, chance] : token.likeliest)
        others.push_back(chanceOf(bytesOf(other), chance));
      list.push_back(std::move(one));
    }
    return {{"content", list}};
  }
  // As OpenAI writes a token that is a part of a character.
  auto nameOf = [&](int32_t token) {
    std::string bytes = bytesOf(token);
    if (json::parse(dumped(bytes)) == json(bytes))
      return bytes;
    std::string name = "bytes:";
    for (char byte : bytes) {
      char digits[8];
      snprintf(digits, sizeof(digits), "\\x%02x",
               static_cast<unsigned>(static_cast<unsigned char>(byte)));
      name += digits;
    }
    return name;
  };
  json names = json::array(), values = json::array(), tops = json::array();
  for (const TokenChance &token : tokens) {
    names.push_back(nameOf(token.token));
    if (std::isnan(token.chance)) {
      values.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    values.push_back(token.chance);
    json top = json::object();
    for (auto [other, chance] : token.likeliest)
      top[nameOf(other)] = chance;
    tops.push_back(std::move(top));
  }
  return {
      {"tokens", names}, {"token_logprobs", values}, {"top_logprobs", tops}};
}

json OpenAi::calls(size_t choice, size_t first,
                   const std::vector<ToolCall> &some, bool isPiece) const {
  json list = json::array();
  for (size_t i = 0; i < some.size(); ++i) {
    json call = json::object();
    if (isPiece)
      call["index"] = first + i;
    call["id"] = callId(choice, first + i);
    call["type"] = "function";
    call["function"] = {{"name", some[i].name},
                        {"arguments", some[i].arguments}};
    list.push_back(std::move(call));
  }
  return list;
}

std::string OpenAi::streamed(const Choice &choice, const Piece &piece) {
  json one = {{"index", choice.index}};
  if (!isChat()) {
    one["text"] = piece.text;
  } else {
    json &delta = one["delta"] = json::object();
    if (piece.isFirst)
      delta["role"] = "assistant";
    if (!piece.calls.empty())
      delta["tool_calls"] =
          calls(choice.index, choice.calls.size() - piece.calls.size(),
                piece.calls, true);
    if (!piece.reasoning.empty())
      delta["reasoning_content"] = piece.reasoning;
    if (piece.calls.empty() || !piece.text.empty())
      delta["content"] = piece.text;
  }
  if (!piece.tokens.empty())
    one["logprobs"] = chances(piece.tokens);
  one["finish_reason"] = piece.reason.empty() ? json() : json(piece.reason);
  json value = describe(isChat() ? "chat.completion.chunk" : "text_completion",
                        json::array({one}));
  if (piece.isVeryLast && wantsUsage)
    value["usage"] = usage();
  if (hidesSizes) {
    // Whoever sees encrypted events learns less of a token from their sizes.
    std::string &letters = (value["obfuscation"] = "").get_ref<std::string &>();
    std::random_device device;
    for (size_t more = 63 - (dumped(value).size() + 63) % 64; more; --more)
      letters += static_cast<char>('a' + device() % 26);
  }
  return event(value);
}

std::string OpenAi::whole() {
  json list = json::array();
  for (const Choice &choice : choices) {
    json one = {{"index", choice.index}};
    if (!isChat()) {
      one["text"] = choice.text;
    } else {
      json &message =
          one["message"] = {{"role", "assistant"}, {"content", choice.text}};
      if (!choice.reasoning.empty())
        message["reasoning_content"] = choice.reasoning;
      if (!choice.calls.empty()) {
        if (choice.text.empty())
          message["content"] = nullptr;
        message["tool_calls"] = calls(choice.index, 0, choice.calls, false);
      }
    }
    one["logprobs"] = choice.tokens.empty() ? json() : chances(choice.tokens);
    one["finish_reason"] = choice.reason;
    list.push_back(std::move(one));
  }
  json value = describe(isChat() ? "chat.completion" : "text_completion", list);
  value["usage"] = usage();
  return dumped(value);
}

//===----------------------------------------------------------------------===//
// Ollama
//===----------------------------------------------------------------------===//

class Ollama : public Reply {
public:
  using Reply::Reply;

private:
  json describe(const std::string &text, const std::string &reasoning,
                const std::vector<ToolCall> &calls) const {
    char date[40];
    std::time_t now = time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
    json message = {{"role", "assistant"}, {"content", text}};
    if (!reasoning.empty())
      message["thinking"] = reasoning;
    for (const ToolCall &call : calls)
      message["tool_calls"].push_back(
          {{"function",
            {{"name", call.name}, {"arguments", argumentsOf(call)}}}});
    return {{"model", model},
            {"created_at", date},
            {"message", message},
            {"done", false}};
  }
  void close(json &value, const std::string &reason) const {
    auto nanoseconds = static_cast<int64_t>((seconds() - begin) * 1e9);
    value["done"] = true;
    value["done_reason"] = reason == "length" ? "length" : "stop";
    value["total_duration"] = nanoseconds;
    value["prompt_eval_count"] = promptTokens();
    value["eval_count"] = generatedTokens();
  }
  std::string streamed(const Choice &, const Piece &piece) override {
    json value = describe(piece.text, piece.reasoning, piece.calls);
    if (!piece.reason.empty())
      close(value, piece.reason);
    return dumped(value) + "\n";
  }
  std::string whole() override {
    json value =
        describe(choices[0].text, choices[0].reasoning, choices[0].calls);
    close(value, choices[0].reason);
    return dumped(value);
  }
  std::string streamError(const std::string &error) override {
    return error + "\n";
  }
};

//===----------------------------------------------------------------------===//
// Anthropic
//===----------------------------------------------------------------------===//

class Anthropic : public Reply {
public:
  using Reply::Reply;

private:
  static std::string event(const char *name, json value) {
    json whole = {{"type", name}};
    whole.update(value);
    return std::string("event: ") + name + "\ndata: " + dumped(whole) + "\n\n";
  }
  json usage() const {
    return {{"input_tokens", promptTokens() - cachedTokens()},
            {"cache_read_input_tokens", cachedTokens()},
            {"output_tokens", generatedTokens()}};
  }
  // Why an answer has ended.
  static json ending(const Choice &choice) {
    bool isStop = choice.reason == "stop" && !choice.stop.empty();
    return {{"stop_reason", choice.reason == "length"       ? "max_tokens"
                            : choice.reason == "tool_calls" ? "tool_use"
                            : isStop                        ? "stop_sequence"
                                                            : "end_turn"},
            {"stop_sequence", isStop ? json(choice.stop) : json()}};
  }
  json message(json content) const {
    return {{"id", id("msg_")},         {"type", "message"},
            {"role", "assistant"},      {"model", model},
            {"content", content},       {"stop_reason", nullptr},
            {"stop_sequence", nullptr}, {"usage", usage()}};
  }
  std::string block(const json &content, const json &delta) {
    std::string text = event("content_block_start",
                             {{"index", blocks}, {"content_block", content}});
    if (!delta.is_null())
      text +=
          event("content_block_delta", {{"index", blocks}, {"delta", delta}});
    return text;
  }
  std::string endBlock() {
    return event("content_block_stop", {{"index", blocks++}});
  }
  std::string streamed(const Choice &choice, const Piece &piece) override {
    std::string text;
    if (piece.isFirst)
      text += event("message_start", {{"message", message(json::array())}});
    if (!piece.text.empty()) {
      json delta = {{"type", "text_delta"}, {"text", piece.text}};
      if (!std::exchange(isInText, true))
        text += block({{"type", "text"}, {"text", ""}}, delta);
      else
        text +=
            event("content_block_delta", {{"index", blocks}, {"delta", delta}});
    }
    if ((!piece.calls.empty() || !piece.reason.empty()) &&
        std::exchange(isInText, false))
      text += endBlock();
    size_t number = choice.calls.size() - piece.calls.size();
    for (const ToolCall &call : piece.calls)
      text += block({{"type", "tool_use"},
                     {"id", callId(choice.index, number++)},
                     {"name", call.name},
                     {"input", json::object()}},
                    {{"type", "input_json_delta"},
                     {"partial_json", call.arguments}}) +
              endBlock();
    if (!piece.reason.empty())
      text += event("message_delta",
                    {{"delta", ending(choice)}, {"usage", usage()}}) +
              event("message_stop", json::object());
    return text;
  }
  std::string whole() override {
    const Choice &choice = choices[0];
    json content = json::array();
    if (!choice.text.empty() || choice.calls.empty())
      content.push_back({{"type", "text"}, {"text", choice.text}});
    for (size_t i = 0; i < choice.calls.size(); ++i)
      content.push_back({{"type", "tool_use"},
                         {"id", callId(choice.index, i)},
                         {"name", choice.calls[i].name},
                         {"input", argumentsOf(choice.calls[i])}});
    json value = message(std::move(content));
    value.update(ending(choice));
    return dumped(value);
  }
  std::string streamError(const std::string &error) override {
    json value = json::parse(error, nullptr, false);
    return event("error", value.is_object() ? value : json::object());
  }

  int64_t blocks = 0;
  bool isInText = false;
};

} // namespace

std::unique_ptr<Reply> Reply::of(Api api, const Asked &asked, int64_t number,
                                 std::string model, const Tokenizer &tokenizer,
                                 std::vector<std::shared_ptr<Answer>> answers) {
  if (api == Api::Ollama)
    return std::make_unique<Ollama>(api, asked, number, std::move(model),
                                    tokenizer, std::move(answers));
  if (api == Api::Messages)
    return std::make_unique<Anthropic>(api, asked, number, std::move(model),
                                       tokenizer, std::move(answers));
  return std::make_unique<OpenAi>(api, asked, number, std::move(model),
                                  tokenizer, std::move(answers));
}

} // namespace greta::llm
