// Admission.cpp: which requests have a place and pages (Scheduler.h). In: those
// that wait, and what the cache has free. Out: those that run, with pages for
// their next token, or back in the queue.
#include "server/Scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace greta::llm {

// Tokens for which pages are reserved beyond those that are needed.
constexpr int64_t growth = 64;

/// Takes what waits, in order; waits where there is nothing to do. False at the
/// end.
bool Scheduler::admit() {
  std::unique_lock<std::mutex> lock(mutex);
  auto isNeeded = [&] {
    return isEnding || !waiting.empty() || !running.empty();
  };
  // While nothing is asked for, nothing else shows that one of several engines
  // is gone.
  while (!changed.wait_for(lock, std::chrono::milliseconds(500), isNeeded))
    if (std::string gone = engine.failure(); !gone.empty())
      llm::fail(gone);
  if (isCut && (!waiting.empty() || !running.empty())) {
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
      tooLarge = nullptr;
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
    end(*job, {"", "", true, {}, "", ""});
  }
  return goesOn;
}

/// Pages to begin with: for the prompt, what is said once more, and some.
bool Scheduler::reserve(Job &job) {
  // A long prompt is looked up again when there is more room than before.
  if (tooLarge == &job && !running.empty() && engine.freeTokens() <= tooFew)
    return false;
  tooLarge = nullptr;
  share(job);
  int64_t begun = job.sequence.length;
  if (engine.reserve(job.sequence,
                     job.promptSize() - begun +
                         std::min(job.request.most, job.repeated() + growth)))
    return true;
  engine.release(job.sequence); // those who run may need them
  tooLarge = &job;
  tooFew = engine.freeTokens();
  return false;
}

/// Takes the part of the prompt that the cache has, but for one whose tokens'
/// chances are told.
void Scheduler::share(Job &job) {
  if (sharesPages && !job.tellsPrompt())
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
  if (drafts)
    drafts->end(job.place);
}

/// Pages for the next token of all that generate, of those that arrived first
/// to begin with.
void Scheduler::grow() {
  for (size_t i = 0; i < running.size(); ++i) {
    Job &job = *running[i];
    // A step leaves where the next one begins, so it needs that page, too.
    // A step with guesses is sure of one token.
    int64_t needed =
        std::min((drafts ? job.made : job.queued) + 1, job.request.most);
    int64_t more = std::min(needed + growth, job.request.most);
    while (job.answer && !job.isInPrompt() &&
           !engine.extend(job.place, job.sequence, needed, more)) {
      auto last = std::find_if(
          running.rbegin(), running.rend(),
          [](const std::shared_ptr<Job> &one) { return one->answer; });
      preempt(**last);
    }
    // Guesses have the pages that nobody else needs.
    if (drafts && job.answer && !job.isInPrompt())
      (void)engine.extend(
          job.place, job.sequence,
          std::min(job.queued + 1 + mostGuesses, job.request.most), more);
  }
}

/// Moves jobs to free places below theirs where a step has fewer rows then.
/// Steps with guesses have places of their own, and a deterministic engine has
/// as many rows for any.
void Scheduler::closeRanks() {
  if (drafts || isDeterministic)
    return;
  auto count = static_cast<int64_t>(running.size());
  while (count) {
    auto last = std::max_element(
        running.begin(), running.end(),
        [](const auto &a, const auto &b) { return a->place < b->place; });
    int64_t place = (*last)->place;
    if (engine.rowsOf(place + 1) <= engine.rowsOf(count))
      return;
    auto lowest = std::min_element(freePlaces.begin(), freePlaces.end());
    engine.move(place, *lowest);
    (*last)->place = std::exchange(*lowest, place);
  }
}

void Scheduler::preempt(Job &job) {
  // First, as it may fail: whoever waits is told then.
  engine.end(job.place);
  release(job);
  // A prompt that is not yet told as a whole is told anew.
  if (job.tellsPrompt())
    job.heldTokens.clear();
  else
    job.request.tellsPrompt = false;
  if (!isDeterministic) {
    std::vector<int32_t> &tokens = job.request.tokens;
    tokens.insert(tokens.end(), job.chosen.begin(), job.chosen.end());
    job.request.most -= job.made;
    job.before += job.made;
  }
  auto again = std::make_shared<Job>(std::move(job.request), job.answer);
  again->guide = std::move(job.guide);
  if (again->guide && isDeterministic)
    makeGuide(*again);
  if (again->guide && (isDeterministic || again->guide->isUnasked()))
    guides.ask(again->guide);
  again->said = job.said;
  again->before = job.before;
  again->held = std::move(job.held);
  again->heldTokens = std::move(job.heldTokens);
  again->arrived = job.arrived;
  again->isBegun = job.isBegun;
  again->last = job.last;
  freePlaces.push_back(job.place);
  job.answer = nullptr;
  ++counts.preempted;
  std::lock_guard<std::mutex> lock(mutex);
  waiting.push_front(std::move(again));
  counts.waiting = static_cast<int64_t>(waiting.size());
}

} // namespace greta::llm
