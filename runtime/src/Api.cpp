// Api.cpp: the C API over devices, streams, events and graphs.
#include "Api.h"
#include "Health.h"
#include "Process.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

using namespace greta::rt;

namespace greta::rt {
namespace {
thread_local std::string LastError;
} // namespace

greta_status setLastError(greta_status Code, const char *Text) noexcept {
  try {
    LastError = Text;
  } catch (...) {
    LastError.clear();
  }
  return Code;
}

char *copyString(const std::string &Text) {
  char *Copy = static_cast<char *>(malloc(Text.size() + 1));
  if (!Copy)
    throw std::bad_alloc();
  memcpy(Copy, Text.c_str(), Text.size() + 1);
  return Copy;
}

void checkRange(const greta_buffer &B, size_t Offset, size_t Bytes,
                const char *What) {
  if (Offset > B.Size || Bytes > B.Size - Offset)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " of ", Bytes, " bytes at offset ",
         Offset, " leaves the buffer of ", B.Size, " bytes");
}

void checkSameDevice(const std::shared_ptr<Device> &A,
                     const std::shared_ptr<Device> &B) {
  for (const std::shared_ptr<Device> &D : {A, B})
    if (D->isLost()) // the other one may be it, opened again
      failLost(D->Spec);
  if (A != B)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "the handles belong to two devices, ",
         A->Spec, " and ", B->Spec);
}

} // namespace greta::rt

namespace {

greta_stream *makeStream(const std::shared_ptr<Device> &On,
                         std::unique_ptr<Stream> Impl) {
  auto S = std::make_unique<greta_stream>();
  S->Device = On;
  S->Impl = std::move(Impl);
  return S.release();
}

// Tells the application which assertions failed before a stream's end.
void tellLast(Stream &S) {
  try {
    if (std::exchange(S.Capturing, false))
      S.endCapture();
    S.Logs.wait(S);
  } catch (const Error &E) {
    if (E.code() == GRETA_ERROR_ASSERTION)
      report(GRETA_LOG_WARNING, E.what());
  }
}

} // namespace

extern "C" {

const char *greta_version(void) { return GRETA_VERSION; }
const char *greta_last_error(void) { return LastError.c_str(); }
void greta_string_free(char *String) { free(String); }

const char *greta_status_name(greta_status Status) {
  switch (Status) {
  case GRETA_OK:
    return "ok";
  case GRETA_ERROR_INVALID_ARGUMENT:
    return "invalid argument";
  case GRETA_ERROR_NOT_FOUND:
    return "not found";
  case GRETA_ERROR_UNSUPPORTED:
    return "unsupported";
  case GRETA_ERROR_BAD_PACKAGE:
    return "bad package";
  case GRETA_ERROR_OUT_OF_MEMORY:
    return "out of memory";
  case GRETA_ERROR_DEVICE:
    return "device error";
  case GRETA_ERROR_DEVICE_LOST:
    return "device lost";
  case GRETA_ERROR_PEER_LOST:
    return "peer lost";
  case GRETA_ERROR_ASSERTION:
    return "assertion failed";
  case GRETA_ERROR_INTERNAL:
    return "internal error";
  }
  return "unknown status";
}

void greta_set_log_callback(greta_log_callback Callback, void *User) {
  setLogCallback(Callback, User);
}

greta_status greta_device_list(char **Json) {
  return guarded([&] {
    nlohmann::json J;
    listDevices(J);
    need(Json, "json") = copyString(J.dump(2));
  });
}

greta_status greta_device_open(const char *Spec, greta_device **Out) {
  return guarded([&] {
    need(Out, "device") = nullptr;
    std::string Name = Spec ? Spec : "";
    *Out = new greta_device{openDevice(Name), Name == "host"};
  });
}

greta_status greta_device_adopt_vulkan(const greta_vulkan_device *Own,
                                       greta_device **Out) {
  return guarded([&] {
    need(Out, "device") = nullptr;
    *Out = new greta_device{adoptVulkan(taken(Own, "own")), false};
  });
}

void greta_refuse_native_code(void) { refuseNativeCode(); }

greta_status greta_device_close(greta_device *D) {
  return guarded([&] { delete D; });
}

greta_status greta_device_info(greta_device *D, char **Json) {
  return guarded([&] {
    nlohmann::json J;
    need(D, "device").Impl->describe(J);
    need(Json, "json") = copyString(J.dump(2));
  });
}

greta_status greta_device_check(greta_device *D, char **Json) {
  return guarded([&] {
    HealthReport Report = checkHealth(need(D, "device").Impl);
    nlohmann::json J = {{"ran", Report.Ran}, {"denied", Report.Denied}};
    need(Json, "json") = copyString(J.dump(2));
  });
}

greta_status greta_device_memory(greta_device *D, greta_memory *Out) {
  return guarded([&] {
    Device &Impl = *need(D, "device").Impl;
    Device::Reserved R = Impl.reserved();
    give(Out,
         {0, Impl.use().InUse, Impl.use().Peak, R.Bytes, R.LargestFree, R.Total,
          R.Free},
         "memory");
  });
}

greta_status greta_device_trim(greta_device *D) {
  return guarded([&] { need(D, "device").Impl->trim(); });
}

greta_status greta_stream_create(greta_device *D, greta_stream **Out) {
  return guarded([&] {
    need(Out, "stream") = nullptr;
    auto &Impl = need(D, "device").Impl;
    *Out = makeStream(Impl, Impl->createStream());
  });
}

greta_status greta_stream_adopt_hip(greta_device *D, void *Stream,
                                    greta_stream **Out) {
  return guarded([&] {
    need(Out, "stream") = nullptr;
    auto &Impl = need(D, "device").Impl;
    *Out = makeStream(Impl, Impl->adoptHipStream(Stream));
  });
}

void greta_stream_destroy(greta_stream *S) {
  guarded([&] {
    std::unique_ptr<greta_stream> Owner(S);
    if (S) {
      S->endRepeats();
      S->settle();
    }
    if (S && Trace::get()) {
      S->Impl->synchronize();
      S->Traced.resolve();
    }
    if (S && S->Impl->Logs.isOpen())
      tellLast(*S->Impl);
  });
}

greta_status greta_stream_flush(greta_stream *S) {
  Trace::Call Traced("greta_stream_flush");
  return guarded([&] {
    need(S, "stream").endRepeats();
    S->Impl->flush();
  });
}

greta_status greta_stream_hold(greta_stream *S) {
  return guarded([&] {
    need(S, "stream").endRepeats();
    S->Impl->hold();
  });
}

greta_status greta_stream_synchronize(greta_stream *S) {
  Trace::Call Traced("greta_stream_synchronize");
  return guarded([&] {
    if (need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the stream is recording a graph");
    S->endRepeats();
    S->settle();
    S->Impl->Logs.look(*S->Impl);
    S->Impl->synchronize();
    S->Traced.resolve();
    S->tell();
  });
}

greta_status greta_stream_query(greta_stream *S, int *Done) {
  return guarded([&] {
    need(Done, "done") = 0;
    if (need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the stream is recording a graph");
    S->endRepeats();
    S->settle();
    S->Impl->Logs.look(*S->Impl);
    *Done = S->Impl->isDone();
    if (*Done)
      S->tell();
  });
}

greta_status greta_stream_call_host(greta_stream *S, void (*F)(void *),
                                    void *Data) {
  Trace::Call Traced("greta_stream_call_host");
  return guarded([&] {
    if (!F)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "function is null");
    if (need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "a graph cannot record functions of the host");
    S->endRepeats();
    S->settle();
    S->Impl->callHost(F, Data);
  });
}

greta_status greta_stream_set_auto_graph(greta_stream *S, int On) {
  return guarded([&] {
    need(S, "stream").endRepeats();
    if (!On)
      S->Repeats.reset();
    else if (!S->Repeats)
      S->Repeats = std::make_unique<Repeats>(
          *S->Impl, [S](const Step &What) { queueStep(*S, What); });
  });
}

uint64_t greta_stream_replayed(const greta_stream *S) {
  return S && S->Repeats ? S->Repeats->replayed() : 0;
}

greta_status greta_stream_set_profiling(greta_stream *S, int On) {
  return guarded([&] { need(S, "stream").Profiling = On != 0; });
}

greta_status greta_stream_times(greta_stream *S, greta_kernel_time *Times,
                                size_t *Count) {
  return guarded([&] {
    size_t Room = need(Count, "count");
    *Count = need(S, "stream").Times.size();
    if (!Times)
      return;
    if (Room < *Count)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "room for ", Room,
           " times, there are ", *Count);
    S->Impl->Logs.look(*S->Impl);
    S->Impl->synchronize();
    S->Named.clear();
    for (const greta_stream::Timed &T : S->Times) {
      *Times++ = {T.Kernel->Name.c_str(), T.End->since(*T.Start)};
      S->Named.push_back(T.Kernel);
    }
    S->Times.clear();
    S->Impl->Logs.tell(*S->Impl);
  });
}

greta_status greta_event_create(greta_device *D, greta_event **Out) {
  return guarded([&] {
    need(Out, "event") = nullptr;
    auto &Impl = need(D, "device").Impl;
    *Out = new greta_event{Impl, Impl->createEvent(), {}, {}};
  });
}

void greta_event_destroy(greta_event *E) {
  guarded([&] { delete E; });
}

greta_status greta_event_record(greta_event *E, greta_stream *S) {
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(E, "event").Device);
    if (S->Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a graph cannot record events");
    S->endRepeats();
    S->settle();
    S->Impl->Logs.look(*S->Impl);
    S->Impl->record(*E->Impl);
    E->Told = S->Told;
    E->Logs = S->Impl->Logs.open();
  });
}

greta_status greta_event_synchronize(greta_event *E) {
  Trace::Call Traced("greta_event_synchronize");
  return guarded([&] {
    need(E, "event").Impl->synchronize();
    E->tell();
  });
}

greta_status greta_event_wait(greta_event *E, uint64_t Microseconds,
                              int *Happened) {
  return guarded([&] {
    constexpr uint64_t most = UINT64_MAX / 1000 - 1;
    need(Happened, "happened") =
        need(E, "event").Impl->wait(std::min(Microseconds, most) * 1000);
    if (*Happened)
      E->tell();
  });
}

greta_status greta_stream_wait_event(greta_stream *S, greta_event *E) {
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(E, "event").Device);
    if (S->Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a graph cannot wait for events");
    S->endRepeats();
    S->settle();
    S->Impl->wait(*E->Impl);
  });
}

greta_status greta_event_elapsed(greta_event *Start, greta_event *End,
                                 double *Microseconds) {
  return guarded([&] {
    checkSameDevice(need(Start, "start").Device, need(End, "end").Device);
    Start->Impl->synchronize();
    End->Impl->synchronize();
    Start->tell();
    End->tell();
    need(Microseconds, "microseconds") = End->Impl->since(*Start->Impl);
  });
}

greta_status greta_graph_begin(greta_stream *S) {
  return guarded([&] {
    if (need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "the stream is already recording a graph");
    S->endRepeats();
    S->Recorded.clear();
    S->RecordedBy = {};
    S->RecordedNeeds = 0;
    S->Impl->beginCapture();
    S->Impl->Capturing = true;
  });
}

greta_status greta_graph_end(greta_stream *S, greta_graph **Out) {
  Trace::Call Traced("greta_graph_end");
  return guarded([&] {
    need(Out, "graph") = nullptr;
    if (!need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the stream is not recording a graph");
    S->Impl->Capturing = false;
    std::vector<greta_graph_part> Parts;
    Parts.swap(S->Recorded);
    Parts.push_back({S->Impl->endCapture(),
                     nullptr,
                     {},
                     std::exchange(S->RecordedNeeds, 0)});
    *Out = new greta_graph{S->Device, std::move(Parts),
                           std::exchange(S->RecordedBy, {})};
  });
}

greta_status greta_graph_launch(greta_graph *G, greta_stream *S) {
  Trace::Call Traced("greta_graph_launch");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(G, "graph").Device);
    if (!S->Impl->Capturing) {
      comm::Comms(G->By).tell(); // kernels would wait for a lost rank
      S->endRepeats();
    }
    (S->Impl->Capturing ? S->RecordedBy : S->Told).add(G->By);
    std::vector<uint64_t> Ends = {S->collectives()};
    for (const greta_graph_part &Part : G->Parts) {
      // An empty part queues nothing: its collective follows the one before.
      if (!Part.Impl->isEmpty()) {
        S->settle(Ends[Part.Needs]);
        if (S->Impl->Capturing)
          Part.Impl->launch(*S->Impl);
        else
          S->Traced.launch(*S->Device, *S->Impl, "graph",
                           [&] { Part.Impl->launch(*S->Impl); });
      }
      if (Part.By) {
        queueCollective(Part.By, *S, Part.What);
        Ends.push_back(S->collectives());
      }
    }
  });
}

void greta_graph_destroy(greta_graph *G) {
  guarded([&] { delete G; });
}

} // extern "C"
