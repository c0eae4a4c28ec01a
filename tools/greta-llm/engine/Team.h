// Team.h: engines that compute a model together, a thread and a device each.
// In: calls of the first one, which the application has. Out: the same calls
// for the others, in their order, and sums over all of them.
#ifndef GRETA_LLM_TEAM_H
#define GRETA_LLM_TEAM_H

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <greta_runtime.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace greta::llm {

class Engine;

class Team {
public:
  explicit Team(size_t size)
      : size(size), id(Comm::uniqueId()), members(size) {}

  // All come together while they are made; the least of their numbers. Throws
  // if one has failed.
  int64_t least(int64_t number);
  // The same; what each says of its device, by number.
  struct Member {
    std::string device;
    size_t free = 0; // bytes; 0: not known
  };
  std::vector<Member> meet(size_t number, const Member &member);
  void fail(const std::string &why);
  // Why one has failed; "" if none has.
  std::string failure();

  const size_t size;
  const greta_comm_id id;

private:
  std::mutex lock;
  std::condition_variable changed;
  size_t came = 0, round = 0;
  int64_t smallest = INT64_MAX, agreed = 0;
  std::string why;
  std::vector<Member> members;
};

// One of the others.
class Follower {
public:
  Follower(std::shared_ptr<Team> team,
           std::function<std::unique_ptr<Engine>()> make);
  ~Follower();
  void add(std::function<void(Engine &)> call);

private:
  void run(const std::function<std::unique_ptr<Engine>()> &make);

  std::shared_ptr<Team> team;
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void(Engine &)>> calls;
  bool ends = false;
  std::thread thread;
};

} // namespace greta::llm
#endif
