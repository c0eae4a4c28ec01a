// PartTimes.cpp: see PartTimes.h.
#include "server/PartTimes.h"

#include <algorithm>

namespace greta::llm {

// Seconds of a token before anything is known.
static constexpr double firstGuess = 1e-4;
// A pass over twice the tokens is guessed to take the first times as long. A
// pass that takes at most the second times as long as the shortest one may
// stand in for it.
static constexpr double ofTwice = 1.5, hardlyMore = 1.25;
// Passes after which the time of a length is not known any more.
static constexpr size_t rememberedFor = 256;

// The least of the lengths that is not less; the last one for all beyond.
size_t PartTimes::lengthOf(size_t tokens) {
  size_t length = 0;
  while (length + 1 < lengths && (shortest << length) < tokens)
    ++length;
  return length;
}

void PartTimes::add(size_t tokens, double seconds) {
  size_t length = lengthOf(tokens);
  double &time = times[length];
  // One slow pass would keep a length from being taken for ever.
  newest[length] = ++passes;
  for (size_t i = 0; i < lengths; ++i)
    if (passes - newest[i] > rememberedFor)
      times[i] = 0;
  // The first passes of a kernel also load it.
  time =
      time > 0 ? time + (seconds - time) / (seconds < time ? 2 : 4) : seconds;
}

double PartTimes::guess(size_t length) const {
  if (times[length] > 0)
    return times[length];
  double most = 0; // of a longer one
  for (size_t i = length + 1; i < lengths && !(most > 0); ++i)
    most = times[i];
  double time = static_cast<double>(shortest << length) * firstGuess;
  double factor = ofTwice;
  for (size_t i = length; i-- > 0; factor *= ofTwice)
    if (times[i] > 0) {
      time = times[i] * factor;
      break;
    }
  return most > 0 ? std::min(time, most) : time;
}

double PartTimes::of(size_t tokens) const { return guess(lengthOf(tokens)); }

size_t PartTimes::most(double seconds) const {
  size_t length = lengths;
  while (length > 0 && guess(length - 1) > seconds)
    --length;
  if (length > 0)
    return shortest << (length - 1);
  // Longer ones are tried as long as nothing is known against them.
  while (length + 1 < lengths && !(times[length + 1] > hardlyMore * guess(0)) &&
         times[length] > 0)
    ++length;
  return shortest << length;
}

double PartTimes::perToken() const {
  double least = 0;
  for (size_t i = 0; i < lengths; ++i)
    if (double each = times[i] / static_cast<double>(shortest << i);
        each > 0 && !(least > 0 && least < each))
      least = each;
  return least > 0 ? least : firstGuess;
}

} // namespace greta::llm
