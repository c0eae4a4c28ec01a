// Answer.cpp: what goes to whoever asked (Scheduler.h): pieces of text, and the
// chances of their tokens.
#include "server/Scheduler.h"
#include "server/Thoughts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace greta::llm {

/// The chance of a token, and the likeliest ones.
TokenChance chanceOf(const float *logits, int64_t count, int32_t token,
                     int64_t likeliest) {
  float top = *std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(std::exp(logits[i] - top));
  auto chance = [&](int32_t one) {
    return static_cast<double>(logits[one] - top) - std::log(sum);
  };
  TokenChance result{token, chance(token), {}};
  // The least of them is on top.
  auto isMore = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::vector<int32_t> best;
  for (int32_t i = 0; i < count && likeliest > 0; ++i) {
    // A mask has left this token out.
    if (!(logits[i] > -1e38f))
      continue;
    if (static_cast<int64_t>(best.size()) == likeliest) {
      if (!isMore(i, best.front()))
        continue;
      std::pop_heap(best.begin(), best.end(), isMore);
      best.pop_back();
    }
    best.push_back(i);
    std::push_heap(best.begin(), best.end(), isMore);
  }
  std::sort_heap(best.begin(), best.end(), isMore);
  for (int32_t one : best)
    result.likeliest.push_back({one, chance(one)});
  return result;
}

std::vector<Answer::Piece> Answer::take() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(pieces, {});
}

void Answer::push(Piece piece) {
  std::lock_guard<std::mutex> lock(mutex);
  pieces.push_back(std::move(piece));
}

size_t openBytes(const std::string &text,
                 const std::vector<std::string> &stops) {
  size_t open = 0;
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    unsigned char byte = static_cast<unsigned char>(text[text.size() - back]);
    size_t size = byte < 0xc0 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (size) { // a character begins here
      open = size > back ? back : 0;
      break;
    }
  }
  for (const std::string &stop : stops)
    open = std::max(open, openBytes(text, stop));
  return open;
}

} // namespace greta::llm
