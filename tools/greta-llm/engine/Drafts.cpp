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

std::vector<std::vector<int32_t>>
OwnPast::guess(const std::vector<Asked> &texts) {
  std::vector<std::vector<int32_t>> guesses;
  for (const Asked &text : texts)
    guesses.push_back(draftOf(*text.tokens, text.most));
  return guesses;
}

std::vector<size_t> sharesOf(const std::vector<size_t> &wanted, size_t room) {
  std::vector<size_t> shares(wanted.size());
  for (bool isMore = true; isMore;) {
    isMore = false;
    for (size_t i = 0; i < wanted.size() && room; ++i)
      if (shares[i] < wanted[i]) {
        ++shares[i];
        --room;
        isMore = true;
      }
  }
  return shares;
}

} // namespace greta::llm
