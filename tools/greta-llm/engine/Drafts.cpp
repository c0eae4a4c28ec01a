// Drafts.cpp: see Drafts.h.
#include "engine/Drafts.h"

#include <algorithm>

namespace greta::llm {

// The place that has most of the last tokens before it, of equals the last one;
// more than `longest` say no more.
constexpr size_t shortest = 2, longest = 8;

std::vector<int32_t> draftOf(const std::vector<int32_t> &tokens, size_t most) {
  size_t best = shortest - 1, from = 0;
  for (size_t end = tokens.size(); end-- > shortest && best < longest;) {
    size_t common = 0, limit = std::min(longest, end);
    while (common < limit &&
           tokens[end - 1 - common] == tokens[tokens.size() - 1 - common])
      ++common;
    if (common > best) {
      best = common;
      from = end;
    }
  }
  if (!from)
    return {};
  auto begin = tokens.begin() + static_cast<ptrdiff_t>(from);
  size_t count = std::min(most, tokens.size() - from);
  return {begin, begin + static_cast<ptrdiff_t>(count)};
}

} // namespace greta::llm
