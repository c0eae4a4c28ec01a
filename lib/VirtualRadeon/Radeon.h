//===- Radeon.h - the card and the programs' connections to it --*- C++ -*-===//
//
// The Machine is the card: the simulator of its chip, a clock, and the thread
// that works through submissions in order. A Connection is what a program has
// opened /dev/dri/renderD128 for: handles of memory, contexts and
// synchronization objects, and a window of addresses.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_VIRTUALRADEON_RADEON_H
#define GRETA_VIRTUALRADEON_RADEON_H

#include "Chips.h"
#include "Memory.h"
#include "Sync.h"
#include "greta/Sim/Simulator.h"
#include <atomic>
#include <deque>
#include <thread>

namespace greta::radeon {

class CommandProcessor;

/// Prints one line "virtual Radeon: ..." to the standard error output.
void say(const llvm::Twine &text);

/// A driver's context: its submissions are worked through until one fails; then
/// all later ones are dropped, as after a reset of the hardware.
struct Context {
  std::atomic<bool> lost{false};
  /// Registers and fences of a ring, by kind of engine and number.
  struct Ring {
    std::shared_ptr<CommandProcessor> processor;
    uint64_t submitted = 0;
    std::map<uint64_t, FencePtr> fences; ///< those that may be unsignaled
  };
  std::map<std::pair<uint32_t, uint32_t>, Ring> rings;
};

struct IndirectBuffer {
  uint64_t address;
  uint32_t dwords;
};

struct Submission {
  std::shared_ptr<Context> context;
  std::shared_ptr<CommandProcessor> processor;
  std::vector<IndirectBuffer> buffers;
  std::vector<FencePtr> waits;
  FencePtr done;
  /// The number of the submission is written here, for programs that poll.
  std::shared_ptr<Buffer> fenceBuffer;
  uint64_t fenceOffset = 0, number = 0;
};

class Machine {
public:
  /// The one that GRETA_VIRTUAL_RADEON names, or null.
  static Machine *get();

  const Chip &chip() const { return card; }
  sim::Device &device() { return *simulator; }
  unsigned checks() const { return chosenChecks; }
  bool isTraced() const { return traced; }
  /// Dispatches of more than this many waves run only the workgroups that their
  /// estimates need. Smaller ones take no time, and programs depend on them:
  /// the runtime's probe of layouts, and the driver's copies for it.
  static constexpr uint64_t fewWaves = 128;
  bool isEstimateOnly() const { return estimateOnly; }
  /// Adds a line of JSON about a dispatch to the record, if there is one.
  void record(const sim::KernelInfo &kernel, const sim::LaunchConfig &config);

  void submit(Submission s);
  /// Waits until everything that has been submitted is done.
  bool waitIdle(int64_t deadline);

  /// The GPU's clock counter: time that the simulator models, no host time.
  uint64_t clock() const { return ticks; }
  void pass(uint64_t counts) { ticks += counts; }

  std::atomic<uint64_t> usedVram{0}, usedGtt{0};
  /// How long a packet waits for a value in memory, before it counts as a hang.
  unsigned hangMilliseconds = 10000;
  /// Instructions that a wave may execute before that is a hang: some ten
  /// seconds of simulation.
  uint64_t waveBudget = 200000000;
  uint64_t gttBytes() const;

private:
  Machine(const Chip &chip, std::unique_ptr<sim::Device> device);
  void work();

  const Chip &card;
  std::unique_ptr<sim::Device> simulator;
  unsigned chosenChecks;
  bool traced = false, estimateOnly = false;
  int recordFile = -1;
  std::atomic<uint64_t> ticks{0};
  std::mutex lock;
  std::condition_variable arrived;
  std::deque<Submission> queue;
  FencePtr last; ///< of the latest submission
  bool started = false;
};

/// Handles count from 1.
template <class T> class Handles {
public:
  uint32_t add(std::shared_ptr<T> t) {
    while (all.count(next) || !next)
      ++next;
    all[next] = std::move(t);
    return next++;
  }
  std::shared_ptr<T> find(uint32_t handle) const {
    auto at = all.find(handle);
    return at == all.end() ? nullptr : at->second;
  }
  bool remove(uint32_t handle) { return all.erase(handle); }
  const std::map<uint32_t, std::shared_ptr<T>> &entries() const { return all; }

private:
  std::map<uint32_t, std::shared_ptr<T>> all;
  uint32_t next = 1;
};

struct Connection {
  explicit Connection(Machine &machine);
  ~Connection();
  /// An ioctl of DRM: 0 or an error number.
  int control(unsigned long request, void *argument);

  Machine &machine;
  std::mutex lock; ///< of what follows
  Handles<Buffer> buffers;
  Handles<Context> contexts;
  Handles<SyncObject> objects;
  Handles<std::vector<uint32_t>> lists; ///< of buffers
  AddressSpace space;
};

// The groups of ioctls, by their numbers: programs were compiled with headers
// of several years, and structures have grown at their ends. The argument has
// room for any of them, with zeros behind what the program gave. 0 or an error
// number; -ENOTTY when the number is none of theirs.
int controlMemory(Connection &c, unsigned number, void *argument);
int controlSync(Connection &c, unsigned number, void *argument);
int controlQueue(Connection &c, unsigned number, void *argument);
int controlInfo(Connection &c, unsigned number, void *argument);

/// The offset at which the device file maps a buffer.
uint64_t mapOffset(uint32_t handle);

/// A file that refers to one of these beside the connections; whoever holds its
/// number can have it.
struct SharedObject {
  SyncObjectPtr object;
  FencePtr fence; ///< a sync file
};
int exportObject(SharedObject object);
std::shared_ptr<SharedObject> importObject(int file);

} // namespace greta::radeon

#endif
