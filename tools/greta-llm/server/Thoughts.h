// Thoughts.h: what a model thinks before it answers, <think>..</think>. In: the
// text of an answer as it comes. Out: the thought, and the text behind it.
#ifndef GRETA_LLM_THOUGHTS_H
#define GRETA_LLM_THOUGHTS_H

#include <string>
#include <vector>

namespace greta::llm {

// The part of an answer that comes next.
enum class Thought {
  None,   // a thought may not come any more
  Front,  // it may begin with one
  Inside, // more of a thought, which the prompt may have begun
  Behind  // line breaks, which neither the thought nor the answer has
};

// The part that an answer to a prompt begins with. Models think if their chat
// template has the mark at a thought's end.
Thought thoughtBehind(const std::string &prompt,
                      const std::string &chatTemplate);

// The marks around a thought, which may be special tokens.
std::vector<std::string> thoughtMarks(Thought at);

// How many bytes at the end of a text may be the beginning of a mark.
size_t openBytes(const std::string &text, const std::string &mark);

class ThoughtReader {
public:
  explicit ThoughtReader(Thought at) : at(at) {}
  // The text that is no thought; the thought goes to `thought`.
  std::string take(const std::string &more, bool isLast, std::string &thought);

private:
  Thought at;
  bool hasBegun = false; // something was thought
  std::string held;
};

} // namespace greta::llm
#endif
