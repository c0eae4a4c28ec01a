// Run.cpp: the verb `run`, a chat in the terminal. In: lines. Out: the model's
// answers as they are made; what a model thinks before them is dim, or has a
// heading where the output is no terminal. Ctrl-C ends an answer, and where
// there is none the program.
//
// The conversation stays in the KV cache: of a prompt only what the cache does
// not hold is evaluated.
#include "Compile.h"
#include "OneLine.h"
#include "Options.h"
#include "engine/DraftModel.h"
#include "server/Chat.h"
#include "tokenizer/Tokenizer.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace greta::llm {
namespace {

using nlohmann::json;

volatile sig_atomic_t isStopped = 0;

constexpr const char *help =
    "/clear         forget the conversation and keep the instructions\n"
    "/system TEXT   forget the conversation and take new instructions\n"
    "/again         answer the last message again\n"
    "/stats         show tokens and times of the last answer\n"
    "/exit          end the program (also Ctrl-D)\n"
    "A backslash at the end of a line continues the message in the next line. "
    "To send a message that begins with a slash, put a space before it. Ctrl-C "
    "stops an answer; a second Ctrl-C ends the program.\n";

// Writes the parts of an answer to standard output.
class AnswerWriter {
public:
  void write(const CallReader::Part &part) {
    put(Kind::Thought, part.reasoning);
    put(Kind::Answer, part.text);
    for (const ToolCall &call : part.calls)
      put(Kind::Call, call.name + " " + call.arguments);
    fflush(stdout);
  }

private:
  enum class Kind { None, Thought, Answer, Call };
  void put(Kind next, const std::string &text) {
    if (text.empty())
      return;
    // Each call has a heading.
    if (next != kind || next == Kind::Call)
      begin(next);
    show(text);
  }
  // A signal ends the program between two pieces: each leaves the terminal as
  // it was.
  void show(const std::string &text) const {
    bool isDim = isTerminal && (kind == Kind::Thought || kind == Kind::Call);
    std::string all = isDim ? "\033[2m" + text + "\033[0m" : text;
    fwrite(all.data(), 1, all.size(), stdout);
  }
  void begin(Kind next) {
    bool isFirst = kind == Kind::None;
    if (!isFirst)
      fputs(isTerminal ? "\n\n" : "\n", stdout);
    kind = next;
    if (kind == Kind::Call)
      show("(call) ");
    else if (!isTerminal && kind == Kind::Thought)
      fputs("(thought)\n", stdout);
    else if (!isTerminal && !isFirst)
      fputs("(answer)\n", stdout);
  }

  const bool isTerminal = isatty(STDOUT_FILENO);
  Kind kind = Kind::None;
};

class Conversation {
public:
  Conversation(const Options &options, const ChatTemplate &chat,
               const Tokenizer &tokenizer, Engine &engine)
      : options(options), tokenizer(tokenizer), engine(engine), chat(chat),
        drafts(draftsFor(options, tokenizer, engine, 1)),
        sampling(options.sampling) {
    sampling.seed = seedOf(options);
    // Answers of gpt-oss are in channels. No functions are offered; what a
    // model calls all the same is shown.
    if (chat.toolStyle() == ToolStyle::Harmony)
      style = ToolStyle::Harmony;
    std::vector<std::string> endings = toolEnds(style);
    endings.push_back(chat.end());
    for (const std::string &ending : endings)
      if (auto token = tokenizer.find(ending))
        ends.push_back(*token);
    instruct(options.system);
  }

  void instruct(const std::string &text) {
    instructions = text;
    clear();
  }
  void clear() {
    messages = json::array();
    if (!instructions.empty())
      add("system", instructions);
  }
  void say(const std::string &text) {
    add("user", text);
    answer();
  }
  void again();
  void printStats() const;

private:
  struct Prompt {
    std::vector<int32_t> tokens;
    ToolChoice answer; // how it is read
  };

  /// A text may end within a character, and models write any bytes.
  static json valid(const std::string &text) {
    return json::parse(
        json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  }
  void add(const char *role, const std::string &text) {
    messages.push_back({{"role", role}, {"content", valid(text)}});
  }
  void add(const CallReader::Part &answer);
  Prompt prompt();
  void answer();
  CallReader::Part generate(const Prompt &prompt, int64_t most);

  const Options &options;
  const Tokenizer &tokenizer;
  Engine &engine;
  const ChatTemplate &chat;
  std::unique_ptr<Drafts> drafts;
  Sampling sampling;
  ToolStyle style = ToolStyle::None;
  std::vector<int32_t> ends; // of answers, beside the tokenizer's
  std::string instructions;
  json messages;
  Sequence sequence;
  std::vector<int32_t> held; // the tokens whose keys the cache has
  int64_t prompted = 0, kept = 0, made = 0;
  double promptSeconds = 0, answerSeconds = 0;
};

void Conversation::again() {
  if (!messages.empty() && messages.back()["role"] == "assistant")
    messages.erase(messages.size() - 1);
  if (messages.empty() || messages.back()["role"] != "user") {
    fputs("there is no message to answer\n", stderr);
    return;
  }
  answer();
}

void Conversation::printStats() const {
  auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  fprintf(stderr,
          "prompt %lld tokens, of which %lld were in the cache, %.1f tokens/s; "
          "answer %lld, %.1f tokens/s\n",
          static_cast<long long>(prompted), static_cast<long long>(kept),
          rate(prompted - kept, promptSeconds), static_cast<long long>(made),
          rate(made, answerSeconds));
}

/// The chat template says which thoughts the next prompt has.
void Conversation::add(const CallReader::Part &answer) {
  add("assistant", answer.text);
  json &message = messages.back();
  if (!answer.reasoning.empty())
    message["reasoning_content"] = valid(answer.reasoning);
  for (const ToolCall &call : answer.calls)
    message["tool_calls"].push_back(
        {{"type", "function"},
         {"function",
          {{"name", valid(call.name)},
           {"arguments", json::parse(call.arguments)}}}});
}

/// The conversation's prompt. Its oldest messages are forgotten where it leaves
/// less than an eighth of the context for the answer.
Conversation::Prompt Conversation::prompt() {
  int64_t room = engine.capacity() - engine.capacity() / 8;
  json kept = messages;
  while (true) {
    std::string text = chat.prompt(kept);
    std::vector<int32_t> tokens = tokenizer.encode(text, false);
    if (static_cast<int64_t>(tokens.size()) <= room) {
      if (kept.size() < messages.size())
        fputs("(the context is full: the oldest messages are forgotten)\n",
              stderr);
      messages = std::move(kept);
      Prompt prompt{std::move(tokens), {}};
      prompt.answer.style = style;
      prompt.answer.takesAny = true;
      prompt.answer.thought = chat.thoughtBehind(text);
      return prompt;
    }
    // A question goes with its answer.
    size_t first = kept[0]["role"] == "system";
    if (kept.size() < first + 3)
      fail(std::string(first ? "the instructions and the message have "
                             : "the message has ") +
           std::to_string(tokens.size()) + " tokens; there is room for " +
           std::to_string(room) + " (--context)");
    kept.erase(first);
    kept.erase(first);
  }
}

/// The answer to the last message, which is taken back where there is none.
void Conversation::answer() {
  try {
    Prompt asked = prompt();
    int64_t room =
        engine.capacity() - static_cast<int64_t>(asked.tokens.size());
    CallReader::Part said = generate(
        asked, options.longest ? std::min(options.longest, room) : room);
    ++sampling.seed; // the same message again has another answer
    add(said);
  } catch (const greta::Error &problem) {
    fail(engine.causeOf(problem)); // the device is not to be used any more
  } catch (const std::exception &problem) {
    fprintf(stderr, "%s\n", onOneLine(problem.what()).c_str());
    messages.erase(messages.size() - 1);
  }
}

CallReader::Part Conversation::generate(const Prompt &asked, int64_t most) {
  const std::vector<int32_t> &prompt = asked.tokens;
  // Another token at a place means other keys from there on; the last token is
  // evaluated again, because what it says is needed.
  size_t common = 0;
  while (common < held.size() && common + 1 < prompt.size() &&
         held[common] == prompt[common])
    ++common;
  prompted = static_cast<int64_t>(prompt.size());
  kept = sequence.length = static_cast<int64_t>(common);
  made = 0;
  held.assign(prompt.begin(), prompt.begin() + kept);
  double begin = seconds(), first = begin;
  engine.reserve(sequence, prompted - kept + most);
  // In parts, so that a long prompt can be stopped.
  while (held.size() < prompt.size() && !isStopped) {
    size_t count = std::min(prompt.size() - held.size(),
                            static_cast<size_t>(engine.chunk()));
    const int32_t *part = prompt.data() + held.size();
    engine.append(sequence, part, count);
    held.insert(held.end(), part, part + count);
  }
  CallReader reader(asked.answer);
  CallReader::Part said;
  AnswerWriter writer;
  auto show = [&](const std::string &bytes, bool isLast) {
    CallReader::Part part = reader.take(bytes, isLast);
    writer.write(part);
    said.text += part.text;
    said.reasoning += part.reasoning;
    said.calls.insert(said.calls.end(), part.calls.begin(), part.calls.end());
  };
  std::map<int32_t, std::string> shown;
  for (const auto &[token, text] : shownTokens(tokenizer, asked.answer))
    shown[token] = text;
  int32_t last = -1;
  auto take = [&](int32_t token) {
    if (last < 0)
      first = seconds();
    if (isStopped || tokenizer.isEnd(token) ||
        std::find(ends.begin(), ends.end(), token) != ends.end())
      return false;
    // The step that chose the next token has this one's keys in the cache; the
    // last token's may be missing.
    if (last >= 0)
      held.push_back(last);
    last = token;
    auto mark = shown.find(token);
    show(mark != shown.end() ? mark->second : tokenizer.bytesOf(token), false);
    return true;
  };
  if (!isStopped)
    made =
        engine.generate(sequence, prompt, sampling, most, take, drafts.get());
  show("", true);
  engine.end(0);
  promptSeconds = first - begin;
  answerSeconds = seconds() - first;
  fputs(isStopped ? " ..\n" : "\n", stdout);
  fflush(stdout);
  return said;
}

/// A message, which may have several lines; false at the end.
bool readMessage(std::string &message, bool isTerminal) {
  message.clear();
  for (const char *prompt = ">>> ";; prompt = "... ") {
    if (isTerminal) {
      fputs(prompt, stdout);
      fflush(stdout);
    }
    std::string line;
    if (!std::getline(std::cin, line))
      return !message.empty();
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    bool goesOn = !line.empty() && line.back() == '\\';
    if (goesOn)
      line.back() = '\n';
    message += line;
    if (!goesOn)
      return true;
  }
}

/// Ctrl-C ends an answer while there is one; a second time the program, which
/// the device may keep waiting.
class StopsAnswer {
public:
  StopsAnswer() {
    isStopped = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { isStopped = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before);
  }
  ~StopsAnswer() { sigaction(SIGINT, &before, nullptr); }

private:
  struct sigaction before;
};

} // namespace

int run(const Options &options) {
  Model model = readLanguageModel(options.model, options.synthetic);
  Tokenizer tokenizer(model);
  ChatTemplate chat(model);
  if (!chat.problem().empty())
    fail(chat.problem());
  Engine engine(model, packageFor(model, options, {options.drafts + 1}),
                EngineOptions::of(options));
  return engine.lead([&] {
    Conversation conversation(options, chat, tokenizer, engine);
    bool isTerminal = isatty(STDIN_FILENO);
    if (isTerminal && !options.isQuiet)
      fprintf(stderr, "%s at %s, context %lld tokens. /help lists commands.\n",
              onOneLine(model.path).c_str(), engine.deviceName().c_str(),
              static_cast<long long>(engine.capacity()));
    for (std::string message; readMessage(message, isTerminal);) {
      StopsAnswer stops;
      std::string word = message.substr(0, message.find_first_of(" \t\n"));
      if (word.empty() &&
          message.find_first_not_of(" \t\n") == std::string::npos)
        continue;
      if (word == "/exit" || word == "/quit" || word == "/bye")
        return 0;
      if (word == "/help")
        fputs(help, stderr);
      else if (word == "/clear")
        conversation.clear();
      else if (word == "/system")
        conversation.instruct(
            message.substr(std::min(message.size(), word.size() + 1)));
      else if (word == "/again")
        conversation.again();
      else if (word == "/stats")
        conversation.printStats();
      else if (word[0] == '/')
        fprintf(stderr, "there is no command %s\n%s", word.c_str(), help);
      else
        conversation.say(message);
    }
    if (isTerminal)
      fputc('\n', stdout);
    return 0;
  });
}

} // namespace greta::llm
