// Guides.cpp: see Guides.h.
#include "server/Guides.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace greta::llm {

static bool allows(const std::vector<uint32_t> &mask, int32_t token) {
  auto number = static_cast<size_t>(token);
  return number / 32 < mask.size() && (mask[number / 32] >> number % 32 & 1);
}

static bool isEmpty(const std::vector<uint32_t> &mask) {
  return std::all_of(mask.begin(), mask.end(),
                     [](uint32_t word) { return word == 0; });
}

bool Guide::take(const std::string &bytes) {
  isBehind = true;
  guess({}, {});
  try {
    if (!matcher.take(bytes))
      throw std::runtime_error("a token does not fit the grammar");
  } catch (const std::exception &problem) {
    why = problem.what();
  }
  return why.empty();
}

void Guide::guess(std::vector<int32_t> tokens, std::vector<std::string> texts) {
  guessed = std::move(tokens);
  guessedTexts = std::move(texts);
  behind.clear();
}

/// Keeps the guesses that may come and behind which something may come. An end
/// is none of them: nothing follows it.
void Guide::checkGuesses() {
  behind = matcher.masksBehind(guessedTexts, ends);
  size_t count = 0;
  const std::vector<uint32_t> *before = words;
  for (; count < behind.size(); before = &behind[count++])
    if (!allows(*before, guessed[count]) ||
        std::find(ends.begin(), ends.end(), guessed[count]) != ends.end() ||
        isEmpty(behind[count]))
      break;
  guessed.resize(count);
  behind.resize(count);
}

void Guide::compute() {
  try {
    words = &matcher.mask(ends);
    if (isEmpty(*words))
      throw std::runtime_error("no token of the model fits the grammar here");
    checkGuesses();
  } catch (const std::exception &problem) {
    why = problem.what();
  }
}

Guides::Guides(unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    try {
      threads.emplace_back([this] { run(); });
    } catch (const std::system_error &) { // there may be no more threads
      if (threads.empty())
        throw;
      break;
    }
}

Guides::~Guides() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  asked.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void Guides::ask(std::shared_ptr<Guide> guide) {
  guide->ready = guide->isLate = guide->isBehind = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    guide->due = work + (guide->isNew ? firstWork : guide->matcher.lastWork());
    open.push_back(std::move(guide));
  }
  asked.notify_one();
}

void Guides::wait(double seconds, const std::function<bool()> &holds) {
  std::unique_lock<std::mutex> lock(mutex);
  done.wait_for(lock, std::chrono::duration<double>(seconds), holds);
}

bool Guides::computeNext() {
  std::unique_lock<std::mutex> lock(mutex);
  auto first = std::min_element(
      open.begin(), open.end(),
      [](const auto &a, const auto &b) { return a->due < b->due; });
  if (first == open.end())
    return false;
  std::shared_ptr<Guide> guide = std::move(*first);
  open.erase(first);
  lock.unlock();
  // Its answer may be gone.
  if (guide.use_count() > 1)
    guide->compute();
  lock.lock();
  int64_t took = guide->matcher.lastWork();
  work += took;
  if (std::exchange(guide->isNew, false))
    firstWork = firstWork ? firstWork + (took - firstWork) / 4 : took;
  guide->ready = true;
  done.notify_all();
  lock.unlock(); // nobody waits while the guide ends, whose answer may be gone
  return true;
}

void Guides::run() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      asked.wait(lock, [&] { return isEnding || !open.empty(); });
      if (isEnding)
        return;
    }
    computeNext();
  }
}

} // namespace greta::llm
