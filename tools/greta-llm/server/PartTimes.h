// PartTimes.h: how long passes over parts of prompts take. In: what passes
// took, seconds by tokens. Out: how many tokens a pass may have that is to take
// so long. A pass has a time of its own, whatever its length, so the times are
// those of lengths: powers of two, each the newest ones' mean. The time of a
// length that was not taken for long is forgotten.
#ifndef GRETA_LLM_PARTTIMES_H
#define GRETA_LLM_PARTTIMES_H

#include <array>
#include <cstddef>

namespace greta::llm {

class PartTimes {
public:
  // A pass over so many tokens took so long.
  void add(size_t tokens, double seconds);
  // Seconds of a pass over so many tokens, by what is known.
  double of(size_t tokens) const;
  // The tokens of the longest pass that takes no longer. If even the shortest
  // one does, a longer one that takes hardly more. A length that nothing is
  // known of is tried where the next shorter one leaves time for half of it
  // again.
  size_t most(double seconds) const;
  // Seconds of a token in the passes that are best at it.
  double perToken() const;

private:
  static constexpr size_t shortest = 32, lengths = 10;
  static size_t lengthOf(size_t tokens);
  double guess(size_t length) const;

  std::array<double, lengths> times{}; // 0: nothing is known
  std::array<size_t, lengths> newest{};
  size_t passes = 0;
};

} // namespace greta::llm
#endif
