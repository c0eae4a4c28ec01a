// HostTransport.cpp: collectives through the host's memory, for any devices of
// one host, or of several whose memories the Group keeps alike.
//
//   step t of a collective, a slot's worth of it:
//     give    each rank's device copies its part into the rank's slot
//     reduce  each rank's processor reduces one part of all slots into the
//             result
//     take    each rank's device copies what it gets from slots or result
//
// Four steps are under way at once, so that both directions of the bus and the
// processors work at the same time. The counters in Group::State say how far
// each rank is; a slot is written again when every rank has taken what it had.
#include "comm/Comm.h"
#include "comm/Lane.h"

#include <algorithm>
#include <cstring>

namespace greta::rt::comm {
namespace {

constexpr size_t partUnit = 64; // bytes; parts of a slot begin at multiples
// One thread reduces fewer bytes before others have begun.
constexpr size_t leastParallelBytes = size_t(256) << 10;

size_t ceilDiv(size_t A, size_t B) { return (A + B - 1) / B; }

// The memory of the group as the device sees it. If the device cannot import
// it, the processor copies to pinned memory beside it.
struct Staging {
  Staging(Device &D, Group &G) : Shared(G.data()) {
    try {
      Seen = D.importPointer(G.data(), G.dataBytes());
    } catch (const Error &) {
      Seen = D.allocateMapped(G.dataBytes());
      Beside = static_cast<char *>(Seen->Mapped);
    }
  }
  // Call this after the device wrote it, and before it reads it.
  void publish(size_t At, size_t Bytes) {
    if (Beside)
      memcpy(Shared + At, Beside + At, Bytes);
  }
  void fetch(size_t At, size_t Bytes) {
    if (Beside)
      memcpy(Beside + At, Shared + At, Bytes);
  }
  char *Shared;
  char *Beside = nullptr;
  MemoryRef Seen;
};

// A copy between the device's memory and the group's.
struct Piece {
  const MemoryRef *Memory;
  size_t Offset, Staged, Bytes;
};

// The copies of one collective that are under way.
class Flow {
public:
  virtual ~Flow() = default;
  virtual bool advance() = 0; // returns whether anything happened
  virtual bool isDone() const = 0;
  // Throws if a rank is gone that it waits for.
  virtual void check(Group::Clock::time_point Since) = 0;
  virtual void ends(std::vector<std::shared_ptr<Event>> &Out) = 0;
};

struct Host {
  Host(std::shared_ptr<Device> Owner, Group &G)
      : D(std::move(Owner)), G(G), Memory(*D, G), Out(D->createStream()),
        In(D->createStream()),
        Threads(
            std::min(3u, std::thread::hardware_concurrency() / (4 * G.Size))) {}
  void give(Lane &L, const std::vector<Piece> &Pieces) {
    for (const Piece &P : Pieces)
      L.S.copy(Memory.Seen, P.Staged, *P.Memory, P.Offset, P.Bytes);
    L.issued();
  }
  void take(Lane &L, const std::vector<Piece> &Pieces) {
    for (const Piece &P : Pieces) {
      Memory.fetch(P.Staged, P.Bytes);
      L.S.copy(*P.Memory, P.Offset, Memory.Seen, P.Staged, P.Bytes);
    }
    L.issued();
  }
  std::shared_ptr<Device> D;
  Group &G;
  Staging Memory;
  std::unique_ptr<Stream> Out, In;
  Helpers Threads;
  uint64_t Steps = 0; // steps of all collectives before
};

size_t elementsOfAStep(const Group &G, const Collective &C) {
  size_t Unit = partUnit / bytesOf(C.Type);
  size_t Fits = G.slotBytes() / bytesOf(C.Type);
  if (C.What == Kind::ReduceScatter || C.What == Kind::AllToAll)
    return std::max(Fits / G.Size / Unit, size_t(1)) * Unit;
  return Fits;
}

class CollectiveFlow : public Flow {
public:
  CollectiveFlow(Host &H, const Collective &C)
      : H(H), G(H.G), C(C), First(H.Steps), StepCount(elementsOfAStep(H.G, C)),
        Steps(ceilDiv(C.Count, StepCount)), Out(*H.D, *H.Out),
        // A single step has nothing to overlap, and a device may take long to
        // switch from one queue to another.
        In(*H.D, Steps > 1 ? *H.In : *H.Out) {
    H.Steps += Steps;
    // Ranks with different collectives would read each other's bytes as theirs.
    Doing = C.hash();
  }
  bool isDone() const override { return In.Done == Steps; }
  void ends(std::vector<std::shared_ptr<Event>> &All) override {
    for (Lane *L : {&Out, &In})
      if (L->Issued)
        All.push_back(L->Ends[(L->Issued - 1) % Lane::slots]);
  }
  bool advance() override;
  void check(Group::Clock::time_point Since) override {
    G.check([&](uint32_t R) { return waitsFor(R); }, Since, comm::name(C.What));
  }

private:
  bool waitsFor(uint32_t R) {
    Group::State &S = G.of(R);
    return (Out.Issued < Steps && !isFree(S, Out.Issued)) ||
           (Reduced < Steps && S.Given <= First + Reduced) ||
           (In.Issued < Reduced && S.Reduced <= First + In.Issued);
  }
  bool isFree(const Group::State &S, uint64_t T) const {
    return S.Taken + Lane::slots > First + T;
  }
  template <typename Test> bool all(Test T) {
    for (uint32_t R = 0; R < G.Size; ++R)
      if (!T(G.of(R)))
        return false;
    return true;
  }
  size_t countOf(uint64_t T) const {
    return std::min(StepCount, C.Count - T * StepCount);
  }
  // Returns the distance of the parts of one step in a slot, for ReduceScatter
  // and AllToAll.
  size_t pitch() const { return StepCount * bytesOf(C.Type); }
  std::vector<Piece> given(uint64_t T) const;
  std::vector<Piece> taken(uint64_t T) const;
  std::pair<size_t, size_t> partOf(uint32_t R, uint64_t T) const;
  void sendGiven(uint64_t T);
  void reduceStep(uint64_t T);

  Host &H;
  Group &G;
  const Collective C;
  const uint64_t First;   // the first step's number in the group
  const size_t StepCount; // elements of a step
  const uint64_t Steps;
  uint64_t Doing;
  uint64_t Reduced = 0;
  Lane Out, In;
};

std::vector<Piece> CollectiveFlow::given(uint64_t T) const {
  size_t E = bytesOf(C.Type), At = T * StepCount * E, Bytes = countOf(T) * E;
  size_t Slot = G.slotAt(G.Rank, First + T);
  std::vector<Piece> Pieces;
  if (C.What == Kind::ReduceScatter || C.What == Kind::AllToAll)
    for (uint32_t R = 0; R < G.Size; ++R)
      Pieces.push_back({&C.From, C.FromOffset + R * C.bytes() + At,
                        Slot + R * pitch(), Bytes});
  else if (C.What != Kind::Broadcast || C.Root == G.Rank)
    Pieces.push_back({&C.From, C.FromOffset + At, Slot, Bytes});
  return Pieces;
}

std::vector<Piece> CollectiveFlow::taken(uint64_t T) const {
  size_t E = bytesOf(C.Type), At = T * StepCount * E, Bytes = countOf(T) * E;
  uint64_t Step = First + T;
  switch (C.What) {
  case Kind::AllReduce:
    return {{&C.To, C.ToOffset + At, G.resultAt(Step), Bytes}};
  case Kind::ReduceScatter:
    return {
        {&C.To, C.ToOffset + At, G.resultAt(Step) + G.Rank * pitch(), Bytes}};
  case Kind::Broadcast:
    return {{&C.To, C.ToOffset + At, G.slotAt(C.Root, Step), Bytes}};
  case Kind::AllGather:
  case Kind::AllToAll:
  case Kind::Exchange:
    break;
  }
  std::vector<Piece> Pieces;
  size_t Part = C.What == Kind::AllToAll ? G.Rank * pitch() : 0;
  for (uint32_t R = 0; R < G.Size; ++R)
    Pieces.push_back({&C.To, C.ToOffset + R * C.bytes() + At,
                      G.slotAt(R, Step) + Part, Bytes});
  return Pieces;
}

// Returns the elements of a slot that a rank reduces.
std::pair<size_t, size_t> CollectiveFlow::partOf(uint32_t R, uint64_t T) const {
  size_t End = countOf(T);
  if (C.What == Kind::ReduceScatter)
    return {0, End};
  size_t Unit = partUnit / bytesOf(C.Type);
  size_t Part = ceilDiv(ceilDiv(End, G.Size), Unit) * Unit;
  size_t Begin = std::min(End, R * Part);
  return {Begin, std::min(End, Begin + Part)};
}

// Sends ranks of other hosts what each of them reads.
void CollectiveFlow::sendGiven(uint64_t T) {
  if (!G.isSpread())
    return;
  std::vector<Piece> Pieces = given(T);
  for (uint32_t R = 0; R < G.Size; ++R) {
    if (C.What == Kind::AllReduce) {
      auto [Begin, End] = partOf(R, T);
      size_t E = bytesOf(C.Type);
      G.give(R, Pieces.front().Staged + Begin * E, (End - Begin) * E);
    } else if (C.What == Kind::ReduceScatter || C.What == Kind::AllToAll) {
      G.give(R, Pieces[R].Staged, Pieces[R].Bytes);
    } else {
      for (const Piece &P : Pieces)
        G.give(R, P.Staged, P.Bytes);
    }
  }
}

// Reduces this rank's part of the result.
void CollectiveFlow::reduceStep(uint64_t T) {
  size_t E = bytesOf(C.Type);
  size_t Offset = C.What == Kind::ReduceScatter ? G.Rank * pitch() : 0;
  const std::pair<size_t, size_t> Part = partOf(G.Rank, T);
  const size_t Begin = Part.first, End = Part.second;
  auto Reduce = [&](size_t From, size_t To) {
    std::array<const char *, Group::maxRanks> Parts;
    for (uint32_t R = 0; R < G.Size; ++R)
      Parts[R] = G.data() + G.slotAt(R, First + T) + Offset + From * E;
    reduce(C.Type, C.Op, Parts.data(), G.Size,
           G.data() + G.resultAt(First + T) + Offset + From * E, To - From);
  };
  if ((End - Begin) * E < leastParallelBytes)
    return Reduce(Begin, End);
  H.Threads.run([&](unsigned I, unsigned N) {
    size_t Unit = partUnit / E;
    size_t Part = ceilDiv(ceilDiv(End - Begin, N), Unit) * Unit;
    size_t From = std::min(End, Begin + I * Part);
    Reduce(From, std::min(End, From + Part));
  });
}

bool CollectiveFlow::advance() {
  Group::State &Own = G.own();
  bool Moved = false;
  if (uint64_t T = Out.Issued;
      T < Steps && all([&](Group::State &S) { return isFree(S, T); })) {
    H.give(Out, given(T));
    Moved = true;
  }
  if (Out.poll()) {
    uint64_t T = Out.Done - 1;
    for (const Piece &P : given(T))
      H.Memory.publish(P.Staged, P.Bytes);
    sendGiven(T);
    G.set(Own.Doing[(First + T) % Lane::slots], Doing);
    G.set(Own.Given, First + T + 1);
    Moved = true;
  }
  if (uint64_t T = Reduced;
      T < Steps && all([&](Group::State &S) { return S.Given > First + T; })) {
    for (uint32_t R = 0; R < G.Size; ++R)
      if (G.of(R).Doing[(First + T) % Lane::slots] != Doing)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "ranks ", G.Rank, " and ", R,
             " differ in the collective that they call, or in its sizes: rank ",
             G.Rank, " is in ", comm::name(C.What), " of ", C.Count,
             " elements");
    if (C.What == Kind::AllReduce || C.What == Kind::ReduceScatter)
      reduceStep(T);
    if (C.What == Kind::AllReduce) {
      auto [Begin, End] = partOf(G.Rank, T);
      size_t E = bytesOf(C.Type);
      for (uint32_t R = 0; R < G.Size; ++R)
        G.give(R, G.resultAt(First + T) + Begin * E, (End - Begin) * E);
    }
    G.set(Own.Reduced, First + ++Reduced);
    Moved = true;
  }
  if (uint64_t T = In.Issued;
      T < Reduced && (C.What != Kind::AllReduce || all([&](Group::State &S) {
                        return S.Reduced > First + T;
                      }))) {
    H.take(In, taken(T));
    Moved = true;
  }
  if (In.poll()) {
    G.set(Own.Taken, First + In.Done);
    Moved = true;
  }
  return Moved;
}

// Runs sends and receives that go on together.
class ExchangeFlow : public Flow {
public:
  ExchangeFlow(Host &H, const Collective &C) : H(H), G(H.G), C(C) {
    for (const Transfer &T : this->C.Transfers) {
      Parts.emplace_back(T, *H.D, T.Receives ? *H.In : *H.Out);
      Part &P = Parts.back();
      P.Steps = ceilDiv(T.Bytes, G.pairBytes());
      // Two transfers with one peer are in the order of the list.
      P.First = T.Receives ? G.own().PairTaken[T.Peer].load()
                           : G.own().PairGiven[T.Peer].load();
      for (const Part &Q : Parts)
        if (&Q != &P && Q.T.Peer == T.Peer && Q.T.Receives == T.Receives)
          P.First = std::max(P.First, Q.First + Q.Steps);
    }
  }
  bool isDone() const override {
    return std::all_of(Parts.begin(), Parts.end(),
                       [](const Part &P) { return P.L.Done == P.Steps; });
  }
  bool advance() override {
    bool Moved = false;
    for (Part &P : Parts) {
      if (P.L.Issued < P.Steps && isFree(P) && isNext(P)) {
        size_t At = P.L.Issued * G.pairBytes();
        if (P.T.Receives)
          checkSize(P);
        std::vector<Piece> Pieces = {{&P.T.Memory, P.T.Offset + At,
                                      stagedAt(P, P.L.Issued),
                                      std::min(G.pairBytes(), P.T.Bytes - At)}};
        if (P.T.Receives)
          H.take(P.L, Pieces);
        else
          H.give(P.L, Pieces);
        Moved = true;
      }
      if (P.L.poll()) {
        uint64_t Step = P.L.Done - 1;
        Group::State &Own = G.own();
        if (!P.T.Receives) {
          size_t Bytes =
              std::min(G.pairBytes(), P.T.Bytes - Step * G.pairBytes());
          H.Memory.publish(stagedAt(P, Step), Bytes);
          G.give(P.T.Peer, stagedAt(P, Step), Bytes);
          G.set(Own.PairBytes[P.T.Peer][(P.First + Step) % Lane::slots],
                P.T.Bytes, P.T.Peer);
        }
        G.set((P.T.Receives ? Own.PairTaken : Own.PairGiven)[P.T.Peer],
              P.First + P.L.Done, P.T.Peer);
        Moved = true;
      }
    }
    return Moved;
  }
  void check(Group::Clock::time_point Since) override {
    G.check(
        [&](uint32_t R) {
          return std::any_of(Parts.begin(), Parts.end(), [&](const Part &P) {
            return P.T.Peer == R && P.L.Issued < P.Steps && !isFree(P);
          });
        },
        Since, comm::name(C.What));
  }
  void ends(std::vector<std::shared_ptr<Event>> &All) override {
    for (Part &P : Parts)
      if (P.L.Issued)
        All.push_back(P.L.Ends[(P.L.Issued - 1) % Lane::slots]);
  }

private:
  struct Part {
    Part(const Transfer &T, Device &D, Stream &S) : T(T), L(D, S) {}
    const Transfer &T;
    Lane L;
    uint64_t First = 0, Steps = 0;
  };
  size_t stagedAt(const Part &P, uint64_t Step) const {
    return P.T.Receives ? G.pairAt(P.T.Peer, G.Rank, P.First + Step)
                        : G.pairAt(G.Rank, P.T.Peer, P.First + Step);
  }
  // Transfers of one direction with one peer come one after the other.
  bool isNext(const Part &P) const {
    for (const Part &Q : Parts) {
      if (&Q == &P)
        break;
      if (Q.T.Peer == P.T.Peer && Q.T.Receives == P.T.Receives &&
          Q.L.Done < Q.Steps)
        return false;
    }
    return true;
  }
  void checkSize(const Part &P) const {
    uint64_t Sent =
        G.of(P.T.Peer).PairBytes[G.Rank][(P.First + P.L.Issued) % Lane::slots];
    if (Sent != P.T.Bytes)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "rank ", P.T.Peer, " sends ", Sent,
           " bytes, rank ", G.Rank, " receives ", P.T.Bytes);
  }
  // A sender waits for room, a receiver for bytes.
  bool isFree(const Part &P) const {
    uint64_t Step = P.First + P.L.Issued;
    const Group::State &Peer = G.of(P.T.Peer);
    return P.T.Receives ? Peer.PairGiven[G.Rank] > Step
                        : Peer.PairTaken[G.Rank] + Lane::slots > Step &&
                              P.L.Issued < P.L.Done + Lane::slots;
  }
  Host &H;
  Group &G;
  const Collective C;
  std::deque<Part> Parts;
};

class HostTransport : public Transport {
public:
  HostTransport(std::shared_ptr<Device> D, Group &G) : H(std::move(D), G) {}

  void begin(const Collective &C, const std::shared_ptr<Ticket> &T) override {
    Waiting.emplace_back(C, T);
  }
  uint64_t done() const override { return Done; }
  // The copies that are under way use the caller's memory.
  void abort() override {
    for (Stream *S : {H.Out.get(), H.In.get()})
      try {
        S->synchronize();
      } catch (const Error &) {
      }
    Now.reset();
    Waiting.clear();
  }
  bool progress() override {
    if (Waiting.empty())
      return false;
    bool Moved = Now ? Now->advance() : start();
    if (Now && Now->isDone()) {
      Now->ends(Waiting.front().second->Ends);
      Now.reset();
      Waiting.pop_front();
      ++Done;
      return true;
    }
    auto Time = Group::Clock::now();
    if (Moved)
      Since = Asked = Time;
    else if (Time - Asked > std::chrono::milliseconds(5)) {
      Asked = Time;
      // A rank that waits for its own device waits for no rank.
      if (Now)
        Now->check(Since);
      else
        H.G.check([](uint32_t) { return false; }, Since, "");
    }
    return Moved;
  }

private:
  bool start() {
    H.G.checkEnded();
    const Collective &C = Waiting.front().first;
    if (C.Ready) {
      if (!C.Ready->wait(0))
        return false;
      H.Out->wait(*C.Ready);
      H.In->wait(*C.Ready);
    }
    if (C.What == Kind::Exchange)
      Now = std::make_unique<ExchangeFlow>(H, C);
    else
      Now = std::make_unique<CollectiveFlow>(H, C);
    return true;
  }
  Host H;
  std::deque<std::pair<Collective, std::shared_ptr<Ticket>>> Waiting;
  std::unique_ptr<Flow> Now;
  Group::Clock::time_point Since = Group::Clock::now(), Asked = Since;
  uint64_t Done = 0;
};

} // namespace

std::unique_ptr<Transport> makeHostTransport(std::shared_ptr<Device> D,
                                             Group &G) {
  return std::make_unique<HostTransport>(std::move(D), G);
}

} // namespace greta::rt::comm
