// Chat.cpp: see Chat.h. minja is headers alone, of which Debian 12 has no
// package; without it there is no chat, and everything else is the same.
#include "Chat.h"

#ifdef GRETA_LLM_MINJA
#include <ctime>
#include <minja/minja.hpp>
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

// Of several with names the default one.
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

#ifdef GRETA_LLM_MINJA

struct ChatTemplate::Program {
  std::shared_ptr<minja::TemplateNode> root;
  nlohmann::ordered_json constants;
};

namespace {
// What templates call for the date: strftime_now("%d %b %Y").
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

// minja shows the template behind what is wrong.
std::string firstLine(const std::exception &why) {
  std::string text = why.what();
  return text.substr(0, text.find('\n'));
}
} // namespace

#else
struct ChatTemplate::Program {};
#endif

ChatTemplate::ChatTemplate(const Model &model) {
  std::string source = sourceOf(model);
  end_ = either(textOf(model.tokenizerConfig, "eos_token"),
                tokenOf(model.tokenizer, "tokenizer.ggml.eos_token_id"));
  if (source.empty()) {
    problem_ = "the model has no chat template";
    return;
  }
#ifdef GRETA_LLM_MINJA
  std::string begin =
      either(textOf(model.tokenizerConfig, "bos_token"),
             tokenOf(model.tokenizer, "tokenizer.ggml.bos_token_id"));
  try {
    // As transformers sets Jinja up.
    minja::Options options{/*trim_blocks=*/true, /*lstrip_blocks=*/true,
                           /*keep_trailing_newline=*/false};
    program.reset(new Program{minja::Parser::parse(source, options),
                              {{"bos_token", begin},
                               {"eos_token", end_},
                               {"add_generation_prompt", true}}});
  } catch (const std::exception &why) {
    problem_ = "the model's chat template cannot be read: " + firstLine(why);
  }
#else
  problem_ =
      "this greta-llm was built without minja (libminja-dev), which runs "
      "chat templates";
#endif
}

ChatTemplate::~ChatTemplate() = default;

std::string ChatTemplate::prompt(const nlohmann::json &messages) const {
  if (!program)
    fail(problem_);
#ifdef GRETA_LLM_MINJA
  nlohmann::ordered_json variables = program->constants;
  variables["messages"] = nlohmann::ordered_json::parse(messages.dump());
  auto context = minja::Context::make(minja::Value(variables));
  context->set("strftime_now", minja::Value::callable(now));
  try {
    return program->root->render(context);
  } catch (const std::exception &why) {
    fail("the model's chat template refuses the messages: " + firstLine(why));
  }
#else
  return "";
#endif
}

} // namespace greta::llm
