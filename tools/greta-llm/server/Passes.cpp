// Passes.cpp: passes over parts of prompts (Scheduler.h). In: jobs with tokens
// to evaluate, and how long they may keep those waiting who generate. Out:
// passes that the engine has queued, and first tokens behind prompts that end.
#include "server/Scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace greta::llm {

// Waiting counts for a part of the tokens that could have been evaluated.
static constexpr double ageing = 0.25;
static constexpr int mostPasses = 8; // over prompts in one turn
// A step takes parts of prompts along while no sequence has more keys.
static constexpr int64_t mostKeysOfPart = 1024;
// A prompt whose tokens' chances are told has a row of logits for each token.
static constexpr size_t mostToldTokens = 64;

/// The prompt with the fewest tokens left, of those that are not taken already;
/// those that wait become shorter.
std::shared_ptr<Scheduler::Job>
Scheduler::nextPrompt(const std::vector<std::shared_ptr<Job>> &without) const {
  std::shared_ptr<Job> next;
  double least = 0, now = seconds();
  double perToken = partTimes.perToken();
  for (const std::shared_ptr<Job> &job : running) {
    if (!job->answer || !job->promptLeft(job->isGuideReady()) ||
        std::find(without.begin(), without.end(), job) != without.end())
      continue;
    double left = static_cast<double>(job->request.tokens.size()) -
                  static_cast<double>(job->evaluated) -
                  ageing * (now - job->arrived) / perToken;
    if (!next || left < least) {
      least = left;
      next = job;
    }
  }
  return next;
}

/// Whether a step of these jobs takes parts of prompts along: these have room
/// beside its rows, and its sequences have few keys. The kernels of prompts
/// read a sequence's keys in one workgroup for each head of them, which takes
/// longer than a step of its own where there are many.
bool Scheduler::takesParts(
    const std::vector<std::shared_ptr<Job>> &jobs) const {
  return !drafts && !isDeterministic && engine.stepsWithParts() &&
         std::none_of(running.begin(), running.end(),
                      [](const auto &job) {
                        return job->answer && job->tellsPrompt();
                      }) &&
         std::all_of(jobs.begin(), jobs.end(),
                     [](const auto &job) {
                       return job->promptSize() + job->queued <= mostKeysOfPart;
                     }) &&
         2 * static_cast<size_t>(engine.stepPlaces()) <=
             tokensOfPart(true, promptSeconds);
}

/// How many tokens a part of a prompt may have that is to take so long.
size_t Scheduler::tokensOfPart(bool othersWait, double seconds) const {
  size_t chunk = static_cast<size_t>(engine.chunk());
  return othersWait && promptSeconds > 0
             ? std::min(chunk, partTimes.most(seconds))
             : chunk;
}

/// Passes over prompts for one turn. False: there are no prompts.
bool Scheduler::queuePrompts(bool othersWait) {
  double left = promptSeconds;
  auto room = static_cast<size_t>(engine.chunk());
  int passes = 0;
  for (bool isLast = false; passes < mostPasses && !isLast; ++passes) {
    Pass pass = nextPass(std::min(room, tokensOfPart(othersWait, left)));
    if (pass.jobs.empty())
      break;
    bool isTold = pass.jobs.front()->tellsPrompt();
    if (isTold) {
      tellPrompt(pass);
    } else {
      noteTime(pass);
      engine.append(partsOf(pass));
    }
    endPass(pass);
    room -= std::min(room, pass.tokens);
    left -= partTimes.of(pass.tokens);
    // Alone, prompts have the device for themselves.
    isLast = isTold || !othersWait || !room ||
             (promptSeconds > 0 && left < partTimes.of(1));
  }
  return passes > 0;
}

/// The next prompt's next tokens, and those of others as long as that pays,
/// behind so many rows of a step.
Scheduler::Pass Scheduler::nextPass(size_t most, int64_t rows) {
  Pass pass;
  pass.rows = static_cast<size_t>(rows);
  most -= std::min(most, pass.rows);
  std::vector<std::shared_ptr<Job>> seen;
  while (pass.tokens < most && pass.jobs.size() < mostParts) {
    std::shared_ptr<Job> job = nextPrompt(seen);
    if (!job)
      break;
    seen.push_back(job);
    bool isTold = job->tellsPrompt(); // in a pass of its own
    if (isTold && !pass.jobs.empty())
      continue;
    size_t count = partOf(
        *job, std::min(most - pass.tokens, isTold ? mostToldTokens : most));
    if (!count || sharesSoon(*job, pass))
      continue;
    if (!pass.jobs.empty() && !pays(pass, count))
      break;
    pass.jobs.push_back(std::move(job));
    pass.counts.push_back(count);
    pass.tokens += count;
    if (isTold)
      break;
  }
  return pass;
}

/// How many of a job's tokens are to be evaluated now.
size_t Scheduler::partOf(Job &job, size_t most) {
  // It is asked once: a mask that comes later is for the next part.
  bool isReady = job.isGuideReady();
  if (job.guide && isReady && !job.guide->problem().empty()) {
    fail(job, job.guide->problem());
    return 0;
  }
  // Others may have evaluated more of it since it was admitted.
  size_t before = std::exchange(job.isBegun, true) ? job.evaluated : 0;
  share(job);
  auto cached = static_cast<int64_t>(job.evaluated - before);
  // A preempted answer evaluates its own tokens again; they are no prompt.
  if (!(job.last > 0))
    job.answer->cached =
        std::min(job.answer->cached + cached, job.promptSize() - 1);
  counts.cachedTokens += cached;
  return std::min(job.promptLeft(isReady), most);
}

/// Whether a pass evaluates the page that a job needs next, which is the job's,
/// too, when the pass is queued.
bool Scheduler::sharesSoon(const Job &job, const Pass &pass) const {
  if (!sharesPages)
    return false;
  size_t begin = job.sequence.known * pageSize, end = begin + pageSize;
  const std::vector<int32_t> &tokens = job.request.tokens;
  for (size_t i = 0; i < pass.jobs.size() && tokens.size() > end; ++i) {
    const Job &other = *pass.jobs[i];
    if (other.sequence.known == job.sequence.known &&
        other.sequence.chain == job.sequence.chain &&
        other.evaluated + pass.counts[i] >= end &&
        std::equal(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                   tokens.begin() + static_cast<std::ptrdiff_t>(end),
                   other.request.tokens.begin() +
                       static_cast<std::ptrdiff_t>(begin)))
      return true;
  }
  return false;
}

/// Whether a pass is to have so many tokens more: those who have a part of it
/// wait longer, and everyone else less than for a pass of their own.
bool Scheduler::pays(const Pass &pass, size_t more) const {
  double later = partTimes.of(pass.tokens + more) - partTimes.of(pass.tokens);
  double sooner = partTimes.of(more) - later;
  auto with = static_cast<double>(pass.jobs.size());
  return sooner * (static_cast<double>(running.size()) - with) >= later * with;
}

std::vector<Engine::Part> Scheduler::partsOf(const Pass &pass) {
  std::vector<Engine::Part> parts;
  for (size_t i = 0; i < pass.jobs.size(); ++i) {
    Job &job = *pass.jobs[i];
    parts.push_back({&job.sequence, job.request.tokens.data() + job.evaluated,
                     pass.counts[i]});
  }
  return parts;
}

/// A pass that is about to be queued takes time behind the last step.
void Scheduler::noteTime(const Pass &pass) {
  if (pass.jobs.empty())
    return;
  if (unread.empty())
    unreadBegin = seconds();
  unread.push_back(pass.rows + pass.tokens);
  counts.promptTokens += static_cast<int64_t>(pass.tokens);
  ++counts.promptPasses;
}

/// Evaluates a part of one prompt, and tells the chance of each token that is
/// behind one of these. The host waits for the logits.
void Scheduler::tellPrompt(const Pass &pass) {
  Job &job = *pass.jobs.front();
  size_t count = pass.counts.front(), first = job.evaluated;
  const std::vector<int32_t> &tokens = job.request.tokens;
  if (!first)
    job.heldTokens.push_back(
        {tokens[0], std::numeric_limits<double>::quiet_NaN(), {}});
  const std::vector<float> &logits =
      engine.evaluate(job.sequence, tokens.data() + first, count, 0);
  auto width = static_cast<size_t>(engine.vocabulary());
  for (size_t i = 0; i < count && first + i + 1 < tokens.size(); ++i)
    job.heldTokens.push_back(
        chanceOf(logits.data() + i * width, engine.vocabulary(),
                 tokens[first + i + 1], job.request.likeliest));
  counts.promptTokens += static_cast<int64_t>(count);
  ++counts.promptPasses;
}

/// Takes the tokens of a queued pass as evaluated, and begins answers whose
/// prompts end with it.
void Scheduler::endPass(const Pass &pass) {
  for (size_t i = 0; i < pass.jobs.size(); ++i) {
    Job &job = *pass.jobs[i];
    job.evaluated += pass.counts[i];
    if (sharesPages)
      engine.remember(job.sequence, job.request.tokens,
                      static_cast<int64_t>(job.evaluated));
    if (!job.isInPrompt() && (!job.guide || setMask(job)))
      queueFirst(pass.jobs[i], i);
  }
}

/// The first token behind a prompt that ends with a part of the last pass.
void Scheduler::queueFirst(const std::shared_ptr<Job> &job, size_t part) {
  const Request &request = job->request;
  job->queued = 1;
  engine.wantLogits(job->place, request.likeliest >= 0);
  Step step;
  step.add(job);
  setBegin(step);
  step.chosen =
      engine.begin(job->place, job->sequence, request.tokens, request.sampling,
                   drafts ? 1 : request.most, job->before, part);
  ahead.push_back(std::move(step));
}

} // namespace greta::llm
