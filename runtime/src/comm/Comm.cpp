// Comm.cpp: a communicator from its creation to its end; see Comm.h.
#include "comm/Comm.h"
#include "Process.h"
#include "comm/Accelerator.h"
#include "comm/SmallReduce.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace greta::rt::comm {

const char *name(Kind What) {
  switch (What) {
  case Kind::AllReduce:
    return "all_reduce";
  case Kind::AllGather:
    return "all_gather";
  case Kind::ReduceScatter:
    return "reduce_scatter";
  case Kind::Broadcast:
    return "broadcast";
  case Kind::AllToAll:
    return "all_to_all";
  case Kind::Exchange:
    return "send and receive";
  }
  return "";
}

Comm::Comm(std::shared_ptr<Device> D, const Options &O)
    : On(std::move(D)), Rank(O.Rank), Size(O.Size),
      G(std::make_unique<Group>(O.At, O.Rank, O.Size, O.TimeoutMs,
                                O.StagingBytes)) {
  try {
    choose(O.Ways);
    if (O.Ways & GRETA_COMM_KERNEL)
      chooseSmall();
    else
      Left["kernel"] = "it was not asked for";
  } catch (const Error &E) {
    G->abort(concat("rank ", Rank, ": ", E.what()));
    throw;
  }
  Worker = std::thread([this] { work(); });
}

Comm::~Comm() {
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Waiting = Closing = true;
  }
  Queued.notify_all();
  Worker.join();
  Way.reset();
}

std::string Comm::agree(const std::string &Why) {
  std::string All;
  std::vector<std::string> Heard = G->meet(Why);
  for (uint32_t R = 0; R < Size; ++R)
    if (!Heard[R].empty() && All.empty())
      All = concat("rank ", R, ": ", Heard[R]);
  return All;
}

// Takes NCCL if every rank has it and its test is right on every rank, else the
// host's memory. The ranks meet behind each step, so all take the same way.
void Comm::choose(uint32_t Ways) {
  uint32_t Number = 0;
  auto Try = [&](const char *Name, auto Make) {
    std::string Why;
    std::unique_ptr<Transport> Made;
    G->tries(++Number);
    auto Attempt = [&](auto Body) {
      std::string Word; // the reason of a rank that gave up itself
      try {
        Body();
        Word = Why;
      } catch (const Group::GaveUp &E) {
        Why = E.what();
      } catch (const std::exception &E) { // a thread may fail to start
        Why = Word = E.what();
      }
      if (!Why.empty())
        G->giveUp();
      std::string All = agree(Word);
      if (!All.empty())
        Why = All;
    };
    Attempt([&] { Made = Make(); });
    if (Why.empty() && !agree(Made->counter() ? "" : "none").empty())
      Made->dropCounter();
    if (Why.empty()) {
      Attempt([&] { Why = test(*Made); });
      if (!Why.empty())
        report(GRETA_LOG_WARNING,
               concat("rank ", Rank, " on ", On->Spec, ": collectives by ",
                      Name, " are left out: ", Why));
    }
    G->tries(0);
    if (!Why.empty()) {
      if (Made)
        Made->abort();
      Left[Name] = Why;
      return;
    }
    Way = std::move(Made);
    WayName = Name;
  };

  std::string Offer, Lacks;
  std::shared_ptr<Accelerator> A;
  try {
    if (!(Ways & GRETA_COMM_NCCL))
      fail(GRETA_ERROR_UNSUPPORTED, "it was not asked for");
    Offer = ncclOffer(On, *G, A);
  } catch (const Error &E) {
    Lacks = E.what();
  }
  std::vector<std::string> Offers = G->meet(Offer);
  Lacks = agree(Lacks);
  if (Lacks.empty())
    Try("nccl",
        [&] { return makeNcclTransport(On, *G, std::move(A), Offers); });
  else
    Left["nccl"] = Lacks;
  if (Way) {
    if (Rank == 0 || G->isSpread())
      G->freeSlots();
    return;
  }
  if (Ways & GRETA_COMM_HOST)
    Try("host", [&] { return makeHostTransport(On, *G); });
  else
    Left["host"] = "it was not asked for";
  if (Way)
    return;
  std::string All;
  for (const auto &[Name, Why] : Left)
    All += concat(All.empty() ? "" : "; ", Name, ": ", Why);
  fail(GRETA_ERROR_UNSUPPORTED, "no way for collectives of ", Size,
       " ranks: ", All);
}

std::string Comm::test(Transport &T) {
  std::string Why = testOn(T, /*OnDevice=*/false);
  if (Why.empty() && T.counter())
    Why = testOn(T, /*OnDevice=*/true);
  return Why;
}

std::string Comm::testOn(Transport &T, bool OnDevice) {
  constexpr size_t count = 3001;
  auto ValueOf = [](uint32_t R, size_t I) {
    return static_cast<float>((I * 7 + R * 13) % 101) - 50;
  };
  auto Allocate = [&](size_t Bytes) {
    return OnDevice ? On->allocateShared(GRETA_FD_OPAQUE, Bytes)
                    : On->allocate(Bytes);
  };
  std::vector<float> Data(count);
  for (size_t I = 0; I < count; ++I)
    Data[I] = ValueOf(Rank, I);
  std::unique_ptr<Stream> S = On->createStream();
  MemoryRef Given = Allocate(count * 4), Sum = Allocate(count * 4),
            All = Allocate(count * 4 * Size);
  S->write(Given, 0, Data.data(), count * 4);
  Collective C;
  if (OnDevice) {
    C.After = On->createCounter();
    S->raise(C.After, C.AfterValue = 1);
  } else {
    S->synchronize();
  }
  C.Type = Element::F32;
  C.Count = count;
  C.From = Given;
  C.To = Sum;
  C.What = Kind::AllReduce;
  uint64_t Before = T.done();
  T.begin(C, std::make_shared<Ticket>());
  C.After = nullptr;
  C.To = All;
  C.What = Kind::AllGather;
  if (OnDevice)
    C.Raises = ++Promised;
  T.begin(C, std::make_shared<Ticket>());
  auto Begin = Group::Clock::now();
  for (Patience P; T.done() < Before + 2;) {
    if (T.progress())
      P.reset();
    else
      P.wait();
    if (Group::Clock::now() - Begin > G->trial())
      fail(GRETA_ERROR_PEER_LOST, "its test has not ended after ",
           G->trial().count(), " ms");
  }
  if (OnDevice)
    S->await(T.counter(), Promised);
  std::vector<float> Got(count * (Size + 1));
  S->read(Sum, 0, Got.data(), count * 4);
  S->read(All, 0, Got.data() + count, count * 4 * Size);
  for (size_t I = 0; I < count; ++I) {
    float Want = 0;
    for (uint32_t R = 0; R < Size; ++R) {
      Want += ValueOf(R, I);
      if (Got[count * (R + 1) + I] != ValueOf(R, I))
        return concat("all_gather is wrong: element ", I, " of rank ", R,
                      " is ", Got[count * (R + 1) + I], ", not ",
                      ValueOf(R, I));
    }
    if (Got[I] != Want)
      return concat("all_reduce is wrong: element ", I, " is ", Got[I],
                    ", not ", Want);
  }
  return "";
}

bool Comm::ordersOnDevice(const Collective &C) const {
  if (!Way->counter())
    return false;
  for (const Transfer &T : C.Transfers)
    if (!T.Memory->isShared())
      return false;
  return (!C.From || C.From->isShared()) && (!C.To || C.To->isShared());
}

// Finds the ranks whose kernels meet, which need to run at once: those of one
// device in one process share its queues.
void Comm::chooseSmall() {
  nlohmann::json Info;
  On->describe(Info);
  std::string Own = concat(Info.value("uuid", ""), " of process ", getpid());
  std::vector<std::string> All = G->meet(Own);
  std::string Why;
  std::unique_ptr<SmallReduce> Made;
  try {
    if (G->isSpread())
      fail(GRETA_ERROR_UNSUPPORTED, "ranks share no memory of a host");
    if (std::count(All.begin(), All.end(), Own) > 1)
      fail(GRETA_ERROR_UNSUPPORTED, "several ranks are on one device");
    if (Info.value("family", "") == "vulkan:lavapipe")
      fail(GRETA_ERROR_UNSUPPORTED,
           "lavapipe ends every loop after 65,535 iterations");
    Made = std::make_unique<SmallReduce>(On, *G);
  } catch (const Error &E) {
    Why = E.what();
  }
  Why = agree(Why);
  if (Why.empty()) {
    try {
      Why = testSmall(*Made);
    } catch (const Error &E) {
      Why = E.what();
    }
    Why = agree(Why);
  }
  if (Why.empty())
    Small = std::move(Made);
  else
    Left["kernel"] = Why;
}

std::string Comm::testSmall(SmallReduce &Kernel) {
  // The halves are rounded, and there are rounds enough to use each box twice.
  constexpr size_t count = 3002;
  constexpr uint32_t looks = 1 << 21;
  auto ValueOf = [](uint32_t R, size_t I) {
    return static_cast<_Float16>(static_cast<float>(I * 7 % 101) +
                                 static_cast<float>(R) / 7);
  };
  std::vector<_Float16> Data(count), Got(count), Want(count);
  for (size_t I = 0; I < count; ++I) {
    float Sum = 0;
    for (uint32_t R = 0; R < Size; ++R)
      Sum += static_cast<float>(ValueOf(R, I));
    Want[I] = static_cast<_Float16>(Sum);
    Data[I] = ValueOf(Rank, I);
  }
  std::unique_ptr<Stream> S = On->createStream();
  Collective C;
  C.What = Kind::AllReduce;
  C.Type = Element::F16;
  C.Count = count;
  C.From = On->allocate(count * 2);
  C.To = On->allocate(count * 2);
  S->write(C.From, 0, Data.data(), count * 2);
  for (int Round = 0; Round < 5; ++Round) {
    S->fill(C.To, 0, count * 2, 0);
    Kernel.queue(*S, C, looks);
    S->read(C.To, 0, Got.data(), count * 2);
    if (G->hasKernelEnded())
      return "ranks do not see each other's memory";
    for (size_t I = 0; I < count; ++I)
      if (memcmp(&Got[I], &Want[I], 2) != 0)
        return concat("element ", I, " is ", static_cast<float>(Got[I]),
                      ", not ", static_cast<float>(Want[I]));
  }
  return "";
}

bool Comm::isSmall(const Collective &C) const {
  return Small && SmallReduce::takes(C);
}

void Comm::queueSmall(Stream &S, const Collective &C) {
  check();
  uint64_t Looks = static_cast<uint64_t>(G->Timeout.count()) * 1000;
  Small->queue(S, C,
               static_cast<uint32_t>(std::min<uint64_t>(Looks, 1u << 31)));
  if (!SmallUsed.exchange(true)) {
    {
      std::lock_guard<std::mutex> Guard(Lock);
    }
    Queued.notify_all();
  }
}

// A forked process has none of the threads, and copies of locks that another
// thread may have held, so it is refused before a lock is taken.
std::shared_ptr<Ticket> Comm::queue(Collective C) {
  G->checkProcess();
  auto T = std::make_shared<Ticket>();
  {
    std::lock_guard<std::mutex> Guard(Lock);
    if (Failure)
      throw *Failure;
    G->checkEnded();
    if (ordersOnDevice(C)) {
      T->Until = Way->counter();
      T->UntilValue = C.Raises = ++Promised;
    }
    Queue.emplace_back(std::move(C), T);
    Waiting = true;
  }
  Queued.notify_all();
  return T;
}

void Comm::checkProcess() const { G->checkProcess(); }

void Comm::check() {
  G->checkProcess();
  std::lock_guard<std::mutex> Guard(Lock);
  if (Failure)
    throw *Failure;
  G->checkEnded();
  if (SmallUsed && G->hasKernelEnded())
    fail(GRETA_ERROR_PEER_LOST, "rank ", Rank,
         ": a kernel of all_reduce has waited too long for a rank");
}

void Comm::wait(Ticket &T) {
  G->checkProcess();
  // The thread stays awake for several times as long as waking it takes.
  auto Begin = Group::Clock::now();
  for (Patience P;
       !T.Done && Group::Clock::now() - Begin < std::chrono::milliseconds(1);)
    P.wait();
  std::unique_lock<std::mutex> Guard(Lock);
  Ended.wait(Guard, [&] { return T.Done.load(); });
  if (T.Failure)
    throw *T.Failure;
}

void Comm::abort(const std::string &Why) {
  G->checkProcess();
  G->abort(Why);
}

void Comm::describe(nlohmann::json &Out) {
  G->checkProcess();
  Out = {{"rank", Rank}, {"size", Size}, {"way", WayName}, {"left_out", Left}};
  Out["between_hosts"] = G->library();
  Out["staging"] = G->slotBytes();
  Out["kernel_bytes"] = Small ? SmallReduce::mostBytes : 0;
  std::lock_guard<std::mutex> Guard(Lock);
  Out["failure"] = Failure ? Failure->what() : "";
}

// Marks what the transport has done as done.
void Comm::finish(uint64_t Upto) {
  if (Finished == Upto)
    return;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    for (; Finished < Upto; ++Finished) {
      Begun.front()->Done = true;
      Begun.pop_front();
    }
  }
  Ended.notify_all();
}

// Ends all collectives on all ranks.
void Comm::end(const Error &E) {
  G->abort(concat("rank ", Rank, ": ", E.what()));
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Failure = E;
  }
  Way->abort();
  // Streams that wait for collectives go on.
  std::shared_ptr<Counter> Until = Way->counter();
  if (Until && Until->value() < Promised)
    Until->raise(Promised);
  {
    std::lock_guard<std::mutex> Guard(Lock);
    for (auto &[C, T] : Queue)
      Begun.push_back(T);
    Queue.clear();
    for (const std::shared_ptr<Ticket> &T : Begun) {
      T->Failure = E;
      T->Done = true;
    }
    Begun.clear();
  }
  Ended.notify_all();
}

void Comm::take() {
  decltype(Queue) Taken;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Taken.swap(Queue);
    Waiting = false;
    for (const auto &[C, T] : Taken)
      Begun.push_back(T);
  }
  for (const auto &[C, T] : Taken)
    Way->begin(C, T);
}

void Comm::work() {
  const uint64_t Before = Way->done(); // the test's collectives
  bool HasWorked = false;
  for (Patience P;;) {
    try {
      take();
      if (Begun.empty()) {
        // Another collective often follows soon.
        P.reset();
        auto Begin = Group::Clock::now();
        while (HasWorked && !Waiting &&
               Group::Clock::now() - Begin < std::chrono::milliseconds(1))
          P.wait();
        HasWorked = false;
        std::unique_lock<std::mutex> Guard(Lock);
        auto HasWork = [&] { return Closing || !Queue.empty(); };
        if (!SmallUsed) {
          Queued.wait(Guard, [&] { return HasWork() || SmallUsed; });
        } else if (!Queued.wait_for(Guard, std::chrono::milliseconds(20),
                                    HasWork)) {
          // Kernels may be waiting for a rank that is gone.
          Guard.unlock();
          if (!Failure)
            G->check([&](uint32_t R) { return !G->hasLeft(R); },
                     Group::Clock::now(), "all_reduce");
          continue;
        }
        if (Closing && Queue.empty())
          return;
        P.reset();
        continue;
      }
      HasWorked = true;
      if (Way->progress())
        P.reset();
      else
        P.wait();
      finish(Way->done() - Before);
    } catch (const Error &E) {
      end(E);
    } catch (const std::exception &E) {
      end(Error(GRETA_ERROR_INTERNAL, E.what()));
    }
  }
}

} // namespace greta::rt::comm
