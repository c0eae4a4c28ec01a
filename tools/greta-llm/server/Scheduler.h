// Scheduler.h: many requests on one engine. In: requests, from any thread. Out:
// their texts, piece by piece, each as if it were alone.
//
// One thread owns the engine. A step evaluates either parts of prompts or a
// token of every sequence that generates, in turn. Steps are queued one ahead
// of the tokens that are read, so the device does not wait: a sequence that
// ends by what it says has then made a token too many, which is dropped. A
// sequence with a grammar takes part in a step when the tokens before have said
// what may follow, which helpers compute (Guides.h). Steps wait for that a
// moment, so that easy grammars lose no time, and then go on without it.
//
// While others generate, prompts have a budget of tokens for each step, by what
// they took so far, so that the gaps between tokens stay short. The prompt with
// the fewest tokens left comes first; waiting counts for it.
//
// A request is admitted, in the order of arrival, when the cache has pages for
// its prompt and some tokens, and takes more as it grows. When the cache is out
// of pages, the request that arrived last gives its own up, and goes on as soon
// as they fit again, with what it has said as a part of its prompt. The request
// that arrived first is never stopped, so every request finishes.
//
// Pages outlive their sequence until others need them, so a prompt with the
// same beginning is evaluated from there on (Pages.h). A deterministic engine
// keeps those of prompts alone: steps round otherwise than prompts.
//
// With guesses (Guesses.cpp) a step has several tokens of a sequence, of which
// the later ones are what its text probably goes on with. Guesses that the
// model confirms are taken, so a step brings up to as many tokens. Such a step
// is queued when the tokens before it are read. A guess under a grammar is
// checked where the masks before and behind it are there: helpers make these
// together with the mask of the next token.
//
// Kernels for few sequences are faster than those for many, and round their
// sums in another order: an answer depends on its neighbours by that. A
// deterministic engine has the same kernels for any number; there a request
// that gave up its pages begins anew and says the same once more, of which its
// client hears only what is new.
#ifndef GRETA_LLM_SCHEDULER_H
#define GRETA_LLM_SCHEDULER_H

#include "Options.h"
#include "engine/Drafts.h"
#include "engine/Engine.h"
#include "server/Guides.h"
#include "server/Histogram.h"
#include "server/PartTimes.h"
#include "tokenizer/Tokenizer.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace greta::llm {

struct Request {
  std::vector<int32_t> tokens;
  int64_t most = 16; // tokens to generate
  Sampling sampling;
  std::vector<std::string> stops; // texts that end it, and are not part of it
  std::vector<int32_t> ends;      // tokens that do, beside the tokenizer's
  std::shared_ptr<const Grammar> grammar; // of the answer; null: any text
  // How many of the likeliest tokens are told with each one; -1: not even it.
  int64_t likeliest = -1;
  // Whether the prompt's tokens are told in front of the answer's, too.
  bool tellsPrompt = false;
  // Special tokens that stand for these texts in the answer.
  std::vector<std::pair<int32_t, std::string>> shown;
  // Called when there is a piece, on the scheduler's thread.
  enum class News { Piece, Last, Error };
  std::function<void(News)> wake;
};

// A token of an answer, by the logarithm of its probability before temperature
// and limits, and the likeliest ones at its place. A prompt's first token has
// NaN, as nothing is in front of it.
struct TokenChance {
  int32_t token;
  double chance;
  std::vector<std::pair<int32_t, double>> likeliest;
};

TokenChance chanceOf(const float *logits, int64_t count, int32_t token,
                     int64_t likeliest);

// How many bytes at the end may be the beginning of a character or of one of
// these.
size_t openBytes(const std::string &text,
                 const std::vector<std::string> &stops);

// A request's text on its way to whoever asked.
class Answer {
public:
  struct Piece {
    std::string text;
    std::string reason; // of the last one: stop, length, error
    bool isLast = false;
    std::vector<TokenChance> tokens; // where they are wanted
    std::string problem;             // of this request alone, for an error
    std::string stop;                // the request's that ended it
  };
  // Takes the pieces that are ready; the last piece comes once.
  std::vector<Piece> take();
  // Nobody reads any more.
  void cancel() { isCancelled = true; }

  int64_t promptTokens = 0;
  std::atomic<int64_t> cached{
      0}; // tokens of the prompt that were not evaluated
  std::atomic<int64_t> generated{0};

private:
  friend class Scheduler;
  void push(Piece piece);

  std::mutex mutex;
  std::vector<Piece> pieces;
  std::atomic<bool> isCancelled{false};
};

struct Metrics {
  std::atomic<int64_t> finished{0}, cancelled{0}, refused{0}, failed{0},
      preempted{0};
  std::atomic<int64_t> promptTokens{0}, promptPasses{0}, cachedTokens{0},
      generatedTokens{0}, steps{0};
  std::atomic<int64_t> guessed{0}, rightGuesses{0};
  std::atomic<int64_t> waiting{0}, running{0};
  std::atomic<int64_t> stepMicroseconds{0}, firstTokenMicroseconds{0},
      firstTokens{0};
  // Seconds to the first token, between tokens, and of whole requests.
  Histogram firstToken, gap, request;
};

class Scheduler {
public:
  // `drafts` guesses; null: nothing does.
  Scheduler(Engine &engine, const Tokenizer &tokenizer, const Options &options,
            Drafts *drafts);
  // Finishes what was taken, then ends.
  ~Scheduler();

  // An answer for each, or none where the queue is full for all of them
  // together, or problem() says why nothing is taken.
  std::vector<std::shared_ptr<Answer>> submit(std::vector<Request> requests);
  // Takes nothing from now on. Returns when all that was taken has its answer;
  // what has none after so many seconds fails.
  void drain(double seconds);
  // Why nothing is taken any more: the server ends, or the device is lost. ""
  // as long as all is well.
  std::string problem() const;
  bool isLost() const { return deviceIsLost; }
  // A request that no cache can hold is refused before it waits.
  int64_t capacity() const { return engine.capacity(); }
  size_t mostWaiting() const { return queueLimit; }
  const Metrics &metrics() const { return counts; }
  int64_t freeTokens() const { return free; }

private:
  struct Job {
    Job(Request given, std::shared_ptr<Answer> answer)
        : request(std::move(given)), answer(std::move(answer)) {}
    int64_t promptSize() const {
      return static_cast<int64_t>(request.tokens.size());
    }
    bool isInPrompt() const { return evaluated < request.tokens.size(); }
    // Tokens of the prompt to evaluate now: the last one with what follows it.
    size_t promptLeft(bool isReady) const {
      size_t left = request.tokens.size() - evaluated;
      return left && !isReady ? left - 1 : left;
    }
    // Tokens to make once more.
    int64_t repeated() const { return said - before; }
    // The chances of the prompt's tokens are still to be told.
    bool tellsPrompt() const { return request.tellsPrompt && isInPrompt(); }
    bool isGuideReady() const { return !guide || guide->isReady(); }
    // Its next token depends on one that is on its way.
    bool isBehind() const { return guide && queued > made; }

    Request request;
    std::shared_ptr<Answer> answer; // null: finished
    Sequence sequence;
    int64_t place = -1;
    size_t evaluated = 0; // tokens of the prompt
    bool isBegun = false; // some of these by itself
    int64_t queued = 0;   // tokens that the device has made, or may yet
    int64_t made = 0;     // of these, how many the host has read
    int64_t before = 0;   // tokens that the prompt has of its answer
    int64_t said = 0;     // tokens of the answer whose text is pushed or held
    std::vector<int32_t> chosen; // what the host has read
    std::string held;            // text that is not yet pushed
    std::vector<TokenChance> heldTokens;
    std::shared_ptr<Guide> guide;         // of the grammar, behind `chosen`
    double arrived = seconds(), last = 0; // last: when a token was read
  };
  // Tokens on their way, and whose they are.
  struct Step {
    Engine::Chosen chosen;
    std::vector<std::shared_ptr<Job>> jobs;
    std::vector<int64_t> places; // of these, the first with guesses
    // A step that checks guesses has each job's.
    std::vector<std::vector<int32_t>> guesses;
    std::vector<size_t> behind; // tokens of passes over prompts before it
    double begin = 0;           // when it, or these, were queued
    bool isFirst = true; // a prompt's first token, for which no step is run

    void add(const std::shared_ptr<Job> &job) {
      jobs.push_back(job);
      places.push_back(job->place);
    }
  };

  // Parts of prompts that are evaluated together.
  struct Pass {
    std::vector<std::shared_ptr<Job>> jobs;
    std::vector<size_t> counts; // of tokens
    size_t tokens = 0;
    size_t rows = 0; // of the step that they are with
  };

  void run();
  bool admit();
  bool reserve(Job &job);
  void share(Job &job);
  void release(Job &job);
  void grow();
  void closeRanks();
  void preempt(Job &job);
  std::vector<std::shared_ptr<Job>> generating() const;
  std::shared_ptr<Job>
  nextPrompt(const std::vector<std::shared_ptr<Job>> &without) const;
  bool queueNext();
  bool queueCheck();
  size_t roomForGuesses(const Job &job) const;
  Checked checkedOf(const Job &job) const;
  std::vector<std::vector<int32_t>>
  guessesFor(const std::vector<std::shared_ptr<Job>> &jobs,
             const std::vector<Checked> &texts);
  size_t rowsForGuesses(size_t jobs) const;
  void askGuide(const Job &job, std::vector<int32_t> guesses);
  void addToCheck(const std::shared_ptr<Job> &job, Checked text,
                  std::vector<int32_t> guesses, Step &step,
                  std::vector<Checked> &all);
  size_t tokensOfPart(bool othersWait, double seconds) const;
  bool queuePrompts(bool othersWait);
  bool takesParts(const std::vector<std::shared_ptr<Job>> &jobs) const;
  Pass nextPass(size_t most, int64_t rows = 0);
  size_t partOf(Job &job, size_t most);
  bool sharesSoon(const Job &job, const Pass &pass) const;
  bool pays(const Pass &pass, size_t more) const;
  static std::vector<Engine::Part> partsOf(const Pass &pass);
  void noteTime(const Pass &pass);
  void tellPrompt(const Pass &pass);
  void endPass(const Pass &pass);
  void queueFirst(const std::shared_ptr<Job> &job, size_t part);
  void awaitMasks();
  bool setMask(Job &job);
  void setBegin(Step &step);
  void takeStep();
  void takeAll(const std::shared_ptr<Job> &job, Step &step, size_t number);
  void measure(const Step &step);
  std::string textOf(const Job &job, int32_t token) const;
  void fail(Job &job, const std::string &problem);
  void makeGuide(Job &job);
  void take(Job &job, int32_t token, const float *logits);
  std::string stopOf(const Request &request, int32_t token) const;
  void push(Job &job, size_t ready);
  void finish(Job &job, const char *reason, std::string stop = "");
  void end(Job &job, Answer::Piece piece);
  void count();
  void lose(const std::string &problem);
  void failAll(const std::string &why);

  Engine &engine;
  const Tokenizer &tokenizer;
  const size_t sequences, queueLimit;
  const bool isDeterministic, sharesPages;
  Drafts *const drafts;
  const int64_t mostGuesses; // of a sequence in a step
  std::deque<std::shared_ptr<Job>> waiting;
  // The first of them did not fit with so many free tokens.
  const Job *tooLarge = nullptr;
  int64_t tooFew = 0;
  std::vector<std::shared_ptr<Job>> running;
  std::deque<Step> ahead;
  std::vector<int64_t> freePlaces;
  bool promptsFirst = true;
  // How long parts of prompts may keep those waiting who generate, and take;
  // what a step takes, and when one was last read.
  const double promptSeconds;
  PartTimes partTimes;
  double stepSeconds = 0, lastStep = 0;
  // Tokens of each pass over prompts behind the last step that is queued, and
  // since when.
  std::vector<size_t> unread;
  double unreadBegin = 0;
  // For grammars, made when the first one comes.
  std::once_flag vocabularyOnce;
  std::unique_ptr<SortedVocabulary> vocabulary;
  Guides guides;
  std::vector<int32_t> ends; // the tokenizer's
  mutable std::mutex mutex;  // of `waiting` and what follows
  std::condition_variable changed, idle;
  bool isEnding = false, isIdle = false, isCut = false;
  std::string why; // nothing is taken
  std::atomic<bool> deviceIsLost{false};
  Metrics counts;
  std::atomic<int64_t> free;
  std::thread thread;
};

} // namespace greta::llm
#endif
