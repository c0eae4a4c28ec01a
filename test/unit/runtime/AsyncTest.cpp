// AsyncTest.cpp: what the HIP backend keeps alive and what it waits for, on a
// HIP library whose work the test can stop (FakeHip.cpp).
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <dlfcn.h>
#include <future>
#include <gtest/gtest.h>

using namespace greta_test;

namespace {

template <typename F> F *fake(const char *Name) {
  static void *Library = dlopen(GRETA_TEST_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F *>(dlsym(Library, Name));
}
void hold(bool On) { fake<void(int)>("fake_hip_hold")(On); }
int faults() { return fake<int()>("fake_hip_faults")(); }
size_t allocations() { return fake<size_t()>("fake_hip_allocations")(); }

class Async : public testing::Test {
protected:
  void TearDown() override { hold(false); }
  // Runs `F` while all work stands still; false when it waits for the work.
  template <typename Function> bool returns(Function F) {
    hold(true);
    auto Done = std::async(std::launch::async, F);
    bool Returned =
        Done.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    if (!Returned)
      hold(false);
    Done.get();
    return Returned;
  }
  greta::Runtime R{"hip"};
  Bytes Data = package();
  greta::Package P{Data.data(), Data.size()};
  std::vector<float> X = std::vector<float>(64, 1.0f);
};

TEST_F(Async, WritesDoNotWait) {
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(256), B = R.allocate(256);
  greta::Function F = R.load(P, "scale");
  EXPECT_TRUE(returns([&] {
    S.write(A, X.data(), 256);
    F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
    std::fill(X.begin(), X.end(), 5.0f); // the bytes were taken
    S.write(A, X.data(), 256);
  }));
  hold(false);
  S.read(B, X.data(), 256);
  EXPECT_EQ(X, std::vector<float>(64, 3.0f));
  S.read(A, X.data(), 256);
  EXPECT_EQ(X, std::vector<float>(64, 5.0f));
}

// Everything goes while the work that uses it has not begun, and without a
// wait. Each object has one use, so that no other use keeps it.
TEST_F(Async, ObjectsLiveUntilTheirWorkIsDone) {
  size_t Before = allocations();
  std::vector<float> Y(128);
  {
    greta::Stream S = R.stream();
    greta::Buffer In = R.allocate(256), Out = R.allocate(512);
    S.write(In, X.data(), 256);
    EXPECT_TRUE(returns([&] {
      R.load(P, "scale").launch(S, {{&In, {1, 64}}}, {{&Out, {1, 64}}});
      greta::Buffer Unread = R.allocate(256);
      R.load(P, "twice_scaled")
          .launch(S, {{&In, {1, 64}}}, {{&Unread, {1, 64}}});
    }));
    EXPECT_TRUE(returns([&] {
      greta::Buffer Filled = R.allocate(256), Written = R.allocate(256),
                    From = R.allocate(256), To = R.allocate(256);
      S.fill(Filled, 256, 0);
      S.write(Written, X.data(), 256);
      S.copy(To, In, 256);
      S.copy(In, From, 256);
      S.write(In, X.data(), 256);
    }));
    EXPECT_TRUE(returns([&] {
      greta::Function F = R.load(P, "twice_scaled");
      greta::Buffer Between = R.allocate(256);
      greta::Graph G = S.capture([&] {
        F.launch(S, {{&In, {1, 64}}}, {{&Between, {1, 64}}});
        F.launch(S, {{&Between, {1, 64}}}, {{&Out, {1, 64}, 256}});
      });
      S.launch(G);
    }));
    hold(false);
    S.read(Out, Y.data(), 512);
  }
  EXPECT_EQ(Y[0], 3.0f);
  EXPECT_EQ(Y[64], 31.0f); // 1 -> 7 -> 31
  EXPECT_EQ(faults(), 0);
  EXPECT_EQ(allocations(), Before);
}

// A stream without work is done, at the first question, too.
TEST_F(Async, StreamsAreAskedWithoutAWait) {
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(256), B = R.allocate(256);
  EXPECT_TRUE(S.isDone());
  hold(true);
  S.copy(B, A, 256);
  EXPECT_FALSE(S.isDone());
  hold(false);
  S.synchronize();
  EXPECT_TRUE(S.isDone());
  EXPECT_EQ(greta_stream_query(S.get(), nullptr), GRETA_ERROR_INVALID_ARGUMENT);
}

// An event can be asked, and waited for so long at most.
TEST_F(Async, EventsAreAskedWithoutAWait) {
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(256), Host = R.allocateMapped(256);
  S.write(A, X.data(), 256);
  S.synchronize();
  greta::Event Done = R.event();
  hold(true);
  S.copy(Host, A, 256);
  S.record(Done);
  EXPECT_FALSE(Done.wait(0));
  EXPECT_FALSE(Done.wait(1000));
  hold(false);
  EXPECT_TRUE(Done.wait(60000000));
  EXPECT_TRUE(Done.wait(0));
  EXPECT_EQ(static_cast<float *>(Host.pointer())[63], 1.0f); // what was read
  EXPECT_EQ(greta_event_wait(Done.get(), 0, nullptr),
            GRETA_ERROR_INVALID_ARGUMENT);
}

// A stream that nobody waits for gives back what its finished work used.
TEST_F(Async, FinishedWorkIsReleased) {
  greta::Stream S = R.stream();
  greta::Function F = R.load(P, "scale");
  greta::Event Done = R.event();
  size_t Most = 0;
  for (int I = 0; I < 50; ++I) {
    greta::Buffer A = R.allocate(256), B = R.allocate(256);
    F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
    S.record(Done);
    Done.synchronize();
    Most = std::max(Most, allocations());
  }
  EXPECT_LT(Most, 20u);
}

// Errors that end the device are lost devices: every call says so, and nobody
// asks the driver any more. Beside the old handles it opens again; what they
// had is not given back to the driver, which may have given it to others.
TEST_F(Async, LostDevicesStayLostAndOpenAgain) {
  constexpr int illegalAddress = 700, invalidValue = 1;
  auto breaks = fake<void(int)>("fake_hip_break");
  auto calls = fake<int()>("fake_hip_calls");
  auto status = [](auto F) {
    try {
      F();
    } catch (const greta::Error &E) {
      return E.status();
    }
    return GRETA_OK;
  };
  greta::Function F = R.load(P, "scale");
  {
    greta::Stream S = R.stream(), Other = R.stream();
    greta::Buffer A = R.allocate(256), B = R.allocate(256),
                  Mapped = R.allocateMapped(256);
    greta::Event E = R.event();
    S.write(A, X.data(), 256);
    F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
    S.record(E);
    greta::Graph G = S.capture([&] { S.fill(A, 256, 0); });
    S.synchronize();

    breaks(invalidValue); // that is an error of one call
    EXPECT_EQ(status([&] { S.synchronize(); }), GRETA_ERROR_DEVICE);
    breaks(0);
    S.synchronize();

    breaks(illegalAddress);
    EXPECT_EQ(status([&] { S.synchronize(); }), GRETA_ERROR_DEVICE_LOST);
    EXPECT_NE(std::string(greta_last_error()).find("open it again"),
              std::string::npos);
    int Asked = calls();
    auto IsLost = [&](auto Call) {
      EXPECT_EQ(status(Call), GRETA_ERROR_DEVICE_LOST);
    };
    IsLost([&] { S.synchronize(); });
    IsLost([&] { Other.fill(A, 256, 1); });
    IsLost([&] { Other.write(A, X.data(), 256); });
    IsLost([&] { Other.read(A, X.data(), 256); });
    IsLost([&] { F.launch(Other, {{&A, {1, 64}}}, {{&B, {1, 64}}}); });
    IsLost([&] { Other.launch(G); });
    IsLost([&] { E.synchronize(); });
    IsLost([&] { E.wait(10); });
    IsLost([&] { R.allocate(256); });
    IsLost([&] { R.stream(); });
    IsLost([&] { R.load(P, "scale"); });
    EXPECT_EQ(calls(), Asked);

    greta::Runtime Again("hip");
    greta::Stream Fresh = Again.stream();
    greta::Buffer C = Again.allocate(256), D = Again.allocate(256);
    Fresh.write(C, X.data(), 256);
    Again.load(P, "scale").launch(Fresh, {{&C, {1, 64}}}, {{&D, {1, 64}}});
    Fresh.read(D, X.data(), 256);
    EXPECT_EQ(X, std::vector<float>(64, 3.0f));
    IsLost([&] { S.fill(A, 256, 1); });
    IsLost([&] { Fresh.fill(A, 256, 1); }); // of the old one
    Mapped = greta::Buffer();
    Fresh.fill(C, 256, 7);
    uint32_t Word = 0;
    Fresh.read(C, &Word, 4);
    EXPECT_EQ(Word, 7u);
  }
  EXPECT_EQ(faults(), 0);
  greta::Runtime Last("hip"); // after the second one is closed
  Last.stream().synchronize();
}

} // namespace
