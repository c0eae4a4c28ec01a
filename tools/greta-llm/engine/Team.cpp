// Team.cpp: see Team.h. Also what an engine does as one of several: it makes
// the others, joins their communicator, and adds up over all.
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

std::vector<Team::Member> Team::meet(size_t number, const Member &member) {
  {
    std::lock_guard<std::mutex> guard(lock);
    members[number] = member;
  }
  least(0);
  return members;
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

// NCCL takes this memory as it is, where other memory is copied and the host
// waits for the copy.
greta::Buffer Engine::allocateForOthers(size_t bytes) {
  if (isShared())
    try {
      return runtime.allocateShared(GRETA_FD_OPAQUE, bytes);
    } catch (const greta::Error &) {
    }
  return runtime.allocate(bytes);
}

// The first one makes the others, which load their parts beside it.
void Engine::makeOthers(const Model &whole) {
  if (!isShared() || options.number)
    return;
  options.team = std::make_shared<Team>(options.devices.size());
  for (size_t number = 1; number < options.devices.size(); ++number) {
    EngineOptions its = options;
    its.number = number;
    its.device = options.devices[number];
    its.isQuiet = true;
    others.push_back(std::make_unique<Follower>(
        options.team, [its, &whole, path = packagePath] {
          return std::make_unique<Engine>(whole, path, its);
        }));
  }
}

// When all are ready, so that nobody waits for one that has failed.
void Engine::join() {
  options.team->least(0);
  greta_comm_options how{};
  how.id = &options.team->id;
  how.rank = static_cast<uint32_t>(options.number);
  how.size = static_cast<uint32_t>(options.devices.size());
  comm = std::make_unique<greta::Comm>(runtime.comm(how));
  if (!hasSums())
    return;
  for (Step &step : steps)
    for (auto &[i, layer] : step.layers)
      layer.setComm(*comm);
}

// After an error the others would wait for what does not come.
Engine::~Engine() {
  if (std::uncaught_exceptions())
    abort();
}

void Engine::abort() {
  if (comm)
    comm->abort();
}

std::string Engine::causeOf(const std::exception &problem) const {
  std::string why = isShared() ? options.team->failure() : "";
  return why.empty() ? problem.what() : why;
}

void Engine::together(const std::function<void()> &what) const {
  try {
    what();
  } catch (const greta::Error &problem) {
    throw greta::Error(problem.status(), causeOf(problem).c_str());
  }
}

std::string Engine::deviceName() const {
  std::string own = nameOfDevice(runtime), all;
  bool areEqual = true;
  for (size_t stage = 0; stage < members.size(); ++stage) {
    const std::string &name = members[(stage + 1) % members.size()].device;
    areEqual = areEqual && name == own;
    all += (stage ? " + " : "") + name;
  }
  return !isShared() ? own
         : areEqual  ? std::to_string(members.size()) + " x " + own
                     : all;
}

// The sum over the devices.
void Engine::reduce(const Buffer &of, int64_t tokens) {
  together([&] {
    comm->allReduce(stream, of, of,
                    static_cast<size_t>(tokens * model.config.width), "f32");
  });
}

} // namespace greta::llm
