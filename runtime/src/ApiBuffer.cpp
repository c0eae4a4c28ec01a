// ApiBuffer.cpp: the C API over buffers. In: handles of devices, streams and
// buffers. Out: buffers, and what streams are told to do with their bytes.
#include "Api.h"

using namespace greta::rt;

namespace {

void checkKind(greta_fd_kind Kind) {
  if (Kind != GRETA_FD_OPAQUE && Kind != GRETA_FD_DMA_BUF)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "unknown kind of file descriptor ",
         Kind);
}

// Makes a buffer of the memory that `Make` returns.
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

} // namespace

extern "C" {

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
    if (!Bytes)
      return;
    S->Impl->Logs.look(*S->Impl);
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
    bool IsOne = To->Device == From->Device;
    if (!Bytes && !IsOne)
      return;
    if (IsOne || To->Device->copiesFrom(*From->Device)) {
      std::unique_ptr<Event> Ready = From->Device->createEvent(),
                             Taken = To->Device->createEvent();
      Out.record(*Ready);
      In.wait(*Ready);
      if (IsOne)
        In.copy(To->Impl, ToOffset, From->Impl, FromOffset, Bytes);
      else
        In.copyPeer(To->Impl, ToOffset, *From->Device, From->Impl, FromOffset,
                    Bytes);
      In.record(*Taken);
      Out.wait(*Taken);
      return;
    }
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

} // extern "C"
