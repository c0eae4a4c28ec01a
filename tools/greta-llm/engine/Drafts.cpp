// Drafts.cpp: see Drafts.h.
#include "engine/Drafts.h"

#include <algorithm>
#include <numeric>

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
OwnPast::guess(const std::vector<Asked> &texts, size_t) {
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

// Texts that have guesses miss no more.
constexpr size_t few = 32;

std::vector<size_t> partsOf(const std::vector<size_t> &missing, size_t most) {
  std::vector<size_t> parts(missing.size()), order(missing.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return missing[a] != missing[b] ? missing[a] < missing[b] : a < b;
  });
  for (size_t i : order) {
    if (missing[i] <= few) {
      parts[i] = missing[i];
      continue;
    }
    parts[i] = std::min(missing[i], most);
    most -= parts[i];
  }
  return parts;
}

} // namespace greta::llm
