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
#include "Package.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

namespace greta::rt {

class Stream;

// Bytes of a device's memory that are in use: buffers and temporaries, as they
// were asked for.
struct MemoryUse {
  void add(uint64_t Bytes) {
    uint64_t Now = InUse += Bytes, Most = Peak;
    while (Most < Now && !Peak.compare_exchange_weak(Most, Now))
      ;
  }
  std::atomic<uint64_t> InUse{0}, Peak{0};
};

// Some elements of somebody else's.
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
  void *Mapped = nullptr; // where the host reaches it
  size_t Size = 0;
  // The driver's name of it.
  virtual void *handle() const { return reinterpret_cast<void *>(Address); }
  // Whether it was made to be shared by an opaque descriptor.
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

// Objects that live until some work is done. The latest ones are known, so a
// buffer of many operations is mostly kept once.
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
  // Waits for it, so long at most. Whether it has happened.
  virtual bool wait(uint64_t Nanoseconds) = 0;
  void synchronize() { wait(UINT64_MAX); }
  // Microseconds from Start to this; both have happened.
  virtual double since(Event &Start) = 0;
};

// A number that only grows. A stream and another API each wait until it has
// come to a value, and raise it, on the device.
class Counter {
public:
  virtual ~Counter() = default;
  // A new descriptor: an opaque one of a timeline semaphore.
  virtual int exportFd() const = 0;
  // By the host, at once.
  virtual void raise(uint64_t Value) = 0;
  virtual uint64_t value() const = 0;
};

class Kernel {
public:
  virtual ~Kernel() = default;
  // The driver's report of its compilation; null if it has none.
  virtual void statistics(nlohmann::json &Out) const {}
  std::string Name;
};
using KernelRef = std::shared_ptr<Kernel>;

class Graph {
public:
  virtual ~Graph() = default;
  // While the stream records a graph, the operation becomes a part of it.
  void launch(Stream &S);
  // Between collectives that cut a graph there may be nothing.
  virtual bool isEmpty() const = 0;

  // Memory in which the recorded launches find zeros, and leave zeros.
  std::vector<MemoryRef> Zeroed;

protected:
  virtual void start(Stream &S) = 0;
};

// Bytes of a memory that an operation touches. Operations of a stream that
// share none that one of them writes may overlap.
struct Use {
  const MemoryRef *Of;
  uint64_t Begin, End;
  bool Writes;
};

// The memory that an argument of a kernel is, for a device that checks it.
struct Extent {
  uint64_t Address = 0, Bytes = 0;
  uint64_t ElementBytes = 0; // 0: it is no tensor
  std::string Name;
};

struct Launch {
  const KernelRef *Code;
  std::array<uint32_t, 3> Grid;
  Span<uint8_t> Block; // argument bytes; the block begins at a multiple of 8
  Span<Use> Uses;
  Span<Extent> Extents; // of the arguments in order, or none
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
  // From memory of a device of which Device::copiesFrom says so.
  virtual void copyPeer(const MemoryRef &To, size_t ToOffset, Device &Other,
                        const MemoryRef &From, size_t FromOffset, size_t Size) {
    fail(GRETA_ERROR_UNSUPPORTED, "no copies from other devices");
  }
  virtual void fill(const MemoryRef &To, size_t Offset, size_t Size,
                    uint32_t Word) = 0;
  virtual void launch(const Launch &L) = 0;
  virtual void record(Event &E) = 0;
  virtual void wait(Event &E) = 0;
  // The counter gets the value when what was queued is done, and what is queued
  // later waits until it has one; as Device::createCounter made it.
  virtual void raise(const std::shared_ptr<Counter> &, uint64_t) {}
  virtual void await(const std::shared_ptr<Counter> &, uint64_t) {}
  virtual void flush() = 0;
  // Nothing starts before the next flush or wait, and then all at once.
  virtual void hold() {}
  // A good moment to start what is queued, if the device has nothing to do.
  virtual void kick() {}
  // Calls F(Data) behind what was queued; what is queued later waits for it.
  virtual void callHost(void (*F)(void *), void *Data) = 0;
  virtual void synchronize() = 0;
  // Starts what is queued; whether all of it is done, without a wait.
  virtual bool isDone() = 0;
  // The driver's name of it, where it has one.
  virtual void *handle() const { return nullptr; }
  virtual void beginCapture() = 0;
  std::shared_ptr<Graph> endCapture() {
    std::vector<MemoryRef> Zeroed;
    Zeroed.swap(RecordedZeroed);
    std::shared_ptr<Graph> G = endRecording();
    G->Zeroed = std::move(Zeroed);
    return G;
  }
  // After a launch that failed, whose kernels left what they were at: memory
  // that is to hold zeros gets them again. False on a device that is lost.
  bool restoreZeros(const MemoryRef &Memory) {
    try {
      fill(Memory, 0, Memory->Size / 4 * 4, 0);
      return true;
    } catch (const Error &) {
      return false;
    }
  }

  bool Capturing = false;
  // The memory of the temporaries of all functions launched here: the stream's
  // order protects them. A captured launch gets memory of its own.
  // `Zeroed` holds zeros between launches.
  MemoryRef Scratch, Zeroed;
  // Captured launches have these instead.
  std::vector<MemoryRef> RecordedZeroed;

protected:
  virtual std::shared_ptr<Graph> endRecording() = 0;
};

inline void Graph::launch(Stream &S) {
  if (S.Capturing)
    S.RecordedZeroed.insert(S.RecordedZeroed.end(), Zeroed.begin(),
                            Zeroed.end());
  try {
    start(S);
  } catch (...) {
    for (const MemoryRef &Memory : Zeroed)
      if (!S.Capturing)
        S.restoreZeros(Memory);
    throw;
  }
}

// The parts of a device that are not used, and why; Health.h says by which
// names.
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
  // Memory that somebody else reaches, too; greta_runtime.h says which. A
  // backend that has none of a kind says so.
  virtual MemoryRef allocateMapped(size_t Size) { lacks("mapped memory"); }
  virtual MemoryRef importPointer(void *Pointer, size_t Size) {
    lacks("imports of host memory");
  }
  // The address is a multiple of this.
  virtual size_t pointerUnit() const { return 1; }
  // DLPack's type of the device, and its number.
  virtual std::pair<int32_t, int32_t> dlpackDevice() const = 0;
  virtual MemoryRef allocateShared(greta_fd_kind Kind, size_t Size) {
    lacks("memory that is shared by file descriptors");
  }
  // The descriptor stays the caller's.
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

  // For a library that works on whatever device the calling thread has.
  virtual void makeCurrent() {}
  // Whether nothing runs there any more.
  virtual bool isLost() const { return false; }
  // Whether its streams copy memory of the other device by themselves, which
  // was right in a test.
  virtual bool copiesFrom(Device &Other) { return false; }

  const MemoryUse &use() const { return *Use; }
  // The memory that the driver gave, the largest buffer that asks it for
  // nothing, the device's memory, and the memory that the driver could still
  // give; as far as the backend knows.
  struct Reserved {
    uint64_t Bytes = 0, LargestFree = 0, Total = 0, Free = 0;
  };
  virtual Reserved reserved() { return {Use->InUse, 0, 0, 0}; }
  // Gives what is reserved and not in use back to the driver.
  virtual void trim() {}
  virtual std::unique_ptr<Stream> createStream() = 0;
  virtual std::unique_ptr<Event> createEvent() = 0;
  virtual std::shared_ptr<Counter> createCounter() {
    lacks("semaphores that are shared by file descriptors");
  }
  virtual KernelRef loadKernel(const Variant &V, const KernelDecl &K,
                               const std::vector<uint8_t> &Object,
                               bool CaptureStatistics) = 0;
  // vulkan/SmallReduce.comp, with so many bytes of arguments.
  virtual KernelRef smallReduce(size_t ArgumentBytes) {
    lacks("kernels that meet other devices' in the host's memory");
  }
  // Why this device cannot run the variant; "" when it can.
  virtual std::string whyNot(const Variant &V) = 0;
  // Whether the variant was tuned for this device, by its target: 2 for its
  // family, 1 for another generation of it.
  virtual unsigned madeFor(const Variant &V) const { return 0; }
  // Compute units or multiprocessors; 0 where nobody says.
  virtual uint32_t computeUnits() const { return 0; }
  // How many workgroups of a kernel that waits for all of its own run at a
  // time, as far as somebody promises it.
  virtual uint32_t residentWorkgroups() const { return 0; }
  // Bytes that every such kernel is said to write, so that no two of a stream
  // or a graph run at a time: each might get a part of the places.
  const MemoryRef &meeting() {
    std::lock_guard<std::mutex> Guard(MeetingLock);
    if (!Meeting)
      Meeting = allocate(4);
    return Meeting;
  }
  // The subgroup size that this device takes by itself; 0 where there is none.
  virtual uint32_t defaultSubgroupSize() const { return 0; }
  virtual void describe(nlohmann::json &Out) = 0;
  // Whether it checks what kernels do with their arguments.
  virtual bool wantsExtents() const { return false; }
  // Grid extents that a launch may have.
  virtual std::array<uint32_t, 3> maxGrid() const = 0;

  // A name for cache files, by device and driver version; "" for what needs no
  // check of its health.
  virtual std::string cacheKey() const { return ""; }

  std::string Spec, Name;
  std::recursive_mutex HealthLock;
  std::optional<Denials> Denied; // none: it was not asked for yet
  bool Believed = false;         // while its check runs

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

// Each backend adds what it finds and why it finds nothing, and opens by index.
void listHost(nlohmann::json &Out);
void listHip(nlohmann::json &Out);
void listSim(nlohmann::json &Out);
void listVulkan(nlohmann::json &Out);
std::shared_ptr<Device> openHost();
std::shared_ptr<Device> openHip(unsigned Index);
std::shared_ptr<Device> openSim(const std::string &Chip);
std::shared_ptr<Device> openVulkan(unsigned Index);
// The number of the device with this UUID.
unsigned hipIndex(const std::string &Uuid);
unsigned vulkanIndex(const std::string &Uuid);
std::shared_ptr<Device> adoptVulkan(const greta_vulkan_device &Own);

// Host.cpp: from here on no variant for the host is loaded; also when the
// environment has GRETA_NO_NATIVE.
void refuseNativeCode();
bool nativeCodeIsRefused();

// Complaints of the Vulkan validation layer since the last call, joined; ""
// when there are none (or it is off).
std::string takeVulkanComplaints();

// Registry.cpp
void listDevices(nlohmann::json &Out);
std::shared_ptr<Device> openDevice(const std::string &Spec);

} // namespace greta::rt
#endif
