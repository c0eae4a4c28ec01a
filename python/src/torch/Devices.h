//===- Devices.h - GRETA's devices as torch's device type rdna ------------===//
//
// In: names of GRETA's devices, and the runtime's C API. Out: what torch asks
// of a device type: memory that is cached by stream, streams, events and
// counters.
//
// An address of the device is the address of a tensor. A Block is the buffer
// behind a storage; blockOf() finds it by an address inside it, so views and
// storage offsets are addresses in the same block. A block that is freed waits
// in a bin of its device, stream and size, and is the next tensor's of that
// stream, in the stream's order. A block that another stream used goes back to
// the runtime, which keeps it until the work that uses it is done, and as long
// as a graph that uses it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_DEVICES_H
#define GRETA_PYTHON_TORCH_DEVICES_H

#include "greta_runtime.hpp"

#include <algorithm>
#include <atomic>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace greta::torch_device {

constexpr c10::DeviceType deviceType = c10::DeviceType::PrivateUse1;

/// This stream makes what all streams and graphs share. Users get none of its
/// number, so no graph is recorded from it. 0 is the default stream.
constexpr int64_t ownStream = 1;

/// A stream that threads use one at a time.
struct Queue {
  explicit Queue(Stream stream) : stream(std::move(stream)) {}

  template <typename Work> auto run(Work work) {
    std::lock_guard<std::mutex> guard(lock);
    return work(stream);
  }

  Stream stream;
  std::mutex lock;
};

/// Memory of tensors that were made while a graph was recorded and have ended.
/// The next tensors of that graph take it, and of graphs that share it.
struct GraphMemory {
  uint64_t id;
  std::map<size_t, std::vector<Buffer>> left; // memory by size
};

/// A set of stream numbers. The last bit stands for all that have no bit.
class StreamSet {
public:
  StreamSet() = default;
  StreamSet(StreamSet &&other) : bits(other.take()) {}

  static constexpr int64_t last = 63;
  static uint64_t bitOf(int64_t stream) {
    return uint64_t(1) << std::min(stream, last);
  }
  void add(int64_t stream) {
    if (~bits.load(std::memory_order_relaxed) & bitOf(stream))
      bits |= bitOf(stream);
  }
  /// Empties the set, and returns its bits.
  uint64_t take() { return bits.exchange(0); }

private:
  std::atomic<uint64_t> bits{0};
};

/// The memory of one storage.
struct Block {
  Buffer buffer;
  uint64_t address;
  size_t requested;
  c10::DeviceIndex device;
  int64_t stream;                     // in use when it was made
  bool isShared;                      // another stream used it
  std::shared_ptr<GraphMemory> graph; // made for this graph
  uint64_t number = 0;                // unique in the process
  StreamSet users;               // users of a graph's memory since a replay
  std::shared_ptr<Event> filled; // its stream filled it unasked
  size_t size() const { return buffer.size(); }

  /// Notes that a stream is about to be asked for work that reads or writes it.
  void usedBy(int64_t user) {
    if (user != stream)
      usedByOther(user);
    if (graph)
      users.add(user);
  }

private:
  void usedByOther(int64_t user);
};

/// Returns the bytes that the driver gave and nobody uses.
inline uint64_t unusedOf(const greta_memory &memory) {
  return memory.reserved - std::min(memory.reserved, memory.in_use);
}

/// A buffer of the runtime: a tensor's, or one that waits for the next.
struct Piece {
  uint64_t address;
  size_t size, requested; // bytes; requested by the tensor
  int64_t stream;         // -1: any stream that replays the graph
  uint64_t graph;         // 0: none
  bool isUsed;
};

/// One of torch's indices: a device of GRETA, opened when it is first used.
class Device {
public:
  Device(std::string spec, c10::DeviceIndex index)
      : spec(std::move(spec)), index(index) {}

  const Runtime &runtime();
  Queue &queue(int64_t stream);
  /// Returns one of the streams that users share.
  int64_t makeStream();
  /// Returns a stream that nobody else gets until it is released.
  int64_t reserveStream();
  void releaseStream(int64_t stream);
  size_t streamCount();
  /// Waits for all of its streams, then throws what failed in any.
  void synchronize();
  /// Makes a stream wait for the work of others in a StreamSet. A stream that
  /// is being recorded neither waits nor is waited for.
  void await(int64_t stream, uint64_t others);

  /// Returns memory for the stream in use; throws OutOfMemoryError.
  Block *allocate(size_t bytes, int64_t stream);
  void release(Block *block);
  /// Takes another library's memory, which no other tensor gets.
  Block *adopt(Buffer buffer);
  /// Tensors of the stream take a graph's memory from now on: the one of this
  /// number, or new memory.
  std::shared_ptr<GraphMemory> beginCapture(int64_t stream, uint64_t id);
  void endCapture(int64_t stream);
  bool isCapturing(int64_t stream);

  /// Gives memory that no tensor has back to the driver.
  void emptyCache();
  /// Returns the block that an address lies in, its end included; null: none.
  Block *blockOf(uint64_t address);
  std::string memorySummary();
  std::vector<Piece> pieces();
  /// Returns a small buffer that stands for tensors without elements.
  greta_buffer *placeholder();

  c10::CachingDeviceAllocator::DeviceStats stats();
  void resetStats(bool peaks);
  greta_memory memory() { return runtime().memory(); }

  const std::string spec;
  const c10::DeviceIndex index;

private:
  using Bin = std::pair<int64_t, size_t>; // stream and size

  Block *enter(Block block);
  Buffer take(size_t bytes, int64_t stream, size_t requested,
              GraphMemory *graph);
  void clearBins();

  std::mutex lock;
  std::shared_ptr<const Runtime> opened;
  int forksBefore = 0; // forks before it was opened
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<int64_t> pool, released; // users' streams, and unused ones
  size_t nextOfPool = 0;
  std::multimap<uint64_t, std::unique_ptr<Block>> blocks; // by address
  std::map<Bin, std::vector<Buffer>> bins;
  std::map<int64_t, std::shared_ptr<GraphMemory>> captures; // by stream
  std::map<uint64_t, std::weak_ptr<GraphMemory>> graphs;
  Buffer none;
  c10::CachingDeviceAllocator::DeviceStats counters;
};

/// Opens a device of GRETA, or finds the one that its arrays are on, whose
/// memory may be a tensor's, too. It takes Python's lock.
using OpenDevice =
    std::function<std::shared_ptr<const Runtime>(const std::string &spec)>;
/// Sets which devices there are; call it before the first is used.
void configure(const std::vector<std::string> &specs, OpenDevice open);
c10::DeviceIndex deviceCount() noexcept;
/// Returns a device; a negative index is the one in use.
Device &device(c10::DeviceIndex index);

c10::DeviceIndex currentDevice() noexcept;
void setCurrentDevice(c10::DeviceIndex index);
int64_t currentStream(c10::DeviceIndex index) noexcept;
int64_t exchangeStream(c10::DeviceIndex index, int64_t stream) noexcept;
inline Queue &currentQueue(c10::DeviceIndex index) {
  return device(index).queue(currentStream(index));
}

/// Memory of the host that the device reaches.
struct Pinned {
  Buffer buffer;
  char *begin;
};
void *allocatePinned(size_t bytes);
void releasePinned(void *pointer);
/// Returns the memory that a pointer of the host lies in, or null.
std::shared_ptr<Pinned> pinnedOf(const void *pointer);

/// Registers the functions that torch asks of a device type, at module load.
void registerBackend();

/// Registers the device type's graphs by the name that torch looks up.
void registerGraphs(const std::string &name);

/// Gives autograd's engine the threads that it lacks: it starts one for each
/// device at the process's first backward(), which may have been before these
/// devices were there.
void joinAutograd();

} // namespace greta::torch_device

#endif
