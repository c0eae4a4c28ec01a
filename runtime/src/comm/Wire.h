// Wire.h: what ranks on several hosts say to each other, by UCX. In: words and
// bytes of a rank, in an order for each other rank. Out: the same at the other
// one, in that order, and which ranks are gone.
//
// One thread does all that UCX does. A message is a head, and behind it the
// bytes that it announces. A head's words are checked before anything is
// received: the ranks' ports are open to whoever reaches them.
#ifndef GRETA_RUNTIME_COMM_WIRE_H
#define GRETA_RUNTIME_COMM_WIRE_H

#include "comm/Group.h"
#include "comm/Rendezvous.h"
#include "comm/UcxApi.h"

#include <deque>
#include <mutex>
#include <thread>

namespace greta::rt::comm {

struct Ucx;

class Wire {
public:
  enum class What : uint32_t {
    Word,   // a word of the rank's state gets a value
    Text,   // bytes of the rank's state
    Data,   // bytes of the group's memory
    End,    // the communicator has ended; the reason
    Leaves, // nothing follows
    Heard   // all until `Leaves` has come
  };
  // The owner takes what comes, on the wire's thread.
  struct Owner {
    virtual ~Owner() = default;
    // Sets a word; returns whether the rank may.
    virtual bool set(uint32_t From, uint64_t At, uint64_t Value) = 0;
    // Returns the place for bytes of a rank; null if it may not write there.
    virtual char *place(uint32_t From, What Kind, uint64_t At,
                        uint64_t Bytes) = 0;
    virtual void ended(const std::string &Why) = 0;
  };

  // Meets the other ranks, and sets `Staging` to rank 0's value.
  Wire(const std::string &Address, const Group::Id &Name, uint32_t Rank,
       uint32_t Size, std::chrono::milliseconds Timeout, uint64_t &Staging);
  // Waits a while for the others to hear all.
  ~Wire();
  Wire(const Wire &) = delete;

  void start(Owner &For);
  // Sends; `Bytes` stay as they are until the other rank has them.
  void send(uint32_t To, What Kind, uint64_t At, uint64_t Value,
            const char *Bytes = nullptr);
  // Sends a text and keeps its bytes.
  void sendText(uint32_t To, What Kind, uint64_t At, std::string Text);
  bool isGone(uint32_t R) const { return Peers[R].IsGone; }
  std::string library() const;

private:
  struct Head {
    What Kind;
    uint32_t Unused;
    uint64_t At, Value; // Value: how many bytes follow
  };
  struct Message {
    Head H;
    std::string Own;
    const char *Bytes;
    void *Requests[2];
  };
  struct Peer {
    ucp_ep_h End = nullptr;
    Head H{};
    std::string Text; // the reason that arrives
    void *Request = nullptr;
    bool InBody = false, HasHeard = false;
    // When its end became known; its earlier messages may still come.
    std::optional<Group::Clock::time_point> Lost;
    std::atomic<bool> IsGone{false};
  };

  void push(uint32_t To, Message M);
  void run();
  bool post();
  bool sweep();
  bool receive(uint32_t R);
  void expect(uint32_t R, void *To, size_t Bytes);
  bool accept(uint32_t R);
  void watch();
  void lose(uint32_t R);
  bool hasFailed(uint32_t R, const std::string &Why);
  bool isQuiet() const;
  void sleep();
  std::string open();
  void destroy();
  static void onError(void *Of, ucp_ep_h, ucs_status_t);

  const uint32_t Rank, Size;
  std::shared_ptr<Ucx> U;
  ucp_context_h Context = nullptr;
  ucp_worker_h Worker = nullptr;
  int WorkerFd = -1;
  Met All;
  std::deque<Peer> Peers;
  Owner *For = nullptr;
  std::deque<Message> Under; // messages under way
  std::mutex Lock;
  std::deque<std::pair<uint32_t, Message>> Box;
  std::atomic<bool> IsFull{false}; // of the box
  std::atomic<bool> Sleeps{false}, Closing{false};
  std::thread Thread;
};

} // namespace greta::rt::comm
#endif
