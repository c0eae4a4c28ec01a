// Scheduler.cpp: see Scheduler.h.
#include "server/Scheduler.h"

#include <algorithm>
#include <utility>

namespace greta::llm {

namespace {
// Tokens for which pages are reserved beyond those that are needed.
constexpr int64_t growth = 64;
} // namespace

std::vector<Answer::Piece> Answer::take() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(pieces, {});
}

void Answer::push(Piece piece) {
  std::lock_guard<std::mutex> lock(mutex);
  pieces.push_back(std::move(piece));
}

Scheduler::Scheduler(Engine &engine, const Tokenizer &tokenizer,
                     const Options &options)
    : engine(engine), tokenizer(tokenizer),
      sequences(static_cast<size_t>(options.parallel)),
      queueLimit(static_cast<size_t>(options.queue)),
      isDeterministic(options.isDeterministic),
      sharesPages(!options.noPrefixCache), free(engine.freeTokens()) {
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

std::shared_ptr<Answer> Scheduler::submit(Request request) {
  auto answer = std::make_shared<Answer>();
  answer->promptTokens = static_cast<int64_t>(request.tokens.size());
  auto job = std::make_shared<Job>(std::move(request), answer);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (isEnding || waiting.size() >= queueLimit) {
      ++counts.refused;
      return nullptr;
    }
    waiting.push_back(std::move(job));
    counts.waiting = static_cast<int64_t>(waiting.size());
  }
  changed.notify_one();
  return answer;
}

/// Takes what waits, in order; waits where there is nothing to do. False at the
/// end.
bool Scheduler::admit() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(
      lock, [&] { return isEnding || !waiting.empty() || !running.empty(); });
  if (isCut) {
    lock.unlock();
    failAll("the server is ending");
    return false;
  }
  // Who left frees his place in the queue.
  std::vector<std::shared_ptr<Job>> gone;
  for (auto it = waiting.begin(); it != waiting.end();)
    if ((*it)->answer->isCancelled) {
      gone.push_back(std::move(*it));
      it = waiting.erase(it);
    } else {
      ++it;
    }
  while (!waiting.empty() && running.size() < sequences &&
         reserve(*waiting.front())) {
    // The lowest place: fewer batches of places have something to do.
    auto place = std::min_element(freePlaces.begin(), freePlaces.end());
    waiting.front()->place = *place;
    freePlaces.erase(place);
    running.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  counts.waiting = static_cast<int64_t>(waiting.size());
  bool goesOn = !running.empty() || !waiting.empty() || !isEnding;
  lock.unlock();
  for (const std::shared_ptr<Job> &job : gone) {
    ++counts.cancelled;
    end(*job, {"", "", true});
  }
  return goesOn;
}

/// Pages to begin with: for the prompt, what is said once more, and some.
bool Scheduler::reserve(Job &job) {
  share(job);
  int64_t begun = job.sequence.length;
  if (engine.reserve(job.sequence,
                     job.promptSize() - begun +
                         std::min(job.request.most, job.repeated() + growth)))
    return true;
  engine.release(job.sequence); // those who run may need them
  return false;
}

/// Takes the part of the prompt that the cache has.
void Scheduler::share(Job &job) {
  if (sharesPages)
    engine.share(job.sequence, job.request.tokens);
  job.evaluated = static_cast<size_t>(job.sequence.length);
}

/// The pages of a job go back; what they hold may serve others.
void Scheduler::release(Job &job) {
  if (sharesPages && !isDeterministic && !job.isInPrompt()) {
    // The step that chose a token has evaluated those before it.
    std::vector<int32_t> tokens = job.request.tokens;
    tokens.insert(tokens.end(), job.chosen.begin(), job.chosen.end());
    engine.remember(job.sequence, tokens,
                    job.promptSize() + std::max<int64_t>(job.made - 1, 0));
  }
  engine.release(job.sequence);
}

/// Pages for the next token of all that generate, of those that arrived first
/// to begin with.
void Scheduler::grow() {
  for (size_t i = 0; i < running.size(); ++i) {
    Job &job = *running[i];
    // A step leaves where the next one begins, so it needs that page, too.
    int64_t needed = std::min(job.queued + 1, job.request.most);
    int64_t more = std::min(needed + growth, job.request.most);
    while (job.answer && !job.isInPrompt() &&
           !engine.extend(job.place, job.sequence, needed, more)) {
      auto last = std::find_if(
          running.rbegin(), running.rend(),
          [](const std::shared_ptr<Job> &one) { return one->answer; });
      preempt(**last);
    }
  }
}

void Scheduler::preempt(Job &job) {
  release(job);
  if (!isDeterministic) {
    std::vector<int32_t> &tokens = job.request.tokens;
    tokens.insert(tokens.end(), job.chosen.begin(), job.chosen.end());
    job.request.most -= job.made;
    job.before += job.made;
  }
  auto again = std::make_shared<Job>(std::move(job.request), job.answer);
  again->said = job.said;
  again->before = job.before;
  again->held = std::move(job.held);
  again->arrived = job.arrived;
  again->isBegun = job.isBegun;
  engine.end(job.place);
  freePlaces.push_back(job.place);
  job.answer = nullptr;
  ++counts.preempted;
  std::lock_guard<std::mutex> lock(mutex);
  waiting.push_front(std::move(again));
  counts.waiting = static_cast<int64_t>(waiting.size());
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
      counts.running = static_cast<int64_t>(running.size());
      free = engine.freeTokens();
    };
    try {
      goesOn = admit();
      begin = seconds();
      for (std::shared_ptr<Job> &job : running)
        if (job->answer->isCancelled)
          finish(*job, "");
      grow();
      clean();
      bool isQueued = queueNext();
      while (ahead.size() > (isQueued ? 1 : 0))
        takeStep();
    } catch (const greta::Error &problem) {
      if (problem.status() == GRETA_ERROR_DEVICE_LOST) {
        // For good: nothing that this process asks for will be done.
        std::lock_guard<std::mutex> lock(mutex);
        isEnding = true;
        why = std::string("the device is lost: ") + problem.what();
        deviceIsLost = true;
      }
      failAll(problem.what());
    } catch (const std::exception &problem) {
      failAll(problem.what());
    }
    ++counts.steps;
    counts.stepMicroseconds += static_cast<int64_t>((seconds() - begin) * 1e6);
    clean();
  }
  std::lock_guard<std::mutex> lock(mutex);
  isIdle = true;
  idle.notify_all();
}

/// Work for the device: a part of a prompt, or a token of all that generate, in
/// turn, so that a long prompt does not stop these. False: there is none.
bool Scheduler::queueNext() {
  auto begins = [](const std::shared_ptr<Job> &job) {
    return job->isInPrompt();
  };
  Step step;
  for (const std::shared_ptr<Job> &job : running)
    if (!begins(job) && job->queued < job->request.most)
      step.jobs.push_back(job);
  auto prompt = std::find_if(running.begin(), running.end(), begins);
  promptsFirst = !promptsFirst;
  if (prompt != running.end() && (promptsFirst || step.jobs.empty())) {
    queuePrompt(*prompt);
    return true;
  }
  if (step.jobs.empty())
    return false;
  step.chosen = engine.step();
  for (const std::shared_ptr<Job> &job : step.jobs)
    ++job->queued;
  ahead.push_back(std::move(step));
  return true;
}

void Scheduler::queuePrompt(const std::shared_ptr<Job> &job) {
  const Request &request = job->request;
  // Others may have evaluated more of it since it was admitted.
  size_t before = std::exchange(job->isBegun, true) ? job->evaluated : 0;
  share(*job);
  auto cached = static_cast<int64_t>(job->evaluated - before);
  job->answer->cached += cached;
  counts.cachedTokens += cached;
  size_t count = std::min(request.tokens.size() - job->evaluated,
                          static_cast<size_t>(engine.chunk()));
  engine.append(job->sequence, request.tokens.data() + job->evaluated, count);
  job->evaluated += count;
  counts.promptTokens += static_cast<int64_t>(count);
  if (sharesPages)
    engine.remember(job->sequence, request.tokens,
                    static_cast<int64_t>(job->evaluated));
  if (job->evaluated < request.tokens.size())
    return;
  job->queued = 1;
  ahead.push_back({engine.begin(job->place, job->sequence, request.tokens,
                                request.sampling, request.most),
                   {job}});
}

void Scheduler::takeStep() {
  Step step = std::move(ahead.front());
  ahead.pop_front();
  for (const std::shared_ptr<Job> &job : step.jobs)
    if (job->answer)
      take(*job, step.chosen[job->place]);
}

/// How many bytes at the end may be the beginning of a character or of a text
/// that ends the answer.
static size_t openBytes(const std::string &text,
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
    for (size_t part = std::min(stop.size() - 1, text.size()); part > open;
         --part)
      if (text.compare(text.size() - part, part, stop, 0, part) == 0)
        open = part;
  return open;
}

/// The next token of a job.
void Scheduler::take(Job &job, int32_t token) {
  // A job that began anew does not repeat tokens that it has already sent.
  if (job.made++ < job.repeated())
    return;
  const Request &request = job.request;
  if (!job.said) {
    counts.firstTokenMicroseconds +=
        static_cast<int64_t>((seconds() - job.arrived) * 1e6);
    ++counts.firstTokens;
  }
  bool isEnd = std::find(request.ends.begin(), request.ends.end(), token) !=
               request.ends.end();
  if (isEnd || tokenizer.isEnd(token))
    return finish(job, "stop");
  job.answer->generated = job.said = job.before + job.made;
  job.chosen.push_back(token);
  ++counts.generatedTokens;
  job.held += tokenizer.bytesOf(token);
  size_t stop = std::string::npos;
  for (const std::string &text : request.stops)
    stop = std::min(stop, job.held.find(text));
  if (stop != std::string::npos) {
    job.held.resize(stop);
    return finish(job, "stop");
  }
  if (job.made == request.most)
    return finish(job, "length");
  size_t ready = job.held.size() - openBytes(job.held, request.stops);
  if (ready) {
    job.answer->push({job.held.substr(0, ready), "", false});
    job.held.erase(0, ready);
    request.wake(false);
  }
}

/// An empty reason: nobody waits for it.
void Scheduler::finish(Job &job, const char *reason) {
  engine.end(job.place);
  release(job);
  freePlaces.push_back(job.place);
  ++(*reason ? counts.finished : counts.cancelled);
  end(job, {std::move(job.held), reason, true});
}

/// Without the lock: a request that is woken may hold one of its own and ask
/// for problem().
void Scheduler::end(Job &job, Answer::Piece piece) {
  job.answer->push(std::move(piece));
  job.answer = nullptr;
  job.request.wake(true);
}

/// Everyone who waits is told.
void Scheduler::failAll(const std::string &problem) {
  fprintf(stderr, "greta-llm: error: %s\n", problem.c_str());
  ahead.clear();
  engine.forget();
  for (std::shared_ptr<Job> &job : running) {
    if (!job->answer)
      continue;
    engine.release(job->sequence);
    freePlaces.push_back(job->place);
    ++counts.failed;
    end(*job, {"", "error", true});
  }
  running.clear();
  counts.running = 0;
  std::deque<std::shared_ptr<Job>> others;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(others, waiting);
    counts.waiting = 0;
  }
  for (const std::shared_ptr<Job> &job : others) {
    engine.release(job->sequence);
    ++counts.failed;
    end(*job, {"", "error", true});
  }
}

} // namespace greta::llm
