// Chat.h: conversations as prompts. A model's chat template is a program in
// Jinja; minja runs it, in a process with limits. In: the model, and a
// conversation's messages. Out: the text whose continuation is the assistant's
// answer.
#ifndef GRETA_LLM_CHAT_H
#define GRETA_LLM_CHAT_H

#include "model/Model.h"
#include "server/Tools.h"

#include <cctype>
#include <string>

namespace greta::llm {

class ChatTemplate {
public:
  explicit ChatTemplate(const Model &model);

  // Why there is no prompt for any conversation; "" if there may be.
  const std::string &problem() const { return problem_; }
  // With the special tokens that the model wants. Throws what the template says
  // about messages that it does not take, and where it takes more than two
  // seconds of a processor or 1 GiB.
  // `tools` as OpenAI has them; none: an empty list. `values`: an object of
  // what else the template is to know, by name.
  std::string prompt(const nlohmann::ordered_json &messages,
                     const nlohmann::ordered_json &tools,
                     const nlohmann::ordered_json &values) const;
  std::string prompt(const nlohmann::json &messages) const;
  // How the model was taught to call tools.
  ToolStyle toolStyle() const { return toolStyleOf(source); }
  // Whether a name occurs in the template, so that a value may change
  // something.
  bool reads(const std::string &name) const;
  // Whether answers may have thoughts.
  bool thinks() const {
    return toolStyle() == ToolStyle::Harmony ||
           thoughtBehind("") != Thought::None;
  }
  // The part that the answer to a prompt begins with.
  Thought thoughtBehind(const std::string &prompt) const {
    return llm::thoughtBehind(prompt, source);
  }
  // The token that ends an answer, by its text; "" where the model does not
  // say.
  const std::string &end() const { return end_; }

private:
  std::string source, begin, problem_, end_;
};

inline bool ChatTemplate::reads(const std::string &name) const {
  auto isPart = [&](size_t at) {
    unsigned char c = at < source.size() ? source[at] : ' ';
    return isalnum(c) || c == '_';
  };
  for (size_t at = source.find(name); !name.empty() && at != source.npos;
       at = source.find(name, at + 1))
    if (!isPart(at - 1) && !isPart(at + name.size()))
      return true;
  return false;
}

// chat.html: a page to chat with.
extern const char chatPage[];

} // namespace greta::llm
#endif
