// Api.cpp: the C API over devices, buffers, streams, events and graphs.
#include "Api.h"
#include "Health.h"
#include "Process.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

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
    if (D->isLost()) // perhaps the other one is the same, opened again
      failLost(D->Spec);
  if (A != B)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "the handles belong to two devices, ",
         A->Spec, " and ", B->Spec);
}

} // namespace greta::rt

namespace {

void checkKind(greta_fd_kind Kind) {
  if (Kind != GRETA_FD_OPAQUE && Kind != GRETA_FD_DMA_BUF)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "unknown kind of file descriptor ",
         Kind);
}

// A buffer of the memory that `Make` makes on the device.
template <typename Body>
greta_status makeBuffer(greta_device *D, size_t Bytes, greta_buffer **Out,
                        Body Make) {
  Trace::Call Traced("greta_buffer_create");
  return guarded([&] {
    need(Out, "buffer") = nullptr;
    auto &Impl = need(D, "device").Impl;
    *Out = new greta_buffer{Impl, Make(*Impl), Bytes};
    if (Trace *T = Trace::get())
      T->memory(Impl->use().InUse);
  });
}

greta_stream *makeStream(const std::shared_ptr<Device> &On,
                         std::unique_ptr<Stream> Impl) {
  auto S = std::make_unique<greta_stream>();
  S->Device = On;
  S->Impl = std::move(Impl);
  return S.release();
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

greta_status greta_buffer_create(greta_device *D, size_t Bytes,
                                 greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out,
                    [&](Device &Impl) { return Impl.allocate(Bytes); });
}

greta_status greta_buffer_create_mapped(greta_device *D, size_t Bytes,
                                        greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out,
                    [&](Device &Impl) { return Impl.allocateMapped(Bytes); });
}

greta_status greta_buffer_import_pointer(greta_device *D, void *Pointer,
                                         size_t Bytes, greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out, [&](Device &Impl) {
    need(static_cast<char *>(Pointer), "pointer");
    return Impl.importPointer(Pointer, Bytes);
  });
}

greta_status greta_buffer_create_shared(greta_device *D, greta_fd_kind Kind,
                                        size_t Bytes, greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out, [&](Device &Impl) {
    checkKind(Kind);
    return Impl.allocateShared(Kind, Bytes);
  });
}

greta_status greta_buffer_export_fd(const greta_buffer *B,
                                    greta_shared_memory *Out) {
  return guarded([&] {
    checkSize(Out, "memory");
    greta_shared_memory Made{};
    Made.bytes = need(B, "buffer").Size;
    B->Impl->exportFd(Made);
    give(Out, Made, "memory");
  });
}

greta_status greta_buffer_import_fd(greta_device *D,
                                    const greta_shared_memory *From,
                                    greta_buffer **Out) {
  greta_shared_memory Memory{};
  Memory.fd = -1;
  greta_status Status = guarded([&] { Memory = taken(From, "memory"); });
  if (Status == GRETA_OK)
    Status = makeBuffer(D, Memory.bytes, Out, [&](Device &Impl) {
      checkKind(Memory.kind);
      return Impl.importFd(Memory);
    });
  if (Memory.fd >= 0)
    close(Memory.fd);
  return Status;
}

greta_status greta_buffer_adopt_vulkan(greta_device *D, uint64_t Buffer,
                                       size_t Bytes, greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out, [&](Device &Impl) {
    return Impl.adoptVulkan(Buffer, Bytes);
  });
}

greta_status greta_buffer_adopt_hip(greta_device *D, void *Pointer,
                                    size_t Bytes, greta_buffer **Out) {
  return makeBuffer(D, Bytes, Out, [&](Device &Impl) {
    return Impl.adoptHip(Pointer, Bytes);
  });
}

void greta_buffer_destroy(greta_buffer *B) { delete B; }
void *greta_buffer_pointer(const greta_buffer *B) {
  return B ? B->Impl->Mapped : nullptr;
}
size_t greta_buffer_size(const greta_buffer *B) { return B ? B->Size : 0; }
uint64_t greta_buffer_address(const greta_buffer *B) {
  return B ? B->Impl->Address : 0;
}

greta_status greta_buffer_write(greta_stream *S, greta_buffer *B, size_t Offset,
                                const void *Data, size_t Bytes) {
  Trace::Call Traced("greta_buffer_write");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(B, "buffer").Device);
    checkRange(*B, Offset, Bytes, "a write");
    if (S->Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a graph cannot record host writes");
    S->endRepeats();
    S->settle();
    if (Bytes)
      S->Impl->write(B->Impl, Offset,
                     &need(static_cast<const char *>(Data), "data"), Bytes);
  });
}

greta_status greta_buffer_read(greta_stream *S, const greta_buffer *B,
                               size_t Offset, void *Data, size_t Bytes) {
  Trace::Call Traced("greta_buffer_read");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(B, "buffer").Device);
    checkRange(*B, Offset, Bytes, "a read");
    if (S->Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a graph cannot record host reads");
    S->endRepeats();
    S->settle();
    if (Bytes)
      S->Impl->read(B->Impl, Offset, &need(static_cast<char *>(Data), "data"),
                    Bytes);
    S->Traced.resolve();
    S->tell();
  });
}

greta_status greta_buffer_copy(greta_stream *S, greta_buffer *To,
                               size_t ToOffset, const greta_buffer *From,
                               size_t FromOffset, size_t Bytes) {
  Trace::Call Traced("greta_buffer_copy");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(To, "buffer").Device);
    checkSameDevice(S->Device, need(From, "buffer").Device);
    checkRange(*To, ToOffset, Bytes, "a copy");
    checkRange(*From, FromOffset, Bytes, "a copy");
    if (To == From && ToOffset < FromOffset + Bytes &&
        FromOffset < ToOffset + Bytes && Bytes)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a copy overlaps itself");
    if (!Bytes)
      return;
    S->settle();
    if (S->Repeats && !S->Impl->Capturing) {
      S->Next.clear();
      S->Next.Words.push_back(Step::Copy);
      S->Next.object(To->Impl);
      S->Next.Words.push_back(ToOffset);
      S->Next.object(From->Impl);
      S->Next.Words.insert(S->Next.Words.end(), {FromOffset, Bytes});
      if (S->Repeats->takes(S->Next))
        return;
    }
    S->Impl->copy(To->Impl, ToOffset, From->Impl, FromOffset, Bytes);
  });
}

greta_status greta_buffer_copy_peer(greta_stream *ToStream, greta_buffer *To,
                                    size_t ToOffset, greta_stream *FromStream,
                                    const greta_buffer *From, size_t FromOffset,
                                    size_t Bytes) {
  Trace::Call Traced("greta_buffer_copy_peer");
  return guarded([&] {
    checkSameDevice(need(ToStream, "to_stream").Device, need(To, "to").Device);
    checkSameDevice(need(FromStream, "from_stream").Device,
                    need(From, "from").Device);
    checkRange(*To, ToOffset, Bytes, "a copy");
    checkRange(*From, FromOffset, Bytes, "a copy");
    Stream &In = *ToStream->Impl, &Out = *FromStream->Impl;
    if (In.Capturing || Out.Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "a graph cannot record a copy between streams");
    if (&In == &Out)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "a copy between streams takes two; greta_buffer_copy is in one");
    ToStream->endRepeats();
    FromStream->endRepeats();
    ToStream->settle();
    FromStream->settle();
    if (To->Device == From->Device) {
      std::unique_ptr<Event> Ready = To->Device->createEvent(),
                             Taken = To->Device->createEvent();
      Out.record(*Ready);
      In.wait(*Ready);
      In.copy(To->Impl, ToOffset, From->Impl, FromOffset, Bytes);
      In.record(*Taken);
      Out.wait(*Taken);
      return;
    }
    if (!Bytes)
      return;
    std::unique_ptr<comm::PeerCopy> &Copies = FromStream->Copies;
    if (!Copies || !Copies->isBetween(*From->Device, *To->Device))
      Copies = std::make_unique<comm::PeerCopy>(From->Device, To->Device);
    Copies->run(In, To->Impl, ToOffset, Out, From->Impl, FromOffset, Bytes);
  });
}

greta_status greta_buffer_fill(greta_stream *S, greta_buffer *B, size_t Offset,
                               size_t Bytes, uint32_t Word) {
  Trace::Call Traced("greta_buffer_fill");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(B, "buffer").Device);
    checkRange(*B, Offset, Bytes, "a fill");
    if (Offset % 4 || Bytes % 4)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "a fill needs offset and size in multiples of 4");
    if (!Bytes)
      return;
    S->settle();
    if (S->Repeats && !S->Impl->Capturing) {
      S->Next.clear();
      S->Next.Words.push_back(Step::Fill);
      S->Next.object(B->Impl);
      S->Next.Words.insert(S->Next.Words.end(), {Offset, Bytes, Word});
      if (S->Repeats->takes(S->Next))
        return;
    }
    S->Impl->fill(B->Impl, Offset, Bytes, Word);
  });
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
    S->Impl->synchronize();
    S->Traced.resolve();
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
    S->Impl->synchronize();
    S->Named.clear();
    for (const greta_stream::Timed &T : S->Times) {
      *Times++ = {T.Kernel->Name.c_str(), T.End->since(*T.Start)};
      S->Named.push_back(T.Kernel);
    }
    S->Times.clear();
  });
}

greta_status greta_event_create(greta_device *D, greta_event **Out) {
  return guarded([&] {
    need(Out, "event") = nullptr;
    auto &Impl = need(D, "device").Impl;
    *Out = new greta_event{Impl, Impl->createEvent(), {}};
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
    S->Impl->record(*E->Impl);
    E->Told = S->Told;
  });
}

greta_status greta_event_synchronize(greta_event *E) {
  Trace::Call Traced("greta_event_synchronize");
  return guarded([&] {
    need(E, "event").Impl->synchronize();
    comm::Comms(E->Told).tell();
  });
}

greta_status greta_event_wait(greta_event *E, uint64_t Microseconds,
                              int *Happened) {
  return guarded([&] {
    constexpr uint64_t most = UINT64_MAX / 1000 - 1;
    need(Happened, "happened") =
        need(E, "event").Impl->wait(std::min(Microseconds, most) * 1000);
    if (*Happened)
      comm::Comms(E->Told).tell();
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
    need(Microseconds, "microseconds") = End->Impl->since(*Start->Impl);
  });
}

greta_status greta_graph_begin(greta_stream *S) {
  return guarded([&] {
    if (need(S, "stream").Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "the stream is already recording a graph");
    S->endRepeats();
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
    *Out = new greta_graph{S->Device, S->Impl->endCapture()};
  });
}

greta_status greta_graph_launch(greta_graph *G, greta_stream *S) {
  Trace::Call Traced("greta_graph_launch");
  return guarded([&] {
    checkSameDevice(need(S, "stream").Device, need(G, "graph").Device);
    if (S->Impl->Capturing)
      return G->Impl->launch(*S->Impl);
    S->endRepeats();
    S->settle();
    S->Traced.launch(*S->Device, *S->Impl, "graph",
                     [&] { G->Impl->launch(*S->Impl); });
  });
}

void greta_graph_destroy(greta_graph *G) {
  guarded([&] { delete G; });
}

} // extern "C"
