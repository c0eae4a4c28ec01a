//===- Distributed.h - collectives of torch.distributed -------------------===//
//
// In: torch.distributed's calls with tensors on a device rdna. Out: collectives
// of the runtime's communicator (greta_comm_*), and c10d's Works for them.
//
// A collective has a stream of the runtime to itself, which waits for the
// stream in use; Work::wait() has the stream in use wait for the collective. A
// thread of the backend, the watch, follows each collective in turn: where the
// device does not order it, the watch and not the caller waits on the host.
// Behind a collective the watch copies what came to where it belongs, completes
// its future, and frees its tensors when the device has done it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_DISTRIBUTED_H
#define GRETA_PYTHON_TORCH_DISTRIBUTED_H

#include "Tensors.h"

#include <ATen/core/ivalue.h>
#include <condition_variable>
#include <deque>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <unistd.h>

namespace greta::torch_device {

/// The place of a tensor's elements, which are dense.
struct Span {
  explicit Span(const at::Tensor &tensor);
  greta_buffer *buffer;
  size_t offset;
};

/// A collective, or several that go together.
class Work final : public c10d::Work {
public:
  using Milliseconds = std::chrono::milliseconds;
  using Operation = std::function<void(greta_comm *, greta_stream *)>;

  Work(int rank, c10d::OpType type, Milliseconds limit)
      : c10d::Work(rank, type), limit(limit) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(Milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void blockCurrentStream() override { wait(kNoTimeout); }
  std::vector<at::Tensor> result() override { return outputs; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence; }

private:
  friend class Collectives;
  friend class Watch;

  /// Takes an operand that is read: returns a dense tensor of its elements.
  at::Tensor given(const at::Tensor &tensor);
  /// Takes an operand that is written: returns it, or a dense tensor whose
  /// elements are copied to it afterwards.
  at::Tensor taken(const at::Tensor &tensor);
  /// Returns a tensor that is the work's own.
  at::Tensor room(at::IntArrayRef shape, const at::Tensor &like);
  void use(const at::Tensor &tensor);
  void copyLater(const at::Tensor &to, const at::Tensor &from);
  void transfer(const at::Tensor &tensor, int peer, bool receives);

  const Milliseconds limit; // for wait(); negative: none
  c10::DeviceIndex index = -1;
  bool blocksHost = false; // wait() blocks until it is done
  uint64_t sequence = 0;
  std::vector<Operation> operations;
  std::vector<greta_comm_transfer> transfers; // together, behind operations
  std::vector<std::pair<at::Tensor, at::Tensor>> copies; // to, from
  std::vector<at::Tensor> kept, outputs;
  std::unique_ptr<Stream> stream;
  std::optional<Event> end; // set if completed_ without an exception_
  c10::intrusive_ptr<c10::ivalue::Future> future;
};

/// A thread that follows a backend's collectives on one device.
class Watch {
public:
  static std::shared_ptr<Watch> start(c10::DeviceIndex index);
  ~Watch();
  /// Closes it, so that nothing is added any more. Returns when all collectives
  /// have ended, but at once in the thread itself: a future's callback may have
  /// had the last reference to the backend.
  void close();
  bool isThisThread() const {
    return std::this_thread::get_id() == thread.get_id();
  }
  void add(c10::intrusive_ptr<Work> work);
  /// Returns a stream that no collective is in.
  std::unique_ptr<Stream> takeStream();

  const c10::DeviceIndex index;

private:
  explicit Watch(c10::DeviceIndex index);
  void run();
  void follow(Work &work);
  void settle(Work &work);

  const int64_t behind; // the stream behind collectives
  std::mutex lock;
  std::condition_variable changed;
  std::deque<c10::intrusive_ptr<Work>> begun;   // guarded by the lock
  std::vector<std::unique_ptr<Stream>> streams; // guarded by the lock
  bool isClosing = false;                       // guarded by the lock
  std::deque<c10::intrusive_ptr<Work>> settled; // the thread's own
  std::thread thread;
};

/// The backend of a group of ranks. Its first collective, or a device that
/// init_process_group gets, makes the communicator.
class Collectives final : public c10d::Backend {
public:
  using Tensors = std::vector<at::Tensor>;
  using Milliseconds = std::chrono::milliseconds;
  using Handle = c10::intrusive_ptr<c10d::Work>;

  Collectives(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
              Milliseconds timeout);
  ~Collectives() override { shutdown(); }
  /// Called when the last reference has gone and only weak ones are left.
  void release_resources() override {
    shutdown();
    store.reset(); // its server or file goes with the group
  }

  const std::string getBackendName() const override { return "greta"; }
  void setTimeout(Milliseconds to) override;
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  Handle endCoalescing() override;
  void eagerConnectSingleDevice(at::Device device) override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override;
  void abort() override;
  void shutdown() override;

  Handle broadcast(Tensors &, const c10d::BroadcastOptions &) override;
  Handle allreduce(Tensors &, const c10d::AllreduceOptions &) override;
  Handle allreduce_coalesced(Tensors &,
                             const c10d::AllreduceCoalescedOptions &) override;
  Handle reduce(Tensors &, const c10d::ReduceOptions &) override;
  Handle allgather(std::vector<Tensors> &, Tensors &,
                   const c10d::AllgatherOptions &) override;
  Handle _allgather_base(at::Tensor &, at::Tensor &,
                         const c10d::AllgatherOptions &) override;
  Handle
  allgather_into_tensor_coalesced(Tensors &, Tensors &,
                                  const c10d::AllgatherOptions &) override;
  Handle gather(std::vector<Tensors> &, Tensors &,
                const c10d::GatherOptions &) override;
  Handle scatter(Tensors &, std::vector<Tensors> &,
                 const c10d::ScatterOptions &) override;
  Handle reduce_scatter(Tensors &, std::vector<Tensors> &,
                        const c10d::ReduceScatterOptions &) override;
  Handle _reduce_scatter_base(at::Tensor &, at::Tensor &,
                              const c10d::ReduceScatterOptions &) override;
  Handle
  reduce_scatter_tensor_coalesced(Tensors &, Tensors &,
                                  const c10d::ReduceScatterOptions &) override;
  Handle alltoall_base(at::Tensor &, at::Tensor &, std::vector<int64_t> &,
                       std::vector<int64_t> &,
                       const c10d::AllToAllOptions &) override;
  Handle alltoall(Tensors &, Tensors &, const c10d::AllToAllOptions &) override;
  Handle send(Tensors &, int peer, int tag) override;
  Handle recv(Tensors &, int peer, int tag) override;
  Handle barrier(const c10d::BarrierOptions &) override;

private:
  using WorkPtr = c10::intrusive_ptr<Work>;

  /// Adds a call's collectives to a work of its own, which is issued, or to the
  /// work of calls that are coalesced.
  Handle perform(c10d::OpType type, Milliseconds limit,
                 const std::function<void(Work &)> &add);
  Handle issue(WorkPtr work);
  Handle passOn(Tensors &, int peer, bool receives);

  // `to` comes from taken().
  void addAllReduce(Work &work, const at::Tensor &to, const at::Tensor &from,
                    const c10d::ReduceOp &op);
  void addReduceScatter(Work &work, const at::Tensor &to,
                        const at::Tensor &from, const c10d::ReduceOp &op);
  void addAllGather(Work &work, const at::Tensor &to, const at::Tensor &from);
  void addCopy(Work &work, const at::Tensor &to, const at::Tensor &from);
  void addExchange(Work &work, const at::Tensor &to, const at::Tensor &from,
                   int peer);
  void connect(c10::DeviceIndex index);
  bool areOnOneHost(c10::DeviceIndex index);
  /// Takes the lock. It fails in a forked process, as another thread of the
  /// first process may have had it.
  std::unique_lock<std::mutex> locked();

  c10::intrusive_ptr<c10d::Store> store; // kept until the last reference goes
  const std::string prefix;              // of this group's keys in the store
  std::mutex lock;                       // guards the members below
  Milliseconds timeout;
  uint64_t issued = 0;
  WorkPtr coalesced; // set while calls are coalesced
  std::unique_ptr<Comm> comm;
  std::shared_ptr<Watch> watch;
  bool isShut = false;
  const pid_t process = getpid(); // the process whose threads follow it
};

/// Makes Python's object of a new backend from its objects of c10d.
PyObject *makeCollectives(PyObject *store, int rank, int size, double seconds);
/// Ends all backends while Python still runs callbacks.
void endCollectives();

} // namespace greta::torch_device

#endif
