// OrderTest.cpp: what has an order in a stream beside launches: graphs in
// graphs, functions of the host, and what is held to start together.
#include "EveryDevice.h"
#include "TestPackage.h"

#include <mutex>

using namespace greta_test;

namespace {

class Order : public EveryDevice {
protected:
  void SetUp() override {
    EveryDevice::SetUp();
    if (!R)
      return;
    Data = package();
    P = std::make_unique<greta::Package>(Data.data(), Data.size());
    // The package's variant for the host is ours.
    F = std::make_unique<greta::Function>(
        R->load(*P, "scale", "", GRETA_LOAD_NATIVE_CODE));
    A = R->allocate(256);
    B = R->allocate(256);
  }
  void TearDown() override {
    F.reset();
    A = greta::Buffer();
    B = greta::Buffer();
    EveryDevice::TearDown();
  }
  // b = 2 a + 1
  void scale(greta::Stream &S, const greta::Buffer &From,
             const greta::Buffer &To) {
    F->launch(S, {{&From, {1, 64}}}, {{&To, {1, 64}}});
  }
  void write(greta::Stream &S, float Value) {
    std::vector<float> X(64, Value);
    S.write(A, X.data(), 256);
  }
  float read(greta::Stream &S, const greta::Buffer &From) {
    std::vector<float> X(64);
    S.read(From, X.data(), 256);
    EXPECT_EQ(X, std::vector<float>(64, X[0]));
    return X[0];
  }
  Bytes Data;
  std::unique_ptr<greta::Package> P;
  std::unique_ptr<greta::Function> F;
  greta::Buffer A, B;
};

// A graph in a graph, twice, with work around it; it may go, and was recorded
// in another stream.
TEST_P(Order, GraphsLaunchGraphs) {
  greta::Stream S = R->stream();
  greta::Graph Outer;
  {
    greta::Stream Own = R->stream();
    greta::Graph Inner = Own.capture([&] {
      scale(Own, A, B);
      Own.copy(A, B, 256);
    });
    greta::Graph Empty = Own.capture([] {});
    Outer = S.capture([&] {
      S.launch(Inner);
      scale(S, A, B);
      S.copy(A, B, 256);
      S.launch(Inner);
      S.launch(Empty);
    });
  }
  write(S, 1);
  S.launch(Outer); // 1 -> 3 -> 7 -> 15
  EXPECT_EQ(read(S, A), 15.0f);
  greta::Graph Most = S.capture([&] {
    S.launch(Outer);
    S.launch(Outer);
  });
  write(S, 0);
  S.launch(Most); // six times
  EXPECT_EQ(read(S, A), 63.0f);
}

// An operation behind a function of the host waits for it.
TEST_P(Order, CallsTheHost) {
  greta::Buffer Host = R->allocateMapped(256);
  std::mutex Lock; // drivers order the threads, but sanitizers see no driver
  std::vector<float> Seen;
  auto See = [&](float Value) {
    std::lock_guard<std::mutex> Guard(Lock);
    Seen.push_back(Value);
  };
  auto HasSeen = [&] {
    std::lock_guard<std::mutex> Guard(Lock);
    return Seen;
  };
  float *Values = static_cast<float *>(Host.pointer());
  {
    greta::Stream S = R->stream();
    write(S, 1);
    scale(S, A, Host);
    S.callHost([&] {
      See(Values[63]);
      std::fill(Values, Values + 64, 10.0f);
    });
    S.callHost([&] { See(Values[0]); });
    scale(S, Host, B);
    EXPECT_EQ(read(S, B), 21.0f);
    EXPECT_EQ(HasSeen(), (std::vector<float>{3, 10}));
    S.callHost([&] { See(4); });
    S.synchronize();
    EXPECT_EQ(HasSeen().size(), 3u);
    S.callHost([&] { See(5); });
  } // the stream does not go before it
  EXPECT_EQ(HasSeen().size(), 4u);
}

TEST_P(Order, RefusesWrongCallsOfTheHost) {
  greta::Stream S = R->stream();
  EXPECT_EQ(greta_stream_call_host(S.get(), nullptr, nullptr),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(greta_last_error(), "function is null");
  try {
    S.capture([&] { S.callHost([] {}); });
    ADD_FAILURE() << "nothing was wrong";
  } catch (const greta::Error &E) {
    EXPECT_STREQ(E.what(), "a graph cannot record functions of the host");
  }
}

// A graph and what comes behind it start together, and are right.
TEST_P(Order, HoldsUntilItIsFlushed) {
  greta::Stream S = R->stream();
  greta::Graph G = S.capture([&] {
    scale(S, A, B);
    S.copy(A, B, 256);
  });
  greta::Buffer Host = R->allocateMapped(256);
  greta::Event Done = R->event();
  write(S, 1);
  for (float Wanted : {3.0f, 7.0f, 15.0f}) {
    S.hold();
    S.launch(G);
    S.copy(Host, A, 256);
    S.record(Done);
    S.flush();
    Done.synchronize();
    EXPECT_EQ(static_cast<float *>(Host.pointer())[5], Wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Order, everyDevice(), deviceName);

} // namespace
