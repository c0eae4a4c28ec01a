// Thoughts.cpp: see Thoughts.h.
#include "server/Thoughts.h"

#include <algorithm>
#include <utility>

namespace greta::llm {

namespace {
const std::string thoughtBegin = "<think>", thoughtEnd = "</think>";
constexpr const char *blanks = " \n";

/// Drops blanks at the front; true if something is left.
bool skipBlanks(std::string &text) {
  text.erase(0, std::min(text.find_first_not_of(blanks), text.size()));
  return !text.empty();
}
} // namespace

size_t openBytes(const std::string &text, const std::string &mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size; --size)
    if (text.compare(text.size() - size, size, mark, 0, size) == 0)
      return size;
  return 0;
}

Thought thoughtBehind(const std::string &prompt,
                      const std::string &chatTemplate) {
  if (chatTemplate.find(thoughtEnd) == chatTemplate.npos)
    return Thought::None;
  size_t end = prompt.find_last_not_of(blanks) + 1, size = thoughtBegin.size();
  return end >= size && prompt.compare(end - size, size, thoughtBegin) == 0
             ? Thought::Inside
             : Thought::Front;
}

std::vector<std::string> thoughtMarks(Thought at) {
  return at == Thought::None ? std::vector<std::string>()
                             : std::vector{thoughtBegin, thoughtEnd};
}

std::string ThoughtReader::take(const std::string &more, bool isLast,
                                std::string &thought) {
  if (at == Thought::None)
    return more;
  held += more;
  if (at == Thought::Front) {
    size_t front = std::min(held.find_first_not_of(blanks), held.size()),
           size = std::min(held.size() - front, thoughtBegin.size());
    bool isOpen = held.compare(front, size, thoughtBegin, 0, size) == 0;
    if (isOpen && size < thoughtBegin.size() && !isLast)
      return "";
    bool isThought = isOpen && size == thoughtBegin.size();
    if (isThought)
      held.erase(0, front + size);
    at = isThought ? Thought::Inside : Thought::None;
  }
  if (at == Thought::Inside) {
    size_t end = held.find(thoughtEnd), size = end;
    bool isEnd = end != held.npos;
    if (!isEnd)
      size = held.size() - (isLast ? 0 : openBytes(held, thoughtEnd));
    // Blanks around a thought are none of it.
    std::string text = held.substr(0, size);
    text.erase(text.find_last_not_of(blanks) + 1);
    held.erase(0, isEnd ? end + thoughtEnd.size() : text.size());
    hasBegun = hasBegun || skipBlanks(text);
    thought += text;
    if (!isEnd)
      return "";
    at = Thought::Behind;
  }
  if (at == Thought::Behind && !skipBlanks(held))
    return "";
  at = Thought::None;
  return std::exchange(held, "");
}

} // namespace greta::llm
