// Chat.h: conversations as prompts. A model's template is a program in Jinja;
// here it is not run but recognised by its markers, as one of the forms that
// the architectures have.
#ifndef GRETA_LLM_CHAT_H
#define GRETA_LLM_CHAT_H

#include "Model.h"

namespace greta::llm {

struct ChatForm {
  const char *name;
  const char *marker;         // in the template
  const char *begin, *middle; // around a message's role
  const char *end;            // behind a message, and in an answer its end
  bool joinsSystem;           // the system's message is part of the first
};

// Null where the model has no template of a known form.
const ChatForm *chatFormOf(const Model &model);

// chat.html: a page to chat with.
extern const char chatPage[];

struct Message {
  std::string role, content;
};
// The text whose continuation is the assistant's answer.
std::string promptOf(const ChatForm &form, std::vector<Message> messages);

} // namespace greta::llm
#endif
