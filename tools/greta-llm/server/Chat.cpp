// Chat.cpp: see Chat.h. minja is headers alone, of which Debian 12 has no
// package; without it there is no chat, and everything else is the same.
//
// A template is a program, and may loop, recurse or fill memory without end. So
// it runs in a process of its own, this program again, with limits of time and
// memory. Its input and output are files in memory: the child waits for nobody.
#include "server/Chat.h"
#include "Options.h"
#include "model/Json.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef GRETA_LLM_MINJA
// GCC 16 takes the end of a vector in parseValueExpression for memory that is
// freed; clang does not know that warning.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif
#include <minja/minja.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

namespace greta::llm {
namespace {

// A text of the tokenizer's description: as it is, or as an object's content.
std::string textOf(const nlohmann::json &about, const char *key) {
  if (!about.is_object() || !about.contains(key))
    return "";
  const nlohmann::json &found = about[key];
  const nlohmann::json &text =
      found.is_object() && found.contains("content") ? found["content"] : found;
  return text.is_string() ? text.get<std::string>() : "";
}

// The text of a token that GGUF names by its number.
std::string tokenOf(const nlohmann::json &about, const char *key) {
  if (!about.is_object() || !about.contains(key) ||
      !about.contains("tokenizer.ggml.tokens") ||
      !about[key].is_number_integer())
    return "";
  const nlohmann::json &tokens = about["tokenizer.ggml.tokens"];
  int64_t id = about[key].get<int64_t>();
  return tokens.is_array() && id >= 0 &&
                 id < static_cast<int64_t>(tokens.size()) &&
                 tokens[static_cast<size_t>(id)].is_string()
             ? tokens[static_cast<size_t>(id)].get<std::string>()
             : "";
}

std::string either(const std::string &first, const std::string &second) {
  return first.empty() ? second : first;
}

// The default one of several with names.
std::string sourceOf(const Model &model) {
  if (model.tokenizerConfig.is_object() &&
      model.tokenizerConfig.contains("chat_template") &&
      model.tokenizerConfig["chat_template"].is_array())
    for (const nlohmann::json &named : model.tokenizerConfig["chat_template"])
      if (textOf(named, "name") == "default")
        return textOf(named, "template");
  return either(textOf(model.tokenizerConfig, "chat_template"),
                textOf(model.tokenizer, "tokenizer.chat_template"));
}

} // namespace

namespace {

constexpr rlim_t templateSeconds = 2;             // of processor time
constexpr rlim_t templateBytes = rlim_t(1) << 30; // of memory
constexpr rlim_t promptBytes = 16 << 20;

// A file in memory, and its end.
class MemoryFile {
public:
  MemoryFile() : fd(memfd_create("chat", MFD_CLOEXEC)) {
    if (fd < 0)
      fail(std::string("no file in memory: ") + strerror(errno));
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  ~MemoryFile() { close(fd); }

  void write(const std::string &text) {
    for (size_t at = 0; at < text.size();) {
      ssize_t count = pwrite(fd, text.data() + at, text.size() - at,
                             static_cast<off_t>(at));
      if (count <= 0)
        fail(std::string("no file in memory: ") + strerror(errno));
      at += static_cast<size_t>(count);
    }
  }
  std::string read() const {
    std::string text(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
    ssize_t count = pread(fd, text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
  }

  const int fd;
};

/// Runs the verb `render` with a text; true if it succeeds. Its output is the
/// prompt, or the error.
bool runTemplate(const std::string &input, std::string &printed) {
  MemoryFile in, out;
  in.write(input);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.fd, STDOUT_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  // Ctrl-C is for the server, which finishes what was taken.
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  char name[] = "greta-llm", verb[] = "render";
  char *words[] = {name, verb, nullptr};
  pid_t child = 0;
  int problem =
      posix_spawn(&child, "/proc/self/exe", &files, &how, words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (problem)
    fail(std::string("a chat template cannot be run: ") + strerror(problem));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  printed = out.read();
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    printed = signal == SIGXCPU || signal == SIGKILL
                  ? "it takes more than " + std::to_string(templateSeconds) +
                        " seconds"
                  : std::string("it ends with: ") + strsignal(signal);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

ChatTemplate::ChatTemplate(const Model &model) {
  source = sourceOf(model);
  end_ = either(textOf(model.tokenizerConfig, "eos_token"),
                tokenOf(model.tokenizer, "tokenizer.ggml.eos_token_id"));
  begin = either(textOf(model.tokenizerConfig, "bos_token"),
                 tokenOf(model.tokenizer, "tokenizer.ggml.bos_token_id"));
  std::string why;
  if (source.empty())
    problem_ = "the model has no chat template";
#ifndef GRETA_LLM_MINJA
  else
    problem_ =
        "this greta-llm was built without minja (libminja-dev), which runs "
        "chat templates";
#else
  else if (!runTemplate(nlohmann::json{{"template", source}}.dump(), why))
    problem_ = "the model's chat template cannot be read: " + why;
#endif
}

// A message as templates of some models take it, which differ from others in
// calls and their results.
static void addMessage(nlohmann::ordered_json message, ToolStyle style,
                       bool joinsArguments, nlohmann::ordered_json &to) {
  bool hasCalls = message.contains("tool_calls"),
       isEmpty = !message.contains("content") || message["content"] == "";
  bool isDeepSeek =
      style == ToolStyle::DeepSeek || style == ToolStyle::DeepSeekPlain;
  if (style == ToolStyle::Harmony && message.contains("reasoning_content")) {
    // The template refuses both a text and a thought beside a call.
    if (!hasCalls || isEmpty)
      message["thinking"] = message["reasoning_content"];
    message.erase("reasoning_content");
  }
  if (isDeepSeek && hasCalls) {
    if (isEmpty)
      message["content"] = nullptr;
    for (auto &call : message["tool_calls"])
      if (auto &values = call["function"]["arguments"];
          joinsArguments && !values.is_string())
        values = values.dump();
  }
  if (style == ToolStyle::Glm && message.value("role", "") == "tool")
    message["role"] = "observation";
  if (style != ToolStyle::Glm || !hasCalls) {
    to.push_back(std::move(message));
    return;
  }
  nlohmann::ordered_json calls = message["tool_calls"];
  message.erase("tool_calls");
  if (!isEmpty)
    to.push_back(std::move(message));
  for (const auto &call : calls) {
    const auto &values = call["function"]["arguments"];
    to.push_back({{"role", "assistant"},
                  {"metadata", call["function"]["name"]},
                  {"content", values.is_string() ? values.get<std::string>()
                                                 : values.dump()}});
  }
}

std::string ChatTemplate::prompt(const nlohmann::json &messages) const {
  return prompt(nlohmann::ordered_json(messages),
                nlohmann::ordered_json::array(),
                nlohmann::ordered_json::object());
}

std::string ChatTemplate::prompt(const nlohmann::ordered_json &messages,
                                 const nlohmann::ordered_json &tools,
                                 const nlohmann::ordered_json &values) const {
  if (!problem_.empty())
    fail(problem_);
  nlohmann::ordered_json taken = nlohmann::ordered_json::array();
  bool joinsArguments = source.find("['arguments'] +") != source.npos;
  for (const auto &message : messages)
    addMessage(message, toolStyle(), joinsArguments, taken);
  nlohmann::ordered_json input = {{"template", source},
                                  {"variables",
                                   {{"bos_token", begin},
                                    {"eos_token", end_},
                                    {"add_generation_prompt", true},
                                    {"messages", taken}}}};
  if (!tools.empty())
    input["variables"]["tools"] = tools;
  input["variables"].update(values);
  std::string printed;
  if (!runTemplate(input.dump(), printed))
    fail("the model's chat template refuses the messages: " + printed);
  return printed;
}

//===----------------------------------------------------------------------===//
// The process that runs a template
//===----------------------------------------------------------------------===//

#ifdef GRETA_LLM_MINJA
namespace {
// The date, as templates ask for it: strftime_now("%d %b %Y").
minja::Value now(const std::shared_ptr<minja::Context> &,
                 minja::ArgumentsValue &arguments) {
  arguments.expectArgs("strftime_now", {1, 1}, {0, 0});
  std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[256];
  size_t length = std::strftime(
      text, sizeof(text), arguments.args[0].get<std::string>().c_str(), &parts);
  return minja::Value(std::string(text, length));
}

std::string render(const nlohmann::ordered_json &input) {
  // As transformers sets Jinja up.
  minja::Options options{/*trim_blocks=*/true, /*lstrip_blocks=*/true,
                         /*keep_trailing_newline=*/false};
  auto root =
      minja::Parser::parse(input.at("template").get<std::string>(), options);
  if (!input.contains("variables"))
    return "";
  auto context = minja::Context::make(minja::Value(input.at("variables")));
  context->set("strftime_now", minja::Value::callable(now));
  return root->render(context);
}
} // namespace

int renderTemplate(const Options &) {
  auto limit = [](auto what, rlim_t value) {
    rlimit both{value, value};
    setrlimit(what, &both);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, templateSeconds);
  limit(RLIMIT_FSIZE, promptBytes);
#ifndef GRETA_SANITIZED
  limit(RLIMIT_AS, templateBytes);
#endif
  std::string text, piece(1 << 16, '\0');
  while (size_t count = fread(piece.data(), 1, piece.size(), stdin))
    text.append(piece, 0, count);
  int status = 0;
  try {
    text = render(nlohmann::ordered_json::parse(text));
  } catch (const std::bad_alloc &) {
    text = "it takes more than 1 GiB of memory";
    status = 1;
  } catch (const std::exception &why) {
    text = why.what();
    // minja shows the template behind what is wrong.
    text = text.substr(0, text.find('\n'));
    status = 1;
  }
  fwrite(text.data(), 1, text.size(), stdout);
  return fflush(stdout) ? 1 : status;
}
#else
int renderTemplate(const Options &) { return 1; }
#endif

} // namespace greta::llm
