// Soak.cpp: see Soak.h.
#include "Soak.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

namespace greta_test {
namespace {

// A buffer of floats, and what it holds.
struct Cell {
  greta::Buffer Buffer;
  std::vector<float> Values;
};
using CellRef = std::shared_ptr<Cell>;

// scale and the functions made of it: y = 2 x + 1, so many times. Wraps around
// before floats lose bits, by fills.
struct Kind {
  const greta::Function *Function;
  int Times;
  bool InPlace;
};

// An operation on parts of cells; `Apply` is what it does on the host.
struct Operation {
  std::function<void(greta::Stream &)> Queue;
  std::function<void()> Apply;
  bool IsLaunch = false;
};

class Worker {
public:
  Worker(const greta::Runtime &R, std::vector<Kind> Kinds, unsigned Seed)
      : R(R), Kinds(std::move(Kinds)), Random(Seed) {
    for (Lane &L : Lanes) {
      L.Stream = std::make_unique<greta::Stream>(R.stream());
      for (CellRef &C : L.Cells)
        C = cell(*L.Stream);
    }
    Lanes[1].Stream->autoGraph(true);
  }

  SoakReport run(uint64_t Launches,
                 const std::function<void(uint64_t)> &Progress) {
    uint64_t Told = 0;
    while (Report.Launches < Launches) {
      turn(Lanes[Random() % 2]);
      if (Report.Launches - Told >= 10000)
        Progress(Told = Report.Launches);
    }
    for (Lane &L : Lanes)
      for (const CellRef &C : L.Cells)
        compare(*L.Stream, *C);
    return Report;
  }

private:
  struct Recorded {
    greta::Graph Graph;
    std::vector<Operation> Operations;
  };
  struct Lane {
    std::unique_ptr<greta::Stream> Stream;
    CellRef Cells[8];
    std::vector<Recorded> Graphs;
    std::vector<Operation> Habit; // done again and again
  };

  size_t below(size_t N) { return Random() % N; }

  CellRef cell(greta::Stream &S) {
    auto C = std::make_shared<Cell>();
    C->Values.resize(1 + below(below(8) ? 200 : 3000));
    for (float &V : C->Values)
      V = static_cast<float>(below(100));
    C->Buffer = R.allocate(C->Values.size() * 4);
    S.write(C->Buffer, C->Values.data(), C->Values.size() * 4);
    return C;
  }

  // A part of a cell that begins at a multiple of 16 bytes, of at most N
  // floats.
  static size_t begin(std::mt19937 &Random, const Cell &C) {
    return Random() % ((C.Values.size() + 3) / 4) * 4;
  }

  Operation launch(const CellRef &From, const CellRef &To) {
    const Kind &K = Kinds[below(Kinds.size())];
    size_t A = begin(Random, *From), B = begin(Random, *To);
    if (K.InPlace)
      B = A;
    size_t Count =
        1 + below(std::min(From->Values.size() - A,
                           (K.InPlace ? From : To)->Values.size() - B));
    auto N = static_cast<int64_t>(Count);
    Operation O;
    O.IsLaunch = true;
    if (K.InPlace) {
      greta::Tensor X(&From->Buffer, {N}, A * 4);
      O.Queue = [&K, X, N, From](greta::Stream &S) {
        K.Function->launch(
            S, {X, greta::Tensor::scalar(static_cast<int32_t>(N))}, {X});
      };
    } else {
      greta::Tensor X(&From->Buffer, {1, N}, A * 4),
          Y(&To->Buffer, {1, N}, B * 4);
      O.Queue = [&K, X, Y, From, To](greta::Stream &S) {
        K.Function->launch(S, {X}, {Y});
      };
    }
    O.Apply = [From, To = K.InPlace ? From : To, A, B, Count, Times = K.Times] {
      for (size_t I = 0; I < Count; ++I) {
        float V = From->Values[A + I];
        for (int T = 0; T < Times; ++T)
          V = 2 * V + 1;
        To->Values[B + I] = V;
      }
    };
    return O;
  }

  Operation copy(const CellRef &From, const CellRef &To) {
    size_t A = begin(Random, *From), B = begin(Random, *To);
    size_t Count =
        1 + below(std::min(From->Values.size() - A, To->Values.size() - B));
    return {[=](greta::Stream &S) {
              greta::check(greta_buffer_copy(S.get(), To->Buffer.get(), B * 4,
                                             From->Buffer.get(), A * 4,
                                             Count * 4));
            },
            [=] {
              std::copy_n(From->Values.begin() + ptrdiff_t(A), Count,
                          To->Values.begin() + ptrdiff_t(B));
            }};
  }

  // Values stay small: fills come as often as launches make them larger.
  Operation fill(const CellRef &To) {
    auto Value = static_cast<float>(below(50));
    uint32_t Word;
    memcpy(&Word, &Value, 4);
    return {[=](greta::Stream &S) {
              S.fill(To->Buffer, To->Values.size() * 4, Word);
            },
            [=] { std::fill(To->Values.begin(), To->Values.end(), Value); }};
  }

  // Two different cells of the lane.
  std::pair<CellRef, CellRef> two(Lane &L) {
    size_t A = below(8), B = (A + 1 + below(7)) % 8;
    return {L.Cells[A], L.Cells[B]};
  }

  Operation operation(Lane &L) {
    auto [A, B] = two(L);
    switch (below(6)) {
    case 0:
      return copy(A, B);
    case 1:
      return fill(B);
    default:
      return launch(A, B);
    }
  }

  void queue(Lane &L, const Operation &O) {
    O.Queue(*L.Stream);
    done(O);
  }
  void done(const Operation &O) {
    O.Apply();
    Report.Launches += O.IsLaunch;
  }

  void compare(greta::Stream &S, const Cell &C) {
    std::vector<float> Got(C.Values.size());
    S.read(C.Buffer, Got.data(), Got.size() * 4);
    ++Report.Compared;
    for (size_t I = 0; I < Got.size(); ++I)
      if (memcmp(&Got[I], &C.Values[I], 4))
        throw std::runtime_error(
            "after " + std::to_string(Report.Launches) + " launches element " +
            std::to_string(I) + " of " + std::to_string(Got.size()) + " is " +
            std::to_string(Got[I]) + ", not " + std::to_string(C.Values[I]));
  }

  void turn(Lane &L) {
    switch (below(40)) {
    case 0:
      return compare(*L.Stream, *L.Cells[below(8)]);
    case 1: // the old one goes while its work may run
      L.Cells[below(8)] = cell(*L.Stream);
      return;
    case 2: {
      Recorded New;
      for (size_t N = 1 + below(30); N; --N)
        New.Operations.push_back(operation(L));
      New.Graph = L.Stream->capture([&] {
        for (const Operation &O : New.Operations)
          O.Queue(*L.Stream);
      });
      if (L.Graphs.size() > 3)
        L.Graphs.erase(L.Graphs.begin());
      L.Graphs.push_back(std::move(New));
      return;
    }
    case 3:
      L.Habit.clear();
      for (size_t N = 1 + below(10); N; --N)
        L.Habit.push_back(operation(L));
      return;
    case 4: { // into the other stream, in order
      Lane &Other = Lanes[&L == &Lanes[0]];
      greta::Event Ready = R.event(), Taken = R.event();
      L.Stream->record(Ready);
      Other.Stream->wait(Ready);
      queue(Other, copy(L.Cells[below(8)], Other.Cells[below(8)]));
      Other.Stream->record(Taken);
      L.Stream->wait(Taken);
      return;
    }
    case 5:
      return L.Stream->synchronize();
    case 6:
    case 7:
    case 8:
    case 9:
      if (L.Graphs.empty())
        return;
      {
        Recorded &G = L.Graphs[below(L.Graphs.size())];
        L.Stream->launch(G.Graph);
        ++Report.Replays;
        for (const Operation &O : G.Operations)
          done(O);
      }
      return;
    case 10:
    case 11:
    case 12:
    case 13:
      L.Stream->flush();
      for (const Operation &O : L.Habit)
        queue(L, O);
      return L.Stream->flush();
    default:
      return queue(L, operation(L));
    }
  }

  const greta::Runtime &R;
  std::vector<Kind> Kinds;
  std::mt19937 Random;
  Lane Lanes[2];
  SoakReport Report;
};

} // namespace

SoakReport soak(const greta::Runtime &Runtime, const greta::Package &Package,
                const SoakOptions &Options) {
  std::vector<greta::Function> Functions;
  std::vector<Kind> Kinds;
  Functions.reserve(3);
  for (auto [Name, Times] :
       {std::pair("scale", 1), {"twice_scaled", 2}, {"in_place", 1}}) {
    try {
      Functions.push_back(Runtime.load(Package, Name));
    } catch (const greta::Error &E) {
      if (E.status() != GRETA_ERROR_UNSUPPORTED)
        throw;
      continue; // the host's variants have one kernel and no scalars
    }
    Kinds.push_back({&Functions.back(), Times, Name[0] == 'i'});
  }
  SoakReport Sum;
  std::mutex Lock;
  std::string Wrong;
  auto Work = [&](unsigned Thread) {
    try {
      Worker W(Runtime, Kinds, Options.Seed + Thread);
      SoakReport Report = W.run(Options.Launches, [&](uint64_t Launches) {
        if (Thread == 0)
          Options.Progress(Launches);
      });
      std::lock_guard<std::mutex> Guard(Lock);
      Sum.Launches += Report.Launches;
      Sum.Replays += Report.Replays;
      Sum.Compared += Report.Compared;
    } catch (const std::exception &E) {
      std::lock_guard<std::mutex> Guard(Lock);
      Wrong = E.what();
    }
  };
  std::vector<std::thread> Threads;
  for (unsigned T = 0; T < Options.Threads; ++T)
    Threads.emplace_back(Work, T);
  for (std::thread &T : Threads)
    T.join();
  if (!Wrong.empty())
    throw std::runtime_error(Wrong);
  return Sum;
}

} // namespace greta_test
