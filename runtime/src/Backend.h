// Backend.h: what a backend provides. Function.cpp turns a launch into one
// argument block per kernel, the same bytes for every GPU backend
// (docs/internals/package.md, "Argument ABI"); the backends only allocate,
// order and run.
//
// Lifetimes: a stream keeps the memory and the code of an operation until the
// work is done, a graph as long as it lives.
//
// A launch allocates nothing on the host once a stream has seen one like it:
// what is passed here points into the caller's, and the lists that a stream
// keeps are used again.
#ifndef GRETA_RUNTIME_BACKEND_H
#define GRETA_RUNTIME_BACKEND_H

#include "Error.h"
#include "Log.h"
#include "Package.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

namespace greta::rt {

class Stream;

// Counts bytes of a device's memory that are in use: buffers and temporaries,
// as they were asked for.
struct MemoryUse {
  void add(uint64_t Bytes) {
    uint64_t Now = InUse += Bytes, Most = Peak;
    while (Most < Now && !Peak.compare_exchange_weak(Most, Now))
      ;
  }
  std::atomic<uint64_t> InUse{0}, Peak{0};
};

// Points to elements that somebody else owns.
template <typename T> struct Span {
  const T *Data = nullptr;
  size_t Size = 0;
  const T *begin() const { return Data; }
  const T *end() const { return Data + Size; }
};

class Memory {
public:
  virtual ~Memory() {
    if (Counted)
      Counted->InUse -= Size;
  }
  uint64_t Address = 0;   // device address; a host pointer for the host
  void *Mapped = nullptr; // the host's address; null: none
  size_t Size = 0;
  // Returns the driver's handle of it.
  virtual void *handle() const { return reinterpret_cast<void *>(Address); }
  // Returns whether it was made to be shared by an opaque descriptor.
  virtual bool isShared() const { return false; }
  // Makes a new descriptor of memory that was made to be shared, and describes
  // it.
  virtual void exportFd(greta_shared_memory &Out) const {
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "the buffer was not made by greta_buffer_create_shared");
  }
  std::shared_ptr<MemoryUse> Counted;
};
using MemoryRef = std::shared_ptr<Memory>;

// Keeps objects until some work is done. It finds the latest ones again, so it
// mostly keeps a buffer of many operations once.
class KeepList {
public:
  template <typename T> void add(const std::shared_ptr<T> &Object) {
    const void *&Last =
        Recent[reinterpret_cast<uintptr_t>(Object.get()) / 64 % Recent.size()];
    if (Last == Object.get())
      return;
    Last = Object.get();
    Objects.push_back(Object);
  }
  void clear() {
    Objects.clear();
    Recent.fill(nullptr);
  }

private:
  std::vector<std::shared_ptr<void>> Objects;
  std::array<const void *, 64> Recent{};
};

class Event {
public:
  virtual ~Event() = default;
  // Waits at most so long; returns whether it has happened.
  virtual bool wait(uint64_t Nanoseconds) = 0;
  void synchronize() { wait(UINT64_MAX); }
  // Returns microseconds from Start to this; both have happened.
  virtual double since(Event &Start) = 0;
};

// A number that only grows. A stream and another API each wait on the device
// until it has come to a value, and raise it.
class Counter {
public:
  virtual ~Counter() = default;
  // Returns a new opaque descriptor of a timeline semaphore.
  virtual int exportFd() const = 0;
  // The host raises it at once.
  virtual void raise(uint64_t Value) = 0;
  virtual uint64_t value() const = 0;
};

class Kernel {
public:
  virtual ~Kernel() = default;
  // Returns the driver's report of its compilation; null if it has none.
  virtual void statistics(nlohmann::json &Out) const {}
  std::string Name;
};
using KernelRef = std::shared_ptr<Kernel>;

class Graph {
public:
  virtual ~Graph() = default;
  // Launches the graph. While the stream records one, it becomes a part of it.
  void launch(Stream &S);
  // Returns whether there is nothing between collectives that cut a graph.
  virtual bool isEmpty() const = 0;

  // Recorded launches find zeros in this memory, and leave zeros.
  std::vector<MemoryRef> Zeroed;
  std::vector<LogRef> Logs; // of recorded launches

protected:
  virtual void start(Stream &S) = 0;
};

// The bytes of a memory that an operation touches. Operations of a stream may
// overlap if no bytes are shared that one of them writes.
struct Use {
  const MemoryRef *Of;
  uint64_t Begin, End;
  bool Writes;
};

// The memory that an argument of a kernel is, for a device that checks it.
struct Extent {
  uint64_t Address = 0, Bytes = 0;
  uint64_t ElementBytes = 0; // 0: it is not a tensor
  std::string Name;
};

struct Launch {
  const KernelRef *Code;
  std::array<uint32_t, 3> Grid;
  Span<uint8_t> Block; // argument bytes; the block begins at a multiple of 8
  Span<Use> Uses;
  Span<Extent> Extents; // the arguments' in order, or none
};

class Device;

class Stream {
public:
  virtual ~Stream() = default;
  virtual void write(const MemoryRef &To, size_t Offset, const void *Data,
                     size_t Size) = 0;
  virtual void read(const MemoryRef &From, size_t Offset, void *Data,
                    size_t Size) = 0;
  virtual void copy(const MemoryRef &To, size_t ToOffset, const MemoryRef &From,
                    size_t FromOffset, size_t Size) = 0;
  // Copies from memory of a device for which Device::copiesFrom is true.
  virtual void copyPeer(const MemoryRef &To, size_t ToOffset, Device &Other,
                        const MemoryRef &From, size_t FromOffset, size_t Size) {
    fail(GRETA_ERROR_UNSUPPORTED, "no copies from other devices");
  }
  virtual void fill(const MemoryRef &To, size_t Offset, size_t Size,
                    uint32_t Word) = 0;
  virtual void launch(const Launch &L) = 0;
  virtual void record(Event &E) = 0;
  virtual void wait(Event &E) = 0;
  // Raises the counter when the queued work is done, and has later work wait
  // for a value. Device::createCounter made the counter.
  virtual void raise(const std::shared_ptr<Counter> &, uint64_t) {}
  virtual void await(const std::shared_ptr<Counter> &, uint64_t) {}
  virtual void flush() = 0;
  // Starts nothing before the next flush or wait, and then all at once.
  virtual void hold() {}
  // Starts what is queued if the device has nothing to do.
  virtual void kick() {}
  // Calls F(Data) behind what was queued; what is queued later waits for it.
  virtual void callHost(void (*F)(void *), void *Data) = 0;
  virtual void synchronize() = 0;
  // Starts what is queued; returns whether all is done, without waiting.
  virtual bool isDone() = 0;
  // Returns the driver's handle, if it has one.
  virtual void *handle() const { return nullptr; }
  virtual void beginCapture() = 0;
  std::shared_ptr<Graph> endCapture() {
    std::vector<MemoryRef> Zeroed;
    Zeroed.swap(RecordedZeroed);
    std::vector<LogRef> Recorded;
    Recorded.swap(Logs.Recorded);
    std::shared_ptr<Graph> G = endRecording();
    G->Zeroed = std::move(Zeroed);
    G->Logs = std::move(Recorded);
    return G;
  }
  // Writes zeros again to memory that has to hold them, after a launch that
  // failed half way. Returns false on a device that is lost.
  bool restoreZeros(const MemoryRef &Memory) {
    try {
      fill(Memory, 0, Memory->Size / 4 * 4, 0);
      return true;
    } catch (const Error &) {
      return false;
    }
  }

  bool Capturing = false;
  // Temporaries of all functions launched here share this memory, which the
  // stream's order protects. A captured launch gets memory of its own. `Zeroed`
  // holds zeros between launches.
  MemoryRef Scratch, Zeroed;
  // A captured launch uses these in place of `Zeroed`.
  std::vector<MemoryRef> RecordedZeroed;
  StreamLogs Logs;

protected:
  virtual std::shared_ptr<Graph> endRecording() = 0;
};

inline void Graph::launch(Stream &S) {
  if (S.Capturing)
    S.RecordedZeroed.insert(S.RecordedZeroed.end(), Zeroed.begin(),
                            Zeroed.end());
  S.Logs.add(S, Logs);
  try {
    start(S);
  } catch (...) {
    for (const MemoryRef &Memory : Zeroed)
      if (!S.Capturing)
        S.restoreZeros(Memory);
    throw;
  }
}

// The parts of a device that are not used, and why, by the names of Health.h.
using Denials = std::map<std::string, std::string>;

class Device {
public:
  virtual ~Device() = default;
  MemoryRef allocate(size_t Size) {
    MemoryRef M = allocateMemory(Size);
    Use->add(Size);
    M->Counted = Use;
    return M;
  }
  // Allocates memory that others reach, too (greta_runtime.h). A backend that
  // lacks a kind says so.
  virtual MemoryRef allocateMapped(size_t Size) { lacks("mapped memory"); }
  virtual MemoryRef importPointer(void *Pointer, size_t Size) {
    lacks("imports of host memory");
  }
  // Returns a number of bytes that divides the address.
  virtual size_t pointerUnit() const { return 1; }
  // Returns DLPack's type of the device, and its number.
  virtual std::pair<int32_t, int32_t> dlpackDevice() const = 0;
  virtual MemoryRef allocateShared(greta_fd_kind Kind, size_t Size) {
    lacks("memory that is shared by file descriptors");
  }
  // Imports the memory; the descriptor stays the caller's.
  virtual MemoryRef importFd(const greta_shared_memory &From) {
    lacks("memory that is shared by file descriptors");
  }
  virtual MemoryRef adoptVulkan(uint64_t Buffer, size_t Size) {
    lacks("VkBuffers");
  }
  virtual MemoryRef adoptHip(void *Pointer, size_t Size) {
    lacks("memory of HIP");
  }
  virtual std::unique_ptr<Stream> adoptHipStream(void *Stream) {
    lacks("streams of HIP");
  }

  // Makes the device current for a library that uses the thread's device.
  virtual void makeCurrent() {}
  // Returns whether the device is lost and runs nothing any more.
  virtual bool isLost() const { return false; }
  // Returns whether its streams copy memory of the other device by themselves,
  // which was right in a test.
  virtual bool copiesFrom(Device &Other) { return false; }

  const MemoryUse &use() const { return *Use; }
  // The memory that the driver gave, the largest buffer that asks it for
  // nothing, the device's memory, and the memory that the driver could still
  // give; 0 if the backend does not know.
  struct Reserved {
    uint64_t Bytes = 0, LargestFree = 0, Total = 0, Free = 0;
  };
  virtual Reserved reserved() { return {Use->InUse, 0, 0, 0}; }
  // Gives reserved memory that is not in use back to the driver.
  virtual void trim() {}
  virtual std::unique_ptr<Stream> createStream() = 0;
  virtual std::unique_ptr<Event> createEvent() = 0;
  virtual std::shared_ptr<Counter> createCounter() {
    lacks("semaphores that are shared by file descriptors");
  }
  virtual KernelRef loadKernel(const Variant &V, const KernelDecl &K,
                               const std::vector<uint8_t> &Object,
                               bool CaptureStatistics) = 0;
  // Returns vulkan/SmallReduce.comp, with so many bytes of arguments.
  virtual KernelRef smallReduce(size_t ArgumentBytes) {
    lacks("kernels that meet other devices' in the host's memory");
  }
  // Returns why this device cannot run the variant; "" when it can.
  virtual std::string whyNot(const Variant &V) = 0;
  // Returns how well the variant's target fits this device: 2 for its family, 1
  // for another generation of it.
  virtual unsigned madeFor(const Variant &V) const { return 0; }
  // Returns the compute units or multiprocessors; 0 if they are not known.
  virtual uint32_t computeUnits() const { return 0; }
  // Returns whether all workgroups of a kernel that waits for its own run at a
  // time, or the driver refuses the launch.
  virtual bool launchesTogether() const { return false; }
  // Returns bytes that every such kernel is said to write, so that no two of a
  // stream or a graph run at a time: each might get only a part of the places.
  const MemoryRef &meeting() {
    std::lock_guard<std::mutex> Guard(MeetingLock);
    if (!Meeting)
      Meeting = allocate(4);
    return Meeting;
  }
  // Returns the subgroup size that the device takes by itself; 0: it has none.
  virtual uint32_t defaultSubgroupSize() const { return 0; }
  virtual void describe(nlohmann::json &Out) = 0;
  // Returns whether it checks what kernels do with their arguments.
  virtual bool wantsExtents() const { return false; }
  // Returns the largest grid of a launch.
  virtual std::array<uint32_t, 3> maxGrid() const = 0;

  // Returns a name for cache files, by device and driver version; "" if its
  // health needs no check.
  virtual std::string cacheKey() const { return ""; }

  std::string Spec, Name;
  std::recursive_mutex HealthLock;
  std::optional<Denials> Denied; // none: not asked for yet
  bool Believed = false;         // true while its check runs
  // Outcomes of trials in this process, by cache file: whyNotTogether.
  std::map<std::string, std::string> Tried;

protected:
  virtual MemoryRef allocateMemory(size_t Size) = 0;
  [[noreturn]] void lacks(const char *What) const {
    fail(GRETA_ERROR_UNSUPPORTED, Spec, " (", Name, ") has no ", What);
  }

private:
  std::shared_ptr<MemoryUse> Use = std::make_shared<MemoryUse>();
  std::mutex MeetingLock;
  MemoryRef Meeting;
};

// Adds the backend's devices, or why there are none; others open by index.
void listHost(nlohmann::json &Out);
void listHip(nlohmann::json &Out);
void listSim(nlohmann::json &Out);
void listVulkan(nlohmann::json &Out);
std::shared_ptr<Device> openHost();
std::shared_ptr<Device> openHip(unsigned Index);
std::shared_ptr<Device> openSim(const std::string &Chip);
std::shared_ptr<Device> openVulkan(unsigned Index);
// Returns the number of the device with this UUID.
unsigned hipIndex(const std::string &Uuid);
unsigned vulkanIndex(const std::string &Uuid);
std::shared_ptr<Device> adoptVulkan(const greta_vulkan_device &Own);

// Refuses variants for the host from here on, as GRETA_NO_NATIVE does
// (Host.cpp).
void refuseNativeCode();
bool nativeCodeIsRefused();

// Returns complaints of the Vulkan validation layer since the last call,
// joined; "" when there are none (or it is off).
std::string takeVulkanComplaints();

// Registry.cpp
void listDevices(nlohmann::json &Out);
std::shared_ptr<Device> openDevice(const std::string &Spec);

} // namespace greta::rt
#endif
