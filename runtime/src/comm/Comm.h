// Comm.h: a communicator: collectives of several ranks, each with a device, in
// the order of the streams that queue them.
//
//   greta_comm_* (ApiComm.cpp)  checks arguments, queues a Collective
//   Comm         one thread that runs them in order on a transport
//   Transport    moves and reduces: NcclTransport.cpp, HostTransport.cpp
//   Group        what the ranks share: a segment of the host's memory, who is
//                alive, who gave up
//
// A collective begins when the work before it in its stream is done. If the
// transport and the stream share counters, the device does all the waiting, and
// a failure is told by the next collective or whoever waits for the stream.
// Otherwise the stream's next call that queues work behind the collective waits
// until it has ended (greta_stream::settle), and throws its failure.
#ifndef GRETA_RUNTIME_COMM_COMM_H
#define GRETA_RUNTIME_COMM_COMM_H

#include "Backend.h"
#include "comm/Group.h"
#include "comm/Reduce.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>

namespace greta::rt::comm {

enum class Kind : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  AllToAll,
  Exchange
};
const char *name(Kind What);

// A transfer of an exchange: bytes that go to a rank, or come from it.
struct Transfer {
  MemoryRef Memory;
  size_t Offset, Bytes;
  uint32_t Peer;
  bool Receives;
};

struct Collective {
  Kind What = Kind::Exchange;
  Element Type = Element::U8;
  Reduction Op = Reduction::Sum;
  uint32_t Root = 0;
  // The number of elements that each rank gives (AllReduce, AllGather,
  // Broadcast), gets (ReduceScatter), or gives to each rank (AllToAll).
  size_t Count = 0;
  MemoryRef To, From;
  size_t ToOffset = 0, FromOffset = 0;
  std::vector<Transfer> Transfers; // only for an exchange
  // The collective waits for one of these of its stream, or for nothing.
  std::shared_ptr<Event> Ready;
  std::shared_ptr<Counter> After;
  uint64_t AfterValue = 0;
  uint64_t Raises = 0; // value for the transport's counter at its end

  size_t bytes() const { return Count * bytesOf(Type); }
  // Returns a hash of the fields that all ranks have to agree on, and of
  // `Before`, an earlier hash.
  static constexpr uint64_t NoHash = 1469598103934665603u;
  uint64_t hash(uint64_t Before = NoHash) const {
    for (uint64_t Word : {uint64_t(What), uint64_t(Type), uint64_t(Op),
                          uint64_t(Root), uint64_t(Count)})
      Before = (Before ^ Word) * 1099511628211u;
    return Before;
  }
  bool waits() const { return Ready || After; }
};

// Tells when a queued collective has ended.
struct Ticket {
  // If this is not null, only the stream waits, for this counter.
  std::shared_ptr<Counter> Until;
  uint64_t UntilValue = 0;
  // Otherwise the host waits, and then the stream waits for `Ends`.
  std::atomic<bool> Done{false};
  std::optional<Error> Failure;
  std::vector<std::shared_ptr<Event>> Ends;
};

// One way to run collectives. All calls come from one thread at a time.
class Transport {
public:
  virtual ~Transport() = default;
  // Queues it behind those before. The ticket gets its `Ends`.
  virtual void begin(const Collective &C, const std::shared_ptr<Ticket> &T) = 0;
  // Goes on with what was queued, without waiting; returns whether anything
  // happened. Throws when a peer is gone or nothing happened for too long.
  virtual bool progress() = 0;
  // Returns how many queued collectives are done.
  virtual uint64_t done() const = 0;
  // Ends what was queued at once. Nothing is begun after it.
  virtual void abort() = 0;
  // Returns the counter that it raises, in the order of collectives, when one
  // is done whose memories are all shared; null if it shares none with streams.
  virtual std::shared_ptr<Counter> counter() const { return nullptr; }
  // Drops the counter, as another rank has none.
  virtual void dropCounter() {}
  // Returns whether it takes shared memory as it is, and other by a copy.
  virtual bool wantsSharedMemory() const { return false; }
};

std::unique_ptr<Transport> makeHostTransport(std::shared_ptr<Device> D,
                                             Group &G);
// Returns the words by which a rank tells the others of its NCCL and its device
// there; throws if something is missing. The transport takes the words of all.
class Accelerator;
std::string ncclOffer(const std::shared_ptr<Device> &D, const Group &G,
                      std::shared_ptr<Accelerator> &A);
std::unique_ptr<Transport>
makeNcclTransport(std::shared_ptr<Device> D, Group &G,
                  std::shared_ptr<Accelerator> A,
                  const std::vector<std::string> &Offers);

class SmallReduce;

class Comm {
public:
  struct Options {
    Group::Place At;
    uint32_t Rank = 0, Size = 1;
    uint64_t TimeoutMs = 120000;
    size_t StagingBytes = 0;
    uint32_t Ways = 0;
  };
  Comm(std::shared_ptr<Device> D, const Options &O);
  ~Comm();
  Comm(const Comm &) = delete;

  // Returns whether it takes shared memory as it is, and other by a copy.
  bool wantsSharedMemory() const { return Way->wantsSharedMemory(); }
  // Returns whether the device orders it and its stream.
  bool ordersOnDevice(const Collective &C) const;
  std::shared_ptr<Ticket> queue(Collective C);
  // Returns whether one kernel in the stream does it, also in a graph.
  bool isSmall(const Collective &C) const;
  void queueSmall(Stream &S, const Collective &C);
  // Waits until it has ended; throws its failure.
  void wait(Ticket &T);
  // Throws if it has ended.
  void check();
  // Throws in a process that was forked from the rank's.
  void checkProcess() const;
  // Ends the communicator on every rank.
  void abort(const std::string &Why);
  void describe(nlohmann::json &Out);

  const std::shared_ptr<Device> On;
  const uint32_t Rank, Size;

private:
  void choose(uint32_t Ways);
  void chooseSmall();
  std::string testSmall(SmallReduce &S);
  // Returns the first complaint of a rank, "" if no rank has any.
  std::string agree(const std::string &Why);
  // Returns why the transport is wrong; "" if it is right on this rank.
  std::string test(Transport &T);
  std::string testOn(Transport &T, bool OnDevice);
  void work();
  void take();
  void finish(uint64_t Upto);
  void end(const Error &E);

  std::unique_ptr<Group> G;
  std::unique_ptr<Transport> Way;
  std::unique_ptr<SmallReduce> Small;
  std::atomic<bool> SmallUsed{false};
  std::string WayName;
  std::map<std::string, std::string> Left; // ways left out, and why

  std::mutex Lock; // guards the members below
  std::condition_variable Queued, Ended;
  std::deque<std::pair<Collective, std::shared_ptr<Ticket>>> Queue;
  std::deque<std::shared_ptr<Ticket>> Begun; // the worker's, without the lock
  uint64_t Finished = 0;                     // the worker's
  uint64_t Promised = 0; // counter's value that streams wait for
  std::optional<Error> Failure;
  bool Closing = false;
  std::atomic<bool> Waiting{false}; // the worker has something to do
  std::thread Worker;
};

// Keeps communicators whose failures nobody has heard of yet.
class Comms {
public:
  void add(const std::shared_ptr<Comm> &C) {
    if (std::find(All.begin(), All.end(), C) == All.end())
      All.push_back(C);
  }
  void add(const Comms &Others) {
    for (const std::shared_ptr<Comm> &C : Others.All)
      add(C);
  }
  // Throws the failure of one; then, and if there is none, it is empty.
  void tell() {
    std::vector<std::shared_ptr<Comm>> Now;
    Now.swap(All);
    for (const std::shared_ptr<Comm> &C : Now)
      C->check();
  }

private:
  std::vector<std::shared_ptr<Comm>> All;
};

} // namespace greta::rt::comm
#endif
