// Scheduler.cpp: see Scheduler.h.
#include "server/Scheduler.h"
#include "OneLine.h"

#include <algorithm>
#include <utility>

namespace greta::llm {

namespace {
// How long a step waits for masks, or a part of a step's time where that is
// longer; how long nothing is done but that.
constexpr double patience = 1e-3, patiencePart = 0.1, pause = 20e-3;

unsigned helpers() {
  return std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u);
}
} // namespace

Scheduler::Scheduler(Engine &engine, const Tokenizer &tokenizer,
                     const Options &options, Drafts *drafts)
    : engine(engine), tokenizer(tokenizer),
      sequences(static_cast<size_t>(options.parallel)),
      queueLimit(static_cast<size_t>(options.queue)),
      isDeterministic(options.isDeterministic),
      sharesPages(!options.noPrefixCache), drafts(drafts),
      mostGuesses(options.drafts),
      promptSeconds(options.promptMilliseconds * 1e-3), guides(helpers()),
      free(engine.freeTokens()) {
  for (int64_t place = 0; place < options.parallel; ++place)
    freePlaces.push_back(place);
  running.reserve(this->sequences);
  thread = std::thread([this] { run(); });
}

void Scheduler::drain(double seconds) {
  std::unique_lock<std::mutex> lock(mutex);
  isEnding = true;
  if (why.empty())
    why = "the server is ending";
  changed.notify_one();
  if (idle.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return isIdle; }))
    return;
  isCut = true;
  idle.wait(lock, [&] { return isIdle; });
}

std::string Scheduler::problem() const {
  std::lock_guard<std::mutex> lock(mutex);
  return why;
}

Scheduler::~Scheduler() {
  drain(0);
  thread.join();
}

std::vector<std::shared_ptr<Answer>>
Scheduler::submit(std::vector<Request> requests) {
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<std::shared_ptr<Job>> jobs;
  for (Request &request : requests) {
    auto answer = std::make_shared<Answer>();
    answer->promptTokens = static_cast<int64_t>(request.tokens.size());
    answers.push_back(answer);
    bool isGuided = request.grammar != nullptr;
    if (isGuided)
      std::call_once(vocabularyOnce, [&] {
        vocabulary =
            std::make_unique<SortedVocabulary>(tokenizer, engine.vocabulary());
        for (size_t token = 0; token < tokenizer.size(); ++token)
          if (tokenizer.isEnd(static_cast<int32_t>(token)))
            ends.push_back(static_cast<int32_t>(token));
      });
    jobs.push_back(std::make_shared<Job>(std::move(request), answer));
    if (isGuided) {
      Request &own = jobs.back()->request;
      own.sampling.isMasked = true;
      own.ends.insert(own.ends.end(), ends.begin(), ends.end());
      makeGuide(*jobs.back());
    }
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (isEnding || waiting.size() + jobs.size() > queueLimit) {
      counts.refused += static_cast<int64_t>(jobs.size());
      return {};
    }
    for (std::shared_ptr<Job> &job : jobs) {
      if (job->guide)
        guides.ask(job->guide);
      waiting.push_back(std::move(job));
    }
    counts.waiting = static_cast<int64_t>(waiting.size());
  }
  changed.notify_one();
  return answers;
}

void Scheduler::makeGuide(Job &job) {
  job.guide = std::make_shared<Guide>(job.request.grammar, *vocabulary,
                                      job.request.ends);
}

void Scheduler::run() {
  for (bool goesOn = true; goesOn;) {
    double begin = seconds();
    auto clean = [&] {
      running.erase(std::remove_if(running.begin(), running.end(),
                                   [](const std::shared_ptr<Job> &job) {
                                     return job->answer == nullptr;
                                   }),
                    running.end());
      count();
    };
    auto stop = [&](const std::exception &problem, bool isLost) {
      // The cause is asked for once: `lose` is an error of the others, too.
      std::string cause = engine.causeOf(problem);
      if (isLost || engine.isShared())
        lose(cause);
      failAll(cause);
    };
    try {
      goesOn = admit();
      begin = seconds();
      for (std::shared_ptr<Job> &job : running)
        if (job->answer->isCancelled)
          finish(*job, "");
      grow();
      clean();
      closeRanks();
      bool isQueued = queueNext();
      while (ahead.size() > (isQueued ? 1 : 0))
        takeStep();
    } catch (const greta::Error &problem) {
      stop(problem, problem.status() == GRETA_ERROR_DEVICE_LOST);
    } catch (const std::exception &problem) {
      stop(problem, false);
    }
    ++counts.steps;
    counts.stepMicroseconds += static_cast<int64_t>((seconds() - begin) * 1e6);
    clean();
  }
  std::lock_guard<std::mutex> lock(mutex);
  isIdle = true;
  idle.notify_all();
}

/// For good: nothing that this process asks for will be done.
void Scheduler::lose(const std::string &problem) {
  engine.abort(problem);
  std::lock_guard<std::mutex> lock(mutex);
  isEnding = true;
  why = "the device is lost: " + problem;
  deviceIsLost = true;
}

/// Who wants a token more.
std::vector<std::shared_ptr<Scheduler::Job>> Scheduler::generating() const {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const std::shared_ptr<Job> &job : running)
    if (job->answer && !job->isInPrompt() && job->queued < job->request.most)
      jobs.push_back(job);
  return jobs;
}

/// Work for the device: a token of all that generate, with parts of prompts in
/// the same pass, or else these in turn, so that a long prompt does not stop
/// them. False: there is none.
bool Scheduler::queueNext() {
  promptsFirst = !promptsFirst;
  std::vector<std::shared_ptr<Job>> jobs = generating();
  bool isNobody = jobs.empty(), mixes = !isNobody && takesParts(jobs);
  if (!mixes && (promptsFirst || isNobody) && queuePrompts(!isNobody))
    return true;
  if (drafts)
    return queueCheck();
  awaitMasks();
  Step step;
  for (const std::shared_ptr<Job> &job : generating())
    if (job->isGuideReady() && (!job->guide || setMask(*job)))
      step.add(job);
  if (step.jobs.empty())
    return false;
  step.isFirst = false;
  Pass pass;
  if (mixes)
    pass = nextPass(tokensOfPart(true, promptSeconds), engine.stepPlaces());
  noteTime(pass);
  setBegin(step);
  step.chosen = engine.step(partsOf(pass));
  for (const std::shared_ptr<Job> &job : step.jobs)
    ++job->queued;
  ahead.push_back(std::move(step));
  endPass(pass);
  return true;
}

/// Reads the tokens that grammars go on behind, and waits for what may follow.
void Scheduler::awaitMasks() {
  auto isThere = [](const std::vector<std::shared_ptr<Job>> &jobs,
                    bool (*is)(const Job &)) {
    return std::any_of(
        jobs.begin(), jobs.end(),
        [&](const std::shared_ptr<Job> &job) { return is(*job); });
  };
  while (!ahead.empty() &&
         isThere(generating(), [](const Job &job) { return job.isBehind(); }))
    takeStep();
  std::vector<std::shared_ptr<Job>> jobs = generating();
  guides.wait(std::max(patience, patiencePart * stepSeconds), [&] {
    return !isThere(jobs, [](const Job &job) {
      return !job.isGuideReady() && !job.guide->isLate;
    });
  });
  for (const std::shared_ptr<Job> &job : jobs)
    if (job->guide)
      job->guide->isLate = !job->isGuideReady();
  auto isReady = [](const Job &job) {
    bool isReady = job.isGuideReady();
    return job.answer && (isReady || job.promptLeft(isReady));
  };
  auto waits = [](const Job &job) { return !job.isGuideReady(); };
  // Then there is nothing else to do.
  if (ahead.empty() && isThere(running, waits) && !isThere(running, isReady))
    guides.wait(pause, [&] { return isThere(running, isReady); });
}

/// A step's time is measured from here.
void Scheduler::setBegin(Step &step) {
  step.begin = unread.empty() ? seconds() : unreadBegin;
  step.behind = std::exchange(unread, {});
}

/// Tells the device what a job may say next. False: the job has ended.
bool Scheduler::setMask(Job &job) {
  if (job.guide->problem().empty()) {
    engine.setMask(job.place, job.guide->mask());
    return true;
  }
  fail(job, job.guide->problem());
  return false;
}

/// Ends a job for something that is wrong with it alone.
void Scheduler::fail(Job &job, const std::string &problem) {
  engine.end(job.place);
  release(job);
  freePlaces.push_back(job.place);
  ++counts.failed;
  end(job, {"", "error", true, {}, problem, ""});
}

void Scheduler::takeStep() {
  Step step = std::move(ahead.front());
  ahead.pop_front();
  for (size_t i = 0; i < step.jobs.size(); ++i)
    takeAll(step.jobs[i], step, i);
  measure(step);
}

/// A job's tokens of a step: the next one, and those behind right guesses.
void Scheduler::takeAll(const std::shared_ptr<Job> &job, Step &step,
                        size_t number) {
  if (!job->answer)
    return;
  int64_t place = step.places[number];
  std::vector<int32_t> guesses;
  if (!step.guesses.empty())
    guesses = std::move(step.guesses[number]);
  take(*job, step.chosen[place], step.chosen.logits(place));
  for (int32_t guess : guesses) {
    if (!job->answer || guess != step.chosen[place])
      break;
    ++counts.rightGuesses;
    ++place;
    take(*job, step.chosen[place], step.chosen.logits(place));
  }
  if (!step.guesses.empty())
    job->queued = job->made;
  // With drafts queueCheck asks, together with the guesses.
  if (job->answer && job->guide && !drafts)
    guides.ask(job->guide);
}

/// Counts the time of a step, or of the tokens of prompts before it.
void Scheduler::measure(const Step &step) {
  // The device began when it was done with what was read before, or later.
  double now = seconds(), took = now - std::max(lastStep, step.begin);
  lastStep = now;
  if (!step.isFirst && step.behind.empty())
    stepSeconds =
        stepSeconds > 0 ? stepSeconds + (took - stepSeconds) / 4 : took;
  took -= step.isFirst ? 0 : stepSeconds;
  // Each of several parts has its share, by what was known of them.
  double guessed = 0;
  for (size_t tokens : step.behind)
    guessed += partTimes.of(tokens);
  std::vector<double> shares;
  for (size_t tokens : step.behind)
    shares.push_back(took * partTimes.of(tokens) / guessed);
  for (size_t i = 0; i < shares.size() && took > 0; ++i)
    partTimes.add(step.behind[i], shares[i]);
}

std::string Scheduler::textOf(const Job &job, int32_t token) const {
  for (const auto &[special, text] : job.request.shown)
    if (special == token)
      return text;
  return tokenizer.bytesOf(token);
}

/// The text of a request that a special token stands for.
std::string Scheduler::stopOf(const Request &request, int32_t token) const {
  for (const std::string &text : request.stops)
    if (tokenizer.find(text) == token)
      return text;
  return "";
}

/// The next token of a job.
void Scheduler::take(Job &job, int32_t token, const float *logits) {
  const Request &request = job.request;
  bool isEnd = std::find(request.ends.begin(), request.ends.end(), token) !=
                   request.ends.end() ||
               tokenizer.isEnd(token);
  bool isOver = false;
  if (job.guide && !isEnd) {
    if (!job.guide->take(tokenizer.bytesOf(token)))
      return fail(job, job.guide->problem());
    isOver = job.guide->isOver();
  }
  if (!isEnd)
    job.chosen.push_back(token);
  // A job that began anew does not repeat tokens that it has already sent.
  if (job.made++ < job.repeated())
    return;
  double now = seconds(), since = job.last > 0 ? now - job.last : 0;
  if (!job.said && !(job.last > 0)) {
    since = now - job.arrived;
    counts.firstTokenMicroseconds += static_cast<int64_t>(since * 1e6);
    ++counts.firstTokens;
    counts.firstToken.add(since);
  } else if (job.last > 0) {
    counts.gap.add(since);
  }
  job.last = now;
  if (isEnd)
    return finish(job, "stop", stopOf(request, token));
  job.answer->generated = job.said = job.before + job.made;
  ++counts.generatedTokens;
  job.held += textOf(job, token);
  if (logits && request.likeliest >= 0)
    job.heldTokens.push_back(
        chanceOf(logits, engine.vocabulary(), token, request.likeliest));
  size_t stop = std::string::npos;
  std::string said;
  for (const std::string &text : request.stops)
    if (size_t at = job.held.find(text); at < stop) {
      stop = at;
      said = text;
    }
  if (stop != std::string::npos) {
    job.held.resize(stop);
    return finish(job, "stop", said);
  }
  if (isOver)
    return finish(job, "stop");
  if (job.made == request.most)
    return finish(job, "length");
  push(job, job.held.size() - openBytes(job.held, request.stops));
}

/// Sends the part of a job's text that is ready to its client.
void Scheduler::push(Job &job, size_t ready) {
  if (!ready)
    return;
  job.answer->push({job.held.substr(0, ready), "", false,
                    std::exchange(job.heldTokens, {}), "", ""});
  job.held.erase(0, ready);
  job.request.wake(Request::News::Piece);
}

/// An empty reason: nobody waits for it.
void Scheduler::finish(Job &job, const char *reason, std::string stop) {
  engine.end(job.place);
  release(job);
  freePlaces.push_back(job.place);
  ++(*reason ? counts.finished : counts.cancelled);
  counts.request.add(seconds() - job.arrived);
  end(job, {std::move(job.held), reason, true, std::move(job.heldTokens), "",
            std::move(stop)});
}

/// Without the lock: a request that is woken may hold one of its own and ask
/// for problem().
void Scheduler::end(Job &job, Answer::Piece piece) {
  std::shared_ptr<Answer> answer = std::exchange(job.answer, nullptr);
  // Whoever has his answer finds himself counted no more.
  count();
  bool isError = piece.reason == "error";
  answer->push(std::move(piece));
  job.request.wake(isError ? Request::News::Error : Request::News::Last);
}

/// Tells other threads how many requests run and how many pages are free.
void Scheduler::count() {
  counts.running = std::count_if(
      running.begin(), running.end(),
      [](const std::shared_ptr<Job> &job) { return job->answer != nullptr; });
  free = engine.freeTokens();
}

/// Everyone who waits is told.
void Scheduler::failAll(const std::string &problem) {
  fprintf(stderr, "greta-llm: error: %s\n", onOneLine(problem).c_str());
  ahead.clear();
  engine.forget();
  if (drafts)
    drafts->forget();
  for (std::shared_ptr<Job> &job : running) {
    if (!job->answer)
      continue;
    engine.release(job->sequence);
    freePlaces.push_back(job->place);
    ++counts.failed;
    end(*job, {"", "error", true, {}, "", ""});
  }
  running.clear();
  counts.running = 0;
  std::deque<std::shared_ptr<Job>> others;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(others, waiting);
    tooLarge = nullptr;
    counts.waiting = 0;
  }
  for (const std::shared_ptr<Job> &job : others) {
    engine.release(job->sequence);
    ++counts.failed;
    end(*job, {"", "error", true, {}, "", ""});
  }
}

} // namespace greta::llm
