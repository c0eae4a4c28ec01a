// Chat.cpp: see Chat.h.
#include "Chat.h"

namespace greta::llm {

static const ChatForm forms[] = {
    {"llama3", "<|start_header_id|>", "<|start_header_id|>",
     "<|end_header_id|>\n\n", "<|eot_id|>", false},
    {"chatml", "<|im_start|>", "<|im_start|>", "\n", "<|im_end|>", false},
    // Roles are told by brackets around what the user says.
    {"llama2", "<<SYS>>", "[INST] ", " [/INST]", "</s>", true},
    {"mistral", "[INST]", "[INST] ", " [/INST]", "</s>", true},
};

const ChatForm *chatFormOf(const Model &model) {
  std::string text;
  for (const nlohmann::json *about : {&model.tokenizerConfig, &model.tokenizer})
    for (const char *key : {"chat_template", "tokenizer.chat_template"})
      if (about->is_object() && about->contains(key) &&
          (*about)[key].is_string())
        text = (*about)[key].get<std::string>();
  for (const ChatForm &form : forms)
    if (text.find(form.marker) != std::string::npos)
      return &form;
  return nullptr;
}

std::string promptOf(const ChatForm &form, std::vector<Message> messages) {
  std::string text;
  if (!form.joinsSystem) {
    for (const Message &message : messages)
      text += form.begin + message.role + form.middle + message.content +
              form.end + (form.middle[0] == '\n' ? "\n" : "");
    return text + form.begin + "assistant" + form.middle;
  }
  if (messages.size() > 1 && messages[0].role == "system") {
    bool isLlama2 = std::string(form.name) == "llama2";
    messages[1].content =
        (isLlama2 ? "<<SYS>>\n" + messages[0].content + "\n<</SYS>>\n\n"
                  : messages[0].content + "\n\n") +
        messages[1].content;
    messages.erase(messages.begin());
  }
  for (const Message &message : messages)
    text += message.role == "assistant"
                ? " " + message.content + form.end
                : form.begin + message.content + form.middle;
  return text;
}

} // namespace greta::llm
