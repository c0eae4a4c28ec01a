// Guesses.cpp: steps with guesses of what follows (Scheduler.h). In: sequences
// that generate, and their texts so far. Out: one step for all, in which each
// has its last token and, as far as there is room, guesses behind it.
#include "server/Scheduler.h"

#include <algorithm>

namespace greta::llm {

/// A step checks no more guesses of a job than it wants tokens and has pages,
/// of which the token behind the last guess takes its part. A guide that is
/// asked has its guesses.
size_t Scheduler::roomForGuesses(const Job &job) const {
  if (job.guide && !job.guide->isUnasked())
    return 0;
  int64_t pages = static_cast<int64_t>(job.sequence.pages.size()) * pageSize;
  int64_t room = std::min({mostGuesses, job.request.most - job.made - 1,
                           pages - job.promptSize() - job.made - 1});
  return static_cast<size_t>(std::max<int64_t>(room, 0));
}

/// The part of a job in a step, without guesses and masks.
Checked Scheduler::checkedOf(const Job &job) const {
  Checked one;
  one.sequence = job.sequence;
  one.tokens = job.request.tokens;
  one.tokens.insert(one.tokens.end(), job.chosen.begin(), job.chosen.end());
  one.sampling = job.request.sampling;
  one.said = static_cast<size_t>(job.before + job.made);
  one.wantsLogits = job.request.likeliest >= 0;
  return one;
}

/// Guesses for jobs, no more than a step of all of them has rows for.
std::vector<std::vector<int32_t>>
Scheduler::guessesFor(const std::vector<std::shared_ptr<Job>> &jobs,
                      const std::vector<Checked> &texts) {
  std::vector<size_t> wanted;
  for (const std::shared_ptr<Job> &job : jobs)
    wanted.push_back(roomForGuesses(*job));
  if (drafts->costs())
    wanted = sharesOf(wanted, rowsForGuesses(jobs.size()));
  std::vector<Drafts::Asked> asked;
  for (size_t i = 0; i < jobs.size(); ++i)
    asked.push_back({jobs[i]->place, &texts[i].tokens, wanted[i]});
  return drafts->guess(asked, tokensOfPart(jobs.size() > 1, promptSeconds));
}

/// The rows of a step's kernels that so many jobs leave.
size_t Scheduler::rowsForGuesses(size_t jobs) const {
  size_t size = static_cast<size_t>(engine.batch());
  return (jobs + size - 1) / size * size - jobs;
}

/// Asks for the mask behind a job's text, and those behind its guesses.
void Scheduler::askGuide(const Job &job, std::vector<int32_t> guesses) {
  std::vector<std::string> texts;
  for (int32_t token : guesses)
    texts.push_back(tokenizer.bytesOf(token));
  job.guide->guess(std::move(guesses), std::move(texts));
  guides.ask(job.guide);
}

/// Puts a job, and those of its guesses that are masked or need no masks, into
/// a step.
void Scheduler::addToCheck(const std::shared_ptr<Job> &job, Checked text,
                           std::vector<int32_t> guesses, Step &step,
                           std::vector<Checked> &all) {
  if (job->guide) {
    guesses = job->guide->guesses();
    text.masks = {job->guide->mask()};
    const auto &behind = job->guide->masksBehind();
    text.masks.insert(text.masks.end(), behind.begin(), behind.end());
  }
  step.jobs.push_back(job);
  step.guesses.push_back(std::move(guesses));
  all.push_back(std::move(text));
}

/// Guesses go on behind all tokens that there will be, so these are read first.
/// False: there is nobody who generates.
bool Scheduler::queueCheck() {
  while (!ahead.empty())
    takeStep();
  std::vector<std::shared_ptr<Job>> jobs = generating();
  std::vector<Checked> texts, all;
  for (const std::shared_ptr<Job> &job : jobs)
    texts.push_back(checkedOf(*job));
  std::vector<std::vector<int32_t>> guesses = guessesFor(jobs, texts);
  for (size_t i = 0; i < jobs.size(); ++i)
    if (jobs[i]->guide && jobs[i]->guide->isUnasked())
      askGuide(*jobs[i], std::move(guesses[i]));
  awaitMasks();
  Step step;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i]->isGuideReady())
      continue;
    if (jobs[i]->guide && !jobs[i]->guide->problem().empty()) {
      fail(*jobs[i], jobs[i]->guide->problem());
      continue;
    }
    addToCheck(jobs[i], std::move(texts[i]), std::move(guesses[i]), step, all);
  }
  if (all.empty())
    return false;
  std::vector<size_t> shares;
  for (const std::vector<int32_t> &some : step.guesses)
    shares.push_back(some.size());
  shares = sharesOf(shares, rowsForGuesses(all.size()));
  int64_t place = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t> &own = step.guesses[i];
    own.resize(shares[i]);
    all[i].tokens.insert(all[i].tokens.end(), own.begin(), own.end());
    all[i].count = own.size() + 1;
    step.places.push_back(place);
    place += static_cast<int64_t>(all[i].count);
    step.jobs[i]->queued += static_cast<int64_t>(all[i].count);
    counts.guessed += static_cast<int64_t>(own.size());
  }
  step.isFirst = false;
  setBegin(step);
  step.chosen = engine.check(all);
  ahead.push_back(std::move(step));
  return true;
}

} // namespace greta::llm
