// RaceTest.cpp: what the simulator tells when streams, or ranks, use memory
// that nothing orders (GRETA_CHECK=1, Main.cpp).
#include "CommTest.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

using namespace greta_test;

namespace {

constexpr const char *simulator = "sim:gfx942";
constexpr int64_t numbers = 64;
constexpr size_t size = numbers * 4;

class Races : public testing::Test {
protected:
  void SetUp() override {
    try {
      greta::Runtime R(simulator);
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
    Bytes Data = package();
    P = std::make_unique<greta::Package>(Data.data(), Data.size());
  }
  std::unique_ptr<greta::Package> P;
};

// A rank's function and two buffers.
struct Scaling {
  Scaling(greta::Runtime &R, const greta::Package &P)
      : F(R.load(P, "scale")), X(R.allocate(size)), Y(R.allocate(size)) {
    greta::Stream S = R.stream();
    S.fill(X, size, 0x3f800000);
    S.fill(Y, size, 0);
    S.synchronize();
  }
  // y = 2 x + 1
  void run(greta::Stream &S) { run(S, X, Y); }
  void run(greta::Stream &S, const greta::Buffer &From,
           const greta::Buffer &To) {
    F.launch(S, {{&From, {1, numbers}}}, {{&To, {1, numbers}}});
  }
  greta::Function F;
  greta::Buffer X, Y;
};

std::string told(const std::function<void()> &F) {
  return refusal(F, GRETA_ERROR_DEVICE);
}

const std::string bytesOfAll = " bytes 0 to 255 of an allocation of 272 bytes";

// Also when each has done so much that memory of old operations was given back.
TEST_F(Races, BetweenStreams) {
  greta::Runtime R(simulator);
  greta::Stream A = R.stream(), B = R.stream();
  greta::Event Done = R.event();
  Scaling K(R, *P);
  greta::Buffer Other = R.allocate(size), Unused = R.allocate(size);
  for (int Before : {0, 300}) {
    for (int I = 0; I < Before; ++I)
      A.fill(Unused, size, 0);
    K.run(A);
    EXPECT_EQ(told([&] { B.copy(Other, K.Y, size); }),
              "copying 256 bytes on sim:gfx942: race: a copy reads" +
                  bytesOfAll +
                  ", and 'scale' on another stream writes them (its 'y'); no "
                  "event orders the two");
    EXPECT_EQ(told([&] { K.run(A); }),
              "launching 'scale' on sim:gfx942: race: 'scale' writes" +
                  bytesOfAll +
                  " (its 'y'), and a copy on another stream reads them; no "
                  "event orders the two");
    A.synchronize();
    B.synchronize();
    K.run(A);
    A.record(Done);
    B.wait(Done);
    B.copy(Other, K.Y, size);
    B.synchronize();
  }
}

// A collective that reads what a kernel of another stream writes ends on every
// rank.
TEST_F(Races, BetweenAKernelAndACollective) {
  for (bool IsOrdered : {true, false}) {
    std::atomic<int> There{0};
    ranks(simulator, 2, [&](Rank &Own) {
      // A rank that still makes its communicator would be told there.
      auto Begin = std::chrono::steady_clock::now();
      for (++There; There < 2 && std::chrono::steady_clock::now() - Begin <
                                     std::chrono::milliseconds(enough);)
        std::this_thread::yield();
      Scaling K(Own.R, *P);
      greta::Buffer Sum = Own.R.allocate(size);
      greta::Stream Other = Own.R.stream();
      greta::Event Done = Own.R.event();
      K.run(Own.Number == 0 ? Other : Own.S);
      if (IsOrdered) {
        Other.record(Done);
        Own.S.wait(Done);
      }
      std::vector<float> Got(numbers);
      std::string Told;
      try { // which rank is told first, and by which call, is open
        Own.C.allReduce(Own.S, Sum, K.Y, numbers, "f32");
        Own.S.read(Sum, Got.data(), size);
      } catch (const greta::Error &E) {
        Told = E.what();
      }
      if (IsOrdered) {
        EXPECT_EQ(Told, "");
        EXPECT_EQ(Got, std::vector<float>(numbers, 6));
        return;
      }
      EXPECT_NE(Told.find("race: a copy reads" + bytesOfAll +
                          ", and 'scale' on another stream writes them (its "
                          "'y')"),
                std::string::npos)
          << "rank " << Own.Number << ": " << Told;
    });
  }
}

// Rank 1 takes what rank 0 writes: by a copy, or in a kernel. Threads wait for
// each other, which orders no streams.
TEST_F(Races, BetweenRanks) {
  for (bool ByKernel : {false, true})
    for (bool IsOrdered : {true, false}) {
      std::promise<std::pair<Scaling *, greta::Stream *>> Given;
      std::promise<greta::Event *> Written;
      std::promise<void> Taken;
      ranks(simulator, 2, [&](Rank &Own) {
        Scaling K(Own.R, *P);
        greta::Event Done = Own.R.event();
        if (Own.Number == 0) {
          // The stream that the peer copies from is not the one that writes.
          greta::Stream Writes = Own.R.stream();
          Given.set_value({&K, &Own.S});
          K.run(Writes);
          Writes.record(Done);
          Written.set_value(&Done);
          Taken.get_future().wait();
          return;
        }
        auto [Its, From] = Given.get_future().get();
        greta::Event *Event = Written.get_future().get();
        if (IsOrdered)
          Own.S.wait(*Event);
        std::string Told = told([&, Its = Its, From = From] {
          if (ByKernel)
            K.run(Own.S, Its->Y, K.Y);
          else
            Own.S.copyPeer(K.Y, *From, Its->Y, size);
        });
        std::string Reads = ByKernel
                                ? "'scale' reads" + bytesOfAll + " (its 'x')"
                                : "a copy reads" + bytesOfAll;
        if (IsOrdered)
          EXPECT_EQ(Told, "none");
        else
          EXPECT_NE(Told.find("race: " + Reads +
                              ", and 'scale' on another "
                              "stream writes them"),
                    std::string::npos)
              << Told;
        Own.S.synchronize();
        Taken.set_value();
      });
    }
}

// A copy between ranks orders their two streams, both ways.
TEST_F(Races, AreNoneAroundACopyBetweenRanks) {
  std::promise<std::pair<Scaling *, greta::Stream *>> Given;
  std::promise<void> Taken, Written;
  ranks(simulator, 2, [&](Rank &Own) {
    Scaling K(Own.R, *P);
    if (Own.Number == 0) {
      K.run(Own.S);
      Given.set_value({&K, &Own.S});
      Taken.get_future().wait();
      EXPECT_EQ(told([&] { K.run(Own.S); }), "none"); // behind the copy
      Written.set_value();
      return;
    }
    auto [Its, From] = Given.get_future().get();
    EXPECT_EQ(told([&, Its = Its, From = From] {
                Own.S.copyPeer(K.X, *From, Its->Y, size);
                K.run(Own.S);
              }),
              "none");
    Taken.set_value();
    Written.get_future().wait(); // so that the host orders nothing
  });
}

} // namespace
