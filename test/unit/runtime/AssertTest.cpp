// AssertTest.cpp: failed assertions are told where somebody waits: once, and
// with the words of the launch. The kernel is `scale`, whose result is its log:
// x = 0 puts a count of 2^30 words and more there, x = -0.5 the zeros of
// records, whose site is number 0 then.
#include "EveryDevice.h"
#include "TestPackage.h"

#include <gtest/gtest.h>
#include <thread>

using namespace greta_test;
using nlohmann::json;

namespace {

constexpr int64_t count = 11; // words: two records behind the one that counts
const std::string Record = "kernel 'scale': device-side assert failed: x > 0 "
                           "(k.py:7), pid (0, 0, 0) idx (0); and ";
const std::string Message = Record + "213070642 more"; // as the count says

constexpr int functions = 140;

// Functions `asserts0`, `asserts1` .. and `prints`, which write their log.
json assertingManifest() {
  json M = manifest(), All = json::array();
  json F = M["functions"][0];
  F["results"] = json::array();
  json Variants = json::array();
  for (json V : F["variants"]) {
    if (V["backend"] == "host") // its kernel has no log
      continue;
    V["temps"] = {{{"dtype", "i32"}, {"shape", {count}}}};
    json &K = V["kernels"][0];
    K["args"][1] = {{"kind", "temp"}, {"index", 0}};
    K["log"] = {{"temp", 0},
                {"sites",
                 {{{"kind", "assert"},
                   {"text", "x > 0"},
                   {"where", "k.py:7"},
                   {"shape", {4}}}}}};
    Variants.push_back(V);
  }
  F["variants"] = Variants;
  for (int I = 0; I < functions; ++I) {
    F["name"] = "asserts" + std::to_string(I);
    All.push_back(F);
  }
  F["name"] = "prints";
  for (json &V : F["variants"])
    V["kernels"][0]["log"]["sites"].push_back({{"kind", "print"},
                                               {"text", " never"},
                                               {"hex", false},
                                               {"values", json::array()}});
  All.push_back(F);
  M["functions"] = All;
  return M;
}

class Assert : public EveryDevice {
protected:
  void SetUp() override {
    EveryDevice::SetUp();
    if (!R)
      return;
    S = std::make_unique<greta::Stream>(R->stream());
    Wrong = std::make_unique<greta::Buffer>(R->allocate(count * 4));
    Right = std::make_unique<greta::Buffer>(R->allocate(count * 4));
    F = std::make_unique<greta::Function>(R->load(P, "asserts0"));
    std::vector<float> X(count, -0.5f);
    S->write(*Right, X.data(), count * 4);
    X[0] = 0;
    S->write(*Wrong, X.data(), count * 4);
    S->synchronize();
  }
  void TearDown() override {
    S.reset(), F.reset(), Wrong.reset(), Right.reset();
    EveryDevice::TearDown();
  }
  void launch(greta::Stream &On, bool Fails, greta::Function *What = nullptr) {
    (What ? *What : *F)
        .launch(On, {{Fails ? Wrong.get() : Right.get(), {1, count}}}, {});
  }
  // Returns what the call throws; "" if it throws nothing.
  template <typename Body> static std::string said(Body B) {
    try {
      B();
      return "";
    } catch (const greta::Error &E) {
      EXPECT_EQ(E.status(), GRETA_ERROR_ASSERTION);
      return E.what();
    }
  }
  Bytes Data = package(assertingManifest());
  greta::Package P{Data.data(), Data.size()};
  std::unique_ptr<greta::Stream> S;
  std::unique_ptr<greta::Buffer> Wrong, Right;
  std::unique_ptr<greta::Function> F;
};

INSTANTIATE_TEST_SUITE_P(Devices, Assert,
                         testing::Values("vulkan", "sim:gfx942", "hip"),
                         deviceName);

TEST_P(Assert, WhoeverWaitsIsToldOnce) {
  float Out[1];
  greta::Event E = R->event();
  for (int Way = 0; Way < 5; ++Way) {
    launch(*S, false);
    S->synchronize();
    launch(*S, true);
    auto Wait = [&] {
      switch (Way) {
      case 0:
        return S->synchronize();
      case 1:
        return S->read(*Right, Out, 4);
      case 2:
        while (!S->isDone())
          ;
        return;
      case 3:
        return S->record(E), E.synchronize();
      default:
        S->record(E);
        while (!E.wait(1000))
          ;
      }
    };
    EXPECT_EQ(said(Wait), Message) << Way;
    EXPECT_EQ(said(Wait), "") << Way;
    EXPECT_EQ(said([&] { S->synchronize(); }), "") << Way;
  }
}

// An event tells of launches before it in its own stream, in any thread.
TEST_P(Assert, EventsTellOfWhatIsBeforeThem) {
  greta::Event Before = R->event(), Behind = R->event();
  greta::Stream Other = R->stream();
  S->record(Before);
  launch(*S, true);
  S->record(Behind);
  launch(*S, true); // writes to the log while somebody reads it
  Other.wait(Behind);
  EXPECT_EQ(said([&] { Other.synchronize(); }), "");
  EXPECT_EQ(said([&] { Before.synchronize(); }), "");
  std::string There;
  std::thread([&] { There = said([&] { Behind.synchronize(); }); }).join();
  // A simulated chip that is checked leaves it to the stream, which goes on.
  bool IsChecked = std::string(GetParam()).rfind("sim:", 0) == 0;
  EXPECT_EQ(There, IsChecked ? "" : Message);
  EXPECT_EQ(said([&] { S->synchronize(); }), IsChecked ? Message : "");
  launch(*S, true);
  EXPECT_EQ(said([&] { Behind.synchronize(); }), "");
  EXPECT_EQ(said([&] { S->synchronize(); }), Message);
}

// An event tells nothing of launches behind it, whoever has looked at them
// since, and what it was recorded for stays when it is recorded again.
TEST_P(Assert, EventsTellNothingOfWhatIsBehindThem) {
  greta::Event Before = R->event(), Again = R->event();
  for (int Way = 0; Way < 3; ++Way) {
    launch(*S, false);
    S->record(Before), S->record(Again);
    launch(*S, true);
    if (Way == 0)
      S->record(Again);
    std::thread([&] { // a stream of its own reads the log
      EXPECT_EQ(said([&] { Before.synchronize(); }), "") << Way;
    })
        .join();
    if (Way < 2) {
      EXPECT_EQ(said([&] { S->synchronize(); }), Message) << Way;
      // All was told, and the log begins anew.
      launch(*S, true);
      S->record(Way == 0 ? Again : Before);
      EXPECT_EQ(said([&] { (Way == 0 ? Before : Again).synchronize(); }), "");
    }
    EXPECT_EQ(said([&] { S->synchronize(); }), Message) << Way;
    EXPECT_EQ(said([&] { Before.synchronize(), Again.synchronize(); }), "");
  }
}

// An event that is recorded again and again, and many that are kept, cost words
// of mapped memory, of which each is used again.
TEST_P(Assert, EventsKeepTheirCounts) {
  std::vector<greta::Event> Kept;
  for (int I = 0; I < 100; ++I) {
    launch(*S, false);
    S->record(Kept.emplace_back(R->event()));
  }
  launch(*S, true);
  S->record(Kept[40]);
  for (size_t I = 0; I < Kept.size(); ++I)
    if (I != 40) {
      EXPECT_EQ(said([&] { Kept[I].synchronize(); }), "") << I;
    }
  bool IsChecked = std::string(GetParam()).rfind("sim:", 0) == 0;
  std::string There = said([&] { Kept[40].synchronize(); });
  EXPECT_TRUE(There == Message || (IsChecked && There.empty())) << There;
  EXPECT_EQ(said([&] { S->synchronize(); }), There.empty() ? Message : "");
  uint64_t Before = R->memory().in_use;
  for (int I = 0; I < 3000; ++I) {
    launch(*S, false);
    S->record(Kept[size_t(I) % 100]);
  }
  EXPECT_LE(R->memory().in_use, Before + 4096);
  S->synchronize();
}

// Kernels that fail are all told, and streams tell of their own.
TEST_P(Assert, EveryKernelIsTold) {
  greta::Function Second = R->load(P, "asserts1");
  greta::Stream Other = R->stream();
  launch(*S, true), launch(*S, true, &Second), launch(Other, false);
  EXPECT_EQ(said([&] { Other.synchronize(); }), "");
  EXPECT_EQ(said([&] { S->synchronize(); }), Message + "; " + Message);
}

// A launch that prints waits and tells at once; no graph has it.
TEST_P(Assert, WhatPrintsIsWaitedFor) {
  greta::Function Prints = R->load(P, "prints");
  // Nobody knows how many failed in the words that are missing.
  EXPECT_EQ(said([&] { launch(*S, true, &Prints); }), Record + "1 more");
  launch(*S, false, &Prints);
  EXPECT_THROW(S->capture([&] { launch(*S, false, &Prints); }), greta::Error);
  S->synchronize();
}

TEST_P(Assert, LaunchesWaitIfTheyAreToldTo) {
  setenv("GRETA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_EQ(said([&] { launch(*S, true); }), Message);
  greta::Graph G = S->capture([&] { launch(*S, true); });
  S->launch(G);
  unsetenv("GRETA_LAUNCH_BLOCKING");
  EXPECT_EQ(said([&] { S->synchronize(); }), Message);
}

// A graph's launches are told where its stream waits; its log fills up.
TEST_P(Assert, GraphsAssert) {
  greta::Buffer X = R->allocate(count * 4);
  S->copy(X, *Right, count * 4);
  greta::Graph Inner =
      S->capture([&] { F->launch(*S, {{&X, {1, count}}}, {}); });
  greta::Graph G = S->capture([&] { S->launch(Inner), S->launch(Inner); });
  S->launch(G);
  S->synchronize();
  S->copy(X, *Wrong, count * 4);
  S->launch(G);
  EXPECT_EQ(said([&] { S->synchronize(); }), Message);
  EXPECT_EQ(said([&] { S->synchronize(); }), "");
  S->launch(G); // writes the same count
  EXPECT_EQ(said([&] { S->synchronize(); }), "");
}

// A graph has more logs than a stream keeps at a time: each is told, and a
// stream that goes on replaying it does not wait.
TEST_P(Assert, GraphsHaveManyLogs) {
  std::vector<greta::Function> All;
  for (int I = 0; I < functions; ++I)
    All.push_back(R->load(P, "asserts" + std::to_string(I)));
  for (int Failing : {0, 60, functions - 1}) {
    greta::Graph G = S->capture([&] {
      for (int I = 0; I < functions; ++I)
        launch(*S, I == Failing, &All[size_t(I)]);
    });
    launch(*S, false, &All[1]);
    S->launch(G), S->launch(G);
    EXPECT_EQ(said([&] { S->synchronize(); }), Message) << Failing;
  }
}

// A stream that records a graph keeps what it has to tell of calls before.
TEST_P(Assert, RecordingKeepsWhatFailed) {
  launch(*S, true);
  greta_graph *G = nullptr;
  size_t Count = 0;
  greta_kernel_time Times[1];
  greta::check(greta_graph_begin(S->get()));
  greta::check(greta_stream_times(S->get(), Times, &Count));
  greta::check(greta_graph_end(S->get(), &G));
  greta_graph_destroy(G);
  EXPECT_EQ(said([&] { S->synchronize(); }), Message);
}

// More kernels than a stream has logs, more launches than a log has room for,
// and streams that end before somebody waits.
TEST_P(Assert, LogsAreBounded) {
  std::vector<greta::Function> All;
  for (int I = 0; I < 40; ++I)
    All.push_back(R->load(P, "asserts" + std::to_string(I)));
  for (greta::Function &Each : All)
    launch(*S, false, &Each);
  uint64_t Before = R->memory().in_use;
  for (int I = 0; I < 2000; ++I)
    launch(*S, false, &All[size_t(I) % 40]);
  EXPECT_LE(R->memory().in_use, Before + 40 * count * 4);
  launch(*S, true);
  // The launch that has no log left waits.
  EXPECT_EQ(said([&] {
              for (size_t I = 1; I < 40; ++I)
                launch(*S, false, &All[I]);
            }),
            Message);
  S->synchronize();
}

TEST_P(Assert, AStreamThatEndsWarns) {
  std::string Heard;
  greta_set_log_callback(
      [](greta_log_level, const char *Text, void *User) {
        *static_cast<std::string *>(User) += Text;
      },
      &Heard);
  for (bool Records : {false, true}) {
    Heard.clear();
    {
      greta::Stream Other = R->stream();
      launch(Other, true);
      if (Records)
        greta::check(greta_graph_begin(Other.get()));
    }
    EXPECT_EQ(Heard, Message) << Records;
  }
  greta_set_log_callback(nullptr, nullptr);
}

// Automatic graphs have kernels that assert.
TEST_P(Assert, AutomaticGraphsAssert) {
  greta::Buffer X = R->allocate(count * 4);
  S->autoGraph(true);
  for (int I = 0; I < 6; ++I) {
    S->copy(X, I < 5 ? *Right : *Wrong, count * 4);
    S->flush();
    F->launch(*S, {{&X, {1, count}}}, {});
    EXPECT_EQ(said([&] { S->synchronize(); }), I < 5 ? "" : Message);
  }
  EXPECT_EQ(S->replayed(), 7u);
}

} // namespace
