// Guesses.cpp: steps with guesses of what follows (Scheduler.h). In: sequences
// that generate, and their texts so far. Out: one step for all, in which each
// has its last token and, as far as there is room, guesses behind it.
#include "server/Scheduler.h"

#include <algorithm>

namespace greta::llm {

/// A step checks no more guesses of a job than it wants tokens and has pages.
/// Nothing is guessed where there is a grammar: each guess would need a mask.
size_t Scheduler::roomForGuesses(const Job &job) const {
  if (job.guide)
    return 0;
  int64_t pages = static_cast<int64_t>(job.sequence.pages.size()) * pageSize;
  int64_t room = std::min({mostGuesses, job.request.most - job.made - 1,
                           pages - job.promptSize() - job.made});
  return static_cast<size_t>(std::max<int64_t>(room, 0));
}

/// The part of a job in a step, without guesses.
Engine::Checked Scheduler::checkedOf(const Job &job) const {
  Engine::Checked one;
  one.sequence = job.sequence;
  one.tokens = job.request.tokens;
  one.tokens.insert(one.tokens.end(), job.chosen.begin(), job.chosen.end());
  one.sampling = job.request.sampling;
  one.said = static_cast<size_t>(job.before + job.made);
  if (job.guide)
    one.masks = {job.guide->mask()};
  one.wantsLogits = job.request.likeliest >= 0;
  return one;
}

/// Guesses for the jobs of a step, as many as its kernels have rows for anyway.
std::vector<std::vector<int32_t>>
Scheduler::guessesFor(const std::vector<std::shared_ptr<Job>> &jobs,
                      const std::vector<Engine::Checked> &texts) {
  size_t size = static_cast<size_t>(engine.batch());
  size_t room = (jobs.size() + size - 1) / size * size - jobs.size();
  std::vector<size_t> wanted;
  for (const std::shared_ptr<Job> &job : jobs)
    wanted.push_back(roomForGuesses(*job));
  if (drafts->costs())
    wanted = sharesOf(wanted, room);
  std::vector<Drafts::Asked> asked;
  for (size_t i = 0; i < jobs.size(); ++i)
    asked.push_back({jobs[i]->place, &texts[i].tokens, wanted[i]});
  std::vector<std::vector<int32_t>> guesses = drafts->guess(asked);
  for (size_t i = 0; i < jobs.size(); ++i)
    wanted[i] = guesses[i].size();
  wanted = sharesOf(wanted, room);
  for (size_t i = 0; i < jobs.size(); ++i)
    guesses[i].resize(wanted[i]);
  return guesses;
}

/// Guesses go on behind all tokens that there will be, so these are read first.
/// False: there is nobody who generates.
bool Scheduler::queueCheck() {
  while (!ahead.empty())
    takeStep();
  awaitMasks();
  Step step;
  std::vector<Engine::Checked> all;
  for (const std::shared_ptr<Job> &job : generating()) {
    if (!job->isGuideReady())
      continue;
    if (job->guide && !job->guide->problem().empty()) {
      fail(*job, job->guide->problem());
      continue;
    }
    step.jobs.push_back(job);
    all.push_back(checkedOf(*job));
  }
  if (all.empty())
    return false;
  step.guesses = guessesFor(step.jobs, all);
  int64_t place = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<int32_t> &guesses = step.guesses[i];
    all[i].tokens.insert(all[i].tokens.end(), guesses.begin(), guesses.end());
    all[i].count = guesses.size() + 1;
    step.firsts.push_back(place);
    place += static_cast<int64_t>(all[i].count);
    step.jobs[i]->queued += static_cast<int64_t>(all[i].count);
    counts.guessed += static_cast<int64_t>(guesses.size());
  }
  step.isFirst = false;
  setBegin(step);
  step.chosen = engine.check(all);
  ahead.push_back(std::move(step));
  return true;
}

} // namespace greta::llm
