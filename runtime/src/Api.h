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

// A graph between collectives: what the back end recorded, and the collective
// behind it, but for the last one.
struct greta_graph_part {
  std::shared_ptr<greta::rt::Graph> Impl;
  std::shared_ptr<greta::rt::comm::Comm> By;
  greta::rt::comm::Collective What;
  // How many of the graph's collectives the recorded part waits for.
  uint64_t Needs = 0;
};

struct greta_device {
  std::shared_ptr<greta::rt::Device> Impl;
  bool AllowsNative; // it is the host and was asked for by name
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
    greta::rt::KernelRef Kernel; // it may be the last to know
    std::unique_ptr<greta::rt::Event> Start, End;
  };
  std::vector<Timed> Times;
  // The times whose names greta_stream_times handed out last.
  std::vector<greta::rt::KernelRef> Named;
  greta::rt::TracedStream Traced;
  greta::rt::Call Prepared; // what the call at hand queues
  // With automatic graphs: what repeats, and the call at hand.
  std::unique_ptr<greta::rt::Repeats> Repeats;
  greta::rt::Step Next;
  // Before what no graph has in it.
  void endRepeats() {
    if (Repeats)
      Repeats->end();
  }
  // They belong to the last copy to another device.
  std::unique_ptr<greta::rt::comm::PeerCopy> Copies;
  // The collectives of one communicator that nothing here waits for yet: the
  // last ones, as each ends behind the one before. Numbers count from the first
  // one that was ever queued; `Settled` are no longer in the list.
  std::shared_ptr<greta::rt::comm::Comm> By;
  std::deque<std::shared_ptr<greta::rt::comm::Ticket>> Behind;
  uint64_t Settled = 0;
  // Work that waits for none of them was queued behind the last one.
  bool IsAhead = false;
  // With collectives that the device orders: the counter that this raises, and
  // whose failures are told when somebody waits for the stream.
  std::shared_ptr<greta::rt::Counter> Ready;
  uint64_t ReadyValue = 0;
  greta::rt::comm::Comms Told;
  // While a graph is recorded: what was recorded before the last collective.
  std::vector<greta_graph_part> Recorded;
  uint64_t RecordedNeeds = 0; // of what is recorded since
  // And those whose collectives are kernels of what is recorded.
  greta::rt::comm::Comms RecordedBy;
  // The number of the last collective, or of the last one recorded.
  uint64_t collectives() const {
    return Impl->Capturing ? Recorded.size() : Settled + Behind.size();
  }
  // Before what is to run behind collectives up to this number; throws the
  // failure of one.
  void settle(uint64_t Upto = UINT64_MAX);
  // When all is done; throws the failure of those that the device orders.
  void tell();
};
struct greta_event {
  std::shared_ptr<greta::rt::Device> Device;
  std::unique_ptr<greta::rt::Event> Impl;
  greta::rt::comm::Comms Told; // those of the stream, when it was recorded
};
struct greta_graph {
  std::shared_ptr<greta::rt::Device> Device;
  std::vector<greta_graph_part> Parts;
  greta::rt::comm::Comms By; // those whose collectives are kernels of it
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
  std::shared_ptr<greta::rt::comm::Comm> Comm; // that it sums over
};

namespace greta::rt {

greta_status setLastError(greta_status Code, const char *Text) noexcept;

// Runs `B`; an exception, or a complaint of the Vulkan validation layer,
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

// Structs whose `struct_size` says how much of them the caller knows
// (greta_runtime.h, "ABI"). One that grows gets its first size here.
template <typename T> constexpr size_t firstSize = sizeof(T);
template <> // before `address`
inline constexpr size_t firstSize<greta_comm_options> = 56;

template <typename T> void checkSize(const T *Struct, const char *What) {
  if (size_t Size = need(Struct, What).struct_size; Size < firstSize<T>)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, "'s struct_size is ", Size,
         "; sizeof says ", sizeof(T));
}
// Hands over what the caller knows of; what only a newer header has is zero.
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

// Queues a call, whose arguments and results are in S.Prepared; `C` is null
// where it has no sums over ranks.
void queueCall(greta_stream &S, const Function &F,
               const std::shared_ptr<comm::Comm> &C);
// Queues a collective behind the stream's work, or records it.
void queueCollective(const std::shared_ptr<comm::Comm> &C, greta_stream &S,
                     comm::Collective What);
// The element type of a reduction; throws if there are none of this dtype.
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
