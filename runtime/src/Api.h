// Api.h: what the opaque handles hold, and the boundary that turns exceptions
// into status codes.
#ifndef GRETA_RUNTIME_API_H
#define GRETA_RUNTIME_API_H

#include "Error.h"
#include "Function.h"
#include "Repeat.h"
#include "Trace.h"
#include "comm/Comm.h"
#include "comm/PeerCopy.h"

#include <algorithm>
#include <cstring>
#include <new>

// A part of a graph: what the back end recorded, and the collective behind it,
// which the last part lacks.
struct greta_graph_part {
  std::shared_ptr<greta::rt::Graph> Impl;
  std::shared_ptr<greta::rt::comm::Comm> By;
  greta::rt::comm::Collective What;
  // The number of the graph's collectives that the recorded part waits for.
  uint64_t Needs = 0;
};

struct greta_device {
  std::shared_ptr<greta::rt::Device> Impl;
  bool AllowsNative; // a host that was asked for by name
};
struct greta_buffer {
  std::shared_ptr<greta::rt::Device> Device;
  greta::rt::MemoryRef Impl;
  size_t Size; // as asked for; the memory may be larger
};
struct greta_stream {
  std::shared_ptr<greta::rt::Device> Device;
  std::unique_ptr<greta::rt::Stream> Impl;
  bool Profiling = false;
  struct Timed {
    greta::rt::KernelRef Kernel; // keeps the kernel, if nothing else does
    std::unique_ptr<greta::rt::Event> Start, End;
  };
  std::vector<Timed> Times;
  // Keeps the names that greta_stream_times handed out last.
  std::vector<greta::rt::KernelRef> Named;
  greta::rt::TracedStream Traced;
  greta::rt::Call Prepared; // the current call's arguments and results
  // Automatic graphs: the sequences that repeat, and the current call.
  std::unique_ptr<greta::rt::Repeats> Repeats;
  greta::rt::Step Next;
  // Ends the current sequence before a call that no graph has in it.
  void endRepeats() {
    if (Repeats)
      Repeats->end();
  }
  // The last copy to another device uses them.
  std::unique_ptr<greta::rt::comm::PeerCopy> Copies;
  // The collectives of one communicator that nothing here waits for yet. Each
  // ends behind the one before. Numbers count from the first one that was ever
  // queued; `Settled` are no longer in the list.
  std::shared_ptr<greta::rt::comm::Comm> By;
  std::deque<std::shared_ptr<greta::rt::comm::Ticket>> Behind;
  uint64_t Settled = 0;
  // Work that waits for none of them was queued behind the last one.
  bool IsAhead = false;
  // If the device orders the collectives: the counter that this stream raises.
  // Whoever waits for the stream is told their failures.
  std::shared_ptr<greta::rt::Counter> Ready;
  uint64_t ReadyValue = 0;
  greta::rt::comm::Comms Told;
  // While a graph is recorded: its parts up to the last collective.
  std::vector<greta_graph_part> Recorded;
  uint64_t RecordedNeeds = 0; // collectives that the open part waits for
  // The recorded graph's kernels do the collectives of these.
  greta::rt::comm::Comms RecordedBy;
  // Returns the number of the last collective, or of the last one recorded.
  uint64_t collectives() const {
    return Impl->Capturing ? Recorded.size() : Settled + Behind.size();
  }
  // Waits for collectives up to this number, before work that has to run behind
  // them; throws the failure of one.
  void settle(uint64_t Upto = UINT64_MAX);
  // Throws what failed, when all is done: collectives that the device orders,
  // and assertions.
  void tell();
};
struct greta_event {
  std::shared_ptr<greta::rt::Device> Device;
  std::unique_ptr<greta::rt::Event> Impl;
  // The stream's, when it was recorded.
  greta::rt::comm::Comms Told;
  std::vector<greta::rt::LogLook> Logs;
  // Throws what failed before it happened.
  void tell() const;
};
struct greta_graph {
  std::shared_ptr<greta::rt::Device> Device;
  std::vector<greta_graph_part> Parts;
  greta::rt::comm::Comms By; // its collectives that are kernels
};
struct greta_comm {
  std::shared_ptr<greta::rt::comm::Comm> Impl;
};
struct greta_package {
  std::shared_ptr<const greta::rt::Package> Impl;
};
struct greta_function {
  std::shared_ptr<greta::rt::Device> Device;
  std::shared_ptr<const greta::rt::Function> Impl;
  std::shared_ptr<greta::rt::comm::Comm> Comm; // the ranks that it sums over
};

namespace greta::rt {

greta_status setLastError(greta_status Code, const char *Text) noexcept;

// Runs `B`. An exception, or a complaint of the Vulkan validation layer,
// becomes a status and the last error.
template <typename Body> greta_status guarded(Body B) noexcept {
  try {
    B();
    std::string Complaints = takeVulkanComplaints();
    if (!Complaints.empty())
      return setLastError(GRETA_ERROR_DEVICE,
                          ("Vulkan validation: " + Complaints).c_str());
    return GRETA_OK;
  } catch (const Error &E) {
    // The validation layer usually says more than the status that follows it.
    try {
      std::string Complaints = takeVulkanComplaints();
      if (!Complaints.empty())
        return setLastError(
            E.code(),
            concat(E.what(), "; Vulkan validation: ", Complaints).c_str());
    } catch (...) {
    }
    return setLastError(E.code(), E.what());
  } catch (const std::bad_alloc &) {
    return setLastError(GRETA_ERROR_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception &E) {
    return setLastError(GRETA_ERROR_INTERNAL, E.what());
  } catch (...) {
    return setLastError(GRETA_ERROR_INTERNAL, "unknown failure");
  }
}

template <typename T> T &need(T *Pointer, const char *What) {
  if (!Pointer)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " is null");
  return *Pointer;
}

// A struct's `struct_size` says how much of it the caller knows
// (greta_runtime.h, "ABI"). One that grows gets its first size here.
template <typename T> constexpr size_t firstSize = sizeof(T);
template <> // before `address`
inline constexpr size_t firstSize<greta_comm_options> = 56;

template <typename T> void checkSize(const T *Struct, const char *What) {
  if (size_t Size = need(Struct, What).struct_size; Size < firstSize<T>)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, "'s struct_size is ", Size,
         "; sizeof says ", sizeof(T));
}
// Fills what the caller knows of; members that only its newer header has are 0.
template <typename T> void give(T *Out, T Value, const char *What) {
  checkSize(Out, What);
  Value.struct_size = Out->struct_size;
  memset(Out, 0, Value.struct_size);
  memcpy(Out, &Value, std::min(Value.struct_size, sizeof(T)));
}
// Members that an older header lacks are zero; members of a newer one are not
// read.
template <typename T> T taken(const T *In, const char *What) {
  checkSize(In, What);
  auto *Bytes = reinterpret_cast<const char *>(In);
  for (size_t I = sizeof(T); I < In->struct_size; ++I)
    if (Bytes[I])
      fail(GRETA_ERROR_UNSUPPORTED, What,
           " says what this version of the library does not know");
  T Value{};
  memcpy(&Value, In, std::min(In->struct_size, sizeof(T)));
  return Value;
}

// Queues a call with the arguments and results in S.Prepared. `C` is null if it
// has no sums over ranks.
void queueCall(greta_stream &S, const Function &F,
               const std::shared_ptr<comm::Comm> &C);
// Queues a collective behind the stream's work, or records it.
void queueCollective(const std::shared_ptr<comm::Comm> &C, greta_stream &S,
                     comm::Collective What);
// Returns the element type of a reduction; throws if this dtype has none.
comm::Element elementOf(const char *DType);
// Queues a step that a stream took before.
void queueStep(greta_stream &S, const Step &What);

char *copyString(const std::string &Text);

void checkRange(const greta_buffer &B, size_t Offset, size_t Bytes,
                const char *What);
void checkSameDevice(const std::shared_ptr<Device> &A,
                     const std::shared_ptr<Device> &B);

} // namespace greta::rt
#endif
