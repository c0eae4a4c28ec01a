// Drafts.h: what texts probably go on with. In: the tokens so far. Out: the
// next ones, as a guess that the model then checks (Engine::check).
#ifndef GRETA_LLM_DRAFTS_H
#define GRETA_LLM_DRAFTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace greta::llm {

// Finds what followed the last tokens where they were before: at most `most`
// tokens, none where the last two have not been there before.
std::vector<int32_t> draftOf(const std::vector<int32_t> &tokens, size_t most);

// Divides `room` among those that want so many each: one after another gets one
// more, as long as there is room.
std::vector<size_t> sharesOf(const std::vector<size_t> &wanted, size_t room);

// How many tokens of each text are evaluated now, where each misses so many:
// all of a few, and of those that miss many, those with the fewest first, as
// many as fit into `most` tokens together.
std::vector<size_t> partsOf(const std::vector<size_t> &missing, size_t most);

// It guesses for several texts at once.
class Drafts {
public:
  // A text, which has its own slot, and the most tokens that are wanted.
  struct Asked {
    int64_t slot;
    const std::vector<int32_t> *tokens;
    size_t most;
  };
  virtual ~Drafts() = default;
  // Returns guesses for each text, in their order. If others wait, a call
  // evaluates about `most` tokens of new texts; a text gets guesses when all of
  // its tokens are evaluated.
  virtual std::vector<std::vector<int32_t>>
  guess(const std::vector<Asked> &texts, size_t most) = 0;
  // Says whether guesses that nobody checks have cost something.
  virtual bool costs() const = 0;
  // A slot's text has ended.
  virtual void end(int64_t slot) = 0;
  // After an error: what is known of texts may be wrong.
  virtual void forget() = 0;
};

// It guesses by draftOf().
class OwnPast : public Drafts {
public:
  std::vector<std::vector<int32_t>> guess(const std::vector<Asked> &texts,
                                          size_t most) override;
  bool costs() const override { return false; }
  void end(int64_t) override {}
  void forget() override {}
};

} // namespace greta::llm
#endif
