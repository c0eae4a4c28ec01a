// ThreadsTest.cpp: what greta_runtime.h promises to threads: one device,
// package and function and one buffer of weights for all, a stream for each,
// events between them. The preset tsan runs it under ThreadSanitizer.
#include "EveryDevice.h"
#include "TestPackage.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace greta_test;

namespace {

constexpr int threads = 4;
constexpr int64_t threadCount = 1000;

class Threads : public EveryDevice {
protected:
  // Runs `F` in several threads at once.
  template <typename Function> void inThreads(Function F) {
    std::vector<std::thread> All;
    for (int I = 0; I < threads; ++I)
      All.emplace_back([&F, I] { EXPECT_NO_THROW(F(I)); });
    for (std::thread &T : All)
      T.join();
  }
  // Y = scale(X), read back.
  std::vector<float> scaled(const greta::Function &F, greta::Stream &S,
                            const greta::Buffer &X) const {
    greta::Buffer Y = R->allocate(threadCount * 4);
    F.launch(S, {{&X, {1, threadCount}}}, {{&Y, {1, threadCount}}});
    std::vector<float> Result(threadCount);
    S.read(Y, Result.data(), threadCount * 4);
    return Result;
  }
  Bytes Data = package();
  greta::Package P{Data.data(), Data.size()};
};

INSTANTIATE_TEST_SUITE_P(Devices, Threads, everyDevice(), deviceName);

TEST_P(Threads, ShareWeightsAndFunctions) {
  greta::Function F = R->load(P, "scale");
  greta::Stream S = R->stream();
  greta::Buffer Weights = R->allocate(threadCount * 4);
  greta::Event Ready = R->event();
  S.fill(Weights, threadCount * 4, 0x3f800000); // 1.0f
  S.record(Ready);
  inThreads([&](int) {
    greta::Runtime Again(GetParam());
    greta::Stream Own = Again.stream();
    Own.wait(Ready);
    EXPECT_FALSE(Again.info().empty());
    EXPECT_EQ(F.arguments().size(), 1u);
    greta::Function Loaded = Again.load(P, "scale");
    for (int I = 0; I < 10; ++I)
      for (const greta::Function *Which : {&F, &Loaded})
        EXPECT_EQ(scaled(*Which, Own, Weights),
                  std::vector<float>(threadCount, 3.0f));
  });
}

TEST_P(Threads, OpenAtOnce) {
  R.reset();
  inThreads([&](int) {
    greta::Runtime Own(GetParam());
    EXPECT_FALSE(Own.info().empty());
  });
}

// One thread works on, the others wait for what it has done until then.
TEST_P(Threads, WaitForABusyStream) {
  constexpr int steps = 50;
  greta::Function F = R->load(P, "scale");
  greta::Stream S = R->stream();
  std::vector<greta::Buffer> Values;
  std::vector<greta::Event> Done;
  for (int I = 0; I < steps; ++I) {
    Values.push_back(R->allocate(threadCount * 4));
    Done.push_back(R->event());
  }
  std::atomic<int> Recorded{0};
  inThreads([&](int Thread) {
    if (Thread == 0) {
      for (int I = 0; I < steps; ++I) {
        std::vector<float> X(threadCount, static_cast<float>(I));
        S.write(Values[static_cast<size_t>(I)], X.data(), threadCount * 4);
        S.record(Done[static_cast<size_t>(I)]);
        Recorded = I + 1;
      }
      return;
    }
    greta::Stream Own = R->stream();
    for (int I = 0; I < steps; ++I) {
      while (Recorded <= I)
        std::this_thread::yield();
      greta::Event &E = Done[static_cast<size_t>(I)];
      if (I % 2)
        Own.wait(E);
      else
        E.synchronize();
      EXPECT_EQ(
          scaled(F, Own, Values[static_cast<size_t>(I)]),
          std::vector<float>(threadCount, 2.0f * static_cast<float>(I) + 1));
    }
  });
}

// Each thread makes and launches a graph of its own.
TEST_P(Threads, RecordGraphsSideBySide) {
  greta::Function F = R->load(P, "scale");
  inThreads([&](int Thread) {
    greta::Stream Own = R->stream();
    greta::Buffer X = R->allocate(threadCount * 4),
                  Y = R->allocate(threadCount * 4);
    for (int I = 0; I < 5; ++I) {
      greta::Graph G = Own.capture([&] {
        F.launch(Own, {{&X, {1, threadCount}}}, {{&Y, {1, threadCount}}});
        R->allocate(64);
      });
      std::vector<float> V(threadCount, static_cast<float>(Thread));
      Own.write(X, V.data(), threadCount * 4);
      Own.launch(G);
      Own.read(Y, V.data(), threadCount * 4);
      EXPECT_EQ(V, std::vector<float>(threadCount, 2.0f * Thread + 1));
    }
  });
}

} // namespace
