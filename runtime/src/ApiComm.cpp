// ApiComm.cpp: the C API over communicators. In: handles, offsets and counts of
// a rank. Out: a checked collective, queued behind the stream's work.
#include "Api.h"
#include "comm/Rendezvous.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace greta::rt;
using namespace greta::rt::comm;

void greta_stream::settle(uint64_t Upto) {
  if (Impl->Capturing) {
    RecordedNeeds = std::max(RecordedNeeds, std::min(Upto, collectives()));
    return;
  }
  std::shared_ptr<Ticket> Last;
  for (; !Behind.empty() && Settled < Upto; ++Settled) {
    Last = std::move(Behind.front());
    Behind.pop_front();
  }
  IsAhead = !Behind.empty();
  std::shared_ptr<Comm> Of = IsAhead ? By : std::move(By);
  if (!IsAhead)
    By = nullptr;
  if (!Last)
    return;
  try {
    Of->checkProcess();
    if (Last->Until) {
      Impl->await(Last->Until, Last->UntilValue);
      Told.add(Of);
      return;
    }
    if (!Last->Done)
      Impl->flush(); // starts what is queued
    Of->wait(*Last);
  } catch (...) { // fails the collectives behind it, too
    Settled += Behind.size();
    Behind.clear();
    By = nullptr;
    IsAhead = false;
    throw;
  }
  for (const std::shared_ptr<Event> &E : Last->Ends)
    Impl->wait(*E);
}

void greta_stream::tell() {
  Told.tell();
  Impl->Logs.tell(*Impl);
}

void greta_event::tell() const {
  comm::Comms(Told).tell();
  tellLogs(*Device, Logs);
}

Element greta::rt::elementOf(const char *DType) {
  std::string Name = &need(DType, "dtype");
  for (size_t I = 0; I < elements.size(); ++I)
    if (Name == elements[I].Name)
      return static_cast<Element>(I);
  std::string Known;
  for (const ElementInfo &One : elements)
    Known += concat(Known.empty() ? "" : ", ", One.Name);
  fail(GRETA_ERROR_INVALID_ARGUMENT, "reductions are of ", Known, ", not of ",
       printable(Name));
}

// Cuts the graph, as no back end records the collective: one part ends here,
// and another one begins behind it.
static void cut(const std::shared_ptr<Comm> &C, greta_stream &S,
                Collective What) {
  C->check();
  try {
    S.Recorded.push_back({S.Impl->endCapture(), C, std::move(What),
                          std::exchange(S.RecordedNeeds, 0)});
    // Kernels of the same function go on behind the cut.
    S.Impl->RecordedZeroed = S.Recorded.back().Impl->Zeroed;
    S.Impl->beginCapture();
  } catch (...) {
    S.Impl->Capturing = false;
    S.Recorded.clear();
    throw;
  }
}

// It comes behind the stream's queued work. If collectives follow each other in
// one stream without work between them, only the first waits for it.
void greta::rt::queueCollective(const std::shared_ptr<Comm> &C, greta_stream &S,
                                Collective What) {
  C->checkProcess(); // nothing may be queued before this
  if (C->isSmall(What)) {
    if (!S.Impl->Capturing)
      S.endRepeats();
    S.settle();
    C->queueSmall(*S.Impl, What);
    (S.Impl->Capturing ? S.RecordedBy : S.Told).add(C);
    return;
  }
  if (S.Impl->Capturing)
    return cut(C, S, std::move(What));
  S.endRepeats();
  bool OnDevice = C->ordersOnDevice(What);
  if (S.By != C || OnDevice != bool(S.Behind.back()->Until))
    S.settle();
  bool Follows = !S.Behind.empty() && !S.IsAhead;
  if (!Follows && OnDevice) {
    if (!S.Ready)
      S.Ready = S.Device->createCounter();
    What.After = S.Ready;
    What.AfterValue = ++S.ReadyValue;
    S.Impl->raise(What.After, What.AfterValue);
  } else if (!Follows) {
    What.Ready = S.Device->createEvent();
    S.Impl->record(*What.Ready);
    S.Impl->flush();
  }
  S.Behind.push_back(C->queue(std::move(What)));
  S.By = C;
  S.IsAhead = false;
  // The later ones end behind it, and only the parts of one sum are waited for
  // one by one.
  if (S.Behind.size() > mostParts) {
    S.Behind.pop_front();
    ++S.Settled;
  }
}

namespace {

Reduction reductionOf(greta_comm_reduction Op) {
  if (Op >= reductionCount)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "unknown reduction ", Op);
  return static_cast<Reduction>(Op);
}

void checkPeer(const Comm &C, uint32_t Rank, const char *What) {
  if (Rank >= C.Size)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", Rank, " is none of ", C.Size,
         " ranks");
}

size_t times(size_t A, size_t B) {
  size_t Product;
  if (__builtin_mul_overflow(A, B, &Product))
    fail(GRETA_ERROR_INVALID_ARGUMENT, A, " times ", B, " is too much");
  return Product;
}

// Queues a collective of two buffers. Each rank's part of `From` is `Gives`
// times the collective's count, and its part of `To` `Gets` times.
greta_status collective(const char *Call, greta_comm *C, greta_stream *S,
                        Collective What, greta_buffer *To, size_t ToOffset,
                        const greta_buffer *From, size_t FromOffset,
                        bool GivesAll, bool GetsAll) {
  Trace::Call Traced(Call);
  return guarded([&] {
    Comm &Impl = *need(C, "comm").Impl;
    checkSameDevice(Impl.On, need(S, "stream").Device);
    checkSameDevice(Impl.On, need(To, "to").Device);
    bool IsGiven = What.What != Kind::Broadcast || What.Root == Impl.Rank;
    size_t Part = times(What.Count, bytesOf(What.Type));
    size_t Gets = times(Part, GetsAll ? Impl.Size : 1);
    checkRange(*To, ToOffset, Gets, Call);
    if (ToOffset % bytesOf(What.Type) || FromOffset % bytesOf(What.Type))
      fail(GRETA_ERROR_INVALID_ARGUMENT, Call,
           ": offsets are multiples of the element's size");
    if (IsGiven) {
      checkSameDevice(Impl.On, need(From, "from").Device);
      size_t Gives = times(Part, GivesAll ? Impl.Size : 1);
      checkRange(*From, FromOffset, Gives, Call);
      bool Overlaps = To->Impl == From->Impl && Part &&
                      ToOffset < FromOffset + Gives &&
                      FromOffset < ToOffset + Gets;
      size_t Own = Impl.Rank * Part;
      bool InPlace = GivesAll == GetsAll ? ToOffset == FromOffset && !GivesAll
                     : GetsAll           ? FromOffset == ToOffset + Own
                                         : ToOffset == FromOffset + Own;
      if (Overlaps && !InPlace)
        fail(GRETA_ERROR_INVALID_ARGUMENT, Call, ": `to` overlaps `from`");
      What.From = From->Impl;
      What.FromOffset = FromOffset;
    } else {
      What.From = To->Impl;
      What.FromOffset = ToOffset;
    }
    What.To = To->Impl;
    What.ToOffset = ToOffset;
    queueCollective(C->Impl, *S, std::move(What));
  });
}

greta_status reduction(const char *Call, Kind What, greta_comm *C,
                       greta_stream *S, greta_buffer *To, size_t ToOffset,
                       const greta_buffer *From, size_t FromOffset,
                       size_t Count, const char *DType, greta_comm_reduction Op,
                       bool GivesAll) {
  Collective Made;
  Made.What = What;
  Made.Count = Count;
  if (greta_status Status = guarded([&] {
        Made.Type = elementOf(DType);
        Made.Op = reductionOf(Op);
      }))
    return Status;
  return collective(Call, C, S, std::move(Made), To, ToOffset, From, FromOffset,
                    GivesAll, false);
}

Comm::Options optionsOf(const greta_comm_options &Taken) {
  Comm::Options O;
  if (Taken.path ? Taken.id || Taken.address : !Taken.id && !Taken.address)
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "ranks find each other by an id or by a path, and on several hosts "
         "by an address");
  if (Taken.address && !*Taken.address)
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "'' is no address: it is host:port of rank 0");
  if (Taken.id)
    memcpy(O.At.Name.data(), Taken.id->bytes, O.At.Name.size());
  if (Taken.path)
    O.At.Path = Taken.path;
  if (Taken.address)
    O.At.Address = Taken.address;
  O.Rank = Taken.rank;
  O.Size = Taken.size;
  if (Taken.timeout_milliseconds)
    O.TimeoutMs = std::min<uint64_t>(Taken.timeout_milliseconds, INT32_MAX);
  O.StagingBytes = Taken.staging_bytes;
  if (Taken.ways &
      ~uint32_t(GRETA_COMM_NCCL | GRETA_COMM_HOST | GRETA_COMM_KERNEL))
    fail(GRETA_ERROR_UNSUPPORTED, "unknown ways for collectives");
  O.Ways = Taken.ways ? Taken.ways : ~uint32_t(0);
  return O;
}

} // namespace

extern "C" {

greta_status greta_comm_unique_id(greta_comm_id *Id) {
  return guarded([&] {
    Group::Id Made = Group::newId();
    memcpy(need(Id, "id").bytes, Made.data(), Made.size());
  });
}

greta_status greta_comm_create(greta_device *D,
                               const greta_comm_options *Options,
                               greta_comm **Out) {
  return guarded([&] {
    need(Out, "comm") = nullptr;
    greta_comm_options Taken = taken(Options, "options");
    Comm::Options O = optionsOf(Taken);
    auto End = [Process = getpid()](Comm *C) {
      if (Process == getpid())
        delete C; // a forked process lacks its threads
    };
    *Out = new greta_comm{
        std::shared_ptr<Comm>(new Comm(need(D, "device").Impl, O), End)};
  });
}

greta_status greta_comm_decline(const greta_comm_options *Options,
                                const char *Reason) {
  return guarded([&] {
    greta_comm_options Taken = taken(Options, "options");
    Comm::Options O = optionsOf(Taken);
    const std::string Why = &need(Reason, "reason");
    Group::checkRank(O.Rank, O.Size);
    if (O.At.Address.empty())
      Group::decline(O.At, O.Rank, O.Size, O.TimeoutMs, Why);
    else
      decline(O.At.Address, O.At.Name, O.Rank, O.Size,
              std::chrono::milliseconds(O.TimeoutMs), Why);
  });
}

void greta_comm_destroy(greta_comm *C) {
  guarded([&] { delete C; });
}

greta_status greta_comm_info(greta_comm *C, char **Json) {
  return guarded([&] {
    nlohmann::json J;
    need(C, "comm").Impl->describe(J);
    // Another process's words may not be UTF-8.
    need(Json, "json") = copyString(
        J.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

greta_status greta_comm_abort(greta_comm *C) {
  return guarded([&] {
    Comm &Impl = *need(C, "comm").Impl;
    Impl.abort(concat("rank ", Impl.Rank, " ended it"));
  });
}

greta_status greta_comm_fail(greta_comm *C, const char *Reason) {
  return guarded([&] {
    Comm &Impl = *need(C, "comm").Impl;
    Impl.abort(concat("rank ", Impl.Rank, ": ", &need(Reason, "reason")));
  });
}

greta_status greta_comm_all_reduce(greta_comm *C, greta_stream *S,
                                   greta_buffer *To, size_t ToOffset,
                                   const greta_buffer *From, size_t FromOffset,
                                   size_t Count, const char *DType,
                                   greta_comm_reduction Op) {
  return reduction("greta_comm_all_reduce", Kind::AllReduce, C, S, To, ToOffset,
                   From, FromOffset, Count, DType, Op, false);
}

greta_status greta_comm_reduce_scatter(greta_comm *C, greta_stream *S,
                                       greta_buffer *To, size_t ToOffset,
                                       const greta_buffer *From,
                                       size_t FromOffset, size_t Count,
                                       const char *DType,
                                       greta_comm_reduction Op) {
  return reduction("greta_comm_reduce_scatter", Kind::ReduceScatter, C, S, To,
                   ToOffset, From, FromOffset, Count, DType, Op, true);
}

greta_status greta_comm_all_gather(greta_comm *C, greta_stream *S,
                                   greta_buffer *To, size_t ToOffset,
                                   const greta_buffer *From, size_t FromOffset,
                                   size_t Bytes) {
  Collective What;
  What.What = Kind::AllGather;
  What.Count = Bytes;
  return collective("greta_comm_all_gather", C, S, std::move(What), To,
                    ToOffset, From, FromOffset, false, true);
}

greta_status greta_comm_broadcast(greta_comm *C, greta_stream *S,
                                  greta_buffer *To, size_t ToOffset,
                                  const greta_buffer *From, size_t FromOffset,
                                  size_t Bytes, uint32_t Root) {
  Collective What;
  What.What = Kind::Broadcast;
  What.Count = Bytes;
  What.Root = Root;
  if (greta_status Status =
          guarded([&] { checkPeer(*need(C, "comm").Impl, Root, "root"); }))
    return Status;
  return collective("greta_comm_broadcast", C, S, std::move(What), To, ToOffset,
                    From, FromOffset, false, false);
}

greta_status greta_comm_all_to_all(greta_comm *C, greta_stream *S,
                                   greta_buffer *To, size_t ToOffset,
                                   const greta_buffer *From, size_t FromOffset,
                                   size_t Bytes) {
  Collective What;
  What.What = Kind::AllToAll;
  What.Count = Bytes;
  return collective("greta_comm_all_to_all", C, S, std::move(What), To,
                    ToOffset, From, FromOffset, true, true);
}

greta_status greta_comm_send(greta_comm *C, greta_stream *S,
                             const greta_buffer *From, size_t Offset,
                             size_t Bytes, uint32_t Peer) {
  greta_comm_transfer T{const_cast<greta_buffer *>(From), Offset, Bytes, Peer,
                        0};
  return greta_comm_exchange(C, S, &T, 1);
}

greta_status greta_comm_receive(greta_comm *C, greta_stream *S,
                                greta_buffer *To, size_t Offset, size_t Bytes,
                                uint32_t Peer) {
  greta_comm_transfer T{To, Offset, Bytes, Peer, 1};
  return greta_comm_exchange(C, S, &T, 1);
}

greta_status greta_comm_exchange(greta_comm *C, greta_stream *S,
                                 const greta_comm_transfer *Transfers,
                                 size_t Count) {
  Trace::Call Traced("greta_comm_exchange");
  return guarded([&] {
    Comm &Impl = *need(C, "comm").Impl;
    checkSameDevice(Impl.On, need(S, "stream").Device);
    Collective What;
    for (size_t I = 0; I < Count; ++I) {
      const greta_comm_transfer &T = (&need(Transfers, "transfers"))[I];
      checkSameDevice(Impl.On, need(T.buffer, "buffer").Device);
      checkRange(*T.buffer, T.offset, T.bytes, "a transfer");
      checkPeer(Impl, T.peer, "peer");
      What.Transfers.push_back(
          {T.buffer->Impl, T.offset, T.bytes, T.peer, T.receives != 0});
    }
    queueCollective(C->Impl, *S, std::move(What));
  });
}

} // extern "C"
