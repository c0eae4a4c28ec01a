// Team.h: engines that compute a model together, each with a device: threads of
// one process, or processes. In: calls of the first one, which the application
// has. Out: the same calls for the others, in their order, and what all agree
// on while they are made.
#ifndef GRETA_LLM_TEAM_H
#define GRETA_LLM_TEAM_H

#include "engine/Call.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <greta_runtime.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace greta::llm {

class Engine;

class Team {
public:
  explicit Team(size_t size) : size(size) {}
  virtual ~Team() = default;

  // All come together while they are made; the least of their numbers. Throws
  // if one has failed.
  virtual int64_t least(int64_t number) = 0;
  // The same; what each says of itself, by number.
  struct Member {
    std::string device;
    uint64_t free = 0;  // bytes; 0: not known
    uint64_t alike = 0; // a hash of what all are to have alike
  };
  virtual std::vector<Member> meet(size_t number, const Member &member) = 0;
  // Says where the communicator of their sums is made.
  virtual void place(greta_comm_options &options) const = 0;
  // Engines of other processes are told that there is no more, and why.
  virtual void abort(const std::string &why) { (void)why; }
  void fail(const std::string &why);
  // Why one has failed; "" if none has, and none does for so long.
  std::string failure(std::chrono::milliseconds patience = {});

  const size_t size;

protected:
  std::mutex lock;
  std::condition_variable changed;
  std::string why;
};

// The engines are threads of this process.
class Threads : public Team {
public:
  explicit Threads(size_t size)
      : Team(size), id(Comm::uniqueId()), members(size) {}
  int64_t least(int64_t number) override;
  std::vector<Member> meet(size_t number, const Member &member) override;
  void place(greta_comm_options &options) const override { options.id = &id; }

private:
  const greta_comm_id id;
  size_t came = 0, round = 0;
  int64_t smallest = INT64_MAX, agreed = 0;
  std::vector<Member> members;
};

// The engines are processes, on one machine or several. They have a
// communicator of their own between their hosts' memories.
class Ranks : public Team {
public:
  // Waits for all, at the address of rank 0.
  Ranks(const std::string &address, size_t number, size_t size);
  int64_t least(int64_t number) override;
  std::vector<Member> meet(size_t number, const Member &member) override;
  void place(greta_comm_options &options) const override {
    options.address = address.c_str();
  }
  void abort(const std::string &why) override { comm->fail(why); }

  // Rank 0 sends calls, the others receive them. One thread at a time.
  void send(const Call &call);
  Call receive();

private:
  void exchange(std::string &bytes);

  const std::string address;
  const size_t number;
  Runtime runtime;
  Stream stream;
  Buffer buffer;
  std::unique_ptr<Comm> comm;
};

// The meeting of so many processes (--meet). One that fails tells the others
// why, also before they have met, so that they do not wait for it.
class Meeting {
public:
  Meeting(std::string address, size_t number, size_t size)
      : address(std::move(address)), number(number), size(size) {}
  // Waits for all.
  std::shared_ptr<Ranks> begin();
  // This process ends with an error.
  void fail(const std::string &why);
  // It ends; where the others have not met it, they need a reason.
  void end();

private:
  void decline(const std::string &why);

  const std::string address;
  const size_t number, size;
  bool hasBegun = false;
  std::shared_ptr<Ranks> ranks;
};

// Calls that wait for their thread.
class Calls {
public:
  void add(std::shared_ptr<const Call> call);
  // Says that no call comes behind the ones that were added.
  void end();
  // The next one; null where none has come in time, or where none comes.
  std::shared_ptr<const Call>
  next(std::optional<std::chrono::milliseconds> time = {});
  bool hasEnded();

private:
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::shared_ptr<const Call>> calls;
  bool ends = false;
};

// One of the others, or the way to all of them.
class Follower {
public:
  virtual ~Follower() = default;
  virtual void add(std::shared_ptr<const Call> call) = 0;
};

// An engine in a thread.
class ThreadFollower : public Follower {
public:
  ThreadFollower(std::shared_ptr<Team> team,
                 std::function<std::unique_ptr<Engine>()> make);
  ~ThreadFollower() override;
  void add(std::shared_ptr<const Call> call) override {
    calls.add(std::move(call));
  }

private:
  void run(const std::function<std::unique_ptr<Engine>()> &make);

  std::shared_ptr<Team> team;
  Calls calls;
  std::thread thread;
};

// Tells the other processes, also that this one is there; `lost` is called with
// the reason when one of them is gone.
class RankFollowers : public Follower {
public:
  RankFollowers(std::shared_ptr<Ranks> ranks,
                std::function<void(const std::string &)> lost);
  ~RankFollowers() override;
  void add(std::shared_ptr<const Call> call) override {
    calls.add(std::move(call));
  }

private:
  void run();

  std::shared_ptr<Ranks> ranks;
  std::function<void(const std::string &)> lost;
  Calls calls;
  std::thread thread;
};

} // namespace greta::llm
#endif
