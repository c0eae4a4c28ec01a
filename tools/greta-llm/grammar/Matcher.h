// Matcher.h: which tokens may come next under a grammar. In: a grammar, a
// vocabulary, and the tokens so far. Out: a mask of tokens (Sampling.h).
//
// A state is the set of all ways in which the grammar may go on: a node each,
// and the calls that it returns to. Calls are frames that know the one below,
// and equal ones exist once, as states do; a state learns where each byte leads
// when it is first asked. The mask is the walk of all tokens in the order of
// their bytes, where a common beginning is walked once, and where it leads
// nowhere nothing behind it is walked.
//
// Time and memory are bounded, time by a credit of nodes to look at, which
// grows with each text. A request whose grammar needs more ends with an error.
#ifndef GRETA_LLM_MATCHER_H
#define GRETA_LLM_MATCHER_H

#include "grammar/Grammar.h"
#include "tokenizer/Tokenizer.h"

#include <memory>
#include <stdexcept>
#include <unordered_map>

namespace greta::llm {

// Time or memory was at its bound.
struct GrammarTooHard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The tokens that stand for bytes, in the order of these.
class SortedVocabulary {
public:
  // `count`: tokens of the model, of which the tokenizer may have fewer.
  SortedVocabulary(const Tokenizer &tokenizer, int64_t count);

private:
  friend class Matcher;
  struct Entry {
    int32_t token;
    uint32_t begin, size; // in `bytes`
    uint32_t common;      // bytes that the entry before has, too
  };
  std::string bytes;
  std::vector<Entry> entries;
  int64_t count;
};

class Matcher {
public:
  Matcher(std::shared_ptr<const Grammar> grammar,
          const SortedVocabulary &vocabulary);

  // Without a vocabulary, and without masks. `credit`: nodes to look at.
  explicit Matcher(std::shared_ptr<const Grammar> grammar,
                   int64_t credit = wholeCredit);
  int64_t creditLeft() const { return credit; }

  // As an automaton: the state at hand, the one behind a byte (-1: there is
  // none), and whether a text may end there. Numbers stay until the next mask.
  int32_t here() const { return state; }
  int32_t behind(int32_t from, unsigned char byte) { return step(from, byte); }
  bool mayEndAt(int32_t at) const {
    return states[static_cast<size_t>(at)]->mayEnd;
  }

  // The tokens that may come next, as words of 32 bits. `ends` are there where
  // the text may end. They are there until the next mask.
  const std::vector<uint32_t> &mask(const std::vector<int32_t> &ends);
  // The masks behind the first of these texts, the first two, and so on: as
  // many as fit the grammar and are easy. The text's place, and the work that
  // it may still ask for, stay as they are.
  std::vector<std::vector<uint32_t>>
  masksBehind(const std::vector<std::string> &texts,
              const std::vector<int32_t> &ends);
  // Nodes that the last mask looked at, with those of the masks behind it, and
  // for walks over the vocabulary as many as take that long.
  int64_t lastWork() const { return worked; }
  // Goes on behind these bytes; false where they do not fit. A token that the
  // mask allows takes no work.
  bool take(const std::string &bytes);
  bool mayEnd() const { return mayEndAt(state); }
  // Nothing else can follow.
  bool isOver() const {
    return states[static_cast<size_t>(state)]->ways.empty();
  }

private:
  static constexpr int64_t wholeCredit = 1'000'000; // that a mask may take
  static constexpr int32_t unknown = -2, nowhere = -1;
  // A node of kind Bytes, and the frame that it returns to; -1: none.
  using Way = std::pair<int32_t, int32_t>;
  struct Frame {
    int32_t node, below, depth;
  };
  struct State {
    std::vector<Way> ways;
    bool mayEnd = false;
    std::vector<int32_t> next; // by byte
  };
  struct HashOfWays {
    size_t operator()(const std::vector<Way> &ways) const;
  };

  int32_t frame(int32_t node, int32_t below);
  int32_t stateOf(std::vector<Way> open);
  int32_t step(int32_t from, unsigned char byte);
  bool follow(const std::string &bytes);
  const std::vector<uint32_t> &maskHere(const std::vector<int32_t> &ends);
  void forgetOthers();
  Way moved(Way way, Matcher &old);

  std::shared_ptr<const Grammar> grammar;
  const SortedVocabulary *vocabulary = nullptr;
  std::vector<Frame> frames;
  std::unordered_map<uint64_t, int32_t> frameNumbers; // by node and frame below
  std::vector<std::unique_ptr<State>> states;
  std::unordered_map<std::vector<Way>, int32_t, HashOfWays> stateNumbers[2];
  std::unordered_map<int32_t, std::vector<uint32_t>> masks; // by state
  int32_t state = 0;
  int64_t credit, worked = 0;
};

} // namespace greta::llm
#endif
