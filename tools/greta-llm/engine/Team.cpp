// Team.cpp: see Team.h.
#include "engine/Team.h"
#include "engine/Engine.h"

#include <algorithm>

namespace greta::llm {

int64_t Team::least(int64_t number) {
  std::unique_lock<std::mutex> guard(lock);
  size_t mine = round;
  smallest = std::min(smallest, number);
  if (++came == size) {
    agreed = smallest;
    smallest = INT64_MAX;
    came = 0;
    ++round;
    changed.notify_all();
  }
  changed.wait(guard, [&] { return round != mine || !why.empty(); });
  if (!why.empty())
    llm::fail(why);
  return agreed;
}

void Team::compare(const std::string &its) {
  std::string other;
  {
    std::lock_guard<std::mutex> guard(lock);
    if (device.empty())
      device = its;
    other = device;
  }
  if (other != its)
    llm::fail("--devices: a model is divided among equal devices, not " +
              other + " and " + its);
}

void Team::fail(const std::string &problem) {
  {
    std::lock_guard<std::mutex> guard(lock);
    if (why.empty())
      why = problem;
  }
  changed.notify_all();
}

std::string Team::failure() {
  std::lock_guard<std::mutex> guard(lock);
  return why;
}

Follower::Follower(std::shared_ptr<Team> team,
                   std::function<std::unique_ptr<Engine>()> make)
    : team(std::move(team)),
      thread([this, make = std::move(make)] { run(make); }) {}

Follower::~Follower() {
  team->fail("the first device has ended"); // while they are made
  {
    std::lock_guard<std::mutex> guard(lock);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

void Follower::add(std::function<void(Engine &)> call) {
  {
    std::lock_guard<std::mutex> guard(lock);
    calls.push_back(std::move(call));
  }
  changed.notify_all();
}

// An engine that fails ends the communicator, so that all hear of it.
void Follower::run(const std::function<std::unique_ptr<Engine>()> &make) {
  std::unique_ptr<Engine> engine;
  try {
    engine = make();
    while (true) {
      std::unique_lock<std::mutex> guard(lock);
      changed.wait(guard, [&] { return ends || !calls.empty(); });
      if (calls.empty())
        return;
      std::function<void(Engine &)> call = std::move(calls.front());
      calls.pop_front();
      guard.unlock();
      call(*engine);
    }
  } catch (const std::exception &problem) {
    team->fail(problem.what());
    if (engine)
      engine->abort();
  }
}

} // namespace greta::llm
