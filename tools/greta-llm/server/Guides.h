// Guides.h: what answers with a grammar may say next, computed beside the
// scheduler, so that a grammar that takes long keeps nobody else waiting. In:
// guides whose text went on. Out: their masks.
//
// A guide is due when as much work is done as was when it asked, and as much as
// its last mask took, or before that what first masks take on average: easy
// ones pass hard ones, new ones do not pass all others, and none waits without
// end.
#ifndef GRETA_LLM_GUIDES_H
#define GRETA_LLM_GUIDES_H

#include "grammar/Matcher.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace greta::llm {

// An answer's place in its grammar. It is the scheduler's while it is ready,
// and else a helper's.
class Guide {
public:
  // `ends`: tokens that may come where the text may end.
  Guide(std::shared_ptr<const Grammar> grammar,
        const SortedVocabulary &vocabulary, std::vector<int32_t> ends)
      : matcher(std::move(grammar), vocabulary), ends(std::move(ends)) {}

  bool isReady() const { return ready && !isBehind; }
  // The text went on since the last mask was asked for.
  bool isUnasked() const { return isBehind; }
  // Says why there is no mask; "" if there is one. The guide has to be ready.
  const std::string &problem() const { return why; }
  const std::vector<uint32_t> &mask() const { return *words; }
  // The text may go on with these tokens, which stand for these bytes. For the
  // next mask, which is asked for then.
  void guess(std::vector<int32_t> tokens, std::vector<std::string> texts);
  // The guesses that the masks before them allow, and the masks behind each.
  const std::vector<int32_t> &guesses() const { return guessed; }
  const std::vector<std::vector<uint32_t>> &masksBehind() const {
    return behind;
  }
  // Goes on behind the bytes of a token that the mask allows; then ask for the
  // next mask. Else there is a problem.
  bool take(const std::string &bytes);
  bool isOver() const { return matcher.isOver(); }

  bool isLate = false; // the scheduler's: nobody waits for it any more

private:
  friend class Guides;
  void compute();
  void checkGuesses();

  Matcher matcher;
  const std::vector<int32_t> ends;
  const std::vector<uint32_t> *words = nullptr;
  std::vector<int32_t> guessed;
  std::vector<std::string> guessedTexts;
  std::vector<std::vector<uint32_t>> behind;
  bool isBehind = false;
  std::string why;
  int64_t due = 0;
  bool isNew = true; // it has had no mask
  std::atomic<bool> ready{false};
};

class Guides {
public:
  // Without threads somebody has to call computeNext.
  explicit Guides(unsigned threads);
  ~Guides();

  void ask(std::shared_ptr<Guide> guide);
  // Waits until it holds, which masks may bring about, or so many seconds.
  void wait(double seconds, const std::function<bool()> &holds);
  // Makes the mask that is due first; false where nobody asks.
  bool computeNext();

private:
  void run();

  std::mutex mutex;
  std::condition_variable asked, done;
  std::vector<std::shared_ptr<Guide>> open; // in the order of asking
  int64_t work = 0;                         // of all masks so far
  int64_t firstWork = 0; // of a guide's first mask, on average
  bool isEnding = false;
  std::vector<std::thread> threads;
};

} // namespace greta::llm
#endif
